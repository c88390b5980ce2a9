//! Whether one token may follow another within a piece, without encoding anything.
//!
//! Two tokens that stand side by side came about independently, unless before that a merge
//! joined a symbol at the end of the first with one at the beginning of the second. The symbols
//! at the end of a token are its *right spine*: the token, its right part, the right part of
//! that, and so on; those at the beginning of the second are its left spine. Each is there from
//! the merge that makes it until the merge of its parent, its *death*. So the pair stands unless
//! a symbol of one spine and a symbol of the other merge at a rank at which both are there.

use super::pair_map::PairMap;
use super::splits::{Splits, BASE, NEVER};
use crate::vocabulary::TokenId;

/// Whether merging encodes the texts of two reachable tokens, one after the other, as these two.
#[inline]
pub(super) fn may_follow(splits: &Splits, pairs: &PairMap, left: TokenId, right: TokenId) -> bool {
    if splits.are_in_order() {
        follows_in_order(splits, pairs, left, right)
    } else {
        follows_out_of_order(splits, pairs, left, right)
    }
}

/// Goes back in time: of the two symbols at the border, the one that was made later is taken
/// apart, the right one of two that are made by the same merge.
#[inline]
fn follows_in_order(
    splits: &Splits,
    pairs: &PairMap,
    mut left: TokenId,
    mut right: TokenId,
) -> bool {
    let (mut left_death, mut right_death) = (NEVER, NEVER);
    let (mut left_rank, mut right_rank) = (splits.rank(left), splits.rank(right));
    loop {
        if splits.is_left_part(left) && splits.is_right_part(right) {
            if let Some(merged) = pairs.get(splits, left, right) {
                // Of several merges of one rank the leftmost comes first: on the left that is
                // the death, on the right it is the merge across the border.
                let rank = splits.rank(merged);
                if rank < left_death && rank <= right_death {
                    return false;
                }
            }
        }
        if left_rank > right_rank {
            left_death = left_rank;
            left = splits.right(left);
            left_rank = splits.rank(left);
        } else if right_rank != BASE {
            right_death = right_rank;
            right = splits.left(right);
            right_rank = splits.rank(right);
        } else {
            return true;
        }
    }
}

/// A symbol of a spine, with the symbol that it is in.
#[derive(Clone, Copy)]
struct OnSpine {
    symbol: TokenId,
    parent: Option<TokenId>,
}

fn right_spine(splits: &Splits, token: TokenId) -> impl Iterator<Item = OnSpine> + '_ {
    let first = OnSpine { symbol: token, parent: None };
    std::iter::successors(Some(first), |above| {
        let (_, symbol) = splits.get(above.symbol)?;
        Some(OnSpine { symbol, parent: Some(above.symbol) })
    })
}

fn left_spine(splits: &Splits, token: TokenId) -> impl Iterator<Item = OnSpine> + '_ {
    let first = OnSpine { symbol: token, parent: None };
    std::iter::successors(Some(first), |above| {
        let (symbol, _) = splits.get(above.symbol)?;
        Some(OnSpine { symbol, parent: Some(above.symbol) })
    })
}

/// The same where a token may have an earlier rank than its parts.
///
/// A merge then happens at its *level*, the latest rank of all the merges within it. Merges of
/// one level go from left to right: each begins with a merge of that very rank, and whatever of
/// earlier rank becomes possible by it follows at once, before the next one further to the right.
fn follows_out_of_order(splits: &Splits, pairs: &PairMap, left: TokenId, right: TokenId) -> bool {
    right_spine(splits, left).all(|on_left| {
        left_spine(splits, right).all(|on_right| {
            pairs
                .get(splits, on_left.symbol, on_right.symbol)
                .is_none_or(|merged| !would_merge(splits, on_left, on_right, splits.rank(merged)))
        })
    })
}

/// Whether two symbols that merge at some rank are there at the same time, and it happens before
/// either is merged with its own sibling.
fn would_merge(splits: &Splits, left: OnSpine, right: OnSpine, rank: u32) -> bool {
    let (left_level, right_level) = (splits.level(left.symbol), splits.level(right.symbol));
    let left_death = left.parent.map_or(NEVER, |parent| splits.level(parent));
    let right_death = right.parent.map_or(NEVER, |parent| splits.level(parent));
    let ready = left_level.max(right_level);
    if rank > ready {
        return left_death > rank && right_death >= rank;
    }
    // Both are there at last within a level, and this merge is more urgent than those of the
    // level that are still to come further to the right.
    if right_level == ready {
        // Whatever the left side does at this level was done before.
        if left_death <= ready {
            return false;
        }
        right.parent.is_none_or(|parent| {
            let sibling_is_later = splits.level(splits.right(parent)) == ready;
            right_death > ready || sibling_is_later || rank <= splits.rank(parent)
        })
    } else {
        right_death >= ready
            && left.parent.is_none_or(|parent| left_death > ready || rank < splits.rank(parent))
    }
}
