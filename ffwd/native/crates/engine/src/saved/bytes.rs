//! Numbers, texts and lists as bytes.

use super::SavedError;

/// Appends to bytes.
#[derive(Default)]
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// In groups of seven bits, the lowest first.
    pub fn number(&mut self, number: impl Into<u64>) {
        let mut number = number.into();
        while number > 0x7F {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub fn length(&mut self, length: usize) {
        self.number(length as u64);
    }

    /// A number that may be missing.
    pub fn optional(&mut self, number: Option<u32>) {
        self.number(number.map_or(0, |number| u64::from(number) + 1));
    }

    pub fn flag(&mut self, flag: bool) {
        self.byte(flag.into());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }
}

/// Reads the bytes of a [`Writer`], or untrusted ones.
pub(super) struct Reader<'b> {
    left: &'b [u8],
}

impl<'b> Reader<'b> {
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { left: bytes }
    }

    pub fn byte(&mut self) -> Result<u8, SavedError> {
        let (&byte, left) = self.left.split_first().ok_or(SavedError::Length)?;
        self.left = left;
        Ok(byte)
    }

    pub fn number(&mut self) -> Result<u64, SavedError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(SavedError::Malformed("a number"))
    }

    pub fn small(&mut self) -> Result<u32, SavedError> {
        u32::try_from(self.number()?).map_err(|_| SavedError::Malformed("a number"))
    }

    pub fn optional(&mut self) -> Result<Option<u32>, SavedError> {
        match self.number()?.checked_sub(1) {
            None => Ok(None),
            Some(number) => match u32::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(SavedError::Malformed("a number")),
            },
        }
    }

    pub fn flag(&mut self) -> Result<bool, SavedError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(SavedError::Malformed("a flag")),
        }
    }

    /// How many items follow. Each has at least one byte, so the bytes bound the memory.
    pub fn length(&mut self) -> Result<usize, SavedError> {
        match usize::try_from(self.number()?) {
            Ok(length) if length <= self.left.len() => Ok(length),
            _ => Err(SavedError::Length),
        }
    }

    pub fn bytes(&mut self) -> Result<&'b [u8], SavedError> {
        let length = self.length()?;
        let (bytes, left) = self.left.split_at(length);
        self.left = left;
        Ok(bytes)
    }

    pub fn text(&mut self) -> Result<&'b str, SavedError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| SavedError::Malformed("a text"))
    }

    /// The items of a list, after their number.
    pub fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, SavedError>,
    ) -> Result<Vec<T>, SavedError> {
        (0..self.length()?).map(|_| item(self)).collect()
    }

    pub fn end(&self) -> Result<(), SavedError> {
        if self.left.is_empty() {
            Ok(())
        } else {
            Err(SavedError::Length)
        }
    }
}
