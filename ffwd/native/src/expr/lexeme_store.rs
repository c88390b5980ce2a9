//! The lexemes in use, shared between grammars, under a byte budget.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::lexeme::{Lexeme, LexemeSpec};
use crate::error::LimitExceeded;

#[derive(Debug)]
struct Entry {
    lexeme: Arc<Lexeme>,
    last_use: u64,
}

/// Interns lexemes by what they accept. A lexeme that a grammar holds stays alive with the
/// grammar, also when the store has let go of it.
#[derive(Debug)]
pub struct LexemeStore {
    entries: Mutex<FxHashMap<LexemeSpec, Entry>>,
    clock: AtomicU64,
    max_bytes: usize,
}

/// How often the size of the store is looked at, in insertions.
const SWEEP_INTERVAL: u64 = 256;

impl LexemeStore {
    pub fn new(max_bytes: usize) -> Self {
        Self { entries: Mutex::default(), clock: AtomicU64::new(0), max_bytes }
    }

    pub fn get(&self, spec: &LexemeSpec) -> Result<Arc<Lexeme>, LimitExceeded> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = self.entries.lock().get_mut(spec) {
            entry.last_use = now;
            return Ok(entry.lexeme.clone());
        }
        // Built outside the lock: a large pattern must not hold up other grammars.
        let lexeme = Arc::new(Lexeme::new(spec.clone())?);
        let mut entries = self.entries.lock();
        let lexeme = entries
            .entry(spec.clone())
            .or_insert_with(|| Entry { lexeme, last_use: now })
            .lexeme
            .clone();
        if now.is_multiple_of(SWEEP_INTERVAL) {
            self.sweep(&mut entries);
        }
        Ok(lexeme)
    }

    /// Drops the least recently used half of what no grammar holds while the budget is exceeded.
    fn sweep(&self, entries: &mut FxHashMap<LexemeSpec, Entry>) {
        let total: usize = entries.values().map(|entry| entry.lexeme.memory_bytes()).sum();
        if total <= self.max_bytes {
            return;
        }
        let mut uses: Vec<u64> = entries
            .values()
            .filter(|entry| Arc::strong_count(&entry.lexeme) == 1)
            .map(|entry| entry.last_use)
            .collect();
        uses.sort_unstable();
        if let Some(&median) = uses.get(uses.len() / 2) {
            entries
                .retain(|_, entry| entry.last_use > median || Arc::strong_count(&entry.lexeme) > 1);
        }
    }

    /// Lets go of every lexeme.
    pub fn clear(&self) {
        self.entries.lock().clear();
    }

    pub fn len(&self) -> usize {
        self.entries.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn memory_bytes(&self) -> usize {
        self.entries.lock().values().map(|entry| entry.lexeme.memory_bytes()).sum()
    }
}
