//! Whether one token may follow another within a piece, without encoding anything.
//!
//! Two adjacent tokens are formed independently, unless an earlier merge joins a symbol at the end
//! of the first with one at the start of the second. The symbols at the end of a token are its
//! *right spine*: the token, its right part, the right part of that, and so on. Those at the start
//! of the second are its left spine. Each exists from the merge that makes it until that of its
//! parent, its *death*. The pair is therefore stable unless a symbol of one spine and a symbol of
//! the other exist at the same time, and merge before either dies.

use super::pair_map::PairMap;
use super::splits::{Splits, BASE};
use crate::vocabulary::TokenId;

/// Whether merging encodes the texts of two reachable tokens, one after the other, as these two.
///
/// Goes back in time: it splits the later of the two symbols at the border. If both were made at
/// the same level, that is the right one.
#[inline]
pub(super) fn may_follow(
    splits: &Splits,
    pairs: &PairMap,
    mut left: TokenId,
    mut right: TokenId,
) -> bool {
    if !pairs.joins(splits.last_byte(left), splits.first_byte(right)) {
        return true;
    }
    let (mut left_parent, mut right_parent) = (None, None);
    let (mut left_level, mut right_level) = (splits.level(left), splits.level(right));
    loop {
        if splits.is_left_part(left) && splits.is_right_part(right) {
            if let Some(merged) = pairs.get(splits, left, right) {
                if left_parent.is_none_or(|parent| precedes_left_death(splits, merged, parent))
                    && right_parent
                        .is_none_or(|parent| precedes_right_death(splits, merged, parent))
                {
                    return false;
                }
            }
        }
        if left_level > right_level {
            left_parent = Some(left);
            left = splits.right(left);
            left_level = splits.level(left);
        } else if right_level != BASE {
            right_parent = Some(right);
            right = splits.left(right);
            right_level = splits.level(right);
        } else {
            return true;
        }
    }
}

/// Whether a merge across a border happens before its left part is merged into `parent`, left of
/// the border.
#[inline]
pub(super) fn precedes_left_death(splits: &Splits, merged: TokenId, parent: TokenId) -> bool {
    let (level, death) = (splits.level(merged), splits.level(parent));
    if death != level {
        return death > level;
    }
    // At one level the left side merges before the right side. This merge therefore comes first
    // only if it waits for its left part alone, and is more urgent than the death.
    splits.level(splits.right(merged)) < level && splits.rank(merged) < splits.rank(parent)
}

/// The same for the right part and its parent, right of the border.
#[inline]
pub(super) fn precedes_right_death(splits: &Splits, merged: TokenId, parent: TokenId) -> bool {
    let (level, death) = (splits.level(merged), splits.level(parent));
    if death != level {
        return death > level;
    }
    // At the same level the death comes first only if it does not wait for anything further right
    // and is more urgent. A death that waits for nothing at this level is less urgent.
    splits.level(splits.right(parent)) == level || splits.rank(merged) <= splits.rank(parent)
}
