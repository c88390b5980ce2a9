//! A text in progress: the list of states that its tokens led through.

use std::sync::Arc;

use thiserror::Error;

use crate::automaton::{EngineError, StateId};
use crate::engine::Compiled;
use crate::vocabulary::TokenId;

/// What a caller got wrong.
#[derive(Clone, Debug, Error)]
pub enum MatcherError {
    #[error("token {token} at position {position} is outside the vocabulary of {width} ids")]
    OutOfRange { token: TokenId, position: usize, width: usize },
    #[error("token {token} at position {position} comes after the end of the sequence")]
    AfterEnd { token: TokenId, position: usize },
    #[error("cannot roll back {asked} tokens: only {accepted} have been accepted")]
    RollbackTooFar { asked: usize, accepted: usize },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Follows one sequence of tokens through a grammar.
#[derive(Clone, Debug)]
pub struct Matcher {
    compiled: Arc<Compiled>,
    /// The state before each token.
    before: Vec<StateId>,
    tokens: Vec<TokenId>,
    state: StateId,
    terminated: bool,
}

impl Matcher {
    pub fn new(compiled: Arc<Compiled>) -> Self {
        let state = compiled.automaton.start();
        Self { compiled, before: Vec::new(), tokens: Vec::new(), state, terminated: false }
    }

    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// The tokens accepted so far, an end token included.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    pub fn state(&self) -> StateId {
        self.state
    }

    /// Whether the text may end here, or has ended.
    pub fn is_accepting(&self) -> bool {
        self.compiled.automaton.is_accepting(self.state)
    }

    /// Whether an end token has been accepted.
    pub fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// The state after a token, or `None` where the grammar refuses it.
    fn step(
        &self,
        state: StateId,
        token: TokenId,
        position: usize,
    ) -> Result<Option<StateId>, MatcherError> {
        let vocabulary = self.compiled.engine.vocabulary();
        if token.index() >= vocabulary.width() {
            let width = vocabulary.width();
            return Err(MatcherError::OutOfRange { token, position, width });
        }
        let automaton = &self.compiled.automaton;
        let text = vocabulary.text(token);
        if text.is_empty() {
            let ends = vocabulary.is_eos(token) && automaton.is_accepting(state);
            return Ok(ends.then_some(state));
        }
        match automaton.walk(automaton.threads(state), text)? {
            Some(threads) => Ok(Some(automaton.intern(threads)?)),
            None => Ok(None),
        }
    }

    /// Takes one token; `false`, and nothing changes, where the grammar refuses it.
    pub fn accept(&mut self, token: TokenId) -> Result<bool, MatcherError> {
        let position = self.tokens.len();
        if self.terminated {
            return Err(MatcherError::AfterEnd { token, position });
        }
        let Some(next) = self.step(self.state, token, position)? else { return Ok(false) };
        self.before.push(self.state);
        self.tokens.push(token);
        self.state = next;
        self.terminated = self.compiled.engine.vocabulary().is_eos(token);
        Ok(true)
    }

    /// Takes all of the tokens, or none of them.
    pub fn accept_all(&mut self, tokens: &[TokenId]) -> Result<bool, MatcherError> {
        let before = self.tokens.len();
        for &token in tokens {
            let accepted = self.accept(token);
            if !matches!(accepted, Ok(true)) {
                let taken = self.tokens.len() - before;
                self.rollback(taken)?;
                return accepted;
            }
        }
        Ok(true)
    }

    /// How many of the tokens, from the first on, the grammar would take. Changes nothing.
    pub fn validate(&self, tokens: &[TokenId]) -> Result<usize, MatcherError> {
        let vocabulary = self.compiled.engine.vocabulary();
        let mut state = self.state;
        let mut terminated = self.terminated;
        for (count, &token) in tokens.iter().enumerate() {
            let position = self.tokens.len() + count;
            match self.step(state, token, position)? {
                Some(next) if !terminated => state = next,
                _ => return Ok(count),
            }
            terminated = vocabulary.is_eos(token);
        }
        Ok(tokens.len())
    }

    /// Takes back the last tokens.
    pub fn rollback(&mut self, count: usize) -> Result<(), MatcherError> {
        let accepted = self.tokens.len();
        if count > accepted {
            return Err(MatcherError::RollbackTooFar { asked: count, accepted });
        }
        if count > 0 {
            self.state = self.before[accepted - count];
            self.before.truncate(accepted - count);
            self.tokens.truncate(accepted - count);
            self.terminated = false;
        }
        Ok(())
    }

    /// Back to the beginning.
    pub fn reset(&mut self) {
        self.before.clear();
        self.tokens.clear();
        self.state = self.compiled.automaton.start();
        self.terminated = false;
    }

    /// As [`Self::fill_bitmask`], if that is a mere copy; else `false`, and the row is as it was.
    pub fn fill_known(&self, row: &mut [u32]) -> bool {
        if self.terminated {
            row.fill(0);
            crate::mask::token_set::set_bits(row, self.compiled.engine.vocabulary().eos());
            return true;
        }
        self.compiled.masker.with_known(self.state, |mask| mask.fill(row)).is_some()
    }

    /// Overwrites a bitmask row with the tokens that may come next. After the end these are the
    /// end tokens, so that a row of a batch that is done can be sampled from.
    pub fn fill_bitmask(&self, row: &mut [u32]) -> Result<(), EngineError> {
        if self.fill_known(row) {
            return Ok(());
        }
        let Compiled { automaton, masker, .. } = &*self.compiled;
        masker.compute(automaton, self.state)?.fill(row);
        Ok(())
    }

    /// The tokens that may come next, sorted; none after the end.
    pub fn allowed(&self) -> Result<Vec<TokenId>, EngineError> {
        if self.terminated {
            return Ok(Vec::new());
        }
        let Compiled { automaton, masker, .. } = &*self.compiled;
        if let Some(tokens) = masker.with_known(self.state, |mask| mask.tokens()) {
            return Ok(tokens);
        }
        Ok(masker.compute(automaton, self.state)?.tokens())
    }
}

/// Fills a row for each matcher. Known masks are copied at once, the others are computed on at
/// most `threads` threads, which live for this call only.
pub fn fill_bitmasks(
    work: Vec<(&Matcher, &mut [u32])>,
    threads: Option<usize>,
) -> Result<(), EngineError> {
    let mut missing: Vec<(&Matcher, &mut [u32])> = Vec::new();
    for (matcher, row) in work {
        if !matcher.fill_known(row) {
            missing.push((matcher, row));
        }
    }
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or_else(available).clamp(1, missing.len().max(1));
    if threads == 1 {
        return missing.into_iter().try_for_each(|(matcher, row)| matcher.fill_bitmask(row));
    }
    let queue = parking_lot::Mutex::new(missing.into_iter());
    let take_all = || -> Result<(), EngineError> {
        loop {
            let next = queue.lock().next();
            let Some((matcher, row)) = next else { return Ok(()) };
            matcher.fill_bitmask(row)?;
        }
    };
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(take_all)).collect();
        let mut result = take_all();
        for helper in helpers {
            match helper.join() {
                Ok(done) => result = result.and(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        result
    })
}

#[cfg(test)]
mod tests;
