//! Key tries against the set of their names, interning, and configurations of small grammars.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::intern::Interner;
use super::keys::{Keys, OtherKeys, Terminal};
use super::*;
use crate::expr::lower::spell;
use crate::expr::{LexState, Lexeme, LexemeStore, Spelling};
use crate::json_schema::{SchemaOptions, SchemaSet};
use crate::regex::rust_dialect;

fn any_string() -> Arc<Lexeme> {
    LexemeStore::new(1 << 20).get(&punctuation::any_string()).unwrap()
}

/// The lexeme of the other keys, where any may come.
fn others(lexeme: &Lexeme, open: bool) -> Option<OtherKeys<'_>> {
    open.then_some(OtherKeys { index: punctuation::index::ANY_STRING, lexeme })
}

fn written(name: &str) -> Vec<u8> {
    let mut bytes = vec![b'"'];
    bytes.extend(spell(name, Spelling::JsonString));
    bytes
}

/// A name, and what becomes of it: refused, allowed, or neither.
fn names() -> impl Strategy<Value = Vec<(String, u8)>> {
    let name = prop::collection::vec(prop::sample::select(vec!["a", "b", "é", "\"", "\n"]), 0..4)
        .prop_map(|parts| parts.concat());
    prop::collection::vec((name, 0..3u8), 0..12)
}

fn terminal(keys: &Keys, name: &str, choice: u8) -> Terminal {
    match choice {
        0 => Terminal::Refused,
        1 => Terminal::Allowed(keys.name(name).unwrap()),
        _ => Terminal::None,
    }
}

/// What is at the end of a name, from the root byte by byte.
fn at(keys: &Keys, root: KeyNodeId, name: &str) -> Terminal {
    let mut node = root;
    for byte in written(name) {
        match keys.node(node).child(byte) {
            Some(child) => node = child,
            None => return Terminal::None,
        }
    }
    keys.node(node).terminal
}

/// Whether some key begins with these bytes.
fn alive(keys: &Keys, root: KeyNodeId, others: Option<OtherKeys<'_>>, prefix: &[u8]) -> bool {
    let mut node = root;
    for (at, &byte) in prefix.iter().enumerate() {
        match keys.node(node).child(byte) {
            Some(child) => node = child,
            None => {
                let (Some(base), Some(others)) = (keys.node(node).base, others) else {
                    return false;
                };
                let mut rest = prefix[at..].iter();
                let end = rest
                    .try_fold(base.state, |state, &byte| others.lexeme.next(state, byte).unwrap());
                return end.is_some();
            }
        }
    }
    !keys.node(node).is_dead()
}

fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig { failure_persistence: None, rng_seed, cases: 300, ..Default::default() }
}

proptest! {
    #![proptest_config(config())]

    /// Changing names one by one leads to the very node that building them at once does.
    #[test]
    fn a_trie_that_was_changed_is_one_that_was_built(names in names(), open in any::<bool>()) {
        let keys = Keys::default();
        let any = any_string();
        let others = others(&any, open);
        let mut root = keys.build(&[], others).unwrap();
        let mut last: BTreeMap<Vec<u8>, (String, Terminal)> = BTreeMap::new();
        for (name, choice) in &names {
            let terminal = terminal(&keys, name, *choice);
            root = keys.with(root, others, &written(name), terminal).unwrap();
            last.insert(written(name), (name.clone(), terminal));
        }
        // What a trie need not say: what is no name, and in a closed trie what is refused.
        let said: Vec<(Vec<u8>, Terminal)> = last
            .iter()
            .map(|(bytes, (_, terminal))| (bytes.clone(), *terminal))
            .filter(|(_, terminal)| match terminal {
                Terminal::Allowed(_) => true,
                Terminal::Refused => open,
                Terminal::None => false,
            })
            .collect();
        prop_assert_eq!(root, keys.build(&said, others).unwrap());
        for (bytes, (name, _)) in &last {
            let expected = said.iter().find(|(said, _)| said == bytes);
            let expected = expected.map_or(Terminal::None, |&(_, terminal)| terminal);
            prop_assert_eq!(at(&keys, root, name), expected, "{:?}", name);
        }
        // Every node knows where it stands in "any string", if other keys may come.
        let mut pending = vec![(root, any.start())];
        while let Some((node, state)) = pending.pop() {
            let node = keys.node(node);
            prop_assert_eq!(node.base.is_some(), open);
            if let Some(base) = node.base {
                prop_assert_eq!(base.state.accepts(), state.accepts());
                prop_assert_eq!(node.is_before_quote(), state == LexState::QUOTE);
            }
            prop_assert!(node.children.is_sorted_by_key(|&(byte, _)| byte));
            for &(byte, child) in node.children.iter() {
                pending.push((child, any.next(state, byte).unwrap().unwrap()));
            }
        }
    }

    /// The same where a pattern restricts the other keys. No node is a dead end: where all keys that
    /// the pattern leaves are names, no other key goes on.
    #[test]
    fn a_trie_over_a_pattern_knows_where_only_names_are_left(
        names in names(),
        changes in names(),
        pattern in prop::sample::select(vec!["a?b?", "(a|b|\u{e9}){0,2}", "a*", "(aa|b.*)", "(b|\n|\"){1,2}"]),
    ) {
        let keys = Keys::default();
        let store = LexemeStore::new(1 << 20);
        let ast = rust_dialect::anchored(pattern).unwrap();
        let lexeme = store.get(&punctuation::spec(Spelling::JsonString, [ast])).unwrap();
        let others = Some(OtherKeys { index: 99, lexeme: &lexeme });
        let mut last: BTreeMap<Vec<u8>, (String, Terminal)> = BTreeMap::new();
        for (name, choice) in &names {
            let terminal = terminal(&keys, name, choice % 2);
            last.insert(written(name), (name.clone(), terminal));
        }
        let said = |last: &BTreeMap<Vec<u8>, (String, Terminal)>| -> Vec<(Vec<u8>, Terminal)> {
            last.iter().map(|(bytes, (_, terminal))| (bytes.clone(), *terminal)).collect()
        };
        let mut root = keys.build(&said(&last), others).unwrap();
        for (name, choice) in &changes {
            // Names are allowed or refused, and what was no name before is refused.
            let terminal = match last.contains_key(&written(name)) {
                true => terminal(&keys, name, choice % 2),
                false => Terminal::Refused,
            };
            root = keys.with(root, others, &written(name), terminal).unwrap();
            last.insert(written(name), (name.clone(), terminal));
        }
        let built = keys.build(&said(&last), others).unwrap();
        for (name, terminal) in last.values() {
            let expected = match terminal {
                Terminal::Allowed(_) => *terminal,
                // Refused, or no key of the pattern at all.
                _ => at(&keys, built, name),
            };
            prop_assert_eq!(at(&keys, root, name), expected);
        }
        let is_key = |text: &[u8]| match last.get(text) {
            Some((_, terminal)) => matches!(terminal, Terminal::Allowed(_)),
            None => {
                let state = text.iter().chain(b"\"").try_fold(lexeme.start(), |state, &byte| {
                    lexeme.next(state, byte).unwrap()
                });
                state.is_some_and(|state| state.accepts())
            }
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
            prop_assert_eq!(alive(&keys, root, others, prefix), goes_on, "{:?}", prefix);
            prop_assert_eq!(alive(&keys, built, others, prefix), goes_on, "{:?}", prefix);
        }
    }

    #[test]
    fn texts_are_what_was_appended(names in names()) {
        let keys = Keys::default();
        for (name, _) in &names {
            let text = keys.name(name).unwrap();
            prop_assert_eq!(keys.bytes(text), written(name));
            let again = written(name)
                .iter()
                .try_fold(TextId::EMPTY, |text, &byte| keys.append(text, byte));
            prop_assert_eq!(again.unwrap(), text);
        }
        for nothing in [TextId::NONE, TextId::EMPTY, TextId::ANY] {
            prop_assert_eq!(keys.bytes(nothing), Vec::<u8>::new());
        }
        prop_assert_eq!(keys.append(TextId::NONE, b'x').unwrap(), TextId::NONE);
        prop_assert_eq!(keys.append(TextId::ANY, b'x').unwrap(), TextId::ANY);
    }
}

#[test]
fn a_changed_trie_shares_what_did_not_change() {
    let keys = Keys::default();
    let names: Vec<(Vec<u8>, Terminal)> = (100..900)
        .map(|number| {
            let name = format!("k{number}");
            (written(&name), Terminal::Allowed(keys.name(&name).unwrap()))
        })
        .collect();
    let root = keys.build(&names, None).unwrap();
    let before = keys.num_nodes();
    let changed = keys.with(root, None, &names[400].0, Terminal::Refused).unwrap();
    assert_ne!(changed, root);
    assert!(keys.num_nodes() - before <= names[400].0.len() + 1);
    assert_eq!(keys.with(changed, None, &names[400].0, names[400].1).unwrap(), root);
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

fn text_grammar(pattern: &str) -> Automaton {
    let ast = rust_dialect::anchored(pattern).unwrap();
    Automaton::new(Grammar::Text(ast), Arc::new(LexemeStore::new(1 << 20))).unwrap()
}

fn json_grammar(schema: &str) -> Automaton {
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
