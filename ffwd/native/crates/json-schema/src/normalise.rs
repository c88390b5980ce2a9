//! Normal forms: alternatives without those that no value has.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::error::Result;
use super::evidence::Way;
use super::merge::settle_array;
use super::satisfy::{Context, Solver};
use super::{ArraySpec, Normal, ObjectSpec, SchemaId};

impl Solver {
    pub fn normal(&mut self, context: Context<'_>, id: SchemaId) -> Result<Arc<Normal>> {
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
            let spec = emptiness.number_spec(range);
            normal.numbers.extend(spec.map_err(|e| self.exceeded(context, id, e))?);
        }
        for spec in &alternatives.strings {
            let pruned = emptiness.prune_string(spec);
            normal.strings.extend(pruned.map_err(|e| self.exceeded(context, id, e))?);
        }
        for spec in &alternatives.objects {
            normal.objects.extend(self.prune_object(context, id, spec)?);
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
            let length = self.expander.interner.len().max(id.index() + 1);
            self.normals.resize(length, None);
        }
        self.held += normal.memory_bytes();
        self.normals[id.index()] = Some(normal.clone());
        Ok(normal)
    }

    fn prune_object(
        &mut self,
        context: Context<'_>,
        id: SchemaId,
        spec: &Arc<ObjectSpec>,
    ) -> Result<Option<Arc<ObjectSpec>>> {
        let mut spec = spec.clone();
        if !spec.excluded.is_empty() {
            match self.prune_exclusions(context, id, &spec)? {
                Some(pruned) => spec = Arc::new(pruned),
                None => return Ok(None),
            }
        }
        // Classes of values need no further check.
        let mut dead = false;
        for class in &spec.others {
            dead |= !self.is_satisfiable(context, class.schema)?;
        }
        if dead {
            let mut pruned = ObjectSpec::clone(&spec);
            pruned.others.clear();
            for class in &spec.others {
                if self.is_satisfiable(context, class.schema)? {
                    pruned.others.push(class.clone());
                }
            }
            spec = Arc::new(pruned);
        }
        if spec.may_be_empty() || self.is_possible(context, vec![Way::object(spec.clone())])? {
            return Ok(Some(spec));
        }
        Ok(None)
    }

    /// The object without exclusions that cannot apply; an exclusion that can be avoided in one way
    /// only becomes that constraint.
    fn prune_exclusions(
        &mut self,
        context: Context<'_>,
        id: SchemaId,
        spec: &ObjectSpec,
    ) -> Result<Option<ObjectSpec>> {
        let program = context.program;
        let mut rest = ObjectSpec { excluded: Vec::new(), ..spec.clone() };
        let mut kept = Vec::new();
        for exclusion in &spec.excluded {
            let both = self.expander.conjoin_objects(program, &[&rest, exclusion]);
            let both = both.map_err(|e| self.exceeded(context, id, e))?;
            let meets = match both {
                None => false,
                Some(both) => self.is_possible(context, vec![Way::object(Arc::new(both))])?,
            };
            if !meets {
                continue;
            }
            let ways = self.expander.violations(program, &rest, exclusion, 0);
            let ways = ways.map_err(|e| self.exceeded(context, id, e))?;
            let mut possible = Vec::new();
            for way in ways {
                if self.is_possible(context, vec![Way::Object(way.clone())])? {
                    possible.push(way);
                    if possible.len() > 1 {
                        break;
                    }
                }
            }
            match possible.pop() {
                None => return Ok(None),
                Some(only) if possible.is_empty() && only.needs_no_extra() => {
                    rest = ObjectSpec::clone(&only.spec);
                }
                Some(_) => kept.push(exclusion.clone()),
            }
        }
        rest.excluded = kept;
        Ok(Some(rest))
    }

    /// The array without items that nothing satisfies.
    fn prune_array(
        &mut self,
        context: Context<'_>,
        spec: &Arc<ArraySpec>,
    ) -> Result<Option<Arc<ArraySpec>>> {
        let mut pruned = ArraySpec::clone(spec);
        for item in pruned.prefix.iter_mut().chain(pruned.items.iter_mut()) {
            if !self.is_satisfiable(context, *item)? {
                *item = SchemaId::NEVER;
            }
        }
        for contains in &mut pruned.contains {
            if !self.is_satisfiable(context, contains.schema)? {
                contains.schema = SchemaId::NEVER;
            }
        }
        let pruned =
            if pruned == **spec { Some(spec.clone()) } else { settle_array(pruned).map(Arc::new) };
        match pruned {
            Some(spec) if spec.is_plain() => Ok(Some(spec)),
            Some(spec) => {
                let possible = self.is_possible(context, vec![Way::array(spec.clone())])?;
                Ok(possible.then_some(spec))
            }
            None => Ok(None),
        }
    }
}
