//! A map from two tokens to their merged token.
//!
//! Most look-ups fail. A table says in advance whether anything merges across a border between two
//! bytes. In vocabularies whose words start with a space, this decides most pairs. A bit for each
//! hash, in a table small enough for the cache, decides nearly all others. A slot of the map itself
//! has four bytes: the merged token, by which the parts can be compared, and ten bits of the hash.

use super::spec::MAX_IDS;
use super::splits::Splits;
use crate::vocabulary::TokenId;

#[derive(Debug)]
pub(super) struct PairMap {
    /// For each pair of bytes, whether a merge has the first at the end of its left part and the
    /// second at the start of its right part.
    borders: Box<[[u64; 4]; 256]>,
    /// Whether any pair has a hash that begins with these bits.
    filter: Vec<u64>,
    filter_shift: u32,
    /// The merged token, and above it bits of the hash; [`EMPTY`] where there is none.
    slots: Vec<u32>,
    slot_shift: u32,
}

const EMPTY: u32 = u32::MAX;
const ID_BITS: u32 = MAX_IDS.trailing_zeros();
const ID_MASK: u32 = MAX_IDS as u32 - 1;
/// Bits of the filter for each pair, at least.
const FILTER_BITS: usize = 8;

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
        let mut map = Self::with_room(merged.len());
        for token in merged {
            map.insert(splits, token);
        }
        map
    }

    /// An empty map for this many merges.
    pub fn with_room(merges: usize) -> Self {
        let filter_bits = (merges * FILTER_BITS).next_power_of_two().max(64);
        // At most half full.
        let size = (merges * 2).next_power_of_two().max(2);
        Self {
            borders: Box::new([[0; 4]; 256]),
            filter: vec![0; filter_bits / 64],
            filter_shift: 64 - filter_bits.trailing_zeros(),
            slots: vec![EMPTY; size],
            slot_shift: 64 - size.trailing_zeros(),
        }
    }

    /// Adds the merge of a token's split, which is not in the map yet. There must be room.
    pub fn insert(&mut self, splits: &Splits, token: TokenId) {
        let last = splits.last_byte(splits.left(token));
        let first = splits.first_byte(splits.right(token));
        self.borders[usize::from(last)][usize::from(first) / 64] |= 1 << (first % 64);
        let hash = hash(splits.left(token), splits.right(token));
        let bit = hash >> self.filter_shift;
        self.filter[(bit / 64) as usize] |= 1 << (bit % 64);
        let mut slot = (hash >> self.slot_shift) as usize;
        while self.slots[slot] != EMPTY {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = fingerprint(hash) | token.0;
    }

    /// Whether any merge joins a token that ends with a byte and one that begins with another.
    #[inline]
    pub fn joins(&self, last: u8, first: u8) -> bool {
        self.borders[usize::from(last)][usize::from(first) / 64] >> (first % 64) & 1 != 0
    }

    #[inline]
    pub fn get(&self, splits: &Splits, left: TokenId, right: TokenId) -> Option<TokenId> {
        let hash = hash(left, right);
        let bit = hash >> self.filter_shift;
        if self.filter[(bit / 64) as usize] >> (bit % 64) & 1 == 0 {
            return None;
        }
        let fingerprint = fingerprint(hash);
        let mut slot = (hash >> self.slot_shift) as usize;
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
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    pub fn memory_bytes(&self) -> usize {
        std::mem::size_of_val(&*self.borders)
            + self.slots.capacity() * 4
            + self.filter.capacity() * 8
    }
}
