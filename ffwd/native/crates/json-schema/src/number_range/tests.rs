use super::*;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

fn end(text: &str, exclusive: bool) -> Option<Bound> {
    Some(Bound { value: decimal(text), exclusive })
}

fn between(minimum: &str, maximum: &str) -> NumberRange {
    let end = |text: &str| match text.strip_suffix('!') {
        Some(text) => end(text, true),
        None if text.is_empty() => None,
        None => end(text, false),
    };
    NumberRange { minimum: end(minimum), maximum: end(maximum), ..NumberRange::default() }
}

fn decimals(texts: &[&str]) -> Vec<Decimal> {
    texts.iter().map(|text| decimal(text)).collect()
}

#[test]
fn ranges_intersect() {
    let low = between("1", "");
    let low_open = between("1.0!", "");
    let high = between("", "1");
    let both = low.intersect(&high).unwrap();
    assert_eq!(both, NumberRange::values(decimals(&["1"])));
    assert_eq!(low_open.intersect(&high), None);
    assert_eq!(low.intersect(&low_open).unwrap().minimum, end("1", true));
    let values = NumberRange::values(decimals(&["3", "1.0", "2.5", "1"]));
    assert_eq!(values.one_of.as_ref().unwrap().len(), 3);
    let integers = NumberRange { kinds: NumberKinds::INTEGERS, ..low_open };
    let left = values.intersect(&integers).unwrap();
    assert_eq!(left.one_of.unwrap().as_ref(), [decimal("3")]);
    assert_eq!(values.intersect(&NumberRange::values(vec![Decimal::zero()])), None);
}

/// Ranges of every sort.
fn samples() -> Vec<NumberRange> {
    let step = |multiple_of: &[&str], not_multiple_of: &[&str]| NumberRange {
        multiple_of: decimals(multiple_of),
        not_multiple_of: decimals(not_multiple_of),
        ..NumberRange::default()
    };
    let mut samples: Vec<NumberRange> = vec![
        NumberRange::default(),
        between("0", ""),
        between("-2!", "3"),
        between("0.5", "2.5!"),
        between("4", "4"),
        NumberRange::of_kinds(NumberKinds::INTEGERS),
        NumberRange::of_kinds(NumberKinds::FRACTIONS),
        NumberRange::of_kinds(NumberKinds::DIGITS),
        NumberRange::of_kinds(NumberKinds::DIGITS.complement()),
        step(&["2"], &[]),
        step(&["0.5"], &[]),
        step(&["3"], &["2"]),
        step(&["1.5", "0.4"], &[]),
        step(&[], &["0.5", "3"]),
        NumberRange::values(decimals(&["0", "1", "2.5"])),
        NumberRange { none_of: decimals(&["0", "2.5"]), ..NumberRange::default() },
    ];
    samples = samples.into_iter().filter_map(NumberRange::settle).collect();
    samples
}

fn grid() -> Vec<Decimal> {
    (-80..=80).map(|tenths: i32| decimal(&format!("{tenths}e-1"))).collect()
}

#[test]
fn negation_and_intersection_are_those_of_the_values() {
    let holds = |range: &Option<NumberRange>, value: &Decimal| {
        range.as_ref().is_some_and(|range| range.contains(value))
    };
    for range in samples() {
        let negation = range.negate();
        // In draft 4 an integer has spellings of both.
        let overlapping =
            range.kinds == NumberKinds::DIGITS || range.kinds == NumberKinds::DIGITS.complement();
        for value in grid() {
            let inside = range.contains(&value);
            let outside = negation.iter().any(|range| range.contains(&value));
            assert!(inside || outside, "{range:?} {value}");
            assert!(overlapping || !(inside && outside), "{range:?} {value}");
        }
        for part in &negation {
            assert!(overlapping || range.intersect(part).is_none_or(|r| r.is_empty().unwrap()));
        }
        for other in samples() {
            let both = range.intersect(&other);
            // Kinds of spellings may exclude each other where each has the value.
            let exclude = range.kinds.intersect(other.kinds).is_none();
            for value in grid() {
                let expected = range.contains(&value) && other.contains(&value);
                let expected = expected && !exclude;
                assert_eq!(holds(&both, &value), expected, "{range:?} {other:?} {value}");
            }
        }
    }
}

#[test]
fn emptiness_is_arithmetic() {
    let with = |range: NumberRange, steps: &[&str], not: &[&str], kinds| NumberRange {
        multiple_of: decimals(steps),
        not_multiple_of: decimals(not),
        kinds,
        ..range
    };
    let (all, integers, fractions) =
        (NumberKinds::ALL, NumberKinds::INTEGERS, NumberKinds::FRACTIONS);
    for (range, empty) in [
        (with(between("1!", "2!"), &[], &[], integers), true),
        (with(between("1!", "2!"), &[], &[], all), false),
        (with(between("1!", "2!"), &["0.5"], &[], all), false),
        (with(between("1!", "2!"), &["0.5"], &[], integers), true),
        (with(between("1!", "2!"), &["0.5"], &["1.5"], all), true),
        (with(between("8", "13"), &["7"], &[], all), true),
        (with(between("8", "14"), &["7"], &[], all), false),
        (with(between("8", "14!"), &["7"], &[], all), true),
        (with(between("-14", "-8"), &["7"], &[], all), false),
        (with(between("-14!", "-8"), &["7"], &[], all), true),
        (with(between("1", "1e300"), &["3e299"], &["2"], all), true),
        (with(between("1", "1e300"), &["3e299"], &["9e299"], all), false),
        (with(between("", ""), &["6"], &["3"], all), true),
        (with(between("0", ""), &["6"], &["12"], all), false),
        (with(between("0", ""), &["2"], &[], fractions), true),
        (with(between("2", "3"), &["0.1"], &["0.2", "0.5"], fractions), false),
        (with(between("2", "2"), &[], &[], fractions), true),
        (with(between("1", "1e9"), &["1e-8"], &[], all), false),
        (with(between("0", ""), &[], &["0.5"], integers), true),
    ] {
        let settled = range.clone().settle();
        assert_eq!(settled.is_none_or(|r| r.is_empty().unwrap()), empty, "{range:?}");
    }
}

#[test]
fn finite_ranges_are_listed() {
    let steps = NumberRange { multiple_of: decimals(&["0.5"]), ..between("-1", "1!") };
    let listed = steps.list_values(4).unwrap().unwrap();
    assert_eq!(listed, decimals(&["-1", "-0.5", "0", "0.5"]));
    assert_eq!(steps.list_values(3).unwrap(), None);
    assert_eq!(between("0", "1").list_values(100).unwrap(), None);
    let integers = NumberRange { none_of: decimals(&["2", "3"]), ..between("1", "4") };
    let integers = NumberRange { kinds: NumberKinds::DIGITS, ..integers };
    assert_eq!(integers.list_values(2).unwrap().unwrap(), decimals(&["1", "4"]));
    let many = NumberRange { none_of: (2..500u64).map(Decimal::from).collect(), ..integers };
    let many = NumberRange { maximum: end("500", false), ..many };
    assert_eq!(many.list_values(2).unwrap().unwrap(), decimals(&["1", "500"]));
    let primes = ["2", "3", "5", "7", "11", "13", "17", "19", "23"];
    let sieve = NumberRange { not_multiple_of: decimals(&primes), ..many };
    assert!(sieve.list_values(2).is_err());
    let powers = NumberRange { not_multiple_of: decimals(&["8", "2", "0.5", "4"]), ..sieve };
    assert_eq!(powers.settle(), None);
}
