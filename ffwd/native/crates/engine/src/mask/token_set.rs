//! A set of tokens, stored as cheaply as it can be copied into a bitmask.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::doubt::Doubt;
use super::rivalled::Rivalled;
use ffwd_tokenizer::vocabulary::TokenId;

/// Bit `i % 32` of word `i / 32` stands for token `i`.
pub type Bitmap = Arc<[u32]>;

/// Tokens in any order, in memory that several sets share.
pub type TokenList = Arc<[TokenId]>;

/// To write one word after another takes about as long as to set the bit of one token.
const WORDS_PER_TOKEN: usize = 8;

/// A set of tokens: a shared bitmap and a shared list, if any, without some of their tokens, plus
/// further tokens.
#[derive(Clone, Debug, Default)]
pub struct TokenMask {
    base: Option<Bitmap>,
    list: Option<TokenList>,
    /// Tokens of the base and the list that do not belong to the set, unless they are added.
    removed: Box<[TokenId]>,
    /// In any order, perhaps with repetitions: a mask is copied more often than it is listed.
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
            }
            None => row.fill(0),
        }
        if let Some(list) = &self.list {
            set_bits(row, list);
        }
        clear_bits(row, &self.removed);
        set_bits(row, &self.added);
    }

    /// The mask of one token.
    pub fn only(token: TokenId) -> Self {
        Self { added: [token].into(), ..Self::default() }
    }

    /// The mask that a row holds.
    pub fn of_row(row: &[u32]) -> Self {
        let count: usize = row.iter().map(|word| word.count_ones() as usize).sum();
        match count * WORDS_PER_TOKEN <= row.len() {
            true => Self { added: bits(row).collect(), ..Self::default() },
            false => Self { base: Some(row.into()), ..Self::default() },
        }
    }

    /// Overwrites a row that holds another mask. Words are written only where the two differ from
    /// the bitmap that they share; without such a bitmap, or with many tokens besides, all are.
    pub fn replace(&self, old: &Self, row: &mut [u32]) {
        let base = self.base.as_deref();
        let is_same = base.map(<[u32]>::as_ptr) == old.base.as_deref().map(<[u32]>::as_ptr);
        if !is_same || old.num_besides() + self.num_besides() > row.len() / WORDS_PER_TOKEN {
            self.fill(row);
            return;
        }
        let lists = [old.list.as_deref().unwrap_or_default(), &old.removed, &old.added];
        for token in lists.into_iter().flatten() {
            let at = token.index() / 32;
            if let Some(word) = row.get_mut(at) {
                *word = base.and_then(|base| base.get(at)).copied().unwrap_or(0);
            }
        }
        set_bits(row, self.list.as_deref().unwrap_or_default());
        clear_bits(row, &self.removed);
        set_bits(row, &self.added);
    }

    /// How many tokens it lists beside its bitmap.
    fn num_besides(&self) -> usize {
        self.list.as_deref().map_or(0, <[TokenId]>::len) + self.removed.len() + self.added.len()
    }

    pub fn contains(&self, token: TokenId) -> bool {
        let shared = self.base.as_ref().is_some_and(|base| has_bit(base, token))
            || self.list.as_ref().is_some_and(|list| has(list, token));
        shared && !has(&self.removed, token) || has(&self.added, token)
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.tokens().is_empty()
    }

    /// The tokens, sorted.
    pub fn tokens(&self) -> Vec<TokenId> {
        let mut tokens = self.list.as_ref().map_or(Vec::new(), |list| list.to_vec());
        tokens.extend(self.base.iter().flat_map(|base| bits(base)));
        let removed: FxHashSet<TokenId> = self.removed.iter().copied().collect();
        tokens.retain(|token| !removed.contains(token));
        tokens.extend_from_slice(&self.added);
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    /// Returns the estimated memory that only this set holds.
    pub fn memory_bytes(&self) -> usize {
        let base = match &self.base {
            Some(base) if Arc::strong_count(base) == 1 => base.len() * 4,
            _ => 0,
        };
        std::mem::size_of::<Self>() + (self.added.len() + self.removed.len()) * 4 + base
    }
}

/// Compares with all of the tokens, several at a time, which a search that ends early could not.
fn has(tokens: &[TokenId], token: TokenId) -> bool {
    tokens.iter().fold(false, |found, known| found | (*known == token))
}

pub fn has_bit(bitmap: &[u32], token: TokenId) -> bool {
    bitmap.get(token.index() / 32).is_some_and(|word| word >> (token.0 % 32) & 1 == 1)
}

pub fn clear_bits(row: &mut [u32], tokens: &[TokenId]) {
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

/// Up to this many tokens are searched one by one.
pub const FEW: usize = 32;

/// A shared bitmap and a shared list without some of their tokens.
#[derive(Clone, Debug, Default)]
struct Base {
    bitmap: Option<Bitmap>,
    list: Option<TokenList>,
    removed: Vec<TokenId>,
}

impl Base {
    fn has_bit(&self, token: TokenId) -> bool {
        self.bitmap.as_ref().is_some_and(|bitmap| has_bit(bitmap, token))
    }

    fn has(&self, token: TokenId) -> bool {
        self.has_bit(token) || self.list.as_ref().is_some_and(|list| has(list, token))
    }

    fn is_same(&self, other: &Self) -> bool {
        let address = |base: &Self| {
            (base.bitmap.as_ref().map(Arc::as_ptr), base.list.as_ref().map(Arc::as_ptr))
        };
        address(self) == address(other)
    }

    /// Stores a list if there is none yet; `false` if the result would not be the union.
    fn join(&mut self, other: &Self) -> bool {
        let joins = other.bitmap.is_none()
            && self.list.is_none()
            && self.removed.is_empty()
            && !other.removed.iter().any(|&token| self.has_bit(token));
        if joins {
            self.list.clone_from(&other.list);
            self.removed.clone_from(&other.removed);
        }
        joins
    }
}

/// Collects a union of token sets.
#[derive(Debug)]
pub struct TokenMaskBuilder {
    words: usize,
    bases: SmallVec<[Base; 1]>,
    pub added: Vec<TokenId>,
    /// Tokens about which the collected data do not decide.
    pub doubtful: Vec<Doubt>,
    /// Tokens that belong to the set unless they repeat an earlier item.
    pub rivalled: Rivalled,
}

impl TokenMaskBuilder {
    /// `words`: the length of a bitmap.
    pub fn new(words: usize) -> Self {
        let (added, doubtful, rivalled) = (Vec::new(), Vec::new(), Rivalled::default());
        Self { words, bases: SmallVec::new(), added, doubtful, rivalled }
    }

    pub fn add_bitmap(&mut self, bitmap: &Bitmap) {
        self.add_base(Base { bitmap: Some(bitmap.clone()), ..Base::default() });
    }

    /// A list that several sets share.
    pub fn add_list(&mut self, list: &TokenList) {
        self.add_base(Base { list: Some(list.clone()), ..Base::default() });
    }

    pub fn add_mask(&mut self, mask: &TokenMask) {
        if mask.base.is_some() || mask.list.is_some() {
            let (bitmap, list) = (mask.base.clone(), mask.list.clone());
            self.add_base(Base { bitmap, list, removed: mask.removed.to_vec() });
        }
        self.added.extend_from_slice(&mask.added);
    }

    fn add_base(&mut self, base: Base) {
        for known in &mut self.bases {
            if known.is_same(&base) {
                known.removed.retain(|token| base.removed.contains(token));
                return;
            }
            if known.join(&base) {
                return;
            }
        }
        self.bases.push(base);
    }

    /// Takes in what another builder has collected.
    pub fn add_all(&mut self, other: Self) {
        for base in other.bases {
            self.add_base(base);
        }
        self.added.extend_from_slice(&other.added);
        self.doubtful.extend_from_slice(&other.doubtful);
        self.rivalled.add_all(&other.rivalled);
    }

    /// Adds what another builder has collected, all of which earlier items may exclude.
    pub fn add_rivalled(&mut self, other: Self) {
        self.rivalled.add(&other.added);
        for Base { bitmap, list, .. } in &other.bases {
            bitmap.iter().for_each(|bitmap| self.rivalled.add_bitmap(bitmap));
            list.iter().for_each(|list| self.rivalled.add(list));
        }
        self.add_all(other);
    }

    /// The tokens, if only single ones were collected and none is doubtful.
    pub fn as_tokens(&self) -> Option<&[TokenId]> {
        (self.bases.is_empty() && self.is_certain()).then_some(&*self.added)
    }

    /// Whether no token depends on anything else than what was collected.
    pub fn is_certain(&self) -> bool {
        self.doubtful.is_empty() && self.rivalled.is_empty()
    }

    /// The tokens that have been collected.
    pub fn to_set(&self) -> FxHashSet<TokenId> {
        let mut tokens: FxHashSet<TokenId> = self.added.iter().copied().collect();
        for base in &self.bases {
            let removed: FxHashSet<TokenId> = base.removed.iter().copied().collect();
            let of_bitmap = base.bitmap.iter().flat_map(|bitmap| bits(bitmap));
            let of_list = base.list.iter().flat_map(|list| list.iter().copied());
            tokens.extend(of_bitmap.chain(of_list).filter(|token| !removed.contains(token)));
        }
        tokens
    }

    /// Removes single tokens from the collected ones.
    pub fn remove(&mut self, tokens: &[TokenId]) {
        if tokens.len() > FEW {
            let tokens: FxHashSet<TokenId> = tokens.iter().copied().collect();
            if self.remove_where(|token| tokens.contains(&token)) {
                return;
            }
        }
        self.added.retain(|&token| !has(tokens, token));
        for base in &mut self.bases {
            let of_base: Vec<TokenId> =
                tokens.iter().copied().filter(|&token| base.has(token)).collect();
            base.removed.extend(of_base);
        }
    }

    /// Removes the tokens of a bitmap from the collected ones.
    pub fn remove_bitmap(&mut self, removed: &[u32]) {
        self.added.retain(|&token| !has_bit(removed, token));
        let many = self.words / 4;
        for base in &mut self.bases {
            if let Some(list) = &base.list {
                base.removed.extend(list.iter().filter(|&&token| has_bit(removed, token)));
            }
            let Some(bitmap) = &mut base.bitmap else { continue };
            let both: Vec<u32> = bitmap.iter().zip(removed).map(|(a, b)| a & b).collect();
            let count: u32 = both.iter().map(|word| word.count_ones()).sum();
            if count as usize > many {
                // Setting a bit costs about as much as copying four words.
                *bitmap = bitmap.iter().zip(removed).map(|(word, out)| word & !out).collect();
            } else if count > 0 {
                base.removed.extend(bits(&both));
            }
        }
    }

    /// The same for all tokens that satisfy a predicate. Does nothing and returns `false` if a
    /// bitmap was collected, because its tokens would need to be listed.
    pub fn remove_where(&mut self, holds: impl Fn(TokenId) -> bool) -> bool {
        if self.bases.iter().any(|base| base.bitmap.is_some()) {
            return false;
        }
        self.added.retain(|&token| !holds(token));
        for base in &mut self.bases {
            let list = base.list.iter().flat_map(|list| list.iter().copied());
            base.removed.extend(list.filter(|&token| holds(token)));
        }
        true
    }

    pub fn build(mut self) -> TokenMask {
        // Setting a bit costs about as much as copying four words.
        let removed: usize = self.bases.iter().map(|base| base.removed.len()).sum();
        let many = self.added.len() + removed > self.words / 4 + 64;
        if self.bases.len() > 1 || many {
            let mut own: Bitmap = match self.bases.first().and_then(|base| base.bitmap.clone()) {
                Some(bitmap) => bitmap,
                None => std::iter::repeat_n(0, self.words).collect(),
            };
            // The only copy: the first base still has its bitmap.
            let row = Arc::make_mut(&mut own);
            let mut bases = self.bases.iter();
            if let Some(Base { list, removed, .. }) = bases.next() {
                set_bits(row, list.as_deref().unwrap_or_default());
                clear_bits(row, removed);
            }
            for base in bases {
                let mut part = Vec::new();
                let of_base = if base.removed.is_empty() {
                    &mut *row
                } else {
                    part.resize(self.words, 0);
                    &mut *part
                };
                if let Some(bitmap) = &base.bitmap {
                    or(of_base, bitmap);
                }
                set_bits(of_base, base.list.as_deref().unwrap_or_default());
                clear_bits(of_base, &base.removed);
                or(row, &part);
            }
            set_bits(row, &self.added);
            return TokenMask { base: Some(own), ..TokenMask::default() };
        }
        let Base { bitmap: base, list, removed } = self.bases.pop().unwrap_or_default();
        TokenMask { base, list, removed: removed.into(), added: self.added.as_slice().into() }
    }
}

fn or(row: &mut [u32], other: &[u32]) {
    for (word, other) in row.iter_mut().zip(other) {
        *word |= other;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::RngExt;

    use super::{TokenId, TokenMask};
    use ffwd_tokenizer::vocabulary::testing::seeded;

    const WORDS: usize = 400;

    #[test]
    fn a_row_that_is_replaced_is_a_row_that_is_filled() {
        let mut random = seeded(41);
        let bitmaps: Vec<Arc<[u32]>> = (0..2)
            .map(|_| (0..WORDS).map(|_| random.random_range(0..u32::MAX)).collect())
            .collect();
        let mut row = vec![0; WORDS + 3];
        let mut expected = row.clone();
        let mut held = TokenMask::default();
        for _ in 0..2000 {
            let mut some = |most: u32| -> Vec<TokenId> {
                let count = random.random_range(0..most);
                let id = |_| TokenId(random.random_range(0..WORDS as u32 * 32));
                (0..count).map(id).collect()
            };
            let list: Arc<[TokenId]> = some(30).into();
            let (mut removed, added) = (some(8), some(12));
            removed.extend(Arc::clone(&list).iter().take(2));
            let mask = match random.random_range(0..4) {
                0 => TokenMask::only(TokenId(random.random_range(0..WORDS as u32 * 32))),
                1 => TokenMask { added: added.into(), ..held.clone() },
                _ => TokenMask {
                    base: bitmaps.get(random.random_range(0..3)).cloned(),
                    list: (random.random_range(0..2) == 0).then_some(list),
                    removed: removed.into(),
                    added: added.into(),
                },
            };
            mask.replace(&held, &mut row);
            mask.fill(&mut expected);
            assert!(row == expected);
            held = mask;
        }
    }
}
