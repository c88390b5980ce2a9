//! Items that must differ: whether so many values can be found, and which item leaves enough for
//! the others.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::alternatives::Alternatives;
use super::error::{LimitExceeded, SchemaError};
use super::intern::Atom;
use super::languages::MAX_TEXTS;
use super::satisfy::{Context, Solver};
use super::values::{Constant, ValueId};
use super::{ArraySpec, ObjectSpec, SchemaId};

/// More items than this that must all come, and all differ, are taken for too many to look at.
const MAX_DISTINCT: u64 = 1024;

impl Solver {
    /// Whether items with these schemas, each for so many of them, can all differ.
    pub(super) fn are_distinct(
        &mut self,
        context: Context<'_>,
        items: &[(SchemaId, u64)],
    ) -> Result<bool, SchemaError> {
        let total: u64 = items.iter().fold(0, |sum, &(_, times)| sum.saturating_add(times));
        if total < 2 {
            return Ok(true);
        }
        let mut places: Vec<Vec<ValueId>> = Vec::new();
        for &(schema, times) in items {
            // An item with more values than there are items finds one, whatever the others are.
            if let Some(values) = self.values_of(context, schema, total)? {
                if times > values.len() as u64 {
                    return Ok(false);
                }
                places.extend((0..times).map(|_| values.clone()));
            }
        }
        Ok(can_be_assigned(&places))
    }

    /// All values of a schema, if there are at most `most`.
    fn values_of(
        &mut self,
        context: Context<'_>,
        schema: SchemaId,
        most: u64,
    ) -> Result<Option<Vec<ValueId>>, SchemaError> {
        let alternatives = self.expander.alternatives(context.program, schema)?;
        let most = most.min(MAX_DISTINCT);
        let values = self.list_values(&alternatives, most);
        values.map_err(|e| self.exceeded(context, schema, e))
    }

    fn list_values(
        &mut self,
        alternatives: &Alternatives,
        most: u64,
    ) -> Result<Option<Vec<ValueId>>, LimitExceeded> {
        let mut constants: Vec<Constant> = Vec::new();
        let mut values: Vec<ValueId> = Vec::new();
        for (allowed, constant) in [
            (alternatives.null, Constant::Null),
            (alternatives.boolean_false, Constant::Boolean(false)),
            (alternatives.boolean_true, Constant::Boolean(true)),
        ] {
            if allowed {
                constants.push(constant);
            }
        }
        for range in &alternatives.numbers {
            let Some(numbers) = range.list_values(most as usize)? else { return Ok(None) };
            constants.extend(numbers.into_iter().map(Constant::Number));
        }
        for spec in &alternatives.strings {
            let Some(texts) = self.expander.languages.list(&spec.language(), MAX_TEXTS)? else {
                return Ok(None);
            };
            self.expander.charge(texts.len())?;
            constants.extend(texts.into_iter().map(Constant::String));
        }
        // A container is one value where all its parts are; otherwise it is taken to have many.
        for spec in &alternatives.arrays {
            match self.single_array(spec)? {
                Some(value) => values.push(value),
                None => return Ok(None),
            }
        }
        for spec in &alternatives.objects {
            match self.single_object(spec)? {
                Some(value) => values.push(value),
                None => return Ok(None),
            }
        }
        for constant in constants {
            values.push(self.expander.values.scalar(constant, None)?);
        }
        values.sort_unstable();
        values.dedup();
        Ok(Some(values).filter(|values| values.len() as u64 <= most))
    }

    fn single_array(&mut self, spec: &ArraySpec) -> Result<Option<ValueId>, LimitExceeded> {
        let length = spec.prefix.len() as u64;
        if spec.max_items != Some(length) || spec.min_items != length || !spec.is_plain() {
            return Ok(None);
        }
        let items: Option<Vec<ValueId>> =
            spec.prefix.iter().map(|&item| self.expander.single_value(item)).collect();
        match items {
            Some(items) => {
                self.expander.values.scalar(Constant::Array(items.into()), None).map(Some)
            }
            None => Ok(None),
        }
    }

    fn single_object(&mut self, spec: &ObjectSpec) -> Result<Option<ValueId>, LimitExceeded> {
        if !spec.others.is_empty() || !spec.excluded.is_empty() {
            return Ok(None);
        }
        let members: Option<Vec<(Arc<str>, ValueId)>> = spec
            .properties
            .iter()
            .map(|property| {
                let value =
                    self.expander.single_value(property.schema).filter(|_| property.required)?;
                Some((property.name.clone(), value))
            })
            .collect();
        match members {
            Some(members) => self.expander.values.object(members).map(Some),
            None => Ok(None),
        }
    }

    /// What the next item of an array must satisfy so that the items that must come after it can
    /// still all differ. `spec` is what is left of the array, each of its schemas without the items
    /// that came already.
    pub fn next_distinct_item(
        &mut self,
        context: Context<'_>,
        spec: &ArraySpec,
    ) -> Result<SchemaId, SchemaError> {
        let at = |place: usize| {
            spec.prefix.get(place).copied().or(spec.items).unwrap_or(SchemaId::NEVER)
        };
        let first = at(0);
        let total = spec.min_items.max(1);
        let prefix = (spec.prefix.len() as u64).min(total);
        let mut later: Vec<(SchemaId, u64)> = (1..prefix as usize).map(|i| (at(i), 1)).collect();
        if total > prefix.max(1) {
            later.push((at(spec.prefix.len().max(1)), total - prefix.max(1)));
        }
        if later.is_empty() {
            return Ok(first);
        }
        let mut places: Vec<Vec<ValueId>> = Vec::new();
        for (schema, times) in later {
            if let Some(values) = self.values_of(context, schema, total)? {
                for _ in 0..times.min(values.len() as u64 + 1) {
                    places.push(values.clone());
                }
            }
        }
        let mut contested: Vec<ValueId> = places.iter().flatten().copied().collect();
        contested.sort_unstable();
        contested.dedup();
        let mut demands: SmallVec<[SchemaId; 8]> = SmallVec::from_slice(&[first]);
        for value in contested {
            let without: Vec<Vec<ValueId>> = places
                .iter()
                .map(|values| values.iter().copied().filter(|&other| other != value).collect())
                .collect();
            if !can_be_assigned(&without) {
                let interner = &mut self.expander.interner;
                let equal = interner.single(Atom::equal(value));
                let other = equal.and_then(|equal| interner.negation(equal));
                demands.push(other.map_err(|e| self.exceeded(context, first, e))?);
            }
        }
        let both = self.expander.both(context.program, &demands);
        both.map_err(|e| self.exceeded(context, first, e))
    }
}

/// Whether each place can have a value of its own: augmenting paths in the bipartite graph.
fn can_be_assigned(places: &[Vec<ValueId>]) -> bool {
    let mut owner: FxHashMap<ValueId, usize> = FxHashMap::default();
    for start in 0..places.len() {
        // Breadth first from the place, along values to the places that own them.
        let mut reached: FxHashMap<ValueId, usize> = FxHashMap::default();
        let mut queue = VecDeque::from([start]);
        let mut free = None;
        'search: while let Some(place) = queue.pop_front() {
            for &value in &places[place] {
                if reached.contains_key(&value) {
                    continue;
                }
                reached.insert(value, place);
                match owner.get(&value) {
                    Some(&other) => queue.push_back(other),
                    None => {
                        free = Some(value);
                        break 'search;
                    }
                }
            }
        }
        let Some(mut value) = free else { return false };
        // Hand the values along the path back to the start.
        while let Some(&place) = reached.get(&value) {
            let before = owner.iter().find(|(_, &owned)| owned == place).map(|(&v, _)| v);
            owner.insert(value, place);
            match before {
                Some(before) if place != start => {
                    owner.remove(&before);
                    value = before;
                }
                _ => break,
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_found_along_augmenting_paths() {
        let places = |lists: &[&[u32]]| -> Vec<Vec<ValueId>> {
            lists.iter().map(|list| list.iter().map(|&v| ValueId(v)).collect()).collect()
        };
        assert!(can_be_assigned(&places(&[&[1, 2], &[1]])));
        assert!(can_be_assigned(&places(&[&[1, 2], &[1, 3], &[1], &[2, 4]])));
        assert!(!can_be_assigned(&places(&[&[1], &[1]])));
        assert!(!can_be_assigned(&places(&[&[1, 2], &[1, 2], &[2, 1]])));
        assert!(can_be_assigned(&[]));
        assert!(!can_be_assigned(&places(&[&[]])));
    }
}
