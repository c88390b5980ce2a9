//! Regular expressions of ECMA-262, as JSON Schema's `pattern` uses them: searched, on code points.
//!
//! A pattern is first read by the rules of the `u` flag, and where it breaks them again with the
//! leniency of Annex B (`\-`, a lone `{` or `]`, octal escapes). Even then it is a pattern of code
//! points, and `\u{..}` and `\p{..}` mean what they mean with the flag: that is how patterns in
//! schemas are meant.

use std::collections::HashMap;

use super::anchors::{searched, whole};
use super::ecma_class::{control, digits, hexadecimal, line_ends, property, spaces, words};
use super::error::{CLASS_RANGES, MAX_PATTERN, NESTED_GROUPS};
use super::node::Node;
use super::pattern::PatternOptions;
use super::{Ast, CharClass, PatternError};

/// Groups that may nest.
const MAX_NESTING: usize = 200;
/// Ranges that all classes of a pattern may have together.
const MAX_RANGES: usize = 1 << 19;

/// The language of all texts in which the pattern matches somewhere.
///
/// Backreferences, and lookaheads in a lookbehind, are refused by name.
pub fn search(pattern: &str) -> Result<Ast, PatternError> {
    searched(&node(pattern)?)
}

/// The language of a pattern.
pub(super) fn parse(pattern: &str, options: &PatternOptions) -> Result<Ast, PatternError> {
    let node = node(pattern)?;
    if options.search {
        searched(&node)
    } else {
        whole(&node)
    }
}

fn node(pattern: &str) -> Result<Node, PatternError> {
    let characters: Vec<char> = pattern.chars().take(MAX_PATTERN + 1).collect();
    if characters.len() > MAX_PATTERN {
        return Err(PatternError::too_large(MAX_PATTERN, "characters of a pattern", MAX_PATTERN));
    }
    match Parser::new(&characters, false).parse() {
        Err(PatternError { kind: super::PatternErrorKind::Invalid, .. }) => {
            Parser::new(&characters, true).parse()
        }
        result => result,
    }
}

/// What an escape in a character class, or outside, stands for.
enum Escaped {
    Class(CharClass),
    /// A code point, perhaps a lone surrogate.
    Code(u32),
}

struct Parser<'p> {
    pattern: &'p [char],
    at: usize,
    /// Whether Annex B holds.
    lenient: bool,
    nesting: usize,
    ranges: usize,
    capturing_groups: usize,
    named_groups: bool,
    properties: HashMap<String, CharClass>,
}

impl<'p> Parser<'p> {
    fn new(pattern: &'p [char], lenient: bool) -> Self {
        let (capturing_groups, named_groups) = count_groups(pattern);
        Self {
            pattern,
            at: 0,
            lenient,
            nesting: 0,
            ranges: 0,
            capturing_groups,
            named_groups,
            properties: HashMap::new(),
        }
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
        let mut alternatives = vec![self.alternative()?];
        while self.eat('|') {
            alternatives.push(self.alternative()?);
        }
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
        let atom = self.atom()?;
        let Some((min, max)) = self.quantifier()? else { return Ok(atom) };
        match atom {
            Node::Start | Node::End | Node::WordBoundary { .. } => {
                Err(self.invalid(start, "an anchor cannot be repeated"))
            }
            Node::Lookbehind { .. } => Err(self.invalid(start, "a lookbehind cannot be repeated")),
            Node::Lookahead { .. } if !self.lenient => {
                Err(self.invalid(start, "a lookahead cannot be repeated"))
            }
            // Looking twice sees what looking once did.
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
                None if self.lenient => return Ok(None),
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
            text.parse::<u32>().map_err(|_| {
                PatternError::too_large(start, "the count of a quantifier", u32::MAX as usize)
            })
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
            '^' => Ok(Node::Start),
            '$' => Ok(Node::End),
            '.' => self.class_node(line_ends().negate()),
            '(' => self.group(start),
            '[' => {
                let class = self.class(start)?;
                self.class_node(class)
            }
            '\\' => self.atom_escape(start),
            '*' | '+' | '?' => Err(self.invalid(start, "nothing to repeat")),
            '{' => {
                self.at = start;
                if !self.lenient || self.braces()?.is_some() {
                    return Err(self.invalid(start, "nothing to repeat"));
                }
                self.at = start + 1;
                Ok(self.code_node('{' as u32))
            }
            '}' | ']' if !self.lenient => Err(self.invalid(start, "unmatched bracket")),
            other => Ok(self.code_node(other as u32)),
        }
    }

    fn code_node(&self, code: u32) -> Node {
        // No text holds a lone surrogate.
        Node::Text(char::from_u32(code).map_or(Ast::Empty, |c| Ast::literal(&c.to_string())))
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
        let unsupported = |feature| Err(PatternError::unsupported(start, feature));
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
                return unsupported("inline flags");
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

    /// The name of a group with its `>`, past the `<`.
    fn group_name(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        while let Some(character) = self.peek() {
            if character == '>' && self.at > start {
                self.at += 1;
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

    /// An escape outside of classes, past its backslash.
    fn atom_escape(&mut self, start: usize) -> Result<Node, PatternError> {
        let unsupported = |feature| Err(PatternError::unsupported(start, feature));
        match self.peek() {
            Some(letter @ ('b' | 'B')) => {
                self.at += 1;
                return Ok(Node::WordBoundary { negative: letter == 'B', words: words() });
            }
            Some('k') if self.named_groups || !self.lenient => {
                if !self.named_groups {
                    return Err(self.invalid(start, "a reference to a group that does not exist"));
                }
                return unsupported("backreference");
            }
            Some('1'..='9') => {
                let before = self.at;
                let digits = self.digit_run();
                let group = digits.parse::<usize>().unwrap_or(usize::MAX);
                if group <= self.capturing_groups {
                    return unsupported("backreference");
                }
                if !self.lenient {
                    return Err(self.invalid(start, "a reference to a group that does not exist"));
                }
                self.at = before;
            }
            _ => {}
        }
        match self.escape(start, false)? {
            Escaped::Class(class) => self.class_node(class),
            Escaped::Code(code) => Ok(self.code_node(code)),
        }
    }

    /// An escape that may stand in a class or outside, past its backslash.
    fn escape(&mut self, start: usize, in_class: bool) -> Result<Escaped, PatternError> {
        let Some(character) = self.peek() else {
            return Err(self.invalid(start, "the pattern ends in a backslash"));
        };
        self.at += 1;
        let code = match character {
            'd' => return Ok(Escaped::Class(digits())),
            'D' => return Ok(Escaped::Class(digits().negate())),
            'w' => return Ok(Escaped::Class(words())),
            'W' => return Ok(Escaped::Class(words().negate())),
            's' => return Ok(Escaped::Class(spaces())),
            'S' => return Ok(Escaped::Class(spaces().negate())),
            'p' | 'P' => {
                if let Some(class) = self.property(start)? {
                    let class = if character == 'P' { class.negate() } else { class };
                    return Ok(Escaped::Class(class));
                }
                character as u32
            }
            't' => 0x09,
            'n' => 0x0A,
            'v' => 0x0B,
            'f' => 0x0C,
            'r' => 0x0D,
            'b' if in_class => 0x08,
            '-' if in_class => '-' as u32,
            'c' => match self.peek().and_then(|letter| control(letter, in_class && self.lenient)) {
                Some(code) => {
                    self.at += 1;
                    code
                }
                None if self.lenient => {
                    // The backslash stands for itself and the `c` is read again.
                    self.at -= 1;
                    '\\' as u32
                }
                None => return Err(self.invalid(start, "malformed control escape")),
            },
            '0'..='7' if self.lenient => self.octal(character),
            '0' if !self.peek().is_some_and(|next| next.is_ascii_digit()) => 0,
            'x' => match self.hexadecimal_digits(2) {
                Some(code) => code,
                None => self.identity(start, character)?,
            },
            'u' => match self.unicode_escape(start)? {
                Some(code) => code,
                None => self.identity(start, character)?,
            },
            '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|'
            | '/' => character as u32,
            other => self.identity(start, other)?,
        };
        Ok(Escaped::Code(code))
    }

    /// An escaped character that has no meaning of its own, which Annex B lets stand for itself.
    fn identity(&self, start: usize, character: char) -> Result<u32, PatternError> {
        if self.lenient && !(character == 'k' && self.named_groups) {
            Ok(character as u32)
        } else {
            Err(self.invalid(start, "unknown escape"))
        }
    }

    /// A legacy octal escape, past its first digit: at most three digits, at most 255.
    fn octal(&mut self, first: char) -> u32 {
        let mut code = first.to_digit(8).unwrap_or(0);
        let more = if first <= '3' { 2 } else { 1 };
        for _ in 0..more {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
            code = code * 8 + digit;
            self.at += 1;
        }
        code
    }

    fn hexadecimal_digits(&mut self, count: usize) -> Option<u32> {
        let code = hexadecimal(self.pattern.get(self.at..self.at + count)?)?;
        self.at += count;
        Some(code)
    }

    /// `\uXXXX`, a pair of surrogates, or `\u{X}`, past the `u`; nothing is consumed if it is none.
    fn unicode_escape(&mut self, start: usize) -> Result<Option<u32>, PatternError> {
        if self.peek() == Some('{') {
            let rest = &self.pattern[self.at + 1..];
            let Some(length) = rest.iter().position(|&c| c == '}') else { return Ok(None) };
            let Some(code) = hexadecimal(&rest[..length]) else { return Ok(None) };
            if code > 0x10FFFF {
                return Err(self.invalid(start, "an escape beyond U+10FFFF"));
            }
            self.at += length + 2;
            return Ok(Some(code));
        }
        let Some(code) = self.hexadecimal_digits(4) else { return Ok(None) };
        if (0xD800..0xDC00).contains(&code) {
            let before = self.at;
            if self.eat_all("\\u") {
                if let Some(low) = self.hexadecimal_digits(4) {
                    if (0xDC00..0xE000).contains(&low) {
                        return Ok(Some(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)));
                    }
                }
            }
            self.at = before;
        }
        Ok(Some(code))
    }

    /// The class of `\p{..}`, past the `p`; none if no braces follow and that is allowed.
    fn property(&mut self, start: usize) -> Result<Option<CharClass>, PatternError> {
        let rest = &self.pattern[self.at..];
        let length = rest.iter().position(|&c| c == '}').filter(|_| rest.first() == Some(&'{'));
        let Some(length) = length else {
            self.identity(start, 'p')?;
            return Ok(None);
        };
        let name: String = rest[1..length].iter().collect();
        let class = match self.properties.get(&name) {
            Some(class) => class.clone(),
            None => {
                property(&name).ok_or_else(|| self.invalid(start, "unknown Unicode property"))?
            }
        };
        self.at += length + 1;
        self.properties.insert(name, class.clone());
        Ok(Some(class))
    }

    /// A class, past its bracket.
    fn class(&mut self, start: usize) -> Result<CharClass, PatternError> {
        let negated = self.eat('^');
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        loop {
            let from = self.at;
            if self.eat(']') {
                break;
            }
            let low = self.class_atom(start)?;
            let before_dash = self.at;
            if !self.eat('-') || self.peek() == Some(']') {
                // No range: a dash at the end stands for itself.
                self.at = before_dash;
                self.add(&mut ranges, &low)?;
                continue;
            }
            let high = self.class_atom(start)?;
            match (&low, &high) {
                (Escaped::Code(low), Escaped::Code(high)) if low <= high => {
                    self.add(&mut ranges, &Escaped::Class(CharClass::new([(*low, *high)])))?;
                }
                (Escaped::Code(_), Escaped::Code(_)) => {
                    return Err(self.invalid(from, "a range is out of order"));
                }
                _ if self.lenient => {
                    self.add(&mut ranges, &low)?;
                    self.add(&mut ranges, &Escaped::Code('-' as u32))?;
                    self.add(&mut ranges, &high)?;
                }
                _ => return Err(self.invalid(from, "a class cannot bound a range")),
            }
        }
        let class = CharClass::new(ranges);
        Ok(if negated { class.negate() } else { class })
    }

    fn add(&mut self, ranges: &mut Vec<(u32, u32)>, item: &Escaped) -> Result<(), PatternError> {
        match item {
            Escaped::Code(code) => ranges.push((*code, *code)),
            Escaped::Class(class) => {
                self.charge(class)?;
                ranges.extend_from_slice(class.ranges());
            }
        }
        Ok(())
    }

    fn class_atom(&mut self, class_start: usize) -> Result<Escaped, PatternError> {
        let start = self.at;
        let Some(character) = self.peek() else {
            return Err(self.invalid(class_start, "a character class is not closed"));
        };
        self.at += 1;
        if character == '\\' {
            self.escape(start, true)
        } else {
            Ok(Escaped::Code(character as u32))
        }
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
#[path = "ecma_tests.rs"]
mod tests;
