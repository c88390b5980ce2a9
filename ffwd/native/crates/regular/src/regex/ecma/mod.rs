//! Regular expressions of ECMA-262, on code points, as of 2025.
//!
//! Without the flags `u` and `v`, a pattern is first parsed by the rules of the `u` flag. If it
//! breaks them, it is parsed again with the leniency of Annex B (`\-`, a lone `{` or `]`, octal
//! escapes). Even then it is a pattern of code points, and `\u{..}` and `\p{..}` have the meaning
//! of the flag, as authors of schemas intend. Only the flag `i` then ignores case as without it.

use std::collections::HashMap;

use rustc_hash::FxHashSet;

use super::anchors::{searched, whole};
use super::error::{CLASS_RANGES, MAX_PATTERN, NESTED_GROUPS};
use super::node::Node;
use super::pattern::{Dialect, PatternOptions};
use super::{Ast, CharClass, PatternError};
use class::{extra_words, fold_simple, fold_upper, line_ends, words};

pub(super) mod class;
mod escape;
mod sets;

/// Groups that may nest.
const MAX_NESTING: usize = 200;
/// Ranges that all classes of a pattern may have together.
const MAX_RANGES: usize = 1 << 19;

/// The language of all texts in which the pattern matches somewhere.
///
/// Backreferences, and lookaheads in a lookbehind, are refused by name.
pub fn search(pattern: &str) -> Result<Ast, PatternError> {
    parse(pattern, &PatternOptions::new(Dialect::Ecma).searched())
}

/// The language of a pattern.
pub(super) fn parse(pattern: &str, options: &PatternOptions) -> Result<Ast, PatternError> {
    let node = node(pattern, options)?;
    if options.search {
        searched(&node)
    } else {
        whole(&node)
    }
}

fn node(pattern: &str, options: &PatternOptions) -> Result<Node, PatternError> {
    let characters: Vec<char> = pattern.chars().take(MAX_PATTERN + 1).collect();
    if characters.len() > MAX_PATTERN {
        return Err(PatternError::too_large(MAX_PATTERN, "pattern_characters", MAX_PATTERN));
    }
    let (unicode, sets) = (options.has('u'), options.has('v'));
    if unicode && sets {
        return Err(PatternError::invalid(0, "the flags u and v exclude each other"));
    }
    let mode = if sets { Mode::Sets } else { Mode::Unicode };
    match EcmaParser::new(&characters, mode, options).parse() {
        Err(PatternError { kind: super::PatternErrorKind::Invalid, .. }) if !unicode && !sets => {
            EcmaParser::new(&characters, Mode::Lenient, options).parse()
        }
        result => result,
    }
}

/// By which rules a pattern is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Those of Annex B.
    Lenient,
    /// Those of the flag `u`.
    Unicode,
    /// Those of the flag `v`.
    Sets,
}

#[derive(Clone, Copy)]
struct EcmaFlags {
    ignore_case: bool,
    multi_line: bool,
    dot_all: bool,
}

struct EcmaParser<'p> {
    pattern: &'p [char],
    at: usize,
    mode: Mode,
    /// Whether case is ignored by simple folding, as with the flags `u` and `v`.
    simple_folding: bool,
    flags: EcmaFlags,
    nesting: usize,
    ranges: usize,
    capturing_groups: usize,
    named_groups: bool,
    /// The names of groups so far that can be matched together.
    names: FxHashSet<String>,
    properties: HashMap<String, CharClass>,
}

impl<'p> EcmaParser<'p> {
    fn new(pattern: &'p [char], mode: Mode, options: &PatternOptions) -> Self {
        let (capturing_groups, named_groups) = count_groups(pattern);
        Self {
            pattern,
            at: 0,
            mode,
            simple_folding: options.has('u') || options.has('v'),
            flags: EcmaFlags {
                ignore_case: options.has('i'),
                multi_line: options.has('m'),
                dot_all: options.has('s'),
            },
            nesting: 0,
            ranges: 0,
            capturing_groups,
            named_groups,
            names: FxHashSet::default(),
            properties: HashMap::new(),
        }
    }

    fn is_lenient(&self) -> bool {
        self.mode == Mode::Lenient
    }

    fn parse(mut self) -> Result<Node, PatternError> {
        let node = self.disjunction()?;
        match self.peek() {
            None => Ok(node),
            Some(_) => Err(self.invalid(self.at, "unmatched )")),
        }
    }

    fn peek(&self) -> Option<char> {
        self.pattern.get(self.at).copied()
    }

    fn eat(&mut self, character: char) -> bool {
        let found = self.peek() == Some(character);
        self.at += usize::from(found);
        found
    }

    fn eat_all(&mut self, text: &str) -> bool {
        let length = text.chars().count();
        let found = self.pattern[self.at..].iter().copied().take(length).eq(text.chars());
        if found {
            self.at += length;
        }
        found
    }

    fn invalid(&self, offset: usize, message: &str) -> PatternError {
        PatternError::invalid(offset, message)
    }

    fn disjunction(&mut self) -> Result<Node, PatternError> {
        let start = self.at;
        // Groups of different alternatives may have the same name.
        let before = std::mem::take(&mut self.names);
        let mut alternatives = vec![self.alternative()?];
        let mut names = std::mem::take(&mut self.names);
        while self.eat('|') {
            alternatives.push(self.alternative()?);
            names.extend(self.names.drain());
        }
        if let Some(name) = names.iter().find(|name| before.contains(*name)) {
            return Err(self.invalid(start, &format!("two groups have the name {name:?}")));
        }
        names.extend(before);
        self.names = names;
        Ok(if alternatives.len() == 1 {
            alternatives.swap_remove(0)
        } else {
            Node::Alternation(alternatives)
        })
    }

    fn alternative(&mut self) -> Result<Node, PatternError> {
        let mut terms = Vec::new();
        while let Some(character) = self.peek() {
            if matches!(character, '|' | ')') {
                break;
            }
            let term = self.term()?;
            terms.push(term);
        }
        Ok(if terms.len() == 1 { terms.swap_remove(0) } else { Node::Concat(terms) })
    }

    fn term(&mut self) -> Result<Node, PatternError> {
        let start = self.at;
        let is_anchor = matches!(self.peek(), Some('^' | '$'));
        let atom = self.atom()?;
        let Some((min, max)) = self.quantifier()? else { return Ok(atom) };
        if is_anchor {
            return Err(self.invalid(start, "an anchor cannot be repeated"));
        }
        match atom {
            Node::WordBoundary { .. } => Err(self.invalid(start, "an anchor cannot be repeated")),
            Node::Lookbehind { .. } => Err(self.invalid(start, "a lookbehind cannot be repeated")),
            Node::Lookahead { .. } if !self.is_lenient() => {
                Err(self.invalid(start, "a lookahead cannot be repeated"))
            }
            // A repeated lookaround asks nothing more.
            Node::Lookahead { .. } if min == 0 => Ok(Node::epsilon()),
            Node::Lookahead { .. } => Ok(atom),
            inner => Ok(Node::Repeat { inner: Box::new(inner), min, max }),
        }
    }

    /// A quantifier, if one stands here.
    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, PatternError> {
        let bounds = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.braces()? {
                Some(bounds) => {
                    self.eat('?');
                    return Ok(Some(bounds));
                }
                None if self.is_lenient() => return Ok(None),
                None => return Err(self.invalid(self.at, "incomplete quantifier")),
            },
            _ => return Ok(None),
        };
        self.at += 1;
        // A lazy quantifier matches the same texts.
        self.eat('?');
        Ok(Some(bounds))
    }

    /// `{m}`, `{m,}` or `{m,n}`; nothing is consumed if it is none of them.
    fn braces(&mut self) -> Result<Option<(u32, Option<u32>)>, PatternError> {
        let start = self.at;
        self.at += 1;
        let bounds = self.brace_bounds();
        let Some((min, max)) = bounds else {
            self.at = start;
            return Ok(None);
        };
        let number = |text: &str| {
            text.parse::<u32>()
                .map_err(|_| PatternError::too_large(start, "quantifier_count", u32::MAX as usize))
        };
        let (min_count, max_count) = (number(&min)?, max.as_deref().map(number).transpose()?);
        if max_count.is_some_and(|max| max < min_count) {
            return Err(self.invalid(start, "the counts of a quantifier are out of order"));
        }
        Ok(Some((min_count, max_count)))
    }

    fn brace_bounds(&mut self) -> Option<(String, Option<String>)> {
        let min = self.digit_run();
        if min.is_empty() {
            return None;
        }
        let max = if self.eat(',') {
            let max = self.digit_run();
            (!max.is_empty()).then_some(max)
        } else {
            Some(min.clone())
        };
        self.eat('}').then_some((min, max))
    }

    fn digit_run(&mut self) -> String {
        let digits: String =
            self.pattern[self.at..].iter().take_while(|c| c.is_ascii_digit()).collect();
        self.at += digits.len();
        digits
    }

    fn atom(&mut self) -> Result<Node, PatternError> {
        let start = self.at;
        let Some(character) = self.peek() else {
            return Err(self.invalid(start, "the pattern ends too early"));
        };
        self.at += 1;
        match character {
            '^' if self.flags.multi_line => {
                let inner = Box::new(Node::Text(Ast::Class(line_ends())));
                let line = Node::Lookbehind { inner, negative: false, offset: start };
                Ok(Node::Alternation(vec![Node::Start, line]))
            }
            '$' if self.flags.multi_line => {
                let inner = Box::new(Node::Text(Ast::Class(line_ends())));
                let line = Node::Lookahead { inner, negative: false, offset: start };
                Ok(Node::Alternation(vec![Node::End, line]))
            }
            '^' => Ok(Node::Start),
            '$' => Ok(Node::End),
            '.' if self.flags.dot_all => self.class_node(CharClass::any()),
            '.' => self.class_node(line_ends().negate()),
            '(' => self.group(start),
            '[' if self.mode == Mode::Sets => self.set_node(start),
            '[' => {
                let class = self.class(start)?;
                self.class_node(class)
            }
            '\\' => self.atom_escape(start),
            '*' | '+' | '?' => Err(self.invalid(start, "nothing to repeat")),
            '{' => {
                self.at = start;
                if !self.is_lenient() || self.braces()?.is_some() {
                    return Err(self.invalid(start, "nothing to repeat"));
                }
                self.at = start + 1;
                Ok(self.code_node('{' as u32))
            }
            '}' | ']' if !self.is_lenient() => Err(self.invalid(start, "unmatched bracket")),
            other => Ok(self.code_node(other as u32)),
        }
    }

    fn code_node(&self, code: u32) -> Node {
        // No text holds a lone surrogate.
        let Some(character) = char::from_u32(code) else { return Node::Text(Ast::Empty) };
        let folded = self.fold(CharClass::single(character));
        Node::Text(match folded.ranges() {
            [(low, high)] if low == high => Ast::literal(character.encode_utf8(&mut [0; 4])),
            _ => Ast::Class(folded),
        })
    }

    /// The set with all characters that are the same where case is ignored.
    fn fold(&self, class: CharClass) -> CharClass {
        match (self.flags.ignore_case, self.simple_folding) {
            (false, _) => class,
            (true, true) => fold_simple(&class),
            (true, false) => fold_upper(&class),
        }
    }

    /// `\w`, which has more letters where case is ignored by simple folding.
    fn words(&self) -> CharClass {
        if self.flags.ignore_case && self.simple_folding {
            extra_words()
        } else {
            words()
        }
    }

    fn class_node(&mut self, class: CharClass) -> Result<Node, PatternError> {
        self.charge(&class)?;
        Ok(Node::Text(Ast::class(class)))
    }

    fn charge(&mut self, class: &CharClass) -> Result<(), PatternError> {
        self.ranges += class.ranges().len();
        if self.ranges > MAX_RANGES {
            return Err(PatternError::too_large(self.at, CLASS_RANGES, MAX_RANGES));
        }
        Ok(())
    }

    /// A group, past its parenthesis.
    fn group(&mut self, start: usize) -> Result<Node, PatternError> {
        let outside = self.flags;
        let mut look = None;
        if self.eat('?') {
            // Behind or ahead, negative or not.
            let kinds = [
                ("=", (false, false)),
                ("!", (false, true)),
                ("<=", (true, false)),
                ("<!", (true, true)),
            ];
            look = kinds.into_iter().find_map(|(mark, kind)| self.eat_all(mark).then_some(kind));
            if look.is_some() || self.eat(':') {
            } else if self.eat('<') {
                self.group_name()?;
            } else if matches!(self.peek(), Some('i' | 'm' | 's' | '-')) {
                self.modifiers(start)?;
            } else {
                return Err(self.invalid(start, "unknown kind of group"));
            }
        }
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(PatternError::too_large(start, NESTED_GROUPS, MAX_NESTING));
        }
        let inner = self.disjunction()?;
        self.nesting -= 1;
        self.flags = outside;
        if !self.eat(')') {
            return Err(self.invalid(start, "a group is not closed"));
        }
        Ok(match look {
            Some((true, negative)) => {
                Node::Lookbehind { inner: Box::new(inner), negative, offset: start }
            }
            Some((false, negative)) => {
                Node::Lookahead { inner: Box::new(inner), negative, offset: start }
            }
            // An anchor or lookahead alone in a group may be repeated, unlike the bare one.
            None => Node::Concat(vec![inner]),
        })
    }

    /// Flags that are turned on or off in a group, with the colon.
    fn modifiers(&mut self, start: usize) -> Result<(), PatternError> {
        let (mut value, mut seen) = (true, String::new());
        loop {
            let letter = self.peek();
            self.at += 1;
            let flag = match letter {
                Some(':') if !seen.is_empty() => return Ok(()),
                // Flags for the rest of the enclosing group, as other dialects have them.
                Some(')') if !seen.is_empty() => {
                    return Err(PatternError::unsupported(start, "inline flags"));
                }
                Some('-') if value => {
                    value = false;
                    continue;
                }
                Some('i') => &mut self.flags.ignore_case,
                Some('m') => &mut self.flags.multi_line,
                Some('s') => &mut self.flags.dot_all,
                _ => {
                    let message = "flags of a group are i, m and s, as in (?i-s:...)";
                    return Err(self.invalid(start, message));
                }
            };
            *flag = value;
            let letter = letter.unwrap_or(':');
            if seen.contains(letter) {
                return Err(self.invalid(start, "a flag of a group is named twice"));
            }
            seen.push(letter);
        }
    }

    /// The name of a group with its `>`, past the `<`.
    fn group_name(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        while let Some(character) = self.peek() {
            if character == '>' && self.at > start {
                let name: String = self.pattern[start..self.at].iter().collect();
                self.at += 1;
                if self.names.contains(&name) {
                    return Err(self.invalid(start, &format!("two groups have the name {name:?}")));
                }
                self.names.insert(name);
                return Ok(());
            }
            let first = self.at == start;
            let digit = character.is_numeric() && !first;
            if !(character.is_alphabetic() || digit || matches!(character, '_' | '$')) {
                break;
            }
            self.at += 1;
        }
        Err(self.invalid(start, "malformed group name"))
    }
}

/// The number of capturing groups, and whether any has a name.
fn count_groups(pattern: &[char]) -> (usize, bool) {
    let (mut groups, mut named, mut in_class, mut at) = (0, false, false, 0);
    while let Some(&character) = pattern.get(at) {
        match character {
            '\\' => at += 1,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let next = |ahead: usize| pattern.get(at + ahead).copied();
                if next(1) != Some('?') {
                    groups += 1;
                } else if next(2) == Some('<') && !matches!(next(3), Some('=' | '!')) {
                    groups += 1;
                    named = true;
                }
            }
            _ => {}
        }
        at += 1;
    }
    (groups, named)
}

#[cfg(test)]
mod tests;
