//! A table of what was found lately in a larger memo, read without a lock.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustc_hash::FxBuildHasher;

/// The number of slots: about as many as masks are requested in again by a few grammars.
const SLOTS: usize = 1 << 12;

/// A value of the memo, and its key.
#[derive(Debug)]
pub struct Kept<K, V> {
    key: K,
    pub value: Arc<V>,
    /// Whether it was found here since the memo last asked.
    used: AtomicBool,
}

impl<K, V> Kept<K, V> {
    pub fn new(key: K, value: Arc<V>) -> Self {
        Self { key, value, used: AtomicBool::new(false) }
    }

    pub fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }
}

/// One slot per hash. The last one that was set is in it.
///
/// The owner of the memo sets and removes under its lock, so no slot has what the memo evicted.
#[derive(Debug)]
pub struct FoundAgain<K, V>(Box<[ArcSwapOption<Kept<K, V>>]>);

impl<K, V> Default for FoundAgain<K, V> {
    fn default() -> Self {
        Self((0..SLOTS).map(|_| ArcSwapOption::empty()).collect())
    }
}

impl<K: Eq + Hash, V> FoundAgain<K, V> {
    #[inline]
    fn slot(&self, key: &K) -> &ArcSwapOption<Kept<K, V>> {
        &self.0[(FxBuildHasher.hash_one(key) >> 32) as usize % SLOTS]
    }

    #[inline]
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        let slot = self.slot(key).load();
        let kept = slot.as_ref().filter(|kept| kept.key == *key)?;
        // Most are used already, and a write would take the line from other cores.
        if !kept.used.load(Ordering::Relaxed) {
            kept.used.store(true, Ordering::Relaxed);
        }
        Some(kept.value.clone())
    }

    /// Puts a value in its slot.
    pub fn set(&self, kept: &Arc<Kept<K, V>>) {
        self.slot(&kept.key).store(Some(kept.clone()));
    }

    /// Empties the slot of a value, if it has that value.
    pub fn remove(&self, kept: &Arc<Kept<K, V>>) {
        let slot = self.slot(&kept.key);
        let has_it = slot.load().as_ref().is_some_and(|other| Arc::ptr_eq(other, kept));
        if has_it {
            slot.store(None);
        }
    }

    pub fn clear(&self) {
        for slot in &self.0 {
            slot.store(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_own_key_until_it_is_removed() {
        let table: FoundAgain<u64, u64> = FoundAgain::default();
        let kept: Vec<_> =
            (0..3 * SLOTS as u64).map(|key| Arc::new(Kept::new(key, Arc::new(2 * key)))).collect();
        for each in &kept {
            table.set(each);
            assert_eq!(table.get(&each.key).as_deref(), Some(&(2 * each.key)));
            assert!(each.take_used() && !each.take_used());
        }
        let found = |key| table.get(&key).is_some_and(|value| *value == 2 * key);
        let left: Vec<bool> = kept.iter().map(|each| found(each.key)).collect();
        assert!(left.contains(&true) && left.contains(&false));
        for (each, left) in kept.iter().zip(left) {
            // One that lost its slot removes no other.
            if !left {
                table.remove(each);
            }
        }
        assert!((0..3 * SLOTS as u64).any(found));
        for each in &kept {
            table.remove(each);
        }
        assert!(!(0..3 * SLOTS as u64).any(found));
    }

    #[test]
    fn nothing_is_left_after_clearing() {
        let table: FoundAgain<u64, u64> = FoundAgain::default();
        let kept = Arc::new(Kept::new(7, Arc::new(1)));
        table.set(&kept);
        table.clear();
        assert!(table.get(&7).is_none());
        assert_eq!((Arc::strong_count(&kept), Arc::strong_count(&kept.value)), (1, 1));
    }
}
