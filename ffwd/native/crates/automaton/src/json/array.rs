//! Arrays.
//!
//! The array alternatives of a query run side by side as *monitors* and count their items together.
//! The state between two items holds the counts of `contains`, and the items from which later ones
//! must differ. An item's query asks for a state from which the array can be completed (`items`),
//! and observes the schemas that determine the next state.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use crate::error::{EngineError, Result};
use crate::interning::memory::map_entry;
use crate::json::array_state::{
    ArrayGroup, ArrayMonitor, ArrayPending, ArrayState, ItemEntry, Progress,
};
use crate::json::history::{is_limit, ANY_HISTORY};
use crate::json::items;
use crate::json::query::Schemas;
use crate::json::tables::Json;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{ArrayGroupId, ArrayPendingId, ArrayStateId, StackId, TextId};
use crate::stacks::on::On;
use ffwd_bounds::meter;
use ffwd_json_schema::ArraySpec;
use ffwd_regular::expr::Verdict;

/// The most items that are arrays or objects and must differ from later ones; after these the array
/// must close if it may. Each one makes the next more expensive to check.
const MAX_DISTINCT_CONTAINERS: u32 = 100;

impl Json {
    pub(crate) fn array_group(
        &self,
        arrays: Vec<(Arc<ArraySpec>, Verdict)>,
        required: Verdict,
    ) -> Result<ArrayGroupId> {
        let mut monitors: Vec<ArrayMonitor> = Vec::with_capacity(arrays.len());
        for (spec, owners) in arrays {
            // The order of properties in the items does not affect observation.
            let same = |known: &&mut ArrayMonitor| {
                known.spec == spec && (known.owners & required == 0) == (owners & required == 0)
            };
            match monitors.iter_mut().find(same) {
                Some(known) => known.owners |= owners,
                None => monitors.push(ArrayMonitor { spec, owners, contested: OnceLock::new() }),
            }
        }
        let cap = |spec: &ArraySpec| {
            let from = spec.contains.iter().map(|contains| contains.from).max().unwrap_or(0);
            let length = (spec.prefix.len() as u64).max(spec.min_items).max(from);
            length.max(spec.max_items.unwrap_or(0))
        };
        let cap = monitors.iter().map(|monitor| cap(&monitor.spec)).max().unwrap_or(0);
        if monitors.iter().any(|monitor| monitor.spec.repeats) {
            self.arrays.repeats.store(true, Ordering::Release);
        }
        let group = ArrayGroup { monitors, cap, required };
        let monitors = group.monitors.iter().map(|monitor| monitor.spec.memory_bytes() + 64);
        self.held.add(std::mem::size_of::<ArrayGroup>() + monitors.sum::<usize>());
        Ok(ArrayGroupId(self.arrays.groups.push(group) as u32))
    }

    /// The stack that expects the next item, above `parent`; `None` if no item is allowed.
    pub(crate) fn item(
        &self,
        on: &impl On,
        id: ArrayStateId,
        parent: StackId,
    ) -> Result<Option<StackId>> {
        let Some(pending) = self.known_item(on, id)? else { return Ok(None) };
        let &ArrayPending { query, compared, .. } = self.arrays.pendings.get(pending.0);
        let frame =
            if compared { Frame::AwaitComparedItem(pending) } else { Frame::AwaitItem(pending) };
        let await_item = on.push(frame, parent)?;
        on.push(Frame::Value(query), await_item).map(Some)
    }

    fn known_item(&self, on: &impl On, id: ArrayStateId) -> Result<Option<ArrayPendingId>> {
        if let Some(&known) = self.arrays.items.lock().get(&id) {
            return Ok(known);
        }
        let next = self.next_item(on, id)?;
        self.held.add(map_entry::<ArrayStateId, Option<ArrayPendingId>>());
        self.arrays.items.lock().insert(id, next);
        Ok(next)
    }

    pub(crate) fn next_item(
        &self,
        on: &impl On,
        id: ArrayStateId,
    ) -> Result<Option<ArrayPendingId>> {
        let set = &self.schema;
        let state = self.arrays.states.get(id.0);
        let group = self.arrays.monitors(state);
        if state.containers >= MAX_DISTINCT_CONTAINERS && self.arrays.array_verdict(id) != 0 {
            return Ok(None);
        }
        if let Some(history) = state.history.filter(|&history| history != ANY_HISTORY) {
            // The items beside the schema do not affect the query of an item.
            let same = self.arrays.array_with_history(id, ANY_HISTORY)?;
            let Some(pending) = self.known_item(on, same)? else { return Ok(None) };
            let pending = self.arrays.pendings.get(pending.0);
            if !self.compared(on).has_unused_item(pending.query, history)? {
                return Ok(None);
            }
            let pending = ArrayPending { from: id, ..pending.clone() };
            return Ok(Some(ArrayPendingId(self.arrays.pendings.intern(pending)?)));
        }
        let beside = state.history.is_some();
        let mut schemas = Schemas::new(self.narrows);
        let mut going_on = Vec::with_capacity(state.live.len());
        let mut compared = false;
        for progress in state.live.iter() {
            let monitor = &group.monitors[progress.monitor as usize];
            let spec = &monitor.spec;
            if spec.max_items.is_some_and(|max| state.count >= max) {
                continue;
            }
            let prefix = usize::try_from(state.count).ok().and_then(|at| spec.prefix.get(at));
            let Some(mut schema) = prefix.copied().or(spec.items) else { continue };
            let avoided = if spec.unique { &*state.came } else { &[] };
            if !set.has_other_value(schema, avoided)? {
                continue;
            }
            if !beside {
                schema = items::Demand { schema, avoided: avoided.to_vec() }.whole(set)?;
            }
            compared |= monitor.compares(state.count.saturating_add(1), progress) || beside;
            if monitor.owners & group.required != 0 {
                if monitor.is_plain() || beside && monitor.is_even() {
                    schemas.require(schema);
                } else {
                    let rest = monitor.rest(state, progress)?;
                    let mut demands = items::demands(set, &rest, &state.came)?;
                    let only = demands.len() == 1;
                    for demand in &mut demands {
                        if beside {
                            demand.avoided.retain(|value| state.came.binary_search(value).is_err());
                        }
                        let whole = demand.whole(set)?;
                        schemas.require(whole);
                        if only {
                            // Other items have no completion.
                            schema = whole;
                        }
                    }
                }
            }
            going_on.push((progress, schema));
        }
        if !schemas.is_any_required() {
            return Ok(None);
        }
        let equals_earlier = match going_on.iter().any(|(progress, _)| {
            group.monitors[progress.monitor as usize].spec.repeats && !progress.repeated
        }) && !state.came.is_empty()
        {
            true => Some(set.negation(items::differs(set, &state.came)?)?),
            false => None,
        };
        let mut entries = Vec::with_capacity(going_on.len());
        for (progress, schema) in going_on {
            let monitor = &group.monitors[progress.monitor as usize];
            let spec = &monitor.spec;
            let contains = spec.contains.iter().zip(progress.counts.iter()).enumerate();
            let contains = contains
                .filter(|(_, (contains, &count))| items::counts(contains, count, state.count))
                .map(|(place, (contains, _))| (place as u8, schemas.observe(contains.schema) as u8))
                .collect();
            let repeats = equals_earlier.filter(|_| spec.repeats && !progress.repeated);
            entries.push(ItemEntry {
                before: progress.clone(),
                item: match monitor.owners & group.required {
                    0 => schemas.observe(schema),
                    _ => schemas.hold(schema),
                } as u8,
                contains,
                repeats: repeats.map(|schema| schemas.observe(schema) as u8),
            });
        }
        schemas.compared = compared;
        let query = self.query(schemas)?;
        let pending = ArrayPending { from: id, entries: entries.into(), query, compared };
        Ok(Some(ArrayPendingId(self.arrays.pendings.intern(pending)?)))
    }

    /// The array's state after an item. `text` is the item's text up to its end, if later items are
    /// compared with it.
    pub(crate) fn item_done(
        &self,
        id: ArrayPendingId,
        verdict: Verdict,
        text: TextId,
    ) -> Result<ArrayStateId> {
        let pending = self.arrays.pendings.get(id.0);
        let from = self.arrays.states.get(pending.from.0);
        let group = self.arrays.monitors(from);
        let holds = |bit: u8| verdict >> bit & 1 == 1;
        let mut next = ArrayState {
            group: from.group,
            live: Box::from([]),
            count: from.count.saturating_add(1).min(group.cap),
            came: Arc::from([]),
            history: from.history,
            containers: 0,
        };
        let mut hard = None;
        let mut live: Vec<Progress> = Vec::with_capacity(pending.entries.len());
        for entry in pending.entries.iter().filter(|entry| holds(entry.item)) {
            let spec = &group.monitors[entry.before.monitor as usize].spec;
            let mut progress = entry.before.clone();
            let mut within = true;
            for &(place, _) in entry.contains.iter().filter(|&&(_, bit)| holds(bit)) {
                let count = &mut progress.counts[usize::from(place)];
                *count += 1;
                within &= spec.contains[usize::from(place)].max.is_none_or(|max| *count <= max);
            }
            progress.repeated |= entry.repeats.is_some_and(holds);
            if within {
                live.push(progress);
            }
        }
        let compares = |progress: &Progress| {
            group.monitors[progress.monitor as usize].compares(next.count, progress)
        };
        if let Some(history) = from.history {
            next.containers = from.containers;
            let mut missing = Vec::new();
            for progress in &live {
                let monitor = &group.monitors[progress.monitor as usize];
                if monitor.misses_items(&next, progress)? {
                    missing.push(monitor);
                }
            }
            if !missing.is_empty() {
                next.came = from.came.clone();
            }
            if text != TextId::ANY && history != ANY_HISTORY {
                let bytes = self.keys.texts.bytes(text);
                let item = items::last_value(&bytes);
                match self.histories.with(&self.schema, history, item) {
                    Ok(Some(history)) => {
                        next.history = Some(history);
                        if !missing.is_empty() {
                            let equal = self.schema.equal_to(&String::from_utf8_lossy(item))?;
                            let may_miss =
                                |monitor: &&ArrayMonitor| monitor.may_miss(&self.schema, equal);
                            for monitor in missing.iter() {
                                if !may_miss(monitor)? {
                                    continue;
                                }
                                if let Err(place) = next.came.binary_search(&equal) {
                                    let mut came = next.came.to_vec();
                                    came.insert(place, equal);
                                    next.came = came.into();
                                }
                                break;
                            }
                        }
                    }
                    // It repeats an earlier item, so nothing continues from here.
                    Ok(None) => live.clear(),
                    Err(EngineError::Schema(error)) if is_limit(&error) => hard = Some(error),
                    Err(error) => return Err(error),
                }
            }
        } else if pending.compared && live.iter().any(compares) {
            next.came = from.came.clone();
            next.containers = from.containers;
            // Masks for all texts do not know the item.
            if text != TextId::ANY {
                let bytes = self.keys.texts.bytes(text);
                let item = items::last_value(&bytes);
                match self.schema.equal_to(&String::from_utf8_lossy(item)) {
                    Ok(equal) => {
                        meter::charge(1 + 4 * next.came.len())?;
                        if let Err(place) = next.came.binary_search(&equal) {
                            let mut came = next.came.to_vec();
                            came.insert(place, equal);
                            next.came = came.into();
                            let is_container = matches!(item.first(), Some(b'[' | b'{'));
                            next.containers += u32::from(is_container);
                        }
                    }
                    // A number of too many digits: nothing can be compared with it.
                    Err(error) if is_limit(&error) => hard = Some(error),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let mut kept = Vec::with_capacity(live.len());
        for progress in live {
            let monitor = &group.monitors[progress.monitor as usize];
            // An unknown item may be one that a later item must repeat.
            let unknown = text == TextId::ANY && monitor.spec.repeats;
            let plainly = match next.history {
                Some(_) => monitor.is_even() || text == TextId::ANY,
                None => monitor.is_plain() || unknown,
            };
            let alive = plainly || {
                let rest = monitor.rest(&next, &progress)?;
                items::is_satisfiable(&self.schema, &rest, &next.came)?
            };
            if alive {
                kept.push(progress);
            }
        }
        next.live = kept.into();
        let is_unique = |progress: &Progress| group.monitors[progress.monitor as usize].spec.unique;
        if let Some(error) = hard.filter(|_| next.live.iter().any(is_unique)) {
            next.containers = MAX_DISTINCT_CONTAINERS;
            if self.arrays.verdict_of(&next) == 0 {
                return Err(error.into());
            }
        }
        Ok(ArrayStateId(self.arrays.states.intern(next)?))
    }
}
