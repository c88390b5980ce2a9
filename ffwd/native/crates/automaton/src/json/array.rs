//! Arrays.
//!
//! The array alternatives of a query run side by side as *monitors* and count their items together.
//! The state between two items holds the counts of `contains` and the items that later ones must
//! differ from. An item's query asks for a state from which the array can be completed
//! (`items`), and observes the schemas that determine the next state.

use std::sync::{Arc, OnceLock};

use crate::completion::estimate::array_length;
use crate::error::EngineError;
use crate::interning::memory::{map_entry, Held};
use crate::json::history::ANY_HISTORY;
use crate::json::items;
use crate::json::keys::TextId;
use crate::json::used_keys::UsedId;
use crate::json::value::{QueryId, Schemas};
use crate::run::automaton::{Automaton, JsonParts};
use crate::stacks::frame::{Cell, Frame, StackId};
use ffwd_bounds::meter;
use ffwd_json_schema::{ArraySpec, SchemaError, SchemaId, SchemaSet};
use ffwd_regular::expr::texts::TextCounter;
use ffwd_regular::expr::{Spelling, Verdict};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayGroupId(pub u32);
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayStateId(pub u32);
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayPendingId(pub u32);

/// The most items that are arrays or objects and must differ from later ones; after these the array
/// must close if it may. Each one makes the next more expensive to check.
const MAX_DISTINCT_CONTAINERS: u32 = 100;

#[derive(Debug)]
struct Monitor {
    spec: Arc<ArraySpec>,
    owners: Verdict,
    /// The values that the array may miss once others have come, where that has been asked for;
    /// `None` if these may be any.
    contested: OnceLock<Option<Box<[SchemaId]>>>,
}

#[derive(Debug)]
pub struct ArrayGroup {
    monitors: Vec<Monitor>,
    /// From this many items on the number of items makes no difference.
    cap: u64,
    /// The schemas of the query of which one must hold.
    required: Verdict,
}

/// How far a monitor that has not failed has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Progress {
    monitor: u32,
    /// For each `contains`, how many items it has counted, as far as that makes a difference.
    counts: Box<[u64]>,
    /// Whether two items are equal, if that matters.
    repeated: bool,
}

/// The state of an array between its items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayState {
    group: ArrayGroupId,
    live: Box<[Progress]>,
    /// Items so far, at most the cap.
    count: u64,
    /// The items so far, if later ones must differ from them: sorted schemas of the equal values.
    /// If they are stored beside the schema, only those that the array may lack.
    came: Arc<[SchemaId]>,
    /// The items so far, where they lie beside the schema.
    history: Option<UsedId>,
    /// How many of these are arrays or objects; as many as make the array end, if some item cannot
    /// be compared with others.
    containers: u32,
}

/// The bits of the query that belong to a monitor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    before: Progress,
    item: u8,
    /// For each `contains` that counts here its place in the specification, and its bit.
    contains: Box<[(u8, u8)]>,
    /// The bit of "equals an earlier item", if that matters.
    repeats: Option<u8>,
}

/// An item that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayPending {
    from: ArrayStateId,
    entries: Box<[Entry]>,
    query: QueryId,
    /// Whether later items are compared with this one.
    compared: bool,
}

/// How many values are enough to spare some.
pub const SPARE_ITEMS: u64 = 8;

/// Whether it can matter for the tokens that go on after an item which value it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// It may decide whether another item may come.
    None,
    /// Another item may come whatever it was.
    Item,
    /// Another item may come, also one that is a string.
    String,
}

impl Progress {
    fn bytes(&self) -> usize {
        std::mem::size_of::<Self>() + std::mem::size_of_val(&*self.counts)
    }
}

impl Held for ArrayState {
    fn held_bytes(&self) -> usize {
        // Both copies of a state share the items.
        let came = std::mem::size_of_val(&*self.came) / 2 + 8;
        came + self.live.iter().map(Progress::bytes).sum::<usize>()
    }
}

impl Held for ArrayPending {
    fn held_bytes(&self) -> usize {
        let entry = |entry: &Entry| {
            let own = std::mem::size_of::<Entry>() - std::mem::size_of::<Progress>();
            own + entry.before.bytes() + std::mem::size_of_val(&*entry.contains)
        };
        self.entries.iter().map(entry).sum()
    }
}

impl Monitor {
    fn is_plain(&self) -> bool {
        self.spec.contains.is_empty() && !self.spec.unique && !self.spec.repeats
    }

    /// Whether all places are alike, so that none can miss the value of another one.
    fn is_even(&self) -> bool {
        self.spec.prefix.is_empty() && self.spec.contains.is_empty() && !self.spec.repeats
    }

    /// Whether it matters for what the array still needs which items have come.
    fn misses_items(&self, state: &ArrayState, progress: &Progress) -> Result<bool, EngineError> {
        let matters = self.spec.unique && !self.is_even();
        Ok(matters && !self.rest(state, progress)?.asks_for_nothing())
    }

    /// Whether the array may miss a value.
    fn may_miss(&self, set: &SchemaSet, value: SchemaId) -> Result<bool, SchemaError> {
        let contested = match self.contested.get() {
            Some(known) => known,
            None => {
                let values = set.contested_values(&self.spec)?;
                self.contested.get_or_init(|| values.map(Into::into))
            }
        };
        Ok(contested.as_ref().is_none_or(|values| values.binary_search(&value).is_ok()))
    }

    /// Returns the rest of the array after this many items, and how many items must and may follow.
    /// The schemas do not exclude earlier values.
    fn rest(&self, state: &ArrayState, progress: &Progress) -> Result<ArraySpec, EngineError> {
        let spec = &self.spec;
        meter::charge(1 + spec.prefix.len() / 4)?;
        let gone = usize::try_from(state.count).unwrap_or(usize::MAX).min(spec.prefix.len());
        let mut rest = ArraySpec {
            prefix: spec.prefix[gone..].to_vec(),
            items: spec.items,
            min_items: spec.min_items.saturating_sub(state.count),
            max_items: spec.max_items.map(|max| max.saturating_sub(state.count)),
            contains: spec.contains.clone(),
            unique: spec.unique,
            repeats: spec.repeats && !progress.repeated,
        };
        for (contains, &count) in rest.contains.iter_mut().zip(progress.counts.iter()) {
            contains.from = contains.from.saturating_sub(state.count);
            contains.min = contains.min.saturating_sub(count);
            contains.max = contains.max.map(|max| max.saturating_sub(count));
        }
        Ok(rest)
    }

    fn is_complete(&self, count: u64, progress: &Progress) -> bool {
        let mut contains = self.spec.contains.iter().zip(progress.counts.iter());
        count >= self.spec.min_items
            && contains.all(|(contains, &count)| count >= contains.min)
            && (progress.repeated || !self.spec.repeats)
    }

    /// Returns whether the earlier items matter after this many.
    fn compares(&self, count: u64, progress: &Progress) -> bool {
        let more = self.spec.max_items.is_none_or(|max| count < max);
        more && (self.spec.unique || self.spec.repeats && !progress.repeated)
    }
}

/// Whether it is the value that passes a limit, and not the call.
fn is_limit(error: &SchemaError) -> bool {
    error.exceeded().is_some_and(|exceeded| !exceeded.is_interruption())
}

impl Automaton {
    pub(crate) fn array_group(
        &self,
        json: &JsonParts,
        arrays: Vec<(Arc<ArraySpec>, Verdict)>,
        required: Verdict,
    ) -> Result<ArrayGroupId, EngineError> {
        let mut monitors: Vec<Monitor> = Vec::with_capacity(arrays.len());
        for (spec, owners) in arrays {
            // The order of properties in the items does not affect observation.
            let same = |known: &&mut Monitor| {
                known.spec == spec && (known.owners & required == 0) == (owners & required == 0)
            };
            match monitors.iter_mut().find(same) {
                Some(known) => known.owners |= owners,
                None => monitors.push(Monitor { spec, owners, contested: OnceLock::new() }),
            }
        }
        let cap = |spec: &ArraySpec| {
            let from = spec.contains.iter().map(|contains| contains.from).max().unwrap_or(0);
            let length = (spec.prefix.len() as u64).max(spec.min_items).max(from);
            length.max(spec.max_items.unwrap_or(0))
        };
        let cap = monitors.iter().map(|monitor| cap(&monitor.spec)).max().unwrap_or(0);
        let group = ArrayGroup { monitors, cap, required };
        let monitors = group.monitors.iter().map(|monitor| monitor.spec.memory_bytes() + 64);
        json.held.add(std::mem::size_of::<ArrayGroup>() + monitors.sum::<usize>());
        Ok(ArrayGroupId(json.array_groups.push(group) as u32))
    }

    fn monitors<'j>(&self, json: &'j JsonParts, state: &ArrayState) -> &'j ArrayGroup {
        &json.array_groups[state.group.0 as usize]
    }

    pub(crate) fn array_start(
        &self,
        json: &JsonParts,
        group: ArrayGroupId,
    ) -> Result<ArrayStateId, EngineError> {
        let history = self.keeps_history(json, group).then_some(UsedId::EMPTY);
        let monitors = &json.array_groups[group.0 as usize].monitors;
        let begin = |(at, monitor): (usize, &Monitor)| Progress {
            monitor: at as u32,
            counts: vec![0; monitor.spec.contains.len()].into(),
            repeated: false,
        };
        let live = monitors.iter().enumerate().map(begin).collect();
        let came = Arc::from([]);
        let state = ArrayState { group, live, count: 0, came, history, containers: 0 };
        Ok(ArrayStateId(json.array_states.intern(state)?))
    }

    /// The schemas that hold if the array closes here; 0 if it may not.
    pub(crate) fn array_verdict(&self, json: &JsonParts, id: ArrayStateId) -> Verdict {
        self.verdict_of(json, json.array_states.get(id.0))
    }

    fn verdict_of(&self, json: &JsonParts, state: &ArrayState) -> Verdict {
        let group = self.monitors(json, state);
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
    pub(crate) fn array_owners(
        &self,
        json: &JsonParts,
        id: ArrayStateId,
    ) -> (ArrayGroupId, Verdict) {
        let state = json.array_states.get(id.0);
        let group = self.monitors(json, state);
        let monitors = state.live.iter().map(|progress| &group.monitors[progress.monitor as usize]);
        (state.group, monitors.fold(0, |bits, monitor| bits | monitor.owners) & group.required)
    }

    /// The stack that expects the next item, above `parent`; `None` if no item may come.
    pub(crate) fn item(
        &self,
        json: &JsonParts,
        id: ArrayStateId,
        parent: StackId,
    ) -> Result<Option<StackId>, EngineError> {
        let Some(pending) = self.known_item(json, id)? else { return Ok(None) };
        let &ArrayPending { query, compared, .. } = json.array_pendings.get(pending.0);
        let frame =
            if compared { Frame::AwaitComparedItem(pending) } else { Frame::AwaitItem(pending) };
        let await_item = self.push(frame, parent)?;
        self.push(Frame::Value(query), await_item).map(Some)
    }

    fn known_item(
        &self,
        json: &JsonParts,
        id: ArrayStateId,
    ) -> Result<Option<ArrayPendingId>, EngineError> {
        if let Some(&known) = json.array_items.lock().get(&id) {
            return Ok(known);
        }
        let next = self.next_item(json, id)?;
        json.held.add(map_entry::<ArrayStateId, Option<ArrayPendingId>>());
        json.array_items.lock().insert(id, next);
        Ok(next)
    }

    /// Whether it matters for what follows which value the item was that the stack stands after.
    pub fn spare(&self, stack: StackId) -> Result<Spare, EngineError> {
        let (Some(json), &Cell { frame, parent, .. }) = (self.json(), self.cell(stack)) else {
            return Ok(Spare::None);
        };
        let Frame::ArrayAfter(id) = frame else { return Ok(Spare::None) };
        if let Some(&known) = json.array_spares.lock().get(&id) {
            return Ok(known);
        }
        let spare = match self.has_spare_item(json, id)? {
            true if self.history_at(json, id).is_some() => self.spare_beside(json, id)?,
            true if self.has_spare_string(json, id, parent)? => Spare::String,
            true => Spare::Item,
            false => Spare::None,
        };
        json.held.add(map_entry::<ArrayStateId, Spare>());
        json.array_spares.lock().insert(id, spare);
        Ok(spare)
    }

    /// Returns whether the array can continue after any last item as if the next ones need not
    /// differ from it. Returns false if that is hard to decide.
    fn has_spare_item(&self, json: &JsonParts, id: ArrayStateId) -> Result<bool, EngineError> {
        let state = json.array_states.get(id.0);
        let group = self.monitors(json, state);
        if state.history.is_some() {
            for progress in state.live.iter() {
                let monitor = &group.monitors[progress.monitor as usize];
                if monitor.misses_items(state, progress)? {
                    return Ok(false);
                }
            }
            return self.has_endless_scalars(json, id);
        }
        for progress in state.live.iter() {
            let monitor = &group.monitors[progress.monitor as usize];
            if monitor.spec.repeats && !progress.repeated {
                return Ok(false);
            }
            if !monitor.spec.unique || monitor.owners & group.required == 0 {
                continue;
            }
            let mut rest = monitor.rest(state, progress)?;
            if !rest.prefix.is_empty() || !rest.contains.is_empty() {
                return Ok(false);
            }
            // The last one and more that a token may hold, those that must come, and at least one.
            rest.min_items = rest.min_items.max(1).saturating_add(SPARE_ITEMS);
            rest.max_items = None;
            if rest.items.is_some() && !items::is_satisfiable(&json.schema, &rest, &state.came)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the next item can be one of many strings, or none.
    fn has_spare_string(
        &self,
        json: &JsonParts,
        id: ArrayStateId,
        parent: StackId,
    ) -> Result<bool, EngineError> {
        let Some(item) = self.item(json, id, parent)? else { return Ok(true) };
        let Frame::Value(query) = self.cell(item).frame else { return Ok(false) };
        for scalar in &self.value_starts(json, query)?.scalars {
            let lexeme = self.lexeme(scalar.lexeme);
            if lexeme.spec().spelling == Spelling::JsonString {
                return Ok(TextCounter::default().count(lexeme, lexeme.start(), SPARE_ITEMS)?
                    == SPARE_ITEMS);
            }
        }
        Ok(true)
    }

    fn next_item(
        &self,
        json: &JsonParts,
        id: ArrayStateId,
    ) -> Result<Option<ArrayPendingId>, EngineError> {
        let set = &json.schema;
        let state = json.array_states.get(id.0);
        let group = self.monitors(json, state);
        if state.containers >= MAX_DISTINCT_CONTAINERS && self.array_verdict(json, id) != 0 {
            return Ok(None);
        }
        if let Some(history) = state.history.filter(|&history| history != ANY_HISTORY) {
            // The items beside the schema do not affect the query of an item.
            let same = self.array_with_history(json, id, ANY_HISTORY)?;
            let Some(pending) = self.known_item(json, same)? else { return Ok(None) };
            let pending = json.array_pendings.get(pending.0);
            if !self.has_unused_item(json, pending.query, history)? {
                return Ok(None);
            }
            let pending = ArrayPending { from: id, ..pending.clone() };
            return Ok(Some(ArrayPendingId(json.array_pendings.intern(pending)?)));
        }
        let beside = state.history.is_some();
        let mut schemas = Schemas::new(json.narrows);
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
            entries.push(Entry {
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
        let query = self.query(json, schemas)?;
        let pending = ArrayPending { from: id, entries: entries.into(), query, compared };
        Ok(Some(ArrayPendingId(json.array_pendings.intern(pending)?)))
    }

    /// After an item: the array's next state. `text` is what was written up to its end, where it is
    /// compared with later ones.
    pub(crate) fn item_done(
        &self,
        json: &JsonParts,
        id: ArrayPendingId,
        verdict: Verdict,
        text: TextId,
    ) -> Result<ArrayStateId, EngineError> {
        let pending = json.array_pendings.get(id.0);
        let from = json.array_states.get(pending.from.0);
        let group = self.monitors(json, from);
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
                let bytes = json.keys.texts.bytes(text);
                let item = items::last_value(&bytes);
                match json.histories.with(&json.schema, history, item) {
                    Ok(Some(history)) => {
                        next.history = Some(history);
                        if !missing.is_empty() {
                            let equal = json.schema.equal_to(&String::from_utf8_lossy(item))?;
                            let may_miss =
                                |monitor: &&Monitor| monitor.may_miss(&json.schema, equal);
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
                    // It has come already: nothing goes on from here.
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
                let bytes = json.keys.texts.bytes(text);
                let item = items::last_value(&bytes);
                match json.schema.equal_to(&String::from_utf8_lossy(item)) {
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
            // An item that is not known may be one that a later one must repeat.
            let unknown = text == TextId::ANY && monitor.spec.repeats;
            let plainly = match next.history {
                Some(_) => monitor.is_even() || text == TextId::ANY,
                None => monitor.is_plain() || unknown,
            };
            let alive = plainly || {
                let rest = monitor.rest(&next, &progress)?;
                items::is_satisfiable(&json.schema, &rest, &next.came)?
            };
            if alive {
                kept.push(progress);
            }
        }
        next.live = kept.into();
        let is_unique = |progress: &Progress| group.monitors[progress.monitor as usize].spec.unique;
        if let Some(error) = hard.filter(|_| next.live.iter().any(is_unique)) {
            next.containers = MAX_DISTINCT_CONTAINERS;
            if self.verdict_of(json, &next) == 0 {
                return Err(error.into());
            }
        }
        Ok(ArrayStateId(json.array_states.intern(next)?))
    }
}

/// Arrays whose items that came lie beside the schema.
impl Automaton {
    /// Whether the items of a group are kept beside its schema: all must differ whatever else they
    /// are.
    fn keeps_history(&self, json: &JsonParts, id: ArrayGroupId) -> bool {
        let ArrayGroup { monitors, required, .. } = &json.array_groups[id.0 as usize];
        let is_required = |monitor: &&Monitor| monitor.owners & required != 0;
        monitors.iter().any(|monitor| is_required(&monitor))
            && monitors.iter().filter(is_required).all(|monitor| monitor.spec.unique)
            && !monitors.iter().any(|monitor| monitor.spec.repeats)
    }

    /// The items that came, where they lie beside the schema.
    pub(crate) fn history_at(&self, json: &JsonParts, id: ArrayStateId) -> Option<UsedId> {
        json.array_states.get(id.0).history
    }

    /// The items that came before the one that is being written.
    pub(crate) fn history_before(&self, json: &JsonParts, id: ArrayPendingId) -> Option<UsedId> {
        self.history_at(json, json.array_pendings.get(id.0).from)
    }

    pub(crate) fn item_query(&self, json: &JsonParts, id: ArrayPendingId) -> QueryId {
        json.array_pendings.get(id.0).query
    }

    /// The state after as many other items, where they lie beside the schema.
    pub(crate) fn array_with_history(
        &self,
        json: &JsonParts,
        id: ArrayStateId,
        history: UsedId,
    ) -> Result<ArrayStateId, EngineError> {
        let state = json.array_states.get(id.0);
        if state.history.is_none_or(|known| known == ANY_HISTORY || known == history) {
            return Ok(id);
        }
        let state = ArrayState { history: Some(history), ..state.clone() };
        Ok(ArrayStateId(json.array_states.intern(state)?))
    }

    pub(crate) fn item_with_history(
        &self,
        json: &JsonParts,
        id: ArrayPendingId,
        history: UsedId,
    ) -> Result<ArrayPendingId, EngineError> {
        let pending = json.array_pendings.get(id.0);
        let from = self.array_with_history(json, pending.from, history)?;
        let pending = ArrayPending { from, ..pending.clone() };
        Ok(ArrayPendingId(json.array_pendings.intern(pending)?))
    }

    /// Returns whether the items with infinitely many values include strings.
    fn spare_beside(&self, json: &JsonParts, id: ArrayStateId) -> Result<Spare, EngineError> {
        let Some(pending) = self.next_item(json, id)? else { return Ok(Spare::String) };
        for scalar in &self.value_starts(json, self.item_query(json, pending))?.scalars {
            let is_string = self.lexeme(scalar.lexeme).spec().spelling == Spelling::JsonString;
            if is_string && !self.is_endless_scalar(json, scalar.lexeme)? {
                return Ok(Spare::Item);
            }
        }
        Ok(Spare::String)
    }

    /// Whether further items can be scalars, or containers, without end.
    fn has_endless_scalars(&self, json: &JsonParts, id: ArrayStateId) -> Result<bool, EngineError> {
        let Some(pending) = self.next_item(json, id)? else { return Ok(true) };
        self.is_endless_query(json, self.item_query(json, pending), 1)
    }

    /// Whether arrays of a group have values without end. It may say no where that is hard to tell.
    pub(crate) fn is_endless_group(
        &self,
        json: &JsonParts,
        id: ArrayGroupId,
        depth: usize,
    ) -> Result<bool, EngineError> {
        let [Monitor { spec, .. }] = &*json.array_groups[id.0 as usize].monitors else {
            return Ok(false);
        };
        let is_open = spec.max_items.is_none() && spec.contains.is_empty() && !spec.repeats;
        let Some(items) = spec.items.filter(|_| is_open) else { return Ok(false) };
        if !json.schema.is_satisfiable(items)? {
            return Ok(false);
        }
        if !spec.unique {
            return Ok(true);
        }
        let mut schemas = Schemas::new(json.narrows);
        schemas.require(items);
        let query = self.query(json, schemas)?;
        Ok(depth > 0 && self.is_endless_query(json, query, depth - 1)?)
    }

    pub(crate) fn group_of(&self, json: &JsonParts, id: ArrayStateId) -> ArrayGroupId {
        json.array_states.get(id.0).group
    }
}

/// About how long an item is, with its comma.
const LEAST_ITEM: u32 = 2;

/// The estimated rest of an array; see [`crate::completion::estimate`].
impl Automaton {
    /// The array before the item that is being written.
    pub(crate) fn item_of(&self, json: &JsonParts, id: ArrayPendingId) -> ArrayStateId {
        json.array_pendings.get(id.0).from
    }

    /// How many items must still come, where they need not differ and are not told apart.
    pub(crate) fn items_left(&self, json: &JsonParts, id: ArrayStateId) -> u64 {
        let state = json.array_states.get(id.0);
        let group = self.monitors(json, state);
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
        json: &JsonParts,
        id: ArrayStateId,
        more: u64,
        of: impl Fn(SchemaId) -> Result<u32, EngineError>,
    ) -> Result<u32, EngineError> {
        let state = json.array_states.get(id.0);
        let group = self.monitors(json, state);
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
        // Nothing is missing, and yet it may not close: some item must be repeated.
        let waits = least == 0 && more == 0 && self.array_verdict(json, id) == 0;
        Ok(if waits { 1 + LEAST_ITEM } else { least.saturating_add(1) })
    }
}
