//! A schema document and everything that is known about it.

use std::sync::Arc;

use parking_lot::Mutex;

use super::document::{Document, DocumentLimits, NodeId};
use super::emptiness::Emptiness;
use super::error::{SchemaError, SchemaErrorKind};
use super::expand::Expander;
use super::intern::Interner;
use super::merge::Merger;
use super::one_of;
use super::options::SchemaOptions;
use super::program::Program;
use super::satisfy::{Context, Solver};
use super::{Normal, SchemaId};

/// A schema document. Subschemas, and conjunctions of them, are brought to their normal form when
/// they are first asked for. Can be shared between threads.
#[derive(Debug)]
pub struct SchemaSet {
    program: Program,
    options: SchemaOptions,
    root: SchemaId,
    solver: Mutex<Solver>,
}

impl SchemaSet {
    /// Reads a document and checks all of it that the root can reach.
    ///
    /// # Errors
    /// The text is not a schema, uses something that is not supported, is satisfied by no value,
    /// or passes a limit.
    pub fn parse(text: &str, options: SchemaOptions) -> Result<Self, SchemaError> {
        let limits = options.limits;
        let document = Document::parse(
            text,
            DocumentLimits {
                bytes: limits.schema_bytes,
                // Two bits of an atom are spent on what it is.
                nodes: limits.schema_nodes.min(1 << 30),
                nesting: limits.schema_nesting,
            },
        )?;
        let program = Program::read(document)?;
        let mut solver = Solver::new(Expander::new(Merger {
            interner: Interner::new(limits.schemas.min(u64::from(u32::MAX))),
            max_alternatives: limits.alternatives,
            steps_left: limits.steps,
            max_steps: limits.steps,
        }));
        let root = solver
            .expander
            .id_of(&program, NodeId::ROOT)
            .map_err(|error| SchemaError::limit(error, String::new()))?;
        let set = Self { program, options, root, solver: Mutex::new(solver) };
        {
            let mut solver = set.solver.lock();
            one_of::check(&mut solver, set.context())?;
            if !solver.is_satisfiable(set.context(), root)? {
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
        let mut solver = self.solver.lock();
        solver.expander.merger.steps_left = self.options.limits.steps;
        solver.normal(self.context(), id)
    }

    /// Whether some value satisfies a schema.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn is_satisfiable(&self, id: SchemaId) -> Result<bool, SchemaError> {
        let mut solver = self.solver.lock();
        solver.expander.merger.steps_left = self.options.limits.steps;
        solver.is_satisfiable(self.context(), id)
    }

    /// What satisfies all of `ids`.
    ///
    /// # Errors
    /// A limit is passed.
    pub fn conjunction(&self, ids: &[SchemaId]) -> Result<SchemaId, SchemaError> {
        let mut solver = self.solver.lock();
        let interner = &mut solver.expander.merger.interner;
        interner.conjunction(ids).map_err(|e| SchemaError::limit(e, String::new()))
    }

    fn context(&self) -> Context<'_> {
        let program = &self.program;
        let emptiness = Emptiness { options: &self.options, witnesses: &program.witnesses };
        Context { program, emptiness }
    }
}
