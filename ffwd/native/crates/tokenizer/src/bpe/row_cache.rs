//! A bounded cache of the tokens that may not follow a token.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::vocabulary::TokenId;

/// The most tokens in all rows together: 8 MB of ids.
const MAX_TOKENS: usize = 1 << 21;

#[derive(Debug, Default)]
struct Rows {
    rows: FxHashMap<TokenId, Arc<[TokenId]>>,
    tokens: usize,
}

#[derive(Debug, Default)]
pub(super) struct RowCache {
    rows: Mutex<Rows>,
}

impl RowCache {
    /// Returns the row of a token; a missing one is computed outside the lock.
    pub fn get(&self, token: TokenId, compute: impl FnOnce() -> Arc<[TokenId]>) -> Arc<[TokenId]> {
        if let Some(row) = self.rows.lock().rows.get(&token) {
            return Arc::clone(row);
        }
        let row = compute();
        let mut cache = self.rows.lock();
        // Rows in use return soon, so the choice of evicted ones matters little.
        if cache.tokens + row.len() > MAX_TOKENS {
            *cache = Rows::default();
        }
        if row.len() <= MAX_TOKENS && cache.rows.insert(token, Arc::clone(&row)).is_none() {
            // A row takes space even if it is empty.
            cache.tokens += row.len().max(16);
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_forgets_rows_and_stays_right() {
        let cache = RowCache::default();
        let row = |token: TokenId| -> Arc<[TokenId]> { vec![token; 100_000].into() };
        for id in (0..50).chain(0..50) {
            let token = TokenId(id);
            assert_eq!(cache.get(token, || row(token))[..], row(token)[..]);
            assert!(cache.rows.lock().tokens <= MAX_TOKENS);
        }
        let computed = cache.get(TokenId(49), || vec![].into());
        assert_eq!(computed.len(), 100_000);
    }
}
