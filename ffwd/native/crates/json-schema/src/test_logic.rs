//! Schemas with logic, and keywords over several members or items, as data.

use serde_json::Value;

use super::test_validator::{validates, Order};
use super::tests::{check, parse};
use super::SchemaErrorKind;

#[test]
fn one_of_with_branches_that_overlap() {
    check(
        &[
            (
                r#"{"oneOf":[{"type":"integer"},{"minimum":2}]}"#,
                &["1", "2.5", "\"x\""],
                &["3", "1.5"],
            ),
            (
                r#"{"oneOf":[{"required":["a"]},{"required":["b"]},{"required":["c"]}]}"#,
                &[r#"{"a":1}"#, r#"{"b":1,"x":2}"#],
                &["{}", "1", r#"{"a":1,"b":1}"#, r#"{"a":1,"b":1,"c":1}"#],
            ),
            (
                r#"{"type":"object","oneOf":[{"properties":{"a":{"type":"integer"}}},
                    {"properties":{"b":{"type":"integer"}}}]}"#,
                &[r#"{"a":1,"b":""}"#, r#"{"a":"","b":1}"#, r#"{"a":""}"#],
                &["{}", r#"{"a":1}"#, r#"{"a":1,"b":1}"#, r#"{"a":"","b":""}"#],
            ),
            (
                r#"{"oneOf":[{"type":"string","minLength":2},{"type":"string","maxLength":4}]}"#,
                &[r#""a""#, r#""abcde""#],
                &[r#""abc""#, "1"],
            ),
            (
                r#"{"oneOf":[{"items":{"type":"integer"}},{"minItems":2}],"type":"array"}"#,
                &["[]", "[1]", r#"["a","b"]"#],
                &["[1,2]", r#"["a"]"#],
            ),
        ],
        Order::Free,
    );
}

#[test]
fn not_if_and_dependencies() {
    check(
        &[
            (
                r#"{"not":{"required":["a"],"properties":{"b":{"type":"integer"}}},"type":"object"}"#,
                &["{}", r#"{"b":1}"#, r#"{"a":1,"b":""}"#],
                &[r#"{"a":1}"#, r#"{"a":1,"b":2}"#],
            ),
            (
                r#"{"not":{"additionalProperties":{"type":"integer"},"properties":{"a":true}}}"#,
                &[r#"{"x":""}"#, r#"{"a":1,"x":null}"#],
                &["{}", r#"{"a":""}"#, r#"{"x":1}"#, "1"],
            ),
            (r#"{"not":{"not":{"multipleOf":3}}}"#, &["9", "\"x\"", "0"], &["10", "0.5"]),
            (
                r#"{"not":{"prefixItems":[{"const":1}],"items":{"const":2}},"type":"array"}"#,
                &["[2]", "[1,3]", "[1,2,1]"],
                &["[]", "[1]", "[1,2,2]"],
            ),
            (
                r#"{"if":{"properties":{"k":{"const":1}}},"then":{"required":["a"]},
                    "else":{"required":["b"]},"type":"object"}"#,
                &[r#"{"a":0}"#, r#"{"k":1,"a":0}"#, r#"{"k":2,"b":0}"#],
                &["{}", r#"{"k":1}"#, r#"{"k":2,"a":0}"#],
            ),
            (
                r#"{"dependentRequired":{"a":["b","c"]},"dependentSchemas":{"b":{"maxProperties":2}}}"#,
                &["{}", r#"{"b":1}"#, r#"{"c":1,"d":2,"e":3}"#],
                &[r#"{"a":1}"#, r#"{"a":1,"b":2,"c":3}"#, r#"{"b":1,"c":2,"d":3}"#],
            ),
            (
                r#"{"dependentRequired":{"a":["z"],"b":["z"],"c":["z"],"d":["z"],"e":["z"]}}"#,
                &["{}", r#"{"z":1}"#, r#"{"a":1,"e":1,"z":1}"#],
                &[r#"{"a":1}"#, r#"{"x":1,"c":1}"#],
            ),
        ],
        Order::Free,
    );
}

#[test]
fn keys_by_pattern_and_number() {
    check(
        &[
            (
                r#"{"patternProperties":{"^a":{"type":"integer"},"z$":{"minimum":3}},
                    "additionalProperties":false}"#,
                &["{}", r#"{"a":1}"#, r#"{"z":"x"}"#, r#"{"az":4}"#],
                &[r#"{"b":1}"#, r#"{"a":""}"#, r#"{"az":1}"#, r#"{"bz":1}"#],
            ),
            (
                r#"{"properties":{"ab":{"maximum":9}},"patternProperties":{"^a":{"minimum":1}},
                    "required":["ab"]}"#,
                &[r#"{"ab":5,"x":0}"#],
                &["{}", r#"{"ab":0}"#, r#"{"ab":10}"#, r#"{"ab":5,"ac":0}"#],
            ),
            (
                r#"{"propertyNames":{"maxLength":2},"minProperties":1,"maxProperties":2}"#,
                &[r#"{"ab":1}"#, r#"{"a":1,"b":2}"#],
                &["{}", r#"{"abc":1}"#, r#"{"a":1,"b":2,"c":3}"#],
            ),
            (
                r#"{"propertyNames":{"enum":["a","b"]},"minProperties":2}"#,
                &[r#"{"b":1,"a":2}"#],
                &[r#"{"a":1}"#, r#"{"a":1,"c":2}"#],
            ),
        ],
        Order::Free,
    );
}

#[test]
fn items_that_count_or_differ() {
    check(
        &[
            (
                r#"{"contains":{"type":"integer"},"minContains":2,"maxContains":3}"#,
                &["[1,2]", r#"[1,"a",2,3]"#, "{}"],
                &["[1]", "[1,2,3,4]", r#"["a"]"#],
            ),
            (
                r#"{"uniqueItems":true}"#,
                &["[]", "[1,2,\"1\"]", r#"[{"a":1},{"a":2}]"#],
                &["[1,1.0]", r#"[{"a":1,"b":2},{"b":2,"a":1}]"#],
            ),
            (
                r#"{"type":"array","not":{"uniqueItems":true}}"#,
                &["[1,1]", "[2,1,2]"],
                &["[]", "[1]", "[1,2]"],
            ),
        ],
        Order::Free,
    );
}

#[test]
fn what_has_not_been_evaluated() {
    check(
        &[
            (
                r#"{"properties":{"a":true},"anyOf":[{"properties":{"b":{"const":1}},"required":["b"]},
                    {"properties":{"c":{"const":1}},"required":["c"]}],"unevaluatedProperties":false}"#,
                &[r#"{"b":1}"#, r#"{"a":0,"c":1}"#, r#"{"b":1,"c":1}"#],
                &["{}", r#"{"b":1,"c":2}"#, r#"{"b":1,"d":1}"#],
            ),
            (
                r#"{"if":{"required":["k"],"properties":{"k":true}},"then":{"properties":{"a":true}},
                    "unevaluatedProperties":{"type":"integer"}}"#,
                &[r#"{"k":"","a":""}"#, r#"{"a":1}"#],
                &[r#"{"a":""}"#, r#"{"k":"","b":""}"#],
            ),
            (
                r#"{"prefixItems":[true],"contains":{"type":"string"},"unevaluatedItems":false,
                    "allOf":[{"prefixItems":[true,true]}]}"#,
                &[r#"["a"]"#, r#"[1,2,"a"]"#, r#"[1,"a","b"]"#],
                &["[1]", r#"["a",2,3]"#],
            ),
        ],
        Order::Free,
    );
}

#[test]
fn what_contradicts_itself_is_unsatisfiable() {
    for schema in [
        r#"{"oneOf":[{"type":"string"},{"type":"string"}]}"#,
        r#"{"allOf":[{"required":["a"]},{"not":{"required":["a"]}}],"type":"object"}"#,
        r#"{"type":"object","maxProperties":1,"required":["a"],"not":{"properties":{"b":{"const":1}}}}"#,
        r#"{"type":"object","propertyNames":{"enum":["a"]},"minProperties":2}"#,
        r#"{"type":"array","items":{"enum":[1,2]},"uniqueItems":true,"minItems":3}"#,
        r#"{"type":"array","items":{"type":"string"},"contains":{"type":"integer"}}"#,
        r#"{"type":"array","prefixItems":[{"enum":[1,2]},{"enum":[1,2]},{"enum":[2,1]}],
            "uniqueItems":true,"minItems":3}"#,
        r#"{"type":"integer","multipleOf":10,"minimum":11,"maximum":19}"#,
        r##"{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}"##,
        r#"{"patternProperties":{"^a":false},"required":["ab"],"type":"object"}"#,
    ] {
        let error = parse(schema).map(|_| schema).unwrap_err();
        assert_eq!(error.kind, SchemaErrorKind::Unsatisfiable, "{schema}: {error}");
    }
}

/// Ten thousand branches: told apart by value, or nothing but the limit of steps would come of it.
#[test]
fn one_of_thousands_of_constants() {
    let constants: Vec<String> = (0..10_000)
        .map(|i| match i % 3 {
            0 => format!(r#"{{"const":"k{i}"}}"#),
            1 => format!(r#"{{"const":{}}}"#, i - 7_000),
            _ => format!(r#"{{"enum":["k{i}",{i}.5,null]}}"#),
        })
        .collect();
    let schema = format!(r#"{{"oneOf":[{},{{"enum":["k0",-6999.0]}}]}}"#, constants.join(","));
    let set = parse(&schema).unwrap();
    let accepts = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        validates(&set, set.root(), &value, Order::Declared)
    };
    for valid in ["\"k3\"", "\"k2\"", "\"k9998\"", "-6996", "2997", "2.5", "9998.5"] {
        assert!(accepts(valid), "{valid}");
    }
    // The last branch lists two values a second time.
    for invalid in ["\"k0\"", "-6999", "null", "\"k1\"", "3.5", "3000", "true", "[]", "{}"] {
        assert!(!accepts(invalid), "{invalid}");
    }
}

/// Branches of which some share a tag, some a value, and some have neither.
#[test]
fn one_of_branches_are_apart_by_tag_or_not() {
    let tagged = |kind: &str, name: &str| {
        format!(
            r#"{{"type":"object","required":["kind"],
                 "properties":{{"kind":{{"const":"{kind}"}},"{name}":{{"type":"integer"}}}}}}"#
        )
    };
    let schema = format!(
        r#"{{"oneOf":[{},{},{},{{"const":5}},{{"type":"integer"}},{{"type":["string","null"]}}]}}"#,
        tagged("a", "x"),
        tagged("a", "y"),
        tagged("b", "x"),
    );
    let set = parse(&schema).unwrap();
    let accepts = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        validates(&set, set.root(), &value, Order::Declared)
    };
    for valid in [
        r#"{"kind":"a","x":1,"y":"no"}"#,
        r#"{"kind":"a","y":2,"x":null}"#,
        r#"{"kind":"b"}"#,
        r#"{"kind":"b","x":3,"y":4}"#,
        "6",
        "null",
        "\"text\"",
    ] {
        assert!(accepts(valid), "{valid}");
    }
    let both = [r#"{"kind":"a"}"#, r#"{"kind":"a","x":1,"y":2}"#, "5", "5.0"];
    let none = [r#"{"kind":"b","x":null}"#, r#"{"kind":"c"}"#, "{}", "1.5", "true", "[]"];
    for invalid in both.into_iter().chain(none) {
        assert!(!accepts(invalid), "{invalid}");
    }
}
