//! Rows of a batch, filled on several threads.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use rayon_core::{ThreadPool, ThreadPoolBuilder};

use super::Matcher;
use crate::automaton::EngineError;

/// A matcher and the row that is to get its mask.
pub type Work<'w> = (&'w Matcher, &'w mut [u32]);

/// How many rows a thread takes at a time.
const ROWS_AT_ONCE: usize = 8;
/// From how many bytes of rows on several threads copy known masks faster than one.
const MANY_BYTES: usize = 1 << 20;

/// Fills a row for each matcher, on at most `threads` threads: this one, and some of a pool that
/// all calls share. Known masks are copied first, and on this thread alone where they are few.
pub fn fill_bitmasks(work: Vec<Work<'_>>, threads: Option<usize>) -> Result<(), EngineError> {
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or_else(available).max(1);
    let bytes: usize = work.iter().map(|(_, row)| std::mem::size_of_val(&**row)).sum();
    if threads > 1 && work.len() > ROWS_AT_ONCE && bytes >= MANY_BYTES {
        let helpers = work.len().div_ceil(ROWS_AT_ONCE).min(threads) - 1;
        return Rows::new(work, Vec::new()).fill_all(helpers);
    }
    let mut missing: Vec<Work<'_>> = Vec::new();
    for (matcher, row) in work {
        if !matcher.fill_known(row) {
            missing.push((matcher, row));
        }
    }
    let helpers = missing.len().min(threads).saturating_sub(1);
    Rows::new(Vec::new(), missing).fill_all(helpers)
}

/// The rows of one call that no thread has taken yet.
struct Rows<'w> {
    /// Of which it is not known whether their masks are.
    unseen: Mutex<std::vec::IntoIter<Work<'w>>>,
    /// Of which the masks must be computed.
    missing: Mutex<Vec<Work<'w>>>,
    result: Mutex<Result<(), EngineError>>,
}

impl<'w> Rows<'w> {
    fn new(unseen: Vec<Work<'w>>, missing: Vec<Work<'w>>) -> Self {
        Self {
            unseen: Mutex::new(unseen.into_iter()),
            missing: Mutex::new(missing),
            result: Mutex::new(Ok(())),
        }
    }

    /// Fills all rows on this thread and so many others.
    fn fill_all(self, helpers: usize) -> Result<(), EngineError> {
        match (helpers > 0).then(pool).flatten() {
            None => self.fill_some(),
            Some(pool) => pool.threads.in_place_scope(|scope| {
                for _ in 0..helpers.min(pool.threads.current_num_threads()) {
                    scope.spawn(|_| self.fill_some());
                }
                self.fill_some();
            }),
        }
        self.result.into_inner()
    }

    /// Fills rows until none is left.
    fn fill_some(&self) {
        loop {
            let taken: Vec<Work<'w>> = self.unseen.lock().by_ref().take(ROWS_AT_ONCE).collect();
            if taken.is_empty() {
                break;
            }
            for (matcher, row) in taken {
                if !matcher.fill_known(row) {
                    self.missing.lock().push((matcher, row));
                }
            }
        }
        loop {
            let Some((matcher, row)) = self.missing.lock().pop() else { return };
            if let Err(error) = matcher.fill_bitmask(row) {
                *self.result.lock() = Err(error);
            }
        }
    }
}

/// Threads of one process: those of a process that was forked stay behind in it.
struct Pool {
    process: u32,
    threads: ThreadPool,
    /// Never dropped: its threads, which would be told to end, are not there.
    _of_parent: Option<Arc<Pool>>,
}

static POOL: ArcSwapOption<Pool> = ArcSwapOption::const_empty();
static STARTING: Mutex<()> = Mutex::new(());

/// One thread less than there are processors, as the caller is one too; `None` where no threads
/// can be started.
fn pool() -> Option<Arc<Pool>> {
    let process = std::process::id();
    let known = || POOL.load_full().filter(|pool| pool.process == process);
    if let Some(pool) = known() {
        return Some(pool);
    }
    // Not waited for: in a forked process nobody may be left to let it go.
    let _starting = STARTING.try_lock_for(std::time::Duration::from_millis(100))?;
    if let Some(pool) = known() {
        return Some(pool);
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = ThreadPoolBuilder::new()
        .num_threads((processors - 1).max(1))
        .thread_name(|number| format!("ffwd-{number}"))
        .build()
        .ok()?;
    let pool = Arc::new(Pool { process, threads, _of_parent: POOL.load_full() });
    POOL.store(Some(pool.clone()));
    Some(pool)
}
