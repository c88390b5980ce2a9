//! Properties of states, with which results for other states can be reused.

use super::Builder;
use super::{FreeText, LexState, Lexeme, Residuals, StateKey, Verdict};
use crate::expr::byte_set::ByteSet;
use crate::expr::listed::Listed;
use crate::expr::lower::Spelling;
use crate::expr::relax::{decides_alike, relax, Limits};
use crate::expr::store::{Expr, ExprId};
use ffwd_bounds::error::LimitExceeded;

impl Lexeme {
    /// Whether the state is inside a JSON string of characters of one kind, bounded only in their
    /// number.
    pub fn free_text(&self, state: LexState) -> Option<FreeText> {
        let residual = self.only_residual(state)?;
        let (kind, min, max) = if residual == ExprId::EPSILON {
            (self.character, 0, Some(0))
        } else {
            let builder = self.builder.lock();
            match *builder.store.get(residual) {
                Expr::Repeat { inner, min, max } if builder.store.is_character(inner) => {
                    (inner, min, max)
                }
                _ if builder.store.is_character(residual) => (residual, 1, Some(1)),
                _ => return None,
            }
        };
        Some(FreeText { kind: (kind != self.character).then_some(kind), min, max })
    }

    /// The state inside a JSON string of any number of characters of one kind.
    pub fn run_of(&self, kind: ExprId) -> Result<LexState, LimitExceeded> {
        let mut builder = self.builder.lock();
        let run = builder.store.repeat(kind, 0, None)?;
        self.intern(&mut builder, StateKey::Inside(Residuals::from_slice(&[(0, run)])))
    }

    /// Returns whether the state is inside a JSON string that any characters may continue,
    /// including any text that is searched for. This holds if it holds for a required language,
    /// whatever the others are.
    pub fn takes_anything(&self, state: LexState) -> bool {
        let StateKey::Inside(residuals) = &self.data(state).key else { return false };
        if self.spec.spelling != Spelling::JsonString {
            return false;
        }
        let store = &self.builder.lock().store;
        let is_short = |id: ExprId| matches!(*store.get(id), Expr::Not(inner) if store.max_len(inner) < u32::MAX && store.stands_alone(inner));
        let is_least = |id: ExprId| matches!(*store.get(id), Expr::Repeat { inner, max: None, .. } if inner == self.character);
        let sought = |id: ExprId| matches!(*store.get(id), Expr::Concat(head, rest) if head == self.universe && store.positive(rest));
        let finds = |id: ExprId| match store.get(id) {
            Expr::Or(ids) => ids.iter().any(|&id| sought(id)),
            _ => sought(id),
        };
        let searches = |id: ExprId| match store.get(id) {
            // Long enough, and none of some listed texts: any text can be continued to such a one,
            // even if it must contain a match of a pattern.
            Expr::And(ids) => {
                ids.iter().all(|&id| is_least(id) || is_short(id) || finds(id))
                    && ids.iter().filter(|&&id| finds(id)).count() <= 1
            }
            _ => is_least(id) || finds(id),
        };
        let required = |language: u8| self.spec.required >> language & 1 == 1;
        residuals.iter().any(|&(language, residual)| {
            required(language)
                && match store.get(residual) {
                    Expr::Or(ids) => ids.iter().any(|&id| searches(id)),
                    _ => searches(residual),
                }
        })
    }

    /// Returns the rest of listed texts, with their verdict, if nothing else may follow a state.
    /// Before the opening quote, those after it.
    pub fn listed(&self, state: LexState) -> Option<(Listed, Verdict)> {
        let key = &self.data(if state == LexState::QUOTE { self.inside } else { state }).key;
        let StateKey::Inside(residuals) = key else { return None };
        let &[(language, residual)] = residuals.as_slice() else { return None };
        let verdict = 1 << language;
        match self.builder.lock().store.get(residual) {
            Expr::Listed(listed) if self.spec.required & verdict != 0 => {
                Some((listed.clone(), verdict))
            }
            _ => None,
        }
    }

    /// Returns whether some continuation of a state may have an ASCII byte. May return `true` if that
    /// is hard to decide.
    pub fn may_have(&self, state: LexState, byte: u8) -> bool {
        let StateKey::Inside(residuals) = &self.data(state).key else { return true };
        let builder = self.builder.lock();
        residuals.iter().any(|&(_, residual)| builder.store.may_have(residual, byte))
    }

    /// Returns the bytes that can occur in a text of the lexeme, and possibly others.
    pub fn alphabet(&self) -> ByteSet {
        let StateKey::Inside(residuals) = &self.data(self.inside).key else { return ByteSet::ALL };
        let store = &self.builder.lock().store;
        let bytes = |residual: ExprId| store.may_have_ascii(residual);
        let ascii = residuals.iter().fold(0, |all, &(_, residual)| all | bytes(residual));
        match self.spec.spelling {
            Spelling::Utf8 => ByteSet::of_ascii(ascii).union(&ByteSet::range(0x80, 0xFF)),
            // Quotes are no part of the language.
            Spelling::JsonString => ByteSet::ALL,
        }
    }

    /// The expression of a state inside a JSON string that has one language.
    fn only_residual(&self, state: LexState) -> Option<ExprId> {
        if self.spec.spelling != Spelling::JsonString {
            return None;
        }
        match &self.data(state).key {
            StateKey::Inside(residuals) if self.spec.languages.len() == 1 => {
                residuals.first().map(|&(_, residual)| residual)
            }
            _ => None,
        }
    }

    /// Returns the state without upper bounds on counters, and the length of the runs of bytes that
    /// do not distinguish the two. `longest`: longer runs do not matter. `least`: bounds that fewer
    /// bytes can exhaust are kept. `None` if the state is unchanged.
    pub fn relaxed(
        &self,
        state: LexState,
        longest: u32,
        least: u32,
    ) -> Result<Option<(LexState, u32)>, LimitExceeded> {
        let StateKey::Inside(residuals) = &self.data(state).key else { return Ok(None) };
        let mut builder = self.builder.lock();
        let limits = Limits { character: self.character, longest, least };
        let mut within = u32::MAX;
        let mut relaxed = Residuals::with_capacity(residuals.len());
        for &(language, residual) in residuals {
            let Builder { store, relaxed: memo, .. } = &mut *builder;
            let (id, bytes) = relax(store, memo, residual, limits)?;
            // Otherwise a bound may decide whether there is any text at all.
            if !decides_alike(&builder.store, id) {
                return Ok(None);
            }
            relaxed.push((language, id));
            within = within.min(bytes);
        }
        if relaxed == *residuals {
            return Ok(None);
        }
        Ok(Some((self.intern(&mut builder, StateKey::Inside(relaxed))?, within)))
    }
}
