//! Escapes.

use super::class::{control, digits, hexadecimal, property, spaces};
use super::{CharClass, EcmaParser, Mode, Node, PatternError};

/// The meaning of an escape in a character class, or outside.
pub(super) enum EcmaEscape {
    Class(CharClass),
    /// A code point, perhaps a lone surrogate.
    Code(u32),
}

/// Properties that texts of several characters have, with the flag `v`.
const STRINGS: [&str; 7] = [
    "Basic_Emoji",
    "Emoji_Keycap_Sequence",
    "RGI_Modifier_Sequence",
    "RGI_Flag_Sequence",
    "RGI_Emoji_Modifier_Sequence",
    "RGI_Emoji_Flag_Sequence",
    "RGI_Emoji",
];

impl EcmaParser<'_> {
    /// An escape outside of classes, past its backslash.
    pub(super) fn atom_escape(&mut self, start: usize) -> Result<Node, PatternError> {
        let unsupported = |feature| Err(PatternError::unsupported(start, feature));
        match self.peek() {
            Some(letter @ ('b' | 'B')) => {
                self.at += 1;
                return Ok(Node::WordBoundary { negative: letter == 'B', words: self.words() });
            }
            Some('k') if self.named_groups || !self.is_lenient() => {
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
                if !self.is_lenient() {
                    return Err(self.invalid(start, "a reference to a group that does not exist"));
                }
                self.at = before;
            }
            _ => {}
        }
        match self.escape(start, false)? {
            EcmaEscape::Class(class) => {
                let class = self.fold(class);
                self.class_node(class)
            }
            EcmaEscape::Code(code) => Ok(self.code_node(code)),
        }
    }

    /// An escape that may stand in a class or outside, past its backslash.
    pub(super) fn escape(
        &mut self,
        start: usize,
        in_class: bool,
    ) -> Result<EcmaEscape, PatternError> {
        let Some(character) = self.peek() else {
            return Err(self.invalid(start, "the pattern ends in a backslash"));
        };
        self.at += 1;
        let code = match character {
            'd' => return Ok(EcmaEscape::Class(digits())),
            'D' => return Ok(EcmaEscape::Class(digits().negate())),
            'w' => return Ok(EcmaEscape::Class(self.words())),
            'W' => return Ok(EcmaEscape::Class(self.words().negate())),
            's' => return Ok(EcmaEscape::Class(spaces())),
            'S' => return Ok(EcmaEscape::Class(spaces().negate())),
            'p' | 'P' => {
                if let Some(class) = self.property(start)? {
                    let class = if self.mode == Mode::Sets { self.fold(class) } else { class };
                    let class = if character == 'P' { class.negate() } else { class };
                    return Ok(EcmaEscape::Class(class));
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
            '&' | '!' | '#' | '%' | ',' | ':' | ';' | '<' | '=' | '>' | '@' | '`' | '~'
                if in_class && self.mode == Mode::Sets =>
            {
                character as u32
            }
            'c' => {
                match self.peek().and_then(|letter| control(letter, in_class && self.is_lenient()))
                {
                    Some(code) => {
                        self.at += 1;
                        code
                    }
                    None if self.is_lenient() => {
                        // The backslash stands for itself and the `c` is read again.
                        self.at -= 1;
                        '\\' as u32
                    }
                    None => return Err(self.invalid(start, "malformed control escape")),
                }
            }
            '0'..='7' if self.is_lenient() => self.octal(character),
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
        Ok(EcmaEscape::Code(code))
    }

    /// An escaped character that has no meaning of its own, which Annex B lets stand for itself.
    fn identity(&self, start: usize, character: char) -> Result<u32, PatternError> {
        if self.is_lenient() && !(character == 'k' && self.named_groups) {
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
            None if STRINGS.contains(&&*name) => {
                return Err(PatternError::unsupported(start, "property of strings"));
            }
            None => {
                property(&name).ok_or_else(|| self.invalid(start, "unknown Unicode property"))?
            }
        };
        self.at += length + 1;
        self.properties.insert(name, class.clone());
        Ok(Some(class))
    }
}
