//! The default encoder: it takes the longest token that may follow, and backtracks from dead ends.
//!
//! If all neighbours in a sequence may follow each other, it is the encoding of its text, so at
//! most one sequence leads to an offset in the text. An offset from which the search backtracked is
//! therefore never needed again, and each offset is entered once.

use super::table::BpeTable;
use crate::vocabulary::TokenId;

/// The places from which no encoding of the text continues; usually there are none.
#[derive(Default)]
struct DeadEnds {
    /// For places below 64, which are all places of most pieces.
    near: u64,
    far: Vec<u64>,
}

impl DeadEnds {
    #[inline]
    fn contains(&self, place: usize) -> bool {
        match place.checked_sub(64) {
            None => self.near >> place & 1 != 0,
            Some(far) => self.far.get(far / 64).is_some_and(|word| word >> (far % 64) & 1 != 0),
        }
    }

    #[cold]
    fn insert(&mut self, place: usize, length: usize) {
        match place.checked_sub(64) {
            None => self.near |= 1 << place,
            Some(far) => {
                if self.far.is_empty() {
                    self.far = vec![0; length.div_ceil(64)];
                }
                self.far[far / 64] |= 1 << (far % 64);
            }
        }
    }
}

impl BpeTable {
    /// Appends the encoding of a text by merges, given the longest token at its start.
    #[inline]
    pub(super) fn encode_from(
        &self,
        text: &[u8],
        longest: Option<TokenId>,
        out: &mut Vec<TokenId>,
    ) {
        self.encode_until(text, longest, out, |_, _| false);
    }

    /// The same, up to the first token after which, and for the place there, `stop` holds.
    #[inline]
    pub(super) fn encode_until(
        &self,
        text: &[u8],
        longest: Option<TokenId>,
        out: &mut Vec<TokenId>,
        mut stop: impl FnMut(usize, TokenId) -> bool,
    ) {
        let bottom = out.len();
        let mut dead_ends = DeadEnds::default();
        let mut at = 0;
        let mut candidate = longest;
        while at < text.len() {
            // An offset without a token is a byte that no piece has, and nothing merges with it.
            let token = candidate.unwrap_or_else(|| self.byte_token(text[at]));
            let next = at + self.length(token);
            let may_follow = || match out.get(bottom..).and_then(<[_]>::last) {
                Some(&last) => self.may_follow(last, token),
                None => true,
            };
            if !dead_ends.contains(next) && may_follow() {
                out.push(token);
                if stop(next, token) {
                    return;
                }
                at = next;
                candidate = self.longest(&text[at..]);
                continue;
            }
            candidate = self.shorter(token);
            // No shorter token: whatever leads here is a dead end.
            while candidate.is_none() {
                dead_ends.insert(at, text.len());
                let Some(&last) = out.get(bottom..).and_then(<[_]>::last) else { return };
                out.pop();
                at -= self.length(last);
                candidate = self.shorter(last);
            }
        }
    }
}
