//! The allowed tokens of a sequence.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use arc_swap::Guard;

use super::preamble::Stage;
use super::{state_in, Matcher};
use crate::engine::Generation;
use crate::mask::token_set::{bits, set_bits, TokenMask};
use ffwd_automaton::{EngineError, Result, StateId};
use ffwd_tokenizer::canonical::Restricted;
use ffwd_tokenizer::vocabulary::TokenId;

/// A mask that is copied after it was computed.
#[derive(Debug)]
pub enum ComputedMask {
    /// The grammar's own, which other matchers have too.
    Shared(Arc<TokenMask>),
    /// One bit a token.
    Own(Vec<u32>),
}

impl From<Vec<u32>> for ComputedMask {
    fn from(words: Vec<u32>) -> Self {
        Self::Own(words)
    }
}

impl ComputedMask {
    /// Copies the mask into a row, which may have more words.
    pub fn fill(&self, row: &mut [u32]) {
        match self {
            Self::Shared(mask) => mask.fill(row),
            Self::Own(words) => {
                let (mine, rest) = row.split_at_mut(words.len().min(row.len()));
                mine.copy_from_slice(&words[..mine.len()]);
                rest.fill(0);
            }
        }
    }
}

impl Matcher {
    /// Copies the mask into the row if it is cached and complete.
    pub fn fill_known(&self, row: &mut [u32]) -> bool {
        if self.terminated {
            row.fill(0);
            set_bits(row, self.compiled.engine.vocabulary().eos());
            return true;
        }
        if !self.is_plain() {
            return false;
        }
        let generation = self.compiled.generation();
        let state = state_in(&generation, self.place.load(Ordering::Acquire));
        let ample = |state: &StateId| self.is_known_ample(&generation, &self.place_in(*state));
        let state = state.filter(|state| self.budget.is_none() || ample(state));
        let fill = |state| generation.masker.with_known(state, |mask| mask.fill(row));
        state.and_then(fill).is_some()
    }

    /// Reads the mask if it is known already, and is the grammar's own.
    pub(crate) fn with_known_mask<R>(&self, read: impl FnOnce(&Arc<TokenMask>) -> R) -> Option<R> {
        if self.terminated || !self.is_plain() {
            return None;
        }
        let (generation, state) = self.known_place()?;
        if self.budget.is_some() && !self.is_known_ample(&generation, &self.place_in(state)) {
            return None;
        }
        generation.masker.with_shared(state, read)
    }

    /// Computes the mask, to be copied later.
    pub fn compute_mask(&self) -> Result<ComputedMask> {
        if self.terminated || self.budget.is_some() || !self.is_plain() {
            if let (true, Some((_, context))) = (self.canonical, self.context()) {
                if let Some((generation, state)) = self.state_alone()? {
                    if let Some(known) = generation.canonical.get(&(state, context)) {
                        return Ok(ComputedMask::Shared(known));
                    }
                }
            }
            let mut words = vec![0; self.compiled.engine.vocabulary().mask_words()];
            self.fill_bitmask(&mut words)?;
            return Ok(ComputedMask::Own(words));
        }
        let (generation, state) = self.here()?;
        let mask = generation.masker.compute(&generation.automaton, state)?;
        self.compiled.settle(&generation);
        Ok(ComputedMask::Shared(mask))
    }

    /// Whether the mask is the grammar's own.
    #[inline]
    pub fn is_plain(&self) -> bool {
        let in_text = self.stage == Stage::Grammar && self.read == self.prefix.len();
        in_text && !self.canonical
    }

    /// The generation and the state, if the grammar's mask has not been computed and is needed.
    pub(super) fn unknown(&self) -> Option<(u32, StateId)> {
        let in_text = self.stage == Stage::Grammar && self.read == self.prefix.len();
        if self.terminated || !in_text {
            return None;
        }
        let (generation, state) = self.here().ok()?;
        let known = generation.masker.is_known(state);
        (!known).then_some((generation.number, state))
    }

    /// Overwrites a bitmask row with the allowed tokens. After the end these are the end tokens, so
    /// that a finished row of a batch can be sampled.
    pub fn fill_bitmask(&self, row: &mut [u32]) -> Result<()> {
        if self.fill_known(row) {
            return Ok(());
        }
        match self.canonical {
            true => self.fill_canonical(row),
            false => self.fill_in_time(row),
        }
    }

    /// The generation and the state, where the state alone determines the position.
    fn state_alone(&self) -> Result<Option<(Guard<Arc<Generation>>, StateId)>> {
        match self.budget.is_none() && self.is_in_text(&self.place_in(StateId(0))) {
            true => self.here().map(Some),
            false => Ok(None),
        }
    }

    /// Overwrites a row with the canonical tokens among the allowed ones, or with all of these if
    /// none is.
    fn fill_canonical(&self, row: &mut [u32]) -> Result<()> {
        let masks = self.compiled.engine.canonical_masks();
        let (Some(masks), Some((canonicality, context)), Some(tracked)) =
            (masks, self.context(), &self.tracked)
        else {
            return self.fill_in_time(row);
        };
        let place = self.state_alone()?;
        if let Some((generation, state)) = &place {
            if let Some(known) = generation.canonical.get(&(*state, context.clone())) {
                known.fill(row);
                return Ok(());
            }
        }
        self.fill_in_time(row)?;
        let mut restricted = masks.restrict(&context, row);
        if restricted == Restricted::Canonical {
            self.keep_live(masks, canonicality, &context, row)?;
            if row.iter().all(|&word| word == 0) {
                restricted = Restricted::NothingLeft;
            }
        }
        if let Some(preamble) = self.preamble.as_ref().filter(|_| self.is_in_free_text()) {
            preamble.keep_controls(row);
        }
        match restricted {
            Restricted::Canonical => {
                if let Some((generation, state)) = place {
                    generation.canonical.keep((state, context), Arc::new(TokenMask::of_row(row)));
                }
            }
            Restricted::NothingLeft => {
                tracked.fallbacks.lock().nothing_left += 1;
                self.fill_in_time(row)?;
            }
            Restricted::Lost => tracked.fallbacks.lock().lost += 1,
        }
        Ok(())
    }

    /// Overwrites a row with what the grammar allows.
    pub(crate) fn fill_by_grammar(&self, row: &mut [u32]) -> Result<()> {
        let (generation, state) = self.here()?;
        let Generation { automaton, masker, .. } = &**generation;
        let left = self.prefix_left();
        if let Some(preamble) = self.preamble.as_ref().filter(|_| self.stage != Stage::Grammar) {
            let vocabulary = self.compiled.engine.vocabulary();
            preamble.fill(self.stage, row, |token, rest| {
                let text = vocabulary.text(token);
                let text = &text[text.len() - rest..];
                let shared = text.len().min(left.len());
                if text[..shared] != left[..shared] {
                    return Ok::<bool, EngineError>(false);
                }
                let rest = &text[shared..];
                Ok(rest.is_empty() || automaton.walk(automaton.threads(state), rest)?.is_some())
            })?;
        } else if !left.is_empty() {
            row.fill(0);
            set_bits(row, &masker.prefixed(automaton, left, state)?);
        } else if masker.with_known(state, |mask| mask.fill(row)).is_none() {
            masker.compute(automaton, state)?.fill(row);
            self.compiled.settle(&generation);
        }
        Ok(())
    }

    /// Returns the allowed tokens, sorted; none after the end.
    pub fn allowed(&self) -> Result<Vec<TokenId>> {
        if self.terminated {
            return Ok(Vec::new());
        }
        if !self.is_plain() || self.budget.is_some() {
            let mut row = vec![0; self.compiled.engine.vocabulary().mask_words()];
            self.fill_bitmask(&mut row)?;
            return Ok(bits(&row).collect());
        }
        let (generation, state) = self.here()?;
        let Generation { automaton, masker, .. } = &**generation;
        if let Some(tokens) = masker.with_known(state, |mask| mask.tokens()) {
            return Ok(tokens);
        }
        let tokens = masker.compute(automaton, state)?.tokens();
        self.compiled.settle(&generation);
        Ok(tokens)
    }
}
