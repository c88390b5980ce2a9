//! Obvious properties of conjunctions, from types and listed values alone, without other schemas.
//! Most `oneOf` and `if` concern a property whose constant distinguishes the cases; resolving that
//! here keeps their alternatives few.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::document::{NodeId, Value};
use super::error::LimitExceeded;
use super::expand::Expander;
use super::intern::{Atom, Demand};
use super::program::Program;
use super::schema::{Meaning, Schema, Types};
use super::values::{Constant, ValueId};
use super::SchemaId;

/// Lists of values longer than this are not looked at.
const MAX_VALUES: usize = 64;

type ValueList = SmallVec<[ValueId; 2]>;

/// The known results for conjunctions.
#[derive(Debug, Default)]
pub struct PlainMemo {
    settled: FxHashMap<SchemaId, SchemaId>,
    /// The scalars that `enum` lists, for schemas in which it has few.
    listed: FxHashMap<NodeId, Option<ValueList>>,
}

/// The obvious relation of an atom and a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    Holds,
    Fails,
    Unknown,
}

impl Expander {
    /// Returns the conjunction of all `ids`: [`SchemaId::NEVER`] if it is clearly empty, and the
    /// value alone if only one is left.
    pub fn both(&mut self, program: &Program, ids: &[SchemaId]) -> Result<SchemaId, LimitExceeded> {
        if let [left, right] = ids {
            if let (Some(left), Some(right)) = (self.single_value(*left), self.single_value(*right))
            {
                return Ok(if left == right { ids[0] } else { SchemaId::NEVER });
            }
        }
        let id = self.interner.conjunction(ids)?;
        if self.interner.atoms(id).len() < 2 {
            return Ok(id);
        }
        if let Some(&known) = self.plain.settled.get(&id) {
            return Ok(known);
        }
        let negated = |atom: &Atom| matches!(atom.demand(), Demand::Not(_));
        let same = match self.interner.atoms(id).iter().any(negated) {
            true => self.canonical(program, id)?,
            false => id,
        };
        let settled = match self.interner.atoms(same).len() {
            0 | 1 => same,
            _ => self.settle(program, same)?,
        };
        self.plain.settled.insert(id, settled);
        Ok(settled)
    }

    /// The single value that a schema allows, if it is just that.
    pub(super) fn single_value(&self, schema: SchemaId) -> Option<ValueId> {
        match *self.interner.atoms(schema) {
            [atom] => match atom.demand() {
                Demand::Equal(value) => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the union of two schemas.
    pub(super) fn either(
        &mut self,
        program: &Program,
        left: SchemaId,
        right: SchemaId,
    ) -> Result<SchemaId, LimitExceeded> {
        let neither = [self.interner.negation(left)?, self.interner.negation(right)?];
        let neither = self.both(program, &neither)?;
        self.interner.negation(neither)
    }

    fn settle(&mut self, program: &Program, id: SchemaId) -> Result<SchemaId, LimitExceeded> {
        let atoms: SmallVec<[Atom; 4]> = self.interner.atoms(id).into();
        self.charge(atoms.len())?;
        let mut types = Types::ALL;
        let mut candidates: Option<ValueList> = None;
        for atom in &atoms {
            types = types.both(self.types_of(program, *atom));
            if candidates.as_ref().is_none_or(|list| list.len() > 1) {
                if let Some(list) = self.values_of(program, *atom)? {
                    if candidates.as_ref().is_none_or(|known| known.len() > list.len()) {
                        candidates = Some(list);
                    }
                }
            }
        }
        if types == Types::NONE {
            return Ok(SchemaId::NEVER);
        }
        let Some(candidates) = candidates else { return Ok(id) };
        let mut left: Option<(ValueId, bool)> = None;
        for &value in &candidates {
            let mut certain = true;
            let mut fails = false;
            for atom in &atoms {
                match self.judge(program, *atom, value)? {
                    Plain::Holds => {}
                    Plain::Fails => fails = true,
                    Plain::Unknown => certain = false,
                }
            }
            if !fails {
                if left.is_some() {
                    return Ok(id);
                }
                left = Some((value, certain));
            }
        }
        match left {
            None => Ok(SchemaId::NEVER),
            Some((value, true)) => self.interner.single(Atom::equal(value)),
            Some(_) => Ok(id),
        }
    }

    pub(super) fn record<'p>(&self, program: &'p Program, node: NodeId) -> Option<&'p Schema> {
        match program.meaning(node) {
            Meaning::Schema(number) => program.schemas.get(number as usize),
            _ => None,
        }
    }

    fn types_of(&self, program: &Program, atom: Atom) -> Types {
        match atom.demand() {
            Demand::Schema(node) => {
                self.record(program, node).map_or(Types::ALL, |schema| schema.types)
            }
            Demand::Equal(value) => match self.values.get(value) {
                // Draft 4 takes 1.0 for a number only.
                Constant::Number(_) => Types::NUMBER.with(Types::INTEGER),
                other => other.types(),
            },
            Demand::Object(_) => Types::OBJECT,
            Demand::Not(_) | Demand::Listed(_) => Types::ALL,
            Demand::Never => Types::NONE,
        }
    }

    /// The few values that an atom lists.
    fn values_of(
        &mut self,
        program: &Program,
        atom: Atom,
    ) -> Result<Option<ValueList>, LimitExceeded> {
        let node = match atom.demand() {
            Demand::Equal(value) => return Ok(Some(ValueList::from_slice(&[value]))),
            Demand::Listed(list) => {
                let list = self.parts.list(list);
                return Ok((list.len() <= MAX_VALUES).then(|| ValueList::from_slice(list)));
            }
            Demand::Schema(node) => node,
            _ => return Ok(None),
        };
        if let Some(known) = self.plain.listed.get(&node) {
            return Ok(known.clone());
        }
        let list = match self.record(program, node) {
            Some(Schema { constant: Some(value), .. }) => Some(vec![*value]),
            Some(Schema { enumeration: Some(list), .. }) => {
                Some(program.document.items(*list).to_vec())
            }
            _ => None,
        };
        let scalar = |node: &NodeId| {
            !matches!(program.document.value(*node), Value::Array(_) | Value::Object(_))
        };
        let list = match list {
            Some(nodes) if nodes.len() <= MAX_VALUES && nodes.iter().all(scalar) => {
                let mut values = ValueList::new();
                for node in nodes {
                    match self.values.of_node(&program.document, node) {
                        Ok(value) => values.push(value),
                        // The limits of numbers are checked when the value is expanded.
                        Err(_) => return Ok(None),
                    }
                }
                values.sort_unstable();
                values.dedup();
                Some(values)
            }
            _ => None,
        };
        self.plain.listed.insert(node, list.clone());
        Ok(list)
    }

    /// All values that satisfy an atom, if they are clearly known and few.
    pub(super) fn plainly_listed(
        &mut self,
        program: &Program,
        atom: Atom,
    ) -> Result<Option<Vec<ValueId>>, LimitExceeded> {
        let Some(list) = self.values_of(program, atom)? else { return Ok(None) };
        let mut values = Vec::with_capacity(list.len());
        for value in list {
            match self.judge(program, atom, value)? {
                Plain::Holds => values.push(value),
                Plain::Fails => {}
                Plain::Unknown => return Ok(None),
            }
        }
        Ok(Some(values))
    }

    fn judge(
        &mut self,
        program: &Program,
        atom: Atom,
        value: ValueId,
    ) -> Result<Plain, LimitExceeded> {
        match atom.demand() {
            Demand::Never => Ok(Plain::Fails),
            Demand::Equal(other) if other == value => Ok(Plain::Holds),
            Demand::Equal(_) => Ok(Plain::Fails),
            Demand::Listed(list) => Ok(match self.parts.list(list).binary_search(&value) {
                Ok(_) => Plain::Holds,
                Err(_) => Plain::Fails,
            }),
            Demand::Object(_) => Ok(match self.values.get(value) {
                Constant::Object(_) => Plain::Unknown,
                _ => Plain::Fails,
            }),
            Demand::Not(inner) => {
                let inner: SmallVec<[Atom; 4]> = self.interner.atoms(inner).into();
                let mut all = Plain::Holds;
                for atom in inner {
                    match self.judge(program, atom, value)? {
                        Plain::Holds => {}
                        Plain::Fails => return Ok(Plain::Holds),
                        Plain::Unknown => all = Plain::Unknown,
                    }
                }
                Ok(if all == Plain::Holds { Plain::Fails } else { Plain::Unknown })
            }
            Demand::Schema(node) => {
                let Some(schema) = self.record(program, node) else { return Ok(Plain::Unknown) };
                let constant = self.values.get(value);
                let types = constant.types();
                if !schema.types.has(types) {
                    return Ok(Plain::Fails);
                }
                let listed = schema.constant.is_some() || schema.enumeration.is_some();
                let free = match constant {
                    Constant::Null | Constant::Boolean(_) => true,
                    Constant::Number(_) => {
                        schema.number.is_none() && schema.types.has(Types::NUMBER)
                    }
                    Constant::String(_) => schema.string.is_none(),
                    Constant::Array(_) | Constant::Object(_) => false,
                };
                if listed {
                    let Some(list) = self.values_of(program, atom)? else {
                        return Ok(Plain::Unknown);
                    };
                    if list.binary_search(&value).is_err() {
                        return Ok(Plain::Fails);
                    }
                }
                Ok(if free && schema.in_place.is_empty() { Plain::Holds } else { Plain::Unknown })
            }
        }
    }
}
