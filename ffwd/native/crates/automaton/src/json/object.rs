//! Objects: all alternatives of a schema's object types run side by side as *monitors*. All see the
//! same members, and each determines the allowed keys and the schemas of their values.

use std::sync::Arc;

use crate::error::Result;
use crate::interning::intern::ShortHash;
use crate::json::exclusion::MemberDemand;
use crate::json::keys::{KeySet, OtherKeys};
use crate::json::monitor::{Key, Monitor, Place};
use crate::json::name_set::NameSet;
use crate::json::object_group::{ObjectGroup, OpenKeys};
use crate::json::object_state::{Live, Members, ObjectPending, ObjectState, ToldApart, Waiting};
use crate::json::query::Schemas;
use crate::json::tables::Json;
use crate::json::used_keys::UsedId;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{NameId, ObjectGroupId, ObjectPendingId, ObjectStateId, StackId, TextId};
use crate::stacks::on::On;
use ffwd_bounds::meter;
use ffwd_regular::expr::Verdict;

impl Json {
    pub(crate) fn group(&self, id: ObjectGroupId) -> &ObjectGroup {
        &self.object_groups[id.0 as usize]
    }

    /// An object right after its opening brace.
    pub(crate) fn object_start(&self, on: &impl On, id: ObjectGroupId) -> Result<ObjectStateId> {
        let group = self.group(id);
        if let Some(&known) = group.start.get() {
            return Ok(known);
        }
        let members = Members { seen: NameSet::default(), count: 0, used: UsedId::EMPTY };
        let live: Box<[Live]> = group
            .monitors
            .iter()
            .enumerate()
            .map(|(at, monitor)| Live {
                monitor: at as u32,
                place: monitor.settle(monitor.start(), &members.seen, 0),
            })
            .collect();
        let start = self.object_state(on, id, live, members)?;
        Ok(*group.start.get_or_init(|| start))
    }

    fn object_state(
        &self,
        on: &impl On,
        id: ObjectGroupId,
        live: Box<[Live]>,
        mut members: Members,
    ) -> Result<ObjectStateId> {
        let group = self.group(id);
        let mut open = OpenKeys::default();
        for &Live { monitor: at, ref place } in &live {
            let monitor = &group.monitors[at as usize];
            for (class, unnamed) in monitor.unnamed.iter().enumerate() {
                let bit = 1 << unnamed.language;
                if !group.is_required(monitor) {
                    open.observed |= bit;
                } else if open.required & bit == 0 {
                    let key = Key::Unnamed(class as u32);
                    if self.demand(id, at, place, &members, key)?.is_some() {
                        open.required |= bit;
                    }
                }
            }
        }
        open.observed &= !open.required;
        if open.required == 0 {
            open = OpenKeys::default();
        }
        let others = self.other_keys(on, group, open)?;
        if others.is_none() && !group.remembers_keys {
            members.used = UsedId::EMPTY;
        }
        let identity = (id, &*live, &members);
        let is = |state: &ObjectState| state.identity() == identity;
        if let Some(known) = self.object_states.find(ShortHash::of(&identity), is) {
            return Ok(ObjectStateId(known));
        }
        meter::charge(1 + group.names.len())?;
        let mut allowed = Vec::with_capacity(group.names.len());
        for name in (0..group.names.len() as u32).map(NameId) {
            allowed.push(self.is_name_allowed(id, &live, &members, name)?);
        }
        let allowed: NameSet = allowed.into_iter().collect();
        let others = others.map(|index| OtherKeys { index, lexeme: on.lexeme(index).clone() });
        let keys = KeySet::new(id.0, group.names.clone(), allowed, others);
        let keys = self.keys.root(keys, members.used)?;
        let state = ObjectState { group: id, live, members, open, keys };
        Ok(ObjectStateId(self.object_states.intern(state)?))
    }

    fn is_name_allowed(
        &self,
        id: ObjectGroupId,
        live: &[Live],
        members: &Members,
        name: NameId,
    ) -> Result<bool> {
        let group = self.group(id);
        let key = Key::Name(name);
        for &Live { monitor: at, ref place } in live {
            let monitor = &group.monitors[at as usize];
            if !group.is_required(monitor) {
                continue;
            }
            if !place.pending.is_empty() {
                let child = monitor.child(&self.schema, place, &members.seen, key)?;
                let Some((_, ordered)) = child else { continue };
                if monitor.is_indifferent(place, key, ordered) {
                    return Ok(true);
                }
            }
            if self.demand(id, at, place, members, key)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The schemas that hold if the object closes here; 0 if it may not.
    pub(crate) fn object_verdict(&self, id: ObjectStateId) -> Verdict {
        let ObjectState { group, live, members, .. } = self.object_states.get(id.0);
        let group = self.group(*group);
        let closes = |live: &&Live| {
            let monitor = &group.monitors[live.monitor as usize];
            monitor.may_close(&live.place, &members.seen, members.count)
        };
        let holds = live
            .iter()
            .filter(closes)
            .fold(0, |bits, live| bits | group.monitors[live.monitor as usize].owners);
        group.verdict(holds)
    }

    /// Whether another member is allowed.
    pub(crate) fn object_may_go_on(&self, id: ObjectStateId) -> bool {
        !self.keys.is_dead(&self.keys.node(self.object_states.get(id.0).keys))
    }

    /// Returns the stack after a key, which expects the colon and the value; `parent` is below the
    /// object. For a key without a name, `accept` is the verdict of its lexeme and `key` its text.
    /// For a name, `accept` is its index in the sorted names of the group.
    pub(crate) fn member(
        &self,
        on: &impl On,
        id: ObjectStateId,
        parent: StackId,
        key: TextId,
        accept: Option<Verdict>,
    ) -> Result<StackId> {
        let state = self.object_states.get(id.0);
        let group = self.group(state.group);
        let name = match accept {
            None => Some(NameId::of_text(key)),
            Some(_) => None,
        };
        let languages = accept.map_or(0, |accept| state.open.of_verdict(accept));
        let mut schemas = Schemas::new(self.narrows);
        let mut demands: Vec<(u32, MemberDemand)> = Vec::with_capacity(state.live.len());
        let mut remembers = false;
        for &Live { monitor: at, ref place } in state.live.iter() {
            let monitor = &group.monitors[at as usize];
            let key = match name {
                Some(name) => Some(Key::Name(name)),
                None => monitor.key_of(languages),
            };
            let Some(key) = key else { continue };
            let demand = self.demand(state.group, at, place, &state.members, key)?;
            let Some(demand) = demand else { continue };
            remembers |= name.is_some_and(|name| monitor.remembers(name));
            for &schema in &demand.required {
                schemas.require(schema);
            }
            demands.push((at, demand));
        }
        let entries: Box<[Waiting]> = demands
            .into_iter()
            .map(|(monitor, demand)| {
                let ways = demand.required.iter().map(|&schema| schemas.hold(schema));
                let ways = ways.fold(0, |ways, bit| ways | 1 << bit);
                let bit = match demand.required.is_empty() {
                    true => schemas.observe(demand.schema),
                    false => schemas.hold(demand.schema),
                };
                let watched = demand.watched.into_iter();
                let watched =
                    watched.map(|(exclusion, schema)| (exclusion, schemas.observe(schema) as u8));
                let watched = watched.collect();
                let cases = name.and_then(|name| {
                    let cases = group.monitors[monitor as usize].cases.get(&name);
                    cases.map(|cases| (name, cases))
                });
                let cases = cases.filter(|_| !demand.told_apart.is_empty());
                let told = cases.map(|(name, cases)| {
                    let digits = cases.digits.iter();
                    let digits = digits.map(|&digit| schemas.observe(digit) as u8).collect();
                    Box::new(ToldApart { name, exclusions: demand.told_apart, digits })
                });
                let (ordered, kept) = (demand.ordered, demand.kept);
                Waiting { monitor, ordered, bit: bit as u8, ways, kept, watched, told }
            })
            .collect();
        let query = self.query(schemas)?;
        let Members { mut seen, count, mut used } = state.members.clone();
        match name {
            Some(name) if remembers => seen = seen.with(name),
            Some(_) => {}
            None if key == TextId::ANY => {}
            None => used = self.keys.used.with(used, &self.keys.texts.bytes(key))?,
        }
        let count = count.saturating_add(1).min(group.cap);
        let members = Members { seen, count, used };
        let pending = ObjectPending { from: id, entries, members };
        let pending = ObjectPendingId(self.object_pendings.intern(pending)?);
        let await_member = on.push(Frame::AwaitMember(pending), parent)?;
        let value = on.push(Frame::Value(query), await_member)?;
        on.push(Frame::Colon, value)
    }

    /// The object's state after a member's value.
    pub(crate) fn member_done(
        &self,
        on: &impl On,
        id: ObjectPendingId,
        verdict: Verdict,
    ) -> Result<ObjectStateId> {
        let pending = self.object_pendings.get(id.0);
        let before = self.object_states.get(pending.from.0);
        let group = self.group(before.group);
        let holds = |bit: u8| verdict >> bit & 1 == 1;
        let mut live = Vec::with_capacity(pending.entries.len());
        for entry in pending.entries.iter().filter(|entry| holds(entry.bit)) {
            let monitor = &group.monitors[entry.monitor as usize];
            let mut suited = entry.kept.clone();
            for &(exclusion, _) in entry.watched.iter().filter(|&&(_, bit)| holds(bit)) {
                suited.insert(exclusion as usize);
            }
            if let Some(told) = &entry.told {
                let digits = told.digits.iter().enumerate().filter(|(_, &bit)| holds(bit));
                let class = digits.fold(0, |class, (digit, _)| class | 1 << digit);
                if let Some(cases) = monitor.cases.get(&told.name) {
                    suited = suited.union(&cases.suited(class, &told.exclusions));
                }
            }
            let place = Place { ordered: entry.ordered, pending: suited };
            let Members { seen, count, .. } = &pending.members;
            let place = monitor.settle(place, seen, *count);
            if !group.is_required(monitor)
                || self.is_feasible(before.group, entry.monitor, &place, seen, *count)?
            {
                live.push(Live { monitor: entry.monitor, place });
            }
        }
        let members = pending.members.clone();
        self.object_state(on, before.group, live.into(), members)
    }
}

/// Whether an object may have infinitely many values.
impl Json {
    /// The only alternative of an object, if nothing is excluded from it.
    fn only_alternative(&self, state: &ObjectState) -> Option<&Monitor> {
        let group = self.group(state.group);
        let ([monitor], [_]) = (&*group.monitors, &*state.live) else { return None };
        monitor.spec.excluded.is_empty().then_some(monitor)
    }

    /// Whether any number of keys with any text is allowed. May return `false` if that is hard to
    /// decide.
    pub(crate) fn has_endless_keys(&self, on: &impl On, id: ObjectStateId) -> Result<bool> {
        let state = self.object_states.get(id.0);
        let group = self.group(state.group);
        for live in &state.live {
            if self.takes_any_keys(group, live.monitor)? {
                return Ok(true);
            }
        }
        let is_open = self
            .only_alternative(state)
            .is_some_and(|monitor| monitor.spec.max_properties.is_none());
        let Some(base) = self.keys.node(state.keys).base.filter(|_| is_open) else {
            return Ok(false);
        };
        let lexeme = on.lexeme(base.lexeme);
        let inside = lexeme.next(lexeme.start(), b'"')?;
        Ok(inside.is_some_and(|inside| lexeme.takes_anything(inside)))
    }

    /// Returns whether any number of keys may follow a member, whatever its value is.
    pub(crate) fn has_endless_keys_after(&self, id: ObjectPendingId) -> Result<bool> {
        let pending = self.object_pendings.get(id.0);
        let group = self.group(self.object_states.get(pending.from.0).group);
        // One of the required members is left.
        let required = |entry: &&Waiting| {
            let monitor = &group.monitors[entry.monitor as usize];
            group.is_required(monitor)
        };
        for entry in pending.entries.iter().filter(required) {
            if !self.takes_any_keys(group, entry.monitor)? {
                return Ok(false);
            }
        }
        Ok(pending.entries.iter().any(|entry| required(&entry)))
    }

    /// Whether an alternative takes any number of members of any other name.
    fn takes_any_keys(&self, group: &ObjectGroup, monitor: u32) -> Result<bool> {
        let monitor = &group.monitors[monitor as usize];
        let spec = &monitor.spec;
        if !group.is_required(monitor) || spec.max_properties.is_some() || !spec.excluded.is_empty()
        {
            return Ok(false);
        }
        for class in monitor.unnamed.iter().filter(|class| group.is_any_key(class)) {
            if self.schema.is_satisfiable(class.schema)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The state after a member, if it is the same whatever its value is.
    pub(crate) fn after_any_member(
        &self,
        on: &impl On,
        id: ObjectPendingId,
    ) -> Result<Option<ObjectStateId>> {
        let from = self.object_states.get(self.object_pendings.get(id.0).from.0);
        match self.only_alternative(from) {
            Some(_) => Ok(Some(self.member_done(on, id, Verdict::MAX)?)),
            None => Ok(None),
        }
    }
}

/// An object between its members, for people.
pub(crate) struct ObjectFacts {
    pub group: ObjectGroupId,
    /// The schemas that it may still satisfy.
    pub owners: Verdict,
    /// The missing names of the alternative with the fewest.
    pub missing: Vec<Arc<str>>,
    /// How many members more it needs at least.
    pub members: u64,
}

impl Json {
    pub(crate) fn object_facts(&self, id: ObjectStateId) -> ObjectFacts {
        let ObjectState { group: id, live, members, .. } = self.object_states.get(id.0);
        let group = self.group(*id);
        let mut facts = ObjectFacts { group: *id, owners: 0, missing: Vec::new(), members: 0 };
        let mut fewest = usize::MAX;
        for &Live { monitor, ref place } in live.iter() {
            let monitor = &group.monitors[monitor as usize];
            if !group.is_required(monitor) {
                continue;
            }
            facts.owners |= monitor.owners;
            let missing = monitor.missing(place.ordered, &members.seen);
            let missing: Vec<Arc<str>> =
                missing.map(|(_, property)| property.name.clone()).collect();
            if missing.len() < fewest {
                fewest = missing.len();
                facts.missing = missing;
                facts.members = monitor.spec.min_properties.saturating_sub(members.count);
            }
        }
        facts
    }
}
