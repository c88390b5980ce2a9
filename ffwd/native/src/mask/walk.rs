//! Walking a trie of tokens through a lexeme.

use std::collections::hash_map::Entry;
use std::ops::Range;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::lexeme_mask::{ExitGroup, Inner, LexemeMask};
use super::listed;
use super::rest_tries::RestTries;
use crate::error::LimitExceeded;
use crate::expr::byte_set::ByteSet;
use crate::expr::lexeme::{Ends, Row};
use crate::expr::{LexState, Lexeme, Verdict};
use crate::meter;
use crate::vocabulary::{
    ByteTrie, NodeId, NodeSet, Places, Staying, Summary, TokenId, Utf8Place, Vocabulary,
};

/// Subtrees with more tokens than this are not copied into an exit trie.
const GRAFT_TOKENS: usize = 256;

/// How many nodes of a trie are walked for one step, and after how many that is charged.
const NODES_PER_STEP: usize = 4;
const NODES_PER_CHARGE: usize = 1024;

/// Subtrees of at most this many nodes are walked rather than looked at as a whole.
const BULK_NODES: u32 = 2;

/// In subtrees of at least this many nodes a walk leaps from one change of state to the next.
const LEAP_NODES: u32 = 64;

/// In subtrees of at least this many nodes more bytes are tried to find whether a state stays.
const LARGE_NODES: u32 = 4096;

/// In walks of fewer nodes what is known about states is not kept beside them.
const SMALL_NODES: u32 = 256;

/// How many nodes are walked in the time that it takes to mark one node as a change.
const ASKED_PER_CHANGE: usize = 4;

/// Of a first byte of characters that leads to fewer nodes it is not asked what they do, unless all
/// others lead back.
const COMMON_NODES: usize = 16;

/// Bytes that most texts have.
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

/// Where a walk is: within a subtree that a state of the lexeme leads to.
#[derive(Clone, Copy)]
struct Level<'l> {
    end: NodeId,
    row: Row<'l>,
    /// The nodes below at which the state changes, where the walk leaps from one to the next.
    changes: Option<ChangesId>,
}

/// The rows of the states that a walk has met, side by side.
struct Rows<'l> {
    lexeme: &'l Lexeme,
    /// Whether so few nodes are walked that there is no need of a list.
    is_small: bool,
    known: Vec<Option<Row<'l>>>,
}

impl<'l> Rows<'l> {
    #[inline]
    fn get(&mut self, state: LexState) -> Row<'l> {
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

/// Walks a subtree from a state of a lexeme.
pub(super) fn compute(
    tries: &RestTries,
    vocabulary: &Vocabulary,
    View { trie, root }: View<'_>,
    lexeme: &Lexeme,
    start: LexState,
) -> Result<LexemeMask, LimitExceeded> {
    let longest = lexeme.spec().ends != Ends::Anywhere;
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
    let mut loops_of =
        Loops { vocabulary, lexeme, known: FxHashMap::default(), changes: Vec::new() };
    let end = trie.after(root);
    let is_small = end.0 - root.0 < SMALL_NODES;
    let mut rows = Rows { lexeme, is_small, known: Vec::new() };
    let mut exits = Exits { is_small, ..Exits::default() };
    let mut node = NodeId(root.0 + 1);
    let mut level = Level { end, row: rows.get(start), changes: None };
    if whole && may_stay(trie, root, level.row)? {
        level.changes = loops_of.changes_below(root, start)?;
    }
    // The levels above.
    let mut path: Vec<Level<'_>> = Vec::new();
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
            node = loops_of.changes[changes.0].next(node, level.end);
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
        let Some(next) = level.row.next(trie.byte(node))? else {
            inner.leave_out(node, after);
            node = after;
            continue;
        };
        if next.is_final() {
            let group = exits.of(next, lexeme);
            group.end_at(vocabulary, lexeme, trie, node, true);
            inner.leave_out(node, after);
            node = after;
            continue;
        }
        let first_child = NodeId(node.0 + 1);
        if first_child < after {
            let below = if next == level.row.state() { level.row } else { rows.get(next) };
            let mut changes = None;
            if whole
                && after.0 > node.0 + BULK_NODES
                && (!next.accepts() || longest || trie.tokens_below(node).len() > GRAFT_TOKENS)
                && may_stay(trie, node, below)?
            {
                if vocabulary.below(node).within(loops_of.get(next)?.groups) {
                    // Where the longest match counts it goes on, and ends nowhere below.
                    if next.accepts() && !longest {
                        let group = exits.of(next, lexeme);
                        group.everywhere.push(node);
                    }
                    node = after;
                    continue;
                }
                if !next.accepts() {
                    changes = loops_of.changes_below(node, next)?;
                }
            }
            if next.accepts() {
                let group = exits.of(next, lexeme);
                if longest {
                    group.end_longest(vocabulary, lexeme, trie, node, below)?;
                } else {
                    group.end_at(vocabulary, lexeme, trie, node, false);
                }
            }
            // Where the state stays the level does, unless leaps begin here.
            if next != level.row.state() || changes.is_some() {
                let inside = Level { end: after, row: below, changes };
                path.push(std::mem::replace(&mut level, inside));
            }
        }
        node = first_child;
    }
    meter::charge(1 + walked / NODES_PER_STEP)?;
    let exits = exits.groups.into_iter().map(|group| group.build(tries)).collect();
    Ok(LexemeMask { inner: inner.build(vocabulary, end), exits })
}

/// Whether a subtree of more than one node may have much that leads from a state back to it. Where
/// the first byte leads away there is no need to look at the others, unless the subtree is large:
/// states that count must not build successors that no walk needs.
fn may_stay(trie: &ByteTrie, node: NodeId, row: Row<'_>) -> Result<bool, LimitExceeded> {
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
        Inner::of_runs(vocabulary, self.trie, &self.ended)
    }
}

/// Sorts rests. Mostly the first few bytes tell which comes first, and need no look at the texts.
fn sort(rests: &mut [(&[u8], TokenId)]) {
    let first_bytes = |rest: &[u8]| {
        let mut bytes = [0; 8];
        let length = rest.len().min(8);
        bytes[..length].copy_from_slice(&rest[..length]);
        u64::from_be_bytes(bytes)
    };
    let mut keyed: Vec<(u64, &[u8], TokenId)> =
        rests.iter().map(|&(rest, token)| (first_bytes(rest), rest, token)).collect();
    // Several runs that are sorted already.
    keyed.sort();
    for (place, (_, rest, token)) in rests.iter_mut().zip(keyed) {
        *place = (rest, token);
    }
}

/// The groups of exits, and which of them each state belongs to.
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
            for (depth, token) in trie.below(child) {
                let text = vocabulary.text(token);
                self.rests.push((&text[text.len() - depth - 1..], token));
            }
        }
    }

    /// As [`Self::end_at`], where the lexeme ends only before bytes with which it cannot go on.
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
            for (depth, token) in trie.below(child) {
                let text = vocabulary.text(token);
                self.rests.push((&text[text.len() - depth - 1..], token));
            }
        }
        Ok(())
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

/// Under which bytes a state stays what it is.
struct Loop {
    /// Groups of which each byte leads back.
    groups: Summary,
    staying: Staying,
    /// How many nodes there are at which the state changes, in all of the trie.
    num_changes: usize,
    /// How many nodes were below those where leaps were thought of.
    asked: usize,
    changes: Option<ChangesId>,
}

/// The place of a set in [`Loops::changes`].
#[derive(Clone, Copy)]
struct ChangesId(usize);

/// The bytes under which states stay what they are.
struct Loops<'l> {
    vocabulary: &'l Vocabulary,
    lexeme: &'l Lexeme,
    known: FxHashMap<LexState, Loop>,
    /// The nodes at which a state changes, of the states that took long enough.
    changes: Vec<NodeSet>,
}

impl Loops<'_> {
    fn get(&mut self, state: LexState) -> Result<&mut Loop, LimitExceeded> {
        match self.known.entry(state) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(entry) => {
                let (groups, staying) = loops(self.lexeme, state, self.vocabulary.places())?;
                let num_changes = self.vocabulary.places().num_leaving(staying);
                let found = Loop { groups, staying, num_changes, asked: 0, changes: None };
                Ok(entry.insert(found))
            }
        }
    }

    /// The nodes below a node at which the state changes, where leaping to them is worth while: to
    /// find them takes longer the more there are, in all of the trie.
    fn changes_below(
        &mut self,
        node: NodeId,
        state: LexState,
    ) -> Result<Option<ChangesId>, LimitExceeded> {
        let size = self.vocabulary.trie().after(node).0 - node.0;
        let places = self.vocabulary.places();
        if size < LEAP_NODES || places.begins_in_the_middle(node) || state.accepts() {
            return Ok(None);
        }
        let next = ChangesId(self.changes.len());
        let known = self.get(state)?;
        if let Some(known) = known.changes {
            return Ok(Some(known));
        }
        known.asked += size as usize;
        if known.asked * ASKED_PER_CHANGE < known.num_changes {
            return Ok(None);
        }
        known.changes = Some(next);
        let staying = known.staying;
        self.changes.push(places.leaving(staying));
        Ok(Some(next))
    }
}

/// The groups of bytes under which a state stays what it is, and all such characters.
fn loops(
    lexeme: &Lexeme,
    state: LexState,
    places: &Places,
) -> Result<(Summary, Staying), LimitExceeded> {
    let row = lexeme.row(state);
    let mut leaving = Summary::default();
    let mut groups = Summary::default();
    let mut staying = Staying::default();
    for byte in 0..0x80u8 {
        let group = Summary::of_ascii(byte);
        if row.next(byte)? == Some(state) {
            groups = groups.union(group);
            staying.ascii |= 1 << byte;
        } else {
            leaving = leaving.union(group);
        }
    }
    let mut groups = Summary(groups.0 & !leaving.0);
    let mut characters = Characters { lexeme, state, known: Vec::new() };
    let mut all = true;
    // The common ones first: where these lead away it does not matter what the rare ones do.
    for common in [true, false] {
        for byte in 0xC2..=0xF4u8 {
            if common != (places.num_of(byte) >= COMMON_NODES) || (!common && !all) {
                continue;
            }
            if characters.lead_back(Utf8Place::BOUNDARY, state, byte)? {
                staying.multibyte |= 1 << (byte - 0xC0);
            } else {
                all = false;
            }
        }
    }
    if all {
        groups = groups.union(Summary::MULTIBYTE);
    }
    Ok((groups, staying))
}

/// What characters above ASCII do with a state.
struct Characters<'l> {
    lexeme: &'l Lexeme,
    state: LexState,
    /// Within a character, whether all that complete it lead back.
    known: Vec<(Utf8Place, LexState, bool)>,
}

impl Characters<'_> {
    /// Whether all well-formed characters that go on with this byte lead back to the state, without
    /// an end on the way.
    fn lead_back(
        &mut self,
        place: Utf8Place,
        from: LexState,
        byte: u8,
    ) -> Result<bool, LimitExceeded> {
        let Some(next_place) = place.next(byte) else { return Ok(true) };
        let Some(next) = self.lexeme.next(from, byte)? else { return Ok(false) };
        if next_place == Utf8Place::BOUNDARY {
            return Ok(next == self.state);
        }
        if next.accepts() {
            return Ok(false);
        }
        let known = self.known.iter().find(|known| (known.0, known.1) == (next_place, next));
        if let Some(&(_, _, back)) = known {
            return Ok(back);
        }
        let mut back = true;
        for byte in 0x80..=0xBFu8 {
            back = self.lead_back(next_place, next, byte)?;
            if !back {
                break;
            }
        }
        self.known.push((next_place, next, back));
        Ok(back)
    }
}
