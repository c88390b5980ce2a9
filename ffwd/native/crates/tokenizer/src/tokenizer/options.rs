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

/// The parts of a text that get a dummy space.
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
    /// Whether a text that starts with this byte gets one.
    pub(super) fn is_before(self, first: u8) -> bool {
        self.before_space || first != b' '
    }
}

/// How a whole text is encoded. The default is the tokenizer's own treatment, except that special
/// tokens are text.
#[derive(Clone, Debug)]
pub struct EncodeOptions {
    /// The treatment of special tokens in the text.
    pub special: SpecialPolicy,
    /// Which algorithm encodes a piece.
    pub method: Method,
    /// The treatment of the text between special tokens.
    pub part: PartOptions,
}

/// How a stretch of text without special tokens is encoded.
#[derive(Clone, Copy, Debug)]
pub struct PartOptions {
    /// Split the text into pieces first; otherwise all of it is one piece.
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
