//! Alternatives joined by logic: `anyOf`, `oneOf`, `not`, `if` and dependencies.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::alternatives::Alternatives;
use super::document::{NodeId, Value};
use super::error::LimitExceeded;
use super::expand::Expander;
use super::program::Program;
use super::values::ValueId;
use super::{ArraySpec, Contains, ObjectSpec, Property, SchemaId, StringSpec};
use crate::regex::Ast;

/// With more dependencies than this at one place they are no alternatives.
const MAX_DEPENDENT_ALTERNATIVES: usize = 4;

impl Expander {
    pub(super) fn any_of(
        &mut self,
        branches: Vec<(SchemaId, Arc<Alternatives>)>,
    ) -> Result<Alternatives, LimitExceeded> {
        let mut union = Alternatives::default();
        let mut seen = FxHashSet::default();
        for (id, branch) in branches {
            if seen.insert(id) {
                self.charge(branch.width())?;
                union.add(&branch);
            }
        }
        union.simplify();
        Ok(union)
    }

    /// What exactly one of the branches allows.
    pub(super) fn exactly_one(
        &mut self,
        program: &Program,
        branches: &[Arc<Alternatives>],
    ) -> Result<Alternatives, LimitExceeded> {
        let one = |allows: fn(&Alternatives) -> bool| {
            branches.iter().filter(|branch| allows(branch)).count() == 1
        };
        let mut union = Alternatives {
            null: one(|branch| branch.null),
            boolean_false: one(|branch| branch.boolean_false),
            boolean_true: one(|branch| branch.boolean_true),
            ..Alternatives::default()
        };
        let only_lists = |branch: &Alternatives| {
            branch.strings.iter().all(|spec| spec.one_of.is_some() && spec.languages.is_empty())
        };
        let lists = branches.iter().all(|branch| only_lists(branch));
        if lists {
            union.strings = self.listed_once(branches)?;
        }
        let tags = self.tags(branches);
        for (place, branch) in branches.iter().enumerate() {
            let mut numbers = branch.numbers.clone();
            let mut strings = if lists { Vec::new() } else { branch.strings.clone() };
            let mut objects = branch.objects.clone();
            let mut arrays = branch.arrays.clone();
            let mut others: Vec<Arc<ObjectSpec>> = Vec::new();
            for (other_place, other) in branches.iter().enumerate() {
                if other_place == place {
                    continue;
                }
                self.charge(1)?;
                numbers = self.numbers_without(numbers, other)?;
                strings = self.strings_without(strings, other)?;
                let apart = tags.as_ref().is_some_and(|tags| {
                    !tags[place].iter().any(|tag| tags[other_place].binary_search(tag).is_ok())
                });
                if !apart && !objects.is_empty() {
                    others.extend(other.objects.iter().cloned());
                }
                arrays = self.arrays_without(program, arrays, other)?;
            }
            self.objects_without_all(program, &mut objects, &others)?;
            union.numbers.extend(numbers);
            union.strings.extend(strings);
            union.objects.extend(objects);
            union.arrays.extend(arrays);
            self.check_width(union.width())?;
        }
        union.simplify();
        Ok(union)
    }

    /// Where all objects of all branches have a required property with a constant that tells them
    /// apart: the constants of each branch, sorted.
    fn tags(&self, branches: &[Arc<Alternatives>]) -> Option<Vec<Vec<ValueId>>> {
        let constant =
            |property: &Property| self.single_value(property.schema).filter(|_| property.required);
        let first = branches.iter().find_map(|branch| branch.objects.first())?;
        first.properties.iter().filter(|property| constant(property).is_some()).find_map(|tag| {
            let of_object = |object: &Arc<ObjectSpec>| {
                let property = object.properties.iter().find(|p| p.name == tag.name)?;
                constant(property)
            };
            branches
                .iter()
                .map(|branch| {
                    let tags: Option<Vec<ValueId>> = branch.objects.iter().map(of_object).collect();
                    tags.map(|mut tags| {
                        tags.sort_unstable();
                        tags
                    })
                })
                .collect()
        })
    }

    /// The strings that exactly one of the branches lists.
    fn listed_once(
        &mut self,
        branches: &[Arc<Alternatives>],
    ) -> Result<Vec<StringSpec>, LimitExceeded> {
        // The branch that lists a string, and whether another one does as well.
        let mut owners: FxHashMap<&Arc<str>, (usize, bool)> = FxHashMap::default();
        for (place, branch) in branches.iter().enumerate() {
            for value in branch.strings.iter().flat_map(|spec| spec.one_of.iter()) {
                self.charge(value.len())?;
                for value in value.iter() {
                    let owner = owners.entry(value).or_insert((place, false));
                    owner.1 |= owner.0 != place;
                }
            }
        }
        let once: Vec<Arc<str>> = owners
            .into_iter()
            .filter(|(_, (_, again))| !again)
            .map(|(value, _)| value.clone())
            .collect();
        Ok(if once.is_empty() { Vec::new() } else { vec![StringSpec::values(once)] })
    }

    pub(super) fn conditional(
        &mut self,
        program: &Program,
        test: &Arc<Alternatives>,
        then: &Arc<Alternatives>,
        otherwise: &Arc<Alternatives>,
    ) -> Result<Alternatives, LimitExceeded> {
        let passed = self.conjunction(program, &[test.clone(), then.clone()])?;
        let mut union = self.without(program, otherwise, test)?;
        union.add(&passed);
        union.simplify();
        Ok(union)
    }

    /// What `left` allows and `right` does not.
    pub(super) fn without(
        &mut self,
        program: &Program,
        left: &Alternatives,
        right: &Alternatives,
    ) -> Result<Alternatives, LimitExceeded> {
        let mut rest = Alternatives {
            null: left.null && !right.null,
            boolean_false: left.boolean_false && !right.boolean_false,
            boolean_true: left.boolean_true && !right.boolean_true,
            numbers: self.numbers_without(left.numbers.clone(), right)?,
            strings: self.strings_without(left.strings.clone(), right)?,
            objects: self.objects_without(program, left.objects.clone(), right)?,
            arrays: self.arrays_without(program, left.arrays.clone(), right)?,
        };
        rest.simplify();
        Ok(rest)
    }

    fn numbers_without(
        &mut self,
        mut left: Vec<super::number_range::NumberRange>,
        right: &Alternatives,
    ) -> Result<Vec<super::number_range::NumberRange>, LimitExceeded> {
        for range in &right.numbers {
            if left.is_empty() {
                break;
            }
            let others = range.negate();
            self.charge(left.len() * others.len())?;
            let mut kept = Vec::new();
            for mine in &left {
                kept.extend(others.iter().filter_map(|other| mine.intersect(other)));
            }
            self.check_width(kept.len())?;
            left = kept;
        }
        Ok(left)
    }

    fn strings_without(
        &mut self,
        left: Vec<StringSpec>,
        right: &Alternatives,
    ) -> Result<Vec<StringSpec>, LimitExceeded> {
        if left.is_empty() || right.strings.is_empty() {
            return Ok(left);
        }
        let mut left = left;
        let mut languages: Vec<Ast> = Vec::new();
        for spec in &right.strings {
            self.charge(left.len())?;
            if spec.is_any() {
                return Ok(Vec::new());
            }
            if let (Some(values), []) = (&spec.one_of, &spec.languages[..]) {
                let listed: Vec<&StringSpec> =
                    left.iter().filter(|mine| mine.one_of.is_some()).collect();
                if listed.len() < left.len() {
                    languages.push(spec.language());
                }
                for mine in &mut left {
                    if let Some(mine) = &mut mine.one_of {
                        self.steps_left = self.steps_left.saturating_sub(mine.len() as u64);
                        let other = |value: &&Arc<str>| values.binary_search(value).is_err();
                        *mine = mine.iter().filter(other).cloned().collect();
                    }
                }
                left.retain(|mine| mine.one_of.as_ref().is_none_or(|values| !values.is_empty()));
            } else if spec.one_of.is_none() && spec.languages.is_empty() {
                left = outside_lengths(&left, spec);
                self.check_width(left.len())?;
            } else {
                languages.push(spec.language());
            }
        }
        if !languages.is_empty() {
            let none = Ast::complement(Ast::alternation(languages));
            for spec in &mut left {
                if let Err(place) = spec.languages.binary_search(&none) {
                    spec.languages.insert(place, none.clone());
                }
            }
        }
        Ok(left)
    }

    pub(super) fn arrays_without(
        &mut self,
        program: &Program,
        mut left: Vec<Arc<ArraySpec>>,
        right: &Alternatives,
    ) -> Result<Vec<Arc<ArraySpec>>, LimitExceeded> {
        for spec in &right.arrays {
            if left.is_empty() {
                break;
            }
            let others = self.array_negation(spec)?;
            let mut kept = Vec::new();
            let mut seen = FxHashSet::default();
            for mine in &left {
                for other in &others {
                    self.charge(1)?;
                    if let Some(both) = self.conjoin_arrays(program, mine, other)? {
                        let both = Arc::new(both);
                        if seen.insert(both.clone()) {
                            kept.push(both);
                        }
                    }
                }
            }
            self.check_width(kept.len())?;
            left = kept;
        }
        Ok(left)
    }

    /// The arrays that are not as `spec` says.
    fn array_negation(&mut self, spec: &ArraySpec) -> Result<Vec<ArraySpec>, LimitExceeded> {
        let any = ArraySpec::any();
        let mut others = Vec::new();
        if let Some(longest) = spec.min_items.checked_sub(1) {
            others.push(ArraySpec { max_items: Some(longest), ..any.clone() });
        }
        if let Some(maximum) = spec.max_items {
            others.push(ArraySpec { min_items: maximum.saturating_add(1), ..any.clone() });
        }
        // Of single values the first item that differs tells the cases apart, so that excluding one
        // after the other leaves few of them.
        let is_single = spec.is_plain()
            && spec.items.is_none()
            && spec.prefix.iter().all(|&item| self.single_value(item).is_some());
        for (place, &item) in spec.prefix.iter().enumerate() {
            let item = self.interner.negation(item)?;
            if item != SchemaId::NEVER {
                let mut prefix = vec![SchemaId::ANY; place];
                let mut other = ArraySpec { min_items: place as u64 + 1, ..any.clone() };
                if is_single {
                    prefix.copy_from_slice(&spec.prefix[..place]);
                    other.min_items = other.min_items.max(spec.min_items);
                    other.max_items = spec.max_items;
                }
                prefix.push(item);
                others.push(ArraySpec { prefix, ..other });
            }
        }
        let from = spec.prefix.len() as u64;
        let longer_is_named = spec.max_items.is_some_and(|maximum| maximum <= from);
        match spec.items {
            Some(SchemaId::ANY) => {}
            None if longer_is_named => {}
            None => others.push(ArraySpec { min_items: from + 1, ..any.clone() }),
            Some(items) => {
                let schema = self.interner.negation(items)?;
                let contains = vec![Contains { schema, from, min: 1, max: None }];
                others.push(ArraySpec { contains, min_items: from + 1, ..any.clone() });
            }
        }
        for contains in &spec.contains {
            if let Some(fewer) = contains.min.checked_sub(1) {
                let contains = vec![Contains { min: 0, max: Some(fewer), ..contains.clone() }];
                others.push(ArraySpec { contains, ..any.clone() });
            }
            if let Some(maximum) = contains.max {
                let min = maximum.saturating_add(1);
                let contains = vec![Contains { min, max: None, ..contains.clone() }];
                others.push(ArraySpec { contains, ..any.clone() });
            }
        }
        if spec.unique {
            others.push(ArraySpec { repeats: true, min_items: 2, ..any.clone() });
        }
        if spec.repeats {
            others.push(ArraySpec { unique: true, ..any });
        }
        Ok(others)
    }

    /// If the property is there, so must be the names. `together`: how many such there are at one
    /// place. A few are alternatives of their own; as many would be multiplied, they are exclusions.
    pub(super) fn dependent_names(
        &mut self,
        program: &Program,
        name: &str,
        names: &[NodeId],
        together: usize,
    ) -> Result<Alternatives, LimitExceeded> {
        let mut present = vec![Property::required(name.into())];
        for &needed in names {
            if let Value::String(needed) = program.document.value(needed) {
                if present.iter().all(|property| *property.name != *needed) {
                    present.push(Property::required(needed.into()));
                }
            }
        }
        Ok(if present.len() == 1 {
            Alternatives::any()
        } else if together > MAX_DEPENDENT_ALTERNATIVES {
            let excluded = present[1..].iter().map(|needed| {
                let absent =
                    Property { schema: SchemaId::NEVER, required: false, ..needed.clone() };
                let properties = vec![present[0].clone(), absent];
                Arc::new(ObjectSpec::new(properties, Some(SchemaId::ANY)))
            });
            let object = ObjectSpec { excluded: excluded.collect(), ..ObjectSpec::any() };
            Alternatives { objects: vec![Arc::new(object)], ..Alternatives::any() }
        } else {
            dependent(name, vec![Arc::new(ObjectSpec::new(present, Some(SchemaId::ANY)))])
        })
    }

    /// If the property is there, the whole object must be as `needed` says.
    pub(super) fn dependent_schema(
        &mut self,
        program: &Program,
        name: &str,
        needed: &Arc<Alternatives>,
    ) -> Result<Alternatives, LimitExceeded> {
        if needed.is_any() {
            return Ok(Alternatives::any());
        }
        let present = ObjectSpec::new(vec![Property::required(name.into())], Some(SchemaId::ANY));
        let mut objects = Vec::with_capacity(needed.objects.len());
        for spec in &needed.objects {
            objects.extend(self.conjoin_objects(program, &[spec, &present])?.map(Arc::new));
        }
        Ok(dependent(name, objects))
    }
}

/// Objects without the property, or as one of `present`.
fn dependent(name: &str, present: Vec<Arc<ObjectSpec>>) -> Alternatives {
    let absent =
        Property { name: name.into(), schema: SchemaId::NEVER, required: false, free: true };
    let mut objects = vec![Arc::new(ObjectSpec::new(vec![absent], Some(SchemaId::ANY)))];
    objects.extend(present);
    Alternatives { objects, ..Alternatives::any() }
}

/// The strings of `left` whose lengths are not those of `spec`.
fn outside_lengths(left: &[StringSpec], spec: &StringSpec) -> Vec<StringSpec> {
    let shorter = spec
        .min_length
        .checked_sub(1)
        .map(|longest| StringSpec { max_length: Some(longest), ..StringSpec::any() });
    let longer = spec
        .max_length
        .and_then(|maximum| maximum.checked_add(1))
        .map(|min_length| StringSpec { min_length, ..StringSpec::any() });
    let mut kept = Vec::new();
    for mine in left {
        for other in shorter.iter().chain(longer.iter()) {
            kept.extend(super::merge::conjoin_strings(mine, other));
        }
    }
    kept
}
