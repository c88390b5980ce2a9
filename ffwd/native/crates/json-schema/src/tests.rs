//! Schemas as data: what they accept, what they refuse, and what is refused about them.

use std::sync::Arc;

use serde_json::Value;

use super::test_emptiness::options;
use super::test_validator::{validates, Order};
use super::{Limits, Normal, Result, SchemaErrorKind, SchemaId, SchemaOptions, SchemaSet};

pub(super) fn parse(schema: &str) -> Result<SchemaSet> {
    SchemaSet::parse(schema, options())
}

/// A schema, the values that are valid, those that are not.
pub(super) type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

pub(super) fn check(cases: &[Case], order: Order) {
    for (schema, valid, invalid) in cases {
        let set = parse(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        for (values, expected) in [(valid, true), (invalid, false)] {
            for value in *values {
                let parsed: Value = serde_json::from_str(value).unwrap();
                let accepted = validates(&set, set.root(), &parsed, order);
                assert_eq!(accepted, expected, "{schema} on {value}");
            }
        }
    }
}

const ALL: &[&str] =
    &["null", "true", "false", "1", "1.5", "\"x\"", "[]", "[1]", "{}", r#"{"a":1}"#];

#[test]
fn types_and_annotations() {
    check(
        &[
            ("true", ALL, &[]),
            ("{}", ALL, &[]),
            (r#"{"title":1,"x-no":{"not":{}},"default":[],"$comment":"","examples":0}"#, ALL, &[]),
            (r#"{"type":"integer"}"#, &["1", "-3", "1.0", "0", "1e2"], &["1.5", "null", "\"1\""]),
            (r#"{"type":"number"}"#, &["1", "1.5", "-0.5e3"], &["\"1\"", "true"]),
            (r#"{"type":["integer","number"]}"#, &["1", "1.5"], &["null"]),
            (r#"{"type":["null","boolean"]}"#, &["null", "true", "false"], &["0", "\"\""]),
            (r#"{"type":["string","array"]}"#, &["\"\"", "[]"], &["{}", "1"]),
            (
                r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer"}"#,
                &["1", "-12"],
                &["1.0", "1e2"],
            ),
            (r#"{"type":"string","format":"no-such-format"}"#, &["\"x\""], &["1"]),
            // Keywords only apply to their type.
            (
                r#"{"minLength":2,"minimum":3,"minItems":1,"required":["a"]}"#,
                &["null", "\"ab\"", "3", "[0]", r#"{"a":0}"#],
                &["\"a\"", "2", "[]", "{}"],
            ),
        ],
        Order::Declared,
    );
}

#[test]
fn strings() {
    check(
        &[
            (r#"{"minLength":2,"maxLength":3}"#, &["\"éé\"", "\"😀bc\""], &["\"a\"", "\"abcd\""]),
            (r#"{"pattern":"^a"}"#, &["\"a\"", "\"abc\"", "1"], &["\"ba\"", "\"\""]),
            (r#"{"pattern":"b","minLength":3}"#, &["\"abc\""], &["\"b\"", "\"acc\""]),
            (r#"{"format":"ipv4"}"#, &["\"1.2.3.4\"", "1"], &["\"1.2.3\"", "\"x\""]),
            (
                r#"{"enum":["a","bb","ccc"],"minLength":2,"pattern":"^[ab]"}"#,
                &["\"bb\""],
                &["\"a\"", "\"ccc\"", "1"],
            ),
            (
                r#"{"allOf":[{"pattern":"^a"},{"pattern":"z$"},{"maxLength":3}],"type":"string"}"#,
                &["\"az\"", "\"abz\""],
                &["\"a\"", "\"abbz\""],
            ),
            (
                r#"{"anyOf":[{"enum":["a"]},{"enum":["b","a"]},{"pattern":"^c$"}]}"#,
                &["\"a\"", "\"b\"", "\"c\"", "1"],
                &["\"d\""],
            ),
        ],
        Order::Declared,
    );
}

#[test]
fn numbers() {
    check(
        &[
            (r#"{"minimum":1.5,"maximum":3}"#, &["1.5", "3", "3.0", "2", "\"x\""], &["1.4", "3.1"]),
            (r#"{"exclusiveMinimum":1,"exclusiveMaximum":2}"#, &["1.5"], &["1", "2"]),
            (r#"{"minimum":1,"exclusiveMinimum":1}"#, &["1.1"], &["1"]),
            (
                r#"{"$schema":"http://json-schema.org/draft-04/schema","minimum":1,
                    "exclusiveMinimum":true,"maximum":2,"exclusiveMaximum":false}"#,
                &["1.5", "2"],
                &["1", "3"],
            ),
            (r#"{"enum":[1.0,2.5],"type":"number"}"#, &["1", "1.0", "2.50"], &["2", "1.5"]),
            (r#"{"enum":[1.0,2.5],"type":"integer"}"#, &["1", "1.0"], &["2.5"]),
            (r#"{"const":100}"#, &["100", "1e2", "100.0"], &["10", "\"100\""]),
            (r#"{"multipleOf":1}"#, &["1", "2.0"], &["1.5"]),
            (r#"{"type":"integer","multipleOf":0.25}"#, &["1", "-7"], &["0.25"]),
            (r#"{"anyOf":[{"type":"integer"},{"type":"number"}]}"#, &["1", "1.5"], &["null"]),
        ],
        Order::Declared,
    );
}

#[test]
fn objects() {
    check(
        &[
            (
                r#"{"properties":{"a":{"type":"string"},"b":{"type":"null"}},"required":["b"]}"#,
                &[r#"{"a":"","b":null}"#, r#"{"b":null,"c":1}"#, "1"],
                &["{}", r#"{"a":1,"b":null}"#, r#"{"b":null,"a":""}"#, r#"{"c":1,"b":null}"#],
            ),
            // Names that are only required come after the declared ones.
            (
                r#"{"type":"object","required":["z","a"],"properties":{"m":{},"a":{}},
                    "additionalProperties":{"type":"integer"}}"#,
                &[r#"{"m":"","a":"","z":1}"#, r#"{"a":0,"z":1,"b":2}"#],
                &[r#"{"a":0,"z":"1"}"#, r#"{"z":1,"a":0}"#, r#"{"a":0}"#],
            ),
            (
                r#"{"type":"object","additionalProperties":false,"properties":{"a":{}}}"#,
                &["{}", r#"{"a":[]}"#],
                &[r#"{"b":0}"#],
            ),
            (
                r#"{"type":"object","properties":{"a":false,"b":{}}}"#,
                &["{}", r#"{"b":0,"c":0}"#],
                &[r#"{"a":0}"#],
            ),
            (
                r#"{"type":"object","properties":{"a":{}},"unevaluatedProperties":false}"#,
                &["{}", r#"{"a":0}"#],
                &[r#"{"b":0}"#],
            ),
            (r#"{"type":"object","maxProperties":0}"#, &["{}"], &[r#"{"b":0}"#]),
            (
                r#"{"type":"object","minProperties":1,"required":["a","a"]}"#,
                &[r#"{"a":0}"#],
                &["{}", r#"{"b":0}"#],
            ),
            (
                r#"{"patternProperties":{},"dependencies":{"a":[],"b":{}},"propertyNames":true,
                    "if":{"type":"null"},"uniqueItems":false,"type":"object"}"#,
                &["{}", r#"{"b":0}"#],
                &["1"],
            ),
        ],
        Order::Declared,
    );
}

#[test]
fn arrays() {
    check(
        &[
            (r#"{"items":{"type":"null"},"minItems":1}"#, &["[null]", "1"], &["[]", "[null,1]"]),
            (r#"{"maxItems":1,"uniqueItems":true}"#, &["[]", "[0]"], &["[0,0]"]),
            (
                r#"{"prefixItems":[{"type":"null"},{"type":"string"}],"items":false}"#,
                &["[]", "[null]", "[null,\"\"]"],
                &["[1]", "[null,\"\",1]"],
            ),
            (
                r#"{"$schema":"http://json-schema.org/draft-07/schema#",
                    "items":[{"type":"null"}],"additionalItems":{"type":"string"}}"#,
                &["[]", "[null,\"\",\"\"]"],
                &["[\"\"]", "[null,1]"],
            ),
            (
                r#"{"$schema":"http://json-schema.org/draft-07/schema#",
                    "items":{"type":"null"},"additionalItems":false,"prefixItems":[false]}"#,
                &["[null,null]"],
                &["[1]"],
            ),
            (r#"{"items":[{"type":"null"}]}"#, &["[null,1]"], &["[1]"]),
            (
                r#"{"allOf":[{"prefixItems":[{"type":"integer"}],"maxItems":3},
                    {"items":{"minimum":5},"minItems":1}]}"#,
                &["[5]", "[7,8.5,\"x\"]"],
                &["[]", "[4]", "[5.5]", "[5,4]", "[5,6,7,8]"],
            ),
            // An item that nothing satisfies ends the array.
            (
                r#"{"prefixItems":[{},{"type":"string","maxLength":0,"pattern":"."}]}"#,
                &["[]", "[1]"],
                &["[1,\"\"]", "[1,2]"],
            ),
            (
                r#"{"contains":true,"minContains":2,"maxContains":3}"#,
                &["[1,2]"],
                &["[1]", "[1,2,3,4]"],
            ),
            (r#"{"contains":{"type":"null"},"minContains":0}"#, &["[]", "[1]"], &[]),
        ],
        Order::Declared,
    );
}

#[test]
fn values() {
    check(
        &[
            (r#"{"const":null}"#, &["null"], &["false", "0"]),
            (r#"{"enum":[true,"x",0]}"#, &["true", "\"x\"", "0", "0.0"], &["false", "\"y\"", "1"]),
            (
                r#"{"const":{"b":[1,{"c":null}],"a":"x"}}"#,
                &[r#"{"b":[1,{"c":null}],"a":"x"}"#, r#"{"b":[1.0,{"c":null}],"a":"x"}"#],
                &[r#"{"a":"x","b":[1,{"c":null}]}"#, r#"{"b":[1],"a":"x"}"#, r#"{"a":"x"}"#],
            ),
            (
                r#"{"enum":[{"a":1},{"a":2,"b":3},[1],[]],"properties":{"a":{"minimum":2}},
                    "maxItems":0}"#,
                &[r#"{"a":2,"b":3}"#, "[]"],
                &[r#"{"a":1}"#, "[1]", "{}"],
            ),
            (
                r#"{"$schema":"http://json-schema.org/draft-04/schema#","const":1}"#,
                &["1", "2"],
                &[],
            ),
            (r#"{"type":"string","enum":["a",1,null]}"#, &["\"a\""], &["1", "null"]),
            (r#"{"const":"a","enum":["a","b"]}"#, &["\"a\""], &["\"b\""]),
            (r#"{"not":{"type":["null","number"]}}"#, &["\"a\"", "{}"], &["null", "1", "1.5"]),
        ],
        Order::Declared,
    );
}

#[test]
fn combinations_merge_exactly() {
    check(
        &[
            (
                r##"{"allOf":[{"$ref":"#/$defs/base"},{"properties":{"b":{"minimum":2}}}],
                    "properties":{"c":{}},"required":["c"],
                    "$defs":{"base":{"type":"object","properties":{"a":{},"b":{"type":"integer"}}}}}"##,
                &[r#"{"a":0,"b":2,"c":0}"#, r#"{"c":0,"d":0}"#],
                &[r#"{"b":1,"c":0}"#, r#"{"b":2.5,"c":0}"#, r#"{"a":0}"#, r#"{"c":0,"a":0}"#],
            ),
            // A name that one side does not declare is an additional one there.
            (
                r#"{"type":"object","allOf":[
                    {"properties":{"a":{},"x":{}},"additionalProperties":{"type":"string"}},
                    {"properties":{"b":{"minLength":2},"x":{"type":"null"}}}]}"#,
                &[r#"{"a":1,"x":null,"b":"xx","c":""}"#],
                &[r#"{"b":1}"#, r#"{"b":"x"}"#, r#"{"c":1}"#, r#"{"x":1}"#],
            ),
            (
                r#"{"type":"object","allOf":[{"properties":{"a":{}},"additionalProperties":false},
                    {"properties":{"b":{}}}]}"#,
                &[r#"{"a":1}"#, "{}"],
                &[r#"{"b":1}"#, r#"{"c":1}"#],
            ),
            (
                r#"{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],
                    "anyOf":[{"properties":{"k":{"const":"a"},"v":{"type":"null"}}},
                             {"properties":{"k":{"enum":["b"]},"v":{"type":"integer"}}}]}"#,
                &[r#"{"k":"a","v":null}"#, r#"{"k":"b","v":1}"#],
                &[r#"{"k":"a","v":1}"#, r#"{"k":"c"}"#, "{}"],
            ),
            (
                r#"{"anyOf":[{"type":"string"},{"type":"object"}],
                    "allOf":[{"anyOf":[{"minLength":2},{"required":["a"]}]}]}"#,
                &["\"aa\"", "\"a\"", "{}"],
                &["1"],
            ),
            (r#"{"allOf":[true,{}],"anyOf":[{"type":"null"}]}"#, &["null"], &["1"]),
        ],
        Order::Declared,
    );
}

#[test]
fn references_and_recursion() {
    check(
        &[
            (
                r##"{"$ref":"#/$defs/list","$defs":{"list":{"type":"object",
                    "properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/list"}},
                    "required":["v"],"additionalProperties":false}}}"##,
                &[r#"{"v":1}"#, r#"{"v":1,"next":{"v":2,"next":{"v":3}}}"#],
                &[r#"{"v":1,"next":{}}"#, r#"{"v":1,"next":1}"#],
            ),
            (
                r##"{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#"}}]}"##,
                &["null", "[null,[[],[null]]]"],
                &["[1]", "[[[{}]]]"],
            ),
            // Siblings of a reference: asserted since 2019-09, hidden before.
            (
                r##"{"$ref":"#/$defs/a","minLength":2,"$defs":{"a":{"type":"string"}}}"##,
                &["\"aa\""],
                &["\"a\"", "1"],
            ),
            (
                r##"{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a",
                    "minLength":2,"not":5,"definitions":{"a":{"type":"string"}}}"##,
                &["\"aa\"", "\"a\""],
                &["1"],
            ),
            (
                r##"{"properties":{"a":{"$ref":"#/properties/b~1c"},"b/c":{"type":"null"}}}"##,
                &[r#"{"a":null}"#],
                &[r#"{"a":1}"#],
            ),
            // A conjunction that recurs.
            (
                r##"{"$ref":"#/$defs/a","properties":{"n":{"required":["x"]}},"$defs":{
                    "a":{"type":"object","properties":{"x":{},"n":{"$ref":"#"}}}}}"##,
                &["{}", r#"{"x":0,"n":{"x":0,"n":{"x":1}}}"#],
                &[r#"{"n":{}}"#, r#"{"n":{"x":0,"n":{}}}"#],
            ),
            // What is not reached is not examined.
            (r#"{"type":"null","$defs":{"a":{"not":{"minimum":1}},"b":3}}"#, &["null"], &["1"]),
            (r#"{"type":"string","properties":{"a":{"not":{"minimum":1}}}}"#, &["\"\""], &["{}"]),
        ],
        Order::Declared,
    );
}

#[test]
fn one_of_with_branches_that_exclude_each_other() {
    check(
        &[
            (r#"{"oneOf":[{"type":"null"},{"type":"string"}]}"#, &["null", "\"\""], &["1"]),
            (r#"{"oneOf":[{"minimum":3}]}"#, &["3", "null"], &["2"]),
            (
                r#"{"oneOf":[{"const":1},{"enum":[2,"x"]},{"const":"y"}]}"#,
                &["1", "2", "\"y\""],
                &["3"],
            ),
            (
                r#"{"oneOf":[{"type":"number","maximum":1},{"type":"number","exclusiveMinimum":1}]}"#,
                &["1", "1.5"],
                &["null"],
            ),
            (
                r#"{"oneOf":[{"type":"integer","maximum":1},{"type":"integer","minimum":2}]}"#,
                &["1", "2"],
                &["1.5"],
            ),
            (
                r#"{"type":"string","oneOf":[{"pattern":"^a"},{"pattern":"^b"},{"maxLength":0}]}"#,
                &["\"a\"", "\"b\"", "\"\""],
                &["\"c\""],
            ),
            (
                r#"{"type":"object","required":["k"],"oneOf":[
                    {"properties":{"k":{"const":"a"}}},
                    {"properties":{"k":{"const":"b"},"x":{"type":"null"}}}]}"#,
                &[r#"{"k":"a","x":1}"#, r#"{"k":"b","x":null}"#],
                &[r#"{"k":"b","x":1}"#, "{}"],
            ),
            (
                r#"{"type":"object","oneOf":[
                    {"properties":{"a":{}},"required":["a"],"additionalProperties":false},
                    {"properties":{"b":{}},"required":["b"],"additionalProperties":false}]}"#,
                &[r#"{"a":1}"#, r#"{"b":1}"#],
                &["{}", r#"{"a":1,"b":1}"#],
            ),
            (
                r#"{"type":"array","oneOf":[{"maxItems":1},{"minItems":2,"items":{"type":"null"}}]}"#,
                &["[1]", "[null,null]"],
                &["[1,1]"],
            ),
            (
                r#"{"type":"array","minItems":1,"oneOf":[
                    {"prefixItems":[{"const":"a"}]},{"prefixItems":[{"const":"b"}]}]}"#,
                &["[\"a\"]", "[\"b\",1]"],
                &["[1]", "[]"],
            ),
            // The proof goes through the schema that is being proved.
            (
                r##"{"oneOf":[{"type":"null"},{"type":"object","required":["t","l"],
                    "properties":{"t":{"const":0},"l":{"$ref":"#"}}},
                    {"type":"object","required":["t"],"properties":{"t":{"const":1}}}]}"##,
                &["null", r#"{"t":1}"#, r#"{"t":0,"l":{"t":1}}"#],
                &[r#"{"t":0}"#, r#"{"t":2}"#],
            ),
        ],
        Order::Declared,
    );
}

fn kind_and_pointer(schema: &str) -> (String, String) {
    let error = parse(schema).map(|_| schema.to_owned()).unwrap_err();
    let kind = match error.kind {
        SchemaErrorKind::Invalid { keyword } => format!("invalid {}", keyword.unwrap_or_default()),
        SchemaErrorKind::Unsupported { keyword } => format!("unsupported {keyword}"),
        SchemaErrorKind::Unsatisfiable => "unsatisfiable".into(),
        SchemaErrorKind::Limit { limit, .. } => format!("limit {limit}"),
    };
    (kind, error.pointer)
}

#[test]
fn what_is_refused_names_keyword_and_place() {
    for (schema, kind, pointer) in [
        ("", "invalid ", ""),
        ("3", "invalid ", ""),
        (
            r#"{"properties":{"a/b":{"items":[]}},"$schema":"https://json-schema.org/draft/2020-12/schema"}"#,
            "invalid items",
            "/properties/a~1b/items",
        ),
        (r#"{"properties":{"a":3}}"#, "invalid ", "/properties/a"),
        (r#"{"properties":[]}"#, "invalid properties", "/properties"),
        (r#"{"required":"a"}"#, "invalid required", "/required"),
        (r#"{"required":true}"#, "invalid required", "/required"),
        (r#"{"required":["a",1]}"#, "invalid required", "/required/1"),
        (r#"{"type":"any"}"#, "invalid type", "/type"),
        (r#"{"type":[]}"#, "invalid type", "/type"),
        (r#"{"type":["null","text"]}"#, "invalid type", "/type/1"),
        (r#"{"type":{}}"#, "invalid type", "/type"),
        (r#"{"enum":"a"}"#, "invalid enum", "/enum"),
        (r#"{"anyOf":[]}"#, "invalid anyOf", "/anyOf"),
        (r#"{"allOf":{}}"#, "invalid allOf", "/allOf"),
        (r#"{"minLength":-1}"#, "invalid minLength", "/minLength"),
        (r#"{"maxLength":1.5}"#, "invalid maxLength", "/maxLength"),
        (r#"{"minItems":"1"}"#, "invalid minItems", "/minItems"),
        (r#"{"minimum":null}"#, "invalid minimum", "/minimum"),
        (r#"{"exclusiveMinimum":true}"#, "invalid exclusiveMinimum", "/exclusiveMinimum"),
        (r#"{"multipleOf":0}"#, "invalid multipleOf", "/multipleOf"),
        (r#"{"pattern":"("}"#, "invalid pattern", "/pattern"),
        (r#"{"pattern":3}"#, "invalid pattern", "/pattern"),
        (r#"{"pattern":"(a)\\1"}"#, "unsupported pattern", "/pattern"),
        (r#"{"format":3}"#, "invalid format", "/format"),
        (r#"{"uniqueItems":1}"#, "invalid uniqueItems", "/uniqueItems"),
        (r##"{"$ref":"#/nowhere"}"##, "invalid $ref", "/$ref"),
        (r#"{"$ref":3}"#, "invalid $ref", "/$ref"),
        (r#"{"items":{"$ref":"other.json"}}"#, "unsupported $ref", "/items/$ref"),
        (r##"{"oneOf":[{"$ref":"#"},{"type":"null"}]}"##, "invalid $ref", ""),
        (r##"{"$ref":"#","unevaluatedItems":false}"##, "invalid $ref", ""),
        (r##"{"anyOf":[{"type":"null"},{"$ref":"#"}]}"##, "invalid $ref", ""),
        (r##"{"$dynamicRef":"#a"}"##, "invalid $dynamicRef", "/$dynamicRef"),
        (
            r##"{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveRef":"#a"}"##,
            "invalid $recursiveRef",
            "/$recursiveRef",
        ),
        (r#"{"not":3}"#, "invalid not", "/not"),
        (r#"{"not":{"not":{"type":"x"}}}"#, "invalid type", "/not/not/type"),
        (r##"{"not":{"$ref":"#"}}"##, "invalid $ref", ""),
        (r#"{"if":{},"then":3}"#, "invalid ", "/then"),
        (r##"{"if":{"minimum":1},"then":{"$ref":"#"}}"##, "invalid $ref", ""),
        (r#"{"patternProperties":["a"]}"#, "invalid patternProperties", "/patternProperties"),
        (r#"{"patternProperties":{"(":{}}}"#, "invalid patternProperties", "/patternProperties/("),
        (
            r#"{"patternProperties":{"(a)\\1":{}}}"#,
            "unsupported patternProperties",
            "/patternProperties/(a)\\1",
        ),
        (r#"{"propertyNames":3}"#, "invalid ", "/propertyNames"),
        (r#"{"minProperties":-1}"#, "invalid minProperties", "/minProperties"),
        (r#"{"maxProperties":"1"}"#, "invalid maxProperties", "/maxProperties"),
        (r#"{"dependencies":["a"]}"#, "invalid dependencies", "/dependencies"),
        (r#"{"dependencies":{"a":[1]}}"#, "invalid dependencies", "/dependencies/a/0"),
        (r#"{"dependentRequired":{"a":{}}}"#, "invalid dependentRequired", "/dependentRequired/a"),
        (r#"{"dependentSchemas":{"a":["b"]}}"#, "invalid ", "/dependentSchemas/a"),
        (r##"{"dependentSchemas":{"a":{"$ref":"#"}}}"##, "invalid $ref", ""),
        (r#"{"allOf":[{}],"unevaluatedItems":3}"#, "invalid ", "/unevaluatedItems"),
        (r#"{"contains":1}"#, "invalid ", "/contains"),
        (r#"{"contains":{},"minContains":0.5}"#, "invalid minContains", "/minContains"),
        (r#"{"minimum":1e99999}"#, "limit number_exponent", "/minimum"),
        (r#"{"minLength":4294967296}"#, "limit min_length", "/minLength"),
    ] {
        assert_eq!(kind_and_pointer(schema), (kind.into(), pointer.into()), "{schema}");
    }
}

#[test]
fn circles_of_references_add_nothing() {
    let cases: &[Case] = &[
        (r##"{"$ref":"#"}"##, &["1", "{}"], &[]),
        (r##"{"allOf":[{"$ref":"#"},{"type":"integer"}]}"##, &["1"], &["\"a\"", "1.5"]),
        (
            r##"{"$ref":"#/$defs/a","$defs":{
                "a":{"allOf":[{"$ref":"#/$defs/b"},{"minimum":2}],"type":"integer"},
                "b":{"anyOf":[{"$ref":"#/$defs/c"}]},
                "c":{"$ref":"#/$defs/a","maximum":4}}}"##,
            &["2", "4"],
            &["1", "5", "3.5"],
        ),
        (
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","allOf":[
                {"$ref":"#/$defs/a"},{"properties":{"x":{"$ref":"#/$defs/a"}}}]}}}"##,
            &["{}", r#"{"x":{"x":{}}}"#],
            &["1", r#"{"x":1}"#],
        ),
        (
            r##"{"properties":{"x":{"$ref":"#/$defs/a"},"y":{"$ref":"#/$defs/b"}},"$defs":{
                "a":{"$ref":"#/$defs/b","minimum":1},"b":{"$ref":"#/$defs/a","maximum":1}}}"##,
            &["{}", r#"{"x":1,"y":1}"#],
            &[r#"{"x":0}"#, r#"{"x":2}"#, r#"{"y":0}"#, r#"{"y":2}"#],
        ),
        // What the members evaluate counts outside of the circle.
        (
            r##"{"$ref":"#/$defs/a","unevaluatedProperties":false,"$defs":{
                "a":{"$ref":"#/$defs/b","properties":{"x":{}}},
                "b":{"$ref":"#/$defs/a","properties":{"y":{}}}}}"##,
            &["{}", r#"{"x":1,"y":1}"#],
            &[r#"{"z":0}"#],
        ),
    ];
    check(cases, Order::Declared);
}

#[test]
fn unsatisfiable_schemas_are_refused() {
    for schema in [
        "false",
        r#"{"not":{}}"#,
        r#"{"not":{"title":"anything"}}"#,
        r#"{"enum":[]}"#,
        r#"{"type":"integer","not":{"type":"integer"}}"#,
        r#"{"type":"string","minLength":3,"maxLength":2}"#,
        r#"{"type":"string","pattern":"^a$","minLength":2}"#,
        r#"{"type":"string","allOf":[{"pattern":"^a"},{"pattern":"^b"}]}"#,
        r#"{"enum":["a"],"pattern":"^b"}"#,
        r#"{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}"#,
        r#"{"type":"number","minimum":2,"maximum":1}"#,
        r#"{"enum":[1,2],"minimum":3}"#,
        r#"{"type":"object","required":["a"],"additionalProperties":false}"#,
        r#"{"type":"object","required":["a"],"properties":{"a":false}}"#,
        r#"{"type":"object","required":["a"],"maxProperties":0}"#,
        r#"{"type":"array","items":false,"minItems":1}"#,
        r#"{"type":"array","minItems":2,"maxItems":1}"#,
        r#"{"type":"array","prefixItems":[{},{"enum":[]}],"minItems":2}"#,
        r#"{"const":{"a":[1]},"properties":{"a":{"items":{"type":"string"}}}}"#,
        r#"{"allOf":[{"type":"null"},{"type":"string"}]}"#,
        // Only infinite values would do.
        r##"{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}"##,
        r##"{"type":"array","minItems":1,"items":{"$ref":"#"}}"##,
        r##"{"$ref":"#/$defs/a","$defs":{
            "a":{"type":"object","required":["x"],"properties":{"x":{"$ref":"#/$defs/b"}}},
            "b":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"array","minItems":1,"items":{"$ref":"#/$defs/b"}}]}}}"##,
    ] {
        assert_eq!(kind_and_pointer(schema).0, "unsatisfiable", "{schema}");
    }
}

#[test]
fn finite_values_are_found_through_circles() {
    // Each needs the other unless the second takes its last way out, which is met first while it
    // is still open.
    let schema = r##"{"$ref":"#/$defs/a","$defs":{
        "a":{"type":"object","required":["x"],"properties":{"x":{"$ref":"#/$defs/b"}}},
        "b":{"anyOf":[
            {"type":"object","required":["y"],"properties":{"y":{"$ref":"#/$defs/a"}}},
            {"type":"object","required":["z"],"properties":{"z":{"$ref":"#/$defs/c"}}}]},
        "c":{"anyOf":[
            {"type":"object","required":["y"],"properties":{"y":{"$ref":"#/$defs/b"}}},
            {"type":"null"}]}}}"##;
    assert!(parse(schema).is_ok());
}

fn root(schema: &str) -> (SchemaSet, Arc<Normal>) {
    let set = parse(schema).unwrap();
    let normal = set.normal(set.root()).unwrap();
    (set, normal)
}

#[test]
fn dead_alternatives_are_pruned_and_forbidden_keys_stay() {
    let (set, normal) = root(
        r#"{"anyOf":[
            {"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^a","maxLength":0}}},
            {"type":"object","properties":{"b":{"enum":[]},"c":{"allOf":[{"type":"null"},{"type":"string"}]}}},
            {"type":"array","items":{"enum":[]}},
            {"type":"string","pattern":"^a","maxLength":0}]}"#,
    );
    assert!(normal.strings.is_empty() && normal.numbers.is_empty());
    let [object] = &normal.objects[..] else { panic!("{normal:?}") };
    let names: Vec<_> = object.properties.iter().map(|p| (&*p.name, p.required)).collect();
    assert_eq!(names, [("b", false), ("c", false)]);
    assert!(object.properties.iter().all(|p| !set.is_satisfiable(p.schema).unwrap()));
    assert_eq!(object.additional(), Some(SchemaId::ANY));
    let [array] = &normal.arrays[..] else { panic!("{normal:?}") };
    assert_eq!((array.items, array.max_items), (None, Some(0)));
    assert_eq!(*set.normal(SchemaId::NEVER).unwrap(), Normal::default());
}

#[test]
fn alternatives_without_constraint_swallow_the_others() {
    let (_, normal) = root(
        r#"{"anyOf":[{"type":["string","object"]},{"pattern":"a"},{"properties":{"a":{}}},{"items":{}},
            {"type":"number","minimum":1}]}"#,
    );
    assert_eq!(normal.strings.len(), 1);
    assert_eq!(normal.objects.len(), 1);
    assert_eq!(normal.arrays.len(), 1);
    assert_eq!(normal.numbers.len(), 1);
    let (_, normal) = root(
        r#"{"anyOf":[{"const":{"a":1}},{"const":{"b":1}},{"required":["x"]},{"required":["x"]}],"type":"object"}"#,
    );
    assert_eq!(normal.objects.len(), 3);
}

#[test]
fn equal_demands_share_an_id() {
    let (_, normal) = root(
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"title":"b","$ref":"#/$defs/x"},
            "c":{"allOf":[{"$ref":"#/$defs/x"}]},"d":{"description":"any"},"e":true},
            "$defs":{"x":{"type":"string"}}}"##,
    );
    let ids: Vec<_> = normal.objects[0].properties.iter().map(|p| p.schema).collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2], "{ids:?}");
    assert_eq!(ids[3..], [SchemaId::ANY, SchemaId::ANY]);
}

#[test]
fn free_order_is_not_judged_by_the_declared_one() {
    check(
        &[(
            r#"{"properties":{"a":{},"b":{"type":"null"}}}"#,
            &[r#"{"b":null,"a":1}"#],
            &[r#"{"b":1}"#],
        )],
        Order::Free,
    );
}

#[test]
fn hostile_schemas_meet_limits() {
    let nested = format!("{}true{}", r#"{"items":"#.repeat(600), "}".repeat(600));
    assert_eq!(kind_and_pointer(&nested).0, "limit nesting");

    // A long chain of references is no problem.
    let chain: Vec<String> = (0..20_000)
        .map(|i| {
            format!(r##""d{i}":{{"allOf":[{{"$ref":"#/$defs/d{}"}},{{"type":"object"}}]}}"##, i + 1)
        })
        .collect();
    let chain =
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d20000":{{}}}}}}"##, chain.join(","));
    assert!(parse(&chain).is_ok());
    let required: Vec<String> = (0..20_000)
        .map(|i| {
            format!(
                r##""d{i}":{{"type":"object","required":["x"],"properties":{{"x":{{"$ref":"#/$defs/d{}"}}}}}}"##,
                i + 1
            )
        })
        .collect();
    let required = format!(
        r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d20000":{{"type":"null"}}}}}}"##,
        required.join(",")
    );
    assert!(parse(&required).is_ok());

    // 3^10 combinations. Those of objects stand side by side.
    let product = |kind: &str, branch: &dyn Fn(usize, usize) -> String| {
        let factor =
            |i| format!(r#"{{"anyOf":[{},{},{}]}}"#, branch(i, 0), branch(i, 1), branch(i, 2));
        let factors: Vec<String> = (0..10).map(factor).collect();
        format!(r#"{{"type":"{kind}","allOf":[{}]}}"#, factors.join(","))
    };
    let objects = product("object", &|i, j| format!(r#"{{"required":["k{i}{j}"]}}"#));
    assert!(parse(&objects).is_ok());
    let arrays = product("array", &|i, j| format!(r#"{{"contains":{{"const":"k{i}{j}"}}}}"#));
    assert_eq!(kind_and_pointer(&arrays).0, "limit alternatives");

    // Many branches, which a property tells apart.
    let branches: Vec<String> = (0..8000).map(|i| format!(r#"{{"const":{{"k":{i}}}}}"#)).collect();
    let one_of = format!(r#"{{"oneOf":[{}]}}"#, branches.join(","));
    assert_eq!(kind_and_pointer(&one_of).0, "limit alternatives");

    // Some that all have to be compared.
    let limits = Limits { steps: 5_000, ..Limits::default() };
    let branches: Vec<String> = (0..100).map(|i| format!(r#"{{"minimum":{i}}}"#)).collect();
    let one_of = format!(r#"{{"oneOf":[{}]}}"#, branches.join(","));
    let error = SchemaSet::parse(&one_of, SchemaOptions { limits, ..options() }).unwrap_err();
    assert_eq!(error.kind, SchemaErrorKind::Limit { limit: "steps", maximum: 5_000 });

    let limits = Limits { schemas: 10, ..Limits::default() };
    let options = SchemaOptions { limits, ..options() };
    let many: Vec<String> = (0..50).map(|i| format!(r#""p{i}":{{"minLength":{i}}}"#)).collect();
    let many = format!(r#"{{"required":["p1"],"properties":{{{}}}}}"#, many.join(","));
    let set = SchemaSet::parse(&many, options).unwrap();
    let error = set.normal(set.root()).unwrap_err();
    assert_eq!(error.kind, SchemaErrorKind::Limit { limit: "schemas", maximum: 10 });
}

#[test]
fn large_enumerations_are_linear() {
    let values: Vec<String> = (0..100_000).map(|i| format!("\"value {i}\"")).collect();
    let schema = format!(r#"{{"type":"string","enum":[{}]}}"#, values.join(","));
    let (_, normal) = root(&schema);
    assert_eq!(normal.strings[0].one_of.as_ref().unwrap().len(), 100_000);
    let branches: Vec<String> = values.iter().map(|v| format!(r#"{{"const":{v}}}"#)).collect();
    let (_, normal) = root(&format!(r#"{{"anyOf":[{}]}}"#, branches.join(",")));
    assert_eq!(normal.strings[0].one_of.as_ref().unwrap().len(), 100_000);
}

#[test]
fn a_set_is_shared_between_threads() {
    let set = parse(r##"{"type":"object","properties":{"a":{"$ref":"#"},"b":{"type":"string"}}}"##);
    let set = set.unwrap();
    let normals: Vec<Arc<Normal>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| set.normal(set.root()).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(normals.iter().all(|normal| Arc::ptr_eq(normal, &normals[0])));
}
