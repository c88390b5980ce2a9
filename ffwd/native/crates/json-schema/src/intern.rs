//! Interned conjunctions: a [`SchemaId`] is a canonical set of things that must hold together.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::document::NodeId;
use super::error::LimitExceeded;
use super::values::ValueId;
use super::SchemaId;
use ffwd_bounds::meter;

/// One thing that must hold. Subschemas sort in document order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Atom(u32);

/// The meaning of an [`Atom`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// The value satisfies the subschema at the node.
    Schema(NodeId),
    /// The value equals this one.
    Equal(ValueId),
    /// The value does not satisfy the schema.
    Not(SchemaId),
    /// The value is one of a list that the expander keeps.
    Listed(u32),
    /// The value is an object as a specification that the expander keeps.
    Object(u32),
    /// Nothing satisfies this.
    Never,
}

impl Atom {
    pub const NEVER: Atom = Atom(u32::MAX);

    pub fn schema(node: NodeId) -> Self {
        Self(node.0 << 2)
    }

    pub fn equal(value: ValueId) -> Self {
        Self(value.0 << 2 | 1)
    }

    fn not(schema: SchemaId) -> Self {
        Self(schema.0 << 2 | 2)
    }

    pub fn listed(list: u32) -> Self {
        Self(list << 3 | 3)
    }

    pub fn object(spec: u32) -> Self {
        Self(spec << 3 | 7)
    }

    pub fn demand(self) -> Demand {
        match self.0 & 3 {
            0 => Demand::Schema(NodeId(self.0 >> 2)),
            1 => Demand::Equal(ValueId(self.0 >> 2)),
            2 => Demand::Not(SchemaId(self.0 >> 2)),
            _ if self == Self::NEVER => Demand::Never,
            _ if self.0 & 4 == 0 => Demand::Listed(self.0 >> 3),
            _ => Demand::Object(self.0 >> 3),
        }
    }
}

impl SchemaId {
    /// No demand: every value.
    pub const ANY: SchemaId = SchemaId(0);
    /// No value.
    pub const NEVER: SchemaId = SchemaId(1);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

type AtomSet = SmallVec<[Atom; 4]>;

#[derive(Debug)]
pub struct Interner {
    sets: Vec<AtomSet>,
    ids: FxHashMap<AtomSet, SchemaId>,
    maximum: u64,
}

impl Interner {
    pub fn new(maximum: u64) -> Self {
        let mut interner = Self { sets: Vec::new(), ids: FxHashMap::default(), maximum };
        for (set, id) in [
            (AtomSet::new(), SchemaId::ANY),
            (AtomSet::from_slice(&[Atom::NEVER]), SchemaId::NEVER),
        ] {
            interner.sets.push(set.clone());
            interner.ids.insert(set, id);
        }
        interner
    }

    pub fn len(&self) -> usize {
        self.sets.len()
    }

    pub fn atoms(&self, id: SchemaId) -> &[Atom] {
        &self.sets[id.index()]
    }

    pub fn single(&mut self, atom: Atom) -> Result<SchemaId, LimitExceeded> {
        self.intern(AtomSet::from_slice(&[atom]))
    }

    /// Returns the schema of values that satisfy all of `ids`.
    pub fn conjunction(&mut self, ids: &[SchemaId]) -> Result<SchemaId, LimitExceeded> {
        let mut distinct: SmallVec<[SchemaId; 4]> = SmallVec::new();
        for &id in ids {
            if id == SchemaId::NEVER {
                return Ok(SchemaId::NEVER);
            }
            if id != SchemaId::ANY {
                distinct.push(id);
            }
        }
        distinct.sort_unstable();
        distinct.dedup();
        match distinct.as_slice() {
            [] => return Ok(SchemaId::ANY),
            [id] => return Ok(*id),
            _ => {}
        }
        let mut set: AtomSet = SmallVec::new();
        for &id in &distinct {
            set.extend_from_slice(self.atoms(id));
        }
        set.sort_unstable();
        set.dedup();
        meter::charge(1 + set.len() / 2)?;
        // A required and a forbidden schema.
        let contradicts = |atom: &Atom| match atom.demand() {
            Demand::Not(inner) => {
                self.atoms(inner).iter().all(|part| set.binary_search(part).is_ok())
            }
            _ => false,
        };
        if set.iter().any(contradicts) {
            return Ok(SchemaId::NEVER);
        }
        self.intern(set)
    }

    /// Returns the schema of values that do not satisfy `id`.
    pub fn negation(&mut self, id: SchemaId) -> Result<SchemaId, LimitExceeded> {
        match id {
            SchemaId::ANY => Ok(SchemaId::NEVER),
            SchemaId::NEVER => Ok(SchemaId::ANY),
            _ => match *self.atoms(id) {
                [atom] => match atom.demand() {
                    Demand::Not(inner) => Ok(inner),
                    _ => self.single(Atom::not(id)),
                },
                _ => self.single(Atom::not(id)),
            },
        }
    }

    fn intern(&mut self, set: AtomSet) -> Result<SchemaId, LimitExceeded> {
        if let Some(&id) = self.ids.get(&set) {
            return Ok(id);
        }
        if self.sets.len() as u64 >= self.maximum {
            return Err(LimitExceeded { limit: "schemas", maximum: self.maximum });
        }
        let id = SchemaId(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conjunctions_are_canonical() {
        let mut interner = Interner::new(8);
        let [a, b, c] = [1, 2, 3].map(|n| interner.single(Atom::schema(NodeId(n))).unwrap());
        let ab = interner.conjunction(&[b, a, SchemaId::ANY]).unwrap();
        let bc = interner.conjunction(&[b, c]).unwrap();
        let abc = interner.conjunction(&[ab, bc]).unwrap();
        assert_eq!(interner.conjunction(&[c, ab]).unwrap(), abc);
        assert_eq!(interner.conjunction(&[a, a]).unwrap(), a);
        assert_eq!(interner.conjunction(&[]).unwrap(), SchemaId::ANY);
        assert_eq!(interner.conjunction(&[a, SchemaId::NEVER]).unwrap(), SchemaId::NEVER);
        assert_eq!(interner.len(), 8);
        let exceeded = interner.conjunction(&[a, c]).unwrap_err();
        assert_eq!(exceeded, LimitExceeded { limit: "schemas", maximum: 8 });
        assert_eq!(Atom::equal(ValueId(7)).demand(), Demand::Equal(ValueId(7)));
        assert_eq!(Atom::listed(7).demand(), Demand::Listed(7));
        assert_eq!(Atom::object(7).demand(), Demand::Object(7));
        assert_eq!(Atom::NEVER.demand(), Demand::Never);
    }

    #[test]
    fn negations_cancel() {
        let mut interner = Interner::new(20);
        let [a, b] = [1, 2].map(|n| interner.single(Atom::schema(NodeId(n))).unwrap());
        let ab = interner.conjunction(&[a, b]).unwrap();
        let not_ab = interner.negation(ab).unwrap();
        assert_eq!(interner.negation(not_ab).unwrap(), ab);
        assert_eq!(interner.negation(SchemaId::ANY).unwrap(), SchemaId::NEVER);
        assert_eq!(interner.negation(SchemaId::NEVER).unwrap(), SchemaId::ANY);
        assert_eq!(interner.conjunction(&[a, b, not_ab]).unwrap(), SchemaId::NEVER);
        let some = interner.conjunction(&[a, not_ab]).unwrap();
        assert_ne!(some, SchemaId::NEVER);
        assert_eq!(interner.conjunction(&[some, b]).unwrap(), SchemaId::NEVER);
    }
}
