//! The white space in JSON.

use std::sync::Arc;

/// The white space between values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhitespaceMode {
    /// As `json.dumps` writes a value with one pair of separators and one indentation, which the
    /// start of the text chooses.
    #[default]
    Consistent,
    /// JSON white space wherever JSON allows it (not around the root), each run bounded.
    Flexible {
        /// Characters of one run of white space, at most.
        max_run: u32,
    },
    /// None at all.
    Compact,
    /// One space after each comma and each colon.
    SingleSpace,
    /// As a writer of JSON lays values out.
    Layout(Arc<Layout>),
}

/// How JSON values are set apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Whitespace {
    /// Which white space is allowed.
    pub mode: WhitespaceMode,
}

/// The separators and the indentation of Python's `json.dumps`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    item_separator: Box<str>,
    key_separator: Box<str>,
    indent: Option<Box<str>>,
}

impl Layout {
    /// `None` unless the separators are a comma and a colon with white space around them, and the
    /// indentation is white space.
    pub fn new(item_separator: &str, key_separator: &str, indent: Option<&str>) -> Option<Self> {
        let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
        let fits = item_separator.trim_matches(is_space) == ","
            && key_separator.trim_matches(is_space) == ":"
            && indent.is_none_or(|indent| indent.chars().all(is_space));
        fits.then(|| Self {
            item_separator: item_separator.into(),
            key_separator: key_separator.into(),
            indent: indent.map(Into::into),
        })
    }
}

impl Layout {
    /// The separator of items, that of a key and its value, and the indentation of one level.
    pub fn parts(&self) -> (&str, &str, Option<&str>) {
        (&self.item_separator, &self.key_separator, self.indent.as_deref())
    }
}
