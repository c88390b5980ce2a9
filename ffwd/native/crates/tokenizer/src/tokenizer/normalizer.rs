//! The changes to a text before it is split.

use std::borrow::Cow;

use memchr::memmem;
use unicode_normalization::{is_nfc_quick, IsNormalized, UnicodeNormalization};

use super::error::TextError;

/// The first character that composition could change or move.
const FIRST_TO_COMPOSE: char = '\u{300}';

/// A normalizer: canonical composition, then replacements of strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normalizer {
    /// Unicode's normalization form C.
    pub compose: bool,
    /// Replacements in order: the text, and its replacement. They are for texts with `▁`, which a
    /// SentencePiece model treats as a space.
    pub replaced: Vec<(String, String)>,
}

impl Normalizer {
    pub(crate) fn is_identity(&self) -> bool {
        !self.compose && self.replaced.is_empty()
    }

    /// The normalized text.
    pub(super) fn apply<'t>(&self, text: &'t [u8]) -> Result<Cow<'t, [u8]>, TextError> {
        let mut text = if self.compose { compose(text)? } else { Cow::Borrowed(text) };
        for (from, to) in &self.replaced {
            if let Cow::Owned(changed) = replace(&text, from.as_bytes(), to.as_bytes()) {
                text = Cow::Owned(changed);
            }
        }
        Ok(text)
    }

    /// Whether a text and each of its parts stay unchanged in any context. If not, the first
    /// position that may change.
    pub(super) fn keeps(&self, text: &[u8]) -> Result<(), TextError> {
        if self.compose {
            let read = utf8(text)?;
            if let Some((at, _)) = read.char_indices().find(|&(_, c)| may_change(c)) {
                return Err(TextError::Normalized { at });
            }
        }
        for (from, _) in &self.replaced {
            if let Some(at) = memmem::find(text, from.as_bytes()) {
                return Err(TextError::Normalized { at });
            }
        }
        Ok(())
    }
}

/// Whether composition neither joins this character to one before it nor moves it before that.
pub(super) fn begins_anew(c: char) -> bool {
    let mut first = None;
    unicode_normalization::char::decompose_canonical(c, |part| first = first.or(Some(part)));
    let first = first.unwrap_or(c);
    unicode_normalization::char::canonical_combining_class(first) == 0
        && is_nfc_quick(std::iter::once(first)) != IsNormalized::Maybe
}

/// Whether composition may change this character, move it, or join it to one before it.
fn may_change(c: char) -> bool {
    c >= FIRST_TO_COMPOSE
        && (is_nfc_quick(std::iter::once(c)) != IsNormalized::Yes
            || unicode_normalization::char::canonical_combining_class(c) != 0)
}

fn utf8(text: &[u8]) -> Result<&str, TextError> {
    std::str::from_utf8(text).map_err(|error| TextError::NotUtf8 { at: error.valid_up_to() })
}

fn compose(text: &[u8]) -> Result<Cow<'_, [u8]>, TextError> {
    let read = utf8(text)?;
    if text.is_ascii() || is_nfc_quick(read.chars()) == IsNormalized::Yes {
        return Ok(Cow::Borrowed(text));
    }
    Ok(Cow::Owned(read.nfc().collect::<String>().into_bytes()))
}

fn replace<'t>(text: &'t [u8], from: &[u8], to: &[u8]) -> Cow<'t, [u8]> {
    let mut places = memmem::find_iter(text, from).peekable();
    if from.is_empty() || places.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut done = 0;
    for at in places {
        out.extend_from_slice(&text[done..at]);
        out.extend_from_slice(to);
        done = at + from.len();
    }
    out.extend_from_slice(&text[done..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentencepiece() -> Normalizer {
        Normalizer { compose: false, replaced: vec![("▁".into(), " ".into())] }
    }

    fn nfc() -> Normalizer {
        Normalizer { compose: true, replaced: Vec::new() }
    }

    #[test]
    fn composition() {
        assert_eq!(&*nfc().apply("e\u{301}x".as_bytes()).unwrap(), "éx".as_bytes());
        assert!(matches!(nfc().apply("日本 é".as_bytes()), Ok(Cow::Borrowed(_))));
        assert_eq!(nfc().apply(b"ab\xFF"), Err(TextError::NotUtf8 { at: 2 }));
    }

    #[test]
    fn replacing() {
        assert_eq!(&*sentencepiece().apply("▁a▁▁b▁".as_bytes()).unwrap(), b" a  b ");
        assert!(matches!(sentencepiece().apply(b"plain\xFF"), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn what_could_change_is_known_without_what_stands_around_it() {
        assert_eq!(nfc().keeps("é日본ก".as_bytes()), Ok(()));
        assert_eq!(nfc().keeps("e\u{301}".as_bytes()), Err(TextError::Normalized { at: 1 }));
        // A vowel of Hangul that joins the consonant before it, and a mark that may be reordered.
        assert_eq!(nfc().keeps("\u{1161}".as_bytes()), Err(TextError::Normalized { at: 0 }));
        assert_eq!(nfc().keeps("a\u{323}".as_bytes()), Err(TextError::Normalized { at: 1 }));
        assert_eq!(sentencepiece().keeps("a▁".as_bytes()), Err(TextError::Normalized { at: 1 }));
        assert_eq!(Normalizer::default().keeps(b"\xFF"), Ok(()));
    }
}
