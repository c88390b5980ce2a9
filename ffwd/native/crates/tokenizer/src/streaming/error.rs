//! Errors of a decoder's tokens, of an id, and of a stream's stops.

use thiserror::Error;

use crate::vocabulary::TokenId;
use ffwd_bounds::error::LimitExceeded;

/// An invalid table of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecoderError {
    /// A special id is past the end of the table.
    #[error("the special token {special} is outside the vocabulary of {size} ids")]
    SpecialOutOfRange {
        /// The id.
        special: TokenId,
        /// The number of ids of the vocabulary.
        size: usize,
    },
    /// A special id has no entry in the table.
    #[error("the special id {special} has no token: give its bytes, or leave it out")]
    SpecialWithoutToken {
        /// The id.
        special: TokenId,
    },
    /// A token with other bytes at the start of a text is past the end of the table.
    #[error("token {token}, which a text may begin with, is outside the vocabulary of {size} ids")]
    FirstOutOfRange {
        /// The id.
        token: TokenId,
        /// The number of ids of the vocabulary.
        size: usize,
    },
    /// A token has too many bytes.
    #[error("token {token} has {length} bytes, more than the {maximum} that a token may have")]
    TooLong {
        /// The id.
        token: TokenId,
        /// How many bytes it has.
        length: usize,
        /// The most that there may be.
        maximum: usize,
    },
    /// The tokens have too many bytes together.
    #[error("the tokens have more than the {maximum} bytes that a decoder may have")]
    TooLarge {
        /// The most that there may be.
        maximum: usize,
    },
}

/// An id that stands for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnknownToken {
    /// The id is not below the size of the vocabulary.
    #[error("token {token} is outside the vocabulary of {size} ids")]
    OutOfRange {
        /// The id.
        token: TokenId,
        /// The number of ids of the vocabulary.
        size: usize,
    },
    /// The vocabulary leaves the id out.
    #[error("the vocabulary has no token with the id {token}")]
    NoToken {
        /// The id.
        token: TokenId,
    },
}

impl UnknownToken {
    /// The id that is unknown.
    pub fn token(&self) -> TokenId {
        match self {
            Self::OutOfRange { token, .. } | Self::NoToken { token } => *token,
        }
    }
}

/// An invalid stop.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StopError {
    /// A stop string is empty.
    #[error("the {list} string {index} is empty: it would stop every text at once")]
    Empty {
        /// The list in which the string stands, for messages.
        list: &'static str,
        /// Its index in that list.
        index: usize,
    },
    /// A stop string is no Unicode text.
    #[error(
        "the {list} string {index} has a lone surrogate at index {character}, which no text has: \
         replace or remove it"
    )]
    LoneSurrogate {
        /// The list in which the string stands, for messages.
        list: &'static str,
        /// Its index in that list.
        index: usize,
        /// The index of the surrogate, in characters.
        character: usize,
    },
    /// A string is listed as hidden and as visible.
    #[error("{text:?} is both a hidden and a visible stop string (visible string {index})")]
    HiddenAndVisible {
        /// The string.
        text: String,
        /// Its index among the visible strings.
        index: usize,
    },
    /// A token is listed as hidden and as visible.
    #[error("token {token} is both a hidden and a visible stop token")]
    TokenHiddenAndVisible {
        /// The id.
        token: TokenId,
    },
    /// A stop token is unknown to the decoder.
    #[error(transparent)]
    Token(#[from] UnknownToken),
    /// The stop strings are too long together.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}
