//! What a monitor asks of the next member, so that the object can still be completed without
//! meeting an alternative that is excluded.

use smallvec::{smallvec, SmallVec};

use super::config::{Automaton, JsonParts};
use super::error::EngineError;
use super::monitor::{Ask, Exclusions, Key, Place};
use super::name_set::NameSet;
use super::object::Members;
use super::object_group::ObjectGroupId;
use crate::json_schema::SchemaId;

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
        if !monitor.is_constrained() {
            demand.required.push(schema);
            return Ok(Some(demand));
        }
        let count = count.saturating_add(1).min(monitors.cap);
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
        let monitor = &self.group(json, group).monitors[at as usize];
        monitor.counts_suffice(&json.schema, place, seen, count)
    }

    fn ways(
        &self,
        _json: &JsonParts,
        demand: &Demand,
        mut is_feasible: impl FnMut(Exclusions) -> Result<bool, EngineError>,
    ) -> Result<SmallVec<[SchemaId; 1]>, EngineError> {
        let all = demand.watched.iter().fold(demand.kept, |bits, &(at, _)| bits | 1 << at);
        if is_feasible(all)? {
            return Ok(smallvec![demand.schema]);
        }
        Ok(smallvec![])
    }
}
