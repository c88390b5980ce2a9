//! The named sets of characters of ECMA-262's regular expressions.

use regex_syntax::hir::{Class, HirKind};

use super::CharClass;

/// `\d`
pub(super) fn digits() -> CharClass {
    CharClass::new([(0x30, 0x39)])
}

/// `\w`
pub(super) fn words() -> CharClass {
    CharClass::new([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
}

/// `\s`: white space and line terminators.
pub(super) fn spaces() -> CharClass {
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

/// What `.` does not match.
pub(super) fn line_ends() -> CharClass {
    CharClass::new([(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)])
}

/// The code of `\c` with this letter. In classes, Annex B has digits and `_` too.
pub(super) fn control(letter: char, lenient_class: bool) -> Option<u32> {
    let more = lenient_class && (letter.is_ascii_digit() || letter == '_');
    (letter.is_ascii_alphabetic() || more).then_some(letter as u32 % 32)
}

/// The value of hexadecimal digits, saturating; none if there is no digit, or another character.
pub(super) fn hexadecimal(digits: &[char]) -> Option<u32> {
    let add = |value: u32, digit: &char| {
        Some(value.saturating_mul(16).saturating_add(digit.to_digit(16)?))
    };
    (!digits.is_empty()).then(|| digits.iter().try_fold(0, add)).flatten()
}

/// The class of `\p{name}`.
pub(super) fn property(name: &str) -> Option<CharClass> {
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
