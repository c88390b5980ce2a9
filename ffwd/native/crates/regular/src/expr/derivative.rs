//! Brzozowski derivatives: what may follow once a byte has been read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::byte_set::ByteSet;
use super::store::{Expr, ExprId, ExprStore};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// How many expressions a search for an accepted string may visit.
pub const MAX_EMPTINESS_STEPS: usize = 3_000_000;

/// After this many expressions a search restarts with each alternative of an intersection alone,
/// because the length of the rest is then known better.
const SPLIT_AFTER: usize = 512;
/// An intersection of at least this many operands adds up their least lengths from the beginning.
pub(super) const MANY_OPERANDS: usize = 4;
/// How many alternatives there may be at once.
pub(super) const MAX_ALTERNATIVES: usize = 128;

/// The number of parts of an expression that are examined for one step: most are known, and many
/// begin with another byte.
const PARTS_PER_STEP: usize = 4;

/// Bytes that no expression of a lexeme tells apart, numbered.
#[derive(Clone, Debug)]
pub struct ByteClasses {
    pub of: Box<[u8; 256]>,
    /// One byte of each class.
    pub representatives: Vec<u8>,
}

impl ByteClasses {
    /// The coarsest partition that respects every set that occurs in `roots`, and that keeps each
    /// byte of `apart` alone.
    pub fn of_expressions(store: &ExprStore, roots: &[ExprId], apart: &[u8]) -> Self {
        let mut sets: Vec<ByteSet> = Vec::new();
        // Bytes that are a class of their own.
        let mut alone = ByteSet::EMPTY;
        apart.iter().for_each(|&byte| alone.insert(byte));
        let mut seen = vec![false; store.len()];
        let mut pending: Vec<ExprId> = roots.to_vec();
        while let Some(id) = pending.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            match store.get(id) {
                Expr::Empty | Expr::Epsilon => {}
                Expr::Bytes(set) if set.len() == 1 => alone = alone.union(set),
                Expr::Bytes(set) => sets.push(*set),
                Expr::Magnitude(_) => {
                    alone.insert(b'.');
                    (b'0'..=b'9').for_each(|digit| alone.insert(digit));
                }
                Expr::Finite(finite) => {
                    finite.alphabet().iter().for_each(|&byte| alone.insert(byte));
                }
                Expr::Listed(listed) => alone = alone.union(&listed.occurring()),
                Expr::Substring(part) => alone = alone.union(&part.occurring()),
                Expr::Concat(head, tail) => pending.extend([*head, *tail]),
                Expr::Or(ids) | Expr::And(ids) => pending.extend(ids.iter()),
                Expr::Not(inner)
                | Expr::Repeat { inner, .. }
                | Expr::Before(inner)
                | Expr::After(inner) => pending.push(*inner),
            }
        }
        sets.sort_unstable();
        sets.dedup();
        let mut of = Box::new([0u8; 256]);
        let mut sizes = [0u16; 257];
        sizes[0] = 256;
        let mut count = 1usize;
        for set in &sets {
            // Split every class that the set cuts.
            let mut hits = [0u16; 256];
            set.iter().for_each(|byte| hits[usize::from(of[usize::from(byte)])] += 1);
            let mut moved = [None::<u8>; 256];
            for byte in set.iter() {
                let class = usize::from(of[usize::from(byte)]);
                if hits[class] == sizes[class] && moved[class].is_none() {
                    continue;
                }
                let target = *moved[class].get_or_insert_with(|| {
                    count += 1;
                    (count - 1) as u8
                });
                hits[class] -= 1;
                sizes[class] -= 1;
                sizes[usize::from(target)] += 1;
                of[usize::from(byte)] = target;
            }
        }
        for byte in alone.iter() {
            let class = &mut of[usize::from(byte)];
            if sizes[usize::from(*class)] > 1 {
                sizes[usize::from(*class)] -= 1;
                *class = count as u8;
                sizes[count] = 1;
                count += 1;
            }
        }
        let mut representatives = vec![0u8; count];
        for byte in (0..=255u8).rev() {
            representatives[usize::from(of[usize::from(byte)])] = byte;
        }
        Self { of, representatives }
    }

    pub fn len(&self) -> usize {
        self.representatives.len()
    }
}

/// Derivatives and emptiness of the expressions of one store, memoised.
#[derive(Debug, Default)]
pub struct Derivatives {
    memo: FxHashMap<(ExprId, u8), ExprId>,
    /// Expressions that look behind, with a byte more behind them.
    pub(super) advanced: FxHashMap<(ExprId, u8), ExprId>,
    /// Expressions with intersection or complement whose emptiness is known.
    alive: FxHashMap<ExprId, bool>,
    /// One byte of each class. Those that last led to a string come first, because a state usually
    /// continues as the one before it did.
    promising: Vec<u8>,
}

impl Derivatives {
    /// The language of the strings `w` such that `byte · w` belongs to `id`.
    pub fn derive(
        &mut self,
        store: &mut ExprStore,
        id: ExprId,
        byte: u8,
    ) -> Result<ExprId, LimitExceeded> {
        match store.get(id) {
            Expr::Empty | Expr::Epsilon => return Ok(ExprId::EMPTY),
            Expr::Bytes(set) => {
                return Ok(if set.contains(byte) { ExprId::EPSILON } else { ExprId::EMPTY })
            }
            _ if !store.may_begin_with(id, byte) => return Ok(ExprId::EMPTY),
            _ => {}
        }
        if let Some(&known) = self.memo.get(&(id, byte)) {
            return Ok(known);
        }
        meter::charge(2)?;
        let derived = match store.get(id).clone() {
            Expr::Empty | Expr::Epsilon | Expr::Bytes(_) => ExprId::EMPTY,
            Expr::Magnitude(magnitude) => match magnitude.derive(byte) {
                Some(next) => store.magnitude(Arc::new(next))?,
                None => ExprId::EMPTY,
            },
            Expr::Finite(finite) => match finite.derive(byte) {
                Some(next) => store.finite(next)?,
                None => ExprId::EMPTY,
            },
            Expr::Listed(listed) => match listed.next(byte) {
                Some(next) => store.listed(next)?,
                None => ExprId::EMPTY,
            },
            Expr::Substring(part) => {
                let mut parts = Vec::with_capacity(2);
                for next in part.next(byte).into_iter().flatten() {
                    parts.push(store.substring(next)?);
                }
                store.or(&parts)?
            }
            Expr::Concat(head, tail) if store.looks_ahead(head) => {
                self.derive_loop(store, head, tail, byte)?
            }
            Expr::Repeat { inner, .. } if store.looks_ahead(inner) => {
                self.derive_loop(store, id, ExprId::EPSILON, byte)?
            }
            Expr::Before(_) | Expr::After(_) => ExprId::EMPTY,
            Expr::Concat(head, tail) => {
                // Most bytes lead nowhere, so the tail's derivative is not needed.
                let first = match self.derive(store, head, byte)? {
                    ExprId::EMPTY => ExprId::EMPTY,
                    first => {
                        let rest = self.advance(store, tail, byte)?;
                        store.concat(first, rest)?
                    }
                };
                if store.nullable(head) {
                    let second = self.derive(store, tail, byte)?;
                    store.or(&[first, second])?
                } else {
                    first
                }
            }
            Expr::Or(ids) => {
                meter::charge(ids.len() / PARTS_PER_STEP)?;
                let mut parts = Vec::with_capacity(ids.len());
                for &part in ids.iter() {
                    let derived = self.derive(store, part, byte)?;
                    if derived != ExprId::EMPTY {
                        parts.push(derived);
                    }
                }
                store.or(&parts)?
            }
            Expr::And(ids) => {
                meter::charge(ids.len() / PARTS_PER_STEP)?;
                let mut parts = Vec::with_capacity(ids.len());
                for &part in ids.iter() {
                    let derived = self.derive(store, part, byte)?;
                    if derived == ExprId::EMPTY {
                        parts.clear();
                        parts.push(derived);
                        break;
                    }
                    parts.push(derived);
                }
                store.and(&parts)?
            }
            Expr::Not(inner) => {
                let derived = self.derive(store, inner, byte)?;
                store.not(derived)?
            }
            Expr::Repeat { inner, min, max } => match self.derive(store, inner, byte)? {
                ExprId::EMPTY => ExprId::EMPTY,
                first => {
                    let fewer = max.map(|max| max - 1);
                    let rest = store.repeat(inner, min.saturating_sub(1), fewer)?;
                    let rest = self.advance(store, rest, byte)?;
                    store.concat(first, rest)?
                }
            },
        };
        self.memo.insert((id, byte), derived);
        Ok(derived)
    }

    /// How many derivatives have been taken.
    pub fn effort(&self) -> usize {
        self.memo.len()
    }

    /// Whether some string belongs to `id`.
    pub fn is_alive(
        &mut self,
        store: &mut ExprStore,
        classes: &ByteClasses,
        id: ExprId,
    ) -> Result<bool, LimitExceeded> {
        if store.positive(id) {
            return Ok(id != ExprId::EMPTY);
        }
        if store.nullable(id) || store.plainly_alive(id) {
            return Ok(true);
        }
        if let Some(&known) = self.alive.get(&id) {
            return Ok(known);
        }
        // The expression with the shortest possible rest comes first: it usually leads straight to
        // a short string. Otherwise each operand of an intersection must be met, and their lengths
        // are added.
        let mut summed = store.operands(id) >= MANY_OPERANDS;
        let least = |store: &ExprStore, id, summed| match summed {
            true => store.sum_of_min_lens(id),
            false => store.min_len(id),
        };
        let mut parents: FxHashMap<ExprId, ExprId> = FxHashMap::default();
        let mut queue = BinaryHeap::from([Reverse((least(store, id, summed), 0u32, id))]);
        parents.insert(id, id);
        let before = self.memo.len();
        if self.promising.is_empty() {
            self.promising.clone_from(&classes.representatives);
        }
        let mut split = false;
        while let Some(Reverse((_, steps, current))) = queue.pop() {
            meter::charge(1 + self.promising.len() / 4)?;
            if !split && parents.len() > SPLIT_AFTER {
                (split, summed) = (true, true);
                let alternatives = store.alternatives(id, MAX_ALTERNATIVES)?;
                if alternatives.len() > 1 {
                    parents = FxHashMap::from_iter([(id, id)]);
                    queue.clear();
                    for part in alternatives {
                        if part != ExprId::EMPTY && !parents.contains_key(&part) {
                            parents.insert(part, id);
                            queue.push(Reverse((least(store, part, summed), 0, part)));
                        }
                    }
                    continue;
                }
                let found = std::mem::take(&mut queue).into_iter();
                let again =
                    |Reverse((_, steps, id))| Reverse((least(store, id, summed), steps, id));
                queue = found.map(again).collect();
            }
            for place in 0..self.promising.len() {
                let byte = self.promising[place];
                let next = self.derive(store, current, byte)?;
                if next == ExprId::EMPTY || parents.contains_key(&next) {
                    continue;
                }
                let known = self.alive.get(&next).copied();
                if known == Some(false) {
                    continue;
                }
                let plain =
                    |id| store.positive(id) || store.nullable(id) || store.plainly_alive(id);
                if known == Some(true) || plain(next) {
                    self.promising[..=place].rotate_right(1);
                    // Every expression on the path to this one is alive.
                    let mut step = current;
                    loop {
                        self.alive.insert(step, true);
                        let parent = parents[&step];
                        if parent == step {
                            break;
                        }
                        step = parent;
                    }
                    return Ok(true);
                }
                parents.insert(next, current);
                if self.memo.len() - before > MAX_EMPTINESS_STEPS {
                    return Err(LimitExceeded::new("emptiness_steps", MAX_EMPTINESS_STEPS));
                }
                let left = least(store, next, summed);
                queue.push(Reverse((left, steps + 1, next)));
            }
        }
        for dead in parents.into_keys() {
            self.alive.insert(dead, false);
        }
        Ok(false)
    }

    pub fn memory_bytes(&self) -> usize {
        (self.memo.capacity() + self.advanced.capacity()) * 16 + self.alive.capacity() * 12
    }
}
