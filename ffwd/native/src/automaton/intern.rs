//! Interning: values that are created by any thread, never changed, and found again by equality.

use std::hash::Hash;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::memory::{element, map_entry, Bytes, Held};
use crate::error::LimitExceeded;

/// Values with small dense ids. Reading a value by its id takes no lock.
#[derive(Debug)]
pub struct Interner<T> {
    values: boxcar::Vec<T>,
    ids: Mutex<FxHashMap<T, u32>>,
    held: Bytes,
    limit: &'static str,
    maximum: usize,
}

impl<T: Clone + Eq + Hash + Held> Interner<T> {
    /// `limit` names what is counted in the error when there are more than `maximum`.
    pub fn new(limit: &'static str, maximum: usize) -> Self {
        let (values, ids) = (boxcar::Vec::new(), Mutex::default());
        Self { values, ids, held: Bytes::default(), limit, maximum }
    }

    pub fn intern(&self, value: T) -> Result<u32, LimitExceeded> {
        let mut ids = self.ids.lock();
        if let Some(&id) = ids.get(&value) {
            return Ok(id);
        }
        if self.values.count() >= self.maximum {
            return Err(LimitExceeded::new(self.limit, self.maximum));
        }
        let own = element::<T>() + map_entry::<T, u32>();
        self.held.add(own + 2 * value.held_bytes());
        let id = self.values.push(value.clone()) as u32;
        ids.insert(value, id);
        Ok(id)
    }

    #[inline]
    pub fn get(&self, id: u32) -> &T {
        &self.values[id as usize]
    }

    /// About how many bytes of memory the values hold.
    pub fn memory_bytes(&self) -> usize {
        self.held.get()
    }

    pub fn len(&self) -> usize {
        self.values.count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
