//! The states of arrays.

use std::sync::{Arc, OnceLock};

use crate::error::Result;
use crate::interning::memory::Held;
use crate::json::used_keys::UsedId;
use crate::stacks::ids::{ArrayGroupId, ArrayStateId, QueryId};
use ffwd_bounds::meter;
use ffwd_json_schema::{ArraySpec, SchemaError, SchemaId, SchemaSet};
use ffwd_regular::expr::Verdict;

#[derive(Debug)]
pub(crate) struct ArrayMonitor {
    pub(crate) spec: Arc<ArraySpec>,
    pub(crate) owners: Verdict,
    /// The values that the array may lack after other items, once computed; `None` if they can be
    /// any.
    pub(crate) contested: OnceLock<Option<Box<[SchemaId]>>>,
}

#[derive(Debug)]
pub struct ArrayGroup {
    pub(crate) monitors: Vec<ArrayMonitor>,
    /// The number of items from which on counts make no difference.
    pub(crate) cap: u64,
    /// The schemas of the query of which one must hold.
    pub(crate) required: Verdict,
}

/// The progress of a monitor that has not failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Progress {
    pub(crate) monitor: u32,
    /// For each `contains`, how many items it has counted, as far as that makes a difference.
    pub(crate) counts: Box<[u64]>,
    /// Whether two items are equal, if that matters.
    pub(crate) repeated: bool,
}

/// The state of an array between its items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayState {
    pub(crate) group: ArrayGroupId,
    pub(crate) live: Box<[Progress]>,
    /// Items so far, at most the cap.
    pub(crate) count: u64,
    /// The items so far, if later ones must differ from them: sorted schemas of the equal values.
    /// If they are stored beside the schema, only those that the array may lack.
    pub(crate) came: Arc<[SchemaId]>,
    /// The items so far, if they are stored beside the schema.
    pub(crate) history: Option<UsedId>,
    /// How many of these are arrays or objects; the greatest allowed number if some item cannot be
    /// compared.
    pub(crate) containers: u32,
}

/// The bits of the query that belong to a monitor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ItemEntry {
    pub(crate) before: Progress,
    pub(crate) item: u8,
    /// For each `contains` that counts here its place in the specification, and its bit.
    pub(crate) contains: Box<[(u8, u8)]>,
    /// The bit of "equals an earlier item", if that matters.
    pub(crate) repeats: Option<u8>,
}

/// An item that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayPending {
    pub(crate) from: ArrayStateId,
    pub(crate) entries: Box<[ItemEntry]>,
    pub(crate) query: QueryId,
    /// Whether later items are compared with this one.
    pub(crate) compared: bool,
}

impl Progress {
    pub(crate) fn bytes(&self) -> usize {
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
        let entry = |entry: &ItemEntry| {
            let own = std::mem::size_of::<ItemEntry>() - std::mem::size_of::<Progress>();
            own + entry.before.bytes() + std::mem::size_of_val(&*entry.contains)
        };
        self.entries.iter().map(entry).sum()
    }
}

impl ArrayMonitor {
    pub(crate) fn is_plain(&self) -> bool {
        self.spec.contains.is_empty() && !self.spec.unique && !self.spec.repeats
    }

    /// Whether all places have the same schema, so that none can lack the value of another one.
    pub(crate) fn is_even(&self) -> bool {
        self.spec.prefix.is_empty() && self.spec.contains.is_empty() && !self.spec.repeats
    }

    /// Whether the earlier items affect what the array still needs.
    pub(crate) fn misses_items(&self, state: &ArrayState, progress: &Progress) -> Result<bool> {
        let matters = self.spec.unique && !self.is_even();
        Ok(matters && !self.rest(state, progress)?.asks_for_nothing())
    }

    /// Whether the array may miss a value.
    pub(crate) fn may_miss(&self, set: &SchemaSet, value: SchemaId) -> Result<bool, SchemaError> {
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
    pub(crate) fn rest(&self, state: &ArrayState, progress: &Progress) -> Result<ArraySpec> {
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

    pub(crate) fn is_complete(&self, count: u64, progress: &Progress) -> bool {
        let mut contains = self.spec.contains.iter().zip(progress.counts.iter());
        count >= self.spec.min_items
            && contains.all(|(contains, &count)| count >= contains.min)
            && (progress.repeated || !self.spec.repeats)
    }

    /// Returns whether the earlier items matter after this many.
    pub(crate) fn compares(&self, count: u64, progress: &Progress) -> bool {
        let more = self.spec.max_items.is_none_or(|max| count < max);
        more && (self.spec.unique || self.spec.repeats && !progress.repeated)
    }
}

/// Whether an item's value can affect the tokens that continue after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// The value may decide whether another item is allowed.
    None,
    /// Another item is allowed after any value.
    Item,
    /// Another item is allowed after any value, and strings are among the possible items.
    String,
}
