//! The split and the level of each token.
//!
//! Merging picks the most urgent pair, the leftmost of several. So the merges within a token's span
//! are those of the token's own bytes, whatever the text around it. The last of them is the token's
//! *split*. No other merge with the same bytes ever happens, in any text.
//!
//! A merge cannot happen before its parts exist, so one that is more urgent than they are waits for
//! them. Its *level* is the latest rank among all merges within it, its own included. Merging
//! proceeds level by level, and at each level from left to right: each merge of that rank is
//! followed at once by the more urgent ones that it enables. In most vocabularies all parts are
//! more urgent than the merged token, and the level of a token is its rank; but some real ones have
//! a few exceptions.

use super::spec::MAX_IDS;
use super::texts::Texts;
use crate::vocabulary::TokenId;

/// The level and rank of what no merge makes: a symbol of the base.
pub(super) const BASE: u32 = 0;
/// A time after all merges, and the level and rank of what no merge reaches.
pub(super) const NEVER: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
struct Split {
    /// The left part, the last byte of the token's text, and in the topmost bit whether the token
    /// is the left part of a merge.
    left: u32,
    /// The right part, the first byte, and whether the token is the right part of a merge.
    right: u32,
    level: u32,
    /// The longest reachable token that this one begins with, other than itself.
    shorter: u32,
}

const IS_PART: u32 = 1 << 31;
const BYTE_SHIFT: u32 = 23;
const ID_MASK: u32 = (1 << BYTE_SHIFT) - 1;
const _: () = assert!(MAX_IDS <= ID_MASK as usize);
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Splits {
    splits: Vec<Split>,
    /// The ranks, if some differ from the levels.
    ranks: Vec<u32>,
}

impl Splits {
    pub fn unreachable(texts: &Texts) -> Self {
        let split = Split { left: 0, right: 0, level: NEVER, shorter: NONE };
        let mut splits = vec![split; texts.width()];
        for (token, text) in texts.tokens() {
            if let (Some(&first), Some(&last)) = (text.first(), text.last()) {
                splits[token.index()].left = u32::from(last) << BYTE_SHIFT;
                splits[token.index()].right = u32::from(first) << BYTE_SHIFT;
            }
        }
        Self { splits, ranks: Vec::new() }
    }

    /// Keeps ranks apart from levels while [`Self::set_in_order`] is used.
    pub fn begin_in_order(&mut self) {
        self.ranks = self.splits.iter().map(|split| split.level).collect();
    }

    /// As [`Self::set`], with the level, for a token whose parts have theirs.
    pub fn set_in_order(&mut self, token: TokenId, left: TokenId, right: TokenId, rank: u32) {
        let level = rank.max(self.level(left)).max(self.level(right));
        self.set(token, left, right, level);
        self.ranks[token.index()] = rank;
    }

    /// Call this when all splits are set in order.
    pub fn finish_in_order(&mut self) {
        let same = |(split, &rank): (&Split, &u32)| split.level == rank;
        if self.splits.iter().zip(&self.ranks).all(same) {
            self.ranks = Vec::new();
        }
    }

    pub fn set_base(&mut self, token: TokenId) {
        self.splits[token.index()].level = BASE;
    }

    /// Ranks of merges are above [`BASE`] and below [`NEVER`].
    pub fn set(&mut self, token: TokenId, left: TokenId, right: TokenId, rank: u32) {
        let split = &mut self.splits[token.index()];
        split.left = left.0 | (split.left & !ID_MASK);
        split.right = right.0 | (split.right & !ID_MASK);
        split.level = rank;
        self.splits[left.index()].left |= IS_PART;
        self.splits[right.index()].right |= IS_PART;
    }

    /// Call this when all splits are set, with the tokens from the shortest to the longest.
    pub fn find_levels(&mut self, by_length: &[TokenId]) {
        let ranks: Vec<u32> = self.splits.iter().map(|split| split.level).collect();
        for &token in by_length {
            if let Some((left, right)) = self.get(token) {
                let parts = self.level(left).max(self.level(right));
                let level = &mut self.splits[token.index()].level;
                *level = parts.max(*level);
            }
        }
        if self.splits.iter().zip(&ranks).any(|(split, &rank)| split.level != rank) {
            self.ranks = ranks;
        }
    }

    pub fn set_shorter(&mut self, token: TokenId, shorter: Option<TokenId>) {
        self.splits[token.index()].shorter = shorter.map_or(NONE, |token| token.0);
    }

    pub fn width(&self) -> usize {
        self.splits.len()
    }

    #[inline]
    pub fn is_reachable(&self, token: TokenId) -> bool {
        self.splits.get(token.index()).is_some_and(|split| split.level != NEVER)
    }

    /// When a token is made: [`BASE`] if it is in the base, [`NEVER`] if it is never made.
    #[inline]
    pub fn level(&self, token: TokenId) -> u32 {
        self.splits[token.index()].level
    }

    /// How urgent the merge is that makes a token.
    #[inline]
    pub fn rank(&self, token: TokenId) -> u32 {
        let level = self.splits.get(token.index()).map_or(NEVER, |split| split.level);
        self.ranks.get(token.index()).copied().unwrap_or(level)
    }

    #[inline]
    pub fn get(&self, token: TokenId) -> Option<(TokenId, TokenId)> {
        let split = self.splits.get(token.index())?;
        (split.level != BASE && split.level != NEVER).then(|| (left_of(split), right_of(split)))
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

    #[inline]
    pub fn first_byte(&self, token: TokenId) -> u8 {
        (self.splits[token.index()].right >> BYTE_SHIFT) as u8
    }

    #[inline]
    pub fn last_byte(&self, token: TokenId) -> u8 {
        (self.splits[token.index()].left >> BYTE_SHIFT) as u8
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

    #[inline]
    pub fn shorter(&self, token: TokenId) -> Option<TokenId> {
        let shorter = self.splits[token.index()].shorter;
        (shorter != NONE).then_some(TokenId(shorter))
    }

    pub fn memory_bytes(&self) -> usize {
        self.splits.capacity() * std::mem::size_of::<Split>() + self.ranks.capacity() * 4
    }
}

#[inline]
fn left_of(split: &Split) -> TokenId {
    TokenId(split.left & ID_MASK)
}

#[inline]
fn right_of(split: &Split) -> TokenId {
    TokenId(split.right & ID_MASK)
}
