//! Fingerprints that distinguish vocabularies and grammars.

use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// A hash of 128 bits, by Fowler, Noll and Vo. It detects accidental differences and is not
/// collision-resistant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub u128);

impl Fingerprint {
    pub fn of(bytes: &[u8]) -> Self {
        Self(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D).with(bytes)
    }

    fn with(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, &byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B)
        }))
    }

    /// Returns the fingerprint of the number of ids, their bytes, the end tokens, and the names.
    pub fn of_vocabulary(vocabulary: &Vocabulary) -> Self {
        let number = |number: usize| (number as u64).to_le_bytes();
        let mut hash = Self::of(b"vocabulary").with(&number(vocabulary.width()));
        for id in 0..vocabulary.width() as u32 {
            let text = vocabulary.text(TokenId(id));
            hash = hash.with(&number(text.len())).with(text);
        }
        hash = hash.with(&number(vocabulary.eos().len()));
        for token in vocabulary.eos() {
            hash = hash.with(&number(token.index()));
        }
        // Grammars may call tokens by their names.
        let mut names: Vec<(&str, TokenId)> = vocabulary.names().collect();
        names.sort_unstable();
        for (name, token) in names {
            hash =
                hash.with(&number(token.index())).with(&number(name.len())).with(name.as_bytes());
        }
        hash
    }
}
