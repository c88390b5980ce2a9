//! Unsigned JSON numbers that are finite in double precision, matched byte by byte.
//!
//! The largest exponent depends on the number of digits before it, so a regular expression for
//! these numbers needs an alternative for each number of digits. The state of this language is the
//! greatest exponent that may follow.
//!
//! A number is in the language exactly if it is less than `LIMIT_DIGITS` × 10^292, with two
//! theoretical exceptions. The part before the exponent must be less by itself, and leading zeros
//! of a fraction count up to the 400th.

use std::cmp::Ordering;

use super::Decimal;

/// The digits of 1.7976931348623158e308. It rounds to the greatest double, 1.7976931348623157e308,
/// and so do the numbers between the two. Numbers from about 8e291 above it round to infinity.
const LIMIT_DIGITS: &[u8] = b"17976931348623158";
const LIMIT_EXPONENT: i16 = 308;
/// Zeros of a fraction that are counted.
const MAX_ZEROS: i16 = 400;

/// The bound of all numbers, 1.7976931348623158e308, which is excluded.
pub fn limit() -> Decimal {
    power(LIMIT_DIGITS, LIMIT_EXPONENT)
}

/// The greatest finite double, as it is written.
pub fn greatest() -> Decimal {
    power(b"17976931348623157", LIMIT_EXPONENT)
}

fn power(digits: &[u8], leading: i16) -> Decimal {
    let digits = String::from_utf8_lossy(digits);
    let exponent = i64::from(leading) + 1 - digits.len() as i64;
    Decimal::parse(&format!("{digits}e{exponent}")).unwrap_or_else(|_| Decimal::zero())
}

/// Which of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FiniteKind {
    /// Without a point and without an exponent.
    pub digits_only: bool,
    /// Without zero.
    pub positive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum NumberPosition {
    Start,
    /// After the integer part `0`.
    Zero,
    Integer,
    /// After `0.` and after zeros behind it.
    ZeroPoint,
    ZeroFraction,
    /// After the point behind other digits, and in the fraction that has one.
    Point,
    Fraction,
    /// After `e`, after its plus, and in the digits of an exponent that has a bound.
    Mark,
    Plus,
    Exponent,
    /// The same where any exponent is allowed: zero stays zero, and a negative exponent makes a
    /// number smaller.
    FreeMark,
    FreeSign,
    FreeExponent,
    Over,
}

/// The continuations of a partial number. There is always one, except after a complete number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Finite {
    kind: FiniteKind,
    place: NumberPosition,
    /// The greatest exponent with which the digits stay below the limit.
    room: i16,
    /// How many digits were read, while they equal the first ones of the limit.
    tied: Option<u8>,
    exponent: i16,
}

impl Finite {
    /// All numbers of the kind.
    pub fn new(kind: FiniteKind) -> Self {
        Self {
            kind,
            place: NumberPosition::Start,
            room: LIMIT_EXPONENT,
            tied: Some(0),
            exponent: 0,
        }
    }

    /// Whether the text may end here.
    pub fn accepts(&self) -> bool {
        match self.place {
            NumberPosition::Zero | NumberPosition::ZeroFraction => !self.kind.positive,
            NumberPosition::Integer | NumberPosition::Fraction => true,
            NumberPosition::Exponent | NumberPosition::FreeExponent | NumberPosition::Over => true,
            NumberPosition::Start | NumberPosition::ZeroPoint | NumberPosition::Point => false,
            NumberPosition::Mark
            | NumberPosition::Plus
            | NumberPosition::FreeMark
            | NumberPosition::FreeSign => false,
        }
    }

    /// Whether the text must end here.
    pub(crate) fn is_over(&self) -> bool {
        self.place == NumberPosition::Over
    }

    /// The bytes that some number of the kind has.
    pub fn alphabet(&self) -> &'static [u8] {
        match self.kind.digits_only {
            true => b"0123456789",
            false => b"0123456789.eE+-",
        }
    }

    /// Returns the continuations after a byte, if any.
    pub fn derive(&self, byte: u8) -> Option<Self> {
        let at = |place| Self { place, ..*self };
        // The digits make no further difference.
        let free = |place| Some(Self { place, room: 0, tied: None, ..*self });
        if self.kind.digits_only && !byte.is_ascii_digit() {
            return None;
        }
        match (self.place, byte) {
            (NumberPosition::Start, b'0') => {
                let zero =
                    if self.kind.digits_only { NumberPosition::Over } else { NumberPosition::Zero };
                (!(self.kind.digits_only && self.kind.positive)).then(|| at(zero))
            }
            (NumberPosition::Start, b'1'..=b'9') => at(NumberPosition::Integer).significant(byte),
            (NumberPosition::Integer, b'0'..=b'9') => {
                Self { room: self.room - 1, ..*self }.significant(byte)
            }
            (NumberPosition::Integer, b'.') => Some(at(NumberPosition::Point)),
            (NumberPosition::Point | NumberPosition::Fraction, b'0'..=b'9') => {
                at(NumberPosition::Fraction).significant(byte)
            }
            // The next digit is a tenth.
            (NumberPosition::Zero, b'.') => {
                Some(Self { room: self.room + 1, ..at(NumberPosition::ZeroPoint) })
            }
            (NumberPosition::ZeroPoint | NumberPosition::ZeroFraction, b'0') => {
                let room = (self.room + 1).min(LIMIT_EXPONENT + MAX_ZEROS);
                Some(Self { room, ..at(NumberPosition::ZeroFraction) })
            }
            (NumberPosition::ZeroPoint | NumberPosition::ZeroFraction, b'1'..=b'9') => {
                at(NumberPosition::Fraction).significant(byte)
            }
            (NumberPosition::Zero | NumberPosition::ZeroFraction, b'e' | b'E')
                if !self.kind.positive =>
            {
                free(NumberPosition::FreeMark)
            }
            (NumberPosition::Integer | NumberPosition::Fraction, b'e' | b'E') => {
                Some(Self { tied: None, ..at(NumberPosition::Mark) })
            }
            (NumberPosition::Mark, b'+') => Some(at(NumberPosition::Plus)),
            (NumberPosition::Mark, b'-') | (NumberPosition::FreeMark, b'+' | b'-') => {
                free(NumberPosition::FreeSign)
            }
            (
                NumberPosition::Mark | NumberPosition::Plus | NumberPosition::Exponent,
                b'0'..=b'9',
            ) => self.exponent(byte),
            (
                NumberPosition::FreeMark | NumberPosition::FreeSign | NumberPosition::FreeExponent,
                b'0'..=b'9',
            ) => free(NumberPosition::FreeExponent),
            _ => None,
        }
    }

    /// Compares a digit with that of the limit.
    fn significant(mut self, byte: u8) -> Option<Self> {
        if let Some(tied) = self.tied {
            let read = usize::from(tied) + 1;
            let order = LIMIT_DIGITS.get(read - 1).map(|digit| byte.cmp(digit));
            let less = order == Some(Ordering::Less);
            // All digits of the limit are the limit.
            let tie = order == Some(Ordering::Equal) && read < LIMIT_DIGITS.len();
            self.tied = tie.then_some(tied + 1);
            self.room -= i16::from(!less && !tie);
        }
        if self.kind.digits_only && self.room == 0 {
            self.place = NumberPosition::Over;
        }
        (self.room >= 0).then_some(self)
    }

    fn exponent(&self, byte: u8) -> Option<Self> {
        let exponent = self.exponent * 10 + i16::from(byte - b'0');
        if exponent > self.room {
            return None;
        }
        if exponent * 10 > self.room && exponent > 0 {
            return Some(Self { place: NumberPosition::Over, room: 0, exponent: 0, ..*self });
        }
        Some(Self { place: NumberPosition::Exponent, exponent, ..*self })
    }
}

#[cfg(test)]
mod tests;
