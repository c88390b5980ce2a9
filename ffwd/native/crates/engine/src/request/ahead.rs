//! What the first steps of a text will need, built before they do.
//!
//! The skeleton of a grammar is followed breadth first: forced tokens where there are some, all tokens
//! where there are few, and else those that most texts in JSON are made of.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use super::{Held, Request};
use crate::mask::token_set::{bits, has_bit};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// Masks with no more tokens are followed by all of them.
const FEW_TOKENS: usize = 32;

/// What texts in JSON are made of between their keys and values, and beginnings of those.
const LIKELY: [&str; 48] = [
    "\"", "{", "}", "[", "]", ",", ":", " ", "\n", "{\"", "\":", "\":\"", "\":{\"", "\":[",
    "\":[\"", "\":{", "\",", "\",\"", "\"}", "\"},", "\"},{\"", "\"]", "\"],", "\"],\"", "},",
    "},{\"", "},\"", "}}", "}]", "],", "],\"", "]}", ",\"", " \"", " {", " [", "\": ", "a", " a",
    "A", "the", "0", "1", "12", "-", ".", "true", "null",
];

impl Request {
    /// Builds the masks, forced tokens and transitions of likely beginnings of the text: of at most
    /// so many states, for at most about so long. Returns how many states there were.
    ///
    /// Nothing depends on it but how long later calls take. Where a limit is exceeded it ends, and
    /// whoever needs the mask is told.
    pub fn build_ahead(&self, max_states: usize, time: Duration) -> usize {
        let until = Instant::now() + time;
        let vocabulary = self.matcher.compiled().engine.vocabulary().clone();
        let likely = likely_tokens(&vocabulary);
        let mut row = vec![0; vocabulary.mask_words()];
        let mut waiting = VecDeque::from([self.clone()]);
        let mut seen = FxHashSet::default();
        while let Some(mut request) = waiting.pop_front() {
            if seen.len() >= max_states || Instant::now() >= until {
                break;
            }
            let Ok(true) = request.visit(&mut seen) else { continue };
            if request.fill(&mut row, &mut Held::default()).is_err() {
                break;
            }
            let mut next: Vec<TokenId> = bits(&row).take(FEW_TOKENS + 1).collect();
            if next.len() > FEW_TOKENS {
                next = likely.iter().copied().filter(|&token| has_bit(&row, token)).collect();
            }
            keep_longest(&vocabulary, &mut next);
            for token in next {
                let mut after = request.clone();
                if matches!(after.accept_one(token.0.into()), Ok(true)) && !after.is_terminated() {
                    waiting.push_back(after);
                }
            }
        }
        seen.len()
    }

    /// Whether no request has been in this state.
    fn visit(&self, seen: &mut FxHashSet<(u32, u32)>) -> Result<bool, super::RequestError> {
        let (generation, state) = self.matcher.bounded(|matcher| matcher.here())?;
        Ok(seen.insert((generation.number, state.0)))
    }
}

/// Removes tokens that another one begins with: tokenizers mostly take the longer.
fn keep_longest(vocabulary: &Vocabulary, tokens: &mut Vec<TokenId>) {
    tokens.sort_unstable_by_key(|&token| vocabulary.text(token));
    let is_longest = |at: usize| {
        let text = vocabulary.text(tokens[at]);
        text.is_empty()
            || tokens.get(at + 1).is_none_or(|&next| !vocabulary.text(next).starts_with(text))
    };
    let kept = (0..tokens.len()).filter(|&at| is_longest(at)).map(|at| tokens[at]).collect();
    *tokens = kept;
}

fn likely_tokens(vocabulary: &Vocabulary) -> Vec<TokenId> {
    let trie = vocabulary.trie();
    let token = |text: &&str| trie.tokens_at(trie.find(text.as_bytes())?).first().copied();
    LIKELY.iter().filter_map(token).collect()
}
