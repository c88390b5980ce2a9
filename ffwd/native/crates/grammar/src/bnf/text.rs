//! The text of a grammar while it is read: places, names, strings, character
//! classes, escapes and numbers.

use crate::{GrammarError, GrammarErrorKind};
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::regex::CharClass;

/// Bytes that the text of a grammar may have.
pub(crate) const MAX_LENGTH: usize = 1 << 26;
/// Ranges that all character classes of a grammar may have together.
const MAX_RANGES: usize = 1 << 19;
/// The largest count of a repetition.
pub(crate) const MAX_COUNT: u32 = 1_000_000_000;

/// How one of the notations is written.
#[derive(Debug)]
pub(crate) struct Notation {
    pub name: &'static str,
    /// The characters of names of rules besides ASCII letters and digits.
    pub name_marks: &'static str,
    /// Whether a name may begin with a digit.
    pub digits_first: bool,
    /// Whether a rule ends with its line, except after `|` and `::=` and within brackets.
    pub line_ends: bool,
    /// Whether an alternative may have no element.
    pub empty_alternatives: bool,
    /// Whether a repetition may be repeated without brackets.
    pub repeats_twice: bool,
    /// Whether `{2,-1}` is `{2,}`.
    pub minus_one: bool,
    /// Whether a rule may end in `(= …)`.
    pub lookaheads: bool,
    /// The elements besides names of rules, for messages.
    pub items: &'static str,
    /// Letters after a backslash, and their meanings.
    pub escapes: &'static [(char, char)],
    /// Those that may follow it in a character class too.
    pub class_escapes: &'static str,
    /// Whether `\x` takes any number of digits, and not exactly two.
    pub long_hex: bool,
    /// Whether a string or a character class may hold an end of a line.
    pub newlines: bool,
    /// The meaning of an empty character class.
    pub empty_class: EmptyClass,
}

/// The meaning of `[]` and `[^]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmptyClass {
    /// No character, and any character.
    Plain,
    /// They are refused, with these words.
    Refused(&'static str),
}

/// A text, and how much of it was read.
#[derive(Debug)]
pub(crate) struct Cursor<'t> {
    text: &'t str,
    offset: usize,
    pub notation: &'static Notation,
    ranges: usize,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str, notation: &'static Notation) -> Result<Self, GrammarError> {
        if text.len() > MAX_LENGTH {
            return Err(LimitExceeded::new("grammar_text_bytes", MAX_LENGTH).into());
        }
        Ok(Self { text, offset: 0, notation, ranges: 0 })
    }

    pub fn offset(&self) -> usize {
        self.offset
    }

    pub fn rest(&self) -> &'t str {
        &self.text[self.offset..]
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub fn is_at_end(&self) -> bool {
        self.offset == self.text.len()
    }

    pub fn starts_with(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    /// Reads a text if it comes next.
    pub fn take(&mut self, text: &str) -> bool {
        let found = self.starts_with(text);
        if found {
            self.offset += text.len();
        }
        found
    }

    /// Reads as long as the characters are of a kind.
    pub fn take_while(&mut self, mut kind: impl FnMut(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|character| !kind(character)).unwrap_or(rest.len());
        self.offset += end;
        &rest[..end]
    }

    fn in_name(&self, character: char) -> bool {
        character.is_ascii_alphanumeric() || self.notation.name_marks.contains(character)
    }

    /// Whether a name comes next.
    pub fn is_at_name(&self) -> bool {
        let first =
            |c: char| self.in_name(c) && (self.notation.digits_first || !c.is_ascii_digit());
        self.peek().is_some_and(first)
    }

    /// The characters of a name that come next.
    pub fn name(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|character| !self.in_name(character)).unwrap_or(rest.len());
        self.offset += end;
        &rest[..end]
    }

    /// Returns the text read since an offset.
    pub fn between(&self, offset: usize) -> &'t str {
        &self.text[offset..self.offset]
    }

    /// Moves back to a place.
    pub fn back_to(&mut self, offset: usize) {
        self.offset = offset;
    }

    /// Skips white space and comments, and line ends where they have no meaning.
    pub fn space(&mut self, newlines: bool) {
        loop {
            self.take_while(|c| matches!(c, ' ' | '\t') || newlines && matches!(c, '\n' | '\r'));
            if !self.starts_with("#") {
                return;
            }
            self.take_while(|character| !matches!(character, '\n' | '\r'));
        }
    }

    /// A fault in the syntax at a place.
    pub fn fault(&self, offset: usize, message: impl Into<String>) -> GrammarError {
        self.error(offset, GrammarErrorKind::Syntax, message)
    }

    pub fn error(
        &self,
        offset: usize,
        kind: GrammarErrorKind,
        message: impl Into<String>,
    ) -> GrammarError {
        GrammarError::at(self.notation.name, self.text, offset, kind, message)
    }

    pub fn limit(&self, offset: usize, limit: &'static str, maximum: usize) -> GrammarError {
        let limit = LimitExceeded::new(limit, maximum);
        self.error(offset, GrammarErrorKind::Limit(limit), limit.to_string())
    }

    /// Whether only white space stands before a place in its line.
    pub fn begins_line(&self, offset: usize) -> bool {
        let before = self.text[..offset].trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with(['\n', '\r'])
    }

    /// The line of a place, from 1.
    pub fn line(&self, offset: usize) -> usize {
        1 + self.text[..offset].bytes().filter(|&byte| byte == b'\n').count()
    }

    /// Returns the next text, for a message.
    pub fn found(&self) -> String {
        match self.peek() {
            None => "the grammar ends".to_owned(),
            Some('\n' | '\r') => "the line ends".to_owned(),
            Some(character) => format!("{character:?} was found"),
        }
    }

    /// A string, from its opening quote to its closing one.
    pub fn string(&mut self) -> Result<String, GrammarError> {
        let opened = self.offset;
        self.take("\"");
        let mut string = String::new();
        loop {
            let plain = self.take_while(|c| !matches!(c, '"' | '\\' | '\n' | '\r'));
            string.push_str(plain);
            match self.peek() {
                Some('"') => {
                    self.take("\"");
                    return Ok(string);
                }
                Some('\\') => string.push(self.escape(false)?),
                Some(end @ ('\n' | '\r')) if self.notation.newlines => {
                    string.push(end);
                    self.offset += 1;
                }
                Some(_) => {
                    let message = "the string does not end in its line: write \\n for the end of \
                                   a line, and close the string with \"";
                    return Err(self.fault(opened, message));
                }
                None => return Err(self.fault(opened, "the string has no closing \"")),
            }
        }
    }

    /// A character class, from its opening bracket to its closing one.
    pub fn class(&mut self) -> Result<CharClass, GrammarError> {
        let opened = self.offset;
        self.take("[");
        let negated = self.take("^");
        let mut ranges = Vec::new();
        while !self.take("]") {
            let low_at = self.offset;
            let low = self.class_character(opened)?;
            let rest = self.rest();
            let high = if rest.starts_with('-') && !rest.starts_with("-]") {
                self.take("-");
                self.class_character(opened)?
            } else {
                low
            };
            if low > high {
                let message = format!(
                    "the range from {low:?} to {high:?} is empty: write its lower end first, or \
                     \\- for a hyphen"
                );
                return Err(self.fault(low_at, message));
            }
            ranges.push((low as u32, high as u32));
        }
        if let (true, EmptyClass::Refused(message)) = (ranges.is_empty(), self.notation.empty_class)
        {
            return Err(self.fault(opened, message));
        }
        let class = CharClass::new(ranges);
        self.ranges += class.ranges().len();
        if self.ranges > MAX_RANGES {
            return Err(self.limit(opened, "class_ranges", MAX_RANGES));
        }
        Ok(if negated { class.negate() } else { class })
    }

    fn class_character(&mut self, opened: usize) -> Result<char, GrammarError> {
        match self.peek() {
            None => Err(self.fault(opened, "the character class has no closing ]")),
            Some('\\') => self.escape(true),
            Some('\n' | '\r') if !self.notation.newlines => {
                let message = "the character class does not end in its line: write \\n for the \
                               end of a line, and close the class with ]";
                Err(self.fault(opened, message))
            }
            Some(character) => {
                self.offset += character.len_utf8();
                Ok(character)
            }
        }
    }

    /// Parses a backslash and the characters after it.
    fn escape(&mut self, in_class: bool) -> Result<char, GrammarError> {
        let began = self.offset;
        self.take("\\");
        let Some(letter) = self.peek() else {
            return Err(self.fault(began, "nothing follows the backslash"));
        };
        self.offset += letter.len_utf8();
        match letter {
            'x' if self.notation.long_hex => self.code_point(began, 1, usize::MAX),
            'x' => self.code_point(began, 2, 2),
            'u' => self.code_point(began, 4, 4),
            'U' => self.code_point(began, 8, 8),
            _ if in_class && self.notation.class_escapes.contains(letter) => Ok(letter),
            _ => {
                let escapes = self.notation.escapes;
                let found = escapes.iter().find(|&&(escape, _)| escape == letter);
                found.map(|&(_, meaning)| meaning).ok_or_else(|| self.no_escape(began, in_class))
            }
        }
    }

    fn no_escape(&self, began: usize, in_class: bool) -> GrammarError {
        let escape = &self.text[began..self.offset];
        if in_class && matches!(escape, "\\d" | "\\D" | "\\s" | "\\S" | "\\w" | "\\W") {
            let message = format!(
                "{escape} is not known in a character class: write its characters, such as \
                 [0-9], [ \\t\\n\\r] or [a-zA-Z0-9_]"
            );
            return self.fault(began, message);
        }
        let mut known: String = self.notation.escapes.iter().map(|&(letter, _)| letter).collect();
        if in_class {
            let more = self.notation.class_escapes.chars();
            let more: String = more.filter(|&letter| !known.contains(letter)).collect();
            known.push_str(&more);
        }
        let message = format!(
            "{escape} is no escape: a backslash is written \\\\, and those that are known are \
             \\x \\u \\U and a backslash before one of {known}"
        );
        self.fault(began, message)
    }

    /// Parses hexadecimal digits, within bounds on their number.
    fn code_point(
        &mut self,
        began: usize,
        least: usize,
        most: usize,
    ) -> Result<char, GrammarError> {
        let mut count = 0;
        let digits = self.take_while(|character| {
            count += 1;
            count <= most && character.is_ascii_hexdigit()
        });
        let escape = &self.text[began..self.offset];
        if digits.len() < least {
            let message = format!("{escape} lacks digits: {least} hexadecimal ones must follow");
            return Err(self.fault(began, message));
        }
        let digits = digits.trim_start_matches('0');
        let code = if digits.len() > 8 { None } else { u32::from_str_radix(digits, 16).ok() };
        let code = if digits.is_empty() { Some(0) } else { code };
        code.and_then(char::from_u32).ok_or_else(|| {
            let message = match code {
                Some(0xD800..=0xDFFF) => {
                    "half of a surrogate pair is no character: write the whole character, such \
                     as \\U0001F600"
                }
                _ => "there is no such character: the last one is \\U0010FFFF",
            };
            self.fault(began, message)
        })
    }

    /// A whole number, up to the largest count of a repetition.
    pub fn count(&mut self) -> Result<u32, GrammarError> {
        let began = self.offset;
        let digits = self.take_while(|character| character.is_ascii_digit());
        if digits.is_empty() {
            let message = format!("a number must stand here, but {}", self.found());
            return Err(self.fault(began, message));
        }
        let digits = digits.trim_start_matches('0');
        let count = if digits.is_empty() { Some(0) } else { digits.parse().ok() };
        match count.filter(|&count| count <= MAX_COUNT) {
            Some(count) => Ok(count),
            None => Err(self.limit(began, "repetition_count", MAX_COUNT as usize)),
        }
    }
}
