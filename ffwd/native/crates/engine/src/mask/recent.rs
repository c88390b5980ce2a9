//! A memo under a byte budget.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

use rustc_hash::{FxBuildHasher, FxHashMap};

/// A value that may be found without the memo.
pub trait Recent: Clone {
    /// Returns whether it was found without the memo since this was last asked.
    fn take_used(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct MemoEntry<V> {
    value: V,
    bytes: usize,
    /// Whether it was requested since its place in the queue was last examined.
    used: bool,
}

/// The number of parts. A single map would occasionally move all of its hundreds of thousands of
/// entries at once, and some call would pay for that.
const PARTS: usize = 64;

/// How many keys of the queue lie together, for the same reason.
const RUN: usize = 1024;

/// A map in parts that grow one by one.
#[derive(Debug)]
struct Parted<K, V>(Box<[FxHashMap<K, V>]>);

impl<K: Eq + Hash, V> Parted<K, V> {
    fn new() -> Self {
        Self((0..PARTS).map(|_| FxHashMap::default()).collect())
    }

    fn part(&mut self, key: &K) -> &mut FxHashMap<K, V> {
        // These bits differ from those by which the parts place their entries.
        let hash = FxBuildHasher.hash_one(key) >> 40;
        &mut self.0[hash as usize % PARTS]
    }
}

/// A queue in runs, so that entries never move.
#[derive(Debug)]
struct Queue<K> {
    runs: VecDeque<VecDeque<K>>,
    len: usize,
}

impl<K> Queue<K> {
    fn new() -> Self {
        Self { runs: VecDeque::new(), len: 0 }
    }

    fn push_back(&mut self, key: K) {
        self.len += 1;
        match self.runs.back_mut() {
            Some(run) if run.len() < RUN => run.push_back(key),
            _ => self.runs.push_back(VecDeque::from([key])),
        }
    }

    fn pop_front(&mut self) -> Option<K> {
        let run = self.runs.front_mut()?;
        let key = run.pop_front();
        if run.is_empty() {
            self.runs.pop_front();
        }
        self.len -= usize::from(key.is_some());
        key
    }
}

/// A cache of recently used entries. Each insertion evicts about as much as it adds, so that no
/// call pays for many.
#[derive(Debug)]
pub struct RecentMemo<K, V> {
    /// Pinned entries, which are not part of the budget.
    kept: FxHashMap<K, MemoEntry<V>>,
    entries: Parted<K, MemoEntry<V>>,
    /// All keys; the ones to examine next are in front.
    queue: Queue<K>,
    bytes: usize,
    max_bytes: usize,
}

impl<K: Copy + Eq + Hash, V: Recent> RecentMemo<K, V> {
    pub fn new(max_bytes: usize) -> Self {
        Self {
            kept: FxHashMap::default(),
            entries: Parted::new(),
            queue: Queue::new(),
            bytes: 0,
            max_bytes,
        }
    }

    pub fn get(&mut self, key: &K) -> Option<V> {
        if let Some(entry) = self.kept.get(key) {
            return Some(entry.value.clone());
        }
        let entry = self.entries.part(key).get_mut(key)?;
        entry.used = true;
        Some(entry.value.clone())
    }

    /// Stores a value of this many bytes, and replaces an earlier one. Returns the evicted values,
    /// so that they can be dropped without a lock.
    pub fn insert(&mut self, key: K, value: V, bytes: usize) -> Vec<V> {
        if self.kept.contains_key(&key) || self.entries.part(&key).contains_key(&key) {
            return Vec::new();
        }
        let let_go = self.let_go(bytes);
        self.bytes += bytes;
        self.queue.push_back(key);
        self.entries.part(&key).insert(key, MemoEntry { value, bytes, used: false });
        let_go
    }

    /// Sets the budget. Returns the entries that exceed it.
    pub fn set_max_bytes(&mut self, max_bytes: usize) -> Vec<V> {
        self.max_bytes = max_bytes;
        self.let_go(0)
    }

    /// Evicts entries to make room for this many bytes.
    fn let_go(&mut self, bytes: usize) -> Vec<V> {
        let mut let_go = Vec::new();
        // At most two rounds: a used entry is spared once.
        for _ in 0..2 * self.queue.len {
            if self.bytes + bytes <= self.max_bytes {
                break;
            }
            let Some(oldest) = self.queue.pop_front() else { break };
            let Some(entry) = self.entries.part(&oldest).get_mut(&oldest) else { continue };
            let used = entry.value.take_used() || entry.used;
            if used {
                entry.used = false;
                self.queue.push_back(oldest);
            } else if let Some(entry) = self.entries.part(&oldest).remove(&oldest) {
                self.bytes -= entry.bytes;
                let_go.push(entry.value);
            }
        }
        let_go
    }

    /// Pins the current entries.
    pub fn keep_all(&mut self) {
        self.kept.extend(self.entries.0.iter_mut().flat_map(FxHashMap::drain));
        self.queue = Queue::new();
        self.bytes = 0;
    }

    /// Evicts all entries that are not pinned.
    pub fn clear(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        *self = Self { kept, ..Self::new(self.max_bytes) };
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.kept.values().map(|entry| entry.bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Recent for u32 {}

    #[test]
    fn what_was_not_asked_for_goes_first() {
        let mut memo: RecentMemo<u32, u32> = RecentMemo::new(30);
        for key in 0..3 {
            assert!(memo.insert(key, key, 10).is_empty());
        }
        assert_eq!(memo.get(&0), Some(0));
        assert_eq!(memo.insert(3, 3, 10), [1]);
        assert_eq!(memo.insert(4, 4, 15), [2, 0]);
        assert_eq!((memo.get(&3), memo.get(&4), memo.memory_bytes()), (Some(3), Some(4), 25));
        // If all entries were used, one is evicted all the same.
        assert_eq!(memo.insert(5, 5, 20).len(), 2);
        assert_eq!(memo.get(&5), Some(5));
        // A value larger than the budget stays until the next one.
        memo.insert(6, 6, 100);
        assert_eq!(memo.get(&6), Some(6));
        assert_eq!(memo.insert(7, 7, 1), [6]);
        memo.keep_all();
        assert!(memo.set_max_bytes(0).is_empty());
        memo.insert(8, 8, 1);
        assert_eq!(memo.insert(9, 9, 1), [8]);
        memo.clear();
        assert_eq!((memo.get(&7), memo.get(&9), memo.memory_bytes()), (Some(7), None, 1));
    }
}
