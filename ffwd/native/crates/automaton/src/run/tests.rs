//! Configurations of small grammars.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::run::automaton::{Automaton, StateId};
use crate::run::grammar::Grammar;
use ffwd_grammar::{Whitespace, WhitespaceMode};
use ffwd_json_schema::{SchemaOptions, SchemaSet};
use ffwd_regular::expr::LexemeStore;
use ffwd_regular::regex::rust_dialect;

fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig { failure_persistence: None, rng_seed, cases: 300, ..Default::default() }
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
