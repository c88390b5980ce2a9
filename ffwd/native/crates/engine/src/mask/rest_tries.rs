//! Tries of the tokens' texts after the end of a lexeme, interned.
//!
//! Many states have equal tries. Results about a trie are cached by its number, so equal tries
//! should have the same number.

use std::hash::Hasher;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHasher};

use ffwd_tokenizer::vocabulary::{ByteTrie, NodeId, TokenId};

/// The number of tries from which on unused ones are searched.
const FIRST_SWEEP: usize = 1024;

/// The tries of one vocabulary that are in use.
#[derive(Debug, Default)]
pub struct RestTries {
    known: Mutex<TriesByHash>,
}

#[derive(Debug)]
struct TriesByHash {
    by_hash: FxHashMap<u64, Weak<ByteTrie>>,
    sweep_at: usize,
}

impl Default for TriesByHash {
    fn default() -> Self {
        Self { by_hash: FxHashMap::default(), sweep_at: FIRST_SWEEP }
    }
}

impl RestTries {
    /// The trie of sorted rests. A rest is a suffix of its token's text, so its length identifies
    /// it.
    pub(super) fn get(&self, rests: &[(&[u8], TokenId)]) -> Arc<ByteTrie> {
        let mut hasher = FxHasher::default();
        for (rest, token) in rests {
            hasher.write_u64((rest.len() as u64) << 32 | u64::from(token.0));
        }
        let hash = hasher.finish();
        let same = self.known.lock().by_hash.get(&hash).and_then(Weak::upgrade);
        if let Some(trie) = same.filter(|trie| is_of(trie, rests)) {
            return trie;
        }
        let trie = Arc::new(ByteTrie::from_sorted(rests));
        let mut known = self.known.lock();
        if known.by_hash.len() >= known.sweep_at {
            known.by_hash.retain(|_, trie| trie.strong_count() > 0);
            known.sweep_at = FIRST_SWEEP.max(2 * known.by_hash.len());
        }
        known.by_hash.insert(hash, Arc::downgrade(&trie));
        trie
    }
}

/// Whether a trie is that of some rests.
fn is_of(trie: &ByteTrie, rests: &[(&[u8], TokenId)]) -> bool {
    let of_trie = trie.below(NodeId::ROOT);
    trie.tokens_below(NodeId::ROOT).len() == rests.len()
        && of_trie
            .zip(rests)
            .all(|((depth, token), (rest, other))| token == *other && depth == rest.len())
}
