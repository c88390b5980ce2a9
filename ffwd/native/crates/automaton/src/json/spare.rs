//! Whether an item's value can affect what follows it.

use crate::error::Result;
use crate::interning::memory::map_entry;
use crate::json::array_state::{ArrayMonitor, Spare};
use crate::json::compared::Compared;
use crate::json::items;
use crate::json::query::Schemas;
use crate::stacks::cells::Cell;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{ArrayGroupId, ArrayStateId, StackId};
use crate::stacks::on::On;
use ffwd_regular::expr::texts::TextCounter;
use ffwd_regular::expr::Spelling;

/// With this many values some are to spare.
pub const SPARE_ITEMS: u64 = 8;

impl<O: On> Compared<'_, O> {
    /// Whether the value of the item before a stack affects what follows.
    pub fn spare(&self, stack: StackId) -> Result<Spare> {
        let &Cell { frame, parent, .. } = self.on.cell(stack);
        let Frame::ArrayAfter(id) = frame else { return Ok(Spare::None) };
        if let Some(&known) = self.json.arrays.spares.lock().get(&id) {
            return Ok(known);
        }
        let spare = match self.has_spare_item(id)? {
            true if self.json.arrays.history_at(id).is_some() => self.spare_beside(id)?,
            true if self.has_spare_string(id, parent)? => Spare::String,
            true => Spare::Item,
            false => Spare::None,
        };
        self.json.held.add(map_entry::<ArrayStateId, Spare>());
        self.json.arrays.spares.lock().insert(id, spare);
        Ok(spare)
    }

    /// Returns whether the array can continue after any last item as if the next ones need not
    /// differ from it. Returns false if that is hard to decide.
    fn has_spare_item(&self, id: ArrayStateId) -> Result<bool> {
        let state = self.json.arrays.states.get(id.0);
        let group = self.json.arrays.monitors(state);
        if state.history.is_some() {
            for progress in state.live.iter() {
                let monitor = &group.monitors[progress.monitor as usize];
                if monitor.misses_items(state, progress)? {
                    return Ok(false);
                }
            }
            return self.has_endless_scalars(id);
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
            // The last one and those that a token may contain, the required ones, and at least one.
            rest.min_items = rest.min_items.max(1).saturating_add(SPARE_ITEMS);
            rest.max_items = None;
            if rest.items.is_some()
                && !items::is_satisfiable(&self.json.schema, &rest, &state.came)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the next item can be one of many strings, or none.
    fn has_spare_string(&self, id: ArrayStateId, parent: StackId) -> Result<bool> {
        let Some(item) = self.json.item(self.on, id, parent)? else { return Ok(true) };
        let Frame::Value(query) = self.on.cell(item).frame else { return Ok(false) };
        for scalar in &self.json.value_starts(self.on, query)?.scalars {
            let lexeme = self.on.lexeme(scalar.lexeme);
            if lexeme.spec().spelling == Spelling::JsonString {
                return Ok(TextCounter::default().count(lexeme, lexeme.start(), SPARE_ITEMS)?
                    == SPARE_ITEMS);
            }
        }
        Ok(true)
    }

    /// Returns whether the items with infinitely many values include strings.
    fn spare_beside(&self, id: ArrayStateId) -> Result<Spare> {
        let Some(pending) = self.json.next_item(self.on, id)? else { return Ok(Spare::String) };
        for scalar in
            &self.json.value_starts(self.on, self.json.arrays.item_query(pending))?.scalars
        {
            let is_string = self.on.lexeme(scalar.lexeme).spec().spelling == Spelling::JsonString;
            if is_string && !self.is_endless_scalar(scalar.lexeme)? {
                return Ok(Spare::Item);
            }
        }
        Ok(Spare::String)
    }

    /// Whether further items can be scalars, or containers, without end.
    fn has_endless_scalars(&self, id: ArrayStateId) -> Result<bool> {
        let Some(pending) = self.json.next_item(self.on, id)? else { return Ok(true) };
        self.is_endless_query(self.json.arrays.item_query(pending), 1)
    }

    /// Whether arrays of a group have infinitely many values. May return `false` if that is hard to
    /// decide.
    pub(crate) fn is_endless_group(&self, id: ArrayGroupId, depth: usize) -> Result<bool> {
        let [ArrayMonitor { spec, .. }] = &*self.json.arrays.groups[id.0 as usize].monitors else {
            return Ok(false);
        };
        let is_open = spec.max_items.is_none() && spec.contains.is_empty() && !spec.repeats;
        let Some(items) = spec.items.filter(|_| is_open) else { return Ok(false) };
        if !self.json.schema.is_satisfiable(items)? {
            return Ok(false);
        }
        if !spec.unique {
            return Ok(true);
        }
        let mut schemas = Schemas::new(self.json.narrows);
        schemas.require(items);
        let query = self.json.query(schemas)?;
        Ok(depth > 0 && self.is_endless_query(query, depth - 1)?)
    }
}
