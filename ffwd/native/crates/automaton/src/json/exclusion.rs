//! A monitor's demands on the next member, so that the object can be completed without satisfying
//! an excluded alternative.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{smallvec, SmallVec};

use crate::error::Result;
use crate::json::cases::Cases;
use crate::json::components::Component;
use crate::json::exclusion_set::ExclusionSet;
use crate::json::keys::decoded;
use crate::json::monitor::{Ask, Key, Place};
use crate::json::name_set::NameSet;
use crate::json::object_state::{Feasibility, Members};
use crate::json::tables::Json;
use crate::stacks::ids::{NameId, ObjectGroupId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_json_schema::SchemaId;

/// How many answers of [`Json::is_feasible`] are remembered at once.
const MAX_REMEMBERED: usize = 1 << 18;
/// How many sets of exclusions are tried for one member.
const MAX_WAYS: usize = 4096;

/// A monitor's demands on a member's value.
#[derive(Clone, Debug)]
pub struct MemberDemand {
    /// The demand of the alternative itself.
    pub schema: SchemaId,
    /// The progress of the monitor after the member.
    pub ordered: u32,
    /// One of these must hold, so that the object can still be completed. None if the monitor is
    /// only observed.
    pub required: SmallVec<[SchemaId; 1]>,
    /// Exclusions that the member suits whatever its value is.
    pub kept: ExclusionSet,
    /// Exclusions that the class of the value decides.
    pub told_apart: ExclusionSet,
    /// Other exclusions, and when the member suits them.
    pub watched: SmallVec<[(u32, SchemaId); 2]>,
}

impl Json {
    /// Returns a monitor's demand on the value of a key; `None` if the key is not allowed.
    pub(crate) fn demand(
        &self,
        group: ObjectGroupId,
        at: u32,
        place: &Place,
        members: &Members,
        key: Key,
    ) -> Result<Option<MemberDemand>> {
        let monitors = self.group(group);
        let monitor = &monitors.monitors[at as usize];
        let Members { seen, count, .. } = members;
        let Some((schema, ordered)) = monitor.child(&self.schema, place, seen, key)? else {
            return Ok(None);
        };
        let (asking, kept) = monitor.split(&place.pending, key);
        let told_apart = asking.none();
        let (required, watched) = (smallvec![], smallvec![]);
        let mut demand = MemberDemand { schema, ordered, required, kept, told_apart, watched };
        let cases = match key {
            Key::Name(name) if !asking.is_empty() => monitor.cases.get(&name),
            _ => None,
        };
        for exclusion in asking.iter() {
            if cases.is_some_and(|cases| cases.decided.contains(exclusion)) {
                demand.told_apart.insert(exclusion);
                continue;
            }
            match monitor.ask(exclusion, key) {
                Ask::Forbids => {}
                Ask::Value(asked) if asked == SchemaId::ANY || asked == schema => {
                    demand.kept.insert(exclusion);
                }
                Ask::Value(asked) => demand.watched.push((exclusion as u32, asked)),
            }
        }
        if !monitors.is_required(monitor) {
            return Ok(Some(demand));
        }
        let count = count.saturating_add(1).min(monitors.cap);
        if place.pending.is_empty() {
            let coming = match key {
                Key::Name(name) => Some(name),
                Key::Unnamed(_) => None,
            };
            let next = Place { ordered, pending: place.pending.clone() };
            if !monitor.counts_suffice(&self.schema, &next, seen, coming, count)? {
                return Ok(None);
            }
            demand.required.push(schema);
            return Ok(Some(demand));
        }
        if monitor.is_indifferent(place, key, ordered) {
            demand.required.push(schema);
            return Ok(Some(demand));
        }
        let seen = match key {
            Key::Name(name) if monitor.remembers(name) => &seen.with(name),
            _ => seen,
        };
        let next = |pending| {
            let next = Place { ordered, pending };
            match key {
                Key::Name(name) if !monitor.components.is_empty() => {
                    // The object can be completed from `place`: only what the key affects counts.
                    let skipped = monitor.skipped(place, ordered).iter().copied();
                    self.is_feasible_after(group, at, &next, seen, skipped.chain([name]))
                }
                _ => {
                    let next = monitor.settle(next, seen, count);
                    self.is_feasible(group, at, &next, seen, count)
                }
            }
        };
        demand.required = match cases.filter(|_| !demand.told_apart.is_empty()) {
            Some(cases) => self.ways_of_cases(&demand, cases, next)?,
            None => self.ways(&demand, next)?,
        };
        Ok(if demand.required.is_empty() { None } else { Some(demand) })
    }
}

impl Json {
    /// Whether an object can be completed from here so that the monitor accepts it.
    pub(crate) fn is_feasible(
        &self,
        group: ObjectGroupId,
        at: u32,
        place: &Place,
        seen: &NameSet,
        count: u64,
    ) -> Result<bool> {
        let names = &self.group(group).names;
        let monitor = &self.group(group).monitors[at as usize];
        if !monitor.counts_suffice(&self.schema, place, seen, None, count)? {
            return Ok(false);
        }
        if place.pending.is_empty() || monitor.may_close(place, seen, count) {
            return Ok(true);
        }
        if !monitor.components.is_empty() {
            for component in monitor.components.iter() {
                if !self.is_component_feasible(group, at, component, place, seen)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let key =
            Feasibility { group, monitor: at, place: place.clone(), seen: seen.clone(), count };
        if let Some(&known) = self.feasible.lock().get(&key) {
            return Ok(known);
        }
        meter::charge(1 + names.len() / 16 + place.pending.len() / 4)?;
        let name = |name: NameId| decoded(&names[name.0 as usize]);
        // Most exclusions are avoided by leaving out a name, which mostly does no harm.
        let (pending, without) = monitor.avoiding(place, seen);
        let mut feasible = false;
        if pending != place.pending {
            let place = Place { pending, ..place.clone() };
            let left = monitor.left(&place, &without, count, name);
            feasible = self.schema.object_is_satisfiable(&left)?;
        }
        if !feasible {
            let left = monitor.left(place, seen, count, name);
            feasible = self.schema.object_is_satisfiable(&left)?;
        }
        self.remember_feasible(key, feasible);
        Ok(feasible)
    }

    /// Whether the components of these names can still avoid their exclusions.
    fn is_feasible_after(
        &self,
        group: ObjectGroupId,
        at: u32,
        place: &Place,
        seen: &NameSet,
        names: impl Iterator<Item = NameId>,
    ) -> Result<bool> {
        let monitor = &self.group(group).monitors[at as usize];
        let mut last: Option<&Component> = None;
        for component in names.filter_map(|name| monitor.components.of(name)) {
            if last.is_some_and(|last| std::ptr::eq(last, component)) {
                continue;
            }
            last = Some(component);
            if !self.is_component_feasible(group, at, component, place, seen)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the rest of an object can avoid the pending exclusions of a component.
    fn is_component_feasible(
        &self,
        group: ObjectGroupId,
        at: u32,
        component: &Component,
        place: &Place,
        seen: &NameSet,
    ) -> Result<bool> {
        let names = &self.group(group).names;
        let monitor = &self.group(group).monitors[at as usize];
        meter::charge(1)?;
        let Some(open) = component.open_part(monitor, place, seen, None) else { return Ok(true) };
        if component.is_settled(monitor, &open) {
            return Ok(true);
        }
        let key = Feasibility {
            group,
            monitor: at,
            place: Place { ordered: 0, pending: open.pending.clone() },
            seen: open.gone.clone(),
            count: 0,
        };
        if let Some(&known) = self.feasible.lock().get(&key) {
            return Ok(known);
        }
        meter::charge(1 + component.names.len() / 4 + open.pending.len() / 4)?;
        let name = |name: NameId| decoded(&names[name.0 as usize]);
        let mut feasible = false;
        // Most exclusions are avoided by leaving out a name, which mostly does no harm.
        let avoiding = component.avoiding(monitor, &open);
        if avoiding.pending != open.pending {
            let left = component.left(monitor, &avoiding, name);
            feasible = self.schema.object_is_satisfiable(&left)?;
        }
        if !feasible {
            let left = component.left(monitor, &open, name);
            feasible = self.schema.object_is_satisfiable(&left)?;
        }
        self.remember_feasible(key, feasible);
        Ok(feasible)
    }

    fn remember_feasible(&self, key: Feasibility, feasible: bool) {
        let mut known = self.feasible.lock();
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(key, feasible);
    }

    /// Returns schemas, one of which a member's value must satisfy so that the object can be
    /// completed. Each is the alternative's demand, and that the value violates certain exclusions,
    /// as few as possible.
    fn ways(
        &self,
        demand: &MemberDemand,
        is_feasible: impl FnMut(ExclusionSet) -> Result<bool>,
    ) -> Result<SmallVec<[SchemaId; 1]>> {
        let mut ways = SmallVec::new();
        for leaving in leaving(&demand.kept, &demand.watched, is_feasible)? {
            if leaving.is_empty() {
                return Ok(smallvec![demand.schema]);
            }
            add_way(self, demand, &leaving, None, &mut ways)?;
        }
        Ok(ways)
    }

    /// The same where the class of the value decides about some exclusions.
    fn ways_of_cases(
        &self,
        demand: &MemberDemand,
        cases: &Cases,
        mut is_feasible: impl FnMut(ExclusionSet) -> Result<bool>,
    ) -> Result<SmallVec<[SchemaId; 1]>> {
        let mut classes: Vec<(ExclusionSet, Vec<usize>)> = Vec::new();
        let mut places: FxHashMap<ExclusionSet, usize> = FxHashMap::default();
        for (suited, alike) in cases.alike(&demand.told_apart)? {
            let kept = demand.kept.union(&suited);
            for leaving in leaving(&kept, &demand.watched, &mut is_feasible)? {
                let place = *places.entry(leaving.clone()).or_insert_with(|| {
                    classes.push((leaving, Vec::new()));
                    classes.len() - 1
                });
                classes[place].1.extend(&alike);
            }
        }
        let mut ways = SmallVec::new();
        for (leaving, classes) in classes {
            let schema = cases.schema(&self.schema, classes)?;
            if leaving.is_empty() && schema.is_none() {
                return Ok(smallvec![demand.schema]);
            }
            add_way(self, demand, &leaving, schema, &mut ways)?;
        }
        Ok(ways)
    }
}

/// Adds the way to leave exclusions, with values of a schema only.
fn add_way(
    json: &Json,
    demand: &MemberDemand,
    leaving: &ExclusionSet,
    schema: Option<SchemaId>,
    ways: &mut SmallVec<[SchemaId; 1]>,
) -> Result<()> {
    let mut parts: Vec<SchemaId> = vec![demand.schema];
    parts.extend(schema);
    for &(_, schema) in demand.watched.iter().filter(|&&(at, _)| leaving.contains(at as usize)) {
        parts.push(json.schema.negation(schema)?);
    }
    let way = json.schema.conjunction(&parts)?;
    if !ways.contains(&way) && json.schema.is_satisfiable(way)? {
        ways.push(way);
    }
    Ok(())
}

/// The smallest sets of watched exclusions that a member must avoid, so that the object can be
/// completed with the `kept` ones pending.
fn leaving(
    kept: &ExclusionSet,
    watched: &[(u32, SchemaId)],
    mut is_feasible: impl FnMut(ExclusionSet) -> Result<bool>,
) -> Result<Vec<ExclusionSet>> {
    let mut all = kept.clone();
    watched.iter().for_each(|&(at, _)| all.insert(at as usize));
    if is_feasible(all.clone())? {
        return Ok(vec![kept.none()]);
    }
    if watched.is_empty() || !is_feasible(kept.clone())? {
        return Ok(Vec::new());
    }
    // More pending exclusions are harder to satisfy. Those that cannot stay pending even alone are
    // left out first; larger sets are tried only if no smaller one suffices.
    let mut must_leave = kept.none();
    for &(at, _) in watched {
        if !is_feasible(kept.with(at as usize))? {
            must_leave.insert(at as usize);
        }
    }
    let mut left_out: Vec<ExclusionSet> = Vec::new();
    let mut seen: FxHashSet<ExclusionSet> = FxHashSet::default();
    let mut pending = VecDeque::from([must_leave]);
    while let Some(leaving) = pending.pop_front() {
        meter::charge(1 + left_out.len())?;
        if left_out.iter().any(|fewer| fewer.is_subset(&leaving)) {
            continue;
        }
        if is_feasible(all.minus(&leaving))? {
            left_out.push(leaving);
            continue;
        }
        for &(at, _) in watched.iter().filter(|&&(at, _)| !leaving.contains(at as usize)) {
            let more = leaving.with(at as usize);
            if seen.insert(more.clone()) {
                pending.push_back(more);
            }
        }
        if seen.len() > MAX_WAYS {
            let what = "exclusion_sets";
            return Err(LimitExceeded::new(what, MAX_WAYS).into());
        }
    }
    Ok(left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets against all subsets, where exclusions cannot stay together in a few ways.
    #[test]
    fn the_fewest_exclusions_are_left_out() {
        const COUNT: usize = 7;
        let set = |bits: usize| {
            let mut set = ExclusionSet::all(COUNT).none();
            (0..COUNT).filter(|at| bits >> at & 1 == 1).for_each(|at| set.insert(at));
            set
        };
        // Exclusions 0 and 1 are kept in any case.
        let watched: Vec<(u32, SchemaId)> =
            (2..COUNT as u32).map(|at| (at, SchemaId::ANY)).collect();
        let mut seed = 1usize;
        let mut random = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seed >> 40
        };
        for _ in 0..200 {
            let cores: Vec<ExclusionSet> =
                (0..random() % 4).map(|_| set(random() % (1 << COUNT))).collect();
            let feasible =
                |pending: &ExclusionSet| !cores.iter().any(|core| core.is_subset(pending));
            let found = leaving(&set(0b11), &watched, |pending| Ok(feasible(&pending))).unwrap();
            let leads_on: Vec<ExclusionSet> = (0..1usize << COUNT)
                .filter(|left_out| left_out & 0b11 == 0)
                .map(set)
                .filter(|left_out| feasible(&ExclusionSet::all(COUNT).minus(left_out)))
                .collect();
            let is_fewest = |left_out: &&ExclusionSet| {
                !leads_on.iter().any(|other| other != *left_out && other.is_subset(left_out))
            };
            let mut expected: Vec<ExclusionSet> =
                leads_on.iter().filter(is_fewest).cloned().collect();
            let by = |set: &ExclusionSet| set.iter().collect::<Vec<_>>();
            let mut found = found;
            expected.sort_by_key(by);
            found.sort_by_key(by);
            assert_eq!(found, expected, "{cores:?}");
        }
    }
}
