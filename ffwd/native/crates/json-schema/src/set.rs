//! A schema document and the results about it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use super::conflict::Conflict;
use super::document::{Document, NodeId, Value};
use super::emptiness::Emptiness;
use super::error::{in_part, part_name, LimitExceeded, Result, SchemaError, SchemaErrorKind};
use super::evidence::{ObjectWay, Way};
use super::expand::Expander;
use super::intern::Atom;
use super::merge::settle_array;
use super::options::SchemaOptions;
use super::program::Program;
use super::satisfy::{Context, Solver};
use super::values::ValueId;
use super::{ArraySpec, Normal, ObjectSpec, SchemaId};

fn unsatisfiable(conflict: Option<Conflict>) -> SchemaError {
    let (said, pointer) = conflict.map_or_else(
        || {
            let said =
                "keywords contradict each other, or values nest without end; remove parts of \
                        the schema until it compiles to find them";
            (said.to_owned(), String::new())
        },
        Conflict::explained,
    );
    let message = format!("the schema has no valid value: {said}");
    SchemaError { kind: SchemaErrorKind::Unsatisfiable, pointer, message }
}

/// A schema document. Subschemas, and conjunctions of them, are normalized on demand. Threads may
/// share it.
#[derive(Debug)]
pub struct SchemaSet {
    program: Arc<Program>,
    options: SchemaOptions,
    root: SchemaId,
    solver: Mutex<Solver>,
    /// How many bytes of memory the solver held when a call began.
    held: AtomicUsize,
}

impl SchemaSet {
    /// Reads a document and checks all of it that the root can reach.
    ///
    /// # Errors
    /// The text is not a schema, uses something that is not supported, is satisfied by no value,
    /// or passes a limit.
    pub fn parse(text: &str, options: SchemaOptions) -> Result<Self> {
        let set = Self::begun(Arc::new(Program::read(text, &options)?), options)?;
        let satisfiable = set.solver.lock().is_satisfiable(set.context(), set.root)?;
        match satisfiable {
            true => Ok(set),
            false => Err(unsatisfiable(Conflict::find(&set.program, &set.options))),
        }
    }

    /// Reads several documents, each with a root of its own: in the order of the texts.
    ///
    /// # Errors
    /// As [`Self::parse`]; the place begins with the number of the text, from 1.
    pub fn parse_all(texts: &[&str], options: SchemaOptions) -> Result<(Self, Vec<SchemaId>)> {
        let mut distinct: Vec<&str> = Vec::new();
        let mut places = Vec::with_capacity(texts.len());
        let mut known: FxHashMap<&str, usize> = FxHashMap::default();
        for &text in texts {
            let place = *known.entry(text).or_insert_with(|| {
                distinct.push(text);
                distinct.len() - 1
            });
            places.push(place);
        }
        if let [only] = distinct[..] {
            let set = Self::parse(only, options)?;
            let root = set.root;
            return Ok((set, vec![root; texts.len()]));
        }
        let number = |place: usize| places.iter().position(|&of| of == place).unwrap_or(0) + 1;
        let numbered = distinct.iter().enumerate();
        let parts: Vec<(String, &str)> =
            numbered.map(|(place, &text)| (part_name(number(place)), text)).collect();
        let program = Program::of_parts(&parts, &options)?;
        // Each `$id` must be unique, or references would lead to another schema.
        let mut names: FxHashMap<&str, usize> = FxHashMap::default();
        for (place, root) in program.document.parts().enumerate() {
            let members = program.document.members(root);
            let Some(node) = members.get("$id").or_else(|| members.get("id")) else { continue };
            let Value::String(name) = program.document.value(node) else { continue };
            if let Some(other) = names.insert(name, place) {
                return Err(SchemaError {
                    kind: SchemaErrorKind::Invalid { keyword: Some("$id".into()) },
                    pointer: format!("{}#/$id", part_name(number(place))),
                    message: format!(
                        "{} of the same grammar is called {name:?} too, and is another one: \
                         leave out the $id of one of them",
                        part_name(number(other))
                    ),
                });
            }
        }
        let nodes = program.parts();
        let set = Self::begun(Arc::new(program), options)?;
        let mut roots = Vec::with_capacity(texts.len());
        {
            let mut solver = set.begin();
            for (place, &node) in nodes.iter().enumerate() {
                let root = solver.expander.id_of(&set.program, node)?;
                if !solver.is_satisfiable(set.context(), root)? {
                    // Read alone, the schema has the same conflict, unless it refers to another one
                    // of them.
                    let languages = set.options.languages.apart();
                    let options = SchemaOptions { languages, ..set.options.clone() };
                    let alone = match Self::parse(distinct[place], options) {
                        Err(error) if error.kind == SchemaErrorKind::Unsatisfiable => error,
                        _ => unsatisfiable(None),
                    };
                    let pointer = format!("{}#{}", part_name(number(place)), alone.pointer);
                    return Err(SchemaError { pointer, ..alone });
                }
                roots.push(root);
            }
        }
        Ok((set, places.iter().map(|&place| roots[place]).collect()))
    }

    fn begun(program: Arc<Program>, options: SchemaOptions) -> Result<Self> {
        let mut solver = Solver::new(Expander::new(&options));
        let root = solver.expander.id_of(&program, NodeId::ROOT)?;
        // A renewed set must give the documents the same ids, whatever was asked of this one.
        for node in program.parts() {
            solver.expander.id_of(&program, node)?;
        }
        let (solver, held) = (Mutex::new(solver), AtomicUsize::new(0));
        Ok(Self { program, options, root, solver, held })
    }

    /// The same document without any results.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn renewed(&self) -> Result<Self> {
        let options =
            SchemaOptions { languages: self.options.languages.apart(), ..self.options.clone() };
        Self::begun(self.program.clone(), options)
    }

    /// The estimated memory in bytes of the results, without the document, at the start of the last
    /// call.
    pub fn memory_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The schema of the whole document.
    pub fn root(&self) -> SchemaId {
        self.root
    }

    /// The normal form of a schema. Each of its alternatives is satisfiable; there is none if and
    /// only if [`Self::is_satisfiable`] is false.
    ///
    /// A property that is not required may have a schema that nothing satisfies: it must then be
    /// left out, and is not one of the additional keys either. The items of an array are all
    /// satisfiable.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn normal(&self, id: SchemaId) -> Result<Arc<Normal>> {
        self.begin().normal(self.context(), id)
    }

    /// Whether some value satisfies a schema.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn is_satisfiable(&self, id: SchemaId) -> Result<bool> {
        self.begin().is_satisfiable(self.context(), id)
    }

    /// Returns the JSON pointers of a schema's conjuncts.
    pub fn places(&self, id: SchemaId) -> Vec<String> {
        self.begin().expander.places(&self.program, id)
    }

    /// Returns the error of a limit that was met at one of some schemas.
    pub fn exceeded_at(&self, ids: &[SchemaId], error: LimitExceeded) -> SchemaError {
        let places = ids.iter().flat_map(|&id| self.places(id));
        let place = places.into_iter().next().unwrap_or_default();
        let pointer = in_part(&place).map_or(&*place, |(_, pointer)| pointer);
        SchemaError::limit(error, pointer.to_owned())
    }

    /// Returns the schema of values that satisfy all of `ids`.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn conjunction(&self, ids: &[SchemaId]) -> Result<SchemaId> {
        let mut solver = self.begin();
        let both = solver.expander.both(&self.program, ids);
        both.map_err(|e| self.exceeded(&solver, ids.first().copied(), e))
    }

    /// Returns the schema of values that do not satisfy `id`.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn negation(&self, id: SchemaId) -> Result<SchemaId> {
        let mut solver = self.begin();
        let negation = solver.expander.interner.negation(id);
        negation.map_err(|e| self.exceeded(&solver, Some(id), e))
    }

    /// The values that a schema clearly allows; with `true`, the ones that it clearly forbids, and
    /// it allows all others.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn listed_values(&self, id: SchemaId) -> Result<Option<(Vec<ValueId>, bool)>> {
        let mut solver = self.begin();
        let listed = solver.expander.listed_values(&self.program, id);
        listed.map_err(|e| self.exceeded(&solver, Some(id), e))
    }

    /// Returns the schema of values that equal one of some values.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn one_of_values(&self, values: Vec<ValueId>) -> Result<SchemaId> {
        let mut solver = self.begin();
        let listed = solver.expander.one_of_values(values);
        listed.map_err(|e| self.exceeded(&solver, None, e))
    }

    /// Returns the schema of a JSON text's value: numbers by value, objects in any order.
    ///
    /// # Errors
    /// The text is not JSON, or a limit is exceeded.
    pub fn equal_to(&self, text: &str) -> Result<SchemaId> {
        let document = Document::parse(text, self.options.limits.document())?;
        let mut solver = self.begin();
        let value = solver.expander.values.of_text(&document)?;
        let equal = solver.expander.interner.single(Atom::equal(value));
        equal.map_err(|e| self.exceeded(&solver, None, e))
    }

    /// Whether some object satisfies the specification.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn object_is_satisfiable(&self, spec: &ObjectSpec) -> Result<bool> {
        let mut solver = self.begin();
        let settled = solver.expander.settle_object(&self.program, spec.clone());
        match settled.map_err(|e| self.exceeded(&solver, None, e))? {
            Some(spec) => solver.is_possible(self.context(), vec![Way::object(Arc::new(spec))]),
            None => Ok(false),
        }
    }

    /// The specifications of which an object satisfies one if it satisfies another one, with an
    /// exclusion less each: the ways to avoid the last one. Members that these need for undeclared
    /// keys are left out. An object whose exclusions are plainly avoided is itself without them.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn objects_past_an_exclusion(&self, spec: &ObjectSpec) -> Result<Vec<Arc<ObjectSpec>>> {
        let mut solver = self.begin();
        let expander = &mut solver.expander;
        let ways = expander.settle_object(&self.program, spec.clone()).and_then(|settled| {
            let Some(spec) = settled else { return Ok(Vec::new()) };
            expander.ways_past_an_exclusion(&self.program, &ObjectWay::new(Arc::new(spec)))
        });
        let ways = ways.map_err(|e| self.exceeded(&solver, None, e))?;
        Ok(ways.into_iter().map(|way| way.spec).collect())
    }

    /// Whether some array satisfies the specification.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn array_is_satisfiable(&self, spec: &ArraySpec) -> Result<bool> {
        match settle_array(spec.clone()) {
            Some(spec) => {
                let ways = vec![Way::array(Arc::new(spec))];
                self.begin().is_possible(self.context(), ways)
            }
            None => Ok(false),
        }
    }

    /// Whether some array satisfies the specification and, if items must differ, repeats none of
    /// the earlier items. These are given by [`Self::equal_to`].
    ///
    /// # Errors
    /// A limit is passed.
    pub fn array_is_satisfiable_without(
        &self,
        spec: &ArraySpec,
        came: &[SchemaId],
    ) -> Result<bool> {
        let mut solver = self.begin();
        let came = solver.equalled(came);
        solver.array_is_possible(self.context(), spec, &came)
    }

    /// The values, beside the earlier items, that the next item of an array with `unique` must not
    /// equal if the array is to remain completable. `None` if no item leaves that possible. `after`
    /// is the rest of the array after the item. Only values with the given results of `tests` are
    /// returned.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn essential_values(
        &self,
        after: &ArraySpec,
        came: &[SchemaId],
        tests: &[(SchemaId, bool)],
    ) -> Result<Option<Vec<SchemaId>>> {
        let mut solver = self.begin();
        let came = solver.equalled(came);
        let values = solver.essential_values(self.context(), after, &came, tests)?;
        values.map(|values| self.equal_to_each(&mut solver, values)).transpose()
    }

    /// The values that an array with `unique` may lack after other items, as sorted schemas of
    /// values equal to them; `None` if they can be any.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn contested_values(&self, spec: &ArraySpec) -> Result<Option<Vec<SchemaId>>> {
        let mut solver = self.begin();
        let Some(values) = solver.contested_values(self.context(), spec)? else { return Ok(None) };
        let mut schemas = self.equal_to_each(&mut solver, values)?;
        schemas.sort_unstable();
        Ok(Some(schemas))
    }

    fn equal_to_each(&self, solver: &mut Solver, values: Vec<ValueId>) -> Result<Vec<SchemaId>> {
        let mut schemas = Vec::with_capacity(values.len());
        for value in values {
            let equal = solver.expander.interner.single(Atom::equal(value));
            schemas.push(equal.map_err(|e| self.exceeded(solver, None, e))?);
        }
        Ok(schemas)
    }

    /// Whether a schema has more values than a number.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn has_more_values(&self, id: SchemaId, number: u64) -> Result<bool> {
        let mut solver = self.begin();
        // Larger numbers reuse earlier counts.
        let enough = number.saturating_add(1).checked_next_power_of_two().unwrap_or(u64::MAX);
        Ok(solver.count(self.context(), id, enough)?.least() > number)
    }

    /// Whether some value satisfies a schema beside those that [`Self::equal_to`] gave.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn has_other_value(&self, id: SchemaId, avoided: &[SchemaId]) -> Result<bool> {
        let mut solver = self.begin();
        if avoided.is_empty() {
            return solver.is_satisfiable(self.context(), id);
        }
        let avoided = solver.equalled(avoided);
        solver.has_other_value(self.context(), id, &avoided)
    }

    /// The solver with the budget of a new call.
    fn begin(&self) -> MutexGuard<'_, Solver> {
        let mut solver = self.solver.lock();
        solver.expander.steps_left = self.options.limits.steps;
        self.options.languages.begin();
        self.held.store(solver.memory_bytes(), Ordering::Relaxed);
        solver
    }

    fn exceeded(&self, solver: &Solver, id: Option<SchemaId>, error: LimitExceeded) -> SchemaError {
        let place = id.map(|id| solver.expander.place(&self.program, id));
        SchemaError::limit(error, place.unwrap_or_default())
    }

    fn context(&self) -> Context<'_> {
        let program = &self.program;
        let emptiness = Emptiness { options: &self.options, witnesses: &program.witnesses };
        Context { program, emptiness }
    }
}
