//! A coarse summary of the bytes below a node of the trie, enough to see that a whole subtree only
//! loops in one state of an automaton.

/// Groups of bytes, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Summary(pub u32);

impl Summary {
    /// Runs of well-formed multi-byte characters, also cut short at the end.
    pub const MULTIBYTE: Self = Self(1 << 30);
    /// Bytes above ASCII that are no such characters.
    pub(crate) const ILL_FORMED: Self = Self(1 << 31);

    /// The groups of either.
    #[inline]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every group here is among those of `other`.
    #[inline]
    pub fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The group of an ASCII byte.
    pub fn of_ascii(byte: u8) -> Self {
        const ALONE: &[u8] = b" \t\n\r\"\\-_.,/@:'()[]{}+#";
        let bit = match byte {
            b'a'..=b'z' => 0,
            b'A'..=b'Z' => 1,
            b'0'..=b'9' => 2,
            _ => match ALONE.iter().position(|&alone| alone == byte) {
                Some(at) => 3 + at as u32,
                None if byte < b' ' || byte == 0x7F => 28,
                None => 29,
            },
        };
        Self(1 << bit)
    }
}

/// A place within UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Utf8Place(u8);

impl Utf8Place {
    /// Between characters.
    pub const BOUNDARY: Self = Self(0);
    pub(crate) const COUNT: usize = 8;

    /// All places.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    pub(crate) fn bit(self) -> u8 {
        1 << self.0
    }

    /// The place after one more byte; `None` if the byte is invalid UTF-8 there.
    pub fn next(self, byte: u8) -> Option<Self> {
        let next = match (self.0, byte) {
            (0, 0x00..=0x7F) => 0,
            (0, 0xC2..=0xDF) => 1,
            (0, 0xE0) => 4,
            (0, 0xED) => 5,
            (0, 0xE1..=0xEF) => 2,
            (0, 0xF0) => 6,
            (0, 0xF4) => 7,
            (0, 0xF1..=0xF3) => 3,
            (1, 0x80..=0xBF) => 0,
            (2, 0x80..=0xBF) | (4, 0xA0..=0xBF) | (5, 0x80..=0x9F) => 1,
            (3, 0x80..=0xBF) | (6, 0x90..=0xBF) | (7, 0x80..=0x8F) => 2,
            _ => return None,
        };
        Some(Self(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_utf8() {
        for code in (0..=0x10FFFFu32).step_by(97) {
            let Some(character) = char::from_u32(code) else { continue };
            let mut place = Utf8Place::BOUNDARY;
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                place = place.next(byte).unwrap();
            }
            assert_eq!(place, Utf8Place::BOUNDARY);
        }
        let ends_at_boundary = |bytes: &[u8]| {
            let place = bytes.iter().try_fold(Utf8Place::BOUNDARY, |place, &byte| place.next(byte));
            place == Some(Utf8Place::BOUNDARY)
        };
        for bytes in [[0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xC0, 0x80, 0x41], [0x80, 0, 0]] {
            assert!(!ends_at_boundary(&bytes), "{bytes:x?}");
        }
    }
}
