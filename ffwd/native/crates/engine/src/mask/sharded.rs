//! A counter that many threads can increment without getting in each other's way.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const SHARDS: usize = 16;

/// On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(AtomicU64);

/// Counts on one of several cache lines, by thread: a single line would move between cores with
/// every hit of every thread.
#[derive(Debug)]
pub struct Sharded {
    shards: Box<[Shard; SHARDS]>,
}

impl Default for Sharded {
    fn default() -> Self {
        Self { shards: Box::new(std::array::from_fn(|_| Shard::default())) }
    }
}

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OWN_SHARD: usize = NEXT_THREAD.fetch_add(1, Ordering::Relaxed) % SHARDS;
}

impl Sharded {
    #[inline]
    pub fn increment(&self) {
        // A thread that is ending has no shard any more.
        let own = OWN_SHARD.try_with(|own| *own).unwrap_or(0);
        self.shards[own % SHARDS].0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.shards.iter().map(|shard| shard.0.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost() {
        let counter = Sharded::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * SHARDS {
                scope.spawn(|| (0..1000).for_each(|_| counter.increment()));
            }
        });
        assert_eq!(counter.get(), 2000 * SHARDS as u64);
    }
}
