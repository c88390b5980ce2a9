//! From keywords to alternatives: what one schema allows, with everything that applies to the
//! same value merged into it.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::alternatives::Alternatives;
use super::document::{NodeId, Value};
use super::error::{LimitExceeded, Result, SchemaError};
use super::intern::{Atom, Demand, Interner};
use super::languages::Languages;
use super::options::SchemaOptions;
use super::parts::Parts;
use super::plain::PlainMemo;
use super::program::Program;
use super::schema::{InPlace, Meaning, Schema};
use super::shape::Shapes;
use super::values::{ValueId, Values};
use super::{ArraySpec, ObjectSpec, SchemaId};
use ffwd_bounds::meter;

/// The alternatives of the examined schemas, and the remaining budget.
#[derive(Debug)]
pub struct Expander {
    pub interner: Interner,
    pub values: Values,
    pub(super) languages: Languages,
    pub(super) plain: PlainMemo,
    pub(super) shapes: Shapes,
    pub(super) parts: Parts,
    known: Vec<Option<Arc<Alternatives>>>,
    /// How many bytes of memory the alternatives hold.
    held: usize,
    max_alternatives: u64,
    pub steps_left: u64,
    max_steps: u64,
}

impl Expander {
    pub fn new(options: &SchemaOptions) -> Self {
        let limits = options.limits;
        // Two bits of an atom are spent on what it is.
        let schemas = limits.schemas.min(1 << 29);
        Self {
            interner: Interner::new(schemas),
            values: Values::new(schemas),
            languages: Languages::new(options),
            plain: PlainMemo::default(),
            shapes: Shapes::default(),
            parts: Parts::default(),
            known: Vec::new(),
            held: 0,
            max_alternatives: limits.alternatives,
            steps_left: limits.steps,
            max_steps: limits.steps,
        }
    }

    /// The estimated memory in bytes of all results.
    pub fn memory_bytes(&self) -> usize {
        self.held
            + self.known.capacity() * std::mem::size_of::<Option<Arc<Alternatives>>>()
            + self.interner.memory_bytes()
            + self.values.memory_bytes()
            + self.languages.memory_bytes()
            + self.parts.memory_bytes()
    }

    /// Takes steps from the budget of the current call.
    pub fn charge(&mut self, steps: usize) -> Result<(), LimitExceeded> {
        meter::charge(steps)?;
        match self.steps_left.checked_sub(steps as u64) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => Err(LimitExceeded { limit: "steps", maximum: self.max_steps }),
        }
    }

    pub fn check_width(&self, width: usize) -> Result<(), LimitExceeded> {
        if width as u64 > self.max_alternatives {
            return Err(LimitExceeded { limit: "alternatives", maximum: self.max_alternatives });
        }
        Ok(())
    }

    /// The schema at a node.
    pub fn id_of(&mut self, program: &Program, node: NodeId) -> Result<SchemaId> {
        let exceeded = |error| SchemaError::limit(error, program.pointer(node));
        match program.meaning(node) {
            Meaning::Any => Ok(SchemaId::ANY),
            Meaning::Never => Ok(SchemaId::NEVER),
            Meaning::Equal(value) => {
                let value = self.values.of_node(&program.document, value)?;
                self.interner.single(Atom::equal(value)).map_err(exceeded)
            }
            // Name a schema by the node that has its keywords, so that all references agree.
            Meaning::Schema(number) => {
                let node = program.schemas[number as usize].node;
                self.interner.single(Atom::schema(node)).map_err(exceeded)
            }
            // Only reachable nodes are requested, and these have been read.
            Meaning::Unseen | Meaning::Pending | Meaning::Other | Meaning::Same(_) => {
                Ok(SchemaId::NEVER)
            }
        }
    }

    /// The schema behind an id, if it is a single one.
    pub fn schema_of<'p>(&self, program: &'p Program, id: SchemaId) -> Option<&'p Schema> {
        let &[atom] = self.interner.atoms(id) else { return None };
        let Demand::Schema(node) = atom.demand() else { return None };
        match program.meaning(node) {
            Meaning::Schema(number) => program.schemas.get(number as usize),
            _ => None,
        }
    }

    /// Returns the source of an id, for messages.
    pub fn place(&self, program: &Program, id: SchemaId) -> String {
        let mut id = id;
        loop {
            match self.interner.atoms(id).first().map(|atom| atom.demand()) {
                Some(Demand::Schema(node)) => return program.pointer(node),
                Some(Demand::Equal(value)) => {
                    let origin = self.values.origin(value);
                    return origin.map(|node| program.pointer(node)).unwrap_or_default();
                }
                Some(Demand::Not(inner)) => id = inner,
                Some(Demand::Listed(_) | Demand::Object(_) | Demand::Never) | None => {
                    return String::new()
                }
            }
        }
    }

    /// Returns the sources of a schema's conjuncts, for people.
    pub fn places(&self, program: &Program, id: SchemaId) -> Vec<String> {
        let mut places = Vec::new();
        for atom in self.interner.atoms(id) {
            let place = match atom.demand() {
                Demand::Schema(node) => Some(program.pointer(node)),
                Demand::Equal(value) => self.values.origin(value).map(|node| program.pointer(node)),
                Demand::Not(inner) => Some(self.place(program, inner)),
                Demand::Listed(_) | Demand::Object(_) | Demand::Never => None,
            };
            places.extend(place.filter(|place| !places.contains(place)));
        }
        places
    }

    fn known(&self, id: SchemaId) -> Option<&Arc<Alternatives>> {
        self.known.get(id.index()).and_then(|known| known.as_ref())
    }

    /// The alternatives of a schema that was asked for in `needs`.
    pub(super) fn expanded(&self, id: SchemaId) -> Arc<Alternatives> {
        self.known(id).cloned().unwrap_or_default()
    }

    pub fn alternatives(&mut self, program: &Program, root: SchemaId) -> Result<Arc<Alternatives>> {
        if let Some(known) = self.known(root) {
            return Ok(known.clone());
        }
        // In-place subschemas are expanded first.
        let mut path = vec![(root, false)];
        let mut open: FxHashSet<SchemaId> = FxHashSet::default();
        while let Some((id, entered)) = path.last_mut() {
            let id = *id;
            if !*entered {
                *entered = true;
                open.insert(id);
                let needs = self.needs(program, id)?;
                let before = path.len();
                for need in needs {
                    if self.known(need).is_some() {
                        continue;
                    }
                    // The reader has refused most circles, but not those through names of
                    // properties.
                    if open.contains(&need) {
                        return Err(SchemaError::invalid(
                            None,
                            self.place(program, need),
                            "the schema refers to itself for the same value, without end".into(),
                        ));
                    }
                    path.push((need, false));
                }
                if path.len() > before {
                    continue;
                }
            }
            path.pop();
            open.remove(&id);
            if self.known(id).is_some() {
                continue;
            }
            let alternatives = self.expand(program, id)?;
            let width = self.check_width(alternatives.width());
            width.map_err(|e| self.exceeded(program, id, e))?;
            if self.known.len() <= id.index() {
                self.known.resize(self.interner.len().max(id.index() + 1), None);
            }
            self.held += alternatives.memory_bytes();
            self.known[id.index()] = Some(alternatives);
        }
        Ok(self.expanded(root))
    }

    pub fn exceeded(&self, program: &Program, id: SchemaId, error: LimitExceeded) -> SchemaError {
        SchemaError::limit(error, self.place(program, id))
    }

    /// The schemas that apply to the same value as this one, or to the names of its properties.
    fn needs(&mut self, program: &Program, id: SchemaId) -> Result<SmallVec<[SchemaId; 8]>> {
        let mut needs = SmallVec::new();
        let atoms: SmallVec<[Atom; 8]> = self.interner.atoms(id).into();
        if let &[atom] = &atoms[..] {
            if let Demand::Not(inner) = atom.demand() {
                needs.push(inner);
            } else if let Some(schema) = self.schema_of(program, id) {
                for kind in &schema.in_place {
                    for node in in_place_nodes(program, kind) {
                        needs.push(self.id_of(program, program.child(schema, node))?);
                    }
                }
                if let Some(names) = schema.object.as_ref().and_then(|object| object.names) {
                    needs.push(self.id_of(program, program.child(schema, names))?);
                }
            }
        } else {
            for atom in atoms {
                let single = self.interner.single(atom);
                needs.push(single.map_err(|e| self.exceeded(program, id, e))?);
            }
        }
        Ok(needs)
    }

    /// Expands an id all of whose needs are known.
    fn expand(&mut self, program: &Program, id: SchemaId) -> Result<Arc<Alternatives>> {
        let single = match *self.interner.atoms(id) {
            [] => return Ok(Arc::new(Alternatives::any())),
            [atom] => Some(atom.demand()),
            _ => None,
        };
        match single {
            Some(Demand::Never) => Ok(Arc::default()),
            Some(Demand::Equal(value)) => {
                let alternatives = self.equal_to(value);
                alternatives.map_err(|e| self.exceeded(program, id, e)).map(Arc::new)
            }
            Some(Demand::Listed(list)) => {
                let list: Vec<ValueId> = self.parts.list(list).to_vec();
                let alternatives = self.equal_to_any(&list);
                alternatives.map_err(|e| self.exceeded(program, id, e)).map(Arc::new)
            }
            Some(Demand::Object(spec)) => {
                let objects = vec![self.parts.object(spec).clone()];
                Ok(Arc::new(Alternatives { objects, ..Alternatives::default() }))
            }
            Some(Demand::Not(inner)) => {
                let inner = self.expanded(inner);
                let left = self.without(program, &Alternatives::any(), &inner);
                left.map_err(|e| self.exceeded(program, id, e)).map(Arc::new)
            }
            Some(Demand::Schema(_)) => match self.schema_of(program, id) {
                Some(schema) => self.expand_schema(program, id, schema),
                None => Ok(Arc::default()),
            },
            None => {
                let needs = self.needs(program, id)?;
                let parts: Vec<_> = needs.iter().map(|&need| self.expanded(need)).collect();
                let both = self.conjunction(program, &parts);
                both.map_err(|e| self.exceeded(program, id, e))
            }
        }
    }

    /// Returns the conjunction of a schema's keywords. Its in-place subschemas are already
    /// expanded.
    fn expand_schema(
        &mut self,
        program: &Program,
        id: SchemaId,
        schema: &Schema,
    ) -> Result<Arc<Alternatives>> {
        let mut parts: Vec<Arc<Alternatives>> = Vec::new();
        let mut negated: Vec<(usize, NodeId)> = Vec::new();
        // Values come first: the keys of an object in `enum` keep the order written there.
        if let Some(value) = schema.constant {
            parts.push(Arc::new(self.any_of_values(program, &[value])?));
        }
        if let Some(list) = schema.enumeration {
            parts.push(Arc::new(self.any_of_values(program, program.document.items(list))?));
        }
        for place in 0..=schema.in_place.len() {
            if place == schema.in_place_before_own {
                parts.push(Arc::new(self.own(program, id, schema)?));
            }
            match schema.in_place.get(place) {
                Some(InPlace::Not(node)) => {
                    negated.push((parts.len(), *node));
                    parts.push(Arc::new(Alternatives::any()));
                }
                Some(kind) => self.add_in_place(program, id, schema, kind, &mut parts)?,
                None => {}
            }
        }
        for (place, node) in negated {
            let inner = self.id_of(program, program.child(schema, node))?;
            let inner = self.expanded(inner);
            // Containers that no other keyword allows need no negation, which may be wide.
            let mut left = Alternatives::any();
            if parts.iter().any(|part| part.objects.is_empty()) {
                left.objects.clear();
            }
            if parts.iter().any(|part| part.arrays.is_empty()) {
                left.arrays.clear();
            } else if schema.constant.is_some() || schema.enumeration.is_some() {
                // Listed arrays are fewer than what is left of all.
                left.arrays.clone_from(&parts[0].arrays);
            }
            let part = self.without(program, &left, &inner);
            parts[place] = Arc::new(part.map_err(|e| self.exceeded(program, id, e))?);
        }
        let all = self.conjunction(program, &parts).map_err(|e| self.exceeded(program, id, e))?;
        let objects = schema.object.as_ref().is_some_and(|object| object.unevaluated.is_some());
        let arrays = schema.array.as_ref().is_some_and(|array| array.unevaluated.is_some());
        if !objects && !arrays {
            return Ok(all);
        }
        let mut all = Alternatives::clone(&all);
        if objects {
            let annotated = self.annotated::<ObjectSpec>(program, id, 0)?;
            all.objects = annotated.into_iter().map(|(spec, _)| spec).collect();
            all.joined = None;
        }
        if arrays {
            let annotated = self.annotated::<ArraySpec>(program, id, 0)?;
            all.arrays = annotated.into_iter().map(|(spec, _)| spec).collect();
        }
        all.simplify();
        Ok(Arc::new(all))
    }

    fn add_in_place(
        &mut self,
        program: &Program,
        id: SchemaId,
        schema: &Schema,
        kind: &InPlace,
        parts: &mut Vec<Arc<Alternatives>>,
    ) -> Result<()> {
        let mut expanded = |node: NodeId| {
            let id = self.id_of(program, program.child(schema, node))?;
            Ok::<_, SchemaError>((id, self.expanded(id)))
        };
        let part = match kind {
            InPlace::Reference(target) => {
                parts.push(expanded(*target)?.1);
                return Ok(());
            }
            InPlace::AllOf(list) => {
                for &branch in program.document.items(*list) {
                    parts.push(expanded(branch)?.1);
                }
                return Ok(());
            }
            InPlace::AnyOf(list) => {
                let mut branches: Vec<(SchemaId, Arc<Alternatives>)> = Vec::new();
                for &branch in program.document.items(*list) {
                    branches.push(expanded(branch)?);
                }
                self.any_of(branches)
            }
            InPlace::OneOf(list) => {
                let branches: Result<Vec<_>, _> = program
                    .document
                    .items(*list)
                    .iter()
                    .map(|&branch| Ok::<_, SchemaError>(expanded(branch)?.1))
                    .collect();
                self.exactly_one(program, &branches?)
            }
            // What the other keywords allow is known first.
            InPlace::Not(_) => return Ok(()),
            InPlace::If { test, then, otherwise } => {
                let (_, test) = expanded(*test)?;
                let mut branch = |node: &Option<NodeId>| match node {
                    Some(node) => Ok::<_, SchemaError>(expanded(*node)?.1),
                    None => Ok(Arc::new(Alternatives::any())),
                };
                let (then, otherwise) = (branch(then)?, branch(otherwise)?);
                self.conditional(program, &test, &then, &otherwise)
            }
            InPlace::Dependencies(node) => {
                let members = program.document.members(*node);
                parts.extend(self.names_needed(program, members).into_iter().map(Arc::new));
                for (name, needed) in members.iter() {
                    if matches!(program.document.value(needed), Value::Array(_)) {
                        continue;
                    }
                    let needed = self.id_of(program, program.child(schema, needed))?;
                    let needed = self.expanded(needed);
                    let part = self.dependent_schema(program, name, &needed);
                    parts.push(Arc::new(part.map_err(|e| self.exceeded(program, id, e))?));
                }
                return Ok(());
            }
        };
        parts.push(Arc::new(part.map_err(|e| self.exceeded(program, id, e))?));
        Ok(())
    }
}

/// The subschemas of an in-place keyword that apply to the same value.
pub(super) fn in_place_nodes(program: &Program, kind: &InPlace) -> SmallVec<[NodeId; 8]> {
    match *kind {
        InPlace::Reference(node) | InPlace::Not(node) => SmallVec::from_slice(&[node]),
        InPlace::AllOf(list) | InPlace::AnyOf(list) | InPlace::OneOf(list) => {
            program.document.items(list).into()
        }
        InPlace::If { test, then, otherwise } => {
            [Some(test), then, otherwise].into_iter().flatten().collect()
        }
        InPlace::Dependencies(node) => program
            .document
            .members(node)
            .iter()
            .map(|(_, needed)| needed)
            .filter(|&needed| !matches!(program.document.value(needed), Value::Array(_)))
            .collect(),
    }
}
