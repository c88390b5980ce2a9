//! The needs of an object: its keys, and the estimated bytes.

use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::json::keys::decoded;
use crate::json::lengths::{name_length, UNKNOWN};
use crate::json::lengths_left::Rest;
use crate::json::monitor::{Monitor, Place, Role};
use crate::json::object_state::{Live, Members, ObjectPending, ObjectState, Waiting, LEAST_MEMBER};
use crate::json::tables::Json;
use crate::stacks::ids::{NameId, ObjectGroupId, ObjectPendingId, ObjectStateId};
use ffwd_bounds::meter;
use ffwd_json_schema::SchemaId;
use ffwd_regular::expr::Verdict;

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

    /// Names of an object, those of the shortest members first, as far as estimates tell.
    pub(crate) fn shortest_members(
        &self,
        id: ObjectStateId,
        names: Vec<NameId>,
        of: impl Fn(SchemaId) -> Result<u32>,
    ) -> Result<Vec<NameId>> {
        let ObjectState { group, live, .. } = self.object_states.get(id.0);
        let group = self.group(*group);
        let monitors = live.iter().map(|live| &group.monitors[live.monitor as usize]);
        let required: Vec<&Monitor> =
            monitors.filter(|monitor| group.is_required(monitor)).collect();
        let mut members = Vec::with_capacity(names.len());
        for name in names {
            meter::charge(1 + required.len())?;
            let mut value = UNKNOWN;
            for monitor in &required {
                value = value.min(match monitor.role(name) {
                    Role::Property(at) => of(monitor.spec.properties[at as usize].schema)?,
                    Role::Class(at) => of(monitor.unnamed[at as usize].schema)?,
                    Role::Forbidden => UNKNOWN,
                });
            }
            let key = name_length(&decoded(&group.names[name.0 as usize]));
            members.push((value.saturating_add(key), name));
        }
        members.sort_unstable();
        Ok(members.into_iter().map(|(_, name)| name).collect())
    }

    /// About how many bytes an object still needs, the closing brace included. `is_after`: whether
    /// it is right after a member.
    pub(crate) fn object_left(
        &self,
        id: ObjectStateId,
        is_after: bool,
        of: impl Fn(SchemaId) -> Result<u32>,
    ) -> Result<u32> {
        let ObjectState { group, live, members, .. } = self.object_states.get(id.0);
        let mut least = u32::MAX;
        for &Live { monitor: at, ref place } in live {
            if self.is_required(*group, at) {
                let rest = Rest { group: *group, at, place, members, coming: None, is_after };
                least = least.min(self.bytes_left(rest, &of)?);
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
        let pending = self.object_pendings.get(id.0);
        let group = self.object_states.get(pending.from.0).group;
        let mut least = u32::MAX;
        for entry in pending.entries.iter().filter(|entry| self.is_required(group, entry.monitor)) {
            least = least.min(self.bytes_left_after(pending, entry, &of)?);
        }
        Ok(if least == u32::MAX { 1 } else { least.saturating_add(1) })
    }

    /// The alternatives that the object can still satisfy, each with the estimated bytes that it
    /// needs and the schemas of its query that then hold.
    pub(crate) fn object_ways(
        &self,
        id: ObjectStateId,
        is_after: bool,
        of: impl Fn(SchemaId) -> Result<u32>,
    ) -> Result<Vec<(u32, Verdict)>> {
        let ObjectState { group, live, members, .. } = self.object_states.get(id.0);
        let monitors = &self.group(*group).monitors;
        let mut ways = Vec::with_capacity(live.len());
        for &Live { monitor: at, ref place } in live {
            if self.is_required(*group, at) {
                let rest = Rest { group: *group, at, place, members, coming: None, is_after };
                let left = self.bytes_left(rest, &of)?;
                ways.push((left.saturating_add(1), monitors[at as usize].owners));
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
        let pending = self.object_pendings.get(id.0);
        let monitors = &self.group(self.object_states.get(pending.from.0).group).monitors;
        let mut ways = Vec::with_capacity(pending.entries.len());
        for entry in pending.entries.iter().filter(|entry| entry.ways & holds != 0) {
            let left = self.bytes_left_after(pending, entry, &of)?;
            ways.push((left.saturating_add(1), monitors[entry.monitor as usize].owners));
        }
        Ok(ways)
    }

    fn is_required(&self, group: ObjectGroupId, at: u32) -> bool {
        let group = self.group(group);
        group.is_required(&group.monitors[at as usize])
    }

    /// The bytes that a monitor needs after the value of a member that is being written.
    fn bytes_left_after(
        &self,
        pending: &ObjectPending,
        entry: &Waiting,
        of: impl Fn(SchemaId) -> Result<u32>,
    ) -> Result<u32> {
        let ObjectPending { from, members, .. } = pending;
        let before = self.object_states.get(from.0);
        let (group, at, ordered) = (before.group, entry.monitor, entry.ordered);
        let monitor = &self.group(group).monitors[at as usize];
        let undecided = !entry.watched.is_empty() || entry.told.is_some();
        let is_new = |name: &NameId| members.seen.contains(*name);
        let name = (0..self.group(group).names.len() as u32)
            .map(NameId)
            .filter(|name| undecided && !before.members.seen.contains(*name))
            .find(is_new);
        // The value decides which exclusions stay pending: the shortest of all outcomes counts.
        let coming = name.filter(|_| !monitor.components.is_empty());
        let mut open = entry.kept.clone();
        let members = match coming {
            Some(_) => {
                entry.watched.iter().for_each(|&(at, _)| open.insert(at as usize));
                let told = entry.told.as_ref().map(|told| &told.exclusions);
                open = told.map_or(open.clone(), |told| open.union(told));
                &Members { seen: before.members.seen.clone(), ..members.clone() }
            }
            None => members,
        };
        let place = Place { ordered, pending: open };
        self.bytes_left(Rest { group, at, place: &place, members, coming, is_after: true }, of)
    }
}
