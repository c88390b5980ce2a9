//! Many texts at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::error::TextError;
use super::options::EncodeOptions;
use super::Tokenizer;
use crate::vocabulary::TokenId;

/// Fewer bytes than this are encoded before a thread has started.
const FEW_BYTES: usize = 32 << 10;

type Encoded = (usize, Result<Vec<TokenId>, TextError>);

impl Tokenizer {
    /// The tokens of each text, on at most `threads` threads; by default one a processor.
    ///
    /// An error is that of the first text that has one.
    pub fn encode_batch(
        &self,
        texts: &[&[u8]],
        options: &EncodeOptions,
        threads: Option<usize>,
    ) -> Result<Vec<Vec<TokenId>>, TextError> {
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        let threads = match bytes < FEW_BYTES {
            true => 1,
            false => threads.unwrap_or_else(available).clamp(1, texts.len().max(1)),
        };
        // Long texts first, so that none is left for one thread at the end.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        if threads > 1 {
            order.sort_by_key(|&index| std::cmp::Reverse(texts[index].len()));
        }
        let taken = AtomicUsize::new(0);
        let work = || {
            let mut out: Vec<Encoded> = Vec::new();
            while let Some(&index) = order.get(taken.fetch_add(1, Ordering::Relaxed)) {
                out.push((index, self.encode(texts[index], options)));
            }
            out
        };
        let mut encoded: Vec<Encoded> = std::thread::scope(|scope| {
            // Threads that cannot be started are not needed.
            let helpers: Vec<_> = (1..threads)
                .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
                .collect();
            let mut out = work();
            for helper in helpers {
                match helper.join() {
                    Ok(more) => out.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            out
        });
        encoded.sort_unstable_by_key(|&(index, _)| index);
        encoded
            .into_iter()
            .map(|(index, tokens)| {
                tokens.map_err(|error| TextError::InBatch { index, error: Box::new(error) })
            })
            .collect()
    }
}
