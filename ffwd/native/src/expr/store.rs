//! Hash-consed regular expressions over bytes.
//!
//! Constructors simplify, so that equal languages tend to get equal ids and a lexeme has few
//! states. One simplification is not purely algebraic: expressions here are spellings of texts
//! (see [`super::lower`]), in which every character is a self-delimiting run of bytes. All
//! alternatives of a state therefore stand at the same place within a character, and "any text"
//! absorbs every alternative it stands beside.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::byte_set::ByteSet;
use crate::error::LimitExceeded;
use crate::regex::Magnitude;

/// An expression of an [`ExprStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(super) u32);

impl ExprId {
    /// No string.
    pub const EMPTY: Self = Self(0);
    /// The empty string.
    pub const EPSILON: Self = Self(1);
    /// Every string of bytes.
    pub const EVERYTHING: Self = Self(2);

    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    Empty,
    Epsilon,
    Bytes(ByteSet),
    /// Never empty.
    Magnitude(Arc<Magnitude>),
    /// Right-nested: the head is never a `Concat`.
    Concat(ExprId, ExprId),
    /// Sorted, without duplicates, at most one `Bytes`.
    Or(Arc<[ExprId]>),
    And(Arc<[ExprId]>),
    Not(ExprId),
    Repeat {
        inner: ExprId,
        min: u32,
        max: Option<u32>,
    },
    /// The empty string where all that was read before is in this language: what of it is left.
    Before(ExprId),
    /// The empty string where all that follows is in this language. Only in the inside of a
    /// repetition; elsewhere it is intersected with what follows.
    After(ExprId),
}

#[derive(Clone, Copy, Debug)]
struct Facts {
    nullable: bool,
    /// Built without intersection, complement and conditions on what is around: then it is empty
    /// only if it is `EMPTY`.
    positive: bool,
    /// Whether it depends on what was read before.
    behind: bool,
    /// Whether it depends on what follows.
    ahead: bool,
    /// How deep a derivative recurses.
    depth: u32,
    /// A lower bound on the length of its strings, exact where `positive` but for magnitudes.
    min_len: u32,
    /// An upper bound on the length of its strings; `u32::MAX` if there is none.
    max_len: u32,
    /// ASCII bytes that each of its strings has, as bits.
    needs: u128,
    /// ASCII bytes that its strings can have.
    may_have: u128,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            nullable: false,
            positive: true,
            behind: false,
            ahead: false,
            depth: 1,
            min_len: 0,
            max_len: 0,
            needs: 0,
            may_have: 0,
        }
    }
}

/// Any ASCII bytes.
const ANY_ASCII: u128 = u128::MAX;

/// How deep an expression may nest, so that derivatives stay within a small native stack.
pub const MAX_DEPTH: u32 = 1_000;
/// How many expressions one store may hold.
pub const MAX_EXPRESSIONS: usize = 2_000_000;
/// How many of them may come of derivatives, which take longer than what is written in a pattern.
pub const MAX_DERIVED: usize = 1_000_000;

#[derive(Clone, Debug)]
pub struct ExprStore {
    exprs: Vec<Expr>,
    facts: Vec<Facts>,
    ids: FxHashMap<Expr, ExprId>,
    /// "Any text" in this store's spelling; absorbs alternatives.
    universe: Option<ExprId>,
    /// One character of it.
    any_character: Option<ExprId>,
    capacity: usize,
}

impl Default for ExprStore {
    fn default() -> Self {
        Self::new()
    }
}

impl ExprStore {
    pub fn new() -> Self {
        let mut store = Self {
            exprs: Vec::new(),
            facts: Vec::new(),
            ids: FxHashMap::default(),
            universe: None,
            any_character: None,
            capacity: MAX_EXPRESSIONS,
        };
        let basics = [
            (Expr::Empty, false, true),
            (Expr::Epsilon, true, true),
            (Expr::Not(ExprId::EMPTY), true, false),
        ];
        for (expr, nullable, positive) in basics {
            let id = ExprId(store.exprs.len() as u32);
            store.exprs.push(expr.clone());
            let (max_len, may_have) =
                if expr == Expr::Epsilon { (0, 0) } else { (u32::MAX, ANY_ASCII) };
            store.facts.push(Facts { nullable, positive, max_len, may_have, ..Facts::default() });
            store.ids.insert(expr, id);
        }
        store
    }

    /// Declares which expression is "any text" in the spelling of this store, and which is one
    /// character of it.
    pub fn set_universe(&mut self, universe: ExprId, character: ExprId) {
        self.universe = Some(universe);
        self.any_character = Some(character);
    }

    pub fn any_character(&self) -> Option<ExprId> {
        self.any_character
    }

    /// Declares that what comes from now on are derivatives.
    pub fn limit_derivatives(&mut self) {
        self.capacity = MAX_EXPRESSIONS.min(self.exprs.len() + MAX_DERIVED);
    }

    pub fn universe(&self) -> Option<ExprId> {
        self.universe
    }

    #[inline]
    pub fn get(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    #[inline]
    pub fn nullable(&self, id: ExprId) -> bool {
        self.facts[id.index()].nullable
    }

    #[inline]
    pub fn positive(&self, id: ExprId) -> bool {
        self.facts[id.index()].positive
    }

    /// Whether the expression depends on what was read before it.
    #[inline]
    pub fn looks_behind(&self, id: ExprId) -> bool {
        self.facts[id.index()].behind
    }

    /// Whether the expression has conditions on what follows it that are not yet part of it.
    #[inline]
    pub fn looks_ahead(&self, id: ExprId) -> bool {
        self.facts[id.index()].ahead
    }

    /// Whether the strings of the expression are the same wherever it stands.
    pub fn stands_alone(&self, id: ExprId) -> bool {
        !self.looks_behind(id) && !self.looks_ahead(id)
    }

    /// An upper bound on the length of the strings of an expression, in bytes; `u32::MAX` for none.
    pub fn max_len(&self, id: ExprId) -> u32 {
        self.facts[id.index()].max_len
    }

    /// A lower bound on the length of the strings of an expression, in bytes.
    #[inline]
    pub fn min_len(&self, id: ExprId) -> u32 {
        self.facts[id.index()].min_len
    }

    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    pub fn is_empty(&self) -> bool {
        false
    }

    fn intern(&mut self, expr: Expr) -> Result<ExprId, LimitExceeded> {
        if let Some(&id) = self.ids.get(&expr) {
            return Ok(id);
        }
        if self.exprs.len() >= self.capacity {
            return Err(LimitExceeded::new("expressions of one lexeme", self.capacity));
        }
        let facts = self.facts_of(&expr);
        if facts.depth > MAX_DEPTH {
            return Err(LimitExceeded::new("nesting of an expression", MAX_DEPTH as usize));
        }
        let id = ExprId(self.exprs.len() as u32);
        self.exprs.push(expr.clone());
        self.facts.push(facts);
        self.ids.insert(expr, id);
        Ok(id)
    }

    fn facts_of(&self, expr: &Expr) -> Facts {
        let of = |id: &ExprId| self.facts[id.index()];
        let any = |ids: &[ExprId], fact: fn(Facts) -> bool| ids.iter().any(|id| fact(of(id)));
        let all = |ids: &[ExprId], fact: fn(Facts) -> bool| ids.iter().all(|id| fact(of(id)));
        let least = |ids: &[ExprId], fact: fn(Facts) -> u32| {
            ids.iter().map(|id| fact(of(id))).min().unwrap_or(0)
        };
        let most = |ids: &[ExprId], fact: fn(Facts) -> u32| {
            ids.iter().map(|id| fact(of(id))).max().unwrap_or(0)
        };
        match expr {
            Expr::Empty | Expr::Epsilon => {
                Facts { nullable: *expr == Expr::Epsilon, ..Facts::default() }
            }
            Expr::Bytes(set) => {
                let may_have = set.ascii();
                let needs = if set.len() == 1 { may_have } else { 0 };
                Facts { min_len: 1, max_len: 1, needs, may_have, ..Facts::default() }
            }
            Expr::Magnitude(magnitude) => Facts {
                nullable: magnitude.accepts(),
                min_len: u32::from(!magnitude.accepts()),
                max_len: u32::MAX,
                may_have: ANY_ASCII,
                ..Facts::default()
            },
            Expr::Before(id) | Expr::After(id) => Facts {
                nullable: of(id).nullable,
                positive: false,
                behind: matches!(expr, Expr::Before(_)) || of(id).behind,
                ahead: matches!(expr, Expr::After(_)),
                depth: of(id).depth + 1,
                ..Facts::default()
            },
            Expr::Concat(head, tail) => {
                let (head, tail) = (of(head), of(tail));
                // A derivative enters the tail only where the head may be empty.
                let depth = if head.nullable { head.depth.max(tail.depth) } else { head.depth };
                Facts {
                    nullable: head.nullable && tail.nullable,
                    positive: head.positive && tail.positive,
                    behind: head.behind || tail.behind,
                    ahead: head.ahead || tail.ahead,
                    depth: depth + 1,
                    min_len: head.min_len.saturating_add(tail.min_len),
                    max_len: head.max_len.saturating_add(tail.max_len),
                    needs: head.needs | tail.needs,
                    may_have: head.may_have | tail.may_have,
                }
            }
            Expr::Or(ids) => Facts {
                nullable: any(ids, |of| of.nullable),
                positive: all(ids, |of| of.positive),
                behind: any(ids, |of| of.behind),
                ahead: any(ids, |of| of.ahead),
                depth: most(ids, |of| of.depth) + 1,
                min_len: least(ids, |of| of.min_len),
                max_len: most(ids, |of| of.max_len),
                needs: ids.iter().fold(ANY_ASCII, |needs, id| needs & of(id).needs),
                may_have: ids.iter().fold(0, |may, id| may | of(id).may_have),
            },
            Expr::And(ids) => Facts {
                nullable: all(ids, |of| of.nullable),
                positive: false,
                behind: any(ids, |of| of.behind),
                ahead: any(ids, |of| of.ahead),
                depth: most(ids, |of| of.depth) + 1,
                min_len: most(ids, |of| of.min_len),
                max_len: least(ids, |of| of.max_len),
                needs: self.needed(ids),
                may_have: self.possible(ids),
            },
            Expr::Not(id) => Facts {
                needs: 0,
                nullable: !of(id).nullable,
                positive: false,
                behind: of(id).behind,
                ahead: of(id).ahead,
                depth: of(id).depth + 1,
                // What depends on its surroundings may be empty somewhere else.
                min_len: u32::from(of(id).nullable && !of(id).behind && !of(id).ahead),
                max_len: u32::MAX,
                may_have: ANY_ASCII,
            },
            Expr::Repeat { inner, min, max } => {
                let inner = of(inner);
                let max_len = match max {
                    Some(max) if inner.max_len < u32::MAX => inner.max_len.saturating_mul(*max),
                    _ => u32::MAX,
                };
                Facts {
                    nullable: *min == 0 || inner.nullable,
                    positive: inner.positive,
                    behind: inner.behind,
                    ahead: inner.ahead,
                    depth: inner.depth + 1,
                    min_len: inner.min_len.saturating_mul(*min),
                    max_len,
                    needs: if *min > 0 { inner.needs } else { 0 },
                    may_have: inner.may_have,
                }
            }
        }
    }

    pub fn bytes(&mut self, set: ByteSet) -> Result<ExprId, LimitExceeded> {
        if set.is_empty() {
            return Ok(ExprId::EMPTY);
        }
        self.intern(Expr::Bytes(set))
    }

    pub fn magnitude(&mut self, magnitude: Arc<Magnitude>) -> Result<ExprId, LimitExceeded> {
        self.intern(Expr::Magnitude(magnitude))
    }

    pub fn literal(&mut self, text: &[u8]) -> Result<ExprId, LimitExceeded> {
        let mut id = ExprId::EPSILON;
        for &byte in text.iter().rev() {
            let head = self.bytes(ByteSet::single(byte))?;
            id = self.concat(head, id)?;
        }
        Ok(id)
    }

    pub fn concat(&mut self, head: ExprId, tail: ExprId) -> Result<ExprId, LimitExceeded> {
        if head == ExprId::EMPTY || tail == ExprId::EMPTY {
            return Ok(ExprId::EMPTY);
        }
        if head == ExprId::EPSILON {
            return Ok(tail);
        }
        if tail == ExprId::EPSILON {
            return Ok(head);
        }
        // Any text twice over is any text.
        if Some(head) == self.universe {
            if Some(tail) == self.universe {
                return Ok(head);
            }
            if let Expr::Concat(next, _) = *self.get(tail) {
                if Some(next) == self.universe {
                    return Ok(tail);
                }
            }
        }
        // Right-nest, iteratively: heads are short, tails may be long.
        let mut heads = Vec::new();
        let mut head = head;
        while let Expr::Concat(first, rest) = *self.get(head) {
            heads.push(first);
            head = rest;
        }
        let mut id = self.intern(Expr::Concat(head, tail))?;
        while let Some(first) = heads.pop() {
            id = self.intern(Expr::Concat(first, id))?;
        }
        Ok(id)
    }

    pub fn or(&mut self, parts: &[ExprId]) -> Result<ExprId, LimitExceeded> {
        let mut kept: Vec<ExprId> = Vec::with_capacity(parts.len());
        let mut bytes = ByteSet::EMPTY;
        for &part in parts {
            match self.get(part) {
                Expr::Empty => {}
                Expr::Or(inner) => {
                    for &id in inner.iter() {
                        match self.get(id) {
                            Expr::Bytes(set) => bytes = bytes.union(set),
                            _ => kept.push(id),
                        }
                    }
                }
                Expr::Bytes(set) => bytes = bytes.union(set),
                _ => kept.push(part),
            }
        }
        if !bytes.is_empty() {
            let id = self.bytes(bytes)?;
            kept.push(id);
        }
        kept.sort_unstable();
        kept.dedup();
        if kept.contains(&ExprId::EVERYTHING) {
            return Ok(ExprId::EVERYTHING);
        }
        if let Some(universe) = self.universe {
            if kept.contains(&universe) {
                return Ok(universe);
            }
        }
        if kept.len() > 1 && kept.contains(&ExprId::EPSILON) {
            // Another operand already has the empty string.
            if kept
                .iter()
                .any(|&id| id != ExprId::EPSILON && self.nullable(id) && self.stands_alone(id))
            {
                kept.retain(|&id| id != ExprId::EPSILON);
            }
        }
        match kept.len() {
            0 => Ok(ExprId::EMPTY),
            1 => Ok(kept[0]),
            _ => self.intern(Expr::Or(kept.into())),
        }
    }

    pub fn and(&mut self, parts: &[ExprId]) -> Result<ExprId, LimitExceeded> {
        let mut kept: Vec<ExprId> = Vec::with_capacity(parts.len());
        for &part in parts {
            match self.get(part) {
                Expr::Empty => return Ok(ExprId::EMPTY),
                Expr::And(inner) => kept.extend(inner.iter().copied()),
                _ if part == ExprId::EVERYTHING => {}
                _ => kept.push(part),
            }
        }
        kept.sort_unstable();
        kept.dedup();
        if kept.contains(&ExprId::EPSILON) && kept.iter().all(|&id| self.stands_alone(id)) {
            let all = kept.iter().all(|&id| self.nullable(id));
            return Ok(if all { ExprId::EPSILON } else { ExprId::EMPTY });
        }
        if let Some(universe) = self.universe {
            // Every spelling is a text; only a complement can hold what is none.
            let texts = |id: &ExprId| *id != universe && !matches!(self.get(*id), Expr::Not(_));
            if kept.contains(&universe) && kept.iter().any(texts) {
                kept.retain(|&id| id != universe);
            }
        }
        // A text that is none.
        let text = kept.iter().any(|&id| !matches!(self.get(id), Expr::Not(_)));
        for &id in &kept {
            if let Expr::Not(inner) = self.get(id) {
                if kept.binary_search(inner).is_ok() || (text && Some(*inner) == self.universe) {
                    return Ok(ExprId::EMPTY);
                }
            }
        }
        if let Some(parts) = self.absorb(&kept)? {
            return self.and(&parts);
        }
        let least = kept.iter().map(|id| self.facts[id.index()].min_len).max().unwrap_or(0);
        let most = kept.iter().map(|id| self.facts[id.index()].max_len).min().unwrap_or(0);
        if least > most || self.needed(&kept) & !self.possible(&kept) != 0 {
            return Ok(ExprId::EMPTY);
        }
        match kept.len() {
            0 => Ok(ExprId::EVERYTHING),
            1 => Ok(kept[0]),
            _ => self.intern(Expr::And(kept.into())),
        }
    }

    /// The ASCII bytes that each string of an intersection has.
    fn needed(&self, ids: &[ExprId]) -> u128 {
        ids.iter().fold(0, |needs, id| needs | self.facts[id.index()].needs)
    }

    /// The ASCII bytes that strings of an intersection can have.
    fn possible(&self, ids: &[ExprId]) -> u128 {
        ids.iter().fold(ANY_ASCII, |may, id| may & self.facts[id.index()].may_have)
    }

    /// The operands of an intersection without those of unions that the others make so: `x & (y |
    /// x & z)` is `x & (y | z)`. So repetitions with lookaheads do not nest ever deeper.
    fn absorb(&mut self, kept: &[ExprId]) -> Result<Option<Vec<ExprId>>, LimitExceeded> {
        for (place, &id) in kept.iter().enumerate() {
            let Expr::Or(alternatives) = self.get(id) else { continue };
            if !alternatives.iter().any(|&part| self.remainder(kept, part).is_some()) {
                continue;
            }
            let alternatives = alternatives.clone();
            let mut simpler = Vec::with_capacity(alternatives.len());
            for &alternative in alternatives.iter() {
                simpler.push(match self.remainder(kept, alternative) {
                    Some(rest) => self.and(&rest)?,
                    None => alternative,
                });
            }
            let mut parts = kept.to_vec();
            parts[place] = self.or(&simpler)?;
            return Ok(Some(parts));
        }
        Ok(None)
    }

    /// What an operand asks for beside all of `kept`, if that is less than the operand and still
    /// a text (complements alone also have what spells none).
    fn remainder(&self, kept: &[ExprId], id: ExprId) -> Option<Vec<ExprId>> {
        let is_known = |id: &ExprId| kept.binary_search(id).is_ok();
        let Expr::And(members) = self.get(id) else { return is_known(&id).then(Vec::new) };
        if !members.iter().any(is_known) {
            return None;
        }
        let rest: Vec<ExprId> = members.iter().copied().filter(|id| !is_known(id)).collect();
        let text = rest.iter().any(|&id| !matches!(self.get(id), Expr::Not(_)));
        (text || rest.is_empty()).then_some(rest)
    }

    pub fn not(&mut self, inner: ExprId) -> Result<ExprId, LimitExceeded> {
        match *self.get(inner) {
            Expr::Not(inner) => Ok(inner),
            Expr::Empty => Ok(ExprId::EVERYTHING),
            _ => self.intern(Expr::Not(inner)),
        }
    }

    pub fn before(&mut self, text: ExprId) -> Result<ExprId, LimitExceeded> {
        if text == ExprId::EMPTY {
            return Ok(text);
        }
        self.intern(Expr::Before(text))
    }

    pub fn after(&mut self, text: ExprId) -> Result<ExprId, LimitExceeded> {
        if text == ExprId::EMPTY {
            return Ok(text);
        }
        self.intern(Expr::After(text))
    }

    pub fn repeat(
        &mut self,
        inner: ExprId,
        min: u32,
        max: Option<u32>,
    ) -> Result<ExprId, LimitExceeded> {
        match (inner, min, max) {
            (_, _, Some(0)) | (ExprId::EPSILON, _, _) | (ExprId::EMPTY, 0, _) => {
                return Ok(ExprId::EPSILON)
            }
            (ExprId::EMPTY, _, _) => return Ok(ExprId::EMPTY),
            (_, 1, Some(1)) => return Ok(inner),
            _ => {}
        }
        // Copies of what may be empty: the lower bound means nothing. What depends on its
        // surroundings is never empty here.
        let min = if self.nullable(inner) { 0 } else { min };
        if let Expr::Repeat { min: 0, max: None, .. } = *self.get(inner) {
            if max.is_none_or(|max| max >= 1) {
                return Ok(inner);
            }
        }
        // Copies of copies are copies, where their numbers leave no gap.
        if let Expr::Repeat { inner: copy, min: low, max: Some(high) } = *self.get(inner) {
            let gapless = match min.checked_mul(high) {
                Some(last) => min.saturating_add(1).saturating_mul(low) <= last.saturating_add(1),
                None => false,
            };
            let least = min.checked_mul(low);
            let most = max.map(|max| max.checked_mul(high));
            if let (true, Some(least), None | Some(Some(_))) = (gapless, least, most) {
                return self.repeat(copy, least, most.flatten());
            }
        }
        self.intern(Expr::Repeat { inner, min, max })
    }

    /// About how many bytes of memory the store holds.
    pub fn memory_bytes(&self) -> usize {
        self.exprs.len() * (2 * std::mem::size_of::<Expr>() + std::mem::size_of::<Facts>() + 16)
    }
}
