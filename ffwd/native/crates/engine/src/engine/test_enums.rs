//! Enumerations that are large enough to be tables: what is read is what is listed and satisfies
//! the rest, and masks are what reading byte by byte finds.

use proptest::prelude::RngExt;
use serde_json::{json, Value};

use super::tests::*;
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};

const PIECES: [&str; 12] =
    ["a", "ab", "b", "x", "name", "é", "😀", "\"", "\\", "\n", "\u{1}", "kind"];

/// Strings that share beginnings and ends, one of them empty, and values of other types.
fn values(seed: u8, strings: usize) -> Vec<Value> {
    let mut rng = seeded(seed);
    let mut values = vec![
        json!(""),
        json!(null),
        json!(true),
        json!(12),
        json!(-1.5),
        json!({"a": "ab", "x": null}),
        json!(["ab", {"a": 1}]),
    ];
    while values.len() < strings + 7 {
        let count = rng.random_range(1..5);
        let pieces = (0..count).map(|_| PIECES[rng.random_range(0..PIECES.len())]);
        let value = Value::from(pieces.collect::<String>());
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// Numbers are listed by value.
fn is_listed(values: &[Value], value: &Value) -> bool {
    let same = |listed: &Value| listed.as_f64().is_some() && listed.as_f64() == value.as_f64();
    values.iter().any(|listed| listed == value || same(listed))
}

/// A schema about an enumeration, and which of its values it takes.
type Case = (Value, fn(&Value) -> bool);

fn cases(values: &[Value]) -> Vec<Case> {
    let listed = json!({ "enum": values });
    let half = json!({ "enum": values[..values.len() / 2] });
    let rest = json!({ "enum": values[values.len() / 2..] });
    vec![
        (listed.clone(), |_| true),
        (json!({"anyOf": [half, rest]}), |_| true),
        (json!({"oneOf": [half, rest]}), |_| true),
        (json!({"allOf": [listed, {"type": "string"}]}), Value::is_string),
        (json!({"allOf": [listed, {"not": {"type": "string"}}]}), |value| !value.is_string()),
        (json!({"allOf": [listed, {"not": {"const": "ab"}}]}), |value| *value != json!("ab")),
        (json!({"allOf": [listed, {"minLength": 2, "maxLength": 4}]}), |value| {
            value.as_str().is_none_or(|text| (2..=4).contains(&text.chars().count()))
        }),
        (json!({"allOf": [listed, {"pattern": "^a.*b"}]}), |value| {
            let after = value.as_str().map(|text| text.strip_prefix('a').map(str::to_owned));
            match after {
                None => true,
                Some(None) => false,
                Some(Some(after)) => {
                    after.split('\n').next().is_some_and(|line| line.contains('b'))
                }
            }
        }),
    ]
}

#[test]
fn what_is_listed_is_read() {
    let engine = engine(vocabulary(11, 300));
    let values = values(1, 120);
    for (schema, takes) in cases(&values) {
        let compiled = engine.compile_json_schema(&schema.to_string(), COMPACT).unwrap();
        for value in &values {
            let text = value.to_string();
            assert_eq!(read(&compiled, &text).is_ok(), takes(value), "{text} of {schema}");
            // Bytes that start no value are not read, nor what follows them.
            if let Some(text) = value.as_str() {
                for other in [format!("{text}zz"), format!("z{text}"), format!("{text}\u{2}")] {
                    assert!(read(&compiled, &Value::from(other).to_string()).is_err());
                }
            }
        }
    }
}

#[test]
fn masks_within_what_is_listed_are_what_brute_force_finds() {
    let engine = engine(vocabulary(12, 300));
    let values = values(2, 90);
    let mut rng = seeded(3);
    let listed = json!({"enum": values});
    let mut schemas: Vec<Value> = cases(&values).into_iter().map(|(schema, _)| schema).collect();
    schemas.extend([
        json!({"type": "object", "properties": {"a": listed, "b": listed}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"anyOf": [listed, {"pattern": "^x+$"}]}}}),
        json!({"type": "object", "propertyNames": {"enum": values[7..]}, "minProperties": 2}),
        json!({"type": "array", "items": listed, "uniqueItems": true, "minItems": 3}),
        json!({"anyOf": [
            {"type": "object", "properties": {"a": listed, "b": {"const": 1}}, "required": ["a"]},
            {"type": "object", "properties": {"a": {"enum": values[..60]}}, "required": ["a", "x"]},
        ]}),
    ]);
    for schema in schemas {
        let what = schema.to_string();
        let compiled = engine.compile_json_schema(&what, COMPACT).unwrap();
        let ended = (0..6).filter_map(|_| walk_and_compare(&compiled, &mut rng, 30, &what));
        for text in ended.collect::<Vec<_>>() {
            let value: Value = serde_json::from_slice(&text).unwrap();
            assert!(!schema["enum"].is_array() || is_listed(&values, &value), "{value} of {what}");
        }
    }
}

#[test]
fn a_choice_among_many_is_one_of_its_texts() {
    let engine = engine(vocabulary(13, 300));
    let texts: Vec<String> = values(4, 150)
        .iter()
        .filter_map(|value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned))
        .collect();
    let compiled = engine.compile_choice(&texts).unwrap();
    for text in &texts {
        assert_eq!(read(&compiled, text), Ok(()));
        assert!(read(&compiled, &format!("{text}zz")).is_err());
    }
    let mut rng = seeded(5);
    let mut ended = 0;
    for _ in 0..20 {
        if let Some(text) = walk_and_compare(&compiled, &mut rng, 20, "a choice") {
            assert!(texts.iter().any(|choice| choice.as_bytes() == text));
            ended += 1;
        }
    }
    assert!(ended > 10, "{ended}");
}
