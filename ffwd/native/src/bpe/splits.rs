//! The one way in which each token comes about.
//!
//! Merging picks the most urgent pair, the leftmost of several, so what happens within the span
//! of a token does not depend on the text around it: it is what happens when the token's own
//! bytes are encoded. The last merge of that is the token's *split*. No other merge that spells
//! the same ever happens, in any text.

use crate::vocabulary::TokenId;

/// The rank of what no merge makes: a symbol of the base.
pub(super) const BASE: u32 = 0;
/// A time after all merges, and the rank of what no merge reaches.
pub(super) const NEVER: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Split {
    /// The left part and, in the topmost bit, whether the token is the left part of a merge.
    left: u32,
    /// The right part and, in the topmost bit, whether the token is the right part of a merge.
    right: u32,
    rank: u32,
}

const IS_PART: u32 = 1 << 31;

#[derive(Debug)]
pub(super) struct Splits {
    splits: Vec<Split>,
    /// Where parts may have later ranks than what they make: for each token the latest rank of
    /// all the merges that it is made by. Empty where that is the token's own rank.
    levels: Vec<u32>,
}

impl Splits {
    pub fn unreachable(width: usize) -> Self {
        Self { splits: vec![Split { left: 0, right: 0, rank: NEVER }; width], levels: Vec::new() }
    }

    pub fn set_base(&mut self, token: TokenId) {
        self.splits[token.index()].rank = BASE;
    }

    /// Ranks of merges are above [`BASE`] and below [`NEVER`].
    pub fn set(&mut self, token: TokenId, left: TokenId, right: TokenId, rank: u32) {
        let split = &mut self.splits[token.index()];
        split.left = left.0 | (split.left & IS_PART);
        split.right = right.0 | (split.right & IS_PART);
        split.rank = rank;
        self.splits[left.index()].left |= IS_PART;
        self.splits[right.index()].right |= IS_PART;
    }

    /// To be called when all are set.
    pub fn find_levels(&mut self, by_length: &[TokenId]) {
        let in_order = by_length.iter().all(|&token| {
            self.get(token).is_none_or(|(left, right)| {
                let rank = self.rank(token);
                self.rank(left) < rank && self.rank(right) < rank
            })
        });
        if in_order {
            return;
        }
        self.levels = self.splits.iter().map(|split| split.rank).collect();
        for &token in by_length {
            if let Some((left, right)) = self.get(token) {
                let parts = self.levels[left.index()].max(self.levels[right.index()]);
                self.levels[token.index()] = self.levels[token.index()].max(parts);
            }
        }
    }

    pub fn width(&self) -> usize {
        self.splits.len()
    }

    #[inline]
    pub fn is_reachable(&self, token: TokenId) -> bool {
        self.rank(token) != NEVER
    }

    /// The rank of the merge that makes a token: [`BASE`] if it is in the base, [`NEVER`] if
    /// nothing makes it.
    #[inline]
    pub fn rank(&self, token: TokenId) -> u32 {
        self.splits.get(token.index()).map_or(NEVER, |split| split.rank)
    }

    /// When a token is made, at the earliest: after every merge of a lower rank that can happen.
    #[inline]
    pub fn level(&self, token: TokenId) -> u32 {
        self.levels.get(token.index()).copied().unwrap_or_else(|| self.rank(token))
    }

    /// Whether every token has a later rank than its parts, as training makes them.
    #[inline]
    pub fn are_in_order(&self) -> bool {
        self.levels.is_empty()
    }

    pub fn get(&self, token: TokenId) -> Option<(TokenId, TokenId)> {
        let split = self.splits.get(token.index())?;
        (split.rank != BASE && split.rank != NEVER).then(|| (left_of(split), right_of(split)))
    }

    /// The parts of a token that has some.
    #[inline]
    pub fn left(&self, token: TokenId) -> TokenId {
        left_of(&self.splits[token.index()])
    }

    #[inline]
    pub fn right(&self, token: TokenId) -> TokenId {
        right_of(&self.splits[token.index()])
    }

    /// Whether a token is the left part of any merge.
    #[inline]
    pub fn is_left_part(&self, token: TokenId) -> bool {
        self.splits[token.index()].left & IS_PART != 0
    }

    #[inline]
    pub fn is_right_part(&self, token: TokenId) -> bool {
        self.splits[token.index()].right & IS_PART != 0
    }

    pub fn memory_bytes(&self) -> usize {
        self.splits.capacity() * std::mem::size_of::<Split>() + self.levels.capacity() * 4
    }
}

#[inline]
fn left_of(split: &Split) -> TokenId {
    TokenId(split.left & !IS_PART)
}

#[inline]
fn right_of(split: &Split) -> TokenId {
    TokenId(split.right & !IS_PART)
}
