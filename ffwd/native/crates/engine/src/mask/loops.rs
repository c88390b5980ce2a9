//! The bytes under which the states of a lexeme do not change, so that a walk over a trie skips
//! what changes nothing.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::recent::{Recent, RecentMemo};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::expr::{LexState, Lexeme};
use ffwd_tokenizer::vocabulary::{
    NodeId, NodeSet, Places, Staying, Summary, Utf8Place, Vocabulary,
};

/// In subtrees of at least this many nodes, leaps from one change of state to the next are
/// considered.
const LEAP_NODES: u32 = 64;

/// The number of nodes that are walked in the time of marking one node as a change.
const ASKED_PER_CHANGE: usize = 4;

/// If a lexeme may end between two changes, at most this fraction of the trie's nodes may be
/// changes. Otherwise large subtrees would be copied instead of grafted.
const PART_OF_CHANGES: usize = if cfg!(test) { 1 } else { 8 };

/// The effects of a character's first byte with fewer nodes than this are not examined, unless all
/// others loop.
const COMMON_NODES: usize = 16;

/// How many nodes are examined for one step.
const NODES_PER_STEP: usize = 4;

/// The byte budget for nodes at which states change.
const MAX_BYTES: usize = 4 << 20;

impl Recent for Arc<NodeSet> {}

/// The nodes at which states change, by lexeme and state, for states with long enough walks. All
/// walks over one vocabulary share them.
#[derive(Debug)]
pub(super) struct KnownChanges(Mutex<RecentMemo<(u64, LexState), Arc<NodeSet>>>);

impl Default for KnownChanges {
    fn default() -> Self {
        Self(Mutex::new(RecentMemo::new(MAX_BYTES)))
    }
}

impl KnownChanges {
    fn get(&self, lexeme: &Lexeme, state: LexState) -> Option<Arc<NodeSet>> {
        self.0.lock().get(&(lexeme.id(), state))
    }

    fn keep(&self, lexeme: &Lexeme, state: LexState, changes: &Arc<NodeSet>) {
        let bytes = changes.memory_bytes();
        let let_go = self.0.lock().insert((lexeme.id(), state), changes.clone(), bytes);
        drop(let_go);
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.lock().memory_bytes()
    }
}

/// The bytes under which a state does not change.
pub(super) struct Loop {
    /// Groups all of whose bytes lead back.
    pub(super) groups: Summary,
    staying: Staying,
    /// The number of nodes in the whole trie at which the state changes.
    num_changes: usize,
    /// The number of nodes below those that were considered for leaps.
    asked: usize,
}

/// The place of a set in [`Loops::changes`].
#[derive(Clone, Copy)]
pub(super) struct ChangesId(usize);

/// The bytes under which states do not change.
pub(super) struct Loops<'l> {
    vocabulary: &'l Vocabulary,
    lexeme: &'l Lexeme,
    /// Whether it ends only at its longest match.
    longest: bool,
    shared: &'l KnownChanges,
    known: FxHashMap<LexState, Loop>,
    /// The nodes at which a state changes, for states with long enough walks.
    changes: Vec<Arc<NodeSet>>,
    /// The index into `changes` of a state, by its index.
    of_states: Vec<Option<ChangesId>>,
}

impl<'l> Loops<'l> {
    pub(super) fn new(
        vocabulary: &'l Vocabulary,
        lexeme: &'l Lexeme,
        longest: bool,
        shared: &'l KnownChanges,
    ) -> Self {
        let known = FxHashMap::default();
        let (changes, of_states) = (Vec::new(), Vec::new());
        Self { vocabulary, lexeme, longest, shared, known, changes, of_states }
    }

    pub(super) fn get(&mut self, state: LexState) -> Result<&mut Loop, LimitExceeded> {
        match self.known.entry(state) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(entry) => {
                let (groups, staying) = loops(self.lexeme, state, self.vocabulary.places())?;
                let num_changes = self.vocabulary.places().num_leaving(staying);
                let known = entry.insert(Loop { groups, staying, num_changes, asked: 0 });
                if let Some(changes) = self.shared.get(self.lexeme, state) {
                    set(&mut self.of_states, state, ChangesId(self.changes.len()));
                    self.changes.push(changes);
                }
                Ok(known)
            }
        }
    }

    /// The nodes at which a state changes, if they have been found, and leaps to them from below a
    /// node are safe.
    #[inline]
    pub(super) fn known_changes(&self, node: NodeId, state: LexState) -> Option<ChangesId> {
        let known = (*self.of_states.get(state.index())?)?;
        (!self.vocabulary.places().begins_in_the_middle(node)).then_some(known)
    }

    /// The first node from `from` on at which the state changes; `end` if there is none before it.
    #[inline]
    pub(super) fn next_change(&self, changes: ChangesId, from: NodeId, end: NodeId) -> NodeId {
        self.changes[changes.0].next(from, end)
    }

    /// The nodes below a node at which the state changes, if leaping to them pays. The search for
    /// them takes longer the more there are in the whole trie.
    pub(super) fn changes_below(
        &mut self,
        node: NodeId,
        state: LexState,
    ) -> Result<Option<ChangesId>, LimitExceeded> {
        let Self { vocabulary, lexeme, longest, .. } = *self;
        let (trie, places) = (vocabulary.trie(), vocabulary.places());
        if state.accepts() && !longest || places.begins_in_the_middle(node) {
            return Ok(None);
        }
        self.get(state)?;
        if let Some(known) = self.known_changes(node, state) {
            return Ok(Some(known));
        }
        let next = ChangesId(self.changes.len());
        let known = self.get(state)?;
        let size = trie.after(node).0 - node.0;
        let many = state.accepts() && known.num_changes * PART_OF_CHANGES > trie.len();
        if size < LEAP_NODES || many {
            return Ok(None);
        }
        known.asked += size as usize;
        if known.asked * ASKED_PER_CHANGE < known.num_changes {
            return Ok(None);
        }
        let changes = Arc::new(changes(vocabulary, lexeme, state, known.staying, longest)?);
        self.shared.keep(lexeme, state, &changes);
        set(&mut self.of_states, state, next);
        self.changes.push(changes);
        Ok(Some(next))
    }
}

fn set(of_states: &mut Vec<Option<ChangesId>>, state: LexState, changes: ChangesId) {
    if of_states.len() <= state.index() {
        of_states.resize(state.index() + 1, None);
    }
    of_states[state.index()] = Some(changes);
}

/// Returns the nodes at which a state changes, and those with malformed UTF-8. For a character of
/// several bytes it is the node of the first byte. With `exactly`, it counts only if some
/// continuation in the trie does not loop, which pays if many walks share the result.
fn changes(
    vocabulary: &Vocabulary,
    lexeme: &Lexeme,
    state: LexState,
    staying: Staying,
    exactly: bool,
) -> Result<NodeSet, LimitExceeded> {
    let trie = vocabulary.trie();
    let mut looked = 0;
    let found = vocabulary.places().leaving(staying, |node| {
        if !exactly {
            return Ok(true);
        }
        let Some(place) = Utf8Place::BOUNDARY.next(trie.byte(node)) else { return Ok(true) };
        let Some(first) = lexeme.next(state, trie.byte(node))? else { return Ok(true) };
        let mut pending = vec![(node, place, first)];
        while let Some((node, place, from)) = pending.pop() {
            looked += 1;
            if from.accepts() {
                return Ok(true);
            }
            for (byte, child) in trie.children(node) {
                let Some(next_place) = place.next(byte) else { continue };
                let Some(next) = lexeme.next(from, byte)? else { return Ok(true) };
                match next_place {
                    Utf8Place::BOUNDARY if next != state => return Ok(true),
                    Utf8Place::BOUNDARY => {}
                    _ => pending.push((child, next_place, next)),
                }
            }
        }
        Ok(false)
    })?;
    meter::charge(1 + looked / NODES_PER_STEP)?;
    Ok(found)
}

/// The groups of bytes, and the characters, under which a state does not change.
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
    // The common ones first: if these leave the state, the rare ones do not matter.
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

/// The effects of characters above ASCII on a state.
struct Characters<'l> {
    lexeme: &'l Lexeme,
    state: LexState,
    /// Within a character, whether all of its completions lead back.
    known: Vec<(Utf8Place, LexState, bool)>,
}

impl Characters<'_> {
    /// Returns whether all well-formed characters that continue with this byte loop in the state,
    /// without an end.
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
