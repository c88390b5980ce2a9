//! Builds symbols: equal ones are shared, and parts that add no text are dropped.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::symbols::{Symbol, SymbolId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// A table that makes symbols.
pub(super) trait Table {
    fn get(&self, id: SymbolId) -> &Symbol;

    fn is_nullable(&self, id: SymbolId) -> bool;

    fn intern(&mut self, symbol: Symbol, nullable: bool) -> Result<SymbolId, LimitExceeded>;

    fn seq(&mut self, first: SymbolId, then: SymbolId) -> Result<SymbolId, LimitExceeded> {
        if first == SymbolId::EMPTY {
            return Ok(then);
        }
        if then == SymbolId::EMPTY {
            return Ok(first);
        }
        let nullable = self.is_nullable(first) && self.is_nullable(then);
        self.intern(Symbol::Seq(first, then), nullable)
    }

    /// Any of the parts, and the empty text if `nullable`.
    fn choice(&mut self, parts: Vec<SymbolId>, nullable: bool) -> Result<SymbolId, LimitExceeded> {
        let mut seen = FxHashSet::default();
        let parts: Vec<SymbolId> = parts.into_iter().filter(|&part| seen.insert(part)).collect();
        let alone = match parts[..] {
            [one] => self.is_nullable(one) || !nullable,
            _ => false,
        };
        if alone {
            return Ok(parts[0]);
        }
        let nullable = nullable || parts.iter().any(|&part| self.is_nullable(part));
        if !nullable {
            return self.intern(Symbol::Choice(parts.into()), false);
        }
        // The empty text is a part like any other, so that equal choices are one.
        let mut parts = parts;
        if !parts.contains(&SymbolId::EMPTY) && !parts.iter().any(|&part| self.is_nullable(part)) {
            parts.push(SymbolId::EMPTY);
        }
        if parts == [SymbolId::EMPTY] {
            return Ok(SymbolId::EMPTY);
        }
        self.intern(Symbol::Choice(parts.into()), true)
    }

    /// Whether parts are reported or limited: then an empty part may be reported, too.
    fn has_marks(&self) -> bool;

    /// Any number of times. Nested repeats are flattened, because `(a* | b)*` is `(a | b)*`: on
    /// stacks they would pile up without bound.
    fn star(&mut self, inner: SymbolId) -> Result<SymbolId, LimitExceeded> {
        let mut parts: BTreeSet<SymbolId> = BTreeSet::new();
        self.add_repeated(inner, &mut parts)?;
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for part in parts.iter().copied().collect::<Vec<_>>() {
                let bare = self.without_repeats_at_ends(part, &parts)?;
                if bare != part {
                    changed = true;
                    parts.remove(&part);
                    self.add_repeated(bare, &mut parts)?;
                }
            }
        }
        let parts: Vec<SymbolId> = parts.into_iter().collect();
        if parts.is_empty() {
            return Ok(SymbolId::EMPTY);
        }
        let kept = self.not_repeated(&parts);
        let inner = self.choice(kept, false)?;
        self.intern(Symbol::Star(inner), true)
    }

    /// Adds parts such that `(part | …)*` equals `(inner | …)*`. None of them is a repeat, a choice
    /// or empty.
    fn add_repeated(
        &mut self,
        inner: SymbolId,
        parts: &mut BTreeSet<SymbolId>,
    ) -> Result<(), LimitExceeded> {
        let mut pending = vec![inner];
        while let Some(part) = pending.pop() {
            meter::charge(1)?;
            match self.get(part) {
                Symbol::Empty => {}
                &Symbol::Star(inner)
                | &Symbol::NonEmpty(inner)
                | &Symbol::Repeat { inner, min: 0 | 1, .. } => pending.push(inner),
                Symbol::Choice(parts) => pending.extend_from_slice(parts),
                // If both may be empty, either is a part.
                &Symbol::Seq(first, then)
                    if !self.has_marks() && self.is_nullable(first) && self.is_nullable(then) =>
                {
                    pending.extend([first, then]);
                }
                _ => {
                    parts.insert(part);
                }
            }
        }
        Ok(())
    }

    /// Removes a repeat at the start or end of a repeated choice's part, if its operand is a part
    /// of the choice, or the rest: `(a b* | b)*` is `(a | b)*`, and `(a a*)*` is `a*`.
    fn without_repeats_at_ends(
        &mut self,
        part: SymbolId,
        parts: &BTreeSet<SymbolId>,
    ) -> Result<SymbolId, LimitExceeded> {
        let mut sequence: Vec<SymbolId> = Vec::new();
        let mut rest = part;
        while let &Symbol::Seq(first, then) = self.get(rest) {
            meter::charge(1)?;
            sequence.push(first);
            rest = then;
        }
        sequence.push(rest);
        let mut sequence = &sequence[..];
        while let [others @ .., last] = sequence {
            if others.is_empty() || !self.is_repeat_of(*last, others, parts)? {
                break;
            }
            sequence = others;
        }
        while let [first, others @ ..] = sequence {
            if others.is_empty() || !self.is_repeat_of(*first, others, parts)? {
                break;
            }
            sequence = others;
        }
        let mut bare = SymbolId::EMPTY;
        for &symbol in sequence.iter().rev() {
            bare = self.seq(symbol, bare)?;
        }
        Ok(bare)
    }

    /// Whether a symbol is any number of some parts of a repeated choice, or of a sequence of symbols.
    fn is_repeat_of(
        &mut self,
        symbol: SymbolId,
        others: &[SymbolId],
        parts: &BTreeSet<SymbolId>,
    ) -> Result<bool, LimitExceeded> {
        let &Symbol::Star(inner) = self.get(symbol) else { return Ok(false) };
        let mut repeated = BTreeSet::new();
        self.add_repeated(inner, &mut repeated)?;
        let is_known = |one: &SymbolId| parts.contains(one) || others == [*one];
        Ok(repeated.iter().all(is_known))
    }

    /// The parts of a repeated choice without those that are sequences of other parts.
    fn not_repeated(&self, parts: &[SymbolId]) -> Vec<SymbolId> {
        let bare = |id: SymbolId| match self.get(id) {
            &Symbol::NonEmpty(inner) => inner,
            _ => id,
        };
        let bare_parts: FxHashSet<SymbolId> = parts.iter().map(|&part| bare(part)).collect();
        let mut kept = Vec::with_capacity(parts.len());
        for &part in parts {
            let mut rest = bare(part);
            let mut repeats = false;
            while let &Symbol::Seq(first, then) = self.get(rest) {
                repeats = bare_parts.contains(&bare(first));
                rest = bare(then);
                if !repeats {
                    break;
                }
            }
            if !(repeats && bare_parts.contains(&rest)) {
                kept.push(part);
            }
        }
        kept
    }

    fn repeat(
        &mut self,
        inner: SymbolId,
        min: u32,
        max: Option<u32>,
    ) -> Result<SymbolId, LimitExceeded> {
        // A part that may be empty satisfies any smaller number of repetitions.
        let min = if self.is_nullable(inner) { 0 } else { min };
        if max != Some(0) && matches!(self.get(inner), Symbol::Star(_)) {
            return Ok(inner);
        }
        match (min, max) {
            (_, Some(0)) => Ok(SymbolId::EMPTY),
            (0, None) => self.star(inner),
            (1, Some(1)) => Ok(inner),
            (0, Some(1)) => self.choice(vec![inner], true),
            (1, None) => {
                let star = self.star(inner)?;
                self.seq(inner, star)
            }
            _ => self.intern(Symbol::Repeat { inner, min, max }, min == 0),
        }
    }

    fn non_empty(&mut self, inner: SymbolId) -> Result<SymbolId, LimitExceeded> {
        if self.is_nullable(inner) {
            self.intern(Symbol::NonEmpty(inner), false)
        } else {
            Ok(inner)
        }
    }
}
