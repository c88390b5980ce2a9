//! A check for debug builds: a mask has a token exactly if the token is accepted.

use super::token_set::TokenMask;
use ffwd_automaton::{Automaton, TextId, Thread};
use ffwd_bounds::meter;
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// How many tokens of a large vocabulary are checked.
const SOME_TOKENS: usize = 64;

/// Checks masks within items from which later ones must differ, which combine a mask for all texts
/// with doubts about single tokens, and masks of grammars with escapes, which combine two ways. The tests' slow twins check other masks.
pub fn check(vocabulary: &Vocabulary, automaton: &Automaton, threads: &[Thread], mask: &TokenMask) {
    let is_compared = threads.iter().any(|thread| thread.transcript != TextId::NONE);
    if !is_compared && automaton.escaping().is_none() {
        return;
    }
    let width = vocabulary.width();
    let step = if width <= 512 { 1 } else { width.div_ceil(SOME_TOKENS) };
    for token in (0..width as u32).step_by(step).map(TokenId) {
        if vocabulary.eos().contains(&token) {
            continue;
        }
        let text = vocabulary.text(token);
        let read = meter::unmetered(|| automaton.read(threads, token.0, text));
        // After an exceeded limit there is nothing to compare.
        let Ok(after) = read else { continue };
        assert_eq!(
            mask.contains(token),
            after.is_some(),
            "the mask and accepting disagree on {:?}",
            String::from_utf8_lossy(text),
        );
    }
}
