//! `oneOf`: each branch without the others.
//!
//! There may be thousands of branches, so clearly disjoint ones are never compared in pairs:
//! branches of different types, lists of values, and objects with a tag.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::alternatives::Alternatives;
use super::error::LimitExceeded;
use super::expand::Expander;
use super::number_range::NumberRange;
use super::numbers::NumberKinds;
use super::program::Program;
use super::values::ValueId;
use super::{ObjectSpec, Property, StringSpec};
use ffwd_regular::regex::Decimal;

impl Expander {
    /// Returns the values that exactly one of the branches allows.
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
        let mut numbers: Vec<usize> = places(branches, |branch| !branch.numbers.is_empty());
        let mut strings: Vec<usize> = places(branches, |branch| !branch.strings.is_empty());
        let arrays: Vec<usize> = places(branches, |branch| !branch.arrays.is_empty());
        let objects: Vec<usize> = places(branches, |branch| !branch.objects.is_empty());
        // Lists of values are distinguished value by value, and not branch by branch.
        if let Some(lists) = listed(branches, |branch| &branch.strings, string_list) {
            union.strings = match self.listed_once(&lists)? {
                once if once.is_empty() => Vec::new(),
                once => vec![StringSpec::values(once)],
            };
            strings.clear();
        }
        if let Some(lists) = listed(branches, |branch| &branch.numbers, number_list) {
            union.numbers = match self.listed_once(&lists)? {
                once if once.is_empty() => Vec::new(),
                once => vec![NumberRange::values(once)],
            };
            numbers.clear();
        }
        let tags = self.tags(branches);
        let same_tag = tags.as_ref().map(|tags| by_tag(tags));
        for (place, branch) in branches.iter().enumerate() {
            if numbers.binary_search(&place).is_ok() {
                let mut left = branch.numbers.clone();
                for other in others(&numbers, place) {
                    self.charge(1)?;
                    left = self.numbers_without(left, &branches[other])?;
                }
                union.numbers.extend(left);
            }
            if strings.binary_search(&place).is_ok() {
                let mut left = branch.strings.clone();
                for other in others(&strings, place) {
                    self.charge(1)?;
                    left = self.strings_without(left, &branches[other])?;
                }
                union.strings.extend(left);
            }
            if arrays.binary_search(&place).is_ok() {
                let mut left = branch.arrays.clone();
                for other in others(&arrays, place) {
                    self.charge(1)?;
                    left = self.arrays_without(program, left, &branches[other])?;
                }
                union.arrays.extend(left);
            }
            if !branch.objects.is_empty() {
                let mut left = branch.objects.clone();
                let beside: Vec<usize> = match (&tags, &same_tag) {
                    (Some(tags), Some(same_tag)) => {
                        let mut found: Vec<usize> =
                            tags[place].iter().flat_map(|tag| same_tag[tag].clone()).collect();
                        found.sort_unstable();
                        found.dedup();
                        others(&found, place).collect()
                    }
                    _ => others(&objects, place).collect(),
                };
                self.charge(beside.len())?;
                let apart: Vec<Arc<ObjectSpec>> = beside
                    .into_iter()
                    .flat_map(|other| branches[other].objects.iter().cloned())
                    .collect();
                self.objects_without_all(program, &mut left, &apart)?;
                union.objects.extend(left);
            }
            self.check_width(union.width())?;
        }
        union.simplify();
        Ok(union)
    }

    /// Returns the sorted constants of each branch, if all objects of all branches have a required
    /// property whose constant distinguishes them.
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

    /// The values that exactly one branch lists. The branches are given with their places.
    fn listed_once<T: Clone + Eq + Hash>(
        &mut self,
        lists: &[(usize, &[T])],
    ) -> Result<Vec<T>, LimitExceeded> {
        // The branch that lists a value, and whether another one does as well.
        let mut owners: FxHashMap<&T, (usize, bool)> = FxHashMap::default();
        for &(place, values) in lists {
            self.charge(values.len())?;
            for value in values {
                let owner = owners.entry(value).or_insert((place, false));
                owner.1 |= owner.0 != place;
            }
        }
        let once = owners.into_iter().filter(|(_, (_, again))| !again);
        Ok(once.map(|(value, _)| value.clone()).collect())
    }
}

/// The places of the branches that satisfy a predicate.
fn places(branches: &[Arc<Alternatives>], holds: impl Fn(&Alternatives) -> bool) -> Vec<usize> {
    (0..branches.len()).filter(|&place| holds(&branches[place])).collect()
}

/// Some places without one of them.
fn others(places: &[usize], place: usize) -> impl Iterator<Item = usize> + '_ {
    places.iter().copied().filter(move |&other| other != place)
}

/// The listed values of a string without other constraints.
fn string_list(spec: &StringSpec) -> Option<&[Arc<str>]> {
    spec.one_of.as_deref().filter(|_| spec.languages.is_empty())
}

/// The listed values of a number, in any spelling.
fn number_list(range: &NumberRange) -> Option<&[Decimal]> {
    range.one_of.as_deref().filter(|_| range.kinds == NumberKinds::ALL)
}

/// Every list of values with the place of its branch, if there are no other alternatives.
fn listed<'a, S: 'a, T>(
    branches: &'a [Arc<Alternatives>],
    alternatives: impl Fn(&'a Alternatives) -> &'a Vec<S>,
    list: impl Fn(&'a S) -> Option<&'a [T]>,
) -> Option<Vec<(usize, &'a [T])>> {
    let mut lists = Vec::new();
    for (place, branch) in branches.iter().enumerate() {
        for alternative in alternatives(branch) {
            lists.push((place, list(alternative)?));
        }
    }
    Some(lists)
}

/// The branches that have a tag, in their order.
fn by_tag(tags: &[Vec<ValueId>]) -> FxHashMap<ValueId, Vec<usize>> {
    let mut places: FxHashMap<ValueId, Vec<usize>> = FxHashMap::default();
    for (place, tags) in tags.iter().enumerate() {
        for &tag in tags {
            places.entry(tag).or_default().push(place);
        }
    }
    places
}
