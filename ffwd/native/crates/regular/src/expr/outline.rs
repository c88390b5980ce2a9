//! What grammars ask of most lexemes: facts that need no states.

use regex_syntax::utf8::Utf8Sequences;

use super::byte_set::ByteSet;
use super::lexeme::{Lexeme, LexemeSpec};
use super::lexeme_store::LexemeStore;
use super::lower::Spelling;
use crate::regex::{Ast, CharClass};
use ffwd_bounds::error::LimitExceeded;

/// Up to this many texts and classes in a row are read from the syntax alone.
const MAX_PARTS: usize = 64;

/// Facts of the texts of a language in UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Whether there is a text.
    pub alive: bool,
    /// Whether the empty text is one.
    pub nullable: bool,
    /// The first bytes of the others.
    pub first: ByteSet,
    /// All of their bytes, and possibly more.
    pub alphabet: ByteSet,
}

impl LexemeStore {
    /// The outline of a language; its lexeme is made only if the syntax does not tell.
    ///
    /// # Errors
    /// Those of [`Lexeme::new`].
    pub fn outline(&self, language: &Ast) -> Result<Outline, LimitExceeded> {
        match Outline::of_syntax(language) {
            Some(known) => Ok(known),
            None => Outline::of_lexeme(
                &*self.get(&LexemeSpec::new(Spelling::Utf8, [language.clone()]))?,
            ),
        }
    }
}

impl Outline {
    fn of_lexeme(lexeme: &Lexeme) -> Result<Self, LimitExceeded> {
        let alive = lexeme.is_alive();
        let mut outline = Self {
            alive,
            nullable: alive && lexeme.start().accepts(),
            first: ByteSet::EMPTY,
            alphabet: lexeme.alphabet(),
        };
        if alive && !lexeme.start().is_final() {
            outline.first = lexeme.first_bytes()?;
        }
        Ok(outline)
    }

    /// That of a text, a class, or a few of them in a row.
    fn of_syntax(language: &Ast) -> Option<Self> {
        let parts = match language {
            Ast::Concat(parts) if parts.len() <= MAX_PARTS => parts,
            part => std::slice::from_ref(part),
        };
        let (mut first, mut alphabet) = (None, ByteSet::EMPTY);
        for part in parts {
            let (begins, bytes) = match part {
                Ast::Literal(text) if text.len() <= MAX_PARTS => of_text(text)?,
                Ast::Class(class) => of_class(class)?,
                _ => return None,
            };
            first.get_or_insert(begins);
            alphabet = alphabet.union(&bytes);
        }
        Some(Self { alive: true, nullable: false, first: first?, alphabet })
    }
}

/// The first byte of a text, and its bytes.
fn of_text(text: &str) -> Option<(ByteSet, ByteSet)> {
    let first = ByteSet::single(*text.as_bytes().first()?);
    let mut bytes = ByteSet::EMPTY;
    text.bytes().for_each(|byte| bytes.insert(byte));
    Some((first, bytes))
}

/// The first bytes of characters, and their bytes.
fn of_class(class: &CharClass) -> Option<(ByteSet, ByteSet)> {
    let (mut first, mut bytes) = (ByteSet::EMPTY, ByteSet::EMPTY);
    for &(low, high) in class.ranges() {
        let (low, high) = (char::from_u32(low)?, char::from_u32(high)?);
        for sequence in Utf8Sequences::new(low, high) {
            for (place, range) in sequence.as_slice().iter().enumerate() {
                let range = ByteSet::range(range.start, range.end);
                bytes = bytes.union(&range);
                if place == 0 {
                    first = first.union(&range);
                }
            }
        }
    }
    (!first.is_empty()).then_some((first, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regex::rust_dialect::anchored;

    #[test]
    fn syntax_says_what_states_say() {
        let patterns = [
            "a",
            "abc",
            "(?i:select)",
            "(?i:ß|K)",
            "[a-c]",
            "[^a]",
            "é",
            "[à-ÿ]x",
            "\\p{L}",
            "a[0-9]é",
            "\\p{Nd}\\p{Nd}",
            ".",
            "x(?i)k",
            "[\\x00-\\x{10FFFF}]",
            "\u{10FFFF}",
        ];
        for pattern in patterns {
            let language = anchored(pattern).unwrap();
            let lexeme = Lexeme::new(LexemeSpec::new(Spelling::Utf8, [language.clone()])).unwrap();
            let slow = Outline::of_lexeme(&lexeme).unwrap();
            let Some(quick) = Outline::of_syntax(&language) else {
                assert!(pattern.contains('|'), "{pattern}");
                continue;
            };
            assert_eq!((quick.alive, quick.nullable, quick.first), (true, false, slow.first));
            // Of bytes that are not ASCII the lexeme knows less.
            assert_eq!(quick.alphabet.ascii(), slow.alphabet.ascii(), "{pattern}");
            assert_eq!(quick.alphabet.union(&slow.alphabet), slow.alphabet, "{pattern}");
        }
    }

    #[test]
    fn what_syntax_does_not_tell_is_left_to_the_lexeme() {
        let store = LexemeStore::new(usize::MAX);
        for (pattern, alive, nullable, first) in [
            ("a*", true, true, "a"),
            ("a|b", true, false, "ab"),
            ("", true, true, ""),
            ("a+b", true, false, "a"),
        ] {
            let outline = store.outline(&anchored(pattern).unwrap()).unwrap();
            assert_eq!((outline.alive, outline.nullable), (alive, nullable), "{pattern}");
            assert!(outline.first.iter().eq(first.bytes()), "{pattern}");
        }
        let nothing = store.outline(&Ast::Empty).unwrap();
        assert!(!nothing.alive && !nothing.nullable && nothing.first.is_empty());
        let none = Ast::intersection([anchored("a+").unwrap(), anchored("b+").unwrap()]);
        assert!(!store.outline(&none).unwrap().alive);
    }
}
