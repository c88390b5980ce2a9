//! The forced bytes, and the canonical tokens that can start them.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Matcher;
use ffwd_automaton::{goes_on_within, Automaton, EngineError, Result, StateId, Threads};
use ffwd_tokenizer::canonical::Language;
use ffwd_tokenizer::vocabulary::TokenId;

/// Bytes that every continuation starts with.
#[derive(Debug, Default)]
pub struct Forced {
    pub bytes: Vec<u8>,
    /// The state of the automaton after them.
    pub threads: Threads,
}

/// The forced bytes, at most `max_bytes`; they end on a character boundary.
pub fn forced(
    matcher: &Matcher,
    automaton: &Automaton,
    state: StateId,
    max_bytes: usize,
) -> Result<Forced> {
    let mut threads = Threads::from_slice(automaton.threads(state));
    if matcher.is_terminated() || matcher.is_in_free_text() {
        return Ok(Forced::default());
    }
    let mut bytes = matcher.prefix_left().to_vec();
    // The last place between two characters.
    let mut boundary = (bytes.len(), threads.clone());
    while bytes.len() < max_bytes {
        let Some(byte) = automaton.only_byte(&threads)? else { break };
        threads = automaton.step(&threads, byte)?;
        bytes.push(byte);
        if std::str::from_utf8(&bytes[boundary.0..]).is_ok() {
            boundary = (bytes.len(), threads.clone());
        }
    }
    bytes.truncate(boundary.0);
    Ok(Forced { bytes, threads: boundary.1 })
}

/// Forced tokens that a text may go on with: those after the first few of them are forced, too.
#[derive(Clone, Debug)]
pub(super) struct ForcedAhead {
    /// How many tokens come before them.
    position: usize,
    look_ahead: bool,
    tokens: Arc<[TokenId]>,
}

impl ForcedAhead {
    pub fn position(&self) -> usize {
        self.position
    }

    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.tokens)
    }
}

impl Matcher {
    /// Keeps what is forced here, for the next tokens of the text.
    pub(crate) fn keep_forced(&self, look_ahead: bool, tokens: &[TokenId]) {
        let Some(tracked) = &self.tracked else { return };
        let position = self.tokens.len();
        *tracked.ahead.lock() = Some(ForcedAhead { position, look_ahead, tokens: tokens.into() });
    }

    /// What is left of the tokens that [`Self::keep_forced`] has kept, if the text has gone on with
    /// the first of them and anything is left.
    ///
    /// Every text from there on begins with all of them, so every text from here on begins with
    /// the rest. After the last of them something else may be forced.
    pub(crate) fn forced_rest(&self, look_ahead: bool) -> Option<Arc<[TokenId]>> {
        let ahead = self.tracked.as_ref()?.ahead.lock();
        let ahead = ahead.as_ref().filter(|ahead| ahead.look_ahead == look_ahead)?;
        let since = self.tokens.get(ahead.position..)?;
        let rest = ahead.tokens.strip_prefix(since)?;
        (!rest.is_empty() && !since.is_empty()).then(|| rest.into())
    }
}

/// The texts of a grammar.
pub struct GrammarTexts<'a>(pub &'a Automaton);

impl Language for GrammarTexts<'_> {
    type State = Threads;
    type Error = EngineError;

    fn step(&self, threads: &Threads, byte: u8) -> Result<Option<Threads>> {
        let next = self.0.step(threads, byte)?;
        Ok((!next.is_empty()).then_some(next))
    }

    fn may_come(&self, threads: &Threads, byte: u8) -> Result<bool> {
        self.0.may_come(threads, byte)
    }

    fn goes_on_within(&self, threads: &Threads, byte: u8) -> Result<bool> {
        goes_on_within(self.0, threads, byte)
    }

    fn list_bytes(&self, threads: &Threads, bytes: &mut SmallVec<[u8; 16]>) -> Result<bool> {
        self.0.list_bytes(threads, bytes)
    }

    fn may_end(&self, threads: &Threads) -> Result<bool> {
        // A text is split before a token that is taken as a whole as at its end.
        Ok(self.0.accepts(threads)? || !self.0.token_exits(threads)?.is_empty())
    }
}
