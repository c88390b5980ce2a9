//! Sets of keys that came, as persistent tries over their spelling: one key more copies a path.

use std::sync::Arc;

use crate::interning::intern::Interner;
use crate::interning::memory::Held;
use ffwd_bounds::error::LimitExceeded;

/// An interned set of keys that have come in an object.
/// Its place among the sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UsedId(pub u32);

impl UsedId {
    /// No key.
    pub const EMPTY: Self = Self(0);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct UsedNode {
    /// Sorted by byte.
    children: Arc<[(u8, UsedId)]>,
    /// Whether a key ends here.
    ends: bool,
    /// How many keys end here and below.
    count: u32,
}

impl Held for UsedNode {
    fn held_bytes(&self) -> usize {
        // Both copies of a node share its children.
        std::mem::size_of_val(&*self.children) / 2 + 8
    }
}

impl UsedNode {
    fn new(children: Vec<(u8, UsedId)>, ends: bool, count: u32) -> Self {
        Self { children: children.into(), ends, count }
    }
}

#[derive(Debug)]
pub struct UsedKeys {
    nodes: Interner<UsedNode>,
}

const MAX_NODES: usize = 8_000_000;

impl UsedKeys {
    pub fn new() -> Result<Self, LimitExceeded> {
        let nodes = Interner::new("used_key_bytes", MAX_NODES);
        nodes.intern(UsedNode::new(Vec::new(), false, 0))?;
        Ok(Self { nodes })
    }

    fn node(&self, id: UsedId) -> &UsedNode {
        self.nodes.get(id.0)
    }

    /// About how many bytes of memory the sets hold.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes()
    }

    pub fn num_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The set with one key more, which is written with its opening quote.
    pub fn with(&self, set: UsedId, key: &[u8]) -> Result<UsedId, LimitExceeded> {
        let mut path = vec![set];
        for &byte in key {
            let last = path[path.len() - 1];
            path.push(self.child(last, byte).unwrap_or(UsedId::EMPTY));
        }
        if path.last().is_some_and(|&end| self.ends(end)) {
            return Ok(set);
        }
        let mut below: Option<UsedId> = None;
        for (depth, id) in path.into_iter().enumerate().rev() {
            let node = self.node(id);
            let mut children = node.children.to_vec();
            if let (Some(&byte), Some(child)) = (key.get(depth), below) {
                match children.binary_search_by_key(&byte, |&(label, _)| label) {
                    Ok(at) => children[at].1 = child,
                    Err(at) => children.insert(at, (byte, child)),
                }
            }
            let ends = node.ends || depth == key.len();
            let node = UsedNode::new(children, ends, node.count + 1);
            below = Some(UsedId(self.nodes.intern(node)?));
        }
        Ok(below.unwrap_or(set))
    }

    /// Returns the keys that continue with a byte, if any.
    pub fn child(&self, id: UsedId, byte: u8) -> Option<UsedId> {
        let children = &self.node(id).children;
        let at = children.binary_search_by_key(&byte, |&(label, _)| label).ok()?;
        Some(children[at].1)
    }

    /// Sorted by byte.
    pub fn children(&self, id: UsedId) -> &[(u8, UsedId)] {
        &self.node(id).children
    }

    /// Whether a key ends here.
    pub fn ends(&self, id: UsedId) -> bool {
        self.node(id).ends
    }

    /// How many keys end here and below.
    pub fn count(&self, id: UsedId) -> u32 {
        self.node(id).count
    }
}
