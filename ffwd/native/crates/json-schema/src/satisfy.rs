//! Satisfiability.
//!
//! Instances are finite, so a schema is satisfiable exactly if a finite derivation shows it. This
//! is the least fixpoint of "some way to build a value has all its required parts satisfiable".

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::alternatives::Alternatives;
use super::counting::Counts;
use super::emptiness::Emptiness;
use super::error::{LimitExceeded, Result, SchemaError};
use super::evidence::{Needs, Way};
use super::expand::Expander;
use super::program::Program;
use super::{Normal, SchemaId};

/// The known results for the schemas of a document.
#[derive(Debug)]
pub struct Solver {
    pub expander: Expander,
    satisfiable: Vec<Option<bool>>,
    pub(super) normals: Vec<Option<Arc<Normal>>>,
    pub(super) counts: Counts,
    /// How many bytes of memory the normal forms hold.
    pub(super) held: usize,
}

/// The immutable context of a search.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub program: &'a Program,
    pub emptiness: Emptiness<'a>,
}

enum Evidence {
    Satisfiable,
    /// Satisfiable if one of the ways leads to a value.
    Depends(Vec<Way>),
}

/// A question: a schema, or ways to build a value of which one must work.
#[derive(Clone)]
enum Question {
    Schema(SchemaId),
    Ways(Vec<Way>),
}

struct Frame {
    /// `None` for a question about ways.
    id: Option<SchemaId>,
    ways: Vec<Way>,
    current: Option<Needs>,
    /// How many needs of the current way are met.
    need: usize,
    /// How many of its `at_least` are satisfiable.
    counted: u64,
}

impl Frame {
    fn new(id: Option<SchemaId>, ways: Vec<Way>) -> Self {
        Self { id, ways, current: None, need: 0, counted: 0 }
    }
}

enum Next {
    Shown,
    Way,
    Enter(SchemaId),
    Again,
}

impl Solver {
    pub fn new(expander: Expander) -> Self {
        let (satisfiable, normals) = (Vec::new(), Vec::new());
        Self { expander, satisfiable, normals, counts: Counts::default(), held: 0 }
    }

    /// The estimated memory in bytes of all results.
    pub fn memory_bytes(&self) -> usize {
        let lists = self.normals.capacity() * std::mem::size_of::<Option<Arc<Normal>>>();
        let known = self.satisfiable.capacity() + self.counts.memory_bytes();
        self.held + lists + known + self.expander.memory_bytes()
    }

    fn known(&self, id: SchemaId) -> Option<bool> {
        self.satisfiable.get(id.index()).copied().flatten()
    }

    fn learn(&mut self, id: SchemaId, satisfiable: bool) {
        if self.satisfiable.len() <= id.index() {
            let length = self.expander.interner.len().max(id.index() + 1);
            self.satisfiable.resize(length, None);
        }
        self.satisfiable[id.index()] = Some(satisfiable);
    }

    pub fn is_satisfiable(&mut self, context: Context<'_>, id: SchemaId) -> Result<bool> {
        match self.known(id) {
            Some(known) => Ok(known),
            None => self.answer(context, &Question::Schema(id)),
        }
    }

    /// Whether one of the ways leads to a value.
    pub fn is_possible(&mut self, context: Context<'_>, ways: Vec<Way>) -> Result<bool> {
        self.answer(context, &Question::Ways(ways))
    }

    fn answer(&mut self, context: Context<'_>, question: &Question) -> Result<bool> {
        // Each round searches depth first and treats a schema on its own path as unproved. Its
        // positive results are final. A round without new ones has found an unproved need in each
        // way of each visited schema: none of these is satisfiable.
        loop {
            let mut visited = FxHashSet::default();
            let (shown, progress) = self.round(context, question, &mut visited)?;
            if shown {
                return Ok(true);
            }
            if !progress {
                for id in visited {
                    if self.known(id).is_none() {
                        self.learn(id, false);
                    }
                }
                return Ok(false);
            }
        }
    }

    fn round(
        &mut self,
        context: Context<'_>,
        question: &Question,
        visited: &mut FxHashSet<SchemaId>,
    ) -> Result<(bool, bool)> {
        let mut progress = false;
        let mut path: Vec<Frame> = Vec::new();
        let mut entering = None;
        match question {
            Question::Schema(id) => entering = Some(*id),
            Question::Ways(ways) => path.push(Frame::new(None, ways.clone())),
        }
        loop {
            if let Some(id) = entering.take() {
                visited.insert(id);
                match self.evidence(context, id)? {
                    Evidence::Satisfiable => {
                        self.learn(id, true);
                        progress = true;
                    }
                    Evidence::Depends(ways) => path.push(Frame::new(Some(id), ways)),
                }
            }
            let Some(frame) = path.last_mut() else {
                let shown = match question {
                    Question::Schema(id) => self.known(*id) == Some(true),
                    Question::Ways(_) => false,
                };
                return Ok((shown, progress));
            };
            let place = frame.id.unwrap_or(SchemaId::ANY);
            match self.advance(context, frame, visited)? {
                Next::Again => {}
                Next::Enter(id) => entering = Some(id),
                Next::Way => {
                    let next = match frame.ways.pop() {
                        None => {
                            path.pop();
                            continue;
                        }
                        Some(Way::Needs(needs)) => {
                            frame.current = Some(needs);
                            frame.need = 0;
                            frame.counted = 0;
                            continue;
                        }
                        Some(Way::Object(way)) => {
                            self.expander.ways_of_object(context.program, way)
                        }
                        Some(Way::Cases(cases)) => self.expander.next_case(context.program, cases),
                        Some(Way::Array(way)) => self.expander.ways_of_array(context.program, way),
                    };
                    let next = next.map_err(|e| self.exceeded(context, place, e))?;
                    frame.ways.extend(next);
                }
                Next::Shown => {
                    let Some(id) = frame.id else { return Ok((true, true)) };
                    self.learn(id, true);
                    progress = true;
                    path.pop();
                }
            }
        }
    }

    /// Looks at the next need of the way that a frame is on.
    fn advance(
        &mut self,
        context: Context<'_>,
        frame: &mut Frame,
        visited: &FxHashSet<SchemaId>,
    ) -> Result<Next> {
        let place = frame.id.unwrap_or(SchemaId::ANY);
        self.expander.charge(1).map_err(|e| self.exceeded(context, place, e))?;
        let Some(needs) = &frame.current else { return Ok(Next::Way) };
        if let Some(&need) = needs.all.get(frame.need) {
            return Ok(match self.known(need) {
                Some(true) => {
                    frame.need += 1;
                    Next::Again
                }
                None if !visited.contains(&need) => Next::Enter(need),
                _ => {
                    frame.current = None;
                    Next::Again
                }
            });
        }
        if let Some((least, some)) = &needs.at_least {
            if frame.counted < *least {
                return Ok(match some.get(frame.need - needs.all.len()) {
                    None => {
                        frame.current = None;
                        Next::Again
                    }
                    Some(&need) => match self.known(need) {
                        None if !visited.contains(&need) => Next::Enter(need),
                        known => {
                            frame.counted += u64::from(known == Some(true));
                            frame.need += 1;
                            Next::Again
                        }
                    },
                });
            }
        }
        if let Some(array) = needs.array.clone() {
            if !self.array_is_possible(context, &array, &[])? {
                frame.current = None;
                return Ok(Next::Again);
            }
        }
        Ok(Next::Shown)
    }

    pub(super) fn exceeded(
        &self,
        context: Context<'_>,
        id: SchemaId,
        error: LimitExceeded,
    ) -> SchemaError {
        self.expander.exceeded(context.program, id, error)
    }

    fn evidence(&mut self, context: Context<'_>, id: SchemaId) -> Result<Evidence> {
        let schema = self.expander.schema_of(context.program, id);
        if id == SchemaId::ANY || schema.is_some_and(|schema| schema.is_plainly_satisfiable()) {
            return Ok(Evidence::Satisfiable);
        }
        let alternatives = self.expander.alternatives(context.program, id)?;
        self.evidence_of(context, &alternatives).map_err(|e| self.exceeded(context, id, e))
    }

    fn evidence_of(
        &mut self,
        context: Context<'_>,
        alternatives: &Alternatives,
    ) -> Result<Evidence, LimitExceeded> {
        let emptiness = context.emptiness;
        if alternatives.null || alternatives.boolean_false || alternatives.boolean_true {
            return Ok(Evidence::Satisfiable);
        }
        if alternatives.objects.iter().any(|object| object.may_be_empty())
            || alternatives.arrays.iter().any(|array| array.may_be_empty())
        {
            return Ok(Evidence::Satisfiable);
        }
        self.expander.charge(alternatives.width())?;
        for range in &alternatives.numbers {
            if !emptiness.number(range)? {
                return Ok(Evidence::Satisfiable);
            }
        }
        for spec in &alternatives.strings {
            if !emptiness.string(spec)? {
                return Ok(Evidence::Satisfiable);
            }
        }
        // The first is examined first.
        let arrays = alternatives.arrays.iter().rev().map(|spec| Way::array(spec.clone()));
        let objects = alternatives.objects.iter().rev().map(|spec| Way::object(spec.clone()));
        Ok(Evidence::Depends(arrays.chain(objects).collect()))
    }
}
