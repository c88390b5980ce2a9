//! Hash-consed regular expressions over bytes.
//!
//! Constructors simplify, so that equal languages tend to have equal ids and a lexeme has few
//! states. One simplification is not purely algebraic: expressions here are encodings of texts (see
//! [`super::lower`]), in which every character is a self-delimiting run of bytes. All alternatives
//! of a state are therefore at the same position within a character, and "any text" absorbs every
//! other alternative.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::byte_set::ByteSet;
use super::facts::{facts_of, needed, possible, Facts, ANY_ASCII};
use super::listed::{Listed, TextTable};
use super::substring::{Substring, SubstringTable};
use crate::regex::{Finite, Magnitude};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// An expression of an `ExprStore`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(super) u32);

impl ExprId {
    /// No string.
    pub(crate) const EMPTY: Self = Self(0);
    /// The empty string.
    pub(crate) const EPSILON: Self = Self(1);
    /// Every string of bytes.
    pub(crate) const EVERYTHING: Self = Self(2);

    #[inline]
    pub(crate) fn index(self) -> usize {
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
    /// Never over.
    Finite(Finite),
    /// Many texts. Never only one that is over.
    Listed(Listed),
    /// Never over.
    Substring(Substring),
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
    /// The empty string where all text before is in this language. The operand is the derivative of
    /// the language so far.
    Before(ExprId),
    /// The empty string where all text after is in this language. It occurs only inside a
    /// repetition; elsewhere it is intersected with what follows.
    After(ExprId),
}

/// How deep an expression may nest, so that derivatives stay within a small native stack.
pub const MAX_DEPTH: u32 = 1_000;
/// Operands from this number on are charged.
const MANY_PARTS: usize = 8;
/// The cost of a new expression, including its properties.
const NEW_STEPS: usize = 4;
/// How many expressions one store may hold.
pub const MAX_EXPRESSIONS: usize = 2_000_000;
/// How many of them may be derivatives, which take longer than the expressions of a pattern.
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
    /// Expressions of exactly one character.
    characters: FxHashSet<ExprId>,
    capacity: usize,
    /// How many bytes of memory the tables of texts take.
    table_bytes: usize,
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
            characters: FxHashSet::default(),
            capacity: MAX_EXPRESSIONS,
            table_bytes: 0,
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
            let first = if positive { ByteSet::EMPTY } else { ByteSet::ALL };
            let facts = Facts { nullable, positive, max_len, may_have, first, ..Facts::default() };
            store.facts.push(facts);
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

    /// Declares that an expression is one character of some kind.
    pub fn add_character(&mut self, id: ExprId) {
        if id != ExprId::EMPTY {
            self.characters.insert(id);
        }
    }

    /// Whether an expression was declared to be one character of some kind.
    pub fn is_character(&self, id: ExprId) -> bool {
        self.characters.contains(&id)
    }

    pub fn any_character(&self) -> Option<ExprId> {
        self.any_character
    }

    /// Declares that all further expressions are derivatives.
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

    /// Whether some derivative by this byte may not be `EMPTY`.
    #[inline]
    pub fn may_begin_with(&self, id: ExprId, byte: u8) -> bool {
        self.facts[id.index()].first.contains(byte)
    }

    /// Whether its strings may have an ASCII byte.
    pub fn may_have(&self, id: ExprId, byte: u8) -> bool {
        byte.is_ascii() && self.may_have_ascii(id) >> byte & 1 == 1
    }

    /// The ASCII bytes that its strings can have, as bits.
    pub fn may_have_ascii(&self, id: ExprId) -> u128 {
        self.facts[id.index()].may_have
    }

    /// Whether a repetition in it counts, other than under a complement or a condition.
    pub fn counts(&self, id: ExprId) -> bool {
        self.facts[id.index()].counts
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

    /// Returns whether an expression is clearly not empty: an intersection of a language with
    /// arbitrarily long strings and texts of at least this many characters.
    pub fn plainly_alive(&self, id: ExprId) -> bool {
        let (Expr::And(ids), Some(universe)) = (self.get(id), self.universe) else { return false };
        let Expr::Repeat { inner: character, .. } = *self.get(universe) else { return false };
        let is_long = |id: &ExprId| matches!(*self.get(*id), Expr::Repeat { inner, max: None, .. } if inner == character);
        match ids[..] {
            [one, other] => {
                let is_endless = |id: ExprId| self.positive(id) && self.facts[id.index()].endless;
                (is_long(&one) && is_endless(other)) || (is_long(&other) && is_endless(one))
            }
            _ => false,
        }
    }

    /// The sum of the least lengths of an intersection's operands; the least length of any other
    /// expression.
    pub fn sum_of_min_lens(&self, id: ExprId) -> u32 {
        match self.get(id) {
            Expr::And(ids) => ids.iter().fold(0, |sum, &id| self.min_len(id).saturating_add(sum)),
            _ => self.min_len(id),
        }
    }

    /// How many operands an intersection has; 1 for another expression.
    pub fn operands(&self, id: ExprId) -> usize {
        match self.get(id) {
            Expr::And(ids) => ids.len(),
            _ => 1,
        }
    }

    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    fn intern(&mut self, expr: Expr) -> Result<ExprId, LimitExceeded> {
        if self.exprs.len() >= self.capacity {
            return match self.ids.get(&expr) {
                Some(&id) => Ok(id),
                None => Err(LimitExceeded::new("lexeme_expressions", self.capacity)),
            };
        }
        // One look-up for both cases: a long enumeration has a million expressions.
        let entry = match self.ids.entry(expr) {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(entry) => entry,
        };
        let width = match entry.key() {
            Expr::Or(ids) | Expr::And(ids) => ids.len(),
            _ => 0,
        };
        meter::charge(NEW_STEPS + width / 2)?;
        meter::check::expression_nodes(self.exprs.len())?;
        let facts = facts_of(&self.facts, entry.key());
        if facts.depth > MAX_DEPTH {
            return Err(LimitExceeded::new("expression_nesting", MAX_DEPTH as usize));
        }
        let id = ExprId(self.exprs.len() as u32);
        self.exprs.push(entry.key().clone());
        self.facts.push(facts);
        entry.insert(id);
        Ok(id)
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

    pub fn finite(&mut self, finite: Finite) -> Result<ExprId, LimitExceeded> {
        if finite.is_over() {
            return Ok(ExprId::EPSILON);
        }
        self.intern(Expr::Finite(finite))
    }

    /// The texts of a table.
    pub fn table(&mut self, table: TextTable) -> Result<ExprId, LimitExceeded> {
        let (known, bytes) = (self.exprs.len(), table.memory_bytes());
        let Some(listed) = Listed::all(Arc::new(table)) else { return Ok(ExprId::EMPTY) };
        let id = self.listed(listed)?;
        if self.exprs.len() > known {
            self.table_bytes += bytes;
        }
        Ok(id)
    }

    pub fn listed(&mut self, listed: Listed) -> Result<ExprId, LimitExceeded> {
        if listed.is_over() {
            return Ok(ExprId::EPSILON);
        }
        self.intern(Expr::Listed(listed))
    }

    /// The runs of the pieces of a text.
    pub fn substrings(&mut self, table: SubstringTable) -> Result<ExprId, LimitExceeded> {
        let (known, bytes) = (self.exprs.len(), table.memory_bytes());
        let id = self.substring(Substring::all(Arc::new(table)))?;
        if self.exprs.len() > known {
            self.table_bytes += bytes;
        }
        Ok(id)
    }

    pub fn substring(&mut self, substring: Substring) -> Result<ExprId, LimitExceeded> {
        if substring.is_over() {
            return Ok(ExprId::EPSILON);
        }
        self.intern(Expr::Substring(substring))
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
        if parts.len() >= MANY_PARTS {
            meter::charge(parts.len())?;
        }
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
        self.drop_fewer(&mut kept);
        match kept.len() {
            0 => Ok(ExprId::EMPTY),
            1 => Ok(kept[0]),
            _ => self.intern(Expr::Or(kept.into())),
        }
    }

    pub fn and(&mut self, parts: &[ExprId]) -> Result<ExprId, LimitExceeded> {
        if parts.len() >= MANY_PARTS {
            meter::charge(2 * parts.len())?;
        }
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
            // Every spelling is a text; only a complement can contain other strings.
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
        if let Some(parts) = self.count_once(&kept)? {
            return self.and(&parts);
        }
        let least = kept.iter().map(|id| self.facts[id.index()].min_len).max().unwrap_or(0);
        let most = kept.iter().map(|id| self.facts[id.index()].max_len).min().unwrap_or(0);
        if least > most || needed(&self.facts, &kept) & !possible(&self.facts, &kept) != 0 {
            return Ok(ExprId::EMPTY);
        }
        match kept.len() {
            0 => Ok(ExprId::EVERYTHING),
            1 => Ok(kept[0]),
            _ => self.intern(Expr::And(kept.into())),
        }
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
        // Copies of a part that may be empty: the lower bound has no effect. A part that depends on
        // its context is never empty here.
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
        self.table_bytes
            + self.exprs.len()
                * (2 * std::mem::size_of::<Expr>() + std::mem::size_of::<Facts>() + 16)
    }
}
