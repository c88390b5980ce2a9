//! Rollback: removes accepted tokens.

use super::budget::Budget;
use super::preamble::{Stage, Step};
use super::sections::{settled, Settled};
use super::{state_in, Begun, History, Matcher, MatcherError};
use crate::engine::Generation;
use ffwd_tokenizer::vocabulary::TokenId;

impl Matcher {
    /// Removes the last tokens.
    pub fn rollback(&mut self, count: usize) -> Result<(), MatcherError> {
        let accepted = self.tokens.len();
        if count > accepted {
            return Err(MatcherError::RollbackTooFar { asked: count, accepted });
        }
        if count > 0 {
            self.shorten(accepted - count)?;
        }
        Ok(())
    }

    /// Back to the beginning.
    pub fn reset(&mut self) -> Result<(), MatcherError> {
        let generation = self.compiled.generation();
        let start = self.start(&generation)?;
        *self.history.get_mut() = History::new(start);
        self.stand(&generation, start);
        self.forget(0, generation.automaton.has_limits());
        Ok(())
    }

    fn shorten(&mut self, length: usize) -> Result<(), MatcherError> {
        let generation = self.compiled.generation();
        let history = if state_in(&generation, *self.place.get_mut()).is_none() {
            self.read_again(&generation, &self.tokens[..length])?
        } else {
            let history = self.history.get_mut();
            let (mut state, known) = history.last_before(length);
            if known == length {
                history.shorten(length);
                self.stand(&generation, state);
                self.forget(length, generation.automaton.has_limits());
                return Ok(());
            }
            let vocabulary = self.compiled.engine.vocabulary();
            // States between stored ones are recomputed: from less than a stride of tokens.
            let mut history = history.clone();
            history.shorten(length);
            let has_limits = generation.automaton.has_limits();
            let ages = |budget: &Budget| budget.ages_after(known);
            let mut ages = self.budget.as_ref().map(ages).unwrap_or_default();
            for (position, &token) in self.tokens[..length].iter().enumerate().skip(known) {
                let text = self.text_at(position, token);
                let unread = &text[self.prefix_part(position, text.len())..];
                let may_be_whole = self.may_be_whole(&generation, position, token);
                if !unread.is_empty() || may_be_whole {
                    let is_whole = unread.len() == vocabulary.text(token).len();
                    let known = is_whole.then(|| generation.transitions.get(state, token));
                    state = match known.flatten().flatten() {
                        Some(next) => next,
                        None => {
                            let automaton = &generation.automaton;
                            let threads = automaton.threads(state);
                            let next = match may_be_whole {
                                true => automaton.limited().read(threads, Some(token.0), unread)?,
                                false => automaton.limited().read(threads, None, unread)?,
                            };
                            // They were accepted here before.
                            let Some(next) = next else { break };
                            automaton.intern(next)?
                        }
                    };
                    if has_limits {
                        let automaton = &generation.automaton;
                        let settled =
                            settled(automaton, automaton.threads(state), &ages, position)?;
                        let Some(Settled { threads: next, ages: after, .. }) = settled else {
                            break;
                        };
                        state = automaton.intern(next)?;
                        ages = after;
                    }
                }
                history.push(state);
            }
            history
        };
        let state = history.last();
        *self.history.get_mut() = history;
        self.stand(&generation, state);
        self.forget(length, generation.automaton.has_limits());
        Ok(())
    }

    /// Whether the accepted token at a position may have been taken as a whole.
    pub(super) fn may_be_whole(
        &self,
        generation: &Generation,
        position: usize,
        token: TokenId,
    ) -> bool {
        generation.automaton.has_tokens()
            && self.stage == Stage::Grammar
            && position >= self.begun.tokens
            && self.read_after(position) >= self.prefix.len()
            && !self.compiled.engine.vocabulary().is_eos(token)
    }

    /// Returns how many bytes of the token at a position belong to the prefix of this length.
    pub(super) fn prefix_part(&self, position: usize, length: usize) -> usize {
        (self.prefix.len() - self.read_after(position)).min(length)
    }

    /// Returns how much of the prefix the first tokens encode.
    fn read_after(&self, length: usize) -> usize {
        if self.prefix.is_empty() {
            return 0;
        }
        let mut read = 0;
        let first = self.begun.tokens.saturating_sub(1).min(length);
        for (position, &token) in self.tokens[..length].iter().enumerate().skip(first) {
            if read >= self.prefix.len() {
                break;
            }
            read += self.text_at(position, token).len();
        }
        read.min(self.prefix.len())
    }

    /// Truncates the sequence to its first tokens.
    fn forget(&mut self, length: usize, generation_has_limits: bool) {
        if let Some(preamble) = &self.preamble {
            // The remaining free text is matched again, unless all of it remains.
            if self.stage != Stage::Grammar || length < self.begun.tokens {
                let mut stage = preamble.start();
                for &token in &self.tokens[..length] {
                    if let Step::Stays(next) = preamble.step(stage, token) {
                        stage = next;
                    }
                }
                self.stage = stage;
                self.begun = Begun::default();
            }
        }
        let in_grammar = self.stage == Stage::Grammar;
        self.read = if in_grammar { self.read_after(length) } else { 0 };
        if let Some(budget) = &mut self.budget {
            match generation_has_limits {
                true => budget.shorten(length),
                false => budget.took_back(&self.tokens[length..]),
            }
        }
        self.tokens.truncate(length);
        if let Some(events) = &mut self.events {
            events.shorten(length);
        }
        self.terminated = false;
        if let Some(tracked) = &mut self.tracked {
            tracked.trail.get_mut().shorten(length);
            tracked.ahead.get_mut().take_if(|ahead| ahead.position() > length);
        }
    }
}
