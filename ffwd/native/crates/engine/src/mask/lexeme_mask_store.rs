//! The masks of lexeme states for one vocabulary, shared by all grammars.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::found_again::{FoundAgain, Kept};
use super::free_groups::FreeGroups;
use super::free_text::{FreeBasis, Lengths};
use super::inside::{Inside, Unfinished};
use super::lexeme_mask::LexemeMask;
use super::loops::KnownChanges;
use super::recent::{Recent, RecentMemo};
use super::rest_tries::RestTries;

use super::walk::{compute, View};
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::expr::lexeme::FreeText;
use ffwd_regular::expr::ExprId;
use ffwd_regular::expr::{LexState, Lexeme, LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;
use ffwd_tokenizer::vocabulary::{NodeId, Vocabulary};

/// Up to this many tokens are examined one by one instead of a walk over the whole trie.
const MAX_DOUBTFUL: usize = 512;

/// A subtree and a lexeme's state.
type MaskPlace = (u64, NodeId, u64, LexState);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Place(MaskPlace),
    /// The key with the languages after which the lexeme restarts, as two halves.
    Again(MaskPlace, [u64; 2]),
    Free(FreeText),
    Basis(u64, ExprId),
    Inside(u64, LexState),
    /// A lexeme and a kind of characters; `None` for all characters.
    Groups(Option<(u64, ExprId)>),
}

#[derive(Clone, Debug)]
enum Value {
    Mask(Arc<Kept<Key, LexemeMask>>),
    Basis(Arc<FreeBasis>),
    Inside(Option<Arc<Inside>>),
    Groups(Arc<FreeGroups>),
}

impl Recent for Value {
    fn take_used(&self) -> bool {
        match self {
            Self::Mask(kept) => kept.take_used(),
            Self::Basis(_) | Self::Inside(_) | Self::Groups(_) => false,
        }
    }
}

/// Masks of lexeme states for one vocabulary, shared by all grammars, under a byte budget.
#[derive(Debug)]
pub struct LexemeMaskStore {
    memo: Mutex<RecentMemo<Key, Value>>,
    /// Some masks of `memo`, found without its lock. It changes only with the lock held, so it has
    /// nothing that was evicted.
    again: FoundAgain<Key, LexemeMask>,
    basis: Mutex<Option<Arc<FreeBasis>>>,
    unfinished: OnceLock<Unfinished>,
    tries: RestTries,
    changes: KnownChanges,
    hits: AtomicU64,
    made: AtomicU64,
    walks: AtomicU64,
}

impl LexemeMaskStore {
    pub fn new(max_bytes: usize) -> Self {
        Self {
            memo: Mutex::new(RecentMemo::new(max_bytes)),
            again: FoundAgain::default(),
            basis: Mutex::default(),
            unfinished: OnceLock::new(),
            tries: RestTries::default(),
            changes: KnownChanges::default(),
            hits: AtomicU64::new(0),
            made: AtomicU64::new(0),
            walks: AtomicU64::new(0),
        }
    }

    /// Sets the budget, and evicts what exceeds it.
    pub fn set_max_bytes(&self, max_bytes: usize) {
        let mut memo = self.memo.lock();
        let let_go = memo.set_max_bytes(max_bytes);
        self.forget(&let_go);
        drop(memo);
        drop(let_go);
    }

    /// Removes evicted masks from `again`, with the lock of the memo held.
    fn forget(&self, evicted: &[Value]) {
        for value in evicted {
            if let Value::Mask(kept) = value {
                self.again.remove(kept);
            }
        }
    }

    fn insert(&self, key: Key, value: Value, bytes: usize) {
        let mut memo = self.memo.lock();
        let let_go = memo.insert(key, value, bytes);
        self.forget(&let_go);
        drop(memo);
        drop(let_go);
    }

    fn known_mask(&self, key: Key) -> Option<Arc<LexemeMask>> {
        if let Some(mask) = self.again.get(&key) {
            return Some(mask);
        }
        let mut memo = self.memo.lock();
        match memo.get(&key)? {
            Value::Mask(kept) => {
                self.again.set(&kept);
                Some(kept.value.clone())
            }
            Value::Basis(_) | Value::Inside(_) | Value::Groups(_) => None,
        }
    }

    fn keep_mask(&self, key: Key, mask: &Arc<LexemeMask>) {
        // Memory that another entry shares is counted once.
        let own = if Arc::strong_count(mask) == 1 { mask.memory_bytes() } else { 0 };
        self.insert(key, Value::Mask(Arc::new(Kept::new(key, mask.clone()))), own + 192);
    }

    /// Returns the effects of all tokens of the vocabulary.
    pub fn get(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        let view = View::of(vocabulary);
        let key = Key::Place((view.trie.id(), view.root, lexeme.id(), state));
        self.memoised(key, || self.build(vocabulary, lexeme, state))
    }

    /// Returns the targets of the tokens that stay in a lexeme; `None` if it may have ended within
    /// some of them.
    pub(super) fn inside(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<Option<Arc<Inside>>, LimitExceeded> {
        let key = Key::Inside(lexeme.id(), state);
        if let Some(Value::Inside(known)) = self.memo.lock().get(&key) {
            return Ok(known);
        }
        let inside = match lexeme.free_text(state) {
            Some(free) => Some(self.groups(vocabulary, lexeme, free.kind)?.inside(lexeme, state)?),
            None => {
                let unfinished = self.unfinished.get_or_init(|| Unfinished::of(vocabulary));
                Inside::new(&self.changes, unfinished, vocabulary, lexeme, state)?
            }
        };
        let inside = inside.map(Arc::new);
        let bytes = inside.as_ref().map_or(0, |inside| inside.memory_bytes());
        self.insert(key, Value::Inside(inside.clone()), bytes + 64);
        Ok(inside)
    }

    /// The tokens of strings of any number of characters of one kind, by what they lead to.
    fn groups(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        kind: Option<ExprId>,
    ) -> Result<Arc<FreeGroups>, LimitExceeded> {
        let key = Key::Groups(kind.map(|kind| (lexeme.id(), kind)));
        if let Some(Value::Groups(known)) = self.memo.lock().get(&key) {
            return Ok(known);
        }
        let basis = match kind {
            None => self.basis(vocabulary)?,
            Some(kind) => self.basis_of(vocabulary, lexeme, kind)?,
        };
        let groups = Arc::new(FreeGroups::new(vocabulary, &basis.unbounded)?);
        self.insert(key, Value::Groups(groups.clone()), groups.memory_bytes());
        Ok(groups)
    }

    /// Returns the effects of the tokens' rests below a node of a trie.
    pub fn below(
        &self,
        vocabulary: &Vocabulary,
        view: View<'_>,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        let key = Key::Place((view.trie.id(), view.root, lexeme.id(), state));
        self.memoised(key, || self.walk(view, vocabulary, lexeme, state, 0).map(Arc::new))
    }

    /// As [`Self::get`] and [`Self::below`] for a lexeme that repeats within a token. It restarts
    /// from the state wherever it ends at its longest match in one of some languages and no other.
    pub fn again(
        &self,
        vocabulary: &Vocabulary,
        view: View<'_>,
        lexeme: &Lexeme,
        state: LexState,
        again: Verdict,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        let place = (view.trie.id(), view.root, lexeme.id(), state);
        let whole = view.trie.id() == vocabulary.trie().id() && view.root == NodeId::ROOT;
        self.memoised(Key::Again(place, [again as u64, (again >> 64) as u64]), || {
            if whole {
                let longest = vocabulary.max_token_bytes() as u32;
                if let Some((relaxed, _)) = lexeme.relaxed(state, longest, longest)? {
                    return self.again(vocabulary, view, lexeme, relaxed, again);
                }
                self.walks.fetch_add(1, Ordering::Relaxed);
            }
            self.walk(view, vocabulary, lexeme, state, again).map(Arc::new)
        })
    }

    fn walk(
        &self,
        view: View<'_>,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
        again: Verdict,
    ) -> Result<LexemeMask, LimitExceeded> {
        compute(&self.tries, &self.changes, vocabulary, view, lexeme, state, again)
    }

    fn memoised(
        &self,
        key: Key,
        build: impl FnOnce() -> Result<Arc<LexemeMask>, LimitExceeded>,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        if let Some(known) = self.known_mask(key) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(known);
        }
        let mask = build()?;
        self.made.fetch_add(1, Ordering::Relaxed);
        self.keep_mask(key, &mask);
        Ok(mask)
    }

    fn build(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        if let Some(free) = lexeme.free_text(state) {
            let basis = match free.kind {
                None => self.basis(vocabulary)?,
                Some(kind) => self.basis_of(vocabulary, lexeme, kind)?,
            };
            return self.free_text(vocabulary, &basis, free);
        }
        if lexeme.takes_anything(state) {
            let basis = self.basis(vocabulary)?;
            return Ok(Arc::new(basis.searching(&self.tries, vocabulary, lexeme, state)?));
        }
        let longest = vocabulary.max_token_bytes() as u32;
        // Without the bounds that no token can reach, it equals a state that others share.
        if let Some((relaxed, _)) = lexeme.relaxed(state, longest, longest)? {
            return self.get(vocabulary, lexeme, relaxed);
        }
        let least = vocabulary.length_of_all_but(MAX_DOUBTFUL) as u32;
        if let Some((relaxed, within)) = lexeme.relaxed(state, longest, least)? {
            let mask = self.get(vocabulary, lexeme, relaxed)?;
            if let Some(own) = mask.recheck(vocabulary, lexeme, state, within as usize)? {
                return Ok(Arc::new(own));
            }
        }
        self.walks.fetch_add(1, Ordering::Relaxed);
        let view = View::of(vocabulary);
        Ok(Arc::new(self.walk(view, vocabulary, lexeme, state, 0)?))
    }

    fn free_text(
        &self,
        vocabulary: &Vocabulary,
        basis: &FreeBasis,
        free: FreeText,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        let free = FreeText {
            min: free.min.min(basis.lengths.longest + 1),
            max: free.max.filter(|&max| max < basis.lengths.longest),
            ..free
        };
        if (free.min, free.max) == (0, None) {
            return Ok(basis.unbounded.clone());
        }
        if free.kind.is_some() {
            return Ok(Arc::new(basis.bounded(&self.tries, vocabulary, free)));
        }
        if let Some(known) = self.known_mask(Key::Free(free)) {
            return Ok(known);
        }
        let mask = Arc::new(basis.bounded(&self.tries, vocabulary, free));
        self.keep_mask(Key::Free(free), &mask);
        Ok(mask)
    }

    /// The inside of any JSON string.
    fn basis(&self, vocabulary: &Vocabulary) -> Result<Arc<FreeBasis>, LimitExceeded> {
        let mut basis = self.basis.lock();
        if let Some(known) = &*basis {
            return Ok(known.clone());
        }
        let any = Lexeme::new(LexemeSpec::new(Spelling::JsonString, [Ast::any_text()]))?;
        let unbounded =
            Arc::new(self.walk(View::of(vocabulary), vocabulary, &any, any.inside(), 0)?);
        let lengths = Arc::new(Lengths::new(vocabulary));
        let built = Arc::new(FreeBasis::new(vocabulary, lengths, unbounded));
        *basis = Some(built.clone());
        Ok(built)
    }

    /// The inside of a JSON string of characters of one kind.
    fn basis_of(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        kind: ExprId,
    ) -> Result<Arc<FreeBasis>, LimitExceeded> {
        let key = Key::Basis(lexeme.id(), kind);
        if let Some(Value::Basis(known)) = self.memo.lock().get(&key) {
            return Ok(known);
        }
        let run = lexeme.run_of(kind)?;
        let unbounded = Arc::new(self.walk(View::of(vocabulary), vocabulary, lexeme, run, 0)?);
        let lengths = self.basis(vocabulary)?.lengths.clone();
        let built = Arc::new(FreeBasis::new(vocabulary, lengths, unbounded));
        self.walks.fetch_add(1, Ordering::Relaxed);
        let bytes = built.memory_bytes();
        self.insert(key, Value::Basis(built.clone()), bytes);
        Ok(built)
    }

    /// Pins the current entries, whatever the budget is.
    pub fn keep_all(&self) {
        self.memo.lock().keep_all();
    }

    /// Evicts everything that depends on a grammar; only the inside of any JSON string stays.
    pub fn clear(&self) {
        let mut memo = self.memo.lock();
        memo.clear();
        self.again.clear();
        drop(memo);
        self.changes.clear();
    }

    /// How many requested masks were cached.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// How many masks were computed, of all tokens or of the rests of some.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// How many times a lexeme state was walked over the whole trie.
    pub fn walks(&self) -> u64 {
        self.walks.load(Ordering::Relaxed)
    }

    pub fn memory_bytes(&self) -> usize {
        self.memo.lock().memory_bytes() + self.changes.memory_bytes()
    }
}
