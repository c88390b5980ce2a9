//! Schemas that occur in no document: lists of values, and objects that are examined alone.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::error::LimitExceeded;
use super::expand::Expander;
use super::intern::{Atom, Demand};
use super::program::Program;
use super::values::ValueId;
use super::{ObjectSpec, SchemaId};

/// Interned lists and specifications; an [`Atom`] has their numbers.
#[derive(Debug, Default)]
pub struct Parts {
    lists: Vec<Arc<[ValueId]>>,
    list_ids: FxHashMap<Arc<[ValueId]>, u32>,
    objects: Vec<Arc<ObjectSpec>>,
    object_ids: FxHashMap<Arc<ObjectSpec>, u32>,
    held: usize,
}

impl Parts {
    /// Sorted and without duplicates.
    pub fn list(&self, list: u32) -> &[ValueId] {
        &self.lists[list as usize]
    }

    pub fn object(&self, spec: u32) -> &Arc<ObjectSpec> {
        &self.objects[spec as usize]
    }

    pub fn memory_bytes(&self) -> usize {
        self.held
    }
}

impl Expander {
    /// Returns the schema of values that equal one of some values.
    pub(super) fn one_of_values(
        &mut self,
        mut values: Vec<ValueId>,
    ) -> Result<SchemaId, LimitExceeded> {
        values.sort_unstable();
        values.dedup();
        self.charge(1 + values.len())?;
        let list: Arc<[ValueId]> = match values[..] {
            [] => return Ok(SchemaId::NEVER),
            [value] => return self.interner.single(Atom::equal(value)),
            _ => values.into(),
        };
        let parts = &mut self.parts;
        let known = parts.list_ids.get(&list).copied();
        let number = known.unwrap_or_else(|| {
            parts.held += 64 + 2 * std::mem::size_of_val(&*list);
            parts.lists.push(list.clone());
            let number = parts.lists.len() as u32 - 1;
            parts.list_ids.insert(list, number);
            number
        });
        self.interner.single(Atom::listed(number))
    }

    /// The objects that satisfy a specification.
    pub(super) fn object_schema(&mut self, spec: ObjectSpec) -> Result<SchemaId, LimitExceeded> {
        self.charge(1 + spec.properties.len() + spec.excluded.len())?;
        let spec = Arc::new(spec);
        let parts = &mut self.parts;
        let known = parts.object_ids.get(&spec).copied();
        let number = known.unwrap_or_else(|| {
            parts.held += 64 + spec.memory_bytes();
            parts.objects.push(spec.clone());
            let number = parts.objects.len() as u32 - 1;
            parts.object_ids.insert(spec, number);
            number
        });
        self.interner.single(Atom::object(number))
    }

    /// The values that a schema clearly allows; with `true`, the ones that it clearly forbids, and
    /// it allows all others.
    pub(super) fn listed_values(
        &mut self,
        program: &Program,
        schema: SchemaId,
    ) -> Result<Option<(Vec<ValueId>, bool)>, LimitExceeded> {
        let (inner, negated) = match *self.interner.atoms(schema) {
            [atom] => match atom.demand() {
                Demand::Not(inner) => (inner, true),
                _ => (schema, false),
            },
            _ => return Ok(None),
        };
        let &[atom] = self.interner.atoms(inner) else { return Ok(None) };
        let listed = match atom.demand() {
            Demand::Equal(value) => Some(vec![value]),
            Demand::Listed(list) => Some(self.parts.list(list).to_vec()),
            _ => self.plainly_listed(program, atom)?,
        };
        Ok(listed.map(|values| (values, negated)))
    }
}
