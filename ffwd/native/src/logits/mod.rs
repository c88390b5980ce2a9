//! Masks onto logits: what a bitmask does not allow becomes minus infinity, in place.
//!
//! [`pair`] says which row gets which mask, [`mask_row`] does one row and [`apply`] a batch. They know bits and floating-point numbers, no
//! token and no grammar.

pub mod lane;
pub mod pairing;
pub mod row;

use parking_lot::Mutex;
use std::num::NonZeroUsize;
use std::thread;

pub use lane::{Lane, BFLOAT16_MINUS_INFINITY, FLOAT16_MINUS_INFINITY};
pub use pairing::{pair, PairingError};
pub use row::mask_row;

/// A thread that gets less memory than this to write to costs more than it saves: starting one
/// takes as long as writing about a megabyte.
const BYTES_PER_THREAD: usize = 4 << 20;

/// One row of logits and the words of its mask.
pub type Work<'a, T> = (&'a mut [T], &'a [u32]);

/// Masks rows, on several threads where there is enough to do.
///
/// `blocked` is minus infinity in the lane's format. `vocab_size` and the meaning of a row are
/// those of [`mask_row`]. `threads` is the most that may work at once; by default as many as the
/// machine has, but none for a batch that one thread is as fast with.
pub fn apply<T: Lane>(
    work: Vec<Work<'_, T>>,
    blocked: T,
    vocab_size: usize,
    threads: Option<NonZeroUsize>,
) {
    let bytes: usize = work.iter().map(|(logits, _)| size_of_val(*logits)).sum();
    let worthwhile = || match bytes / BYTES_PER_THREAD {
        0 | 1 => 1,
        parts => thread::available_parallelism().map_or(1, NonZeroUsize::get).min(parts),
    };
    let threads = threads.map_or_else(worthwhile, NonZeroUsize::get).clamp(1, work.len().max(1));
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

#[cfg(test)]
mod tests;
