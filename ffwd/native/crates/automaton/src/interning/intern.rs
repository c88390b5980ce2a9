//! Interning: values that are created by any thread, never changed, and found again by equality.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use parking_lot::Mutex;
use rustc_hash::FxHasher;

use crate::interning::memory::{element, Bytes, Held};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// A part of a value's hash, from which the whole hash is rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortHash(u32);

impl ShortHash {
    pub fn of<T: Hash + ?Sized>(value: &T) -> Self {
        let mut hasher = FxHasher::default();
        value.hash(&mut hasher);
        let hash = hasher.finish();
        Self((hash >> 32) as u32 ^ hash as u32)
    }

    fn spread(self) -> u64 {
        u64::from(self.0).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// Ids of values that are stored elsewhere, found by hash. Values are stored once, and are not
/// hashed again when the table grows.
#[derive(Debug, Default)]
pub struct Ids(HashTable<(ShortHash, u32)>);

impl Ids {
    /// The estimated memory of an id: see [`crate::interning::memory::map_entry`].
    pub const ENTRY_BYTES: usize = crate::interning::memory::map_entry::<ShortHash, u32>();

    /// The id of the value with this hash that `is` confirms.
    pub fn find(&self, hash: ShortHash, is: impl Fn(u32) -> bool) -> Option<u32> {
        let same = |&(known, id): &(ShortHash, u32)| known == hash && is(id);
        self.0.find(hash.spread(), same).map(|&(_, id)| id)
    }

    /// Adds the id of a value that has none yet.
    pub fn insert(&mut self, hash: ShortHash, id: u32) {
        self.0.insert_unique(hash.spread(), (hash, id), |(known, _)| known.spread());
    }
}

/// Values with small dense ids. Reading a value by its id takes no lock.
#[derive(Debug)]
pub struct Interner<T> {
    values: boxcar::Vec<T>,
    ids: Mutex<Ids>,
    held: Bytes,
    limit: &'static str,
    maximum: usize,
}

impl<T: Eq + Hash + Held> Interner<T> {
    /// `limit` names what is counted in the error when there are more than `maximum`.
    pub fn new(limit: &'static str, maximum: usize) -> Self {
        let (values, ids) = (boxcar::Vec::new(), Mutex::default());
        Self { values, ids, held: Bytes::default(), limit, maximum }
    }

    pub fn intern(&self, value: T) -> Result<u32, LimitExceeded> {
        let hash = ShortHash::of(&value);
        let mut ids = self.ids.lock();
        let is = |id: u32| self.values[id as usize] == value;
        if let Some(known) = ids.find(hash, is) {
            return Ok(known);
        }
        meter::charge(1)?;
        if self.values.count() >= self.maximum {
            return Err(LimitExceeded::new(self.limit, self.maximum));
        }
        self.held.add(element::<T>() + Ids::ENTRY_BYTES + value.held_bytes());
        let id = self.values.push(value) as u32;
        ids.insert(hash, id);
        Ok(id)
    }

    /// The id of the value with this hash that `is` confirms.
    pub fn find(&self, hash: ShortHash, is: impl Fn(&T) -> bool) -> Option<u32> {
        self.ids.lock().find(hash, |id| is(&self.values[id as usize]))
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

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_id() {
        let interner: Interner<String> = Interner::new("names", 3);
        assert!(interner.is_empty());
        let a = interner.intern("a".into()).unwrap();
        let b = interner.intern("b".into()).unwrap();
        assert_eq!((a, b), (0, 1));
        assert_eq!(interner.intern("a".into()).unwrap(), a);
        assert_eq!(interner.get(b), "b");
        interner.intern("c".into()).unwrap();
        let full = interner.intern("d".into()).unwrap_err();
        assert_eq!((full.limit, full.maximum), ("names", 3));
        // Known values can still be found.
        assert_eq!(interner.intern("c".into()).unwrap(), 2);
        assert_eq!(interner.len(), 3);
    }

    #[test]
    fn threads_that_intern_at_once_agree() {
        let interner: Interner<u64> = Interner::new("numbers", 10_000);
        let ids: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| (0..2000).map(|n| interner.intern(n * 7).unwrap()).collect())
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|of| *of == ids[0]));
        assert_eq!(interner.len(), 2000);
        assert!(ids[0].iter().zip(0..).all(|(&id, n)| *interner.get(id) == n * 7));
    }
}
