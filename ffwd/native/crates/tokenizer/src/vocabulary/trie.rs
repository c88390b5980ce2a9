//! A trie over byte strings, laid out in depth-first order.
//!
//! A node's subtree is the contiguous run of nodes that follows it. The tokens below a node are a
//! contiguous run too, so walks visit memory in order and skipping a subtree is one addition.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::summary::{Summary, Utf8Place};
use super::TokenId;

/// A node of a [`ByteTrie`]; the root is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The node of the empty string.
    pub const ROOT: Self = Self(0);

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Number of nodes of the subtree, this one included, in the upper 24 bits; the byte that
    /// leads here in the lower 8.
    size_and_byte: u32,
    /// The start of the subtree's tokens; those of the node itself come first.
    tokens: u32,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// The tokens of a vocabulary as a trie over their bytes, nodes in preorder.
#[derive(Debug)]
pub struct ByteTrie {
    /// Unique in the process.
    id: u64,
    nodes: Vec<Node>,
    tokens: Vec<TokenId>,
    /// The child of the root by byte, in a large trie; the root itself where there is none.
    of_root: Vec<NodeId>,
}

/// Tries with fewer nodes have no table for the root.
const LARGE: usize = 4096;

/// The next step of a walk after a node.
#[derive(Clone, Copy, Debug)]
pub enum Descent<S> {
    /// Below the node, in this state.
    Below(S),
    /// After the subtree of the node.
    Skip,
    /// Nowhere.
    Stop,
}

impl ByteTrie {
    /// From sorted strings, which may repeat. The caller ensures that they have fewer than 2^24 - 1
    /// bytes in all, so that the trie has fewer than 2^24 nodes.
    pub fn from_sorted<B: AsRef<[u8]>>(sorted: &[(B, TokenId)]) -> Self {
        let mut trie = Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            nodes: Vec::new(),
            tokens: Vec::with_capacity(sorted.len()),
            of_root: Vec::new(),
        };
        trie.nodes.push(Node { size_and_byte: 0, tokens: 0 });
        let mut open: Vec<usize> = vec![0];
        let mut path: Vec<u8> = Vec::new();
        for (text, token) in sorted {
            let text = text.as_ref();
            let shared = path.iter().zip(text).take_while(|(a, b)| a == b).count();
            trie.close(&mut open, shared + 1);
            path.truncate(shared);
            for &byte in &text[shared..] {
                path.push(byte);
                open.push(trie.nodes.len());
                let tokens = trie.tokens.len() as u32;
                trie.nodes.push(Node { size_and_byte: u32::from(byte), tokens });
            }
            trie.tokens.push(*token);
        }
        trie.close(&mut open, 0);
        // A sentinel, so that the tokens of a subtree end where those of the next node start.
        trie.nodes.push(Node { size_and_byte: 1 << 8, tokens: trie.tokens.len() as u32 });
        trie.nodes.shrink_to_fit();
        if trie.len() >= LARGE {
            let mut of_root = vec![NodeId::ROOT; 256];
            for (byte, child) in trie.children(NodeId::ROOT) {
                of_root[usize::from(byte)] = child;
            }
            trie.of_root = of_root;
        }
        trie
    }

    fn close(&mut self, open: &mut Vec<usize>, keep: usize) {
        while open.len() > keep {
            if let Some(node) = open.pop() {
                let size = (self.nodes.len() - node) as u32;
                self.nodes[node].size_and_byte |= size << 8;
            }
        }
    }

    /// For each node, the bytes that occur below it.
    pub(crate) fn summaries(&self) -> Vec<Summary> {
        let mut summaries = vec![Summary::default(); self.len()];
        // For each node, the positions in UTF-8 from which everything below it is valid UTF-8.
        let mut well_formed = vec![0u8; self.len()];
        for index in (0..self.len() as u32).rev() {
            let node = NodeId(index);
            let mut below = Summary::default();
            let mut places = u8::MAX;
            for (byte, child) in self.children(node) {
                below = below.union(summaries[child.index()]);
                if byte.is_ascii() {
                    below = below.union(Summary::of_ascii(byte));
                } else {
                    below = below.union(Summary::MULTIBYTE);
                }
                for place in Utf8Place::all() {
                    let next = place.next(byte).map_or(0, Utf8Place::bit);
                    if next & well_formed[child.index()] == 0 {
                        places &= !place.bit();
                    }
                }
            }
            // Only a character's start shows whether bytes above ASCII are well formed.
            below = Summary(below.0 & !Summary::ILL_FORMED.0);
            if places & Utf8Place::BOUNDARY.bit() == 0 {
                below = below.union(Summary::ILL_FORMED);
            }
            well_formed[node.index()] = places;
            summaries[node.index()] = below;
        }
        summaries
    }

    /// A number that no other trie of the process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The byte that leads to a node; 0 for the root.
    #[inline]
    pub fn byte(&self, node: NodeId) -> u8 {
        self.nodes[node.index()].size_and_byte as u8
    }

    /// The first node after the subtree of a node.
    #[inline]
    pub fn after(&self, node: NodeId) -> NodeId {
        NodeId(node.0 + (self.nodes[node.index()].size_and_byte >> 8))
    }

    /// The tokens that end at a node.
    #[inline]
    pub fn tokens_at(&self, node: NodeId) -> &[TokenId] {
        let start = self.nodes[node.index()].tokens as usize;
        // The next node in depth-first order is the first child, if there is one, else whatever
        // follows; its tokens start where those of this node end either way.
        let end = self.nodes[node.index() + 1].tokens as usize;
        &self.tokens[start..end]
    }

    /// The tokens that end at a node or below it.
    #[inline]
    pub fn tokens_below(&self, node: NodeId) -> &[TokenId] {
        let start = self.nodes[node.index()].tokens as usize;
        let end = self.nodes[self.after(node).index()].tokens as usize;
        &self.tokens[start..end]
    }

    /// The places among all tokens of those that end at a node or below it.
    #[inline]
    pub fn places_below(&self, node: NodeId) -> Range<usize> {
        self.tokens_before(node)..self.tokens_before(self.after(node))
    }

    /// How many tokens come before those of a node and its subtree.
    #[inline]
    pub fn tokens_before(&self, node: NodeId) -> usize {
        self.nodes[node.index()].tokens as usize
    }

    /// Tokens by their place among all of the trie.
    pub fn tokens_in(&self, places: Range<usize>) -> &[TokenId] {
        &self.tokens[places]
    }

    /// The tokens that end at a node or below it, each with how many bytes below.
    pub fn below(&self, node: NodeId) -> impl Iterator<Item = (usize, TokenId)> + '_ {
        let mut ends: Vec<NodeId> = Vec::new();
        (node.0..self.after(node).0).map(NodeId).flat_map(move |node| {
            while ends.last().is_some_and(|&end| node >= end) {
                ends.pop();
            }
            let depth = ends.len();
            ends.push(self.after(node));
            self.tokens_at(node).iter().map(move |&token| (depth, token))
        })
    }

    /// The children of a node, by byte.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = (u8, NodeId)> + '_ {
        let end = self.after(node);
        let mut child = NodeId(node.0 + 1);
        std::iter::from_fn(move || {
            if child >= end {
                return None;
            }
            let current = child;
            child = self.after(current);
            Some((self.byte(current), current))
        })
    }

    /// Visits the nodes below one in depth-first order, each with the state of its parent and how
    /// many nodes lie between it and the root of the walk.
    #[inline(always)]
    pub fn walk<S, E>(
        &self,
        root: NodeId,
        start: S,
        mut visit: impl FnMut(&S, NodeId, usize) -> Result<Descent<S>, E>,
    ) -> Result<(), E> {
        let end = self.after(root);
        // Up to which node each state holds.
        let mut path: Vec<(NodeId, S)> = vec![(end, start)];
        let mut node = NodeId(root.0 + 1);
        while node < end {
            while path.len() > 1 && path.last().is_some_and(|(until, _)| node >= *until) {
                path.pop();
            }
            let Some((_, state)) = path.last() else { break };
            let after = self.after(node);
            let first = NodeId(node.0 + 1);
            node = match visit(state, node, path.len() - 1)? {
                Descent::Below(below) => {
                    if after > first {
                        path.push((after, below));
                    }
                    first
                }
                Descent::Skip => after,
                Descent::Stop => break,
            };
        }
        Ok(())
    }

    /// The node after one more byte; `None` if no token continues with it.
    pub fn child(&self, node: NodeId, byte: u8) -> Option<NodeId> {
        if node == NodeId::ROOT {
            if let Some(&child) = self.of_root.get(usize::from(byte)) {
                return (child != NodeId::ROOT).then_some(child);
            }
        }
        let child = self.child_from(node, NodeId(node.0 + 1), byte);
        self.is_child(node, child, byte).then_some(child)
    }

    /// The first child of a node, from a given child on, whose byte is at least this one. Without
    /// one, the node after the subtree.
    #[inline]
    pub fn child_from(&self, node: NodeId, mut child: NodeId, byte: u8) -> NodeId {
        let end = self.after(node);
        while child < end && self.byte(child) < byte {
            child = self.after(child);
        }
        child
    }

    /// Whether [`Self::child_from`] has found the child of the byte itself.
    #[inline]
    pub fn is_child(&self, node: NodeId, child: NodeId, byte: u8) -> bool {
        child < self.after(node) && self.byte(child) == byte
    }

    /// Whether nothing lies below a node.
    #[inline]
    pub fn is_leaf(&self, node: NodeId) -> bool {
        self.after(node).0 == node.0 + 1
    }

    /// Returns the first token that is just one byte.
    pub fn token_of_byte(&self, byte: u8) -> Option<TokenId> {
        self.tokens_at(self.child(NodeId::ROOT, byte)?).first().copied()
    }

    /// The node that a string leads to.
    pub fn find(&self, text: &[u8]) -> Option<NodeId> {
        text.iter().try_fold(NodeId::ROOT, |node, &byte| self.child(node, byte))
    }

    /// About how many bytes of memory the trie holds.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * std::mem::size_of::<Node>()
            + (self.tokens.capacity() + self.of_root.capacity()) * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trie_finds_its_strings_and_their_subtrees() {
        let texts: [&[u8]; 6] = [b"a", b"ab", b"ab", b"abc", b"b", b"ba"];
        let sorted: Vec<_> =
            texts.iter().enumerate().map(|(i, text)| (*text, TokenId(i as u32))).collect();
        let trie = ByteTrie::from_sorted(&sorted);
        assert_eq!(trie.len(), 6);
        let ab = trie.find(b"ab").unwrap();
        assert_eq!(trie.tokens_at(ab), &[TokenId(1), TokenId(2)]);
        assert_eq!(trie.tokens_below(ab), &[TokenId(1), TokenId(2), TokenId(3)]);
        assert_eq!(trie.tokens_below(NodeId::ROOT).len(), 6);
        assert_eq!(trie.tokens_at(NodeId::ROOT), &[]);
        assert_eq!(trie.find(b"ac"), None);
        let bytes: Vec<u8> = trie.children(NodeId::ROOT).map(|(byte, _)| byte).collect();
        assert_eq!(bytes, b"ab");
    }
}
