//! JSON Schemas that are built, so that most of them are valid and say several things at once. What is
//! written for one must be valid by the crate `jsonschema`.

use arbitrary::Unstructured;
use serde_json::{json, Map, Value};

use crate::driver::Driver;
use crate::schema;
use crate::shape::Shape;

const NAMES: [&str; 6] = ["a", "b", "ab", "name", "é", "x\"y"];
const PATTERNS: [&str; 10] =
    ["^a", "b$", "^[ab]{1,3}$", "a|b", "^(a|b)*$", "[0-9]", "^.{2}$", "^(?!a)", "x", "^\\w+$"];
const STRINGS: [&str; 6] = ["", "a", "ab", "b", "é", "\n"];

pub fn run(data: &[u8]) {
    // The first half builds, the second one drives.
    let (shape, steps) = data.split_at(data.len() / 2);
    let mut input = Unstructured::new(shape);
    let schema = schema(&mut Shape::new(&mut input, 24));
    let found = schema::texts(&schema.to_string(), Driver::new(steps));
    if found.is_empty() {
        return;
    }
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    let Ok(validator) = options.build(&schema) else { return };
    for value in found.into_iter().filter(is_plain) {
        assert!(validator.is_valid(&value), "{value} was written for {schema}");
    }
}

/// Whether every number is one that a double has exactly, as the validator reads them.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let text = number.to_string();
            text.len() < 12 && !text.contains(['e', 'E'])
        }
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(members) => members.values().all(is_plain),
        _ => true,
    }
}

fn schema(shape: &mut Shape<'_, '_>) -> Value {
    let mut root = part(shape, 0);
    if let Value::Object(root) = &mut root {
        let definitions: Map<String, Value> =
            ["a", "b"].map(|name| (name.to_owned(), part(shape, 1))).into_iter().collect();
        root.insert("$defs".to_owned(), definitions.into());
    }
    root
}

fn parts(shape: &mut Shape<'_, '_>, most: usize, depth: usize) -> Value {
    let count = 1 + shape.count(most - 1);
    (0..count).map(|_| part(shape, depth)).collect()
}

fn by_name(shape: &mut Shape<'_, '_>, names: &[&str], depth: usize) -> Value {
    let count = 1 + shape.count(2);
    let entries = (0..count).map(|_| (shape.pick(names).to_owned(), part(shape, depth)));
    entries.collect::<Map<_, _>>().into()
}

fn names(shape: &mut Shape<'_, '_>) -> Value {
    let mut names: Vec<&str> = (0..1 + shape.count(1)).map(|_| shape.pick(&NAMES)).collect();
    names.sort_unstable();
    names.dedup();
    json!(names)
}

fn value(shape: &mut Shape<'_, '_>) -> Value {
    match shape.below(9) {
        0 => json!(shape.pick(&STRINGS)),
        1 => json!(shape.below(5)),
        2 => json!(null),
        3 => json!(shape.flag()),
        4 => json!([1]),
        5 => json!({"a": 1}),
        6 => json!(1.5),
        7 => json!(["a", "b"]),
        _ => json!({"b": "a", "a": null}),
    }
}

fn number(shape: &mut Shape<'_, '_>) -> Value {
    match shape.below(4) {
        0 => json!(shape.below(7)),
        1 => json!(-(shape.below(20) as i64)),
        2 => json!(0.5),
        _ => json!(shape.below(300)),
    }
}

fn part(shape: &mut Shape<'_, '_>, depth: usize) -> Value {
    if depth > 4 || !shape.part() {
        return match shape.below(4) {
            0 => json!({}),
            1 => json!({"type": "integer"}),
            2 => json!(true),
            _ => json!({"type": "string"}),
        };
    }
    let mut said = Map::new();
    for _ in 0..1 + shape.count(3) {
        let (keyword, means) = keyword(shape, depth + 1);
        said.insert(keyword.to_owned(), means);
    }
    said.into()
}

fn keyword(shape: &mut Shape<'_, '_>, depth: usize) -> (&'static str, Value) {
    const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];
    match shape.below(38) {
        0..=3 => ("type", json!(shape.pick(&TYPES))),
        4 => ("type", json!([shape.pick(&TYPES[..3]), shape.pick(&TYPES[3..])])),
        5 => ("enum", (0..1 + shape.count(3)).map(|_| value(shape)).collect()),
        6 => ("const", value(shape)),
        7..=9 => ("properties", by_name(shape, &NAMES, depth)),
        10 => ("patternProperties", by_name(shape, &PATTERNS, depth)),
        11 => ("additionalProperties", json!(false)),
        12 => ("additionalProperties", part(shape, depth)),
        13 => ("required", names(shape)),
        14 => ("propertyNames", part(shape, depth)),
        15 => ("minProperties", json!(shape.below(4))),
        16 => ("maxProperties", json!(shape.below(4))),
        17 => ("dependentRequired", json!({shape.pick(&NAMES): names(shape)})),
        18 => ("dependentSchemas", by_name(shape, &NAMES, depth)),
        19 => ("items", part(shape, depth)),
        20 => ("prefixItems", parts(shape, 3, depth)),
        21 => ("contains", part(shape, depth)),
        22 => ("minContains", json!(shape.below(3))),
        23 => ("maxContains", json!(shape.below(3))),
        24 => ("minItems", json!(shape.below(4))),
        25 => ("maxItems", json!(shape.below(5))),
        26 => ("uniqueItems", json!(true)),
        27 => ("minLength", json!(shape.below(4))),
        28 => ("maxLength", json!(shape.below(8))),
        29 => ("pattern", json!(shape.pick(&PATTERNS))),
        30 => ("minimum", number(shape)),
        31 => ("maximum", number(shape)),
        32 => ("exclusiveMinimum", number(shape)),
        33 => ("multipleOf", json!(shape.pick(&[1.0, 2.0, 3.0, 0.5, 7.0]))),
        34 => ("allOf", parts(shape, 3, depth)),
        35 => ("anyOf", parts(shape, 3, depth)),
        36 => ("oneOf", parts(shape, 3, depth)),
        _ => match shape.below(6) {
            0 => ("not", part(shape, depth)),
            1 => ("if", part(shape, depth)),
            2 => ("then", part(shape, depth)),
            3 => ("else", part(shape, depth)),
            4 => ("unevaluatedProperties", json!(false)),
            _ => ("$ref", json!(shape.pick(&["#/$defs/a", "#/$defs/b", "#"]))),
        },
    }
}
