//! A schema document and everything that is known about it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::document::{Document, NodeId};
use super::emptiness::Emptiness;
use super::error::{LimitExceeded, SchemaError, SchemaErrorKind};
use super::evidence::Way;
use super::expand::Expander;
use super::intern::Atom;
use super::merge::settle_array;
use super::options::SchemaOptions;
use super::program::Program;
use super::satisfy::{Context, Solver};
use super::{ArraySpec, Normal, ObjectSpec, SchemaId};

/// A schema document. Subschemas, and conjunctions of them, are brought to their normal form when
/// they are first asked for. Can be shared between threads.
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
    pub fn parse(text: &str, options: SchemaOptions) -> Result<Self, SchemaError> {
        let set = Self::begun(Arc::new(Program::read(text, &options)?), options)?;
        {
            let mut solver = set.solver.lock();
            if !solver.is_satisfiable(set.context(), set.root)? {
                return Err(SchemaError {
                    kind: SchemaErrorKind::Unsatisfiable,
                    pointer: String::new(),
                    message: "no value satisfies the schema: its constraints contradict each \
                              other, or it requires values nested without end"
                        .into(),
                });
            }
        }
        Ok(set)
    }

    fn begun(program: Arc<Program>, options: SchemaOptions) -> Result<Self, SchemaError> {
        let mut solver = Solver::new(Expander::new(&options));
        let root = solver.expander.id_of(&program, NodeId::ROOT)?;
        let (solver, held) = (Mutex::new(solver), AtomicUsize::new(0));
        Ok(Self { program, options, root, solver, held })
    }

    /// The same document, of which nothing is known yet but what it says.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn renewed(&self) -> Result<Self, SchemaError> {
        let options =
            SchemaOptions { languages: self.options.languages.apart(), ..self.options.clone() };
        Self::begun(self.program.clone(), options)
    }

    /// About how many bytes of memory hold what is known beside the document, when the last call
    /// began.
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
    pub fn normal(&self, id: SchemaId) -> Result<Arc<Normal>, SchemaError> {
        self.begin().normal(self.context(), id)
    }

    /// Whether some value satisfies a schema.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn is_satisfiable(&self, id: SchemaId) -> Result<bool, SchemaError> {
        self.begin().is_satisfiable(self.context(), id)
    }

    /// What satisfies all of `ids`.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn conjunction(&self, ids: &[SchemaId]) -> Result<SchemaId, SchemaError> {
        let mut solver = self.begin();
        let both = solver.expander.both(&self.program, ids);
        both.map_err(|e| self.exceeded(&solver, ids.first().copied(), e))
    }

    /// What does not satisfy `id`.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn negation(&self, id: SchemaId) -> Result<SchemaId, SchemaError> {
        let mut solver = self.begin();
        let negation = solver.expander.interner.negation(id);
        negation.map_err(|e| self.exceeded(&solver, Some(id), e))
    }

    /// What equals the value of a JSON text: numbers by value, objects in any order.
    ///
    /// # Errors
    /// The text is not JSON, or a limit is passed.
    pub fn equal_to(&self, text: &str) -> Result<SchemaId, SchemaError> {
        let document = Document::parse(text, self.options.limits.document())?;
        let mut solver = self.begin();
        let value = solver.expander.values.of_text(&document)?;
        let equal = solver.expander.interner.single(Atom::equal(value));
        equal.map_err(|e| self.exceeded(&solver, None, e))
    }

    /// Whether some object is as the specification says.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn object_is_satisfiable(&self, spec: &ObjectSpec) -> Result<bool, SchemaError> {
        let mut solver = self.begin();
        let settled = solver.expander.settle_object(&self.program, spec.clone());
        match settled.map_err(|e| self.exceeded(&solver, None, e))? {
            Some(spec) => solver.is_possible(self.context(), vec![Way::object(Arc::new(spec))]),
            None => Ok(false),
        }
    }

    /// Whether some array is as the specification says.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn array_is_satisfiable(&self, spec: &ArraySpec) -> Result<bool, SchemaError> {
        match settle_array(spec.clone()) {
            Some(spec) => {
                let ways = vec![Way::array(Arc::new(spec))];
                self.begin().is_possible(self.context(), ways)
            }
            None => Ok(false),
        }
    }

    /// What the next item of an array with `unique` must satisfy so that the items that must come
    /// after it can still all differ. `spec` is what is left of the array, its schemas already
    /// without the items that came.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn next_distinct_item(&self, spec: &ArraySpec) -> Result<SchemaId, SchemaError> {
        self.begin().next_distinct_item(self.context(), spec)
    }

    /// What the value of a key must satisfy that the object does not declare; `None` if the key is
    /// forbidden.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn other_schema(
        &self,
        spec: &ObjectSpec,
        name: &Arc<str>,
    ) -> Result<Option<SchemaId>, SchemaError> {
        let mut solver = self.begin();
        let schema = solver.expander.class_schema(&spec.others, name);
        let schema = schema.map_err(|e| self.exceeded(&solver, None, e))?;
        Ok(Some(schema).filter(|&schema| schema != SchemaId::NEVER))
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
