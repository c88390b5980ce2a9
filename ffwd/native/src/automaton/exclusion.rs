//! What a monitor asks of the next member, so that the object can still be completed without
//! meeting an alternative that is excluded.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;
use smallvec::{smallvec, SmallVec};

use super::config::{Automaton, JsonParts};
use super::error::EngineError;
use super::keys::decoded;
use super::monitor::{Ask, Exclusions, Key, Place};
use super::name_set::NameSet;
use super::object::Members;
use super::object_group::ObjectGroupId;
use crate::error::LimitExceeded;
use crate::json_schema::SchemaId;
use crate::meter;

/// How many answers of [`Automaton::is_feasible`] are remembered at once.
const MAX_REMEMBERED: usize = 1 << 18;
/// How many sets of exclusions are tried for one member.
const MAX_WAYS: usize = 4096;

/// What [`Automaton::is_feasible`] was asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Feasibility {
    group: ObjectGroupId,
    monitor: u32,
    place: Place,
    seen: NameSet,
    count: u64,
}

/// What a monitor asks of a member's value.
#[derive(Clone, Debug)]
pub struct Demand {
    /// What the alternative itself asks.
    pub schema: SchemaId,
    /// How far the monitor has come after the member.
    pub ordered: u32,
    /// One of these must hold, so that the object can still be completed. None if the monitor is
    /// only observed.
    pub required: SmallVec<[SchemaId; 1]>,
    /// Exclusions that the member suits whatever its value is.
    pub kept: Exclusions,
    /// Other exclusions, and when the member suits them.
    pub watched: SmallVec<[(u8, SchemaId); 2]>,
}

impl Automaton {
    /// What a monitor asks of the value of a key; `None` if the key may not come.
    pub(super) fn demand(
        &self,
        json: &JsonParts,
        group: ObjectGroupId,
        at: u32,
        place: Place,
        members: &Members,
        key: Key,
    ) -> Result<Option<Demand>, EngineError> {
        let monitors = self.group(json, group);
        let monitor = &monitors.monitors[at as usize];
        let Members { seen, count, .. } = members;
        let Some((schema, ordered)) = monitor.child(&json.schema, place, seen, key)? else {
            return Ok(None);
        };
        let mut demand =
            Demand { schema, ordered, required: smallvec![], kept: 0, watched: smallvec![] };
        for exclusion in (0..monitor.exclusions.len()).filter(|at| place.pending >> at & 1 == 1) {
            match monitor.ask(exclusion, key) {
                Ask::Forbids => {}
                Ask::Value(asked) if asked == SchemaId::ANY || asked == schema => {
                    demand.kept |= 1 << exclusion;
                }
                Ask::Value(asked) => demand.watched.push((exclusion as u8, asked)),
            }
        }
        if !monitors.is_required(monitor) {
            return Ok(Some(demand));
        }
        let count = count.saturating_add(1).min(monitors.cap);
        if place.pending == 0 {
            let coming = match key {
                Key::Name(name) => Some(name),
                Key::Unnamed(_) => None,
            };
            let next = Place { ordered, ..place };
            if !monitor.counts_suffice(&json.schema, next, seen, coming, count)? {
                return Ok(None);
            }
            demand.required.push(schema);
            return Ok(Some(demand));
        }
        let seen = match key {
            Key::Name(name) if monitor.remembers(name) => &seen.with(name),
            _ => seen,
        };
        let next = |pending| {
            let place = monitor.settle(Place { ordered, pending }, seen, count);
            self.is_feasible(json, group, at, place, seen, count)
        };
        demand.required = self.ways(json, &demand, next)?;
        Ok(if demand.required.is_empty() { None } else { Some(demand) })
    }
}

impl Automaton {
    /// Whether an object can be completed from here so that the monitor accepts it.
    pub(super) fn is_feasible(
        &self,
        json: &JsonParts,
        group: ObjectGroupId,
        at: u32,
        place: Place,
        seen: &NameSet,
        count: u64,
    ) -> Result<bool, EngineError> {
        let names = &self.group(json, group).names;
        let monitor = &self.group(json, group).monitors[at as usize];
        if !monitor.counts_suffice(&json.schema, place, seen, None, count)? {
            return Ok(false);
        }
        if place.pending == 0 || monitor.may_close(place, seen, count) {
            return Ok(true);
        }
        let key = Feasibility { group, monitor: at, place, seen: seen.clone(), count };
        if let Some(&known) = json.feasible.lock().get(&key) {
            return Ok(known);
        }
        let name = |name: u32| decoded(&names[name as usize]);
        // Most exclusions are avoided by leaving out a name, which mostly does no harm.
        let (pending, without) = monitor.avoiding(place, seen);
        let mut feasible = false;
        if pending != place.pending {
            let left = monitor.left(Place { pending, ..place }, &without, count, name);
            feasible = json.schema.object_is_satisfiable(&left)?;
        }
        if !feasible {
            let left = monitor.left(place, seen, count, name);
            feasible = json.schema.object_is_satisfiable(&left)?;
        }
        let mut known = json.feasible.lock();
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(key, feasible);
        Ok(feasible)
    }

    /// The schemas of which a member's value must satisfy one, so that the object can still be
    /// completed: what the alternative asks, and in addition that the member does not suit certain
    /// exclusions, as few as possible.
    fn ways(
        &self,
        json: &JsonParts,
        demand: &Demand,
        mut is_feasible: impl FnMut(Exclusions) -> Result<bool, EngineError>,
    ) -> Result<SmallVec<[SchemaId; 1]>, EngineError> {
        let bit = |at: u8| -> Exclusions { 1 << at };
        let watched = demand.watched.iter().fold(0, |bits, &(at, _)| bits | bit(at));
        let all = demand.kept | watched;
        if is_feasible(all)? {
            return Ok(smallvec![demand.schema]);
        }
        let mut ways = SmallVec::new();
        if watched == 0 || !is_feasible(demand.kept)? {
            return Ok(ways);
        }
        // The more exclusions are pending, the harder it is: what cannot stay pending even alone
        // is left out first, and sets of more exclusions only where none of fewer does.
        let mut must_leave: Exclusions = 0;
        for &(at, _) in &demand.watched {
            if !is_feasible(demand.kept | bit(at))? {
                must_leave |= bit(at);
            }
        }
        let mut left_out: Vec<Exclusions> = Vec::new();
        let mut seen: FxHashSet<Exclusions> = FxHashSet::default();
        let mut pending = VecDeque::from([must_leave]);
        while let Some(leaving) = pending.pop_front() {
            meter::charge(1 + left_out.len())?;
            if left_out.iter().any(|&fewer| fewer & !leaving == 0) {
                continue;
            }
            if is_feasible(all & !leaving)? {
                left_out.push(leaving);
                continue;
            }
            for &(at, _) in demand.watched.iter().filter(|&&(at, _)| leaving & bit(at) == 0) {
                if seen.insert(leaving | bit(at)) {
                    pending.push_back(leaving | bit(at));
                }
            }
            if seen.len() > MAX_WAYS {
                let what = "ways to complete an object without what is excluded";
                return Err(LimitExceeded::new(what, MAX_WAYS).into());
            }
        }
        for leaving in left_out {
            let mut parts: Vec<SchemaId> = vec![demand.schema];
            for &(_, schema) in demand.watched.iter().filter(|&&(at, _)| leaving & bit(at) != 0) {
                parts.push(json.schema.negation(schema)?);
            }
            let way = json.schema.conjunction(&parts)?;
            if json.schema.is_satisfiable(way)? {
                ways.push(way);
            }
        }
        Ok(ways)
    }
}
