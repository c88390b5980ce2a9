//! Errors of a schema, with their positions.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

pub use ffwd_bounds::error::LimitExceeded;

/// A schema that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message} (at {place})", place = ShownPointer(.pointer))]
pub struct SchemaError {
    /// Whether the text, a feature, the values or a budget is at fault.
    pub kind: SchemaErrorKind,
    /// JSON pointer into the schema document (`~0` and `~1` escapes); empty for the root.
    pub pointer: String,
    /// The error, and what would work.
    pub(crate) message: String,
}

/// The kind of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaErrorKind {
    /// The text is not JSON (no keyword), or a keyword's value breaks the standard.
    Invalid {
        /// The keyword whose value is at fault, if one is.
        keyword: Option<String>,
    },
    /// A keyword of the standard, used in a way that is not supported.
    Unsupported {
        /// The keyword.
        keyword: String,
    },
    /// No value satisfies the schema.
    Unsatisfiable,
    /// A budget was passed, or time has run out: see [`LimitExceeded`].
    Limit {
        /// As [`LimitExceeded::limit`].
        limit: &'static str,
        /// As [`LimitExceeded::maximum`].
        maximum: u64,
    },
}

struct ShownPointer<'a>(&'a str);

impl fmt::Display for ShownPointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("the root")
        } else {
            shortened(self.0).fmt(f)
        }
    }
}

/// The most characters of a schema's text that a message repeats at a time.
const MAX_SHOWN: usize = 160;

/// A text of the schema for a message: without its middle if it is long.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    let mut ends = text.char_indices().map(|(place, _)| place);
    let Some(head_end) = ends.nth(MAX_SHOWN / 2) else { return text.into() };
    match ends.nth_back(MAX_SHOWN / 2) {
        Some(tail) => format!("{}…{}", &text[..head_end], &text[tail..]).into(),
        None => text.into(),
    }
}

/// The name of one of several schemas in messages, by its number from 1.
pub(super) fn part_name(number: usize) -> String {
    format!("schema {number}")
}

/// The number, from 1, and the pointer of a place in one of several schemas.
pub(super) fn in_part(place: &str) -> Option<(usize, &str)> {
    let (number, pointer) = place.strip_prefix("schema ")?.split_once('#')?;
    Some((number.parse().ok()?, pointer))
}

impl From<LimitExceeded> for SchemaError {
    fn from(error: LimitExceeded) -> Self {
        Self::limit(error, String::new())
    }
}

/// What reading a schema returns.
pub type Result<T, E = SchemaError> = std::result::Result<T, E>;

impl SchemaError {
    /// The budget that ran out, if that is what it is.
    pub fn exceeded(&self) -> Option<LimitExceeded> {
        match self.kind {
            SchemaErrorKind::Limit { limit, maximum } => Some(LimitExceeded { limit, maximum }),
            _ => None,
        }
    }

    /// The number, from 1, of the schema at fault among several.
    pub fn part(&self) -> Option<usize> {
        in_part(&self.pointer).map(|(number, _)| number)
    }

    pub(super) fn invalid(keyword: Option<&str>, pointer: String, message: String) -> Self {
        let kind = SchemaErrorKind::Invalid { keyword: keyword.map(str::to_owned) };
        Self { kind, pointer, message }
    }

    pub(super) fn unsupported(keyword: &str, pointer: String, message: String) -> Self {
        let kind = SchemaErrorKind::Unsupported { keyword: keyword.to_owned() };
        Self { kind, pointer, message }
    }

    pub(super) fn limit(exceeded: LimitExceeded, pointer: String) -> Self {
        let LimitExceeded { limit, maximum } = exceeded;
        Self {
            kind: SchemaErrorKind::Limit { limit, maximum },
            pointer,
            message: exceeded.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_place() {
        let error = SchemaError::invalid(Some("type"), "/a~1b".into(), "no such type".into());
        assert_eq!(error.to_string(), "no such type (at /a~1b)");
        let exceeded = LimitExceeded { limit: "depth", maximum: 9 };
        let error = SchemaError::limit(exceeded, String::new());
        assert!(error.to_string().ends_with("(at the root)"), "{error}");
    }

    #[test]
    fn long_texts_are_shortened() {
        for length in [0, 10, MAX_SHOWN] {
            let text = "é".repeat(length);
            assert_eq!(shortened(&text), text);
        }
        let text = shortened(&"é".repeat(1000)).into_owned();
        assert!(text.contains("é…é") && text.chars().count() <= MAX_SHOWN + 2, "{text}");
    }
}
