//! Exclusions of a monitor that share no names decide nothing about each other.
//!
//! If no member is counted, and no exclusion has a demand on undeclared keys, then what remains of
//! an object can avoid all pending exclusions if and only if it can avoid those of each connected
//! component of names. A member affects the component of its name alone.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::json::exclusion_set::ExclusionSet;
use crate::json::monitor::{Asks, Exclusion, Monitor, Place, Role};
use crate::json::name_set::NameSet;
use crate::stacks::ids::NameId;
use ffwd_json_schema::{ObjectSpec, Property, SchemaId};

/// Exclusions that are connected by names on which they have demands.
#[derive(Debug)]
pub struct Component {
    /// The names with a demand, sorted.
    pub names: Vec<NameId>,
    pub exclusions: ExclusionSet,
}

/// The state of a component: the rest of the object depends on no more, as far as the component
/// goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpenPart {
    /// The exclusions that all members so far suited, and that can still be met.
    pub pending: ExclusionSet,
    /// The names that can no longer come.
    pub gone: NameSet,
    /// A member whose value has not been read.
    pub coming: Option<NameId>,
}

/// The components of a monitor; none if it has to be examined as a whole.
#[derive(Debug, Default)]
pub struct Components {
    all: Vec<Component>,
    /// For each name with a demand, its component.
    of_name: FxHashMap<NameId, u32>,
}

impl Components {
    /// The components of exclusions that do not count members.
    pub fn new(exclusions: &[Exclusion]) -> Self {
        let is_of_names = |exclusion: &Exclusion| matches!(exclusion.asks, Asks::Few(_));
        if !exclusions.iter().all(is_of_names) {
            return Self::default();
        }
        // Joins exclusions with a name in common; the root of a component is its first exclusion.
        let mut roots: Vec<usize> = (0..exclusions.len()).collect();
        fn root(roots: &mut [usize], mut at: usize) -> usize {
            while roots[at] != at {
                roots[at] = roots[roots[at]];
                at = roots[at];
            }
            at
        }
        let mut first: FxHashMap<NameId, usize> = FxHashMap::default();
        for (at, exclusion) in exclusions.iter().enumerate() {
            for name in exclusion.asks.names() {
                let other = *first.entry(name).or_insert(at);
                let (one, other) = (root(&mut roots, at), root(&mut roots, other));
                roots[one.max(other)] = one.min(other);
            }
        }
        let mut all: Vec<Component> = Vec::new();
        let mut places: FxHashMap<usize, u32> = FxHashMap::default();
        for at in 0..exclusions.len() {
            let none = || ExclusionSet::all(exclusions.len()).none();
            let place = *places.entry(root(&mut roots, at)).or_insert_with(|| {
                all.push(Component { names: Vec::new(), exclusions: none() });
                all.len() as u32 - 1
            });
            all[place as usize].exclusions.insert(at);
        }
        let mut of_name: FxHashMap<NameId, u32> = FxHashMap::default();
        for (name, at) in first {
            let place = places[&root(&mut roots, at)];
            of_name.insert(name, place);
            all[place as usize].names.push(name);
        }
        all.iter_mut().for_each(|component| component.names.sort_unstable());
        Self { all, of_name }
    }

    /// Whether the monitor has to be examined as a whole.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Component> {
        self.all.iter()
    }

    /// The component of a name, if an exclusion has a demand on it.
    pub fn of(&self, name: NameId) -> Option<&Component> {
        self.of_name.get(&name).map(|&place| &self.all[place as usize])
    }

    pub fn memory_bytes(&self) -> usize {
        let component = |component: &Component| {
            std::mem::size_of::<Component>()
                + component.names.len() * 4
                + component.exclusions.bytes()
        };
        self.of_name.len() * 16 + self.all.iter().map(component).sum::<usize>()
    }
}

impl Component {
    /// The state of the component between members; `None` if no exclusion is pending. `coming`: a
    /// member whose value has not been read, and which is not in `seen`.
    pub fn open_part(
        &self,
        monitor: &Monitor,
        place: &Place,
        seen: &NameSet,
        coming: Option<NameId>,
    ) -> Option<OpenPart> {
        let mut pending = place.pending.intersection(&self.exclusions);
        let is_gone = |name| coming != Some(name) && monitor.is_gone(name, place.ordered, seen);
        let fails = |&at: &usize| {
            let required = &monitor.exclusions[at].required;
            required.iter().any(|&name| is_gone(name) && !seen.contains(name))
        };
        let failed: Vec<usize> = pending.iter().filter(fails).collect();
        failed.into_iter().for_each(|at| pending.remove(at));
        if pending.is_empty() {
            return None;
        }
        let gone = self.names.iter().filter(|&&name| is_gone(name));
        let gone = gone.fold(NameSet::default(), |gone, &name| gone.with(name));
        let coming = coming.filter(|name| self.names.binary_search(name).is_ok());
        Some(OpenPart { pending, gone, coming })
    }

    /// Whether no further member is needed: no required name is missing, and no pending exclusion
    /// is met.
    pub fn is_settled(&self, monitor: &Monitor, open: &OpenPart) -> bool {
        let is_missing =
            |&name: &NameId| monitor.requires(name).is_some() && !open.gone.contains(name);
        let is_met = |at: usize| monitor.exclusions[at].is_met(&open.gone, 0);
        !self.names.iter().any(is_missing) && !open.pending.iter().any(is_met)
    }

    /// The same without the exclusions that the absence of an optional name avoids, and without
    /// these names.
    pub fn avoiding(&self, monitor: &Monitor, open: &OpenPart) -> OpenPart {
        let mut rest = open.clone();
        for at in open.pending.iter() {
            let is_free =
                |&&name: &&NameId| monitor.requires(name).is_none() && !open.gone.contains(name);
            if let Some(&name) = monitor.exclusions[at].required.iter().find(is_free) {
                rest.pending.remove(at);
                rest.gone = rest.gone.with(name);
            }
        }
        rest
    }

    /// Returns the rest of an object as far as the component goes. `decoded` has the names of the
    /// group.
    pub fn left(
        &self,
        monitor: &Monitor,
        open: &OpenPart,
        decoded: impl Fn(NameId) -> Arc<str>,
    ) -> ObjectSpec {
        let forbidden = |name: NameId| Property {
            name: decoded(name),
            schema: SchemaId::NEVER,
            required: false,
            free: true,
        };
        let mut properties = Vec::with_capacity(self.names.len());
        for &name in &self.names {
            let is_coming = open.coming == Some(name);
            match monitor.role(name) {
                _ if open.gone.contains(name) => properties.push(forbidden(name)),
                Role::Property(at) => {
                    let property = &monitor.spec.properties[at as usize];
                    let required = property.required || is_coming;
                    properties.push(Property { required, free: true, ..property.clone() });
                }
                Role::Class(class) if is_coming => {
                    let schema = monitor.spec.others[class as usize].schema;
                    properties.push(Property { schema, required: true, ..forbidden(name) });
                }
                Role::Class(_) | Role::Forbidden => {}
            }
        }
        let excluded = open.pending.iter().map(|at| {
            let exclusion = &monitor.exclusions[at];
            let mut properties = exclusion.spec.properties.clone();
            for (property, &name) in properties.iter_mut().zip(&exclusion.name_of) {
                if open.gone.contains(name) {
                    *property = forbidden(name);
                }
            }
            Arc::new(ObjectSpec { properties, ..ObjectSpec::clone(&exclusion.spec) })
        });
        let excluded = excluded.collect();
        let others = monitor.spec.others.clone();
        ObjectSpec { properties, others, min_properties: 0, max_properties: None, excluded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclusion(names: &[u32]) -> Exclusion {
        let asks = names.iter().map(|&name| (NameId(name), crate::json::monitor::Ask::Forbids));
        let spec = ObjectSpec {
            properties: Vec::new(),
            others: Vec::new(),
            min_properties: 0,
            max_properties: None,
            excluded: Vec::new(),
        };
        Exclusion {
            spec: Arc::new(spec),
            asks: Asks::Few(asks.collect()),
            name_of: Vec::new(),
            required: Vec::new(),
        }
    }

    /// Exclusions are in one component if and only if a chain of common names connects them.
    #[test]
    fn common_names_connect() {
        let exclusions = [&[1, 2][..], &[7], &[3, 4], &[2, 3], &[5], &[7, 8]].map(exclusion);
        let components = Components::new(&exclusions);
        let found: Vec<(Vec<u32>, Vec<usize>)> = components
            .iter()
            .map(|component| {
                let names = component.names.iter().map(|name| name.0).collect();
                (names, component.exclusions.iter().collect())
            })
            .collect();
        let expected =
            [(vec![1, 2, 3, 4], vec![0, 2, 3]), (vec![7, 8], vec![1, 5]), (vec![5], vec![4])];
        assert_eq!(found, expected);
        assert_eq!(
            components.of(NameId(8)).map(|component| &component.names[..]),
            Some(&[NameId(7), NameId(8)][..])
        );
        assert!(components.of(NameId(6)).is_none());
    }
}
