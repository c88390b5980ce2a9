//! The queries of values: a query is a list of schemas, and the value's verdict has a bit for each.
//! At least one of the *required* ones must hold. The others are only *observed*: they never keep a
//! value alive, and their bits say exactly whether they hold.

use smallvec::SmallVec;

use crate::interning::memory::Held;
use crate::stacks::ids::{ArrayGroupId, LexemeId, ObjectGroupId};
use ffwd_json_schema::SchemaId;
use ffwd_regular::expr::lexeme::first_bits;
use ffwd_regular::expr::Verdict;

/// The most schemas against which one value is checked at once.
pub const MAX_QUERY: usize = Verdict::BITS as usize;

/// The query of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Query {
    /// The required ones come first.
    pub(crate) schemas: Box<[SchemaId]>,
    pub(crate) required: u32,
    /// Whether later values are compared with this one.
    pub(crate) compared: bool,
    /// Whether a result depends on a schema that does not hold.
    pub(crate) exact: bool,
}

impl Held for Query {
    fn held_bytes(&self) -> usize {
        std::mem::size_of_val(&*self.schemas)
    }
}

impl ValueStarts {
    pub(crate) fn memory_bytes(&self) -> usize {
        let scalar = |scalar: &Scalar| {
            std::mem::size_of::<Scalar>() + scalar.schemas.len() * std::mem::size_of::<Verdict>()
        };
        std::mem::size_of::<Self>() + self.scalars.iter().map(scalar).sum::<usize>()
    }
}

impl Query {
    /// The schemas of which at least one must hold.
    pub(crate) fn required(&self) -> Verdict {
        first_bits(self.required as usize)
    }

    /// The same, one by one.
    pub fn required_schemas(&self) -> &[SchemaId] {
        &self.schemas[..self.required as usize]
    }

    /// The schemas that are only observed.
    pub fn observed_schemas(&self) -> &[SchemaId] {
        &self.schemas[self.required as usize..]
    }
}

/// The schemas of a query under construction, the required ones first. The place of each is its bit
/// of the verdict.
#[derive(Clone, Debug)]
pub(crate) struct Schemas {
    pub(crate) schemas: Vec<SchemaId>,
    pub(crate) required: Option<usize>,
    /// Whether a required schema restricts the order of properties or the spelling of numbers. An
    /// observed one never does, because its bit must be exact.
    pub(crate) narrows: bool,
    /// Whether later values are compared with this one: numbers are then written with exponents of
    /// at most three digits.
    pub compared: bool,
    /// Whether a result depends on a schema that does not hold. Numbers are then written without an
    /// exponent, because only without one do the languages of numbers cover all spellings.
    pub(crate) exact: bool,
}

impl Schemas {
    /// For a grammar that narrows (see [`crate::Writing::narrows`]) or does not.
    pub fn new(narrows: bool) -> Self {
        Self { schemas: Vec::new(), required: None, narrows, compared: false, exact: false }
    }

    /// Returns an empty one for a value with an equal query.
    pub fn like(narrows: bool, query: &Query) -> Self {
        Self { compared: query.compared, exact: query.exact, ..Self::new(narrows) }
    }

    pub fn is_any_required(&self) -> bool {
        !self.required().is_empty()
    }

    /// Adds a schema of which one must hold. All of them come before what is observed.
    pub fn require(&mut self, schema: SchemaId) {
        if !self.schemas.contains(&schema) {
            self.schemas.push(schema);
        }
    }

    /// The place of a required schema; without a required one it is observed.
    pub fn hold(&mut self, schema: SchemaId) -> usize {
        let required = self.required().len();
        match self.schemas[..required].iter().position(|&known| known == schema) {
            Some(place) => place,
            None => self.observe(schema),
        }
    }

    /// The place of a schema of which the verdict says exactly whether it holds.
    pub fn observe(&mut self, schema: SchemaId) -> usize {
        self.exact = true;
        let required = *self.required.get_or_insert(self.schemas.len());
        let from = if self.narrows { required } else { 0 };
        match self.schemas[from..].iter().position(|&known| known == schema) {
            Some(place) => from + place,
            None => {
                self.schemas.push(schema);
                self.schemas.len() - 1
            }
        }
    }

    pub(crate) fn required(&self) -> &[SchemaId] {
        &self.schemas[..self.required.unwrap_or(self.schemas.len())]
    }
}

/// A lexeme of a value: its languages belong to schemas of the query.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The index of the lexeme in the automaton.
    pub lexeme: LexemeId,
    /// For each language of the lexeme the schemas that it belongs to.
    pub schemas: Vec<Verdict>,
}

impl Scalar {
    /// The schemas that hold where these languages accept.
    pub fn verdict(&self, accept: Verdict) -> Verdict {
        self.schemas
            .iter()
            .enumerate()
            .filter(|(language, _)| accept >> language & 1 == 1)
            .fold(0, |bits, (_, &schemas)| bits | schemas)
    }
}

/// The threads that may begin at the start of a query's value.
#[derive(Debug, Default)]
pub struct ValueStarts {
    pub scalars: Vec<Scalar>,
    /// Several if one cannot have all alternatives; each is then a separate thread.
    pub objects: SmallVec<[ObjectGroupId; 1]>,
    pub arrays: Option<ArrayGroupId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_schemas_come_first_and_once() {
        let [a, b, c] = [7, 8, 9].map(SchemaId);
        let mut schemas = Schemas::new(false);
        assert!(!schemas.is_any_required());
        [a, b, a].into_iter().for_each(|schema| schemas.require(schema));
        assert_eq!([schemas.hold(b), schemas.hold(c), schemas.observe(c)], [1, 2, 2]);
        assert_eq!((schemas.observe(a), schemas.required()), (0, &[a, b][..]));
    }

    /// The required schemas of a narrow grammar accept less than the observed ones.
    #[test]
    fn observed_schemas_are_apart_where_required_ones_are_narrow() {
        let a = SchemaId(7);
        let mut schemas = Schemas::new(true);
        schemas.require(a);
        assert_eq!([schemas.observe(a), schemas.observe(a), schemas.hold(a)], [1, 1, 0]);
        assert_eq!(schemas.required(), [a]);
    }

    #[test]
    fn a_verdict_has_the_schemas_of_each_language() {
        let scalar = Scalar { lexeme: LexemeId(0), schemas: vec![0b01, 0b10, 0b11] };
        for (accept, verdict) in [(0, 0), (0b1, 0b1), (0b10, 0b10), (0b100, 0b11), (0b11, 0b11)] {
            assert_eq!(scalar.verdict(accept), verdict);
        }
    }
}
