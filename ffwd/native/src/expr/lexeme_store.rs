//! The lexemes in use, shared between grammars, under a byte budget.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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
    entries: Mutex<Entries>,
    clock: AtomicU64,
    max_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Entries {
    by_spec: FxHashMap<LexemeSpec, Entry>,
    /// How many lexemes have come since the size was last looked at.
    come: usize,
}

/// How often the size of the store is looked at: after so many insertions, and where it holds many
/// lexemes after one for each so many of them, so that looking costs little beside building.
const SWEEP_INTERVAL: usize = 16;

impl LexemeStore {
    pub fn new(max_bytes: usize) -> Self {
        let max_bytes = AtomicUsize::new(max_bytes);
        Self { entries: Mutex::default(), clock: AtomicU64::new(0), max_bytes }
    }

    /// Sets the budget, and lets go of what passes it.
    pub fn set_max_bytes(&self, max_bytes: usize) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
        self.sweep(&mut self.entries.lock().by_spec);
    }

    pub fn get(&self, spec: &LexemeSpec) -> Result<Arc<Lexeme>, LimitExceeded> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = self.entries.lock().by_spec.get_mut(spec) {
            entry.last_use = now;
            return Ok(entry.lexeme.clone());
        }
        // Built outside the lock: a large pattern must not hold up other grammars.
        let lexeme = Arc::new(Lexeme::new(spec.clone())?);
        let mut entries = self.entries.lock();
        let lexeme = entries
            .by_spec
            .entry(spec.clone())
            .or_insert_with(|| Entry { lexeme, last_use: now })
            .lexeme
            .clone();
        entries.come += 1;
        if entries.come > SWEEP_INTERVAL.max(entries.by_spec.len() / SWEEP_INTERVAL) {
            entries.come = 0;
            self.sweep(&mut entries.by_spec);
        }
        Ok(lexeme)
    }

    /// Drops what has not been used for longest, of what no grammar holds, until what is left takes
    /// three quarters of the budget.
    fn sweep(&self, entries: &mut FxHashMap<LexemeSpec, Entry>) {
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        let mut total = 0;
        let mut unused: Vec<(u64, usize)> = Vec::new();
        for entry in entries.values() {
            let bytes = entry.lexeme.memory_bytes();
            total += bytes;
            if Arc::strong_count(&entry.lexeme) == 1 {
                unused.push((entry.last_use, bytes));
            }
        }
        if total <= max_bytes {
            return;
        }
        unused.sort_unstable();
        let mut oldest_kept = 0;
        for (last_use, bytes) in unused {
            if total <= max_bytes / 4 * 3 {
                break;
            }
            total -= bytes;
            oldest_kept = last_use + 1;
        }
        entries.retain(|_, entry| {
            entry.last_use >= oldest_kept || Arc::strong_count(&entry.lexeme) > 1
        });
    }

    /// Lets go of every lexeme.
    pub fn clear(&self) {
        *self.entries.lock() = Entries::default();
    }

    pub fn len(&self) -> usize {
        self.entries.lock().by_spec.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn memory_bytes(&self) -> usize {
        self.entries.lock().by_spec.values().map(|entry| entry.lexeme.memory_bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Spelling;
    use super::*;
    use crate::regex::Ast;

    #[test]
    fn lexemes_that_nobody_uses_are_let_go_the_oldest_first() {
        let store = LexemeStore::new(400_000);
        let spec = |number: usize| {
            let text = Ast::literal(&format!("{number:0>200}"));
            LexemeSpec::new(Spelling::Utf8, [text])
        };
        let kept = store.get(&spec(0)).unwrap();
        let mut most = 0;
        for number in 1..2000 {
            store.get(&spec(number)).unwrap();
            // Used again and again, and held by nobody.
            store.get(&spec(1)).unwrap();
            most = most.max(store.memory_bytes());
        }
        let one = kept.memory_bytes();
        assert!(one > 1000 && 2000 * one > 4 * 400_000, "{one}");
        assert!(most <= 400_000 + (SWEEP_INTERVAL + 1) * one, "{most}");
        let has = |number| store.entries.lock().by_spec.contains_key(&spec(number));
        assert!(has(0) && has(1) && has(1999) && !has(2) && !has(1000));
        store.set_max_bytes(0);
        assert_eq!(store.len(), 1);
        drop(kept);
        store.set_max_bytes(0);
        assert!(store.is_empty());
    }
}
