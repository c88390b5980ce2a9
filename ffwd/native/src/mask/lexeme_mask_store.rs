//! The masks of lexeme states for one vocabulary, shared by all grammars.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::free_text::{FreeBasis, Lengths};
use super::lexeme_mask::LexemeMask;
use super::walk::{compute, View};
use crate::error::LimitExceeded;
use crate::expr::lexeme::FreeText;
use crate::expr::store::ExprId;
use crate::expr::{LexState, Lexeme, LexemeSpec, Spelling};
use crate::regex::Ast;
use crate::vocabulary::{NodeId, Vocabulary};

/// How many tokens are looked at one by one rather than walking the whole trie.
const MAX_DOUBTFUL: usize = 512;

/// A subtree and a lexeme's state.
type Place = (u64, NodeId, u64, LexState);

#[derive(Debug, Default)]
struct Memos {
    by_place: FxHashMap<Place, Arc<LexemeMask>>,
    free: FxHashMap<FreeText, Arc<LexemeMask>>,
    bases: FxHashMap<(u64, ExprId), Arc<FreeBasis>>,
    bytes: usize,
    walks: u64,
}

/// Masks of lexeme states for one vocabulary, shared by all grammars, under a byte budget.
#[derive(Debug)]
pub struct LexemeMaskStore {
    memos: Mutex<Memos>,
    basis: Mutex<Option<Arc<FreeBasis>>>,
    max_bytes: usize,
}

impl LexemeMaskStore {
    pub fn new(max_bytes: usize) -> Self {
        Self { memos: Mutex::default(), basis: Mutex::default(), max_bytes }
    }

    /// What all tokens of the vocabulary do.
    pub fn get(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        let view = View::of(vocabulary);
        self.memoised(view, lexeme, state, || self.build(vocabulary, lexeme, state))
    }

    /// What the rests of tokens do that lie below a node of a trie.
    pub fn below(
        &self,
        vocabulary: &Vocabulary,
        view: View<'_>,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        self.memoised(view, lexeme, state, || {
            compute(vocabulary, view, lexeme, state).map(Arc::new)
        })
    }

    fn memoised(
        &self,
        view: View<'_>,
        lexeme: &Lexeme,
        state: LexState,
        build: impl FnOnce() -> Result<Arc<LexemeMask>, LimitExceeded>,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        let place = (view.trie.id(), view.root, lexeme.id(), state);
        if let Some(known) = self.memos.lock().by_place.get(&place) {
            return Ok(known.clone());
        }
        let mask = build()?;
        let mut memos = self.memos.lock();
        if memos.bytes > self.max_bytes {
            *memos = Memos { walks: memos.walks, ..Memos::default() };
        }
        // What is shared with another entry is counted once.
        memos.bytes += 64;
        if Arc::strong_count(&mask) == 1 {
            memos.bytes += mask.memory_bytes();
        }
        memos.by_place.insert(place, mask.clone());
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
            return Ok(Arc::new(basis.searching(vocabulary, lexeme, state)?));
        }
        let longest = vocabulary.max_token_bytes() as u32;
        let least = vocabulary.length_of_all_but(MAX_DOUBTFUL) as u32;
        if let Some((relaxed, within)) = lexeme.relaxed(state, longest, least)? {
            let doubtful = vocabulary.longer_than(within as usize);
            if doubtful.is_empty() {
                return self.get(vocabulary, lexeme, relaxed);
            }
            let mask = self.get(vocabulary, lexeme, relaxed)?;
            if let Some(own) = mask.recheck(vocabulary, lexeme, state, doubtful)? {
                return Ok(Arc::new(own));
            }
        }
        self.memos.lock().walks += 1;
        let view = View::of(vocabulary);
        Ok(Arc::new(compute(vocabulary, view, lexeme, state)?))
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
            return Ok(Arc::new(basis.bounded(vocabulary, free)));
        }
        if let Some(known) = self.memos.lock().free.get(&free) {
            return Ok(known.clone());
        }
        let mask = Arc::new(basis.bounded(vocabulary, free));
        let mut memos = self.memos.lock();
        memos.bytes += mask.memory_bytes();
        memos.free.insert(free, mask.clone());
        Ok(mask)
    }

    /// The inside of any JSON string.
    fn basis(&self, vocabulary: &Vocabulary) -> Result<Arc<FreeBasis>, LimitExceeded> {
        let mut basis = self.basis.lock();
        if let Some(known) = &*basis {
            return Ok(known.clone());
        }
        let any = Lexeme::new(LexemeSpec::new(Spelling::JsonString, [Ast::any_text()]))?;
        let unbounded = Arc::new(compute(vocabulary, View::of(vocabulary), &any, any.inside())?);
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
        if let Some(known) = self.memos.lock().bases.get(&(lexeme.id(), kind)) {
            return Ok(known.clone());
        }
        let run = lexeme.run_of(kind)?;
        let unbounded = Arc::new(compute(vocabulary, View::of(vocabulary), lexeme, run)?);
        let lengths = self.basis(vocabulary)?.lengths.clone();
        let built = Arc::new(FreeBasis::new(vocabulary, lengths, unbounded));
        let mut memos = self.memos.lock();
        memos.walks += 1;
        memos.bytes += built.memory_bytes();
        memos.bases.insert((lexeme.id(), kind), built.clone());
        Ok(built)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        *self.memos.lock() = Memos::default();
        *self.basis.lock() = None;
    }

    /// How many times a lexeme state was walked over the whole trie.
    pub fn walks(&self) -> u64 {
        self.memos.lock().walks
    }

    pub fn memory_bytes(&self) -> usize {
        self.memos.lock().bytes
    }
}
