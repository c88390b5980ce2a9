//! A shortest text that completes a magnitude, by arithmetic: a search digit by digit would go
//! through as many residues as the step has.

use num_bigint::BigUint;

use super::{DigitPosition, Magnitude, Point, MAX_EXCLUDED_STEPS};

impl Magnitude {
    /// A shortest text that completes what has been read.
    pub(crate) fn shortest(&self) -> Option<String> {
        if self.accepts() {
            return Some(String::new());
        }
        match self.place {
            DigitPosition::Free => Some(String::new()),
            DigitPosition::Start => (b'0'..=b'9')
                .filter_map(|digit| {
                    let rest = self.first(digit).filter(Self::is_alive)?.shortest()?;
                    Some(format!("{}{rest}", char::from(digit)))
                })
                .min_by_key(String::len),
            DigitPosition::Point | DigitPosition::Fraction => {
                let all = self.rules.places - self.count + self.resolution();
                let (decimals, value) = fewest(all, |zeros| self.fraction(false, zeros))?;
                let digits = padded(&value, decimals as usize);
                let is_bare = digits.is_empty() && self.place == DigitPosition::Point;
                Some(if is_bare { "0".into() } else { digits })
            }
            DigitPosition::Zero => self.with_integers(1, usize::MAX),
            DigitPosition::Integer => {
                let from = self.count as usize;
                let mut best: Option<String> = None;
                for all in from..=self.most_integers() {
                    let most = best.as_ref().map_or(usize::MAX, String::len);
                    if all - from >= most {
                        break;
                    }
                    best = self.with_integers(all, most).or(best);
                }
                best
            }
        }
    }

    /// How many digits an integer part can have in a shortest text.
    fn most_integers(&self) -> usize {
        if let Some(high) = &self.rules.high {
            return high.integers;
        }
        // With this many digits more than a bound has, there is a multiple of each step.
        let low = self.rules.low.as_ref().map_or(0, |low| low.integers);
        let steps = self.rules.step.iter().chain(&self.rules.excluded_steps);
        let digits: usize = steps.map(|step| step.bits() as usize / 3 + 1).sum();
        let longest = self.rules.excluded.iter().map(|limit| limit.integers).max().unwrap_or(0);
        low.max(longest).max(self.count as usize) + digits + MAX_EXCLUDED_STEPS
    }

    /// A shortest rest with which the integer part has `all` digits, if it has less than `most`
    /// bytes.
    fn with_integers(&self, all: usize, most: usize) -> Option<String> {
        let more = all - self.count as usize;
        let decimals = self.rules.places + self.resolution();
        if self.rules.point != Point::Required {
            if let Some(value) = self.completion(all, false, decimals) {
                return Some(padded(&value, more));
            }
        }
        if self.rules.point == Point::Forbidden || more + 2 >= most {
            return None;
        }
        let (decimals, value) = fewest(decimals, |zeros| self.completion(all, false, zeros))?;
        let digits = padded(&value, more + decimals as usize);
        let (integers, fraction) = digits.split_at(digits.len() - decimals as usize);
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        let rest = format!("{integers}.{fraction}");
        Some(rest).filter(|rest| rest.len() < most)
    }
}

/// The digits of a number, with zeros before them; none of zero where none must come.
fn padded(value: &BigUint, digits: usize) -> String {
    match digits {
        0 => String::new(),
        _ => format!("{:0>digits$}", value.to_string()),
    }
}

/// The fewest of `all` decimals that are not zeros at the end, with what they are. With more there
/// are more values.
fn fewest(all: u32, value: impl Fn(u32) -> Option<BigUint>) -> Option<(u32, BigUint)> {
    let mut found = (all, value(0)?);
    let mut few = 0;
    while few < found.0 {
        let middle = few + (found.0 - few) / 2;
        match value(all - middle) {
            Some(value) => found = (middle, value),
            None => few = middle + 1,
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::RngExt;
    use proptest::test_runner::{RngAlgorithm, TestRng};
    use rustc_hash::FxHashSet;

    use super::*;
    use crate::regex::Decimal;
    use crate::regex::{Bound, MagnitudeConstraint};

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    /// By looking at all texts in order of their length.
    fn by_length(start: &Magnitude) -> usize {
        let mut seen = FxHashSet::from_iter([start.clone()]);
        let mut pending = VecDeque::from([(start.clone(), 0)]);
        while let Some((state, length)) = pending.pop_front() {
            if state.accepts() {
                return length;
            }
            for byte in b"0123456789." {
                if let Some(next) = state.derive(*byte).filter(|next| seen.insert(next.clone())) {
                    pending.push_back((next, length + 1));
                }
            }
        }
        panic!("every state is alive")
    }

    fn check(state: &Magnitude) {
        let text = state.shortest().unwrap();
        let end = text.bytes().try_fold(state.clone(), |state, byte| state.derive(byte));
        assert!(end.is_some_and(|end| end.accepts()), "{text} {state:?}");
        assert_eq!(text.len(), by_length(state), "{text} {state:?}");
    }

    #[test]
    fn nothing_is_shorter_after_any_beginning() {
        let mut checked = 0;
        for seed in 0..160 {
            let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
            let mut draw = |most: u32| {
                let places = rng.random_range(0..4);
                let value = rng.random_range(1..most);
                decimal(&format!("{value}e-{places}"))
            };
            let steps = [draw(400), draw(30), draw(30)];
            let ends = [draw(2_000), draw(90_000)];
            let excluded: Vec<Decimal> = (0..3).map(|_| draw(40)).collect();
            let mut coin = || rng.random_range(0..2) == 0;
            let end = |value: &Decimal, exclusive| Bound { value: value.clone(), exclusive };
            let point = [Point::Optional, Point::Forbidden, Point::Required][usize::from(seed) % 3];
            let mut multiple_of = coin().then(|| steps[0].clone());
            if point == Point::Forbidden {
                // Then the values are integers.
                let one = Decimal::from(1);
                let step = multiple_of.as_ref().unwrap_or(&one);
                multiple_of = Some(step.least_common_multiple(&one).unwrap());
            }
            let constraint = MagnitudeConstraint {
                low: coin().then(|| end(&ends[0], coin())),
                high: coin().then(|| end(&ends[1], coin())),
                multiple_of,
                not_multiple_of: steps[1..].iter().filter(|_| coin()).cloned().collect(),
                excluded: if coin() { excluded } else { Vec::new() },
                point,
            };
            let Some(start) = Magnitude::new(&constraint) else { continue };
            for _ in 0..6 {
                let mut state = start.clone();
                for _ in 0..8 {
                    check(&state);
                    checked += 1;
                    let bytes = b"0123456789.";
                    let next: Vec<Magnitude> =
                        bytes.iter().filter_map(|&byte| state.derive(byte)).collect();
                    if next.is_empty() {
                        break;
                    }
                    state = next[rng.random_range(0..next.len())].clone();
                }
            }
        }
        assert!(checked > 3_000, "{checked}");
    }

    #[test]
    fn large_steps_take_no_search() {
        for (step, high, begun, expected) in [
            ("1e300", None, "", format!("1{}", "0".repeat(300))),
            ("1000000007", None, "5", "000000035".into()),
            ("1e-300", Some("5e-300"), "0.", format!("{}1", "0".repeat(299))),
        ] {
            let end = |text: &str| Some(Bound { value: decimal(text), exclusive: false });
            let constraint = MagnitudeConstraint {
                low: end("1e-300"),
                high: high.and_then(end),
                multiple_of: Some(decimal(step)),
                not_multiple_of: Vec::new(),
                excluded: Vec::new(),
                point: Point::Optional,
            };
            let start = Magnitude::new(&constraint).unwrap();
            let state = begun.bytes().try_fold(start, |state, byte| state.derive(byte)).unwrap();
            assert_eq!(state.shortest().unwrap(), expected);
        }
    }
}
