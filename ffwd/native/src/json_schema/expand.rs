//! From keywords to alternatives: what one schema allows, with everything that applies to the
//! same value merged into it.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::alternatives::Alternatives;
use super::document::{NodeId, Value};
use super::error::{LimitExceeded, SchemaError};
use super::intern::{Atom, Demand};
use super::merge::{settle_array, settle_string, Merger};
use super::number_range::NumberRange;
use super::program::Program;
use super::read_scalars::decimal;
use super::schema::{InPlace, Meaning, Schema, Types};
use super::{ArraySpec, ObjectSpec, Property, SchemaId, StringSpec};
use crate::regex::NumberKinds;

/// The alternatives of the schemas that were looked at.
#[derive(Debug)]
pub struct Expander {
    pub merger: Merger,
    known: Vec<Option<Arc<Alternatives>>>,
}

impl Expander {
    pub fn new(merger: Merger) -> Self {
        Self { merger, known: Vec::new() }
    }

    /// The schema at a node.
    pub fn id_of(&mut self, program: &Program, node: NodeId) -> Result<SchemaId, LimitExceeded> {
        match program.meaning(node) {
            Meaning::Any => Ok(SchemaId::ANY),
            Meaning::Never => Ok(SchemaId::NEVER),
            Meaning::Equal(value) => self.merger.interner.single(Atom::equal(value)),
            // Name a schema by the node that has its keywords, so that all references agree.
            Meaning::Schema(number) => {
                let node = program.schemas[number as usize].node;
                self.merger.interner.single(Atom::schema(node))
            }
            // Only reachable nodes are asked for, and those have been read.
            Meaning::Unseen | Meaning::Pending | Meaning::Other | Meaning::Same(_) => {
                Ok(SchemaId::NEVER)
            }
        }
    }

    /// The schema behind an id, if it is a single one.
    pub fn schema_of<'p>(&self, program: &'p Program, id: SchemaId) -> Option<&'p Schema> {
        let &[atom] = self.merger.interner.atoms(id) else { return None };
        let Demand::Schema(node) = atom.demand() else { return None };
        match program.meaning(node) {
            Meaning::Schema(number) => program.schemas.get(number as usize),
            _ => None,
        }
    }

    /// Where an id comes from, for messages.
    pub fn place(&self, program: &Program, id: SchemaId) -> String {
        match self.merger.interner.atoms(id).first().map(|atom| atom.demand()) {
            Some(Demand::Schema(node) | Demand::Equal(node)) => program.document.pointer(node),
            _ => String::new(),
        }
    }

    fn known(&self, id: SchemaId) -> Option<&Arc<Alternatives>> {
        self.known.get(id.index()).and_then(|known| known.as_ref())
    }

    pub fn alternatives(
        &mut self,
        program: &Program,
        root: SchemaId,
    ) -> Result<Arc<Alternatives>, SchemaError> {
        if let Some(known) = self.known(root) {
            return Ok(known.clone());
        }
        // What applies in place is expanded first. There are no circles among those.
        let mut path = vec![root];
        while let Some(&id) = path.last() {
            let needs = self.needs(program, id).map_err(|e| self.exceeded(program, id, e))?;
            let before = path.len();
            path.extend(needs.iter().filter(|&&need| self.known(need).is_none()));
            if path.len() > before {
                continue;
            }
            path.pop();
            let alternatives = self.expand(program, id)?;
            let width = self.merger.check_width(alternatives.width());
            width.map_err(|e| self.exceeded(program, id, e))?;
            if self.known.len() <= id.index() {
                self.known.resize(self.merger.interner.len().max(id.index() + 1), None);
            }
            self.known[id.index()] = Some(alternatives);
        }
        match self.known(root) {
            Some(known) => Ok(known.clone()),
            None => Ok(Arc::new(Alternatives::default())),
        }
    }

    pub fn exceeded(&self, program: &Program, id: SchemaId, error: LimitExceeded) -> SchemaError {
        SchemaError::limit(error, self.place(program, id))
    }

    /// The schemas that apply to the same value as this one.
    fn needs(
        &mut self,
        program: &Program,
        id: SchemaId,
    ) -> Result<SmallVec<[SchemaId; 8]>, LimitExceeded> {
        let mut needs = SmallVec::new();
        if self.merger.interner.atoms(id).len() > 1 {
            let atoms: SmallVec<[Atom; 8]> = self.merger.interner.atoms(id).into();
            for atom in atoms {
                needs.push(self.merger.interner.single(atom)?);
            }
        } else if let Some(schema) = self.schema_of(program, id) {
            for kind in &schema.in_place {
                match *kind {
                    InPlace::Reference(target) => needs.push(self.id_of(program, target)?),
                    InPlace::AllOf(list) | InPlace::AnyOf(list) | InPlace::OneOf(list) => {
                        for &branch in program.document.items(list) {
                            needs.push(self.id_of(program, branch)?);
                        }
                    }
                    InPlace::Not(_) | InPlace::If { .. } | InPlace::Dependencies(_) => {}
                }
            }
        }
        Ok(needs)
    }

    /// Expands an id all of whose needs are known.
    fn expand(
        &mut self,
        program: &Program,
        id: SchemaId,
    ) -> Result<Arc<Alternatives>, SchemaError> {
        let single = match *self.merger.interner.atoms(id) {
            [] => return Ok(Arc::new(Alternatives::any())),
            [atom] => Some(atom.demand()),
            _ => None,
        };
        match single {
            Some(Demand::Never) => Ok(Arc::new(Alternatives::default())),
            Some(Demand::Equal(value)) => {
                let mut alternatives = Alternatives::default();
                self.add_values(program, &[value], &mut alternatives)?;
                Ok(Arc::new(alternatives))
            }
            Some(Demand::Schema(_)) => match self.schema_of(program, id) {
                Some(schema) => self.expand_schema(program, id, schema, |_| true),
                None => Ok(Arc::new(Alternatives::default())),
            },
            None => {
                let needs = self.needs(program, id);
                let needs = needs.map_err(|e| self.exceeded(program, id, e))?;
                let parts: Vec<_> =
                    needs.iter().filter_map(|&need| self.known(need).cloned()).collect();
                let both = self.merger.conjunction(&parts);
                both.map_err(|e| self.exceeded(program, id, e))
            }
        }
    }

    /// The conjunction of a schema's keywords, of the in-place ones only those that are `wanted`
    /// (by their place). What applies in place has been expanded before.
    pub fn expand_schema(
        &mut self,
        program: &Program,
        id: SchemaId,
        schema: &Schema,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Arc<Alternatives>, SchemaError> {
        let mut parts: Vec<Arc<Alternatives>> = Vec::new();
        // Values come first: the keys of an object in `enum` come in the order written there.
        if let Some(value) = schema.constant {
            let mut alternatives = Alternatives::default();
            self.add_values(program, &[value], &mut alternatives)?;
            parts.push(Arc::new(alternatives));
        }
        if let Some(list) = schema.enumeration {
            let mut alternatives = Alternatives::default();
            self.add_values(program, program.document.items(list), &mut alternatives)?;
            parts.push(Arc::new(alternatives));
        }
        for place in 0..=schema.in_place.len() {
            if place == schema.in_place_before_own {
                let own = self.own(program, schema);
                parts.push(Arc::new(own.map_err(|e| self.exceeded(program, id, e))?));
            }
            if let Some(kind) = schema.in_place.get(place).filter(|_| wanted(place)) {
                self.add_in_place(program, *kind, &mut parts)
                    .map_err(|e| self.exceeded(program, id, e))?;
            }
        }
        self.merger.conjunction(&parts).map_err(|e| self.exceeded(program, id, e))
    }

    fn add_in_place(
        &mut self,
        program: &Program,
        kind: InPlace,
        parts: &mut Vec<Arc<Alternatives>>,
    ) -> Result<(), LimitExceeded> {
        let (branches, all) = match &kind {
            InPlace::Reference(target) => (std::slice::from_ref(target), true),
            InPlace::AllOf(list) => (program.document.items(*list), true),
            InPlace::AnyOf(list) | InPlace::OneOf(list) => (program.document.items(*list), false),
            InPlace::Not(_) | InPlace::If { .. } | InPlace::Dependencies(_) => return Ok(()),
        };
        let mut union = Alternatives::default();
        let mut seen = FxHashSet::default();
        for &branch in branches {
            let id = self.id_of(program, branch)?;
            let Some(known) = self.known(id).cloned() else { continue };
            if !seen.insert(id) {
                continue;
            }
            if all {
                parts.push(known);
            } else {
                self.merger.charge(known.width())?;
                union.add(&known);
            }
        }
        if !all {
            union.simplify();
            parts.push(Arc::new(union));
        }
        Ok(())
    }

    /// What `type` and the keywords for single types allow.
    fn own(&mut self, program: &Program, schema: &Schema) -> Result<Alternatives, LimitExceeded> {
        let types = schema.types;
        let mut own = Alternatives {
            null: types.has(Types::NULL),
            boolean_false: types.has(Types::BOOLEAN),
            boolean_true: types.has(Types::BOOLEAN),
            ..Alternatives::default()
        };
        if types.has(Types::NUMBER.with(Types::INTEGER)) {
            let mut range = schema.number.as_deref().cloned().unwrap_or_default();
            if !types.has(Types::NUMBER) {
                let fraction_zero = program.dialect.integer_allows_fraction_zero();
                range.kinds = range.kinds.intersect(NumberKinds::integers(fraction_zero));
            }
            own.numbers.extend(range.settle());
        }
        if types.has(Types::STRING) {
            let spec = schema.string.as_deref().cloned().unwrap_or_else(StringSpec::any);
            own.strings.extend(settle_string(spec));
        }
        if types.has(Types::OBJECT) {
            own.objects.extend(self.own_object(program, schema)?.map(Arc::new));
        }
        if types.has(Types::ARRAY) {
            own.arrays.extend(self.own_array(program, schema)?.map(Arc::new));
        }
        Ok(own)
    }

    fn own_object(
        &mut self,
        program: &Program,
        schema: &Schema,
    ) -> Result<Option<ObjectSpec>, LimitExceeded> {
        let Some(keywords) = schema.object.as_deref() else { return Ok(Some(ObjectSpec::any())) };
        if keywords.max_properties == Some(0) {
            return Ok(Some(ObjectSpec::new(Vec::new(), None)));
        }
        let document = &program.document;
        let additional = match keywords.additional {
            Some(node) => self.id_of(program, node)?,
            None => SchemaId::ANY,
        };
        let mut required: Vec<&str> = Vec::new();
        let mut is_required: FxHashSet<&str> = FxHashSet::default();
        for &name in keywords.required.map_or(&[][..], |node| document.items(node)) {
            if let Value::String(name) = document.value(name) {
                if is_required.insert(name) {
                    required.push(name);
                }
            }
        }
        let mut properties = Vec::new();
        let declared = keywords.properties.map(|node| document.members(node));
        self.merger.charge(required.len() + declared.map_or(0, |members| members.len()))?;
        for (name, node) in declared.iter().flat_map(|members| members.iter()) {
            let schema = self.id_of(program, node)?;
            let required = is_required.contains(name);
            if schema == SchemaId::NEVER {
                if required {
                    return Ok(None);
                }
                if additional == SchemaId::NEVER {
                    continue;
                }
            }
            properties.push(Property { name: name.into(), schema, required, free: false });
        }
        for name in required {
            if declared.is_some_and(|members| members.get(name).is_some()) {
                continue;
            }
            if additional == SchemaId::NEVER {
                return Ok(None);
            }
            properties.push(Property {
                name: name.into(),
                schema: additional,
                required: true,
                free: false,
            });
        }
        let additional = Some(additional).filter(|&id| id != SchemaId::NEVER);
        Ok(Some(ObjectSpec::new(properties, additional)))
    }

    fn own_array(
        &mut self,
        program: &Program,
        schema: &Schema,
    ) -> Result<Option<ArraySpec>, LimitExceeded> {
        let Some(keywords) = schema.array.as_deref() else { return Ok(Some(ArraySpec::any())) };
        let items = match keywords.items {
            Some(node) => self.id_of(program, node)?,
            None => SchemaId::ANY,
        };
        let prefix = keywords.prefix.map_or(&[][..], |node| program.document.items(node));
        self.merger.charge(prefix.len())?;
        let prefix =
            prefix.iter().map(|&node| self.id_of(program, node)).collect::<Result<_, _>>()?;
        Ok(settle_array(ArraySpec {
            prefix,
            items: Some(items),
            min_items: keywords.min_items,
            max_items: keywords.max_items,
            contains: Vec::new(),
            unique: false,
        }))
    }

    /// Adds alternatives that are equal to the values.
    fn add_values(
        &mut self,
        program: &Program,
        values: &[NodeId],
        into: &mut Alternatives,
    ) -> Result<(), SchemaError> {
        let document = &program.document;
        let mut strings: Vec<Arc<str>> = Vec::new();
        let mut numbers = Vec::new();
        for &node in values {
            let exceeded = |e| SchemaError::limit(e, document.pointer(node));
            match document.value(node) {
                Value::Null => into.null = true,
                Value::Boolean(false) => into.boolean_false = true,
                Value::Boolean(true) => into.boolean_true = true,
                Value::Number(text) => numbers.push(decimal(document, node, text)?),
                Value::String(text) => strings.push(text.into()),
                Value::Array(items) => {
                    self.merger.charge(items.len()).map_err(exceeded)?;
                    let interner = &mut self.merger.interner;
                    let prefix = items.iter().map(|&item| interner.single(Atom::equal(item)));
                    let prefix = prefix.collect::<Result<Vec<_>, _>>().map_err(exceeded)?;
                    let length = items.len() as u64;
                    into.arrays.push(Arc::new(ArraySpec {
                        prefix,
                        items: None,
                        min_items: length,
                        max_items: Some(length),
                        contains: Vec::new(),
                        unique: false,
                    }));
                }
                Value::Object(members) => {
                    self.merger.charge(members.len()).map_err(exceeded)?;
                    let interner = &mut self.merger.interner;
                    let properties = members.iter().map(|(name, value)| {
                        let schema = interner.single(Atom::equal(value))?;
                        Ok(Property { name: name.into(), schema, required: true, free: false })
                    });
                    let properties =
                        properties.collect::<Result<_, LimitExceeded>>().map_err(exceeded)?;
                    into.objects.push(Arc::new(ObjectSpec::new(properties, None)));
                }
            }
        }
        if !strings.is_empty() {
            into.strings.push(StringSpec::values(strings));
        }
        if !numbers.is_empty() {
            into.numbers.push(NumberRange::values(numbers));
        }
        Ok(())
    }
}
