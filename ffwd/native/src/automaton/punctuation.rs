//! The lexemes between JSON values: brackets, commas, colons, and the white space around them.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::LimitExceeded;
use crate::expr::{Lexeme, LexemeSpec, LexemeStore, Spelling};
use crate::regex::{Ast, CharClass};

/// How values are set apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WhitespaceMode {
    /// JSON white space wherever JSON allows it (not around the root), each run bounded.
    Flexible { max_run: u32 },
    /// None at all.
    Compact,
    /// One space after each comma and each colon.
    SingleSpace,
    /// As a writer of JSON lays values out.
    Layout(Arc<Layout>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Whitespace {
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
    /// Between items, between a key and its value, and what one level is indented by.
    pub fn parts(&self) -> (&str, &str, Option<&str>) {
        (&self.item_separator, &self.key_separator, self.indent.as_deref())
    }
}

/// The lexemes between the members or items of a container.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// The line break before the first member or item, in layouts that have one.
    pub line: Option<u32>,
    pub comma: u32,
    pub close_object: u32,
    pub close_array: u32,
}

impl Marks {
    /// The same at every depth.
    pub const FLAT: Self = Self {
        line: None,
        comma: index::COMMA,
        close_object: index::CLOSE_OBJECT,
        close_array: index::CLOSE_ARRAY,
    };
}

/// The marks of an indented layout differ from depth to depth; those of a depth are made when a
/// text gets there.
#[derive(Debug)]
pub struct Indentation {
    layout: Arc<Layout>,
    /// Of the containers in no other, in one other, and so on.
    levels: Mutex<Vec<Marks>>,
}

impl Indentation {
    /// `None` where the marks are the same at every depth.
    pub fn new(whitespace: &Whitespace) -> Option<Self> {
        match &whitespace.mode {
            WhitespaceMode::Layout(layout) if layout.indent.is_some() => {
                Some(Self { layout: layout.clone(), levels: Mutex::default() })
            }
            _ => None,
        }
    }

    /// The marks of a container in `depth` others; `add_lexeme` interns a lexeme.
    pub fn marks<E>(
        &self,
        depth: u32,
        mut add_lexeme: impl FnMut(&LexemeSpec) -> Result<u32, E>,
    ) -> Result<Marks, E> {
        let mut levels = self.levels.lock();
        if let Some(&known) = levels.get(depth as usize) {
            return Ok(known);
        }
        let mut add = |texts: [Ast; 2]| add_lexeme(&spec(Spelling::Utf8, [Ast::concat(texts)]));
        // A container is only reached through those around it, so no depth is left out by much.
        for depth in levels.len() as u32..=depth {
            let (outside, inside) = (self.line(depth), self.line(depth + 1));
            let marks = Marks {
                line: Some(add([inside.clone(), Ast::Epsilon])?),
                comma: add([Ast::literal(&self.layout.item_separator), inside])?,
                close_object: add([outside.clone(), Ast::literal("}")])?,
                close_array: add([outside, Ast::literal("]")])?,
            };
            levels.push(marks);
        }
        Ok(levels[depth as usize])
    }

    /// A line break and the indentation of what is in so many containers.
    fn line(&self, depth: u32) -> Ast {
        let indent = Ast::literal(self.layout.indent.as_deref().unwrap_or(""));
        Ast::concat([Ast::literal("\n"), Ast::repeat(indent, depth, Some(depth))])
    }
}

/// Indices of the lexemes that every JSON grammar has; see [`lexemes`].
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
    whitespace: &Whitespace,
    store: &LexemeStore,
) -> Result<Vec<Arc<Lexeme>>, LimitExceeded> {
    let (run, item_separator, key_separator) = match &whitespace.mode {
        WhitespaceMode::Flexible { max_run } => {
            let space = CharClass::new([(0x20, 0x20), (0x09, 0x0A), (0x0D, 0x0D)]);
            let run = Ast::repeat(Ast::Class(space), 0, Some(*max_run));
            let around = |mark| Ast::concat([run.clone(), Ast::literal(mark), run.clone()]);
            (run.clone(), around(","), around(":"))
        }
        WhitespaceMode::Compact => (Ast::Epsilon, Ast::literal(","), Ast::literal(":")),
        WhitespaceMode::SingleSpace => (Ast::Epsilon, Ast::literal(", "), Ast::literal(": ")),
        WhitespaceMode::Layout(layout) => (
            Ast::Epsilon,
            Ast::literal(&layout.item_separator),
            Ast::literal(&layout.key_separator),
        ),
    };
    let open = |mark: &str| Ast::concat([Ast::literal(mark), run.clone()]);
    let close = |mark: &str| Ast::concat([run.clone(), Ast::literal(mark)]);
    let texts = [
        open("{"),
        open("["),
        item_separator,
        key_separator,
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
