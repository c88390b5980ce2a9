//! Masks onto logits: what a bitmask does not allow becomes minus infinity, in place.
//!
//! [`pair`] says which row gets which mask, [`mask_row`] does one row and [`apply`] a batch. They know bits and floating-point numbers, no
//! token and no grammar.

mod lane;
mod pairing;
mod row;

use parking_lot::Mutex;
use std::num::NonZeroUsize;
use std::thread;

pub use lane::{Lane, BFLOAT16_MINUS_INFINITY, FLOAT16_MINUS_INFINITY};
pub use pairing::{pair, PairingError};
pub use row::mask_row;

/// A thread that has less than this to write costs more than it saves: to start one takes as long
/// as to write about a megabyte.
const BYTES_PER_THREAD: usize = 4 << 20;

/// To estimate the writes, one word in this many is sampled.
const SAMPLED: usize = 16;

/// One row of logits and the words of its mask.
pub type Work<'a, T> = (&'a mut [T], &'a [u32]);

/// Masks rows, on several threads if there is enough work.
///
/// `blocked` is minus infinity in the lane's format. `vocab_size` and the meaning of a row are
/// those of [`mask_row`]. `threads` is the most threads to use; the default is the machine's
/// number, limited by the amount to write.
pub fn apply<T: Lane>(
    work: Vec<Work<'_, T>>,
    blocked: T,
    vocab_size: usize,
    threads: Option<NonZeroUsize>,
) {
    let threads = threads.map_or_else(|| worthwhile_threads(&work), NonZeroUsize::get);
    let threads = threads.clamp(1, work.len().max(1));
    if threads == 1 {
        for (logits, words) in work {
            mask_row(logits, words, vocab_size, blocked);
        }
        return;
    }
    let queue = Mutex::new(work.into_iter());
    let take_all = || loop {
        let next = queue.lock().next();
        let Some((logits, words)) = next else { return };
        mask_row(logits, words, vocab_size, blocked);
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Without a helper the rows are still done, by those that are there.
            if thread::Builder::new().spawn_scoped(scope, take_all).is_err() {
                break;
            }
        }
        take_all();
    });
}

/// How many threads have enough to write.
fn worthwhile_threads<T>(work: &[Work<'_, T>]) -> usize {
    let all: usize = work.iter().map(|(logits, _)| size_of_val(*logits)).sum();
    if all < 2 * BYTES_PER_THREAD {
        return 1;
    }
    let written = |(logits, words): &Work<'_, T>| {
        let sample = words.iter().step_by(SAMPLED);
        let (seen, full) = sample
            .fold((0, 0), |(seen, full), &word| (seen + 1, full + usize::from(word == u32::MAX)));
        // A part of the row at most, so it cannot overflow; without words all of it is written.
        size_of_val(*logits) / seen.max(1) * (seen.max(1) - full)
    };
    match work.iter().map(written).sum::<usize>() / BYTES_PER_THREAD {
        0 | 1 => 1,
        parts => thread::available_parallelism().map_or(1, NonZeroUsize::get).min(parts),
    }
}

#[cfg(test)]
mod tests;
