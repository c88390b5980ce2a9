//! Tokens that occur in the encoding of no text.

use std::ops::ControlFlow;

use super::encode::Part;
use super::options::{EncodeOptions, PartOptions};
use super::Tokenizer;
use crate::vocabulary::TokenId;

/// Tokens of a vocabulary that the tokenizer does not produce, though the model may know them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnusedTokens {
    /// Tokens that no merges produce. A tokenizer that looks up whole pieces may produce them.
    pub unmerged: Vec<TokenId>,
    /// No text was found that is encoded with them.
    pub unreachable: Vec<TokenId>,
}

/// Contexts in which a token is searched, if it is not the encoding of its own text. Pieces have
/// other boundaries there: ` I'` alone is split, but within ` I'm` it is not.
const BEFORE: [&str; 7] = ["", " ", "a", "1", "*", "§", "\n"];
const AFTER: [&str; 10] = ["", " ", "a", "m", "re", "ve", "1", "*", "\n", "/"];

fn part_of_a_text() -> EncodeOptions {
    EncodeOptions {
        part: PartOptions { dummy_space: false, ..PartOptions::default() },
        ..EncodeOptions::default()
    }
}

impl Tokenizer {
    /// Returns the tokens that no text has, in the order of their ids. For a part of a character
    /// only its merges are examined, because its text depends on the surroundings. Tokens with
    /// equal bytes are not reported for that.
    pub fn unused_tokens(&self) -> UnusedTokens {
        let mut unused = UnusedTokens::default();
        for token in (0..self.table.width() as u32).map(TokenId) {
            let text = self.table.text(token);
            if text.is_empty() || self.table.is_byte_fallback(token) {
                continue;
            }
            let merged = self.table.is_reachable(token);
            if !merged {
                unused.unmerged.push(token);
            }
            let reached = match std::str::from_utf8(text) {
                // A piece that merges make one token of is that token.
                Ok(text) if merged && self.is_one_piece(text) => true,
                Ok(text) => BEFORE
                    .iter()
                    .any(|before| AFTER.iter().any(|after| self.is_written(before, text, after))),
                Err(_) => merged,
            };
            if !reached {
                unused.unreachable.push(token);
            }
        }
        unused
    }

    /// Whether a text by itself is cut into one piece, which is all of it.
    pub(super) fn is_one_piece(&self, text: &str) -> bool {
        let text = text.as_bytes();
        let mut whole = false;
        let cut = self.cut(text, &part_of_a_text(), &mut |part| {
            whole = match part {
                Part::Text { text: found, .. } if found == text => self
                    .pretokenizer
                    .pieces(found)
                    .next()
                    .is_some_and(|piece| (piece.start, piece.end) == (0, text.len())),
                _ => false,
            };
            ControlFlow::Continue(())
        });
        whole && cut.is_ok()
    }

    /// Whether a stretch of a text is one token.
    pub(super) fn is_written(&self, before: &str, text: &str, after: &str) -> bool {
        let whole = [before, text, after].concat();
        let Ok(tokens) = self.encode(whole.as_bytes(), &part_of_a_text()) else { return false };
        let mut at = 0;
        for token in tokens {
            let Ok(spelled) = self.token_bytes(token) else { return false };
            if at == before.len() {
                return spelled == text.as_bytes();
            }
            at += spelled.len();
        }
        false
    }
}
