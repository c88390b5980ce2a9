//! Errors of a tokenizer's parts, and of texts.

use thiserror::Error;

use crate::bpe::BpeError;
use crate::pretokenizer::PreTokenizerError;
use crate::vocabulary::TokenId;

/// Invalid parts of a tokenizer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenizerError {
    #[error("special token {0} has no text")]
    EmptySpecial(TokenId),
    #[error("no search for the special tokens can be built: {0}")]
    Specials(String),
    #[error("the vocabulary size of {width} is smaller than the {ids} ids of the tokens")]
    TooNarrow { width: usize, ids: usize },
    #[error("{0}")]
    Model(String),
    #[error(transparent)]
    Table(#[from] BpeError),
    #[error(transparent)]
    PreTokenizer(#[from] PreTokenizerError),
}

/// A text, or a request about one, that a tokenizer cannot serve. Offsets count bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    #[error(
        "the special token {name:?} stands at byte {at} of the text, and special tokens are \
         forbidden: allow it by name, or have it encoded as text"
    )]
    ForbiddenSpecial { name: String, at: usize },
    #[error("the tokenizer has no special token {0:?}")]
    UnknownSpecial(String),
    #[error("the request has too many special tokens")]
    TooManySpecials,
    #[error("byte {at} is not UTF-8, which the tokenizer cannot cut into pieces")]
    NotUtf8 { at: usize },
    #[error(
        "the tokenizer changes the character at byte {at} before it cuts the text, or may \
         change it, depending on the text around it. So the text cannot be split exactly: switch \
         normalization off, and pass normalized text"
    )]
    Normalized { at: usize },
    #[error("the tokenizer cannot encode parts of a text exactly: {0}")]
    NotIncremental(String),
    #[error("the range from byte {start} to byte {end} is not within a text of {length} bytes")]
    OutOfRange { start: usize, end: usize, length: usize },
    #[error("no token encodes the byte 0x{byte:02X}, which stands at byte {at} of the text")]
    NoByteToken { byte: u8, at: usize },
    #[error(
        "the text's character at index {character} (byte {at}) is the lone surrogate \
         U+{code:04X}, which UTF-8 cannot represent: replace it, for instance by U+FFFD"
    )]
    LoneSurrogate { character: usize, code: u32, at: usize },
    #[error("byte {at} is inside a character")]
    InsideCharacter { at: usize },
    #[error("token {token} is outside the vocabulary of {size} ids")]
    UnknownToken { token: TokenId, size: usize },
    #[error("text {index} of the batch: {error}")]
    InBatch { index: usize, error: Box<TextError> },
}

impl TextError {
    /// The place in the text, if the error is about one.
    pub fn byte(&self) -> Option<usize> {
        match self {
            Self::ForbiddenSpecial { at, .. }
            | Self::NoByteToken { at, .. }
            | Self::NotUtf8 { at }
            | Self::LoneSurrogate { at, .. }
            | Self::Normalized { at }
            | Self::InsideCharacter { at } => Some(*at),
            Self::InBatch { error, .. } => error.byte(),
            _ => None,
        }
    }

    /// The same for a text that starts this many bytes earlier.
    pub fn shifted(self, by: usize) -> Self {
        self.moved(|at| at + by)
    }

    /// The same for a text that starts this many bytes later.
    pub(super) fn unshifted(self, by: usize) -> Self {
        self.moved(|at| at.saturating_sub(by))
    }

    fn moved(mut self, to: impl FnOnce(usize) -> usize) -> Self {
        if let Self::ForbiddenSpecial { at, .. }
        | Self::NoByteToken { at, .. }
        | Self::NotUtf8 { at }
        | Self::LoneSurrogate { at, .. }
        | Self::Normalized { at }
        | Self::InsideCharacter { at } = &mut self
        {
            *at = to(*at);
        }
        self
    }
}
