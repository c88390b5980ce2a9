//! `unevaluatedProperties` and `unevaluatedItems`: their scope depends on which subschemas hold for
//! the value, so alternatives are made together with the members that they have evaluated.
//!
//! Any number of the branches of `anyOf` may hold, and all that do evaluate. An alternative that
//! requires some of them and ignores the others is correct for them too: if another one held, more
//! members would be evaluated and fewer constrained.

use std::sync::Arc;

use smallvec::SmallVec;

use super::alternatives::Alternatives;
use super::document::{NodeId, Value};
use super::error::{LimitExceeded, Result};
use super::expand::Expander;
use super::program::Program;
use super::schema::{InPlace, Schema};
use super::{ArraySpec, KeyClass, ObjectSpec, Property, SchemaId};
use ffwd_regular::regex::Ast;

/// How deeply schemas that apply to one value may nest.
const MAX_DEPTH: usize = 256;

/// The keys or items that subschemas have evaluated.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    all: bool,
    names: Vec<Arc<str>>,
    patterns: Vec<Ast>,
    /// This many items from the first.
    prefix: usize,
    /// Items that satisfy one of these.
    contained: SmallVec<[SchemaId; 1]>,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.all |= other.all;
        self.names.extend_from_slice(&other.names);
        self.patterns.extend_from_slice(&other.patterns);
        self.prefix = self.prefix.max(other.prefix);
        self.contained.extend_from_slice(&other.contained);
    }

    /// Whether it contains everything in `other`.
    fn covers(&self, other: &Self) -> bool {
        self.all
            || (!other.all
                && self.prefix >= other.prefix
                && other.names.iter().all(|name| self.names.contains(name))
                && other.patterns.iter().all(|keys| self.patterns.contains(keys))
                && other.contained.iter().all(|schema| self.contained.contains(schema)))
    }

    fn is_nothing(&self) -> bool {
        !self.all
            && self.names.is_empty()
            && self.patterns.is_empty()
            && self.prefix == 0
            && self.contained.is_empty()
    }
}

/// Objects or arrays.
pub(super) trait Container: Sized {
    fn any() -> Self;
    fn of(alternatives: &Alternatives) -> &[Arc<Self>];
    /// Returns the constraints of a schema's own keywords, without `unevaluated…`.
    fn own(
        expander: &mut Expander,
        program: &Program,
        id: SchemaId,
        schema: &Schema,
    ) -> Result<Option<Self>>;
    /// Returns the members that a schema's own keywords evaluate, without `unevaluated…`.
    fn seen(expander: &mut Expander, program: &Program, schema: &Schema) -> Result<Seen>;
    fn unevaluated(schema: &Schema) -> Option<NodeId>;
    fn conjoin(
        expander: &mut Expander,
        program: &Program,
        left: &Self,
        right: &Self,
    ) -> Result<Option<Self>, LimitExceeded>;
    fn without(
        expander: &mut Expander,
        program: &Program,
        left: Vec<Arc<Self>>,
        right: &Alternatives,
    ) -> Result<Vec<Arc<Self>>, LimitExceeded>;
    /// Applies a schema to what has not been evaluated.
    fn apply(
        self: &Arc<Self>,
        expander: &mut Expander,
        program: &Program,
        seen: &Seen,
        rest: SchemaId,
    ) -> Result<Option<Self>, LimitExceeded>;
}

type Annotated<T> = Vec<(Arc<T>, Seen)>;

impl Expander {
    /// The objects or arrays that a schema allows, each with what it has evaluated.
    pub(super) fn annotated<T: Container>(
        &mut self,
        program: &Program,
        id: SchemaId,
        depth: usize,
    ) -> Result<Annotated<T>> {
        let exceeded = |expander: &Self, error| expander.exceeded(program, id, error);
        if depth > MAX_DEPTH {
            let error = LimitExceeded { limit: "nesting", maximum: MAX_DEPTH as u64 };
            return Err(exceeded(self, error));
        }
        let Some(schema) = self.schema_of(program, id) else {
            return Ok(plain::<T>(&self.expanded(id)));
        };
        let mut parts: Vec<Annotated<T>> = Vec::new();
        if let Some(value) = schema.constant {
            parts.push(plain::<T>(&self.any_of_values(program, &[value])?));
        }
        if let Some(list) = schema.enumeration {
            let values = self.any_of_values(program, program.document.items(list))?;
            parts.push(plain::<T>(&values));
        }
        for place in 0..=schema.in_place.len() {
            if place == schema.in_place_before_own {
                let own = T::own(self, program, id, schema)?;
                let seen = T::seen(self, program, schema)?;
                parts.push(own.into_iter().map(|own| (Arc::new(own), seen.clone())).collect());
            }
            if let Some(kind) = schema.in_place.get(place) {
                self.annotate_in_place(program, id, schema, kind, depth, &mut parts)?;
            }
        }
        let mut all = vec![(Arc::new(T::any()), Seen::default())];
        for part in parts {
            all = self.annotated_product(program, &all, &part).map_err(|e| exceeded(self, e))?;
        }
        let Some(node) = T::unevaluated(schema) else { return Ok(all) };
        let rest = self.id_of(program, program.child(schema, node))?;
        let mut applied = Vec::with_capacity(all.len());
        for (spec, seen) in all {
            let spec = T::apply(&spec, self, program, &seen, rest);
            if let Some(spec) = spec.map_err(|e| exceeded(self, e))? {
                applied.push((Arc::new(spec), Seen { all: true, ..Seen::default() }));
            }
        }
        Ok(applied)
    }

    fn annotate_in_place<T: Container>(
        &mut self,
        program: &Program,
        id: SchemaId,
        schema: &Schema,
        kind: &InPlace,
        depth: usize,
        parts: &mut Vec<Annotated<T>>,
    ) -> Result<()> {
        let exceeded = |expander: &Self, error| expander.exceeded(program, id, error);
        let child = |expander: &mut Self, node: NodeId| {
            expander.id_of(program, program.child(schema, node))
        };
        match kind {
            InPlace::Reference(target) => {
                let target = child(self, *target)?;
                parts.push(self.annotated(program, target, depth + 1)?);
            }
            InPlace::AllOf(list) => {
                for &branch in program.document.items(*list) {
                    let branch = child(self, branch)?;
                    parts.push(self.annotated(program, branch, depth + 1)?);
                }
            }
            InPlace::AnyOf(list) => {
                let mut union: Annotated<T> = Vec::new();
                for &branch in program.document.items(*list) {
                    let branch = child(self, branch)?;
                    let branch: Annotated<T> = self.annotated(program, branch, depth + 1)?;
                    // Adds to each set of branches the set with this one. If one of the two has
                    // evaluated as much as the other, the other is not needed.
                    let (seeing, blind): (Annotated<T>, Annotated<T>) =
                        branch.into_iter().partition(|(_, seen)| !seen.is_nothing());
                    let both = self.joined_evidence(program, &union, &seeing);
                    union.extend(both.map_err(|e| exceeded(self, e))?);
                    union.extend(seeing);
                    union.extend(blind);
                    self.check_width(union.len()).map_err(|e| exceeded(self, e))?;
                }
                parts.push(union);
            }
            InPlace::OneOf(list) => {
                let branches = program.document.items(*list);
                let mut ids = Vec::with_capacity(branches.len());
                for &branch in branches {
                    ids.push(child(self, branch)?);
                }
                let mut union: Annotated<T> = Vec::new();
                for (place, &branch) in ids.iter().enumerate() {
                    for (spec, seen) in self.annotated::<T>(program, branch, depth + 1)? {
                        let mut specs = vec![spec];
                        for (other_place, &other) in ids.iter().enumerate() {
                            if other_place != place {
                                let other = self.expanded(other);
                                specs = T::without(self, program, specs, &other)
                                    .map_err(|e| exceeded(self, e))?;
                            }
                        }
                        union.extend(specs.into_iter().map(|spec| (spec, seen.clone())));
                    }
                    self.check_width(union.len()).map_err(|e| exceeded(self, e))?;
                }
                parts.push(union);
            }
            InPlace::Not(node) => {
                let inner = child(self, *node)?;
                let inner = self.expanded(inner);
                let rest = T::without(self, program, vec![Arc::new(T::any())], &inner);
                let rest = rest.map_err(|e| exceeded(self, e))?;
                parts.push(rest.into_iter().map(|spec| (spec, Seen::default())).collect());
            }
            InPlace::If { test, then, otherwise } => {
                let test = child(self, *test)?;
                let mut branch = |node: &Option<NodeId>| match node {
                    Some(node) => {
                        let branch = child(self, *node)?;
                        self.annotated::<T>(program, branch, depth + 1)
                    }
                    None => Ok(vec![(Arc::new(T::any()), Seen::default())]),
                };
                let (then, otherwise) = (branch(then)?, branch(otherwise)?);
                let passed = self.annotated::<T>(program, test, depth + 1)?;
                let mut union = self
                    .annotated_product(program, &passed, &then)
                    .map_err(|e| exceeded(self, e))?;
                let test = self.expanded(test);
                for (spec, seen) in otherwise {
                    let failed = T::without(self, program, vec![spec], &test);
                    let failed = failed.map_err(|e| exceeded(self, e))?;
                    union.extend(failed.into_iter().map(|spec| (spec, seen.clone())));
                }
                parts.push(union);
            }
            InPlace::Dependencies(node) => {
                let members = program.document.members(*node);
                let needed = self.names_needed(program, members);
                parts.extend(needed.iter().map(plain::<T>));
                for (name, needed) in members.iter() {
                    if matches!(program.document.value(needed), Value::Array(_)) {
                        continue;
                    }
                    let id = child(self, needed)?;
                    let needed: Annotated<T> = self.annotated(program, id, depth + 1)?;
                    let without = self.dependent_schema(program, name, &Arc::default());
                    let mut union = plain::<T>(&without.map_err(|e| exceeded(self, e))?);
                    let present =
                        ObjectSpec::new(vec![Property::required(name.into())], Some(SchemaId::ANY));
                    let present =
                        Alternatives { objects: vec![Arc::new(present)], ..Alternatives::any() };
                    let both = self.annotated_product(program, &needed, &plain::<T>(&present));
                    union.extend(both.map_err(|e| exceeded(self, e))?);
                    parts.push(union);
                }
            }
        }
        Ok(())
    }

    /// Returns the evidence of both sides, if each has evaluated members that the other has not.
    fn joined_evidence<T: Container>(
        &mut self,
        program: &Program,
        left: &[(Arc<T>, Seen)],
        right: &[(Arc<T>, Seen)],
    ) -> Result<Annotated<T>, LimitExceeded> {
        let mut joined = Vec::new();
        for pair in left {
            for other in right {
                let names = pair.1.names.len() * other.1.names.len();
                self.charge(1 + names + pair.1.patterns.len() * other.1.patterns.len())?;
                if !pair.1.covers(&other.1) && !other.1.covers(&pair.1) {
                    let (left, right) = (std::slice::from_ref(pair), std::slice::from_ref(other));
                    joined.extend(self.annotated_product(program, left, right)?);
                }
            }
            self.check_width(joined.len())?;
        }
        Ok(joined)
    }

    fn annotated_product<T: Container>(
        &mut self,
        program: &Program,
        left: &[(Arc<T>, Seen)],
        right: &[(Arc<T>, Seen)],
    ) -> Result<Annotated<T>, LimitExceeded> {
        let mut product = Vec::new();
        for (left, left_seen) in left {
            self.charge(right.len())?;
            for (right, right_seen) in right {
                if let Some(both) = T::conjoin(self, program, left, right)? {
                    let mut seen = left_seen.clone();
                    seen.add(right_seen);
                    product.push((Arc::new(both), seen));
                }
            }
            self.check_width(product.len())?;
        }
        Ok(product)
    }
}

/// Alternatives that evaluate nothing.
fn plain<T: Container>(alternatives: &Alternatives) -> Annotated<T> {
    T::of(alternatives).iter().map(|spec| (spec.clone(), Seen::default())).collect()
}

impl Container for ObjectSpec {
    fn any() -> Self {
        Self::any()
    }

    fn of(alternatives: &Alternatives) -> &[Arc<Self>] {
        &alternatives.objects
    }

    fn own(
        expander: &mut Expander,
        program: &Program,
        id: SchemaId,
        schema: &Schema,
    ) -> Result<Option<Self>> {
        let own = expander.own(program, id, schema)?;
        Ok(own.objects.first().map(|spec| Self::clone(spec)))
    }

    fn seen(_expander: &mut Expander, program: &Program, schema: &Schema) -> Result<Seen> {
        let mut seen = Seen::default();
        if let Some(keywords) = &schema.object {
            seen.all = keywords.additional.is_some();
            if let Some(node) = keywords.properties {
                let members = program.document.members(node);
                seen.names = members.iter().map(|(name, _)| name.into()).collect();
            }
            seen.patterns = keywords.patterns.iter().map(|(keys, _)| keys.clone()).collect();
        }
        Ok(seen)
    }

    fn unevaluated(schema: &Schema) -> Option<NodeId> {
        schema.object.as_ref().and_then(|keywords| keywords.unevaluated)
    }

    fn conjoin(
        expander: &mut Expander,
        program: &Program,
        left: &Self,
        right: &Self,
    ) -> Result<Option<Self>, LimitExceeded> {
        expander.conjoin_objects(program, &[left, right])
    }

    fn without(
        expander: &mut Expander,
        program: &Program,
        left: Vec<Arc<Self>>,
        right: &Alternatives,
    ) -> Result<Vec<Arc<Self>>, LimitExceeded> {
        expander.objects_without(program, left, right)
    }

    fn apply(
        self: &Arc<Self>,
        expander: &mut Expander,
        program: &Program,
        seen: &Seen,
        rest: SchemaId,
    ) -> Result<Option<Self>, LimitExceeded> {
        if seen.all {
            return Ok(Some(Self::clone(self)));
        }
        let patterns: Vec<(&Ast, SchemaId)> =
            seen.patterns.iter().map(|keys| (keys, SchemaId::ANY)).collect();
        let others: Vec<KeyClass> = expander.key_classes(program, &patterns, rest)?;
        let mut properties = Vec::with_capacity(seen.names.len());
        for name in &seen.names {
            if properties.iter().all(|property: &Property| property.name != *name) {
                let property = Property::required(name.clone());
                properties.push(Property { required: false, ..property });
            }
        }
        let unseen = Self { properties, ..Self::new(Vec::new(), None) };
        let unseen = Self { others, ..unseen };
        expander.conjoin_objects(program, &[self, &unseen])
    }
}

impl Container for ArraySpec {
    fn any() -> Self {
        Self::any()
    }

    fn of(alternatives: &Alternatives) -> &[Arc<Self>] {
        &alternatives.arrays
    }

    fn own(
        expander: &mut Expander,
        program: &Program,
        id: SchemaId,
        schema: &Schema,
    ) -> Result<Option<Self>> {
        let own = expander.own(program, id, schema)?;
        Ok(own.arrays.first().map(|spec| Self::clone(spec)))
    }

    fn seen(expander: &mut Expander, program: &Program, schema: &Schema) -> Result<Seen> {
        let mut seen = Seen::default();
        if let Some(keywords) = &schema.array {
            seen.all = keywords.items.is_some();
            seen.prefix = keywords.prefix.map_or(0, |node| program.document.items(node).len());
            if let Some(node) = keywords.contains.filter(|_| schema.dialect.contains_evaluates()) {
                seen.contained.push(expander.id_of(program, program.child(schema, node))?);
            }
        }
        Ok(seen)
    }

    fn unevaluated(schema: &Schema) -> Option<NodeId> {
        schema.array.as_ref().and_then(|keywords| keywords.unevaluated)
    }

    fn conjoin(
        expander: &mut Expander,
        program: &Program,
        left: &Self,
        right: &Self,
    ) -> Result<Option<Self>, LimitExceeded> {
        expander.conjoin_arrays(program, left, right)
    }

    fn without(
        expander: &mut Expander,
        program: &Program,
        left: Vec<Arc<Self>>,
        right: &Alternatives,
    ) -> Result<Vec<Arc<Self>>, LimitExceeded> {
        expander.arrays_without(program, left, right)
    }

    fn apply(
        self: &Arc<Self>,
        expander: &mut Expander,
        program: &Program,
        seen: &Seen,
        rest: SchemaId,
    ) -> Result<Option<Self>, LimitExceeded> {
        if seen.all {
            return Ok(Some(Self::clone(self)));
        }
        let mut items = rest;
        for &contained in &seen.contained {
            items = expander.either(program, items, contained)?;
        }
        let unseen =
            Self { prefix: vec![SchemaId::ANY; seen.prefix], items: Some(items), ..Self::any() };
        expander.conjoin_arrays(program, self, &unseen)
    }
}
