//! The nodes of the trie by the byte before them, so that a walk can jump to the next relevant node
//! instead of visiting each.

use super::summary::Utf8Place;
use super::trie::{ByteTrie, NodeId};

/// Nodes of a trie, as bits.
#[derive(Clone, Debug)]
pub struct NodeSet(Box<[u64]>);

impl NodeSet {
    /// Returns an empty index of a trie with this many nodes.
    fn new(nodes: usize) -> Self {
        Self(vec![0; nodes.div_ceil(64)].into())
    }

    #[inline]
    fn insert(&mut self, node: NodeId) {
        self.0[node.index() / 64] |= 1 << (node.0 % 64);
    }

    #[inline]
    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.0[node.index() / 64] >> (node.0 % 64) & 1 == 1
    }

    /// The first node of the set from `from` on; `end` if there is none before it.
    #[inline]
    pub fn next(&self, from: NodeId, end: NodeId) -> NodeId {
        let mut at = from.index() / 64;
        let Some(&first) = self.0.get(at) else { return end };
        let mut word = first & (u64::MAX << (from.0 % 64));
        while word == 0 {
            at += 1;
            if at * 64 >= end.index() {
                return end;
            }
            let Some(&next) = self.0.get(at) else { return end };
            word = next;
        }
        NodeId((at * 64) as u32 + word.trailing_zeros()).min(end)
    }

    /// How many bytes of memory the set holds.
    pub fn memory_bytes(&self) -> usize {
        self.0.len() * 8
    }
}

/// Characters that leave some state unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Staying {
    /// ASCII, as bits.
    pub ascii: u128,
    /// Bit `i`: every well-formed character that begins with byte `0xC0 + i`, also cut short.
    pub multibyte: u64,
}

impl Staying {
    fn has(self, byte: u8) -> bool {
        match byte {
            0..=0x7F => self.ascii >> byte & 1 == 1,
            // Bytes within a character are not distinguished.
            0x80..=0xBF => true,
            0xC0..=0xFF => self.multibyte >> (byte - 0xC0) & 1 == 1,
        }
    }
}

/// The nodes of a trie by the byte that leads to them.
#[derive(Debug)]
pub struct Places {
    /// Sorted by byte, then by place.
    nodes: Box<[NodeId]>,
    /// The start of each byte's run in `nodes`.
    starts: Box<[u32; 257]>,
    /// Nodes whose byte is invalid UTF-8 at its position, while the path above them is well formed.
    ill_formed: NodeSet,
    num_ill_formed: usize,
    /// The first node whose text begins in the middle of a character, and the first after these.
    middle: (NodeId, NodeId),
}

impl Places {
    pub(crate) fn new(trie: &ByteTrie) -> Self {
        let all = || (1..trie.len() as u32).map(NodeId);
        let mut starts = Box::new([0u32; 257]);
        for node in all() {
            starts[usize::from(trie.byte(node)) + 1] += 1;
        }
        for byte in 0..256 {
            starts[byte + 1] += starts[byte];
        }
        let mut free = starts.clone();
        let mut nodes: Box<[NodeId]> = vec![NodeId::ROOT; trie.len() - 1].into();
        for node in all() {
            let place = &mut free[usize::from(trie.byte(node))];
            nodes[*place as usize] = node;
            *place += 1;
        }
        let mut ill_formed = NodeSet::new(trie.len());
        let mut num_ill_formed = 0;
        let mut pending = vec![(NodeId::ROOT, Utf8Place::BOUNDARY)];
        while let Some((node, place)) = pending.pop() {
            for (byte, child) in trie.children(node) {
                match place.next(byte) {
                    Some(next) => pending.push((child, next)),
                    None => {
                        ill_formed.insert(child);
                        num_ill_formed += 1;
                    }
                }
            }
        }
        let is_middle = |&(byte, _): &(u8, NodeId)| (0x80..0xC0).contains(&byte);
        let middle: Vec<(u8, NodeId)> = trie.children(NodeId::ROOT).filter(is_middle).collect();
        let middle = match (middle.first(), middle.last()) {
            (Some(&(_, first)), Some(&(_, last))) => (first, trie.after(last)),
            _ => (NodeId::ROOT, NodeId::ROOT),
        };
        Self { nodes, starts, ill_formed, num_ill_formed, middle }
    }

    #[inline]
    fn of(&self, byte: u8) -> &[NodeId] {
        let at = usize::from(byte);
        &self.nodes[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// How many nodes a byte leads to.
    pub fn num_of(&self, byte: u8) -> usize {
        self.of(byte).len()
    }

    /// How many nodes [`Self::leaving`] has, at most.
    pub fn num_leaving(&self, staying: Staying) -> usize {
        let leaving = (0..=255).filter(|&byte| !staying.has(byte));
        leaving.map(|byte| self.num_of(byte)).sum::<usize>() + self.num_ill_formed
    }

    /// The nodes where a state-changing character begins, and those where UTF-8 does not continue.
    /// Below a node at a character's boundary, that is not [`Self::begins_in_the_middle`], the
    /// first of them on each path down are what matters.
    ///
    /// `changes` decides for nodes where a character of several bytes begins that may change the
    /// state.
    pub fn leaving<E>(
        &self,
        staying: Staying,
        mut changes: impl FnMut(NodeId) -> Result<bool, E>,
    ) -> Result<NodeSet, E> {
        let mut leaving = self.ill_formed.clone();
        for byte in (0..=255).filter(|&byte| !staying.has(byte)) {
            for &node in self.of(byte) {
                if byte < 0x80 || changes(node)? {
                    leaving.insert(node);
                }
            }
        }
        Ok(leaving)
    }

    /// Whether UTF-8 reaches the parent of this node but not the node.
    #[inline]
    pub fn is_ill_formed(&self, node: NodeId) -> bool {
        self.ill_formed.contains(node)
    }

    /// Returns whether the first byte on the path to a node starts no character. Nothing is known
    /// about its descendants.
    pub fn begins_in_the_middle(&self, node: NodeId) -> bool {
        self.middle.0 <= node && node < self.middle.1
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.len() * 4 + self.ill_formed.memory_bytes() + std::mem::size_of_val(&*self.starts)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::vocabulary::testing::vocabulary;

    /// The first nodes on the paths down at which the state changes, by brute force.
    fn by_steps(trie: &ByteTrie, staying: Staying) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut pending = vec![(NodeId::ROOT, Utf8Place::BOUNDARY)];
        while let Some((node, place)) = pending.pop() {
            for (byte, child) in trie.children(node) {
                match place.next(byte).filter(|_| staying.has(byte)) {
                    Some(next) => pending.push((child, next)),
                    None => found.push(child),
                }
            }
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn leaping_finds_what_stepping_finds() {
        let letters = (u128::MAX << b'A') & !(1 << b'e' | 1 << b'\\');
        for seed in 0..20 {
            let vocabulary = vocabulary(seed, 600);
            let trie = vocabulary.trie();
            let places = vocabulary.places();
            for multibyte in [0, u64::MAX, 1 << 3 | 1 << 0x22] {
                for ascii in [0, 1 << b'a', letters, u128::MAX, !(1 << b'"')] {
                    let staying = Staying { ascii, multibyte };
                    let all = |_: NodeId| Ok::<bool, Infallible>(true);
                    let Ok(leaving) = places.leaving(staying, all);
                    let mut found = Vec::new();
                    let end = trie.after(NodeId::ROOT);
                    let mut node = leaving.next(NodeId(1), end);
                    while node < end {
                        assert!(leaving.contains(node));
                        found.push(node);
                        node = leaving.next(trie.after(node), end);
                    }
                    assert_eq!(found, by_steps(trie, staying), "seed {seed}, {staying:?}");
                    assert!(places.num_leaving(staying) >= found.len());
                }
            }
            for (byte, child) in trie.children(NodeId::ROOT) {
                let middle = (0x80..0xC0).contains(&byte);
                assert_eq!(places.begins_in_the_middle(child), middle);
            }
        }
    }

    #[test]
    fn the_next_of_a_set_is_not_past_the_end() {
        let mut set = NodeSet::new(300);
        [3, 63, 64, 200].into_iter().for_each(|node| set.insert(NodeId(node)));
        for (from, end, expected) in [
            (0, 300, 3),
            (3, 300, 3),
            (4, 300, 63),
            (64, 65, 64),
            (65, 200, 200),
            (65, 100, 100),
            (201, 300, 300),
            (299, 300, 300),
            (320, 320, 320),
        ] {
            assert_eq!(set.next(NodeId(from), NodeId(end)), NodeId(expected), "{from}");
        }
    }
}
