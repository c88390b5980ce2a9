//! Objects: every alternative of a schema's object types runs side by side as a *monitor*, a
//! declared list of properties and how far in it the object has come.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::config::{Automaton, JsonParts};
use super::error::EngineError;
use super::frame::{Frame, StackId};
use super::keys::{KeyNodeId, Terminal, TextId};
use super::punctuation::index;
use super::value::{QueryId, Schemas};
use crate::expr::Verdict;
use crate::json_schema::{ObjectSpec, SchemaId, SchemaSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectGroupId(pub u32);
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectStateId(pub u32);
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectPendingId(pub u32);

/// Whether a schema has valid values, found out once.
#[derive(Debug, Default)]
struct Satisfiable(AtomicU8);

impl Satisfiable {
    fn get(&self, set: &SchemaSet, schema: SchemaId) -> Result<bool, EngineError> {
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

#[derive(Debug)]
struct Monitor {
    spec: Arc<ObjectSpec>,
    owners: Verdict,
    /// For each name of the group the property of this monitor, if it declares the name.
    by_name: Vec<Option<u32>>,
    /// For each place the first required property at or after it; the number of properties if
    /// there is none.
    next_required: Vec<u32>,
    properties_satisfiable: Vec<Satisfiable>,
    additional_satisfiable: Satisfiable,
}

impl Monitor {
    fn new(spec: Arc<ObjectSpec>, owners: Verdict) -> Self {
        let count = spec.properties.len();
        let mut next_required = vec![count as u32; count + 1];
        for (place, property) in spec.properties.iter().enumerate().rev() {
            next_required[place] =
                if property.required { place as u32 } else { next_required[place + 1] };
        }
        let properties_satisfiable = (0..count).map(|_| Satisfiable::default()).collect();
        Self {
            spec,
            owners,
            by_name: Vec::new(),
            next_required,
            properties_satisfiable,
            additional_satisfiable: Satisfiable::default(),
        }
    }

    /// Whether nothing required is left from `place` on.
    fn complete(&self, place: u32) -> bool {
        self.next_required[place as usize] as usize == self.spec.properties.len()
    }

    /// The schema of a declared property that may come at `place`, and the place after it.
    fn declared(
        &self,
        set: &SchemaSet,
        place: u32,
        property: u32,
    ) -> Result<Option<(SchemaId, u32)>, EngineError> {
        if property < place || property > self.next_required[place as usize] {
            return Ok(None);
        }
        let schema = self.spec.properties[property as usize].schema;
        let satisfiable = self.properties_satisfiable[property as usize].get(set, schema)?;
        Ok(satisfiable.then_some((schema, property + 1)))
    }

    /// The schema of a key that is not declared, if such may come at `place`.
    fn additional(
        &self,
        set: &SchemaSet,
        place: u32,
    ) -> Result<Option<(SchemaId, u32)>, EngineError> {
        match self.spec.additional() {
            Some(schema) if self.complete(place) => {
                let satisfiable = self.additional_satisfiable.get(set, schema)?;
                Ok(satisfiable.then_some((schema, self.spec.properties.len() as u32)))
            }
            _ => Ok(None),
        }
    }
}

/// The object alternatives of one query.
#[derive(Debug)]
pub struct ObjectGroup {
    monitors: Vec<Monitor>,
    /// Every declared name, sorted by its bytes.
    names: Vec<(TextId, Vec<u8>)>,
    positions: FxHashMap<TextId, u32>,
    /// The schemas of the query of which one must hold.
    required: Verdict,
}

impl ObjectGroup {
    /// Whether a monitor can keep the object alive; the others are only observed.
    fn is_required(&self, monitor: &Monitor) -> bool {
        monitor.owners & self.required != 0
    }
}

/// Where an object stands between its members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectState {
    group: ObjectGroupId,
    /// The monitors that have not failed, and how far each has come.
    live: Box<[(u32, u32)]>,
    /// Names of the group that came as an undeclared key of some live monitor.
    seen: Box<[u32]>,
    /// Which keys may come. Undeclared keys that came already are refused in it.
    pub keys: KeyNodeId,
}

/// A member whose value has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectPending {
    from: ObjectStateId,
    /// Monitor, place after the member, and the schema of the query that must hold for it.
    entries: Box<[(u32, u32, u8)]>,
    seen: Box<[u32]>,
    keys: KeyNodeId,
    query: QueryId,
}

impl Automaton {
    pub(super) fn object_group(
        &self,
        json: &JsonParts,
        objects: Vec<(Arc<ObjectSpec>, Verdict)>,
        required: Verdict,
    ) -> Result<ObjectGroupId, EngineError> {
        let mut monitors: Vec<Monitor> = Vec::with_capacity(objects.len());
        for (spec, owners) in objects {
            match monitors.iter_mut().find(|known| known.spec == spec) {
                Some(known) => known.owners |= owners,
                None => monitors.push(Monitor::new(spec, owners)),
            }
        }
        let mut texts: FxHashMap<TextId, ()> = FxHashMap::default();
        let mut names: Vec<(TextId, Vec<u8>)> = Vec::new();
        for monitor in &monitors {
            for property in &monitor.spec.properties {
                let text = json.keys.name(&property.name)?;
                if texts.insert(text, ()).is_none() {
                    names.push((text, json.keys.bytes(text)));
                }
            }
        }
        names.sort_by(|a, b| a.1.cmp(&b.1));
        let positions: FxHashMap<TextId, u32> =
            names.iter().enumerate().map(|(at, &(text, _))| (text, at as u32)).collect();
        for monitor in &mut monitors {
            monitor.by_name = vec![None; names.len()];
            for (place, property) in monitor.spec.properties.iter().enumerate() {
                let text = json.keys.name(&property.name)?;
                if let Some(&at) = positions.get(&text) {
                    monitor.by_name[at as usize] = Some(place as u32);
                }
            }
        }
        let group = ObjectGroup { monitors, names, positions, required };
        Ok(ObjectGroupId(json.object_groups.push(group) as u32))
    }

    fn group<'j>(&self, json: &'j JsonParts, id: ObjectGroupId) -> &'j ObjectGroup {
        &json.object_groups[id.0 as usize]
    }

    /// An object right after its opening brace.
    pub(super) fn object_start(
        &self,
        json: &JsonParts,
        id: ObjectGroupId,
    ) -> Result<ObjectStateId, EngineError> {
        let group = self.group(json, id);
        let live: Box<[(u32, u32)]> = (0..group.monitors.len() as u32).map(|at| (at, 0)).collect();
        let keys = self.build_keys(json, group, &live, &[])?;
        let state = ObjectState { group: id, live, seen: Box::from([]), keys };
        Ok(ObjectStateId(json.object_states.intern(state)?))
    }

    /// Whether undeclared keys may come.
    fn open(
        &self,
        json: &JsonParts,
        group: &ObjectGroup,
        live: &[(u32, u32)],
    ) -> Result<bool, EngineError> {
        for &(monitor, place) in live {
            let monitor = &group.monitors[monitor as usize];
            if group.is_required(monitor) && monitor.additional(&json.schema, place)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a declared name of the group may come, as declared or as an undeclared key.
    fn name_allowed(
        &self,
        json: &JsonParts,
        group: &ObjectGroup,
        live: &[(u32, u32)],
        seen: &[u32],
        name: u32,
    ) -> Result<bool, EngineError> {
        for &(monitor, place) in live {
            let monitor = &group.monitors[monitor as usize];
            if !group.is_required(monitor) {
                continue;
            }
            let child = match monitor.by_name[name as usize] {
                Some(property) => monitor.declared(&json.schema, place, property)?,
                None if seen.contains(&name) => None,
                None => monitor.additional(&json.schema, place)?,
            };
            if child.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn build_keys(
        &self,
        json: &JsonParts,
        group: &ObjectGroup,
        live: &[(u32, u32)],
        seen: &[u32],
    ) -> Result<KeyNodeId, EngineError> {
        let open = self.open(json, group, live)?;
        let mut names = Vec::new();
        for (at, (text, bytes)) in group.names.iter().enumerate() {
            if self.name_allowed(json, group, live, seen, at as u32)? {
                names.push((bytes.clone(), Terminal::Allowed(*text)));
            } else if open {
                names.push((bytes.clone(), Terminal::Refused));
            }
        }
        Ok(json.keys.build(&names, open)?)
    }

    /// The key trie after a member, changed from the one before it.
    fn next_keys(
        &self,
        json: &JsonParts,
        pending: &ObjectPending,
        live: &[(u32, u32)],
    ) -> Result<KeyNodeId, EngineError> {
        let from = json.object_states.get(pending.from.0);
        let group = self.group(json, from.group);
        let open = self.open(json, group, live)?;
        // Undeclared keys can only have come if every live monitor takes them, and goes on to.
        if open != json.keys.node(pending.keys).base.is_some() {
            return self.build_keys(json, group, live, &pending.seen);
        }
        let mut changed: Vec<(u32, bool)> = Vec::new();
        for at in 0..group.names.len() as u32 {
            let before = self.name_allowed(json, group, &from.live, &from.seen, at)?;
            let now = self.name_allowed(json, group, live, &pending.seen, at)?;
            if before != now {
                changed.push((at, now));
            }
        }
        if changed.len() > 8 && changed.len() > group.names.len() / 4 && !open {
            return self.build_keys(json, group, live, &pending.seen);
        }
        let mut keys = pending.keys;
        for (at, allowed) in changed {
            let (text, bytes) = &group.names[at as usize];
            let terminal = if allowed { Terminal::Allowed(*text) } else { Terminal::Refused };
            keys = json.keys.with(keys, bytes, terminal)?;
        }
        Ok(keys)
    }

    /// The schemas that hold if the object closes here; 0 if it may not.
    pub(super) fn object_verdict(&self, json: &JsonParts, id: ObjectStateId) -> Verdict {
        let state = json.object_states.get(id.0);
        let group = self.group(json, state.group);
        let holds = state
            .live
            .iter()
            .map(|&(monitor, place)| (&group.monitors[monitor as usize], place))
            .filter(|(monitor, place)| monitor.complete(*place))
            .fold(0, |bits, (monitor, _)| bits | monitor.owners);
        if holds & group.required == 0 {
            0
        } else {
            holds
        }
    }

    /// Whether another member may come.
    pub(super) fn object_may_go_on(&self, json: &JsonParts, id: ObjectStateId) -> bool {
        let node = json.keys.node(json.object_states.get(id.0).keys);
        node.base.is_some() || !node.children.is_empty()
    }

    /// After a key: the stack that expects the colon and the value; `parent` lies below the object.
    pub(super) fn member(
        &self,
        json: &JsonParts,
        id: ObjectStateId,
        parent: StackId,
        key: TextId,
        declared: bool,
    ) -> Result<StackId, EngineError> {
        let state = json.object_states.get(id.0);
        let group = self.group(json, state.group);
        let name = if declared { group.positions.get(&key).copied() } else { None };
        let mut schemas = Schemas::default();
        let mut children = Vec::with_capacity(state.live.len());
        let mut undeclared = false;
        for &(at, place) in state.live.iter() {
            let monitor = &group.monitors[at as usize];
            let property = name.and_then(|name| monitor.by_name[name as usize]);
            let child = match (property, name) {
                (Some(property), _) => monitor.declared(&json.schema, place, property)?,
                (None, Some(name)) if state.seen.contains(&name) => None,
                (None, _) => {
                    let child = monitor.additional(&json.schema, place)?;
                    undeclared |= child.is_some();
                    child
                }
            };
            if let Some((schema, next)) = child {
                if group.is_required(monitor) {
                    schemas.add(schema);
                }
                children.push((at, next, schema));
            }
        }
        let required = schemas.len();
        let entries = children
            .into_iter()
            .map(|(at, next, schema)| (at, next, schemas.add(schema) as u8))
            .collect();
        let (required, observed) = schemas.as_slice().split_at(required);
        let query = self.query(json, required, observed)?;
        let mut seen = state.seen.to_vec();
        let mut keys = state.keys;
        match name {
            Some(name) if undeclared => {
                seen.push(name);
                seen.sort_unstable();
            }
            Some(_) => {}
            None if key == TextId::ANY => {}
            None => keys = json.keys.with(keys, &json.keys.bytes(key), Terminal::Refused)?,
        }
        let pending = ObjectPending { from: id, entries, seen: seen.into(), keys, query };
        let pending = ObjectPendingId(json.object_pendings.intern(pending)?);
        let await_member = self.push(Frame::AwaitMember(pending), parent)?;
        let value = self.push(Frame::Value(query), await_member)?;
        self.push(Frame::Lexeme(index::COLON), value)
    }

    /// After a member's value: the object's next state.
    pub(super) fn member_done(
        &self,
        json: &JsonParts,
        id: ObjectPendingId,
        verdict: Verdict,
    ) -> Result<ObjectStateId, EngineError> {
        let pending = json.object_pendings.get(id.0);
        let live: Box<[(u32, u32)]> = pending
            .entries
            .iter()
            .filter(|&&(_, _, bit)| verdict >> bit & 1 == 1)
            .map(|&(monitor, place, _)| (monitor, place))
            .collect();
        let keys = self.next_keys(json, pending, &live)?;
        let group = json.object_states.get(pending.from.0).group;
        let state = ObjectState { group, live, seen: pending.seen.clone(), keys };
        Ok(ObjectStateId(json.object_states.intern(state)?))
    }
}
