//! How many bytes of memory values hold. Counted where something is added, so that asking is
//! a few additions; allocators, and containers that grow by doubling, take somewhat more.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory of a value besides itself.
pub trait Held {
    fn held_bytes(&self) -> usize {
        0
    }
}

impl Held for u64 {}

impl Held for String {
    fn held_bytes(&self) -> usize {
        self.capacity()
    }
}

/// The estimated memory of a hash map's entry. Maps double and are therefore less than half full on
/// average, and the allocator keeps the previous table for a while.
pub const fn map_entry<K, V>() -> usize {
    (std::mem::size_of::<(K, V)>() + 1) * 9 / 4
}

/// About what an element of a list takes that grows by doubling ahead of need, with its flag.
pub const fn element<T>() -> usize {
    (std::mem::size_of::<T>() + std::mem::size_of::<usize>()) * 2
}

/// A sum of bytes that any thread adds to.
#[derive(Debug, Default)]
pub struct Bytes(AtomicUsize);

impl Bytes {
    #[inline]
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    #[inline]
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
