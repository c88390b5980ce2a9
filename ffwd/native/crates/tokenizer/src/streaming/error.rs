//! Errors of a decoder's tokens, of an id, and of a stream's stops.

use thiserror::Error;

use crate::vocabulary::TokenId;
use ffwd_bounds::error::LimitExceeded;

/// An invalid table of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecoderError {
    #[error("the special token {special} is outside the vocabulary of {size} ids")]
    SpecialOutOfRange { special: TokenId, size: usize },
    #[error("the special id {special} has no token: give its bytes, or leave it out")]
    SpecialWithoutToken { special: TokenId },
    #[error("token {token}, which a text may begin with, is outside the vocabulary of {size} ids")]
    FirstOutOfRange { token: TokenId, size: usize },
    #[error("token {token} has {length} bytes, more than the {maximum} that a token may have")]
    TooLong { token: TokenId, length: usize, maximum: usize },
    #[error("the tokens have more than the {maximum} bytes that a decoder may have")]
    TooLarge { maximum: usize },
}

/// An id that stands for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnknownToken {
    #[error("token {token} is outside the vocabulary of {size} ids")]
    OutOfRange { token: TokenId, size: usize },
    #[error("the vocabulary has no token with the id {token}")]
    NoToken { token: TokenId },
}

impl UnknownToken {
    pub fn token(&self) -> TokenId {
        match self {
            Self::OutOfRange { token, .. } | Self::NoToken { token } => *token,
        }
    }
}

/// An invalid stop.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StopError {
    #[error("the {list} string {index} is empty: it would stop every text at once")]
    Empty { list: &'static str, index: usize },
    #[error(
        "the {list} string {index} has a lone surrogate at index {character}, which no text has: \
         replace or remove it"
    )]
    LoneSurrogate { list: &'static str, index: usize, character: usize },
    #[error("{text:?} is both a hidden and a visible stop string (visible string {index})")]
    HiddenAndVisible { text: String, index: usize },
    #[error("token {token} is both a hidden and a visible stop token")]
    TokenHiddenAndVisible { token: TokenId },
    #[error(transparent)]
    Token(#[from] UnknownToken),
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}
