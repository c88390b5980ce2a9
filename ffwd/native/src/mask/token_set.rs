//! A set of tokens, stored as cheaply as it can be copied into a bitmask.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::doubt::Doubt;
use crate::vocabulary::TokenId;

/// Bit `i % 32` of word `i / 32` stands for token `i`.
pub type Bitmap = Arc<[u32]>;

/// A set of tokens: a shared bitmap, if any, but for some of its tokens, and tokens besides.
#[derive(Clone, Debug, Default)]
pub struct TokenMask {
    base: Option<Bitmap>,
    /// Tokens of the base that do not belong to the set, unless they are added.
    removed: Box<[TokenId]>,
    /// In any order, and some perhaps twice: a mask is copied more often than it is listed.
    added: Box<[TokenId]>,
}

impl TokenMask {
    /// Overwrites `row`, which may be longer than the vocabulary.
    #[inline]
    pub fn fill(&self, row: &mut [u32]) {
        match &self.base {
            Some(base) => {
                let words = base.len().min(row.len());
                row[..words].copy_from_slice(&base[..words]);
                row[words..].fill(0);
                clear_bits(row, &self.removed);
            }
            None => row.fill(0),
        }
        set_bits(row, &self.added);
    }

    pub fn contains(&self, token: TokenId) -> bool {
        let in_base = self.base.as_ref().is_some_and(|base| has_bit(base, token));
        in_base && !self.removed.contains(&token) || self.added.contains(&token)
    }

    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.tokens().is_empty()
    }

    /// The tokens, sorted.
    pub fn tokens(&self) -> Vec<TokenId> {
        let mut tokens = self.added.to_vec();
        if let Some(base) = &self.base {
            let removed: FxHashSet<TokenId> = self.removed.iter().copied().collect();
            tokens.extend(bits(base).filter(|token| !removed.contains(token)));
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
        std::mem::size_of::<Self>() + (self.added.len() + self.removed.len()) * 4 + base
    }
}

fn has_bit(bitmap: &[u32], token: TokenId) -> bool {
    bitmap.get(token.index() / 32).is_some_and(|word| word >> (token.0 % 32) & 1 == 1)
}

fn clear_bits(row: &mut [u32], tokens: &[TokenId]) {
    for token in tokens {
        if let Some(word) = row.get_mut(token.index() / 32) {
            *word &= !(1 << (token.0 % 32));
        }
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

/// A shared bitmap but for some of its tokens.
#[derive(Clone, Debug)]
struct Base {
    bitmap: Bitmap,
    removed: Vec<TokenId>,
}

/// Collects a union of token sets.
#[derive(Debug)]
pub struct TokenMaskBuilder {
    words: usize,
    bases: Vec<Base>,
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
        match self.bases.iter_mut().find(|known| Arc::ptr_eq(&known.bitmap, bitmap)) {
            Some(known) => known.removed.clear(),
            None => self.bases.push(Base { bitmap: bitmap.clone(), removed: Vec::new() }),
        }
    }

    pub fn add_mask(&mut self, mask: &TokenMask) {
        if let Some(bitmap) = &mask.base {
            self.add_base(&Base { bitmap: bitmap.clone(), removed: mask.removed.to_vec() });
        }
        self.added.extend_from_slice(&mask.added);
    }

    fn add_base(&mut self, base: &Base) {
        match self.bases.iter_mut().find(|known| Arc::ptr_eq(&known.bitmap, &base.bitmap)) {
            Some(known) => known.removed.retain(|token| base.removed.contains(token)),
            None => self.bases.push(base.clone()),
        }
    }

    /// Takes in what another builder has collected.
    pub fn add_all(&mut self, other: &Self) {
        for base in &other.bases {
            self.add_base(base);
        }
        self.added.extend_from_slice(&other.added);
        self.doubtful.extend_from_slice(&other.doubtful);
    }

    /// Whether single tokens are all that was collected, none of them doubtful.
    pub fn is_plain(&self) -> bool {
        self.bases.is_empty() && self.doubtful.is_empty()
    }

    /// The tokens that have been collected.
    pub fn to_set(&self) -> FxHashSet<TokenId> {
        let of_base = |base: &'_ Base| {
            bits(&base.bitmap).filter(|token| !base.removed.contains(token)).collect::<Vec<_>>()
        };
        let of_bases = self.bases.iter().flat_map(of_base);
        self.added.iter().copied().chain(of_bases).collect()
    }

    /// Takes single tokens, which are sorted, out of what has been collected.
    pub fn remove(&mut self, tokens: &[TokenId]) {
        if tokens.is_empty() {
            return;
        }
        self.added.retain(|token| tokens.binary_search(token).is_err());
        for base in &mut self.bases {
            base.removed.extend(tokens.iter().filter(|&&token| has_bit(&base.bitmap, token)));
        }
    }

    pub fn build(mut self) -> TokenMask {
        // Setting a bit costs about as much as copying four words.
        let removed: usize = self.bases.iter().map(|base| base.removed.len()).sum();
        let many = self.added.len() + removed > self.words / 4 + 64;
        if self.bases.len() > 1 || many {
            let mut own: Bitmap = std::iter::repeat_n(0u32, self.words).collect();
            // Nobody else holds it yet.
            if let Some(own) = Arc::get_mut(&mut own) {
                for base in &self.bases {
                    if base.removed.is_empty() {
                        or(own, &base.bitmap);
                    } else {
                        let mut rest = base.bitmap.to_vec();
                        clear_bits(&mut rest, &base.removed);
                        or(own, &rest);
                    }
                }
                set_bits(own, &self.added);
            }
            return TokenMask { base: Some(own), ..TokenMask::default() };
        }
        let (base, removed) = match self.bases.pop() {
            Some(Base { bitmap, removed }) => (Some(bitmap), removed),
            None => (None, Vec::new()),
        };
        TokenMask { base, removed: removed.into(), added: self.added.into() }
    }
}

fn or(row: &mut [u32], other: &[u32]) {
    for (word, other) in row.iter_mut().zip(other) {
        *word |= other;
    }
}
