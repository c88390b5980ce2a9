//! Sections: work that a fork of the process must not interrupt.
//!
//! Only the forking thread continues in the new process. A lock that another thread held stays
//! locked there for ever, and its partial changes stay partial. Concurrent work of threads is
//! therefore done in sections: a thread that forks closes the gate, waits until no thread is
//! inside, forks, and opens the gate again.
//!
//! The process has one gate. It consists of atomics only, and a waiting thread polls it with short
//! sleeps: a lock or a queue of waiters would have the problem that the gate solves.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SHARDS: usize = 16;
/// How long a thread sleeps before it looks again.
const NAP: Duration = Duration::from_micros(50);
/// How long a section waits for a fork. One that takes longer may itself be waiting for this thread,
/// for a lock of the program that both want.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many sections of some of the threads are open; on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Shard(AtomicUsize);

/// The entrance of sections.
#[derive(Debug)]
struct Gate {
    open: [Shard; SHARDS],
    /// How many threads are about to fork.
    forking: AtomicUsize,
    /// How long a section waits for them.
    patience: Duration,
}

static GATE: Gate = Gate::new(PATIENCE);
static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OWN_SHARD: usize = NEXT_THREAD.fetch_add(1, Ordering::Relaxed) % SHARDS;
    /// How many sections this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The shard that counts this thread's sections.
    static SHARD_IN_USE: Cell<usize> = const { Cell::new(0) };
}

/// Returns the shard that counts this thread's next section. A section within another, on any
/// thread, counts in the same shard, so that a reader of one shard after the other misses none.
fn shard() -> usize {
    match DEPTH.get() {
        0 => OWN_SHARD.with(|own| *own),
        _ => SHARD_IN_USE.get(),
    }
}

/// While it lives, no other thread forks the process. It belongs to the thread that made it.
#[derive(Debug)]
#[must_use]
pub struct Section {
    shard: usize,
    _of_this_thread: PhantomData<*const ()>,
}

/// Part of a section, to be given to a thread that works for this one.
#[derive(Debug)]
#[must_use]
pub struct Share(usize);

/// Begins a section. It waits, for a second at most, while a thread is about to fork, unless this
/// thread is in a section already, for which the other waits.
pub fn enter() -> Section {
    let shard = shard();
    GATE.enter(shard, DEPTH.get() > 0);
    Section::of_this_thread(shard)
}

/// A part of what this thread is doing, which is in a section, for another one.
pub fn share() -> Share {
    let shard = shard();
    GATE.enter(shard, true);
    Share(shard)
}

impl Share {
    /// Continues as a section of the thread that received it.
    pub fn begin(self) -> Section {
        let shard = self.0;
        std::mem::forget(self);
        Section::of_this_thread(shard)
    }
}

impl Section {
    fn of_this_thread(shard: usize) -> Self {
        if DEPTH.get() == 0 {
            SHARD_IN_USE.set(shard);
        }
        DEPTH.set(DEPTH.get() + 1);
        Self { shard, _of_this_thread: PhantomData }
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        GATE.leave(self.shard);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        GATE.leave(self.0);
    }
}

/// Call this before a fork. It lets no section begin, and waits until those of other threads have
/// ended. Returns whether they have, within `at_most`. Either [`after_in_parent`] or
/// [`after_in_child`] must follow.
#[must_use]
pub fn before_fork(at_most: Duration) -> bool {
    GATE.close(DEPTH.get(), at_most)
}

/// After a fork, in the process that forked.
pub fn after_in_parent() {
    GATE.forking.fetch_sub(1, Ordering::SeqCst);
}

/// Call this after a fork in the new process, which has only this thread.
pub fn after_in_child() {
    GATE.reset(shard(), DEPTH.get());
}

impl Gate {
    const fn new(patience: Duration) -> Self {
        let open = [const { Shard(AtomicUsize::new(0)) }; SHARDS];
        Self { open, forking: AtomicUsize::new(0), patience }
    }

    fn enter(&self, shard: usize, is_inside: bool) {
        // Either this thread sees that one is about to fork, or that one sees the section: each
        // writes before it reads, in one order for all.
        self.open[shard].0.fetch_add(1, Ordering::SeqCst);
        if !is_inside && self.forking.load(Ordering::SeqCst) > 0 {
            self.wait(shard);
        }
    }

    #[cold]
    fn wait(&self, shard: usize) {
        let begun = Instant::now();
        while self.forking.load(Ordering::SeqCst) > 0 && begun.elapsed() < self.patience {
            self.leave(shard);
            while self.forking.load(Ordering::Relaxed) > 0 && begun.elapsed() < self.patience {
                thread::sleep(NAP);
            }
            self.open[shard].0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn leave(&self, shard: usize) {
        // In a new process the parts that this thread had given to others are already subtracted.
        let less = |open: usize| Some(open.saturating_sub(1));
        let _ = self.open[shard].0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }

    fn count(&self) -> usize {
        self.open.iter().map(|shard| shard.0.load(Ordering::SeqCst)).sum()
    }

    fn close(&self, own: usize, at_most: Duration) -> bool {
        self.forking.fetch_add(1, Ordering::SeqCst);
        let begun = Instant::now();
        while self.count() > own {
            if begun.elapsed() > at_most {
                return false;
            }
            thread::sleep(NAP);
        }
        true
    }

    fn reset(&self, shard: usize, own: usize) {
        for other in &self.open {
            other.0.store(0, Ordering::SeqCst);
        }
        self.open[shard].0.store(own, Ordering::SeqCst);
        self.forking.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn nobody_is_inside_while_the_gate_is_closed() {
        // Without a time limit, however rarely a thread gets a processor.
        let gate = Gate::new(Duration::MAX);
        let (inside, done) = (AtomicUsize::new(0), AtomicBool::new(false));
        let entered = AtomicUsize::new(0);
        thread::scope(|scope| {
            for shard in 0..4 {
                let (gate, inside, done, entered) = (&gate, &inside, &done, &entered);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        gate.enter(shard, false);
                        inside.fetch_add(1, Ordering::SeqCst);
                        entered.fetch_add(1, Ordering::Relaxed);
                        // Within a section another one begins at once, whoever waits.
                        gate.enter(shard, true);
                        gate.leave(shard);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        gate.leave(shard);
                    }
                });
            }
            for _ in 0..50 {
                assert!(gate.close(0, Duration::MAX));
                for _ in 0..100 {
                    assert_eq!(inside.load(Ordering::SeqCst), 0);
                }
                gate.forking.fetch_sub(1, Ordering::SeqCst);
                let before = entered.load(Ordering::Relaxed);
                while entered.load(Ordering::Relaxed) < before + 10 {
                    thread::yield_now();
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(gate.count(), 0);
    }

    #[test]
    fn own_sections_are_not_waited_for_and_others_not_for_ever() {
        let patience = Duration::from_millis(2);
        let gate = Gate::new(patience);
        gate.enter(3, false);
        assert!(gate.close(1, Duration::ZERO));
        gate.forking.fetch_sub(1, Ordering::SeqCst);
        gate.enter(5, false);
        assert!(!gate.close(1, patience));
        // Nor does a section wait for ever for a fork.
        let begun = Instant::now();
        gate.enter(6, false);
        assert!(begun.elapsed() >= patience);
        // The other thread does not exist in the new process.
        gate.reset(3, 1);
        assert_eq!(gate.count(), 1);
        assert!(gate.close(1, Duration::ZERO));
    }

    #[test]
    fn a_share_keeps_the_gate_from_closing_until_it_ends() {
        // The gate of the process, which other tests use, so only what holds whoever is inside.
        let section = enter();
        let share = share();
        let shard = share.0;
        drop(section);
        let ended = thread::spawn(move || {
            let section = share.begin();
            assert_eq!(section.shard, shard);
            assert_eq!(DEPTH.get(), 1);
            // Work that is handed over counts in the same shard.
            assert_eq!(super::share().0, shard);
            drop(section);
            DEPTH.get()
        });
        assert_eq!(ended.join().unwrap(), 0);
        assert_eq!(DEPTH.get(), 0);
    }
}
