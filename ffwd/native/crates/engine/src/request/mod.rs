//! A request of an inference engine: what the engine asks of it between two passes of the model.
//!
//! An engine differs from a caller of [`Matcher`] in what it expects. A token after the end, or one
//! outside the vocabulary, is refused and no error. A request can have stop tokens of its own. A limit
//! that is exceeded ends this request, not the engine: its row allows one token, and whatever comes
//! then is refused.

use std::sync::Arc;

use thiserror::Error;

use crate::fast_forward::{fast_forward_tokens, FastForward, FastForwardError, Method};
use crate::mask::token_set::{bits, TokenMask};
use crate::matcher::{Matcher, MatcherError};
use ffwd_automaton::EngineError;
use ffwd_bounds::error::LimitExceeded;
use ffwd_tokenizer::canonical::ContextId;
use ffwd_tokenizer::vocabulary::TokenId;

mod ahead;
mod row;
mod runs;
mod step;
mod tree;
pub use row::Held;
use row::StopsHere;
pub use runs::{forced_runs, ForcedRun, RunsWork, MAX_RUN};
pub use step::{fill_step, Bounds, Drafts, Outcome, RequestRows, StepWork};
pub use tree::{Malformed, Tree};

/// What went wrong in a request.
#[derive(Clone, Debug, Error)]
pub enum RequestError {
    /// A token could not be accepted or taken back.
    #[error(transparent)]
    Matcher(#[from] MatcherError),
    /// Forced tokens, or a mask, could not be found.
    #[error(transparent)]
    FastForward(#[from] FastForwardError),
}

impl From<LimitExceeded> for RequestError {
    fn from(error: LimitExceeded) -> Self {
        Self::Matcher(error.into())
    }
}

impl From<EngineError> for RequestError {
    fn from(error: EngineError) -> Self {
        Self::Matcher(error.into())
    }
}

/// A token as an engine names it. Any number is possible: engines pad with -1.
pub type GivenToken = i64;

/// One request of an inference engine.
#[derive(Clone, Debug)]
pub struct Request {
    matcher: Matcher,
    narrow: bool,
    stops: Arc<[TokenId]>,
    /// One of `stops` has been accepted; the matcher knows nothing of it.
    stopped: bool,
    /// How many tokens have been accepted after the end, which are ignored.
    after_end: usize,
    /// Why nothing more is accepted.
    refused: Option<String>,
    /// Drafts could not be taken back.
    is_lost: bool,
    /// The context after the first tokens, as far as it has been asked for.
    trail: Vec<ContextId>,
}

impl Request {
    /// Makes a request of a matcher.
    ///
    /// * `narrow`: For forced text, masks allow only the token with which the tokenizer encodes it.
    ///   It has no effect unless the vocabulary's tokenizer is compiled exactly.
    /// * `stops`: What ends the text beside the vocabulary's end tokens, where the text can end.
    pub fn new(
        matcher: Matcher,
        narrow: bool,
        stops: impl IntoIterator<Item = GivenToken>,
    ) -> Self {
        let engine = &matcher.compiled().engine;
        let vocabulary = engine.vocabulary();
        let known = |token: GivenToken| {
            let token = TokenId(u32::try_from(token).ok()?);
            (token.index() < vocabulary.width() && !vocabulary.is_eos(token)).then_some(token)
        };
        let mut stops: Vec<TokenId> = stops.into_iter().filter_map(known).collect();
        stops.sort_unstable();
        stops.dedup();
        let narrow = narrow && engine.canonicality().is_some();
        let mut trail = Vec::new();
        if matcher.tokens().is_empty() {
            if let (Some((_, contexts)), Some((_, context))) =
                (engine.contexts(), matcher.context())
            {
                trail.extend(contexts.id(&context));
            }
        }
        Self {
            matcher,
            narrow,
            stops: stops.into(),
            stopped: false,
            after_end: 0,
            refused: None,
            is_lost: false,
            trail,
        }
    }

    /// The matcher of its text, without a stop token of its own.
    pub fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// Why nothing more is accepted, if a limit was exceeded.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Whether an end token or a stop token has been accepted.
    pub fn is_terminated(&self) -> bool {
        self.stopped || self.matcher.is_terminated()
    }

    /// How many tokens have been accepted, those after the end too, and not taken back.
    pub fn num_tokens(&self) -> usize {
        self.matcher.tokens().len() + usize::from(self.stopped) + self.after_end
    }

    fn token(&self, token: GivenToken) -> Option<TokenId> {
        let token = TokenId(u32::try_from(token).ok()?);
        (token.index() < self.matcher.compiled().engine.vocabulary().width()).then_some(token)
    }

    /// As [`Self::accept`], where it takes no more than a look: `None` where it may take more.
    pub fn accept_known(&mut self, token: GivenToken) -> Option<bool> {
        if !self.stops.is_empty() || self.refused.is_some() {
            return None;
        }
        let token = self.token(token)?;
        self.matcher.accept_known(token)?.ok()
    }

    /// Accepts one token; `false`, and nothing changes, where it is refused.
    fn accept_one(&mut self, token: GivenToken) -> Result<bool, MatcherError> {
        if self.is_terminated() {
            return Ok(false);
        }
        let Some(token) = self.token(token) else { return Ok(false) };
        if self.matcher.is_accepting() && self.stops.contains(&token) {
            self.stopped = true;
            return Ok(true);
        }
        match self.matcher.accept_known(token) {
            Some(accepted) => accepted,
            None => self.matcher.bounded_mut(|matcher| matcher.accept(token)),
        }
    }

    /// Accepts tokens up to the first that is refused, or the end; how many were accepted.
    fn advance(&mut self, tokens: &[GivenToken]) -> (usize, Result<(), MatcherError>) {
        for (count, &token) in tokens.iter().enumerate() {
            match self.accept_one(token) {
                Ok(true) => {}
                Ok(false) => return (count, Ok(())),
                Err(error) => return (count, Err(error)),
            }
        }
        (tokens.len(), Ok(()))
    }

    /// Accepts all of the tokens, or none if one is refused. Tokens after the end are ignored.
    ///
    /// A limit that is exceeded refuses this token and all that come later.
    pub fn accept(&mut self, tokens: &[GivenToken]) -> bool {
        if self.refused.is_some() {
            return false;
        }
        let (count, done) = self.advance(tokens);
        if done.is_ok() && (count == tokens.len() || self.is_terminated()) {
            self.after_end += tokens.len() - count;
            return true;
        }
        if let Err(error) = done.and_then(|()| self.take_back(count)) {
            self.refused = Some(error.to_string());
        }
        false
    }

    /// How many of the tokens, from the first on, would be accepted. Changes nothing.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn validate(&mut self, tokens: &[GivenToken]) -> Result<usize, MatcherError> {
        if self.is_terminated() || self.refused.is_some() {
            return Ok(0);
        }
        if !self.stops.is_empty() {
            let (count, done) = self.advance(tokens);
            self.take_back(count)?;
            return done.map(|()| count);
        }
        let known: Vec<TokenId> = tokens.iter().map_while(|&token| self.token(token)).collect();
        self.matcher.bounded(|matcher| matcher.validate(&known))
    }

    /// Takes back the last tokens, the end included. Where the request stood then, no limit was
    /// exceeded: it accepts again.
    ///
    /// # Errors
    /// More tokens than were accepted, or a limit is exceeded.
    pub fn rollback(&mut self, count: usize) -> Result<(), MatcherError> {
        self.take_back(count)?;
        if count > 0 && !self.is_lost {
            self.refused = None;
        }
        Ok(())
    }

    fn take_back(&mut self, mut count: usize) -> Result<(), MatcherError> {
        let ignored = count.min(self.after_end);
        self.after_end -= ignored;
        count -= ignored;
        if count > 0 && self.stopped {
            self.stopped = false;
            count -= 1;
        }
        if count == 0 {
            return Ok(());
        }
        self.matcher.bounded_mut(|matcher| matcher.rollback(count))?;
        self.trail.truncate(self.matcher.tokens().len() + 1);
        Ok(())
    }

    /// Takes back all tokens, and accepts again.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn reset(&mut self) -> Result<(), MatcherError> {
        self.stopped = false;
        self.after_end = 0;
        self.refused = None;
        self.is_lost = false;
        self.trail.truncate(1);
        self.matcher.bounded_mut(Matcher::reset)
    }

    /// The tokens that must come next, up to a number of them, as long as only one is allowed.
    ///
    /// An end token is among them where the text can do nothing but end.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn forced(&mut self, max_tokens: usize) -> Result<Vec<TokenId>, RequestError> {
        if self.is_terminated() || self.refused.is_some() {
            return Ok(Vec::new());
        }
        let before = self.num_tokens();
        let mut tokens = match self.narrow {
            true => self.matcher.bounded(|matcher| forced_text(matcher, max_tokens))?,
            false => Vec::new(),
        };
        let found = self.follow_forced(&mut tokens, max_tokens);
        let accepted = self.num_tokens() - before;
        self.take_back(accepted)?;
        found.map(|()| tokens)
    }

    /// Accepts forced tokens; keeps those that are accepted, and adds what the masks force besides.
    fn follow_forced(
        &mut self,
        tokens: &mut Vec<TokenId>,
        max_tokens: usize,
    ) -> Result<(), RequestError> {
        for count in 0..tokens.len() {
            // Where the text can end, the request's own stop tokens may come, too.
            let may_stop = !self.stops.is_empty() && self.matcher.is_accepting();
            if may_stop || !self.accept_one(tokens[count].0.into())? {
                tokens.truncate(count);
                break;
            }
        }
        while tokens.len() < max_tokens && !self.is_terminated() {
            let is_end = self.matcher.is_accepting();
            // What is forced, narrow masks have been asked for; the end is no text.
            if self.narrow && !is_end || !self.stops.is_empty() && is_end {
                break;
            }
            let Some(only) = self.matcher.bounded(only_allowed)? else { break };
            if !self.accept_one(only.0.into())? {
                break;
            }
            tokens.push(only);
        }
        Ok(())
    }

    /// The one token that a narrow mask allows here.
    fn next_forced(&mut self) -> Result<Option<TokenId>, RequestError> {
        if !self.narrow {
            return Ok(None);
        }
        let key = self.context();
        let known = |matcher: &Matcher| {
            let (generation, state) = matcher.known_place()?;
            generation.first_forced.get(&(state, key?))
        };
        if let Some(token) = known(&self.matcher) {
            return Ok(token);
        }
        self.matcher.bounded(|matcher| {
            let place = key.map(|key| matcher.here().map(|place| (place, key))).transpose()?;
            let token = forced_text(matcher, 1)?.first().copied();
            if let Some(((generation, state), key)) = place {
                generation.first_forced.insert((state, key), token);
                matcher.compiled().settle(&generation);
            }
            Ok(token)
        })
    }

    /// Whether the state alone decides which texts may come next.
    fn is_by_state(&self) -> bool {
        let matcher = &self.matcher;
        let is_plain = !matcher.is_in_free_text() && matcher.prefix_left().is_empty();
        is_plain && !matcher.is_bounded() && !matcher.is_terminated()
    }

    /// The context by number, where forced tokens depend on it and on the state alone.
    fn context(&mut self) -> Option<ContextId> {
        let matcher = &self.matcher;
        let tokens = matcher.tokens();
        // At the start the tokens of the prompt matter, too.
        if !self.is_by_state() || tokens.is_empty() {
            return None;
        }
        let (canonicality, contexts) = matcher.compiled().engine.contexts()?;
        while self.trail.len() <= tokens.len() {
            let last = *self.trail.last()?;
            let token = *tokens.get(self.trail.len() - 1)?;
            self.trail.push(contexts.after(canonicality, last, token)?);
        }
        self.trail.last().copied()
    }

    /// Writes the allowed tokens into a row; after the end these are the end tokens.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn fill(&mut self, row: &mut [u32], held: &mut Held) -> Result<(), RequestError> {
        if let Some(token) = self.next_forced()? {
            held.write_only(row, token, self.stops_here());
            return Ok(());
        }
        if self.fill_known(row, held) {
            return Ok(());
        }
        let matcher = &self.matcher;
        matcher.bounded(|matcher| matcher.fill_bitmask(row))?;
        let stops = self.stops_here();
        *held = Held::default();
        stops.apply(row);
        Ok(())
    }

    /// As [`Self::fill`], where it takes no more than a look; else `false`.
    fn fill_if_known(&mut self, row: &mut [u32], held: &mut Held) -> bool {
        if self.narrow {
            let Some(key) = self.context() else { return false };
            let Some((generation, state)) = self.matcher.known_place() else { return false };
            match generation.first_forced.get(&(state, key)) {
                None => return false,
                Some(None) => {}
                Some(Some(token)) => {
                    held.write_only(row, token, self.stops_here());
                    return true;
                }
            }
        }
        self.fill_known(row, held)
    }

    fn fill_known(&self, row: &mut [u32], held: &mut Held) -> bool {
        let stops = self.stops_here();
        self.matcher.with_known_mask(|mask| held.write_mask(row, mask, stops)).is_some()
    }

    fn stops_here(&self) -> StopsHere<'_> {
        StopsHere { tokens: &self.stops, may_end: self.matcher.is_accepting() }
    }

    /// A limit was exceeded where the mask is needed: allows one token, and refuses what comes.
    fn refuse(&mut self, row: &mut [u32], held: &mut Held, error: &RequestError) {
        self.allow_one(row, held);
        self.refused = Some(error.to_string());
    }

    /// Allows one token: a row that allows none makes sampling undefined.
    fn allow_one(&self, row: &mut [u32], held: &mut Held) {
        let vocabulary = self.matcher.compiled().engine.vocabulary();
        // Not one that ends the text: engines hold it back until there are enough tokens. Nor the
        // first, with which they pad drafts.
        let ends = |token: &TokenId| vocabulary.is_eos(*token) || self.stops.contains(token);
        let token = (0..vocabulary.width() as u32).rev().map(TokenId).find(|token| !ends(token));
        TokenMask::only(token.unwrap_or(TokenId(0))).fill(row);
        *held = Held::default();
    }
}

/// Without a look ahead: with it a token or two in a hundred more are forced, and finding them takes
/// several times as long where a grammar is new.
fn forced_text(matcher: &Matcher, max_tokens: usize) -> Result<Vec<TokenId>, RequestError> {
    let method = Method::Exact { look_ahead: false };
    let options = FastForward { max_tokens: Some(max_tokens), method };
    Ok(fast_forward_tokens(matcher, &options)?)
}

/// The token that a mask allows, if it is the only one.
fn only_allowed(matcher: &Matcher) -> Result<Option<TokenId>, RequestError> {
    let mut row = vec![0; matcher.compiled().engine.vocabulary().mask_words()];
    matcher.fill_bitmask(&mut row)?;
    let mut allowed = bits(&row);
    Ok(allowed.next().filter(|_| allowed.next().is_none()))
}
