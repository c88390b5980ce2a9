//! Forced tokens after each token that may be sampled next.
//!
//! An engine that plans ahead begins a pass before it knows the token sampled in the pass before. So
//! it asks beforehand: if this token is sampled, which tokens are forced after it? Narrow rows allow
//! one token, and small masks are enumerated. After larger ones only common tokens of JSON are tried.

use std::sync::Arc;

use super::{GivenToken, Request, RequestError};
use crate::fast_forward::forced_bytes;
use crate::mask::token_set::{bits, has_bit};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// Masks with no more tokens are enumerated.
const FEW_TOKENS: usize = 64;
/// The most tokens of a run.
pub const MAX_RUN: usize = 32;

/// What padding stands for among drafts.
const PADDING: GivenToken = -1;

/// Tokens of JSON after which text is often forced.
const COMMON: [&str; 80] = [
    "\"", "\",", "\",\"", "\":", "\":\"", "\":{", "\":{\"", "\":[", "\":[\"", "\":[{", "\":[{\"",
    "\"}", "\"},", "\"},\"", "\"},{", "\"},{\"", "\"}}", "\"}},", "\"}]", "\"}],", "\"}],\"",
    "\"}]}", "\"]", "\"],", "\"],\"", "\"]}", "\"]},", "{", "{\"", "{}", "}", "},", "},\"", "},{",
    "},{\"", "}}", "}},", "}},\"", "}]", "}],", "}],\"", "}]}", "[", "[\"", "[{", "[{\"", "[]",
    "]", "],", "],\"", "],[", "]]", "]}", "]},", "]},{\"", "[],\"", "{},\"", ",", ",\"", ":",
    ":\"", " \"", "\": ", "\",\n", "\"\n", ",\n", "{\n", "[\n", "}\n", "},\n", "]\n", "],\n", "\n",
    " ", "true", "null", ".\"", ".\",", ".\",\"", ".\"}",
];

/// Tokens that are forced if another one is sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedRun {
    /// After how many drafts `token` is sampled.
    pub row: usize,
    /// What is sampled.
    pub token: TokenId,
    /// What is forced then; not empty.
    pub run: Vec<TokenId>,
}

/// One request of a step whose forced tokens are wanted.
#[derive(Debug)]
pub struct RunsWork<'w> {
    /// The request; it is in the same state afterwards.
    pub request: &'w mut Request,
    /// What is verified in this pass, up to padding.
    pub drafts: &'w [GivenToken],
    /// The grammar reads the drafts from this one on.
    pub grammar_start: usize,
    /// The rows from this one on are masked.
    pub constraint_start: usize,
    /// Whether runs may contain end tokens.
    pub may_end: bool,
}

/// Returns the forced runs of each request, of at most so many tokens each, and at most [`MAX_RUN`].
///
/// A sample that a draft already names has no entry. Where a limit is exceeded entries are missing:
/// they save time only, and whoever needs the mask is told.
pub fn forced_runs(work: &mut [RunsWork<'_>], max_tokens: usize) -> Vec<Vec<ForcedRun>> {
    work.iter_mut().map(|work| work.runs(max_tokens.min(MAX_RUN))).collect()
}

impl RunsWork<'_> {
    fn runs(&mut self, max_tokens: usize) -> Vec<ForcedRun> {
        let mut found = Vec::new();
        if max_tokens == 0 || self.request.refused().is_some() {
            return found;
        }
        let before = self.request.num_tokens();
        for row in 0..=self.drafts.len() {
            let draft = self.drafts.get(row).copied();
            if row >= self.constraint_start {
                self.runs_of_row(row, draft, max_tokens, &mut found);
            }
            let Some(token) = draft else { break };
            if token == PADDING {
                break;
            }
            let is_read = row >= self.grammar_start;
            if is_read && !matches!(self.request.accept_one(token), Ok(true)) {
                break;
            }
        }
        let accepted = self.request.num_tokens() - before;
        if let Err(error) = self.request.rollback(accepted) {
            self.request.refused = Some(error.to_string());
        }
        found
    }

    fn runs_of_row(
        &mut self,
        row: usize,
        draft: Option<GivenToken>,
        max_tokens: usize,
        found: &mut Vec<ForcedRun>,
    ) {
        let request = &mut *self.request;
        let Ok(openers) = request.openers() else { return };
        for &token in openers.iter() {
            // Such a sample would be the draft, accepted; and stop tokens end the text, or are masked.
            if draft == Some(token.0.into()) || request.stops.contains(&token) {
                continue;
            }
            let run = match request.run_after(token) {
                Ok(run) => run,
                Err(error) => {
                    request.refused = Some(error.to_string());
                    return;
                }
            };
            let vocabulary = request.matcher.compiled().engine.vocabulary();
            let may_follow = |token: &TokenId| self.may_end || !vocabulary.is_eos(*token);
            let run: Vec<TokenId> =
                run.into_iter().take(max_tokens).take_while(may_follow).collect();
            if !run.is_empty() {
                found.push(ForcedRun { row, token, run });
            }
        }
    }
}

impl Request {
    /// The tokens that may come next, and after which something may be forced.
    fn openers(&mut self) -> Result<Arc<[TokenId]>, RequestError> {
        let none = || Ok([].into());
        if self.is_terminated() {
            return none();
        }
        if let Some(token) = self.next_forced()? {
            return Ok([token].into());
        }
        if !self.is_by_state() {
            return none();
        }
        if let Some((generation, state)) = self.matcher.known_place() {
            if let Some(tokens) = generation.openers.get(&(state, self.narrow)) {
                return Ok(tokens);
            }
        }
        // All requests share what is found, and each has stop tokens of its own.
        let stops = std::mem::replace(&mut self.stops, Arc::new([]));
        let found = self.find_openers();
        self.stops = stops;
        found
    }

    fn find_openers(&mut self) -> Result<Arc<[TokenId]>, RequestError> {
        let (generation, state) = self.matcher.bounded(|matcher| matcher.here())?;
        let vocabulary = self.matcher.compiled().engine.vocabulary().clone();
        let mut row = vec![0; vocabulary.mask_words()];
        self.matcher.bounded(|matcher| matcher.fill_bitmask(&mut row))?;
        let mut tokens: Vec<TokenId> = bits(&row).take(FEW_TOKENS + 1).collect();
        if tokens.len() > FEW_TOKENS {
            tokens = common_tokens(&vocabulary).filter(|&token| has_bit(&row, token)).collect();
        }
        let mut kept = Vec::new();
        for token in tokens {
            if !vocabulary.is_eos(token) && self.after(token, Self::may_force)? == Some(true) {
                kept.push(token);
            }
        }
        generation.openers.insert((state, self.narrow), &kept);
        self.matcher.compiled().settle(&generation);
        Ok(kept.into())
    }

    /// Whether text is forced here, or a token, whatever the tokens before. The end counts with
    /// narrow masks; without, only a mask would tell, and a step cannot wait for so many.
    fn may_force(&mut self) -> Result<bool, RequestError> {
        let has_bytes = |matcher: &_| forced_bytes(matcher, 4).map(|bytes| !bytes.is_empty());
        if self.matcher.bounded(has_bytes)? {
            return Ok(true);
        }
        Ok(self.narrow && !self.forced(1)?.is_empty())
    }

    /// The tokens that are forced if a token is accepted; none if that ends the text.
    fn run_after(&mut self, token: TokenId) -> Result<Vec<TokenId>, RequestError> {
        Ok(self.after(token, Self::run)?.unwrap_or_default())
    }

    /// Asks for something after one more token; `None` if it is refused or ends the text, or if a
    /// limit is exceeded there.
    ///
    /// # Errors
    /// The token cannot be taken back.
    fn after<T>(
        &mut self,
        token: TokenId,
        ask: impl FnOnce(&mut Self) -> Result<T, RequestError>,
    ) -> Result<Option<T>, RequestError> {
        if !matches!(self.accept_one(token.0.into()), Ok(true)) {
            return Ok(None);
        }
        let answer = if self.is_terminated() { None } else { ask(self).ok() };
        self.rollback(1)?;
        Ok(answer)
    }

    /// As [`Self::forced`], cached.
    fn run(&mut self) -> Result<Vec<TokenId>, RequestError> {
        // A request's own stop tokens are not the grammar's.
        if !self.stops.is_empty() || !self.is_by_state() {
            return self.forced(MAX_RUN);
        }
        let context = match self.narrow {
            false => None,
            true => match self.context() {
                None => return self.forced(MAX_RUN),
                some => some,
            },
        };
        let known = self.matcher.known_place();
        if let Some(run) = known.and_then(|(place, state)| place.runs.get(&(state, context))) {
            return Ok(run.to_vec());
        }
        let (generation, state) = self.matcher.bounded(|matcher| matcher.here())?;
        let run = self.forced(MAX_RUN)?;
        generation.runs.insert((state, context), &run);
        self.matcher.compiled().settle(&generation);
        Ok(run)
    }
}

fn common_tokens(vocabulary: &Vocabulary) -> impl Iterator<Item = TokenId> + '_ {
    let trie = vocabulary.trie();
    let token = |text: &&str| trie.tokens_at(trie.find(text.as_bytes())?).first().copied();
    COMMON.iter().filter_map(token)
}
