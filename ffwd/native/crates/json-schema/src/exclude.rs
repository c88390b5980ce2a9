//! Objects that must not satisfy another specification. Simple parts of the exclusion become
//! constraints; the rest stays an exclusion.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::alternatives::Alternatives;
use super::error::LimitExceeded;
use super::expand::Expander;
use super::program::Program;
use super::{KeyClass, ObjectSpec, Property, SchemaId};

/// The most exclusions of one object.
const MAX_EXCLUSIONS: usize = 4096;

/// The result of an exclusion beside the rest of an object.
enum Exclusion {
    /// It concerns no such object.
    Vacuous,
    /// It concerns all such objects.
    Everything,
    /// Only this must not hold.
    Spec(ObjectSpec),
}

/// Returns the position of each property of an object.
fn places_of(spec: &ObjectSpec) -> FxHashMap<Arc<str>, usize> {
    let properties = spec.properties.iter().enumerate();
    properties.map(|(place, property)| (property.name.clone(), place)).collect()
}

/// Whether a specification constrains only the values of some names.
fn is_of_names(spec: &ObjectSpec) -> bool {
    let open = [KeyClass { keys: None, schema: SchemaId::ANY }];
    spec.min_properties == 0
        && spec.max_properties.is_none()
        && spec.excluded.is_empty()
        && spec.others == open
}

impl Expander {
    pub(super) fn objects_without(
        &mut self,
        program: &Program,
        mut left: Vec<Arc<ObjectSpec>>,
        right: &Alternatives,
    ) -> Result<Vec<Arc<ObjectSpec>>, LimitExceeded> {
        self.objects_without_all(program, &mut left, &right.objects)?;
        Ok(left)
    }

    /// Returns the objects that are none of some others.
    pub(super) fn objects_without_all(
        &mut self,
        program: &Program,
        left: &mut Vec<Arc<ObjectSpec>>,
        right: &[Arc<ObjectSpec>],
    ) -> Result<(), LimitExceeded> {
        let (plain, nested): (Vec<_>, Vec<_>) =
            right.iter().partition(|spec| spec.excluded.is_empty());
        // All at once, so that each is compared with the object only once.
        if !plain.is_empty() {
            let mut kept = Vec::with_capacity(left.len());
            for mine in left.iter() {
                let mut spec = ObjectSpec::clone(mine);
                self.charge(plain.len())?;
                spec.excluded.extend(plain.iter().map(|&exclusion| exclusion.clone()));
                kept.extend(self.settle_exclusions(program, spec)?.map(Arc::new));
            }
            *left = kept;
        }
        for spec in nested {
            if left.is_empty() {
                break;
            }
            let mut kept = Vec::with_capacity(left.len());
            let mut seen = FxHashSet::default();
            for mine in left.iter() {
                self.charge(1)?;
                for rest in self.object_without(program, mine, spec)? {
                    if seen.insert(rest.clone()) {
                        kept.push(rest);
                    }
                }
            }
            self.check_width(kept.len())?;
            *left = kept;
        }
        Ok(())
    }

    /// Removes an object that has exclusions itself.
    fn object_without(
        &mut self,
        program: &Program,
        left: &Arc<ObjectSpec>,
        right: &Arc<ObjectSpec>,
    ) -> Result<Vec<Arc<ObjectSpec>>, LimitExceeded> {
        let mut rest = Vec::new();
        // The exclusions of `right` are no part of it.
        for excluded in &right.excluded {
            rest.extend(self.conjoin_objects(program, &[left, excluded])?.map(Arc::new));
        }
        let plain = Arc::new(ObjectSpec { excluded: Vec::new(), ..ObjectSpec::clone(right) });
        let mut spec = ObjectSpec::clone(left);
        if !spec.excluded.contains(&plain) {
            spec.excluded.push(plain);
        }
        rest.extend(self.settle_exclusions(program, spec)?.map(Arc::new));
        Ok(rest)
    }

    /// The object with simple exclusions resolved; `None` if nothing is left.
    pub(super) fn settle_exclusions(
        &mut self,
        program: &Program,
        spec: ObjectSpec,
    ) -> Result<Option<ObjectSpec>, LimitExceeded> {
        self.settle_by(program, spec, true)
    }

    /// `names`: by name, where all exclusions are about single names.
    pub(super) fn settle_by(
        &mut self,
        program: &Program,
        mut spec: ObjectSpec,
        names: bool,
    ) -> Result<Option<ObjectSpec>, LimitExceeded> {
        let mut open: Vec<Arc<ObjectSpec>> = Vec::new();
        let mut seen: FxHashSet<Arc<ObjectSpec>> = FxHashSet::default();
        let excluded = std::mem::take(&mut spec.excluded);
        let mut positive: Vec<ObjectSpec> = Vec::new();
        let mine = places_of(&spec);
        for exclusion in excluded {
            self.charge(1 + exclusion.properties.len())?;
            match self.exclusion_beside(program, &spec, &mine, &exclusion)? {
                Exclusion::Vacuous => {}
                Exclusion::Everything => return Ok(None),
                Exclusion::Spec(exclusion) => match self.opposite(&exclusion)? {
                    Some(opposite) => positive.push(opposite),
                    None => {
                        let exclusion = Arc::new(exclusion);
                        if seen.insert(exclusion.clone()) {
                            open.push(exclusion);
                        }
                    }
                },
            }
        }
        if open.len() > MAX_EXCLUSIONS {
            let maximum = MAX_EXCLUSIONS as u64;
            return Err(LimitExceeded { limit: "exclusions", maximum });
        }
        spec.excluded = open;
        if positive.is_empty() {
            return Ok(Some(spec));
        }
        // A resolved exclusion may make others simple; each round leaves fewer exclusions.
        let mut known = positive.iter().chain(spec.excluded.iter().map(|spec| &**spec));
        if names && known.all(is_of_names) {
            return self.settle_names(program, spec, mine, positive);
        }
        let parts: Vec<&ObjectSpec> = std::iter::once(&spec).chain(&positive).collect();
        self.conjoin_objects(program, &parts)
    }

    /// Conjoins further constraints and resolves the exclusions again: all constraints concern
    /// single names, so only exclusions with an affected name are revisited. A chain in which each
    /// name implies the next takes one pass instead of one for each name.
    fn settle_names(
        &mut self,
        program: &Program,
        mut spec: ObjectSpec,
        mut mine: FxHashMap<Arc<str>, usize>,
        mut positive: Vec<ObjectSpec>,
    ) -> Result<Option<ObjectSpec>, LimitExceeded> {
        let mut open: Vec<Option<Arc<ObjectSpec>>> =
            std::mem::take(&mut spec.excluded).into_iter().map(Some).collect();
        let mut having: FxHashMap<Arc<str>, Vec<usize>> = FxHashMap::default();
        for (place, exclusion) in open.iter().enumerate() {
            for property in exclusion.iter().flat_map(|exclusion| &exclusion.properties) {
                having.entry(property.name.clone()).or_default().push(place);
            }
        }
        while !positive.is_empty() {
            let mut again: BTreeSet<usize> = BTreeSet::new();
            // All constraints of a name at once: hundreds of constants may distinguish its values.
            let mut together: Vec<(Property, Vec<SchemaId>)> = Vec::new();
            let mut names: FxHashMap<Arc<str>, usize> = FxHashMap::default();
            for property in positive.drain(..).flat_map(|spec| spec.properties) {
                let place = *names.entry(property.name.clone()).or_insert(together.len());
                match together.get_mut(place) {
                    Some((known, schemas)) => {
                        known.required |= property.required;
                        known.free &= property.free;
                        schemas.push(property.schema);
                    }
                    None => {
                        let schemas = vec![property.schema];
                        together.push((property, schemas));
                    }
                }
            }
            for (mut property, schemas) in together {
                property.schema = self.both(program, &schemas)?;
                again.extend(having.get(&property.name).into_iter().flatten());
                let place = mine.entry(property.name.clone()).or_insert(spec.properties.len());
                let Some(known) = spec.properties.get_mut(*place) else {
                    let schema = self.class_schema(&spec.others, &property.name)?;
                    let schema = self.both(program, &[property.schema, schema])?;
                    if property.required && schema == SchemaId::NEVER {
                        return Ok(None);
                    }
                    spec.properties.push(Property { schema, ..property });
                    continue;
                };
                known.schema = self.both(program, &[known.schema, property.schema])?;
                known.required |= property.required;
                known.free &= property.free;
                if known.required && known.schema == SchemaId::NEVER {
                    return Ok(None);
                }
            }
            for place in again {
                let Some(exclusion) = open[place].take() else { continue };
                self.charge(1 + exclusion.properties.len())?;
                match self.exclusion_beside(program, &spec, &mine, &exclusion)? {
                    Exclusion::Vacuous => {}
                    Exclusion::Everything => return Ok(None),
                    Exclusion::Spec(exclusion) => match self.opposite(&exclusion)? {
                        Some(opposite) => positive.push(opposite),
                        None => open[place] = Some(Arc::new(exclusion)),
                    },
                }
            }
        }
        let mut seen: FxHashSet<Arc<ObjectSpec>> = FxHashSet::default();
        spec.excluded =
            open.into_iter().flatten().filter(|exclusion| seen.insert(exclusion.clone())).collect();
        self.settle_members(spec)
    }

    /// Returns the part of an exclusion that the rest of the object does not decide; `mine` are the
    /// positions of its properties.
    fn exclusion_beside(
        &mut self,
        program: &Program,
        spec: &ObjectSpec,
        mine: &FxHashMap<Arc<str>, usize>,
        exclusion: &ObjectSpec,
    ) -> Result<Exclusion, LimitExceeded> {
        let theirs: FxHashSet<&str> =
            exclusion.properties.iter().map(|property| &*property.name).collect();
        let mut rest = ObjectSpec { properties: Vec::new(), ..exclusion.clone() };
        for property in &exclusion.properties {
            let here = mine.get(&property.name).map(|&place| &spec.properties[place]);
            let schema = match here {
                Some(here) => here.schema,
                None => self.class_schema(&spec.others, &property.name)?,
            };
            let required = here.is_some_and(|here| here.required);
            let (both, implied) = self.beside(program, schema, property.schema)?;
            if both == SchemaId::NEVER && (required || property.required) {
                return Ok(Exclusion::Vacuous);
            }
            rest.properties.push(Property {
                name: property.name.clone(),
                schema: if implied { SchemaId::ANY } else { property.schema },
                required: property.required && !required,
                free: true,
            });
        }
        let open = [KeyClass { keys: None, schema: SchemaId::ANY }];
        if rest.others != open {
            let mut implied = spec.others.is_empty() || spec.others == rest.others;
            if !implied {
                if let ([mine], [theirs]) = (&spec.others[..], &rest.others[..]) {
                    implied = theirs.keys.is_none()
                        && self.beside(program, mine.schema, theirs.schema)?.1;
                }
            }
            self.charge(spec.properties.len())?;
            let undeclared: Vec<&Property> =
                spec.properties.iter().filter(|p| !theirs.contains(&*p.name)).collect();
            for property in undeclared {
                let schema = self.class_schema(&exclusion.others, &property.name)?;
                let (both, implied) = self.beside(program, property.schema, schema)?;
                if both == SchemaId::NEVER && property.required {
                    return Ok(Exclusion::Vacuous);
                }
                let (name, required) = (property.name.clone(), false);
                let schema = if implied { SchemaId::ANY } else { schema };
                rest.properties.push(Property { name, schema, required, free: true });
            }
            if implied {
                rest.others = open.to_vec();
            }
        }
        if rest.others == open {
            let trivial = |p: &Property| p.schema == SchemaId::ANY && !p.required;
            rest.properties.retain(|property| !trivial(property));
        }
        let required = spec.properties.iter().filter(|p| p.required).count() as u64;
        let least = spec.min_properties.max(required);
        let most = match spec.others.is_empty() {
            true => Some(spec.max_properties.unwrap_or(spec.properties.len() as u64)),
            false => spec.max_properties,
        };
        if rest.min_properties <= least {
            rest.min_properties = 0;
        }
        if most.is_some_and(|most| rest.min_properties > most)
            || rest.max_properties.is_some_and(|max| max < least)
        {
            return Ok(Exclusion::Vacuous);
        }
        if let (Some(max), Some(most)) = (rest.max_properties, most) {
            if most <= max {
                rest.max_properties = None;
            }
        }
        rest.properties.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(if rest.is_any() { Exclusion::Everything } else { Exclusion::Spec(rest) })
    }

    /// The conjunction of two schemas, and whether the first plainly implies the second.
    fn beside(
        &mut self,
        program: &Program,
        schema: SchemaId,
        other: SchemaId,
    ) -> Result<(SchemaId, bool), LimitExceeded> {
        let schema = self.canonical(program, schema)?;
        let other = self.canonical(program, other)?;
        let both = self.both(program, &[schema, other])?;
        Ok((both, both == schema))
    }

    /// Returns the exact opposite of `spec`, if it is one specification.
    fn opposite(&mut self, spec: &ObjectSpec) -> Result<Option<ObjectSpec>, LimitExceeded> {
        let any = ObjectSpec::any();
        let same = |spec: &ObjectSpec, other: ObjectSpec| *spec == other;
        if let (Some(max), []) = (spec.max_properties, &spec.properties[..]) {
            if same(spec, ObjectSpec { max_properties: Some(max), ..any.clone() }) {
                let min_properties = max.saturating_add(1);
                return Ok(Some(ObjectSpec { min_properties, ..any }));
            }
        }
        if let (Some(max), []) = (spec.min_properties.checked_sub(1), &spec.properties[..]) {
            if same(spec, ObjectSpec { min_properties: max + 1, ..any.clone() }) {
                return Ok(Some(ObjectSpec { max_properties: Some(max), ..any }));
            }
        }
        let [property] = &spec.properties[..] else { return Ok(None) };
        if !same(spec, ObjectSpec { properties: vec![property.clone()], ..any.clone() }) {
            return Ok(None);
        }
        // The opposite of a required property is absent or different; that of an optional one is
        // present and different.
        let schema = self.interner.negation(property.schema)?;
        let opposite = Property {
            name: property.name.clone(),
            schema,
            required: !property.required,
            free: true,
        };
        Ok(Some(ObjectSpec { properties: vec![opposite], ..any }))
    }
}
