//! From two tokens to the token that they merge into.
//!
//! Most look-ups find nothing, so a slot is four bytes, most of a table stays in the cache, and
//! ten bits of the hash in each slot tell nearly always that it is another pair's.

use super::spec::MAX_IDS;
use super::splits::Splits;
use crate::vocabulary::TokenId;

#[derive(Debug)]
pub(super) struct PairMap {
    /// The merged token, and above it bits of the hash; [`EMPTY`] where there is none.
    slots: Vec<u32>,
    shift: u32,
}

const EMPTY: u32 = u32::MAX;
const ID_BITS: u32 = MAX_IDS.trailing_zeros();
const ID_MASK: u32 = MAX_IDS as u32 - 1;

#[inline]
fn hash(left: TokenId, right: TokenId) -> u64 {
    let key = u64::from(left.0) << 32 | u64::from(right.0);
    // Multiplication carries upwards only, so the upper half is mixed in and multiplied again.
    let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// Never that of [`EMPTY`], whatever the id.
#[inline]
fn fingerprint(hash: u64) -> u32 {
    let bits = hash as u32 >> ID_BITS;
    (bits - u32::from(bits == EMPTY >> ID_BITS)) << ID_BITS
}

impl PairMap {
    pub fn new(splits: &Splits) -> Self {
        let merged: Vec<TokenId> = (0..splits.width() as u32)
            .map(TokenId)
            .filter(|&token| splits.get(token).is_some())
            .collect();
        // At most 40% full: a look-up that finds nothing mostly ends at the first slot.
        let size = (merged.len() * 5 / 2).next_power_of_two().max(2);
        let mut map = Self { slots: vec![EMPTY; size], shift: 64 - size.trailing_zeros() };
        for token in merged {
            let hash = hash(splits.left(token), splits.right(token));
            let mut slot = (hash >> map.shift) as usize;
            while map.slots[slot] != EMPTY {
                slot = (slot + 1) & (map.slots.len() - 1);
            }
            map.slots[slot] = fingerprint(hash) | token.0;
        }
        map
    }

    #[inline]
    pub fn get(&self, splits: &Splits, left: TokenId, right: TokenId) -> Option<TokenId> {
        let hash = hash(left, right);
        let fingerprint = fingerprint(hash);
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> self.shift) as usize & mask;
        loop {
            let found = self.slots[slot];
            if found == EMPTY {
                return None;
            }
            if found & !ID_MASK == fingerprint {
                let token = TokenId(found & ID_MASK);
                if splits.left(token) == left && splits.right(token) == right {
                    return Some(token);
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * 4
    }
}
