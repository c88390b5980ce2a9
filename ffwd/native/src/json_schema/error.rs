//! What is wrong with a schema, and where.

use std::fmt;

use thiserror::Error;

/// A schema that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message} (at {place})", place = Place(.pointer))]
pub struct SchemaError {
    pub kind: SchemaErrorKind,
    /// JSON pointer into the schema document (`~0` and `~1` escapes); empty for the root.
    pub pointer: String,
    /// What is wrong, and what would work.
    pub message: String,
}

/// What kind of fault a schema has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaErrorKind {
    /// The text is not JSON (no keyword), or a keyword's value is not what the standard asks for.
    Invalid { keyword: Option<String> },
    /// A keyword of the standard, used in a way that is not supported.
    Unsupported { keyword: String },
    /// No value satisfies the schema.
    Unsatisfiable,
    /// A budget of [`Limits`](super::Limits) was passed.
    Limit { limit: &'static str, maximum: u64 },
}

/// A budget that was passed: which, and how much it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the limit {limit} of {maximum} was passed")]
pub struct LimitExceeded {
    pub limit: &'static str,
    pub maximum: u64,
}

struct Place<'a>(&'a str);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("the root")
        } else {
            f.write_str(self.0)
        }
    }
}

impl SchemaError {
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
            message: format!(
                "the schema passes the limit {limit} of {maximum}; simplify it or raise the limit"
            ),
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
}
