//! Regular expressions of Python's `re` on text, as of 3.11 to 3.13.
//!
//! Backreferences and conditionals are refused by name, because they are not regular. So is an
//! atomic group or possessive quantifier that no lookahead can express. `\B` is not found in the
//! empty text, which Python changed in 3.14. The sets of characters are those of the Unicode
//! version of [`regex_syntax`], where Python's may be an older one.

use rustc_hash::FxHashSet;

use super::anchors::{searched, whole};
use super::error::{CLASS_RANGES, MAX_PATTERN, NESTED_GROUPS};
use super::node::Node;
use super::pattern::PatternOptions;
use super::tree::{Flattening, Greed, Tree};
use super::{Ast, CharClass, PatternError};
use class::{category, fold};

mod class;
mod escape;
mod group;

/// Groups that may nest.
const MAX_NESTING: usize = 200;
/// Ranges that all classes of a pattern may have together.
const MAX_RANGES: usize = 1 << 19;

/// The language of a pattern.
pub(super) fn parse(pattern: &str, options: &PatternOptions) -> Result<Ast, PatternError> {
    let characters: Vec<char> = pattern.chars().take(MAX_PATTERN + 1).collect();
    if characters.len() > MAX_PATTERN {
        return Err(PatternError::too_large(MAX_PATTERN, "pattern_characters", MAX_PATTERN));
    }
    if options.has('a') && options.has('u') {
        return Err(PatternError::invalid(0, "the flags a and u contradict each other"));
    }
    let flags = PythonFlags {
        ascii: options.has('a'),
        ignore_case: options.has('i'),
        multi_line: options.has('m'),
        dot_all: options.has('s'),
        verbose: options.has('x'),
    };
    let mut parser = PythonParser {
        pattern: &characters,
        at: 0,
        options,
        flags,
        nesting: 0,
        ranges: 0,
        groups: Groups::default(),
    };
    let tree = parser.alternation()?;
    if parser.at < characters.len() {
        return Err(PatternError::invalid(parser.at, "unbalanced parenthesis"));
    }
    let node = Flattening::default().node(&tree)?;
    if options.search {
        searched(&node)
    } else {
        whole(&node)
    }
}

#[derive(Clone, Copy)]
struct PythonFlags {
    ascii: bool,
    ignore_case: bool,
    multi_line: bool,
    dot_all: bool,
    verbose: bool,
}

/// The capturing groups so far.
#[derive(Default)]
struct Groups {
    count: usize,
    names: FxHashSet<String>,
}

struct PythonParser<'p> {
    pattern: &'p [char],
    at: usize,
    options: &'p PatternOptions,
    flags: PythonFlags,
    nesting: usize,
    ranges: usize,
    groups: Groups,
}

/// A parsed item of an alternative.
enum Item {
    Tree(Tree),
    /// An item that cannot be repeated.
    Anchor(Tree),
    Repeated(Tree),
}

impl Item {
    fn into_tree(self) -> Tree {
        match self {
            Self::Tree(tree) | Self::Anchor(tree) | Self::Repeated(tree) => tree,
        }
    }
}

impl PythonParser<'_> {
    fn peek(&self) -> Option<char> {
        self.pattern.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    fn eat(&mut self, character: char) -> bool {
        let found = self.peek() == Some(character);
        self.at += usize::from(found);
        found
    }

    fn alternation(&mut self) -> Result<Tree, PatternError> {
        let mut parts = vec![self.alternative(self.nesting == 0)?];
        while self.eat('|') {
            parts.push(self.alternative(false)?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Tree::Alternation(parts) })
    }

    /// `first`: flags for the whole pattern may stand at its beginning.
    fn alternative(&mut self, first: bool) -> Result<Tree, PatternError> {
        let mut items: Vec<Item> = Vec::new();
        while let Some(character) = self.peek() {
            let start = self.at;
            match character {
                '|' | ')' => break,
                ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' if self.flags.verbose => self.at += 1,
                '#' if self.flags.verbose => {
                    while self.next().is_some_and(|character| character != '\n') {}
                }
                '*' | '+' | '?' | '{' => match self.counts()? {
                    Some(counts) => self.repeat(start, &mut items, counts)?,
                    None => {
                        self.at = start + 1;
                        items.push(Item::Tree(self.literal('{' as u32)?));
                    }
                },
                '(' => {
                    self.at += 1;
                    let allowed = first && items.is_empty();
                    items.extend(self.group(start, allowed)?.map(Item::Tree));
                }
                _ => {
                    self.at += 1;
                    items.push(self.atom(start, character)?);
                }
            }
        }
        let mut trees: Vec<Tree> = items.into_iter().map(Item::into_tree).collect();
        Ok(if trees.len() == 1 { trees.swap_remove(0) } else { Tree::Concat(trees) })
    }

    fn repeat(
        &mut self,
        start: usize,
        items: &mut Vec<Item>,
        (min, max): (u32, Option<u32>),
    ) -> Result<(), PatternError> {
        let inner = match items.pop() {
            Some(Item::Tree(tree)) => Box::new(tree),
            Some(Item::Repeated(_)) => {
                let message = "a repetition cannot be repeated; put it in a group";
                return Err(PatternError::invalid(start, message));
            }
            Some(Item::Anchor(_)) | None => {
                return Err(PatternError::invalid(start, "nothing to repeat"));
            }
        };
        let greed = match self.peek() {
            Some('?') => Greed::Lazy,
            Some('+') => Greed::Possessive,
            _ => Greed::Greedy,
        };
        self.at += usize::from(greed != Greed::Greedy);
        let repeat = match *inner {
            // A repeated lookaround asks nothing more.
            Tree::Look { .. } if min == 0 => Tree::Atom(Node::epsilon()),
            look @ Tree::Look { .. } => look,
            inner => Tree::Repeat { inner: Box::new(inner), min, max, greed, offset: start },
        };
        items.push(Item::Repeated(repeat));
        Ok(())
    }

    /// The counts of a quantifier; none, anywhere, if a `{` does not begin one.
    fn counts(&mut self) -> Result<Option<(u32, Option<u32>)>, PatternError> {
        let start = self.at;
        match self.next() {
            Some('*') => return Ok(Some((0, None))),
            Some('+') => return Ok(Some((1, None))),
            Some('?') => return Ok(Some((0, Some(1)))),
            _ if self.peek() == Some('}') => return Ok(None),
            _ => {}
        }
        let low = self.digits();
        let high = if self.eat(',') { self.digits() } else { low.clone() };
        if !self.eat('}') {
            return Ok(None);
        }
        let number = |text: String| match text.parse::<u32>() {
            _ if text.is_empty() => Ok(None),
            Ok(number) if number < u32::MAX => Ok(Some(number)),
            _ => {
                let limit = "quantifier_count";
                Err(PatternError::too_large(start, limit, u32::MAX as usize - 1))
            }
        };
        let (min, max) = (number(low)?.unwrap_or(0), number(high)?);
        if max.is_some_and(|max| max < min) {
            let message = "the counts of a quantifier are out of order";
            return Err(PatternError::invalid(start, message));
        }
        Ok(Some((min, max)))
    }

    fn digits(&mut self) -> String {
        let rest = &self.pattern[self.at..];
        let digits: String = rest.iter().take_while(|c| c.is_ascii_digit()).collect();
        self.at += digits.len();
        digits
    }

    /// Parses an atom that is no group, past its first character.
    fn atom(&mut self, start: usize, character: char) -> Result<Item, PatternError> {
        let line_end = || Box::new(Node::Text(Ast::literal("\n")));
        Ok(match character {
            '^' => {
                let line = Node::Lookbehind { inner: line_end(), negative: false, offset: start };
                Item::Anchor(Tree::Atom(if self.flags.multi_line {
                    Node::Alternation(vec![Node::Start, line])
                } else {
                    Node::Start
                }))
            }
            '$' => {
                let inner = if self.flags.multi_line {
                    line_end()
                } else {
                    Box::new(Node::Concat(vec![*line_end(), Node::End]))
                };
                let line = Node::Lookahead { inner, negative: false, offset: start };
                Item::Anchor(Tree::Atom(Node::Alternation(vec![Node::End, line])))
            }
            '.' => {
                let none = if self.flags.dot_all { vec![] } else { vec![(0x0A, 0x0A)] };
                Item::Tree(self.class(CharClass::new(none).negate())?)
            }
            '[' => Item::Tree(self.set(start)?),
            '\\' => self.escape(start)?,
            other => Item::Tree(self.literal(other as u32)?),
        })
    }

    fn literal(&mut self, code: u32) -> Result<Tree, PatternError> {
        // No text has a lone surrogate.
        let Some(character) = char::from_u32(code) else {
            return Ok(Tree::Atom(Node::Text(Ast::Empty)));
        };
        if self.flags.ignore_case {
            let folded = fold(&CharClass::single(character), self.flags.ascii);
            if folded.ranges() != [(code, code)] {
                return self.class(folded);
            }
        }
        Ok(Tree::Atom(Node::Text(Ast::literal(character.encode_utf8(&mut [0; 4])))))
    }

    fn class(&mut self, class: CharClass) -> Result<Tree, PatternError> {
        self.charge(&class)?;
        Ok(Tree::Atom(Node::Text(Ast::class(class))))
    }

    fn charge(&mut self, class: &CharClass) -> Result<(), PatternError> {
        self.ranges += class.ranges().len();
        if self.ranges > MAX_RANGES {
            return Err(PatternError::too_large(self.at, CLASS_RANGES, MAX_RANGES));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
