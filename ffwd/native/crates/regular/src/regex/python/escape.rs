//! Escapes and sets of characters.

use super::{category, fold, CharClass, Item, Node, PatternError, PythonParser, Tree};
use crate::regex::ecma::class::hexadecimal;

/// The meaning of an escape, or of a member of a set.
enum PythonEscape {
    Class(CharClass),
    /// A code point, perhaps a lone surrogate.
    Code(u32),
}

impl PythonParser<'_> {
    /// An escape outside of sets, past its backslash.
    pub(super) fn escape(&mut self, start: usize) -> Result<Item, PatternError> {
        let negative = |letter: char| letter.is_ascii_uppercase();
        match self.peek() {
            Some('A') => {
                self.at += 1;
                return Ok(Item::Anchor(Tree::Atom(Node::Start)));
            }
            Some('Z') => {
                self.at += 1;
                return Ok(Item::Anchor(Tree::Atom(Node::End)));
            }
            Some(letter @ ('b' | 'B')) => {
                self.at += 1;
                let words = category('w', self.flags.ascii).unwrap_or_else(CharClass::any);
                let boundary = Node::WordBoundary { negative: negative(letter), words };
                let tree = if letter == 'B' {
                    let any = || Box::new(Node::Text(super::Ast::Class(CharClass::any())));
                    let before = Node::Lookbehind { inner: any(), negative: false, offset: start };
                    let after = Node::Lookahead { inner: any(), negative: false, offset: start };
                    Node::Concat(vec![boundary, Node::Alternation(vec![before, after])])
                } else {
                    boundary
                };
                return Ok(Item::Anchor(Tree::Atom(tree)));
            }
            Some(digit @ '1'..='9') => {
                let second = self.pattern.get(self.at + 1).copied();
                let octal = |at: usize| {
                    self.pattern.get(at).is_some_and(|digit| ('0'..='7').contains(digit))
                };
                if !(0..3).all(|ahead| octal(self.at + ahead)) {
                    let second = second.and_then(|second| second.to_digit(10));
                    let first = digit.to_digit(10).unwrap_or(0) as usize;
                    let number = second.map_or(first, |second| first * 10 + second as usize);
                    if number <= self.groups.count {
                        return Err(PatternError::unsupported(start, "backreference"));
                    }
                    let message = format!("a reference to group {number}, which does not exist");
                    return Err(PatternError::invalid(start, message));
                }
            }
            _ => {}
        }
        Ok(Item::Tree(match self.escaped(start, false)? {
            PythonEscape::Class(class) => self.class(class)?,
            PythonEscape::Code(code) => self.literal(code)?,
        }))
    }

    /// An escape that may stand in a set or outside, past its backslash.
    fn escaped(&mut self, start: usize, in_set: bool) -> Result<PythonEscape, PatternError> {
        let Some(character) = self.next() else {
            return Err(PatternError::invalid(start, "the pattern ends in a backslash"));
        };
        let code = match character {
            'd' | 's' | 'w' | 'D' | 'S' | 'W' => {
                let class = category(character.to_ascii_lowercase(), self.flags.ascii)
                    .unwrap_or_else(CharClass::any);
                let negative = character.is_ascii_uppercase();
                return Ok(PythonEscape::Class(if negative { class.negate() } else { class }));
            }
            'a' => 0x07,
            'b' if in_set => 0x08,
            't' => 0x09,
            'n' => 0x0A,
            'v' => 0x0B,
            'f' => 0x0C,
            'r' => 0x0D,
            'x' => self.hexadecimal_digits(start, 2)?,
            'u' => self.hexadecimal_digits(start, 4)?,
            'U' => match self.hexadecimal_digits(start, 8)? {
                code if code <= 0x10FFFF => code,
                _ => return Err(PatternError::invalid(start, "an escape beyond U+10FFFF")),
            },
            'N' => self.named(start)?,
            '0'..='7' => self.octal(start, character)?,
            other if other.is_ascii_alphanumeric() => {
                let message = format!("unknown escape \\{other}");
                return Err(PatternError::invalid(start, message));
            }
            other => other as u32,
        };
        Ok(PythonEscape::Code(code))
    }

    fn hexadecimal_digits(&mut self, start: usize, count: usize) -> Result<u32, PatternError> {
        let digits = self.pattern.get(self.at..self.at + count);
        let code = digits.and_then(hexadecimal).ok_or_else(|| {
            let message = format!("an escape needs {count} hexadecimal digits");
            PatternError::invalid(start, message)
        })?;
        self.at += count;
        Ok(code)
    }

    /// Up to three octal digits, past the first.
    fn octal(&mut self, start: usize, first: char) -> Result<u32, PatternError> {
        let mut code = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(8)) else { break };
            code = code * 8 + digit;
            self.at += 1;
        }
        if code > 0o377 {
            return Err(PatternError::invalid(start, "an octal escape beyond \\377"));
        }
        Ok(code)
    }

    /// `{NAME}` of `\N`.
    fn named(&mut self, start: usize) -> Result<u32, PatternError> {
        let rest = &self.pattern[self.at..];
        let end = rest.iter().position(|&character| character == '}');
        let Some(end) = end.filter(|&end| end > 1 && rest[0] == '{') else {
            return Err(PatternError::invalid(
                start,
                "\\N needs the name of a character in braces",
            ));
        };
        let name: String = rest[1..end].iter().collect();
        self.at += end + 1;
        match self.options.characters.iter().find(|(known, _)| *known == name) {
            Some(&(_, character)) => Ok(character as u32),
            None => Err(PatternError::invalid(start, format!("no character is known as {name:?}"))),
        }
    }

    /// A set, past its bracket.
    pub(super) fn set(&mut self, start: usize) -> Result<Tree, PatternError> {
        let negated = self.eat('^');
        // Characters by code, in which case may be ignored, and others.
        let (mut codes, mut ranges) = (Vec::new(), Vec::new());
        let mut empty = true;
        loop {
            let from = self.at;
            if !empty && self.eat(']') {
                break;
            }
            empty = false;
            let low = self.set_member(start)?;
            let dash = self.at;
            if !self.eat('-') || self.peek() == Some(']') {
                // No range: a dash at the end stands for itself.
                self.at = dash;
                match low {
                    PythonEscape::Code(code) => codes.push((code, code)),
                    PythonEscape::Class(class) => {
                        self.charge(&class)?;
                        ranges.extend_from_slice(class.ranges());
                    }
                }
                continue;
            }
            match (low, self.set_member(start)?) {
                (PythonEscape::Code(low), PythonEscape::Code(high)) if low <= high => {
                    codes.push((low, high))
                }
                (PythonEscape::Code(_), PythonEscape::Code(_)) => {
                    return Err(PatternError::invalid(from, "a range is out of order"));
                }
                _ => return Err(PatternError::invalid(from, "a class cannot bound a range")),
            }
        }
        let mut codes = CharClass::new(codes);
        if self.flags.ignore_case {
            codes = fold(&codes, self.flags.ascii);
        }
        let class = codes.union(&CharClass::new(ranges));
        self.class(if negated { class.negate() } else { class })
    }

    fn set_member(&mut self, set_start: usize) -> Result<PythonEscape, PatternError> {
        let start = self.at;
        match self.next() {
            None => Err(PatternError::invalid(set_start, "a set of characters is not closed")),
            Some('\\') => self.escaped(start, true),
            Some(character) => Ok(PythonEscape::Code(character as u32)),
        }
    }
}
