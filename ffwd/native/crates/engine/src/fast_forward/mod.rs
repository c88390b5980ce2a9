//! Fast-forward tokens: forced tokens, for which the model is not called.
//!
//! Forced bytes come from the automaton, tokens from the tokenizer. They are combined in two ways.
//! *Exact* returns the longest token sequence shared by all canonical tokenizations of every
//! continuation. *Backoff*, as published, encodes the forced text together with the last token, and
//! drops tokens at its end that later text could change. These are the tokens of the longest suffix
//! that starts some longer token with which the grammar can continue. It needs only an encode
//! function, and may be wrong.

use thiserror::Error;

use crate::engine::{EncodeError, Generation};
use crate::matcher::{forced, Forced, GrammarTexts, Matcher};
use ffwd_automaton::{goes_on_within, Automaton, EngineError, Result, StateId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_tokenizer::canonical::{Canonicality, Choice, Context, ForcedOptions, LIKELY_BYTES};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// How forced text becomes tokens.
#[derive(Clone, Copy, Debug)]
pub struct FastForward {
    /// The most tokens to return.
    pub max_tokens: Option<usize>,
    /// How forced bytes become tokens.
    pub method: Method,
}

/// Which tokens count as forced.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// The longest token sequence shared by all canonical tokenizations of every continuation.
    Exact {
        /// Ignores tokens without a canonical continuation.
        look_ahead: bool,
    },
    /// The tokens of the forced text, without those at its end that a longer token could replace.
    Backoff(Backoff),
}

/// The tokens at the end of encoded text that are dropped.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The number of tokens at the end that are searched for a longer token; 0 drops none.
    pub tokens: usize,
    /// The number of bytes at the end, instead of tokens.
    pub bytes: Option<usize>,
    /// Drops every prefix of some longer token, even if the grammar does not allow that token.
    pub conservative: bool,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { tokens: 4, bytes: None, conservative: false }
    }
}

/// Why forced tokens cannot be computed.
#[derive(Clone, Debug, Error)]
pub enum FastForwardError {
    /// A limit is passed, or a schema that is expanded on demand is at fault.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The caller's encode function failed.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// [`Method::Backoff`] needs an encode function, and the engine has none.
    #[error("the vocabulary was made without an encode function, which forced tokens need")]
    NoEncoder,
    /// [`Method::Exact`] needs a tokenizer whose canonical tokens are known exactly.
    #[error(
        "the vocabulary's tokenizer is not compiled exactly, which the exact method needs: use the \
         backoff"
    )]
    NotExact,
}

/// The forced bytes, at most `max_bytes`; they end on a character boundary.
pub fn forced_bytes(matcher: &Matcher, max_bytes: usize) -> Result<Vec<u8>> {
    let (generation, state) = matcher.here()?;
    let bytes = forced(matcher, &generation.automaton, state, max_bytes)?.bytes;
    matcher.compiled().settle(&generation);
    Ok(bytes)
}

impl From<LimitExceeded> for FastForwardError {
    fn from(error: LimitExceeded) -> Self {
        Self::Engine(error.into())
    }
}

/// How much forced text is turned into tokens at once.
const MAX_FORCED_BYTES: usize = 1 << 16;

/// The forced tokens.
pub fn fast_forward_tokens(
    matcher: &Matcher,
    options: &FastForward,
) -> Result<Vec<TokenId>, FastForwardError> {
    match forced_at_once(matcher, options)? {
        Some(tokens) => Ok(tokens),
        None => forced_by_search(matcher, options),
    }
}

/// The forced tokens where they are known already, or where a cheap check shows that nothing is
/// forced.
pub fn forced_at_once(matcher: &Matcher, options: &FastForward) -> Result<Option<Vec<TokenId>>> {
    if matcher.is_in_free_text() {
        return Ok(Some(Vec::new()));
    }
    if let Some(token) = only_token(matcher)? {
        return Ok(Some(vec![token]));
    }
    let Method::Exact { look_ahead } = options.method else { return Ok(None) };
    let Some((canonicality, context)) = matcher.context() else { return Ok(None) };
    if matcher.is_terminated() || context.is_lost() {
        return Ok(Some(Vec::new()));
    }
    // While bytes of a prefix remain, the state alone does not determine the position.
    if !matcher.prefix_left().is_empty() {
        return Ok(None);
    }
    let compiled = matcher.compiled();
    let (generation, state) = matcher.here()?;
    let known = &generation.forced;
    let key = (state, context, look_ahead);
    if let Some(tokens) = known.get(&key) {
        compiled.counters.forced_hits.increment();
        return Ok(Some(within(matcher, options, tokens.to_vec())));
    }
    if let Some(rest) = matcher.forced_rest(look_ahead) {
        known.insert(key, &rest);
        compiled.settle(&generation);
        return Ok(Some(within(matcher, options, rest.to_vec())));
    }
    let is_open = is_open(matcher, &generation.automaton, state, (canonicality, &key.1))?;
    Ok(is_open.then(Vec::new))
}

/// The forced tokens where [`forced_at_once`] does not have them.
pub fn forced_by_search(
    matcher: &Matcher,
    options: &FastForward,
) -> Result<Vec<TokenId>, FastForwardError> {
    let tokens = match options.method {
        Method::Exact { look_ahead } => exact(matcher, ForcedOptions { look_ahead })?,
        Method::Backoff(backoff) => backed_off(matcher, &backoff)?,
    };
    Ok(within(matcher, options, tokens))
}

/// The first tokens, as many as the options and the matcher's budget allow.
fn within(matcher: &Matcher, options: &FastForward, mut tokens: Vec<TokenId>) -> Vec<TokenId> {
    if let Some(max) = options.max_tokens {
        tokens.truncate(max);
    }
    if matcher.is_bounded() {
        // The tokenizer's own tokens may exceed the budget.
        let in_time = matcher.validate(&tokens).unwrap_or(0);
        tokens.truncate(in_time);
    }
    tokens
}

/// Returns the only allowed token, if it must be taken as a whole.
fn only_token(matcher: &Matcher) -> Result<Option<TokenId>> {
    if matcher.is_terminated() || !matcher.prefix_left().is_empty() {
        return Ok(None);
    }
    let (generation, state) = matcher.here()?;
    let automaton = &generation.automaton;
    if !automaton.has_tokens() {
        return Ok(None);
    }
    let threads = automaton.threads(state);
    // Other tokens may encode a text.
    let is_whole = |token: &TokenId| matcher.compiled().engine.vocabulary().text(*token).is_empty();
    Ok(automaton.only_token(threads)?.map(TokenId).filter(is_whole))
}

/// The method that a vocabulary's tokenizer allows.
pub fn default_method(matcher: &Matcher) -> Method {
    match matcher.compiled().engine.canonicality() {
        Some(_) => Method::Exact { look_ahead: true },
        None => Method::Backoff(Backoff::default()),
    }
}

fn exact(matcher: &Matcher, options: ForcedOptions) -> Result<Vec<TokenId>, FastForwardError> {
    let (canonicality, context) = matcher.context().ok_or(FastForwardError::NotExact)?;
    if matcher.is_terminated() || context.is_lost() {
        return Ok(Vec::new());
    }
    let compiled = matcher.compiled();
    let (generation, state) = matcher.here()?;
    let Generation { automaton, forced: known, .. } = &**generation;
    let key = (state, context, options.look_ahead);
    let keeps = matcher.prefix_left().is_empty();
    let Forced { bytes, threads } = forced(matcher, automaton, state, MAX_FORCED_BYTES)?;
    let vocabulary = compiled.engine.vocabulary();
    let has = |token: TokenId| !vocabulary.text(token).is_empty();
    let choice = Choice { trie: vocabulary.trie(), has: &has };
    let language = GrammarTexts(automaton);
    let force = |context: &Context| {
        canonicality.forced(choice, context, &bytes, &language, &threads, options)
    };
    let found = force(&key.1)?;
    let keeps = keeps && found.is_some();
    let tokens = match found {
        Some(tokens) => tokens,
        // If a prompt ends within a word, no text continues its tokens with any of these texts: the
        // text starts again, as after a special token.
        None if matcher.tokens().is_empty() => force(&canonicality.start())?.unwrap_or_default(),
        None => Vec::new(),
    };
    if keeps {
        known.insert(key, &tokens);
        // Limits of tokens may end a part of the text before all of them.
        if tokens.len() > 1 && !matcher.is_bounded() && !automaton.has_limits() {
            matcher.keep_forced(options.look_ahead, &tokens);
        }
    }
    compiled.settle(&generation);
    Ok(tokens)
}

/// Returns whether at least two continuations of a state are clearly allowed: the end, or byte
/// tokens.
fn is_open(
    matcher: &Matcher,
    automaton: &Automaton,
    state: StateId,
    (canonicality, context): (&Canonicality, &Context),
) -> Result<bool> {
    // A token that is taken as a whole may be the only one: not decided here.
    if automaton.has_tokens() {
        return Ok(false);
    }
    if automaton.is_accepting(state) && canonicality.can_end(context) {
        return Ok(true);
    }
    let trie = matcher.compiled().engine.vocabulary().trie();
    let threads = automaton.threads(state);
    let may_follow =
        |byte| trie.token_of_byte(byte).is_some_and(|token| canonicality.continues(context, token));
    let mut one = None;
    // A byte within a lexeme needs no state after it.
    for &byte in LIKELY_BYTES {
        if goes_on_within(automaton, threads, byte)?
            && may_follow(byte)
            && one.replace(byte).is_some()
        {
            return Ok(true);
        }
    }
    if automaton.only_byte(threads)?.is_some() {
        return Ok(false);
    }
    for &byte in LIKELY_BYTES {
        if one != Some(byte)
            && may_follow(byte)
            && automaton.may_come(threads, byte)?
            && one.replace(byte).is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn backed_off(matcher: &Matcher, backoff: &Backoff) -> Result<Vec<TokenId>, FastForwardError> {
    let engine = &matcher.compiled().engine;
    if !engine.has_encoder() {
        return Err(FastForwardError::NoEncoder);
    }
    let (generation, state) = matcher.here()?;
    let Generation { automaton, masker, .. } = &**generation;
    let Forced { bytes, threads } = forced(matcher, automaton, state, MAX_FORCED_BYTES)?;
    let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(Vec::new()) };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let vocabulary = engine.vocabulary();
    let mut tokens = encode_after(matcher, text)?;
    let cut = leave_out(vocabulary, &tokens, backoff, |suffix| {
        masker.has_extension(automaton, (!backoff.conservative).then_some(&threads), suffix)
    })?;
    tokens.truncate(tokens.len() - cut);
    // The tokenizer's result is used only as far as the grammar accepts it.
    let valid = matcher.validate(&tokens).unwrap_or(0);
    tokens.truncate(valid);
    Ok(tokens)
}

/// Encodes text in the context of the last token if that token stays unchanged; otherwise alone.
fn encode_after(matcher: &Matcher, text: &str) -> Result<Vec<TokenId>, FastForwardError> {
    let engine = &matcher.compiled().engine;
    if let Some(&last) = matcher.tokens().last() {
        let before = engine.vocabulary().text(last);
        if let Ok(before) = std::str::from_utf8(before) {
            let joined = format!("{before}{text}");
            let tokens = engine.encode(&joined)?.ok_or(FastForwardError::NoEncoder)?;
            if tokens.first() == Some(&last) {
                return Ok(tokens[1..].to_vec());
            }
        }
    }
    let tokens = engine.encode(text)?.ok_or(FastForwardError::NoEncoder)?;
    Ok(tokens.to_vec())
}

/// How many tokens at the end could change with more text.
fn leave_out(
    vocabulary: &Vocabulary,
    tokens: &[TokenId],
    backoff: &Backoff,
    mut goes_on: impl FnMut(&[u8]) -> Result<bool>,
) -> Result<usize> {
    let mut tail: Vec<u8> = Vec::new();
    let looked_at = match backoff.bytes {
        Some(_) => tokens.len(),
        None => backoff.tokens.min(tokens.len()),
    };
    for &token in &tokens[tokens.len() - looked_at..] {
        tail.extend_from_slice(vocabulary.text(token));
    }
    let most = backoff.bytes.unwrap_or(tail.len()).min(vocabulary.max_token_bytes());
    let from = tail.len().saturating_sub(most);
    for start in from..tail.len() {
        if !goes_on(&tail[start..])? {
            continue;
        }
        let covered = tail.len() - start;
        let mut length = 0;
        for (count, &token) in tokens.iter().rev().enumerate() {
            length += vocabulary.text(token).len();
            if length >= covered {
                return Ok(count + 1);
            }
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests;
