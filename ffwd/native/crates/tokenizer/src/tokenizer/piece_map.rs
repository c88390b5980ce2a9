//! The pieces of text that are single tokens: most are, so this look-up comes first.

use crate::bpe::BpeTable;
use crate::vocabulary::TokenId;

/// Pieces shorter than this are kept as numbers.
const SHORT: usize = 8;

/// Spreads differences over all bits: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// No token has this id.
const NONE: u32 = u32::MAX;

/// A piece of fewer than eight bytes: the bytes, and their number in the highest.
#[derive(Clone, Copy, Debug)]
struct ShortSlot {
    key: u64,
    token: u32,
}

/// A longer piece, by some bits of its hash.
#[derive(Clone, Copy, Debug)]
struct LongSlot {
    tag: u32,
    token: u32,
}

/// A hash table from pieces to tokens, with open addressing.
#[derive(Debug)]
pub(super) struct PieceMap {
    short: Vec<ShortSlot>,
    long: Vec<LongSlot>,
}

impl PieceMap {
    /// All texts that the table encodes as one token.
    pub fn new(table: &BpeTable) -> Self {
        let tokens = table.whole_piece_tokens();
        let is_short = |token: &&TokenId| table.text(**token).len() < SHORT;
        let short = tokens.iter().filter(is_short).count();
        let long = tokens.len() - short;
        let mut map = Self {
            short: vec![ShortSlot { key: 0, token: NONE }; capacity(short)],
            long: vec![LongSlot { tag: 0, token: NONE }; capacity(long)],
        };
        for token in tokens {
            let text = table.text(token);
            if text.len() < SHORT {
                let key = short_key(text, 0, text.len());
                let mut place = short_hash(key) as usize & (map.short.len() - 1);
                while map.short[place].token != NONE {
                    place = (place + 1) & (map.short.len() - 1);
                }
                map.short[place] = ShortSlot { key, token: token.0 };
            } else {
                let hash = long_hash(text);
                let mut place = hash as usize & (map.long.len() - 1);
                while map.long[place].token != NONE {
                    place = (place + 1) & (map.long.len() - 1);
                }
                map.long[place] = LongSlot { tag: (hash >> 32) as u32, token: token.0 };
            }
        }
        map
    }

    /// The token of a piece of a text. The text around it allows one wide read.
    #[inline(always)]
    pub fn get(&self, table: &BpeTable, text: &[u8], start: usize, end: usize) -> Option<TokenId> {
        if end - start < SHORT {
            let key = short_key(text, start, end - start);
            let mask = self.short.len() - 1;
            let mut place = short_hash(key) as usize & mask;
            loop {
                let slot = self.short[place & mask];
                if slot.key == key {
                    return (slot.token != NONE).then_some(TokenId(slot.token));
                }
                if slot.token == NONE {
                    return None;
                }
                place += 1;
            }
        }
        self.get_long(table, &text[start..end])
    }

    #[inline(never)]
    fn get_long(&self, table: &BpeTable, piece: &[u8]) -> Option<TokenId> {
        let hash = long_hash(piece);
        let mask = self.long.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let slot = self.long[place & mask];
            if slot.token == NONE {
                return None;
            }
            if slot.tag == (hash >> 32) as u32 && table.text(TokenId(slot.token)) == piece {
                return Some(TokenId(slot.token));
            }
            place += 1;
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.short.capacity() * size_of::<ShortSlot>()
            + self.long.capacity() * size_of::<LongSlot>()
    }
}

/// At most half full, and never without an empty slot.
fn capacity(entries: usize) -> usize {
    (2 * entries + 1).next_power_of_two()
}

/// The bytes of a short piece of a text as a number, the first in the lowest bits, and their
/// number in the highest.
#[inline]
fn short_key(text: &[u8], start: usize, length: usize) -> u64 {
    let from = &text[start..];
    let word = match from.first_chunk::<8>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => from.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    (word & ((1 << (8 * length)) - 1)) | (length as u64) << 56
}

#[inline]
fn short_hash(key: u64) -> u64 {
    let product = key.wrapping_mul(MULTIPLIER);
    product ^ (product >> 32)
}

/// Returns the hash of a piece of eight bytes or more.
#[inline]
fn long_hash(piece: &[u8]) -> u64 {
    let (words, _) = piece.as_chunks::<8>();
    // The last eight bytes, some of which were read before.
    let last = piece.last_chunk::<8>();
    words.iter().chain(last).fold(piece.len() as u64, |hash, word| {
        let product = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(MULTIPLIER);
        product ^ (product >> 32)
    })
}

/// A hash of any piece of a text.
#[inline]
pub(super) fn hash(text: &[u8], start: usize, end: usize) -> u64 {
    if end - start < SHORT {
        short_hash(short_key(text, start, end - start))
    } else {
        long_hash(&text[start..end])
    }
}
