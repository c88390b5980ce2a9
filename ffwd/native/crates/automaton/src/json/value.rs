//! How values begin: the lexemes, objects and arrays that answer a query.

use std::sync::Arc;

use crate::error::{EngineError, Result};
use crate::interning::memory::map_entry;
use crate::json::query::{Query, Scalar, Schemas, ValueStarts, MAX_QUERY};
use crate::json::tables::Json;
use crate::stacks::frame::RootValue;
use crate::stacks::ids::QueryId;
use crate::stacks::on::On;
use ffwd_bounds::error::LimitExceeded;
use ffwd_grammar::Whitespace;
use ffwd_json_schema::numbers;
use ffwd_json_schema::{Normal, SchemaId, StringSpec};
use ffwd_regular::expr::lexeme::Ends;
use ffwd_regular::expr::{LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::{Ast, CharClass};

/// How many alternatives of an object one group has if it need not have all: each may add a schema
/// to a member's query.
const MAX_TOGETHER: usize = 100;

impl Json {
    /// Lexemes and containers of a query; computed once.
    pub(crate) fn value_starts(&self, on: &impl On, id: QueryId) -> Result<Arc<ValueStarts>> {
        if let Some(known) = self.value_starts.lock().get(&id) {
            return Ok(known.clone());
        }
        let query = self.queries.get(id.0);
        let starts = self.new_value_starts(on, query).map_err(|error| match error {
            EngineError::Limit(error) => self.schema.exceeded_at(&query.schemas, error).into(),
            error @ EngineError::Schema(_) => error,
        })?;
        let starts = Arc::new(starts);
        self.held.add(starts.memory_bytes() + map_entry::<QueryId, Arc<ValueStarts>>());
        self.value_starts.lock().insert(id, starts.clone());
        Ok(starts)
    }

    fn new_value_starts(&self, on: &impl On, query: &Query) -> Result<ValueStarts> {
        let mut normals = Vec::with_capacity(query.schemas.len());
        for &schema in query.schemas.iter() {
            normals.push(self.schema.normal(schema)?);
        }
        let asked = Asked { normals: &normals, required: query.required() };
        let mut starts = ValueStarts::default();
        self.add_scalar(on, &mut starts, Spelling::Utf8, asked, |normal, _| literals(normal))?;
        let numbers_of = |normal: &Normal| {
            Ast::alternation(normal.numbers.iter().map(|number| number.text.clone()))
        };
        let written = |normal: &Normal| {
            Ast::alternation(normal.numbers.iter().map(|number| number.written().clone()))
        };
        let narrow = |numbers: Ast| numbers != Ast::Empty && numbers != numbers::unconstrained();
        let plain = query.exact && normals.iter().any(|normal| narrow(numbers_of(normal)));
        self.add_scalar(on, &mut starts, Spelling::Utf8, asked, |normal, required| {
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
        // Texts for which each schema is decided exactly.
        let mut decided: Vec<Ast> = Vec::new();
        if query.exact {
            let strings = normals.iter().map(|normal| strings_of(normal));
            decided.extend(strings.filter(Ast::is_approximate).map(|ast| ast.decided()));
        }
        self.add_scalar(on, &mut starts, Spelling::JsonString, asked, |normal, _| {
            let strings = strings_of(normal);
            if decided.is_empty() || strings == Ast::Empty {
                strings
            } else {
                Ast::intersection(decided.iter().cloned().chain([strings]))
            }
        })?;
        let required = asked.required;
        let objects = asked.alternatives(|normal| &normal.objects);
        // The threads of a part end with the verdicts of that part only, so nothing may depend on a
        // schema that does not hold.
        let together = match query.exact {
            true => objects.len().max(1),
            false => MAX_TOGETHER,
        };
        for part in objects.chunks(together) {
            if part.iter().any(|(_, owners)| owners & required != 0) {
                starts.objects.push(self.object_group(on, part.to_vec(), required)?);
            }
        }
        let arrays = asked.alternatives(|normal| &normal.arrays);
        if arrays.iter().any(|(_, owners)| owners & required != 0) {
            starts.arrays = Some(self.array_group(arrays, required)?);
        }
        Ok(starts)
    }

    fn add_scalar(
        &self,
        on: &impl On,
        starts: &mut ValueStarts,
        spelling: Spelling,
        asked: Asked<'_>,
        language: impl Fn(&Normal, bool) -> Ast,
    ) -> Result<()> {
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
        let follow = (spelling == Spelling::Utf8).then_some(self.after_values);
        let spec = LexemeSpec {
            spelling,
            languages: languages.into_iter().collect(),
            required,
            follow,
            follows_itself: false,
            ends: Ends::Anywhere,
        };
        let lexeme = on.add_lexeme(&spec)?;
        if on.lexeme(lexeme).is_alive() {
            starts.scalars.push(Scalar { lexeme, schemas });
        }
        Ok(())
    }

    /// A value of one schema that is within no other value.
    pub(crate) fn root_value(
        &self,
        schema: SchemaId,
        whitespace: &Whitespace,
    ) -> Result<RootValue> {
        let Some(layout) = self.layouts.of_whitespace(whitespace) else {
            return Err(LimitExceeded::new("grammar_schemas", 0).into());
        };
        let mut schemas = Schemas::new(self.narrows);
        schemas.require(schema);
        let layout = Some(layout).filter(|&layout| !self.layouts.is_plain(layout));
        Ok(RootValue { query: self.query(schemas)?, layout })
    }

    /// The query for these schemas. Some required schema must be satisfiable.
    pub(crate) fn query(&self, schemas: Schemas) -> Result<QueryId> {
        let required = schemas.required().len() as u32;
        let Schemas { schemas, compared, exact, .. } = schemas;
        if schemas.len() > MAX_QUERY {
            let error = LimitExceeded::new("schemas_of_one_value", MAX_QUERY);
            return Err(self.schema.exceeded_at(&schemas, error).into());
        }
        Ok(QueryId(self.queries.intern(Query {
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

/// Numbers of any size, except spellings with a longer exponent. Every number can be written
/// without one.
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
