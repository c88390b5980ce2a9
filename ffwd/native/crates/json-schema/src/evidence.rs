//! Evidence that an alternative has a value: the schemas that must have one.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::clauses::Cases;
use super::error::LimitExceeded;
use super::expand::Expander;
use super::extras::{with_member, Extra};
use super::filling::MAX_CONTAINS;
use super::program::Program;
use super::{ArraySpec, KeyClass, ObjectSpec, SchemaId};
use ffwd_regular::regex::Ast;

/// The needs of one way to build a value.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Each of these has a value.
    pub all: SmallVec<[SchemaId; 8]>,
    /// At least this many of these have one.
    pub at_least: Option<(u64, Vec<SchemaId>)>,
    /// An array whose items depend on each other can be filled.
    pub array: Option<Arc<ArraySpec>>,
}

/// A way to build a value, as far as it is resolved.
#[derive(Clone, Debug)]
pub enum Way {
    Needs(Needs),
    Object(ObjectWay),
    Array(ArrayWay),
    /// An object in which a name has one of some values.
    Cases(Cases),
}

/// An object, and the members with further keys that it also needs.
#[derive(Clone, Debug)]
pub struct ObjectWay {
    pub spec: Arc<ObjectSpec>,
    pub(super) extra: SmallVec<[Extra; 2]>,
    /// How many of these, the first ones, are decided to be members of their own.
    pub(super) apart: usize,
}

/// An array whose first items are chosen.
#[derive(Clone, Debug)]
pub struct ArrayWay {
    spec: Arc<ArraySpec>,
    length: u64,
    /// How many items so far satisfy each `contains`.
    counts: SmallVec<[u64; 2]>,
    items: Vec<SchemaId>,
}

impl ObjectWay {
    pub(super) fn new(spec: Arc<ObjectSpec>) -> Self {
        Self { spec, extra: SmallVec::new(), apart: 0 }
    }

    /// Whether it needs no members with further keys.
    pub fn needs_no_extra(&self) -> bool {
        self.extra.is_empty()
    }

    /// Another object with the same further members.
    pub(super) fn with(&self, spec: Arc<ObjectSpec>) -> Self {
        Self { spec, ..self.clone() }
    }
}

impl Way {
    pub fn object(spec: Arc<ObjectSpec>) -> Self {
        Self::Object(ObjectWay::new(spec))
    }

    pub fn array(spec: Arc<ArraySpec>) -> Self {
        let counts = SmallVec::from_elem(0, spec.contains.len());
        Self::Array(ArrayWay { spec, length: 0, counts, items: Vec::new() })
    }
}

impl ArraySpec {
    /// Whether its items depend on each other, so that they are chosen together.
    fn items_depend(&self) -> bool {
        let mut counting = self.contains.iter().filter(|c| c.min > 0 || c.max.is_some());
        let several =
            self.unique && (self.min_items > 1 || self.contains.iter().any(|c| c.min > 0));
        several || counting.nth(1).is_some()
    }
}

impl Expander {
    /// The refinements of a way, the most promising last.
    pub(super) fn ways_of_object(
        &mut self,
        program: &Program,
        way: ObjectWay,
    ) -> Result<Vec<Way>, LimitExceeded> {
        self.charge(1 + way.spec.properties.len())?;
        if !way.spec.excluded.is_empty() {
            let (at_once, complete) = self.ways_at_once(program, &way)?;
            if complete {
                return Ok(at_once);
            }
            let ways = self.ways_past_an_exclusion(program, &way)?;
            return Ok(ways.into_iter().map(Way::Object).chain(at_once).collect());
        }
        let ObjectWay { spec, extra, .. } = &way;
        let mut needs = Needs {
            all: spec.properties.iter().filter(|p| p.required).map(|p| p.schema).collect(),
            ..Needs::default()
        };
        let members = (needs.all.len() + extra.len()) as u64;
        if let Some(room) = spec.max_properties.filter(|&max| max < members) {
            return self.ways_with_fewer_members(program, &way, room);
        }
        needs.all.extend(extra.iter().map(|extra| extra.schema));
        let missing = spec.min_properties.saturating_sub(members);
        if missing == 0 {
            return Ok(vec![Way::Needs(needs)]);
        }
        let optional: Vec<SchemaId> = spec
            .properties
            .iter()
            .filter(|p| !p.required && p.schema != SchemaId::NEVER)
            .map(|p| p.schema)
            .collect();
        let mut ways = Vec::new();
        if optional.len() as u64 >= missing {
            let at_least = Some((missing, optional));
            ways.push(Way::Needs(Needs { at_least, ..needs.clone() }));
        }
        for class in &spec.others {
            let mut needs = needs.clone();
            needs.all.push(class.schema);
            ways.push(Way::Needs(needs));
        }
        Ok(ways)
    }

    /// All ways for an object to break its last exclusion, the most promising last. Together they
    /// cover each value of the object.
    pub(super) fn ways_past_an_exclusion(
        &mut self,
        program: &Program,
        way: &ObjectWay,
    ) -> Result<Vec<ObjectWay>, LimitExceeded> {
        let Some((exclusion, others)) = way.spec.excluded.split_last() else {
            return Ok(vec![way.clone()]);
        };
        let rest = ObjectSpec { excluded: others.to_vec(), ..ObjectSpec::clone(&way.spec) };
        let mut ways = self.violations(program, &rest, exclusion, way.extra.len())?;
        for violation in &mut ways {
            let mut extra = way.extra.clone();
            extra.append(&mut violation.extra);
            violation.extra = extra;
        }
        ways.reverse();
        Ok(ways)
    }

    /// The ways for an object to break an exclusion. `extra`: how many further members it needs to
    /// break others.
    pub(super) fn violations(
        &mut self,
        program: &Program,
        spec: &ObjectSpec,
        exclusion: &Arc<ObjectSpec>,
        extra: usize,
    ) -> Result<Vec<ObjectWay>, LimitExceeded> {
        let any = ObjectSpec::any();
        let members = extra + spec.excluded.len() + 1;
        let breaks = std::slice::from_ref(exclusion);
        let mut opposites: Vec<ObjectSpec> = Vec::new();
        for property in &exclusion.properties {
            if property.required {
                opposites.push(with_member(&property.name, SchemaId::NEVER, false));
            }
            let other = self.interner.negation(property.schema)?;
            if other != SchemaId::NEVER {
                opposites.push(with_member(&property.name, other, true));
            }
        }
        if let Some(fewer) = exclusion.min_properties.checked_sub(1) {
            opposites.push(ObjectSpec { max_properties: Some(fewer), ..any.clone() });
        }
        if let Some(max) = exclusion.max_properties {
            opposites.push(ObjectSpec { min_properties: max.saturating_add(1), ..any });
        }
        // Further keys: one that is in a class without satisfying it, or in none.
        let theirs: FxHashSet<&str> = exclusion.properties.iter().map(|p| &*p.name).collect();
        let mut extras: Vec<Extra> = Vec::new();
        for KeyClass { keys, schema } in self.breaking_classes(exclusion)? {
            for property in spec.properties.iter().filter(|p| !theirs.contains(&*p.name)) {
                let inside = match &keys {
                    None => true,
                    Some(keys) => self.languages.contains(keys, &property.name)?,
                };
                if inside && property.schema != SchemaId::NEVER {
                    opposites.push(with_member(&property.name, schema, true));
                }
            }
            for class in &spec.others {
                let member = self.both(program, &[class.schema, schema])?;
                if member == SchemaId::NEVER {
                    continue;
                }
                let keys = match (&class.keys, &keys) {
                    (None, keys) | (keys, None) => keys.clone(),
                    (Some(a), Some(b)) => Some(Ast::intersection([a.clone(), b.clone()])),
                };
                if let Some(names) = self.few_keys(keys.as_ref(), spec, breaks, members)? {
                    opposites.extend(names.iter().map(|name| with_member(name, schema, true)));
                    continue;
                }
                if let Some(keys) = &keys {
                    if self.languages.is_empty(keys)? {
                        continue;
                    }
                }
                extras.push(Extra { keys, breaks: breaks.into(), schema: member });
            }
        }
        let mut ways = Vec::with_capacity(opposites.len() + extras.len());
        for opposite in opposites {
            self.charge(1 + spec.properties.len())?;
            if let Some(both) = self.conjoin_objects(program, &[spec, &opposite])? {
                ways.push(ObjectWay::new(Arc::new(both)));
            }
        }
        let spec = Arc::new(spec.clone());
        let with_extra = |extra| {
            let extra = SmallVec::from_iter([extra]);
            ObjectWay { spec: spec.clone(), extra, apart: 0 }
        };
        ways.extend(extras.into_iter().map(with_extra));
        Ok(ways)
    }

    /// Further keys, and what a value must satisfy so that the object breaks the specification.
    fn breaking_classes(&mut self, spec: &ObjectSpec) -> Result<Vec<KeyClass>, LimitExceeded> {
        let mut breaking = Vec::with_capacity(spec.others.len() + 1);
        let mut covered: Option<Vec<Ast>> = Some(Vec::new());
        for class in &spec.others {
            match (&class.keys, &mut covered) {
                (Some(keys), Some(covered)) => covered.push(keys.clone()),
                _ => covered = None,
            }
            let schema = self.interner.negation(class.schema)?;
            if schema != SchemaId::NEVER {
                breaking.push(KeyClass { keys: class.keys.clone(), schema });
            }
        }
        if let Some(covered) = covered {
            let keys = (!covered.is_empty()).then(|| Ast::complement(Ast::alternation(covered)));
            breaking.push(KeyClass { keys, schema: SchemaId::ANY });
        }
        Ok(breaking)
    }

    pub(super) fn ways_of_array(
        &mut self,
        program: &Program,
        way: ArrayWay,
    ) -> Result<Vec<Way>, LimitExceeded> {
        self.charge(1)?;
        if way.spec.repeats {
            let mut ways = self.arrays_with_repeated_item(program, &way.spec)?;
            ways.reverse();
            return Ok(ways.into_iter().map(Way::array).collect());
        }
        if way.spec.items_depend() {
            return Ok(vec![Way::Needs(Needs { array: Some(way.spec), ..Needs::default() })]);
        }
        let ArrayWay { spec, length, counts, items } = way;
        let enough = spec.contains.iter().zip(&counts).all(|(c, &count)| count >= c.min);
        if length >= spec.min_items && enough {
            return Ok(vec![Way::Needs(Needs { all: items.into(), ..Needs::default() })]);
        }
        let room = spec.max_items.map_or(u64::MAX, |max| max.saturating_sub(length));
        let place = usize::try_from(length).ok().and_then(|at| spec.prefix.get(at));
        let Some(base) = place.copied().or(spec.items).filter(|_| room > 0) else {
            return Ok(Vec::new());
        };
        // The `contains` whose counts depend on the item.
        let open: Vec<usize> = (0..spec.contains.len())
            .filter(|&at| {
                let contains = &spec.contains[at];
                contains.from <= length && (counts[at] < contains.min || contains.max.is_some())
            })
            .collect();
        if open.len() > MAX_CONTAINS {
            let maximum = MAX_CONTAINS as u64;
            return Err(LimitExceeded { limit: "contains", maximum });
        }
        let settled = place.is_none() && spec.contains.iter().all(|c| c.from <= length);
        let mut ways = Vec::new();
        for label in 0..1u32 << open.len() {
            let mut demands: SmallVec<[SchemaId; 4]> = SmallVec::from_slice(&[base]);
            let mut times = if settled { room } else { 1 };
            let mut needed = u64::MAX;
            let mut full = false;
            for (bit, &at) in open.iter().enumerate() {
                let contains = &spec.contains[at];
                if label >> bit & 1 == 1 {
                    demands.push(contains.schema);
                    let left = contains.max.map_or(u64::MAX, |max| max.saturating_sub(counts[at]));
                    full |= left == 0;
                    times = times.min(left);
                    if counts[at] < contains.min {
                        needed = needed.min(contains.min - counts[at]);
                    }
                } else if contains.max.is_some() {
                    demands.push(self.interner.negation(contains.schema)?);
                }
            }
            if needed == u64::MAX {
                // Only the length is served.
                needed = spec.min_items.saturating_sub(length);
                if settled && (needed == 0 || !enough && spec.min_items <= length) {
                    continue;
                }
            }
            let schema = self.both(program, &demands)?;
            if full || schema == SchemaId::NEVER {
                continue;
            }
            let times = times.min(needed.max(1));
            let mut counts = counts.clone();
            for (bit, &at) in open.iter().enumerate() {
                if label >> bit & 1 == 1 {
                    counts[at] = counts[at].saturating_add(times);
                }
            }
            let mut items = items.clone();
            if !items.contains(&schema) {
                items.push(schema);
            }
            let length = length.saturating_add(times);
            ways.push(Way::Array(ArrayWay { spec: spec.clone(), length, counts, items }));
        }
        ways.reverse();
        Ok(ways)
    }

    /// Two places get the same item; all places after the first two past the prefix are alike.
    pub(super) fn arrays_with_repeated_item(
        &mut self,
        program: &Program,
        spec: &ArraySpec,
    ) -> Result<Vec<Arc<ArraySpec>>, LimitExceeded> {
        let places = spec.prefix.len() + 2;
        let at = |place: usize| {
            spec.prefix.get(place).copied().or(spec.items).unwrap_or(SchemaId::NEVER)
        };
        self.charge(places * places * places)?;
        let mut ways = Vec::new();
        for second in 1..places {
            for first in 0..second {
                let item = self.both(program, &[at(first), at(second)])?;
                let mut prefix: Vec<SchemaId> =
                    (0..=second.max(spec.prefix.len())).map(at).collect();
                prefix[first] = item;
                prefix[second] = item;
                let min_items = spec.min_items.max(second as u64 + 1);
                let repeated = ArraySpec { prefix, min_items, repeats: false, ..spec.clone() };
                if let Some(repeated) = super::merge::settle_array(repeated) {
                    ways.push(Arc::new(repeated));
                }
            }
        }
        Ok(ways)
    }
}
