//! Languages of decimal digits that compare in a given way with other digits.

use ffwd_regular::regex::{Ast, CharClass};

/// One digit of `low..=high`, none if `low > high`.
pub(super) fn digit(low: u8, high: u8) -> Ast {
    Ast::class(CharClass::new([(u32::from(low), u32::from(high))]))
}

pub(super) fn any_digit() -> Ast {
    digit(b'0', b'9')
}

pub(super) fn digits(min: usize, max: Option<usize>) -> Ast {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Ast::repeat(any_digit(), count(min), max.map(count))
}

/// Texts of as many digits as `text` that are greater.
fn greater(text: &str) -> Ast {
    Ast::alternation(text.bytes().enumerate().map(|(i, byte)| {
        let rest = text.len() - i - 1;
        Ast::concat([Ast::literal(&text[..i]), digit(byte + 1, b'9'), digits(rest, Some(rest))])
    }))
}

/// Texts of as many digits as `text` that are less.
fn less(text: &str) -> Ast {
    Ast::alternation(text.bytes().enumerate().map(|(i, byte)| {
        let rest = text.len() - i - 1;
        Ast::concat([Ast::literal(&text[..i]), digit(b'0', byte - 1), digits(rest, Some(rest))])
    }))
}

/// Texts of `low.len()` digits strictly between two texts of that many digits.
fn strictly_between(low: &str, high: &str) -> Ast {
    let common = low.bytes().zip(high.bytes()).take_while(|(a, b)| a == b).count();
    if low >= high {
        return Ast::Empty;
    }
    let (prefix, rest_low, rest_high) = (&low[..common], &low[common + 1..], &high[common + 1..]);
    let (first_low, first_high) = (low.as_bytes()[common], high.as_bytes()[common]);
    let between = digit(first_low + 1, first_high - 1);
    let rest = rest_low.len();
    Ast::concat([
        Ast::literal(prefix),
        Ast::alternation([
            Ast::concat([Ast::literal(&low[common..=common]), greater(rest_low)]),
            Ast::concat([between, digits(rest, Some(rest))]),
            Ast::concat([Ast::literal(&high[common..=common]), less(rest_high)]),
        ]),
    ])
}

/// Natural numbers without leading zeros that are strictly greater than `low` and strictly less
/// than `high`, which are such numbers too. Without `low`, from zero on.
pub(super) fn naturals(low: Option<&str>, high: Option<&str>) -> Ast {
    let longer = |min: usize, max: Option<usize>| {
        // Zero is the only number that begins with a zero.
        let zero = if min == 0 { Ast::literal("0") } else { Ast::Empty };
        let head = digit(b'1', b'9');
        let (min, max) = (min.max(1), max);
        if max.is_some_and(|max| max < min) {
            return zero;
        }
        let tail = digits(min - 1, max.map(|max| max - 1));
        Ast::alternation([zero, Ast::concat([head, tail])])
    };
    // A number of n digits that is not below 10..0 is any with that many.
    let nines = |text: &str| text.bytes().all(|byte| byte == b'9');
    let ones = |text: &str| text.starts_with('1') && text.bytes().skip(1).all(|byte| byte == b'0');
    match (low, high) {
        (None, None) => longer(0, None),
        (Some(low), None) if nines(low) => longer(low.len() + 1, None),
        (Some(low), None) => Ast::alternation([greater(low), longer(low.len() + 1, None)]),
        (None, Some("0")) => Ast::Empty,
        (None, Some(high)) if ones(high) => longer(0, Some(high.len() - 1)),
        (None, Some(high)) => Ast::alternation([
            if high.len() > 1 { longer(0, Some(high.len() - 1)) } else { Ast::Empty },
            canonical(less(high), high.len()),
        ]),
        (Some(low), Some(high)) if low.len() > high.len() => Ast::Empty,
        (Some(low), Some(high)) if low.len() == high.len() => strictly_between(low, high),
        (Some(low), Some(high)) => {
            let above = if nines(low) { Ast::Empty } else { greater(low) };
            let middle = if high.len() > low.len() + 1 {
                longer(low.len() + 1, Some(high.len() - 1))
            } else {
                Ast::Empty
            };
            Ast::alternation([above, middle, canonical(less(high), high.len())])
        }
    }
}

/// Numbers of `length` digits, more than one, without those that begin with a zero.
fn canonical(less: Ast, length: usize) -> Ast {
    if length == 1 {
        return less;
    }
    let without_zero = |ast: &Ast| match ast {
        // Only the first digit's own alternative can begin with a zero.
        Ast::Concat(parts) => match parts.first() {
            Some(Ast::Class(class)) if class.contains('0') => {
                let class = class.intersect(&CharClass::new([(0x31, 0x39)]));
                let first = std::iter::once(Ast::class(class));
                Ast::concat(first.chain(parts.iter().skip(1).cloned()))
            }
            _ => ast.clone(),
        },
        other => other.clone(),
    };
    match &less {
        Ast::Alternation(parts) => Ast::alternation(parts.iter().map(without_zero)),
        other => without_zero(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffwd_regular::regex::oracle::matches;

    #[test]
    fn naturals_are_exactly_those_between() {
        let bounds = [
            "0", "1", "5", "9", "10", "11", "42", "99", "100", "101", "199", "310", "999", "1000",
            "1001",
        ];
        let options = || std::iter::once(None).chain(bounds.iter().map(Some));
        for low in options() {
            for high in options() {
                let ast = naturals(low.copied(), high.copied());
                let value = |bound: Option<&&str>| bound.map(|text| text.parse::<u32>().unwrap());
                for number in 0..1205 {
                    let expected = value(low).is_none_or(|low| number > low)
                        && value(high).is_none_or(|high| number < high);
                    assert_eq!(
                        matches(&ast, &number.to_string()),
                        expected,
                        "{low:?} {number} {high:?}"
                    );
                }
                assert!(
                    !matches(&ast, "00")
                        && !matches(&ast, "01")
                        && !matches(&ast, "007")
                        && !matches(&ast, "")
                );
            }
        }
    }
}
