//! Items that must differ and have few values, against all of these: down to the last one that has
//! not come, byte by byte.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::RngExt;
use serde_json::{json, Value};

use super::test_layouts::{in_each_layout, CONSISTENT};
use super::tests::{engine, walk_and_compare, COMPACT};
use super::Compiled;
use ffwd_automaton::Threads;
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary_of};

/// Returns all texts of `parts` parts, each one of these.
fn products(parts: usize, of: &[&str]) -> Vec<Vec<String>> {
    (0..parts).fold(vec![Vec::new()], |all, _| {
        let longer = |values: &Vec<String>, value: &&str| {
            let mut values = values.clone();
            values.push(value.to_string());
            values
        };
        all.iter().flat_map(|values| of.iter().map(|value| longer(values, value))).collect()
    })
}

fn objects(names: &[&str], of: &[&str]) -> Vec<String> {
    let object = |values: Vec<String>| {
        let members = names.iter().zip(values).map(|(name, value)| format!("\"{name}\":{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    products(names.len(), of).into_iter().map(object).collect()
}

fn arrays(parts: usize, of: &[&str]) -> Vec<String> {
    products(parts, of).into_iter().map(|values| format!("[{}]", values.join(","))).collect()
}

/// Schemas of items, and all their values.
fn kinds() -> Vec<(&'static str, Vec<String>)> {
    vec![
        (
            r#"{"type": "array", "items": {"enum": [1, 2]}, "minItems": 7, "maxItems": 7}"#,
            arrays(7, &["1", "2"]),
        ),
        (
            r#"{"type": "array", "items": {"enum": ["a", "ab", [1]]}, "minItems": 4, "maxItems": 4}"#,
            arrays(4, &[r#""a""#, r#""ab""#, "[1]"]),
        ),
        (
            r#"{"type": "object", "properties": {"a": {"enum": [1, 11, 12]}, "b": {"enum": [1, 11, 12]},
                "c": {"enum": [1, 11, 12]}, "d": {"enum": [1, 11, 12]}},
                "required": ["a", "b", "c", "d"], "additionalProperties": false}"#,
            objects(&["a", "b", "c", "d"], &["1", "11", "12"]),
        ),
        (
            r#"{"type": "object", "properties": {"k": {"enum": ["x", "xy", "y", "yx", "z", "zz", "w", "v", "u"]},
                "l": {"enum": ["x", "xy", "y", "yx", "z", "zz", "w", "v", "u"]}},
                "required": ["k", "l"], "additionalProperties": false}"#,
            objects(
                &["k", "l"],
                &[
                    r#""x""#, r#""xy""#, r#""y""#, r#""yx""#, r#""z""#, r#""zz""#, r#""w""#,
                    r#""v""#, r#""u""#,
                ],
            ),
        ),
        (
            r#"{"anyOf": [{"type": "array", "items": {"type": "boolean"}, "minItems": 6, "maxItems": 6},
                {"enum": ["a", "ab", null, 1, 12]}]}"#,
            arrays(6, &["true", "false"])
                .into_iter()
                .chain([r#""a""#, r#""ab""#, "null", "1", "12"].map(str::to_owned))
                .collect(),
        ),
    ]
}

/// From a configuration on, the allowed bytes after each prefix of some texts are those that
/// continue one of the texts.
fn assert_goes_on(compiled: &Compiled, start: &Threads, left: &[&String], what: &str) {
    let automaton = &compiled.generation().automaton;
    let beginnings: BTreeSet<&[u8]> =
        left.iter().flat_map(|text| (0..text.len()).map(|end| &text.as_bytes()[..end])).collect();
    for beginning in beginnings {
        let threads = automaton.walk(start, beginning).unwrap();
        let shown = String::from_utf8_lossy(beginning);
        let threads = threads.unwrap_or_else(|| panic!("{shown} is refused: {what}"));
        let expected: BTreeSet<u8> = left
            .iter()
            .filter_map(|text| text.as_bytes().strip_prefix(beginning)?.first().copied())
            .collect();
        let ends = left.iter().any(|text| text.as_bytes() == beginning);
        let bytes = b"[]{},:\"abdkl12xyzuvw0e.-fnt \n\t".iter().copied();
        for byte in bytes.filter(|byte| !ends || !b",]\n".contains(byte)) {
            let goes_on = !automaton.step(&threads, byte).unwrap().is_empty();
            let shown = format!("{shown}{}", char::from(byte));
            assert_eq!(goes_on, expected.contains(&byte), "{shown}: {what}");
        }
    }
}

#[test]
fn items_of_few_values_come_down_to_the_last_one() {
    let engine = engine(vocabulary_of(&[]));
    for (number, (item, mut values)) in kinds().into_iter().enumerate() {
        assert!(values.len() > 64);
        let mut rng = seeded(number as u8);
        for place in (1..values.len()).rev() {
            values.swap(place, rng.random_range(0..place + 1));
        }
        let all = values.len();
        let least = all - 1;
        let variants = [
            format!(r#"{{"type": "array", "uniqueItems": true, "items": {item}}}"#),
            format!(
                r#"{{"type": "array", "uniqueItems": true, "prefixItems": [{item}, {item}],
                    "items": {item}}}"#
            ),
            format!(
                r#"{{"type": "array", "uniqueItems": true, "minItems": {least}, "items": {item}}}"#
            ),
        ];
        for schema in variants {
            let compiled = Arc::new(engine.compile_json_schema(&schema, COMPACT).unwrap());
            let generation = compiled.generation();
            let automaton = &generation.automaton;
            let start = automaton.threads(automaton.start());
            for came in [63, 66, all - 2, all - 1] {
                let text = format!("[{},", values[..came].join(","));
                let threads = automaton.walk(start, text.as_bytes()).unwrap().unwrap();
                let left: Vec<&String> = values[came..].iter().collect();
                assert_goes_on(&compiled, &threads, &left, &format!("{came} of {schema}"));
            }
            let text = format!("[{}", values.join(","));
            let threads = automaton.walk(start, text.as_bytes()).unwrap().unwrap();
            assert!(automaton.step(&threads, b',').unwrap().is_empty(), "{schema}");
            assert!(!automaton.step(&threads, b']').unwrap().is_empty(), "{schema}");
        }
    }
}

/// Returns an array within `depth` other containers.
fn within(depth: usize, array: Value) -> Value {
    (0..depth).fold(array, |inner, place| match place % 2 {
        0 => json!({ "a": inner }),
        _ => json!([inner]),
    })
}

/// Its schema.
fn schema_within(depth: usize, array: Value) -> Value {
    (0..depth).fold(array, |inner, place| match place % 2 {
        0 => json!({
            "type": "object", "properties": { "a": inner }, "required": ["a"],
            "additionalProperties": false
        }),
        _ => json!({ "type": "array", "items": inner, "minItems": 1, "maxItems": 1 }),
    })
}

#[test]
fn items_of_few_values_keep_the_layout_around_them() {
    let engine = engine(vocabulary_of(&[]));
    let booleans = ["true", "false"];
    let rows = json!({
        "type": "array", "items": { "type": "array", "items": { "type": "boolean" },
        "minItems": 2, "maxItems": 2 }, "minItems": 2, "maxItems": 2
    });
    let pairs = arrays(2, &booleans);
    let pairs: Vec<&str> = pairs.iter().map(String::as_str).collect();
    let of_four = json!({
        "type": "array", "items": { "type": "boolean" }, "minItems": 4, "maxItems": 4
    });
    let names = json!({
        "type": "object", "properties": { "a": { "enum": [1, 11, 12] }, "b": { "enum": [1, 11, 12] } },
        "required": ["a", "b"], "additionalProperties": false
    });
    let kinds = [
        (of_four, arrays(4, &booleans)),
        (rows, arrays(2, &pairs)),
        (names, objects(&["a", "b"], &["1", "11", "12"])),
    ];
    for (item, values) in kinds {
        let values: Vec<Value> =
            values.iter().map(|value| serde_json::from_str(value).unwrap()).collect();
        for depth in 0..3 {
            let array = json!({ "type": "array", "uniqueItems": true, "items": item });
            let schema = schema_within(depth, array).to_string();
            let compiled = Arc::new(engine.compile_json_schema(&schema, CONSISTENT).unwrap());
            let generation = compiled.generation();
            let automaton = &generation.automaton;
            let start = automaton.threads(automaton.start());
            let came = 4;
            let with = |item: Value| {
                let items = values[..came].iter().cloned().chain([item]).collect();
                in_each_layout(&within(depth, Value::Array(items)))
            };
            // One more is written to its end, one that came is refused before.
            let (other, again) = (with(values[came].clone()), with(values[came - 1].clone()));
            for (other, again) in other.iter().zip(&again) {
                let ends = automaton.walk(start, other.as_bytes()).unwrap();
                let ends = ends.unwrap_or_else(|| panic!("{other} is refused by {schema}"));
                assert!(automaton.accepts(&ends).unwrap(), "{other}");
                assert!(automaton.walk(start, again.as_bytes()).unwrap().is_none(), "{again}");
            }
        }
    }
}

#[test]
fn masks_know_the_strings_that_a_token_ends_and_begins() {
    let strings = ["a", "b", "aa", "ab", ""].map(|text| format!("{text}\",\""));
    let mut tokens = vec!["\",\"a\",\"".to_owned(), "\",\"a\"]".to_owned(), "\",\"b\"".to_owned()];
    for text in ["", "a", "b", "ab", "c"] {
        tokens.push(format!("\",\"{text}"));
        tokens.extend(strings.iter().map(|ended| format!("{ended}{text}")));
    }
    let tokens: BTreeSet<&str> = tokens.iter().map(String::as_str).collect();
    let engine = engine(vocabulary_of(&tokens.into_iter().collect::<Vec<_>>()));
    let word = json!({ "type": "string", "pattern": "^[ab]*$" });
    let few =
        json!({ "anyOf": [{ "type": "string", "pattern": "^b+$" }, { "enum": ["a", "ab"] }] });
    let mut rng = seeded(7);
    for item in [word, few] {
        for behind in [false, true] {
            let mut schema = json!({ "type": "array", "uniqueItems": true, "items": item });
            if behind {
                schema["prefixItems"] = json!([{ "enum": ["a", "b"] }]);
                schema["contains"] = json!({ "const": "b" });
            }
            for array in
                [schema.clone(), json!({ "items": schema, "type": "array", "uniqueItems": true })]
            {
                let schema = array.to_string();
                for whitespace in [COMPACT, CONSISTENT] {
                    let compiled = engine.compile_json_schema(&schema, whitespace).unwrap();
                    for _ in 0..12 {
                        walk_and_compare(&compiled, &mut rng, 16, &schema);
                    }
                }
            }
        }
    }
}
