//! Many implications of constants on few names: byte by byte, the allowed set equals the
//! continuations of valid objects.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::RngExt;
use proptest::test_runner::TestRng;
use serde_json::{json, Value};

use super::tests::*;
use super::*;
use ffwd_automaton::{PropertyOrder, StateId};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};

const NAMES: [&str; 3] = ["k", "a", "b"];
/// The values of each name; those of the first are more than a table needs.
const VALUES: [usize; 3] = [14, 2, 2];

/// The value of each name that is there.
type Object = [Option<usize>; 3];

fn value(at: usize) -> String {
    char::from(b'a' + at as u8).to_string()
}

/// What one name must be.
struct Condition {
    name: usize,
    required: bool,
    /// `None` for any value; nothing listed: the name must be absent.
    values: Option<Vec<usize>>,
}

impl Condition {
    fn drawn(rng: &mut TestRng) -> Self {
        let name = rng.random_range(0..3);
        let count = rng.random_range(0..3);
        let values: Vec<usize> = (0..count).map(|_| rng.random_range(0..VALUES[name])).collect();
        let required = rng.random_range(0..2) == 0 && !values.is_empty();
        Self { name, required, values: (rng.random_range(0..4) > 0).then_some(values) }
    }

    fn holds(&self, object: &Object) -> bool {
        match (object[self.name], &self.values) {
            (None, _) => !self.required,
            (Some(value), Some(values)) => values.contains(&value),
            (Some(_), None) => true,
        }
    }

    fn schema(&self) -> Value {
        let name = NAMES[self.name];
        let mut schema = json!({});
        if let Some(values) = &self.values {
            let values: Vec<String> = values.iter().map(|&at| value(at)).collect();
            let value = match &values[..] {
                [] => json!(false),
                [only] => json!({ "const": only }),
                _ => json!({ "enum": values }),
            };
            schema["properties"] = json!({ name: value });
        }
        if self.required {
            schema["required"] = json!([name]);
        }
        schema
    }
}

enum Implication {
    If { test: Condition, then: Condition, otherwise: Option<Condition> },
    Dependent { name: usize, then: Condition },
    Names { name: usize, needed: usize },
}

impl Implication {
    fn drawn(rng: &mut TestRng) -> Self {
        let name = rng.random_range(0..3);
        match rng.random_range(0..8) {
            0 => Self::Names { name, needed: rng.random_range(0..3) },
            1 => Self::Dependent { name, then: Condition::drawn(rng) },
            kind => {
                let mut test = Condition::drawn(rng);
                if kind > 3 {
                    let values = Some(vec![rng.random_range(0..VALUES[0])]);
                    test = Condition { name: 0, required: true, values };
                }
                let then = Condition::drawn(rng);
                let otherwise = (rng.random_range(0..8) == 0).then(|| Condition::drawn(rng));
                Self::If { test, then, otherwise }
            }
        }
    }

    fn holds(&self, object: &Object) -> bool {
        match self {
            Self::If { test, then, otherwise } => match test.holds(object) {
                true => then.holds(object),
                false => otherwise.as_ref().is_none_or(|otherwise| otherwise.holds(object)),
            },
            Self::Dependent { name, then } => object[*name].is_none() || then.holds(object),
            Self::Names { name, needed } => object[*name].is_none() || object[*needed].is_some(),
        }
    }

    fn schema(&self) -> Value {
        match self {
            Self::If { test, then, otherwise } => {
                let mut schema = json!({ "if": test.schema(), "then": then.schema() });
                if let Some(otherwise) = otherwise {
                    schema["else"] = otherwise.schema();
                }
                schema
            }
            Self::Dependent { name, then } => {
                json!({ "dependentSchemas": { NAMES[*name]: then.schema() } })
            }
            Self::Names { name, needed } => {
                json!({ "dependentRequired": { NAMES[*name]: [NAMES[*needed]] } })
            }
        }
    }
}

fn objects() -> Vec<Object> {
    let values = |name: usize| (0..VALUES[name]).map(Some).chain([None]);
    let mut all = Vec::new();
    for k in values(0) {
        for a in values(1) {
            all.extend(values(2).map(|b| [k, a, b]));
        }
    }
    all
}

/// The texts of an object, with its names in one order or in all.
fn texts(object: &Object, order: PropertyOrder) -> Vec<String> {
    let orders: &[[usize; 3]] = match order {
        PropertyOrder::Declared => &[[0, 1, 2]],
        PropertyOrder::Any => &[[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]],
    };
    let text = |order: &[usize; 3]| {
        let member =
            |&name: &usize| object[name].map(|at| format!("\"{}\":\"{}\"", NAMES[name], value(at)));
        format!("{{{}}}", order.iter().filter_map(member).collect::<Vec<_>>().join(","))
    };
    orders.iter().map(text).collect()
}

#[test]
fn implications_allow_what_some_valid_object_goes_on_with() {
    let engine = engine(vocabulary(8, 0));
    let bytes: Vec<u8> = (b' '..=b'~').collect();
    let (mut compared, mut unsatisfiable) = (0, 0);
    for seed in 0..60 {
        let mut rng = seeded(seed);
        let count = [2, 4, 9, 16, 24][usize::from(seed) % 5];
        let implications: Vec<Implication> =
            (0..count).map(|_| Implication::drawn(&mut rng)).collect();
        let listed = |name: usize| -> Value {
            json!({ "enum": (0..VALUES[name]).map(value).collect::<Vec<_>>() })
        };
        let properties: serde_json::Map<String, Value> =
            (0..3).map(|name| (NAMES[name].to_owned(), listed(name))).collect();
        let required = rng.random_range(0..3) == 0;
        let fewest = [0, 0, 0, 2][rng.random_range(0..4)];
        let most = [3, 3, 3, 2][rng.random_range(0..4)];
        let all_of: Vec<Value> = implications.iter().map(Implication::schema).collect();
        let mut schema = json!({"type": "object", "additionalProperties": false});
        schema["properties"] = Value::Object(properties);
        schema["allOf"] = Value::Array(all_of);
        if required {
            schema["required"] = json!(["k"]);
        }
        if fewest > 0 {
            schema["minProperties"] = json!(fewest);
        }
        if most < 3 {
            schema["maxProperties"] = json!(most);
        }
        let schema = schema.to_string();
        let is_valid = |object: &Object| {
            let members = object.iter().flatten().count();
            (!required || object[0].is_some())
                && (fewest..=most).contains(&members)
                && implications.iter().all(|implication| implication.holds(object))
        };
        let valid: Vec<Object> = objects().into_iter().filter(is_valid).collect();
        for order in [PropertyOrder::Declared, PropertyOrder::Any] {
            let writing = Writing { property_order: order, ..Writing::from(COMPACT) };
            let compiled = match engine.compile_json_schema(&schema, writing) {
                Ok(compiled) => compiled,
                Err(error) => {
                    let text = format!("{error:?}");
                    assert!(valid.is_empty() && text.contains("Unsatisfiable"), "{text}\n{schema}");
                    unsatisfiable += 1;
                    continue;
                }
            };
            assert!(!valid.is_empty(), "{schema}");
            let mut next: BTreeMap<Vec<u8>, BTreeSet<u8>> = BTreeMap::new();
            for text in valid.iter().flat_map(|object| texts(object, order)) {
                for at in 0..text.len() {
                    let (before, byte) = (&text.as_bytes()[..at], text.as_bytes()[at]);
                    next.entry(before.to_vec()).or_default().insert(byte);
                }
            }
            let generation = compiled.generation();
            let automaton = &generation.automaton;
            let mut known: BTreeMap<Vec<u8>, StateId> = BTreeMap::new();
            known.insert(Vec::new(), automaton.start());
            for (before, expected) in next {
                let threads = automaton.threads(known[&before]);
                let mut found = BTreeSet::new();
                for &byte in &bytes {
                    if let Some(after) = automaton.walk(threads, &[byte]).unwrap() {
                        found.insert(byte);
                        let mut text = before.clone();
                        text.push(byte);
                        known.insert(text, automaton.intern(after).unwrap());
                    }
                }
                let text = String::from_utf8_lossy(&before);
                assert_eq!(found, expected, "{text} {order:?}\n{schema}");
                compared += 1;
            }
        }
    }
    assert!(compared > 5_000 && unsatisfiable > 0, "{compared} {unsatisfiable}");
}
