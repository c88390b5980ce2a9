//! Walking a trie of tokens through a lexeme.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::lexeme_mask::{ExitGroup, Inner, LexemeMask};
use super::listed;
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
    if let Some((texts, verdict)) = lexeme.listed(start) {
        return Ok(listed::compute(
            vocabulary,
            View { trie, root },
            lexeme,
            start,
            &texts,
            verdict,
        ));
    }
    let whole = trie.id() == vocabulary.trie().id();
    let mut inner = Runs::new(trie, NodeId(root.0 + 1));
    let mut exits: Vec<Collected<'_>> = Vec::new();
    let mut loops_of = Loops { lexeme, known: FxHashMap::default() };
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
            inner.leave_out(node, after);
            node = after;
            continue;
        };
        if next.is_final() {
            let group = Collected::group(&mut exits, lexeme.accept(next));
            group.end_at(vocabulary, trie, node, true);
            inner.leave_out(node, after);
            node = after;
            continue;
        }
        let first_child = NodeId(node.0 + 1);
        if first_child < after {
            let below = if next == row.state() { row } else { lexeme.row(next) };
            // Where the first byte leads away there is no need to look at the others.
            if whole
                && after.0 > node.0 + BULK_NODES
                && below.next(trie.byte(first_child))? == Some(next)
                && (!next.accepts() || trie.tokens_below(node).len() > GRAFT_TOKENS)
                && vocabulary.below(node).within(loops_of.get(next)?)
            {
                if next.accepts() {
                    let group = Collected::group(&mut exits, lexeme.accept(next));
                    group.everywhere.push(node);
                }
                node = after;
                continue;
            }
            if next.accepts() {
                let group = Collected::group(&mut exits, lexeme.accept(next));
                group.end_at(vocabulary, trie, node, false);
            }
            (row_end, row) = (after, below);
            path.push((row_end, row));
        }
        node = first_child;
    }
    let exits = exits.into_iter().map(Collected::build).collect();
    Ok(LexemeMask { inner: inner.build(vocabulary, end), exits })
}

/// The tokens that stay within the lexeme, as runs of the trie's tokens: those of a subtree stand
/// side by side, so a walk only needs to say what it leaves out.
struct Runs<'t> {
    trie: &'t ByteTrie,
    ended: Vec<Range<usize>>,
    /// Where the run begins that has not ended yet.
    from: usize,
}

impl<'t> Runs<'t> {
    fn new(trie: &'t ByteTrie, first: NodeId) -> Self {
        Self { trie, ended: Vec::new(), from: trie.tokens_before(first) }
    }

    /// Leaves out the tokens of a subtree.
    #[inline]
    fn leave_out(&mut self, node: NodeId, after: NodeId) {
        let to = self.trie.tokens_before(node);
        if to > self.from {
            self.ended.push(self.from..to);
        }
        self.from = self.trie.tokens_before(after);
    }

    fn build(mut self, vocabulary: &Vocabulary, end: NodeId) -> Inner {
        self.leave_out(end, end);
        let runs: Vec<&[TokenId]> =
            self.ended.into_iter().map(|run| self.trie.tokens_in(run)).collect();
        Inner::of_runs(vocabulary, &runs)
    }
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
            rests: Arc::new(ByteTrie::from_sorted(&self.rests)),
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

/// The groups of bytes under which states stay what they are.
struct Loops<'l> {
    lexeme: &'l Lexeme,
    known: FxHashMap<LexState, Summary>,
}

impl Loops<'_> {
    fn get(&mut self, state: LexState) -> Result<Summary, LimitExceeded> {
        if let Some(&known) = self.known.get(&state) {
            return Ok(known);
        }
        let found = loops(self.lexeme, state)?;
        self.known.insert(state, found);
        Ok(found)
    }
}

/// The groups of bytes under which a state stays what it is.
fn loops(lexeme: &Lexeme, state: LexState) -> Result<Summary, LimitExceeded> {
    let row = lexeme.row(state);
    let mut leaving = Summary::default();
    let mut staying = Summary::default();
    for byte in 0..0x80u8 {
        let group = Summary::of_ascii(byte);
        // One byte that leads away settles its group.
        if group.within(leaving) {
            continue;
        }
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
