//! Exact decimal numbers in JSON's notation.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigUint;
use thiserror::Error;

/// Significant digits that a [`Decimal`] may have.
pub const MAX_DIGITS: usize = 1100;
/// Largest magnitude of the exponents of a [`Decimal`]'s first and last digits.
pub const MAX_EXPONENT: i64 = 1100;

/// Why a text is not a [`Decimal`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecimalError {
    /// The text does not have the syntax of a JSON number.
    #[error("not a JSON number")]
    NotANumber,
    /// It has more than [`MAX_DIGITS`] digits between the first and the last that is not zero.
    #[error("the number has more than {MAX_DIGITS} significant digits")]
    TooManyDigits,
    /// The power of ten of its first or last digit is beyond [`MAX_EXPONENT`].
    #[error("the number's power of ten is beyond ±{MAX_EXPONENT}")]
    ExponentTooLarge,
}

/// An exact decimal: `±digits × 10^exponent`.
///
/// The form is canonical (no leading or trailing zero among the digits; zero has no digits, no
/// sign and the exponent 0), so equality and hashing are equality of values: `1` = `1.0` = `10e-1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    /// ASCII digits.
    digits: Box<str>,
    /// The power of ten of the last digit.
    exponent: i64,
}

impl Decimal {
    /// Zero.
    pub fn zero() -> Self {
        Self { negative: false, digits: "".into(), exponent: 0 }
    }

    /// Reads the text of a JSON number, in any of its spellings.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        let spelling = NumberText::split(text).ok_or(DecimalError::NotANumber)?;
        let all = || spelling.integer.bytes().chain(spelling.fraction.bytes());
        let Some(first) = all().position(|digit| digit != b'0') else {
            return Ok(Self::zero());
        };
        let total = spelling.integer.len() + spelling.fraction.len();
        let trailing = all().rev().take_while(|&digit| digit == b'0').count();
        let significant = total - first - trailing;
        if significant > MAX_DIGITS {
            return Err(DecimalError::TooManyDigits);
        }
        // The lengths are bounded by the address space, so only the written exponent can overflow.
        let written: i64 = spelling
            .exponent
            .map_or(Ok(0), |digits| digits.parse().map_err(|_| DecimalError::ExponentTooLarge))?;
        let shift = trailing as i64 - spelling.fraction.len() as i64;
        let exponent = written.checked_add(shift).ok_or(DecimalError::ExponentTooLarge)?;
        let leading = exponent.saturating_add(significant as i64 - 1);
        if exponent.unsigned_abs() > MAX_EXPONENT as u64
            || leading.unsigned_abs() > MAX_EXPONENT as u64
        {
            return Err(DecimalError::ExponentTooLarge);
        }
        let digits: String = all().skip(first).take(significant).map(char::from).collect();
        Ok(Self { negative: spelling.negative, digits: digits.into(), exponent })
    }

    /// Whether the value is 0.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether the value is below 0.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Returns whether the value is an integer, in any form.
    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The significant digits: ASCII, neither leading nor trailing zeros, none for zero.
    pub fn digits(&self) -> &str {
        &self.digits
    }

    /// The power of ten of the first significant digit: 2 for 123, -1 for 0.5, 0 for zero.
    pub fn leading_exponent(&self) -> i64 {
        if self.is_zero() {
            0
        } else {
            self.exponent + self.digits.len() as i64 - 1
        }
    }

    /// The value without its sign.
    #[must_use]
    pub fn magnitude(&self) -> Self {
        Self { negative: false, ..self.clone() }
    }

    /// The digits with the decimal point after the first: 1.25 for -125. Zero for zero.
    #[must_use]
    pub fn mantissa(&self) -> Self {
        Self {
            negative: false,
            digits: self.digits.clone(),
            exponent: if self.is_zero() { 0 } else { 1 - self.digits.len() as i64 },
        }
    }

    /// The value with the other sign; zero stays zero.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { negative: !self.negative && !self.is_zero(), ..self.clone() }
    }

    /// The power of ten of the last significant digit, 0 for zero.
    pub fn exponent(&self) -> i64 {
        self.exponent
    }

    /// Decimals after the point: 2 for 1.25, 0 for integers.
    pub fn places(&self) -> u32 {
        u32::try_from(-self.exponent).unwrap_or(0)
    }

    /// The magnitude in units of `10^-places`, rounded down.
    pub fn scaled(&self, places: u32) -> BigUint {
        let digits = BigUint::parse_bytes(self.digits.as_bytes(), 10).unwrap_or_default();
        let shift = self.exponent + i64::from(places);
        let power = power_of_ten(u32::try_from(shift.unsigned_abs()).unwrap_or(u32::MAX));
        if shift < 0 {
            digits / power
        } else {
            digits * power
        }
    }

    /// `magnitude × 10^-places`.
    ///
    /// # Errors
    /// The value passes the limits on digits and exponents.
    pub fn from_scaled(
        negative: bool,
        magnitude: &BigUint,
        places: u32,
    ) -> Result<Self, DecimalError> {
        let sign = if negative { "-" } else { "" };
        Self::parse(&format!("{sign}{magnitude}e-{places}"))
    }

    /// Whether the value is an integer times `step`, which is not zero.
    pub fn is_multiple_of(&self, step: &Self) -> bool {
        let places = self.places().max(step.places());
        self.is_zero() || self.scaled(places) % step.scaled(places) == BigUint::ZERO
    }

    /// The least common multiple of two values that are not zero.
    ///
    /// # Errors
    /// It passes the limits on digits and exponents.
    pub fn least_common_multiple(&self, other: &Self) -> Result<Self, DecimalError> {
        let places = self.places().max(other.places());
        let (left, right) = (self.scaled(places), other.scaled(places));
        let multiple = &left / greatest_common_divisor(left.clone(), right.clone()) * right;
        Self::from_scaled(false, &multiple, places)
    }

    /// The value as a `u64`, if it is one.
    pub fn to_u64(&self) -> Option<u64> {
        if self.is_zero() {
            return Some(0);
        }
        if self.negative || self.exponent < 0 {
            return None;
        }
        let power = 10u64.checked_pow(u32::try_from(self.exponent).ok()?)?;
        self.digits.parse::<u64>().ok()?.checked_mul(power)
    }

    /// The plain digits before and after the decimal point, without sign: `("0", "05")` for
    /// -0.05, `("1200", "")` for 1200.
    pub fn plain_parts(&self) -> (String, String) {
        let point = self.digits.len() as i64 + self.exponent;
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        if self.is_zero() {
            ("0".into(), String::new())
        } else if self.exponent >= 0 {
            (format!("{}{}", self.digits, zeros(self.exponent)), String::new())
        } else if point <= 0 {
            ("0".into(), format!("{}{}", zeros(-point), self.digits))
        } else {
            let (integer, fraction) = self.digits.split_at(point as usize);
            (integer.into(), fraction.into())
        }
    }

    fn magnitude_cmp(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Digits without trailing zeros and with the first ones aligned compare as text.
            (false, false) => self
                .leading_exponent()
                .cmp(&other.leading_exponent())
                .then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

pub(crate) fn power_of_ten(exponent: u32) -> BigUint {
    BigUint::from(10u32).pow(exponent)
}

/// Returns the greatest common divisor of two numbers that are not zero.
pub(super) fn greatest_common_divisor(mut left: BigUint, mut right: BigUint) -> BigUint {
    while right != BigUint::ZERO {
        (left, right) = (right.clone(), left % right);
    }
    left
}

/// One end of a range of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// Where the range ends.
    pub value: Decimal,
    /// Whether the value itself is out of bounds.
    pub exclusive: bool,
}

impl Bound {
    /// Whether a value is in a range that begins here.
    pub fn is_minimum_of(&self, value: &Decimal) -> bool {
        *value > self.value || (!self.exclusive && *value == self.value)
    }

    /// Whether a value is in a range that ends here.
    pub fn is_maximum_of(&self, value: &Decimal) -> bool {
        *value < self.value || (!self.exclusive && *value == self.value)
    }

    /// The end of the range on the other side of this one.
    #[must_use]
    pub fn opposite(&self) -> Self {
        Self { value: self.value.clone(), exclusive: !self.exclusive }
    }

    /// The same end of the range of the numbers with the other sign.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { value: self.value.negated(), exclusive: self.exclusive }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude_cmp(other),
            (true, true) => other.magnitude_cmp(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (integer, fraction) = self.plain_parts();
        let sign = if self.negative { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{integer}{point}{fraction}")
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Self {
        let text = value.to_string();
        let digits = text.trim_end_matches('0');
        let exponent = if value == 0 { 0 } else { (text.len() - digits.len()) as i64 };
        Self { negative: false, digits: digits.into(), exponent }
    }
}

impl std::str::FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        Self::parse(text)
    }
}

/// The parts of a JSON number's text.
struct NumberText<'t> {
    negative: bool,
    integer: &'t str,
    fraction: &'t str,
    /// With its sign.
    exponent: Option<&'t str>,
}

impl<'t> NumberText<'t> {
    fn split(text: &'t str) -> Option<Self> {
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (rest, None),
        };
        let (integer, fraction) = match mantissa.split_once('.') {
            Some((integer, fraction)) if all_digits(fraction) => (integer, fraction),
            Some(_) => return None,
            None => (mantissa, ""),
        };
        let leading_zero = integer.len() > 1 && integer.starts_with('0');
        let exponent_digits = exponent.map(|e| e.strip_prefix(['+', '-']).unwrap_or(e));
        if !all_digits(integer) || leading_zero || !exponent_digits.is_none_or(all_digits) {
            return None;
        }
        Some(Self { negative, integer, fraction, exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn equal_values_are_equal() {
        for (left, right) in [
            ("1", "1.0"),
            ("1e3", "1000"),
            ("-0", "0"),
            ("0e999999999999999999999", "0.000"),
            ("1.5E-7", "0.00000015"),
            ("10e-1", "1"),
            ("0.1e+1", "1e00"),
            ("-12.50", "-1.25e1"),
        ] {
            assert_eq!(decimal(left), decimal(right), "{left} {right}");
        }
    }

    #[test]
    fn values_are_ordered() {
        let sorted = [
            "-1e3", "-999.9", "-10", "-9", "-0.5", "-0.05", "0", "1e-9", "0.05", "0.5", "0.51",
            "9", "9.5", "10", "99", "100", "1e3",
        ];
        for (i, left) in sorted.iter().enumerate() {
            for (j, right) in sorted.iter().enumerate() {
                assert_eq!(decimal(left).cmp(&decimal(right)), i.cmp(&j), "{left} {right}");
            }
        }
    }

    #[test]
    fn display_is_plain() {
        for (text, shown) in [
            ("-0", "0"),
            ("1.50e1", "15"),
            ("-1.5E-3", "-0.0015"),
            ("12e2", "1200"),
            ("3.140", "3.14"),
        ] {
            assert_eq!(decimal(text).to_string(), shown);
        }
    }

    #[test]
    fn parts_of_values() {
        assert_eq!(decimal("-125e7").mantissa(), decimal("1.25"));
        assert_eq!(Decimal::zero().mantissa(), Decimal::zero());
        for value in [0, 7, 10, 1200, u64::MAX] {
            assert_eq!(Decimal::from(value), decimal(&value.to_string()));
        }
        assert_eq!(decimal("-5").magnitude(), decimal("5").negated().negated());
    }

    #[test]
    fn multiples_are_exact() {
        for (value, step, expected) in [
            ("0", "7", true),
            ("1e308", "0.123456789", false),
            ("12391239123", "1e-8", true),
            ("0.0075", "0.0001", true),
            ("0.00751", "0.0001", false),
            ("-9", "3", true),
            ("4.5", "1.5", true),
            ("35", "1.5", false),
            ("1e3", "1e4", false),
        ] {
            assert_eq!(decimal(value).is_multiple_of(&decimal(step)), expected, "{value} {step}");
        }
        for (left, right, multiple) in
            [("4", "6", "12"), ("0.5", "0.2", "1"), ("1.5", "2", "6"), ("1e3", "3", "3e3")]
        {
            let found = decimal(left).least_common_multiple(&decimal(right));
            assert_eq!(found, Ok(decimal(multiple)));
        }
        assert!(decimal("1e1000").least_common_multiple(&decimal("3e-1000")).is_ok());
        let primes = ["1e1000", &format!("{}1", "7".repeat(1000))].map(decimal);
        assert!(primes[0].least_common_multiple(&primes[1]).is_err());
    }

    #[test]
    fn integers_and_u64() {
        assert!(decimal("1.0").is_integer() && decimal("0.5e1").is_integer());
        assert!(!decimal("0.5").is_integer());
        assert_eq!(decimal("3e2").to_u64(), Some(300));
        assert_eq!(decimal("18446744073709551616").to_u64(), None);
        assert_eq!(decimal("1e1000").to_u64(), None);
        assert_eq!(decimal("-1").to_u64(), None);
        assert_eq!(decimal("0.5").to_u64(), None);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "", "-", "01", "1.", ".5", "+1", "1e", "1e+", "0x1", "1 ", "1.e1", "NaN", "--1",
            "1e1e1", "1e+-1",
        ] {
            assert_eq!(Decimal::parse(text), Err(DecimalError::NotANumber), "{text}");
        }
    }

    #[test]
    fn growth_is_capped() {
        for text in ["1e999999999", "1e-999999999", "1e99999999999999999999", "-1e1101", "1e-1101"]
        {
            assert_eq!(Decimal::parse(text), Err(DecimalError::ExponentTooLarge), "{text}");
        }
        assert_eq!(Decimal::parse(&"1".repeat(5000)), Err(DecimalError::TooManyDigits));
        assert!(Decimal::parse(&format!("1{}", "0".repeat(5000))).is_err());
        assert!(Decimal::parse("1.7976931348623157e308").is_ok());
    }
}
