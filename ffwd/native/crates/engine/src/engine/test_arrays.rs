//! Arrays against a naive reading of the standard: every small document, and random walks.

use proptest::prelude::RngExt;
use serde_json::{json, Value};

use super::test_layouts::CONSISTENT;
use super::tests::{assert_mask, engine, read, walk_and_compare, COMPACT, FLEXIBLE};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};

/// Whether a value is valid, for the keywords that the tests use.
fn is_valid(schema: &Value, value: &Value) -> bool {
    let Value::Object(schema) = schema else { return schema == &json!(true) };
    let size = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    schema.iter().all(|(keyword, operand)| {
        let all = || operand.as_array().unwrap().iter();
        match (keyword.as_str(), value) {
            ("const", _) => equal(operand, value),
            ("enum", _) => all().any(|other| equal(other, value)),
            ("type", _) => match operand.as_str().unwrap() {
                "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
                "string" => value.is_string(),
                "array" => value.is_array(),
                "object" => value.is_object(),
                "null" => value.is_null(),
                other => panic!("{other}"),
            },
            ("minimum", Value::Number(_)) => value.as_f64() >= operand.as_f64(),
            ("maximum", Value::Number(_)) => value.as_f64() <= operand.as_f64(),
            ("maxLength", Value::String(text)) => {
                Some(text.chars().count() as u64) <= operand.as_u64()
            }
            ("not", _) => !is_valid(operand, value),
            ("anyOf", _) => all().any(|schema| is_valid(schema, value)),
            ("allOf", _) => all().all(|schema| is_valid(schema, value)),
            ("oneOf", _) => all().filter(|schema| is_valid(schema, value)).count() == 1,
            ("minItems", Value::Array(items)) => items.len() as u64 >= operand.as_u64().unwrap(),
            ("maxItems", Value::Array(items)) => items.len() as u64 <= operand.as_u64().unwrap(),
            ("prefixItems", Value::Array(items)) => {
                all().zip(items).all(|(schema, item)| is_valid(schema, item))
            }
            ("items", Value::Array(items)) => {
                let prefix = schema.get("prefixItems").map_or(0, |p| p.as_array().unwrap().len());
                items.iter().skip(prefix).all(|item| is_valid(operand, item))
            }
            ("contains", Value::Array(items)) => {
                let count = items.iter().filter(|item| is_valid(operand, item)).count() as u64;
                size("minContains").unwrap_or(1) <= count
                    && size("maxContains").is_none_or(|max| count <= max)
            }
            ("uniqueItems", Value::Array(items)) => {
                operand == &json!(false)
                    || (0..items.len()).all(|b| (0..b).all(|a| !equal(&items[a], &items[b])))
            }
            ("properties", Value::Object(members)) => operand
                .as_object()
                .unwrap()
                .iter()
                .all(|(name, schema)| members.get(name).is_none_or(|m| is_valid(schema, m))),
            _ => true,
        }
    })
}

fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| equal(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, a)| other.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => one == other,
    }
}

/// Texts of all arrays of at most `length` of these items.
fn arrays(items: &[&str], length: u32) -> Vec<String> {
    let mut all = vec!["[]".to_owned()];
    let mut longest = vec![String::new()];
    for _ in 0..length {
        longest = longest
            .iter()
            .flat_map(|text| {
                let comma = if text.is_empty() { "" } else { "," };
                items.iter().map(move |item| format!("{text}{comma}{item}"))
            })
            .collect();
        all.extend(longest.iter().map(|text| format!("[{text}]")));
    }
    all
}

/// Schemas of arrays, and the items that tell something about them.
const CASES: [(&str, &[&str]); 30] = [
    (r#"{"contains": {"const": 1}}"#, &["1", "1.0", "2", "\"1\""]),
    (
        r#"{"contains": {"type": "integer"}, "minContains": 2, "maxContains": 3}"#,
        &["1", "2.5", "3", "[]"],
    ),
    (
        r#"{"contains": {"type": "integer"}, "maxContains": 1, "minItems": 3}"#,
        &["1", "2.5", "null"],
    ),
    (r#"{"contains": {"const": 1}, "minContains": 2, "maxItems": 3}"#, &["1", "2", "\"a\""]),
    (r#"{"contains": {"const": 1}, "minContains": 0}"#, &["1", "2"]),
    (r#"{"contains": {"type": "integer"}, "minContains": 0, "maxContains": 0}"#, &["1", "\"a\""]),
    (
        r#"{"items": {"type": "integer", "minimum": 0, "maximum": 3}, "contains": {"enum": [2, 3, "x"]}, "maxItems": 2}"#,
        &["0", "1", "2", "3", "\"x\""],
    ),
    (
        r#"{"prefixItems": [{"type": "string"}, {"const": 2}], "contains": {"type": "integer"}, "maxContains": 2}"#,
        &["\"a\"", "2", "3", "null"],
    ),
    (r#"{"contains": {"type": "array", "contains": {"const": 1}}}"#, &["[1]", "[2]", "[2,1]", "1"]),
    (
        r#"{"allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}], "maxItems": 3}"#,
        &["1", "2", "3"],
    ),
    (
        r#"{"allOf": [{"contains": {"type": "integer"}, "maxContains": 2}, {"contains": {"enum": [1, "a"]}, "minContains": 2}], "maxItems": 3}"#,
        &["1", "2", "\"a\""],
    ),
    (r#"{"not": {"contains": {"const": 1}}}"#, &["1", "2", "[1]"]),
    (r#"{"not": {"type": "array", "items": {"type": "integer"}}}"#, &["1", "2", "\"a\""]),
    (
        r#"{"oneOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}], "type": "array"}"#,
        &["1", "2", "3"],
    ),
    (
        r#"{"anyOf": [{"contains": {"const": 1}, "maxItems": 2}, {"items": {"const": 2}}], "type": "array"}"#,
        &["1", "2", "3"],
    ),
    (r#"{"uniqueItems": true}"#, &["1", "1.0", "\"1\"", "[1]", "{\"a\":1}"]),
    (
        r#"{"type": "array", "uniqueItems": true, "items": {"type": "string", "maxLength": 4}}"#,
        &["\"a\"", "\"b\"", "\"\"", "\"ab\""],
    ),
    (
        r#"{"type": "array", "uniqueItems": true, "items": {"enum": ["a", "b", "ab"]}}"#,
        &["\"a\"", "\"b\"", "\"ab\""],
    ),
    (
        r#"{"type": "array", "uniqueItems": true, "items": {"enum": [1, 2, 3, 12]}, "minItems": 3}"#,
        &["1", "2", "3", "12"],
    ),
    (
        r#"{"type": "array", "uniqueItems": true, "prefixItems": [{"enum": [1, 2]}, {"enum": [1, 2, 3]}, {"const": 1}], "minItems": 3}"#,
        &["1", "2", "3"],
    ),
    (
        r#"{"type": "array", "uniqueItems": true, "items": {"type": "integer", "minimum": 1, "maximum": 4}, "contains": {"enum": [1, 2]}, "minContains": 2}"#,
        &["1", "2", "3", "4"],
    ),
    (
        r#"{"type": "array", "uniqueItems": true, "items": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}}"#,
        &["[]", "[1]", "[1,2]", "[2,1]"],
    ),
    (
        r#"{"type": "array", "uniqueItems": true, "items": {"type": "array", "uniqueItems": true}}"#,
        &["[]", "[1]", "[1,2]", "[2,2]"],
    ),
    (
        r#"{"type": "array", "items": {"uniqueItems": true, "items": {"type": "integer"}}}"#,
        &["[1,1]", "[1,2]", "[]"],
    ),
    (
        r#"{"type": "array", "items": {"type": "object", "properties": {"a": {"uniqueItems": true}}}}"#,
        &["{\"a\":[1,1]}", "{\"a\":[1,2]}", "{}"],
    ),
    (r#"{"not": {"uniqueItems": true}}"#, &["1", "2", "1.0", "\"a\""]),
    (r#"{"not": {"uniqueItems": true}, "maxItems": 2}"#, &["1", "2", "[1]"]),
    (
        r#"{"type": "array", "not": {"uniqueItems": true}, "prefixItems": [{"enum": [1, 2]}, {"enum": [2, 3]}], "maxItems": 3, "items": {"enum": [2, 4]}}"#,
        &["1", "2", "3", "4"],
    ),
    (
        r#"{"oneOf": [{"uniqueItems": true}, {"contains": {"const": 1}}], "type": "array"}"#,
        &["1", "2", "\"a\""],
    ),
    (
        r#"{"type": "array", "anyOf": [{"uniqueItems": true}, {"items": {"const": 2}}]}"#,
        &["1", "2", "3"],
    ),
];

#[test]
fn small_arrays_are_read_as_the_standard_says() {
    let engine = engine(vocabulary(8, 0));
    for (schema, items) in CASES {
        let judge: Value = serde_json::from_str(schema).unwrap();
        let compiled = engine.compile_json_schema(schema, COMPACT).unwrap();
        let mut accepted = 0;
        for text in arrays(items, if items.len() > 3 { 3 } else { 4 }) {
            let expected = is_valid(&judge, &serde_json::from_str(&text).unwrap());
            assert_eq!(read(&compiled, &text).is_ok(), expected, "{text}\n{schema}");
            accepted += u32::from(expected);
        }
        assert!(accepted > 0, "nothing is valid: {schema}");
    }
}

#[test]
fn masks_in_arrays_are_what_brute_force_finds_and_lead_to_valid_texts() {
    let engine = engine(vocabulary(11, 500));
    let mut ended = 0;
    for (number, (schema, _)) in CASES.iter().enumerate() {
        let judge: Value = serde_json::from_str(schema).unwrap();
        let mut rng = seeded(number as u8);
        for whitespace in [COMPACT, FLEXIBLE, CONSISTENT] {
            let compiled = engine.compile_json_schema(schema, whitespace).unwrap();
            for _ in 0..4 {
                if let Some(text) = walk_and_compare(&compiled, &mut rng, 16, schema) {
                    let text = String::from_utf8(text).unwrap();
                    let value: Value = serde_json::from_str(&text).unwrap();
                    assert!(is_valid(&judge, &value), "{text}\n{schema}");
                    ended += 1;
                }
            }
        }
    }
    assert!(ended > 60, "only {ended} walks came to an end");
}

/// Items of arrays in which they must differ, with the same masks however earlier items are stored.
/// Numbers are not among them, because excluding one leaves fewer known spellings.
const DISTINCT_ITEMS: [&str; 12] = [
    r#"{"type": "string"}"#,
    r#"{"type": "string", "maxLength": 1}"#,
    r#"{"type": "string", "pattern": "^[ab]{1,2}$"}"#,
    r#"{"enum": ["a", "b", "ab", "abc", "b1", null, true]}"#,
    r#"{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}"#,
    r#"{"type": "object", "properties": {"k": {"enum": ["a", "b"]}, "a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}"#,
    r#"{"type": "object", "additionalProperties": {"type": "string"}}"#,
    r#"{"type": "array", "items": {"type": "boolean"}}"#,
    r#"{"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}"#,
    r#"{"type": "object", "anyOf": [{"properties": {"k": {"enum": ["a", "b"]}}, "required": ["k"]},
        {"properties": {"k": {"const": "ab"}, "a": {"type": "string"}}, "required": ["k", "a"]}]}"#,
    r#"{"type": "object", "properties": {"k": {"enum": ["a", "b", "ab"]}}, "additionalProperties": false}"#,
    r#"{"type": "array", "uniqueItems": true, "items": {"type": "string"}}"#,
];

/// What an array may ask beside that. Whatever the items are, an array of at most one is one.
const DISTINCT_ARRAYS: [&str; 4] = [
    r#""items": ITEM"#,
    r#""prefixItems": [ITEM], "items": ITEM"#,
    r#""prefixItems": [ITEM, true], "items": ITEM, "maxItems": 3"#,
    r#""items": ITEM, "contains": {"enum": ["a", "ab", []]}, "minContains": 0, "maxContains": 2"#,
];

#[test]
fn items_that_lie_beside_the_schema_have_the_masks_of_those_that_are_negated() {
    let engine = engine(vocabulary(12, 500));
    let vocabulary = engine.vocabulary();
    let mut items = 0;
    for number in 0..DISTINCT_ITEMS.len() * DISTINCT_ARRAYS.len() {
        let item = DISTINCT_ITEMS[number % DISTINCT_ITEMS.len()];
        let array = DISTINCT_ARRAYS[number / DISTINCT_ITEMS.len()].replace("ITEM", item);
        let beside = format!(r#"{{"type": "array", "uniqueItems": true, {array}}}"#);
        // If an alternative has items that need not differ, earlier items are excluded from the
        // schema of the next.
        let negated = format!(r#"{{"anyOf": [{beside}, {{"type": "array", "maxItems": 0}}]}}"#);
        for (whitespace, is_compact) in [(COMPACT, true), (FLEXIBLE, false)] {
            let compiled = [&beside, &negated]
                .map(|s| engine.compile_json_schema(s, whitespace.clone()).unwrap());
            let mut rng = seeded(number as u8);
            for _ in 0..6 {
                let mut states = compiled.each_ref().map(|c| c.generation().automaton.start());
                let mut text = Vec::new();
                for (twin, compiled) in compiled.iter().enumerate().filter(|_| is_compact) {
                    let automaton = &compiled.generation().automaton;
                    let array = automaton.walk(automaton.threads(states[twin]), b"[").unwrap();
                    let lie_beside = automaton.has_history(array.unwrap()[0].stack);
                    assert_eq!(lie_beside, twin == 0);
                }
                for _ in 0..24 {
                    let [allowed, others] = [0, 1]
                        .map(|twin| assert_mask(&compiled[twin], states[twin], &text, &beside));
                    let shown = String::from_utf8_lossy(&text);
                    assert_eq!(allowed, others, "{item} after {shown}");
                    let short: Vec<_> = allowed
                        .iter()
                        .copied()
                        .filter(|&token| {
                            let text = vocabulary.text(token);
                            text.iter().all(|byte| br#"[]{},:"abk1tf"#.contains(byte))
                                && !text.is_empty()
                        })
                        .collect();
                    let choices = if short.is_empty() || rng.random_range(0..8) == 0 {
                        &allowed
                    } else {
                        &short
                    };
                    let token = choices[rng.random_range(0..choices.len())];
                    if vocabulary.is_eos(token) {
                        break;
                    }
                    let bytes = vocabulary.text(token);
                    text.extend_from_slice(bytes);
                    for (twin, state) in states.iter_mut().enumerate() {
                        let automaton = &compiled[twin].generation().automaton;
                        let threads = automaton.read(automaton.threads(*state), token.0, bytes);
                        *state = automaton.intern(threads.unwrap().unwrap()).unwrap();
                    }
                }
                items += text.iter().filter(|&&byte| byte == b',').count();
            }
        }
    }
    assert!(items > 200, "only {items} items were followed by others");
}
