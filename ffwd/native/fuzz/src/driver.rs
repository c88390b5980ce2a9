//! One input: a text, and bytes that drive what is done with it.

/// The text is what comes before the first byte 0xFF, which no UTF-8 has; the rest drives. So a
/// seed can be an ordinary file, and a mutation of the one part leaves the other as it is.
pub fn split(data: &[u8]) -> (&[u8], Driver<'_>) {
    let end = data.iter().position(|&byte| byte == 0xFF).unwrap_or(data.len());
    (&data[..end], Driver::new(data.get(end + 1..).unwrap_or_default()))
}

/// The same, where the text must be UTF-8.
pub fn split_text(data: &[u8]) -> Option<(&str, Driver<'_>)> {
    let (text, driver) = split(data);
    Some((std::str::from_utf8(text).ok()?, driver))
}

/// Decisions, byte by byte. Where there are no more bytes, a fixed sequence goes on, so that short
/// inputs come to something too.
#[derive(Clone, Debug)]
pub struct Driver<'d> {
    bytes: &'d [u8],
    state: u32,
}

impl<'d> Driver<'d> {
    pub fn new(bytes: &'d [u8]) -> Self {
        Self { bytes, state: 0x9E37_79B9 }
    }

    pub fn byte(&mut self) -> u8 {
        if let Some((&first, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            return first;
        }
        // Marsaglia's xorshift.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 17;
        self.state ^= self.state << 5;
        (self.state >> 11) as u8
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = bound > 1 << 8;
        let number =
            usize::from(self.byte()) | if wide { usize::from(self.byte()) << 8 } else { 0 };
        number % bound
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Whether bytes of the input are left.
    pub fn has_more(&self) -> bool {
        !self.bytes.is_empty()
    }

    pub fn rest(&self) -> &'d [u8] {
        self.bytes
    }
}
