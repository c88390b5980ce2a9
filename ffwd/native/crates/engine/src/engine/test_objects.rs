//! Objects with keys in any order, classes of keys, counts and exclusions: what is read is what
//! is valid, and masks are what reading byte by byte finds.

use serde_json::Value;

use super::tests::*;
use super::*;
use crate::mask::token_set::TokenMask;
use ffwd_automaton::{Numbers, PropertyOrder};
use ffwd_json_schema::test_validator::{validates, Order};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};

const ORDERS: [(PropertyOrder, Order); 2] =
    [(PropertyOrder::Declared, Order::Declared), (PropertyOrder::Any, Order::Free)];

/// All about objects with the keys `a`, `b`, `x`, `xa`, whose values are the like of 1, 2 and "s".
const SCHEMAS: [&str; 36] = [
    r#"{"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["b"]}"#,
    r#"{"properties": {"b": {}, "a": {}}, "required": ["a"], "additionalProperties": false}"#,
    r#"{"properties": {"a": {}}, "required": ["x", "b"]}"#,
    // Classes of keys.
    r#"{"patternProperties": {"^x": {"type": "integer"}}}"#,
    r#"{"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": false}"#,
    r#"{"properties": {"xa": {"type": "string"}}, "patternProperties": {"^x": {"const": 1}}}"#,
    r#"{"patternProperties": {"^x": {"enum": [1, "s"]}, "a$": {"enum": [1, 2]}}}"#,
    r#"{"propertyNames": {"pattern": "^(x|xa|b.*)$"}}"#,
    r#"{"propertyNames": {"enum": ["a", "xa"]}, "minProperties": 1}"#,
    r#"{"propertyNames": {"maxLength": 1}, "properties": {"a": {"const": 1}}}"#,
    r#"{"anyOf": [{"patternProperties": {"^x": {"const": 1}}, "required": ["a"]},
                  {"patternProperties": {"a": {"const": 2}}, "additionalProperties": false}]}"#,
    // Counts.
    r#"{"minProperties": 2}"#,
    r#"{"maxProperties": 1}"#,
    r#"{"properties": {"a": {}, "b": {}, "x": {}}, "additionalProperties": false, "minProperties": 2}"#,
    r#"{"properties": {"a": {}, "b": {}, "x": {}}, "required": ["x"], "maxProperties": 2}"#,
    r#"{"anyOf": [{"maxProperties": 1}, {"minProperties": 3, "properties": {"a": {"const": 1}}}]}"#,
    r#"{"patternProperties": {"^x?a?$": {}}, "additionalProperties": false, "minProperties": 2}"#,
    // Exclusions.
    r#"{"not": {"required": ["a"]}}"#,
    r#"{"not": {"properties": {"a": {"const": 1}}}}"#,
    r#"{"not": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "required": ["b"]}"#,
    r#"{"not": {"additionalProperties": {"type": "integer"}}}"#,
    r#"{"not": {"minProperties": 2}}"#,
    r#"{"not": {"maxProperties": 1, "required": ["a"]}}"#,
    r#"{"not": {"patternProperties": {"^x": {"const": 1}}}, "maxProperties": 2}"#,
    r#"{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}"#,
    r#"{"oneOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "string"}}}]}"#,
    r#"{"oneOf": [{"required": ["a"], "properties": {"a": {"const": 1}}},
                  {"required": ["b"], "properties": {"b": {"const": 1}}},
                  {"required": ["x"], "properties": {"x": {"const": "s"}}}]}"#,
    r#"{"if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
        "then": {"required": ["b"]}, "else": {"properties": {"x": {"const": 2}}}}"#,
    r#"{"if": {"properties": {"b": {"const": "s"}}}, "then": {"properties": {"a": {"type": "integer"}}}}"#,
    r#"{"dependentRequired": {"a": ["b"], "x": ["a"]}}"#,
    r#"{"dependentSchemas": {"a": {"properties": {"b": {"const": 1}}, "maxProperties": 2}}}"#,
    r#"{"allOf": [{"not": {"required": ["a", "b"]}}, {"not": {"required": ["x"], "maxProperties": 2}}]}"#,
    r#"{"properties": {"a": {"not": {"const": 1}}, "b": {"not": {"type": "string"}}},
        "not": {"required": ["a", "b"]}, "minProperties": 1}"#,
    r#"{"anyOf": [{"required": ["a"], "not": {"required": ["b"]}}, {"required": ["x"]}]}"#,
    r#"{"properties": {"a": {"properties": {"a": {"const": 1}}, "not": {"required": ["b"]}}},
        "not": {"properties": {"a": {"required": ["a"]}}, "required": ["a"]}}"#,
    r#"{"properties": {"a": true}, "unevaluatedProperties": {"const": 2},
        "if": {"required": ["b"]}, "then": {"properties": {"b": {"const": 1}}}}"#,
];

fn object(schema: &str) -> String {
    format!(r#"{{"type": "object", {}"#, &schema[1..])
}

fn compile(engine: &Arc<Engine>, schema: &str, order: PropertyOrder) -> Compiled {
    let writing =
        Writing { property_order: order, numbers: Numbers::Any, ..Writing::from(COMPACT) };
    engine.compile_json_schema(schema, writing).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

/// The objects of at most three different keys, in all orders.
fn objects() -> Vec<String> {
    let values = ["1", "2", "\"s\""];
    let keys = ["a", "b", "x", "xa", "q"];
    let mut all = vec![Vec::new()];
    let mut last: Vec<Vec<(usize, usize)>> = vec![Vec::new()];
    for _ in 0..3 {
        let mut longer = Vec::new();
        for members in &last {
            for key in (0..keys.len()).filter(|key| members.iter().all(|(known, _)| known != key)) {
                for value in 0..values.len() {
                    let mut more: Vec<(usize, usize)> = members.clone();
                    more.push((key, value));
                    longer.push(more);
                }
            }
        }
        all.extend(longer.iter().cloned());
        last = longer;
    }
    let write = |members: Vec<(usize, usize)>| {
        let write = |(key, value): (usize, usize)| format!("\"{}\":{}", keys[key], values[value]);
        format!("{{{}}}", members.into_iter().map(write).collect::<Vec<_>>().join(","))
    };
    all.into_iter().map(write).collect()
}

#[test]
fn what_is_read_is_what_is_valid() {
    let engine = engine(vocabulary(8, 0));
    let mut valid = 0;
    let objects = objects();
    for schema in SCHEMAS {
        let schema = object(schema);
        for (order, expected_order) in ORDERS {
            let compiled = compile(&engine, &schema, order);
            let generation = compiled.generation();
            let set = &generation.automaton.json().unwrap().schema;
            for text in &objects {
                let value: Value = serde_json::from_str(text).unwrap();
                let expected = validates(set, set.root(), &value, expected_order);
                let is_read = read(&compiled, text);
                assert_eq!(is_read.is_ok(), expected, "{text} {order:?} {is_read:?}\n{schema}");
                valid += usize::from(expected);
            }
        }
    }
    assert!(valid > 10_000, "{valid}");
}

#[test]
fn masks_of_objects_are_what_brute_force_finds() {
    let engine = engine(vocabulary(3, 300));
    let mut ended = 0;
    for (number, schema) in SCHEMAS.iter().enumerate() {
        let schema = object(schema);
        let mut rng = seeded(number as u8);
        for (order, expected_order) in ORDERS {
            let compiled = compile(&engine, &schema, order);
            let generation = compiled.generation();
            let set = &generation.automaton.json().unwrap().schema;
            for _ in 0..6 {
                if let Some(text) = walk_and_compare(&compiled, &mut rng, 24, &schema) {
                    let text = std::str::from_utf8(&text).unwrap();
                    assert_no_key_twice(text);
                    let value: Value = serde_json::from_str(text).unwrap();
                    assert!(
                        validates(set, set.root(), &value, expected_order),
                        "{text} {order:?}\n{schema}"
                    );
                    ended += 1;
                }
            }
        }
    }
    assert!(ended > 100, "only {ended} walks came to an end");
}

/// One token may end a key and begin the next, of which only names that came are left.
#[test]
fn masks_know_which_keys_of_a_pattern_are_left() {
    let engine = engine(vocabulary(7, 0));
    for pattern in ["^(x|y.*)$", "^(a|b|xy*)$", "^(xa?|[b-z]{2,})$"] {
        let schema = format!(
            r#"{{"type": "object", "patternProperties": {{"{pattern}": {{"type": "integer"}}}},
                "additionalProperties": false}}"#
        );
        for order in [PropertyOrder::Declared, PropertyOrder::Any] {
            let compiled = compile(&engine, &schema, order);
            let generation = compiled.generation();
            let automaton = &generation.automaton;
            let starts = ["{", "{\"", "{\"x", "{\"a", "{\"b", "{\"yx", "{\"xa"];
            let keys = ["x", "a", "b", "y", "xa"];
            let after = keys.iter().flat_map(|key| {
                let member = format!("{{\"{key}\":1");
                [format!("{member},"), format!("{member},\""), format!("{member},\"x"), member]
            });
            let mut compared = 0;
            for text in starts.map(String::from).into_iter().chain(after) {
                let threads = automaton.threads(automaton.start());
                if let Some(threads) = automaton.walk(threads, text.as_bytes()).unwrap() {
                    let state = automaton.intern(threads).unwrap();
                    assert_mask(&compiled, state, text.as_bytes(), &schema);
                    compared += 1;
                }
            }
            assert!(compared > 10, "{compared} {pattern}");
        }
    }
}

/// Where no token ends a name, the mask is that of the other keys, whatever the name.
#[test]
fn places_within_names_share_the_mask_of_other_keys() {
    let schema = object(
        r#"{"properties": {"abxabxabx": {}, "abxq": {"type": "integer"}, "xabxab": {}},
            "required": ["xabxab"], "maxProperties": 3}"#,
    );
    let mut shared = 0;
    for tokens in [0, 40, 300] {
        let engine = engine(vocabulary(3, tokens));
        for (order, _) in ORDERS {
            let compiled = compile(&engine, &schema, order);
            let generation = compiled.generation();
            let automaton = &generation.automaton;
            let mut masks: Vec<Arc<TokenMask>> = Vec::new();
            for before in ["{", "{\"a\":1,", "{\"abxq\":1,", "{\"abxabxabx\":{\"b\":2},"] {
                for name in ["abxabxabx", "abxq", "xabxab", "xbq"] {
                    for length in 0..=name.len() {
                        let text = format!("{before}\"{}", &name[..length]);
                        let threads = automaton.threads(automaton.start());
                        let read = automaton.walk(threads, text.as_bytes()).unwrap();
                        let Some(threads) = read else { continue };
                        let state = automaton.intern(threads).unwrap();
                        assert_mask(&compiled, state, text.as_bytes(), &schema);
                        masks.push(generation.masker.compute(automaton, state).unwrap());
                    }
                }
            }
            let is_shared =
                |at: usize| masks[..at].iter().any(|mask| Arc::ptr_eq(mask, &masks[at]));
            shared += (0..masks.len()).filter(|&at| is_shared(at)).count();
        }
    }
    assert!(shared > 100, "{shared}");
}
