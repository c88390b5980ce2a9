//! The start of a text: what comes before the grammar's text, and its part in the prompt.

use std::sync::Arc;

use parking_lot::Mutex;

use super::preamble::{Close, Opening, Preamble};
use super::{History, Matcher, MatcherError};
use crate::engine::{Compiled, Generation};
use ffwd_automaton::{StateId, Threads};
use ffwd_tokenizer::canonical::Trail;
use ffwd_tokenizer::vocabulary::TokenId;

/// The start of a text.
#[derive(Clone, Debug, Default)]
pub struct Beginning {
    /// Tokens before the first, which the grammar does not see.
    pub recent: Vec<TokenId>,
    /// Bytes before the text of the grammar, in the same tokens: those that were removed from the
    /// end of a prompt.
    pub prefix: Vec<u8>,
    /// The beginning of the grammar's text that the prompt already contains.
    pub prefill: Vec<u8>,
    /// Free text before all that.
    pub opening: Option<Opening>,
    /// Whether masks hold canonical tokens only.
    pub canonical: bool,
    /// The most tokens of the text, the end token included.
    pub max_tokens: Option<usize>,
}

impl Matcher {
    /// Fails if the grammar refuses the beginning of its text, if nothing could close the free
    /// text, or if no text ends within the budget.
    pub fn beginning(compiled: Arc<Compiled>, beginning: &Beginning) -> Result<Self, MatcherError> {
        let mut matcher = Self::unchecked(compiled);
        let engine = matcher.compiled.engine.clone();
        if let (Some(canonicality), Some(tracked)) = (engine.canonicality(), &mut matcher.tracked) {
            *tracked.trail.get_mut() = Trail::new(canonicality.after(&beginning.recent));
        }
        matcher.began = Some(Arc::new(beginning.clone()));
        matcher.prefix = beginning.prefix.as_slice().into();
        matcher.canonical = beginning.canonical;
        if let (true, Some(masks)) = (beginning.canonical, engine.canonical_masks()) {
            masks.prepare();
        }
        if let Some(opening) = &beginning.opening {
            let vocabulary = engine.vocabulary();
            let is_control = |token: TokenId| {
                let known = token.index() < vocabulary.width();
                known && vocabulary.text(token).is_empty() && !vocabulary.is_eos(token)
            };
            match &opening.close {
                Close::Text(text) if text.is_empty() => return Err(MatcherError::EmptyClose),
                Close::Text(_) => {}
                Close::Tokens(tokens) => {
                    let first = *tokens.first().ok_or(MatcherError::EmptyClose)?;
                    if !is_control(first) {
                        return Err(MatcherError::BadClose(first));
                    }
                    let is_text = |token: TokenId| !vocabulary.text(token).is_empty();
                    let bad = |&token: &TokenId| !is_text(token) && !is_control(token);
                    if let Some(bad) = tokens.iter().copied().find(bad) {
                        return Err(MatcherError::BadClose(bad));
                    }
                }
            }
            if let Some(bad) = opening.controls.iter().copied().find(|&token| !is_control(token)) {
                return Err(MatcherError::BadControl(bad));
            }
            let preamble = Preamble::new(vocabulary.clone(), opening.clone());
            matcher.stage = preamble.start();
            matcher.preamble = Some(Arc::new(preamble));
        }
        if !beginning.prefill.is_empty() {
            matcher.prefill = beginning.prefill.as_slice().into();
            let generation = matcher.compiled.generation();
            let start = matcher.start(&generation)?;
            matcher.history = Mutex::new(History::new(start));
            matcher.stand(&generation, start);
            if generation.automaton.has_limits() {
                matcher.begin_sections(&generation, start);
            }
            matcher.compiled.settle(&generation);
        }
        match beginning.max_tokens {
            Some(max_tokens) => matcher.limit(max_tokens)?,
            None => matcher.check_sections()?,
        }
        Ok(matcher)
    }

    /// The start of the text.
    pub fn began(&self) -> Beginning {
        self.began.as_deref().cloned().unwrap_or_default()
    }

    /// The state in which the grammar's text begins, or continues after its part in the prompt.
    pub(super) fn start(&self, generation: &Generation) -> Result<StateId, MatcherError> {
        let automaton = &generation.automaton;
        let start = automaton.start();
        if self.prefill.is_empty() {
            return Ok(start);
        }
        let mut threads = Threads::from_slice(automaton.threads(start));
        for (byte, &next) in self.prefill.iter().enumerate() {
            threads = automaton.limited().step(&threads, next)?;
            if threads.is_empty() {
                return Err(MatcherError::Prefill { byte });
            }
        }
        Ok(automaton.intern(automaton.limited().aged(&threads)?.threads)?)
    }
}
