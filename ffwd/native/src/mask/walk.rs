//! Walking a trie of tokens through a lexeme.

use rustc_hash::FxHashMap;

use super::lexeme_mask::{ExitGroup, Inner, LexemeMask};
use crate::error::LimitExceeded;
use crate::expr::lexeme::Row;
use crate::expr::{LexState, Lexeme, Verdict};
use crate::vocabulary::{ByteTrie, NodeId, Summary, TokenId, Utf8Place, Vocabulary};

/// Subtrees with more tokens than this are not copied into an exit trie.
const GRAFT_TOKENS: usize = 256;

/// Subtrees of at most this many nodes are walked rather than looked at as a whole.
const BULK_NODES: u32 = 2;

/// A subtree of a trie: the whole vocabulary, or what follows the end of a lexeme.
#[derive(Clone, Copy, Debug)]
pub struct View<'t> {
    pub trie: &'t ByteTrie,
    pub root: NodeId,
}

impl<'t> View<'t> {
    /// All tokens.
    pub fn of(vocabulary: &'t Vocabulary) -> Self {
        Self { trie: vocabulary.trie(), root: NodeId::ROOT }
    }
}

/// Walks a subtree from a state of a lexeme.
pub(super) fn compute(
    vocabulary: &Vocabulary,
    View { trie, root }: View<'_>,
    lexeme: &Lexeme,
    start: LexState,
) -> Result<LexemeMask, LimitExceeded> {
    let whole = trie.id() == vocabulary.trie().id();
    let mut inner: Vec<TokenId> = Vec::new();
    let mut exits: Vec<Collected<'_>> = Vec::new();
    let mut loops_of: FxHashMap<LexState, Summary> = FxHashMap::default();
    // The rows of the states on the way to the current node, each with the end of its subtree.
    let mut path: Vec<(NodeId, Row<'_>)> = Vec::new();
    let mut node = NodeId(root.0 + 1);
    let end = trie.after(root);
    let mut row = lexeme.row(start);
    let mut row_end = end;
    path.push((row_end, row));
    while node < end {
        while node >= row_end {
            path.pop();
            let Some(&(outer_end, outer)) = path.last() else { break };
            (row_end, row) = (outer_end, outer);
        }
        let after = trie.after(node);
        let Some(next) = row.next(trie.byte(node))? else {
            node = after;
            continue;
        };
        if next.is_final() {
            let group = Collected::group(&mut exits, lexeme.accept(next));
            group.end_at(vocabulary, trie, node, true);
            node = after;
            continue;
        }
        if whole && after.0 > node.0 + BULK_NODES {
            let known = match loops_of.get(&next) {
                Some(&known) => known,
                None => {
                    let known = loops(lexeme, next)?;
                    loops_of.insert(next, known);
                    known
                }
            };
            let large = trie.tokens_below(node).len() > GRAFT_TOKENS;
            if vocabulary.below(node).within(known) && (large || !next.accepts()) {
                inner.extend_from_slice(trie.tokens_below(node));
                if next.accepts() {
                    let group = Collected::group(&mut exits, lexeme.accept(next));
                    group.everywhere.push(node);
                }
                node = after;
                continue;
            }
        }
        inner.extend_from_slice(trie.tokens_at(node));
        if !trie.is_leaf(node) {
            if next.accepts() {
                let group = Collected::group(&mut exits, lexeme.accept(next));
                group.end_at(vocabulary, trie, node, false);
            }
            (row_end, row) = (after, lexeme.row(next));
            path.push((row_end, row));
        }
        node = NodeId(node.0 + 1);
    }
    let exits = exits.into_iter().map(Collected::build).collect();
    Ok(LexemeMask { inner: Inner::of(vocabulary, inner), exits })
}

pub(super) struct Collected<'v> {
    accept: Verdict,
    pub(super) rests: Vec<(&'v [u8], TokenId)>,
    grafts: Vec<(NodeId, bool)>,
    everywhere: Vec<NodeId>,
}

impl<'v> Collected<'v> {
    pub(super) fn new(accept: Verdict) -> Self {
        Self { accept, rests: Vec::new(), grafts: Vec::new(), everywhere: Vec::new() }
    }

    pub(super) fn build(mut self) -> ExitGroup {
        self.rests.sort_unstable();
        ExitGroup {
            accept: self.accept,
            rests: ByteTrie::from_sorted(&self.rests),
            grafts: self.grafts.into(),
            everywhere: self.everywhere.into(),
        }
    }

    /// Records that the lexeme ends at a node. `with_node`: the tokens at the node have ended with
    /// it; else they are inner ones.
    pub(super) fn end_at(
        &mut self,
        vocabulary: &'v Vocabulary,
        trie: &ByteTrie,
        node: NodeId,
        with_node: bool,
    ) {
        let whole = trie.id() == vocabulary.trie().id();
        if whole && trie.tokens_below(node).len() > GRAFT_TOKENS {
            self.grafts.push((node, with_node));
            return;
        }
        for (depth, token) in trie.below(node) {
            if depth > 0 || with_node {
                let text = vocabulary.text(token);
                self.rests.push((&text[text.len() - depth..], token));
            }
        }
    }

    /// The group of a verdict.
    pub(super) fn group(groups: &mut Vec<Self>, accept: Verdict) -> &mut Self {
        let at = match groups.iter().position(|known| known.accept == accept) {
            Some(at) => at,
            None => {
                groups.push(Self::new(accept));
                groups.len() - 1
            }
        };
        &mut groups[at]
    }
}

/// The groups of bytes under which a state stays what it is.
fn loops(lexeme: &Lexeme, state: LexState) -> Result<Summary, LimitExceeded> {
    let row = lexeme.row(state);
    let mut leaving = Summary::default();
    let mut staying = Summary::default();
    for byte in 0..0x80u8 {
        let group = Summary::of_ascii(byte);
        if row.next(byte)? == Some(state) {
            staying = staying.union(group);
        } else {
            leaving = leaving.union(group);
        }
    }
    let mut loops = Summary(staying.0 & !leaving.0);
    if loops.0 != 0 && loops_on_characters(lexeme, state)? {
        loops = loops.union(Summary::MULTIBYTE);
    }
    Ok(loops)
}

/// Whether every character above ASCII leads back to the state, without an end on the way.
fn loops_on_characters(lexeme: &Lexeme, state: LexState) -> Result<bool, LimitExceeded> {
    let mut seen: Vec<(Utf8Place, LexState)> = Vec::new();
    let mut pending = vec![(Utf8Place::BOUNDARY, state)];
    while let Some((place, current)) = pending.pop() {
        let row = lexeme.row(current);
        for byte in 0x80..=0xFFu8 {
            let Some(next_place) = place.next(byte) else { continue };
            let Some(next) = row.next(byte)? else { return Ok(false) };
            if next_place == Utf8Place::BOUNDARY {
                if next != state {
                    return Ok(false);
                }
            } else if next.accepts() {
                return Ok(false);
            } else if !seen.contains(&(next_place, next)) {
                seen.push((next_place, next));
                pending.push((next_place, next));
            }
        }
    }
    Ok(true)
}
