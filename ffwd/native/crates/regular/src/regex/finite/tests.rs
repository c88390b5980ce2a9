use proptest::prelude::RngExt;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::super::DecimalError;
use super::*;

const BYTES: &[u8] = b"0123456789.eE+-x";

fn read(kind: FiniteKind, text: &str) -> Option<Finite> {
    text.bytes().try_fold(Finite::new(kind), |state, byte| state.derive(byte))
}

fn accepts(kind: FiniteKind, text: &str) -> bool {
    read(kind, text).is_some_and(|state| state.accepts())
}

/// Whether a text is what the module says, by its value.
fn belongs(kind: FiniteKind, text: &str) -> bool {
    // As `f64` reads them, texts of any length and exponent are rounded correctly.
    let finite = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
    let below = |text: &str| finite(text) && Decimal::parse(text).is_ok_and(|v| v < limit());
    let is_zero = |text: &str| text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let is_number = Decimal::parse(text) != Err(DecimalError::NotANumber);
    if text.starts_with('-') || !is_number {
        return false;
    }
    let marked = text.contains(['.', 'e', 'E']);
    // Exponents that no decimal has make less of a mantissa that is below the limit.
    let less = text.contains("e-") || text.contains("E-");
    (is_zero(mantissa) || (below(mantissa) && (less || below(text))))
        && !(kind.digits_only && marked)
        && !(kind.positive && is_zero(mantissa))
}

const KINDS: [FiniteKind; 4] = [
    FiniteKind { digits_only: false, positive: false },
    FiniteKind { digits_only: false, positive: true },
    FiniteKind { digits_only: true, positive: false },
    FiniteKind { digits_only: true, positive: true },
];

/// Digits that are often those of the limit, a point somewhere, and an exponent that is often the
/// last one or the first one that is too large.
fn near_the_limit(rng: &mut TestRng) -> String {
    let mut digits = String::from_utf8_lossy(LIMIT_DIGITS).into_owned();
    digits.truncate(rng.random_range(1..=LIMIT_DIGITS.len()));
    for _ in 0..rng.random_range(0..4) {
        digits.push((b'0' + rng.random_range(0..10u8)) as char);
    }
    if rng.random_bool(0.3) {
        let at = rng.random_range(0..digits.len());
        let digit = (b'0' + rng.random_range(0..10u8)) as char;
        digits.replace_range(at..=at, &digit.to_string());
    }
    let zeros = if rng.random_bool(0.3) { rng.random_range(0..400) } else { 0 };
    let (mut text, leading) = match rng.random_range(0..3) {
        0 => (format!("0.{}{digits}", "0".repeat(zeros)), -1 - zeros as i64),
        1 => (format!("{digits}{}", "0".repeat(zeros)), (digits.len() + zeros) as i64 - 1),
        _ => {
            let at = rng.random_range(1..=digits.len());
            let fraction = match &digits[at..] {
                "" => String::new(),
                fraction => format!(".{fraction}"),
            };
            (format!("{}{fraction}", &digits[..at]), at as i64 - 1)
        }
    };
    let exponent = 308 - leading + rng.random_range(-2..3);
    match rng.random_range(0..4) {
        0 => {}
        1 => text.push_str(&format!("e-{}", rng.random_range(0..5000))),
        2 => text.push_str(&format!("E+00{}", exponent.abs())),
        _ => text.push_str(&format!("e{}", exponent.max(0))),
    }
    text
}

#[test]
fn texts_near_the_limit_belong_by_their_value() {
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut taken = 0;
    for _ in 0..20_000 {
        let text = near_the_limit(&mut rng);
        for kind in KINDS {
            let accepted = accepts(kind, &text);
            assert_eq!(accepted, belongs(kind, &text), "{kind:?} {text}");
            taken += usize::from(accepted);
        }
    }
    assert!((10_000..70_000).contains(&taken), "{taken}");
}

/// Every short text over the alphabet, and every prefix that is kept can be completed.
#[test]
fn short_texts_belong_by_their_value() {
    for kind in KINDS {
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            let longer = texts
                .iter()
                .flat_map(|text| BYTES.iter().map(move |&byte| format!("{text}{}", byte as char)));
            texts = longer
                .filter(|text| {
                    assert_eq!(accepts(kind, text), belongs(kind, text), "{kind:?} {text}");
                    read(kind, text).is_some()
                })
                .collect();
        }
        assert!(texts.iter().all(|text| is_completed(kind, text)), "{kind:?}");
    }
}

fn is_completed(kind: FiniteKind, text: &str) -> bool {
    let endings = ["", "0", "1", ".1"];
    endings.iter().any(|ending| belongs(kind, &format!("{text}{ending}")))
}

#[test]
fn walks_never_end_and_stay_finite() {
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[8; 32]);
    for round in 0..400 {
        let kind = KINDS[round % KINDS.len()];
        let mut state = Finite::new(kind);
        let mut text = String::new();
        // Long runs of digits, with a mark now and then.
        for _ in 0..rng.random_range(1..420) {
            let digit = rng.random_bool(0.99);
            let bytes = if digit { &BYTES[..10] } else { BYTES };
            let byte = bytes[rng.random_range(0..bytes.len())];
            if let Some(next) = state.derive(byte) {
                state = next;
                text.push(byte as char);
                assert!(is_completed(kind, &text), "{kind:?} {text}");
            }
        }
        if state.accepts() {
            assert!(text.parse::<f64>().is_ok_and(f64::is_finite), "{text}");
        }
        let over = BYTES.iter().all(|&byte| state.derive(byte).is_none());
        assert_eq!(state.is_over(), over);
    }
}

#[test]
fn the_limit_is_the_first_number_of_its_length_above_the_doubles() {
    assert_eq!(f64::MAX.to_string().parse::<Decimal>().map(|max| max < limit()), Ok(true));
    assert_eq!(greatest(), Decimal::parse("1.7976931348623157e308").unwrap());
    assert_eq!(limit(), Decimal::parse("1.7976931348623158e308").unwrap());
    let kind = KINDS[0];
    for (text, is_one) in [
        ("40801796E04845", false),
        ("40801796E0301", false),
        ("40801796E0300", true),
        ("1.7976931348623157e308", true),
        ("1.7976931348623158e308", false),
        ("17.976931348623157e+0307", true),
        ("0e99999999999999", true),
        ("0.0e-99999999999999", true),
        ("5e-99999999999999", true),
        ("0.001e311", true),
        ("0.001e312", false),
    ] {
        assert_eq!(accepts(kind, text), is_one, "{text}");
    }
    let digits = |count: usize| "1".repeat(count);
    assert!(accepts(KINDS[2], &digits(309)) && !accepts(KINDS[2], &digits(310)));
    assert!(read(kind, &digits(310)).is_none());
}
