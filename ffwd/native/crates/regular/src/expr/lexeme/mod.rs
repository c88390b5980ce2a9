//! A lexeme: one or more languages of text in one spelling, run side by side as a lazily
//! determinised automaton over bytes.
//!
//! A lexeme knows nothing of what surrounds it, so it and everything memoised on its states is
//! shared by all grammars that use the same text. Readers of known transitions take no lock;
//! a missing transition takes the lexeme's own.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::byte_set::ByteSet;
use super::derivative::{ByteClasses, Derivatives};
pub use super::lower::Spelling;
use super::lower::{Lowering, LISTED_FROM};
use super::relax::RelaxMemo;
use super::store::{ExprId, ExprStore};
use crate::regex::Ast;
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

mod ending_bound;
mod endings;
mod questions;
mod spec;
pub use endings::Ending;
use endings::{Endings, Possible};
pub use spec::{Ends, Languages, LexemeSpec};

/// A state of one [`Lexeme`]: an index. Its lowest bits answer the most frequent questions, so that
/// a walk over a trie need not look the state up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LexState(pub u32);

impl LexState {
    /// Before the opening quote of a JSON string.
    pub const QUOTE: Self = Self(0);
    const UNKNOWN: u32 = u32::MAX;
    const DEAD: u32 = u32::MAX - 1;
    const FLAG_BITS: u32 = 2;

    fn new(index: usize, accepts: bool, is_final: bool) -> Self {
        Self((index as u32) << Self::FLAG_BITS | u32::from(is_final) << 1 | u32::from(accepts))
    }

    /// A small number that no other state of the lexeme has.
    #[inline]
    pub fn index(self) -> usize {
        (self.0 >> Self::FLAG_BITS) as usize
    }

    /// Whether the text may end here.
    #[inline]
    pub fn accepts(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether the text must end here.
    #[inline]
    pub fn is_final(self) -> bool {
        self.0 & 2 == 2
    }
}

/// Bit `i` stands for the `i`-th of the languages, or schemas, that are run side by side.
pub type Verdict = u128;

/// Returns the bytes after a value of JSON: white space, a comma, or the end of its container. A
/// number ends only there, and most tokens that continue after some of its digits continue with
/// more of them.
pub fn after_value() -> ByteSet {
    let mut bytes = ByteSet::EMPTY;
    b" \t\n\r,]}".iter().for_each(|&byte| bytes.insert(byte));
    bytes
}

/// The verdict in which the first `count` languages hold.
pub fn first_bits(count: usize) -> Verdict {
    match count {
        0..MAX_LANGUAGES => (1 << count) - 1,
        _ => Verdict::MAX,
    }
}

/// How many languages one lexeme can tell apart.
pub const MAX_LANGUAGES: usize = Verdict::BITS as usize;
/// How many bytes that may follow are listed.
pub const MAX_LISTED: usize = 16;
/// How many states one lexeme may have.
pub(crate) const MAX_STATES: usize = 1_000_000; // well below what a `LexState` can number

/// The continuations of a state: an expression for each living language, in order. Usually few of
/// many are left.
type Residuals = SmallVec<[(u8, ExprId); 1]>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum StateKey {
    /// Before the opening quote of a JSON string.
    Quote,
    Inside(Residuals),
    /// After the closing quote, with the verdict.
    Closed(Verdict),
}

#[derive(Debug)]
struct StateData {
    key: StateKey,
    /// Bit `i` is set if the text may end here as one of language `i`.
    accept: Verdict,
    row: Box<[AtomicU32]>,
    /// 0 unknown, 1 not exactly one byte may follow, 2 one: the byte is in `only_byte`, 3 more than
    /// [`MAX_LISTED`].
    only_known: AtomicU8,
    only_byte: AtomicU8,
}

#[derive(Debug)]
struct Builder {
    store: ExprStore,
    derivatives: Derivatives,
    ids: FxHashMap<StateKey, LexState>,
    /// Expressions without their upper bounds, and the number of bytes within which that makes no
    /// difference.
    relaxed: RelaxMemo,
    endings: Endings,
    possible: Possible,
}

/// Texts of characters of one kind, whose number lies in a range: the inside of most JSON strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FreeText {
    /// The characters, as an expression of the lexeme; `None` for any.
    pub kind: Option<ExprId>,
    /// The fewest characters that may still follow.
    pub min: u32,
    /// The most characters that may still follow; `None` if their number is not bounded.
    pub max: Option<u32>,
}

/// The memory of a lexeme with few states: lists and maps have spare room.
const FIXED_BYTES: usize = 8 << 10;

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// The automaton of a [`LexemeSpec`]. States are built when a transition first leads to them, and stay
/// as long as the lexeme; threads may share it.
#[derive(Debug)]
pub struct Lexeme {
    /// Unique in the process.
    id: u64,
    spec: LexemeSpec,
    classes: ByteClasses,
    character: ExprId,
    universe: ExprId,
    states: boxcar::Vec<StateData>,
    start: LexState,
    /// Inside the quotes, before any character; the start where there are none.
    inside: LexState,
    builder: Mutex<Builder>,
    /// What the builder held when it was last measured.
    builder_bytes: AtomicUsize,
    /// The bytes that can follow the lexeme if the text does not end with it.
    follow: Option<ByteSet>,
    /// Whether any text belongs to any of the languages.
    alive: bool,
    /// How many derivatives it took to find that out.
    effort: usize,
    /// How many bytes of memory the languages take.
    spec_bytes: usize,
}

impl Lexeme {
    /// Builds the start of the automaton, with no transition yet.
    ///
    /// # Errors
    /// The spec has more than [`MAX_LANGUAGES`] languages, a language passes a fixed bound, or the
    /// meter of the thread runs out.
    pub fn new(spec: LexemeSpec) -> Result<Self, LimitExceeded> {
        Self::with_tables_from(spec, LISTED_FROM)
    }

    /// As [`Self::new`], with a table for each union of at least this many texts.
    pub fn with_tables_from(spec: LexemeSpec, listed_from: usize) -> Result<Self, LimitExceeded> {
        if spec.languages.len() > MAX_LANGUAGES {
            return Err(LimitExceeded::new("lexeme_languages", MAX_LANGUAGES));
        }
        let mut store = ExprStore::new();
        let mut lowering = Lowering::new(&mut store, spec.spelling, listed_from)?;
        let character = lowering.any_character()?;
        let mut roots: Vec<ExprId> = Vec::with_capacity(spec.languages.len());
        for language in spec.languages.iter() {
            roots.push(lowering.lower(language)?);
        }
        store.limit_derivatives();
        let universe = store.universe().unwrap_or(ExprId::EVERYTHING);
        let apart: &[u8] = match spec.spelling {
            Spelling::Utf8 => &[],
            Spelling::JsonString => b"\"",
        };
        let mut of_roots = roots.clone();
        if store_has_complement(&store, &roots) {
            of_roots.push(universe);
        }
        let classes = ByteClasses::of_expressions(&store, &of_roots, apart);
        let mut derivatives = Derivatives::default();
        let mut alive = false;
        let mut residuals = Residuals::new();
        for (language, root) in roots.into_iter().enumerate() {
            if derivatives.is_alive(&mut store, &classes, root)? {
                alive |= spec.required >> language & 1 == 1;
                residuals.push((language as u8, root));
            }
        }
        let effort = derivatives.effort();
        let spec_bytes = spec.languages.iter().map(Ast::memory_bytes).sum();
        let mut lexeme = Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            spec,
            classes,
            character,
            universe,
            states: boxcar::Vec::new(),
            start: LexState::QUOTE,
            inside: LexState::QUOTE,
            builder: Mutex::new(Builder {
                store,
                derivatives,
                ids: FxHashMap::default(),
                relaxed: FxHashMap::default(),
                endings: Endings::default(),
                possible: None,
            }),
            builder_bytes: AtomicUsize::new(0),
            follow: None,
            alive,
            effort,
            spec_bytes,
        };
        let start = lexeme.spec.spelling == Spelling::JsonString;
        if start {
            lexeme.start = lexeme.intern(&mut lexeme.builder.lock(), StateKey::Quote)?;
        }
        let inside = StateKey::Inside(residuals);
        lexeme.inside = lexeme.intern(&mut lexeme.builder.lock(), inside)?;
        if !start {
            lexeme.start = lexeme.inside;
        }
        lexeme.follow = match lexeme.spec.follows_itself {
            true => Some(lexeme.first_bytes()?),
            false => lexeme.spec.follow,
        };
        Ok(lexeme)
    }

    /// A number that no other lexeme of the process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What the lexeme was built from.
    pub fn spec(&self) -> &LexemeSpec {
        &self.spec
    }

    /// How many derivatives it took to find out whether some text belongs to it.
    pub fn effort(&self) -> usize {
        self.effort
    }

    /// Whether some text belongs to some required language. A lexeme that is not alive must not be
    /// started.
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// The state before any byte.
    pub fn start(&self) -> LexState {
        self.start
    }

    /// The bytes that begin a text.
    pub(crate) fn first_bytes(&self) -> Result<ByteSet, LimitExceeded> {
        let mut bytes = ByteSet::EMPTY;
        for byte in 0..=255u8 {
            if self.next(self.start, byte)?.is_some() {
                bytes.insert(byte);
            }
        }
        Ok(bytes)
    }

    /// The bytes of which one comes next where the lexeme ends and the text does not, if known.
    pub fn follow(&self) -> Option<ByteSet> {
        self.follow
    }

    /// The state inside the quotes, before any character.
    pub fn inside(&self) -> LexState {
        self.inside
    }

    /// The state before any byte if only some of the languages are allowed; `None` if none of them
    /// has any text. Not for JSON strings, which begin with a quote.
    ///
    /// # Errors
    /// The lexeme has too many states.
    pub fn start_of(&self, languages: Verdict) -> Result<Option<LexState>, LimitExceeded> {
        let StateKey::Inside(roots) = &self.data(self.inside).key else { return Ok(None) };
        let kept: Residuals =
            roots.iter().copied().filter(|&(language, _)| languages >> language & 1 == 1).collect();
        if kept.is_empty() {
            return Ok(None);
        }
        self.intern(&mut self.builder.lock(), StateKey::Inside(kept)).map(Some)
    }

    /// The state without some of its languages, which may neither continue nor end; `None` if none
    /// is left. Not for JSON strings.
    ///
    /// # Errors
    /// The lexeme has too many states.
    pub fn without(
        &self,
        state: LexState,
        languages: Verdict,
    ) -> Result<Option<LexState>, LimitExceeded> {
        let StateKey::Inside(roots) = &self.data(state).key else { return Ok(Some(state)) };
        let kept: Residuals =
            roots.iter().copied().filter(|&(language, _)| languages >> language & 1 == 0).collect();
        if kept.is_empty() {
            return Ok(None);
        }
        self.intern(&mut self.builder.lock(), StateKey::Inside(kept)).map(Some)
    }

    /// Whether it is the state before any byte, of some of the languages or all.
    pub fn is_start(&self, state: LexState) -> bool {
        match (&self.data(state).key, &self.data(self.inside).key) {
            _ if state == self.start => true,
            (StateKey::Inside(some), StateKey::Inside(all))
                if self.spec.spelling == Spelling::Utf8 =>
            {
                some.iter().all(|one| all.contains(one))
            }
            _ => false,
        }
    }

    #[inline]
    fn data(&self, state: LexState) -> &StateData {
        &self.states[state.index()]
    }

    /// Which languages the text belongs to if it ends here; 0 if it cannot end here.
    #[inline]
    pub fn accept(&self, state: LexState) -> Verdict {
        if !state.accepts() {
            return 0;
        }
        self.data(state).accept
    }

    /// The languages that may end here or continue from here, as far as that is known without a
    /// search.
    pub fn alive_in(&self, state: LexState) -> Verdict {
        let data = self.data(state);
        let StateKey::Inside(residuals) = &data.key else { return Verdict::MAX };
        residuals.iter().fold(data.accept, |bits, &(language, _)| bits | 1 << language)
    }

    /// The state after one more byte, or `None` if no text of the languages continues with it.
    #[inline]
    pub fn next(&self, state: LexState, byte: u8) -> Result<Option<LexState>, LimitExceeded> {
        let class = self.classes.of[usize::from(byte)];
        match self.data(state).row[usize::from(class)].load(Ordering::Acquire) {
            LexState::UNKNOWN => self.build_next(state, class),
            LexState::DEAD => Ok(None),
            next => Ok(Some(LexState(next))),
        }
    }

    #[cold]
    fn build_next(&self, state: LexState, class: u8) -> Result<Option<LexState>, LimitExceeded> {
        let mut builder = self.builder.lock();
        self.transition(&mut builder, state, class)
    }

    fn transition(
        &self,
        builder: &mut Builder,
        state: LexState,
        class: u8,
    ) -> Result<Option<LexState>, LimitExceeded> {
        let data = self.data(state);
        let cell = &data.row[usize::from(class)];
        match cell.load(Ordering::Acquire) {
            LexState::UNKNOWN => {}
            LexState::DEAD => return Ok(None),
            next => return Ok(Some(LexState(next))),
        }
        meter::charge(1)?;
        let byte = self.classes.representatives[usize::from(class)];
        let next = match self.successor(builder, &data.key, byte)? {
            Some(key) => Some(self.intern(builder, key)?),
            None => None,
        };
        cell.store(next.map_or(LexState::DEAD, |next| next.0), Ordering::Release);
        Ok(next)
    }

    fn successor(
        &self,
        builder: &mut Builder,
        key: &StateKey,
        byte: u8,
    ) -> Result<Option<StateKey>, LimitExceeded> {
        let residuals = match key {
            StateKey::Closed(_) => return Ok(None),
            StateKey::Quote if byte == b'"' => {
                return Ok(Some(self.data(self.inside()).key.clone()))
            }
            StateKey::Quote => return Ok(None),
            StateKey::Inside(residuals) => residuals,
        };
        if byte == b'"' && self.spec.spelling == Spelling::JsonString {
            let verdict = self.verdict(&builder.store, residuals);
            if verdict != 0 {
                return Ok(Some(StateKey::Closed(verdict)));
            }
        }
        let mut next = Residuals::new();
        let mut any = false;
        for &(language, residual) in residuals {
            let Builder { store, derivatives, .. } = &mut *builder;
            let derived = derivatives.derive(store, residual, byte)?;
            if derived != ExprId::EMPTY && derivatives.is_alive(store, &self.classes, derived)? {
                any |= self.spec.required >> language & 1 == 1;
                next.push((language, derived));
            }
        }
        Ok(any.then_some(StateKey::Inside(next)))
    }

    /// The languages that the text belongs to if it ends here; 0 if it may not.
    fn verdict(&self, store: &ExprStore, residuals: &Residuals) -> Verdict {
        let holds = residuals.iter().fold(0, |bits, &(language, residual)| {
            bits | Verdict::from(store.nullable(residual)) << language
        });
        if holds & self.spec.required == 0 {
            0
        } else {
            holds
        }
    }

    fn intern(&self, builder: &mut Builder, key: StateKey) -> Result<LexState, LimitExceeded> {
        if let Some(&known) = builder.ids.get(&key) {
            return Ok(known);
        }
        if self.states.count() >= MAX_STATES {
            return Err(LimitExceeded::new("lexeme_states", MAX_STATES));
        }
        let (accept, is_final) = match (&key, self.spec.spelling) {
            (StateKey::Quote, _) => (0, false),
            (StateKey::Closed(verdict), _) => (*verdict, true),
            (StateKey::Inside(_), Spelling::JsonString) => (0, false),
            (StateKey::Inside(residuals), Spelling::Utf8) => {
                let mut verdict = self.verdict(&builder.store, residuals);
                let lazy = match self.spec.ends {
                    Ends::Longest { lazy } => lazy,
                    Ends::Anywhere => 0,
                };
                // A lazy language that can end determines the match.
                let ends_now = verdict & lazy != 0;
                if ends_now {
                    verdict &= lazy;
                }
                let mut is_final = verdict != 0;
                if is_final && !ends_now {
                    for &byte in &self.classes.representatives {
                        if self.successor(builder, &key, byte)?.is_some() {
                            is_final = false;
                            break;
                        }
                    }
                }
                (verdict, is_final)
            }
        };
        let row = (0..self.classes.len()).map(|_| AtomicU32::new(LexState::UNKNOWN)).collect();
        let index = self.states.push(StateData {
            key: key.clone(),
            accept,
            row,
            only_known: AtomicU8::new(0),
            only_byte: AtomicU8::new(0),
        });
        let state = LexState::new(index, accept != 0, is_final);
        builder.ids.insert(key, state);
        Ok(state)
    }

    /// The byte that must follow, if exactly one byte may follow within the lexeme.
    pub fn only_byte(&self, state: LexState) -> Result<Option<u8>, LimitExceeded> {
        let data = self.data(state);
        match data.only_known.load(Ordering::Acquire) {
            1 | 3 => return Ok(None),
            2 => return Ok(Some(data.only_byte.load(Ordering::Relaxed))),
            _ => {}
        }
        let mut only = None;
        for byte in 0..=255u8 {
            if self.next(state, byte)?.is_some() {
                if only.is_some() {
                    only = None;
                    break;
                }
                only = Some(byte);
            }
        }
        if let Some(byte) = only {
            data.only_byte.store(byte, Ordering::Relaxed);
        }
        data.only_known.store(1 + u8::from(only.is_some()), Ordering::Release);
        Ok(only)
    }

    /// Adds the bytes that may follow. Returns `false` if they are more than [`MAX_LISTED`].
    pub fn list_bytes(
        &self,
        state: LexState,
        bytes: &mut SmallVec<[u8; MAX_LISTED]>,
    ) -> Result<bool, LimitExceeded> {
        let data = self.data(state);
        if let Some(byte) = self.only_byte(state)? {
            bytes.push(byte);
            return Ok(true);
        }
        if data.only_known.load(Ordering::Acquire) == 3 {
            return Ok(false);
        }
        let before = bytes.len();
        for byte in 0..=255u8 {
            if self.next(state, byte)?.is_some() {
                if bytes.len() - before == MAX_LISTED {
                    data.only_known.store(3, Ordering::Release);
                    return Ok(false);
                }
                bytes.push(byte);
            }
        }
        Ok(true)
    }

    /// All transitions of a state at once, for walks that read many.
    #[inline]
    pub fn row(&self, state: LexState) -> Row<'_> {
        Row { lexeme: self, state, cells: &self.data(state).row }
    }

    /// How many states exist so far.
    pub fn num_states(&self) -> usize {
        self.states.count()
    }

    /// Calls a function as if another thread were building a state meanwhile.
    #[cfg(test)]
    pub(crate) fn while_built<T>(&self, function: impl FnOnce() -> T) -> T {
        let _builder = self.builder.lock();
        function()
    }

    /// About how many bytes of memory the lexeme holds. While another thread builds a state, what
    /// it held when it was last measured counts.
    pub fn memory_bytes(&self) -> usize {
        let per_state = std::mem::size_of::<StateData>() * 2 + self.classes.len() * 4 + 48;
        // A state of an expensive pattern may take long to build, and whoever measures the lexemes
        // of all grammars must not wait for it.
        if let Some(builder) = self.builder.try_lock() {
            let bytes = builder.store.memory_bytes() * 3 / 2 + builder.derivatives.memory_bytes();
            self.builder_bytes.store(bytes, Ordering::Relaxed);
        }
        let built = self.builder_bytes.load(Ordering::Relaxed);
        self.states.count() * per_state + built + self.spec_bytes + FIXED_BYTES
    }
}

/// The transitions of one state.
#[derive(Clone, Copy, Debug)]
pub struct Row<'l> {
    lexeme: &'l Lexeme,
    state: LexState,
    cells: &'l [AtomicU32],
}

impl Row<'_> {
    /// The state to which the transitions belong.
    #[inline]
    pub fn state(&self) -> LexState {
        self.state
    }

    /// As [`Lexeme::next`].
    #[inline]
    pub fn next(&self, byte: u8) -> Result<Option<LexState>, LimitExceeded> {
        let class = self.lexeme.classes.of[usize::from(byte)];
        match self.cells[usize::from(class)].load(Ordering::Acquire) {
            LexState::UNKNOWN => self.lexeme.build_next(self.state, class),
            LexState::DEAD => Ok(None),
            next => Ok(Some(LexState(next))),
        }
    }
}

fn store_has_complement(store: &ExprStore, roots: &[ExprId]) -> bool {
    roots.iter().any(|&root| !store.positive(root))
}
