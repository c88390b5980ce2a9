//! Walking a trie of tokens through a lexeme.

use std::ops::Range;

use smallvec::SmallVec;

use super::lexeme_mask::{ExitGroup, Inner, LexemeMask};
use super::listed;
use super::loops::{ChangesId, KnownChanges, Loops};
use super::rest_tries::RestTries;
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::expr::lexeme::{Ends, Row};
use ffwd_regular::expr::ByteSet;
use ffwd_regular::expr::{LexState, Lexeme, Verdict};
use ffwd_tokenizer::vocabulary::{ByteTrie, NodeId, TokenId, Vocabulary};

/// Subtrees with more tokens than this are not copied into an exit trie.
const GRAFT_TOKENS: usize = if cfg!(test) { 6 } else { 256 };

/// How many nodes of a trie are walked for one step, and the number of nodes between two charges.
pub(super) const NODES_PER_STEP: usize = 4;
pub(super) const NODES_PER_CHARGE: usize = 1024;

/// Subtrees of at most this many nodes are walked rather than examined as a whole.
pub(super) const BULK_NODES: u32 = 2;

/// In subtrees of at least this many nodes, more bytes are tried to find whether a state stays.
const LARGE_NODES: u32 = 4096;

/// Walks of fewer nodes do not cache results about states.
const SMALL_NODES: u32 = 256;

/// Bytes that occur in most texts.
const COMMON: &[u8] = b"e a1E";

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

/// The position of a walk: within a subtree, in a state of the lexeme.
#[derive(Clone, Copy)]
pub(super) struct WalkLevel<'l> {
    pub end: NodeId,
    pub row: Row<'l>,
    /// The nodes below at which the state changes, where the walk leaps from one to the next.
    pub changes: Option<ChangesId>,
}

/// The rows of the states that a walk has reached, side by side.
pub(super) struct Rows<'l> {
    lexeme: &'l Lexeme,
    /// Whether the walk is too short for a list.
    is_small: bool,
    known: Vec<Option<Row<'l>>>,
}

impl<'l> Rows<'l> {
    pub fn new(lexeme: &'l Lexeme, is_small: bool) -> Self {
        Self { lexeme, is_small, known: Vec::new() }
    }

    #[inline]
    pub fn get(&mut self, state: LexState) -> Row<'l> {
        match self.known.get(state.index()) {
            Some(&Some(row)) => row,
            _ => self.look_up(state),
        }
    }

    #[cold]
    fn look_up(&mut self, state: LexState) -> Row<'l> {
        let row = self.lexeme.row(state);
        if self.is_small {
            return row;
        }
        if self.known.len() <= state.index() {
            self.known.resize(self.lexeme.num_states().max(state.index() + 1), None);
        }
        self.known[state.index()] = Some(row);
        row
    }
}

/// Walks a subtree from a state of a lexeme. If the lexeme ends at its longest match as one of the
/// languages of `again`, and as no other, it begins again from that state within the walk. The
/// tokens that continue in this way are inner ones, or exits at its last end.
pub(super) fn compute(
    tries: &RestTries,
    changes: &KnownChanges,
    vocabulary: &Vocabulary,
    View { trie, root }: View<'_>,
    lexeme: &Lexeme,
    start: LexState,
    again: Verdict,
) -> Result<LexemeMask, LimitExceeded> {
    let longest = lexeme.spec().ends != Ends::Anywhere;
    let begins_anew = |state: LexState| {
        again != 0 && state.accepts() && {
            let accept = lexeme.accept(state);
            accept.is_power_of_two() && accept & again != 0
        }
    };
    if let Some((texts, verdict)) = lexeme.listed(start).filter(|_| !longest) {
        return Ok(listed::compute(
            tries,
            vocabulary,
            View { trie, root },
            lexeme,
            start,
            &texts,
            verdict,
        ));
    }
    let whole = trie.id() == vocabulary.trie().id();
    let mut walked = 0;
    let mut inner = Runs::new(trie, NodeId(root.0 + 1));
    let mut loops_of = Loops::new(vocabulary, lexeme, longest, changes);
    let end = trie.after(root);
    let is_small = end.0 - root.0 < SMALL_NODES;
    let mut rows = Rows::new(lexeme, is_small);
    let mut exits = Exits { is_small, ..Exits::default() };
    let mut node = NodeId(root.0 + 1);
    let first = rows.get(start);
    let mut level = WalkLevel { end, row: first, changes: None };
    if whole && may_stay(trie, root, level.row)? {
        level.changes = loops_of.changes_below(root, start)?;
    }
    // The levels above.
    let mut path: Vec<WalkLevel<'_>> = Vec::new();
    while node < end {
        walked += 1;
        if walked == NODES_PER_CHARGE {
            walked = 0;
            meter::charge(NODES_PER_CHARGE / NODES_PER_STEP)?;
        }
        while node >= level.end {
            let Some(outer) = path.pop() else { break };
            level = outer;
        }
        if let Some(changes) = level.changes {
            node = loops_of.next_change(changes, node, level.end);
            if node >= level.end {
                continue;
            }
            if vocabulary.places().is_ill_formed(node) {
                let after = trie.after(node);
                inner.leave_out(node, after);
                node = after;
                continue;
            }
        }
        let after = trie.after(node);
        let state = level.row.state();
        let mut next = level.row.next(trie.byte(node))?;
        if next.is_none() && begins_anew(state) {
            next = first.next(trie.byte(node))?;
        }
        let Some(mut next) = next else {
            inner.leave_out(node, after);
            // The caller handles an end at the root.
            let is_below = || !path.is_empty() || trie.child(root, trie.byte(node)) != Some(node);
            if level.changes.is_some() && state.accepts() && !begins_anew(state) && is_below() {
                exits.of(state, lexeme).end_before(vocabulary, lexeme, trie, node);
            }
            node = after;
            continue;
        };
        if next.is_final() && begins_anew(next) {
            next = start;
        }
        if next.is_final() {
            let group = exits.of(next, lexeme);
            group.end_at(vocabulary, lexeme, trie, node, true);
            inner.leave_out(node, after);
            node = after;
            continue;
        }
        let first_child = NodeId(node.0 + 1);
        if first_child < after {
            let below = if next == state { level.row } else { rows.get(next) };
            let mut changes = if whole { loops_of.known_changes(node, next) } else { None };
            if changes.is_none()
                && whole
                && after.0 > node.0 + BULK_NODES
                && (!next.accepts() || longest || trie.tokens_below(node).len() > GRAFT_TOKENS)
                && may_stay(trie, node, below)?
            {
                if vocabulary.below(node).within(loops_of.get(next)?.groups) {
                    // If the longest match counts, it continues, and has no end below.
                    if next.accepts() && !longest {
                        let group = exits.of(next, lexeme);
                        group.everywhere.push(node);
                    }
                    node = after;
                    continue;
                }
                changes = loops_of.changes_below(node, next)?;
            }
            // Leaps find where a longest match ends.
            if next.accepts() && changes.is_none() && !begins_anew(next) {
                let group = exits.of(next, lexeme);
                if longest {
                    group.end_longest(vocabulary, lexeme, trie, node, below)?;
                } else {
                    group.end_at(vocabulary, lexeme, trie, node, false);
                }
            }
            // If the state stays, the level stays too, unless leaps begin here.
            if next != state || changes.is_some() || level.changes.is_some() {
                let inside = WalkLevel { end: after, row: below, changes };
                path.push(std::mem::replace(&mut level, inside));
            }
        }
        node = first_child;
    }
    meter::charge(1 + walked / NODES_PER_STEP)?;
    let exits = exits.groups.into_iter().map(|group| group.build(tries)).collect();
    Ok(LexemeMask { inner: inner.build(vocabulary, end), exits })
}

/// Returns whether a subtree of more than one node may contain many loops of a state. If the first
/// byte leaves the state, the others need no check unless the subtree is large: states with
/// counters must not build successors that no walk needs.
pub(super) fn may_stay(trie: &ByteTrie, node: NodeId, row: Row<'_>) -> Result<bool, LimitExceeded> {
    let first = NodeId(node.0 + 1);
    if first < trie.after(node) && row.next(trie.byte(first))? == Some(row.state()) {
        return Ok(true);
    }
    if trie.after(node).0 - node.0 >= LARGE_NODES {
        for &byte in COMMON {
            if row.next(byte)? == Some(row.state()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The tokens that stay within the lexeme, as runs of the trie's tokens. The tokens of a subtree
/// are adjacent, so a walk lists only what it excludes.
struct Runs<'t> {
    trie: &'t ByteTrie,
    ended: Vec<Range<usize>>,
    /// The start of the open run.
    from: usize,
}

impl<'t> Runs<'t> {
    fn new(trie: &'t ByteTrie, first: NodeId) -> Self {
        Self { trie, ended: Vec::new(), from: trie.tokens_before(first) }
    }

    /// Excludes the tokens of a subtree.
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
        Inner::of_runs(vocabulary, self.trie, &self.ended)
    }
}

/// Sorts rests. Usually the first eight bytes, the length and the token decide, in one comparison.
pub(super) fn sort(rests: &mut [(&[u8], TokenId)]) {
    let key = |rest: &[u8], token: TokenId| {
        let mut first = [0; 8];
        let length = rest.len().min(8);
        first[..length].copy_from_slice(&rest[..length]);
        // A rest that ends is before one that goes on with zeros.
        let length = rest.len().min(9) as u128;
        u128::from(u64::from_be_bytes(first)) << 64 | length << 32 | u128::from(token.0)
    };
    let mut keyed: Vec<(u128, &[u8])> =
        rests.iter().map(|&(rest, token)| (key(rest, token), rest)).collect();
    // Several runs that are sorted already.
    keyed.sort_by(|(a, left), (b, right)| {
        // Of equal text among these bytes, both have more, or neither has.
        match a >> 32 == b >> 32 && left.len() > 8 {
            true => left.cmp(right).then(a.cmp(b)),
            false => a.cmp(b),
        }
    });
    for (place, (key, rest)) in rests.iter_mut().zip(keyed) {
        *place = (rest, TokenId(key as u32));
    }
}

/// The groups of exits, and the group of each state.
#[derive(Default)]
struct Exits<'v> {
    groups: Vec<Collected<'v>>,
    /// As that of [`Rows`].
    is_small: bool,
    of_states: Vec<u32>,
}

impl<'v> Exits<'v> {
    const UNKNOWN: u32 = u32::MAX;

    #[inline]
    fn of(&mut self, state: LexState, lexeme: &Lexeme) -> &mut Collected<'v> {
        match self.of_states.get(state.index()) {
            Some(&group) if group != Self::UNKNOWN => &mut self.groups[group as usize],
            _ => self.find(state, lexeme),
        }
    }

    #[cold]
    fn find(&mut self, state: LexState, lexeme: &Lexeme) -> &mut Collected<'v> {
        let at = Collected::place(&mut self.groups, lexeme.accept(state));
        if self.is_small {
            return &mut self.groups[at];
        }
        if self.of_states.len() <= state.index() {
            let length = lexeme.num_states().max(state.index() + 1);
            self.of_states.resize(length, Self::UNKNOWN);
        }
        self.of_states[state.index()] = at as u32;
        &mut self.groups[at]
    }
}

pub(super) struct Collected<'v> {
    accept: Verdict,
    pub(super) rests: Vec<(&'v [u8], TokenId)>,
    grafts: Vec<(NodeId, bool)>,
    everywhere: Vec<NodeId>,
    longest_grafts: Vec<(NodeId, ByteSet)>,
}

impl<'v> Collected<'v> {
    pub(super) fn new(accept: Verdict) -> Self {
        Self {
            accept,
            rests: Vec::new(),
            grafts: Vec::new(),
            everywhere: Vec::new(),
            longest_grafts: Vec::new(),
        }
    }

    pub(super) fn build(mut self, tries: &RestTries) -> ExitGroup {
        sort(&mut self.rests);
        ExitGroup {
            accept: self.accept,
            rests: tries.get(&self.rests),
            grafts: self.grafts.into(),
            everywhere: self.everywhere.into(),
            longest_grafts: self.longest_grafts.into(),
        }
    }

    /// Records that a lexeme ends at a node. `with_node`: the tokens at the node have ended with
    /// it; else they are inner ones.
    pub(super) fn end_at(
        &mut self,
        vocabulary: &'v Vocabulary,
        lexeme: &Lexeme,
        trie: &ByteTrie,
        node: NodeId,
        with_node: bool,
    ) {
        let whole = trie.id() == vocabulary.trie().id();
        if whole && trie.tokens_below(node).len() > GRAFT_TOKENS {
            self.grafts.push((node, with_node));
            return;
        }
        if with_node {
            self.rests.extend(trie.tokens_at(node).iter().map(|&token| (&b""[..], token)));
        }
        let follow = lexeme.follow();
        for (byte, child) in trie.children(node) {
            if follow.is_some_and(|follow| !follow.contains(byte)) {
                continue;
            }
            self.add_rests(vocabulary, trie, child);
        }
    }

    /// As [`Self::end_at`], for a lexeme that ends only before bytes that cannot continue it.
    fn end_longest(
        &mut self,
        vocabulary: &'v Vocabulary,
        lexeme: &Lexeme,
        trie: &ByteTrie,
        node: NodeId,
        row: Row<'_>,
    ) -> Result<(), LimitExceeded> {
        let mut goes_on = ByteSet::EMPTY;
        let mut ending: SmallVec<[NodeId; 16]> = SmallVec::new();
        let mut count = 0;
        for (byte, child) in trie.children(node) {
            if row.next(byte)?.is_some() {
                goes_on.insert(byte);
            } else if lexeme.follow().is_none_or(|follow| follow.contains(byte)) {
                ending.push(child);
                count += trie.tokens_below(child).len();
            }
        }
        let whole = trie.id() == vocabulary.trie().id();
        if whole && count > GRAFT_TOKENS {
            self.longest_grafts.push((node, goes_on));
            return Ok(());
        }
        for child in ending {
            self.add_rests(vocabulary, trie, child);
        }
        Ok(())
    }

    /// Records that a lexeme ends at its longest match before a node, whose byte does not continue
    /// it.
    fn end_before(
        &mut self,
        vocabulary: &'v Vocabulary,
        lexeme: &Lexeme,
        trie: &ByteTrie,
        node: NodeId,
    ) {
        if lexeme.follow().is_none_or(|follow| follow.contains(trie.byte(node))) {
            self.add_rests(vocabulary, trie, node);
        }
    }

    /// Adds the texts of the tokens below a node, from its byte on.
    fn add_rests(&mut self, vocabulary: &'v Vocabulary, trie: &ByteTrie, node: NodeId) {
        if trie.id() == vocabulary.trie().id() {
            // The path to the node has the same length for each of them.
            let mut first = node;
            while trie.tokens_at(first).is_empty() && !trie.is_leaf(first) {
                first = NodeId(first.0 + 1);
            }
            let Some(&token) = trie.tokens_at(first).first() else { return };
            let before = vocabulary.text(token).len() - (first.0 - node.0) as usize - 1;
            let rest = |&token: &TokenId| (&vocabulary.text(token)[before..], token);
            self.rests.extend(trie.tokens_below(node).iter().map(rest));
            return;
        }
        for (depth, token) in trie.below(node) {
            let text = vocabulary.text(token);
            self.rests.push((&text[text.len() - depth - 1..], token));
        }
    }

    /// The group of a verdict.
    pub(super) fn group(groups: &mut Vec<Self>, accept: Verdict) -> &mut Self {
        let at = Self::place(groups, accept);
        &mut groups[at]
    }

    fn place(groups: &mut Vec<Self>, accept: Verdict) -> usize {
        groups.iter().position(|known| known.accept == accept).unwrap_or_else(|| {
            groups.push(Self::new(accept));
            groups.len() - 1
        })
    }
}
