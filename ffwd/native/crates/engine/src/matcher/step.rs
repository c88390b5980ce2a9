//! The effect of one token on a sequence.

use super::preamble::{Stage, Step};
use super::{Matcher, MatcherError, Place};
use crate::engine::Generation;
use ffwd_tokenizer::vocabulary::TokenId;

impl Matcher {
    /// The position after a token; `None` if the grammar refuses it.
    #[inline]
    pub(super) fn step(
        &self,
        generation: &Generation,
        place: Place,
        token: TokenId,
        position: usize,
    ) -> Result<Option<Place>, MatcherError> {
        let vocabulary = self.compiled.engine.vocabulary();
        if token.index() >= vocabulary.width() {
            let width = vocabulary.width();
            return Err(MatcherError::OutOfRange { token, position, width });
        }
        if place.stage != Stage::Grammar {
            return self.step_before(generation, place, token);
        }
        if place.read == self.prefix.len() {
            if let Some(next) = generation.transitions.get(place.state, token) {
                return Ok(next.map(|state| Place { state, ..place }));
            }
        }
        self.read_token(generation, place, token)
    }

    /// As [`Self::step`], before the grammar's text.
    #[cold]
    fn step_before(
        &self,
        generation: &Generation,
        place: Place,
        token: TokenId,
    ) -> Result<Option<Place>, MatcherError> {
        let Some(preamble) = &self.preamble else { return Ok(None) };
        match preamble.step(place.stage, token) {
            Step::Refused => Ok(None),
            Step::Stays(stage) => Ok(Some(Place { stage, ..place })),
            Step::Begins(rest) => {
                let place = Place { stage: Stage::Grammar, ..place };
                if rest == 0 {
                    return Ok(Some(place));
                }
                let text = self.compiled.engine.vocabulary().text(token);
                let next = self.read_text(generation, place, &text[text.len() - rest..])?;
                self.compiled.settle(generation);
                Ok(next)
            }
        }
    }

    /// As [`Self::step`], from the bytes of the token.
    fn read_token(
        &self,
        generation: &Generation,
        place: Place,
        token: TokenId,
    ) -> Result<Option<Place>, MatcherError> {
        let Generation { automaton, transitions, .. } = generation;
        let vocabulary = self.compiled.engine.vocabulary();
        let text = vocabulary.text(token);
        let in_prefix = place.read < self.prefix.len();
        if !in_prefix && automaton.has_tokens() {
            let next = self.read_whole(generation, place, token)?;
            if next.is_some() || text.is_empty() && !vocabulary.is_eos(token) {
                transitions.set(place.state, token, next.map(|next| next.state));
                self.compiled.settle(generation);
                return Ok(next);
            }
        }
        if text.is_empty() {
            let ends =
                !in_prefix && vocabulary.is_eos(token) && automaton.is_accepting(place.state);
            return Ok(ends.then_some(place));
        }
        let next = self.read_text(generation, place, text)?;
        if !in_prefix {
            transitions.set(place.state, token, next.map(|next| next.state));
        }
        self.compiled.settle(generation);
        Ok(next)
    }

    /// The position after a token that may be taken as a whole, or also as its text.
    fn read_whole(
        &self,
        generation: &Generation,
        place: Place,
        token: TokenId,
    ) -> Result<Option<Place>, MatcherError> {
        let automaton = &generation.automaton;
        let text = self.compiled.engine.vocabulary().text(token);
        let next = automaton.limited().read(automaton.threads(place.state), Some(token.0), text)?;
        Ok(match next {
            Some(threads) => Some(Place { state: automaton.intern(threads)?, ..place }),
            None => None,
        })
    }

    /// The position after some text, which starts with the rest of the prefix.
    fn read_text(
        &self,
        generation: &Generation,
        place: Place,
        mut text: &[u8],
    ) -> Result<Option<Place>, MatcherError> {
        let automaton = &generation.automaton;
        let left = &self.prefix[place.read..];
        if !left.is_empty() {
            if text.len() <= left.len() {
                let read = place.read + text.len();
                return Ok(left.starts_with(text).then_some(Place { read, ..place }));
            }
            match text.strip_prefix(left) {
                Some(rest) => text = rest,
                None => return Ok(None),
            }
        }
        let threads = automaton.limited().read(automaton.threads(place.state), None, text)?;
        let Some(threads) = threads else {
            return Ok(None);
        };
        let state = automaton.intern(threads)?;
        Ok(Some(Place { state, read: self.prefix.len(), ..place }))
    }
}
