//! A byte-pair encoding, compiled.

use rustc_hash::FxHashMap;
use std::sync::Arc;

use super::merge_rules::find_splits;
use super::merging::{merge_symbols, Merge, Symbol};
use super::pair::may_follow;
use super::pair_map::PairMap;
use super::spec::{BpeError, BpeSpec};
use super::splits::Splits;
use super::texts::Texts;
use crate::vocabulary::TokenId;

/// A compiled byte-pair encoding.
#[derive(Debug)]
pub struct BpeTable {
    texts: Texts,
    splits: Splits,
    pairs: PairMap,
    by_text: FxHashMap<Box<[u8]>, Vec<TokenId>>,
    longest: usize,
    whole_pieces: bool,
}

impl BpeTable {
    pub fn new(spec: BpeSpec) -> Result<Self, BpeError> {
        let texts = Texts::new(&spec)?;
        let mut splits = find_splits(&texts, &spec)?;
        let mut by_length: Vec<TokenId> = texts.tokens().map(|(token, _)| token).collect();
        by_length.sort_by_key(|&token| texts.get(token).len());
        splits.find_levels(&by_length);
        let pairs = PairMap::new(&splits);
        let mut by_text: FxHashMap<Box<[u8]>, Vec<TokenId>> = FxHashMap::default();
        for (token, text) in texts.tokens() {
            if !texts.is_byte_fallback(token) {
                by_text.entry(text.into()).or_default().push(token);
            }
        }
        for tokens in by_text.values_mut() {
            tokens.sort_by_key(|&token| !splits.is_reachable(token));
        }
        let longest = by_text.keys().map(|text| text.len()).max().unwrap_or(0);
        Ok(Self { texts, splits, pairs, by_text, longest, whole_pieces: spec.whole_pieces })
    }

    /// One more than the largest id of a token.
    pub fn width(&self) -> usize {
        self.texts.width()
    }

    /// What a token spells; nothing if it is no token of the table.
    #[inline]
    pub fn text(&self, token: TokenId) -> &[u8] {
        self.texts.get(token)
    }

    /// Whether merges lead to a token: from its own bytes, and so in some text. A byte token
    /// beside characters is reachable if some text needs it.
    #[inline]
    pub fn is_reachable(&self, token: TokenId) -> bool {
        self.splits.is_reachable(token)
    }

    /// Whether a token stands for a byte that is not part of any piece.
    #[inline]
    pub fn is_byte_fallback(&self, token: TokenId) -> bool {
        self.texts.is_byte_fallback(token)
    }

    /// The two tokens whose merge makes a token, wherever it stands.
    pub fn split(&self, token: TokenId) -> Option<(TokenId, TokenId)> {
        self.splits.get(token)
    }

    /// The rank of that merge, from 1 on; 0 for a token of the base, and `u32::MAX` for one that
    /// no merge reaches.
    #[inline]
    pub fn rank(&self, token: TokenId) -> u32 {
        self.splits.rank(token)
    }

    /// Whether `right` may follow `left` within one piece: the two are the encoding of what they
    /// spell, by merges alone. If all neighbours may, a sequence is the encoding of what it spells.
    ///
    /// Byte tokens beside characters are the exception: besides, they must not spell a character
    /// of three or four bytes that has a piece.
    #[inline]
    pub fn pair(&self, left: TokenId, right: TokenId) -> bool {
        if !self.is_reachable(left) || !self.is_reachable(right) {
            return false;
        }
        if self.is_byte_fallback(left) && self.is_byte_fallback(right) {
            let bytes = [self.texts.get(left)[0], self.texts.get(right)[0]];
            return std::str::from_utf8(&bytes).is_err() || !self.by_text.contains_key(&bytes[..]);
        }
        may_follow(&self.splits, &self.pairs, left, right)
    }

    /// The reachable tokens that may not follow a token.
    pub fn forbidden_after(&self, left: TokenId) -> Arc<[TokenId]> {
        (0..self.width() as u32)
            .map(TokenId)
            .filter(|&right| self.is_reachable(right) && !self.pair(left, right))
            .collect()
    }

    /// Every token, reachable or not, that a text begins with, the shortest first, each with its
    /// length. Byte tokens beside characters are not among them.
    pub fn prefixes(&self, text: &[u8], mut found: impl FnMut(usize, TokenId)) {
        for length in 1..=text.len().min(self.longest) {
            for &token in self.by_text.get(&text[..length]).into_iter().flatten() {
                found(length, token);
            }
        }
    }

    /// The token that a piece is encoded as because it spells all of it, whether or not merges
    /// lead there.
    pub fn whole_piece(&self, piece: &[u8]) -> Option<TokenId> {
        let token = *self.by_text.get(piece)?.first()?;
        (self.whole_pieces || self.is_reachable(token)).then_some(token)
    }

    /// Appends the tokens of a piece.
    pub fn encode_piece(&self, piece: &[u8], out: &mut Vec<TokenId>) {
        if let Some(token) = self.whole_piece(piece) {
            out.push(token);
            return;
        }
        let mut symbols: Vec<Symbol> = Vec::new();
        let mut at = 0;
        while at < piece.len() {
            let (token, length) = self.base_symbol(&piece[at..]);
            let end = at + length;
            symbols.push(Symbol { token, start: at as u32, end: end as u32 });
            at = end;
        }
        merge_symbols(&mut symbols, |left, right| {
            let token = self.pairs.get(&self.splits, left.token, right.token)?;
            Some(Merge { rank: self.splits.rank(token), token })
        });
        out.extend(symbols.iter().map(|symbol| symbol.token));
    }

    /// The first symbol of a text before any merge, and its length.
    fn base_symbol(&self, text: &[u8]) -> (TokenId, usize) {
        for length in 1..=text.len().min(4) {
            for &token in self.by_text.get(&text[..length]).into_iter().flatten() {
                if self.splits.rank(token) == super::splits::BASE {
                    return (token, length);
                }
            }
        }
        (self.texts.byte_token(text[0]), 1)
    }
    pub fn memory_bytes(&self) -> usize {
        self.texts.memory_bytes() + self.splits.memory_bytes() + self.pairs.memory_bytes()
    }
}
