//! One alternative of an object: its demand on each key, and whether the object can still satisfy
//! it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::json::cases::Cases;
use crate::json::components::Components;
use crate::json::exclusion_set::ExclusionSet;
use crate::json::name_set::NameSet;
use crate::stacks::ids::NameId;
use ffwd_bounds::meter;
use ffwd_json_schema::{ObjectSpec, Property, SchemaId, SchemaSet};
use ffwd_regular::expr::Verdict;

/// Whether a schema has valid values, found out once.
#[derive(Debug, Default)]
pub struct Satisfiable(AtomicU8);

impl Satisfiable {
    fn get(&self, set: &SchemaSet, schema: SchemaId) -> Result<bool> {
        match self.0.load(Ordering::Relaxed) {
            1 => Ok(false),
            2 => Ok(true),
            _ => {
                let known = set.is_satisfiable(schema)?;
                self.0.store(1 + u8::from(known), Ordering::Relaxed);
                Ok(known)
            }
        }
    }
}

/// The role of a name of the group in a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It may not come.
    Forbidden,
    /// A declared property.
    Property(u32),
    /// A further key of a class.
    Class(u32),
}

/// The demand of an excluded alternative on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// An object with the key does not satisfy it.
    Forbids,
    /// The value must satisfy a schema.
    Value(SchemaId),
}

/// A class of keys that are no names of the group, with one answer from the alternative and from
/// each of its exclusions.
#[derive(Debug)]
pub struct Unnamed {
    /// Which of the group's languages of keys it is.
    pub language: u32,
    pub schema: SchemaId,
    /// For each exclusion.
    pub asks: Box<[Ask]>,
    satisfiable: Satisfiable,
}

impl Unnamed {
    pub fn new(language: u32, schema: SchemaId, asks: Box<[Ask]>) -> Self {
        Self { language, schema, asks, satisfiable: Satisfiable::default() }
    }
}

/// The demands of an excluded alternative on the names of the group.
#[derive(Debug)]
pub enum Asks {
    /// The only names with a demand, sorted.
    Few(Vec<(NameId, Ask)>),
    /// For each name of the group.
    All(Vec<Ask>),
}

impl Asks {
    fn of(&self, name: NameId) -> Ask {
        match self {
            Self::Few(few) => match few.binary_search_by_key(&name, |&(name, _)| name) {
                Ok(place) => few[place].1,
                Err(_) => Ask::Value(SchemaId::ANY),
            },
            Self::All(all) => all[name.0 as usize],
        }
    }

    /// The names with a demand.
    pub fn names(&self) -> impl Iterator<Item = NameId> + '_ {
        let (few, all): (&[(NameId, Ask)], &[Ask]) = match self {
            Self::Few(few) => (few, &[]),
            Self::All(all) => (&[], all),
        };
        let is_asked = |(_, ask): &(NameId, Ask)| *ask != Ask::Value(SchemaId::ANY);
        let all = (0..).map(NameId).zip(all.iter().copied()).filter(is_asked);
        few.iter().copied().chain(all).map(|(name, _)| name)
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Few(few) => std::mem::size_of_val(&**few),
            Self::All(all) => std::mem::size_of_val(&**all),
        }
    }
}

/// An alternative that the object must not meet.
#[derive(Debug)]
pub struct Exclusion {
    pub spec: Arc<ObjectSpec>,
    pub asks: Asks,
    /// For each of its properties the name of the group.
    pub name_of: Vec<NameId>,
    /// The names that it requires.
    pub required: Vec<NameId>,
}

impl Exclusion {
    /// Whether an object with these names, all of whose members suited the exclusion, meets it.
    pub fn is_met(&self, seen: &NameSet, count: u64) -> bool {
        count >= self.spec.min_properties
            && self.spec.max_properties.is_none_or(|max| count <= max)
            && self.required.iter().all(|&name| seen.contains(name))
    }
}

/// The keys of which the object needs one to avoid an exclusion.
#[derive(Debug)]
pub struct ToLeave {
    pub exclusion: usize,
    pub names: Vec<NameId>,
    /// Whether an undeclared key avoids it, too.
    pub others: bool,
}

/// A key, as a monitor sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A name of the group.
    Name(NameId),
    /// Any other key of a class, by its index.
    Unnamed(u32),
}

/// The state of a monitor between the members of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The progress through the properties that have an order.
    pub ordered: u32,
    /// The exclusions that all members so far suited.
    pub pending: ExclusionSet,
}

/// A specification with these properties and exclusions, for all but `count` members.
fn without(
    spec: &ObjectSpec,
    properties: Vec<Property>,
    count: u64,
    excluded: Vec<Arc<ObjectSpec>>,
) -> ObjectSpec {
    ObjectSpec {
        properties,
        others: spec.others.clone(),
        min_properties: spec.min_properties.saturating_sub(count),
        max_properties: spec.max_properties.map(|max| max.saturating_sub(count)),
        excluded,
    }
}

#[derive(Debug)]
pub struct Monitor {
    pub spec: Arc<ObjectSpec>,
    pub owners: Verdict,
    /// The number of properties that come first in the order of their declaration.
    ordered: u32,
    /// For each name of the group.
    roles: Vec<Role>,
    pub unnamed: Vec<Unnamed>,
    pub exclusions: Vec<Exclusion>,
    /// For each place the first required property at or after it; `ordered` if there is none.
    next_required: Vec<u32>,
    /// For each place how many properties at or after it are required.
    required_from: Vec<u32>,
    /// The names of required properties without an order.
    required_free: Vec<NameId>,
    /// Whether the number of members makes a difference.
    is_counted: bool,
    cap: u64,
    /// The names of the properties that have an order.
    ordered_names: Vec<NameId>,
    /// For each name, the exclusions with a demand on it, if there are any.
    touching: FxHashMap<NameId, ExclusionSet>,
    /// The components of its exclusions, each of which can be examined by itself.
    pub components: Components,
    /// The names whose values many exclusions distinguish by constants.
    pub cases: FxHashMap<NameId, Cases>,
    satisfiable: Vec<Satisfiable>,
}

/// The statements of a specification about the names of a group.
pub struct Claims<'a> {
    pub roles: Vec<Role>,
    /// The name of each property.
    pub name_of: &'a [NameId],
    pub unnamed: Vec<Unnamed>,
    pub exclusions: Vec<Exclusion>,
}

impl Monitor {
    /// Returns the estimated memory besides what it shares with the schema.
    pub fn memory_bytes(&self) -> usize {
        let asks = self.unnamed.iter().map(|class| std::mem::size_of_val(&*class.asks));
        let exclusions = self.exclusions.iter().map(|exclusion| {
            std::mem::size_of::<Exclusion>()
                + exclusion.asks.memory_bytes()
                + (exclusion.name_of.len() + exclusion.required.len()) * 4
        });
        std::mem::size_of::<Self>()
            + std::mem::size_of_val(&*self.roles)
            + std::mem::size_of_val(&*self.unnamed)
            + asks.sum::<usize>()
            + exclusions.sum::<usize>()
            + (self.next_required.len() + self.required_from.len() + self.required_free.len()) * 4
            + std::mem::size_of_val(&*self.satisfiable)
            + self.ordered_names.len() * 4
            + self.components.memory_bytes()
            + self.touching.len() * (64 + self.exclusions.len() / 8)
            + self.cases.values().map(Cases::memory_bytes).sum::<usize>()
    }

    /// `in_order` says whether properties come as they are declared.
    pub fn new(
        set: &SchemaSet,
        spec: Arc<ObjectSpec>,
        owners: Verdict,
        in_order: bool,
        claims: Claims<'_>,
    ) -> Result<Self> {
        let Claims { roles, name_of, unnamed, exclusions } = claims;
        let ordered = match in_order {
            true => spec.properties.iter().take_while(|property| !property.free).count(),
            false => 0,
        };
        let mut next_required = vec![ordered as u32; ordered + 1];
        let mut required_from = vec![0; ordered + 1];
        for (place, property) in spec.properties[..ordered].iter().enumerate().rev() {
            let required = property.required;
            next_required[place] = if required { place as u32 } else { next_required[place + 1] };
            required_from[place] = required_from[place + 1] + u32::from(required);
        }
        let free = spec.properties.iter().zip(name_of).skip(ordered);
        let required_free =
            free.filter(|(property, _)| property.required).map(|(_, &name)| name).collect();
        let mut touching: FxHashMap<NameId, ExclusionSet> = FxHashMap::default();
        let mut asked: FxHashMap<NameId, Vec<(u32, SchemaId)>> = FxHashMap::default();
        for (at, exclusion) in exclusions.iter().enumerate() {
            let mut touch = |name: NameId, ask: Ask| {
                let none = || ExclusionSet::all(exclusions.len()).none();
                touching.entry(name).or_insert_with(none).insert(at);
                if let Ask::Value(schema) = ask {
                    asked.entry(name).or_default().push((at as u32, schema));
                }
            };
            match &exclusion.asks {
                Asks::Few(few) => few.iter().for_each(|&(name, ask)| touch(name, ask)),
                Asks::All(all) => {
                    (0..).map(NameId).zip(all).for_each(|(name, &ask)| touch(name, ask))
                }
            }
        }
        let mut cases = FxHashMap::default();
        for (name, asks) in asked {
            if let Some(table) = Cases::new(set, exclusions.len(), &asks)? {
                cases.insert(name, table);
            }
        }
        let cap_of = |spec: &ObjectSpec| {
            spec.min_properties.max(spec.max_properties.map_or(0, |max| max.saturating_add(1)))
        };
        let excluded = exclusions.iter().map(|exclusion| cap_of(&exclusion.spec)).max();
        let cap = cap_of(&spec).max(excluded.unwrap_or(0));
        let components = match cap {
            0 => Components::new(&exclusions),
            _ => Components::default(),
        };
        Ok(Self {
            ordered_names: name_of[..ordered].to_vec(),
            touching,
            components,
            cases,
            owners,
            ordered: ordered as u32,
            next_required,
            required_from,
            required_free,
            is_counted: spec.min_properties > 0 || spec.max_properties.is_some(),
            cap,
            satisfiable: roles.iter().map(|_| Satisfiable::default()).collect(),
            spec,
            roles,
            unnamed,
            exclusions,
        })
    }

    /// The key of a class, given the group's languages that contain it.
    pub fn key_of(&self, languages: Verdict) -> Option<Key> {
        let class = self.unnamed.iter().position(|class| languages >> class.language & 1 == 1);
        class.map(|class| Key::Unnamed(class as u32))
    }

    /// Before any member.
    pub fn start(&self) -> Place {
        Place { ordered: 0, pending: ExclusionSet::all(self.exclusions.len()) }
    }

    /// The number of members from which on counts make no difference to the monitor.
    pub fn cap(&self) -> u64 {
        self.cap
    }

    /// Whether this monitor needs a record of an earlier name, because the name's place does not
    /// imply it.
    pub fn remembers(&self, name: NameId) -> bool {
        !self.exclusions.is_empty()
            || !matches!(self.roles[name.0 as usize], Role::Property(p) if p < self.ordered)
    }

    /// The schema of an allowed key, and the monitor's progress after it.
    pub fn child(
        &self,
        set: &SchemaSet,
        place: &Place,
        seen: &NameSet,
        key: Key,
    ) -> Result<Option<(SchemaId, u32)>> {
        let is_through = self.next_required[place.ordered as usize] == self.ordered;
        let (schema, next, satisfiable) = match key {
            Key::Unnamed(class) => {
                if !is_through {
                    return Ok(None);
                }
                let class = &self.unnamed[class as usize];
                (class.schema, self.ordered, &class.satisfiable)
            }
            Key::Name(name) => {
                let satisfiable = &self.satisfiable[name.0 as usize];
                match self.roles[name.0 as usize] {
                    Role::Forbidden => return Ok(None),
                    Role::Property(at) if at < self.ordered => {
                        let from = place.ordered;
                        if at < from || at > self.next_required[from as usize] {
                            return Ok(None);
                        }
                        (self.spec.properties[at as usize].schema, at + 1, satisfiable)
                    }
                    _ if !is_through || seen.contains(name) => return Ok(None),
                    Role::Property(at) => {
                        (self.spec.properties[at as usize].schema, self.ordered, satisfiable)
                    }
                    Role::Class(class) => {
                        (self.spec.others[class as usize].schema, self.ordered, satisfiable)
                    }
                }
            }
        };
        Ok(satisfiable.get(set, schema)?.then_some((schema, next)))
    }

    /// Returns the demand of an exclusion on a key.
    pub fn ask(&self, exclusion: usize, key: Key) -> Ask {
        match key {
            Key::Name(name) => self.exclusions[exclusion].asks.of(name),
            Key::Unnamed(class) => self.unnamed[class as usize].asks[exclusion],
        }
    }

    /// Splits the pending exclusions into those with a demand on the key, and the others.
    pub fn split(&self, pending: &ExclusionSet, key: Key) -> (ExclusionSet, ExclusionSet) {
        match key {
            Key::Name(name) => match self.touching.get(&name) {
                Some(touching) => {
                    let others = pending.minus(touching);
                    (pending.minus(&others), others)
                }
                None => (pending.none(), pending.clone()),
            },
            Key::Unnamed(class) => {
                let asks = &self.unnamed[class as usize].asks;
                let mut others = pending.clone();
                for at in pending.iter().filter(|&at| asks[at] != Ask::Value(SchemaId::ANY)) {
                    others.remove(at);
                }
                (pending.minus(&others), others)
            }
        }
    }

    /// Whether a key cannot affect completability: nothing is counted, and no pending exclusion has
    /// a demand on the key or on the keys that it rules out.
    pub fn is_indifferent(&self, place: &Place, key: Key, ordered: u32) -> bool {
        let is_asked = |name: &NameId| {
            self.touching.get(name).is_some_and(|touching| touching.meets(&place.pending))
        };
        let is_key_asked = || match key {
            Key::Name(name) => is_asked(&name),
            Key::Unnamed(_) => !self.split(&place.pending, key).0.is_empty(),
        };
        self.cap == 0 && !is_key_asked() && !self.skipped(place, ordered).iter().any(is_asked)
    }

    /// The required property that a name of the group is, if it is one.
    pub fn requires(&self, name: NameId) -> Option<&Property> {
        self.property(name).filter(|property| property.required)
    }

    /// The required properties that are missing.
    pub fn missing<'m>(
        &'m self,
        ordered: u32,
        seen: &'m NameSet,
    ) -> impl Iterator<Item = (NameId, &'m Property)> + 'm {
        let from = ordered as usize;
        let in_order = self.spec.properties[from..self.ordered as usize].iter();
        let in_order = self.ordered_names[from..].iter().copied().zip(in_order);
        let free = self.required_free.iter().filter(|&&name| !seen.contains(name));
        in_order
            .filter(|(_, property)| property.required)
            .chain(free.filter_map(|&name| Some((name, self.requires(name)?))))
    }

    /// Whether this monitor allows the object to end here.
    pub fn may_close(&self, place: &Place, seen: &NameSet, count: u64) -> bool {
        self.next_required[place.ordered as usize] == self.ordered
            && count >= self.spec.min_properties
            && self.spec.max_properties.is_none_or(|max| count <= max)
            && self.required_free.iter().all(|&name| seen.contains(name))
            && self.pending(&place.pending).all(|exclusion| !exclusion.is_met(seen, count))
    }

    /// The exclusions that an object with exactly these names meets, each with the names of which
    /// one avoids it. Exclusions that any further member avoids are omitted.
    pub fn to_leave<'m>(
        &'m self,
        pending: &'m ExclusionSet,
        seen: &'m NameSet,
        count: u64,
    ) -> impl Iterator<Item = ToLeave> + 'm {
        let is_met = move |&at: &usize| {
            let exclusion = &self.exclusions[at];
            exclusion.spec.max_properties.is_none() && exclusion.is_met(seen, count)
        };
        pending.iter().filter(is_met).map(move |at| {
            let asked = self.exclusions[at].asks.names();
            let names = asked.filter(|&name| !seen.contains(name)).collect();
            let is_asked = |class: &Unnamed| class.asks[at] != Ask::Value(SchemaId::ANY);
            ToLeave { exclusion: at, names, others: self.unnamed.iter().any(is_asked) }
        })
    }

    /// The names that a key rules out, because they come before it in the declared order.
    pub fn skipped(&self, place: &Place, ordered: u32) -> &[NameId] {
        &self.ordered_names[place.ordered as usize..ordered as usize]
    }

    /// Returns the role of a name of the group.
    pub fn role(&self, name: NameId) -> Role {
        self.roles[name.0 as usize]
    }

    /// Whether a name can no longer come.
    pub fn is_gone(&self, name: NameId, ordered: u32, seen: &NameSet) -> bool {
        let is_passed =
            || matches!(self.roles[name.0 as usize], Role::Property(at) if at < ordered);
        seen.contains(name) || is_passed()
    }

    /// Whether an exclusion has a demand on such a name.
    pub fn asks_of_any(&self, exclusion: usize, is: impl Fn(NameId) -> bool) -> bool {
        self.exclusions[exclusion].asks.names().any(is)
    }

    /// The earlier names, and those of the missing required properties.
    pub fn with_missing(&self, ordered: u32, seen: &NameSet) -> NameSet {
        let from = ordered as usize;
        let in_order = self.spec.properties[from..self.ordered as usize].iter();
        let in_order = in_order.zip(&self.ordered_names[from..]);
        let in_order = in_order.filter(|(property, _)| property.required).map(|(_, name)| name);
        in_order.chain(&self.required_free).fold(seen.clone(), |seen, &name| seen.with(name))
    }

    /// The declared property that a name of the group is.
    pub fn property(&self, name: NameId) -> Option<&Property> {
        match self.roles[name.0 as usize] {
            Role::Property(at) => Some(&self.spec.properties[at as usize]),
            _ => None,
        }
    }

    /// Whether the members may come in any order.
    pub fn is_unordered(&self) -> bool {
        self.ordered == 0
    }

    fn pending<'m>(
        &'m self,
        pending: &'m ExclusionSet,
    ) -> impl Iterator<Item = &'m Exclusion> + 'm {
        pending.iter().map(|at| &self.exclusions[at])
    }

    /// The state without the exclusions that no continuation can meet.
    pub fn settle(&self, place: Place, seen: &NameSet, count: u64) -> Place {
        let mut pending = place.pending.clone();
        for at in place.pending.iter() {
            let exclusion = &self.exclusions[at];
            let may_come = |&name: &NameId| {
                seen.contains(name)
                    || match self.roles[name.0 as usize] {
                        Role::Forbidden => false,
                        Role::Property(at) => at >= self.ordered || at >= place.ordered,
                        Role::Class(_) => true,
                    }
            };
            let too_many = exclusion.spec.max_properties.is_some_and(|max| count > max);
            if too_many || !exclusion.required.iter().all(may_come) {
                pending.remove(at);
            }
        }
        Place { pending, ..place }
    }

    /// The pending exclusions that no name avoids; and the earlier names together with those that
    /// avoid the others, which an exclusion requires and the alternative does not.
    pub fn avoiding(&self, place: &Place, seen: &NameSet) -> (ExclusionSet, NameSet) {
        let mut pending = place.pending.clone();
        let mut without = seen.clone();
        let is_free = |&&name: &&NameId| {
            let is_required = match self.roles[name.0 as usize] {
                Role::Property(at) => self.spec.properties[at as usize].required,
                _ => false,
            };
            !is_required && !seen.contains(name)
        };
        for at in place.pending.iter() {
            if let Some(&name) = self.exclusions[at].required.iter().find(is_free) {
                pending.remove(at);
                without = without.with(name);
            }
        }
        (pending, without)
    }

    /// Returns the rest of an object that the monitor accepts, including its exclusions. `decoded`
    /// has the names of the group.
    pub fn left(
        &self,
        place: &Place,
        seen: &NameSet,
        count: u64,
        decoded: impl Fn(NameId) -> Arc<str>,
    ) -> ObjectSpec {
        let gone = |name: &Arc<str>, free| Property {
            name: name.clone(),
            schema: SchemaId::NEVER,
            required: false,
            free,
        };
        let mut came: Vec<NameId> =
            (0..self.roles.len() as u32).map(NameId).filter(|&n| seen.contains(n)).collect();
        let mut properties = self.spec.properties.clone();
        for (name, role) in self.roles.iter().enumerate() {
            let Role::Property(at) = *role else { continue };
            if at < place.ordered || seen.contains(NameId(name as u32)) {
                let property = &mut properties[at as usize];
                *property = gone(&property.name, property.free);
            }
        }
        came.retain(|&name| !matches!(self.roles[name.0 as usize], Role::Property(_)));
        properties.extend(came.into_iter().map(|name| gone(&decoded(name), true)));
        let excluded = self.pending(&place.pending).map(|exclusion| {
            let mut properties = exclusion.spec.properties.clone();
            for (property, &name) in properties.iter_mut().zip(&exclusion.name_of) {
                if seen.contains(name) {
                    *property = gone(&property.name, property.free);
                }
            }
            Arc::new(without(&exclusion.spec, properties, count, Vec::new()))
        });
        let excluded = excluded.collect();
        without(&self.spec, properties, count, excluded)
    }

    /// Whether the remaining members can satisfy the counts of the alternative, without its
    /// exclusions. `coming` is the current name, which is already counted.
    pub fn counts_suffice(
        &self,
        set: &SchemaSet,
        place: &Place,
        seen: &NameSet,
        coming: Option<NameId>,
        count: u64,
    ) -> Result<bool> {
        if !self.is_counted {
            return Ok(true);
        }
        meter::charge(1 + self.required_free.len() / 16)?;
        let came = |name: NameId| seen.contains(name) || coming == Some(name);
        let free = self.required_free.iter().filter(|&&name| !came(name)).count() as u64;
        let required = free + u64::from(self.required_from[place.ordered as usize]);
        let least = count.saturating_add(required);
        if self.spec.max_properties.is_some_and(|max| least > max) {
            return Ok(false);
        }
        if least >= self.spec.min_properties {
            return Ok(true);
        }
        for class in &self.unnamed {
            if class.satisfiable.get(set, class.schema)? {
                return Ok(true);
            }
        }
        meter::charge(1 + self.roles.len() / 16)?;
        let mut most = count;
        for (name, role) in self.roles.iter().enumerate() {
            let schema = match *role {
                Role::Forbidden => continue,
                Role::Property(at) if at < place.ordered => continue,
                Role::Property(at) if at >= self.ordered && came(NameId(name as u32)) => continue,
                Role::Property(at) => self.spec.properties[at as usize].schema,
                Role::Class(_) if came(NameId(name as u32)) => continue,
                Role::Class(class) => self.spec.others[class as usize].schema,
            };
            most += u64::from(self.satisfiable[name].get(set, schema)?);
            if most >= self.spec.min_properties {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
