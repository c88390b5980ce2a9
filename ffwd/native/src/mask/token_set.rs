//! A set of tokens, stored as cheaply as it can be copied into a bitmask.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::doubt::Doubt;
use crate::vocabulary::TokenId;

/// Bit `i % 32` of word `i / 32` stands for token `i`.
pub type Bitmap = Arc<[u32]>;

/// A set of tokens: a shared bitmap, if any, and tokens besides.
#[derive(Clone, Debug, Default)]
pub struct TokenMask {
    base: Option<Bitmap>,
    added: Box<[TokenId]>,
}

impl TokenMask {
    /// Overwrites `row`, which may be longer than the vocabulary.
    pub fn fill(&self, row: &mut [u32]) {
        match &self.base {
            Some(base) => {
                let words = base.len().min(row.len());
                row[..words].copy_from_slice(&base[..words]);
                row[words..].fill(0);
            }
            None => row.fill(0),
        }
        set_bits(row, &self.added);
    }

    pub fn contains(&self, token: TokenId) -> bool {
        let index = token.index();
        let in_base = self
            .base
            .as_ref()
            .and_then(|base| base.get(index / 32))
            .is_some_and(|word| word >> (index % 32) & 1 == 1);
        in_base || self.added.contains(&token)
    }

    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.base.as_ref().is_none_or(|base| base.iter().all(|&w| w == 0))
    }

    /// The tokens, sorted.
    pub fn tokens(&self) -> Vec<TokenId> {
        let mut tokens = self.added.to_vec();
        if let Some(base) = &self.base {
            tokens.extend(bits(base));
        }
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    /// Memory that only this set holds, about.
    pub fn memory_bytes(&self) -> usize {
        let base = match &self.base {
            Some(base) if Arc::strong_count(base) == 1 => base.len() * 4,
            _ => 0,
        };
        std::mem::size_of::<Self>() + self.added.len() * 4 + base
    }
}

pub fn set_bits(row: &mut [u32], tokens: &[TokenId]) {
    for token in tokens {
        if let Some(word) = row.get_mut(token.index() / 32) {
            *word |= 1 << (token.0 % 32);
        }
    }
}

/// The tokens of a bitmap, sorted.
pub fn bits(bitmap: &[u32]) -> impl Iterator<Item = TokenId> + '_ {
    bitmap.iter().enumerate().flat_map(|(at, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let bit = left.trailing_zeros();
            left &= left - 1;
            Some(TokenId(at as u32 * 32 + bit))
        })
    })
}

/// Collects a union of token sets.
#[derive(Debug)]
pub struct TokenMaskBuilder {
    words: usize,
    bases: Vec<Bitmap>,
    pub added: Vec<TokenId>,
    /// Tokens of which what was collected does not say whether they belong to the set.
    pub doubtful: Vec<Doubt>,
}

impl TokenMaskBuilder {
    /// `words`: the length of a bitmap.
    pub fn new(words: usize) -> Self {
        Self { words, bases: Vec::new(), added: Vec::new(), doubtful: Vec::new() }
    }

    pub fn add_bitmap(&mut self, bitmap: &Bitmap) {
        if !self.bases.iter().any(|known| Arc::ptr_eq(known, bitmap)) {
            self.bases.push(bitmap.clone());
        }
    }

    pub fn add_mask(&mut self, mask: &TokenMask) {
        if let Some(base) = &mask.base {
            self.add_bitmap(base);
        }
        self.added.extend_from_slice(&mask.added);
    }

    /// Takes in what another builder has collected.
    pub fn add_all(&mut self, other: &Self) {
        for base in &other.bases {
            self.add_bitmap(base);
        }
        self.added.extend_from_slice(&other.added);
        self.doubtful.extend_from_slice(&other.doubtful);
    }

    /// The tokens that have been collected.
    pub fn to_set(&self) -> FxHashSet<TokenId> {
        let of_bases = self.bases.iter().flat_map(|base| bits(base));
        self.added.iter().copied().chain(of_bases).collect()
    }

    /// Takes single tokens, which are sorted, out of what has been collected.
    pub fn remove(&mut self, tokens: &[TokenId]) {
        if tokens.is_empty() {
            return;
        }
        self.added.retain(|token| tokens.binary_search(token).is_err());
        for base in &mut self.bases {
            let has = |token: &TokenId| {
                base.get(token.index() / 32).is_some_and(|word| word >> (token.0 % 32) & 1 == 1)
            };
            if tokens.iter().any(has) {
                let mut own = base.to_vec();
                for token in tokens {
                    if let Some(word) = own.get_mut(token.index() / 32) {
                        *word &= !(1 << (token.0 % 32));
                    }
                }
                *base = own.into();
            }
        }
    }

    pub fn build(mut self) -> TokenMask {
        // Setting a bit costs about as much as copying four words.
        let many = self.added.len() > self.words / 4 + 64;
        if self.bases.len() > 1 || many {
            let mut own = vec![0u32; self.words];
            for base in &self.bases {
                for (word, other) in own.iter_mut().zip(base.iter()) {
                    *word |= other;
                }
            }
            set_bits(&mut own, &self.added);
            return TokenMask { base: Some(own.into()), added: Box::default() };
        }
        self.added.sort_unstable();
        self.added.dedup();
        TokenMask { base: self.bases.pop(), added: self.added.into() }
    }
}
