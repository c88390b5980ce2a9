//! The incomplete character at the end of a text.

use std::str::{from_utf8, Utf8Error};

/// Up to three bytes that start a character.
///
/// It takes bytes, and returns text as soon as it is certain. However the bytes are split, the
/// result is that of WHATWG's Encoding Standard for all of them. It has one U+FFFD for each longest
/// prefix of a character that does not continue, and for each byte that starts no character.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unfinished {
    bytes: [u8; 4],
    length: u8,
}

/// Whether bytes may yet become a character.
fn may_go_on(error: Utf8Error) -> bool {
    error.error_len().is_none()
}

impl Unfinished {
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Adds bytes, and writes the text that has become certain.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut String) {
        while let (false, Some((&byte, rest))) = (self.is_empty(), bytes.split_first()) {
            let length = usize::from(self.length);
            self.bytes[length] = byte;
            match from_utf8(&self.bytes[..=length]) {
                Ok(character) => {
                    out.push_str(character);
                    self.length = 0;
                }
                Err(error) if may_go_on(error) => self.length += 1,
                Err(_) => {
                    // The byte is not part of it, and is examined again.
                    out.push(char::REPLACEMENT_CHARACTER);
                    self.length = 0;
                    continue;
                }
            }
            bytes = rest;
        }
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            out.push_str(chunk.valid());
            let malformed = chunk.invalid();
            at += chunk.valid().len() + malformed.len();
            if malformed.is_empty() {
                continue;
            }
            if at == bytes.len() && from_utf8(malformed).is_err_and(may_go_on) {
                self.bytes[..malformed.len()].copy_from_slice(malformed);
                self.length = malformed.len() as u8;
            } else {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Ends the text: an incomplete character is malformed. Returns whether there was one.
    pub fn finish(&mut self, out: &mut String) -> bool {
        let begun = !self.is_empty();
        if begun {
            out.push(char::REPLACEMENT_CHARACTER);
            self.length = 0;
        }
        begun
    }
}
