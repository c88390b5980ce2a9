//! A text in progress: the list of states that its tokens led through.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use arc_swap::Guard;
use parking_lot::Mutex;
use thiserror::Error;

use crate::automaton::{EngineError, StateId, Threads};
use crate::canonical::{Canonicality, Context, Restricted, Trail};
use crate::engine::{Compiled, Generation};
use crate::error::LimitExceeded;
use crate::mask::token_set::{bits, set_bits};
use crate::vocabulary::TokenId;

mod batch;
mod history;
pub use batch::fill_bitmasks;
use history::History;

/// Where there is no room for another token, there is then for so much of all of them.
const TOKENS_GROWTH: usize = 32;

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

/// How a text begins.
#[derive(Clone, Debug, Default)]
pub struct Beginning {
    /// Tokens before the first, which the grammar knows nothing of.
    pub recent: Vec<TokenId>,
    /// Bytes that come before the text of the grammar, in the same tokens: those that were taken
    /// back where a prompt was cut.
    pub prefix: Vec<u8>,
    /// Whether masks hold canonical tokens only.
    pub canonical: bool,
}

/// How often a mask could not be restricted to canonical tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fallbacks {
    /// No token of the grammar was canonical.
    pub nothing_left: u64,
    /// The tokens before were not canonical, so that nothing was known.
    pub lost: u64,
}

/// What a matcher knows beside the grammar's state.
#[derive(Debug)]
struct Tracked {
    trail: Mutex<Trail>,
    fallbacks: Mutex<Fallbacks>,
}

impl Clone for Tracked {
    fn clone(&self) -> Self {
        Self {
            trail: Mutex::new(self.trail.lock().clone()),
            fallbacks: Mutex::new(*self.fallbacks.lock()),
        }
    }
}

/// Generation and state in one word.
fn pack(generation: &Generation, state: StateId) -> u64 {
    u64::from(generation.number) << 32 | u64::from(state.0)
}

/// The state, if the place is in this generation.
#[inline]
fn state_in(generation: &Generation, place: u64) -> Option<StateId> {
    (place >> 32 == u64::from(generation.number)).then_some(StateId(place as u32))
}

/// Follows one sequence of tokens through a grammar.
#[derive(Debug)]
pub struct Matcher {
    compiled: Arc<Compiled>,
    tokens: Vec<TokenId>,
    /// Where the text stands: in which generation of the grammar, and in which of its states.
    place: AtomicU64,
    /// The state after each token, or after some of them, in the same generation. Locked only where
    /// the text moves to another one in the midst of a question.
    history: Mutex<History>,
    /// Whether the text may end in this state.
    accepting: bool,
    terminated: bool,
    prefix: Arc<[u8]>,
    /// How many bytes of the prefix have been read.
    read: usize,
    canonical: bool,
    tracked: Option<Tracked>,
}

impl Clone for Matcher {
    fn clone(&self) -> Self {
        // Both belong together, and a question to the other one may be moving it.
        let history = self.history.lock();
        let place = self.place.load(Ordering::Acquire);
        Self {
            compiled: self.compiled.clone(),
            tokens: self.tokens.clone(),
            place: AtomicU64::new(place),
            history: Mutex::new(history.clone()),
            prefix: self.prefix.clone(),
            tracked: self.tracked.clone(),
            ..*self
        }
    }
}

impl Matcher {
    pub fn new(compiled: Arc<Compiled>) -> Self {
        Self::beginning(compiled, &Beginning::default())
    }

    pub fn beginning(compiled: Arc<Compiled>, beginning: &Beginning) -> Self {
        let generation = compiled.generation();
        let state = generation.automaton.start();
        let tracked = compiled.engine.canonicality().map(|canonicality| Tracked {
            trail: Mutex::new(Trail::new(canonicality.after(&beginning.recent))),
            fallbacks: Mutex::default(),
        });
        Self {
            tokens: Vec::new(),
            place: AtomicU64::new(pack(&generation, state)),
            history: Mutex::new(History::new(state)),
            accepting: generation.automaton.is_accepting(state),
            terminated: false,
            prefix: beginning.prefix.as_slice().into(),
            read: 0,
            canonical: beginning.canonical,
            tracked,
            compiled,
        }
    }

    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// The tokens accepted so far, an end token included.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// What is built of the grammar now, and the state of the text in it. All that one question needs
    /// must come from the same generation.
    #[inline]
    pub fn here(&self) -> Result<(Guard<Arc<Generation>>, StateId), EngineError> {
        let generation = self.compiled.generation();
        match state_in(&generation, self.place.load(Ordering::Acquire)) {
            Some(state) => Ok((generation, state)),
            None => self.move_to(generation),
        }
    }

    /// Finds the text's place in a generation that it has not been in.
    #[cold]
    fn move_to(
        &self,
        generation: Guard<Arc<Generation>>,
    ) -> Result<(Guard<Arc<Generation>>, StateId), EngineError> {
        let mut history = self.history.lock();
        if let Some(state) = state_in(&generation, self.place.load(Ordering::Acquire)) {
            return Ok((generation, state));
        }
        *history = self.read_again(&generation, &self.tokens)?;
        let state = history.last();
        self.place.store(pack(&generation, state), Ordering::Release);
        Ok((generation, state))
    }

    /// The states of the first tokens in a generation in which the text has not been. Few of them
    /// are made: only those that are kept.
    fn read_again(
        &self,
        generation: &Generation,
        tokens: &[TokenId],
    ) -> Result<History, EngineError> {
        let Generation { automaton, .. } = generation;
        let held = generation.memory_bytes().total();
        let vocabulary = self.compiled.engine.vocabulary();
        let mut history = History::new(automaton.start());
        let mut threads = Threads::from_slice(automaton.threads(automaton.start()));
        let mut prefix_left = self.prefix.len();
        for (position, &token) in tokens.iter().enumerate() {
            let text = vocabulary.text(token);
            let skipped = prefix_left.min(text.len());
            prefix_left -= skipped;
            let Some(next) = automaton.walk(&threads, &text[skipped..])? else {
                // What a text may be is the same in every generation.
                debug_assert!(false, "token {token} at {position} was accepted before");
                return Err(LimitExceeded::new("tokens that can be read again", position).into());
            };
            threads = next;
            if History::keeps(position + 1, tokens.len()) {
                let state = automaton.intern(threads.clone())?;
                history.push_kept(position + 1, tokens.len(), state);
            }
        }
        self.compiled.counters.moves.fetch_add(1, Ordering::Relaxed);
        generation.moved(held);
        Ok(history)
    }

    /// The state of the text, in the generation that it has last been in.
    #[cfg(test)]
    pub fn state(&self) -> StateId {
        StateId(self.place.load(Ordering::Acquire) as u32)
    }

    /// The bytes that come before the text of the grammar and have not been spelled yet.
    pub fn prefix_left(&self) -> &[u8] {
        &self.prefix[self.read..]
    }

    /// Whether the text may end here, or has ended.
    pub fn is_accepting(&self) -> bool {
        self.accepting && self.read == self.prefix.len()
    }

    /// Whether an end token has been accepted.
    pub fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// The state after a token, and how much of the prefix has been read then; `None` where the
    /// grammar refuses it.
    #[inline]
    fn step(
        &self,
        generation: &Generation,
        (state, read): (StateId, usize),
        token: TokenId,
        position: usize,
    ) -> Result<Option<(StateId, usize)>, MatcherError> {
        let vocabulary = self.compiled.engine.vocabulary();
        if token.index() >= vocabulary.width() {
            let width = vocabulary.width();
            return Err(MatcherError::OutOfRange { token, position, width });
        }
        if read == self.prefix.len() {
            if let Some(next) = generation.transitions.get(state, token) {
                return Ok(next.map(|next| (next, read)));
            }
        }
        self.read_token(generation, (state, read), token)
    }

    /// As [`Self::step`], from the bytes of the token.
    fn read_token(
        &self,
        generation: &Generation,
        (state, read): (StateId, usize),
        token: TokenId,
    ) -> Result<Option<(StateId, usize)>, MatcherError> {
        let Generation { automaton, transitions, .. } = generation;
        let vocabulary = self.compiled.engine.vocabulary();
        let mut text = vocabulary.text(token);
        let left = &self.prefix[read..];
        if text.is_empty() {
            let ends = left.is_empty() && vocabulary.is_eos(token) && automaton.is_accepting(state);
            return Ok(ends.then_some((state, read)));
        }
        if !left.is_empty() {
            if text.len() <= left.len() {
                return Ok(left.starts_with(text).then_some((state, read + text.len())));
            }
            match text.strip_prefix(left) {
                Some(rest) => text = rest,
                None => return Ok(None),
            }
        }
        let next = match automaton.walk(automaton.threads(state), text)? {
            Some(threads) => Some(automaton.intern(threads)?),
            None => None,
        };
        if left.is_empty() {
            transitions.set(state, token, next);
        }
        self.compiled.settle(generation);
        Ok(next.map(|next| (next, self.prefix.len())))
    }

    /// Takes one token; `false`, and nothing changes, where the grammar refuses it.
    pub fn accept(&mut self, token: TokenId) -> Result<bool, MatcherError> {
        let position = self.tokens.len();
        if self.terminated {
            return Err(MatcherError::AfterEnd { token, position });
        }
        let (generation, state) = self.here()?;
        let Some((state, read)) = self.step(&generation, (state, self.read), token, position)?
        else {
            return Ok(false);
        };
        if self.tokens.len() == self.tokens.capacity() {
            // A long text must not hold twice the memory that it needs.
            self.tokens.reserve_exact((self.tokens.len() / TOKENS_GROWTH).max(16));
        }
        self.tokens.push(token);
        self.history.get_mut().push(state);
        self.stand(&generation, state);
        self.read = read;
        self.terminated = self.compiled.engine.vocabulary().is_eos(token);
        Ok(true)
    }

    /// The text is now in this state, which is the last of its history.
    #[inline]
    fn stand(&mut self, generation: &Generation, state: StateId) {
        *self.place.get_mut() = pack(generation, state);
        self.accepting = generation.automaton.is_accepting(state);
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
        let (generation, state) = self.here()?;
        let mut place = (state, self.read);
        let mut terminated = self.terminated;
        for (count, &token) in tokens.iter().enumerate() {
            let position = self.tokens.len() + count;
            match self.step(&generation, place, token, position)? {
                Some(next) if !terminated => place = next,
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
            self.shorten(accepted - count)?;
        }
        Ok(())
    }

    /// Back to the beginning.
    pub fn reset(&mut self) {
        let generation = self.compiled.generation();
        let start = generation.automaton.start();
        *self.history.get_mut() = History::new(start);
        self.stand(&generation, start);
        self.forget(0, 0);
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
                let read = self.read_after(length);
                self.forget(length, read);
                return Ok(());
            }
            // What single states are not kept of is read again: less than a stride of tokens.
            let mut history = history.clone();
            history.shorten(length);
            let mut read = self.read_after(known);
            for (position, &token) in self.tokens[..length].iter().enumerate().skip(known) {
                // They have been accepted here before.
                let Some(next) = self.step(&generation, (state, read), token, position)? else {
                    break;
                };
                (state, read) = next;
                history.push(state);
            }
            history
        };
        let state = history.last();
        *self.history.get_mut() = history;
        self.stand(&generation, state);
        let read = self.read_after(length);
        self.forget(length, read);
        Ok(())
    }

    /// How much of the prefix the first tokens spell.
    fn read_after(&self, length: usize) -> usize {
        let vocabulary = self.compiled.engine.vocabulary();
        let mut read = 0;
        for &token in &self.tokens[..length] {
            if read >= self.prefix.len() {
                break;
            }
            read += vocabulary.text(token).len();
        }
        read.min(self.prefix.len())
    }

    /// Only the first tokens are left, which spell so much of the prefix.
    fn forget(&mut self, length: usize, read: usize) {
        self.tokens.truncate(length);
        self.terminated = false;
        self.read = read;
        if let Some(tracked) = &mut self.tracked {
            tracked.trail.get_mut().shorten(length);
        }
    }

    /// How many bytes of memory the matcher holds, without what it shares with others.
    pub fn memory_bytes(&self) -> usize {
        let trail = |tracked: &Tracked| tracked.trail.lock().memory_bytes();
        std::mem::size_of::<Self>()
            + self.tokens.capacity() * std::mem::size_of::<TokenId>()
            + self.history.lock().memory_bytes()
            + self.tracked.as_ref().map_or(0, trail)
    }

    /// Which tokens are canonical and what is known of those so far, where that can be told.
    pub fn context(&self) -> Option<(&Arc<Canonicality>, Context)> {
        let canonicality = self.compiled.engine.canonicality()?;
        let mut trail = self.tracked.as_ref()?.trail.lock();
        Some((canonicality, trail.after(canonicality, &self.tokens).clone()))
    }

    /// How many of the tokens so far no tokenization of the text could have where they are.
    pub fn strays(&self) -> Option<usize> {
        let canonicality = self.compiled.engine.canonicality()?;
        let mut trail = self.tracked.as_ref()?.trail.lock();
        trail.after(canonicality, &self.tokens);
        Some(trail.strays())
    }

    /// Whether masks hold canonical tokens only.
    pub fn is_canonical(&self) -> bool {
        self.canonical
    }

    /// How many masks could not be restricted to canonical tokens.
    pub fn fallbacks(&self) -> Fallbacks {
        self.tracked.as_ref().map(|tracked| *tracked.fallbacks.lock()).unwrap_or_default()
    }

    /// Copies the mask into the row if it is known already, and needs no more.
    pub fn fill_known(&self, row: &mut [u32]) -> bool {
        if self.terminated {
            row.fill(0);
            set_bits(row, self.compiled.engine.vocabulary().eos());
            return true;
        }
        let plain = !self.canonical && self.prefix_left().is_empty();
        if !plain {
            return false;
        }
        let generation = self.compiled.generation();
        let state = state_in(&generation, self.place.load(Ordering::Acquire));
        let fill = |state| generation.masker.with_known(state, |mask| mask.fill(row));
        state.and_then(fill).is_some()
    }

    /// The generation and the state, if the grammar's mask has not been computed and is needed.
    fn unknown(&self) -> Option<(u32, StateId)> {
        if self.terminated || !self.prefix_left().is_empty() {
            return None;
        }
        let (generation, state) = self.here().ok()?;
        let known = generation.masker.is_known(state);
        (!known).then_some((generation.number, state))
    }

    /// Overwrites a bitmask row with the tokens that may come next. After the end these are the
    /// end tokens, so that a row of a batch that is done can be sampled from.
    pub fn fill_bitmask(&self, row: &mut [u32]) -> Result<(), EngineError> {
        if self.fill_known(row) {
            return Ok(());
        }
        self.fill_by_grammar(row)?;
        if self.canonical {
            self.restrict(row)?;
        }
        Ok(())
    }

    fn fill_by_grammar(&self, row: &mut [u32]) -> Result<(), EngineError> {
        let (generation, state) = self.here()?;
        let Generation { automaton, masker, .. } = &**generation;
        let left = self.prefix_left();
        if !left.is_empty() {
            row.fill(0);
            set_bits(row, &masker.prefixed(automaton, left, state)?);
        } else if masker.with_known(state, |mask| mask.fill(row)).is_none() {
            masker.compute(automaton, state)?.fill(row);
            self.compiled.settle(&generation);
        }
        Ok(())
    }

    /// Takes out of a mask what is not canonical, unless nothing would be left.
    fn restrict(&self, row: &mut [u32]) -> Result<(), EngineError> {
        let masks = self.compiled.engine.canonical_masks();
        let (Some(masks), Some((_, context)), Some(tracked)) =
            (masks, self.context(), &self.tracked)
        else {
            return Ok(());
        };
        match masks.restrict(&context, row) {
            Restricted::Canonical => {}
            Restricted::NothingLeft => {
                tracked.fallbacks.lock().nothing_left += 1;
                self.fill_by_grammar(row)?;
            }
            Restricted::Lost => tracked.fallbacks.lock().lost += 1,
        }
        Ok(())
    }

    /// The tokens that may come next, sorted; none after the end.
    pub fn allowed(&self) -> Result<Vec<TokenId>, EngineError> {
        if self.terminated {
            return Ok(Vec::new());
        }
        if self.canonical || !self.prefix_left().is_empty() {
            let mut row = vec![0; self.compiled.engine.vocabulary().mask_words()];
            self.fill_bitmask(&mut row)?;
            return Ok(bits(&row).collect());
        }
        let (generation, state) = self.here()?;
        let Generation { automaton, masker, .. } = &**generation;
        if let Some(tokens) = masker.with_known(state, |mask| mask.tokens()) {
            return Ok(tokens);
        }
        let tokens = masker.compute(automaton, state)?.tokens();
        self.compiled.settle(&generation);
        Ok(tokens)
    }
}

#[cfg(test)]
mod eviction_tests;
#[cfg(test)]
mod tests;
