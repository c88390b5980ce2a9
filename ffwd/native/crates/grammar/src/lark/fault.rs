//! Errors, with their byte offset in the text.

use crate::{GrammarError, GrammarErrorKind};
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::regex::{PatternError, PatternErrorKind};

/// How grammars of this front end are called in errors.
pub(super) const SOURCE: &str = "Lark";

#[derive(Debug)]
pub(super) struct Fault {
    pub at: usize,
    pub kind: GrammarErrorKind,
    pub message: String,
}

impl Fault {
    pub fn new(at: usize, kind: GrammarErrorKind, message: impl Into<String>) -> Self {
        Self { at, kind, message: message.into() }
    }

    pub fn syntax(at: usize, message: impl Into<String>) -> Self {
        Self::new(at, GrammarErrorKind::Syntax, message)
    }

    pub fn unsupported(at: usize, feature: &'static str, message: impl Into<String>) -> Self {
        Self::new(at, GrammarErrorKind::Unsupported(feature), message)
    }

    pub fn limit(at: usize, limit: LimitExceeded) -> Self {
        Self::new(at, GrammarErrorKind::Limit(limit), limit.to_string())
    }

    /// An error in a pattern that begins at a byte of the text, after a few characters that the
    /// pattern does not have in the text.
    pub fn pattern(at: usize, pattern: &str, before: usize, error: &PatternError) -> Self {
        let kind = match &error.kind {
            PatternErrorKind::Invalid => GrammarErrorKind::Pattern,
            PatternErrorKind::Unsupported(feature) => GrammarErrorKind::Unsupported(feature),
            PatternErrorKind::TooLarge(limit) => GrammarErrorKind::Limit(*limit),
        };
        let inside = error.offset.saturating_sub(before);
        let bytes: usize = pattern.chars().take(inside).map(char::len_utf8).sum();
        Self::new(at + bytes, kind, format!("the pattern cannot be read: {}", error.message))
    }

    pub fn into_error(self, text: &str) -> GrammarError {
        GrammarError::at(SOURCE, text, self.at, self.kind, self.message)
    }
}
