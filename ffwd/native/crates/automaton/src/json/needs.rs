//! The needs of an object: its keys, and the estimated bytes.

use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::json::exclusion_set::ExclusionSet;
use crate::json::lengths::{name_length, Lengths};
use crate::json::monitor::Monitor;
use crate::json::object_state::{Live, Members, ObjectPending, ObjectState, LEAST_MEMBER};
use crate::json::tables::Json;
use crate::stacks::ids::{NameId, ObjectPendingId, ObjectStateId};
use ffwd_bounds::meter;
use ffwd_json_schema::SchemaId;
use ffwd_regular::expr::Verdict;

/// How many exclusions of an alternative are looked at for an estimate.
const MAX_COUNTED: usize = 256;

/// An estimate of what an object still needs, for `completion::estimate`.
impl Json {
    /// Those of these names that alternatives need, up to a number: for each alternative the first
    /// required one. If none is missing, the names that avoid its exclusions, and whether an
    /// undeclared key does.
    pub(crate) fn needed_names(
        &self,
        id: ObjectStateId,
        names: impl Iterator<Item = NameId>,
        most: usize,
    ) -> Result<(Vec<NameId>, bool)> {
        let ObjectState { group, live, members, .. } = self.object_states.get(id.0);
        let group = self.group(*group);
        let mut waiting: Vec<&Monitor> = Vec::with_capacity(live.len());
        let mut leaving = FxHashSet::default();
        let mut others = false;
        for live in live {
            let monitor = &group.monitors[live.monitor as usize];
            if !group.is_required(monitor) {
                continue;
            }
            if monitor.missing(live.place.ordered, &members.seen).next().is_some() {
                waiting.push(monitor);
                continue;
            }
            // Without an order, a name that avoids an exclusion may come first.
            let most = if monitor.is_unordered() { 1 } else { usize::MAX };
            for to_leave in
                monitor.to_leave(&live.place.pending, &members.seen, members.count).take(most)
            {
                meter::charge(1 + to_leave.names.len() / 4)?;
                leaving.extend(to_leave.names);
                others |= to_leave.others;
            }
        }
        let mut needed = Vec::new();
        for name in names {
            let before = waiting.len();
            waiting.retain(|monitor| monitor.requires(name).is_none());
            if waiting.len() < before || leaving.contains(&name) {
                needed.push(name);
            }
            if waiting.is_empty() && leaving.is_empty() || needed.len() >= most {
                break;
            }
        }
        Ok((needed, others))
    }

    /// About how many bytes an object still needs, the closing brace included.
    pub(crate) fn object_left(
        &self,
        id: ObjectStateId,
        of: impl Fn(SchemaId) -> Result<u32>,
    ) -> Result<u32> {
        let ObjectState { group, live, members, .. } = self.object_states.get(id.0);
        let group = self.group(*group);
        let mut least = u32::MAX;
        for Live { monitor, place } in live {
            let monitor = &group.monitors[*monitor as usize];
            if group.is_required(monitor) {
                let left = monitor_left(monitor, place.ordered, &place.pending, members, &of)?;
                least = least.min(left);
            }
        }
        let left = if least == u32::MAX { 1 } else { least.saturating_add(1) };
        // Nothing is missing, but the object may not close: a further member must make it differ
        // from an exclusion.
        let waits = left == 1 && self.object_verdict(id) == 0;
        Ok(if waits { left + LEAST_MEMBER } else { left })
    }

    /// The same after the value of a member that is being written.
    pub(crate) fn object_left_after(
        &self,
        id: ObjectPendingId,
        of: impl Fn(SchemaId) -> Result<u32>,
    ) -> Result<u32> {
        let ObjectPending { from, entries, members } = self.object_pendings.get(id.0);
        let group = self.group(self.object_states.get(from.0).group);
        let mut least = u32::MAX;
        for entry in entries {
            let monitor = &group.monitors[entry.monitor as usize];
            if group.is_required(monitor) {
                let left = monitor_left(monitor, entry.ordered, &entry.kept, members, &of)?;
                least = least.min(left);
            }
        }
        Ok(if least == u32::MAX { 1 } else { least.saturating_add(1) })
    }

    /// The alternatives that the object can still satisfy, each with the estimated bytes that it
    /// needs and the schemas of its query that then hold.
    pub(crate) fn object_ways(
        &self,
        id: ObjectStateId,
        of: impl Fn(SchemaId) -> Result<u32>,
    ) -> Result<Vec<(u32, Verdict)>> {
        let ObjectState { group, live, members, .. } = self.object_states.get(id.0);
        let group = self.group(*group);
        let mut ways = Vec::with_capacity(live.len());
        for live in live {
            let monitor = &group.monitors[live.monitor as usize];
            if group.is_required(monitor) {
                let left =
                    monitor_left(monitor, live.place.ordered, &live.place.pending, members, &of)?;
                ways.push((left.saturating_add(1), monitor.owners));
            }
        }
        Ok(ways)
    }

    /// The same after a member's value for which one of some schemas holds.
    pub(crate) fn object_ways_after(
        &self,
        id: ObjectPendingId,
        holds: Verdict,
        of: impl Fn(SchemaId) -> Result<u32>,
    ) -> Result<Vec<(u32, Verdict)>> {
        let ObjectPending { from, entries, members } = self.object_pendings.get(id.0);
        let group = self.group(self.object_states.get(from.0).group);
        let mut ways = Vec::with_capacity(entries.len());
        for entry in entries.iter().filter(|entry| entry.ways & holds != 0) {
            let monitor = &group.monitors[entry.monitor as usize];
            let left = monitor_left(monitor, entry.ordered, &entry.kept, members, &of)?;
            ways.push((left.saturating_add(1), monitor.owners));
        }
        Ok(ways)
    }
}

/// What a monitor in this state needs, without the closing brace. `pending`: its exclusions that
/// all members suited.
fn monitor_left(
    monitor: &Monitor,
    ordered: u32,
    pending: &ExclusionSet,
    members: &Members,
    of: impl Fn(SchemaId) -> Result<u32>,
) -> Result<u32> {
    let mut left = Lengths::default();
    for property in monitor.missing(ordered, &members.seen) {
        left.add(name_length(&property.name), of(property.schema)?);
    }
    if !pending.is_empty() {
        // One member avoids several exclusions only if they have demands on the same name.
        let seen = monitor.with_missing(ordered, &members.seen);
        let count = members.count.saturating_add(left.count);
        let mut counted: FxHashSet<NameId> = FxHashSet::default();
        for to_leave in monitor.to_leave(pending, &seen, count).take(MAX_COUNTED) {
            meter::charge(1 + to_leave.names.len() / 4)?;
            let names = &to_leave.names;
            let is_missing = |name: NameId| !members.seen.contains(name) && seen.contains(name);
            // A missing required member may avoid it by its value.
            if monitor.asks_of_any(to_leave.exclusion, is_missing)
                || names.iter().any(|name| counted.contains(name))
            {
                continue;
            }
            let mut least = if to_leave.others { LEAST_MEMBER } else { u32::MAX };
            for &name in names {
                least = least.min(match monitor.property(name) {
                    Some(property) => {
                        let value = of(property.schema)?;
                        name_length(&property.name).saturating_add(value)
                    }
                    None => LEAST_MEMBER,
                });
            }
            if least < u32::MAX {
                left.add_more(1, least);
            }
            counted.extend(names);
        }
    }
    let fewest = monitor.spec.min_properties.saturating_sub(members.count);
    let more = fewest.saturating_sub(left.count);
    left.add_more(more, LEAST_MEMBER);
    Ok(left.length())
}
