//! Masks of patterns beside bounds on the number of characters.

use super::tests::{compare, lexeme, pattern, states, Kinds, PATTERNS};
use ffwd_regular::expr::Spelling;
use ffwd_regular::regex::Ast;
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};
use ffwd_tokenizer::vocabulary::TokenId;

fn up_to(pattern_text: &str, max: u32) -> Ast {
    between(pattern_text, 0, Some(max))
}

fn between(pattern_text: &str, min: u32, max: Option<u32>) -> Ast {
    let any = Ast::Class(ffwd_regular::regex::CharClass::any());
    Ast::intersection([pattern(pattern_text), Ast::repeat(any, min, max)])
}

/// A least number of characters, and excluded texts, beside a pattern.
#[test]
fn masks_with_a_least_length_are_what_brute_force_finds() {
    let vocabulary = vocabulary(27, 400);
    let longest = vocabulary.max_token_bytes() as u32;
    for (number, text) in BOUNDED.iter().enumerate() {
        for (min, max) in [
            (3, None),
            (longest + 9, None),
            (2, Some(9)),
            (5, Some(longest + 20)),
            (longest, Some(3 * longest)),
        ] {
            let found = between(text, min, max);
            let names = Ast::complement(Ast::alternation(["a", "name", "ab"].map(Ast::literal)));
            for language in [found.clone(), Ast::intersection([found, names])] {
                let lexeme = lexeme(Spelling::JsonString, [language]);
                let mut rng = seeded(number as u8);
                compare(&vocabulary, &lexeme, &mut rng, &format!("{text} of {min} to {max:?}"));
            }
        }
    }
}

const BOUNDED: [&str; 6] =
    [r"(\S+ ){0,30}\S+", "[ab]*", "(abc)+", "a(é|x{3,9})*b", "[^a]*a", "(?s:.*)ab(?s:.*)"];

/// Intersections with a number of characters lose the number where it cannot matter.
#[test]
fn masks_of_bounded_patterns_are_what_brute_force_finds() {
    let vocabulary = vocabulary(23, 400);
    let longest = vocabulary.max_token_bytes() as u32;
    for (number, text) in BOUNDED.iter().enumerate() {
        for max in [4, 12, longest, longest + 1, longest + 12, 300] {
            for spelling in [Spelling::Utf8, Spelling::JsonString] {
                let lexeme = lexeme(spelling, [up_to(text, max)]);
                let mut rng = seeded(number as u8);
                compare(&vocabulary, &lexeme, &mut rng, &format!("{text} up to {max}"));
            }
        }
    }
}

/// Without its upper bounds a state does the same with all tokens that are short enough.
#[test]
fn a_relaxed_state_does_the_same_with_short_tokens() {
    let vocabulary = vocabulary(26, 300);
    let longest = vocabulary.max_token_bytes() as u32;
    let mut languages: Vec<Ast> = PATTERNS.iter().map(|text| pattern(text)).collect();
    languages.extend(BOUNDED.iter().flat_map(|text| [6, 14, 60].map(|max| up_to(text, max))));
    languages.extend(BOUNDED.iter().map(|text| between(text, 5, Some(40))));
    let (mut all, mut some) = (0, 0);
    for (number, language) in languages.iter().enumerate() {
        for (spelling, least) in [Spelling::Utf8, Spelling::JsonString]
            .into_iter()
            .flat_map(|spelling| [0, 4, 9].map(|least| (spelling, least)))
        {
            let lexeme = lexeme(spelling, [language.clone()]);
            for state in states(&lexeme, &mut seeded(number as u8), 3, 10) {
                let relaxed = lexeme.relaxed(state, longest, least).unwrap();
                let Some((relaxed, within)) = relaxed else { continue };
                assert!(within >= least, "{language:?} {state:?} within {within}");
                let short = |mut kinds: Kinds| {
                    let fits = |token: &TokenId| vocabulary.text(*token).len() <= within as usize;
                    kinds.inner.retain(fits);
                    kinds.exits.retain(|(_, _, token)| fits(token));
                    kinds
                };
                assert_eq!(
                    short(Kinds::by_brute_force(&lexeme, relaxed, &vocabulary)),
                    short(Kinds::by_brute_force(&lexeme, state, &vocabulary)),
                    "{language:?} {spelling:?} {state:?} within {within}"
                );
                if within >= longest {
                    all += 1;
                } else {
                    some += 1;
                }
            }
        }
    }
    assert!(all > 50 && some > 50, "for all tokens {all} times, for some {some}");
}
