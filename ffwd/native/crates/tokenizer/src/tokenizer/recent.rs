//! Recently encoded pieces of a text that are not single tokens.

use super::piece_map;
use crate::vocabulary::TokenId;

/// The longest piece that is remembered.
const LONGEST: usize = 64;

/// The most cached pieces, and the bytes of text for each.
const MOST: usize = 8192;
const BYTES: usize = 32;

/// The range of a piece in the text, and of its tokens in the result.
#[derive(Clone, Copy, Debug, Default)]
struct RecentPiece {
    start: u32,
    tokens: u32,
    length: u8,
    count: u8,
}

/// The last encoded pieces of one text, by hash. Names and rare words often repeat in a text, and
/// copying their tokens is faster than encoding them again.
#[derive(Debug)]
pub(super) struct Recent {
    slots: Vec<RecentPiece>,
}

impl Recent {
    /// Makes a cache for a text of this many bytes.
    pub fn new(length: usize) -> Self {
        let slots = match u32::try_from(length) {
            Ok(_) => (length / BYTES).next_power_of_two().min(MOST),
            // Places would not fit.
            Err(_) => 0,
        };
        Self { slots: vec![RecentPiece::default(); slots] }
    }

    /// Appends the tokens of a piece of a text: the cached ones, or those that `encode` appends.
    #[inline]
    pub fn encode(
        &mut self,
        text: &[u8],
        start: usize,
        end: usize,
        out: &mut Vec<TokenId>,
        encode: impl FnOnce(&[u8], &mut Vec<TokenId>),
    ) {
        let piece = &text[start..end];
        if piece.len() > LONGEST || self.slots.is_empty() {
            return encode(piece, out);
        }
        let place = piece_map::hash(text, start, end) as usize & (self.slots.len() - 1);
        let slot = &mut self.slots[place];
        if usize::from(slot.length) == piece.len()
            && &text[slot.start as usize..slot.start as usize + piece.len()] == piece
        {
            let tokens = slot.tokens as usize;
            return out.extend_from_within(tokens..tokens + usize::from(slot.count));
        }
        let before = out.len();
        encode(piece, out);
        if let (Ok(tokens), Ok(count)) = (u32::try_from(before), u8::try_from(out.len() - before)) {
            *slot = RecentPiece { start: start as u32, tokens, length: piece.len() as u8, count };
        }
    }

    /// Returns the number of tokens of a piece: the cached one, or that of `count`.
    #[inline]
    pub fn count(
        &mut self,
        text: &[u8],
        start: usize,
        end: usize,
        count: impl FnOnce(&[u8]) -> usize,
    ) -> usize {
        let piece = &text[start..end];
        if piece.len() > LONGEST || self.slots.is_empty() {
            return count(piece);
        }
        let place = piece_map::hash(text, start, end) as usize & (self.slots.len() - 1);
        let slot = &mut self.slots[place];
        if usize::from(slot.length) == piece.len()
            && &text[slot.start as usize..slot.start as usize + piece.len()] == piece
        {
            return usize::from(slot.count);
        }
        let number = count(piece);
        if let Ok(count) = u8::try_from(number) {
            *slot =
                RecentPiece { start: start as u32, tokens: 0, length: piece.len() as u8, count };
        }
        number
    }
}
