//! Key tries against the set of their names, interning, and configurations of small grammars.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::interning::intern::Interner;
use crate::json::key_texts::Texts;
use crate::json::keys::{decoded, written, KeyNode, KeySet, Keys, Names, OtherKeys, Terminal};
use crate::json::name_set::NameSet;
use crate::json::used_keys::{UsedId, UsedKeys};
use crate::*;
use ffwd_json_schema::{SchemaOptions, SchemaSet};
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
        _ => Some(OtherKeys { index: 99, lexeme: lexeme(pattern) }),
    }
}

fn follow(lexeme: &Lexeme, state: LexState, bytes: &[u8]) -> Option<LexState> {
    bytes.iter().try_fold(state, |state, &byte| lexeme.next(state, byte).unwrap())
}

/// Where some bytes lead: to a node, or to a state of the lexeme of the other keys.
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

    /// Nodes against the sets that they stand for. No node is a dead end: where all keys that the
    /// pattern leaves are names or have come, no other key goes on.
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
            let expected = if allowed { Terminal::Allowed(at as u32) } else { Terminal::Refused };
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

#[test]
fn equal_values_have_one_id() {
    let interner: Interner<String> = Interner::new("names", 3);
    assert!(interner.is_empty());
    let a = interner.intern("a".into()).unwrap();
    let b = interner.intern("b".into()).unwrap();
    assert_eq!((a, b), (0, 1));
    assert_eq!(interner.intern("a".into()).unwrap(), a);
    assert_eq!(interner.get(b), "b");
    interner.intern("c".into()).unwrap();
    let full = interner.intern("d".into()).unwrap_err();
    assert_eq!((full.limit, full.maximum), ("names", 3));
    // What is known can still be asked for.
    assert_eq!(interner.intern("c".into()).unwrap(), 2);
    assert_eq!(interner.len(), 3);
}

#[test]
fn threads_that_intern_at_once_agree() {
    let interner: Interner<u64> = Interner::new("numbers", 10_000);
    let ids: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..2000).map(|n| interner.intern(n * 7).unwrap()).collect()))
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|of| *of == ids[0]));
    assert_eq!(interner.len(), 2000);
    assert!(ids[0].iter().zip(0..).all(|(&id, n)| *interner.get(id) == n * 7));
}

fn text_grammar(pattern: &str) -> Box<Automaton> {
    let ast = rust_dialect::anchored(pattern).unwrap();
    Automaton::new(Grammar::Text(ast), Arc::new(LexemeStore::new(1 << 20))).unwrap()
}

fn json_grammar(schema: &str) -> Box<Automaton> {
    let options = SchemaOptions::new(|_| Ok((false, 0)));
    let schema = Box::new(SchemaSet::parse(schema, options).unwrap());
    let whitespace = Whitespace { mode: WhitespaceMode::Compact };
    let store = Arc::new(LexemeStore::new(1 << 20));
    Automaton::new(Grammar::Json { schema, writing: whitespace.into() }, store).unwrap()
}

/// The state after a text, and whether reading it byte by byte leads to the same.
fn state_after(automaton: &Automaton, text: &str) -> Option<StateId> {
    let start = automaton.threads(automaton.start());
    let whole = automaton.walk(start, text.as_bytes()).unwrap();
    let whole = whole.map(|threads| automaton.intern(threads).unwrap());
    let mut stepped = Some(automaton.start());
    for byte in text.bytes() {
        stepped = stepped.and_then(|state| {
            let next = automaton.step(automaton.threads(state), byte).unwrap();
            (!next.is_empty()).then(|| automaton.intern(next).unwrap())
        });
    }
    assert_eq!(whole, stepped, "{text:?}");
    whole
}

#[test]
fn what_cannot_matter_any_more_is_not_in_the_state() {
    let any = json_grammar(r#"{"type": "array", "items": {"type": "integer"}}"#);
    let after = |text: &str| state_after(&any, text).unwrap();
    // Nothing of what came before is left in the state.
    assert_eq!(after("[1,"), after("[23,4,"));
    assert_eq!(after("[12"), after("[12,34"));
    assert_ne!(after("["), after("[1,"));
    let counted = json_grammar(r#"{"type": "array", "items": {"const": 1}, "maxItems": 2}"#);
    let after = |text: &str| state_after(&counted, text).unwrap();
    assert_ne!(after("[1"), after("[1,1"));
    assert_eq!(state_after(&counted, "[1,1,"), None);
    let object = json_grammar(
        r#"{"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": false}"#,
    );
    let after = |text: &str| state_after(&object, text).unwrap();
    // Of a member only its place is left.
    assert_eq!(after(r#"{"a":[2],"b":"x"#), after(r#"{"a":1,"b":"yz"#));
    assert_ne!(after(r#"{"a":"x"#), after(r#"{"b":"x"#));
    assert_eq!(after("{}"), after(r#"{"a":1}"#));
}

#[test]
fn states_accept_where_the_text_may_end() {
    let number = json_grammar(r#"{"type": "number"}"#);
    for (text, accepts) in
        [("", false), ("-", false), ("1", true), ("1.", false), ("1.5", true), ("1e", false)]
    {
        let state = state_after(&number, text).unwrap();
        assert_eq!(number.is_accepting(state), accepts, "{text:?}");
    }
    let object = json_grammar("true");
    assert!(object.is_accepting(state_after(&object, "{}").unwrap()));
    assert!(!object.is_accepting(state_after(&object, "{").unwrap()));
    assert_eq!(state_after(&object, "{}x"), None);
}

#[test]
fn one_byte_is_forced_exactly_where_no_other_and_no_end_may_come() {
    let slow = |automaton: &Automaton, state: StateId| {
        let alive: Vec<u8> = (0..=255u8)
            .filter(|&byte| !automaton.step(automaton.threads(state), byte).unwrap().is_empty())
            .collect();
        match alive[..] {
            [byte] if !automaton.is_accepting(state) => Some(byte),
            _ => None,
        }
    };
    let object = r#"{"type": "object", "properties": {"name": {"const": "né"}, "nat": {"enum": [true, null]}},
        "required": ["name"], "additionalProperties": false}"#;
    let grammars = [
        (json_grammar(object), vec![r#"{"name":"né","nat":true}"#, r#"{"name":"né"}"#]),
        (json_grammar(r#"{"const": {"a": [1, "b"]}}"#), vec![r#"{"a":[1,"b"]}"#]),
        (json_grammar(r#"{"type": "object"}"#), vec![r#"{"a":{},"b":[]}"#]),
        (json_grammar(r#"{"type": "array", "maxItems": 1}"#), vec!["[]", "[[1]]"]),
        (text_grammar("abc(def)?g{2}"), vec!["abcdefgg", "abcgg"]),
        (text_grammar("ab*"), vec!["abb"]),
    ];
    let mut forced = 0;
    for (automaton, texts) in &grammars {
        for text in texts {
            for length in 0..=text.len() {
                let threads = automaton
                    .walk(automaton.threads(automaton.start()), &text.as_bytes()[..length]);
                let state = automaton.intern(threads.unwrap().unwrap()).unwrap();
                let found = automaton.only_byte(automaton.threads(state)).unwrap();
                let expected = slow(automaton, state);
                // It may say less, never more.
                assert!(found.is_none() || found == expected, "{text} at {length}");
                forced += usize::from(found.is_some());
                let missed = expected.is_some() && found.is_none();
                assert!(!missed, "{text} at {length}: only {:?}", expected.map(char::from));
            }
        }
    }
    assert!(forced > 40);
}

#[test]
fn a_grammar_that_nothing_matches_has_no_threads() {
    let nothing = text_grammar("[a&&b]");
    assert!(!nothing.is_satisfiable());
    assert!(nothing.threads(nothing.start()).is_empty());
    assert!(text_grammar("").is_satisfiable());
}

#[test]
fn many_threads_share_one_automaton() {
    let automaton = json_grammar(
        r##"{"$ref": "#/$defs/a", "$defs": {"a": {"type": "object",
        "additionalProperties": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "integer"}]}}}}"##,
    );
    let texts = [r#"{"a":{"b":{"c":12}}}"#, r#"{"x":1,"y":{"z":{}}}"#, r#"{"a":{},"b":{"a":1}}"#];
    let states: Vec<Vec<StateId>> = std::thread::scope(|scope| {
        let automaton = &automaton;
        let run = move || texts.map(|text| state_after(automaton, text).unwrap()).to_vec();
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert!(states.iter().all(|of| *of == states[0]));
    assert!(states[0].iter().all(|&state| automaton.is_accepting(state)));
}

proptest! {
    #![proptest_config(config())]

    /// Names are walked in one go, so the twin is one byte at a time.
    #[test]
    fn a_walk_over_bytes_is_one_step_after_another(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "{", "\"", "a", "ab", "abc", "b", "\\n", "\":", "1", "\"x\"", ",", "}", "[", "]", "é",
            ]),
            0..14,
        ),
        closed in any::<bool>(),
    ) {
        let schema = r#"{"properties": {
            "a": {"type": "integer"}, "ab": {"enum": [{"abc": 1}, "x"]}, "abc": {}, "b\n": {"type": "array"}
        }, "additionalProperties": OPEN}"#;
        let automaton = json_grammar(&schema.replace("OPEN", if closed { "false" } else { "true" }));
        state_after(&automaton, &parts.concat());
    }
}
