//! Errors of unsupported pre-tokenizers.

use thiserror::Error;

use ffwd_bounds::error::LimitExceeded;

/// Why stages form no supported pre-tokenizer. Offsets count bytes of the pattern.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PreTokenizerError {
    /// The pattern breaks the syntax of its dialect.
    #[error("the pattern is not valid at offset {offset}: {reason}")]
    Invalid {
        /// Where the syntax breaks.
        offset: usize,
        /// How it breaks, in words.
        reason: String,
    },
    /// The pattern uses an unsupported feature.
    #[error("the pattern has {construct} at offset {offset}, which is not supported")]
    Unsupported {
        /// The feature, with its article.
        construct: &'static str,
        /// Where it stands.
        offset: usize,
    },
    /// A possessive quantifier may match less than the greedy one.
    #[error(
        "the possessive quantifier at offset {offset} may match other text than the greedy one, \
         which is not supported"
    )]
    Possessive {
        /// Where the quantifier stands.
        offset: usize,
    },
    /// A match without text would be a piece without text.
    #[error("the pattern {pattern:?} matches the empty text")]
    MatchesEmpty {
        /// The pattern as it was given.
        pattern: String,
    },
    /// [`Behavior::Removed`](super::Behavior::Removed) would drop a part of the text.
    #[error("the split by {pattern:?} removes text, so the tokens would not contain all of it")]
    RemovesText {
        /// The pattern as it was given.
        pattern: String,
    },
    /// The stages are too many or too large.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}
