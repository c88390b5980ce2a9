//! The target states of tokens: a cache that readers and writers share without locks.
//!
//! Most states continue with one or two tokens in all sequences, so a state has a few slots of its
//! own. More tokens, as within a string, go to a chain of tables, each eight times as large as the
//! one before. Entries of the last table replace each other, so a state holds at most
//! [`LAST_TABLE`] of them; lost entries are recomputed from the token's bytes.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

use ffwd_automaton::StateId;
use ffwd_tokenizer::vocabulary::TokenId;

/// Token and successor in one word, so that both are read and written at once. The token is one
/// more than its id, so 0 is an empty place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Transition(u64);

impl Transition {
    const EMPTY: Self = Self(0);
    const REFUSED: u32 = u32::MAX;

    fn new(token: TokenId, next: Option<StateId>) -> Self {
        let next = next.map_or(Self::REFUSED, |state| state.0);
        Self((u64::from(token.0) + 1) << 32 | u64::from(next))
    }

    #[inline]
    fn is_of(self, token: TokenId) -> bool {
        self.0 >> 32 == u64::from(token.0) + 1
    }

    #[inline]
    fn next(self) -> Option<StateId> {
        let next = self.0 as u32;
        (next != Self::REFUSED).then_some(StateId(next))
    }
}

/// The result of a search in a run of slots.
enum Searched {
    Entry(Transition),
    /// There is room, so no other place has it either.
    Empty,
    /// All places belong to others.
    Full,
}

fn find<'a>(places: impl Iterator<Item = &'a AtomicU64>, token: TokenId) -> Searched {
    for place in places {
        // The state that an entry names has been published before the entry.
        let entry = Transition(place.load(Ordering::Acquire));
        if entry.is_of(token) {
            return Searched::Entry(entry);
        }
        if entry == Transition::EMPTY {
            return Searched::Empty;
        }
    }
    Searched::Full
}

/// Puts an entry into the first free place; `false` where all belong to other tokens.
fn put<'a>(
    mut places: impl Iterator<Item = &'a AtomicU64>,
    token: TokenId,
    entry: Transition,
) -> bool {
    places.any(|place| {
        let free = Transition::EMPTY.0;
        match place.compare_exchange(free, entry.0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(other) => Transition(other).is_of(token),
        }
    })
}

/// How many tokens a state holds by itself.
const OWN_PLACES: usize = 3;

#[derive(Debug, Default)]
struct Row {
    own: [AtomicU64; OWN_PLACES],
    /// One more than the number of the first table; 0 where there is none.
    more: AtomicU32,
}

const FIRST_TABLE: usize = 16;
const GROWTH: usize = 8;
/// How many places the last table of a state has.
pub const LAST_TABLE: usize = FIRST_TABLE * GROWTH * GROWTH * GROWTH;
/// How many places of a table a token may be in.
const WINDOW: usize = 8;

#[derive(Debug)]
struct Table {
    places: Box<[AtomicU64]>,
    /// As in [`Row`].
    more: AtomicU32,
}

impl Table {
    fn new(size: usize) -> Self {
        Self { places: (0..size).map(|_| AtomicU64::new(0)).collect(), more: AtomicU32::new(0) }
    }

    fn window(&self, token: TokenId) -> impl Iterator<Item = &AtomicU64> {
        let size = self.places.len();
        let hash = u64::from(token.0).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        (0..WINDOW).map(move |offset| &self.places[(hash as usize + offset) % size])
    }
}

const FIRST_BITS: u32 = 6;
const BUCKETS: usize = (u32::BITS - FIRST_BITS + 1) as usize;

/// The memo of one automaton for one vocabulary.
#[derive(Debug)]
pub struct Transitions {
    /// By state, in buckets that double in size, so that no row ever moves.
    rows: [OnceLock<Box<[Row]>>; BUCKETS],
    tables: boxcar::Vec<Table>,
    bytes: AtomicUsize,
}

impl Default for Transitions {
    fn default() -> Self {
        Self {
            rows: std::array::from_fn(|_| OnceLock::new()),
            tables: boxcar::Vec::new(),
            bytes: AtomicUsize::new(0),
        }
    }
}

/// Bucket and place in it.
#[inline]
fn locate(state: StateId) -> (usize, usize) {
    let shifted = u64::from(state.0) + (1 << FIRST_BITS);
    let bucket = shifted.ilog2();
    ((bucket - FIRST_BITS) as usize, (shifted - (1 << bucket)) as usize)
}

impl Transitions {
    /// Returns the cached target of a token in a state, `Some(None)` for a rejected token.
    #[inline]
    pub fn get(&self, state: StateId, token: TokenId) -> Option<Option<StateId>> {
        let (bucket, place) = locate(state);
        let row = &self.rows[bucket].get()?[place];
        match find(row.own.iter(), token) {
            Searched::Entry(entry) => Some(entry.next()),
            Searched::Empty => None,
            Searched::Full => self.get_further(&row.more, token),
        }
    }

    fn get_further(&self, more: &AtomicU32, token: TokenId) -> Option<Option<StateId>> {
        let mut more = more;
        loop {
            let number = more.load(Ordering::Acquire).checked_sub(1)?;
            let table = self.tables.get(number as usize)?;
            match find(table.window(token), token) {
                Searched::Entry(entry) => return Some(entry.next()),
                Searched::Empty => return None,
                Searched::Full => more = &table.more,
            }
        }
    }

    /// Caches the target of a token; `None` for a refused one.
    pub fn set(&self, state: StateId, token: TokenId, next: Option<StateId>) {
        let entry = Transition::new(token, next);
        let (bucket, place) = locate(state);
        let rows = self.rows[bucket].get_or_init(|| {
            let size = 1 << (bucket as u32 + FIRST_BITS);
            self.bytes.fetch_add(size * std::mem::size_of::<Row>(), Ordering::Relaxed);
            (0..size).map(|_| Row::default()).collect()
        });
        let row = &rows[place];
        if put(row.own.iter(), token, entry) {
            return;
        }
        let mut size = FIRST_TABLE;
        let mut more = &row.more;
        loop {
            let Some(table) = self.table(more, size) else { return };
            if put(table.window(token), token, entry) {
                return;
            }
            if size == LAST_TABLE {
                if let Some(place) = table.window(token).next() {
                    place.store(entry.0, Ordering::Release);
                }
                return;
            }
            size *= GROWTH;
            more = &table.more;
        }
    }

    /// Returns the next table of a chain, and creates it if necessary.
    fn table(&self, more: &AtomicU32, size: usize) -> Option<&Table> {
        let mut number = more.load(Ordering::Acquire);
        if number == 0 {
            let made = self.tables.push(Table::new(size)) as u32 + 1;
            let bytes = size * 8 + std::mem::size_of::<Table>();
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            // Another thread may have been first: then the new table is never used.
            number = match more.compare_exchange(0, made, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => made,
                Err(first) => first,
            };
        }
        self.tables.get(number as usize - 1)
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next_of(state: u32, token: u32) -> Option<StateId> {
        (!(state + token).is_multiple_of(7)).then_some(StateId(state * 31 + token))
    }

    #[test]
    fn what_is_remembered_is_what_was_said() {
        let transitions = Transitions::default();
        for state in 0..300 {
            for token in 0..state {
                let (from, by) = (StateId(state), TokenId(token * 97 % 300));
                assert_eq!(transitions.get(from, by), None);
                transitions.set(from, by, next_of(state, by.0));
                assert_eq!(transitions.get(from, by), Some(next_of(state, by.0)));
            }
        }
        for state in 0..300 {
            for token in (0..state).map(|token| token * 97 % 300) {
                let known = transitions.get(StateId(state), TokenId(token));
                assert_eq!(known, Some(next_of(state, token)));
            }
        }
    }

    #[test]
    fn a_state_with_every_token_stays_small_and_says_nothing_wrong() {
        let transitions = Transitions::default();
        for token in 0..100_000 {
            transitions.set(StateId(5), TokenId(token), next_of(5, token));
        }
        let known: Vec<u32> =
            (0..100_000).filter(|&t| transitions.get(StateId(5), TokenId(t)).is_some()).collect();
        assert!(known.len() > LAST_TABLE / 2, "{}", known.len());
        for token in known {
            assert_eq!(transitions.get(StateId(5), TokenId(token)), Some(next_of(5, token)));
        }
        assert!(transitions.memory_bytes() < 100_000, "{}", transitions.memory_bytes());
    }

    #[test]
    fn threads_see_what_others_remembered_or_nothing() {
        let transitions = Transitions::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let transitions = &transitions;
                scope.spawn(move || {
                    for step in 0..40_000u32 {
                        let key = step.wrapping_mul(2_654_435_761) >> thread;
                        let (state, token) = (key % 40, key / 64 % 3000);
                        let known = transitions.get(StateId(state), TokenId(token));
                        assert!(known.is_none() || known == Some(next_of(state, token)));
                        transitions.set(StateId(state), TokenId(token), next_of(state, token));
                    }
                });
            }
        });
    }
}
