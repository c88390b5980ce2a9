//! Listed texts as tables against the same texts lowered to expressions: the allowed and forced
//! continuations, the ends, and the allowed tokens.

use std::collections::VecDeque;

use proptest::prelude::RngExt;
use proptest::test_runner::TestRng;
use rustc_hash::FxHashSet;

use super::loops::KnownChanges;
use super::rest_tries::RestTries;
use super::tests::Kinds;
use super::walk::{compute, View};
use ffwd_regular::expr::{LexState, Lexeme, LexemeSpec, Spelling};
use ffwd_regular::regex::{rust_dialect, Ast};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary, vocabulary_of};
use ffwd_tokenizer::vocabulary::Vocabulary;

/// The parts of the texts: prefixes of each other, escapes, characters of all lengths.
const PIECES: [&str; 16] = [
    "a", "b", "ab", "name", "x", "é", "€", "😀", "\n", "\"", "\\", "\u{1}", "\u{1f}", "0", " ",
    "kind",
];

fn draw<'a>(rng: &mut TestRng, from: &[&'a str]) -> &'a str {
    from[rng.random_range(0..from.len())]
}

/// Texts of a few pieces, many of which begin or end alike, in any order and some twice.
fn texts(rng: &mut TestRng, count: usize, pieces: usize) -> Vec<String> {
    let ends = ["", "", "ab", "-name", "\"é"];
    let mut texts: Vec<String> = Vec::new();
    for _ in 0..count {
        let mut text = match rng.random_range(0..4u32) {
            0 if !texts.is_empty() => texts[rng.random_range(0..texts.len())].clone(),
            _ => String::new(),
        };
        (0..rng.random_range(0..=pieces)).for_each(|_| text.push_str(draw(rng, &PIECES)));
        text.push_str(draw(rng, &ends));
        texts.push(text);
    }
    texts
}

fn one_of(texts: &[String]) -> Ast {
    Ast::alternation(texts.iter().map(|text| Ast::literal(text)))
}

/// Follows both lexemes side by side through a bounded number of states, and compares them there.
fn compare(spec: &LexemeSpec, vocabulary: &Vocabulary, most: usize) {
    let tables = Lexeme::with_tables_from(spec.clone(), 1).unwrap();
    let lowered = Lexeme::with_tables_from(spec.clone(), usize::MAX).unwrap();
    assert_eq!(tables.is_alive(), lowered.is_alive(), "{spec:?}");
    if !tables.is_alive() {
        return;
    }
    let start = (tables.start(), lowered.start());
    let mut seen: FxHashSet<(LexState, LexState)> = FxHashSet::from_iter([start]);
    let mut pending = VecDeque::from([start]);
    let mut left = most;
    while let Some((table, other)) = pending.pop_front() {
        assert_eq!(tables.accept(table), lowered.accept(other));
        assert_eq!(table.is_final(), other.is_final());
        assert_eq!(tables.only_byte(table).unwrap(), lowered.only_byte(other).unwrap());
        if !table.is_final() {
            let mask = compute(
                &RestTries::default(),
                &KnownChanges::default(),
                vocabulary,
                View::of(vocabulary),
                &tables,
                table,
                0,
            )
            .unwrap();
            let expected = Kinds::by_brute_force(&lowered, other, vocabulary);
            assert_eq!(Kinds::of_mask(&mask, vocabulary), expected, "{:?}", tables.listed(table));
        }
        for byte in 0..=255u8 {
            let next = tables.next(table, byte).unwrap();
            let expected = lowered.next(other, byte).unwrap();
            assert_eq!(next.is_some(), expected.is_some(), "{byte:?}");
            let Some(both) = next.zip(expected) else { continue };
            if left > 0 && seen.insert(both) {
                left -= 1;
                pending.push_back(both);
            }
        }
    }
}

#[test]
fn tables_do_what_the_expressions_of_their_texts_do() {
    let vocabulary = vocabulary(3, 600);
    let mut rng = seeded(5);
    for (count, pieces) in [(1, 0), (1, 3), (2, 1), (5, 3), (40, 2), (150, 3), (400, 5)] {
        for spelling in [Spelling::JsonString, Spelling::Utf8] {
            let list = one_of(&texts(&mut rng, count, pieces));
            compare(&LexemeSpec::new(spelling, [list]), &vocabulary, 60);
        }
    }
}

#[test]
fn tokens_that_spell_whole_texts_end_them() {
    // Tokens that are texts, begin texts, and go on after them.
    let mut rng = seeded(6);
    let texts = texts(&mut rng, 80, 4);
    let mut tokens: Vec<String> = Vec::new();
    for text in &texts {
        let quoted = serde_json::to_string(text).unwrap();
        for end in ["", ",", "}", "\",\""] {
            tokens.push(format!("{quoted}{end}"));
            tokens.push(format!("{}{end}", &quoted[1..]));
            tokens.push(format!("{text}{end}x"));
        }
        tokens.push(quoted.chars().take(1 + quoted.len() / 2).collect());
    }
    // More than a walk copies go on after one quote.
    tokens.extend((0..400).map(|number| format!("\"{number}")));
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let vocabulary = vocabulary_of(&tokens);
    for spelling in [Spelling::JsonString, Spelling::Utf8] {
        compare(&LexemeSpec::new(spelling, [one_of(&texts)]), &vocabulary, 80);
    }
}

#[test]
fn tables_stand_beside_and_within_other_languages() {
    let vocabulary = vocabulary(4, 300);
    let mut rng = seeded(7);
    for pattern in ["[a-z]*", "(?s:.){2,5}", "(?s:.)*name(?s:.)*", "a.*", "[^a]{0,3}b?"] {
        let pattern = rust_dialect::anchored(pattern).unwrap();
        let mut list = |count| one_of(&texts(&mut rng, count, 3));
        let languages: [Vec<Ast>; 7] = [
            vec![list(60), pattern.clone()],
            vec![list(60), list(40), list(60)],
            vec![Ast::intersection([list(90), pattern.clone()])],
            vec![Ast::intersection([pattern.clone(), Ast::complement(list(90))])],
            vec![Ast::intersection([list(90), Ast::complement(list(20)), list(60)])],
            vec![Ast::concat([list(30), pattern.clone()]), list(20)],
            vec![Ast::concat([Ast::repeat(list(20), 1, Some(3)), list(20)])],
        ];
        for languages in languages {
            for spelling in [Spelling::JsonString, Spelling::Utf8] {
                let spec = LexemeSpec::new(spelling, languages.clone());
                compare(&spec, &vocabulary, 12);
                if languages.len() > 1 {
                    compare(&LexemeSpec { required: 2, ..spec }, &vocabulary, 12);
                }
            }
        }
    }
}

#[test]
fn ranges_in_which_the_same_may_follow_are_one_state() {
    let texts: Vec<String> = (0..3_000).map(|n| format!("{:02}-{}", n / 30, n % 30)).collect();
    let lexeme =
        Lexeme::with_tables_from(LexemeSpec::new(Spelling::JsonString, [one_of(&texts)]), 1);
    let lexeme = lexeme.unwrap();
    let after = |text: &str| {
        let read = |state, &byte| lexeme.next(state, byte).unwrap().unwrap();
        text.as_bytes().iter().fold(lexeme.inside(), read)
    };
    assert_eq!(after("17-2"), after("83-2"));
    assert_ne!(after("17-2"), after("17-3"));
    assert_eq!(after("00-7"), after("99-29"));
    // Reading one text builds no more than the states on its way.
    assert!(lexeme.num_states() < 20, "{}", lexeme.num_states());
}
