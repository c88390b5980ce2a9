//! The effects of the vocabulary's tokens in one state of a lexeme.

use std::ops::Range;
use std::sync::Arc;

use super::token_set::{clear_bits, set_bits, Bitmap};
use super::walk::sort;
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::expr::lexeme::Ends;
use ffwd_regular::expr::ByteSet;
use ffwd_regular::expr::{LexState, Lexeme, Verdict};
use ffwd_tokenizer::vocabulary::{ByteTrie, NodeId, TokenId, Vocabulary};

/// Tokens that stay within a lexeme.
#[derive(Clone, Debug)]
pub enum Inner {
    Few(Box<[TokenId]>),
    Many(Bitmap),
}

impl Inner {
    pub(super) fn of(vocabulary: &Vocabulary, tokens: Vec<TokenId>) -> Self {
        if tokens.len() <= most_listed(vocabulary) {
            return Self::Few(tokens.into());
        }
        let mut bitmap = empty(vocabulary);
        set_bits(Arc::make_mut(&mut bitmap), &tokens);
        Self::Many(bitmap)
    }

    /// Makes a set from disjoint runs in order.
    pub(super) fn of_runs(vocabulary: &Vocabulary, trie: &ByteTrie, runs: &[Range<usize>]) -> Self {
        let count: usize = runs.iter().map(|run| run.len()).sum();
        let tokens = |run: Range<usize>| trie.tokens_in(run);
        if count <= most_listed(vocabulary) {
            let mut few = Vec::with_capacity(count);
            runs.iter().for_each(|run| few.extend_from_slice(tokens(run.clone())));
            return Self::Few(few.into());
        }
        let all = trie.tokens_below(NodeId::ROOT).len();
        if trie.id() != vocabulary.trie().id() || count < all / 2 {
            let mut bitmap = empty(vocabulary);
            let row = Arc::make_mut(&mut bitmap);
            runs.iter().for_each(|run| set_bits(row, tokens(run.clone())));
            return Self::Many(bitmap);
        }
        // The excluded tokens are fewer.
        let mut bitmap: Bitmap = vocabulary.texts().into();
        let row = Arc::make_mut(&mut bitmap);
        let mut from = 0;
        for run in runs {
            clear_bits(row, tokens(from..run.start));
            from = run.end;
        }
        clear_bits(row, tokens(from..all));
        Self::Many(bitmap)
    }
}

/// A bitmap without tokens, in the memory in which it is shared.
fn empty(vocabulary: &Vocabulary) -> Bitmap {
    std::iter::repeat_n(0, vocabulary.mask_words()).collect()
}

/// The most tokens that are stored as a list.
fn most_listed(vocabulary: &Vocabulary) -> usize {
    vocabulary.mask_words() / 4
}

/// Tokens that go past the end of a lexeme, with one verdict.
#[derive(Debug)]
pub struct ExitGroup {
    /// Which languages of the lexeme hold at the end.
    pub accept: Verdict,
    /// The texts of the tokens after the end.
    pub rests: Arc<ByteTrie>,
    /// Subtrees of the vocabulary's own trie, too large to copy: below these nodes the lexeme has
    /// ended. With `true` the tokens at the node itself belong to the group too.
    pub grafts: Box<[(NodeId, bool)]>,
    /// Large subtrees of the vocabulary's trie in which the lexeme may end at every node, the top
    /// one included.
    pub everywhere: Box<[NodeId]>,
    /// As `grafts`, for a lexeme that ends only at its longest match. Neither tokens that continue
    /// with one of the bytes nor those at the node itself are in the group.
    pub longest_grafts: Box<[(NodeId, ByteSet)]>,
}

impl ExitGroup {
    /// Whether all its tokens end with the lexeme.
    pub fn is_end(&self) -> bool {
        self.rests.is_leaf(NodeId::ROOT)
            && self.grafts.is_empty()
            && self.everywhere.is_empty()
            && self.longest_grafts.is_empty()
    }

    fn of(accept: Verdict, rests: Arc<ByteTrie>) -> Self {
        let (grafts, everywhere, longest_grafts) = ([].into(), [].into(), [].into());
        Self { accept, rests, grafts, everywhere, longest_grafts }
    }
}

/// The end of a lexeme in a token: the verdict, and the number of bytes after it.
type End = (Verdict, usize, TokenId);

/// How many bytes lead to a node of the vocabulary's trie.
fn depth_of(vocabulary: &Vocabulary, node: NodeId) -> usize {
    let below = vocabulary.trie().below(node).next();
    below.map_or(0, |(depth, token)| vocabulary.text(token).len() - depth)
}

/// Returns the trie of the last bytes of tokens, of each this many.
fn rests_of(vocabulary: &Vocabulary, ends: &[(usize, TokenId)]) -> Arc<ByteTrie> {
    let rest = |&(depth, token): &(usize, TokenId)| {
        let text = vocabulary.text(token);
        (&text[text.len() - depth..], token)
    };
    let mut rests: Vec<(&[u8], TokenId)> = ends.iter().map(rest).collect();
    sort(&mut rests);
    Arc::new(ByteTrie::from_sorted(&rests))
}

#[derive(Debug)]
pub struct LexemeMask {
    pub inner: Inner,
    pub exits: Vec<ExitGroup>,
}

impl LexemeMask {
    /// The mask of a state from that of another one with the same behaviour on all runs of at most
    /// `within` bytes. `None` if the exits are too many to list.
    pub(super) fn recheck(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
        within: usize,
    ) -> Result<Option<Self>, LimitExceeded> {
        if lexeme.spec().ends != Ends::Anywhere {
            return Ok(None);
        }
        let doubtful = vocabulary.longer_than(within);
        let grafts = self.exits.iter().flat_map(|exit| exit.grafts.iter());
        // A graft that starts within these bytes covers everything below it, where the lexeme has
        // ended.
        let deep = |&(node, _): &(NodeId, bool)| depth_of(vocabulary, node) > within;
        if self.exits.iter().any(|exit| !exit.everywhere.is_empty()) || grafts.clone().any(deep) {
            return Ok(None);
        }
        let grafted = grafts.clone().next().is_some();
        let mut inner: Vec<TokenId> = Vec::new();
        let mut ends: Vec<End> = Vec::new();
        for &token in doubtful {
            let text = vocabulary.text(token);
            let mut current = Some(state);
            for (at, &byte) in text.iter().enumerate() {
                let Some(from) = current else { break };
                current = lexeme.next(from, byte)?;
                let Some(next) = current else { break };
                let ends_here = next.accepts() && (next.is_final() || at + 1 < text.len());
                if ends_here
                    && !(grafted && at < within && self.is_grafted(vocabulary, token, at + 1))
                {
                    ends.push((lexeme.accept(next), text.len() - at - 1, token));
                }
                if next.is_final() {
                    current = None;
                }
            }
            if current.is_some() {
                inner.push(token);
            }
        }
        let mut doubted = vec![0; vocabulary.mask_words()];
        set_bits(&mut doubted, doubtful);
        let exits = self.exits_with(vocabulary, &doubted, &mut ends);
        let is_doubted = |token: TokenId| doubted[token.index() / 32] >> (token.0 % 32) & 1 == 1;
        let inner = match &self.inner {
            Inner::Few(tokens) => {
                inner.extend(tokens.iter().copied().filter(|&token| !is_doubted(token)));
                Inner::of(vocabulary, inner)
            }
            Inner::Many(bitmap) => {
                let mut own: Bitmap =
                    bitmap.iter().zip(&doubted).map(|(word, doubt)| word & !doubt).collect();
                set_bits(Arc::make_mut(&mut own), &inner);
                Inner::Many(own)
            }
        };
        Ok(Some(Self { inner, exits }))
    }

    /// Whether the first bytes of a token lead to the top of a graft.
    fn is_grafted(&self, vocabulary: &Vocabulary, token: TokenId, bytes: usize) -> bool {
        let node = vocabulary.trie().find(&vocabulary.text(token)[..bytes]);
        let mut grafts = self.exits.iter().flat_map(|exit| exit.grafts.iter());
        node.is_some_and(|node| grafts.any(|&(top, _)| top == node))
    }

    /// The exits with new ends of the doubted tokens. Unchanged tries are shared.
    fn exits_with(
        &self,
        vocabulary: &Vocabulary,
        doubted: &[u32],
        ends: &mut [End],
    ) -> Vec<ExitGroup> {
        let is_doubted = |token: TokenId| doubted[token.index() / 32] >> (token.0 % 32) & 1 == 1;
        ends.sort_unstable();
        let mut exits: Vec<ExitGroup> = Vec::new();
        for group in &self.exits {
            let (before, mut kept): (Vec<_>, Vec<_>) =
                group.rests.below(NodeId::ROOT).partition(|&(_, token)| is_doubted(token));
            let mut before: Vec<End> =
                before.into_iter().map(|(depth, token)| (group.accept, depth, token)).collect();
            before.sort_unstable();
            let now = ends.chunk_by(|a, b| a.0 == b.0).find(|ends| ends[0].0 == group.accept);
            let now = now.unwrap_or(&[]);
            let rests = if before == now {
                group.rests.clone()
            } else {
                kept.extend(now.iter().map(|&(_, depth, token)| (depth, token)));
                rests_of(vocabulary, &kept)
            };
            let grafts = group.grafts.clone();
            exits.push(ExitGroup { grafts, ..ExitGroup::of(group.accept, rests) });
        }
        for ends in ends.chunk_by(|a, b| a.0 == b.0) {
            let accept = ends[0].0;
            if !self.exits.iter().any(|exit| exit.accept == accept) {
                let own: Vec<_> = ends.iter().map(|&(_, depth, token)| (depth, token)).collect();
                let rests = rests_of(vocabulary, &own);
                exits.push(ExitGroup::of(accept, rests));
            }
        }
        exits
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let inner = match &self.inner {
            Inner::Few(tokens) => tokens.len() * 4,
            Inner::Many(bitmap) if Arc::strong_count(bitmap) == 1 => bitmap.len() * 4,
            Inner::Many(_) => 0,
        };
        let of_group = |exit: &ExitGroup| {
            let shared = Arc::strong_count(&exit.rests) > 1;
            let rests = if shared { 0 } else { exit.rests.memory_bytes() };
            rests
                + exit.grafts.len() * 8
                + exit.longest_grafts.len() * 40
                + std::mem::size_of::<ExitGroup>()
        };
        let exits: usize = self.exits.iter().map(of_group).sum();
        inner + exits + 128
    }
}
