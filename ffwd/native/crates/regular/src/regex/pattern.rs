//! The options of a pattern.

use std::sync::Arc;

use super::{ecma, python, rust_dialect, Ast, PatternError};

/// A way of writing regular expressions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// That of the `regex` crate.
    #[default]
    Rust,
    /// That of ECMA-262, by code points.
    Ecma,
    /// That of Python's `re`, for text.
    Python,
}

impl Dialect {
    /// All dialects, in the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Rust, Self::Ecma, Self::Python];

    /// The name in lower case: `rust`, `ecma` or `python`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Ecma => "ecma",
            Self::Python => "python",
        }
    }

    /// The letters of the flags that the dialect has.
    pub fn flags(self) -> &'static str {
        match self {
            Self::Rust => "imsxUR",
            Self::Ecma => "imsuv",
            Self::Python => "aimsux",
        }
    }
}

/// The options of a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PatternOptions {
    /// The syntax in which the pattern is written.
    pub dialect: Dialect,
    /// Flags by their letters, as the dialect writes them; see [`Dialect::flags`].
    pub flags: Arc<str>,
    /// The texts in which the pattern is found, rather than those that it matches as a whole.
    pub search: bool,
    /// The characters that `\N{..}` of [`Dialect::Python`] may name. This crate has no table of
    /// names.
    pub characters: Arc<[(String, char)]>,
}

impl PatternOptions {
    /// A dialect without flags, for texts that match as a whole.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, ..Self::default() }
    }

    /// The same options for texts in which the pattern is found.
    pub fn searched(self) -> Self {
        Self { search: true, ..self }
    }

    /// The same options with these flags.
    pub fn with_flags(self, flags: &str) -> Self {
        Self { flags: flags.into(), ..self }
    }

    pub(super) fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }
}

/// The language of a pattern.
///
/// # Errors
/// The pattern breaks the syntax, asks for what is not supported, which is named, or is too large.
/// A flag that the dialect does not have is an error at the pattern's beginning.
pub fn parse(pattern: &str, options: &PatternOptions) -> Result<Ast, PatternError> {
    let known = options.dialect.flags();
    if let Some(flag) = options.flags.chars().find(|&flag| !known.contains(flag)) {
        let dialect = options.dialect.name();
        let message = format!("unknown flag {flag:?}: the dialect {dialect} has {known}");
        return Err(PatternError::invalid(0, message));
    }
    match options.dialect {
        Dialect::Rust => rust_dialect::parse(pattern, options),
        Dialect::Ecma => ecma::parse(pattern, options),
        Dialect::Python => python::parse(pattern, options),
    }
}
