//! Satisfiability, and normal forms without dead alternatives.
//!
//! Instances are finite, so a schema is satisfiable if and only if a finite derivation shows it:
//! the least fixpoint of "some alternative has all its required parts satisfiable".

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::alternatives::Alternatives;
use super::emptiness::Emptiness;
use super::error::{LimitExceeded, SchemaError};
use super::expand::Expander;
use super::merge::settle_array;
use super::program::Program;
use super::{ArraySpec, Normal, NumberSpec, ObjectSpec, SchemaId};

/// What is known about the schemas of a document.
#[derive(Debug)]
pub struct Solver {
    pub expander: Expander,
    satisfiable: Vec<Option<bool>>,
    normals: Vec<Option<Arc<Normal>>>,
}

/// What never changes while solving.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub program: &'a Program,
    pub emptiness: Emptiness<'a>,
}

/// What one alternative cannot do without.
type Needs = SmallVec<[SchemaId; 8]>;

enum Evidence {
    Satisfiable,
    /// Satisfiable if all needs of one alternative are.
    Depends(Vec<Needs>),
}

struct Frame {
    id: SchemaId,
    alternatives: Vec<Needs>,
    alternative: usize,
    need: usize,
}

impl Solver {
    pub fn new(expander: Expander) -> Self {
        Self { expander, satisfiable: Vec::new(), normals: Vec::new() }
    }

    fn known(&self, id: SchemaId) -> Option<bool> {
        self.satisfiable.get(id.index()).copied().flatten()
    }

    fn learn(&mut self, id: SchemaId, satisfiable: bool) {
        if self.satisfiable.len() <= id.index() {
            let length = self.expander.merger.interner.len().max(id.index() + 1);
            self.satisfiable.resize(length, None);
        }
        self.satisfiable[id.index()] = Some(satisfiable);
    }

    pub fn is_satisfiable(
        &mut self,
        context: Context<'_>,
        root: SchemaId,
    ) -> Result<bool, SchemaError> {
        if let Some(known) = self.known(root) {
            return Ok(known);
        }
        // Each round searches depth first and takes a schema that is on its own path as not shown
        // yet. What a round shows holds. A round that shows nothing new has seen, for each
        // alternative of each schema it visited, a need that is not shown: none of them can be.
        loop {
            let (visited, progress) = self.round(context, root)?;
            if let Some(known) = self.known(root) {
                return Ok(known);
            }
            if !progress {
                for id in visited {
                    if self.known(id).is_none() {
                        self.learn(id, false);
                    }
                }
            }
        }
    }

    fn round(
        &mut self,
        context: Context<'_>,
        root: SchemaId,
    ) -> Result<(FxHashSet<SchemaId>, bool), SchemaError> {
        let mut visited = FxHashSet::default();
        let mut progress = false;
        let mut path: Vec<Frame> = Vec::new();
        let mut entering = Some(root);
        loop {
            if let Some(id) = entering.take() {
                visited.insert(id);
                match self.evidence(context, id)? {
                    Evidence::Satisfiable => {
                        self.learn(id, true);
                        progress = true;
                    }
                    Evidence::Depends(alternatives) => {
                        path.push(Frame { id, alternatives, alternative: 0, need: 0 });
                    }
                }
            }
            let charge = self.expander.merger.charge(1);
            charge.map_err(|e| self.exceeded(context, root, e))?;
            let Some(frame) = path.last_mut() else { return Ok((visited, progress)) };
            let Some(needs) = frame.alternatives.get(frame.alternative) else {
                path.pop();
                continue;
            };
            let Some(&need) = needs.get(frame.need) else {
                let id = frame.id;
                self.learn(id, true);
                progress = true;
                path.pop();
                continue;
            };
            match self.satisfiable.get(need.index()).copied().flatten() {
                Some(true) => frame.need += 1,
                None if !visited.contains(&need) => entering = Some(need),
                _ => {
                    frame.alternative += 1;
                    frame.need = 0;
                }
            }
        }
    }

    fn exceeded(&self, context: Context<'_>, id: SchemaId, error: LimitExceeded) -> SchemaError {
        self.expander.exceeded(context.program, id, error)
    }

    fn evidence(&mut self, context: Context<'_>, id: SchemaId) -> Result<Evidence, SchemaError> {
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
        let objects = alternatives.objects.iter().map(|object| object_needs(object));
        let arrays = alternatives.arrays.iter().map(|array| array_needs(array));
        let needs: Vec<Needs> = objects.chain(arrays).collect();
        if needs.iter().any(|needs| needs.is_empty()) {
            return Ok(Evidence::Satisfiable);
        }
        self.expander
            .merger
            .charge(alternatives.width() + needs.iter().map(|n| n.len()).sum::<usize>())?;
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
        Ok(Evidence::Depends(needs))
    }

    /// Whether no value has both forms.
    pub fn are_disjoint(
        &mut self,
        context: Context<'_>,
        left: &Alternatives,
        right: &Alternatives,
    ) -> Result<bool, SchemaError> {
        if (left.null && right.null)
            || (left.boolean_false && right.boolean_false)
            || (left.boolean_true && right.boolean_true)
        {
            return Ok(false);
        }
        let root = |error| SchemaError::limit(error, String::new());
        self.expander.merger.charge(1).map_err(root)?;
        for a in &left.numbers {
            for b in &right.numbers {
                self.expander.merger.charge(1).map_err(root)?;
                if let Some(both) = a.intersect(b) {
                    if !context.emptiness.number(&both).map_err(root)? {
                        return Ok(false);
                    }
                }
            }
        }
        for a in &left.strings {
            for b in &right.strings {
                self.expander.merger.charge(1).map_err(root)?;
                if let Some(both) = super::merge::conjoin_strings(a, b) {
                    if !context.emptiness.string(&both).map_err(root)? {
                        return Ok(false);
                    }
                }
            }
        }
        for a in &left.objects {
            for b in &right.objects {
                if !self.are_objects_disjoint(context, a, b)? {
                    return Ok(false);
                }
            }
        }
        for a in &left.arrays {
            for b in &right.arrays {
                if !self.are_arrays_disjoint(context, a, b)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Objects are disjoint if a property that one of them requires cannot satisfy both.
    fn are_objects_disjoint(
        &mut self,
        context: Context<'_>,
        left: &ObjectSpec,
        right: &ObjectSpec,
    ) -> Result<bool, SchemaError> {
        let root = |error| SchemaError::limit(error, String::new());
        for (one, other) in [(left, right), (right, left)] {
            for property in one.properties.iter().filter(|property| property.required) {
                self.expander.merger.charge(1 + other.properties.len()).map_err(root)?;
                let declared = other.properties.iter().find(|p| p.name == property.name);
                let Some(theirs) = declared.map(|p| p.schema).or(other.additional()) else {
                    return Ok(true);
                };
                let both = self.expander.merger.interner.conjunction(&[property.schema, theirs]);
                if !self.is_satisfiable(context, both.map_err(root)?)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn are_arrays_disjoint(
        &mut self,
        context: Context<'_>,
        left: &ArraySpec,
        right: &ArraySpec,
    ) -> Result<bool, SchemaError> {
        let root = |error| SchemaError::limit(error, String::new());
        let longest = [left.max_items, right.max_items].into_iter().flatten().min();
        let length = left.min_items.max(right.min_items);
        if longest.is_some_and(|longest| longest < length) {
            return Ok(true);
        }
        let places = (left.prefix.len().max(right.prefix.len()) as u64 + 1).min(length);
        for place in 0..places as usize {
            self.expander.merger.charge(1).map_err(root)?;
            let at = |spec: &ArraySpec| spec.prefix.get(place).copied().or(spec.items);
            let (Some(a), Some(b)) = (at(left), at(right)) else { return Ok(true) };
            let both = self.expander.merger.interner.conjunction(&[a, b]).map_err(root)?;
            if !self.is_satisfiable(context, both)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn normal(
        &mut self,
        context: Context<'_>,
        id: SchemaId,
    ) -> Result<Arc<Normal>, SchemaError> {
        if let Some(Some(known)) = self.normals.get(id.index()) {
            return Ok(known.clone());
        }
        let alternatives = self.expander.alternatives(context.program, id)?;
        let emptiness = context.emptiness;
        let mut normal = Normal {
            null: alternatives.null,
            boolean_false: alternatives.boolean_false,
            boolean_true: alternatives.boolean_true,
            ..Normal::default()
        };
        for range in &alternatives.numbers {
            let text = emptiness.spellings(range).map_err(|e| self.exceeded(context, id, e))?;
            if text != crate::regex::Ast::Empty {
                normal.numbers.push(NumberSpec { text });
            }
        }
        for spec in &alternatives.strings {
            let pruned = emptiness.prune_string(spec);
            normal.strings.extend(pruned.map_err(|e| self.exceeded(context, id, e))?);
        }
        for spec in &alternatives.objects {
            if self.are_satisfiable(context, &object_needs(spec))? {
                normal.objects.push(spec.clone());
            }
        }
        let mut seen = FxHashSet::default();
        for spec in &alternatives.arrays {
            if let Some(pruned) = self.prune_array(context, spec)? {
                if seen.insert(pruned.clone()) {
                    normal.arrays.push(pruned);
                }
            }
        }
        let normal = Arc::new(normal);
        if self.normals.len() <= id.index() {
            let length = self.expander.merger.interner.len().max(id.index() + 1);
            self.normals.resize(length, None);
        }
        self.normals[id.index()] = Some(normal.clone());
        Ok(normal)
    }

    fn are_satisfiable(
        &mut self,
        context: Context<'_>,
        needs: &[SchemaId],
    ) -> Result<bool, SchemaError> {
        for &need in needs {
            if !self.is_satisfiable(context, need)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The array without items that nothing satisfies.
    fn prune_array(
        &mut self,
        context: Context<'_>,
        spec: &Arc<ArraySpec>,
    ) -> Result<Option<Arc<ArraySpec>>, SchemaError> {
        let mut pruned = ArraySpec::clone(spec);
        for item in pruned.prefix.iter_mut().chain(pruned.items.iter_mut()) {
            if !self.is_satisfiable(context, *item)? {
                *item = SchemaId::NEVER;
            }
        }
        if pruned == **spec {
            return Ok(Some(spec.clone()));
        }
        Ok(settle_array(pruned).map(Arc::new))
    }
}

fn object_needs(spec: &ObjectSpec) -> Needs {
    spec.properties.iter().filter(|p| p.required).map(|p| p.schema).collect()
}

fn array_needs(spec: &ArraySpec) -> Needs {
    let prefix = spec.prefix.len() as u64;
    let mut needs: Needs =
        spec.prefix.iter().take(spec.min_items.min(prefix) as usize).copied().collect();
    if spec.min_items > prefix {
        needs.push(spec.items.unwrap_or(SchemaId::NEVER));
    }
    needs
}
