//! The lexemes between JSON values: brackets, commas, colons, and the white space around them.

use std::sync::Arc;

use ffwd_bounds::error::LimitExceeded;
use ffwd_grammar::{Whitespace, WhitespaceMode};
use ffwd_regular::expr::{Lexeme, LexemeSpec, LexemeStore, Spelling};
use ffwd_regular::regex::{Ast, CharClass};

/// Indices of the lexemes that every JSON grammar has; see `lexemes`. Those before
/// [`index::ANY_STRING`] are of the first way in which its values are written.
pub mod index {
    use crate::stacks::ids::LexemeId;

    /// `{` and white space.
    pub(crate) const OPEN_OBJECT: u32 = 0;
    /// `[` and white space.
    pub(crate) const OPEN_ARRAY: u32 = 1;
    /// `,` with white space on both sides.
    pub(crate) const COMMA: u32 = 2;
    /// `:` with white space on both sides.
    pub(crate) const COLON: u32 = 3;
    /// `}` right after the opening white space.
    pub(crate) const CLOSE_EMPTY_OBJECT: u32 = 4;
    /// `}` after a value and white space.
    pub(crate) const CLOSE_OBJECT: u32 = 5;
    pub(crate) const CLOSE_EMPTY_ARRAY: u32 = 6;
    pub(crate) const CLOSE_ARRAY: u32 = 7;
    /// Any JSON string.
    pub const ANY_STRING: LexemeId = LexemeId(8);
}

/// How many lexemes [`lexemes`] has.
pub(crate) const NUM_LEXEMES: u32 = index::ANY_STRING.0;

/// The bracket, comma or colon of the lexeme at a place in [`index`], before [`index::ANY_STRING`].
pub(crate) fn mark(place: u32) -> u8 {
    match place {
        index::OPEN_OBJECT => b'{',
        index::OPEN_ARRAY => b'[',
        index::COMMA => b',',
        index::COLON => b':',
        index::CLOSE_EMPTY_OBJECT | index::CLOSE_OBJECT => b'}',
        _ => b']',
    }
}

/// The lexemes of [`index`] before [`index::ANY_STRING`], in its order.
pub(crate) fn lexemes(
    whitespace: &Whitespace,
    store: &LexemeStore,
) -> Result<Vec<Arc<Lexeme>>, LimitExceeded> {
    let one = |text: &str| spec(Spelling::Utf8, [Ast::literal(text)]);
    let (run, item_separator, key_separator) = match &whitespace.mode {
        // Which of both it is, the verdict tells.
        WhitespaceMode::Consistent => {
            let either = |mark: &str| {
                let spaced = format!("{mark} ");
                spec(Spelling::Utf8, [Ast::literal(mark), Ast::literal(&spaced)])
            };
            (Ast::Epsilon, either(","), either(":"))
        }
        WhitespaceMode::Flexible { max_run } => {
            let space = CharClass::new([(0x20, 0x20), (0x09, 0x0A), (0x0D, 0x0D)]);
            let run = Ast::repeat(Ast::Class(space), 0, Some(*max_run));
            let around = |mark| {
                let text = Ast::concat([run.clone(), Ast::literal(mark), run.clone()]);
                spec(Spelling::Utf8, [text])
            };
            (run.clone(), around(","), around(":"))
        }
        WhitespaceMode::Compact => (Ast::Epsilon, one(","), one(":")),
        WhitespaceMode::SingleSpace => (Ast::Epsilon, one(", "), one(": ")),
        WhitespaceMode::Layout(layout) => {
            let (item_separator, key_separator, _) = layout.parts();
            (Ast::Epsilon, one(item_separator), one(key_separator))
        }
    };
    let open = |mark: &str| spec(Spelling::Utf8, [Ast::concat([Ast::literal(mark), run.clone()])]);
    let close = |mark: &str| spec(Spelling::Utf8, [Ast::concat([run.clone(), Ast::literal(mark)])]);
    let specs = [
        open("{"),
        open("["),
        item_separator,
        key_separator,
        one("}"),
        close("}"),
        one("]"),
        close("]"),
    ];
    specs.iter().map(|spec| store.get(spec)).collect()
}

pub(crate) fn spec(spelling: Spelling, languages: impl IntoIterator<Item = Ast>) -> LexemeSpec {
    LexemeSpec::new(spelling, languages)
}

/// Any JSON string.
pub fn any_string() -> LexemeSpec {
    spec(Spelling::JsonString, [Ast::any_text()])
}
