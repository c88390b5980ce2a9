//! The layouts of a grammar's values: the lexemes between their parts, by value and by depth.
//!
//! A value with one of several layouts has a frame below it that names the layout
//! ([`crate::stacks::frame::Frame::Layout`]); every cell above has access to it. When the text chooses a
//! layout, that frame is replaced, and from there on the stack equals one without a choice. A
//! consistent layout is decided at two positions at most: by a line break after the first bracket,
//! and by blanks at the first separator.

use parking_lot::Mutex;

use crate::error::Result;
use crate::json::punctuation::{index, mark, NUM_LEXEMES};
use crate::stacks::ids::{LayoutId, LexemeId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_grammar::{Whitespace, WhitespaceMode};
use ffwd_regular::expr::{LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;

/// The largest indent of one level in a consistent layout: this many blanks, or a tab.
pub const MAX_BLANKS: u32 = 8;

/// The most layouts of one grammar, including those that a text may choose.
const MAX_LAYOUTS: usize = 1 << 16;

/// The lexemes between the members or items of a container.
#[derive(Clone, Copy, Debug)]
pub struct LayoutMarks {
    /// The line break before the first member or item, in layouts that have one or may have one.
    pub line: Option<LexemeId>,
    /// Whether the first member or item may also come without it.
    pub may_be_flat: bool,
    pub comma: LexemeId,
    pub close_object: LexemeId,
    pub close_array: LexemeId,
}

/// A choice that the text makes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    Made,
    /// By the first separator: the verdict of its lexeme has a bit for each.
    Separators {
        compact: LayoutId,
        spaced: LayoutId,
    },
    /// By what follows the first bracket: its part, or a line break with an indentation, whose
    /// verdict has a bit for each layout from `indented` on.
    Lines {
        line: LexemeId,
        flat: LayoutId,
        indented: LayoutId,
    },
}

#[derive(Debug)]
pub(crate) struct LayoutEntry {
    /// The first of its lexemes in the order of [`index`].
    pub(crate) first: LexemeId,
    pub(crate) colon: LexemeId,
    pub(crate) comma: LexemeId,
    pub(crate) indentation: Option<Indentation>,
    pub(crate) choice: Choice,
}

/// The marks of an indented layout differ from depth to depth; those of a depth are made when a
/// text gets there.
#[derive(Debug)]
pub(crate) struct Indentation {
    item_separator: Box<str>,
    indent: Box<str>,
    /// The marks of containers by depth.
    levels: Mutex<Vec<LayoutMarks>>,
}

impl Indentation {
    fn new(item_separator: &str, indent: &str) -> Self {
        let (item_separator, indent) = (item_separator.into(), indent.into());
        Self { item_separator, indent, levels: Mutex::default() }
    }

    /// The marks of a container in `depth` others; `add_lexeme` interns a lexeme.
    pub(crate) fn marks<E>(
        &self,
        depth: u32,
        mut add_lexeme: impl FnMut(&LexemeSpec) -> Result<LexemeId, E>,
    ) -> Result<LayoutMarks, E> {
        let mut levels = self.levels.lock();
        if let Some(&known) = levels.get(depth as usize) {
            return Ok(known);
        }
        let mut add =
            |texts: [Ast; 2]| add_lexeme(&LexemeSpec::new(Spelling::Utf8, [Ast::concat(texts)]));
        // A container is only reached through those around it, so no depth is left out by much.
        for depth in levels.len() as u32..=depth {
            let (outside, inside) = (self.line(depth), self.line(depth + 1));
            let marks = LayoutMarks {
                line: Some(add([inside.clone(), Ast::Epsilon])?),
                may_be_flat: false,
                comma: add([Ast::literal(&self.item_separator), inside])?,
                close_object: add([outside.clone(), Ast::literal("}")])?,
                close_array: add([outside, Ast::literal("]")])?,
            };
            levels.push(marks);
        }
        Ok(levels[depth as usize])
    }

    /// Returns a line break and the indentation within this many containers.
    fn line(&self, depth: u32) -> Ast {
        let indent = Ast::literal(&self.indent);
        Ast::concat([Ast::literal("\n"), Ast::repeat(indent, depth, Some(depth))])
    }
}

/// The layouts of one grammar. The first [`Self::of_whitespace`] is that of its first white space.
#[derive(Debug, Default)]
pub struct Layouts {
    entries: Vec<LayoutEntry>,
    /// The kinds of white space, each with its initial layout.
    roots: Vec<(Whitespace, LayoutId)>,
}

impl Layouts {
    /// Returns the initial layout of values with this white space. `first` is the first of the
    /// lexemes of the white space, and `add_lexeme` interns another one.
    pub fn add(
        &mut self,
        whitespace: &Whitespace,
        first: LexemeId,
        mut add_lexeme: impl FnMut(&LexemeSpec) -> Result<LexemeId>,
    ) -> Result<LayoutId> {
        if self.entries.len() + 4 + MAX_BLANKS as usize >= MAX_LAYOUTS {
            return Err(LimitExceeded::new("grammar_layouts", MAX_LAYOUTS).into());
        }
        let root = self.next();
        let [comma, colon] = [index::COMMA, index::COLON].map(|place| LexemeId(first.0 + place));
        let entry =
            |comma, colon, choice| LayoutEntry { first, colon, comma, indentation: None, choice };
        let mut literal =
            |text: &str| add_lexeme(&LexemeSpec::new(Spelling::Utf8, [Ast::literal(text)]));
        match &whitespace.mode {
            WhitespaceMode::Consistent => {
                let [flat, compact, spaced, indented] =
                    [1, 2, 3, 4].map(|at| LayoutId(root.0 + at));
                let spaced_colon = literal(": ")?;
                let made = [
                    entry(literal(",")?, literal(":")?, Choice::Made),
                    entry(literal(", ")?, spaced_colon, Choice::Made),
                ];
                let indents: Vec<String> = (1..=MAX_BLANKS)
                    .map(|blanks| " ".repeat(blanks as usize))
                    .chain(["\t".to_owned()])
                    .collect();
                let lines = indents.iter().map(|indent| Ast::literal(&format!("\n{indent}")));
                let line = add_lexeme(&LexemeSpec::new(Spelling::Utf8, lines))?;
                self.entries.push(entry(comma, colon, Choice::Lines { line, flat, indented }));
                self.entries.push(entry(comma, colon, Choice::Separators { compact, spaced }));
                self.entries.extend(made);
                for indent in indents {
                    let indentation = Some(Indentation::new(",", &indent));
                    let entry = entry(comma, spaced_colon, Choice::Made);
                    self.entries.push(LayoutEntry { indentation, ..entry });
                }
            }
            WhitespaceMode::Layout(layout) => {
                let (item_separator, _, indent) = layout.parts();
                let indentation = indent.map(|indent| Indentation::new(item_separator, indent));
                self.entries.push(LayoutEntry { indentation, ..entry(comma, colon, Choice::Made) });
            }
            _ => self.entries.push(entry(comma, colon, Choice::Made)),
        }
        self.roots.push((whitespace.clone(), root));
        Ok(root)
    }

    fn next(&self) -> LayoutId {
        LayoutId(self.entries.len() as u16)
    }

    /// The layout that values with this white space begin with, where there are any.
    pub fn of_whitespace(&self, whitespace: &Whitespace) -> Option<LayoutId> {
        let known = self.roots.iter().find(|(known, _)| known == whitespace);
        known.map(|&(_, layout)| layout)
    }

    /// Whether a value that begins with a layout needs no frame that says so: all are written so.
    pub fn is_plain(&self, layout: LayoutId) -> bool {
        layout == LayoutId::default() && matches!(self.get(layout).choice, Choice::Made)
    }

    /// Whether blanks after a value say nothing of what comes next. A line break with an indentation
    /// may say that a container closes.
    pub(crate) fn blanks_are_free(&self, layout: LayoutId) -> bool {
        let entry = self.get(layout);
        entry.indentation.is_none() && matches!(entry.choice, Choice::Made)
    }

    pub(crate) fn get(&self, layout: LayoutId) -> &LayoutEntry {
        &self.entries[usize::from(layout.0)]
    }

    /// The lexeme of a layout by its place in [`index`], which is before [`index::ANY_STRING`].
    pub fn bracket(&self, layout: LayoutId, place: u32) -> LexemeId {
        LexemeId(self.get(layout).first.0 + place)
    }

    pub fn colon(&self, layout: LayoutId) -> LexemeId {
        self.get(layout).colon
    }

    /// The place of a lexeme in [`index`], where it is one of those of a white space.
    pub fn place(&self, lexeme: LexemeId) -> Option<u32> {
        match lexeme.0 {
            place @ 0..NUM_LEXEMES => Some(place),
            NUM_LEXEMES => None,
            lexeme => {
                let place = lexeme - NUM_LEXEMES - 1;
                let others = (self.roots.len() as u32).saturating_sub(1);
                (place < others * NUM_LEXEMES).then_some(place % NUM_LEXEMES)
            }
        }
    }

    /// The bracket, comma or colon of a lexeme, if blanks may stand beside it and need not.
    pub fn flexible_mark(&self, lexeme: LexemeId) -> Option<u8> {
        let place = self.place(lexeme)?;
        let root = match lexeme.0 {
            0..NUM_LEXEMES => 0,
            lexeme => 1 + (lexeme - NUM_LEXEMES - 1) / NUM_LEXEMES,
        };
        let (whitespace, _) = self.roots.get(root as usize)?;
        match whitespace.mode {
            WhitespaceMode::Flexible { .. } => Some(mark(place)),
            _ => None,
        }
    }

    /// The layout after the first part of a container, or a separator, if it has decided something.
    pub(crate) fn after(
        &self,
        layout: LayoutId,
        lexeme: Option<LexemeId>,
        accept: Verdict,
    ) -> Option<LayoutId> {
        let bit = accept.trailing_zeros() as u16;
        match self.get(layout).choice {
            Choice::Made => None,
            Choice::Separators { compact, spaced } => {
                lexeme.map(|_| if bit == 0 { compact } else { spaced })
            }
            Choice::Lines { line, indented, .. } if lexeme == Some(line) => {
                Some(LayoutId(indented.0 + bit))
            }
            Choice::Lines { flat, .. } => Some(flat),
        }
    }
}
