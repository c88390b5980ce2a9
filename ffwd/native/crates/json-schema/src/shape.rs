//! Equal schemas at different positions of a document.
//!
//! Documents repeat themselves, mostly in branches of `oneOf`. If a negation meets a schema equal
//! to the negated one, the conjunction is resolved at once.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::dialect::Dialect;
use super::document::{NodeId, Value};
use super::error::LimitExceeded;
use super::expand::Expander;
use super::intern::{Atom, Demand};
use super::number_range::NumberRange;
use super::program::Program;
use super::schema::{InPlace, Schema, Types};
use super::values::ValueId;
use super::{SchemaId, StringSpec};
use ffwd_regular::regex::Ast;

/// How deep schemas are compared.
const MAX_DEPTH: usize = 48;

/// The content of a schema, with children named by equal schemas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Shape {
    dialect: Dialect,
    types: Types,
    number: Option<Box<NumberRange>>,
    string: Option<Box<StringSpec>>,
    constant: Option<ValueId>,
    enumeration: Option<Vec<ValueId>>,
    object: Option<ObjectShape>,
    array: Option<ArrayShape>,
    in_place: Vec<InPlaceShape>,
    in_place_before_own: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ObjectShape {
    properties: Vec<(Arc<str>, SchemaId)>,
    required: Vec<Arc<str>>,
    patterns: Vec<(Ast, SchemaId)>,
    /// `additionalProperties`, `propertyNames`, `unevaluatedProperties`
    others: [Option<SchemaId>; 3],
    counts: (u64, Option<u64>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ArrayShape {
    prefix: Vec<SchemaId>,
    /// `items`, `contains`, `unevaluatedItems`
    others: [Option<SchemaId>; 3],
    counts: [(u64, Option<u64>); 2],
    unique: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum InPlaceShape {
    Branches(u8, Vec<SchemaId>),
    If([Option<SchemaId>; 3]),
    /// Compared by place only.
    Dependencies(NodeId),
}

/// Classes of equal schemas.
#[derive(Debug, Default)]
pub struct Shapes {
    first: FxHashMap<Shape, NodeId>,
    known: FxHashMap<NodeId, NodeId>,
    open: FxHashSet<NodeId>,
}

impl Expander {
    /// The conjunction with each subschema replaced by the first equal one.
    pub(super) fn canonical(
        &mut self,
        program: &Program,
        id: SchemaId,
    ) -> Result<SchemaId, LimitExceeded> {
        self.canonical_id(program, id, 0)
    }

    fn canonical_id(
        &mut self,
        program: &Program,
        id: SchemaId,
        depth: usize,
    ) -> Result<SchemaId, LimitExceeded> {
        let atoms: SmallVec<[Atom; 4]> = self.interner.atoms(id).into();
        let mut changed = false;
        let mut ids: SmallVec<[SchemaId; 4]> = SmallVec::new();
        for atom in atoms {
            let same = match atom.demand() {
                Demand::Schema(node) => {
                    let first = self.first_alike(program, node, depth)?;
                    changed |= first != node;
                    self.interner.single(Atom::schema(first))?
                }
                Demand::Not(inner) => {
                    let first = self.canonical_id(program, inner, depth)?;
                    changed |= first != inner;
                    self.interner.negation(first)?
                }
                Demand::Equal(_) | Demand::Listed(_) | Demand::Object(_) | Demand::Never => {
                    self.interner.single(atom)?
                }
            };
            ids.push(same);
        }
        if changed {
            self.interner.conjunction(&ids)
        } else {
            Ok(id)
        }
    }

    fn first_alike(
        &mut self,
        program: &Program,
        node: NodeId,
        depth: usize,
    ) -> Result<NodeId, LimitExceeded> {
        if let Some(&known) = self.shapes.known.get(&node) {
            return Ok(known);
        }
        let Some(schema) = self.record(program, node) else { return Ok(node) };
        // A schema that contains itself is identified by its place.
        if depth > MAX_DEPTH || !self.shapes.open.insert(node) {
            return Ok(node);
        }
        let shape = self.shape(program, schema, depth + 1);
        self.shapes.open.remove(&node);
        let first = match shape? {
            Some(shape) => *self.shapes.first.entry(shape).or_insert(node),
            None => node,
        };
        self.shapes.known.insert(node, first);
        Ok(first)
    }

    /// `None` where the schema has values past the limits of numbers.
    fn shape(
        &mut self,
        program: &Program,
        schema: &Schema,
        depth: usize,
    ) -> Result<Option<Shape>, LimitExceeded> {
        let document = &program.document;
        let mut values = Vec::new();
        let listed = schema.enumeration.map_or(&[][..], |list| document.items(list));
        self.charge(1 + listed.len())?;
        for &node in schema.constant.iter().chain(listed) {
            match self.values.of_node(document, node) {
                Ok(value) => values.push(value),
                Err(_) => return Ok(None),
            }
        }
        let constant = schema.constant.map(|_| values.remove(0));
        let object = match schema.object.as_deref() {
            None => None,
            Some(keywords) => {
                let mut properties = Vec::new();
                for (name, node) in
                    keywords.properties.iter().flat_map(|&n| document.members(n).iter())
                {
                    properties.push((name.into(), self.alike(program, schema, node, depth)?));
                }
                let mut required: Vec<Arc<str>> = keywords
                    .required
                    .iter()
                    .flat_map(|&node| document.items(node))
                    .filter_map(|&name| match document.value(name) {
                        Value::String(name) => Some(name.into()),
                        _ => None,
                    })
                    .collect();
                required.sort_unstable();
                let mut patterns = Vec::new();
                for (keys, node) in &keywords.patterns {
                    patterns.push((keys.clone(), self.alike(program, schema, *node, depth)?));
                }
                let others = [keywords.additional, keywords.names, keywords.unevaluated];
                Some(ObjectShape {
                    properties,
                    required,
                    patterns,
                    others: self.all_alike(program, schema, others, depth)?,
                    counts: (keywords.min_properties, keywords.max_properties),
                })
            }
        };
        let array = match schema.array.as_deref() {
            None => None,
            Some(keywords) => {
                let prefix = keywords.prefix.map_or(&[][..], |node| document.items(node));
                let others = [keywords.items, keywords.contains, keywords.unevaluated];
                Some(ArrayShape {
                    prefix: self.list_alike(program, schema, prefix, depth)?,
                    others: self.all_alike(program, schema, others, depth)?,
                    counts: [
                        (keywords.min_items, keywords.max_items),
                        (keywords.min_contains, keywords.max_contains),
                    ],
                    unique: keywords.unique,
                })
            }
        };
        let mut in_place = Vec::with_capacity(schema.in_place.len());
        for kind in &schema.in_place {
            in_place.push(match *kind {
                InPlace::Reference(node) => {
                    InPlaceShape::Branches(0, self.list_alike(program, schema, &[node], depth)?)
                }
                InPlace::Not(node) => {
                    InPlaceShape::Branches(1, self.list_alike(program, schema, &[node], depth)?)
                }
                InPlace::AllOf(list) | InPlace::AnyOf(list) | InPlace::OneOf(list) => {
                    let kind = match kind {
                        InPlace::AllOf(_) => 2,
                        InPlace::AnyOf(_) => 3,
                        _ => 4,
                    };
                    let branches = document.items(list);
                    let branches = self.list_alike(program, schema, branches, depth)?;
                    InPlaceShape::Branches(kind, branches)
                }
                InPlace::If { test, then, otherwise } => {
                    let parts = [Some(test), then, otherwise];
                    InPlaceShape::If(self.all_alike(program, schema, parts, depth)?)
                }
                InPlace::Dependencies(node) => InPlaceShape::Dependencies(node),
            });
        }
        Ok(Some(Shape {
            dialect: schema.dialect,
            types: schema.types,
            number: schema.number.clone(),
            string: schema.string.clone(),
            constant,
            enumeration: schema.enumeration.map(|_| values),
            object,
            array,
            in_place,
            in_place_before_own: schema.in_place_before_own,
        }))
    }

    fn alike(
        &mut self,
        program: &Program,
        schema: &Schema,
        node: NodeId,
        depth: usize,
    ) -> Result<SchemaId, LimitExceeded> {
        match self.id_of(program, program.child(schema, node)) {
            Ok(id) => self.canonical_id(program, id, depth),
            // A number past the limits: reported where the schema is expanded.
            Err(error) => match error.exceeded().filter(LimitExceeded::is_interruption) {
                Some(exceeded) => Err(exceeded),
                None => self.interner.single(Atom::schema(node)),
            },
        }
    }

    fn list_alike(
        &mut self,
        program: &Program,
        schema: &Schema,
        nodes: &[NodeId],
        depth: usize,
    ) -> Result<Vec<SchemaId>, LimitExceeded> {
        self.charge(nodes.len())?;
        nodes.iter().map(|&node| self.alike(program, schema, node, depth)).collect()
    }

    fn all_alike(
        &mut self,
        program: &Program,
        schema: &Schema,
        nodes: [Option<NodeId>; 3],
        depth: usize,
    ) -> Result<[Option<SchemaId>; 3], LimitExceeded> {
        let mut ids = [None; 3];
        for (id, node) in ids.iter_mut().zip(nodes) {
            if let Some(node) = node {
                *id = Some(self.alike(program, schema, node, depth)?);
            }
        }
        Ok(ids)
    }
}
