//! Conjunctions of numeric constraints, by value.

use std::sync::Arc;

use crate::regex::Decimal;

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RangeEnd {
    pub value: Decimal,
    pub exclusive: bool,
}

/// Some of the numbers. All of it must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumberRange {
    /// Integers in the sense of `type`, which is a matter of spelling in draft 4.
    pub integer: bool,
    pub minimum: Option<RangeEnd>,
    pub maximum: Option<RangeEnd>,
    /// Sorted and without duplicates. No range is kept beside it.
    pub one_of: Option<Arc<[Decimal]>>,
}

impl NumberRange {
    pub fn is_any(&self) -> bool {
        !self.integer && self.minimum.is_none() && self.maximum.is_none() && self.one_of.is_none()
    }

    pub fn values(mut values: Vec<Decimal>) -> Self {
        values.sort_unstable();
        values.dedup();
        Self { one_of: Some(values.into()), ..Self::default() }
    }

    pub fn limit_below(&mut self, end: RangeEnd) {
        if is_tighter(self.minimum.as_ref(), &end, |new, old| new > old) {
            self.minimum = Some(end);
        }
    }

    pub fn limit_above(&mut self, end: RangeEnd) {
        if is_tighter(self.maximum.as_ref(), &end, |new, old| new < old) {
            self.maximum = Some(end);
        }
    }

    fn contains(&self, value: &Decimal) -> bool {
        let above = self.minimum.as_ref().is_none_or(|minimum| {
            if minimum.exclusive {
                *value > minimum.value
            } else {
                *value >= minimum.value
            }
        });
        let below = self.maximum.as_ref().is_none_or(|maximum| {
            if maximum.exclusive {
                *value < maximum.value
            } else {
                *value <= maximum.value
            }
        });
        above && below && (!self.integer || value.is_integer())
    }

    /// What satisfies both; `None` if that is plainly nothing. Integers between two bounds are not
    /// counted.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let mut both = self.clone();
        both.integer |= other.integer;
        if let Some(minimum) = &other.minimum {
            both.limit_below(minimum.clone());
        }
        if let Some(maximum) = &other.maximum {
            both.limit_above(maximum.clone());
        }
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

    /// Applies the range to the values, if there are any; `None` if nothing is left.
    pub fn settle(mut self) -> Option<Self> {
        if let Some(values) = self.one_of.take() {
            let kept: Arc<[Decimal]> =
                values.iter().filter(|value| self.contains(value)).cloned().collect();
            self.minimum = None;
            self.maximum = None;
            let some = !kept.is_empty();
            self.one_of = Some(kept);
            return some.then_some(self);
        }
        if let (Some(minimum), Some(maximum)) = (&self.minimum, &self.maximum) {
            let open = minimum.exclusive || maximum.exclusive;
            if minimum.value > maximum.value || (open && minimum.value == maximum.value) {
                return None;
            }
        }
        Some(self)
    }
}

fn is_tighter(
    old: Option<&RangeEnd>,
    new: &RangeEnd,
    beyond: impl Fn(&Decimal, &Decimal) -> bool,
) -> bool {
    old.is_none_or(|old| {
        beyond(&new.value, &old.value) || (new.value == old.value && new.exclusive)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str, exclusive: bool) -> Option<RangeEnd> {
        Some(RangeEnd { value: Decimal::parse(text).unwrap(), exclusive })
    }

    #[test]
    fn ranges_intersect() {
        let low = NumberRange { minimum: end("1", false), ..NumberRange::default() };
        let low_open = NumberRange { minimum: end("1.0", true), ..NumberRange::default() };
        let high = NumberRange { maximum: end("1", false), ..NumberRange::default() };
        let both = low.intersect(&high).unwrap();
        assert_eq!((both.minimum, both.maximum), (end("1", false), end("1", false)));
        assert_eq!(low_open.intersect(&high), None);
        assert_eq!(low.intersect(&low_open).unwrap().minimum, end("1", true));
        let values = ["3", "1.0", "2.5", "1"].map(|text| Decimal::parse(text).unwrap());
        let values = NumberRange::values(values.to_vec());
        assert_eq!(values.one_of.as_ref().unwrap().len(), 3);
        let integers = NumberRange { integer: true, ..low_open };
        let left = values.intersect(&integers).unwrap();
        assert_eq!(left.one_of.unwrap().as_ref(), [Decimal::parse("3").unwrap()]);
        assert_eq!(values.intersect(&NumberRange::values(vec![Decimal::zero()])), None);
    }
}
