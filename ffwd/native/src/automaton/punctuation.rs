//! The lexemes between JSON values: brackets, commas, colons, and the white space around them.

use std::sync::Arc;

use crate::error::LimitExceeded;
use crate::expr::{Lexeme, LexemeSpec, LexemeStore, Spelling};
use crate::regex::{Ast, CharClass};

/// How values are set apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhitespaceMode {
    /// JSON white space wherever JSON allows it (not around the root), each run bounded.
    Flexible { max_run: u32 },
    /// None at all.
    Compact,
    /// One space after each comma and each colon.
    SingleSpace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Whitespace {
    pub mode: WhitespaceMode,
}

/// Indices of the lexemes that every JSON grammar has; see [`Punctuation::lexemes`].
pub mod index {
    /// `{` and white space.
    pub const OPEN_OBJECT: u32 = 0;
    /// `[` and white space.
    pub const OPEN_ARRAY: u32 = 1;
    /// `,` with white space on both sides.
    pub const COMMA: u32 = 2;
    /// `:` with white space on both sides.
    pub const COLON: u32 = 3;
    /// `}` right after the opening white space.
    pub const CLOSE_EMPTY_OBJECT: u32 = 4;
    /// `}` after a value and white space.
    pub const CLOSE_OBJECT: u32 = 5;
    pub const CLOSE_EMPTY_ARRAY: u32 = 6;
    pub const CLOSE_ARRAY: u32 = 7;
    /// Any JSON string.
    pub const ANY_STRING: u32 = 8;
}

/// The lexemes of [`index`], in its order.
pub fn lexemes(
    whitespace: Whitespace,
    store: &LexemeStore,
) -> Result<Vec<Arc<Lexeme>>, LimitExceeded> {
    let space = CharClass::new([(0x20, 0x20), (0x09, 0x0A), (0x0D, 0x0D)]);
    let (around, after) = match whitespace.mode {
        WhitespaceMode::Flexible { max_run } => {
            let run = Ast::repeat(Ast::Class(space), 0, Some(max_run));
            (run.clone(), run)
        }
        WhitespaceMode::Compact => (Ast::Epsilon, Ast::Epsilon),
        WhitespaceMode::SingleSpace => (Ast::Epsilon, Ast::literal(" ")),
    };
    let separator = |mark: &str| Ast::concat([around.clone(), Ast::literal(mark), after.clone()]);
    let open = |mark: &str| Ast::concat([Ast::literal(mark), around.clone()]);
    let close = |mark: &str| Ast::concat([around.clone(), Ast::literal(mark)]);
    let texts = [
        open("{"),
        open("["),
        separator(","),
        separator(":"),
        Ast::literal("}"),
        close("}"),
        Ast::literal("]"),
        close("]"),
    ];
    let mut lexemes = Vec::with_capacity(texts.len() + 1);
    for text in texts {
        lexemes.push(store.get(&spec(Spelling::Utf8, [text]))?);
    }
    lexemes.push(store.get(&any_string())?);
    Ok(lexemes)
}

pub fn spec(spelling: Spelling, languages: impl IntoIterator<Item = Ast>) -> LexemeSpec {
    LexemeSpec::new(spelling, languages)
}

/// Any JSON string.
pub fn any_string() -> LexemeSpec {
    spec(Spelling::JsonString, [Ast::any_text()])
}
