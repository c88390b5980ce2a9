//! Applies masks to logits in place: logits of tokens that are not allowed become minus infinity.
//!
//! [`pair`] says which row gets which mask, [`mask_row`] does one row and [`apply`] a batch. They
//! handle only bits and floating-point numbers.

mod lane;
mod pairing;
mod row;

use parking_lot::Mutex;
use std::num::NonZeroUsize;
use std::thread;

pub use lane::{Lane, BFLOAT16_MINUS_INFINITY, FLOAT16_MINUS_INFINITY};
pub use pairing::{pair, PairingError};
pub use row::{is_starved, mask_copy, mask_row};

/// A thread with fewer bytes to write costs more than it saves: starting one takes as long as
/// writing about a megabyte.
const BYTES_PER_THREAD: usize = 4 << 20;

/// To estimate the writes, one word in this many is sampled.
const SAMPLED: usize = 16;

/// One row of logits and the words of its mask.
pub struct Work<'a, T> {
    /// Where the masked row is written.
    pub logits: &'a mut [T],
    /// The row to mask; `None` if it is `logits` itself.
    pub source: Option<&'a [T]>,
    /// The mask.
    pub words: &'a [u32],
}

impl<T: Lane> Work<'_, T> {
    /// Masks the row, and returns whether every allowed logit is `blocked`.
    fn carry_out(self, blocked: T, vocab_size: usize) -> bool {
        let Self { logits, source, words } = self;
        match source {
            None => mask_row(logits, words, vocab_size, blocked),
            Some(source) => mask_copy(logits, source, words, vocab_size, blocked),
        }
        is_starved(logits, words, blocked)
    }
}

/// Masks rows, on several threads if there is enough work, and returns for each whether every logit
/// that its mask allows is minus infinity.
///
/// `blocked` is minus infinity in the lane's format. `vocab_size` and the meaning of a row are
/// those of [`mask_row`]. `threads` is the most threads to use; the default is the machine's
/// number, limited by the amount to write.
pub fn apply<T: Lane>(
    work: Vec<Work<'_, T>>,
    blocked: T,
    vocab_size: usize,
    threads: Option<NonZeroUsize>,
) -> Vec<bool> {
    let threads = threads.map_or_else(|| worthwhile_threads(&work), NonZeroUsize::get);
    let threads = threads.clamp(1, work.len().max(1));
    if threads == 1 {
        return work.into_iter().map(|row| row.carry_out(blocked, vocab_size)).collect();
    }
    let mut starved = vec![false; work.len()];
    let queue = Mutex::new(work.into_iter().zip(&mut starved));
    let take_all = || loop {
        let next = queue.lock().next();
        let Some((row, starved)) = next else { return };
        *starved = row.carry_out(blocked, vocab_size);
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // If a helper cannot start, the others do its rows.
            if thread::Builder::new().spawn_scoped(scope, take_all).is_err() {
                break;
            }
        }
        take_all();
    });
    drop(queue);
    starved
}

/// The number of threads with enough to write.
fn worthwhile_threads<T>(work: &[Work<'_, T>]) -> usize {
    let all: usize = work.iter().map(|row| size_of_val(row.logits)).sum();
    if all < 2 * BYTES_PER_THREAD {
        return 1;
    }
    let written = |row: &Work<'_, T>| {
        if row.source.is_some() {
            return size_of_val(row.logits);
        }
        let sample = row.words.iter().step_by(SAMPLED);
        let (seen, full) = sample
            .fold((0, 0), |(seen, full), &word| (seen + 1, full + usize::from(word == u32::MAX)));
        // A part of the row at most, so it cannot overflow; without words all of it is written.
        size_of_val(row.logits) / seen.max(1) * (seen.max(1) - full)
    };
    match work.iter().map(written).sum::<usize>() / BYTES_PER_THREAD {
        0 | 1 => 1,
        parts => thread::available_parallelism().map_or(1, NonZeroUsize::get).min(parts),
    }
}

#[cfg(test)]
mod tests;
