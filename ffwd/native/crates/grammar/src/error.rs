//! Errors of a grammar, with their positions.

use std::fmt;

use super::source::{Excerpt, Place};
use super::Grammar;
use ffwd_bounds::error::LimitExceeded;

/// A grammar that cannot be read or used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrammarError {
    /// For callers that tell faults apart.
    pub kind: GrammarErrorKind,
    /// The error, and what would work.
    pub message: String,
    /// The notation of the source and the position, if there is one.
    pub place: Option<(&'static str, Excerpt)>,
}

/// The kind of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrammarErrorKind {
    /// The text breaks the syntax.
    Syntax,
    /// A regular expression breaks the syntax of its dialect.
    Pattern,
    /// It is well formed but uses this feature, which is not supported.
    Unsupported(&'static str),
    /// A rule is used and not defined.
    UnknownRule,
    /// A rule is defined twice.
    RepeatedRule,
    /// A rule accepts no text.
    NonProductive,
    /// The grammar accepts no text, because longest matches consume what must follow them.
    Swallowed,
    /// A token is named that is not known.
    UnknownToken,
    /// Numbers that contradict each other.
    Contradiction,
    /// A budget ran out.
    Limit(LimitExceeded),
}

impl GrammarError {
    /// An error at a byte of a text.
    pub fn at(
        source: &'static str,
        text: &str,
        offset: usize,
        kind: GrammarErrorKind,
        message: impl Into<String>,
    ) -> Self {
        let place = Some((source, Excerpt::at(text, offset)));
        Self { kind, message: message.into(), place }
    }

    /// An error about a place of a grammar.
    pub fn of(
        grammar: &Grammar,
        place: Option<Place>,
        kind: GrammarErrorKind,
        message: impl Into<String>,
    ) -> Self {
        let place = place.and_then(|place| grammar.excerpt(place));
        Self { kind, message: message.into(), place }
    }

    /// From 1; 1 where no place is known.
    pub fn line(&self) -> usize {
        self.place.as_ref().map_or(1, |(_, excerpt)| excerpt.line)
    }

    /// From 1, in characters; 1 where no place is known.
    pub fn column(&self) -> usize {
        self.place.as_ref().map_or(1, |(_, excerpt)| excerpt.column)
    }
}

impl From<LimitExceeded> for GrammarError {
    fn from(limit: LimitExceeded) -> Self {
        Self { message: limit.to_string(), kind: GrammarErrorKind::Limit(limit), place: None }
    }
}

impl fmt::Display for GrammarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some((source, excerpt)) = &self.place {
            let Excerpt { line, column, .. } = excerpt;
            write!(f, " ({source}, line {line}, column {column})\n{}", excerpt.with_caret())?;
        }
        Ok(())
    }
}

impl std::error::Error for GrammarError {}
