//! The intersection of the allowed keys with a trie of tokens.

use smallvec::SmallVec;

use super::walk::View;
use ffwd_automaton::keys::{KeyNode, Keys, PlainNames, Terminal};
use ffwd_automaton::{NameId, Result};
use ffwd_bounds::meter;
use ffwd_tokenizer::vocabulary::NodeId;

/// The positions of keys in a trie of tokens; nodes are those of the latter.
#[derive(Debug, Default, PartialEq)]
pub struct KeyPlaces {
    /// The nodes after the closing quotes of names, or of their rests, that start tokens.
    pub names: Vec<(Terminal, NodeId)>,
    /// The nodes at which other keys end: only names continue below.
    pub cut: Vec<NodeId>,
    /// The nodes within names where other keys are not allowed.
    pub within: Vec<NodeId>,
}

impl KeyPlaces {
    /// Whether the other keys, if they are allowed, are all that a token can begin or end.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.cut.is_empty() && self.within.is_empty()
    }
}

/// Returns the positions of a node's keys in a subtree of a trie.
pub fn key_places(
    keys: &Keys,
    view: View<'_>,
    root: KeyNode,
    nodes: &mut u64,
) -> Result<KeyPlaces> {
    if let Some(names) = keys.plain_names(&root) {
        return Ok(name_by_name(names, view, root.base.is_none(), nodes));
    }
    key_by_key(keys, view, root, nodes)
}

/// The same for any keys.
fn key_by_key(keys: &Keys, view: View<'_>, root: KeyNode, nodes: &mut u64) -> Result<KeyPlaces> {
    let mut places = KeyPlaces::default();
    let mut pending = vec![(root, view.root)];
    while let Some((key, node)) = pending.pop() {
        *nodes += 1;
        meter::charge(1)?;
        if view.trie.is_leaf(node) {
            continue;
        }
        let terminal = keys.terminal(&key);
        if terminal != Terminal::None && !key.is_before_quote() {
            if let Some(closed) = view.trie.child(node, b'"') {
                places.names.push((terminal, closed));
            }
        }
        for (byte, below) in keys.children(&key)? {
            let Some(next) = view.trie.child(node, byte) else { continue };
            if below.base.is_none() {
                if key.base.is_some() {
                    places.cut.push(next);
                }
                if keys.is_dead(&below) {
                    continue;
                }
                places.within.push(next);
            }
            pending.push((below, next));
        }
    }
    Ok(places)
}

/// The same for declared names alone. `closed`: no other keys are allowed.
fn name_by_name(names: PlainNames<'_>, view: View<'_>, closed: bool, nodes: &mut u64) -> KeyPlaces {
    let mut places = KeyPlaces::default();
    let trie = view.trie;
    // The path of the last name, up to where it ended or left the trie. Each node has the child at
    // which the next name continues: names and children are both sorted.
    let below = |node: NodeId| (node, NodeId(node.0 + 1));
    let mut path: SmallVec<[(NodeId, NodeId); 32]> = SmallVec::from_elem(below(view.root), 1);
    let mut last: &[u8] = &[];
    for (at, name) in (names.first..).map(NameId).zip(names.names) {
        let allowed = names.is_allowed(at);
        if closed && !allowed {
            continue;
        }
        let rest = &name[names.depth..];
        let shared = last.iter().zip(rest).take_while(|(a, b)| a == b).count();
        last = rest;
        if shared + 1 > path.len() {
            // This name leaves the trie at the same node as the previous one.
            continue;
        }
        path.truncate(shared + 1);
        for &byte in &rest[shared..] {
            *nodes += 1;
            let Some((node, next)) = path.last_mut() else { break };
            // The root has a table.
            let child = match *node == NodeId::ROOT {
                true => trie.child(*node, byte),
                false => {
                    *next = trie.child_from(*node, *next, byte);
                    trie.is_child(*node, *next, byte).then_some(*next)
                }
            };
            let Some(child) = child else { break };
            if closed {
                places.within.push(child);
            }
            path.push(below(child));
        }
        if path.len() == rest.len() + 1 && !name.is_empty() {
            if let Some(end) = trie.child(path[rest.len()].0, b'"') {
                let terminal = if allowed { Terminal::Allowed(at) } else { Terminal::Refused };
                places.names.push((terminal, end));
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use ffwd_automaton::keys::{written, KeySet, Names, OtherKeys};
    use ffwd_automaton::punctuation::{any_string, index};
    use ffwd_automaton::NameSet;
    use ffwd_automaton::UsedId;
    use ffwd_regular::expr::LexemeStore;
    use ffwd_tokenizer::vocabulary::testing::vocabulary;

    fn sorted(mut places: KeyPlaces) -> KeyPlaces {
        places.names.sort_by_key(|&(_, node)| node);
        places.cut.sort_unstable();
        places.within.sort_unstable();
        places
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), cases: 200, ..Default::default() })]

        #[test]
        fn name_by_name_is_what_key_by_key_is(
            names in prop::collection::btree_map("[ab\"\\\\ne]{0,4}", any::<bool>(), 0..12),
            open in any::<bool>(),
            seed in 0..20u8,
        ) {
            let names: BTreeMap<Box<[u8]>, bool> =
                names.iter().map(|(name, allowed)| (written(name), *allowed)).collect();
            let vocabulary = vocabulary(seed, 400);
            let keys = Keys::new().unwrap();
            let lexeme = LexemeStore::new(1 << 20).get(&any_string()).unwrap();
            let others = open.then_some(OtherKeys { index: index::ANY_STRING, lexeme });
            let sorted_names: Names = names.keys().cloned().collect();
            let allowed: NameSet = names.values().copied().collect();
            let set = KeySet::new(0, sorted_names, allowed, others);
            let root = keys.node(keys.root(set, UsedId::EMPTY).unwrap());
            let mut pending = vec![root];
            while let Some(node) = pending.pop() {
                let plain = keys.plain_names(&node).unwrap();
                let view = View::of(&vocabulary);
                let fast = name_by_name(plain, view, node.base.is_none(), &mut 0);
                let mut slow = key_by_key(&keys, view, node, &mut 0).unwrap();
                // Without other keys, a rejected name has no effect.
                slow.names.retain(|&(terminal, _)| open || terminal != Terminal::Refused);
                prop_assert_eq!(sorted(fast), sorted(slow));
                pending.extend(keys.children(&node).unwrap().into_iter().map(|(_, child)| child));
            }
        }
    }
}
