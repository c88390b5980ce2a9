//! The state of one sequence in a grammar.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use arc_swap::Guard;
use parking_lot::Mutex;
use thiserror::Error;

use crate::engine::{Compiled, Generation};
use ffwd_automaton::{EngineError, Result, StateId, Threads};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::limits::Limits;
use ffwd_bounds::meter::{self, Cancellation, Meter};
use ffwd_grammar::Described;
use ffwd_tokenizer::canonical::{Canonicality, Context, Trail};
use ffwd_tokenizer::vocabulary::TokenId;

mod batch;
mod begin;
mod budget;
mod cuts;
mod events;
mod forced;
mod history;
mod live;
mod masks;
mod preamble;
mod rollback;
mod sections;
mod step;
pub(crate) use batch::{compute_unknown, helping};
pub use batch::{fill_bitmasks, Unfilled};
pub use begin::Beginning;
use budget::Budget;
use events::Tracker;
use forced::ForcedAhead;
pub(crate) use forced::{forced, Forced, GrammarTexts};
use history::History;
pub use masks::ComputedMask;
pub use preamble::{Close, Opening};
use preamble::{Preamble, Rest, Stage, Step};
use sections::{settled, Settled};

/// When full, grow by this fraction of the current length.
const TOKENS_GROWTH: usize = 32;

/// An error of a caller.
#[derive(Clone, Debug, Error)]
pub enum MatcherError {
    /// A token id is not less than the width of the vocabulary.
    #[error("token {token} at position {position} is outside the vocabulary of {width} ids")]
    OutOfRange {
        /// The id that was given.
        token: TokenId,
        /// How many tokens come before it.
        position: usize,
        /// How many ids the vocabulary has.
        width: usize,
    },
    /// An end token has been accepted already.
    #[error("token {token} at position {position} comes after the end of the sequence")]
    AfterEnd {
        /// The token that came after it.
        token: TokenId,
        /// How many tokens come before it, the end token included.
        position: usize,
    },
    /// More tokens were to be removed than were accepted.
    #[error("cannot roll back {asked} tokens: only {accepted} have been accepted")]
    RollbackTooFar {
        /// How many were to be removed.
        asked: usize,
        /// How many have been accepted.
        accepted: usize,
    },
    /// [`Beginning::prefill`] begins no text of the grammar.
    #[error("the grammar refuses the beginning of its text at byte {byte}")]
    Prefill {
        /// How many of its bytes the grammar takes.
        byte: usize,
    },
    /// [`Opening::close`] has no token, or no byte.
    #[error("what closes the free text must not be empty")]
    EmptyClose,
    /// The first token of [`Close::Tokens`] has text, or one of them cannot be used.
    #[error(
        "token {0} cannot close the free text: it is text where it begins the close, ends the \
         output, or is outside the vocabulary"
    )]
    BadClose(TokenId),
    /// A token of [`Opening::controls`] has text, ends the output or does not exist.
    #[error(
        "token {0} is no control token of free text: it is text, ends the output, or is outside \
         the vocabulary"
    )]
    BadControl(TokenId),
    /// No text of the grammar fits [`Beginning::max_tokens`].
    #[error(
        "`max_tokens={max_tokens}` is too small: no text of the grammar ends within it, and a short \
         one needs {needed} tokens"
    )]
    Budget {
        /// How many tokens a short text takes, its end token included.
        needed: usize,
        /// How many the caller allows.
        max_tokens: usize,
    },
    /// The events of a span are undefined, because its start is.
    #[error(
        "the span {name:?} wraps a left-recursive rule that can start with the span, so its start is \
         undefined: wrap a rule that cannot start with it"
    )]
    Unreported {
        /// The name of the span.
        name: Arc<str>,
    },
    /// A part of the grammar has no text within its limit of tokens.
    #[error(
        "{part} cannot end within its limit of {max_tokens} tokens: a short text of it takes {needed}"
    )]
    Part {
        /// The part, and its position in the source.
        part: Described,
        /// How many tokens a short text of it takes.
        needed: usize,
        /// Its limit.
        max_tokens: usize,
    },
    /// No text keeps to the limits of the grammar's parts, although each part alone could.
    #[error(
        "{part} has at most {max_tokens} tokens, and none of its texts can end there. \
         Terminals end at their longest match, so the next part cannot begin earlier. \
         Allow another number of tokens, change the next part, or make this one lazy"
    )]
    Ends {
        /// The first part with a limit, and its position in the source.
        part: Described,
        /// Its limit.
        max_tokens: usize,
    },
    /// A limit is passed, or a schema that is expanded on demand is at fault.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<LimitExceeded> for MatcherError {
    fn from(error: LimitExceeded) -> Self {
        Self::Engine(error.into())
    }
}

/// Counts of masks that could not be restricted to canonical tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fallbacks {
    /// No token of the grammar was canonical.
    pub nothing_left: u64,
    /// The earlier tokens were not canonical, so nothing was known.
    pub lost: u64,
}

/// The state of a matcher besides the grammar's.
#[derive(Debug)]
struct Tracked {
    trail: Mutex<Trail>,
    fallbacks: Mutex<Fallbacks>,
    ahead: Mutex<Option<ForcedAhead>>,
}

impl Clone for Tracked {
    fn clone(&self) -> Self {
        Self {
            trail: Mutex::new(self.trail.lock().clone()),
            fallbacks: Mutex::new(*self.fallbacks.lock()),
            ahead: Mutex::new(self.ahead.lock().clone()),
        }
    }
}

/// Generation and state in one word.
fn pack(generation: &Generation, state: StateId) -> u64 {
    u64::from(generation.number) << 32 | u64::from(state.0)
}

/// The state, if it belongs to this generation.
#[inline]
fn state_in(generation: &Generation, place: u64) -> Option<StateId> {
    (place >> 32 == u64::from(generation.number)).then_some(StateId(place as u32))
}

/// The position of a sequence: everything that the next token depends on.
#[derive(Clone, Copy, Debug)]
struct Place {
    state: StateId,
    /// How many bytes of the prefix have been read.
    read: usize,
    stage: Stage,
}

/// The start of the grammar's text, or of its prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Begun {
    /// How many tokens come before; the last of them may also have bytes of the grammar's text.
    tokens: usize,
    /// How many bytes of that last token come before.
    rest: usize,
}

/// Follows one sequence of tokens through a grammar.
#[derive(Debug)]
pub struct Matcher {
    compiled: Arc<Compiled>,
    tokens: Vec<TokenId>,
    /// The position: the generation of the grammar, and a state of it.
    place: AtomicU64,
    /// The states after some or all tokens, in the same generation. Locked only when the text moves
    /// to another generation during a query.
    history: Mutex<History>,
    /// Whether the text may end in this state.
    accepting: bool,
    terminated: bool,
    prefix: Arc<[u8]>,
    /// How many bytes of the prefix have been read.
    read: usize,
    prefill: Arc<[u8]>,
    preamble: Option<Arc<Preamble>>,
    stage: Stage,
    begun: Begun,
    canonical: bool,
    budget: Option<Budget>,
    tracked: Option<Tracked>,
    /// The start of the text, unless it is the grammar's first byte.
    began: Option<Arc<Beginning>>,
    /// The events of its spans, from the first request on.
    events: Option<Box<Tracker>>,
    cancellation: Option<Cancellation>,
    /// The limits of its calls, if not those of the grammar.
    limits: Option<Arc<Limits>>,
}

impl Clone for Matcher {
    fn clone(&self) -> Self {
        // Both belong together, and a query of the other matcher may be moving it.
        let history = self.history.lock();
        let place = self.place.load(Ordering::Acquire);
        Self {
            compiled: self.compiled.clone(),
            tokens: self.tokens.clone(),
            place: AtomicU64::new(place),
            history: Mutex::new(history.clone()),
            prefix: self.prefix.clone(),
            prefill: self.prefill.clone(),
            preamble: self.preamble.clone(),
            budget: self.budget.clone(),
            tracked: self.tracked.clone(),
            began: self.began.clone(),
            events: self.events.clone(),
            cancellation: self.cancellation.clone(),
            limits: self.limits.clone(),
            ..*self
        }
    }
}

impl Matcher {
    /// Makes a matcher for a text that starts with the grammar's first byte.
    ///
    /// # Errors
    /// Parts of the text have limits of tokens, and no text keeps to them; or a limit of the call
    /// is exceeded.
    pub fn new(compiled: Arc<Compiled>) -> Result<Self, MatcherError> {
        let matcher = Self::unchecked(compiled);
        matcher.check_sections()?;
        Ok(matcher)
    }

    /// It is not known yet whether the text can keep to the limits of its parts.
    fn unchecked(compiled: Arc<Compiled>) -> Self {
        let generation = compiled.generation();
        let start = generation.automaton.start();
        let place = pack(&generation, start);
        let accepting = generation.automaton.is_accepting(start);
        let tracked = compiled.engine.canonicality().map(|canonicality| Tracked {
            trail: Mutex::new(Trail::new(canonicality.start())),
            fallbacks: Mutex::default(),
            ahead: Mutex::default(),
        });
        let mut matcher = Self {
            tokens: Vec::new(),
            place: AtomicU64::new(place),
            history: Mutex::new(History::new(start)),
            accepting,
            terminated: false,
            prefix: Arc::default(),
            read: 0,
            prefill: Arc::default(),
            preamble: None,
            stage: Stage::Grammar,
            begun: Begun::default(),
            canonical: false,
            budget: None,
            tracked,
            began: None,
            events: None,
            cancellation: None,
            limits: None,
            compiled,
        };
        if generation.automaton.has_limits() {
            matcher.begin_sections(&generation, start);
        }
        matcher
    }

    /// Sets a flag that ends calls on this text, and on its forks.
    pub fn cancelled_by(mut self, cancellation: Option<Cancellation>) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// Sets limits for calls on this text, and on its forks.
    pub fn limited_by(mut self, limits: Limits) -> Self {
        self.limits = Some(Arc::new(limits));
        self
    }

    /// Returns the meter of one call.
    pub fn meter(&self) -> Meter {
        let limits = self.limits.as_deref().unwrap_or_else(|| self.compiled.limits());
        Meter::calling(limits, self.cancellation.clone())
    }

    /// Makes one call within the limits of the grammar.
    ///
    /// # Errors
    /// Those of the call, and what limit it has passed.
    pub fn bounded<T, E: From<LimitExceeded>>(
        &self,
        call: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let done = self.meter().run(|| call(self));
        self.compiled.settle_after(done)
    }

    /// As [`Self::bounded`], for a call that changes the text.
    ///
    /// # Errors
    /// As there.
    pub fn bounded_mut<T, E: From<LimitExceeded>>(
        &mut self,
        call: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let done = self.meter().run(|| call(self));
        self.compiled.settle_after(done)
    }

    /// The grammar that it follows.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// The tokens accepted so far, an end token included.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Returns the current generation, and the sequence's state in it. A call must take everything
    /// from one generation.
    #[inline]
    pub(crate) fn here(&self) -> Result<(Guard<Arc<Generation>>, StateId)> {
        let generation = self.compiled.generation();
        match state_in(&generation, self.place.load(Ordering::Acquire)) {
            Some(state) => Ok((generation, state)),
            None => self.move_to(generation),
        }
    }

    /// As [`Self::here`], if that takes no more than a look.
    #[inline]
    pub(crate) fn known_place(&self) -> Option<(Guard<Arc<Generation>>, StateId)> {
        let generation = self.compiled.generation();
        let state = state_in(&generation, self.place.load(Ordering::Acquire))?;
        Some((generation, state))
    }

    /// Finds the text's state in a generation that is new to it.
    #[cold]
    fn move_to(
        &self,
        generation: Guard<Arc<Generation>>,
    ) -> Result<(Guard<Arc<Generation>>, StateId)> {
        let mut history = self.history.lock();
        if let Some(state) = state_in(&generation, self.place.load(Ordering::Acquire)) {
            return Ok((generation, state));
        }
        *history = self.read_again(&generation, &self.tokens)?;
        let state = history.last();
        self.place.store(pack(&generation, state), Ordering::Release);
        Ok((generation, state))
    }

    /// The states of the first tokens in a generation that is new to the text. Only those that are
    /// stored are built.
    fn read_again(&self, generation: &Generation, tokens: &[TokenId]) -> Result<History> {
        let Generation { automaton, .. } = generation;
        let held = generation.memory_bytes().total();
        let start = match self.start(generation) {
            Ok(start) => start,
            Err(MatcherError::Engine(error)) => return Err(error),
            // The start is the same in every generation.
            Err(_) => automaton.start(),
        };
        let mut history = History::new(start);
        let mut threads = Threads::from_slice(automaton.threads(start));
        let mut prefix_left = self.prefix.len();
        let mut ages = self.budget.as_ref().map(|budget| budget.ages_after(0)).unwrap_or_default();
        for (position, &token) in tokens.iter().enumerate() {
            let text = self.text_at(position, token);
            let skipped = prefix_left.min(text.len());
            prefix_left -= skipped;
            let may_be_whole = self.may_be_whole(generation, position, token);
            let is_read = may_be_whole || skipped < text.len();
            // The call that accepted the token was charged for it.
            let next = meter::given_back(|| {
                let next = match may_be_whole {
                    true => automaton.limited().read(&threads, Some(token.0), text)?,
                    false => automaton.limited().read(&threads, None, &text[skipped..])?,
                };
                Ok::<_, EngineError>(match next {
                    Some(next) if automaton.has_limits() && is_read => {
                        let settled = settled(automaton, &next, &ages, position)?;
                        settled.map(|Settled { threads: next, ages: after, .. }| {
                            ages = after;
                            next
                        })
                    }
                    next => next,
                })
            })?;
            let Some(next) = next else {
                // The accepted texts are the same in every generation.
                debug_assert!(false, "token {token} at {position} was accepted before");
                return Err(LimitExceeded::new("reread_tokens", position).into());
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

    /// Returns the part of a position's token that belongs to the grammar's text or its prefix.
    fn text_at(&self, position: usize, token: TokenId) -> &[u8] {
        let text = self.compiled.engine.vocabulary().text(token);
        let is_before = self.stage != Stage::Grammar || position + 1 < self.begun.tokens;
        match position + 1 == self.begun.tokens {
            _ if is_before => &[],
            true => &text[text.len() - self.begun.rest.min(text.len())..],
            false => text,
        }
    }

    /// Returns the last bytes of the grammar's text, including its part in the prompt.
    pub(crate) fn text_tail(&self, most: usize) -> Vec<u8> {
        let mut tail: Vec<u8> = Vec::new();
        for (position, &token) in self.tokens.iter().enumerate().rev() {
            if tail.len() >= most {
                break;
            }
            tail.extend(self.text_at(position, token).iter().rev());
        }
        tail.extend(self.prefill.iter().rev().take(most.saturating_sub(tail.len())));
        tail.truncate(most);
        tail.reverse();
        tail
    }

    /// The rest of the text that closes the free text; `None` if tokens close it.
    pub(crate) fn free_text_close(&self) -> Option<Vec<u8>> {
        let Stage::Free(matched) = self.stage else { return None };
        match self.preamble.as_ref()?.rest(matched) {
            Rest::Text(text) => Some(text.to_vec()),
            Rest::Tokens(_) => None,
        }
    }

    /// How many of these bytes belong to the free text and its end; `None` if all do and the free
    /// text continues.
    pub(crate) fn free_text_length(&self, text: &[u8]) -> Option<usize> {
        self.preamble.as_ref()?.length(self.stage, text)
    }

    /// The state of the text, in its last generation.
    #[cfg(test)]
    pub fn state(&self) -> StateId {
        StateId(self.place.load(Ordering::Acquire) as u32)
    }

    /// Returns the state of the text in the current generation.
    pub fn current_state(&self) -> Result<StateId> {
        Ok(self.here()?.1)
    }

    /// Returns the bytes before the grammar's text that the tokens have not encoded yet.
    pub fn prefix_left(&self) -> &[u8] {
        &self.prefix[self.read..]
    }

    /// Whether the text may end here, or has ended.
    pub fn is_accepting(&self) -> bool {
        self.accepting && self.stage == Stage::Grammar && self.read == self.prefix.len()
    }

    /// Whether the text is in the free text before the grammar's, where nothing is forced.
    pub fn is_in_free_text(&self) -> bool {
        self.stage != Stage::Grammar
    }

    /// Whether a position is in the grammar's text, after all of the prefix.
    #[inline]
    fn is_in_text(&self, place: &Place) -> bool {
        place.read == self.prefix.len() && place.stage == Stage::Grammar
    }

    /// Returns the position for a state of the grammar.
    #[inline]
    fn place_in(&self, state: StateId) -> Place {
        Place { state, read: self.read, stage: self.stage }
    }

    /// Whether an end token has been accepted.
    pub fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// Accepts one token. Returns `false` and changes nothing if the grammar refuses it.
    pub fn accept(&mut self, token: TokenId) -> Result<bool, MatcherError> {
        let position = self.tokens.len();
        if self.terminated {
            return Err(MatcherError::AfterEnd { token, position });
        }
        let (generation, state) = self.here()?;
        let Some(next) = self.step(&generation, self.place_in(state), token, position)? else {
            return Ok(false);
        };
        self.take(&generation, (state, next), token)
    }

    /// As [`Self::accept`], if a cache look-up suffices; `None` otherwise.
    #[inline]
    pub fn accept_known(&mut self, token: TokenId) -> Option<Result<bool, MatcherError>> {
        if self.terminated || self.stage != Stage::Grammar || self.read != self.prefix.len() {
            return None;
        }
        if self.budget.is_some() {
            return None;
        }
        let generation = self.compiled.generation();
        let state = state_in(&generation, self.place.load(Ordering::Acquire))?;
        let Some(next) = generation.transitions.get(state, token)? else { return Some(Ok(false)) };
        let next = Place { state: next, ..self.place_in(state) };
        Some(self.take(&generation, (state, next), token))
    }

    /// Accepts a token that leads from a state to a position, if the rest fits the budget.
    #[inline]
    fn take(
        &mut self,
        generation: &Generation,
        (state, next): (StateId, Place),
        token: TokenId,
    ) -> Result<bool, MatcherError> {
        let position = self.tokens.len();
        let mut next = next;
        if let Some(course) = self.course() {
            let from = self.place_in(state);
            let after = self.course_after(generation, &from, course, position, token, next)?;
            let Some((place, course)) = after else { return Ok(false) };
            next = place;
            if let Some(budget) = &mut self.budget {
                budget.follow(position + 1, course, generation.automaton.has_limits());
            }
        }
        if self.tokens.len() == self.tokens.capacity() {
            // A long text must not hold twice the memory it needs.
            self.tokens.reserve_exact((self.tokens.len() / TOKENS_GROWTH).max(16));
        }
        self.tokens.push(token);
        self.history.get_mut().push(next.state);
        self.stand(generation, next.state);
        self.read = next.read;
        if self.stage != next.stage {
            self.enter(next.stage, token);
        }
        self.terminated =
            self.stage == Stage::Grammar && self.compiled.engine.vocabulary().is_eos(token);
        Ok(true)
    }

    /// A token has led to another position before the grammar's text, or into that text.
    #[cold]
    fn enter(&mut self, stage: Stage, token: TokenId) {
        let step = self.preamble.as_ref().map(|preamble| preamble.step(self.stage, token));
        if let Some(Step::Begins(rest)) = step {
            self.begun = Begun { tokens: self.tokens.len(), rest };
        }
        self.stage = stage;
    }

    /// Sets the state of the text, which becomes the last of its history.
    #[inline]
    fn stand(&mut self, generation: &Generation, state: StateId) {
        *self.place.get_mut() = pack(generation, state);
        self.accepting = generation.automaton.is_accepting(state);
    }

    /// Accepts all of the tokens, or none of them.
    pub fn accept_all(&mut self, tokens: &[TokenId]) -> Result<bool, MatcherError> {
        let before = self.tokens.len();
        for &token in tokens {
            let accepted = self.accept(token);
            if !matches!(accepted, Ok(true)) {
                let taken = self.tokens.len() - before;
                // Also after the call has exceeded a limit.
                meter::unmetered(|| self.rollback(taken))?;
                return accepted;
            }
        }
        Ok(true)
    }

    /// How many of the tokens, from the first on, the grammar accepts. Changes nothing.
    pub fn validate(&self, tokens: &[TokenId]) -> Result<usize, MatcherError> {
        let vocabulary = self.compiled.engine.vocabulary();
        let (generation, state) = self.here()?;
        let mut place = self.place_in(state);
        let mut terminated = self.terminated;
        let mut course = self.course().cloned();
        for (count, &token) in tokens.iter().enumerate() {
            if !terminated && course.is_none() && self.is_in_text(&place) {
                // The same as `step`, inlined for the most common case.
                if let Some(next) = generation.transitions.get(place.state, token) {
                    let Some(next) = next else { return Ok(count) };
                    place.state = next;
                    terminated = vocabulary.is_eos(token);
                    continue;
                }
            }
            let position = self.tokens.len() + count;
            match self.step(&generation, place, token, position)? {
                Some(next) if !terminated => match &course {
                    None => place = next,
                    Some(before) => {
                        let after =
                            self.course_after(&generation, &place, before, position, token, next)?;
                        let Some((next, after)) = after else { return Ok(count) };
                        place = next;
                        course = Some(after);
                    }
                },
                _ => return Ok(count),
            }
            terminated = vocabulary.is_eos(token);
        }
        Ok(tokens.len())
    }

    /// How many bytes of memory the matcher holds, without what it shares with others.
    pub fn memory_bytes(&self) -> usize {
        let tracked = |tracked: &Tracked| {
            let ahead = tracked.ahead.lock().as_ref().map_or(0, ForcedAhead::memory_bytes);
            tracked.trail.lock().memory_bytes() + ahead
        };
        std::mem::size_of::<Self>()
            + self.tokens.capacity() * std::mem::size_of::<TokenId>()
            + self.history.lock().memory_bytes()
            + self.tracked.as_ref().map_or(0, tracked)
            + self.events.as_ref().map_or(0, |events| events.memory_bytes())
    }

    /// The canonical tokens and the context so far, if they are known.
    pub(crate) fn context(&self) -> Option<(&Arc<Canonicality>, Context)> {
        let canonicality = self.compiled.engine.canonicality()?;
        let mut trail = self.tracked.as_ref()?.trail.lock();
        Some((canonicality, trail.after(canonicality, &self.tokens).clone()))
    }

    /// How many of the tokens so far are at positions that no tokenization of the text gives them.
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
}

#[cfg(test)]
mod test_begin;
#[cfg(test)]
mod test_budget;
#[cfg(test)]
mod test_eviction;
#[cfg(test)]
mod test_limit;
#[cfg(test)]
mod tests;
