//! The lexemes in use, shared between grammars, under a byte budget.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::lexeme::{Lexeme, LexemeSpec};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

#[derive(Debug)]
struct Entry {
    lexeme: Arc<Lexeme>,
    /// Its size when it was last looked at; lexemes grow as they are used.
    bytes: AtomicUsize,
    /// Whether it was requested since then.
    used: AtomicBool,
}

#[derive(Debug, Default)]
struct Entries {
    /// Pinned lexemes, which are not part of the budget.
    kept: FxHashMap<LexemeSpec, Arc<Lexeme>>,
    by_spec: FxHashMap<LexemeSpec, Arc<Entry>>,
    /// All lexemes; the ones to examine next are in front.
    queue: VecDeque<Arc<Entry>>,
    bytes: usize,
}

/// Interns lexemes by their language. A lexeme that a grammar holds lives as long as the grammar,
/// even if the store has evicted it.
#[derive(Debug)]
pub struct LexemeStore {
    entries: Mutex<Entries>,
    max_bytes: AtomicUsize,
}

/// The cost of a new lexeme besides its expressions: its tables.
const NEW_STEPS: usize = 400;
/// How many lexemes are looked at with each insertion, so that no call pays for many.
const LOOKED_AT: usize = 4;

impl LexemeStore {
    /// An empty store with a budget in bytes for the lexemes that it may evict.
    pub fn new(max_bytes: usize) -> Self {
        Self { entries: Mutex::default(), max_bytes: AtomicUsize::new(max_bytes) }
    }

    /// Sets the budget, and evicts what exceeds it.
    pub fn set_max_bytes(&self, max_bytes: usize) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
        let mut let_go = Vec::new();
        let mut entries = self.entries.lock();
        // The first round clears the marks of recent requests.
        for _ in 0..entries.queue.len().div_ceil(LOOKED_AT) * 2 {
            let_go.extend(entries.let_go(max_bytes));
        }
        drop(entries);
        drop(let_go);
    }

    /// The lexeme of a spec, built if the store has none.
    ///
    /// # Errors
    /// Those of [`Lexeme::new`].
    pub fn get(&self, spec: &LexemeSpec) -> Result<Arc<Lexeme>, LimitExceeded> {
        if let Some(known) = self.entries.lock().get(spec) {
            return Ok(known);
        }
        meter::charge(NEW_STEPS)?;
        // Built outside the lock: a large pattern must not hold up other grammars.
        let lexeme = Arc::new(Lexeme::new(spec.clone())?);
        let bytes = lexeme.memory_bytes();
        let mut entries = self.entries.lock();
        let Entries { by_spec, queue, bytes: total, .. } = &mut *entries;
        let entry = by_spec.entry(spec.clone()).or_insert_with(|| {
            *total += bytes;
            let used = AtomicBool::new(true);
            let entry = Arc::new(Entry { lexeme, bytes: AtomicUsize::new(bytes), used });
            queue.push_back(entry.clone());
            entry
        });
        let lexeme = entry.lexeme.clone();
        let let_go = entries.let_go(self.max_bytes.load(Ordering::Relaxed));
        // Dropped outside the lock as well.
        drop(entries);
        drop(let_go);
        Ok(lexeme)
    }

    /// Pins the current lexemes, whatever the budget is.
    pub fn keep_all(&self) {
        let mut entries = self.entries.lock();
        let Entries { kept, by_spec, queue, bytes } = &mut *entries;
        kept.extend(by_spec.drain().map(|(spec, entry)| (spec, entry.lexeme.clone())));
        queue.clear();
        *bytes = 0;
    }

    /// Evicts every lexeme that is not pinned.
    pub fn clear(&self) {
        let mut entries = self.entries.lock();
        let kept = std::mem::take(&mut entries.kept);
        *entries = Entries { kept, ..Entries::default() };
    }

    /// How many lexemes the store holds.
    pub fn len(&self) -> usize {
        let entries = self.entries.lock();
        entries.kept.len() + entries.by_spec.len()
    }

    /// Whether the store holds no lexeme.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many bytes of memory its lexemes hold.
    pub fn memory_bytes(&self) -> usize {
        let entries = self.entries.lock();
        let kept = entries.kept.values();
        let lexemes = kept.chain(entries.by_spec.values().map(|entry| &entry.lexeme));
        lexemes.map(|lexeme| lexeme.memory_bytes()).sum()
    }
}

impl Entries {
    fn get(&self, spec: &LexemeSpec) -> Option<Arc<Lexeme>> {
        if let Some(kept) = self.kept.get(spec) {
            return Some(kept.clone());
        }
        let entry = self.by_spec.get(spec)?;
        entry.used.store(true, Ordering::Relaxed);
        Some(entry.lexeme.clone())
    }

    /// Measures a few lexemes again, and while they exceed the budget evicts unreferenced ones that
    /// were not used recently.
    fn let_go(&mut self, max_bytes: usize) -> Vec<Arc<Entry>> {
        let mut let_go = Vec::new();
        for _ in 0..LOOKED_AT.min(self.queue.len()) {
            let Some(entry) = self.queue.pop_front() else { break };
            let bytes = entry.lexeme.memory_bytes();
            self.bytes = self.bytes + bytes - entry.bytes.swap(bytes, Ordering::Relaxed);
            let used = entry.used.swap(false, Ordering::Relaxed);
            let held = Arc::strong_count(&entry.lexeme) > 1;
            if self.bytes > max_bytes && !used && !held {
                self.bytes -= bytes;
                self.by_spec.remove(entry.lexeme.spec());
                let_go.push(entry);
            } else {
                self.queue.push_back(entry);
            }
        }
        let_go
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
            // It is used repeatedly, and unreferenced.
            store.get(&spec(1)).unwrap();
            most = most.max(store.memory_bytes());
        }
        let one = kept.memory_bytes();
        assert!(one > 1000 && 2000 * one > 4 * 400_000, "{one}");
        assert!(most <= 400_000 + 2 * one, "{most}");
        let has = |number| store.entries.lock().by_spec.contains_key(&spec(number));
        assert!(has(0) && has(1) && has(1999) && !has(2) && !has(1000));
        store.set_max_bytes(0);
        assert_eq!(store.len(), 1);
        drop(kept);
        store.set_max_bytes(0);
        assert!(store.is_empty());
        store.get(&spec(3)).unwrap();
        store.keep_all();
        store.set_max_bytes(0);
        store.get(&spec(4)).unwrap();
        store.clear();
        assert_eq!(store.len(), 1);
        assert_eq!(store.get(&spec(3)).unwrap().id(), store.get(&spec(3)).unwrap().id());
    }

    #[test]
    fn a_lexeme_that_is_being_built_holds_up_no_other() {
        let store = Arc::new(LexemeStore::new(1 << 30));
        let spec = |text: &str| LexemeSpec::new(Spelling::Utf8, [Ast::literal(text)]);
        let slow = store.get(&spec("slow")).unwrap();
        let bytes = store.memory_bytes();
        let measured = slow.while_built(|| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let store = store.clone();
            std::thread::spawn(move || {
                for number in 0..2 * LOOKED_AT {
                    store.get(&spec(&number.to_string())).unwrap();
                }
                sender.send(store.memory_bytes()).unwrap();
            });
            // A thread that waits for the slow lexeme never answers.
            receiver.recv_timeout(std::time::Duration::from_secs(60))
        });
        assert!(measured.unwrap() > bytes, "{bytes}");
    }
}
