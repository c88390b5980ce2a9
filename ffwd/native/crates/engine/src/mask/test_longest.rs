//! Walks of lexemes that end at their longest match against reading each token byte by byte.

use proptest::prelude::RngExt;

use super::loops::KnownChanges;
use super::rest_tries::RestTries;
use super::tests::{pattern, Kinds};
use super::walk::{compute, View};
use ffwd_regular::expr::lexeme::Ends;
use ffwd_regular::expr::{LexState, Lexeme, LexemeSpec, Spelling, Verdict};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// Names, blanks, comments, signs, numbers, strings; and what ends as soon as it can.
const LANGUAGES: [&str; 10] = [
    r"\pL[\pL\p{Nd}_]*",
    r"[ \t\n]+",
    r"#[^\n]*",
    "-",
    "->|--",
    r"[0-9]+(\.[0-9]+)?(e-?[0-9]+)?",
    r#""([^"\\\n]|\\(?s:.))*""#,
    r"(?s:\{.*?\})",
    "name|true",
    "[€-😀x]+",
];
const LAZY: Verdict = 1 << 7;

/// As [`Kinds::by_brute_force`]. `again`: as in [`compute`].
fn by_brute_force(
    lexeme: &Lexeme,
    start: LexState,
    again: Verdict,
    vocabulary: &Vocabulary,
) -> Kinds {
    let begins_anew = |state: LexState| {
        let accept = lexeme.accept(state);
        accept.is_power_of_two() && accept & again != 0
    };
    let mut kinds = Kinds::default();
    'tokens: for token in (0..vocabulary.width() as u32).map(TokenId) {
        let text = vocabulary.text(token);
        if text.is_empty() {
            continue;
        }
        let mut state = start;
        let exit = |kinds: &mut Kinds, ended: LexState, rest: &[u8]| {
            let follows = |byte: &u8| lexeme.follow().is_none_or(|follow| follow.contains(*byte));
            if rest.first().is_none_or(follows) {
                kinds.exit(lexeme.accept(ended), rest, token);
            }
        };
        for (at, &byte) in text.iter().enumerate() {
            let mut next = lexeme.next(state, byte).unwrap();
            if next.is_none() && state.accepts() {
                if !begins_anew(state) {
                    // The walk does not report an end before the token.
                    if at > 0 {
                        exit(&mut kinds, state, &text[at..]);
                    }
                    continue 'tokens;
                }
                next = lexeme.next(start, byte).unwrap();
            }
            let Some(next) = next else { continue 'tokens };
            state = next;
            if state.is_final() && !begins_anew(state) {
                exit(&mut kinds, state, &text[at + 1..]);
                continue 'tokens;
            }
            if state.is_final() {
                state = start;
            }
        }
        kinds.inner.insert(token);
    }
    kinds
}

#[test]
fn walks_do_what_reading_each_token_does() {
    let mut rng = seeded(11);
    for seed in 0..3 {
        let vocabulary = vocabulary(seed, [40, 600, 1500][usize::from(seed)]);
        let trie = vocabulary.trie();
        for follows_itself in [false, true] {
            let languages = LANGUAGES.iter().map(|language| pattern(language));
            let spec = LexemeSpec::new(Spelling::Utf8, languages);
            let ends = Ends::Longest { lazy: LAZY };
            let lexeme = Lexeme::new(LexemeSpec { ends, follows_itself, ..spec }).unwrap();
            // Known changes are those of other walks, too.
            let (tries, changes) = (RestTries::default(), KnownChanges::default());
            for round in 0..40 {
                let begun: Verdict = rng.random_range(1..1 << LANGUAGES.len());
                let begun = if round % 4 == 0 { begun } else { begun | 1 | begun << 1 };
                let Some(first) = lexeme.start_of(begun).unwrap() else { continue };
                let mut state = first;
                for _ in 0..rng.random_range(0..3) {
                    let bytes = [b"a", b" ", b"-", b"1", b"\"", b"{", b"n", b"x", b"#"];
                    let byte = bytes[rng.random_range(0..bytes.len())][0];
                    match lexeme.next(state, byte).unwrap() {
                        Some(next) if !next.is_final() => state = next,
                        _ => {}
                    }
                }
                let again: Verdict = match round % 3 {
                    0 => 0,
                    1 => 1 << 1 | 1 << 3,
                    _ => rng.random_range(0..1 << LANGUAGES.len()),
                };
                let again = if state == first { again } else { 0 };
                let view = View::of(&vocabulary);
                let mask =
                    compute(&tries, &changes, &vocabulary, view, &lexeme, state, again).unwrap();
                let mut found = Kinds::of_mask(&mask, &vocabulary);
                // Exits may name whole subtrees, with bytes with which nothing may begin.
                let follows = |byte| lexeme.follow().is_none_or(|follow| follow.contains(byte));
                found.exits.retain(|(_, rest, _)| follows(rest[0]));
                let expected = by_brute_force(&lexeme, state, again, &vocabulary);
                let what = format!("seed {seed}, {begun:b}, {again:b}, {state:?}");
                let inner = found.inner.symmetric_difference(&expected.inner);
                let texts: Vec<_> = inner.map(|&token| vocabulary.text(token)).collect();
                assert!(texts.is_empty(), "{what}: {texts:?}");
                let exits: Vec<_> = found.exits.symmetric_difference(&expected.exits).collect();
                assert!(exits.is_empty(), "{what}: {exits:?}");
            }
            assert!(trie.len() < 1000 || changes.memory_bytes() > 0, "no walk leapt");
        }
    }
}
