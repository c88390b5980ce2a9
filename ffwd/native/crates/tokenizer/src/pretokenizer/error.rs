//! Errors of unsupported pre-tokenizers.

use thiserror::Error;

use ffwd_bounds::error::LimitExceeded;

/// Why stages are no pre-tokenizer. Offsets count bytes of the pattern.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PreTokenizerError {
    #[error("the pattern is not valid at offset {offset}: {reason}")]
    Invalid { offset: usize, reason: String },
    #[error("the pattern has {construct} at offset {offset}, which is not supported")]
    Unsupported { construct: &'static str, offset: usize },
    #[error(
        "the possessive quantifier at offset {offset} may match other text than the greedy one, \
         which is not supported"
    )]
    Possessive { offset: usize },
    #[error("the pattern {pattern:?} matches the empty text")]
    MatchesEmpty { pattern: String },
    #[error("the split by {pattern:?} removes text, so the tokens would not contain all of it")]
    RemovesText { pattern: String },
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}
