//! What a value is asked: a query is the list of schemas of which at least one must hold, and the
//! value's verdict has a bit for each.

use std::sync::Arc;

use super::array::ArrayGroupId;
use super::config::{Automaton, JsonParts};
use super::error::EngineError;
use super::object::ObjectGroupId;
use super::punctuation::spec;
use crate::expr::{Spelling, Verdict};
use crate::json_schema::{Normal, SchemaId, StringSpec};
use crate::regex::{Ast, CharClass};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryId(pub u32);

/// How many different schemas one value may be checked against at once.
pub const MAX_QUERY: usize = Verdict::BITS as usize;

/// A lexeme of a value: its languages belong to schemas of the query.
#[derive(Clone, Debug)]
pub struct Scalar {
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

/// What may begin where a query is to be answered.
#[derive(Debug, Default)]
pub struct ValueStarts {
    pub scalars: Vec<Scalar>,
    pub objects: Option<ObjectGroupId>,
    pub arrays: Option<ArrayGroupId>,
}

impl Automaton {
    /// Lexemes and containers of a query; computed once.
    pub fn value_starts(
        &self,
        json: &JsonParts,
        id: QueryId,
    ) -> Result<Arc<ValueStarts>, EngineError> {
        if let Some(known) = json.value_starts.lock().get(&id) {
            return Ok(known.clone());
        }
        let schemas = json.queries.get(id.0).clone();
        let mut normals = Vec::with_capacity(schemas.len());
        for &schema in schemas.iter() {
            normals.push(json.schema.normal(schema)?);
        }
        let mut starts = ValueStarts::default();
        self.add_scalar(&mut starts, Spelling::Utf8, &normals, literals)?;
        self.add_scalar(&mut starts, Spelling::Utf8, &normals, |normal| {
            Ast::alternation(normal.numbers.iter().map(|number| number.text.clone()))
        })?;
        self.add_scalar(&mut starts, Spelling::JsonString, &normals, |normal| {
            Ast::alternation(normal.strings.iter().map(string_language))
        })?;
        let mut objects = Vec::new();
        let mut arrays = Vec::new();
        for (bit, normal) in normals.iter().enumerate() {
            for object in &normal.objects {
                objects.push((object.clone(), 1 << bit));
            }
            for array in &normal.arrays {
                arrays.push((array.clone(), 1 << bit));
            }
        }
        if !objects.is_empty() {
            starts.objects = Some(self.object_group(json, objects)?);
        }
        if !arrays.is_empty() {
            starts.arrays = Some(self.array_group(json, arrays)?);
        }
        let starts = Arc::new(starts);
        json.value_starts.lock().insert(id, starts.clone());
        Ok(starts)
    }

    fn add_scalar(
        &self,
        starts: &mut ValueStarts,
        spelling: Spelling,
        normals: &[Arc<Normal>],
        language: impl Fn(&Normal) -> Ast,
    ) -> Result<(), EngineError> {
        let mut languages: Vec<Ast> = Vec::new();
        let mut schemas: Vec<Verdict> = Vec::new();
        for (bit, normal) in normals.iter().enumerate() {
            let ast = language(normal);
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
        if languages.is_empty() {
            return Ok(());
        }
        let lexeme = self.add_lexeme(&spec(spelling, languages))?;
        if self.lexeme(lexeme).is_alive() {
            starts.scalars.push(Scalar { lexeme, schemas });
        }
        Ok(())
    }

    /// The query for these schemas (each alive), in the order given.
    pub fn query(&self, json: &JsonParts, schemas: &[SchemaId]) -> Result<QueryId, EngineError> {
        if schemas.len() > MAX_QUERY {
            return Err(crate::error::LimitExceeded::new(
                "schemas that one value may have to be checked against",
                MAX_QUERY,
            )
            .into());
        }
        Ok(QueryId(json.queries.intern(schemas.into())?))
    }
}

fn literals(normal: &Normal) -> Ast {
    let words =
        [(normal.null, "null"), (normal.boolean_true, "true"), (normal.boolean_false, "false")];
    Ast::alternation(
        words.into_iter().filter(|(allowed, _)| *allowed).map(|(_, word)| Ast::literal(word)),
    )
}

/// The texts that a string specification allows.
pub fn string_language(string: &StringSpec) -> Ast {
    let mut parts: Vec<Ast> = string.languages.clone();
    if let Some(values) = &string.one_of {
        parts.push(Ast::alternation(values.iter().map(|value| Ast::literal(value))));
    }
    if string.min_length > 0 || string.max_length.is_some() {
        let any = Ast::Class(CharClass::any());
        parts.push(Ast::repeat(any, string.min_length, string.max_length));
    }
    Ast::intersection(parts)
}
