//! Kinds of JSON numbers, by value and by spelling.

use ffwd_regular::regex::Decimal;

/// A set of the three kinds of JSON numbers: integers written as digits alone (`10`), integers
/// written otherwise (`10.0`, `1e1`), and numbers that are no integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NumberKinds(u8);

impl NumberKinds {
    const NONE: Self = Self(0);
    /// Integers without a fraction and an exponent: what draft 4 calls integers.
    pub const DIGITS: Self = Self(1);
    /// Integers with a fraction or an exponent.
    pub(super) const MARKED_INTEGERS: Self = Self(2);
    /// Integers by value.
    pub const INTEGERS: Self = Self(3);
    /// Numbers that are no integers by value.
    pub const FRACTIONS: Self = Self(4);
    /// Every JSON number.
    pub const ALL: Self = Self(7);

    /// Returns the kinds of `"type": "integer"`.
    pub fn integers(fraction_zero: bool) -> Self {
        if fraction_zero {
            Self::INTEGERS
        } else {
            Self::DIGITS
        }
    }

    /// The kinds of both sets.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The kinds that are not in the set.
    #[must_use]
    pub fn complement(self) -> Self {
        Self(!self.0 & Self::ALL.0)
    }

    /// Whether the sets have a kind in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is no kind.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Whether the value has a spelling of these kinds.
    pub fn contains(self, value: &Decimal) -> bool {
        self.overlaps(if value.is_integer() { Self::INTEGERS } else { Self::FRACTIONS })
    }
}

impl Default for NumberKinds {
    fn default() -> Self {
        Self::ALL
    }
}
