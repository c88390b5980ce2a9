//! Parameters of rules: conditions on them, and how they change.

use super::{BitRange, Change, Comparison, Condition, Operand};

fn mask(range: BitRange) -> u64 {
    let ones = match range.length {
        0..=63 => (1u64 << range.length) - 1,
        _ => u64::MAX,
    };
    ones.checked_shl(u32::from(range.start)).unwrap_or(0)
}

fn bits(range: BitRange, value: u64) -> u64 {
    (value & mask(range)).checked_shr(u32::from(range.start)).unwrap_or(0)
}

fn bit(index: u8) -> u64 {
    1u64.checked_shl(u32::from(index)).unwrap_or(0)
}

/// The parameter after a change.
pub fn apply(change: Change, value: u64) -> u64 {
    let with = |range: BitRange, bits: u64| {
        let shifted = bits.checked_shl(u32::from(range.start)).unwrap_or(0);
        value & !mask(range) | shifted & mask(range)
    };
    match change {
        Change::Increment(range) => {
            let (now, largest) = (bits(range, value), bits(range, u64::MAX));
            with(range, now.saturating_add(1).min(largest))
        }
        Change::Decrement(range) => with(range, bits(range, value).saturating_sub(1)),
        Change::SetBit(index) => value | bit(index),
        Change::ClearBit(index) => value & !bit(index),
        Change::And(other) => value & other,
        Change::Or(other) => value | other,
    }
}

/// Whether a condition holds of a parameter.
pub fn holds(condition: &Condition, value: u64) -> bool {
    match condition {
        Condition::True => true,
        Condition::BitSet(index) => value & bit(*index) != 0,
        Condition::BitClear(index) => value & bit(*index) == 0,
        Condition::Compare { of, comparison, with } => {
            let number = match *of {
                Operand::Value(range) => bits(range, value),
                Operand::Count(range) => u64::from(bits(range, value).count_ones()),
            };
            match comparison {
                Comparison::Equal => number == *with,
                Comparison::NotEqual => number != *with,
                Comparison::Less => number < *with,
                Comparison::LessOrEqual => number <= *with,
                Comparison::Greater => number > *with,
                Comparison::GreaterOrEqual => number >= *with,
            }
        }
        Condition::And(all) => all.iter().all(|one| holds(one, value)),
        Condition::Or(any) => any.iter().any(|one| holds(one, value)),
        Condition::Not(inner) => !holds(inner, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_bits_count_and_stay_in_their_range() {
        let range = BitRange { start: 4, length: 2 };
        assert_eq!(apply(Change::Increment(range), 0x0F), 0x1F);
        assert_eq!(apply(Change::Increment(range), 0x3F), 0x3F);
        assert_eq!(apply(Change::Decrement(range), 0x3F), 0x2F);
        assert_eq!(apply(Change::Decrement(range), 0x0F), 0x0F);
        assert_eq!(apply(Change::SetBit(63), 0), 1 << 63);
        assert_eq!(apply(Change::ClearBit(0), 3), 2);
    }

    #[test]
    fn conditions_look_at_runs() {
        let all = BitRange { start: 0, length: 64 };
        let of = Operand::Count(all);
        let two = Condition::Compare { of, comparison: Comparison::Equal, with: 2 };
        assert!(holds(&two, 0b1010) && !holds(&two, 0b1011));
        assert!(holds(&Condition::Not(Condition::BitSet(1).into()), 0b101));
    }
}
