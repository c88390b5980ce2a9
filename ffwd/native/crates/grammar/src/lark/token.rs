//! The tokens of a grammar's text.

/// A piece of the text, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spanned<'t> {
    pub token: Token<'t>,
    /// In bytes.
    pub at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// Line ends, with the comments and blank lines between them.
    Newline,
    /// The name of a rule or of a terminal.
    Name(&'t str),
    /// A sign of the syntax.
    Sign(&'static str),
    /// A string between its quotes, as it is written.
    Text {
        inner: &'t str,
        ignore_case: bool,
    },
    /// A regular expression between its slashes, as it is written.
    Regex {
        pattern: &'t str,
        flags: &'t str,
    },
    Number(&'t str),
    /// `<...>`, with the brackets.
    Special(&'t str),
    /// The name after an `@`.
    Reference(&'t str),
    /// `%` and a word.
    Directive(&'t str),
    /// The JSON text after `%json`, `%regex` or `%llguidance`.
    Json(&'t str),
}

impl Token<'_> {
    /// Returns its description for messages.
    pub fn described(&self) -> String {
        match self {
            Self::Newline => "the end of the line".into(),
            Self::Name(name) => format!("`{}`", shortened(name)),
            Self::Sign(sign) => format!("`{sign}`"),
            Self::Text { inner, .. } => format!("the string \"{}\"", shortened(inner)),
            Self::Regex { pattern, .. } => format!("the pattern /{}/", shortened(pattern)),
            Self::Number(number) => format!("the number {}", shortened(number)),
            Self::Special(token) => format!("the token {}", shortened(token)),
            Self::Reference(name) => format!("`@{}`", shortened(name)),
            Self::Directive(name) => format!("`{}`", shortened(name)),
            Self::Json(_) => "a JSON text".into(),
        }
    }
}

/// At most 40 characters of a text.
pub(super) fn shortened(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// Whether a name is that of a terminal: in upper case, perhaps behind an underscore.
pub(super) fn names_terminal(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|first: char| first.is_ascii_uppercase())
}
