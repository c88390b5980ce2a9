//! Implications about separate pairs of names: byte by byte, the allowed set equals the continuations
//! of valid objects, and completions are valid and short.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::RngExt;
use proptest::test_runner::TestRng;
use serde_json::{json, Value};

use super::tests::*;
use super::*;
use ffwd_automaton::{PropertyOrder, StateId};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};

const NAMES: [&str; 4] = ["p", "q", "r", "s"];
const VALUES: [u32; 2] = [1, 222];

/// The value of each name that is there.
type Object = [Option<u32>; 4];

/// What one name must be.
struct Condition {
    name: usize,
    required: bool,
    value: Option<u32>,
}

impl Condition {
    /// About a name of a pair.
    fn drawn(rng: &mut TestRng, pair: usize) -> Self {
        let value = [None, Some(VALUES[0]), Some(VALUES[1])][rng.random_range(0..3)];
        let required = value.is_none() || rng.random_range(0..2) == 0;
        Self { name: 2 * pair + rng.random_range(0..2), required, value }
    }

    fn holds(&self, object: &Object) -> bool {
        match object[self.name] {
            None => !self.required,
            Some(value) => self.value.is_none_or(|expected| value == expected),
        }
    }

    fn schema(&self) -> Value {
        let name = NAMES[self.name];
        let mut schema = json!({});
        if let Some(value) = self.value {
            schema["properties"] = json!({ name: { "const": value } });
        }
        if self.required {
            schema["required"] = json!([name]);
        }
        schema
    }
}

struct Implication {
    test: Condition,
    then: Condition,
    otherwise: Option<Condition>,
}

impl Implication {
    fn drawn(rng: &mut TestRng) -> Self {
        let pair = rng.random_range(0..2);
        let [test, then, otherwise] = [(); 3].map(|()| Condition::drawn(rng, pair));
        let otherwise = (rng.random_range(0..2) == 0).then_some(otherwise);
        Self { test, then, otherwise }
    }

    fn holds(&self, object: &Object) -> bool {
        match self.test.holds(object) {
            true => self.then.holds(object),
            false => self.otherwise.as_ref().is_none_or(|otherwise| otherwise.holds(object)),
        }
    }

    fn schema(&self) -> Value {
        let mut schema = json!({ "if": self.test.schema(), "then": self.then.schema() });
        if let Some(otherwise) = &self.otherwise {
            schema["else"] = otherwise.schema();
        }
        schema
    }
}

fn objects() -> Vec<Object> {
    let value = |code: usize| [None, Some(VALUES[0]), Some(VALUES[1])][code % 3];
    (0..81).map(|code| [value(code), value(code / 3), value(code / 9), value(code / 27)]).collect()
}

/// All orders of the names.
fn orders() -> Vec<[usize; 4]> {
    let codes = 0..256;
    let order = |code: usize| [code % 4, code / 4 % 4, code / 16 % 4, code / 64];
    let is_order = |order: &[usize; 4]| order.iter().collect::<BTreeSet<_>>().len() == 4;
    codes.map(order).filter(is_order).collect()
}

/// The texts of an object, with its names in one order or in all.
fn texts(object: &Object, order: PropertyOrder) -> BTreeSet<String> {
    let orders = match order {
        PropertyOrder::Declared => vec![[0, 1, 2, 3]],
        PropertyOrder::Any => orders(),
    };
    let text = |order: &[usize; 4]| {
        let member =
            |&name: &usize| object[name].map(|value| format!("\"{}\":{value}", NAMES[name]));
        format!("{{{}}}", order.iter().filter_map(member).collect::<Vec<_>>().join(","))
    };
    orders.iter().map(text).collect()
}

#[test]
fn separate_implications_allow_what_some_valid_object_goes_on_with() {
    let engine = engine(vocabulary(8, 0));
    let bytes: Vec<u8> = (b' '..=b'~').collect();
    let (mut compared, mut unsatisfiable) = (0, 0);
    for seed in 0..48 {
        let mut rng = seeded(seed);
        // More than four become exclusions beside each other.
        let count = [2, 4, 7, 9][usize::from(seed) % 4];
        let implications: Vec<Implication> =
            (0..count).map(|_| Implication::drawn(&mut rng)).collect();
        let required: Vec<usize> = (0..4).filter(|_| rng.random_range(0..3) == 0).collect();
        let listed = NAMES.map(|name| (name.to_owned(), json!({ "enum": VALUES })));
        let schema = json!({
            "type": "object",
            "properties": Value::Object(listed.into_iter().collect()),
            "required": required.iter().map(|&name| NAMES[name]).collect::<Vec<_>>(),
            "additionalProperties": false,
            "allOf": implications.iter().map(Implication::schema).collect::<Vec<_>>(),
        })
        .to_string();
        let is_valid = |object: &Object| {
            required.iter().all(|&name| object[name].is_some())
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
            let all: BTreeSet<String> =
                valid.iter().flat_map(|object| texts(object, order)).collect();
            // The next bytes, and the least that must follow.
            let mut next: BTreeMap<Vec<u8>, (BTreeSet<u8>, usize)> = BTreeMap::new();
            for text in &all {
                for at in 0..text.len() {
                    let left = text.len() - at;
                    let (before, byte) = (&text.as_bytes()[..at], text.as_bytes()[at]);
                    let entry = next.entry(before.to_vec()).or_insert((BTreeSet::new(), left));
                    entry.0.insert(byte);
                    entry.1 = entry.1.min(left);
                }
            }
            let generation = compiled.generation();
            let automaton = &generation.automaton;
            let mut known: BTreeMap<Vec<u8>, StateId> = BTreeMap::new();
            known.insert(Vec::new(), automaton.start());
            for (before, (expected, least)) in next {
                let threads = automaton.threads(known[&before]);
                let text = String::from_utf8_lossy(&before).into_owned();
                let ending = automaton.completing().shortest(threads).unwrap();
                let ending = ending.expect("the search is short").text;
                let whole = text.clone() + &String::from_utf8_lossy(&ending);
                assert!(all.contains(&whole), "{whole} {order:?}\n{schema}");
                // The search prefers depth to breadth by a quarter of the estimated rest, and does
                // not know which optional member is the shortest.
                let most = least + least / 4 + "\"r\":222,".len();
                assert!(ending.len() <= most, "{whole} {order:?}\n{schema}");
                let mut found = BTreeSet::new();
                for &byte in &bytes {
                    if let Some(after) = automaton.walk(threads, &[byte]).unwrap() {
                        found.insert(byte);
                        let mut text = before.clone();
                        text.push(byte);
                        known.insert(text, automaton.intern(after).unwrap());
                    }
                }
                assert_eq!(found, expected, "{text} {order:?}\n{schema}");
                compared += 1;
            }
        }
    }
    assert!(compared > 5_000 && unsatisfiable > 0, "{compared} {unsatisfiable}");
}
