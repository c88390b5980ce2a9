//! The positions of tokens in a text.
//!
//! A token of text has the range of its bytes. If normalization has changed the text, it has the
//! range of the original bytes: for a composed character, all bytes of its parts. The space that a
//! tokenizer adds before a text has an empty range.

use std::ops::ControlFlow;

use memchr::memmem;
use unicode_normalization::UnicodeNormalization;

use super::encode::Part;
use super::error::TextError;
use super::normalizer::{begins_anew, Normalizer};
use super::options::EncodeOptions;
use super::Tokenizer;
use crate::vocabulary::TokenId;

/// The tokens of a text, and the first byte and the end of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// The tokens in the order of the text.
    pub tokens: Vec<TokenId>,
    /// For each token the offset of its first byte and that behind its last one.
    pub offsets: Vec<(usize, usize)>,
}

impl Tokenizer {
    /// The tokens of a text and their positions.
    pub fn encode_with_offsets(
        &self,
        text: &[u8],
        options: &EncodeOptions,
    ) -> Result<Located, TextError> {
        let mut out = Located::default();
        let mut places = OffsetMap { text, tokenizer: self, options, stretch: None };
        let mut failed = None;
        let _ =
            self.cut(text, options, &mut |part| match self.locate(part, &mut places, &mut out) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            })?;
        failed.map_or(Ok(out), Err)
    }

    fn locate(
        &self,
        part: Part<'_>,
        places: &mut OffsetMap<'_>,
        out: &mut Located,
    ) -> Result<(), TextError> {
        match part {
            Part::Token { token, place } => {
                out.offsets.push(match place.normalized {
                    None => place.raw,
                    Some(range) => places.of(place.raw, range)?,
                });
                out.tokens.push(token);
            }
            Part::Text { text, dummy, place } => {
                let before = out.tokens.len();
                let splitter = self.splitter(places.options.part.pretokenize);
                self.encode_pieces(splitter, text, places.options.method, &mut out.tokens);
                // The space that is added before the text has an empty range.
                let written = usize::from(dummy);
                let first = place.normalized.map_or(0, |(start, _)| start);
                let mut at = 0;
                for &token in &out.tokens[before..] {
                    let end = at + self.table.text(token).len();
                    let range =
                        (first + at.saturating_sub(written), first + end.saturating_sub(written));
                    out.offsets.push(match place.normalized {
                        None => (place.raw.0, place.raw.0),
                        Some(_) => places.of(place.raw, range)?,
                    });
                    at = end;
                }
            }
        }
        Ok(())
    }
}

/// Maps positions in normalized parts to positions in the text.
struct OffsetMap<'t> {
    text: &'t [u8],
    tokenizer: &'t Tokenizer,
    options: &'t EncodeOptions,
    /// The last requested part; `None` in it if the part is unchanged.
    stretch: Option<((usize, usize), Option<Aligned>)>,
}

impl OffsetMap<'_> {
    /// Returns the range in the text for one of the normalized stretch `raw`.
    fn of(
        &mut self,
        raw: (usize, usize),
        range: (usize, usize),
    ) -> Result<(usize, usize), TextError> {
        if self.stretch.as_ref().is_none_or(|(known, _)| *known != raw) {
            let aligned = match self.options.part.normalize {
                true => Aligned::new(&self.tokenizer.normalizer, &self.text[raw.0..raw.1])
                    .map_err(|error| error.shifted(raw.0))?,
                false => None,
            };
            self.stretch = Some((raw, aligned));
        }
        let (start, end) = match &self.stretch {
            Some((_, Some(aligned))) => aligned.raw(range.0, range.1),
            _ => range,
        };
        Ok((raw.0 + start, raw.0 + end))
    }
}

/// A changed text, with the original bytes of each of its bytes.
struct Aligned {
    text: Vec<u8>,
    from: Vec<(usize, usize)>,
}

impl Aligned {
    /// Returns a normalizer's result for a text; `None` if the text is unchanged.
    fn new(normalizer: &Normalizer, text: &[u8]) -> Result<Option<Self>, TextError> {
        if *normalizer.apply(text)? == *text {
            return Ok(None);
        }
        let mut aligned =
            Self { text: text.to_vec(), from: (0..text.len()).map(|at| (at, at + 1)).collect() };
        if normalizer.compose {
            aligned = aligned.composed();
        }
        for (from, to) in &normalizer.replaced {
            aligned = aligned.replaced(from.as_bytes(), to.as_bytes());
        }
        debug_assert!(normalizer.apply(text).is_ok_and(|known| *known == aligned.text));
        Ok(Some(aligned))
    }

    /// A text is composed part by part. A part starts at a character that joins nothing before it,
    /// and ends at the next such character.
    fn composed(self) -> Self {
        let Ok(text) = std::str::from_utf8(&self.text) else { return self };
        let starts = text.char_indices().filter(|&(_, c)| begins_anew(c)).map(|(at, _)| at);
        let ends: Vec<usize> = starts.filter(|&at| at > 0).chain([text.len()]).collect();
        let mut out = Self { text: Vec::with_capacity(text.len()), from: Vec::new() };
        let mut start = 0;
        for end in ends {
            let stretch = &text[start..end];
            let whole = self.raw(start, end);
            for byte in stretch.nfc().collect::<String>().bytes() {
                out.text.push(byte);
                out.from.push(whole);
            }
            if out.text.ends_with(stretch.as_bytes()) {
                let kept = out.from.len() - stretch.len();
                out.from.truncate(kept);
                out.from.extend_from_slice(&self.from[start..end]);
            }
            start = end;
        }
        out
    }

    fn replaced(self, from: &[u8], to: &[u8]) -> Self {
        if from.is_empty() {
            return self;
        }
        let mut out = Self { text: Vec::with_capacity(self.text.len()), from: Vec::new() };
        let mut done = 0;
        for at in memmem::find_iter(&self.text, from) {
            out.text.extend_from_slice(&self.text[done..at]);
            out.from.extend_from_slice(&self.from[done..at]);
            done = at + from.len();
            out.text.extend_from_slice(to);
            out.from.extend(std::iter::repeat_n(self.raw(at, done), to.len()));
        }
        out.text.extend_from_slice(&self.text[done..]);
        out.from.extend_from_slice(&self.from[done..]);
        out
    }

    /// Returns the original range of bytes `start..end`.
    fn raw(&self, start: usize, end: usize) -> (usize, usize) {
        let first = self.from.get(start).or(self.from.last()).map_or((0, 0), |&range| range);
        if start >= end {
            let at = if start < self.from.len() { first.0 } else { first.1 };
            return (at, at);
        }
        (first.0, self.from.get(end - 1).map_or(first.1, |&(_, end)| end))
    }
}

/// Converts byte offsets to character offsets; a partly covered character counts as whole.
/// `offsets` must not decrease.
pub fn in_characters(text: &[u8], offsets: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut start = Characters::new(text);
    let mut end = Characters::new(text);
    offsets
        .iter()
        .map(|&(first, last)| {
            let begun = start.begun_before(first + 1);
            // Nothing begins at the end of the text.
            let first_character = if first < text.len() { begun.saturating_sub(1) } else { begun };
            let end_character = if first < last { end.begun_before(last) } else { first_character };
            (first_character, end_character)
        })
        .collect()
}

/// How many characters of a text begin before a position that never decreases.
struct Characters<'t> {
    text: &'t [u8],
    at: usize,
    begun: usize,
}

impl<'t> Characters<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0, begun: 0 }
    }

    fn begun_before(&mut self, end: usize) -> usize {
        let end = end.min(self.text.len());
        if end > self.at {
            self.begun +=
                self.text[self.at..end].iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
            self.at = end;
        }
        self.begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(normalizer: &Normalizer, text: &str) -> Option<(String, Vec<(usize, usize)>)> {
        let aligned = Aligned::new(normalizer, text.as_bytes()).unwrap()?;
        Some((String::from_utf8(aligned.text).unwrap(), aligned.from))
    }

    #[test]
    fn what_is_composed_lies_where_its_parts_do() {
        let nfc = Normalizer { compose: true, replaced: Vec::new() };
        assert_eq!(aligned(&nfc, "plain é"), None);
        let (text, from) = aligned(&nfc, "ae\u{301}b").unwrap();
        assert_eq!(text, "aéb");
        assert_eq!(from, [(0, 1), (1, 4), (1, 4), (4, 5)]);
        // Marks that change places are one stretch with what they stand on.
        let (text, from) = aligned(&nfc, "q\u{307}\u{323}x").unwrap();
        assert_eq!(text, "q\u{323}\u{307}x");
        assert_eq!(from, [(0, 5), (0, 5), (0, 5), (0, 5), (0, 5), (5, 6)]);
        // A character that is always replaced, but never joined to another.
        let (text, from) = aligned(&nfc, "a\u{f983}b").unwrap();
        assert_eq!((text.as_str(), from[0], from[1], from[4]), ("a旅b", (0, 1), (1, 4), (4, 5)));
        // Hangul that is written in its parts.
        let (text, from) = aligned(&nfc, "\u{1112}\u{1161}\u{11ab}").unwrap();
        assert_eq!((text.as_str(), from), ("한", vec![(0, 9); 3]));
    }

    #[test]
    fn what_is_replaced_lies_where_it_stood() {
        let spaces = Normalizer { compose: false, replaced: vec![("▁".into(), " ".into())] };
        let (text, from) = aligned(&spaces, "▁a▁").unwrap();
        assert_eq!(text, " a ");
        assert_eq!(from, [(0, 3), (3, 4), (4, 7)]);
    }

    #[test]
    fn characters() {
        let text = "aé日!".as_bytes();
        let bytes = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 6), (6, 7), (7, 7)];
        let characters = [(0, 1), (1, 2), (1, 2), (2, 3), (2, 3), (3, 4), (4, 4)];
        assert_eq!(in_characters(text, &bytes), characters);
        assert_eq!(in_characters(text, &[(0, 0), (0, 3), (3, 7)]), [(0, 0), (0, 2), (2, 4)]);
        assert_eq!(in_characters(b"", &[(0, 0)]), [(0, 0)]);
    }
}
