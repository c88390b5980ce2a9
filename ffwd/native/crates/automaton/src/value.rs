//! The queries of values: a query is a list of schemas, and the value's verdict has a bit for each.
//! At least one of the *required* ones must hold. The others are only *observed*: they never keep a
//! value alive, and their bits say exactly whether they hold.

use std::sync::Arc;

use smallvec::SmallVec;

use super::array::ArrayGroupId;
use super::config::{Automaton, JsonParts};
use super::error::EngineError;
use super::memory::{map_entry, Held};
use super::object_group::ObjectGroupId;
use ffwd_json_schema::numbers;
use ffwd_json_schema::{Normal, SchemaId, StringSpec};
use ffwd_regular::expr::lexeme::{after_value, first_bits, Ends};
use ffwd_regular::expr::{LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::{Ast, CharClass};

/// An interned question of which schemas a value satisfies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryId(pub u32);

/// How many different schemas one value may be checked against at once.
pub const MAX_QUERY: usize = Verdict::BITS as usize;

/// How many alternatives of an object one group has, where it need not have all: each may ask
/// another schema of a member's value.
const MAX_TOGETHER: usize = 100;

/// The query of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Query {
    /// The required ones come first.
    schemas: Box<[SchemaId]>,
    required: u32,
    /// Whether later values are compared with this one.
    compared: bool,
    /// Whether something depends on a schema that does not hold.
    exact: bool,
}

impl Held for Query {
    fn held_bytes(&self) -> usize {
        std::mem::size_of_val(&*self.schemas)
    }
}

impl ValueStarts {
    fn memory_bytes(&self) -> usize {
        let scalar = |scalar: &Scalar| {
            std::mem::size_of::<Scalar>() + scalar.schemas.len() * std::mem::size_of::<Verdict>()
        };
        std::mem::size_of::<Self>() + self.scalars.iter().map(scalar).sum::<usize>()
    }
}

impl Query {
    /// The schemas of which at least one must hold.
    fn required(&self) -> Verdict {
        first_bits(self.required as usize)
    }

    /// The same, one by one.
    pub fn required_schemas(&self) -> &[SchemaId] {
        &self.schemas[..self.required as usize]
    }
}

/// The schemas that a query is put together from, first those that are required: the place of each
/// is its bit of the verdict.
#[derive(Clone, Debug)]
pub(super) struct Schemas {
    schemas: Vec<SchemaId>,
    required: Option<usize>,
    /// Whether a required schema asks for an order of properties or for spellings of numbers, which
    /// an observed one never does: what is observed must be exact.
    narrows: bool,
    /// Whether later values are compared with this one: numbers are then written with exponents of
    /// at most three digits.
    pub compared: bool,
    /// Whether something depends on a schema that does not hold: numbers are then written without
    /// an exponent, as the languages of numbers are narrower than their values only there.
    exact: bool,
}

impl Schemas {
    /// For a grammar that narrows (see [`super::Writing::narrows`]) or does not.
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

    /// The place of a schema that is required, or else is observed.
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

    fn required(&self) -> &[SchemaId] {
        &self.schemas[..self.required.unwrap_or(self.schemas.len())]
    }
}

/// A lexeme of a value: its languages belong to schemas of the query.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The index of the lexeme in the automaton.
    pub lexeme: u32,
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
    /// Several where the alternatives are too many for one; each is then a thread of its own.
    pub objects: SmallVec<[ObjectGroupId; 1]>,
    pub arrays: Option<ArrayGroupId>,
}

impl Automaton {
    /// Lexemes and containers of a query; computed once.
    pub(crate) fn value_starts(
        &self,
        json: &JsonParts,
        id: QueryId,
    ) -> Result<Arc<ValueStarts>, EngineError> {
        if let Some(known) = json.value_starts.lock().get(&id) {
            return Ok(known.clone());
        }
        let query = json.queries.get(id.0);
        let starts = self.new_value_starts(json, query).map_err(|error| match error {
            EngineError::Limit(error) => json.schema.exceeded_at(&query.schemas, error).into(),
            error @ EngineError::Schema(_) => error,
        })?;
        let starts = Arc::new(starts);
        json.held.add(starts.memory_bytes() + map_entry::<QueryId, Arc<ValueStarts>>());
        json.value_starts.lock().insert(id, starts.clone());
        Ok(starts)
    }

    fn new_value_starts(
        &self,
        json: &JsonParts,
        query: &Query,
    ) -> Result<ValueStarts, EngineError> {
        let mut normals = Vec::with_capacity(query.schemas.len());
        for &schema in query.schemas.iter() {
            normals.push(json.schema.normal(schema)?);
        }
        let asked = Asked { normals: &normals, required: query.required() };
        let mut starts = ValueStarts::default();
        self.add_scalar(&mut starts, Spelling::Utf8, asked, |normal, _| literals(normal))?;
        let numbers_of = |normal: &Normal| {
            Ast::alternation(normal.numbers.iter().map(|number| number.text.clone()))
        };
        let written = |normal: &Normal| {
            Ast::alternation(normal.numbers.iter().map(|number| number.written().clone()))
        };
        let narrow = |numbers: Ast| numbers != Ast::Empty && numbers != numbers::unconstrained();
        let plain = query.exact && normals.iter().any(|normal| narrow(numbers_of(normal)));
        self.add_scalar(&mut starts, Spelling::Utf8, asked, |normal, required| {
            let numbers = if required { written(normal) } else { numbers_of(normal) };
            if numbers == Ast::Empty {
                numbers
            } else if plain {
                Ast::intersection([numbers, numbers::without_exponent()])
            } else if query.compared {
                Ast::intersection([numbers, with_short_exponent()])
            } else {
                numbers
            }
        })?;
        let strings_of =
            |normal: &Normal| Ast::alternation(normal.strings.iter().map(StringSpec::language));
        // Texts of which every schema knows whether they satisfy it.
        let mut decided: Vec<Ast> = Vec::new();
        if query.exact {
            let strings = normals.iter().map(|normal| strings_of(normal));
            decided.extend(strings.filter(Ast::is_approximate).map(|ast| ast.decided()));
        }
        self.add_scalar(&mut starts, Spelling::JsonString, asked, |normal, _| {
            let strings = strings_of(normal);
            if decided.is_empty() || strings == Ast::Empty {
                strings
            } else {
                Ast::intersection(decided.iter().cloned().chain([strings]))
            }
        })?;
        let required = asked.required;
        let objects = asked.alternatives(|normal| &normal.objects);
        // The threads of parts end with the verdicts of these parts only, so nothing may depend on
        // what does not hold.
        let together = match query.exact || query.compared {
            true => objects.len().max(1),
            false => MAX_TOGETHER,
        };
        for part in objects.chunks(together) {
            if part.iter().any(|(_, owners)| owners & required != 0) {
                starts.objects.push(self.object_group(json, part.to_vec(), required)?);
            }
        }
        let arrays = asked.alternatives(|normal| &normal.arrays);
        if arrays.iter().any(|(_, owners)| owners & required != 0) {
            starts.arrays = Some(self.array_group(json, arrays, required)?);
        }
        Ok(starts)
    }

    fn add_scalar(
        &self,
        starts: &mut ValueStarts,
        spelling: Spelling,
        asked: Asked<'_>,
        language: impl Fn(&Normal, bool) -> Ast,
    ) -> Result<(), EngineError> {
        let mut languages: Vec<Ast> = Vec::new();
        let mut schemas: Vec<Verdict> = Vec::new();
        for (bit, normal) in asked.normals.iter().enumerate() {
            let ast = language(normal, asked.required >> bit & 1 == 1);
            if ast == Ast::Empty {
                continue;
            }
            match languages.iter().position(|known| *known == ast) {
                Some(known) => schemas[known] |= 1 << bit,
                None => {
                    languages.push(ast);
                    schemas.push(1 << bit);
                }
            }
        }
        let required = schemas
            .iter()
            .enumerate()
            .filter(|(_, &schemas)| schemas & asked.required != 0)
            .fold(0, |bits, (language, _)| bits | 1 << language);
        if required == 0 {
            return Ok(());
        }
        let follow = (spelling == Spelling::Utf8).then(after_value);
        let spec = LexemeSpec {
            spelling,
            languages: languages.into(),
            required,
            follow,
            follows_itself: false,
            ends: Ends::Anywhere,
        };
        let lexeme = self.add_lexeme(&spec)?;
        if self.lexeme(lexeme).is_alive() {
            starts.scalars.push(Scalar { lexeme, schemas });
        }
        Ok(())
    }

    /// The query for these schemas. Some required schema must be satisfiable.
    pub(super) fn query(&self, json: &JsonParts, schemas: Schemas) -> Result<QueryId, EngineError> {
        let required = schemas.required().len() as u32;
        let Schemas { schemas, compared, exact, .. } = schemas;
        if schemas.len() > MAX_QUERY {
            let error = ffwd_bounds::error::LimitExceeded::new("schemas_of_one_value", MAX_QUERY);
            return Err(json.schema.exceeded_at(&schemas, error).into());
        }
        Ok(QueryId(json.queries.intern(Query {
            schemas: schemas.into(),
            required,
            compared,
            exact,
        })?))
    }
}

/// The schemas of a query in their normal forms.
#[derive(Clone, Copy)]
struct Asked<'n> {
    normals: &'n [Arc<Normal>],
    required: Verdict,
}

impl Asked<'_> {
    /// The alternatives of one type, each with the schema that it belongs to.
    fn alternatives<T>(self, of: impl Fn(&Normal) -> &[Arc<T>]) -> Vec<(Arc<T>, Verdict)> {
        let mut alternatives = Vec::new();
        for (bit, normal) in self.normals.iter().enumerate() {
            alternatives.extend(of(normal).iter().map(|spec| (spec.clone(), 1 << bit)));
        }
        alternatives
    }
}

/// Numbers of any size, but for those that are written with a longer exponent. Every number can be
/// written without one.
fn with_short_exponent() -> Ast {
    let digits = CharClass::new([(0x30, 0x39)]);
    let class = |characters: &[char]| {
        Ast::Class(CharClass::new(characters.iter().map(|&c| (u32::from(c), u32::from(c)))))
    };
    let mantissa = Ast::Class(CharClass::new([(0x2B, 0x39)]));
    let exponent = Ast::concat([
        class(&['e', 'E']),
        Ast::repeat(class(&['+', '-']), 0, Some(1)),
        Ast::repeat(Ast::Class(digits), 1, Some(3)),
    ]);
    Ast::concat([Ast::repeat(mantissa, 0, None), Ast::repeat(exponent, 0, Some(1))])
}

fn literals(normal: &Normal) -> Ast {
    let words =
        [(normal.null, "null"), (normal.boolean_true, "true"), (normal.boolean_false, "false")];
    Ast::alternation(
        words.into_iter().filter(|(allowed, _)| *allowed).map(|(_, word)| Ast::literal(word)),
    )
}
