//! Key tries against the set of their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::json::key_texts::Texts;
use crate::json::keys::{decoded, written, KeyNode, KeySet, Keys, Names, OtherKeys, Terminal};
use crate::json::name_set::NameSet;
use crate::json::punctuation;
use crate::json::used_keys::{UsedId, UsedKeys};
use crate::stacks::ids::{KeyNodeId, LexemeId, NameId, TextId};
use ffwd_regular::expr::{LexState, Lexeme, LexemeStore, Spelling};

use ffwd_regular::regex::rust_dialect;

fn any_string() -> Arc<Lexeme> {
    LexemeStore::new(1 << 20).get(&punctuation::any_string()).unwrap()
}

/// A name, and whether it may come.
fn names() -> impl Strategy<Value = Vec<(String, bool)>> {
    let name = prop::collection::vec(prop::sample::select(vec!["a", "b", "é", "\"", "\n"]), 0..4)
        .prop_map(|parts| parts.concat());
    prop::collection::vec((name, any::<bool>()), 0..12)
}

/// Patterns of other keys, next to "none" and "any".
const PATTERNS: [&str; 7] =
    ["none", "any", "a?b?", "(a|b|\u{e9}){0,2}", "a*", "(aa|b.*)", "(b|\n|\"){1,2}"];

fn others(pattern: &str) -> Option<OtherKeys> {
    let lexeme = |pattern: &str| {
        let ast = rust_dialect::anchored(pattern).unwrap();
        LexemeStore::new(1 << 20).get(&punctuation::spec(Spelling::JsonString, [ast])).unwrap()
    };
    match pattern {
        "none" => None,
        "any" => Some(OtherKeys { index: punctuation::index::ANY_STRING, lexeme: any_string() }),
        _ => Some(OtherKeys { index: LexemeId(99), lexeme: lexeme(pattern) }),
    }
}

fn follow(lexeme: &Lexeme, state: LexState, bytes: &[u8]) -> Option<LexState> {
    bytes.iter().try_fold(state, |state, &byte| lexeme.next(state, byte).unwrap())
}

/// Follows some bytes to a node, or to a state of the lexeme of the other keys.
fn walked(keys: &Keys, root: KeyNodeId, bytes: &[u8]) -> (KeyNode, usize) {
    let mut node = keys.node(root);
    for (at, &byte) in bytes.iter().enumerate() {
        match keys.child(&node, byte).unwrap() {
            Some(child) => node = child,
            None => return (node, at),
        }
    }
    (node, bytes.len())
}

/// Whether some key begins with these bytes.
fn alive(keys: &Keys, root: KeyNodeId, others: Option<&OtherKeys>, prefix: &[u8]) -> bool {
    let (node, read) = walked(keys, root, prefix);
    if read == prefix.len() {
        return !keys.is_dead(&node);
    }
    let (Some(base), Some(others)) = (node.base, others) else { return false };
    follow(&others.lexeme, base.state, &prefix[read..]).is_some()
}

fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig { failure_persistence: None, rng_seed, cases: 300, ..Default::default() }
}

proptest! {
    #![proptest_config(config())]

    /// Compares nodes with the sets of keys that they represent. No node is a dead end: where all
    /// keys that the pattern leaves are names or have come, no other key goes on.
    #[test]
    fn nodes_know_which_keys_go_on(
        names in names(),
        came in names(),
        pattern in prop::sample::select(PATTERNS.to_vec()),
    ) {
        let keys = Keys::new().unwrap();
        let others = others(pattern);
        let names: BTreeMap<Box<[u8]>, bool> =
            names.iter().map(|(name, allowed)| (written(name), *allowed)).collect();
        let has = |key: &[u8]| others.as_ref().is_some_and(|others| {
            let closed = [key, b"\""].concat();
            follow(&others.lexeme, others.lexeme.start(), &closed).is_some_and(|end| end.accepts())
        });
        let mut used = UsedId::EMPTY;
        let mut came: Vec<Box<[u8]>> = came.iter().map(|(name, _)| written(name)).collect();
        came.retain(|key| others.is_some() && !names.contains_key(key));
        for key in &came {
            used = keys.used.with(used, key).unwrap();
        }
        // In whatever order they came, and however often.
        let again = came.iter().rev().chain(&came);
        let again = again.fold(UsedId::EMPTY, |used, key| keys.used.with(used, key).unwrap());
        prop_assert_eq!(again, used);
        came.sort_unstable();
        came.dedup();
        prop_assert_eq!(keys.used.count(used) as usize, came.len());

        let sorted: Names = names.keys().cloned().collect();
        let allowed: NameSet = names.values().copied().collect();
        let set = KeySet::new(7, sorted, allowed, others.clone());
        let root = keys.root(set.clone(), used).unwrap();
        prop_assert_eq!(keys.root(set, used).unwrap(), root);
        for (at, (name, &allowed)) in names.iter().enumerate() {
            let (node, read) = walked(&keys, root, name);
            prop_assert_eq!(read, name.len());
            let expected = if allowed { Terminal::Allowed(NameId(at as u32)) } else { Terminal::Refused };
            prop_assert_eq!(keys.terminal(&node), expected);
        }
        for key in &came {
            let (node, read) = walked(&keys, root, key);
            prop_assert_eq!((keys.terminal(&node), read), (Terminal::Refused, key.len()));
        }
        let is_key = |text: &[u8]| match names.get(text) {
            Some(&allowed) => allowed,
            None => has(text) && !came.iter().any(|key| **key == *text),
        };
        // Texts of at most four characters tell all of these patterns apart from a dead end.
        let mut keys_below: BTreeMap<Vec<u8>, bool> = BTreeMap::new();
        let mut texts: Vec<String> = vec![String::new()];
        for _ in 0..4 {
            let longer: Vec<String> = texts
                .iter()
                .flat_map(|text| ["a", "b", "\u{e9}", "\"", "\n"].map(|more| format!("{text}{more}")))
                .collect();
            texts.extend(longer);
            texts.sort_unstable();
            texts.dedup();
        }
        for text in &texts {
            let bytes = written(text);
            let is_key = is_key(&bytes);
            for end in 0..=bytes.len() {
                *keys_below.entry(bytes[..end].to_vec()).or_default() |= is_key;
            }
        }
        for (prefix, &goes_on) in keys_below.iter().filter(|(prefix, _)| prefix.len() <= 4) {
            prop_assert_eq!(alive(&keys, root, others.as_ref(), prefix), goes_on, "{:?}", prefix);
        }
        // All children at once are those one by one.
        let mut pending = vec![keys.node(root)];
        while let Some(node) = pending.pop() {
            let children = keys.children(&node).unwrap();
            let one_by_one: Vec<(u8, KeyNode)> = (0..=255)
                .filter_map(|byte| Some((byte, keys.child(&node, byte).unwrap()?)))
                .collect();
            prop_assert_eq!(&children[..], &one_by_one[..]);
            pending.extend(children.into_iter().map(|(_, child)| child));
        }
    }

    #[test]
    fn texts_are_what_was_appended(names in names()) {
        let texts = Texts::default();
        for (name, _) in &names {
            let bytes = written(name);
            let append = |text, &byte: &u8| texts.append(text, byte);
            let text = bytes.iter().try_fold(TextId::EMPTY, append).unwrap();
            prop_assert_eq!(texts.bytes(text), bytes.to_vec());
            prop_assert_eq!(bytes.iter().try_fold(TextId::EMPTY, append).unwrap(), text);
            prop_assert_eq!(&*decoded(&bytes), name);
        }
        for nothing in [TextId::NONE, TextId::EMPTY, TextId::ANY] {
            prop_assert_eq!(texts.bytes(nothing), Vec::<u8>::new());
        }
        prop_assert_eq!(texts.append(TextId::NONE, b'x').unwrap(), TextId::NONE);
        prop_assert_eq!(texts.append(TextId::ANY, b'x').unwrap(), TextId::ANY);
    }
}

#[test]
fn a_set_with_one_key_more_shares_what_did_not_change() {
    let used = UsedKeys::new().unwrap();
    let names: Vec<Box<[u8]>> = (100..900).map(|number| written(&format!("k{number}"))).collect();
    let with = |set, name: &[u8]| used.with(set, name).unwrap();
    let most = names[1..].iter().fold(UsedId::EMPTY, |set, name| with(set, name));
    let before = used.num_nodes();
    let all = with(most, &names[0]);
    assert!(used.num_nodes() - before <= names[0].len() + 1);
    assert_eq!(with(all, &names[0]), all);
    assert_eq!(used.count(all), 800);
}
