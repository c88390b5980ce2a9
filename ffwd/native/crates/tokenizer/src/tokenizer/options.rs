//! How a text is encoded.

use super::specials::SpecialPolicy;
use crate::bpe::Method;

/// The space that a tokenizer writes before a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DummySpace {
    /// Where a space is written.
    pub scope: Scope,
    /// Also before a text that begins with a space.
    pub before_space: bool,
}

/// Before which stretches of a text a dummy space is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Before the text, also if it begins with a special token.
    Text,
    /// Before the text, unless it begins with a special token.
    First,
    /// Before every stretch between special tokens.
    Every,
}

impl DummySpace {
    /// Whether there is one before a text that begins with this byte.
    pub(super) fn is_before(self, first: u8) -> bool {
        self.before_space || first != b' '
    }
}

/// How a whole text is encoded. The default is what the tokenizer itself does with a text, but
/// for special tokens, which are text.
#[derive(Clone, Debug)]
pub struct EncodeOptions {
    /// What is done with special tokens in the text.
    pub special: SpecialPolicy,
    /// Which algorithm encodes a piece.
    pub method: Method,
    /// What is done with the text between special tokens.
    pub part: PartOptions,
}

/// How a stretch of text without special tokens is encoded.
#[derive(Clone, Copy, Debug)]
pub struct PartOptions {
    /// Cut the text into pieces first; otherwise all of it is one piece.
    pub pretokenize: bool,
    /// Apply the tokenizer's normalizer.
    pub normalize: bool,
    /// Write the dummy space that the tokenizer writes.
    pub dummy_space: bool,
}

impl Default for PartOptions {
    fn default() -> Self {
        Self { pretokenize: true, normalize: true, dummy_space: true }
    }
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self {
            special: SpecialPolicy::Text,
            method: Method::Backtracking,
            part: PartOptions::default(),
        }
    }
}
