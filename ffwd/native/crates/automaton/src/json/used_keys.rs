//! Sets of earlier keys, as persistent tries over their spelling: adding a key copies one path.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::interning::intern::Interner;
use crate::interning::memory::{map_entry, Held};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// An interned set of an object's earlier keys: its place among the sets.
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
    /// How often the one of them counts that counts most often.
    most: u32,
}

impl Held for UsedNode {
    fn held_bytes(&self) -> usize {
        // Both copies of a node share its children.
        std::mem::size_of_val(&*self.children) / 2 + 8
    }
}

impl UsedNode {
    fn new(children: Vec<(u8, UsedId)>, ends: bool, count: u32, most: u32) -> Self {
        Self { children: children.into(), ends, count, most }
    }
}

/// How two sets are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    /// The keys of any of them.
    Union,
    /// The same, and what both have counts twice.
    Sum,
    /// The keys of both.
    Common,
}

#[derive(Debug)]
pub struct UsedKeys {
    nodes: Interner<UsedNode>,
    /// The results of combining two sets. One more key changes those of one path.
    joined: Mutex<FxHashMap<(Operation, UsedId, UsedId), UsedId>>,
}

const MAX_NODES: usize = 8_000_000;

impl UsedKeys {
    pub fn new() -> Result<Self, LimitExceeded> {
        let nodes = Interner::new("used_key_bytes", MAX_NODES);
        nodes.intern(UsedNode::new(Vec::new(), false, 0, 0))?;
        Ok(Self { nodes, joined: Mutex::default() })
    }

    fn node(&self, id: UsedId) -> &UsedNode {
        self.nodes.get(id.0)
    }

    /// About how many bytes of memory the sets hold.
    pub fn memory_bytes(&self) -> usize {
        let joined = map_entry::<(Operation, UsedId, UsedId), UsedId>();
        self.nodes.memory_bytes() + self.joined.lock().len() * joined
    }

    pub fn num_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The set with one more key, which is written with its opening quote.
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
            // The key counts once.
            let node = UsedNode::new(children, ends, node.count + 1, node.most.max(1));
            below = Some(UsedId(self.nodes.intern(node)?));
        }
        Ok(below.unwrap_or(set))
    }

    /// The keys of any of two sets.
    pub fn union(&self, one: UsedId, other: UsedId) -> Result<UsedId, LimitExceeded> {
        self.join(Operation::Union, one, other)
    }

    /// The keys of any of two sets, and what both have counts twice.
    pub fn sum(&self, one: UsedId, other: UsedId) -> Result<UsedId, LimitExceeded> {
        self.join(Operation::Sum, one, other)
    }

    /// The keys of both of two sets.
    pub fn common(&self, one: UsedId, other: UsedId) -> Result<UsedId, LimitExceeded> {
        self.join(Operation::Common, one, other)
    }

    fn join(
        &self,
        operation: Operation,
        one: UsedId,
        other: UsedId,
    ) -> Result<UsedId, LimitExceeded> {
        if let Some(known) = self.known_join(operation, one, other) {
            return Ok(known);
        }
        // Keys are of any length, so this does not recurse.
        let mut pending = vec![(one.min(other), one.max(other))];
        let mut last = UsedId::EMPTY;
        while let Some(&(one, other)) = pending.last() {
            let (a, b) = (self.node(one), self.node(other));
            let mut children = Vec::with_capacity(a.children.len().max(b.children.len()));
            let before = pending.len();
            let (mut at, mut beside) = (0, 0);
            loop {
                let byte = |children: &[(u8, UsedId)], at: usize| children.get(at).map(|c| c.0);
                let (left, right) = (byte(&a.children, at), byte(&b.children, beside));
                match (left, right) {
                    (None, None) => break,
                    (Some(left), Some(right)) if left == right => {
                        let (one, other) = (a.children[at].1, b.children[beside].1);
                        match self.known_join(operation, one, other) {
                            Some(UsedId::EMPTY) => {}
                            Some(known) => children.push((left, known)),
                            None => pending.push((one.min(other), one.max(other))),
                        }
                        (at, beside) = (at + 1, beside + 1);
                    }
                    (Some(left), right) if right.is_none_or(|right| left < right) => {
                        if operation != Operation::Common {
                            children.push(a.children[at]);
                        }
                        at += 1;
                    }
                    _ => {
                        if operation != Operation::Common {
                            children.push(b.children[beside]);
                        }
                        beside += 1;
                    }
                }
            }
            if pending.len() > before {
                continue;
            }
            meter::charge(1)?;
            let below = children.iter().map(|&(_, child)| self.count(child)).sum::<u32>();
            let (ends, own) = match operation {
                Operation::Union => (a.ends || b.ends, u32::from(a.ends || b.ends)),
                Operation::Sum => (a.ends || b.ends, self.own_count(a) + self.own_count(b)),
                Operation::Common => (a.ends && b.ends, u32::from(a.ends && b.ends)),
            };
            let most =
                children.iter().map(|&(_, child)| self.most_below(child)).fold(own, u32::max);
            let joined = UsedNode::new(children, ends, below + own, most);
            last = UsedId(self.nodes.intern(joined)?);
            self.joined.lock().insert((operation, one, other), last);
            pending.pop();
        }
        Ok(last)
    }

    /// How often a key that ends at a node counts.
    fn own_count(&self, node: &UsedNode) -> u32 {
        node.count - node.children.iter().map(|&(_, child)| self.count(child)).sum::<u32>()
    }

    /// The result for two sets, if it is trivial or cached.
    fn known_join(&self, operation: Operation, one: UsedId, other: UsedId) -> Option<UsedId> {
        let (one, other) = (one.min(other), one.max(other));
        match operation {
            Operation::Union | Operation::Sum if one == UsedId::EMPTY => Some(other),
            Operation::Union | Operation::Common if one == other => Some(one),
            Operation::Common if one == UsedId::EMPTY => Some(one),
            _ => self.joined.lock().get(&(operation, one, other)).copied(),
        }
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

    /// How often the key that ends here counts.
    pub fn times(&self, id: UsedId) -> u32 {
        self.own_count(self.node(id))
    }

    /// The same for the one of the keys that end here and below that counts most often.
    pub fn most_below(&self, id: UsedId) -> u32 {
        self.node(id).most
    }

    /// How many keys end here and below.
    pub fn count(&self, id: UsedId) -> u32 {
        self.node(id).count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn keys(sets: &UsedKeys, set: UsedId, before: &mut Vec<u8>, found: &mut BTreeSet<Vec<u8>>) {
        if sets.ends(set) {
            found.insert(before.clone());
        }
        for &(byte, child) in sets.children(set) {
            before.push(byte);
            keys(sets, child, before, found);
            before.pop();
        }
    }

    #[test]
    fn joined_sets_have_the_keys_of_both() {
        let sets = UsedKeys::new().unwrap();
        let mut random = 7u64;
        let mut below = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % bound
        };
        for _ in 0..300 {
            let mut both = Vec::new();
            for _ in 0..2 {
                let mut set = UsedId::EMPTY;
                let mut plain = BTreeSet::new();
                for _ in 0..below(9) {
                    let key: Vec<u8> = (0..below(5)).map(|_| b'a' + below(3) as u8).collect();
                    set = sets.with(set, &key).unwrap();
                    plain.insert(key);
                }
                both.push((set, plain));
            }
            let ((one, left), (other, right)) = (&both[0], &both[1]);
            for (joined, plain) in [
                (sets.union(*one, *other).unwrap(), left | right),
                (sets.common(*other, *one).unwrap(), left & right),
            ] {
                let mut found = BTreeSet::new();
                keys(&sets, joined, &mut Vec::new(), &mut found);
                assert_eq!(found, plain);
                assert_eq!(sets.count(joined) as usize, plain.len());
            }
            let sum = sets.sum(*one, *other).unwrap();
            let mut found = BTreeSet::new();
            keys(&sets, sum, &mut Vec::new(), &mut found);
            assert_eq!(found, left | right);
            assert_eq!(sets.count(sum) as usize, left.len() + right.len());
            let most = u32::from(!found.is_empty()) + u32::from(!(left & right).is_empty());
            assert_eq!(sets.most_below(sum), most);
        }
    }
}
