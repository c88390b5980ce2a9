//! Unsigned plain decimals whose value satisfies arithmetic constraints, matched digit by digit.
//!
//! A regular expression for the multiples of 7 grows with the square of 7, and one for those
//! between two bounds with their digits too. The state of this language is the relevant part of the
//! digits so far, and its derivative is arithmetic. Nothing is built in advance, whatever the
//! modulus. Arithmetic also decides whether some text completes a prefix. With a fixed number of
//! further digits, the values are consecutive integers in units of the last decimal. The search
//! finds the first that satisfies all constraints.

mod shortest;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use num_bigint::BigUint;
use smallvec::SmallVec;

use super::decimal::{greatest_common_divisor, power_of_ten};
use super::{Bound, Decimal};

/// The most steps whose multiples may be excluded. Among `2^n` consecutive integers, `n` steps
/// greater than 1 leave at least one, which bounds the search for it.
pub const MAX_EXCLUDED_STEPS: usize = 8;

/// Whether there is a decimal point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    /// With or without a point.
    Optional,
    /// Digits alone.
    Forbidden,
    /// With a point.
    Required,
}

/// The constraints on a number, all of which must hold.
#[derive(Clone, Debug)]
pub struct MagnitudeConstraint {
    /// The lower bound, not negative.
    pub low: Option<Bound>,
    /// The upper bound, not negative.
    pub high: Option<Bound>,
    /// Above 0, and so are those of `not_multiple_of`.
    pub multiple_of: Option<Decimal>,
    /// Steps of which no number is a multiple.
    pub not_multiple_of: Vec<Decimal>,
    /// Values that no number has.
    pub excluded: Vec<Decimal>,
    /// Whether there is a decimal point.
    pub point: Point,
}

/// A bound in units of the last place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Limit {
    /// ASCII digits: `integers` of them before the point, then `places`.
    digits: Box<str>,
    integers: usize,
    exclusive: bool,
}

impl Limit {
    fn new(value: &Decimal, places: u32, exclusive: bool) -> Self {
        let (integer, fraction) = value.plain_parts();
        let padding = "0".repeat(places as usize - fraction.len());
        let digits = format!("{integer}{fraction}{padding}").into();
        Self { digits, integers: integer.len(), exclusive }
    }

    fn digit(&self, at: usize) -> u8 {
        self.digits.as_bytes().get(at).copied().unwrap_or(b'0')
    }

    /// The digits from `at` on, times a power of ten.
    fn rest(&self, at: usize, more: u32) -> BigUint {
        let rest = self.digits.as_bytes().get(at..).unwrap_or_default();
        BigUint::parse_bytes(rest, 10).unwrap_or_default() * power_of_ten(more)
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rules {
    /// The hash of everything else, computed once.
    hash: u64,
    /// Decimals that bounds and steps have.
    places: u32,
    low: Option<Limit>,
    high: Option<Limit>,
    /// In units of the last place.
    step: Option<BigUint>,
    excluded_steps: Vec<BigUint>,
    excluded: Vec<Limit>,
    point: Point,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum DigitPosition {
    Start,
    /// After the integer part `0`.
    Zero,
    Integer,
    /// After the point.
    Point,
    Fraction,
    /// In a fraction that decides nothing any more.
    Free,
}

/// The continuations of a partial magnitude. There is always one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Magnitude {
    rules: Arc<Rules>,
    place: DigitPosition,
    /// Digits before the point, or past it, where that matters.
    count: u32,
    /// How the digits compare with as many of the bound's; none where it no longer matters.
    low: Option<Ordering>,
    high: Option<Ordering>,
    /// The digits so far, modulo the step.
    residue: Option<BigUint>,
    residues: SmallVec<[BigUint; 1]>,
    /// Which of the excluded values begin with what has been read.
    excluded: SmallVec<[u32; 2]>,
}

impl Hash for Magnitude {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rules.hash.hash(state);
        (self.place, self.count, self.low, self.high).hash(state);
        (&self.residue, &self.residues, &self.excluded).hash(state);
    }
}

impl Magnitude {
    /// The magnitudes that satisfy the constraint; none if there are none.
    pub(crate) fn new(constraint: &MagnitudeConstraint) -> Option<Self> {
        let MagnitudeConstraint { low, high, multiple_of, not_multiple_of, excluded, point } =
            constraint;
        let every = |step: &Decimal| multiple_of.as_ref().is_some_and(|m| m.is_multiple_of(step));
        if not_multiple_of.iter().any(every) {
            return None;
        }
        let ends = low.iter().chain(high).map(|end| &end.value);
        let values = ends.chain(multiple_of).chain(not_multiple_of).chain(excluded);
        let places = values.map(Decimal::places).max().unwrap_or(0);
        let limit = |end: &Bound| Limit::new(&end.value, places, end.exclusive);
        let mut rules = Rules {
            hash: 0,
            places,
            low: low.as_ref().map(limit),
            high: high.as_ref().map(limit),
            step: multiple_of.as_ref().map(|step| step.scaled(places)),
            excluded_steps: not_multiple_of.iter().map(|step| step.scaled(places)).collect(),
            excluded: excluded.iter().map(|value| Limit::new(value, places, true)).collect(),
            point: *point,
        };
        let mut hasher = rustc_hash::FxHasher::default();
        format!("{rules:?}").hash(&mut hasher);
        rules.hash = hasher.finish();
        let state = Self {
            place: DigitPosition::Start,
            count: 0,
            low: rules.low.as_ref().map(|_| Ordering::Equal),
            high: rules.high.as_ref().map(|_| Ordering::Equal),
            residue: rules.step.as_ref().map(|_| BigUint::ZERO),
            residues: rules.excluded_steps.iter().map(|_| BigUint::ZERO).collect(),
            excluded: (0..rules.excluded.len() as u32).collect(),
            rules: Arc::new(rules),
        };
        state.is_alive().then_some(state)
    }

    /// Whether the text may end here.
    pub fn accepts(&self) -> bool {
        match self.place {
            DigitPosition::Start | DigitPosition::Point => false,
            DigitPosition::Zero | DigitPosition::Integer if self.rules.point == Point::Required => {
                false
            }
            DigitPosition::Zero | DigitPosition::Integer => {
                self.some_completion(self.count as usize, true)
            }
            DigitPosition::Fraction => self.some_fraction(true),
            DigitPosition::Free => true,
        }
    }

    /// Returns the continuations after a byte, if any.
    pub fn derive(&self, byte: u8) -> Option<Self> {
        let next = match (self.place, byte) {
            (DigitPosition::Start, b'0'..=b'9') => self.first(byte),
            (DigitPosition::Integer, b'0'..=b'9') => {
                self.integer_digit(byte, DigitPosition::Integer)
            }
            (DigitPosition::Zero | DigitPosition::Integer, b'.')
                if self.rules.point != Point::Forbidden =>
            {
                self.point()
            }
            (DigitPosition::Point | DigitPosition::Fraction, b'0'..=b'9') => {
                self.fraction_digit(byte)
            }
            (DigitPosition::Free, b'0'..=b'9') => return Some(self.clone()),
            _ => None,
        };
        next.filter(Self::is_alive)
    }

    fn is_alive(&self) -> bool {
        match self.place {
            DigitPosition::Zero => self.some_completion(1, false),
            DigitPosition::Point | DigitPosition::Fraction => self.some_fraction(false),
            DigitPosition::Free => true,
            DigitPosition::Start => {
                (b'0'..=b'9').any(|digit| self.first(digit).is_some_and(|next| next.is_alive()))
            }
            DigitPosition::Integer => match &self.rules.high {
                // From the longest ones, of which most are not near a bound.
                Some(high) => (self.count as usize..=high.integers)
                    .rev()
                    .any(|all| self.some_completion(all, false)),
                None => true,
            },
        }
    }

    fn first(&self, digit: u8) -> Option<Self> {
        self.integer_digit(
            digit,
            if digit == b'0' { DigitPosition::Zero } else { DigitPosition::Integer },
        )
    }

    fn integer_digit(&self, byte: u8, place: DigitPosition) -> Option<Self> {
        let at = self.count as usize;
        let mut next = Self { place, count: self.count + 1, ..self.clone() };
        let compare = |known: Option<Ordering>, limit: &Option<Limit>| {
            known.zip(limit.as_ref()).map(|(known, limit)| {
                if at >= limit.integers {
                    Ordering::Greater
                } else {
                    known.then_with(|| byte.cmp(&limit.digit(at)))
                }
            })
        };
        next.low = compare(self.low, &self.rules.low);
        next.high = compare(self.high, &self.rules.high);
        let past = |limit: &Option<Limit>| limit.as_ref().is_some_and(|l| at >= l.integers);
        if past(&self.rules.high) {
            return None;
        }
        if past(&self.rules.low) {
            next.low = None;
        }
        next.excluded.retain(|index| {
            let limit = &self.rules.excluded[*index as usize];
            at < limit.integers && limit.digit(at) == byte
        });
        next.read(byte);
        next.forget_count();
        Some(next)
    }

    /// Forgets how many digits there are where nothing depends on it.
    fn forget_count(&mut self) {
        if self.low.is_none() && self.high.is_none() && self.excluded.is_empty() {
            // The first digit does not matter: what follows it is the same for all.
            self.count = 1;
        }
    }

    fn read(&mut self, byte: u8) {
        let digit = u32::from(byte - b'0');
        if let (Some(residue), Some(step)) = (&mut self.residue, &self.rules.step) {
            *residue = (&*residue * 10u32 + digit) % step;
        }
        for (residue, step) in self.residues.iter_mut().zip(&self.rules.excluded_steps) {
            *residue = (&*residue * 10u32 + digit) % step;
        }
    }

    fn point(&self) -> Option<Self> {
        let count = self.count as usize;
        let mut next = Self { place: DigitPosition::Point, count: 0, ..self.clone() };
        // The integer part is complete: a shorter one is less.
        let complete = |known: Option<Ordering>, limit: &Option<Limit>| {
            known.zip(limit.as_ref()).map(|(known, limit)| {
                if count < limit.integers {
                    Ordering::Less
                } else {
                    known
                }
            })
        };
        next.low = complete(self.low, &self.rules.low);
        next.high = complete(self.high, &self.rules.high);
        if next.low == Some(Ordering::Less) || next.high == Some(Ordering::Greater) {
            return None;
        }
        next.low = next.low.filter(|order| order.is_eq());
        next.high = next.high.filter(|order| order.is_eq());
        next.excluded.retain(|index| self.rules.excluded[*index as usize].integers == count);
        Some(next)
    }

    fn fraction_digit(&self, byte: u8) -> Option<Self> {
        let mut next = Self { place: DigitPosition::Fraction, ..self.clone() };
        if self.count == self.rules.places {
            if byte == b'0' {
                return Some(next);
            }
            // More decimals than any bound or step has: no multiple, and greater than the number so
            // far.
            if self.rules.step.is_some() || self.high.is_some() {
                return None;
            }
            next.place = DigitPosition::Free;
            next.count = 0;
            next.low = None;
            next.residues.clear();
            next.excluded.clear();
            return Some(next);
        }
        let at = |limit: &Limit| limit.digit(limit.integers + self.count as usize);
        if let (Some(_), Some(limit)) = (self.low, &self.rules.low) {
            match byte.cmp(&at(limit)) {
                Ordering::Less => return None,
                Ordering::Equal => {}
                Ordering::Greater => next.low = None,
            }
        }
        if let (Some(_), Some(limit)) = (self.high, &self.rules.high) {
            match byte.cmp(&at(limit)) {
                Ordering::Less => next.high = None,
                Ordering::Equal => {}
                Ordering::Greater => return None,
            }
        }
        next.excluded.retain(|index| at(&self.rules.excluded[*index as usize]) == byte);
        next.count += 1;
        next.read(byte);
        Some(next)
    }

    /// Returns a number of decimals at which some value lies between any two distinguished ones:
    /// one more than the bounds have, unless there is a step.
    fn resolution(&self) -> u32 {
        u32::from(self.rules.step.is_none() && self.rules.point != Point::Forbidden)
    }

    /// Whether the digits so far can become an integer part of `all` digits, with some decimals or,
    /// if `now`, with none.
    fn some_completion(&self, all: usize, now: bool) -> bool {
        self.completion(all, now, 0).is_some()
    }

    /// The digits that complete those so far to an integer part of `all` digits with some decimals,
    /// as a number without its last `zeros` zeros.
    fn completion(&self, all: usize, now: bool, zeros: u32) -> Option<BigUint> {
        let read = self.count as usize;
        let resolution = self.resolution();
        let more = all.saturating_sub(read) as u32;
        let size = more + self.rules.places + resolution;
        let end =
            |known: Option<Ordering>, limit: &Option<Limit>| -> Option<(Ordering, BigUint, bool)> {
                let (known, limit) = known.zip(limit.as_ref())?;
                Some(match all.cmp(&limit.integers) {
                    Ordering::Equal => (known, limit.rest(read, resolution), limit.exclusive),
                    unequal => (unequal, BigUint::ZERO, false),
                })
            };
        let mut least = BigUint::ZERO;
        let mut most = power_of_ten(size) - 1u32;
        match end(self.low, &self.rules.low) {
            Some((Ordering::Less, ..)) => return None,
            Some((Ordering::Equal, rest, exclusive)) => least = rest + u32::from(exclusive),
            _ => {}
        }
        match end(self.high, &self.rules.high) {
            Some((Ordering::Greater, ..)) => return None,
            Some((Ordering::Equal, rest, exclusive)) => {
                if exclusive && rest == BigUint::ZERO {
                    return None;
                }
                most = rest - u32::from(exclusive);
            }
            _ => {}
        }
        if now {
            most = BigUint::ZERO;
        }
        let excluded = self.excluded.iter().filter_map(|&index| {
            let limit = &self.rules.excluded[index as usize];
            (limit.integers == all).then(|| limit.rest(read, resolution))
        });
        self.first_value(least, most, size, zeros, excluded.collect())
    }

    /// As [`Self::some_completion`], past the point.
    fn some_fraction(&self, now: bool) -> bool {
        self.fraction(now, 0).is_some()
    }

    /// As [`Self::completion`], past the point.
    fn fraction(&self, now: bool, zeros: u32) -> Option<BigUint> {
        let resolution = self.resolution();
        let size = self.rules.places - self.count + resolution;
        let rest = |limit: &Limit| limit.rest(limit.integers + self.count as usize, resolution);
        let mut least = BigUint::ZERO;
        let mut most = power_of_ten(size) - 1u32;
        if let (Some(_), Some(limit)) = (self.low, &self.rules.low) {
            least = rest(limit) + u32::from(limit.exclusive);
        }
        if let (Some(_), Some(limit)) = (self.high, &self.rules.high) {
            let value = rest(limit);
            if limit.exclusive && value == BigUint::ZERO {
                return None;
            }
            most = value - u32::from(limit.exclusive);
        }
        if now {
            most = BigUint::ZERO;
        }
        let excluded =
            self.excluded.iter().map(|&index| rest(&self.rules.excluded[index as usize]));
        self.first_value(least, most, size, zeros, excluded.collect())
    }

    /// The first number of `size` digits from `least` to `most` that ends with `zeros` zeros and
    /// satisfies the constraints, without these zeros.
    fn first_value(
        &self,
        mut least: BigUint,
        mut most: BigUint,
        size: u32,
        zeros: u32,
        mut excluded: Vec<BigUint>,
    ) -> Option<BigUint> {
        let shift = power_of_ten(size - zeros);
        // The factor from steps to the unit in which values are counted.
        let scale = power_of_ten(self.resolution());
        let mut moduli: SmallVec<[BigUint; 1]> =
            self.rules.excluded_steps.iter().map(|modulus| modulus * &scale).collect();
        let mut step = match (&self.residue, &self.rules.step) {
            (Some(_), Some(modulus)) => modulus * &scale,
            _ => BigUint::from(1u32),
        };
        if zeros > 0 {
            // All in units of the last digit that is left.
            let unit = power_of_ten(zeros);
            least = (least + &unit - 1u32) / &unit;
            most /= &unit;
            step = step_in_units(&step, zeros);
            moduli.iter_mut().for_each(|modulus| *modulus = step_in_units(modulus, zeros));
            excluded.retain(|value| (value % &unit) == BigUint::ZERO);
            excluded.iter_mut().for_each(|value| *value /= &unit);
        }
        let mut value = least;
        if let Some(residue) = &self.residue {
            let beyond = (residue * &shift + &value) % &step;
            if beyond != BigUint::ZERO {
                value += &step - beyond;
            }
        }
        let breaks: Vec<(BigUint, BigUint)> =
            self.residues.iter().map(|residue| residue * &shift).zip(moduli).collect();
        let tries = (excluded.len() + 1) << breaks.len().min(MAX_EXCLUDED_STEPS);
        for _ in 0..tries {
            if value > most {
                return None;
            }
            let broken =
                breaks.iter().any(|(read, modulus)| (read + &value) % modulus == BigUint::ZERO);
            if !broken && !excluded.contains(&value) {
                return Some(value);
            }
            value += &step;
        }
        None
    }
}

/// Returns the step of values that end with some zeros, in units of the digit before these.
fn step_in_units(step: &BigUint, zeros: u32) -> BigUint {
    step / greatest_common_divisor(step.clone(), power_of_ten(zeros))
}
