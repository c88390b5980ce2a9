//! One slot per state, filled at any time by any thread and read without a lock.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;

/// Small, since most grammars have few states and each slot of a bucket costs time when it is freed.
const FIRST_BITS: u32 = 3;
const BUCKETS: usize = (u32::BITS - FIRST_BITS + 1) as usize;

/// Slots by dense index, in buckets that double in size, so that no slot ever moves.
#[derive(Debug)]
pub struct Slots<T> {
    buckets: [OnceLock<Box<[ArcSwapOption<T>]>>; BUCKETS],
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { buckets: std::array::from_fn(|_| OnceLock::new()) }
    }
}

/// Bucket, place in it, and size of the bucket.
fn locate(index: u32) -> (usize, usize, usize) {
    let shifted = u64::from(index) + (1 << FIRST_BITS);
    let bucket = shifted.ilog2();
    ((bucket - FIRST_BITS) as usize, (shifted - (1 << bucket)) as usize, 1 << bucket)
}

impl<T> Slots<T> {
    fn slot(&self, index: u32) -> &ArcSwapOption<T> {
        let (bucket, place, size) = locate(index);
        let bucket = self.buckets[bucket]
            .get_or_init(|| (0..size).map(|_| ArcSwapOption::empty()).collect());
        &bucket[place]
    }

    /// Reads a slot in place.
    #[inline]
    pub fn with<R>(&self, index: u32, read: impl FnOnce(&T) -> R) -> Option<R> {
        let (bucket, place, _) = locate(index);
        let guard = self.buckets[bucket].get()?[place].load();
        guard.as_deref().map(read)
    }

    /// As [`Self::with`], for who may want to keep the value.
    #[inline]
    pub fn with_shared<R>(&self, index: u32, read: impl FnOnce(&Arc<T>) -> R) -> Option<R> {
        let (bucket, place, _) = locate(index);
        let guard = self.buckets[bucket].get()?[place].load();
        guard.as_ref().map(read)
    }

    pub fn set(&self, index: u32, value: Arc<T>) {
        self.slot(index).store(Some(value));
    }

    /// Empties every slot.
    pub fn clear(&self) {
        for bucket in self.buckets.iter().filter_map(OnceLock::get) {
            for slot in bucket {
                slot.store(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_a_slot_of_its_own() {
        let slots = Slots::default();
        for index in 0..1000 {
            slots.set(index, Arc::new(index));
        }
        for index in 0..1000 {
            assert_eq!(slots.with(index, |&value| value), Some(index));
        }
        assert_eq!(slots.with(5000, |&value| value), None);
        assert_eq!(locate(0), (0, 0, 8));
        assert_eq!(locate(7), (0, 7, 8));
        assert_eq!(locate(8), (1, 0, 16));
        assert_eq!(locate(u32::MAX).0, BUCKETS - 1);
    }
}
