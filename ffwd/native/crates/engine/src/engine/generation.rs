//! Everything that is built lazily for one compiled grammar, up to its memory limit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use parking_lot::RwLock;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::transitions::Transitions;
use crate::mask::token_set::TokenMask;
use crate::mask::{Masker, Target};
use ffwd_automaton::{Automaton, AutomatonBytes, StateId, Threads};
use ffwd_bounds::limits::Limits;
use ffwd_tokenizer::canonical::{Context, ContextId, Liveness, Searched, Way};
use ffwd_tokenizer::vocabulary::TokenId;

/// Built objects, whose state ids are valid only here. When it exceeds the grammar's memory, an
/// empty one replaces it; see [`super::Compiled`].
#[derive(Debug)]
pub struct Generation {
    /// Unlike that of any other generation of the grammar.
    pub number: u32,
    pub automaton: Box<Automaton>,
    pub masker: Box<Masker>,
    /// The target states of tokens.
    pub transitions: Transitions,
    /// Cached forced tokens.
    pub forced: ForcedMemo,
    /// The first of them, for requests that ask at every token.
    pub first_forced: FirstForced,
    /// The masks of canonical tokens, by the state and the tokens before them.
    pub canonical: Memo<(StateId, Context), Arc<TokenMask>>,
    /// Tokens without a canonical continuation in the grammar, among all that are read in one way,
    /// whatever texts the state has recorded.
    pub dead: ForcedMemo<(Threads, Way)>,
    /// Whether some text continues canonically from a state and the context of the tokens before it.
    pub live: LivePlaces,
    /// Tokens that may come in a state within a piece and have a canonical continuation.
    pub followers: ForcedMemo<(Threads, Way)>,
    /// The tokens of configurations without recorded texts, by what they lead to.
    pub targets: Memo<Threads, Arc<[Target]>>,
    /// The tokens after which something may be forced, by the state before them, and whether masks
    /// are narrow.
    pub openers: ForcedMemo<(StateId, bool)>,
    /// The forced tokens of requests, by where they begin.
    pub runs: ForcedMemo<RunKey>,
    /// Bytes of the objects that any text needs, and of those rebuilt for texts that moved here.
    needed: AtomicUsize,
}

/// Bytes of a generation by what holds them.
#[derive(Clone, Copy, Debug, Default)]
pub struct GenerationBytes {
    pub automaton: AutomatonBytes,
    pub masks: usize,
    pub transitions: usize,
    pub forced: usize,
}

impl GenerationBytes {
    pub fn total(&self) -> usize {
        self.automaton.total() + self.masks + self.transitions + self.forced
    }
}

impl Generation {
    pub fn new(number: u32, automaton: Box<Automaton>, masker: Box<Masker>) -> Self {
        let generation = Self {
            number,
            automaton,
            masker,
            transitions: Transitions::default(),
            forced: ForcedMemo::default(),
            first_forced: FirstForced::default(),
            canonical: Memo::default(),
            dead: ForcedMemo::default(),
            live: LivePlaces::default(),
            followers: ForcedMemo::default(),
            targets: Memo::default(),
            openers: ForcedMemo::default(),
            runs: ForcedMemo::default(),
            needed: AtomicUsize::new(0),
        };
        generation.automaton.weigh_lexemes();
        generation.needed.store(generation.memory_bytes().total(), Ordering::Relaxed);
        generation
    }

    /// About how many bytes of memory it holds. That of the vocabulary and of lexeme masks, which
    /// are the engine's, is not counted; that of lexemes is, though other grammars may use them.
    pub fn memory_bytes(&self) -> GenerationBytes {
        // Beside each mask there is room for it.
        let rooms = self.automaton.num_states() * 3 * std::mem::size_of::<usize>();
        GenerationBytes {
            automaton: self.automaton.memory_bytes(),
            masks: self.masker.memory_bytes() + rooms + self.canonical.memory_bytes(),
            transitions: self.transitions.memory_bytes(),
            forced: self.forced.memory_bytes()
                + self.first_forced.memory_bytes()
                + self.dead.memory_bytes()
                + self.live.memory_bytes()
                + self.followers.memory_bytes()
                + self.targets.memory_bytes()
                + self.openers.memory_bytes()
                + self.runs.memory_bytes(),
        }
    }

    /// Returns the most bytes it may hold: the budget, or twice what it needs. At least as much is
    /// then built between two generations as was rebuilt for matchers.
    pub fn limit(&self, budget: usize) -> usize {
        budget.max(self.needed.load(Ordering::Relaxed).saturating_mul(2))
    }

    /// Returns whether it should be evicted, although matchers must then parse their sequences
    /// again.
    pub fn is_full(&self, budget: usize, limits: &Limits) -> bool {
        let held = self.memory_bytes().total();
        held > self.limit(budget)
            || self.automaton.is_crowded(limits.states, limits.stacks) && held > self.limit(0)
    }

    /// Records what was built here for a text that moved.
    pub fn moved(&self, bytes_before: usize) {
        self.automaton.weigh_lexemes();
        let built = self.memory_bytes().total().saturating_sub(bytes_before);
        self.needed.fetch_add(built, Ordering::Relaxed);
    }
}

/// A state, the context of the tokens before it, and whether to look ahead.
pub type ForcedKey = (StateId, Context, bool);

const SHARDS: usize = 16;
/// How many sequences of forced tokens one shard keeps, and how long each may be.
const MAX_KEPT: usize = 1024;
pub const MAX_KEPT_TOKENS: usize = 256;

/// What a [`Memo`] keeps.
pub trait Kept: Clone {
    /// How many one shard keeps.
    const MOST: usize;

    /// About how many bytes of memory it holds.
    fn bytes(&self) -> usize;
}

impl Kept for Arc<[TokenId]> {
    const MOST: usize = MAX_KEPT;

    fn bytes(&self) -> usize {
        16 + size_of_val(&**self)
    }
}

impl Kept for Liveness {
    const MOST: usize = MAX_KEPT;

    fn bytes(&self) -> usize {
        0
    }
}

impl Kept for Arc<[Target]> {
    const MOST: usize = 4;

    fn bytes(&self) -> usize {
        self.iter().map(Target::memory_bytes).sum()
    }
}

impl Kept for Arc<TokenMask> {
    /// With 128,000 tokens, all masks of all shards together take 8 MB.
    const MOST: usize = 32;

    fn bytes(&self) -> usize {
        self.memory_bytes()
    }
}

/// Values by key. Readers block no thread, and only readers of the same shard wait for a writer.
#[derive(Debug)]
pub struct Memo<K, V> {
    shards: [RwLock<FxHashMap<K, V>>; SHARDS],
    bytes: AtomicUsize,
}

/// Whether canonical texts continue from a place.
pub type LivePlaces = Memo<(Threads, Context, Searched), Liveness>;

/// Tokens by state.
pub type ForcedMemo<K = ForcedKey> = Memo<K, Arc<[TokenId]>>;

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| RwLock::default()), bytes: AtomicUsize::new(0) }
    }
}

impl<K: Eq + std::hash::Hash, V: Kept> Memo<K, V> {
    fn shard(&self, key: &K) -> &RwLock<FxHashMap<K, V>> {
        use std::hash::BuildHasher;
        let hash = FxBuildHasher.hash_one(key);
        &self.shards[(hash >> 48) as usize % SHARDS]
    }

    pub fn get(&self, key: &K) -> Option<V> {
        self.shard(key).read().get(key).cloned()
    }

    pub fn keep(&self, key: K, value: V) {
        let mut shard = self.shard(&key).write();
        if shard.len() >= V::MOST {
            let bytes: usize = shard.values().map(Self::entry_bytes).sum();
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            shard.clear();
        }
        let bytes = Self::entry_bytes(&value);
        if shard.insert(key, value).is_none() {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn entry_bytes(value: &V) -> usize {
        std::mem::size_of::<(K, V)>() * 3 / 2 + value.bytes()
    }
}

impl<K: Eq + std::hash::Hash> ForcedMemo<K> {
    /// Keeps tokens, unless they are very many.
    pub fn insert(&self, key: K, tokens: &[TokenId]) {
        if tokens.len() <= MAX_KEPT_TOKENS {
            self.keep(key, tokens.into());
        }
    }
}

/// A state, and the tokens before it by number if forced tokens depend on them.
pub type RunKey = (StateId, Option<ContextId>);

/// A state, and the tokens before it by number.
type FirstForcedKey = (StateId, ContextId);

/// The first forced token by state and context, or that there is none. As [`ForcedMemo`], but an
/// entry is two words.
#[derive(Debug, Default)]
pub struct FirstForced {
    shards: [RwLock<FxHashMap<FirstForcedKey, Option<TokenId>>>; SHARDS],
    entries: AtomicUsize,
}

impl FirstForced {
    fn shard(&self, key: &FirstForcedKey) -> &RwLock<FxHashMap<FirstForcedKey, Option<TokenId>>> {
        use std::hash::BuildHasher;
        let hash = FxBuildHasher.hash_one(key);
        &self.shards[(hash >> 48) as usize % SHARDS]
    }

    pub fn get(&self, key: &FirstForcedKey) -> Option<Option<TokenId>> {
        self.shard(key).read().get(key).copied()
    }

    pub fn insert(&self, key: FirstForcedKey, token: Option<TokenId>) {
        let mut shard = self.shard(&key).write();
        if shard.len() >= MAX_KEPT {
            self.entries.fetch_sub(shard.len(), Ordering::Relaxed);
            shard.clear();
        }
        if shard.insert(key, token).is_none() {
            self.entries.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn memory_bytes(&self) -> usize {
        let entry = std::mem::size_of::<(FirstForcedKey, Option<TokenId>)>() * 3 / 2;
        self.entries.load(Ordering::Relaxed) * entry
    }
}
