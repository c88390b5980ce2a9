use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use ffwd_regular::expr::{Lexeme, LexemeSpec, Spelling};
use ffwd_regular::regex::oracle::{matches, size};

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

fn bound(text: &str) -> Option<Bound> {
    let (text, exclusive) = match text.strip_suffix('!') {
        Some(text) => (text, true),
        None => (text, false),
    };
    (!text.is_empty()).then(|| Bound { value: decimal(text), exclusive })
}

/// `""` is no bound, `"3!"` an exclusive one.
fn between(minimum: &str, maximum: &str) -> NumberConstraint {
    NumberConstraint { minimum: bound(minimum), maximum: bound(maximum), ..Default::default() }
}

fn integers(constraint: NumberConstraint) -> NumberConstraint {
    NumberConstraint { kinds: NumberKinds::INTEGERS, ..constraint }
}

/// Whether the documented completeness covers this form of a number.
fn is_plain(text: &str) -> bool {
    !text.contains(['e', 'E'])
}

fn is_normalised(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let integer = mantissa.split('.').next().unwrap_or(mantissa);
    integer.len() == 1 && integer != "0"
}

/// The decision by value: what the language must never exceed.
fn may_accept(constraint: &NumberConstraint, text: &str) -> bool {
    let Ok(value) = Decimal::parse(text) else { return false };
    let fraction = text.contains(['.', 'e', 'E']);
    let integer = if fraction { NumberKinds::MARKED_INTEGERS } else { NumberKinds::DIGITS };
    let kind = if value.is_integer() { integer } else { NumberKinds::FRACTIONS };
    constraint.kinds.overlaps(kind) && constraint.allows(&value)
}

/// What the language must have at least.
fn must_accept(constraint: &NumberConstraint, text: &str) -> bool {
    if !may_accept(constraint, text) {
        return false;
    }
    if is_plain(text) {
        true
    } else if is_stepped(constraint) {
        false
    } else if constraint.kinds == NumberKinds::INTEGERS {
        let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
        let whole = decimal(mantissa).is_integer() && !text.contains("e-") && !text.contains("E-");
        is_normalised(text) && whole
    } else {
        is_normalised(text) || decimal(text).is_zero()
    }
}

fn check(constraint: &NumberConstraint, ast: &Ast, text: &str) -> Result<(), TestCaseError> {
    let accepted = matches(ast, text);
    prop_assert!(!accepted || may_accept(constraint, text), "{constraint:?} accepts {text}");
    prop_assert!(accepted || !must_accept(constraint, text), "{constraint:?} rejects {text}");
    Ok(())
}

const TEXTS: &[&str] = &[
    "0", "-0", "0.0", "-0.00", "0e5", "0E-3", "-0.0e+0", "1", "-1", "1.0", "1.00", "10", "-10",
    "100", "99", "101", "0.5", "-0.5", "0.50", "0.05", "1.5", "-1.5", "2", "9", "12", "1e0", "1e1",
    "1E+1", "1e-1", "1.0e2", "1e2", "1.5e1", "-1.5e1", "1e02", "1e-02", "5e-1", "-5e-1", "12e1",
    "0.1e1", "1e300", "1e-300", "1e1000", "99.9", "99.99", "100.0", "100.1", "9.99e1", "1.0001e2",
    "1e+2", "1e+3", "00", "01", "1.", ".5", "+1", "-", "", "1e", "e1", "1.5e0", "-99", "-100",
    "-101", "-1e2", "-1.01e2", "3.14", "3.140", "3.141", "314e-2", "0.314e1", "3.14e0", "3.14e00",
    "3.14e-0",
];

#[test]
fn spellings_on_a_table_of_bounds() {
    let bounds = [
        "", "0", "0!", "1", "1!", "-1", "-1!", "100", "100!", "-100", "99.9", "99.9!", "0.05",
        "0.5!", "-0.5", "3.14", "3.14!", "10", "1e2", "-1.5e1!", "1e300",
    ];
    for minimum in bounds {
        for maximum in bounds {
            for kinds in [NumberKinds::ALL, NumberKinds::INTEGERS, NumberKinds::DIGITS] {
                {
                    let constraint = NumberConstraint { kinds, ..between(minimum, maximum) };
                    let ast = spellings(&constraint).unwrap();
                    assert_eq!(ast, build(&constraint).unwrap());
                    for text in TEXTS {
                        if kinds == NumberKinds::DIGITS && !is_plain(text) {
                            assert!(!matches(&ast, text), "{constraint:?} {text}");
                        } else {
                            check(&constraint, &ast, text).unwrap();
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn spellings_agree_with_values_near_random_bounds() {
    let number = || {
        (
            "-?",
            "(0|[1-9][0-9]{0,3})",
            "(\\.[0-9]{1,4})?",
            prop_oneof![4 => Just(String::new()), 1 => "[eE]-?[0-4]"],
        )
            .prop_map(|(sign, integer, fraction, exponent)| {
                format!("{sign}{integer}{fraction}{exponent}")
            })
    };
    let limit = || {
        prop_oneof![1 => Just(None), 5 => (number(), any::<bool>()).prop_map(|(text, exclusive)| {
            Some(Bound { value: decimal(&text), exclusive })
        })]
    };
    // A spelling of a bound, or of a value a digit away from it.
    let edit = || (any::<prop::sample::Index>(), "[0-9]", 0..6u8, -3..4i32, "[eE]\\+?0?");
    let strategy = (
        limit(),
        limit(),
        any::<bool>(),
        prop::collection::vec((any::<bool>(), edit()), 24),
        prop::collection::vec(number(), 8),
    );
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
    let config = Config { cases: 600, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, rng)
        .run(&strategy, |(minimum, maximum, integer, edits, others)| {
            let constraint = NumberConstraint {
                kinds: if integer { NumberKinds::INTEGERS } else { NumberKinds::ALL },
                minimum,
                maximum,
                ..NumberConstraint::default()
            };
            let ast = spellings(&constraint).unwrap();
            for text in others {
                check(&constraint, &ast, &text)?;
            }
            for (low, (index, digit, kind, shift, mark)) in edits {
                let bound = if low { &constraint.minimum } else { &constraint.maximum };
                let Some(bound) = bound else { continue };
                let mut text = bound.value.to_string();
                let scientific = format!("{}{}", bound.value.mantissa(), mark);
                let exponent = bound.value.leading_exponent() + i64::from(shift);
                let places: Vec<usize> = text
                    .char_indices()
                    .filter(|(_, c)| c.is_ascii_digit())
                    .map(|(i, _)| i)
                    .collect();
                match kind {
                    0 => text.push_str(if text.contains('.') { "0" } else { ".0" }),
                    1 => text
                        .push_str(&format!("{}{digit}", if text.contains('.') { "" } else { "." })),
                    2 => {
                        let place = places[index.index(places.len())];
                        text.replace_range(place..=place, &digit);
                    }
                    3 if exponent >= 0 => text = format!("{scientific}{exponent}"),
                    4 => {
                        let sign = if bound.value.is_negative() { "-" } else { "" };
                        text = format!("{sign}{}e{exponent}", bound.value.mantissa());
                    }
                    _ => {}
                }
                check(&constraint, &ast, &text)?;
            }
            Ok(())
        })
        .unwrap();
}

/// The other condition of a plain constraint, beside being narrower: its texts are plain too.
fn is_plainly_written(constraint: &NumberConstraint, text: &str) -> bool {
    let kinds = constraint.kinds;
    let whole = kinds.overlaps(NumberKinds::DIGITS) && !kinds.overlaps(NumberKinds::FRACTIONS);
    let digits = !text.contains(['.', 'e', 'E']);
    (digits || !whole) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

#[test]
fn plain_spellings_are_those_of_finite_numbers() {
    let nines = "9".repeat(308);
    let long = [format!("{nines}9"), format!("-{nines}9"), nines.clone(), format!("-{nines}.5")];
    let huge = ["1e307", "1e308", "1.7976931348623157e308", "1.8e308", "1e309", "1e400", "9e4845"];
    let signed = huge.iter().flat_map(|text| [text.to_string(), format!("-{text}")]);
    let texts: Vec<String> =
        TEXTS.iter().map(|text| text.to_string()).chain(long).chain(signed).collect();
    let bounds = ["", "0", "0!", "1", "-1!", "99.9", "-100", "1e300", "-1e300", "1e308"];
    let kinds = [
        NumberKinds::ALL,
        NumberKinds::INTEGERS,
        NumberKinds::DIGITS,
        NumberKinds::FRACTIONS,
        NumberKinds::MARKED_INTEGERS,
    ];
    let steps = [None, Some("0.5"), Some("3")];
    let mut kept = 0;
    for (minimum, maximum) in bounds.iter().flat_map(|low| bounds.map(|high| (*low, high))) {
        for (kinds, step) in kinds.iter().flat_map(|kinds| steps.map(|step| (*kinds, step))) {
            let multiple_of = step.map(decimal);
            let all = NumberConstraint { kinds, multiple_of, ..between(minimum, maximum) };
            let plain = NumberConstraint { plain: true, ..all.clone() };
            let few = |bound: &str| ["", "1", "-100"].contains(&bound);
            if is_stepped(&plain) && !(few(minimum) && few(maximum)) {
                continue;
            }
            let (all_texts, ast) = (spellings(&all).unwrap(), spellings(&plain).unwrap());
            for text in &texts {
                let accepted = matches(&ast, text);
                let may = matches(&all_texts, text) && is_plainly_written(&all, text);
                assert!(!accepted || may, "{plain:?} accepts {text}");
                let must = is_plain(text) || (is_normalised(text) && !is_stepped(&plain));
                assert!(accepted || !(may && must), "{plain:?} rejects {text}");
                kept += usize::from(accepted);
            }
        }
    }
    assert!(kept > 2_000, "{kept}");
}

#[test]
fn bounds_beyond_the_doubles_ask_for_more() {
    let plain = |minimum: &str, maximum: &str| {
        let constraint = NumberConstraint { plain: true, ..between(minimum, maximum) };
        spellings(&constraint).unwrap()
    };
    for (minimum, maximum, text, accepted) in [
        ("1e400", "", "1e401", true),
        ("", "-1e400", "-1e400", true),
        ("", "1e400", "1e400", true),
        ("", "1e400", "-1e309", false),
        ("1.7976931348623157e308", "", "1.79769313486231575e308", true),
        ("1", "", "1e309", false),
    ] {
        assert_eq!(matches(&plain(minimum, maximum), text), accepted, "{minimum} {maximum} {text}");
    }
    let list = |values: &[&str]| NumberConstraint {
        one_of: Some(values.iter().map(|text| decimal(text)).collect()),
        plain: true,
        ..NumberConstraint::default()
    };
    let ast = spellings(&list(&["1e400", "7"])).unwrap();
    for (text, accepted) in [("7", true), ("7.0", false), ("7e0", false)] {
        assert_eq!(matches(&ast, text), accepted, "{text}");
    }
    assert!(matches(&ast, &format!("1{}", "0".repeat(400))));
    let ast = spellings(&list(&["1", "2.5"])).unwrap();
    assert!(["1", "1.0", "1e0", "2.5"].iter().all(|text| matches(&ast, text)));
    let step =
        NumberConstraint { multiple_of: Some(decimal("1e400")), plain: true, ..between("", "") };
    assert!(matches(&spellings(&step).unwrap(), &format!("2{}", "0".repeat(400))));
    assert!(size(&spellings(&NumberConstraint { plain: true, ..between("", "") }).unwrap()) < 8);
}

#[test]
fn without_bounds_the_whole_grammar_is_there() {
    let ast = spellings(&NumberConstraint::default()).unwrap();
    assert_eq!(ast, unconstrained());
    for text in TEXTS {
        assert_eq!(
            matches(&without_exponent(), text),
            matches(&ast, text) && is_plain(text),
            "{text}"
        );
        assert_eq!(matches(&ast, text), Decimal::parse(text).is_ok(), "{text}");
    }
    let ast = spellings(&integers(NumberConstraint::default())).unwrap();
    for text in ["12e3", "-12.00E+07", "0", "-0.0", "1.0", "0e0"] {
        assert!(matches(&ast, text), "{text}");
    }
    assert!(size(&ast) < 24);
    for constraint in
        [between("0", ""), integers(between("0", "")), integers(between("1", "65535"))]
    {
        assert!(size(&spellings(&constraint).unwrap()) < 90, "{constraint:?}");
    }
}

#[test]
fn a_sign_alone_keeps_every_exponent() {
    let positive = spellings(&between("0", "")).unwrap();
    for text in ["12e3", "0.5e-7", "-0", "-0.0e9", "123.45e300"] {
        assert!(matches(&positive, text), "{text}");
    }
    assert!(!matches(&positive, "-1") && !matches(&positive, "-0.1e-5"));
    let negative = spellings(&integers(between("", "0!"))).unwrap();
    assert!(matches(&negative, "-12e3") && !matches(&negative, "0") && !matches(&negative, "-0e1"));
}

#[test]
fn nothing_satisfies_contradictions() {
    for constraint in [
        between("1", "0"),
        between("1!", "1"),
        between("0!", "0"),
        integers(between("0.1", "0.9")),
        integers(between("1!", "2!")),
        NumberConstraint { one_of: Some(vec![decimal("5")]), ..between("", "4") },
        integers(NumberConstraint { one_of: Some(vec![decimal("0.5")]), ..Default::default() }),
    ] {
        assert_eq!(spellings(&constraint).unwrap(), Ast::Empty, "{constraint:?}");
    }
}

#[test]
fn listed_values_in_their_spellings() {
    let values = ["1", "2.50", "-300", "0", "1e-3"].map(decimal).to_vec();
    let constraint = NumberConstraint { one_of: Some(values), ..Default::default() };
    let ast = spellings(&constraint).unwrap();
    for text in [
        "1", "1.0", "1e0", "2.5", "2.500", "2.5e0", "-300", "-300.00", "-3e2", "-3.0E+02", "0",
        "-0.0", "0e7", "0.001", "1e-3",
    ] {
        assert!(matches(&ast, text), "{text}");
    }
    for text in TEXTS {
        check(&constraint, &ast, text).unwrap();
    }
    let plain = NumberConstraint {
        kinds: NumberKinds::DIGITS,
        one_of: Some(vec![decimal("10"), decimal("1.5")]),
        ..Default::default()
    };
    assert_eq!(spellings(&plain).unwrap(), Ast::literal("10"));
    let long = vec![decimal("1e1000"); 1];
    let many: Vec<Decimal> = (0..5000).map(|i| decimal(&format!("1{i}e1000"))).collect();
    assert!(spellings(&NumberConstraint { one_of: Some(long), ..Default::default() }).is_ok());
    assert_eq!(
        spellings(&NumberConstraint { one_of: Some(many), ..Default::default() }),
        Err(LimitExceeded { limit: "number_list_characters", maximum: MAX_LISTED as u64 })
    );
}

#[test]
fn extreme_bounds_stay_small() {
    for (minimum, maximum) in [
        ("-1.7976931348623157e308", "1.7976931348623157e308"),
        ("5e-324", "1e308"),
        ("-9223372036854775808", "9223372036854775807"),
    ] {
        for constraint in [between(minimum, maximum), integers(between(minimum, maximum))] {
            let ast = spellings(&constraint).unwrap();
            assert!(size(&ast) < 6000, "{}", size(&ast));
            for text in TEXTS {
                check(&constraint, &ast, text).unwrap();
            }
            check(&constraint, &ast, minimum).unwrap();
            check(&constraint, &ast, maximum).unwrap();
        }
    }
}

#[test]
fn steps_and_exclusions_are_exact() {
    let decimals = |texts: &[&str]| texts.iter().map(|text| decimal(text)).collect::<Vec<_>>();
    let all = NumberKinds::ALL;
    let (integers, digits) = (NumberKinds::INTEGERS, NumberKinds::DIGITS);
    let mut constraints = Vec::new();
    for (step, excluded_steps, none_of) in [
        (Some("7"), &[][..], &[][..]),
        (Some("0.01"), &[], &[]),
        (Some("0.5"), &["3"], &[]),
        (Some("1.5"), &[], &["3", "0"]),
        (Some("20"), &[], &[]),
        (Some("3"), &["6", "9"], &["15"]),
        (None, &["2", "0.5"], &[]),
        (None, &["0.3"], &["1.5", "10", "-2.5"]),
        (None, &[], &["0", "1", "10", "-3", "99.9", "150"]),
        (None, &[], &[]),
    ] {
        for kinds in [
            all,
            integers,
            digits,
            digits.complement(),
            NumberKinds::FRACTIONS,
            NumberKinds::MARKED_INTEGERS,
            NumberKinds::MARKED_INTEGERS.complement(),
        ] {
            for (low, high) in [
                ("", ""),
                ("0", ""),
                ("0!", ""),
                ("", "-1!"),
                ("3", "99.9"),
                ("-2.5!", "2.5!"),
                ("0.05", "150"),
                ("-100", "-14"),
                ("8", "13"),
                ("99.9!", "100!"),
            ] {
                constraints.push(NumberConstraint {
                    kinds,
                    multiple_of: step.map(decimal),
                    not_multiple_of: decimals(excluded_steps),
                    none_of: decimals(none_of),
                    ..between(low, high)
                });
            }
        }
    }
    let mut texts: Vec<String> = TEXTS.iter().map(|text| text.to_string()).collect();
    for tenths in 0..=160 {
        texts.push(tenths.to_string());
        texts.push(format!("-{tenths}"));
        texts.push(format!("{}.{}", tenths / 10, tenths % 10));
        texts.push(format!("-{}.{}0", tenths / 10, tenths % 10));
        texts.push(format!("{}.{}5", tenths % 10, tenths / 10));
        texts.push(format!("{tenths}e1"));
        texts.push(format!("{}.{}e-1", tenths / 10, tenths % 10));
        texts.push(format!("{}e+0", tenths % 10));
    }
    for constraint in &constraints {
        let ast = spellings(constraint).unwrap();
        for text in &texts {
            check(constraint, &ast, text).unwrap();
        }
    }
}

#[test]
fn multiples_with_exponents() {
    let step =
        |text: &str| NumberConstraint { multiple_of: Some(decimal(text)), ..between("", "") };
    for (step, accepted, refused) in [
        (step("0.5"), &["1e308", "2.5e1", "-0.5e+2", "0", "0e-7"][..], &["1e-1", "0.25"][..]),
        (step("0.01"), &["0.070", "99.99", "1e3"], &["0.001", "99.999"]),
        (step("1e-8"), &["12391239123", "0.00000001", "1e300"], &["0.000000001"]),
        (step("0.123456789"), &["0", "0.123456789", "12345678.9"], &["1e308", "1"]),
        (step("1e300"), &["0", &format!("3{}", "0".repeat(300))], &["1", "10"]),
        (integers(step("3")), &["3e5", "12", "12.0"], &["1.2", "1.2e0", "13"]),
    ] {
        let ast = spellings(&step).unwrap();
        for text in accepted {
            assert!(matches(&ast, text), "{step:?} {text}");
        }
        for text in refused {
            assert!(!matches(&ast, text), "{step:?} {text}");
        }
    }
    let many = (2..20u64).map(Decimal::from).collect();
    let many = NumberConstraint { not_multiple_of: many, ..between("", "") };
    assert_eq!(spellings(&many).unwrap_err().limit, "excluded_steps");
    let long = |text: &str| format!("{}{text}", "7".repeat(900));
    let sum = integers(step(&long("e-899")));
    assert!(spellings(&sum).err().is_none_or(|error| error.limit == "number_digits"));
}

#[test]
fn multiples_are_lexemes() {
    let constraint = NumberConstraint {
        multiple_of: Some(decimal("0.7")),
        none_of: vec![decimal("1.4")],
        ..NumberConstraint::default()
    };
    let language = spellings(&constraint).unwrap();
    let lexeme = Lexeme::new(LexemeSpec::new(Spelling::Utf8, [language.clone()])).unwrap();
    let accepts = |text: &str| {
        let next = |state, byte| lexeme.next(state, byte).unwrap();
        let end = text.bytes().try_fold(lexeme.start(), next);
        end.is_some_and(|end| lexeme.accept(end) == 1)
    };
    for tenths in 0..300 {
        for text in [
            format!("{}.{}", tenths / 10, tenths % 10),
            format!("-{}.{}0", tenths / 10, tenths % 10),
            format!("{tenths}e1"),
        ] {
            let expected = matches(&language, &text);
            assert_eq!(accepts(&text), expected, "{text}");
            assert_eq!(language.matches(&text), Ok(expected));
        }
    }
    assert!(accepts("0.7") && !accepts("1.4"));
}
