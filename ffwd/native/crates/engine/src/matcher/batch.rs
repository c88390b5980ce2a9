//! Rows of a batch, filled on several threads.
//!
//! Missing masks are computed first, by state and not by row. The caller does not wait for helpers
//! that start late, as on a busy machine: it takes the remaining masks, and waits only for those
//! that a helper has begun. Rows belong to the caller, so with many rows it waits for the helpers
//! that fill them.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use parking_lot::{Condvar, Mutex};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Matcher;
use crate::engine::Compiled;
use ffwd_automaton::{EngineError, Result, StateId};
use ffwd_bounds::error::Breach;
use ffwd_bounds::meter::Meter;
use ffwd_bounds::section;

/// A matcher and the row that is to get its mask.
pub type MaskWork<'w> = (&'w Matcher, &'w mut [u32]);

/// The number of rows that a thread takes at a time.
const ROWS_AT_ONCE: usize = 8;
/// The number of bytes from which on several threads copy masks faster than one.
const MANY_BYTES: usize = 4 << 20;
/// Restricting a mask to canonical tokens takes about as long as copying this many rows.
const CANONICAL_ROWS: usize = 6;

/// How long the caller computes masks alone: waking a thread was measured at a third of that. Not
/// in tests, whose masks take less.
const ALONE: Duration = Duration::from_micros(if cfg!(test) { 0 } else { 300 });

/// Rows that were not filled; all others were.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unfilled {
    /// Their places in what was given, in order.
    pub rows: Vec<usize>,
    /// The error of the first of them.
    pub error: EngineError,
}

/// Fills a row for each matcher, on at most `threads` threads: this one and some of a shared pool.
pub fn fill_bitmasks(work: Vec<MaskWork<'_>>, threads: Option<usize>) -> Result<(), Unfilled> {
    let threads = threads.unwrap_or_else(available_threads).max(1);
    let work = work.into_iter().enumerate().collect();
    let left = fill_rows(work, threads, &|matcher, row| Ok(matcher.fill_known(row)))?;
    if left.is_empty() {
        return Ok(());
    }
    let failed = compute_unknown(left.iter().map(|(_, (matcher, _))| *matcher), threads);
    let fill = |matcher: &Matcher, row: &mut [u32]| {
        // A computation that exceeded a limit is not repeated for each row.
        if let Some(error) = matcher.unknown().and_then(|at| failed.get(&key(matcher, at))) {
            return Err(error.clone());
        }
        matcher.meter().run(|| matcher.fill_bitmask(row)).map(|()| true)
    };
    fill_rows(left, threads, &fill).map(drop)
}

/// How many threads run at once. Cached, because finding it reads files and takes longer than a
/// small batch.
fn available_threads() -> usize {
    static AVAILABLE: OnceLock<usize> = OnceLock::new();
    *AVAILABLE.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Fills a row, or returns the error.
type Fill<'f> = &'f (dyn Fn(&Matcher, &mut [u32]) -> Result<bool> + Sync);

/// Work, and its place in what was given.
type PlacedWork<'w> = (usize, MaskWork<'w>);

/// The rows of one call that no thread has taken, and the results of the others.
struct RemainingRows<'w> {
    unseen: Mutex<std::vec::IntoIter<PlacedWork<'w>>>,
    left: Mutex<Vec<PlacedWork<'w>>>,
    failed: Mutex<Vec<(usize, EngineError)>>,
}

/// Returns the rows that are not filled.
fn fill_rows<'w>(
    work: Vec<PlacedWork<'w>>,
    threads: usize,
    fill: Fill<'_>,
) -> Result<Vec<PlacedWork<'w>>, Unfilled> {
    let bytes = |(_, (matcher, row)): &PlacedWork<'_>| {
        let rows = if matcher.is_canonical() { CANONICAL_ROWS } else { 1 };
        rows * std::mem::size_of_val(&**row)
    };
    let is_much = || work.iter().map(bytes).sum::<usize>() >= MANY_BYTES;
    let helpers = work.len().div_ceil(ROWS_AT_ONCE).min(threads).saturating_sub(1);
    let pool = (helpers > 0 && is_much()).then(pool).flatten();
    let rows = RemainingRows {
        unseen: Mutex::new(work.into_iter()),
        left: Mutex::default(),
        failed: Mutex::default(),
    };
    match pool {
        None => rows.fill_some(fill),
        Some(pool) => pool.threads.in_place_scope(|scope| {
            for _ in 0..helpers.min(pool.threads.current_num_threads()) {
                let share = section::share();
                scope.spawn(|_| {
                    let _section = share.begin();
                    rows.fill_some(fill);
                });
            }
            rows.fill_some(fill);
        }),
    }
    let mut failed = rows.failed.into_inner();
    failed.sort_unstable_by_key(|&(place, _)| place);
    match failed.first().map(|(_, error)| error.clone()) {
        None => Ok(rows.left.into_inner()),
        Some(error) => {
            Err(Unfilled { rows: failed.into_iter().map(|(place, _)| place).collect(), error })
        }
    }
}

impl<'w> RemainingRows<'w> {
    /// Takes rows until none is left.
    fn fill_some(&self, fill: Fill<'_>) {
        loop {
            let taken: Vec<PlacedWork<'w>> =
                self.unseen.lock().by_ref().take(ROWS_AT_ONCE).collect();
            if taken.is_empty() {
                return;
            }
            for (place, (matcher, row)) in taken {
                match fill(matcher, row) {
                    Ok(true) => {}
                    Ok(false) => self.left.lock().push((place, (matcher, row))),
                    Err(error) => self.failed.lock().push((place, error)),
                }
            }
        }
    }
}

/// A grammar, a generation of it, and a state in that.
pub(crate) type BatchKey = (usize, u32, StateId);

fn key(matcher: &Matcher, (generation, state): (u32, StateId)) -> BatchKey {
    (Arc::as_ptr(matcher.compiled()) as usize, generation, state)
}

/// A state whose mask is not cached, and the bounds of the first call that needs it.
struct Unknown {
    key: BatchKey,
    compiled: Arc<Compiled>,
    meter: Meter,
}

/// The states whose masks could not be computed.
pub(crate) type Failed = FxHashMap<BatchKey, EngineError>;

fn compute(unknown: Unknown, failed: &Mutex<Failed>) {
    let Unknown { key, compiled, mut meter } = unknown;
    let generation = compiled.generation();
    let (_, number, state) = key;
    if generation.number == number {
        let done = meter.run(|| generation.masker.compute(&generation.automaton, state));
        compiled.settle(&generation);
        match done {
            // Another call that needs it is not cancelled.
            Err(error)
                if error.exceeded().is_some_and(|error| error.breach() == Breach::Cancelled) => {}
            Err(error) => drop(failed.lock().insert(key, error)),
            Ok(_) => {}
        }
    }
}

/// The masks to compute, which several threads share.
#[derive(Default)]
struct Masks {
    waiting: Mutex<(Vec<Unknown>, usize)>,
    none_begun: Condvar,
    failed: Mutex<Failed>,
}

/// Computes the masks of all states that have none.
pub(crate) fn compute_unknown<'m>(
    matchers: impl Iterator<Item = &'m Matcher>,
    threads: usize,
) -> Failed {
    let mut known = FxHashSet::default();
    let mut unknown: Vec<Unknown> = Vec::new();
    for matcher in matchers {
        if let Some(at) = matcher.unknown() {
            let key = key(matcher, at);
            if known.insert(key) {
                let (compiled, meter) = (matcher.compiled().clone(), matcher.meter());
                unknown.push(Unknown { key, compiled, meter });
            }
        }
    }
    if unknown.len().min(threads) < 2 {
        return Failed::default();
    }
    let failed = Mutex::new(Failed::default());
    let begun = Instant::now();
    while begun.elapsed() < ALONE {
        match unknown.pop() {
            Some(one) => compute(one, &failed),
            None => return failed.into_inner(),
        }
    }
    let helpers = unknown.len().min(threads).saturating_sub(1);
    let Some(pool) = (helpers > 0).then(pool).flatten() else { return failed.into_inner() };
    let waiting = Mutex::new((unknown, 0));
    let masks = Arc::new(Masks { waiting, failed, ..Masks::default() });
    for _ in 0..helpers.min(pool.threads.current_num_threads()) {
        let (masks, share) = (masks.clone(), section::share());
        pool.threads.spawn(move || {
            let _section = share.begin();
            masks.compute_some();
            drop(masks);
        });
    }
    masks.compute_some();
    masks.none_begun.wait_while(&mut masks.waiting.lock(), |(_, begun)| *begun > 0);
    let failed = std::mem::take(&mut *masks.failed.lock());
    failed
}

/// A mask in progress, until it is done or has failed.
struct BegunMask<'m>(&'m Masks);

impl Drop for BegunMask<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting.lock();
        waiting.1 -= 1;
        if waiting.1 == 0 {
            self.0.none_begun.notify_all();
        }
    }
}

impl Masks {
    fn begin(&self) -> Option<(Unknown, BegunMask<'_>)> {
        let mut waiting = self.waiting.lock();
        let unknown = waiting.0.pop()?;
        waiting.1 += 1;
        Some((unknown, BegunMask(self)))
    }

    fn compute_some(&self) {
        while let Some((unknown, _begun)) = self.begin() {
            compute(unknown, &self.failed);
        }
    }
}

impl Matcher {
    /// What tells its state from that of every other matcher, if its mask is not known.
    pub(crate) fn unknown_key(&self) -> Option<BatchKey> {
        self.unknown().map(|at| key(self, at))
    }
}

/// Does work that can be shared, on this thread and on some of the pool that all calls share.
pub(crate) fn helping(helpers: usize, work: &(dyn Fn() + Sync)) {
    let Some(pool) = (helpers > 0).then(pool).flatten() else { return work() };
    pool.threads.in_place_scope(|scope| {
        for _ in 0..helpers.min(pool.threads.current_num_threads()) {
            let share = section::share();
            scope.spawn(|_| {
                let _section = share.begin();
                work();
            });
        }
        work();
    });
}

/// Threads of one process: a forked process does not have them.
struct Pool {
    process: u32,
    threads: ThreadPool,
    /// Never dropped: its threads do not exist in this process.
    _of_parent: Option<Arc<Pool>>,
}

static POOL: ArcSwapOption<Pool> = ArcSwapOption::const_empty();
static STARTING: Mutex<()> = Mutex::new(());

/// One thread less than there are processors, because the caller is one too; `None` if no threads
/// can be started.
fn pool() -> Option<Arc<Pool>> {
    let process = std::process::id();
    let known = || POOL.load_full().filter(|pool| pool.process == process);
    if let Some(pool) = known() {
        return Some(pool);
    }
    // Not awaited: in a forked process the holder of the lock may not exist.
    let _starting = STARTING.try_lock_for(std::time::Duration::from_millis(100))?;
    if let Some(pool) = known() {
        return Some(pool);
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = ThreadPoolBuilder::new()
        .num_threads((processors - 1).max(1))
        .thread_name(|number| format!("ffwd-{number}"))
        // The caller repeats a helper's failed work, and fails itself.
        .panic_handler(|_| {})
        .build()
        .ok()?;
    let pool = Arc::new(Pool { process, threads, _of_parent: POOL.load_full() });
    POOL.store(Some(pool.clone()));
    Some(pool)
}
