//! Expressions without their upper bounds, so that few states need a separate mask.
//!
//! A counter that no token can exhaust does not affect the allowed tokens, so states that differ
//! only in such counters share one mask.

use rustc_hash::FxHashMap;

use super::store::{Expr, ExprId, ExprStore};
use ffwd_bounds::error::LimitExceeded;

/// Results of [`relax`] by expression and limits.
pub type RelaxMemo = FxHashMap<(ExprId, u32, u32), (ExprId, u32)>;

/// The limits of [`relax`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The expression of any one character.
    pub character: ExprId,
    /// Runs of more bytes do not matter.
    pub longest: u32,
    /// Bounds that can be met within fewer bytes are kept.
    pub least: u32,
}

/// The most bytes that complete a positive expression after any beginning.
fn completion_bound(store: &ExprStore, id: ExprId) -> u32 {
    let mut bound: u32 = 0;
    // The text after the current operand needs at least this much.
    let mut pending = vec![(id, 0u32)];
    // A tree that is shared a lot is given up on rather than walked path by path.
    let mut budget = 10_000;
    while let Some((id, after)) = pending.pop() {
        budget -= 1;
        if budget == 0 {
            return u32::MAX;
        }
        match store.get(id) {
            Expr::Empty | Expr::Epsilon | Expr::Bytes(_) => bound = bound.max(after),
            Expr::Listed(_) => bound = bound.max(after.saturating_add(store.max_len(id))),
            Expr::Substring(part) => {
                bound = bound.max(after.saturating_add(part.longest_piece()));
            }
            Expr::Concat(head, tail) => {
                pending.push((*head, after.saturating_add(store.min_len(*tail))));
                pending.push((*tail, after));
            }
            Expr::Or(ids) => pending.extend(ids.iter().map(|&id| (id, after))),
            Expr::Repeat { inner, min, .. } => {
                let copies = store.min_len(*inner).saturating_mul(min.saturating_sub(1));
                pending.push((*inner, after.saturating_add(copies)));
            }
            Expr::And(_)
            | Expr::Not(_)
            | Expr::Magnitude(_)
            | Expr::Finite(_)
            | Expr::Before(_)
            | Expr::After(_) => return u32::MAX,
        }
    }
    bound
}

/// An expression without the upper bounds that no token reaches, and the number of bytes within
/// which their absence changes nothing.
///
/// Each copy of what is repeated takes its least length, so a bound is met only after that many
/// times the bound. A bound on the number of characters beside another language is dropped where
/// that language can be completed with the characters that are left.
pub fn relax(
    store: &mut ExprStore,
    memo: &mut RelaxMemo,
    id: ExprId,
    limits: Limits,
) -> Result<(ExprId, u32), LimitExceeded> {
    // Without counters there is nothing to walk: not a million listed texts, for example.
    if store.looks_behind(id) || store.looks_ahead(id) || !store.counts(id) {
        return Ok((id, u32::MAX));
    }
    let key = (id, limits.longest, limits.least);
    if let Some(&known) = memo.get(&key) {
        return Ok(known);
    }
    let relaxed = match store.get(id).clone() {
        Expr::Concat(..) => relax_chain(store, memo, id, limits)?,
        Expr::Or(ids) => {
            let mut within = u32::MAX;
            let mut parts = Vec::with_capacity(ids.len());
            for &part in ids.iter() {
                let (part, bytes) = relax(store, memo, part, limits)?;
                within = within.min(bytes);
                parts.push(part);
            }
            (store.or(&parts)?, within)
        }
        Expr::And(ids) => {
            let length = |id: ExprId| match *store.get(id) {
                Expr::Repeat { inner, min, max: Some(max) } if inner == limits.character => {
                    Some((min, max))
                }
                _ => None,
            };
            let of_two = match *ids {
                [first, second] => {
                    let bounds = |one, other| length(one).map(|bounds| (bounds, other));
                    bounds(first, second).or_else(|| bounds(second, first))
                }
                _ => None,
            };
            match of_two {
                Some(((min, max), other)) => {
                    match max.checked_sub(completion_bound(store, other)) {
                        Some(spare) if spare >= limits.least && min == 0 => {
                            let (other, bytes) = relax(store, memo, other, limits)?;
                            (other, bytes.min(spare))
                        }
                        // A text with enough characters can be cut short to just enough of them,
                        // and completed from there with those that are left.
                        Some(spare) if spare >= limits.least && min <= spare => {
                            let least = store.repeat(limits.character, min, None)?;
                            (store.and(&[least, other])?, spare)
                        }
                        _ => (id, u32::MAX),
                    }
                }
                None => (id, u32::MAX),
            }
        }
        Expr::Repeat { inner, min, max } => {
            let copy = store.min_len(inner).max(1);
            let (inner, bytes) = relax(store, memo, inner, limits)?;
            let within = max.map_or(u32::MAX, |max| max.saturating_mul(copy));
            if within < limits.least {
                (store.repeat(inner, min, max)?, bytes)
            } else {
                let min = min.min(limits.longest.saturating_add(1));
                (store.repeat(inner, min, None)?, within.min(bytes))
            }
        }
        Expr::Empty
        | Expr::Epsilon
        | Expr::Bytes(_)
        | Expr::Listed(_)
        | Expr::Substring(_)
        | Expr::Not(_)
        | Expr::Magnitude(_)
        | Expr::Finite(_)
        | Expr::Before(_)
        | Expr::After(_) => (id, u32::MAX),
    };
    memo.insert(key, relaxed);
    Ok(relaxed)
}

/// Whether a relaxed expression is empty exactly if the original is: it has no complement, and
/// intersects only with a least number of characters.
pub fn decides_alike(store: &ExprStore, id: ExprId) -> bool {
    let is_least = |id: ExprId| matches!(*store.get(id), Expr::Repeat { inner, max: None, .. } if store.any_character() == Some(inner));
    store.positive(id)
        || match store.get(id) {
            Expr::And(ids) => ids.iter().all(|&id| is_least(id) || store.positive(id)),
            Expr::Or(ids) => ids.iter().all(|&id| decides_alike(store, id)),
            _ => false,
        }
}

/// As [`relax`], along a right-nested concatenation without recursing per link.
fn relax_chain(
    store: &mut ExprStore,
    memo: &mut RelaxMemo,
    id: ExprId,
    limits: Limits,
) -> Result<(ExprId, u32), LimitExceeded> {
    let mut heads = Vec::new();
    let mut current = id;
    while let Expr::Concat(head, tail) = *store.get(current) {
        // Parts after this many are out of reach, unless they may be empty.
        if heads.len() > 4 * limits.longest as usize {
            break;
        }
        heads.push(head);
        current = tail;
    }
    let (mut rest, mut within) = match store.get(current) {
        Expr::Concat(..) => (current, u32::MAX),
        _ => relax(store, memo, current, limits)?,
    };
    while let Some(head) = heads.pop() {
        let (head, bytes) = relax(store, memo, head, limits)?;
        within = within.min(bytes);
        rest = store.concat(head, rest)?;
    }
    Ok((rest, within))
}
