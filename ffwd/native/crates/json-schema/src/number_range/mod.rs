//! Conjunctions of numeric constraints, by value.

use std::sync::Arc;

use super::error::LimitExceeded;
use super::lattice::Lattice;
use super::numbers::NumberKinds;
use ffwd_regular::regex::{Bound, Decimal};

/// A set of numbers. All constraints must hold.
///
/// All constraints concern values, except `kinds`, which in draft 4 concerns spellings. So the
/// negation is built constraint by constraint, never as the complement of a language.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumberRange {
    pub kinds: NumberKinds,
    pub minimum: Option<Bound>,
    pub maximum: Option<Bound>,
    /// Values above 0.
    pub multiple_of: Vec<Decimal>,
    /// Values above 0.
    pub not_multiple_of: Vec<Decimal>,
    /// Sorted and without duplicates. Only kinds are kept beside it.
    pub one_of: Option<Arc<[Decimal]>>,
    /// Sorted and without duplicates.
    pub none_of: Vec<Decimal>,
}

impl NumberRange {
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    pub fn of_kinds(kinds: NumberKinds) -> Self {
        Self { kinds, ..Self::default() }
    }

    pub fn values(mut values: Vec<Decimal>) -> Self {
        values.sort_unstable();
        values.dedup();
        Self { one_of: Some(values.into()), ..Self::default() }
    }

    pub fn limit_below(&mut self, end: Bound) {
        if is_tighter(self.minimum.as_ref(), &end, |new, old| new > old) {
            self.minimum = Some(end);
        }
    }

    pub fn limit_above(&mut self, end: Bound) {
        if is_tighter(self.maximum.as_ref(), &end, |new, old| new < old) {
            self.maximum = Some(end);
        }
    }

    /// Whether the value is allowed, in some spelling.
    pub fn contains(&self, value: &Decimal) -> bool {
        self.within(value)
            && self.multiple_of.iter().all(|step| value.is_multiple_of(step))
            && !self.not_multiple_of.iter().any(|step| value.is_multiple_of(step))
            && self.one_of.as_ref().is_none_or(|values| values.binary_search(value).is_ok())
            && self.none_of.binary_search(value).is_err()
    }

    /// Whether the value is between the bounds and of the right kind.
    pub(super) fn within(&self, value: &Decimal) -> bool {
        self.minimum.as_ref().is_none_or(|bound| bound.is_minimum_of(value))
            && self.maximum.as_ref().is_none_or(|bound| bound.is_maximum_of(value))
            && self.kinds.contains(value)
    }

    /// Returns the intersection; `None` if it is clearly empty. Values between two bounds are not
    /// counted: see [`Self::is_empty`].
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let mut both = self.clone();
        both.kinds = both.kinds.intersect(other.kinds);
        if let Some(minimum) = &other.minimum {
            both.limit_below(minimum.clone());
        }
        if let Some(maximum) = &other.maximum {
            both.limit_above(maximum.clone());
        }
        both.multiple_of.extend_from_slice(&other.multiple_of);
        both.not_multiple_of.extend_from_slice(&other.not_multiple_of);
        both.none_of.extend_from_slice(&other.none_of);
        if let Some(values) = &other.one_of {
            both.one_of = match both.one_of.take() {
                None => Some(values.clone()),
                Some(mine) => {
                    let shared = mine.iter().filter(|v| values.binary_search(v).is_ok()).cloned();
                    Some(shared.collect())
                }
            };
        }
        both.settle()
    }

    /// The simplest form of the range; `None` if it is plainly empty.
    pub fn settle(mut self) -> Option<Self> {
        self.none_of.sort_unstable();
        self.none_of.dedup();
        if self.kinds.is_none() {
            return None;
        }
        if self.one_of.is_none() {
            self.settle_steps()?;
            self.settle_bounds()?;
        }
        if let Some(values) = self.one_of.take() {
            let kept: Arc<[Decimal]> =
                values.iter().filter(|value| self.contains(value)).cloned().collect();
            let kinds = self.kinds;
            let some = !kept.is_empty();
            return some.then(|| Self { one_of: Some(kept), kinds, ..Self::default() });
        }
        let excluded = std::mem::take(&mut self.none_of);
        self.none_of = excluded.into_iter().filter(|value| self.contains(value)).collect();
        Some(self)
    }

    fn settle_bounds(&mut self) -> Option<()> {
        let (Some(minimum), Some(maximum)) = (&self.minimum, &self.maximum) else {
            return Some(());
        };
        let open = minimum.exclusive || maximum.exclusive;
        if minimum.value > maximum.value || (open && minimum.value == maximum.value) {
            return None;
        }
        if minimum.value == maximum.value {
            self.one_of = Some([minimum.value.clone()].into());
        }
        Some(())
    }

    fn settle_steps(&mut self) -> Option<()> {
        if self.multiple_of.iter().any(Decimal::is_integer) {
            self.kinds = self.kinds.intersect(NumberKinds::INTEGERS);
        }
        let integral = !self.kinds.overlaps(NumberKinds::FRACTIONS);
        let one = Decimal::from(1);
        let mut steps = std::mem::take(&mut self.multiple_of);
        steps.sort_unstable();
        for step in steps {
            let whole = integral.then(|| step.least_common_multiple(&one).ok()).flatten();
            let step = whole.unwrap_or(step);
            // One step instead of two, unless it gets too long.
            match self.multiple_of.last_mut() {
                Some(last) if step.is_multiple_of(last) => *last = step,
                Some(last) if last.is_multiple_of(&step) => {}
                Some(last) => match last.least_common_multiple(&step) {
                    Ok(both) => *last = both,
                    Err(_) => self.multiple_of.push(step),
                },
                None => self.multiple_of.push(step),
            }
        }
        if self.kinds.is_none() {
            return None;
        }
        if integral {
            self.multiple_of.retain(|step| *step != one);
        }
        self.not_multiple_of.sort_unstable();
        self.not_multiple_of.dedup();
        let only_fractions = self.kinds == NumberKinds::FRACTIONS;
        let mut excluded: Vec<Decimal> = Vec::new();
        for step in std::mem::take(&mut self.not_multiple_of) {
            // A number that is no multiple of 2 is no multiple of 4.
            let implied = excluded.iter().any(|known| step.is_multiple_of(known))
                || (only_fractions && step.is_integer());
            if !implied {
                excluded.push(step);
            }
        }
        self.not_multiple_of = excluded;
        let every = |step: &Decimal| {
            (integral && one.is_multiple_of(step))
                || self.multiple_of.iter().any(|multiple| multiple.is_multiple_of(step))
        };
        (!self.not_multiple_of.iter().any(every)).then_some(())
    }

    /// Returns the complement, as alternatives that may overlap.
    pub fn negate(&self) -> Vec<Self> {
        let mut parts = Vec::new();
        if self.kinds != NumberKinds::ALL {
            parts.push(Self::of_kinds(self.kinds.complement()));
        }
        if let Some(minimum) = &self.minimum {
            parts.push(Self { maximum: Some(minimum.opposite()), ..Self::default() });
        }
        if let Some(maximum) = &self.maximum {
            parts.push(Self { minimum: Some(maximum.opposite()), ..Self::default() });
        }
        for step in &self.multiple_of {
            parts.push(Self { not_multiple_of: vec![step.clone()], ..Self::default() });
        }
        for step in &self.not_multiple_of {
            parts.push(Self { multiple_of: vec![step.clone()], ..Self::default() });
        }
        if let Some(values) = &self.one_of {
            parts.push(Self { none_of: values.to_vec(), ..Self::default() });
        }
        if !self.none_of.is_empty() {
            parts.push(Self::values(self.none_of.clone()));
        }
        parts.into_iter().filter_map(Self::settle).collect()
    }

    /// Whether no value is in the range.
    ///
    /// # Errors
    /// The steps have too large a common multiple, or there are too many.
    pub fn is_empty(&self) -> Result<bool, LimitExceeded> {
        let free = self.multiple_of.is_empty()
            && self.not_multiple_of.is_empty()
            && self.none_of.is_empty();
        let bounded = self.minimum.is_some() && self.maximum.is_some();
        if self.one_of.is_none() && free && !bounded {
            return Ok(self.kinds.is_none());
        }
        Ok(self.list_values(0)?.is_some())
    }

    /// Returns a lower bound of the number of values, without listing them.
    ///
    /// # Errors
    /// The steps have too large a common multiple.
    pub fn plainly_at_least(&self) -> Result<u64, LimitExceeded> {
        let Some(range) = self.clone().settle() else { return Ok(0) };
        if let Some(values) = &range.one_of {
            return Ok(values.len() as u64);
        }
        let whole = [NumberKinds::ALL, NumberKinds::INTEGERS].contains(&range.kinds);
        if !whole || !range.not_multiple_of.is_empty() {
            return Ok(0);
        }
        let size = Lattice::of(&range)?.map_or(Some(u64::MAX), |lattice| lattice.size());
        let excluded = range.none_of.len() as u64;
        Ok(size.map_or(u64::MAX, |size| size.saturating_sub(excluded)))
    }

    /// The values of the range in order; `None` if they are more than `most`. Two spellings of one
    /// value are one.
    ///
    /// # Errors
    /// The steps have too large a common multiple, or there are too many.
    pub fn list_values(&self, most: usize) -> Result<Option<Vec<Decimal>>, LimitExceeded> {
        let Some(range) = self.clone().settle() else { return Ok(Some(Vec::new())) };
        if let Some(values) = &range.one_of {
            return Ok((values.len() <= most).then(|| values.to_vec()));
        }
        match Lattice::of(&range)? {
            Some(lattice) => lattice.list(&range, most),
            // Between two different bounds there are infinitely many decimals, and only finitely
            // many are multiples or excluded.
            None => Ok(None),
        }
    }
}

fn is_tighter(
    old: Option<&Bound>,
    new: &Bound,
    beyond: impl Fn(&Decimal, &Decimal) -> bool,
) -> bool {
    old.is_none_or(|old| {
        beyond(&new.value, &old.value) || (new.value == old.value && new.exclusive)
    })
}

#[cfg(test)]
mod tests;
