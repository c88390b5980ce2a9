//! Arrays whose items must differ, or are counted by several `contains`: what can be filled.

use super::test_emptiness::options;
use super::{ArraySpec, SchemaErrorKind, SchemaSet};
use ffwd_bounds::limits::Limits;
use ffwd_bounds::meter::Meter;

const FLAG: &str = r#"{"type":"object","properties":{"x":{"type":"boolean"}},"required":["x"],
    "additionalProperties":false}"#;

fn is_satisfiable(schema: &str) -> bool {
    match SchemaSet::parse(schema, options()) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind, SchemaErrorKind::Unsatisfiable, "{schema}");
            false
        }
    }
}

/// An array with `uniqueItems`, as many items, and further keywords.
fn unique(items: u64, keywords: &str) -> String {
    format!(r#"{{"type":"array","uniqueItems":true,"minItems":{items},{keywords}}}"#)
}

/// Each kind of items has exactly so many values.
#[test]
fn items_can_differ_while_there_are_values() {
    for (count, items) in [
        (1, r#"{"type":"array","items":{"const":"a"},"minItems":1,"maxItems":1}"#.into()),
        (2, FLAG.into()),
        (3, FLAG.replace(r#""required":["x"],"#, "")),
        (1501, r#"{"type":"integer","minimum":0,"maximum":1500}"#.into()),
        (5, unique(0, r#""items":{"enum":["a","b"]}"#)),
        (2, unique(2, r#""items":{"enum":["a","b"]}"#)),
        (7, r#"{"type":"array","items":{"type":"boolean"},"maxItems":2}"#.into()),
        (3, r#"{"enum":[[1],[1.0],{"a":1,"b":2},{"b":2,"a":1},3]}"#.into()),
        (2, r#"{"allOf":[{"enum":[1,2,[3],{"a":4}]},{"not":{"enum":[2,{"a":4}]}}]}"#.into()),
        (2, format!(r#"{{"allOf":[{FLAG},{{"not":{{"const":{{"x":1}}}}}}]}}"#)),
        (1, format!(r#"{{"allOf":[{FLAG},{{"not":{{"const":{{"x":true}}}}}}]}}"#)),
        (3, r#"{"type":"string","pattern":"^(a|bc)?$"}"#.into()),
        // Objects with exclusions of which infinitely many would meet one.
        (
            2,
            r#"{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],
                "additionalProperties":false,
                "not":{"properties":{"x":{"not":{"enum":[3,4]}}}}}"#
                .into(),
        ),
        // A value, and arrays of different values of which there are none.
        (
            2,
            r##"{"anyOf":[{"type":"boolean"},{"type":"array","items":{"enum":[]},"minItems":1}]}"##
                .into(),
        ),
    ] {
        let keywords = format!(r#""items":{items}"#);
        assert!(is_satisfiable(&unique(count, &keywords)), "{count} of {items}");
        assert!(!is_satisfiable(&unique(count + 1, &keywords)), "{} of {items}", count + 1);
    }
}

#[test]
fn values_of_schemas_that_contain_themselves() {
    let nested = |base: &str, least: u64, count: u64| {
        format!(
            r##"{{"type":"array","uniqueItems":true,"minItems":{count},"items":{{"$ref":"#/$defs/r"}},
            "$defs":{{"r":{{"anyOf":[{base},{{"type":"array","uniqueItems":true,"minItems":{least},
            "items":{{"$ref":"#/$defs/r"}}}}]}}}}}}"##
        )
    };
    let null = r#"{"type":"null"}"#;
    assert!(is_satisfiable(&nested(null, 2, 1)));
    assert!(!is_satisfiable(&nested(null, 2, 2)));
    // One value, and all arrays of values found so far: infinitely many.
    assert!(is_satisfiable(&nested(null, 1, 9)));
    assert!(is_satisfiable(&nested(r#"{"type":"boolean"}"#, 2, 9)));
    assert!(!is_satisfiable(&nested(r#"{"type":"boolean"}"#, 3, 3)));
    assert!(!is_satisfiable(&nested(r#"{"enum":[]}"#, 1, 1)));
    assert!(is_satisfiable(&nested(r#"{"enum":[]}"#, 0, 9)));
}

#[test]
fn several_contains_share_items() {
    let contains = |values: &str, least: u64| {
        format!(r#"{{"contains":{{"enum":{values}}},"minContains":{least}}}"#)
    };
    let both = |items: &str, left: (&str, u64), right: (&str, u64), most: u64| {
        let all = [contains(left.0, left.1), contains(right.0, right.1)].join(",");
        format!(
            r#"{{"type":"array","uniqueItems":true,"items":{items},"allOf":[{all}],"maxItems":{most}}}"#
        )
    };
    let three = r#"{"enum":[1,2,3]}"#;
    assert!(is_satisfiable(&both(three, ("[1,2]", 2), ("[1,3]", 2), 3)));
    assert!(!is_satisfiable(&both(three, ("[1,2]", 2), ("[1,3]", 2), 2)));
    assert!(!is_satisfiable(&both(three, ("[1,2]", 3), ("[1,3]", 2), 9)));
    let prefix = r#"false,"prefixItems":[{"enum":[1,2]},{"enum":[1,3]},{"enum":[2]}]"#;
    assert!(is_satisfiable(&both(prefix, ("[1,2]", 2), ("[3]", 1), 3)));
    assert!(!is_satisfiable(&both(prefix, ("[2]", 2), ("[3]", 1), 3)));
}

#[test]
fn what_the_next_item_must_leave() {
    let text = r#"{"type":"array","uniqueItems":true,
        "prefixItems":[{"enum":[1,2,3,4]},{"enum":[1,2]},{"enum":[1,2]}],"items":{"enum":[3,5]}}"#;
    let set = SchemaSet::parse(text, options()).unwrap();
    let whole = set.normal(set.root()).unwrap().arrays[0].clone();
    let rest = |length: u64| ArraySpec {
        prefix: whole.prefix[1..].to_vec(),
        min_items: length,
        ..ArraySpec::clone(&whole)
    };
    let equal = |value: &str| set.equal_to(value).unwrap();
    let essential = |length: u64, came: &[&str]| {
        let came: Vec<_> = came.iter().map(|value| equal(value)).collect();
        let item = [(whole.prefix[0], true)];
        let values = set.essential_values(&rest(length), &came, &item).unwrap();
        values.map(|mut values| {
            values.sort_unstable();
            values
        })
    };
    let sorted = |values: &[&str]| {
        let mut values: Vec<_> = values.iter().map(|value| equal(value)).collect();
        values.sort_unstable();
        Some(values)
    };
    assert_eq!(essential(0, &[]), sorted(&[]));
    assert_eq!(essential(1, &[]), sorted(&[]));
    assert_eq!(essential(1, &["1"]), sorted(&["2"]));
    assert_eq!(essential(2, &[]), sorted(&["1", "2"]));
    assert_eq!(essential(3, &[]), sorted(&["1", "2"]));
    assert_eq!(essential(4, &[]), sorted(&["1", "2", "3"]));
    assert_eq!(essential(5, &[]), None);
    assert_eq!(essential(2, &["1"]), None);
}

/// The steps of asking whether so many arrays of different items out of `values` exist.
fn steps_to_list(values: usize) -> u64 {
    let listed: Vec<String> = (0..values).map(|number| format!(r#""v{number}""#)).collect();
    let inner = unique(0, &format!(r#""items":{{"enum":[{}]}}"#, listed.join(",")));
    let schema = unique(2 * values as u64, &format!(r#""items":{inner}"#));
    let mut meter = Meter::compiling(&Limits::default(), None);
    let done = meter.run(|| Ok::<_, ffwd_bounds::error::LimitExceeded>(is_satisfiable(&schema)));
    assert_eq!(done, Ok(true), "{values}");
    meter.spent()
}

/// The arrays that are listed have up to as many items as there are values, so their number and
/// their lengths double with the values: four times the steps, and no more.
#[test]
fn listing_takes_steps_by_the_length_of_the_list() {
    let steps: Vec<u64> = [100, 200, 400, 800].into_iter().map(steps_to_list).collect();
    for pair in steps.windows(2) {
        assert!(pair[1] < 5 * pair[0], "{steps:?}");
    }
}
