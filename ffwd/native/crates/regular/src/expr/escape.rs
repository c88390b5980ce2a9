//! Escapes in JSON strings: `\\u00e9` and `\\/` beside the form in which a character is written
//! canonically.

use regex_syntax::utf8::{Utf8Sequence, Utf8Sequences};
use smallvec::SmallVec;

use super::json_text::unspell_json;
use super::lower::{needs_escape, spell_json};

/// The first of the surrogates, and what follows the last one.
const HIGH: u32 = 0xD800;
const LOW: u32 = 0xDC00;
const AFTER: u32 = 0xE000;
/// The first character that takes two of them.
const PAIRED: u32 = 0x1_0000;

/// An escape so far, from its backslash on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escape {
    /// The first surrogate of a pair, once it is complete.
    high: Option<u16>,
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Before the backslash of the second surrogate.
    Start,
    /// After a backslash.
    Backslash,
    /// After a `u` and so many digits with this value.
    Digits(u8, u16),
}

/// The effect of a byte of an escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscapeStep {
    /// The escape goes on.
    Within(Escape),
    /// It was this character.
    Ended(char),
}

impl Escape {
    /// After the backslash.
    pub const START: Self = Self { high: None, part: Part::Backslash };

    /// A number for the escape, from which [`Self::of`] makes it again.
    pub fn number(self) -> u32 {
        let (kind, value) = match self.part {
            Part::Start => (0, 0),
            Part::Backslash => (1, 0),
            Part::Digits(count, value) => (2 + u32::from(count), value),
        };
        // Surrogates differ in ten bits.
        let high = self.high.map_or(0, |high| 1 + u32::from(high) - HIGH);
        high << 19 | kind << 16 | u32::from(value)
    }

    /// The escape of a number.
    pub fn of(number: u32) -> Self {
        let part = match number >> 16 & 7 {
            0 => Part::Start,
            1 => Part::Backslash,
            kind => Part::Digits((kind - 2) as u8, number as u16),
        };
        let high = (number >> 19).checked_sub(1).map(|high| (high + HIGH) as u16);
        Self { high, part }
    }

    /// The effect of the next byte; `None` if no escape goes on so.
    pub fn next(self, byte: u8) -> Option<EscapeStep> {
        let with = |part| Some(EscapeStep::Within(Self { part, ..self }));
        match self.part {
            Part::Start if byte == b'\\' => with(Part::Backslash),
            Part::Start => None,
            Part::Backslash if byte == b'u' => with(Part::Digits(0, 0)),
            Part::Backslash if self.high.is_some() => None,
            Part::Backslash => short(byte).map(EscapeStep::Ended),
            Part::Digits(count, value) => {
                let digit = char::from(byte).to_digit(16)?;
                let value = value << 4 | digit as u16;
                match (count, self.high, u32::from(value)) {
                    (0..3, ..) => with(Part::Digits(count + 1, value)),
                    (_, None, HIGH..LOW) => {
                        let part = Part::Start;
                        Some(EscapeStep::Within(Self { high: Some(value), part }))
                    }
                    (_, None, code) => char::from_u32(code).map(EscapeStep::Ended),
                    (_, Some(high), low @ LOW..AFTER) => {
                        let code = paired(u32::from(high)) + (low - LOW);
                        char::from_u32(code).map(EscapeStep::Ended)
                    }
                    _ => None,
                }
            }
        }
    }

    /// The characters that the escape may be: ranges of code points without surrogates, ascending.
    pub fn characters(self) -> SmallVec<[(u32, u32); 3]> {
        let (first, last) = match self.part {
            Part::Start | Part::Backslash => (0, 0xFFFF),
            Part::Digits(count, value) => {
                let open = 4 * (4 - u32::from(count));
                (u32::from(value) << open, ((u32::from(value) + 1) << open) - 1)
            }
        };
        let mut found = SmallVec::new();
        let mut add = |low: u32, high: u32| {
            if low <= high {
                found.push((low, high));
            }
        };
        match self.high {
            Some(high) => {
                let start = paired(u32::from(high));
                let (low, high) = (first.max(LOW), last.min(AFTER - 1));
                if low <= high {
                    add(start + (low - LOW), start + (high - LOW));
                }
            }
            None => {
                add(first, last.min(HIGH - 1));
                add(first.max(AFTER), last);
                let (low, high) = (first.max(HIGH), last.min(LOW - 1));
                if low <= high {
                    add(paired(low), paired(high) + (LOW - HIGH - 1));
                }
            }
        }
        found
    }

    /// The bytes after those that have come, for a character with these canonical bytes.
    pub fn rest(self, written: &[u8]) -> Vec<u8> {
        let text = unspell_json(written).unwrap_or_default();
        let Some(character) = text.chars().next() else { return Vec::new() };
        let units = character.encode_utf16(&mut [0; 2]).to_vec();
        let short = (0..=u8::MAX).find(|&byte| short(byte) == Some(character));
        if let (Self::START, Some(byte)) = (self, short) {
            return vec![byte];
        }
        let all: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        let come = match self.part {
            Part::Start => 0,
            Part::Backslash => 1,
            Part::Digits(count, _) => 2 + usize::from(count),
        };
        let before = if self.high.is_some() { 6 } else { 0 };
        all.as_bytes().get(before + come..).unwrap_or_default().to_vec()
    }
}

/// The first of the characters whose pairs begin with a surrogate.
fn paired(high: u32) -> u32 {
    PAIRED + ((high - HIGH) << 10)
}

/// The character of an escape of one byte.
fn short(byte: u8) -> Option<char> {
    Some(match byte {
        b'"' | b'\\' | b'/' => char::from(byte),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}

/// The canonical bytes of a character.
pub fn written(character: char) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(6);
    match needs_escape(character) {
        true => spell_json(character, &mut bytes),
        false => bytes.extend(character.encode_utf8(&mut [0; 4]).bytes()),
    }
    bytes
}

/// Ranges of bytes, one after the other.
pub type WrittenRange = SmallVec<[(u8, u8); 6]>;

/// The canonical bytes of a range of characters without surrogates: of each one, and of nothing
/// else, one of these holds. Those that are written as themselves come first.
pub fn written_ranges(first: u32, last: u32) -> impl Iterator<Item = WrittenRange> {
    let plain = [(0x20, 0x21), (0x23, 0x5B), (0x5D, u32::from(char::MAX))];
    let within = plain.map(|(low, high)| (low.max(first), high.min(last)));
    let sequences = within.into_iter().filter(|(low, high)| low <= high).flat_map(|(low, high)| {
        let bounds = char::from_u32(low).zip(char::from_u32(high));
        bounds.into_iter().flat_map(|(low, high)| Utf8Sequences::new(low, high))
    });
    let escaped = (0..0x20).chain([0x22, 0x5C]).filter(move |code| (first..=last).contains(code));
    let bytes = escaped.filter_map(char::from_u32).map(written);
    let of_sequence = |sequence: Utf8Sequence| {
        sequence.as_slice().iter().map(|range| (range.start, range.end)).collect()
    };
    let of_bytes = |bytes: Vec<u8>| bytes.into_iter().map(|byte| (byte, byte)).collect();
    sequences.map(of_sequence).chain(bytes.map(of_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All escapes that are not complete, with the bytes that they have.
    fn all() -> Vec<(Escape, Vec<u8>)> {
        let mut found = vec![(Escape::START, b"\\".to_vec())];
        let mut at = 0;
        while at < found.len() {
            let (escape, bytes) = found[at].clone();
            at += 1;
            // Two digits after a pair's first half are enough, and these halves are a few.
            let is_deep = escape.high.is_some_and(|high| high & 0xFF > 1);
            for byte in b"\\u0189aAdDfF".iter().copied().filter(|_| !is_deep) {
                if let Some(EscapeStep::Within(next)) = escape.next(byte) {
                    found.push((next, [&bytes[..], &[byte]].concat()));
                }
            }
        }
        found
    }

    fn decoded(text: &[u8]) -> Option<char> {
        let text = unspell_json(text)?;
        let mut characters = text.chars();
        characters.next().filter(|_| characters.next().is_none())
    }

    #[test]
    fn numbers_are_of_one_escape() {
        for (escape, _) in all() {
            assert_eq!(Escape::of(escape.number()), escape);
        }
    }

    #[test]
    fn bytes_lead_to_what_a_parser_reads() {
        for (escape, bytes) in all() {
            for byte in 0..=u8::MAX {
                let text = [&bytes[..], &[byte]].concat();
                match escape.next(byte) {
                    Some(EscapeStep::Ended(character)) => {
                        assert_eq!(decoded(&text), Some(character), "{}", text.escape_ascii());
                    }
                    _ => assert_eq!(decoded(&text), None, "{}", text.escape_ascii()),
                }
            }
        }
    }

    #[test]
    fn the_rest_of_each_character_leads_to_it() {
        for (escape, bytes) in all() {
            for (low, high) in escape.characters() {
                let step = ((high - low) / 40 + 1) as usize;
                for code in (low..=high).step_by(step).chain([high]) {
                    let character = char::from_u32(code).unwrap();
                    let text = [&bytes[..], &escape.rest(&written(character))].concat();
                    assert_eq!(decoded(&text), Some(character), "{}", text.escape_ascii());
                }
            }
        }
    }

    #[test]
    fn digits_divide_the_characters() {
        let size = |escape: Escape| {
            escape.characters().iter().map(|(low, high)| high - low + 1).sum::<u32>()
        };
        assert_eq!(size(Escape::START), 0x11_0000 - (AFTER - HIGH));
        for (escape, bytes) in all() {
            if !matches!(escape.part, Part::Digits(..)) {
                continue;
            }
            let after = b"0123456789abcdef".iter().map(|&digit| match escape.next(digit) {
                Some(EscapeStep::Within(next)) => size(next),
                Some(EscapeStep::Ended(_)) => 1,
                None => 0,
            });
            assert_eq!(after.sum::<u32>(), size(escape), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn ranges_have_the_bytes_of_their_characters_and_no_others() {
        for (low, high) in [(0, 0x7F), (0x1E, 0x23), (0x22, 0x22), (0x5B, 0x801), (0xFF00, 0xFFFF)]
        {
            let ranges: Vec<WrittenRange> = written_ranges(low, high).collect();
            for code in 0..=0xFFFF {
                let Some(character) = char::from_u32(code) else { continue };
                let bytes = written(character);
                let is_in = |range: &&WrittenRange| {
                    range.len() == bytes.len()
                        && range.iter().zip(&bytes).all(|(&(a, b), byte)| (a..=b).contains(byte))
                };
                let expected = usize::from((low..=high).contains(&code));
                assert_eq!(ranges.iter().filter(is_in).count(), expected, "{code:x}");
            }
        }
    }
}
