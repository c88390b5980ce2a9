//! Whether one text belongs to a language, without an automaton.
//!
//! A node maps the positions at which its span may begin to those at which it may end, all at once
//! as a set of bits. Only intersections and complements are asked one beginning at a time.

use super::substring::Chunks;
use super::{Ast, CharClass, Finite, Magnitude};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// Words of positions that one question may handle.
const MAX_WORK: usize = 1 << 24;

impl Ast {
    /// Whether the whole text belongs to the language.
    ///
    /// # Errors
    /// The language is too large, or the text too long, to be decided in a few milliseconds.
    pub fn matches(&self, text: &str) -> Result<bool, LimitExceeded> {
        self.holds(text, &mut 0)
    }

    /// As [`Self::matches`], with the steps that have been taken so far, which several questions
    /// can share.
    pub fn holds(&self, text: &str, work: &mut usize) -> Result<bool, LimitExceeded> {
        *work += 1;
        // For whole texts the boolean operators combine answers, and the first operands usually
        // decide.
        match self {
            Self::Empty => Ok(false),
            Self::Epsilon => Ok(text.is_empty()),
            Self::Literal(literal) => Ok(**literal == *text),
            Self::Complement(inner) => Ok(!inner.holds(text, work)?),
            Self::Intersection(parts) => {
                for part in parts.iter() {
                    if !part.holds(text, work)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Alternation(parts) => {
                for part in parts.iter() {
                    if part.holds(text, work)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => {
                let text: Vec<char> = text.chars().collect();
                let mut matcher = Matcher { text: &text, work: *work };
                let mut start = Positions::none(text.len());
                start.insert(0);
                let ends = matcher.ends(self, &start)?;
                *work = matcher.work;
                Ok(ends.contains(text.len()))
            }
        }
    }
}

/// A set of positions in a text, from 0 to its length.
#[derive(Clone, PartialEq, Eq)]
struct Positions(Box<[u64]>);

impl Positions {
    fn none(length: usize) -> Self {
        Self(vec![0; length / 64 + 1].into())
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn contains(&self, position: usize) -> bool {
        self.0[position / 64] >> (position % 64) & 1 == 1
    }

    fn insert(&mut self, position: usize) {
        self.0[position / 64] |= 1 << (position % 64);
    }

    fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn keep(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine &= theirs);
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * 64 + bit)
        })
    }
}

struct Matcher<'t> {
    text: &'t [char],
    work: usize,
}

impl Matcher<'_> {
    fn charge(&mut self, steps: usize) -> Result<(), LimitExceeded> {
        let steps = steps * (self.text.len() / 64 + 1);
        meter::charge(steps)?;
        self.work += steps;
        if self.work > MAX_WORK {
            return Err(LimitExceeded::new("match_steps", MAX_WORK));
        }
        Ok(())
    }

    /// Returns the possible ends of a span of `ast` that begins at one of `starts`.
    fn ends(&mut self, ast: &Ast, starts: &Positions) -> Result<Positions, LimitExceeded> {
        self.charge(1)?;
        let mut ends = Positions::none(self.text.len());
        match ast {
            Ast::Empty => {}
            Ast::Epsilon => return Ok(starts.clone()),
            Ast::Class(class) => self.step(class, starts, &mut ends)?,
            Ast::Literal(literal) => {
                let length = literal.chars().count();
                for start in starts.iter() {
                    self.charge(1)?;
                    let rest = self.text[start..].iter().copied();
                    if literal.chars().eq(rest.take(length)) {
                        ends.insert(start + length);
                    }
                }
            }
            Ast::Magnitude(magnitude) => {
                for start in starts.iter() {
                    self.magnitude(magnitude, start, &mut ends)?;
                }
            }
            Ast::Finite(finite) => {
                for start in starts.iter() {
                    self.finite(*finite, start, &mut ends)?;
                }
            }
            Ast::Substring(chunks) => {
                for start in starts.iter() {
                    self.substrings(chunks, start, &mut ends)?;
                }
            }
            Ast::Concat(parts) => {
                ends.merge(starts);
                for part in parts.iter() {
                    if ends.is_empty() {
                        break;
                    }
                    ends = self.ends(part, &ends)?;
                }
            }
            Ast::Alternation(parts) => {
                for part in parts.iter() {
                    ends.merge(&self.ends(part, starts)?);
                }
            }
            Ast::Repeat { inner, min, max } => return self.repeat(inner, *min, *max, starts),
            Ast::Intersection(parts) => {
                for start in starts.iter() {
                    let mut shared: Option<Positions> = None;
                    for part in parts.iter() {
                        let found = self.ends(part, &self.single(start))?;
                        match &mut shared {
                            Some(shared) => shared.keep(&found),
                            None => shared = Some(found),
                        }
                    }
                    ends.merge(&shared.unwrap_or_else(|| Positions::none(self.text.len())));
                }
            }
            Ast::Complement(inner) => {
                for start in starts.iter() {
                    let inside = self.ends(inner, &self.single(start))?;
                    for position in start..=self.text.len() {
                        if !inside.contains(position) {
                            ends.insert(position);
                        }
                    }
                }
            }
            Ast::Approximate { known, .. } => return self.ends(known, starts),
            Ast::Before(inner) => {
                let places = self.ends(inner, &self.single(0))?;
                ends.merge(starts);
                ends.keep(&places);
            }
            Ast::After(inner) => {
                for start in starts.iter() {
                    if self.ends(inner, &self.single(start))?.contains(self.text.len()) {
                        ends.insert(start);
                    }
                }
            }
        }
        Ok(ends)
    }

    fn magnitude(
        &mut self,
        magnitude: &Magnitude,
        start: usize,
        ends: &mut Positions,
    ) -> Result<(), LimitExceeded> {
        let mut state = Some(magnitude.clone());
        let mut position = start;
        while let Some(now) = state {
            self.charge(64)?;
            if now.accepts() {
                ends.insert(position);
            }
            let byte = self.text.get(position).and_then(|&c| u8::try_from(c).ok());
            state = byte.and_then(|byte| now.derive(byte));
            position += 1;
        }
        Ok(())
    }

    fn finite(
        &mut self,
        finite: Finite,
        start: usize,
        ends: &mut Positions,
    ) -> Result<(), LimitExceeded> {
        let mut state = Some(finite);
        let mut position = start;
        while let Some(now) = state {
            self.charge(1)?;
            if now.accepts() {
                ends.insert(position);
            }
            let byte = self.text.get(position).and_then(|&c| u8::try_from(c).ok());
            state = byte.and_then(|byte| now.derive(byte));
            position += 1;
        }
        Ok(())
    }

    fn substrings(
        &mut self,
        chunks: &Chunks,
        start: usize,
        ends: &mut Positions,
    ) -> Result<(), LimitExceeded> {
        ends.insert(start);
        for first in 0..chunks.texts().len() {
            let mut position = start;
            for chunk in &chunks.texts()[first..] {
                self.charge(1)?;
                let length = chunk.chars().count();
                if !chunk.chars().eq(self.text[position..].iter().copied().take(length)) {
                    break;
                }
                position += length;
                ends.insert(position);
            }
        }
        Ok(())
    }

    fn single(&self, start: usize) -> Positions {
        let mut positions = Positions::none(self.text.len());
        positions.insert(start);
        positions
    }

    fn step(
        &mut self,
        class: &CharClass,
        starts: &Positions,
        ends: &mut Positions,
    ) -> Result<(), LimitExceeded> {
        for start in starts.iter() {
            self.charge(1)?;
            if self.text.get(start).is_some_and(|&character| class.contains(character)) {
                ends.insert(start + 1);
            }
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        inner: &Ast,
        min: u32,
        max: Option<u32>,
        starts: &Positions,
    ) -> Result<Positions, LimitExceeded> {
        // A copy that is not empty moves on, so the sets stop changing within the text's length.
        let mut now = starts.clone();
        for _ in 0..min {
            let next = self.ends(inner, &now)?;
            if next == now {
                break;
            }
            now = next;
        }
        let mut ends = now.clone();
        for _ in min..max.unwrap_or(u32::MAX) {
            // Only what is new can lead to what is new.
            let next = self.ends(inner, &now)?;
            let before = ends.clone();
            ends.merge(&next);
            if ends == before {
                break;
            }
            now = next;
        }
        Ok(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ecma, oracle};

    #[test]
    fn membership_agrees_with_the_oracle() {
        let patterns = [
            "^a",
            "b$",
            "^$",
            "",
            "a{2,3}b",
            "(ab|a)*c",
            "^(?!foo)",
            "^(?=.*\\d)(?=.*[a-z]).{3,5}$",
            "é+",
            "^x-",
            "[^a]b",
            "(a?){3}",
            "(?:(a|b*){2,})$",
            "^(?:(?!--).)*$",
            "\\.json$",
        ];
        let texts = [
            "",
            "a",
            "b",
            "ab",
            "aab",
            "aaab",
            "abac",
            "foo",
            "foobar",
            "a1b",
            "1aé",
            "éé",
            "x-y",
            "a--b",
            "tsconfig.json",
            "c",
            "bbbb",
        ];
        for pattern in patterns {
            let language = ecma::search(pattern).unwrap();
            for text in texts {
                let expected = oracle::matches(&language, text);
                assert_eq!(language.matches(text), Ok(expected), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn long_texts_are_answered_or_refused() {
        let text = "ab".repeat(500);
        for (pattern, expected) in
            [("b$", true), ("(ab){500}$", true), ("^(a|b)*c", false), ("^(ab){3,499}$", false)]
        {
            let language = ecma::search(pattern).unwrap();
            assert_eq!(language.matches(&text), Ok(expected), "{pattern}");
        }
        let nested = ecma::search("^(?!((a|b)*){9})").unwrap();
        assert_eq!(nested.matches(&text), Ok(false));
    }
}
