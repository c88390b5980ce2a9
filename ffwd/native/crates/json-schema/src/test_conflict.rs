//! Why no value satisfies a schema: what is said, and that the part that is found is a smallest one.

use serde_json::json;

use super::conflict::Conflict;
use super::document::{Document, NodeId, Value};
use super::program::Program;
use super::test_emptiness::options;
use super::{SchemaErrorKind, SchemaSet};

/// A schema, the pointer of its conflict, and why it has no value.
const CASES: &[(&str, &str, &str)] = &[
    (
        r#"{"properties":{"a":{"type":"array","minItems":2,"maxItems":1}},"required":["a","b"],
            "type":"object"}"#,
        "/properties/a",
        "required property `a` has no valid value: `minItems` (2) is greater than `maxItems` (1)",
    ),
    (
        r#"{"type":"string","pattern":"^[a-z]*$","format":"date","minLength":1,"title":"T"}"#,
        "",
        "no string fits `pattern` (\"^[a-z]*$\") and `format` (\"date\")",
    ),
    (
        r##"{"$defs":{"a":{"type":"integer","minimum":5}},"$ref":"#/$defs/a","maximum":3}"##,
        "",
        "`minimum` (5, at /$defs/a) is greater than `maximum` (3)",
    ),
    (
        r#"{"type":"object","properties":{"a":{}},"required":["b"],"additionalProperties":false}"#,
        "",
        "required property `b` is not in `properties`, and `additionalProperties` is false",
    ),
    (
        r#"{"enum":["a","b"],"anyOf":[{"pattern":"^x"},{"type":"null"},{"const":1},false]}"#,
        "",
        "no branch of `anyOf` has a valid value (branch 0: `enum` ([\"a\", \"b\"]) has no value that \
         fits `pattern` (\"^x\", at /anyOf/0); branch 1: `enum` ([\"a\", \"b\"]) has no value of type \
         null; branch 2: `const` (1, at /anyOf/2) does not fit `enum` ([\"a\", \"b\"]); and 1 more)",
    ),
    (
        r#"{"oneOf":[{"type":"string"},{"type":"string"}]}"#,
        "",
        "no value fits exactly one branch of `oneOf`",
    ),
    (
        r##"{"type":"array","minItems":1,"items":{"$ref":"#"}}"##,
        "",
        "`minItems` (1) asks for an item, which has no valid value: its schema leads back to itself \
         without end",
    ),
    (
        r#"{"type":"object","required":["a"],"properties":{"a":{"type":"string"}},
            "unevaluatedProperties":false,"patternProperties":{"^a":{"minLength":3}},
            "allOf":[{"properties":{"a":{"maxLength":2}}}]}"#,
        "/properties/a",
        "required property `a` has no valid value: `minLength` (3, at /patternProperties/^a) is \
         greater than `maxLength` (2, at /allOf/0/properties/a)",
    ),
    (
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":false},
            "type":"array","contains":{"$ref":"#/definitions/x","minimum":1}}"##,
        "/definitions/x",
        "no item satisfies `contains`: its schema is `false`",
    ),
];

#[test]
fn conflicts_name_what_contradicts_itself() {
    for (schema, pointer, why) in CASES {
        let error = SchemaSet::parse(schema, options()).expect_err(schema);
        assert_eq!(error.kind, SchemaErrorKind::Unsatisfiable, "{schema}");
        let message = format!("the schema has no valid value: {why}");
        assert_eq!((&*error.pointer, &*error.message), (*pointer, &*message), "{schema}");
    }
}

#[test]
fn schemas_of_one_grammar_are_told_apart() {
    let texts = ["true", CASES[0].0, r#"{"type":"null"}"#];
    let error = SchemaSet::parse_all(&texts, options()).unwrap_err();
    assert_eq!(error.pointer, "schema 2#/properties/a");
    assert!(error.message.ends_with(CASES[0].2), "{error}");
}

/// If the search takes too long, the message is general and points to the root.
#[test]
fn without_steps_nothing_is_named() {
    let mut options = options();
    options.limits.steps = 64;
    let error = SchemaSet::parse(CASES[0].0, options).unwrap_err();
    assert_eq!((&error.kind, &*error.pointer), (&SchemaErrorKind::Unsatisfiable, ""));
    assert!(error.message.contains("remove parts of the schema"), "{error}");
}

fn text_of(document: &Document, node: NodeId) -> serde_json::Value {
    match document.value(node) {
        Value::Null => serde_json::Value::Null,
        Value::Boolean(value) => value.into(),
        Value::Number(text) => serde_json::from_str(text).unwrap(),
        Value::String(text) => text.into(),
        Value::Array(items) => items.iter().map(|&item| text_of(document, item)).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.to_owned(), text_of(document, value))).collect()
        }
    }
}

/// Each schema without one member of one of its objects that say what a value must be.
fn smaller(schema: &serde_json::Value) -> Vec<serde_json::Value> {
    const DROPPED: [&str; 9] = [
        "type",
        "required",
        "enum",
        "const",
        "minimum",
        "maximum",
        "minItems",
        "pattern",
        "additionalProperties",
    ];
    let mut found = Vec::new();
    let mut pending = vec![(String::new(), schema)];
    while let Some((pointer, value)) = pending.pop() {
        let children: Vec<(String, &serde_json::Value)> = match value {
            serde_json::Value::Object(members) => {
                members.iter().map(|(key, value)| (key.clone(), value)).collect()
            }
            serde_json::Value::Array(items) => {
                items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect()
            }
            _ => Vec::new(),
        };
        for (key, child) in children {
            if value.is_object() && DROPPED.contains(&&*key) {
                let mut without = schema.clone();
                let around = without.pointer_mut(&pointer).and_then(|at| at.as_object_mut());
                around.unwrap().remove(&key);
                found.push(without);
            }
            pending
                .push((format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), child));
        }
    }
    found
}

/// Whatever else a schema says, nothing can be left out of the part that is found.
#[test]
fn nothing_can_be_left_out_of_a_conflict() {
    let noise = [
        r#""title":"noise","minLength":1,"maxProperties":9,"dependentRequired":{"x":["y"]}"#,
        r#""anyOf":[{"type":["object","array"]},{"minimum":-1}],"items":{"type":["array","null"]}"#,
        r#""properties":{"x":{"type":"integer"},"y":{"enum":[1,2]}},"uniqueItems":true"#,
    ];
    let conflicts = [
        r#"{"type":"object","required":["a","c"],"properties":{"a":{"type":"integer","minimum":3,
            "maximum":2},"b":{"minimum":9,"maximum":8}}}"#,
        r#"{"type":"array","minItems":2,"prefixItems":[{},{"enum":[1,"b"],"pattern":"^c","minimum":2}]}"#,
        r#"{"type":"object","required":["a"],"additionalProperties":{"const":1,"type":"string"}}"#,
        r#"{"type":"string","enum":["a",2],"pattern":"b","maxLength":3}"#,
        r#"{"type":"object","required":["a","b"],"maxProperties":1,"minProperties":1}"#,
        r#"{"type":"object","required":["a","b"],"properties":{"a":{},"x":{"type":"null"}},
            "additionalProperties":false}"#,
        r#"{"type":"object","minProperties":2,"properties":{"a":{"type":"null"}},
            "additionalProperties":false}"#,
    ];
    let mut tried = 0;
    for conflict in conflicts {
        for noise in noise {
            let schema = format!(r#"{{"allOf":[{{{noise}}},{conflict}]}}"#);
            let program = Program::read(&schema, &options()).unwrap();
            let found = Conflict::find(&program, &options()).expect(&schema);
            let left = text_of(&found.document, found.root);
            let parse =
                |schema: &serde_json::Value| SchemaSet::parse(&schema.to_string(), options());
            assert!(parse(&left).is_err(), "{left}");
            for smaller in smaller(&left) {
                tried += 1;
                assert!(parse(&smaller).is_ok(), "{left}\n{smaller}");
            }
        }
    }
    assert!(tried > 40, "{tried}");
}

/// Large schemas name their conflict: the search asks about halves, not about one property after
/// the other. With few properties the same message names the same keywords.
#[test]
fn large_schemas_name_their_conflict() {
    let text = |value: serde_json::Value| value.to_string();
    for count in [4, 1_000, 20_000] {
        let names: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
        let properties: serde_json::Map<String, serde_json::Value> =
            names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
        let object = json!({"type": "object", "properties": properties, "required": names});
        let with = |more: serde_json::Value| {
            let mut object = object.clone();
            object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            object
        };
        let (less, more) = (count - 1, count + 1);
        let mut undeclared = names.clone();
        undeclared.insert(count / 2, "other".to_owned());
        let cases = [
            (
                text(with(json!({"maxProperties": less}))),
                "",
                format!("`required` has {count} names, more than `maxProperties` ({less})"),
            ),
            (
                text(json!({"allOf": [object, {"maxProperties": 1}]})),
                "",
                format!("`required` has {count} names, more than `maxProperties` (1, at /allOf/1)"),
            ),
            (
                text(json!({"type": "array", "minItems": 1, "items": with(json!({"maxProperties": 2}))})),
                "/items",
                format!(
                    "`minItems` (1) asks for an item, which has no valid value: `required` has \
                     {count} names, more than `maxProperties` (2)"
                ),
            ),
            (
                text(with(json!({"required": undeclared, "additionalProperties": false}))),
                "",
                "required property `other` is not in `properties`, and `additionalProperties` is \
                 false"
                    .to_owned(),
            ),
            (
                text(with(json!({"required": [], "minProperties": more, "additionalProperties": false}))),
                "",
                format!(
                    "`minProperties` ({more}) is greater than the number of `properties` ({count}), \
                     and `additionalProperties` is false"
                ),
            ),
            (
                text(json!({"allOf": [object, {"properties": {"p3": {"type": "integer"}}}]})),
                "/allOf/0/properties/p3",
                "required property `p3` has no valid value: `type` (\"string\") and `type` \
                 (\"integer\", at /allOf/1/properties/p3) exclude each other"
                    .to_owned(),
            ),
        ];
        // A search by halves alone, in which each question is about all names.
        let mut cases = Vec::from(cases);
        if count <= 1_000 {
            cases.push((
                text(with(json!({"propertyNames": {"not": {"const": "p1"}}}))),
                "",
                "required property `p1` is not allowed by `propertyNames` ({\"not\": {\"const\": \"p1\"}})"
                    .to_owned(),
            ));
        }
        for (schema, pointer, why) in cases {
            let error = SchemaSet::parse(&schema, options()).expect_err(&why);
            let message = format!("the schema has no valid value: {why}");
            assert_eq!((&*error.message, &*error.pointer), (&*message, pointer), "{count}");
        }
    }
}

/// A property that a reference leads to is not removed from its list.
#[test]
fn properties_under_references_are_kept() {
    let schema = r##"{"type":"object","required":["a","b"],"minProperties":1,"properties":{
        "a":{"type":"integer","minimum":3},"b":{"$ref":"#/properties/a","maximum":2},"c":{}}}"##;
    let error = SchemaSet::parse(schema, options()).unwrap_err();
    let why = "the schema has no valid value: required property `b` has no valid value: `minimum` \
               (3, at /properties/a) is greater than `maximum` (2)";
    assert_eq!((&*error.message, &*error.pointer), (why, "/properties/b"));
}
