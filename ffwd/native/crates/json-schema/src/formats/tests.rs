use super::*;
use ffwd_regular::regex::oracle::{matches, size};

/// A format, texts of it, texts that are not. The verdicts are those of jsonschema-rs.
pub(super) type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

fn cases() -> impl Iterator<Item = &'static Case> {
    let rooms = [international::CASES, network::CASES, pattern::CASES, reference::CASES];
    rooms.into_iter().chain([text::CASES, time::CASES]).flatten()
}

#[test]
fn every_format_has_cases_and_an_example() {
    for Format { name, example, language, .. } in FORMATS {
        assert!(matches(&language(), example), "{name}");
        let case = cases().find(|(of, ..)| of == name);
        assert!(
            case.is_some_and(|(_, valid, invalid)| valid.len() > 1 && invalid.len() > 1),
            "{name}"
        );
    }
    let names = FORMATS.iter().map(|format| format.name);
    assert!(names.is_sorted_by(|one, next| one < next));
}

#[test]
fn formats_are_decided_as_the_reference_does() {
    for (name, valid, invalid) in cases() {
        let ast = format(name).unwrap();
        for text in *valid {
            assert!(matches(&ast, text), "{text:?} is a {name}");
        }
        for text in *invalid {
            assert!(!matches(&ast, text), "{text:?} is no {name}");
        }
    }
}

#[test]
fn formats_are_decided_by_derivatives_as_well() {
    for (name, valid, invalid) in cases() {
        let ast = format(name).unwrap();
        for text in valid.iter().chain(*invalid) {
            assert_eq!(ast.matches(text), Ok(matches(&ast, text)), "{text:?} {name}");
        }
    }
}

#[test]
fn lengths_of_names_are_limited() {
    let host = format("hostname").unwrap();
    let label = "a".repeat(63);
    assert!(matches(&host, &label) && !matches(&host, &format!("{label}a")));
    let name = format!("{label}.{label}.{label}.{}", &label[..61]);
    assert_eq!(name.len(), 253);
    assert!(matches(&host, &name) && !matches(&host, &format!("{name}a")));
    let email = format("email").unwrap();
    assert!(matches(&email, &format!("a@{name}")) && !matches(&email, &format!("a@{name}a")));
}

#[test]
fn leap_seconds_are_exactly_those_before_midnight_utc() {
    let ast = format("time").unwrap();
    for minute in (0..1440).step_by(7).chain([59, 60, 1439]) {
        for near in [0, 1, 2, -1, 10, 60, 600, 720] {
            for (sign, base) in [("+", minute), ("-", 1438 - minute)] {
                let offset = (base + near + 1440) % 1440;
                let utc = if sign == "+" { minute - offset } else { minute + offset };
                let text = format!(
                    "{:02}:{:02}:60{sign}{:02}:{:02}",
                    minute / 60,
                    minute % 60,
                    offset / 60,
                    offset % 60
                );
                assert_eq!(matches(&ast, &text), (utc + 1440i32) % 1440 == 1439, "{text}");
                assert!(!matches(&ast, &text.replace(":60", ":60.")), "{text}");
            }
        }
    }
}

#[test]
fn every_day_of_every_kind_of_year() {
    let ast = format("date").unwrap();
    for year in [0, 4, 100, 400, 1900, 2000, 2023, 2024, 9999] {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for month in 0..14usize {
            let days =
                [0, 31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0]
                    [month];
            for day in 0..33 {
                let text = format!("{year:04}-{month:02}-{day:02}");
                assert_eq!(matches(&ast, &text), (1..=days).contains(&day), "{text}");
            }
        }
    }
}

#[test]
fn trees_are_small() {
    for Format { name, .. } in FORMATS {
        let ast = format(name).unwrap();
        assert!(size(&ast) < 8000, "{name}: {}", size(&ast));
    }
    assert!(format("phone").is_none());
}

#[test]
fn what_is_possible_is_more_than_what_is_known() {
    for (name, texts, others) in cases() {
        let entry = entry(name).unwrap();
        let (known, Some(possible)) = ((entry.language)(), entry.possible) else { continue };
        let (possible, format) = (possible(), format(name).unwrap());
        let other = Ast::complement(format.clone());
        for text in texts.iter().chain(*others) {
            let is_known = matches(&known, text);
            assert!(matches(&possible, text) || !is_known, "{name} {text}");
            assert_eq!(matches(&format, text), is_known, "{name} {text}");
            assert_eq!(matches(&other, text), !matches(&possible, text), "{name} {text}");
            let decided = is_known || !matches(&possible, text);
            assert_eq!(matches(&format.decided(), text), decided, "{name} {text}");
            assert_eq!(matches(&other.decided(), text), decided, "{name} {text}");
            assert_eq!(matches(&Ast::complement(other.clone()), text), is_known, "{name} {text}");
        }
    }
    let punycode = Ast::literal("xn--4gbwdl");
    let both = Ast::intersection([Ast::any_text(), format("hostname").unwrap(), punycode]);
    let neither = Ast::complement(both.clone());
    for language in [both, neither] {
        assert!(!matches(&language, "xn--4gbwdl"));
        assert!(!matches(&language.decided(), "xn--4gbwdl") && matches(&language.decided(), "a"));
    }
}
