//! A compiled table as bytes, and back without searching for the splits again.
//!
//! The bytes may be untrusted. Every number is compared with its bounds, every text with the order
//! that is claimed, and every split with the pair test. What can be made from that in little time
//! is not saved: the tries, the maps and the levels.

use super::pair::may_follow;
use super::pair_map::PairMap;
use super::spec::{Base, BpeSpec, Merges, MAX_BYTES, MAX_IDS};
use super::splits::{Splits, BASE, NEVER};
use super::table::{trie_texts, BpeTable};
use super::texts::Texts;
use super::trie::Trie;
use crate::vocabulary::{sorted_by_length, sorted_by_text, TokenId};

/// The numbers at the start: width, bytes of all texts, tokens, flags, the first id of bytes
/// without a token, and bases of the trie.
const HEAD: usize = 6;
const WHOLE_PIECES: u32 = 1;
const NO_ID: u32 = u32::MAX;

/// The most places of a saved trie. Real vocabularies have about as many as nodes.
fn max_places(length: usize) -> usize {
    1024 + 4 * length
}

struct Numbers<'b>(&'b [[u8; 4]]);

impl<'b> Numbers<'b> {
    fn take(bytes: &mut &'b [u8], count: usize) -> Option<Self> {
        let (numbers, rest) = bytes.split_at_checked(count.checked_mul(4)?)?;
        *bytes = rest;
        Some(Self(numbers.as_chunks().0))
    }

    fn get(&self, index: usize) -> u32 {
        u32::from_le_bytes(self.0[index])
    }

    fn numbers(&self) -> impl Iterator<Item = u32> + Clone + 'b {
        self.0.iter().map(|&number| u32::from_le_bytes(number))
    }
}

impl BpeTable {
    /// The table as bytes; `None` for one of characters, or with several tokens of the same text.
    pub fn save(&self) -> Option<Vec<u8>> {
        let (texts, splits) = (&self.texts, &self.splits);
        let tokens = texts.tokens().map(|(token, _)| token);
        let sorted = sorted_by_text(tokens, |token| texts.get(token));
        let same = |pair: &[TokenId]| texts.get(pair[0]) == texts.get(pair[1]);
        if texts.base() != Base::Bytes || sorted.windows(2).any(same) {
            return None;
        }
        let bases = self.trie().bases(sorted.iter().map(|&token| texts.get(token)))?;
        let length = texts.tokens().map(|(_, text)| text.len()).sum();
        if self.trie().places() > max_places(length) {
            return None;
        }
        let mut out = Vec::new();
        let mut push = |number: u32| out.extend_from_slice(&number.to_le_bytes());
        push(texts.width() as u32);
        push(length as u32);
        push(sorted.len() as u32);
        push(if self.whole_pieces { WHOLE_PIECES } else { 0 });
        push(texts.missing_from().map_or(NO_ID, |token| token.0));
        push(bases.len() as u32);
        (0..=255).for_each(|byte| push(texts.byte_token(byte).0));
        for token in (0..texts.width() as u32).map(TokenId) {
            push(texts.get(token).len() as u32);
        }
        sorted.iter().for_each(|token| push(token.0));
        for token in (0..texts.width() as u32).map(TokenId) {
            let (left, right) = splits.get(token).unwrap_or((TokenId(NO_ID), TokenId(NO_ID)));
            [left.0, right.0, splits.rank(token)].into_iter().for_each(&mut push);
        }
        bases.into_iter().for_each(&mut push);
        texts.tokens().for_each(|(_, text)| out.extend_from_slice(text));
        Some(out)
    }

    /// A table from bytes that [`Self::save`] has made; `None` for any others.
    pub fn load(mut bytes: &[u8]) -> Option<Self> {
        let head = Numbers::take(&mut bytes, HEAD)?;
        let (width, length, count) =
            (head.get(0) as usize, head.get(1) as usize, head.get(2) as usize);
        let (flags, missing_from) = (head.get(3), head.get(4));
        if width > MAX_IDS || length > MAX_BYTES || count > width || flags > WHOLE_PIECES {
            return None;
        }
        let byte_tokens = Numbers::take(&mut bytes, 256)?;
        let lengths = Numbers::take(&mut bytes, width)?;
        let sorted = Numbers::take(&mut bytes, count)?;
        let parts = Numbers::take(&mut bytes, 3 * width)?;
        let bases = Numbers::take(&mut bytes, head.get(5) as usize)?;
        let mut offsets = vec![0];
        let mut end = 0u32;
        for id in 0..width {
            end = end.checked_add(lengths.get(id)).filter(|&end| end as usize <= length)?;
            offsets.push(end);
        }
        if bytes.len() != length || end as usize != length {
            return None;
        }
        let mut of_bytes = [TokenId(0); 256];
        for (byte, token) in of_bytes.iter_mut().enumerate() {
            *token = TokenId(byte_tokens.get(byte));
        }
        let missing_from = (missing_from != NO_ID).then_some(TokenId(missing_from));
        let texts = Texts::of_saved(bytes.to_vec(), offsets, of_bytes, missing_from)?;
        let sorted: Vec<TokenId> = (0..count).map(|at| TokenId(sorted.get(at))).collect();
        let ascend = |pair: &[TokenId]| texts.get(pair[0]) < texts.get(pair[1]);
        let empty = |&token: &TokenId| texts.get(token).is_empty();
        // Ascending texts are different, so that none is missing if their number is right.
        if count != texts.tokens().count()
            || !sorted.windows(2).all(ascend)
            || sorted.iter().any(empty)
        {
            return None;
        }
        let tokens = texts.tokens().map(|(token, _)| token);
        let by_length = sorted_by_length(tokens, |token| texts.get(token));
        let (splits, pairs) = load_splits(&texts, &parts, &by_length)?;
        let spec = BpeSpec {
            base: Base::Bytes,
            pieces: Vec::new(),
            byte_tokens: [None; 256],
            merges: Merges::Listed(Vec::new()),
            whole_pieces: flags & WHOLE_PIECES != 0,
            missing_from,
        };
        let entries = trie_texts(&texts, &splits, &sorted);
        let trie = Trie::with_bases(&entries, bases.numbers(), max_places(length))?;
        Some(Self::of_splits(texts, splits, pairs, trie, &sorted, by_length, &spec))
    }
}

fn load_splits(
    texts: &Texts,
    parts: &Numbers<'_>,
    by_length: &[TokenId],
) -> Option<(Splits, PairMap)> {
    let mut splits = Splits::unreachable(texts);
    (0..=255).for_each(|byte| splits.set_base(texts.byte_token(byte)));
    splits.begin_in_order();
    let mut pairs = PairMap::with_room(by_length.len());
    for &token in by_length {
        let at = 3 * token.index();
        let (left, right, rank) =
            (TokenId(parts.get(at)), TokenId(parts.get(at + 1)), parts.get(at + 2));
        if left.0 == NO_ID {
            // Neither made by a merge nor otherwise than above.
            let expected = if splits.is_reachable(token) { BASE } else { NEVER };
            if rank != expected {
                return None;
            }
            continue;
        }
        let text = texts.get(token);
        let is_split = rank > BASE
            && rank < NEVER
            && !splits.is_reachable(token)
            && splits.is_reachable(left)
            && splits.is_reachable(right)
            && text.strip_prefix(texts.get(left)) == Some(texts.get(right))
            && may_follow(&splits, &pairs, left, right);
        if !is_split {
            return None;
        }
        splits.set_in_order(token, left, right, rank);
        pairs.insert(&splits, token);
    }
    splits.finish_in_order();
    Some((splits, pairs))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::testing::{ranked, sources};
    use super::*;

    fn assert_same(table: &BpeTable, loaded: &BpeTable) {
        assert_eq!(table.width(), loaded.width());
        for token in (0..table.width() as u32).map(TokenId) {
            assert_eq!(table.text(token), loaded.text(token));
            assert_eq!(table.facts(token), loaded.facts(token));
        }
        assert_eq!(table.save(), loaded.save());
    }

    #[test]
    fn a_saved_table_is_the_same() {
        let sources = sources();
        let lengths = 2..6;
        let parts: BTreeSet<&[u8]> =
            lengths.flat_map(|length| sources[..400].windows(length)).collect();
        let parts: Vec<&[u8]> = parts.into_iter().collect();
        let mut whole = ranked(&parts);
        whole.whole_pieces = true;
        let mut missing = ranked(&[b"ab", b"abc", b"cab"]);
        missing.pieces.retain(|(token, _)| token.0 != 0xFF);
        missing.byte_tokens[0xFF] = None;
        missing.missing_from = Some(TokenId(300));
        missing.merges = Merges::Ranked([256, 257, 258].map(TokenId).into());
        for spec in [ranked(&parts), whole, ranked(&[]), missing] {
            let table = BpeTable::new(spec).unwrap();
            let loaded = BpeTable::load(&table.save().unwrap()).unwrap();
            assert_same(&table, &loaded);
            let text = "The table, théâtre 12345 abcabc\n".repeat(3);
            for piece in text.as_bytes().chunks(7) {
                let (mut tokens, mut same) = (Vec::new(), Vec::new());
                table.encode_piece(piece, &mut tokens);
                loaded.encode_piece(piece, &mut same);
                assert_eq!(tokens, same);
            }
        }
    }

    #[test]
    fn other_bytes_are_refused_or_make_a_table_that_works() {
        let table = BpeTable::new(ranked(&[b"ab", b"abc", b"bc", b"cab", b"abcab"])).unwrap();
        let saved = table.save().unwrap();
        for end in 0..saved.len() {
            assert!(BpeTable::load(&saved[..end]).is_none());
        }
        assert!(BpeTable::load(&[&saved[..], b"x"].concat()).is_none());
        for at in 0..saved.len() {
            for change in [1, 0x80, 0xFF] {
                let mut changed = saved.clone();
                changed[at] ^= change;
                let Some(table) = BpeTable::load(&changed) else { continue };
                let mut tokens = Vec::new();
                table.encode_piece(b"abcabcab abcbc\x00\xFF", &mut tokens);
                table.forbidden_after(TokenId(0));
            }
        }
    }
}
