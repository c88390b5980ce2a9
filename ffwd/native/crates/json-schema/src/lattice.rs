//! The multiples of a number between two bounds.

use num_bigint::{BigInt, Sign};

use super::error::LimitExceeded;
use super::number_range::NumberRange;
use super::numbers::NumberKinds;
use ffwd_regular::regex::decimal::MAX_EXPONENT;
use ffwd_regular::regex::MAX_EXCLUDED_STEPS;
use ffwd_regular::regex::{Bound, Decimal};

/// How many multiples are examined to find those that are not excluded.
const MAX_MULTIPLES_SEEN: usize = 1 << 18;

/// The multiples `k × step` of a range, where `k` lies between two bounds.
#[derive(Clone, Debug)]
pub struct Lattice {
    /// In units of `10^-places`.
    step: BigInt,
    places: u32,
    low: Option<BigInt>,
    high: Option<BigInt>,
}

impl Lattice {
    /// The lattice of a range without `one_of`; none if it allows numbers of any precision.
    pub fn of(range: &NumberRange) -> Result<Option<Self>, LimitExceeded> {
        let Some(step) = common_step(range)? else { return Ok(None) };
        let ends = [&range.minimum, &range.maximum].into_iter().flatten();
        let places = ends.map(|end| end.value.places()).max().unwrap_or(0).max(step.places());
        let scaled = |value: &Decimal| {
            let sign = if value.is_negative() { Sign::Minus } else { Sign::Plus };
            BigInt::from_biguint(sign, value.scaled(places))
        };
        let step = scaled(&step);
        // The first multiple that is not below the end, and the last that is not above.
        let one = BigInt::from(1);
        let lowest = |end: &Bound| {
            let least = if end.exclusive { scaled(&end.value) + &one } else { scaled(&end.value) };
            floor_div(&(least + &step - &one), &step)
        };
        let highest = |end: &Bound| {
            let most = if end.exclusive { scaled(&end.value) - &one } else { scaled(&end.value) };
            floor_div(&most, &step)
        };
        Ok(Some(Self {
            low: range.minimum.as_ref().map(lowest),
            high: range.maximum.as_ref().map(highest),
            step,
            places,
        }))
    }

    /// How many multiples there are; `None` if they are more than can be counted.
    pub fn size(&self) -> Option<u64> {
        let (low, high) = (self.low.as_ref()?, self.high.as_ref()?);
        let size: BigInt = high - low + 1;
        if size.sign() == Sign::Minus {
            return Some(0);
        }
        u64::try_from(size).ok()
    }

    /// Returns the values in order, `None` if they are more than `most`.
    ///
    /// Among `2^n` successive multiples at least one is no multiple of any of `n` other steps,
    /// unless all are multiples of one of these. The reason: `n` residue classes that cover `2^n`
    /// successive integers cover all integers, but they cannot cover the successors of the steps'
    /// common multiples.
    pub fn list(
        &self,
        range: &NumberRange,
        most: usize,
    ) -> Result<Option<Vec<Decimal>>, LimitExceeded> {
        if range.not_multiple_of.len() > MAX_EXCLUDED_STEPS {
            let maximum = MAX_EXCLUDED_STEPS as u64;
            return Err(LimitExceeded { limit: "excluded_steps", maximum });
        }
        let step = Decimal::from_scaled(false, self.step.magnitude(), self.places);
        let step = step.map_err(|_| too_large())?;
        if range.not_multiple_of.iter().any(|excluded| step.is_multiple_of(excluded)) {
            return Ok(Some(Vec::new()));
        }
        let (Some(low), Some(high)) = (&self.low, &self.high) else { return Ok(None) };
        let mut values = Vec::new();
        let mut multiple = low.clone();
        let mut left = MAX_MULTIPLES_SEEN;
        while left > 0 {
            left -= 1;
            if multiple > *high {
                return Ok(Some(values));
            }
            let (sign, magnitude) = (&multiple * &self.step).into_parts();
            let value = Decimal::from_scaled(sign == Sign::Minus, &magnitude, self.places)
                .map_err(|_| too_large())?;
            if range.contains(&value) {
                if values.len() == most {
                    return Ok(None);
                }
                values.push(value);
            }
            multiple += 1;
        }
        Err(LimitExceeded { limit: "excluded_numbers", maximum: MAX_MULTIPLES_SEEN as u64 })
    }
}

fn floor_div(value: &BigInt, divisor: &BigInt) -> BigInt {
    let quotient = value / divisor;
    if &quotient * divisor > *value {
        quotient - 1
    } else {
        quotient
    }
}

fn too_large() -> LimitExceeded {
    LimitExceeded { limit: "number_exponent", maximum: MAX_EXPONENT as u64 }
}

/// The step that divides all values of the range.
pub fn common_step(range: &NumberRange) -> Result<Option<Decimal>, LimitExceeded> {
    let integral = !range.kinds.overlaps(NumberKinds::FRACTIONS);
    let mut common = integral.then(|| Decimal::from(1));
    for step in &range.multiple_of {
        common = Some(match common {
            Some(common) => common.least_common_multiple(step).map_err(|_| too_large())?,
            None => step.clone(),
        });
    }
    Ok(common)
}
