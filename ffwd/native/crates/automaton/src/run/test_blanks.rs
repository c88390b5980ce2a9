//! The search for another value that passes over blanks, against one that tries them, in all kinds
//! of white space.
//!
//! Each search of a test also runs the slow twin; see [`crate::json::other`].

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::json::blanks::COMPARED;
use crate::run::automaton::Automaton;
use crate::run::grammar::Grammar;
use crate::stacks::thread::Threads;
use ffwd_grammar::{Layout, Whitespace, WhitespaceMode};
use ffwd_json_schema::{SchemaOptions, SchemaSet};
use ffwd_regular::expr::LexemeStore;

/// How many bytes a walk has, at most.
const MAX_BYTES: usize = 60;

fn modes() -> Vec<WhitespaceMode> {
    let layout = |item: &str, key: &str, indent: Option<&str>| {
        WhitespaceMode::Layout(Arc::new(Layout::new(item, key, indent).unwrap()))
    };
    vec![
        WhitespaceMode::Compact,
        WhitespaceMode::SingleSpace,
        WhitespaceMode::Consistent,
        WhitespaceMode::Flexible { max_run: 0 },
        WhitespaceMode::Flexible { max_run: 1 },
        WhitespaceMode::Flexible { max_run: 2 },
        layout(", ", ":", None),
        layout(" , ", " : ", None),
        layout(",", ": ", Some("")),
    ]
}

fn automaton(schema: &str, mode: WhitespaceMode) -> Option<Box<Automaton>> {
    let options = SchemaOptions::new(|_| Ok((false, 0)));
    let schema = Box::new(SchemaSet::parse(schema, options).unwrap());
    let store = Arc::new(LexemeStore::new(1 << 20));
    let writing = Whitespace { mode }.into();
    let automaton = Automaton::new(Grammar::Json { schema, writing }, store).unwrap();
    automaton.is_satisfiable().then_some(automaton)
}

/// A schema of few values.
fn values() -> impl Strategy<Value = String> {
    let scalar = prop::sample::select(vec![
        r#"{"enum": ["a", "b"]}"#,
        r#"{"enum": ["a", "ab", "a b", null]}"#,
        r#"{"type": "boolean"}"#,
        r#"{"const": "a"}"#,
        r#"{"type": "integer", "minimum": 9, "maximum": 11}"#,
        r#"{"type": "string", "pattern": "^[a ]{0,1}$"}"#,
    ])
    .prop_map(str::to_owned);
    scalar.prop_recursive(2, 8, 3, |inner| {
        let array = (inner.clone(), 0..3u8, any::<bool>()).prop_map(|(items, most, unique)| {
            format!(r#"{{"type": "array", "items": {items}, "maxItems": {most}, "uniqueItems": {unique}}}"#)
        });
        let pair = (inner.clone(), inner.clone()).prop_map(|(one, other)| {
            format!(r#"{{"type": "array", "prefixItems": [{one}, {other}], "items": false, "minItems": 1}}"#)
        });
        let object =
            (inner.clone(), inner.clone(), prop::sample::select(vec!["", r#""a""#, r#""b""#, r#""a", "b""#]));
        let object = object.prop_map(|(one, other, required)| {
            format!(
                r#"{{"type": "object", "properties": {{"a": {one}, "b": {other}}}, "additionalProperties": false, "required": [{required}]}}"#
            )
        });
        let names = inner.clone().prop_map(|value| {
            format!(
                r#"{{"type": "object", "patternProperties": {{"^[ab]$": {value}}}, "additionalProperties": false, "maxProperties": 2}}"#
            )
        });
        let either = (inner.clone(), inner)
            .prop_map(|(one, other)| format!(r#"{{"anyOf": [{one}, {other}]}}"#));
        prop_oneof![array, pair, object, names, either]
    })
}

/// Walks along allowed bytes. Each step asks of every byte whether an unused value is left.
fn walk(automaton: &Automaton, choices: &[u8]) {
    let mut threads: Threads = automaton.threads(automaton.start()).iter().copied().collect();
    for &choice in choices {
        let mut found: Vec<(u8, Threads)> = Vec::new();
        for byte in (b' '..=b'~').chain(*b"\n\t\r") {
            // A text may be too hard to tell apart from others.
            let Ok(next) = automaton.step(&threads, byte) else { return };
            if !next.is_empty() {
                found.push((byte, next));
            }
        }
        // Some blanks, and few ends.
        let rare = |byte: u8| {
            byte.is_ascii_whitespace() && choice % 16 > 1 || byte == b']' && choice % 8 > 1
        };
        if found.iter().any(|&(byte, _)| !rare(byte)) {
            found.retain(|&(byte, _)| !rare(byte));
        }
        if found.is_empty() {
            assert!(automaton.accepts(&threads).unwrap(), "a dead end");
            return;
        }
        let at = usize::from(choice / 2) % found.len();
        threads = found.swap_remove(at).1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(5),
        cases: 16,
        ..Default::default()
    })]

    #[test]
    fn blanks_make_no_other_value(
        items in values(),
        choices in prop::collection::vec(any::<u8>(), MAX_BYTES),
    ) {
        let schema = format!(r#"{{"type": "array", "uniqueItems": true, "items": {items}}}"#);
        for mode in modes() {
            if let Some(automaton) = automaton(&schema, mode) {
                walk(&automaton, &choices);
            }
        }
    }
}

#[test]
fn searches_were_compared() {
    let items = r#"{"type": "object", "properties": {"a": {"type": "array", "items": {"enum": ["a", "b"]},
        "maxItems": 1}, "b": {"type": "boolean"}}, "additionalProperties": false}"#;
    let schema = format!(r#"{{"type": "array", "uniqueItems": true, "items": {items}}}"#);
    for mode in modes() {
        COMPARED.set((0, 0));
        let automaton = automaton(&schema, mode.clone()).unwrap();
        let mut seed = 1u32;
        for _ in 0..3 {
            let choices: Vec<u8> = (0..3 * MAX_BYTES)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (seed >> 24) as u8
                })
                .collect();
            walk(&automaton, &choices);
        }
        let (some, none) = COMPARED.get();
        assert!(some > 0 && none > 0, "{mode:?}: {some} {none}");
    }
}

#[test]
fn a_blank_before_a_comma_may_begin_another_member() {
    let items = r#"{"type": "object", "patternProperties": {"^[ab]$": {"enum": ["a", "b"]}},
        "additionalProperties": false, "maxProperties": 2}"#;
    let schema = format!(r#"{{"type": "array", "uniqueItems": true, "items": {items}}}"#);
    let layout = Layout::new(" , ", " : ", None).unwrap();
    let automaton = automaton(&schema, WhitespaceMode::Layout(Arc::new(layout))).unwrap();
    let start = automaton.threads(automaton.start());
    for (text, allowed) in [
        (&br#"[{"a" : "b"} , {"a" : "b" , "b" : "a"}]"#[..], true),
        (br#"[{"a" : "b"} , {"a" : "b"}"#, false),
    ] {
        assert_eq!(automaton.walk(start, text).unwrap().is_some(), allowed);
    }
}
