//! The lexemes of an automaton, by index.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::stacks::ids::LexemeId;
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::expr::{Lexeme, LexemeSpec, LexemeStore};

/// The lexemes that one automaton uses of those of its engine.
#[derive(Debug)]
pub struct Lexemes {
    store: Arc<LexemeStore>,
    all: boxcar::Vec<Arc<Lexeme>>,
    ids: Mutex<FxHashMap<LexemeSpec, LexemeId>>,
    bytes: LexemeBytes,
}

impl Lexemes {
    pub fn new(store: Arc<LexemeStore>) -> Self {
        let (all, ids) = (boxcar::Vec::new(), Mutex::default());
        Self { store, all, ids, bytes: LexemeBytes::default() }
    }

    /// Those of all automata of the engine.
    pub fn store(&self) -> &LexemeStore {
        &self.store
    }

    #[inline]
    pub fn get(&self, id: LexemeId) -> &Arc<Lexeme> {
        &self.all[id.0 as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.count()
    }

    /// Adds a lexeme at the next index, even if it has one already.
    pub fn push(&self, lexeme: Arc<Lexeme>) -> LexemeId {
        LexemeId(self.all.push(lexeme) as u32)
    }

    /// Adds a lexeme at the next index, by which it is found again.
    pub fn push_known(&self, lexeme: Arc<Lexeme>) -> LexemeId {
        let id = LexemeId(self.all.count() as u32);
        self.ids.lock().insert(lexeme.spec().clone(), id);
        self.push(lexeme)
    }

    /// The index of a lexeme, which is added if there is none.
    pub fn add(&self, spec: &LexemeSpec) -> Result<LexemeId, LimitExceeded> {
        if let Some(&known) = self.ids.lock().get(spec) {
            return Ok(known);
        }
        let lexeme = self.store.get(spec)?;
        let mut ids = self.ids.lock();
        if let Some(&known) = ids.get(spec) {
            return Ok(known);
        }
        let id = self.push(lexeme);
        ids.insert(spec.clone(), id);
        Ok(id)
    }

    /// Measures the lexemes, which is otherwise done only occasionally.
    pub fn weigh(&self) {
        self.bytes.weigh(&self.all);
    }

    /// About how many bytes of memory they hold.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.get(&self.all)
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

/// The number of questions between two measurements of the lexemes.
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
