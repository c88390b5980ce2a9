//! Conditions on the text before and after a position.
//!
//! An [`Expr::Before`] holds what is left of its language after everything read so far. So each
//! byte derives all of them, wherever they stand in an expression. An [`Expr::After`] is
//! intersected with what follows it as soon as that is known. This is at once, except inside a
//! repetition, where each copy has another rest.

use super::derivative::Derivatives;
use super::store::{Expr, ExprId, ExprStore};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

impl Derivatives {
    /// The expression once a byte has been read in front of it.
    pub(super) fn advance(
        &mut self,
        store: &mut ExprStore,
        id: ExprId,
        byte: u8,
    ) -> Result<ExprId, LimitExceeded> {
        if !store.looks_behind(id) {
            return Ok(id);
        }
        // A lexeme with lookbehinds has very many of these, so even a look-up is charged.
        meter::charge(1)?;
        if let Some(&known) = self.advanced.get(&(id, byte)) {
            return Ok(known);
        }
        meter::charge(2)?;
        let mut all = |store: &mut ExprStore, ids: &[ExprId]| {
            ids.iter().map(|&id| self.advance(store, id, byte)).collect::<Result<Vec<_>, _>>()
        };
        let advanced = match store.get(id).clone() {
            Expr::Empty
            | Expr::Epsilon
            | Expr::Bytes(_)
            | Expr::Magnitude(_)
            | Expr::Finite(_)
            | Expr::Listed(_)
            | Expr::Substring(_) => id,
            Expr::Concat(head, tail) => {
                let parts = all(store, &[head, tail])?;
                store.concat(parts[0], parts[1])?
            }
            Expr::Or(ids) => {
                let parts = all(store, &ids)?;
                store.or(&parts)?
            }
            Expr::And(ids) => {
                let parts = all(store, &ids)?;
                store.and(&parts)?
            }
            Expr::Not(inner) => {
                let inner = self.advance(store, inner, byte)?;
                store.not(inner)?
            }
            Expr::Repeat { inner, min, max } => {
                let inner = self.advance(store, inner, byte)?;
                store.repeat(inner, min, max)?
            }
            Expr::Before(text) => {
                let text = self.derive(store, text, byte)?;
                store.before(text)?
            }
            Expr::After(text) => {
                let text = self.advance(store, text, byte)?;
                store.after(text)?
            }
        };
        self.advanced.insert((id, byte), advanced);
        Ok(advanced)
    }

    /// The derivative of a repetition that looks ahead, followed by `tail` and the end. Its copies
    /// are not empty, and there may be none.
    pub(super) fn derive_loop(
        &mut self,
        store: &mut ExprStore,
        head: ExprId,
        tail: ExprId,
        byte: u8,
    ) -> Result<ExprId, LimitExceeded> {
        let without = self.derive(store, tail, byte)?;
        let Expr::Repeat { inner, max, .. } = *store.get(head) else { return Ok(without) };
        let more = store.repeat(inner, 0, max.map(|max| max - 1))?;
        let rest = store.concat(more, tail)?;
        let copy = resolve(store, inner, rest)?;
        let with = self.derive(store, copy, byte)?;
        store.or(&[without, with])
    }
}

/// `span` followed by `rest` and the end, with the conditions on what follows made part of it.
pub(super) fn resolve(
    store: &mut ExprStore,
    span: ExprId,
    rest: ExprId,
) -> Result<ExprId, LimitExceeded> {
    if !store.looks_ahead(span) {
        return store.concat(span, rest);
    }
    match store.get(span).clone() {
        Expr::After(text) => store.and(&[text, rest]),
        Expr::Concat(head, tail) => {
            let rest = resolve(store, tail, rest)?;
            resolve(store, head, rest)
        }
        Expr::Or(ids) => {
            let mut parts = Vec::with_capacity(ids.len());
            for &id in ids.iter() {
                parts.push(resolve(store, id, rest)?);
            }
            store.or(&parts)
        }
        _ => store.concat(span, rest),
    }
}
