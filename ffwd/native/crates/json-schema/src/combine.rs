//! Alternatives joined by logic: `anyOf`, `not`, `if` and dependencies; `oneOf` is in [`super::one_of`].

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::alternatives::Alternatives;
use super::document::{Members, NodeId, Value};
use super::error::LimitExceeded;
use super::expand::Expander;
use super::number_range::NumberRange;
use super::program::Program;
use super::{ArraySpec, Contains, ObjectSpec, Property, SchemaId, StringSpec};
use ffwd_regular::regex::Ast;

/// More dependencies than this in one schema do not become alternatives.
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
        self.join_implication(program, &mut union, &test.objects, then, otherwise)?;
        Ok(union)
    }

    /// Returns the values that `left` allows and `right` does not.
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
            joined: None,
        };
        rest.simplify();
        Ok(rest)
    }

    pub(super) fn numbers_without(
        &mut self,
        mut left: Vec<NumberRange>,
        right: &Alternatives,
    ) -> Result<Vec<NumberRange>, LimitExceeded> {
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

    pub(super) fn strings_without(
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
                let mut parts: SmallVec<[Arc<ArraySpec>; 8]> = SmallVec::new();
                for other in &others {
                    self.charge(1)?;
                    let both = self.conjoin_arrays(program, mine, other)?.map(Arc::new);
                    // If one negation leaves all of them, the others leave no more.
                    if both.as_ref() == Some(mine) {
                        parts.clear();
                        parts.push(mine.clone());
                        break;
                    }
                    parts.extend(both);
                }
                kept.extend(parts.into_iter().filter(|part| seen.insert(part.clone())));
            }
            self.check_width(kept.len())?;
            left = kept;
        }
        Ok(left)
    }

    /// The arrays that do not satisfy `spec`.
    fn array_negation(&mut self, spec: &ArraySpec) -> Result<Vec<ArraySpec>, LimitExceeded> {
        let any = ArraySpec::any();
        let mut others = Vec::new();
        if let Some(longest) = spec.min_items.checked_sub(1) {
            others.push(ArraySpec { max_items: Some(longest), ..any.clone() });
        }
        if let Some(maximum) = spec.max_items {
            others.push(ArraySpec { min_items: maximum.saturating_add(1), ..any.clone() });
        }
        // For single values the first item that differs distinguishes the cases, so successive
        // exclusions leave few of them.
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

    /// Returns the needs of each property that names imply.
    pub(super) fn names_needed(
        &mut self,
        program: &Program,
        members: Members<'_>,
    ) -> Vec<Alternatives> {
        let mut lists = Vec::new();
        for (name, needed) in members.iter() {
            if let Value::Array(names) = program.document.value(needed) {
                lists.push((name, names));
            }
        }
        if members.len() > MAX_DEPENDENT_ALTERNATIVES {
            return vec![many_dependent_names(program, &lists)];
        }
        let mut parts = Vec::with_capacity(lists.len());
        for list in lists {
            let (name, names) = list;
            let mut part = dependent_names(program, name, names);
            if part.objects.len() > 1 {
                let joined = many_dependent_names(program, &[list]);
                part.joined = joined.objects.into_iter().next();
            }
            parts.push(part);
        }
        parts
    }

    /// If the property is present, the whole object must satisfy `needed`.
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
        let mut union = dependent(name, objects);
        let any = Alternatives::any();
        self.join_implication(program, &mut union, &[Arc::new(present)], needed, &any)?;
        Ok(union)
    }
}

/// If the property is present, so must be the names.
fn dependent_names(program: &Program, name: &str, names: &[NodeId]) -> Alternatives {
    let mut present = vec![Property::required(name.into())];
    for &needed in names {
        if let Value::String(needed) = program.document.value(needed) {
            if present.iter().all(|property| *property.name != *needed) {
                present.push(Property::required(needed.into()));
            }
        }
    }
    match present.len() {
        1 => Alternatives::any(),
        _ => dependent(name, vec![Arc::new(ObjectSpec::new(present, Some(SchemaId::ANY)))]),
    }
}

/// The same for many properties, whose alternatives would multiply: one specification excludes the
/// objects that lack a name.
fn many_dependent_names(program: &Program, dependencies: &[(&str, &[NodeId])]) -> Alternatives {
    let mut seen: FxHashSet<(&str, &str)> = FxHashSet::default();
    let mut excluded = Vec::new();
    for &(name, names) in dependencies {
        for &needed in names {
            let Value::String(needed) = program.document.value(needed) else { continue };
            if needed == name || !seen.insert((name, needed)) {
                continue;
            }
            let absent = Property {
                schema: SchemaId::NEVER,
                required: false,
                ..Property::required(needed.into())
            };
            let properties = vec![Property::required(name.into()), absent];
            excluded.push(Arc::new(ObjectSpec::new(properties, Some(SchemaId::ANY))));
        }
    }
    if excluded.is_empty() {
        return Alternatives::any();
    }
    let object = ObjectSpec { excluded, ..ObjectSpec::any() };
    Alternatives { objects: vec![Arc::new(object)], ..Alternatives::any() }
}

/// Objects without the property, or those of `present`.
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
