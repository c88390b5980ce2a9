//! Whole sequences of tokens, with no grammar.

use crate::vocabulary::{ByteTrie, TokenId};

use super::context::{Canonicality, Context, Role};
use super::cover::{Anything, Choice, ForcedOptions};

/// The prefix of a text as tokens that no continuation changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The tokens that stay.
    pub tokens: Vec<TokenId>,
    /// The number of their bytes; the tokens of the rest depend on later text.
    pub bytes: usize,
}

/// Tokens without those at their end that a continuation could change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Healed {
    /// How many of the tokens remain.
    pub kept: usize,
    /// The text of the removed tokens.
    pub cut: Vec<u8>,
}

/// How far before the end of a text healing examines its tokens.
const HEALED_TOKENS: usize = 24;

impl Canonicality {
    /// All tokens that occur in some text, as a [`Choice`] without a vocabulary.
    pub fn trie(&self) -> ByteTrie {
        let tokens = (0..self.width() as u32).map(TokenId);
        let mut texts: Vec<(&[u8], TokenId)> = tokens
            .filter(|&token| self.role(token) != Role::Never)
            .map(|token| (self.table().text(token), token))
            .collect();
        texts.sort_unstable();
        ByteTrie::from_sorted(&texts)
    }

    /// The context after tokens, some of which may not be canonical.
    pub fn after(&self, tokens: &[TokenId]) -> Context {
        tokens.iter().fold(self.start(), |context, &token| self.follow(&context, token).0)
    }

    /// Returns the index at which a sequence stops being the prefix of a tokenization; `None` if it
    /// is one. A special token ends the text before it, and another one starts after it.
    pub fn first_noncanonical(&self, tokens: &[TokenId]) -> Option<usize> {
        let mut context = self.start();
        for (at, &token) in tokens.iter().enumerate() {
            if self.is_special(token) {
                if !self.can_end(&context) {
                    return Some(at);
                }
                context = self.start();
            } else {
                match self.step(&context, token) {
                    Some(next) => context = next,
                    None => return Some(at),
                }
            }
        }
        None
    }

    /// Returns whether the tokens equal the tokenization of their text.
    pub fn is_canonical(&self, tokens: &[TokenId]) -> bool {
        self.first_noncanonical(tokens).is_none() && self.can_end(&self.after(tokens))
    }

    fn is_special(&self, token: TokenId) -> bool {
        self.table().text(token).is_empty()
    }

    /// The tokens that start every continuation of `text` after `recent` tokens, its end included.
    pub fn tokenize_partial(&self, choice: Choice<'_>, recent: &[TokenId], text: &[u8]) -> Partial {
        let context = self.after(recent);
        let options = ForcedOptions::default();
        let Ok(found) = self.forced(choice, &context, text, &Anything, &(), options);
        let mut tokens = found.unwrap_or_default();
        let mut bytes = 0;
        let within = tokens.iter().take_while(|&&token| {
            let end = bytes + self.table().text(token).len();
            let fits = end <= text.len();
            bytes = if fits { end } else { bytes };
            fits
        });
        let count = within.count();
        tokens.truncate(count);
        Partial { tokens, bytes }
    }

    /// Removes the tokens, at most `max_rollback`, that a continuation could change.
    pub fn heal(&self, choice: Choice<'_>, tokens: &[TokenId], max_rollback: usize) -> Healed {
        let text_start =
            tokens.iter().rposition(|&token| self.is_special(token)).map_or(0, |at| at + 1);
        let looked_at = tokens.len().saturating_sub(HEALED_TOKENS.max(max_rollback));
        let from = text_start.max(looked_at);
        let spell = |tokens: &[TokenId]| -> Vec<u8> {
            tokens.iter().flat_map(|&token| self.table().text(token)).copied().collect()
        };
        let certain = self.tokenize_partial(choice, &tokens[..from], &spell(&tokens[from..]));
        let same =
            certain.tokens.iter().zip(&tokens[from..]).take_while(|(one, other)| one == other);
        let least = from.max(tokens.len().saturating_sub(max_rollback));
        let kept = (from + same.count()).max(least);
        Healed { kept, cut: spell(&tokens[kept..]) }
    }
}
