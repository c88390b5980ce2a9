//! The trie over the texts of all tokens, as a double array: a step reads one slot.
//!
//! A node with children has a *base*, and its child for a byte is at `base ^ byte`. A slot that
//! carries this byte as its label belongs to this node, because no two nodes share a base.

use std::collections::VecDeque;

use crate::vocabulary::TokenId;

/// A stored node. Its bits, from the lowest: the token that ends here (22), whether there is one,
/// whether merges reach it, the label (8), whether the slot is used, the base (24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackedNode(u64);

const TOKEN_MASK: u64 = (1 << 22) - 1;
const HAS_TOKEN: u64 = 1 << 22;
const REACHABLE: u64 = 1 << 23;
const LABEL_SHIFT: u32 = 24;
const USED: u64 = 1 << 32;
const BASE_SHIFT: u32 = 33;
/// The size of a block of places. A child lies in the block of its parent's base.
const BLOCK: usize = 256;
/// How many blocks are searched for room before a new one is begun.
const OPEN_BLOCKS: usize = 2;
/// About as many as a vocabulary's texts take, so that the nodes are seldom moved.
const PLACES_OF_A_TEXT: usize = 2;

impl PackedNode {
    #[inline]
    fn base(self) -> u32 {
        (self.0 >> BASE_SHIFT) as u32
    }

    /// The byte that leads here; none leads to the root.
    #[inline]
    pub fn label(self) -> u8 {
        (self.0 >> LABEL_SHIFT) as u8
    }

    /// The token that ends here: the one that merges reach, if one of several is.
    #[inline]
    pub fn token(self) -> Option<TokenId> {
        (self.0 & HAS_TOKEN != 0).then_some(TokenId((self.0 & TOKEN_MASK) as u32))
    }

    #[inline]
    pub fn reachable_token(self) -> Option<TokenId> {
        (self.0 & REACHABLE != 0).then_some(TokenId((self.0 & TOKEN_MASK) as u32))
    }

    fn end(&mut self, token: TokenId, reachable: bool) {
        self.0 |= u64::from(token.0) | HAS_TOKEN | if reachable { REACHABLE } else { 0 };
    }
}

/// The slot of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u32);

impl Slot {
    pub const ROOT: Self = Self(0);

    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug)]
pub(super) struct Trie {
    /// The first one is the root.
    nodes: Vec<PackedNode>,
}

/// A text of the trie with the token that ends there, and whether merges reach it.
pub(super) type TrieText<'a> = (&'a [u8], TokenId, bool);

impl Trie {
    /// From sorted, distinct texts that are not empty.
    pub fn from_sorted(entries: &[TrieText<'_>]) -> Self {
        let mut builder = Builder::default();
        builder.place_all(entries);
        Self { nodes: builder.nodes }
    }

    /// The same where the bases of the nodes with children are known, in the order in which the
    /// texts lead to these, so that no room is searched. `None` if they are those of no trie of the
    /// texts, or of one with more than `max_places` places.
    pub fn with_bases(
        entries: &[TrieText<'_>],
        bases: impl Iterator<Item = u32> + Clone,
        max_places: usize,
    ) -> Option<Self> {
        let mut rest = bases.clone();
        let places = (bases.max().unwrap_or(0) as usize / BLOCK + 1) * BLOCK;
        if places > max_places {
            return None;
        }
        let mut nodes = vec![PackedNode(0); places];
        let mut taken = vec![0u64; places / 64];
        let mut path = vec![0];
        let mut last: &[u8] = &[];
        for &(text, token, reachable) in entries {
            let shared = shared(last, text);
            path.truncate(shared + 1);
            for (depth, &byte) in text.iter().enumerate().skip(shared) {
                let parent: &mut PackedNode = &mut nodes[path[depth]];
                if is_first_child(last, shared, depth) {
                    let base = rest.next()?;
                    let of_block = &mut taken[base as usize / 64];
                    let bit = 1 << (base % 64);
                    // See `Builder::place_all` for the first block.
                    if *of_block & bit != 0 || (base as usize) < BLOCK {
                        return None;
                    }
                    *of_block |= bit;
                    parent.0 |= u64::from(base) << BASE_SHIFT;
                }
                let place = (parent.base() ^ u32::from(byte)) as usize;
                if nodes[place] != PackedNode(0) {
                    return None;
                }
                nodes[place] = PackedNode(USED | u64::from(byte) << LABEL_SHIFT);
                path.push(place);
            }
            nodes[path[text.len()]].end(token, reachable);
            last = text;
        }
        rest.next().is_none().then_some(Self { nodes })
    }

    /// The bases for [`Self::with_bases`]; `None` if these are not the trie's texts.
    pub fn bases<'t>(&self, sorted: impl Iterator<Item = &'t [u8]>) -> Option<Vec<u32>> {
        let mut bases = Vec::new();
        let mut path = vec![self.root()];
        let mut last: &[u8] = &[];
        for text in sorted {
            let shared = shared(last, text);
            path.truncate(shared + 1);
            for (depth, &byte) in text.iter().enumerate().skip(shared) {
                if is_first_child(last, shared, depth) {
                    bases.push(path[depth].base());
                }
                path.push(self.child(path[depth], byte)?);
            }
            last = text;
        }
        Some(bases)
    }

    #[inline]
    pub fn root(&self) -> PackedNode {
        self.nodes[0]
    }

    #[inline]
    pub fn child(&self, node: PackedNode, byte: u8) -> Option<PackedNode> {
        let child = *self.nodes.get((node.base() ^ u32::from(byte)) as usize)?;
        let expected = 1 << 8 | u32::from(byte);
        ((child.0 >> LABEL_SHIFT) as u32 & 0x1FF == expected).then_some(child)
    }

    /// How many places there are, used or not.
    pub fn places(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    pub fn at(&self, place: Slot) -> PackedNode {
        self.nodes[place.index()]
    }

    #[inline]
    pub fn child_at(&self, place: Slot, byte: u8) -> Option<Slot> {
        let node = self.at(place);
        self.child(node, byte).map(|_| Slot(node.base() ^ u32::from(byte)))
    }

    pub fn find(&self, text: &[u8]) -> Option<PackedNode> {
        text.iter().try_fold(self.root(), |node, &byte| self.child(node, byte))
    }

    /// Returns the longest reachable token that starts a text.
    #[inline]
    pub fn longest(&self, text: &[u8]) -> Option<TokenId> {
        let mut node = self.root();
        let mut longest = 0;
        for &byte in text {
            match self.child(node, byte) {
                Some(child) => node = child,
                None => break,
            }
            if node.0 & REACHABLE != 0 {
                longest = node.0;
            }
        }
        PackedNode(longest).reachable_token()
    }

    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * std::mem::size_of::<PackedNode>()
    }
}

/// How many bytes two texts have in common at the start.
fn shared(last: &[u8], text: &[u8]) -> usize {
    last.iter().zip(text).take_while(|(a, b)| a == b).count()
}

/// Whether a node at some depth gets its first child by a text that shares this many bytes with
/// the last one.
fn is_first_child(last: &[u8], shared: usize, depth: usize) -> bool {
    depth > shared || last.len() == shared
}

/// The room that is left in a block: a bit for each place that is free, and one for each base in
/// it that no node has.
#[derive(Clone, Copy, Debug)]
struct Room {
    block: usize,
    free: [u64; 4],
    bases: [u64; 4],
}

impl Room {
    fn new(block: usize) -> Self {
        Self { block, free: [u64::MAX; 4], bases: [u64::MAX; 4] }
    }

    fn is_free(&self, place: u8) -> bool {
        self.free[usize::from(place) >> 6] >> (place & 63) & 1 != 0
    }

    /// The lowest base at which there is room for children with these labels.
    fn find(&self, labels: &[u8]) -> Option<u8> {
        let (&first, rest) = labels.split_first()?;
        (0..4).find_map(|word| {
            let mut places = self.free[word];
            while places != 0 {
                let place = (word as u8) << 6 | places.trailing_zeros() as u8;
                places &= places - 1;
                let base = place ^ first;
                let is_unused = self.bases[usize::from(base) >> 6] >> (base & 63) & 1 != 0;
                if is_unused && rest.iter().all(|&label| self.is_free(base ^ label)) {
                    return Some(base);
                }
            }
            None
        })
    }

    fn take(&mut self, base: u8, labels: &[u8]) {
        self.bases[usize::from(base) >> 6] &= !(1 << (base & 63));
        for label in labels {
            let place = base ^ label;
            self.free[usize::from(place) >> 6] &= !(1 << (place & 63));
        }
    }

    fn is_full(&self) -> bool {
        self.free == [0; 4]
    }
}

#[derive(Default)]
struct Builder {
    nodes: Vec<PackedNode>,
    open: VecDeque<Room>,
}

impl Builder {
    /// Places every node below the root, level by level, so that those near the root, which are
    /// visited most, lie close together.
    fn place_all(&mut self, entries: &[TrieText<'_>]) {
        // Only the root's slot of the first block is used, which no byte leads to: a node without
        // children has its base there and finds none.
        self.nodes = Vec::with_capacity(BLOCK + PLACES_OF_A_TEXT * entries.len());
        self.nodes.resize(BLOCK, PackedNode(0));
        // The place of a node, the entries that go through it, and how long its text is.
        let mut pending = VecDeque::from([(0, 0, entries.len(), 0)]);
        let mut children: Vec<(usize, usize)> = Vec::new();
        let mut labels: Vec<u8> = Vec::new();
        while let Some((place, mut start, end, depth)) = pending.pop_front() {
            if let Some(&(text, token, reachable)) = entries[start..end].first() {
                if text.len() == depth {
                    self.nodes[place].end(token, reachable);
                    start += 1;
                }
            }
            children.clear();
            labels.clear();
            while start < end {
                let label = entries[start].0[depth];
                // Mostly few entries share a label, so they are counted one by one at first.
                let few = entries[start..end.min(start + 8)].iter();
                let few = few.take_while(|(text, ..)| text[depth] == label).count();
                let same = match few {
                    8 => entries[start..end].partition_point(|(text, ..)| text[depth] == label),
                    few => few,
                };
                labels.push(label);
                children.push((start, start + same));
                start += same;
            }
            if labels.is_empty() {
                continue;
            }
            let base = self.make_room(&labels);
            self.nodes[place].0 |= u64::from(base) << BASE_SHIFT;
            for (&label, &(start, end)) in labels.iter().zip(&children) {
                let child = (base ^ u32::from(label)) as usize;
                self.nodes[child] = PackedNode(USED | u64::from(label) << LABEL_SHIFT);
                pending.push_back((child, start, end, depth + 1));
            }
        }
        self.nodes.shrink_to_fit();
    }

    fn make_room(&mut self, labels: &[u8]) -> u32 {
        let found =
            self.open.iter_mut().enumerate().find_map(|(at, room)| Some((at, room.find(labels)?)));
        let (at, base) = found.unwrap_or_else(|| {
            let block = self.nodes.len() / BLOCK;
            self.nodes.resize(self.nodes.len() + BLOCK, PackedNode(0));
            if self.open.len() == OPEN_BLOCKS {
                self.open.pop_front();
            }
            self.open.push_back(Room::new(block));
            // With all places free, one base is as good as another.
            (self.open.len() - 1, 0)
        });
        let room = &mut self.open[at];
        room.take(base, labels);
        let absolute = (room.block * BLOCK) as u32 | u32::from(base);
        if room.is_full() {
            self.open.remove(at);
        }
        absolute
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(1),
            cases: 300,
            ..Default::default()
        })]

        #[test]
        fn a_trie_is_a_map(
            texts in prop::collection::btree_map(
                prop::collection::vec(prop_oneof![any::<u8>(), 0..3u8], 1..6),
                any::<bool>(),
                0..300,
            ),
            text in prop::collection::vec(0..3u8, 0..8),
        ) {
            let entries: Vec<TrieText<'_>> = (0..)
                .zip(&texts)
                .map(|(id, (text, &reachable))| (&text[..], TokenId(id), reachable))
                .collect();
            let trie = Trie::from_sorted(&entries);
            let map: BTreeMap<&[u8], (TokenId, bool)> = entries
                .iter()
                .map(|&(text, token, reachable)| (text, (token, reachable)))
                .collect();
            for (&text, &(token, reachable)) in &map {
                let node = trie.find(text).unwrap();
                prop_assert_eq!(node.token(), Some(token));
                prop_assert_eq!(node.reachable_token(), reachable.then_some(token));
                // Every byte that may follow, and no other.
                for byte in 0..=255 {
                    let longer = [text, &[byte]].concat();
                    let exists = texts.range(longer.clone()..).next();
                    let exists = exists.is_some_and(|(key, _)| key.starts_with(&longer));
                    prop_assert_eq!(trie.child(node, byte).is_some(), exists);
                }
            }
            let sorted = entries.iter().map(|&(text, ..)| text);
            let bases = trie.bases(sorted).unwrap();
            let of_bases = |bases: &[u32]| {
                Trie::with_bases(&entries, bases.iter().copied(), trie.places())
            };
            prop_assert_eq!(&of_bases(&bases).unwrap().nodes, &trie.nodes);
            prop_assert!(of_bases(&[&bases[..], &[BLOCK as u32]].concat()).is_none());
            if let Some((last, but_last)) = bases.split_last() {
                prop_assert!(of_bases(but_last).is_none());
                prop_assert!(of_bases(&[but_last, &[last % BLOCK as u32]].concat()).is_none());
                let outside = trie.places() as u32;
                prop_assert!(of_bases(&[but_last, &[outside]].concat()).is_none());
                if let Some(&first) = but_last.first() {
                    prop_assert!(of_bases(&[but_last, &[first]].concat()).is_none());
                }
            }
            let longest = (1..=text.len())
                .rev()
                .filter_map(|length| map.get(&text[..length]))
                .find(|(_, reachable)| *reachable);
            prop_assert_eq!(trie.longest(&text), longest.map(|&(token, _)| token));
        }
    }

    #[test]
    fn an_empty_trie_has_no_children() {
        let trie = Trie::from_sorted(&[]);
        assert!((0..=255).all(|byte| trie.child(trie.root(), byte).is_none()));
        assert_eq!(trie.longest(b"ab"), None);
    }
}
