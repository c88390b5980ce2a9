//! What is known of arrays alone: their states, by id.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::interning::intern::Interner;
use crate::json::array_state::{
    ArrayGroup, ArrayMonitor, ArrayPending, ArrayState, Progress, Spare,
};
use crate::json::history::ANY_HISTORY;
use crate::json::lengths::array_length;
use crate::json::used_keys::UsedId;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{ArrayGroupId, ArrayPendingId, ArrayStateId, QueryId};
use ffwd_bounds::meter;
use ffwd_json_schema::{ArraySpec, SchemaId};
use ffwd_regular::expr::Verdict;

/// About how long an item is, with its comma.
const LEAST_ITEM: u32 = 2;

/// The tables of arrays.
#[derive(Debug)]
pub struct Arrays {
    pub(crate) groups: boxcar::Vec<ArrayGroup>,
    pub(crate) states: Interner<ArrayState>,
    pub(crate) pendings: Interner<ArrayPending>,
    /// The next item after each state; `None` if no item is allowed.
    pub(crate) items: Mutex<FxHashMap<ArrayStateId, Option<ArrayPendingId>>>,
    pub(crate) spares: Mutex<FxHashMap<ArrayStateId, Spare>>,
    /// Whether a group has a schema that requires equal items, the negation of `uniqueItems`.
    pub(crate) repeats: AtomicBool,
}

impl Arrays {
    pub(crate) fn monitors(&self, state: &ArrayState) -> &ArrayGroup {
        &self.groups[state.group.0 as usize]
    }

    pub(crate) fn array_start(&self, group: ArrayGroupId) -> Result<ArrayStateId> {
        let history = self.keeps_history(group).then_some(UsedId::EMPTY);
        let monitors = &self.groups[group.0 as usize].monitors;
        let begin = |(at, monitor): (usize, &ArrayMonitor)| Progress {
            monitor: at as u32,
            counts: vec![0; monitor.spec.contains.len()].into(),
            repeated: false,
        };
        let live = monitors.iter().enumerate().map(begin).collect();
        let came = Arc::from([]);
        let state = ArrayState { group, live, count: 0, came, history, containers: 0 };
        Ok(ArrayStateId(self.states.intern(state)?))
    }

    /// The schemas that hold if the array closes here; 0 if it may not.
    pub(crate) fn array_verdict(&self, id: ArrayStateId) -> Verdict {
        self.verdict_of(self.states.get(id.0))
    }

    pub(crate) fn verdict_of(&self, state: &ArrayState) -> Verdict {
        let group = self.monitors(state);
        let holds = state
            .live
            .iter()
            .map(|progress| (&group.monitors[progress.monitor as usize], progress))
            .filter(|(monitor, progress)| monitor.is_complete(state.count, progress))
            .fold(0, |bits, (monitor, _)| bits | monitor.owners);
        if holds & group.required == 0 {
            0
        } else {
            holds
        }
    }

    /// The group of an array, and the schemas that it may still satisfy.
    pub(crate) fn array_owners(&self, id: ArrayStateId) -> (ArrayGroupId, Verdict) {
        let state = self.states.get(id.0);
        let group = self.monitors(state);
        let monitors = state.live.iter().map(|progress| &group.monitors[progress.monitor as usize]);
        (state.group, monitors.fold(0, |bits, monitor| bits | monitor.owners) & group.required)
    }

    /// Whether the items of a group are kept beside its schema: all must differ whatever else they
    /// are.
    fn keeps_history(&self, id: ArrayGroupId) -> bool {
        let ArrayGroup { monitors, required, .. } = &self.groups[id.0 as usize];
        let is_required = |monitor: &&ArrayMonitor| monitor.owners & required != 0;
        monitors.iter().any(|monitor| is_required(&monitor))
            && monitors.iter().filter(is_required).all(|monitor| monitor.spec.unique)
            && !monitors.iter().any(|monitor| monitor.spec.repeats)
    }

    /// The earlier items, if they are stored beside the schema.
    pub(crate) fn history_at(&self, id: ArrayStateId) -> Option<UsedId> {
        self.states.get(id.0).history
    }

    /// The earlier items of an array's frame.
    pub(crate) fn history_of_frame(&self, frame: Frame) -> Option<UsedId> {
        match frame {
            Frame::ArrayOpen(state) | Frame::ArrayAfter(state) => self.history_at(state),
            Frame::AwaitComparedItem(item) => self.history_before(item),
            _ => None,
        }
    }

    /// The items before the current one.
    pub(crate) fn history_before(&self, id: ArrayPendingId) -> Option<UsedId> {
        self.history_at(self.pendings.get(id.0).from)
    }

    pub(crate) fn item_query(&self, id: ArrayPendingId) -> QueryId {
        self.pendings.get(id.0).query
    }

    /// The state after the same number of other items, if they are stored beside the schema.
    pub(crate) fn array_with_history(
        &self,
        id: ArrayStateId,
        history: UsedId,
    ) -> Result<ArrayStateId> {
        let state = self.states.get(id.0);
        if state.history.is_none_or(|known| known == ANY_HISTORY || known == history) {
            return Ok(id);
        }
        let state = ArrayState { history: Some(history), ..state.clone() };
        Ok(ArrayStateId(self.states.intern(state)?))
    }

    pub(crate) fn item_with_history(
        &self,
        id: ArrayPendingId,
        history: UsedId,
    ) -> Result<ArrayPendingId> {
        let pending = self.pendings.get(id.0);
        let from = self.array_with_history(pending.from, history)?;
        let pending = ArrayPending { from, ..pending.clone() };
        Ok(ArrayPendingId(self.pendings.intern(pending)?))
    }

    pub(crate) fn group_of(&self, id: ArrayStateId) -> ArrayGroupId {
        self.states.get(id.0).group
    }

    /// The array before the item that is being written.
    pub(crate) fn item_of(&self, id: ArrayPendingId) -> ArrayStateId {
        self.pendings.get(id.0).from
    }

    /// How many items are still required, if they need not differ and have the same schema.
    pub(crate) fn items_left(&self, id: ArrayStateId) -> u64 {
        let state = self.states.get(id.0);
        let group = self.monitors(state);
        match &*state.live {
            [progress] if group.monitors[progress.monitor as usize].is_plain() => {
                let spec = &group.monitors[progress.monitor as usize].spec;
                spec.min_items.saturating_sub(state.count)
            }
            _ => 0,
        }
    }

    /// Returns the estimated bytes of the rest of an array after this many more items, including
    /// the closing bracket.
    pub(crate) fn array_left(
        &self,
        id: ArrayStateId,
        more: u64,
        of: impl Fn(SchemaId) -> Result<u32>,
    ) -> Result<u32> {
        let state = self.states.get(id.0);
        let group = self.monitors(state);
        let came = state.count.saturating_add(more);
        let mut least = u32::MAX;
        for progress in state.live.iter() {
            let monitor = &group.monitors[progress.monitor as usize];
            if monitor.owners & group.required == 0 {
                continue;
            }
            meter::charge(1 + monitor.spec.prefix.len())?;
            let mut spec = ArraySpec { repeats: false, ..(*monitor.spec).clone() };
            for (contains, &count) in spec.contains.iter_mut().zip(progress.counts.iter()) {
                contains.min = contains.min.saturating_sub(count.saturating_add(more));
            }
            let mut failed = Ok(());
            let length = array_length(&spec, came, |schema| {
                of(schema).unwrap_or_else(|error| {
                    failed = Err(error);
                    0
                })
            });
            failed?;
            least = least.min(length);
        }
        let least = if least == u32::MAX { 0 } else { least };
        // Nothing is missing, but the array may not close: some item must be repeated.
        let waits = least == 0 && more == 0 && self.array_verdict(id) == 0;
        Ok(if waits { 1 + LEAST_ITEM } else { least.saturating_add(1) })
    }
}
