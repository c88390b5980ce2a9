//! Lexemes against the `regex` crate, spellings against `serde_json`, emptiness against the list
//! of all short texts.

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, RngSeed, TestRng};

use super::byte_set::ByteSet;
use super::derivative::{ByteClasses, Derivatives};
use super::lexeme::MAX_LISTED;
use super::lower::{spell, Lowering};
use super::store::{Expr, ExprId, ExprStore};
use super::*;
use crate::regex::oracle::matches;
use crate::regex::{ecma, rust_dialect, Ast, CharClass};

fn seeded(seed: u8) -> TestRng {
    TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32])
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        cases,
        ..Default::default()
    }
}

fn lexeme(spelling: Spelling, languages: impl IntoIterator<Item = Ast>) -> Lexeme {
    Lexeme::new(LexemeSpec::new(spelling, languages)).unwrap()
}

/// Returns the verdict on a text in the spelling of the lexeme, with the quotes of a JSON string.
fn verdict(lexeme: &Lexeme, text: &str) -> u128 {
    let spelling = lexeme.spec().spelling;
    let mut bytes = spell(text, spelling);
    if spelling == Spelling::JsonString {
        bytes.insert(0, b'"');
        bytes.push(b'"');
    }
    let mut state = lexeme.start();
    for byte in bytes {
        match lexeme.next(state, byte).unwrap() {
            Some(next) => state = next,
            None => return 0,
        }
    }
    lexeme.accept(state)
}

/// Languages over few characters of one to four bytes, some with an escape.
fn languages() -> impl Strategy<Value = Ast> {
    let class = prop::collection::vec(
        prop::sample::select("abé€😀\"\n\u{1}".chars().collect::<Vec<char>>()),
        1..4,
    )
    .prop_map(|characters: Vec<char>| {
        Ast::class(CharClass::new(characters.iter().map(|&c| (c as u32, c as u32))))
    });
    let leaf = prop_oneof![
        4 => class,
        2 => prop::sample::select(vec!["a", "ab", "é", "b\n", "", "\"\""]).prop_map(Ast::literal),
        1 => Just(Ast::Class(CharClass::any())),
        1 => Just(Ast::any_text()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let few = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            few().prop_map(Ast::concat),
            few().prop_map(Ast::alternation),
            few().prop_map(Ast::intersection),
            inner.clone().prop_map(Ast::complement),
            (inner.clone(), 0..3u32, prop::option::of(0..3u32)).prop_map(|(inner, min, more)| {
                Ast::repeat(inner, min, more.map(|more| min + more))
            }),
        ]
    })
}

fn short_text() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop::sample::select("aabbé€😀\"\n\u{1}\\".chars().collect::<Vec<char>>()),
        0..7,
    )
    .prop_map(|characters: Vec<char>| characters.into_iter().collect())
}

/// Every text of at most `longest` characters out of these.
fn all_texts(characters: &str, longest: usize) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut from = 0;
    for _ in 0..longest {
        let to = texts.len();
        for at in from..to {
            for character in characters.chars() {
                texts.push(format!("{}{character}", texts[at]));
            }
        }
        from = to;
    }
    texts
}

#[test]
fn what_surrounds_a_place_is_followed_along() {
    let patterns = [
        "(?<=a)b",
        "(?<!a)b$",
        "(?<=^a|bb)-",
        "(?<=a+b)-",
        r"\ba\b",
        r"^\B.\B",
        r"(?<!é)\b-",
        "^((?!ab).)*-",
        "^(?:(?=a).|b)+-$",
        "^(?:(?=a)|b){2}a",
        r"^(?:\w+\b-?)+$",
        "^(?:a(?<!aa)|b(?!-))*$",
        "(?<=a)(?<!ba)b(?=-$)",
        "^(?:(?<!a)(?!b-).){2,3}$",
        "(?<=b(?<!ab))a",
        "a$(?<=b)",
        r"(?!(?!(?<=\W)))$$",
        r"(?:(?:^\Ba?|\ba?[ab]))+\W",
        "^(?:(?=.*-$)[ab])*-$",
        "^(?:(?!.*é)[ab]|-(?=b))+$",
        "^(?:(?=.*-)(?=.*a)(?:a|b|-))*$",
    ];
    let texts = all_texts("abé-", 4);
    for pattern in patterns {
        let language = ecma::search(pattern).unwrap();
        let both = Ast::intersection([language.clone(), ecma::search("a").unwrap()]);
        let other = Ast::complement(language.clone());
        for spelling in [Spelling::Utf8, Spelling::JsonString] {
            let lexeme = lexeme(spelling, [language.clone(), both.clone(), other.clone()]);
            for text in &texts {
                let found = matches(&language, text);
                let a = u128::from(found && text.contains('a')) << 1;
                let expected = u128::from(found) | a | u128::from(!found) << 2;
                assert_eq!(verdict(&lexeme, text), expected, "{pattern} {text}");
            }
        }
        let lexeme = lexeme(Spelling::JsonString, [language.clone()]);
        let found = texts.iter().any(|text| matches(&language, text));
        assert_eq!(lexeme.is_alive(), found, "{pattern}");
        if lexeme.is_alive() {
            let mut seen = vec![lexeme.start()];
            let mut at = 0;
            while at < seen.len().min(60) {
                assert!(completes(&lexeme, seen[at]), "{:?} of {pattern}", seen[at]);
                for byte in 0..=255u8 {
                    if let Some(next) = lexeme.next(seen[at], byte).unwrap() {
                        if !seen.contains(&next) {
                            seen.push(next);
                        }
                    }
                }
                at += 1;
            }
            assert!(seen.len() < 400, "{pattern} has {} states", seen.len());
        }
    }
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn a_lexeme_accepts_the_texts_of_its_language(
        language in languages(),
        texts in prop::collection::vec(short_text(), 8),
    ) {
        for spelling in [Spelling::Utf8, Spelling::JsonString] {
            let lexeme = lexeme(spelling, [language.clone()]);
            for text in &texts {
                let expected = u128::from(matches(&language, text));
                prop_assert_eq!(verdict(&lexeme, text), expected, "{:?} {:?}", spelling, text);
            }
        }
    }

    #[test]
    fn each_language_of_a_lexeme_has_its_bit(
        languages in prop::collection::vec(languages(), 1..5),
        texts in prop::collection::vec(short_text(), 8),
    ) {
        let lexeme = lexeme(Spelling::JsonString, languages.clone());
        for text in &texts {
            let expected = languages
                .iter()
                .enumerate()
                .fold(0, |bits, (at, language)| bits | u128::from(matches(language, text)) << at);
            prop_assert_eq!(verdict(&lexeme, text), expected, "{:?}", text);
        }
    }

    /// A lexeme is alive, and so is each of its states, exactly if some text completes it.
    #[test]
    fn a_state_is_there_only_if_a_text_completes_it(language in languages()) {
        let lexeme = lexeme(Spelling::Utf8, [language.clone()]);
        // The characters that tell languages apart, and one that stands for all others.
        let texts = all_texts("abé€😀\"\n\u{1}x", 3);
        let accepted: Vec<&String> = texts.iter().filter(|text| matches(&language, text)).collect();
        if !accepted.is_empty() {
            prop_assert!(lexeme.is_alive());
        }
        if lexeme.is_alive() {
            // The shortest way to an end, from every state that is near.
            let mut seen = vec![lexeme.start()];
            let mut at = 0;
            while at < seen.len().min(40) {
                prop_assert!(completes(&lexeme, seen[at]), "{:?} of {:?}", seen[at], language);
                for byte in 0..=255u8 {
                    if let Some(next) = lexeme.next(seen[at], byte).unwrap() {
                        if !seen.contains(&next) {
                            seen.push(next);
                        }
                    }
                }
                at += 1;
            }
        } else {
            prop_assert!(accepted.is_empty());
            for byte in 0..=255u8 {
                prop_assert_eq!(lexeme.next(lexeme.start(), byte).unwrap(), None);
            }
        }
    }

    #[test]
    fn flags_of_a_state_say_what_may_follow(language in languages()) {
        for spelling in [Spelling::Utf8, Spelling::JsonString] {
            let lexeme = lexeme(spelling, [language.clone()]);
            let mut seen = vec![lexeme.start()];
            let mut at = 0;
            while at < seen.len().min(40) {
                let state = seen[at];
                let next: Vec<(u8, LexState)> = (0..=255u8)
                    .filter_map(|byte| Some((byte, lexeme.next(state, byte).unwrap()?)))
                    .collect();
                prop_assert_eq!(state.accepts(), lexeme.accept(state) != 0);
                prop_assert_eq!(state.is_final(), state.accepts() && next.is_empty());
                let only = match next[..] {
                    [(byte, _)] => Some(byte),
                    _ => None,
                };
                prop_assert_eq!(lexeme.only_byte(state).unwrap(), only);
                // And again, from what is known by now.
                prop_assert_eq!(lexeme.only_byte(state).unwrap(), only);
                for _ in 0..2 {
                    let mut listed = smallvec::smallvec![b'x'];
                    let wanted: Vec<u8> = next.iter().map(|&(byte, _)| byte).collect();
                    let fits = lexeme.list_bytes(state, &mut listed).unwrap();
                    prop_assert_eq!(fits, wanted.len() <= MAX_LISTED);
                    prop_assert!(!fits || listed[1..] == wanted);
                    prop_assert_eq!(lexeme.only_byte(state).unwrap(), only);
                }
                for (byte, state_after) in next {
                    prop_assert_eq!(lexeme.row(state).next(byte).unwrap(), Some(state_after));
                    if !seen.contains(&state_after) {
                        seen.push(state_after);
                    }
                }
                at += 1;
            }
        }
    }

    #[test]
    fn a_class_is_spelled_as_its_characters_are(
        ranges in prop::collection::vec((0..0x11_0000u32, 0..0x300u32), 1..4),
        narrow in prop::collection::vec((0..0x80u32, 0..8u32), 0..3),
        asked in prop::collection::vec(any::<char>(), 20),
    ) {
        let all = ranges.iter().chain(&narrow).map(|&(low, length)| (low, low + length));
        let class = CharClass::new(all);
        let edges = class.ranges().iter().flat_map(|&(low, high)| [low.wrapping_sub(1), low, high, high + 1]);
        let characters: Vec<char> =
            edges.filter_map(char::from_u32).chain(asked).chain((0..0x80u8).map(char::from)).collect();
        for spelling in [Spelling::Utf8, Spelling::JsonString] {
            let one = lexeme(spelling, [Ast::class(class.clone())]);
            let other = lexeme(spelling, [Ast::class(class.negate())]);
            for character in &characters {
                let text = character.to_string();
                let inside = u128::from(class.contains(*character));
                prop_assert_eq!(verdict(&one, &text), inside, "{:?}", character);
                prop_assert_eq!(verdict(&other, &text), 1 - inside, "not {:?}", character);
            }
        }
    }

    #[test]
    fn a_spelling_is_what_serde_json_writes(text in any::<String>()) {
        let json = serde_json::to_string(&text).unwrap();
        let spelled = spell(&text, Spelling::JsonString);
        prop_assert_eq!(&spelled[..], &json.as_bytes()[1..json.len() - 1]);
        prop_assert_eq!(unspell_json(&spelled), Some(text.clone()));
        prop_assert_eq!(spell(&text, Spelling::Utf8), text.as_bytes());
    }

    #[test]
    fn byte_sets_are_sets(bytes in prop::collection::vec(any::<u8>(), 0..40), low in any::<u8>(), high in any::<u8>()) {
        let mut set = ByteSet::EMPTY;
        for &byte in &bytes {
            set.insert(byte);
        }
        let range = ByteSet::range(low.min(high), low.max(high));
        let both = set.union(&range);
        let expected: Vec<u8> = (0..=255u8)
            .filter(|byte| bytes.contains(byte) || (low.min(high)..=low.max(high)).contains(byte))
            .collect();
        prop_assert_eq!(both.iter().collect::<Vec<_>>(), expected.clone());
        prop_assert_eq!(both.len() as usize, expected.len());
        prop_assert_eq!(set.is_empty(), bytes.is_empty());
        prop_assert!(expected.iter().all(|&byte| both.contains(byte)));
    }
}

/// Whether some string of bytes leads from a state to an accepting one.
fn completes(lexeme: &Lexeme, start: LexState) -> bool {
    let mut seen = vec![start];
    let mut at = 0;
    while at < seen.len() {
        if seen[at].accepts() {
            return true;
        }
        for byte in 0..=255u8 {
            if let Some(next) = lexeme.next(seen[at], byte).unwrap() {
                if !seen.contains(&next) {
                    seen.push(next);
                }
            }
        }
        at += 1;
        assert!(at < 20_000, "the search for an end goes on and on");
    }
    false
}

/// Patterns of the `regex` crate, written out at random.
fn random_pattern(rng: &mut TestRng, depth: usize) -> String {
    const ATOMS: [&str; 14] = [
        "a", "b", "ab", "é", ".", "[ab]", "[^a]", r"\d", r"\w", r"\s", "(?s:.)", "€", "[a-é]", "1",
    ];
    if depth == 0 || rng.random_range(0..4) == 0 {
        return ATOMS[rng.random_range(0..ATOMS.len())].to_string();
    }
    let inner = random_pattern(rng, depth - 1);
    match rng.random_range(0..6) {
        0 => format!("{inner}{}", random_pattern(rng, depth - 1)),
        1 => format!("(?:{inner}|{})", random_pattern(rng, depth - 1)),
        2 => format!("(?:{inner})*"),
        3 => format!("(?:{inner})?"),
        4 => format!("(?:{inner})+"),
        _ => {
            let min = rng.random_range(0..3);
            format!("(?:{inner}){{{min},{}}}", min + rng.random_range(0..4))
        }
    }
}

#[test]
fn lexemes_of_patterns_match_what_the_regex_crate_matches() {
    let mut rng = seeded(1);
    let characters: Vec<char> = "aabb1é€ \nxZ".chars().collect();
    let mut matched = 0;
    for _ in 0..400 {
        let pattern = random_pattern(&mut rng, 4);
        let judge = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
        let language = rust_dialect::anchored(&pattern).unwrap();
        for spelling in [Spelling::Utf8, Spelling::JsonString] {
            let lexeme = lexeme(spelling, [language.clone()]);
            for _ in 0..15 {
                let length = rng.random_range(0..7);
                let text: String = (0..length)
                    .map(|_| characters[rng.random_range(0..characters.len())])
                    .collect();
                let expected = judge.is_match(&text);
                matched += usize::from(expected);
                assert_eq!(verdict(&lexeme, &text) == 1, expected, "{pattern} {text:?}");
            }
        }
    }
    assert!(matched > 500, "only {matched} texts matched");
}

/// The texts of a lexeme: every walk to an end gives a text of the language, in the form of
/// `serde_json`.
#[test]
fn walks_through_json_strings_are_canonical_json() {
    let mut rng = seeded(2);
    let languages = [
        Ast::any_text(),
        rust_dialect::anchored(r"[\x00-\x7f]{0,6}").unwrap(),
        Ast::complement(Ast::literal("a\n")),
        rust_dialect::anchored(r#"(?s:["\\/\x08\x0c\x1f\x7f]|é)*"#).unwrap(),
    ];
    for language in languages {
        let lexeme = lexeme(Spelling::JsonString, [language.clone()]);
        let mut ended = 0;
        for _ in 0..60 {
            let mut state = lexeme.start();
            let mut bytes = Vec::new();
            while bytes.len() < 60 && !state.is_final() {
                let choices: Vec<(u8, LexState)> = (0..=255u8)
                    .filter_map(|byte| Some((byte, lexeme.next(state, byte).unwrap()?)))
                    .collect();
                let close = choices.iter().find(|(_, next)| next.is_final());
                let (byte, next) = match close {
                    Some(&close) if rng.random_range(0..6) == 0 => close,
                    _ => choices[rng.random_range(0..choices.len())],
                };
                bytes.push(byte);
                state = next;
            }
            if state.is_final() {
                let text: String = serde_json::from_slice(&bytes).unwrap();
                assert_eq!(serde_json::to_string(&text).unwrap().as_bytes(), bytes);
                assert!(matches(&language, &text), "{text:?}");
                ended += 1;
            }
        }
        assert!(ended > 5, "only {ended} walks came to an end");
    }
}

#[test]
fn strings_have_one_spelling() {
    let any = lexeme(Spelling::JsonString, [Ast::any_text()]);
    let read = |bytes: &[u8]| {
        bytes.iter().try_fold(any.start(), |state, &byte| any.next(state, byte).unwrap())
    };
    for accepted in ["\"\"", "\"\\n\\\"\\\\/\"", "\"\\u0000\\u001f\"", "\"é😀\u{7f}\u{2028}\""] {
        assert!(read(accepted.as_bytes()).is_some_and(LexState::is_final), "{accepted}");
    }
    let refused: [&[u8]; 12] = [
        b"x",
        b"\"\n",
        b"\"\\/",
        b"\"\\u000a",
        b"\"\\u001F",
        b"\"\\u004",
        b"\"\\ud",
        b"\"\"\"",
        b"\"\xC0",
        b"\"\xED\xA0",
        b"\"\xF4\x90",
        b"\"\x80",
    ];
    for bytes in refused {
        assert_eq!(read(bytes), None, "{}", bytes.escape_ascii());
        assert!(read(&bytes[..bytes.len() - 1]).is_some(), "{}", bytes.escape_ascii());
    }
    for bytes in [&b"\\"[..], b"\\u00", b"\"", b"\xC3"] {
        assert_eq!(unspell_json(bytes), None);
    }
}

#[test]
fn free_text_is_recognised() {
    use super::lexeme::FreeText;
    let any = || Ast::Class(CharClass::any());
    let free = |language: Ast, read: &str| {
        let lexeme = lexeme(Spelling::JsonString, [language]);
        let state =
            read.bytes().try_fold(lexeme.inside(), |state, byte| lexeme.next(state, byte).unwrap());
        lexeme.free_text(state.unwrap())
    };
    let text = |min, max| Some(FreeText { kind: None, min, max });
    assert_eq!(free(Ast::any_text(), ""), text(0, None));
    assert_eq!(free(Ast::any_text(), "ab"), text(0, None));
    assert_eq!(free(Ast::any_text(), "\\"), None);
    assert_eq!(free(Ast::repeat(any(), 3, Some(9)), "aé"), text(1, Some(7)));
    assert_eq!(free(Ast::repeat(any(), 3, Some(9)), "aaaaaaaaa"), text(0, Some(0)));
    assert_eq!(free(Ast::repeat(any(), 3, Some(9)), "aaaaaaaa"), text(0, Some(1)));
    assert_eq!(free(Ast::repeat(any(), 3, Some(3)), "aa"), text(1, Some(1)));
    assert_eq!(free(Ast::repeat(any(), 3, None), "a"), text(2, None));
    assert_eq!(free(Ast::complement(Ast::literal("b")), "a"), text(0, None));
    // Of one kind: which is an expression of the lexeme.
    let digits = || Ast::class(CharClass::new([(0x30, 0x39)]));
    let run = free(Ast::repeat(digits(), 3, Some(9)), "1").unwrap();
    assert!(run.kind.is_some());
    assert_eq!((run.min, run.max), (2, Some(8)));
    assert_eq!(free(Ast::repeat(Ast::literal("ab"), 3, None), "a"), None);
    let plain = lexeme(Spelling::Utf8, [Ast::any_text()]);
    assert_eq!(plain.free_text(plain.start()), None);
}

#[test]
fn a_state_from_which_a_text_is_searched_takes_anything() {
    let takes = |pattern: &str, read: &str| {
        let lexeme = lexeme(Spelling::JsonString, [rust_dialect::anchored(pattern).unwrap()]);
        let state =
            read.bytes().try_fold(lexeme.inside(), |state, byte| lexeme.next(state, byte).unwrap());
        lexeme.takes_anything(state.unwrap())
    };
    for (pattern, read, expected) in [
        ("(?s:.*)ab(?s:.*)", "", true),
        ("(?s:.*)ab(?s:.*)", "xa", true),
        ("(?s:.*)ab(?s:.*)", "xab", true),
        ("(?s:.*)ab", "ab", true),
        ("ab(?s:.*)", "a", false),
        ("[^a]*b", "", false),
        ("(?s:.*)ab", "\\", false),
    ] {
        assert_eq!(takes(pattern, read), expected, "{pattern} after {read}");
    }
}

#[test]
fn bytes_of_one_class_lead_to_the_same_state() {
    let mut rng = seeded(3);
    for _ in 0..60 {
        let pattern = random_pattern(&mut rng, 4);
        let mut store = ExprStore::new();
        let mut lowering = Lowering::new(&mut store, Spelling::Utf8, 32).unwrap();
        let root = lowering.lower(&rust_dialect::anchored(&pattern).unwrap()).unwrap();
        let classes = ByteClasses::of_expressions(&store, &[root], b"\"");
        let alone = classes.of[usize::from(b'"')];
        assert_eq!(classes.of.iter().filter(|&&class| class == alone).count(), 1);
        let mut derivatives = Derivatives::default();
        for byte in 0..=255u8 {
            let representative =
                classes.representatives[usize::from(classes.of[usize::from(byte)])];
            let one = derivatives.derive(&mut store, root, byte).unwrap();
            let other = derivatives.derive(&mut store, root, representative).unwrap();
            assert_eq!(one, other, "{pattern} {byte}");
        }
        assert!(classes
            .representatives
            .iter()
            .enumerate()
            .all(|(class, &byte)| { usize::from(classes.of[usize::from(byte)]) == class }));
    }
}

#[test]
fn every_byte_may_be_a_class_of_its_own() {
    let mut store = ExprStore::new();
    let roots: Vec<ExprId> =
        (0..=255u8).map(|byte| store.bytes(ByteSet::single(byte)).unwrap()).collect();
    let classes = ByteClasses::of_expressions(&store, &roots, &[]);
    assert_eq!(classes.len(), 256);
    assert!((0..=255u8)
        .all(|byte| classes.representatives[usize::from(classes.of[usize::from(byte)])] == byte));
}

#[test]
fn constructors_simplify() {
    let mut store = ExprStore::new();
    let a = store.bytes(ByteSet::single(b'a')).unwrap();
    let b = store.bytes(ByteSet::single(b'b')).unwrap();
    let ab = store.concat(a, b).unwrap();
    assert_eq!(store.literal(b"ab").unwrap(), ab);
    assert_eq!(store.or(&[a, ExprId::EMPTY, a]).unwrap(), a);
    assert_eq!(store.or(&[]).unwrap(), ExprId::EMPTY);
    assert_eq!(store.and(&[]).unwrap(), ExprId::EVERYTHING);
    let either = store.or(&[b, a]).unwrap();
    assert_eq!(store.get(either), &Expr::Bytes(ByteSet::range(b'a', b'b')));
    let not_a = store.not(a).unwrap();
    assert_eq!(store.not(not_a).unwrap(), a);
    assert_eq!(store.and(&[a, not_a]).unwrap(), ExprId::EMPTY);
    // No string has both lengths.
    assert_eq!(store.and(&[a, ab]).unwrap(), ExprId::EMPTY);
    assert_eq!(store.repeat(a, 0, Some(0)).unwrap(), ExprId::EPSILON);
    assert_eq!(store.repeat(a, 1, Some(1)).unwrap(), a);
    let star = store.repeat(a, 0, None).unwrap();
    assert_eq!(store.repeat(star, 2, Some(5)).unwrap(), star);
    assert_eq!(store.concat(ExprId::EMPTY, a).unwrap(), ExprId::EMPTY);
    assert_eq!(store.concat(a, ExprId::EPSILON).unwrap(), a);
    let nested = store.concat(ab, a).unwrap();
    assert_eq!(store.literal(b"aba").unwrap(), nested);
}

#[test]
fn large_counters_are_not_unrolled() {
    let language = rust_dialect::anchored("(ab|c){1000,60000}").unwrap();
    let lexeme = lexeme(Spelling::Utf8, [language]);
    assert_eq!(verdict(&lexeme, &"ab".repeat(999)), 0);
    assert_eq!(verdict(&lexeme, &"ab".repeat(1000)), 1);
    let states = lexeme.num_states();
    assert!(states < 2100, "{states} states for 2000 bytes");
}

#[test]
fn limits_of_lexemes_are_errors_that_name_them() {
    let error = |languages: Vec<Ast>| {
        let spec = LexemeSpec::new(Spelling::Utf8, languages);
        Lexeme::new(spec).err().unwrap()
    };
    let too_many: Vec<Ast> = (0..129).map(|at| Ast::literal(&at.to_string())).collect();
    assert_eq!(error(too_many.clone()).maximum, 128);
    assert!(!lexeme(Spelling::Utf8, []).is_alive());
    assert!(lexeme(Spelling::Utf8, too_many[..128].to_vec()).is_alive());
    let mut nested = Ast::literal("a");
    for _ in 0..600 {
        nested = Ast::alternation([Ast::repeat(nested, 2, None), Ast::literal("b")]);
    }
    let deep = error(vec![nested]);
    assert_eq!(deep.limit, "expression_nesting");
    // The question whether three such counts ever meet takes more expressions than are given, or
    // more steps if letters differ.
    let all = |patterns: &[&str]| {
        Ast::intersection(patterns.iter().map(|pattern| rust_dialect::anchored(pattern).unwrap()))
    };
    let plain = all(&["(a{1009})+", "(a{1013})+", "(a{1019})+"]);
    assert_eq!(error(vec![plain]).limit, "lexeme_expressions");
    let others: Vec<String> = ('b'..='z').map(|letter| format!("{letter}(?s:.)*")).collect();
    let letters = format!("(?s:.)*a|{}", others.join("|"));
    let apart = all(&["([a-z]{1009})+", "([a-z]{1013})+", "([a-z]{1019})+", &letters]);
    assert_eq!(error(vec![apart]).limit, "emptiness_steps");
}

#[test]
fn bytes_that_cannot_come_take_no_derivative() {
    // No text has a word boundary between two letters, so all of its characters are looked through.
    let lexeme = |pattern: &str| lexeme(Spelling::Utf8, [rust_dialect::anchored(pattern).unwrap()]);
    let dead = lexeme(r"\w{3}(\baa)aa");
    assert!(!dead.is_alive());
    assert!(dead.effort() < 100_000, "{} derivatives", dead.effort());
    let long = lexeme(r"\w{9}(\baa)aa|a|a");
    assert_eq!(["a", "aa", "b"].map(|text| verdict(&long, text)), [1, 0, 0]);
}

#[test]
fn a_long_literal_is_no_deep_expression() {
    let text = "é".repeat(30_000);
    let lexeme = lexeme(Spelling::JsonString, [Ast::literal(&text)]);
    assert_eq!(verdict(&lexeme, &text), 1);
    assert_eq!(verdict(&lexeme, &text[2..]), 0);
}

#[test]
fn the_store_builds_each_lexeme_once_and_keeps_to_its_budget() {
    let spec =
        |text: &str| LexemeSpec::new(Spelling::Utf8, [rust_dialect::anchored(text).unwrap()]);
    let store = LexemeStore::new(1 << 30);
    let first = store.get(&spec("a+")).unwrap();
    assert_eq!(first.id(), store.get(&spec("a+")).unwrap().id());
    assert_ne!(first.id(), store.get(&spec("b+")).unwrap().id());
    assert_eq!(store.len(), 2);
    assert!(store.memory_bytes() > 0);
    store.clear();
    assert!(store.is_empty());
    assert_eq!(first.accept(first.start()), 0, "what is held stays");

    let small = LexemeStore::new(1);
    let held = small.get(&spec("held")).unwrap();
    for number in 0..600 {
        small.get(&spec(&format!("x{number}"))).unwrap();
    }
    assert!(small.len() < 600, "nothing was let go");
    assert_eq!(small.get(&spec("held")).unwrap().id(), held.id());
}

#[test]
fn a_lexeme_is_built_by_many_threads_at_once() {
    let lexeme = lexeme(Spelling::Utf8, [rust_dialect::anchored("([ab]{1,40}c)*").unwrap()]);
    let text = "abcabbbcaaaaac".repeat(20);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(verdict(&lexeme, &text), 1));
        }
    });
}
