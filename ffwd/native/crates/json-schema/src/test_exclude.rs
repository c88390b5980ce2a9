//! Exclusions that are settled by name, against conjoining the whole object again and again.

use std::sync::Arc;

use proptest::prelude::RngExt;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::document::Document;
use super::expand::Expander;
use super::intern::Atom;
use super::program::Program;
use super::test_emptiness::options;
use super::{KeyClass, ObjectSpec, Property, SchemaId};
use ffwd_regular::regex::{rust_dialect, Ast};

struct Draw {
    rng: TestRng,
    schemas: Vec<SchemaId>,
}

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.rng.random_range(0..end)
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    /// Each of some names at most once. `absent`: how often one must be absent, of ten times.
    fn properties(&mut self, most: usize, absent: usize, free: bool) -> Vec<Property> {
        let mut names: Vec<char> = ('a'..='h').collect();
        let mut properties = Vec::new();
        for _ in 0..self.below(most + 1) {
            let name = names.swap_remove(self.below(names.len())).to_string().into();
            let at = self.below(self.schemas.len());
            let mut schema = self.schemas[at];
            let mut required = self.one_in(2);
            if self.below(10) < absent {
                (schema, required) = (SchemaId::NEVER, false);
            }
            properties.push(Property { name, schema, required, free });
        }
        properties
    }

    fn object(&mut self) -> ObjectSpec {
        let free = self.one_in(2);
        let mut spec = ObjectSpec { properties: self.properties(8, 0, free), ..ObjectSpec::any() };
        if self.one_in(3) {
            spec.others.clear();
        } else if self.one_in(3) {
            let keys: Option<Ast> =
                self.one_in(2).then(|| rust_dialect::anchored("[a-d].*").unwrap());
            spec.others = vec![KeyClass { keys, schema: self.schemas[1] }];
        }
        spec.max_properties = self.one_in(4).then_some(3);
        spec.min_properties = if self.one_in(4) { 2 } else { 0 };
        let others = self.one_in(6);
        for _ in 0..self.below(9) {
            let mut exclusion =
                ObjectSpec { properties: self.properties(3, 6, true), ..ObjectSpec::any() };
            if others && self.one_in(3) {
                exclusion.min_properties = 2;
            }
            spec.excluded.push(Arc::new(exclusion));
        }
        spec
    }
}

#[test]
fn names_are_settled_as_whole_objects_are() {
    let options = options();
    let program = Program::read("true", &options).unwrap();
    let mut expander = Expander::new(&options);
    let mut schemas = vec![SchemaId::ANY];
    for text in ["1", "2"] {
        let document = Document::parse(text, options.limits.document()).unwrap();
        let value = expander.values.of_text(&document).unwrap();
        let equal = expander.interner.single(Atom::equal(value)).unwrap();
        schemas.extend([equal, expander.interner.negation(equal).unwrap()]);
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]);
    let mut draw = Draw { rng, schemas };
    let (mut none, mut settled, mut open) = (0, 0, 0);
    for _ in 0..4_000 {
        let spec = draw.object();
        expander.steps_left = 1_000_000;
        let expected = expander.settle_by(&program, spec.clone(), false).unwrap();
        let found = expander.settle_by(&program, spec.clone(), true).unwrap();
        assert_eq!(found, expected, "{spec:?}");
        match found {
            None => none += 1,
            Some(found) if found.excluded.is_empty() => settled += 1,
            Some(_) => open += 1,
        }
    }
    assert!(none > 200 && settled > 200 && open > 200, "{none} {settled} {open}");
}

#[test]
fn each_name_may_ask_for_the_next() {
    let options = options();
    let program = Program::read("true", &options).unwrap();
    let mut expander = Expander::new(&options);
    let named = |name: usize, schema, required| Property {
        name: format!("{name:02}").into(),
        schema,
        required,
        free: true,
    };
    let any = ObjectSpec::any();
    let mut spec = ObjectSpec { properties: vec![named(0, SchemaId::ANY, true)], ..any.clone() };
    for name in 0..99 {
        let (this, next) =
            (named(name, SchemaId::ANY, true), named(name + 1, SchemaId::NEVER, false));
        spec.excluded.push(Arc::new(ObjectSpec { properties: vec![this, next], ..any.clone() }));
    }
    let settle = |expander: &mut Expander, names| {
        let before = 100_000_000;
        expander.steps_left = before;
        let settled = expander.settle_by(&program, spec.clone(), names).unwrap().unwrap();
        (settled, before - expander.steps_left)
    };
    let (found, steps) = settle(&mut expander, true);
    let (expected, _) = settle(&mut expander, false);
    assert_eq!(found, expected);
    assert!(found.excluded.is_empty());
    assert!(found.properties.iter().all(|property| property.required));
    assert_eq!(found.properties.len(), 100);
    assert!(steps < 2_000, "{steps}");
}
