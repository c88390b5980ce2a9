//! Fast-forward tokens: what must come next, so that the model need not be asked.
//!
//! Forced bytes come from the automaton, tokens from the tokenizer. The forced text is encoded
//! together with the last token, and tokens at its end that could be cut otherwise once more text
//! follows are left out: those covered by the longest suffix that some longer token begins with,
//! and that the grammar lets go on so.

use thiserror::Error;

use crate::automaton::{EngineError, Threads};
use crate::engine::{Compiled, EncodeError};
use crate::matcher::Matcher;
use crate::vocabulary::{TokenId, Vocabulary};

/// How forced text becomes tokens.
#[derive(Clone, Copy, Debug)]
pub struct FastForward {
    /// The most tokens to return.
    pub max_tokens: Option<usize>,
    /// How many tokens from the end the search for a longer token begins; 0 leaves out none.
    pub backoff_tokens: usize,
    /// Instead of tokens: how many bytes from the end.
    pub backoff_bytes: Option<usize>,
    /// Leaves out whatever some longer token begins with, whether or not the grammar allows it.
    pub conservative: bool,
}

impl Default for FastForward {
    fn default() -> Self {
        Self { max_tokens: None, backoff_tokens: 4, backoff_bytes: None, conservative: false }
    }
}

#[derive(Clone, Debug, Error)]
pub enum FastForwardError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("the vocabulary was made without an encode function, which forced tokens need")]
    NoEncoder,
}

/// Bytes that must follow, whatever the rest of the text will be.
#[derive(Debug, Default)]
struct Forced {
    bytes: Vec<u8>,
    /// Where the automaton stands after them.
    threads: Threads,
}

/// The bytes that must come next, at most `max_bytes`; they end on a character boundary.
pub fn forced_bytes(matcher: &Matcher, max_bytes: usize) -> Result<Vec<u8>, EngineError> {
    Ok(forced(matcher, max_bytes)?.bytes)
}

fn forced(matcher: &Matcher, max_bytes: usize) -> Result<Forced, EngineError> {
    let automaton = &matcher.compiled().automaton;
    let mut threads: Threads = automaton.threads(matcher.state()).iter().copied().collect();
    if matcher.is_terminated() {
        return Ok(Forced::default());
    }
    let mut bytes = Vec::new();
    // The last place between two characters.
    let mut boundary = (0, threads.clone());
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

/// How much forced text is turned into tokens at once.
const MAX_FORCED_BYTES: usize = 1 << 16;

/// The tokens that must come next.
pub fn fast_forward_tokens(
    matcher: &Matcher,
    options: &FastForward,
) -> Result<Vec<TokenId>, FastForwardError> {
    let Compiled { engine, masker, automaton } = &**matcher.compiled();
    if !engine.has_encoder() {
        return Err(FastForwardError::NoEncoder);
    }
    let Forced { bytes, threads } = forced(matcher, MAX_FORCED_BYTES)?;
    let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(Vec::new()) };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let vocabulary = engine.vocabulary();
    let mut tokens = encode_after(matcher, text)?;
    let cut = leave_out(vocabulary, &tokens, options, |suffix| {
        masker.has_extension(automaton, (!options.conservative).then_some(&threads), suffix)
    })?;
    tokens.truncate(tokens.len() - cut);
    if let Some(max) = options.max_tokens {
        tokens.truncate(max);
    }
    // What the tokenizer says is believed only as far as the grammar takes it.
    let valid = matcher.validate(&tokens).unwrap_or(0);
    tokens.truncate(valid);
    Ok(tokens)
}

/// Encodes text as it comes after the last token, where that token stays what it is; else alone.
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

/// How many tokens at the end might be cut otherwise once more text follows.
fn leave_out(
    vocabulary: &Vocabulary,
    tokens: &[TokenId],
    options: &FastForward,
    mut goes_on: impl FnMut(&[u8]) -> Result<bool, EngineError>,
) -> Result<usize, EngineError> {
    let mut tail: Vec<u8> = Vec::new();
    let looked_at = match options.backoff_bytes {
        Some(_) => tokens.len(),
        None => options.backoff_tokens.min(tokens.len()),
    };
    for &token in &tokens[tokens.len() - looked_at..] {
        tail.extend_from_slice(vocabulary.text(token));
    }
    let most = options.backoff_bytes.unwrap_or(tail.len()).min(vocabulary.max_token_bytes());
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
