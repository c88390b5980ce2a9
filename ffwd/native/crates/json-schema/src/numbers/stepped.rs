//! The forms of numbers with constraints beyond bounds: multiples, exclusions, and the kinds that
//! no style of [`super::spellings`] has.
//!
//! Plain decimals are complete. An exponent is allowed if it cannot change the answer. A multiple
//! stays one under any exponent that is not negative. A non-multiple stays one under any that is
//! not positive (`x × 10^-k = n × step` would make `x` a multiple as well). Forms with an exponent
//! are all normalized, so excluded values are removed in their normalized forms.

use ffwd_regular::regex::{Ast, Bound, Decimal, MagnitudeConstraint, Point, MAX_EXCLUDED_STEPS};

use super::{exponent_sign, exponents, listed, zeros, Interval};
use super::{NumberConstraint, NumberKinds};
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::regex::decimal::MAX_DIGITS;

/// Whether [`super::spellings`] leaves the constraint to this module.
pub(super) fn is_stepped(constraint: &NumberConstraint) -> bool {
    let styles = [NumberKinds::ALL, NumberKinds::INTEGERS, NumberKinds::DIGITS];
    constraint.multiple_of.is_some()
        || !constraint.not_multiple_of.is_empty()
        || !constraint.none_of.is_empty()
        || !styles.contains(&constraint.kinds)
}

pub(super) fn stepped(constraint: &NumberConstraint) -> Result<Ast, LimitExceeded> {
    if constraint.not_multiple_of.len() > MAX_EXCLUDED_STEPS {
        return Err(LimitExceeded { limit: "excluded_steps", maximum: MAX_EXCLUDED_STEPS as u64 });
    }
    // Kinds with different points are written separately.
    let groups = [
        (NumberKinds::DIGITS, Point::Forbidden),
        (NumberKinds::DIGITS.complement(), Point::Required),
    ];
    if [NumberKinds::ALL, NumberKinds::INTEGERS, NumberKinds::FRACTIONS].contains(&constraint.kinds)
    {
        return Stepped::new(constraint, constraint.kinds, Point::Optional)?.spellings();
    }
    let mut parts = Vec::new();
    for (kinds, point) in groups {
        let kinds = constraint.kinds.intersect(kinds);
        if !kinds.is_none() {
            parts.push(Stepped::new(constraint, kinds, point)?.spellings()?);
        }
    }
    Ok(Ast::alternation(parts))
}

struct Stepped<'c> {
    constraint: &'c NumberConstraint,
    kinds: NumberKinds,
    point: Point,
    step: Option<Decimal>,
    excluded_steps: Vec<Decimal>,
    /// The least and the greatest exponent.
    least: Option<i64>,
    most: Option<i64>,
}

impl<'c> Stepped<'c> {
    fn new(
        constraint: &'c NumberConstraint,
        kinds: NumberKinds,
        point: Point,
    ) -> Result<Self, LimitExceeded> {
        let one = Decimal::from(1);
        let mut step = constraint.multiple_of.clone();
        let mut excluded_steps = constraint.not_multiple_of.clone();
        if !kinds.overlaps(NumberKinds::FRACTIONS) {
            step = Some(match step {
                Some(step) => step.least_common_multiple(&one).map_err(|_| LimitExceeded {
                    limit: "number_digits",
                    maximum: MAX_DIGITS as u64,
                })?,
                None => one,
            });
        } else if !kinds.overlaps(NumberKinds::INTEGERS) {
            excluded_steps.push(one);
        }
        let least = step.is_some().then_some(0);
        let most = (!excluded_steps.is_empty()).then_some(0);
        Ok(Self { constraint, kinds, point, step, excluded_steps, least, most })
    }

    fn spellings(&self) -> Result<Ast, LimitExceeded> {
        let minus = || Ast::literal("-");
        let mut plain = Vec::new();
        let mut marked = Vec::new();
        let NumberConstraint { minimum, maximum, .. } = self.constraint;
        for (negative, low, high) in [(false, minimum, maximum), (true, maximum, minimum)] {
            let sign = || if negative { minus() } else { Ast::Epsilon };
            let of = |bound: &Bound| if negative { bound.negated() } else { bound.clone() };
            let (low, high) = (low.as_ref().map(of), high.as_ref().map(of));
            if high.as_ref().is_some_and(|high| high.value.is_negative()) {
                continue;
            }
            let low = low.filter(|low| !low.value.is_negative());
            let excluded = self.constraint.none_of.iter();
            let excluded = excluded.filter(|v| v.is_zero() || v.is_negative() == negative);
            let all = self.magnitudes(low, high, excluded.map(Decimal::magnitude), self.point);
            plain.push(Ast::concat([sign(), all]));
            if self.kinds != NumberKinds::DIGITS {
                marked.push(Ast::concat([sign(), self.with_exponent(negative)]));
            }
        }
        let marked_zero = self.kinds.overlaps(NumberKinds::MARKED_INTEGERS);
        if marked_zero && self.constraint.allows(&Decimal::zero()) {
            // Zero is a multiple of everything, whatever its exponent.
            let zero = Ast::concat([Ast::literal("0"), Ast::optional(zero_fraction())]);
            let signed = Ast::concat([Ast::optional(minus()), zero]);
            marked.push(Ast::concat([signed, exponents(None, None)]));
        }
        let mut marked = Ast::alternation(marked);
        if !self.constraint.none_of.is_empty() && marked != Ast::Empty {
            let any = NumberConstraint::default();
            let excluded = listed(&any, &self.constraint.none_of)?;
            marked = Ast::intersection([marked, Ast::complement(excluded)]);
        }
        plain.push(marked);
        Ok(Ast::alternation(plain))
    }

    fn magnitudes(
        &self,
        low: Option<Bound>,
        high: Option<Bound>,
        excluded: impl Iterator<Item = Decimal>,
        point: Point,
    ) -> Ast {
        Ast::magnitude(&MagnitudeConstraint {
            low,
            high,
            multiple_of: self.step.clone(),
            not_multiple_of: self.excluded_steps.clone(),
            excluded: excluded.collect(),
            point,
        })
    }

    /// Spellings of numbers that are not zero, without their sign.
    fn with_exponent(&self, negative: bool) -> Ast {
        let NumberConstraint { minimum, maximum, .. } = self.constraint;
        let (low, high) = if negative { (maximum, minimum) } else { (minimum, maximum) };
        let Some(interval) = Interval::of(low, high, negative) else { return Ast::Empty };
        let mantissas = |low: &Bound, high: Option<&Bound>| {
            self.magnitudes(Some(low.clone()), high.cloned(), std::iter::empty(), Point::Optional)
        };
        if interval.is_free() && self.constraint.none_of.is_empty() {
            let zero = Bound { value: Decimal::zero(), exclusive: true };
            return Ast::concat([mantissas(&zero, None), exponent_sign(self.least, self.most)]);
        }
        let mantissas = |low: &Bound, high: &Bound| mantissas(low, Some(high));
        interval.scientific(&mantissas, self.least, self.most)
    }
}

fn zero_fraction() -> Ast {
    Ast::concat([Ast::literal("."), zeros(1)])
}
