//! Emptiness of languages by derivatives, for the tests: slow and simple.

use std::collections::{BTreeSet, HashSet};

use super::error::LimitExceeded;
use super::options::SchemaOptions;
use ffwd_regular::regex::Ast;

const MAX_STATES: usize = 3000;

/// Default options, with the emptiness test of this module.
pub fn options() -> SchemaOptions {
    SchemaOptions::new(|language| Ok((is_empty(language)?, 1)))
}

pub fn is_empty(language: &Ast) -> Result<bool, LimitExceeded> {
    let mut borders = BTreeSet::from([0]);
    collect_borders(language, &mut borders);
    let letters: Vec<char> = borders.into_iter().filter_map(char::from_u32).collect();
    let mut seen = HashSet::from([language.clone()]);
    let mut pending = vec![language.clone()];
    while let Some(state) = pending.pop() {
        if accepts_nothing_more(&state) {
            return Ok(false);
        }
        for &letter in &letters {
            let next = derivative(&state, letter);
            if next != Ast::Empty && seen.insert(next.clone()) {
                pending.push(next);
            }
        }
        if seen.len() > MAX_STATES {
            return Err(LimitExceeded { limit: "test_states", maximum: MAX_STATES as u64 });
        }
    }
    Ok(true)
}

/// The first character of every run of characters that the language treats alike.
fn collect_borders(language: &Ast, borders: &mut BTreeSet<u32>) {
    match language {
        Ast::Empty | Ast::Epsilon => {}
        Ast::Substring(_) => panic!("no schema has parts of a text"),
        Ast::Magnitude(_) => borders.extend((b'.'..=b'9' + 1).map(u32::from)),
        Ast::Finite(finite) => {
            let bytes = finite.alphabet().iter();
            borders.extend(bytes.flat_map(|&byte| [u32::from(byte), u32::from(byte) + 1]));
        }
        Ast::Class(class) => {
            borders.extend(class.ranges().iter().flat_map(|&(low, high)| [low, high + 1]));
        }
        Ast::Literal(text) => borders.extend(text.chars().flat_map(|c| [c as u32, c as u32 + 1])),
        Ast::Concat(parts) | Ast::Alternation(parts) | Ast::Intersection(parts) => {
            parts.iter().for_each(|part| collect_borders(part, borders));
        }
        Ast::Repeat { inner, .. }
        | Ast::Complement(inner)
        | Ast::Before(inner)
        | Ast::After(inner)
        | Ast::Approximate { known: inner, .. } => collect_borders(inner, borders),
    }
}

/// Whether the empty string belongs to the language.
fn accepts_nothing_more(language: &Ast) -> bool {
    match language {
        Ast::Empty | Ast::Class(_) | Ast::Literal(_) => false,
        Ast::Epsilon => true,
        Ast::Magnitude(magnitude) => magnitude.accepts(),
        Ast::Finite(finite) => finite.accepts(),
        Ast::Concat(parts) | Ast::Intersection(parts) => parts.iter().all(accepts_nothing_more),
        Ast::Alternation(parts) => parts.iter().any(accepts_nothing_more),
        Ast::Repeat { inner, min, .. } => *min == 0 || accepts_nothing_more(inner),
        Ast::Complement(inner) => !accepts_nothing_more(inner),
        Ast::Approximate { known, .. } => accepts_nothing_more(known),
        Ast::Before(_) | Ast::After(_) | Ast::Substring(_) => {
            panic!("no schema of the test has it")
        }
    }
}

/// A union in canonical form, so that there are finitely many derivatives.
fn union(parts: impl IntoIterator<Item = Ast>) -> Ast {
    match Ast::alternation(parts) {
        Ast::Alternation(parts) => {
            let parts: BTreeSet<Ast> = parts.iter().cloned().collect();
            Ast::alternation(parts)
        }
        other => other,
    }
}

fn derivative(language: &Ast, letter: char) -> Ast {
    match language {
        Ast::Empty | Ast::Epsilon => Ast::Empty,
        Ast::Class(class) if class.contains(letter) => Ast::Epsilon,
        Ast::Class(_) => Ast::Empty,
        Ast::Magnitude(magnitude) => {
            let next = u8::try_from(letter).ok().and_then(|byte| magnitude.derive(byte));
            next.map_or(Ast::Empty, |next| Ast::Magnitude(next.into()))
        }
        Ast::Finite(finite) => {
            let next = u8::try_from(letter).ok().and_then(|byte| finite.derive(byte));
            next.map_or(Ast::Empty, Ast::Finite)
        }
        Ast::Literal(text) => {
            let mut rest = text.chars();
            if rest.next() == Some(letter) {
                Ast::literal(rest.as_str())
            } else {
                Ast::Empty
            }
        }
        Ast::Concat(parts) => {
            let mut derivatives = Vec::new();
            for (place, part) in parts.iter().enumerate() {
                let rest = parts[place + 1..].iter().cloned();
                derivatives.push(Ast::concat([derivative(part, letter)].into_iter().chain(rest)));
                if !accepts_nothing_more(part) {
                    break;
                }
            }
            union(derivatives)
        }
        Ast::Alternation(parts) => union(parts.iter().map(|part| derivative(part, letter))),
        Ast::Intersection(parts) => {
            Ast::intersection(parts.iter().map(|part| derivative(part, letter)))
        }
        Ast::Repeat { inner, min, max } => {
            let rest = Ast::repeat(
                (**inner).clone(),
                min.saturating_sub(1),
                max.map(|max| max.saturating_sub(1)),
            );
            Ast::concat([derivative(inner, letter), rest])
        }
        Ast::Complement(inner) => Ast::complement(derivative(inner, letter)),
        Ast::Approximate { known, .. } => derivative(known, letter),
        Ast::Before(_) | Ast::After(_) | Ast::Substring(_) => {
            panic!("no schema of the test has it")
        }
    }
}

#[test]
fn emptiness_is_decided() {
    use ffwd_regular::regex::ecma::search;
    let both = |left: &str, right: &str| {
        is_empty(&Ast::intersection([search(left).unwrap(), search(right).unwrap()]))
    };
    assert_eq!(both("^a+$", "^[ab]{3}$"), Ok(false));
    assert_eq!(both("^a+$", "^b"), Ok(true));
    assert_eq!(both("^(aa)+$", "^(aaa){1,2}a$"), Ok(false));
    assert_eq!(both("^(aa)+$", "^a(aa)*$"), Ok(true));
    let letter = search("x").unwrap();
    assert_eq!(is_empty(&Ast::intersection([letter.clone(), Ast::complement(letter)])), Ok(true));
}
