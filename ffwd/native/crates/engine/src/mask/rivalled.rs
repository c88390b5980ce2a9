//! Tokens that earlier items may exclude, before these items are known.

use std::sync::Arc;

use super::lexeme_mask::Inner;
use super::token_set::{bits, has_bit, Bitmap};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// Such tokens during collection. A bitmap may have tokens that the mask lacks.
#[derive(Debug, Default)]
pub struct Rivalled {
    tokens: Vec<TokenId>,
    bitmaps: Vec<Bitmap>,
}

impl Rivalled {
    pub fn add(&mut self, tokens: &[TokenId]) {
        self.tokens.extend_from_slice(tokens);
    }

    pub fn add_bitmap(&mut self, bitmap: &Bitmap) {
        if !self.bitmaps.iter().any(|known| Arc::ptr_eq(known, bitmap)) {
            self.bitmaps.push(bitmap.clone());
        }
    }

    pub fn add_inner(&mut self, inner: &Inner) {
        match inner {
            Inner::Few(tokens) => self.add(tokens),
            Inner::Many(bitmap) => self.add_bitmap(bitmap),
        }
    }

    pub fn add_all(&mut self, other: &Self) {
        self.add(&other.tokens);
        other.bitmaps.iter().for_each(|bitmap| self.add_bitmap(bitmap));
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.bitmaps.is_empty()
    }

    /// Sorts what has been collected.
    pub fn settle(self, vocabulary: &Vocabulary) -> SettledRivalled {
        // Most masks have none, and an empty shared list would be allocated.
        if self.is_empty() {
            return SettledRivalled::default();
        }
        let Self { mut tokens, bitmaps } = self;
        let first = |token: TokenId| first_byte(vocabulary, token);
        tokens.sort_unstable_by_key(|&token| (first(token), token));
        tokens.dedup();
        let tokens = tokens.chunk_by(|&one, &next| first(one) == first(next));
        let by_byte = tokens.map(|tokens| (first(tokens[0]), tokens.into())).collect();
        SettledRivalled { by_byte, bitmaps: bitmaps.into() }
    }
}

/// Tokens that earlier items may exclude. Bitmaps are listed only if nothing else shows which of
/// their tokens are excluded.
#[derive(Clone, Debug, Default)]
pub struct SettledRivalled {
    by_byte: Arc<[(u8, Box<[TokenId]>)]>,
    bitmaps: Arc<[Bitmap]>,
}

impl SettledRivalled {
    pub fn is_empty(&self) -> bool {
        self.by_byte.is_empty() && self.bitmaps.is_empty()
    }

    /// Whether a token is one of them.
    pub fn has(&self, vocabulary: &Vocabulary, token: TokenId) -> bool {
        let byte = first_byte(vocabulary, token);
        let listed = self.by_byte.binary_search_by_key(&byte, |&(byte, _)| byte);
        listed.is_ok_and(|at| self.by_byte[at].1.binary_search(&token).is_ok())
            || self.bitmaps.iter().any(|bitmap| has_bit(bitmap, token))
    }

    /// The memory of these tokens alone: bitmaps belong to the masks of lexemes.
    pub fn memory_bytes(&self) -> usize {
        let listed = self.by_byte.iter().map(|(_, tokens)| 24 + tokens.len() * 4);
        listed.sum::<usize>() + std::mem::size_of_val(&*self.bitmaps)
    }

    /// The tokens that begin with none of some bytes.
    pub fn without(&self, vocabulary: &Vocabulary, found: impl Fn(u8) -> bool) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        for (byte, listed) in self.by_byte.iter() {
            if !found(*byte) {
                tokens.extend_from_slice(listed);
            }
        }
        if self.bitmaps.is_empty() || (0..=u8::MAX).all(&found) {
            return tokens;
        }
        for bitmap in self.bitmaps.iter() {
            tokens.extend(bits(bitmap).filter(|&token| !found(first_byte(vocabulary, token))));
        }
        tokens
    }
}

fn first_byte(vocabulary: &Vocabulary, token: TokenId) -> u8 {
    vocabulary.text(token).first().copied().unwrap_or(0)
}
