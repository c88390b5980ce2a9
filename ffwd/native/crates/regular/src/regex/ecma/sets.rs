//! Classes of characters.

use std::collections::BTreeSet;

use super::escape::EcmaEscape;
use super::{CharClass, EcmaParser, Node, PatternError, MAX_NESTING, NESTED_GROUPS};

impl EcmaParser<'_> {
    /// A class, past its bracket.
    pub(super) fn class(&mut self, start: usize) -> Result<CharClass, PatternError> {
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
                (EcmaEscape::Code(low), EcmaEscape::Code(high)) if low <= high => {
                    self.add(&mut ranges, &EcmaEscape::Class(CharClass::new([(*low, *high)])))?;
                }
                (EcmaEscape::Code(_), EcmaEscape::Code(_)) => {
                    return Err(self.invalid(from, "a range is out of order"));
                }
                _ if self.is_lenient() => {
                    self.add(&mut ranges, &low)?;
                    self.add(&mut ranges, &EcmaEscape::Code('-' as u32))?;
                    self.add(&mut ranges, &high)?;
                }
                _ => return Err(self.invalid(from, "a class cannot bound a range")),
            }
        }
        let class = self.fold(CharClass::new(ranges));
        Ok(if negated { class.negate() } else { class })
    }

    fn add(&mut self, ranges: &mut Vec<(u32, u32)>, item: &EcmaEscape) -> Result<(), PatternError> {
        match item {
            EcmaEscape::Code(code) => ranges.push((*code, *code)),
            EcmaEscape::Class(class) => {
                self.charge(class)?;
                ranges.extend_from_slice(class.ranges());
            }
        }
        Ok(())
    }

    fn class_atom(&mut self, class_start: usize) -> Result<EcmaEscape, PatternError> {
        let start = self.at;
        let Some(character) = self.peek() else {
            return Err(self.invalid(class_start, "a character class is not closed"));
        };
        self.at += 1;
        if character == '\\' {
            self.escape(start, true)
        } else {
            Ok(EcmaEscape::Code(character as u32))
        }
    }

    /// A class by the rules of the flag `v`, past its bracket.
    pub(super) fn set_node(&mut self, start: usize) -> Result<Node, PatternError> {
        let Set { characters, strings } = self.set(start)?;
        let class = self.class_node(characters)?;
        if strings.is_empty() {
            return Ok(class);
        }
        let strings = strings.into_iter().map(|string| {
            let letters = string.iter().map(|&letter| self.code_node(letter as u32));
            Node::Concat(letters.collect())
        });
        Ok(Node::Alternation(std::iter::once(class).chain(strings).collect()))
    }

    /// Parses the content of brackets, past the first.
    fn set(&mut self, start: usize) -> Result<Set, PatternError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(PatternError::too_large(start, NESTED_GROUPS, MAX_NESTING));
        }
        let negated = self.eat('^');
        let mut set = Set::default();
        let mut operator = None;
        let mut members = 0;
        while !self.eat(']') {
            let from = self.at;
            let found = ["&&", "--"].into_iter().find(|operator| self.eat_all(operator));
            let mixed = members > 1 && found != operator;
            if mixed || (members == 0 && found.is_some()) {
                let message = "an operator of a class stands between two of its parts, and only \
                               one kind in one class; put others in brackets of their own";
                return Err(self.invalid(from, message));
            }
            operator = found;
            let (member, is_range) = self.member(start)?;
            let follows = |parser: &Self| parser.at_operator();
            if is_range && (operator.is_some() || follows(self)) {
                return Err(self.invalid(from, "a range must stand in brackets of its own here"));
            }
            match operator {
                None => set.extend(member),
                Some("&&") => set.restrict(&member, true),
                Some(_) => set.restrict(&member, false),
            }
            members += 1;
            self.charge(&set.characters)?;
        }
        self.nesting -= 1;
        if negated {
            if !set.strings.is_empty() {
                return Err(self.invalid(start, "a negated class cannot have strings"));
            }
            set.characters = set.characters.negate();
        }
        Ok(set)
    }

    fn at_operator(&self) -> bool {
        matches!(self.pattern.get(self.at..self.at + 2), Some(['&', '&'] | ['-', '-']))
    }

    /// A part of a class, and whether it is a range.
    fn member(&mut self, set_start: usize) -> Result<(Set, bool), PatternError> {
        let start = self.at;
        if self.eat('[') {
            return Ok((self.set(start)?, false));
        }
        if self.eat_all("\\q{") {
            return Ok((self.strings(set_start)?, false));
        }
        let low = match self.set_atom(set_start)? {
            EcmaEscape::Class(class) => return Ok((Set::of(self.fold(class)), false)),
            EcmaEscape::Code(code) => code,
        };
        if self.at_operator() || !self.eat('-') {
            return Ok((Set::of(self.fold(CharClass::new([(low, low)]))), false));
        }
        match self.set_atom(set_start)? {
            EcmaEscape::Code(high) if low <= high => {
                Ok((Set::of(self.fold(CharClass::new([(low, high)]))), true))
            }
            EcmaEscape::Code(_) => Err(self.invalid(start, "a range is out of order")),
            EcmaEscape::Class(_) => Err(self.invalid(start, "a class cannot bound a range")),
        }
    }

    /// A character or an escape.
    fn set_atom(&mut self, set_start: usize) -> Result<EcmaEscape, PatternError> {
        const DOUBLED: &str = "&!#$%*+,.:;<=>?@^`~";
        let start = self.at;
        let Some(character) = self.peek() else {
            return Err(self.invalid(set_start, "a character class is not closed"));
        };
        self.at += 1;
        if character == '\\' {
            return self.escape(start, true);
        }
        let doubled = DOUBLED.contains(character) && self.peek() == Some(character);
        if doubled || "()[]{}/-|".contains(character) {
            let message = format!("{character:?} must be escaped in a class with the flag v");
            return Err(self.invalid(start, &message));
        }
        Ok(EcmaEscape::Code(character as u32))
    }

    /// The texts of `\q{..}`, past the brace.
    fn strings(&mut self, set_start: usize) -> Result<Set, PatternError> {
        let mut set = Set::default();
        let mut string: Vec<char> = Vec::new();
        loop {
            let end = self.eat('}');
            if end || self.eat('|') {
                let string = std::mem::take(&mut string);
                match string[..] {
                    [one] => {
                        let class = self.fold(CharClass::single(one));
                        set.characters = set.characters.union(&class);
                    }
                    _ => {
                        set.strings.insert(string);
                    }
                }
                if end {
                    return Ok(set);
                }
                continue;
            }
            let start = self.at;
            match self.set_atom(set_start)? {
                EcmaEscape::Class(_) => {
                    return Err(self.invalid(start, "a class cannot stand in a string"));
                }
                // Letters that are the same are written as the least of them.
                EcmaEscape::Code(code) => {
                    let folded = self.fold(CharClass::new([(code, code)]));
                    let least = folded.ranges().first().and_then(|range| char::from_u32(range.0));
                    string.push(least.ok_or_else(|| {
                        PatternError::unsupported(start, "a surrogate in a string")
                    })?);
                }
            }
        }
    }
}

/// Characters, and texts that are not one character.
#[derive(Default)]
struct Set {
    characters: CharClass,
    strings: BTreeSet<Vec<char>>,
}

impl Set {
    fn of(characters: CharClass) -> Self {
        Self { characters, strings: BTreeSet::new() }
    }

    fn extend(&mut self, other: Self) {
        self.characters = self.characters.union(&other.characters);
        self.strings.extend(other.strings);
    }

    /// Keeps what the other set has, or has not.
    fn restrict(&mut self, other: &Self, kept: bool) {
        let characters = other.characters.clone();
        let characters = if kept { characters } else { characters.negate() };
        self.characters = self.characters.intersect(&characters);
        self.strings.retain(|string| other.strings.contains(string) == kept);
    }
}
