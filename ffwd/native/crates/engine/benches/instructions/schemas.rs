//! The schemas of the workloads, and documents that they take.

use std::fmt::Write;

use crate::vocabulary::{word, Random};

/// A record of a few fields.
pub fn small() -> String {
    r##"{"type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1},
            "name": {"type": "string"},
            "kind": {"enum": ["order", "invoice", "offer"]},
            "price": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "parent": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}
        },
        "required": ["id", "name", "kind"],
        "additionalProperties": false}"##
        .into()
}

/// Three hundred definitions that refer to each other, in objects, arrays and unions.
pub fn large() -> String {
    let mut random = Random(7);
    let mut definitions = Vec::new();
    for number in 0..300 {
        let mut members = Vec::new();
        for member in 0..8 {
            let to = random.below(300);
            let value = match member {
                0 => format!(r##"{{"$ref": "#/$defs/t{to}"}}"##),
                1 => format!(r##"{{"type": "array", "items": {{"$ref": "#/$defs/t{to}"}}}}"##),
                2 => format!(r##"{{"anyOf": [{{"type": "null"}}, {{"$ref": "#/$defs/t{to}"}}]}}"##),
                3 => format!(r#"{{"enum": ["{}", "{}"]}}"#, word(&mut random), word(&mut random)),
                4 => r#"{"type": "integer", "minimum": 0, "maximum": 65535}"#.into(),
                5 => r#"{"type": "string", "pattern": "^[a-z][a-z0-9-]*$"}"#.into(),
                _ => r#"{"type": "string", "description": "A text that says something"}"#.into(),
            };
            members.push(format!(r#""{}{member}": {value}"#, word(&mut random)));
        }
        definitions.push(format!(
            r#""t{number}": {{"type": "object", "properties": {{{}}}}}"#,
            members.join(", ")
        ));
    }
    // Whole conjunctions of objects, so that more is done than to read the text.
    let parts: Vec<String> = (0..40).map(|n| format!(r##"{{"$ref": "#/$defs/t{n}"}}"##)).collect();
    format!(r#"{{"$defs": {{{}}}, "allOf": [{}]}}"#, definitions.join(", "), parts.join(", "))
}

/// Five thousand strings.
pub fn listed() -> String {
    let mut random = Random(11);
    let values: Vec<String> = (0..5_000)
        .map(|number| format!(r#""{} {} {number}""#, word(&mut random), word(&mut random)))
        .collect();
    format!(r#"{{"enum": [{}]}}"#, values.join(", "))
}

/// Prose of about so many bytes.
pub fn prose(bytes: usize) -> String {
    let mut random = Random(13);
    let mut text = String::with_capacity(bytes + 32);
    while text.len() < bytes {
        text.push_str(&word(&mut random));
        text.push_str(match random.below(12) {
            0 => ". ",
            1 => ", ",
            2 => "\n\n",
            3 => " (1987) ",
            _ => " ",
        });
    }
    text
}

/// Schemas with a document each: records, patterns, maps, unions and numbers.
pub fn documents() -> Vec<(String, String)> {
    let mut random = Random(17);
    let mut records = String::from("[");
    for number in 0..40 {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(
            records,
            r#"{comma}{{"id":{},"name":"{} {}","kind":"offer","price":{}.5,"tags":["{}","{}"]}}"#,
            number * 7919 + 1,
            word(&mut random),
            word(&mut random),
            number * 31,
            word(&mut random),
            word(&mut random),
        );
    }
    records.push(']');
    let mut map = String::from("{");
    for number in 0..40 {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(map, r#"{comma}"{}-{number}":[{number},-{number}.25e3]"#, word(&mut random));
    }
    map.push('}');
    let patterns = r#"{"code":"AB-1234-xyz","when":"2024-02-29T23:59:01Z","text":"a few words to count, and not more","site":"Zone é"}"#;
    let union =
        r#"{"shape":"circle","radius":2.5,"inner":{"shape":"box","sides":[1,2,3],"inner":null}}"#;
    vec![
        (format!(r#"{{"type": "array", "items": {}}}"#, small()), records),
        (
            r#"{"type": "object",
                "propertyNames": {"maxLength": 40},
                "additionalProperties": {"type": "array", "items": {"type": "number"}}}"#
                .into(),
            map,
        ),
        (
            r#"{"type": "object",
                "properties": {
                    "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}(-[a-z]+)?$"},
                    "when": {"type": "string", "format": "date-time"},
                    "text": {"type": "string", "pattern": "^(\\S+\\s+){0,49}\\S+$", "maxLength": 300},
                    "site": {"type": "string", "minLength": 3, "maxLength": 60}
                },
                "required": ["code", "when", "text", "site"]}"#
                .into(),
            patterns.into(),
        ),
        (
            r##"{"$defs": {"shape": {"anyOf": [
                    {"type": "object", "additionalProperties": false,
                     "properties": {"shape": {"const": "circle"}, "radius": {"type": "number"},
                                    "inner": {"$ref": "#/$defs/shape"}},
                     "required": ["shape", "radius"]},
                    {"type": "object", "additionalProperties": false,
                     "properties": {"shape": {"const": "box"},
                                    "sides": {"type": "array", "items": {"type": "integer"}},
                                    "inner": {"$ref": "#/$defs/shape"}},
                     "required": ["shape", "sides"]},
                    {"type": "null"}]}},
                 "$ref": "#/$defs/shape"}"##
                .into(),
            union.into(),
        ),
    ]
}
