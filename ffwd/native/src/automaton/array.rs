//! Arrays: the array alternatives of a query run side by side, and count their items together.

use std::sync::Arc;

use super::config::{Automaton, JsonParts};
use super::error::EngineError;
use super::frame::{Frame, StackId};
use super::value::{QueryId, Schemas};
use crate::expr::Verdict;
use crate::json_schema::ArraySpec;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayGroupId(pub u32);
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayStateId(pub u32);
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayPendingId(pub u32);

#[derive(Debug)]
pub struct ArrayGroup {
    monitors: Vec<(Arc<ArraySpec>, Verdict)>,
    /// From this many items on the number of items makes no difference.
    cap: u64,
    /// The schemas of the query of which one must hold.
    required: Verdict,
}

/// Where an array stands between its items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayState {
    group: ArrayGroupId,
    live: Box<[u32]>,
    /// Items so far, at most the cap.
    count: u64,
}

/// An item that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayPending {
    from: ArrayStateId,
    /// Monitor, and the schema of the query that must hold for it.
    entries: Box<[(u32, u8)]>,
    query: QueryId,
}

impl Automaton {
    pub(super) fn array_group(
        &self,
        json: &JsonParts,
        arrays: Vec<(Arc<ArraySpec>, Verdict)>,
        required: Verdict,
    ) -> Result<ArrayGroupId, EngineError> {
        let mut monitors: Vec<(Arc<ArraySpec>, Verdict)> = Vec::with_capacity(arrays.len());
        for (spec, owners) in arrays {
            match monitors.iter_mut().find(|(known, _)| *known == spec) {
                Some((_, known)) => *known |= owners,
                None => monitors.push((spec, owners)),
            }
        }
        let cap = |spec: &ArraySpec| {
            (spec.prefix.len() as u64).max(spec.min_items).max(spec.max_items.unwrap_or(0))
        };
        let cap = monitors.iter().map(|(spec, _)| cap(spec)).max().unwrap_or(0);
        Ok(ArrayGroupId(json.array_groups.push(ArrayGroup { monitors, cap, required }) as u32))
    }

    pub(super) fn array_start(
        &self,
        json: &JsonParts,
        group: ArrayGroupId,
    ) -> Result<ArrayStateId, EngineError> {
        let live = (0..json.array_groups[group.0 as usize].monitors.len() as u32).collect();
        Ok(ArrayStateId(json.array_states.intern(ArrayState { group, live, count: 0 })?))
    }

    /// The schemas that hold if the array closes here; 0 if it may not.
    pub(super) fn array_verdict(&self, json: &JsonParts, id: ArrayStateId) -> Verdict {
        let state = json.array_states.get(id.0);
        let group = &json.array_groups[state.group.0 as usize];
        let holds = state
            .live
            .iter()
            .map(|&monitor| &group.monitors[monitor as usize])
            .filter(|(spec, _)| state.count >= spec.min_items)
            .fold(0, |bits, (_, owners)| bits | owners);
        if holds & group.required == 0 {
            0
        } else {
            holds
        }
    }

    /// The stack that expects the next item, above `parent`; `None` if no item may come.
    pub(super) fn item(
        &self,
        json: &JsonParts,
        id: ArrayStateId,
        parent: StackId,
    ) -> Result<Option<StackId>, EngineError> {
        let state = json.array_states.get(id.0);
        let group = &json.array_groups[state.group.0 as usize];
        let mut schemas = Schemas::default();
        let mut items = Vec::with_capacity(state.live.len());
        for &at in state.live.iter() {
            let (spec, owners) = &group.monitors[at as usize];
            if spec.max_items.is_some_and(|max| state.count >= max) {
                continue;
            }
            let prefix = usize::try_from(state.count).ok().and_then(|at| spec.prefix.get(at));
            let Some(schema) = prefix.copied().or(spec.items) else { continue };
            if !json.schema.is_satisfiable(schema)? {
                continue;
            }
            if owners & group.required != 0 {
                schemas.add(schema);
            }
            items.push((at, schema));
        }
        let required = schemas.len();
        if required == 0 {
            return Ok(None);
        }
        let entries =
            items.into_iter().map(|(at, schema)| (at, schemas.add(schema) as u8)).collect();
        let (required, observed) = schemas.as_slice().split_at(required);
        let query = self.query(json, required, observed)?;
        let pending = ArrayPending { from: id, entries, query };
        let pending = ArrayPendingId(json.array_pendings.intern(pending)?);
        let await_item = self.push(Frame::AwaitItem(pending), parent)?;
        self.push(Frame::Value(query), await_item).map(Some)
    }

    /// After an item: the array's next state.
    pub(super) fn item_done(
        &self,
        json: &JsonParts,
        id: ArrayPendingId,
        verdict: Verdict,
    ) -> Result<ArrayStateId, EngineError> {
        let pending = json.array_pendings.get(id.0);
        let from = json.array_states.get(pending.from.0);
        let cap = json.array_groups[from.group.0 as usize].cap;
        let live = pending
            .entries
            .iter()
            .filter(|&&(_, bit)| verdict >> bit & 1 == 1)
            .map(|&(monitor, _)| monitor)
            .collect();
        let state =
            ArrayState { group: from.group, live, count: from.count.saturating_add(1).min(cap) };
        Ok(ArrayStateId(json.array_states.intern(state)?))
    }
}
