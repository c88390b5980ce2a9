//! How many bytes of memory an automaton holds. Counted where something is added, so that asking is
//! a few additions; allocators, and containers that grow by doubling, take somewhat more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use super::config::{Automaton, Config, MAX_CELLS, MAX_CONFIGS};
use super::frame::Cell;
use super::intern::Ids;
use super::key_texts::MAX_TEXTS;

use ffwd_regular::expr::Lexeme;

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

/// Bytes by what holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutomatonBytes {
    /// Configurations and their threads.
    pub states: usize,
    /// Stacks, what follows them, and completions.
    pub stacks: usize,
    /// Frames of containers, what values are asked, and where they begin.
    pub frames: usize,
    /// The tries of names, and the texts of keys and items.
    pub keys: usize,
    /// Normal forms of the schema, and what is known of them.
    pub schema: usize,
    /// Lexemes in use, which other grammars may use too.
    pub lexemes: usize,
}

impl AutomatonBytes {
    /// The sum of all.
    pub fn total(&self) -> usize {
        self.states + self.stacks + self.frames + self.keys + self.schema + self.lexemes
    }
}

/// The bytes of the lexemes of one automaton. Lexemes grow by themselves, so they are measured
/// again after as many calls as there are lexemes, which is cheap compared with the calls.
#[derive(Debug, Default)]
pub struct LexemeBytes {
    asked: AtomicUsize,
    weighed: AtomicUsize,
    bytes: AtomicUsize,
}

/// How often lexemes are weighed anew at most, in questions.
const MIN_ASKED: usize = 64;

impl LexemeBytes {
    fn get(&self, lexemes: &boxcar::Vec<Arc<Lexeme>>) -> usize {
        let count = lexemes.count();
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if asked >= count.max(MIN_ASKED) || self.weighed.load(Ordering::Relaxed) * 2 < count {
            self.weigh(lexemes);
        }
        self.bytes.load(Ordering::Relaxed)
    }

    fn weigh(&self, lexemes: &boxcar::Vec<Arc<Lexeme>>) {
        self.asked.store(0, Ordering::Relaxed);
        self.weighed.store(lexemes.count(), Ordering::Relaxed);
        let bytes = lexemes.iter().map(|(_, lexeme)| lexeme.memory_bytes()).sum();
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}

impl Automaton {
    /// Looks at how large the lexemes have become, which is otherwise done now and then.
    pub fn weigh_lexemes(&self) {
        self.lexeme_bytes.weigh(&self.lexemes);
    }

    /// Returns whether little room is left, so that a limit on counts may be exceeded before the
    /// one on bytes: the grammar's on states or stacks, or a fixed one.
    pub fn is_crowded(&self, max_states: usize, max_stacks: usize) -> bool {
        let texts = self.json().map_or(0, |json| json.keys.texts.len());
        let most = |limit: usize, maximum: usize| limit.min(maximum) / 4 * 3;
        self.configs.count() > most(max_states, MAX_CONFIGS)
            || self.cells.count() > most(max_stacks, MAX_CELLS)
            || texts > MAX_TEXTS / 4 * 3
    }

    /// About how many bytes of memory all of this holds.
    pub fn memory_bytes(&self) -> AutomatonBytes {
        let state = element::<Config>() + Ids::ENTRY_BYTES;
        let cell = element::<Cell>() + Ids::ENTRY_BYTES;
        let mut bytes = AutomatonBytes {
            states: self.configs.count() * state + self.thread_bytes.get(),
            stacks: self.cells.count() * cell + self.flow_bytes.get() + self.completions.held.get(),
            lexemes: self.lexeme_bytes.get(&self.lexemes),
            ..AutomatonBytes::default()
        };
        bytes.stacks += self.rules().map_or(0, |rules| rules.memory_bytes());
        if let Some(json) = self.json() {
            bytes.frames = json.held.get()
                + json.queries.memory_bytes()
                + json.object_states.memory_bytes()
                + json.object_pendings.memory_bytes()
                + json.array_states.memory_bytes()
                + json.histories.memory_bytes()
                + json.array_pendings.memory_bytes();
            bytes.keys = json.keys.memory_bytes();
            bytes.schema = json.schema.memory_bytes();
        }
        bytes
    }
}
