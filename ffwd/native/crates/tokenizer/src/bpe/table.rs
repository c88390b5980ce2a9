//! A compiled byte-pair encoding: the bytes and the split of each token, the tokens that start a
//! text, and the pairs that may be adjacent.

use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use super::merge_rules::find_splits;
use super::merging::{merge_symbols, Merge, Symbol};
use super::pair::may_follow;
use super::pair_map::PairMap;
use super::pair_splits::{each_prefix, find_splits_by_pairs};
use super::row_cache::RowCache;
use super::spec::{Base, BpeError, BpeSpec};
use super::splits::{Splits, BASE};
use super::successors::LeftTree;
use super::suffixes::Suffixes;
use super::texts::Texts;
use super::trie::{Slot, Trie, TrieText};
use crate::vocabulary::{sorted_by_length, sorted_by_text, TokenId};

/// How a piece is encoded. The first three give the same tokens, those that the model sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The longest token that may follow, with backtracking from dead ends.
    Backtracking,
    /// The last token of each prefix, from those of the shorter ones.
    Table,
    /// Merging, with the most urgent pair on top of a heap.
    Heap,
    /// The longest token at each place: not the model's own.
    Greedy,
    /// The fewest tokens: not the model's own.
    Minimal,
}

/// A compiled byte-pair encoding.
#[derive(Debug)]
pub struct BpeTable {
    pub(super) texts: Texts,
    pub(super) splits: Splits,
    pairs: PairMap,
    trie: Trie,
    /// The tokens outside the trie that have the same bytes as one in it.
    same: FxHashMap<TokenId, Vec<TokenId>>,
    /// Made when a row of forbidden successors is first asked for.
    left_tree: OnceLock<LeftTree>,
    /// Made when a piece is first appended to.
    suffixes: OnceLock<Suffixes>,
    rows: RowCache,
    /// For what may not follow an unreachable token: everything.
    reachable: Arc<[TokenId]>,
    pub(super) whole_pieces: bool,
}

impl BpeTable {
    /// Compiles a spec.
    ///
    /// # Errors
    /// The spec contradicts itself, or passes a bound of the tables.
    pub fn new(spec: BpeSpec) -> Result<Self, BpeError> {
        let texts = Texts::new(&spec)?;
        let tokens = || texts.tokens().map(|(token, _)| token);
        let by_length = sorted_by_length(tokens(), |token| texts.get(token));
        let sorted = sorted_by_text(tokens(), |token| texts.get(token));
        match find_splits_by_pairs(&texts, &spec, &sorted, &by_length)? {
            Some((splits, pairs)) => {
                let trie = Trie::from_sorted(&trie_texts(&texts, &splits, &sorted));
                Ok(Self::of_splits(texts, splits, pairs, trie, &sorted, by_length, &spec))
            }
            None => Self::by_merging(texts, &spec, by_length),
        }
    }

    /// From the splits of tokens with different texts, with `sorted` by these, and their trie.
    pub(super) fn of_splits(
        texts: Texts,
        mut splits: Splits,
        pairs: PairMap,
        trie: Trie,
        sorted: &[TokenId],
        by_length: Vec<TokenId>,
        spec: &BpeSpec,
    ) -> Self {
        let is_reachable: Vec<bool> =
            (0..texts.width() as u32).map(|id| splits.is_reachable(TokenId(id))).collect();
        let reachable = |token: TokenId| is_reachable[token.index()];
        each_prefix(&texts, sorted, reachable, |token, prefix| {
            if reachable(token) {
                splits.set_shorter(token, prefix);
            }
        });
        Self::of_parts(texts, splits, pairs, trie, FxHashMap::default(), by_length, spec)
    }

    /// The same by encoding every token's text, for any spec.
    fn by_merging(texts: Texts, spec: &BpeSpec, by_length: Vec<TokenId>) -> Result<Self, BpeError> {
        let mut splits = find_splits(&texts, spec)?;
        splits.find_levels(&by_length);
        let (trie, same) = build_trie(&texts, &splits);
        for (token, text) in texts.tokens() {
            if splits.is_reachable(token) && !texts.is_byte_fallback(token) {
                splits.set_shorter(token, trie.longest(&text[..text.len() - 1]));
            }
        }
        let pairs = PairMap::new(&splits);
        Ok(Self::of_parts(texts, splits, pairs, trie, same, by_length, spec))
    }

    fn of_parts(
        texts: Texts,
        splits: Splits,
        pairs: PairMap,
        trie: Trie,
        same: FxHashMap<TokenId, Vec<TokenId>>,
        mut tokens: Vec<TokenId>,
        spec: &BpeSpec,
    ) -> Self {
        tokens.retain(|&token| splits.is_reachable(token));
        tokens.sort_unstable();
        Self {
            pairs,
            left_tree: OnceLock::new(),
            suffixes: OnceLock::new(),
            rows: RowCache::default(),
            reachable: tokens.into(),
            whole_pieces: spec.whole_pieces,
            texts,
            splits,
            trie,
            same,
        }
    }

    /// One more than the largest id of a token.
    pub fn width(&self) -> usize {
        self.texts.missing_from().map_or(self.texts.width(), TokenId::index)
    }

    /// Returns the first byte of a text that no token has, and its offset.
    pub(crate) fn missing_byte(&self, text: &[u8]) -> Option<(usize, u8)> {
        let from = self.texts.missing_from()?;
        let is_missing = |&(_, &byte): &(usize, &u8)| self.byte_token(byte) >= from;
        text.iter().enumerate().find(is_missing).map(|(at, &byte)| (at, byte))
    }

    /// Returns the bytes of a token; empty for an id that is no token of the table.
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
    pub(crate) fn is_byte_fallback(&self, token: TokenId) -> bool {
        self.texts.is_byte_fallback(token)
    }

    /// The token of a single byte.
    #[inline]
    pub(crate) fn byte_token(&self, byte: u8) -> TokenId {
        self.texts.byte_token(byte)
    }

    /// Returns the initial symbols of a text.
    pub(crate) fn base(&self) -> Base {
        self.texts.base()
    }

    /// The length of the longest token, at least 1.
    #[inline]
    pub(crate) fn max_token_bytes(&self) -> usize {
        self.texts.longest()
    }

    /// Compiles any spec by encoding every token's text: the slow twin of [`Self::new`].
    #[cfg(test)]
    pub(crate) fn new_by_merging(spec: &BpeSpec) -> Result<Self, BpeError> {
        let texts = Texts::new(spec)?;
        let mut by_length: Vec<TokenId> = texts.tokens().map(|(token, _)| token).collect();
        by_length.sort_by_key(|&token| texts.get(token).len());
        Self::by_merging(texts, spec, by_length)
    }

    /// Everything that is found about a token: level, rank, split, and the next shorter token.
    #[cfg(test)]
    pub(crate) fn facts(&self, token: TokenId) -> impl PartialEq + std::fmt::Debug {
        let splits = &self.splits;
        let is_part = (splits.is_left_part(token), splits.is_right_part(token));
        let node =
            self.trie.find(self.text(token)).map(|node| (node.token(), node.reachable_token()));
        (
            splits.level(token),
            splits.rank(token),
            splits.get(token),
            splits.shorter(token),
            is_part,
            node,
        )
    }

    /// The two tokens whose merge makes a token, wherever it stands.
    #[cfg(test)]
    pub(crate) fn split(&self, token: TokenId) -> Option<(TokenId, TokenId)> {
        self.splits.get(token)
    }

    /// Whether `right` may follow `left` within one piece: by merges alone, the two are the
    /// encoding of their joined bytes.
    ///
    /// If all neighbours may, a sequence is the encoding of its bytes. Byte tokens beside
    /// characters are the exception: they must also not form a character of three or four bytes
    /// that has a piece.
    #[inline]
    pub fn pair(&self, left: TokenId, right: TokenId) -> bool {
        if !self.is_reachable(left) || !self.is_reachable(right) {
            return false;
        }
        if self.splits.level(left) == BASE && self.splits.level(right) == BASE {
            if let (&[first], &[second]) = (self.texts.get(left), self.texts.get(right)) {
                if self.is_byte_fallback(left) && self.is_byte_fallback(right) {
                    return !self.is_character(&[first, second]);
                }
            }
        }
        self.may_follow(left, right)
    }

    /// Tests a pair of reachable tokens that form no character together.
    #[inline]
    pub(super) fn may_follow(&self, left: TokenId, right: TokenId) -> bool {
        may_follow(&self.splits, &self.pairs, left, right)
    }

    /// Returns whether bytes are a character with a token: in a base of characters, byte tokens
    /// never encode it.
    pub(crate) fn is_character(&self, bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok_and(|text| text.chars().count() == 1)
            && self.trie.find(bytes).is_some_and(|node| node.reachable_token().is_some())
    }

    /// The reachable tokens that may not follow a token, each once, in no particular order.
    /// Computed at the first call and kept for a while.
    pub(crate) fn forbidden_after(&self, left: TokenId) -> Arc<[TokenId]> {
        if !self.is_reachable(left) {
            return Arc::clone(&self.reachable);
        }
        self.rows.get(left, || {
            if !self.is_byte_fallback(left) {
                let tree = self.left_tree.get_or_init(|| LeftTree::new(&self.splits));
                let runs = tree.forbidden_runs(&self.splits, left);
                let mut row = Vec::with_capacity(runs.iter().map(ExactSizeIterator::len).sum());
                for run in runs {
                    row.extend_from_slice(tree.tokens(run));
                }
                row.into()
            } else {
                self.reachable.iter().copied().filter(|&right| !self.pair(left, right)).collect()
            }
        })
    }

    /// Every token, reachable or not, that is a prefix of a text, with its length, the shortest
    /// first. Byte tokens beside characters are not among them.
    #[inline]
    pub(crate) fn prefixes(&self, text: &[u8], mut found: impl FnMut(usize, TokenId)) {
        let mut node = self.trie.root();
        for (length, &byte) in (1..).zip(text) {
            match self.trie.child(node, byte) {
                Some(child) => node = child,
                None => return,
            }
            if let Some(token) = node.token() {
                found(length, token);
                if !self.same.is_empty() {
                    for &other in self.same.get(&token).into_iter().flatten() {
                        found(length, other);
                    }
                }
            }
        }
    }

    /// The same for the reachable tokens alone.
    #[inline]
    pub(super) fn reachable_prefixes(&self, text: &[u8], mut found: impl FnMut(usize, TokenId)) {
        let mut node = self.trie.root();
        for (length, &byte) in (1..).zip(text) {
            match self.trie.child(node, byte) {
                Some(child) => node = child,
                None => return,
            }
            if let Some(token) = node.reachable_token() {
                found(length, token);
            }
        }
    }

    #[inline]
    pub(super) fn trie(&self) -> &Trie {
        &self.trie
    }

    #[inline]
    pub(super) fn suffixes(&self) -> &Suffixes {
        self.suffixes.get_or_init(|| Suffixes::new(&self.texts, &self.trie))
    }

    /// The token that is all of a text in the trie, if whole pieces are looked up.
    #[inline]
    pub(super) fn whole_token_at(&self, place: Slot) -> Option<TokenId> {
        self.trie.at(place).token().filter(|_| self.whole_pieces)
    }

    /// Returns the longest reachable token that starts a text.
    #[inline]
    pub(super) fn longest(&self, text: &[u8]) -> Option<TokenId> {
        self.trie.longest(text)
    }

    /// The longest reachable token that a reachable token begins with, other than itself.
    #[inline]
    pub(super) fn shorter(&self, token: TokenId) -> Option<TokenId> {
        self.splits.shorter(token)
    }

    #[inline]
    pub(super) fn length(&self, token: TokenId) -> usize {
        self.texts.get(token).len()
    }

    /// Returns the token of a whole piece: if whole pieces are looked up, whether or not merges
    /// produce it.
    #[inline]
    pub(crate) fn whole_piece(&self, piece: &[u8]) -> Option<TokenId> {
        let node = self.trie.find(piece)?;
        if self.whole_pieces {
            node.token()
        } else {
            node.reachable_token()
        }
    }

    /// The tokens that [`Self::whole_piece`] gives for their own texts, by their ids.
    pub(crate) fn whole_piece_tokens(&self) -> Vec<TokenId> {
        let hidden: FxHashSet<TokenId> = self.same.values().flatten().copied().collect();
        let is_whole = |token: &TokenId| {
            !self.text(*token).is_empty()
                && (self.whole_pieces || self.is_reachable(*token))
                && !self.is_byte_fallback(*token)
                && !hidden.contains(token)
        };
        (0..self.width() as u32).map(TokenId).filter(is_whole).collect()
    }

    /// The longest reachable token that a piece begins with; and the token that is all of it, if
    /// whole pieces are looked up.
    #[inline]
    pub(super) fn begin(
        &self,
        piece: impl Iterator<Item = u8>,
    ) -> (Option<TokenId>, Option<TokenId>) {
        let mut node = self.trie.root();
        let mut longest = None;
        for byte in piece {
            match self.trie.child(node, byte) {
                Some(child) => node = child,
                None => return (longest, None),
            }
            longest = node.reachable_token().or(longest);
        }
        (longest, node.token().filter(|_| self.whole_pieces))
    }

    /// Appends the tokens of a piece.
    #[inline]
    pub fn encode_piece(&self, piece: &[u8], out: &mut Vec<TokenId>) {
        match self.begin(piece.iter().copied()) {
            (_, Some(token)) => out.push(token),
            (longest, None) => self.encode_from(piece, longest, out),
        }
    }

    /// Appends the tokens of a piece, encoded with a given method.
    pub fn encode_piece_by(&self, method: Method, piece: &[u8], out: &mut Vec<TokenId>) {
        match (method, self.whole_piece(piece)) {
            (Method::Backtracking, _) => self.encode_piece(piece, out),
            (Method::Table | Method::Heap, Some(token)) => out.push(token),
            (Method::Table, None) => self.encode_by_table(piece, out),
            (Method::Heap, None) => self.encode_by_merging(piece, out),
            (Method::Greedy, _) => self.encode_greedily(piece, out),
            (Method::Minimal, _) => self.encode_minimally(piece, out),
        }
    }

    /// How many tokens a piece has.
    #[inline]
    pub fn count_piece(&self, piece: &[u8]) -> usize {
        let (longest, whole) = self.begin(piece.iter().copied());
        if whole.is_some() || longest.is_some_and(|token| self.length(token) == piece.len()) {
            return 1;
        }
        let mut tokens = Vec::with_capacity(piece.len() / 3 + 2);
        self.encode_from(piece, longest, &mut tokens);
        tokens.len()
    }

    fn encode_by_merging(&self, text: &[u8], out: &mut Vec<TokenId>) {
        let mut symbols: Vec<Symbol> = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (length, token) = self.base_symbol(&text[at..]);
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

    /// The first symbol of a text before any merge, with its length.
    fn base_symbol(&self, text: &[u8]) -> (usize, TokenId) {
        let mut node = self.trie.root();
        for (length, &byte) in (1..).zip(text) {
            match self.trie.child(node, byte) {
                Some(child) => node = child,
                None => break,
            }
            match node.reachable_token() {
                Some(token) if self.splits.rank(token) == BASE => return (length, token),
                _ => {}
            }
        }
        (1, self.byte_token(text[0]))
    }

    /// The estimated memory without the caches.
    pub fn memory_bytes(&self) -> usize {
        self.texts.memory_bytes()
            + self.splits.memory_bytes()
            + self.pairs.memory_bytes()
            + self.trie.memory_bytes()
            + self.left_tree.get().map_or(0, LeftTree::memory_bytes)
            + self.suffixes.get().map_or(0, Suffixes::memory_bytes)
            + self.reachable.len() * 4
    }
}

/// The entries of the trie of tokens with different texts, `sorted` by these.
pub(super) fn trie_texts<'t>(
    texts: &'t Texts,
    splits: &Splits,
    sorted: &[TokenId],
) -> Vec<TrieText<'t>> {
    let entry = |&token: &TokenId| (texts.get(token), token, splits.is_reachable(token));
    sorted.iter().map(entry).collect()
}

/// The trie has one token for each text: the reachable one, if one of several is.
fn build_trie(texts: &Texts, splits: &Splits) -> (Trie, FxHashMap<TokenId, Vec<TokenId>>) {
    let mut entries: Vec<TrieText<'_>> = texts
        .tokens()
        .filter(|(token, _)| !texts.is_byte_fallback(*token))
        .map(|(token, text)| (text, token, splits.is_reachable(token)))
        .collect();
    entries.sort_unstable_by_key(|&(text, token, reachable)| (text, !reachable, token));
    let mut same: FxHashMap<TokenId, Vec<TokenId>> = FxHashMap::default();
    entries.dedup_by(|next, first| {
        let is_same = next.0 == first.0;
        if is_same {
            same.entry(first.1).or_default().push(next.1);
        }
        is_same
    });
    (Trie::from_sorted(&entries), same)
}
