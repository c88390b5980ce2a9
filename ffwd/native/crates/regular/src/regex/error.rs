//! Errors of a pattern, with their positions.

use std::fmt;

use thiserror::Error;

use ffwd_bounds::error::LimitExceeded;

/// Largest number of nodes of a pattern's language, shared parts counted as often as they occur.
pub const MAX_SIZE: usize = 1 << 20;

/// Characters that a pattern may have; bytes in the dialect of the `regex` crate.
pub(super) const MAX_PATTERN: usize = 1 << 16;

/// Limits that several dialects have.
pub(super) const NESTED_GROUPS: &str = "pattern_nesting";
pub(super) const CLASS_RANGES: &str = "class_ranges";
pub(super) const EXPRESSION_SIZE: &str = "pattern_size";

/// A pattern that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message} (at character {offset})")]
pub struct PatternError {
    /// The offset, in characters from the pattern's start.
    pub offset: usize,
    /// Whether the syntax, a feature or the size is at fault.
    pub kind: PatternErrorKind,
    /// The fault in words, without its position.
    pub message: String,
}

/// The kind of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternErrorKind {
    /// The pattern breaks the dialect's syntax.
    Invalid,
    /// The pattern is well formed but uses this feature, which is not supported.
    Unsupported(&'static str),
    /// The pattern, or what it stands for, passes a limit.
    TooLarge(LimitExceeded),
}

impl fmt::Display for PatternErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid => f.write_str("invalid"),
            Self::Unsupported(feature) => write!(f, "unsupported: {feature}"),
            Self::TooLarge(limit) => limit.fmt(f),
        }
    }
}

impl PatternError {
    pub(super) fn invalid(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, kind: PatternErrorKind::Invalid, message: message.into() }
    }

    pub(super) fn unsupported(offset: usize, feature: &'static str) -> Self {
        let message = format!("{feature}: not supported; write the pattern without it");
        Self { offset, kind: PatternErrorKind::Unsupported(feature), message }
    }

    pub(super) fn too_large(offset: usize, limit: &'static str, maximum: usize) -> Self {
        let limit = LimitExceeded::new(limit, maximum);
        Self { offset, message: limit.to_string(), kind: PatternErrorKind::TooLarge(limit) }
    }

    /// The line and column of the error in its pattern, both counted from 1, columns in characters.
    pub fn line_and_column(&self, pattern: &str) -> (usize, usize) {
        let (mut line, mut column) = (1, 1);
        for character in pattern.chars().take(self.offset) {
            if character == '\n' {
                line += 1;
                column = 1;
            } else {
                column += 1;
            }
        }
        (line, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters() {
        let error = PatternError::invalid(4, "x");
        assert_eq!(error.line_and_column("é\nab("), (2, 3));
        assert_eq!(PatternError::invalid(0, "x").line_and_column(""), (1, 1));
    }
}
