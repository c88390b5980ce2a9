//! The tokens of recent short pieces, for all texts of a tokenizer.
//!
//! Some thousand pieces are most of any text. Their tokens fit into the processor's cache, which
//! the tables of all tokens do not. Each call borrows one of the tokenizer's caches, so that no
//! thread waits for another, and gives it back with what it has learned.

use parking_lot::Mutex;

use crate::vocabulary::TokenId;

/// Longer pieces are not kept.
pub(super) const LONGEST: usize = 15;
/// Pieces of more tokens are not kept.
const MOST_TOKENS: usize = 3;
/// How many sets of two pieces a cache has.
const SET_BITS: u32 = 14;
/// The caches that a tokenizer keeps; threads beyond this number begin with empty ones.
const KEPT: usize = 4;
/// Texts of fewer bytes do without, because borrowing takes as long as encoding them.
const SHORT_TEXT: usize = 48;

/// The bytes of a piece, and their number in the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Key(u64, u64);

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Slot {
    key: Key,
    tokens: [TokenId; MOST_TOKENS],
    count: u32,
}

/// Two pieces whose keys have one place, the one that came last first.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set([Slot; 2]);

#[derive(Debug)]
struct Sets(Box<[Set]>);

/// The caches of one tokenizer.
#[derive(Debug, Default)]
pub(super) struct PieceCaches(Mutex<Vec<Sets>>);

/// A cache that one call uses.
pub(super) struct Borrowed<'c> {
    caches: &'c PieceCaches,
    /// `None` for a short text.
    sets: Option<Sets>,
}

impl PieceCaches {
    /// Borrows a cache for a text of this many bytes.
    pub fn borrow(&self, length: usize) -> Borrowed<'_> {
        let sets = (length >= SHORT_TEXT).then(|| {
            let kept = self.0.lock().pop();
            kept.unwrap_or_else(|| Sets(vec![Set::default(); 1 << SET_BITS].into()))
        });
        Borrowed { caches: self, sets }
    }

    /// About how many bytes of memory the caches hold while no call uses them.
    pub fn memory_bytes(&self) -> usize {
        self.0.lock().len() * (size_of::<Set>() << SET_BITS)
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if let Some(sets) = self.sets.take() {
            let mut kept = self.caches.0.lock();
            if kept.len() < KEPT {
                kept.push(sets);
            }
        }
    }
}

impl Set {
    #[inline(always)]
    fn find(&self, key: Key) -> Option<&Slot> {
        self.0.iter().find(|slot| slot.key == key)
    }

    /// Keeps the tokens of a piece unless they are too many.
    fn keep(&mut self, key: Key, tokens: &[TokenId]) {
        let mut slot = Slot { key, count: tokens.len() as u32, ..Slot::default() };
        if let Some(kept) = slot.tokens.get_mut(..tokens.len()) {
            kept.copy_from_slice(tokens);
            self.0 = [slot, self.0[0]];
        }
    }
}

impl Borrowed<'_> {
    /// Appends the tokens of a piece of a text: the cached ones, or those that `encode` appends.
    #[inline(always)]
    pub fn encode(
        &mut self,
        text: &[u8],
        start: usize,
        end: usize,
        out: &mut Vec<TokenId>,
        encode: impl FnOnce(&mut Vec<TokenId>),
    ) {
        let (Some(sets), true) = (&mut self.sets, end - start <= LONGEST) else {
            return encode(out);
        };
        let key = key_of(text, start, end - start);
        let set = &mut sets.0[place_of(key)];
        if let Some(slot) = set.find(key) {
            if slot.count == 1 {
                out.push(slot.tokens[0]);
            } else {
                out.extend_from_slice(&slot.tokens[..slot.count as usize]);
            }
            return;
        }
        let before = out.len();
        encode(out);
        set.keep(key, &out[before..]);
    }

    /// Returns the number of tokens of a piece: the cached one, or that of the tokens that `encode`
    /// appends to an empty vector.
    #[inline(always)]
    pub fn count(
        &mut self,
        text: &[u8],
        start: usize,
        end: usize,
        scratch: &mut Vec<TokenId>,
        encode: impl FnOnce(&mut Vec<TokenId>) -> usize,
    ) -> usize {
        let (Some(sets), true) = (&mut self.sets, end - start <= LONGEST) else {
            scratch.clear();
            return encode(scratch);
        };
        let key = key_of(text, start, end - start);
        let set = &mut sets.0[place_of(key)];
        if let Some(slot) = set.find(key) {
            return slot.count as usize;
        }
        scratch.clear();
        let count = encode(scratch);
        if count == scratch.len() {
            set.keep(key, scratch);
        }
        count
    }
}

#[inline(always)]
fn key_of(text: &[u8], start: usize, length: usize) -> Key {
    let from = &text[start..];
    let (low, high) = match from.first_chunk::<16>() {
        Some(bytes) => {
            let word = u128::from_le_bytes(*bytes);
            (word as u64, (word >> 64) as u64)
        }
        None => {
            let mut bytes = [0; 16];
            bytes[..from.len()].copy_from_slice(from);
            let word = u128::from_le_bytes(bytes);
            (word as u64, (word >> 64) as u64)
        }
    };
    let size = (length as u64) << 56;
    if length < 8 {
        Key(low & ((1 << (8 * length)) - 1), size)
    } else {
        Key(low, (high & ((1 << (8 * (length - 8))) - 1)) | size)
    }
}

#[inline(always)]
fn place_of(key: Key) -> usize {
    let mixed = (key.0 ^ key.1.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed >> (64 - SET_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_that_of_one_piece_alone() {
        let text: Vec<u8> = (0..40).map(|at| [0, 1, 0xFF, b'a'][at % 4]).collect();
        let mut known: Vec<(Key, &[u8])> = Vec::new();
        for start in 0..text.len() {
            for length in 1..=LONGEST.min(text.len() - start) {
                let (key, piece) = (key_of(&text, start, length), &text[start..start + length]);
                for &(other, text) in &known {
                    assert_eq!(key == other, piece == text);
                }
                known.push((key, piece));
            }
        }
    }

    #[test]
    fn what_is_kept_is_what_was_encoded() {
        let caches = PieceCaches::default();
        let text = [b'x'; 64];
        for (end, count) in [(1, 1), (2, 3), (3, 4), (15, 2), (16, 1)] {
            for round in 0..2 {
                let mut cache = caches.borrow(text.len());
                let expected: Vec<TokenId> = (0..count).map(TokenId).collect();
                let (mut out, mut encoded) = (vec![TokenId(9)], false);
                cache.encode(&text, 0, end, &mut out, |out| {
                    encoded = true;
                    out.extend(&expected);
                });
                assert_eq!(out[1..], expected);
                let kept = end <= LONGEST && count as usize <= MOST_TOKENS;
                assert_eq!(encoded, round == 0 || !kept, "{end} {count}");
                let counted = cache.count(&text, 0, end, &mut out, |out| {
                    out.extend(&expected);
                    expected.len()
                });
                assert_eq!(counted, expected.len());
            }
        }
        assert_eq!(caches.0.lock().len(), 1);
        let many: Vec<_> = (0..20).map(|_| caches.borrow(64)).collect();
        drop(many);
        assert_eq!(caches.0.lock().len(), KEPT);
        assert!(caches.borrow(SHORT_TEXT - 1).sets.is_none());
    }

    #[test]
    fn a_set_has_the_two_pieces_that_came_last() {
        let mut set = Set::default();
        let key = |number: u64| Key(number, 1 << 56);
        for number in 0..10_u32 {
            set.keep(key(number.into()), &[TokenId(number)]);
            set.keep(key(99), &[TokenId(0); MOST_TOKENS + 1]);
            for (other, is_kept) in [(number, true), (number + 1, false), (99, false)] {
                let found = set.find(key(other.into()));
                assert_eq!(found.map(|slot| slot.tokens[0]), is_kept.then_some(TokenId(other)));
            }
            let before = number.checked_sub(1).map(|before| set.find(key(before.into())).is_some());
            assert_ne!(before, Some(false));
            assert!(number < 2 || set.find(key(u64::from(number) - 2)).is_none());
        }
    }
}
