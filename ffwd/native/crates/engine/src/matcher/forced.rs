//! The forced bytes, and the canonical tokens that can start them.

use smallvec::SmallVec;

use super::Matcher;
use ffwd_automaton::{goes_on_within, Automaton, EngineError, Result, StateId, Threads};
use ffwd_tokenizer::canonical::Language;

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
