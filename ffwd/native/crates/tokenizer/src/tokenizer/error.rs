//! Errors of a tokenizer's parts, and of texts.

use thiserror::Error;

use crate::bpe::BpeError;
use crate::pretokenizer::PreTokenizerError;
use crate::vocabulary::TokenId;

/// Invalid parts of a tokenizer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenizerError {
    /// The content of a special token is empty.
    #[error("special token {0} has no text")]
    EmptySpecial(TokenId),
    /// No search for the special tokens can be built, for this reason.
    #[error("no search for the special tokens can be built: {0}")]
    Specials(String),
    /// The given size is below the largest id.
    #[error("the vocabulary size of {width} is smaller than the {ids} ids of the tokens")]
    TooNarrow {
        /// The given number of ids.
        width: usize,
        /// The number of ids that the tokens need.
        ids: usize,
    },
    /// The text of a model cannot be read, for this reason.
    #[error("{0}")]
    Model(String),
    /// The byte-pair encoding is at fault.
    #[error(transparent)]
    Table(#[from] BpeError),
    /// The stages of the pre-tokenizer are at fault.
    #[error(transparent)]
    PreTokenizer(#[from] PreTokenizerError),
}

/// A text, or a request about one, that a tokenizer cannot serve. Offsets count bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// The text has a special token, under [`SpecialPolicy::Forbidden`](super::SpecialPolicy).
    #[error(
        "the special token {name:?} stands at byte {at} of the text, and special tokens are \
         forbidden: allow it by name, or have it encoded as text"
    )]
    ForbiddenSpecial {
        /// The content of the token.
        name: String,
        /// The offset of its first byte.
        at: usize,
    },
    /// The request names a special token that the tokenizer lacks.
    #[error("the tokenizer has no special token {0:?}")]
    UnknownSpecial(String),
    /// No search for the special tokens of the request can be built.
    #[error("the request has too many special tokens")]
    TooManySpecials,
    /// The text is not UTF-8, and the pre-tokenizer cuts characters only.
    #[error("byte {at} is not UTF-8, which the tokenizer cannot cut into pieces")]
    NotUtf8 {
        /// The offset of the first byte that is not.
        at: usize,
    },
    /// Normalization keeps a text from being split exactly.
    #[error(
        "the tokenizer changes the character at byte {at} before it cuts the text, or may \
         change it, depending on the text around it. So the text cannot be split exactly: switch \
         normalization off, and pass normalized text"
    )]
    Normalized {
        /// The offset of the character that changes, or may.
        at: usize,
    },
    /// Exact counts of parts of a text are out of reach, for this reason.
    #[error("the tokenizer cannot encode parts of a text exactly: {0}")]
    NotIncremental(String),
    /// A range is reversed or ends behind the text.
    #[error("the range from byte {start} to byte {end} is not within a text of {length} bytes")]
    OutOfRange {
        /// Where the range starts.
        start: usize,
        /// Where it ends.
        end: usize,
        /// The length of the text.
        length: usize,
    },
    /// The text has a byte without a token.
    #[error("no token encodes the byte 0x{byte:02X}, which stands at byte {at} of the text")]
    NoByteToken {
        /// The byte.
        byte: u8,
        /// Its offset.
        at: usize,
    },
    /// The text is a string of code points, and one is a surrogate.
    #[error(
        "the text's character at index {character} (byte {at}) is the lone surrogate \
         U+{code:04X}, which UTF-8 cannot represent: replace it, for instance by U+FFFD"
    )]
    LoneSurrogate {
        /// Its index, in characters.
        character: usize,
        /// The code point.
        code: u32,
        /// Its offset in bytes.
        at: usize,
    },
    /// An offset does not lie between two characters.
    #[error("byte {at} is inside a character")]
    InsideCharacter {
        /// The offset.
        at: usize,
    },
    /// An id is not below the size of the vocabulary.
    #[error("token {token} is outside the vocabulary of {size} ids")]
    UnknownToken {
        /// The id.
        token: TokenId,
        /// The number of ids of the vocabulary.
        size: usize,
    },
    /// One text of a batch cannot be encoded.
    #[error("text {index} of the batch: {error}")]
    InBatch {
        /// Its index in the batch.
        index: usize,
        /// What is wrong with it.
        error: Box<TextError>,
    },
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
