//! About how many bytes a monitor needs until its object can close.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::json::components::{Component, OpenPart};
use crate::json::exclusion_set::ExclusionSet;
use crate::json::keys::decoded;
use crate::json::lengths::{name_length, Lengths, UNKNOWN};
use crate::json::monitor::{Monitor, Place};
use crate::json::name_set::NameSet;
use crate::json::object_state::{Feasibility, LeastMembers, Members, LEAST_MEMBER};
use crate::json::tables::Json;
use crate::stacks::ids::{NameId, ObjectGroupId};
use ffwd_bounds::meter;
use ffwd_json_schema::{ObjectSpec, SchemaId};

/// How many exclusions of an alternative are looked at for an estimate.
const MAX_COUNTED: usize = 256;
/// With at most this many pending exclusions, the shortest way to avoid all of a component is
/// searched.
const MAX_PENDING: usize = 8;
/// How many ways such a search tries.
const MAX_WAYS: usize = 32;
/// How many answers are remembered at once.
const MAX_REMEMBERED: usize = 1 << 18;

/// A monitor between the members of an object, or within a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a> {
    pub group: ObjectGroupId,
    /// The place of the monitor in the group.
    pub at: u32,
    pub place: &'a Place,
    pub members: &'a Members,
    /// A member whose value has not been read. The pending exclusions are then those before it, and
    /// its name has not been seen.
    pub coming: Option<NameId>,
    /// Whether a comma must come before the next member.
    pub is_after: bool,
}

impl Json {
    /// The bytes without the closing brace.
    pub(crate) fn bytes_left(
        &self,
        rest: Rest<'_>,
        of: impl Fn(SchemaId) -> Result<u32>,
    ) -> Result<u32> {
        let Rest { group, at, place, members, coming, is_after } = rest;
        let monitor = &self.group(group).monitors[at as usize];
        let mut left = Lengths::default();
        let mut pending = place.pending.clone();
        // The names of components that are counted together with their exclusions.
        let mut counted: Vec<&[NameId]> = Vec::new();
        if !pending.is_empty() {
            for component in monitor.components.iter() {
                let open = component.open_part(monitor, place, &members.seen, coming);
                let Some(open) = open.filter(|open| open.pending.len() <= MAX_PENDING) else {
                    continue;
                };
                pending = pending.minus(&component.exclusions);
                let (bytes, count) = self.least_members(rest, component, open, &of)?;
                left.add_members(bytes, count);
                counted.push(&component.names);
            }
        }
        let is_counted =
            |name: NameId| counted.iter().any(|names| names.binary_search(&name).is_ok());
        for (name, property) in monitor.missing(place.ordered, &members.seen) {
            if coming != Some(name) && !is_counted(name) {
                left.add(name_length(&property.name), of(property.schema)?);
            }
        }
        if !pending.is_empty() {
            add_leaving(monitor, place.ordered, &pending, members, &mut left, &of)?;
        }
        let fewest = monitor.spec.min_properties.saturating_sub(members.count);
        let more = fewest.saturating_sub(left.count);
        left.add_more(more, LEAST_MEMBER);
        Ok(left.length() + u32::from(is_after && left.count > 0))
    }

    /// What a component needs at least so that none of its exclusions is met: the shortest of the
    /// ways to avoid one after the other.
    fn least_members(
        &self,
        rest: Rest<'_>,
        component: &Component,
        open: OpenPart,
        of: impl Fn(SchemaId) -> Result<u32>,
    ) -> Result<LeastMembers> {
        meter::charge(1)?;
        let Rest { group, at, .. } = rest;
        let monitor = &self.group(group).monitors[at as usize];
        if open.coming.is_none() && component.is_settled(monitor, &open) {
            return Ok((0, 0));
        }
        let OpenPart { pending, gone, coming } = open.clone();
        let place = Place { ordered: 0, pending };
        let state = Feasibility { group, monitor: at, place, seen: gone, count: 0 };
        let key = (state, coming);
        if let Some(&known) = self.least_members.lock().get(&key) {
            return Ok(known);
        }
        let names = &self.group(group).names;
        let name = |name: NameId| decoded(&names[name.0 as usize]);
        let coming = coming.map(name);
        let least = |spec: &ObjectSpec| -> Result<LeastMembers> {
            let (mut bytes, mut count) = (0u32, 0);
            for property in spec.properties.iter().filter(|property| property.required) {
                let value = of(property.schema)?;
                let is_coming = coming.as_ref() == Some(&property.name);
                if !is_coming || value >= UNKNOWN {
                    let member = name_length(&property.name).saturating_add(value);
                    bytes = bytes.saturating_add(member).min(UNKNOWN);
                    count += 1;
                }
            }
            Ok((bytes, count))
        };
        let start = Arc::new(component.left(monitor, &open, name));
        let mut ways = vec![(least(&start)?, start)];
        let mut queue = BinaryHeap::from([Reverse((0u32, 0usize))]);
        let mut found = (0, 0);
        while let Some(Reverse((_, current))) = queue.pop() {
            let (members, spec) = ways[current].clone();
            found = members;
            if spec.excluded.is_empty() || ways.len() > MAX_WAYS {
                break;
            }
            meter::charge(1 + spec.properties.len() + spec.excluded.len())?;
            for way in self.schema.objects_past_an_exclusion(&spec)? {
                let members = least(&way)?;
                queue.push(Reverse((members.0.saturating_add(members.1), ways.len())));
                ways.push((members, way));
            }
        }
        let mut known = self.least_members.lock();
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(key, found);
        Ok(found)
    }
}

/// Adds the members that exclusions still need, where these are not searched: one for each that has
/// a demand on names that no other one has.
fn add_leaving(
    monitor: &Monitor,
    ordered: u32,
    pending: &ExclusionSet,
    members: &Members,
    left: &mut Lengths,
    of: impl Fn(SchemaId) -> Result<u32>,
) -> Result<()> {
    // One member avoids several exclusions only if they have demands on the same name.
    let seen: NameSet = monitor.with_missing(ordered, &members.seen);
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
    Ok(())
}
