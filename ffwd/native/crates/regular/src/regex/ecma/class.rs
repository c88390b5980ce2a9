//! The named sets of characters of ECMA-262's regular expressions.

use std::sync::OnceLock;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use crate::regex::case::CaseMap;
use crate::regex::CharClass;

/// `\d`
pub(in crate::regex) fn digits() -> CharClass {
    CharClass::new([(0x30, 0x39)])
}

/// `\w`
pub(in crate::regex) fn words() -> CharClass {
    CharClass::new([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
}

/// `\w` where case is ignored by simple folding: also what folds to one of them.
pub(in crate::regex) fn extra_words() -> CharClass {
    fold_simple(&words())
}

/// The characters that are the same as one of the set by simple case folding.
pub(in crate::regex) fn fold_simple(class: &CharClass) -> CharClass {
    let bounds = class.ranges().iter();
    let ranges = bounds.filter_map(|&(low, high)| {
        Some(ClassUnicodeRange::new(char::from_u32(low)?, char::from_u32(high)?))
    });
    let mut folded = ClassUnicode::new(ranges);
    folded.case_fold_simple();
    CharClass::new(folded.iter().map(|range| (range.start() as u32, range.end() as u32)))
}

/// Returns the characters that match one of the set without the flags `u` and `v`: those with the
/// same upper case. The upper case must be a single code unit, and may be ASCII only for an ASCII
/// character.
pub(in crate::regex) fn fold_upper(class: &CharClass) -> CharClass {
    static CASES: OnceLock<CaseMap> = OnceLock::new();
    let cases = CASES.get_or_init(|| {
        let upper = |character: char| {
            let mut upper = character.to_uppercase();
            let one = upper.next().filter(|one| upper.next().is_none() && *one != character)?;
            let plain = (one as u32) < 0x1_0000 && (character.is_ascii() || !one.is_ascii());
            plain.then_some((character as u32, one as u32))
        };
        let characters = (0..0x1_0000).filter_map(char::from_u32);
        CaseMap { moved: characters.filter_map(upper).collect(), alike: Vec::new() }
    });
    cases.closure(class)
}

/// `\s`: white space and line terminators.
pub(in crate::regex) fn spaces() -> CharClass {
    CharClass::new([
        (0x09, 0x0D),
        (0x20, 0x20),
        (0xA0, 0xA0),
        (0x1680, 0x1680),
        (0x2000, 0x200A),
        (0x2028, 0x2029),
        (0x202F, 0x202F),
        (0x205F, 0x205F),
        (0x3000, 0x3000),
        (0xFEFF, 0xFEFF),
    ])
}

/// Returns the characters that `.` does not match.
pub(in crate::regex) fn line_ends() -> CharClass {
    CharClass::new([(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)])
}

/// The code of `\c` with this letter. In classes, Annex B has digits and `_` too.
pub(in crate::regex) fn control(letter: char, lenient_class: bool) -> Option<u32> {
    let more = lenient_class && (letter.is_ascii_digit() || letter == '_');
    (letter.is_ascii_alphabetic() || more).then_some(letter as u32 % 32)
}

/// The value of hexadecimal digits, saturating; none if there is no digit, or another character.
pub(in crate::regex) fn hexadecimal(digits: &[char]) -> Option<u32> {
    let add = |value: u32, digit: &char| {
        Some(value.saturating_mul(16).saturating_add(digit.to_digit(16)?))
    };
    (!digits.is_empty()).then(|| digits.iter().try_fold(0, add)).flatten()
}

/// The class of `\p{name}`; none if Unicode has no property of that name.
pub fn property(name: &str) -> Option<CharClass> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '=');
    // Also keeps the name from ending the expression that is made of it.
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return None;
    }
    let hir = regex_syntax::parse(&format!(r"\p{{{name}}}")).ok()?;
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => Some(CharClass::new(
            class.iter().map(|range| (range.start() as u32, range.end() as u32)),
        )),
        // A class of one character becomes a literal.
        HirKind::Literal(literal) => {
            let character = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(CharClass::single(character))
        }
        HirKind::Class(Class::Bytes(class)) => Some(CharClass::new(
            class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))),
        )),
        _ => None,
    }
}
