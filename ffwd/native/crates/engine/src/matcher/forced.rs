//! The forced bytes, and the canonical tokens that can start them.

use smallvec::SmallVec;

use super::Matcher;
use ffwd_automaton::{Automaton, EngineError, Result, StateId, Threads};
use ffwd_tokenizer::canonical::{Canonicality, Choice, Context, ForcedOptions, Language};
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

    fn list_bytes(&self, threads: &Threads, bytes: &mut SmallVec<[u8; 16]>) -> Result<bool> {
        self.0.list_bytes(threads, bytes)
    }

    fn may_end(&self, threads: &Threads) -> Result<bool> {
        // A text is split before a token that is taken as a whole as at its end.
        Ok(self.0.accepts(threads)? || !self.0.token_exits(threads)?.is_empty())
    }
}

/// How much forced text is examined to find the tokens that can start it: no dead end is further
/// away.
const MAX_LOOKED_AT: usize = 256;

impl Matcher {
    /// Returns the canonical tokens here that have no continuation: they encode the beginning of
    /// forced text, but no canonical tokens encode its rest and continue as the grammar allows.
    pub(super) fn dead_ends(
        &self,
        canonicality: &Canonicality,
        context: &Context,
    ) -> Result<SmallVec<[TokenId; 8]>> {
        if self.terminated || self.is_in_free_text() || context.is_lost() {
            return Ok(SmallVec::new());
        }
        let compiled = &self.compiled;
        let (generation, state) = self.here()?;
        let automaton = &generation.automaton;
        // While bytes of a prefix remain, the state alone does not determine the position.
        let keeps = self.prefix_left().is_empty();
        if keeps && automaton.only_byte(automaton.threads(state))?.is_none() {
            return Ok(SmallVec::new());
        }
        let key = (state, context.clone(), true);
        if let Some(tokens) = keeps.then(|| generation.dead_ends.get(&key)).flatten() {
            return Ok(SmallVec::from_slice(&tokens));
        }
        let Forced { bytes, threads } = forced(self, automaton, state, MAX_LOOKED_AT)?;
        let vocabulary = compiled.engine.vocabulary();
        let has = |token: TokenId| !vocabulary.text(token).is_empty();
        let choice = Choice { trie: vocabulary.trie(), has: &has };
        let language = GrammarTexts(automaton);
        let options = ForcedOptions { look_ahead: true };
        let dead = canonicality.dead_ends(choice, context, &bytes, &language, &threads, options)?;
        if keeps {
            generation.dead_ends.insert(key, &dead);
        }
        compiled.settle(&generation);
        Ok(dead.into())
    }
}
