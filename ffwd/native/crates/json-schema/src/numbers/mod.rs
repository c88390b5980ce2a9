//! The forms of JSON numbers within bounds, as languages over ASCII.
//!
//! Every language here is sound: each of its texts is a JSON number that satisfies the constraint.
//! It is complete for plain decimals, with any number of zeros at the end of a fraction. With an
//! exponent, it has all forms of a number that only its sign bounds. Otherwise it has the
//! normalized ones (one digit that is not zero before the point), and for integers those whose
//! mantissa is an integer and whose exponent is not negative. On request numbers are *plain*: see
//! `NumberConstraint::plain`.

mod digit_range;
mod kinds;
mod stepped;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::regex::{finite, Ast, Bound, CharClass, Decimal, Finite, FiniteKind};
use num_bigint::BigUint;
use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap};

use digit_range::{digit, digits, naturals};
use stepped::{is_stepped, stepped};

pub(crate) use kinds::NumberKinds;

/// Characters that the values of [`NumberConstraint::one_of`] may have together, written plainly.
const MAX_LISTED: usize = 1 << 22;

/// The constraints on a number, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NumberConstraint {
    /// Which kinds of numbers are allowed.
    pub kinds: NumberKinds,
    /// The lower bound.
    pub minimum: Option<Bound>,
    /// The upper bound.
    pub maximum: Option<Bound>,
    /// Beside it there are only kinds.
    pub one_of: Option<Vec<Decimal>>,
    /// Above 0, and so are those of `not_multiple_of`.
    pub multiple_of: Option<Decimal>,
    /// Steps, all above 0, of which no number is a multiple.
    pub not_multiple_of: Vec<Decimal>,
    /// Values that no number has.
    pub none_of: Vec<Decimal>,
    /// Whether a constraint that only integers satisfy is written as digits alone, and numbers are
    /// finite in double precision. A bound beyond the greatest double lifts the second rule on its
    /// side, and so do steps of `HUGE_STEP`.
    pub plain: bool,
}

/// The power of ten from which on a step has few finite multiples.
const HUGE_STEP: i64 = 290;

impl NumberConstraint {
    /// Whether a value satisfies the constraint.
    pub(crate) fn allows(&self, value: &Decimal) -> bool {
        self.within_bounds(value)
            && self.one_of.as_ref().is_none_or(|values| values.contains(value))
            && self.multiple_of.as_ref().is_none_or(|step| value.is_multiple_of(step))
            && !self.not_multiple_of.iter().any(|step| value.is_multiple_of(step))
            && !self.none_of.contains(value)
    }

    /// Whether a value is of the right kind and within the bounds, listed or not.
    fn within_bounds(&self, value: &Decimal) -> bool {
        self.kinds.contains(value)
            && self.minimum.as_ref().is_none_or(|bound| bound.is_minimum_of(value))
            && self.maximum.as_ref().is_none_or(|bound| bound.is_maximum_of(value))
    }

    /// The constraint with the demands of plain numbers. Sides without a bound stay without one:
    /// see [`Interval::spellings`].
    fn plainly(&self) -> Self {
        let mut narrow = self.clone();
        let whole = !self.kinds.overlaps(NumberKinds::FRACTIONS)
            || self.one_of.as_ref().is_some_and(|values| values.iter().all(Decimal::is_integer));
        if whole && self.kinds.overlaps(NumberKinds::DIGITS) {
            narrow.kinds = NumberKinds::DIGITS;
        }
        let huge = |step: &Decimal| step.leading_exponent() >= HUGE_STEP;
        if self.one_of.is_some() || self.multiple_of.as_ref().is_some_and(huge) {
            return narrow;
        }
        let greatest = finite::greatest();
        let stepped = is_stepped(&narrow);
        // Whether a side of the range is bounded, given its beginning.
        let ends = |start: Option<Decimal>| match start {
            Some(start) if start > Decimal::zero() => start <= greatest,
            _ => stepped,
        };
        let limit = |value| Some(Bound { value, exclusive: true });
        if self.maximum.is_none() && ends(self.minimum.as_ref().map(|low| low.value.clone())) {
            narrow.maximum = limit(finite::limit());
        }
        if self.minimum.is_none() && ends(self.maximum.as_ref().map(|high| high.value.negated())) {
            narrow.minimum = limit(finite::limit().negated());
        }
        narrow
    }

    fn style(&self) -> Style {
        match self.kinds {
            NumberKinds::DIGITS => Style::Digits,
            NumberKinds::INTEGERS => Style::ZeroFraction,
            _ => Style::Any,
        }
    }
}

/// All numbers.
pub fn unconstrained() -> Ast {
    Ast::concat([Ast::optional(Ast::literal("-")), Style::Any.naturals_and_more()])
}

/// The numbers without an exponent. The language of each constraint contains all of these that
/// satisfy it.
pub fn without_exponent() -> Ast {
    let unsigned = Ast::concat([naturals(None, None), Style::Any.fraction()]);
    Ast::concat([Ast::optional(Ast::literal("-")), unsigned])
}

/// The spellings of bounds that the process has met lately: most numbers of a schema have none, or
/// those of another schema, and equal trees that are shared compare at once.
static KNOWN: Mutex<FxHashMap<NumberConstraint, Ast>> =
    Mutex::new(FxHashMap::with_hasher(FxBuildHasher));

/// How many spellings are kept, and of how many bytes each.
const MAX_KNOWN: usize = 512;
const MAX_KNOWN_BYTES: usize = 1 << 13;

/// The spellings of the numbers that satisfy the constraint; [`Ast::Empty`] if there are none.
pub(crate) fn spellings(constraint: &NumberConstraint) -> Result<Ast, LimitExceeded> {
    if constraint.one_of.is_some() || is_stepped(constraint) {
        return build(constraint);
    }
    if let Some(known) = KNOWN.lock().get(constraint) {
        return Ok(known.clone());
    }
    let built = build(constraint)?;
    if built.memory_bytes() <= MAX_KNOWN_BYTES {
        let mut known = KNOWN.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(constraint.clone(), built.clone());
    }
    Ok(built)
}

fn build(constraint: &NumberConstraint) -> Result<Ast, LimitExceeded> {
    let plain = constraint.plain.then(|| constraint.plainly());
    let constraint = plain.as_ref().unwrap_or(constraint);
    if let Some(values) = &constraint.one_of {
        return listed(constraint, values);
    }
    if is_stepped(constraint) {
        return stepped(constraint);
    }
    let (style, finite) = (constraint.style(), constraint.plain);
    // Magnitudes of the positive and of the negative numbers.
    let positive = Interval::of(&constraint.minimum, &constraint.maximum, false);
    let negative = Interval::of(&constraint.maximum, &constraint.minimum, true);
    let zero = constraint.allows(&Decimal::zero());
    let minus = || Ast::literal("-");
    let free = |interval: &Option<Interval>| interval.as_ref().is_some_and(Interval::is_free);
    let mut parts = Vec::new();
    if zero && free(&positive) && free(&negative) {
        return Ok(Ast::concat([Ast::optional(minus()), style.all(finite)]));
    }
    if zero && free(&positive) {
        parts.push(style.all(finite));
    } else {
        parts.extend(positive.map(|interval| interval.spellings(style, finite)));
        parts.extend(zero.then(|| style.zero()));
    }
    if zero && free(&negative) {
        parts.push(Ast::concat([minus(), style.all(finite)]));
    } else {
        let magnitudes = negative.map(|interval| interval.spellings(style, finite));
        let magnitudes = magnitudes.into_iter().chain(zero.then(|| style.zero()));
        parts.push(Ast::concat([minus(), Ast::alternation(magnitudes)]));
    }
    Ok(Ast::alternation(parts))
}

/// Spellings of the values that satisfy the constraint, each in its plain forms and, with an
/// exponent, in its normalised ones.
pub(super) fn listed(
    constraint: &NumberConstraint,
    values: &[Decimal],
) -> Result<Ast, LimitExceeded> {
    let mut length = 0;
    let mut parts = Vec::new();
    let mut kept: Vec<&Decimal> =
        values.iter().filter(|value| constraint.within_bounds(value)).collect();
    kept.sort();
    kept.dedup();
    let mut forms = ListedForms::default();
    let mut negative_forms = ListedForms::default();
    for value in kept {
        let (integer, fraction) = value.plain_parts();
        length += integer.len() + fraction.len();
        if length > MAX_LISTED {
            return Err(LimitExceeded {
                limit: "number_list_characters",
                maximum: MAX_LISTED as u64,
            });
        }
        if value.is_zero() {
            let mut zero = ListedForms::default();
            zero.add(value, &integer, &fraction);
            let spellings = zero.spellings(constraint.kinds);
            parts.push(Ast::concat([Ast::optional(Ast::literal("-")), spellings]));
        } else if value.is_negative() {
            negative_forms.add(value, &integer, &fraction);
        } else {
            forms.add(value, &integer, &fraction);
        }
    }
    parts.push(forms.spellings(constraint.kinds));
    let negative = negative_forms.spellings(constraint.kinds);
    parts.push(Ast::concat([Ast::literal("-"), negative]));
    Ok(Ast::alternation(parts))
}

/// Magnitudes to write. Those with common endings are grouped, so that long lists are mostly unions
/// of literals.
#[derive(Default)]
struct ListedForms {
    integers: Vec<Ast>,
    fractions: Vec<Ast>,
    /// Mantissas of one digit, and of several, for each exponent (none for zero, which has all) of
    /// integers (`true`) and others.
    mantissas: BTreeMap<(bool, Option<i64>), [Vec<Ast>; 2]>,
}

impl ListedForms {
    fn add(&mut self, value: &Decimal, integer: &str, fraction: &str) {
        let is_integer = fraction.is_empty();
        if is_integer {
            self.integers.push(Ast::literal(integer));
        } else {
            self.fractions.push(Ast::literal(&format!("{integer}.{fraction}")));
        }
        // Zero keeps its value with any exponent.
        let exponent = (!value.is_zero()).then(|| value.leading_exponent());
        let [single, several] = self.mantissas.entry((is_integer, exponent)).or_default();
        let (first, rest) = value.digits().split_at(value.digits().len().min(1));
        if rest.is_empty() {
            single.push(Ast::literal(if first.is_empty() { "0" } else { first }));
        } else {
            several.push(Ast::literal(&format!("{first}.{rest}")));
        }
    }

    fn spellings(self, kinds: NumberKinds) -> Ast {
        let point_zeros = || Ast::concat([Ast::literal("."), zeros(1)]);
        let marked = kinds.overlaps(NumberKinds::MARKED_INTEGERS);
        let after_integers = match (kinds.overlaps(NumberKinds::DIGITS), marked) {
            (true, true) => Ast::optional(point_zeros()),
            (true, false) => Ast::Epsilon,
            (false, _) => point_zeros(),
        };
        let mut forms = vec![
            Ast::concat([Ast::alternation(self.integers), after_integers]),
            Ast::concat([Ast::alternation(self.fractions), zeros(0)]),
        ];
        for ((is_integer, exponent), [single, several]) in self.mantissas {
            if marked || !is_integer {
                let single = Ast::concat([Ast::alternation(single), Ast::optional(point_zeros())]);
                let several = Ast::concat([Ast::alternation(several), zeros(0)]);
                let mantissa = Ast::alternation([single, several]);
                forms.push(Ast::concat([mantissa, exponents(exponent, exponent)]));
            }
        }
        Ast::alternation(forms)
    }
}

/// Which fractions and exponents a spelling may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Any,
    ZeroFraction,
    Digits,
}

impl Style {
    /// A fraction that adds nothing, or none.
    fn zero_fraction(self) -> Ast {
        match self {
            Self::Digits => Ast::Epsilon,
            _ => Ast::optional(Ast::concat([Ast::literal("."), zeros(1)])),
        }
    }

    /// Any fraction of the style, or none.
    fn fraction(self) -> Ast {
        match self {
            Self::Any => Ast::optional(Ast::concat([Ast::literal("."), digits(1, None)])),
            _ => self.zero_fraction(),
        }
    }

    /// Any exponent that keeps a value of the style in the style, or none.
    fn exponent(self) -> Ast {
        let signs = match self {
            Self::Any => Ast::class(CharClass::new([(0x2B, 0x2B), (0x2D, 0x2D)])),
            Self::ZeroFraction => Ast::literal("+"),
            Self::Digits => return Ast::Epsilon,
        };
        Ast::optional(Ast::concat([exponent_mark(), Ast::optional(signs), digits(1, None)]))
    }

    /// All spellings without a sign.
    fn naturals_and_more(self) -> Ast {
        Ast::concat([naturals(None, None), self.fraction(), self.exponent()])
    }

    /// All spellings without a sign, or those of finite numbers.
    fn all(self, finite: bool) -> Ast {
        match finite {
            true => self.finite(false),
            false => self.naturals_and_more(),
        }
    }

    /// Those of finite numbers, or of those above zero.
    fn finite(self, positive: bool) -> Ast {
        let all =
            Ast::Finite(Finite::new(FiniteKind { digits_only: self == Self::Digits, positive }));
        match self {
            Self::Any | Self::Digits => all,
            Self::ZeroFraction => Ast::intersection([self.naturals_and_more(), all]),
        }
    }

    /// Zero without its sign.
    fn zero(self) -> Ast {
        let exponent = match self {
            Self::Digits => Ast::Epsilon,
            // Zero stays an integer whatever its exponent.
            _ => Self::Any.exponent(),
        };
        Ast::concat([Ast::literal("0"), self.zero_fraction(), exponent])
    }

    /// Fractions (with their point, or none) of value at least, or if `strict`, more than
    /// `0.digits`.
    fn fraction_above(self, bound: &str, strict: bool) -> Ast {
        let more = || Ast::concat([zeros(0), digit(b'1', b'9'), digits(0, None)]);
        match (self, bound.is_empty()) {
            (_, true) if !strict => self.fraction(),
            (Self::Any, true) => Ast::concat([Ast::literal("."), more()]),
            (Self::Any, false) => {
                let greater = bound.bytes().enumerate().map(|(i, byte)| {
                    let first = digit(byte + 1, b'9');
                    Ast::concat([Ast::literal(&bound[..i]), first, digits(0, None)])
                });
                let rest = if strict { more() } else { digits(0, None) };
                let equal = Ast::concat([Ast::literal(bound), rest]);
                let all = greater.chain(std::iter::once(equal));
                Ast::concat([Ast::literal("."), Ast::alternation(all)])
            }
            _ => Ast::Empty,
        }
    }

    /// Fractions (with their point, or none) of value at most, or if `strict`, less than
    /// `0.digits`.
    fn fraction_below(self, bound: &str, strict: bool) -> Ast {
        match (self, bound.is_empty()) {
            (_, true) if strict => Ast::Empty,
            (_, true) => self.zero_fraction(),
            (Self::Any, false) => {
                let less = bound.bytes().enumerate().map(|(i, byte)| {
                    // A proper prefix of the bound is less, too.
                    let first = digit(b'0', byte - 1);
                    let mut tail = Ast::concat([first, digits(0, None)]);
                    if i > 0 {
                        tail = Ast::optional(tail);
                    }
                    Ast::concat([Ast::literal(&bound[..i]), tail])
                });
                let equal = (!strict).then(|| Ast::concat([Ast::literal(bound), zeros(0)]));
                let fraction = Ast::alternation(less.chain(equal));
                Ast::optional(Ast::concat([Ast::literal("."), fraction]))
            }
            (_, false) => self.zero_fraction(),
        }
    }
}

pub(super) fn zeros(min: u32) -> Ast {
    Ast::repeat(Ast::literal("0"), min, None)
}

fn exponent_mark() -> Ast {
    Ast::class(CharClass::new([(0x45, 0x45), (0x65, 0x65)]))
}

/// Any exponent with its mark whose value is not past zero on a side that is bounded.
pub(super) fn exponent_sign(least: Option<i64>, most: Option<i64>) -> Ast {
    exponents(least.map(|_| 0), most.map(|_| 0))
}

/// Exponents with their mark, of value `low..=high`, with any number of leading zeros.
pub(super) fn exponents(low: Option<i64>, high: Option<i64>) -> Ast {
    if low.zip(high).is_some_and(|(low, high)| low > high) {
        return Ast::Empty;
    }
    // Naturals from `low` to `high`; zero consists of zeros alone.
    let values = |low: i64, high: Option<i64>| {
        if high.is_some_and(|high| high < low) {
            return Ast::Empty;
        }
        let below = (low > 0).then(|| (low - 1).to_string());
        let above = high.map(|high| (high + 1).to_string());
        Ast::concat([zeros(0), naturals(below.as_deref(), above.as_deref())])
    };
    let positive = if high.is_some_and(|high| high < 0) {
        Ast::Empty
    } else {
        let sign = Ast::optional(Ast::literal("+"));
        Ast::concat([sign, values(low.unwrap_or(0).max(0), high)])
    };
    let negative = if low.is_some_and(|low| low > 0) {
        Ast::Empty
    } else {
        let least = high.map_or(0, |high| (-high).max(0));
        Ast::concat([Ast::literal("-"), values(least, low.map(|low| -low))])
    };
    Ast::concat([exponent_mark(), Ast::alternation([positive, negative])])
}

/// A set of positive magnitudes.
#[derive(Clone, Debug)]
pub(super) struct Interval {
    /// Not negative; zero is always exclusive.
    low: Bound,
    high: Option<Bound>,
}

impl Interval {
    /// The magnitudes between two bounds, or, mirrored, between their negatives.
    pub(super) fn of(low: &Option<Bound>, high: &Option<Bound>, mirrored: bool) -> Option<Self> {
        let of = |bound: &Bound| if mirrored { bound.negated() } else { bound.clone() };
        let zero = Bound { value: Decimal::zero(), exclusive: true };
        let low = low.as_ref().map(of).filter(|low| low.value > zero.value).unwrap_or(zero);
        let high = high.as_ref().map(of);
        if high.as_ref().is_some_and(|high| high.value <= Decimal::zero()) {
            return None;
        }
        if let Some(high) = &high {
            if !low.is_minimum_of(&high.value) || !high.is_maximum_of(&low.value) {
                return None;
            }
        }
        Some(Self { low, high })
    }

    /// Whether all positive numbers are in it.
    pub(super) fn is_free(&self) -> bool {
        self.low.value.is_zero() && self.high.is_none()
    }

    /// The spellings of finite numbers on a side without a bound.
    fn spellings(&self, style: Style, finite: bool) -> Ast {
        if finite && self.is_free() {
            style.finite(true)
        } else if style == Style::Any {
            self.number_spellings()
        } else {
            self.integer_spellings(style)
        }
    }

    fn number_spellings(&self) -> Ast {
        let style = Style::Any;
        if self.is_free() {
            let mantissa = plain(&self.low, None, style);
            return Ast::concat([mantissa, style.exponent()]);
        }
        let plain = plain(&self.low, self.high.as_ref(), style);
        Ast::alternation([
            plain,
            self.scientific(&|low, high| self::plain(low, Some(high), style), None, None),
        ])
    }

    fn integer_spellings(&self, style: Style) -> Ast {
        // The nearest integers that are out of bounds.
        let low = {
            let (integer, fraction) = self.low.value.plain_parts();
            if fraction.is_empty() && !self.low.exclusive {
                predecessor(&integer)
            } else {
                Some(integer)
            }
        };
        let high = self.high.as_ref().map(|high| {
            let (integer, fraction) = high.value.plain_parts();
            if fraction.is_empty() && high.exclusive {
                integer
            } else {
                successor(&integer)
            }
        });
        let integers = naturals(low.as_deref(), high.as_deref());
        if self.is_free() {
            return Ast::concat([integers, style.fraction(), style.exponent()]);
        }
        let plain = Ast::concat([integers, style.fraction()]);
        match style {
            Style::Digits => plain,
            _ => Ast::alternation([
                plain,
                self.scientific(&|low, high| self::plain(low, Some(high), style), Some(0), None),
            ]),
        }
    }

    /// The normalised spellings with an exponent from `least` to `most`: a mantissa between two
    /// bounds (the first at least 1, the second below 10), and exponents.
    pub(super) fn scientific(
        &self,
        mantissas: &dyn Fn(&Bound, &Bound) -> Ast,
        least: Option<i64>,
        most: Option<i64>,
    ) -> Ast {
        let one = Bound { value: Decimal::from(1), exclusive: false };
        let ten = Bound { value: Decimal::from(10), exclusive: true };
        let low_exponent = (!self.low.value.is_zero()).then(|| self.low.value.leading_exponent());
        let high_exponent = self.high.as_ref().map(|high| high.value.leading_exponent());
        let at =
            |bound: &Bound| Bound { value: bound.value.mantissa(), exclusive: bound.exclusive };
        let limited = |low: Option<i64>, high: Option<i64>| {
            let low = low.into_iter().chain(least).max();
            exponents(low, high.into_iter().chain(most).min())
        };
        let mut parts = Vec::new();
        let mut push = |low: &Bound, high: &Bound, exponents: Ast| {
            if exponents != Ast::Empty {
                parts.push(Ast::concat([mantissas(low, high), exponents]));
            }
        };
        let exactly = |exponent: i64| limited(Some(exponent), Some(exponent));
        match (low_exponent, high_exponent, &self.high) {
            (Some(low), Some(high), Some(bound)) if low == high => {
                push(&at(&self.low), &at(bound), exactly(low));
            }
            _ => {
                if let Some(low) = low_exponent {
                    push(&at(&self.low), &ten, exactly(low));
                }
                if let (Some(high), Some(bound)) = (high_exponent, &self.high) {
                    push(&one, &at(bound), exactly(high));
                }
                let middle = limited(low_exponent.map(|e| e + 1), high_exponent.map(|e| e - 1));
                push(&one, &ten, middle);
            }
        }
        Ast::alternation(parts)
    }
}

/// The plain spellings of the positive magnitudes between the bounds.
fn plain(low: &Bound, high: Option<&Bound>, style: Style) -> Ast {
    let (low_integer, low_fraction) = low.value.plain_parts();
    let above = || style.fraction_above(&low_fraction, low.exclusive);
    let Some(high) = high else {
        // Whole integer parts above the bound's, then the bound's own.
        return if low_fraction.is_empty() && !low.exclusive {
            let before = predecessor(&low_integer);
            Ast::concat([naturals(before.as_deref(), None), style.fraction()])
        } else {
            Ast::alternation([
                Ast::concat([naturals(Some(&low_integer), None), style.fraction()]),
                Ast::concat([Ast::literal(&low_integer), above()]),
            ])
        };
    };
    let (high_integer, high_fraction) = high.value.plain_parts();
    let below = style.fraction_below(&high_fraction, high.exclusive);
    if low_integer == high_integer {
        let fractions = if low_fraction.is_empty() && !low.exclusive {
            below
        } else {
            Ast::intersection([above(), below])
        };
        return Ast::concat([Ast::literal(&low_integer), fractions]);
    }
    let own_low = low_fraction.is_empty() && !low.exclusive;
    let from = if own_low { predecessor(&low_integer) } else { Some(low_integer.clone()) };
    let low_part =
        if own_low { Ast::Empty } else { Ast::concat([Ast::literal(&low_integer), above()]) };
    Ast::alternation([
        low_part,
        Ast::concat([naturals(from.as_deref(), Some(&high_integer)), style.fraction()]),
        Ast::concat([Ast::literal(&high_integer), below]),
    ])
}

fn big(integer: &str) -> BigUint {
    BigUint::parse_bytes(integer.as_bytes(), 10).unwrap_or_default()
}

fn successor(integer: &str) -> String {
    (big(integer) + 1u32).to_string()
}

/// None for zero.
fn predecessor(integer: &str) -> Option<String> {
    (integer != "0").then(|| (big(integer) - 1u32).to_string())
}
