//! Recorded texts: keys that must not repeat, and items with which later ones are compared.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::interning::memory::{element, map_entry};
use crate::stacks::ids::TextId;
use ffwd_bounds::error::LimitExceeded;

/// How many bytes of texts one grammar remembers.
pub(crate) const MAX_TEXTS: usize = 16_000_000;

/// Interned texts of keys and items, as tries from their first bytes on.
#[derive(Debug)]
pub struct Texts {
    /// As (all but the last byte, last byte).
    texts: boxcar::Vec<(TextId, u8)>,
    ids: Mutex<FxHashMap<(TextId, u8), TextId>>,
}

impl Default for Texts {
    fn default() -> Self {
        let texts = boxcar::Vec::new();
        // NONE and EMPTY.
        texts.push((TextId::NONE, 0));
        texts.push((TextId::NONE, 0));
        Self { texts, ids: Mutex::default() }
    }
}

impl Texts {
    /// About how many bytes of memory the texts hold.
    pub fn memory_bytes(&self) -> usize {
        let text = element::<(TextId, u8)>() + map_entry::<(TextId, u8), TextId>();
        self.texts.count() * text
    }

    /// The text with one byte more.
    pub fn append(&self, text: TextId, byte: u8) -> Result<TextId, LimitExceeded> {
        if text == TextId::ANY || text == TextId::NONE {
            return Ok(text);
        }
        let mut ids = self.ids.lock();
        if let Some(&known) = ids.get(&(text, byte)) {
            return Ok(known);
        }
        if self.texts.count() >= MAX_TEXTS {
            return Err(LimitExceeded::new("key_bytes", MAX_TEXTS));
        }
        let id = TextId(self.texts.push((text, byte)) as u32);
        ids.insert((text, byte), id);
        Ok(id)
    }

    /// Returns the number of texts, including all prefixes.
    pub fn len(&self) -> usize {
        self.texts.count()
    }

    /// Whether a text has a `sought` byte after which all bytes are `within`.
    pub fn ends_with_one(
        &self,
        text: TextId,
        within: impl Fn(u8) -> bool,
        sought: impl Fn(u8) -> bool,
    ) -> bool {
        let mut current = text;
        while current > TextId::EMPTY && current != TextId::ANY {
            let (prefix, byte) = self.texts[current.0 as usize];
            if sought(byte) {
                return true;
            }
            if !within(byte) {
                return false;
            }
            current = prefix;
        }
        false
    }

    /// The bytes of a text.
    pub fn bytes(&self, text: TextId) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut current = text;
        while current > TextId::EMPTY && current != TextId::ANY {
            let (prefix, byte) = self.texts[current.0 as usize];
            bytes.push(byte);
            current = prefix;
        }
        bytes.reverse();
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_of_a_text_are_searched() {
        let texts = Texts::default();
        let written = |text: &str| {
            let append = |id, byte| texts.append(id, byte).unwrap();
            text.bytes().fold(TextId::EMPTY, append)
        };
        let has_exponent = |text: &str| {
            let is_digit = |byte: u8| byte.is_ascii_digit();
            texts.ends_with_one(written(text), is_digit, |byte| byte == b'e')
        };
        assert!(has_exponent("1e12") && has_exponent("[1e"));
        assert!(!has_exponent("1e,12") && !has_exponent("12") && !has_exponent(""));
    }

    #[test]
    fn equal_texts_are_one() {
        let texts = Texts::default();
        let twice = [(); 2].map(|()| texts.append(TextId::EMPTY, b'a').unwrap());
        assert_eq!(twice[0], twice[1]);
        let before = texts.len();
        texts.append(twice[0], b'b').unwrap();
        assert_eq!(texts.len(), before + 1);
    }
}
