//! The layouts of a grammar's values: the lexemes between their parts, by value and by depth.
//!
//! A value with one of several layouts has a frame below it that names the layout
//! ([`crate::stacks::frame::Frame::Layout`]); every cell above has access to it. When the text chooses a
//! layout, that frame is replaced, and from there on the stack equals one without a choice. A
//! consistent layout is decided at two positions at most: by a line break after the first bracket,
//! and by blanks at the first separator.

use parking_lot::Mutex;

use crate::error::EngineError;
use crate::json::punctuation::{index, NUM_LEXEMES};
use crate::run::automaton::{Automaton, JsonParts};
use crate::stacks::frame::{Cell, Frame, StackId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_grammar::{Whitespace, WhitespaceMode};
use ffwd_regular::expr::{LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;

/// How the rest of a value is laid out, among the layouts of one grammar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayoutId(pub u16);

/// The largest indent of one level in a consistent layout: this many blanks, or a tab.
pub const MAX_BLANKS: u32 = 8;

/// The most layouts of one grammar, including those that a text may choose.
const MAX_LAYOUTS: usize = 1 << 16;

/// The lexemes between the members or items of a container.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// The line break before the first member or item, in layouts that have one or may have one.
    pub line: Option<u32>,
    /// Whether the first member or item may also come without it.
    pub may_be_flat: bool,
    pub comma: u32,
    pub close_object: u32,
    pub close_array: u32,
}

/// A choice that the text makes.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Made,
    /// By the first separator: the verdict of its lexeme has a bit for each.
    Separators {
        compact: LayoutId,
        spaced: LayoutId,
    },
    /// By what follows the first bracket: its part, or a line break with an indentation, whose
    /// verdict has a bit for each layout from `indented` on.
    Lines {
        line: u32,
        flat: LayoutId,
        indented: LayoutId,
    },
}

#[derive(Debug)]
struct Entry {
    /// The first of its lexemes in the order of [`index`].
    first: u32,
    colon: u32,
    comma: u32,
    indentation: Option<Indentation>,
    choice: Choice,
}

/// The marks of an indented layout differ from depth to depth; those of a depth are made when a
/// text gets there.
#[derive(Debug)]
struct Indentation {
    item_separator: Box<str>,
    indent: Box<str>,
    /// The marks of containers by depth.
    levels: Mutex<Vec<Marks>>,
}

impl Indentation {
    fn new(item_separator: &str, indent: &str) -> Self {
        let (item_separator, indent) = (item_separator.into(), indent.into());
        Self { item_separator, indent, levels: Mutex::default() }
    }

    /// The marks of a container in `depth` others; `add_lexeme` interns a lexeme.
    fn marks<E>(
        &self,
        depth: u32,
        mut add_lexeme: impl FnMut(&LexemeSpec) -> Result<u32, E>,
    ) -> Result<Marks, E> {
        let mut levels = self.levels.lock();
        if let Some(&known) = levels.get(depth as usize) {
            return Ok(known);
        }
        let mut add =
            |texts: [Ast; 2]| add_lexeme(&LexemeSpec::new(Spelling::Utf8, [Ast::concat(texts)]));
        // A container is only reached through those around it, so no depth is left out by much.
        for depth in levels.len() as u32..=depth {
            let (outside, inside) = (self.line(depth), self.line(depth + 1));
            let marks = Marks {
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
    entries: Vec<Entry>,
    /// The kinds of white space, each with its initial layout.
    roots: Vec<(Whitespace, LayoutId)>,
}

impl Layouts {
    /// Returns the initial layout of values with this white space. `first` is the first of the
    /// lexemes of the white space, and `add_lexeme` interns another one.
    pub fn add(
        &mut self,
        whitespace: &Whitespace,
        first: u32,
        mut add_lexeme: impl FnMut(&LexemeSpec) -> Result<u32, EngineError>,
    ) -> Result<LayoutId, EngineError> {
        if self.entries.len() + 4 + MAX_BLANKS as usize >= MAX_LAYOUTS {
            return Err(LimitExceeded::new("grammar_layouts", MAX_LAYOUTS).into());
        }
        let root = self.next();
        let (comma, colon) = (first + index::COMMA, first + index::COLON);
        let entry = |comma, colon, choice| Entry { first, colon, comma, indentation: None, choice };
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
                    self.entries.push(Entry { indentation, ..entry });
                }
            }
            WhitespaceMode::Layout(layout) => {
                let (item_separator, _, indent) = layout.parts();
                let indentation = indent.map(|indent| Indentation::new(item_separator, indent));
                self.entries.push(Entry { indentation, ..entry(comma, colon, Choice::Made) });
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

    fn get(&self, layout: LayoutId) -> &Entry {
        &self.entries[usize::from(layout.0)]
    }

    /// The lexeme of a layout by its place in [`index`], which is before [`index::ANY_STRING`].
    pub fn bracket(&self, layout: LayoutId, place: u32) -> u32 {
        self.get(layout).first + place
    }

    pub fn colon(&self, layout: LayoutId) -> u32 {
        self.get(layout).colon
    }

    /// The place of a lexeme in [`index`], where it is one of those of a white space.
    pub fn place(&self, lexeme: u32) -> Option<u32> {
        match lexeme {
            0..index::ANY_STRING => Some(lexeme),
            index::ANY_STRING => None,
            _ => {
                let place = lexeme - index::ANY_STRING - 1;
                let others = (self.roots.len() as u32).saturating_sub(1);
                (place < others * NUM_LEXEMES).then_some(place % NUM_LEXEMES)
            }
        }
    }

    /// The layout after the first part of a container, or a separator, if it has decided something.
    fn after(&self, layout: LayoutId, lexeme: Option<u32>, accept: Verdict) -> Option<LayoutId> {
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

impl Automaton {
    /// The lexemes between the parts of the container whose frame is on top of this stack.
    pub(crate) fn marks(&self, json: &JsonParts, stack: StackId) -> Result<Marks, EngineError> {
        let &Cell { layout, depth, .. } = self.cell(stack);
        let entry = json.layouts.get(layout);
        if let Some(indentation) = &entry.indentation {
            return indentation.marks(depth, |spec| self.add_lexeme(spec));
        }
        let line = match entry.choice {
            Choice::Lines { line, .. } => Some(line),
            _ => None,
        };
        Ok(Marks {
            line,
            may_be_flat: true,
            comma: entry.comma,
            close_object: entry.first + index::CLOSE_OBJECT,
            close_array: entry.first + index::CLOSE_ARRAY,
        })
    }

    /// A bracket of the values around a stack, by its place in [`index`].
    pub(crate) fn bracket(&self, json: &JsonParts, stack: StackId, place: u32) -> u32 {
        json.layouts.bracket(self.cell(stack).layout, place)
    }

    /// The stack below the first part of a container that comes without a line break.
    pub(crate) fn flat(&self, json: &JsonParts, stack: StackId) -> Result<StackId, EngineError> {
        self.decided(json, stack, None, 0)
    }

    /// A stack after a lexeme of the container above, `None` if it is a key or an item: laid out as
    /// that has decided.
    pub(crate) fn decided(
        &self,
        json: &JsonParts,
        stack: StackId,
        lexeme: Option<u32>,
        accept: Verdict,
    ) -> Result<StackId, EngineError> {
        match json.layouts.after(self.cell(stack).layout, lexeme, accept) {
            Some(layout) => self.relaid(stack, layout),
            None => Ok(stack),
        }
    }

    /// A stack with another layout of the value that it belongs to.
    pub(crate) fn relaid(&self, stack: StackId, layout: LayoutId) -> Result<StackId, EngineError> {
        let mut frames: Vec<Frame> = Vec::new();
        let mut at = stack;
        let mut relaid = loop {
            let &Cell { frame, parent, .. } = self.cell(at);
            match frame {
                Frame::Layout(_) => break self.push(Frame::Layout(layout), parent)?,
                _ if at == StackId::END => return Ok(stack),
                _ => frames.push(frame),
            }
            at = parent;
        };
        meter::charge(frames.len())?;
        for frame in frames.into_iter().rev() {
            relaid = self.push(frame, relaid)?;
        }
        Ok(relaid)
    }

    /// Returns whether two stacks differ only in the layout that the second has chosen.
    pub(crate) fn is_relaid(&self, stack: StackId, other: StackId) -> Result<bool, EngineError> {
        let (own, layout) = (self.cell(stack).layout, self.cell(other).layout);
        Ok(stack == other || own != layout && self.relaid(stack, layout)? == other)
    }
}
