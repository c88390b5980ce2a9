//! Whole texts against encoding by definition, and texts in progress against whole texts.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::bpe::testing::{of_characters, ranked, train, Definition};
use crate::bpe::{BpeSpec, BpeTable, Method};
use crate::pretokenizer::Dialect;

const SAMPLE: &str = "The cat sat on the mat, and the cat's hat sat on the cat. It's 12345 o'clock; \
    we'll see 67890 cats at 10:30, won't we? Les élèves élèvent 日本 の 日本語 cats.  Two  spaces.\n\n\
    def f(cats):\n    return {\"cat\": cats, \"hat\": [1, 22, 333]}\n\n\n    # the end of the hats\n";

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

pub(super) fn split(pattern: &str) -> StageSpec {
    StageSpec::Split {
        pattern: pattern.into(),
        dialect: Dialect::Oniguruma,
        invert: false,
        behavior: crate::pretokenizer::Behavior::Isolated,
    }
}

pub(super) fn parts(spec: BpeSpec, stages: Vec<StageSpec>) -> TokenizerParts {
    TokenizerParts {
        table: Arc::new(BpeTable::new(spec).unwrap()),
        stages,
        specials: Vec::new(),
        normalizer: Normalizer::default(),
        dummy_space: None,
        limits: Vec::new(),
        vocab_size: None,
    }
}

pub(super) fn tokenizer(parts: TokenizerParts) -> Arc<Tokenizer> {
    Arc::new(Tokenizer::new(parts).unwrap())
}

/// Tokenizers of every kind, with small vocabularies.
pub(super) fn kinds() -> Vec<(&'static str, BpeSpec, Arc<Tokenizer>)> {
    let trained = train(SAMPLE.as_bytes(), 120);
    let mut whole = ranked(&[b"at", b"cat", b" c", b" cat", b"  ", b"    ", b"\n\n", b"ca", b"he"]);
    whole.whole_pieces = true;
    let characters = of_characters(" abcdefghijklmnoprstuvwxyz.,'é", &["at", "cat", " c", " cat"]);
    let dummy = |scope| Some(DummySpace { scope, before_space: true });
    let several = vec![split(r"\p{N}{1,3}"), split("[一-龥の]+"), split(LLAMA3)];
    vec![
        (
            "gpt2",
            trained.clone(),
            tokenizer(parts(trained.clone(), vec![StageSpec::ByteLevelRegex])),
        ),
        ("llama3", whole.clone(), tokenizer(parts(whole.clone(), vec![split(LLAMA3)]))),
        ("several stages", trained.clone(), tokenizer(parts(trained.clone(), several))),
        ("uncut", trained.clone(), tokenizer(parts(trained, Vec::new()))),
        (
            "characters",
            characters.clone(),
            tokenizer(TokenizerParts {
                dummy_space: dummy(Scope::First),
                ..parts(characters.clone(), Vec::new())
            }),
        ),
        (
            "words of characters",
            characters.clone(),
            tokenizer(TokenizerParts {
                dummy_space: Some(DummySpace { scope: Scope::Every, before_space: false }),
                ..parts(characters, vec![StageSpec::Metaspace])
            }),
        ),
    ]
}

pub(super) fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => prop::sample::select(vec![
            "cat", "the", "at", " ", "  ", "\n", "\t", "'s", "'", "é", "日本", "の", "1", "234", "\"",
            "{", "}:", ",", "\r\n", "\u{2028}", "🙂", "A", "ſ",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![" ", "a", "\n", "1", "cat"]).prop_flat_map(|one| {
            (1..40usize).prop_map(move |times| one.repeat(times))
        }),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

fn count(tokenizer: &Tokenizer, text: &str, part: PartOptions) -> usize {
    tokenizer.encode(text.as_bytes(), &EncodeOptions { part, ..Default::default() }).unwrap().len()
}

/// Where the characters of a text begin, and its end.
fn places(text: &str) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()
}

/// The longest beginning within a limit, or else the first character, by trying all.
fn split_by_trying(tokenizer: &Tokenizer, text: &str, limit: usize, part: PartOptions) -> usize {
    let places = places(text);
    let fits = |&&at: &&usize| at > 0 && count(tokenizer, &text[..at], part) <= limit;
    let found = places.iter().rev().find(fits);
    found.or(places.get(1)).copied().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn pieces_are_encoded_as_defined(text in texts()) {
        for (name, spec, tokenizer) in kinds() {
            let definition = Definition::new(&spec);
            let part = PartOptions { dummy_space: false, ..Default::default() };
            let expected: Vec<TokenId> = tokenizer
                .pretokenizer()
                .pieces(text.as_bytes())
                .flat_map(|piece| definition.encode(&text.as_bytes()[piece.start..piece.end]))
                .collect();
            // At first nothing is cached, and then every short piece.
            for method in [Method::Backtracking, Method::Backtracking, Method::Table, Method::Heap] {
                let options = EncodeOptions { method, part, ..Default::default() };
                let tokens = tokenizer.encode(text.as_bytes(), &options).unwrap();
                prop_assert_eq!(&tokens, &expected, "{} {:?}", name, method);
                let count = tokenizer.count(text.as_bytes(), &options).unwrap();
                prop_assert_eq!(count, expected.len(), "{} {:?}", name, method);
            }
            for method in [Method::Greedy, Method::Minimal] {
                let options = EncodeOptions { method, part, ..Default::default() };
                let tokens = tokenizer.encode(text.as_bytes(), &options).unwrap();
                prop_assert_eq!(tokenizer.decode(&tokens).unwrap(), text.as_bytes());
            }
            prop_assert_eq!(tokenizer.decode(&expected).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_limited_count_is_the_count_or_none(text in texts(), limit in 0..60usize) {
        for (name, _, tokenizer) in kinds() {
            let options = EncodeOptions::default();
            let count = tokenizer.encode(text.as_bytes(), &options).unwrap().len();
            prop_assert_eq!(tokenizer.count(text.as_bytes(), &options).unwrap(), count);
            let limited = tokenizer.count_up_to(text.as_bytes(), limit, &options).unwrap();
            prop_assert_eq!(limited, (count <= limit).then_some(count), "{}", name);
        }
    }

    #[test]
    fn appending_counts_every_text_on_the_way(text in texts(), back in 0..1000usize) {
        for (name, _, tokenizer) in kinds() {
            for pretokenize in [true, false] {
                let part = PartOptions { pretokenize, ..Default::default() };
                let mut encoder = AppendEncoder::new(tokenizer.clone(), part).unwrap();
                // Byte by byte: within a character the count is that of the text before it.
                for (at, byte) in text.bytes().enumerate() {
                    encoder.push(&[byte]).unwrap();
                    let complete = (0..=at + 1).rev().find(|&at| text.is_char_boundary(at)).unwrap();
                    prop_assert_eq!(encoder.complete(), complete);
                    prop_assert_eq!(encoder.count(), count(&tokenizer, &text[..complete], part), "{}", name);
                }
                // Back, and on in one go.
                let length = back % (text.len() + 1);
                encoder.truncate(length);
                prop_assert_eq!(encoder.text(), &text.as_bytes()[..length]);
                let complete = (0..=length).rev().find(|&at| text.is_char_boundary(at)).unwrap();
                prop_assert_eq!(encoder.count(), count(&tokenizer, &text[..complete], part));
                encoder.push(&text.as_bytes()[length..]).unwrap();
                prop_assert_eq!(encoder.count(), count(&tokenizer, &text, part));
                prop_assert_eq!(encoder.tokens().unwrap().len(), encoder.count());
            }
        }
    }

    #[test]
    fn prepending_counts_every_text_on_the_way(text in texts(), back in 0..1000usize) {
        for (name, _, tokenizer) in kinds() {
            for pretokenize in [true, false] {
                let part = PartOptions { pretokenize, ..Default::default() };
                let mut encoder = PrependEncoder::new(tokenizer.clone(), part).unwrap();
                for (at, byte) in text.bytes().enumerate().rev() {
                    encoder.push(&[byte]).unwrap();
                    let complete = (at..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap();
                    prop_assert_eq!(encoder.complete(), text.len() - complete);
                    let expected = count(&tokenizer, &text[complete..], part);
                    prop_assert_eq!(encoder.count().unwrap(), expected, "{}", name);
                }
                let length = back % (text.len() + 1);
                encoder.truncate(length);
                let start = text.len() - length;
                prop_assert_eq!(&encoder.text()[..], &text.as_bytes()[start..]);
                let complete = (start..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap();
                prop_assert_eq!(encoder.count().unwrap(), count(&tokenizer, &text[complete..], part));
                encoder.push(&text.as_bytes()[..start]).unwrap();
                prop_assert_eq!(encoder.count().unwrap(), count(&tokenizer, &text, part));
                prop_assert_eq!(encoder.tokens().unwrap().len(), encoder.count().unwrap());
            }
        }
    }

    #[test]
    fn intervals_count_as_texts_of_their_own(text in texts(), seed in any::<u64>()) {
        for (name, _, tokenizer) in kinds() {
            let options = [true, false].map(|cut| [true, false].map(|space| (cut, space)));
            for (pretokenize, dummy_space) in options.into_iter().flatten() {
                let part = PartOptions { pretokenize, dummy_space, ..Default::default() };
                let counter =
                    IntervalCounter::new(tokenizer.clone(), text.as_bytes(), part).unwrap();
                let places = places(&text);
                for (n, &start) in places.iter().enumerate() {
                    let end = places[n + (seed >> (n % 48)) as usize % (places.len() - n)];
                    prop_assert_eq!(
                        counter.count(start..end).unwrap(),
                        count(&tokenizer, &text[start..end], part),
                        "{} {:?} {}..{}", name, part, start, end
                    );
                }
            }
        }
    }

    #[test]
    fn splits_are_the_longest_beginnings(text in texts(), limit in 0..30usize) {
        for (name, _, tokenizer) in kinds() {
            for pretokenize in [true, false] {
                let part = PartOptions { pretokenize, ..Default::default() };
                let found = tokenizer.split_at(text.as_bytes(), limit, &part).unwrap();
                prop_assert_eq!(found, split_by_trying(&tokenizer, &text, limit, part), "{}", name);
            }
        }
    }
}

#[test]
fn the_space_before_a_text() {
    let expected = [
        (Scope::Text, " a b", " <s>a b"),
        (Scope::First, " a b", "<s>a b"),
        (Scope::Every, " a b", "<s> a b"),
    ];
    for (scope, plain, special) in expected {
        for (before_space, spaced) in [(true, "  a"), (false, " a")] {
            let spec = ranked(&[]);
            let tokenizer = tokenizer(TokenizerParts {
                specials: vec![SpecialToken::plain(TokenId(300), "<s>")],
                dummy_space: Some(DummySpace { scope, before_space }),
                ..parts(spec, Vec::new())
            });
            let options = EncodeOptions { special: SpecialPolicy::Allowed, ..Default::default() };
            let encode = |text: &str| {
                let tokens = tokenizer.encode(text.as_bytes(), &options).unwrap();
                String::from_utf8(tokenizer.decode(&tokens).unwrap()).unwrap()
            };
            assert_eq!(encode("a b"), plain);
            assert_eq!(encode("<s>a b"), special);
            assert_eq!(encode(" a"), spaced);
            assert_eq!(encode(""), "");
        }
    }
}

#[test]
fn special_tokens_are_found_forbidden_or_text() {
    let tokenizer = tokenizer(TokenizerParts {
        specials: vec![
            SpecialToken::plain(TokenId(300), "<a>"),
            SpecialToken::plain(TokenId(301), "<b>"),
            SpecialToken { normalized: true, ..SpecialToken::plain(TokenId(302), "é") },
        ],
        normalizer: Normalizer { compose: true, replaced: Vec::new() },
        vocab_size: Some(400),
        ..parts(ranked(&[b"ab"]), Vec::new())
    });
    let encode = |text: &str, special: SpecialPolicy| {
        let options = EncodeOptions { special, ..Default::default() };
        tokenizer
            .encode(text.as_bytes(), &options)
            .map(|tokens| tokens.iter().map(|token| token.0).collect::<Vec<_>>())
    };
    assert_eq!(encode("ab<a>", SpecialPolicy::Allowed), Ok(vec![256, 300]));
    assert_eq!(encode("ab<a>", SpecialPolicy::Text), Ok(vec![256, 60, 97, 62]));
    let only = SpecialPolicy::Only(vec!["<b>".into()]);
    assert_eq!(encode("<b><a>", only), Ok(vec![301, 60, 97, 62]));
    // Looked for once the text is composed.
    assert_eq!(encode("e\u{301}ab", SpecialPolicy::Allowed), Ok(vec![302, 256]));
    assert_eq!(
        encode("ab<b>", SpecialPolicy::Forbidden),
        Err(TextError::ForbiddenSpecial { name: "<b>".into(), at: 2 })
    );
    assert_eq!(tokenizer.decode(&[TokenId(300), TokenId(256)]), Ok(b"<a>ab".to_vec()));
    assert_eq!(tokenizer.token_bytes(TokenId(399)), Ok(&b""[..]));
    assert_eq!(
        tokenizer.token_bytes(TokenId(400)),
        Err(TextError::UnknownToken { token: TokenId(400), size: 400 })
    );
    let invalid = tokenizer.encode(
        b"ab<a>x\xFF",
        &EncodeOptions { special: SpecialPolicy::Allowed, ..Default::default() },
    );
    assert_eq!(invalid, Err(TextError::NotUtf8 { at: 6 }));
}

#[test]
fn texts_in_progress_refuse_what_cannot_be_exact() {
    let composing = tokenizer(TokenizerParts {
        normalizer: Normalizer { compose: true, replaced: Vec::new() },
        ..parts(ranked(&[]), vec![split(LLAMA3)])
    });
    let part = PartOptions::default();
    let mut encoder = AppendEncoder::new(composing.clone(), part).unwrap();
    encoder.push("é e".as_bytes()).unwrap();
    assert_eq!(encoder.push("x\u{301}".as_bytes()), Err(TextError::Normalized { at: 5 }));
    assert_eq!(encoder.text(), "é e".as_bytes());
    assert_eq!(encoder.push(b"a\xFF"), Err(TextError::NotUtf8 { at: 5 }));
    assert_eq!(encoder.count(), 4);
    let mut encoder = PrependEncoder::new(composing.clone(), part).unwrap();
    encoder.push(b"\xA9 e").unwrap();
    assert_eq!(encoder.count(), Ok(2));
    encoder.push(b"\xC3").unwrap();
    assert_eq!(encoder.count(), Ok(4));
    assert_eq!(encoder.push("ab\u{301}".as_bytes()), Err(TextError::Normalized { at: 2 }));
    assert_eq!(encoder.push(b"a\xFF"), Err(TextError::NotUtf8 { at: 1 }));
    assert_eq!(encoder.push(b"\x80\x80\x80\x80"), Err(TextError::NotUtf8 { at: 0 }));
    assert_eq!(encoder.count(), Ok(4));
    let text = "e\u{301}";
    let counter = IntervalCounter::new(composing.clone(), text.as_bytes(), part);
    assert_eq!(counter.err(), Some(TextError::Normalized { at: 1 }));
    assert_eq!(composing.split_at(text.as_bytes(), 5, &part), Err(TextError::Normalized { at: 1 }));
    let unchanged = PartOptions { normalize: false, ..part };
    let counter = IntervalCounter::new(composing, text.as_bytes(), unchanged).unwrap();
    assert_eq!(counter.count(0..3), Ok(3));
    assert_eq!(counter.count(0..2), Err(TextError::InsideCharacter { at: 2 }));
    let outside = TextError::OutOfRange { start: 2, end: 4, length: 3 };
    assert_eq!(counter.count(2..4), Err(outside));

    let with_text_tokens = tokenizer(TokenizerParts {
        specials: vec![SpecialToken { text: true, ..SpecialToken::plain(TokenId(300), "  ") }],
        ..parts(ranked(&[]), Vec::new())
    });
    assert!(!with_text_tokens.limits().is_empty());
    let refused = AppendEncoder::new(with_text_tokens, part).err();
    assert!(matches!(refused, Some(TextError::NotIncremental(_))), "{refused:?}");
}

#[test]
fn bytes_that_are_not_utf8() {
    let uncut = tokenizer(parts(ranked(&[b"\xFF\xFE"]), Vec::new()));
    let options = EncodeOptions::default();
    assert_eq!(uncut.encode(b"\xFF\xFE", &options).unwrap(), [TokenId(256)]);
    let counter = IntervalCounter::new(uncut, b"\xFF\xFE\xFE", options.part).unwrap();
    assert_eq!(counter.count(0..2), Ok(1));
    assert_eq!(counter.count(1..3), Ok(2));
    let cut = tokenizer(parts(ranked(&[]), vec![split(LLAMA3)]));
    let tokens = cut.encode(b"a\xFFb", &options).unwrap();
    assert_eq!(cut.decode(&tokens).unwrap(), b"a\xFFb");
    assert_eq!(cut.split_at(b"ab\xE6\x97", 9, &options.part), Err(TextError::NotUtf8 { at: 2 }));
}

/// Texts that make a naive implementation quadratic. They are a hundred times smaller than in the
/// benchmark, but some places are checked by brute force.
#[test]
fn long_runs() {
    for (name, _, tokenizer) in kinds() {
        for (run, tail) in [(" ", "a"), ("\n", " x"), ("a", "b"), ("1", " "), (" \n", "\t")] {
            let text = format!("x{}{tail}", run.repeat(700));
            let part = PartOptions { dummy_space: false, ..Default::default() };
            let mut append = AppendEncoder::new(tokenizer.clone(), part).unwrap();
            let mut prepend = PrependEncoder::new(tokenizer.clone(), part).unwrap();
            for at in 0..text.len() {
                append.push(&text.as_bytes()[at..=at]).unwrap();
                let from = text.len() - 1 - at;
                prepend.push(&text.as_bytes()[from..=from]).unwrap();
                if at % 97 == 0 || at + 3 > text.len() {
                    assert_eq!(append.count(), count(&tokenizer, &text[..=at], part), "{name}");
                    assert_eq!(
                        prepend.count(),
                        Ok(count(&tokenizer, &text[from..], part)),
                        "{name}"
                    );
                }
            }
            let counter = IntervalCounter::new(tokenizer.clone(), text.as_bytes(), part).unwrap();
            for start in (0..text.len()).step_by(113) {
                for end in (start..=text.len()).step_by(101) {
                    let expected = count(&tokenizer, &text[start..end], part);
                    assert_eq!(counter.count(start..end), Ok(expected), "{name} {start}..{end}");
                }
            }
        }
    }
}

#[test]
fn tokens_that_no_text_has() {
    let tokens: [&[u8]; 6] = [b" I", b" I'", b" b", b"a b", b"xyz", b"\xC3\xA9\xC3"];
    let cut = vec![split(r" ?\p{L}+('m)?|'")];
    let unused = tokenizer(parts(ranked(&tokens), cut.clone())).unused_tokens();
    // By itself ` I'` is cut in two; not so ` I'm`. What spans two words is in no text.
    let ids = |ids: &[u32]| ids.iter().copied().map(TokenId).collect::<Vec<_>>();
    assert_eq!(unused.unmerged, ids(&[260, 261]));
    assert_eq!(unused.unreachable, ids(&[259, 260, 261]));

    let whole = BpeSpec { whole_pieces: true, ..ranked(&tokens) };
    let unused = tokenizer(parts(whole, cut)).unused_tokens();
    assert_eq!(unused.unmerged, ids(&[260, 261]));
    assert_eq!(unused.unreachable, ids(&[259, 261]));

    let uncut = tokenizer(parts(ranked(&tokens), Vec::new())).unused_tokens();
    assert_eq!(uncut.unreachable, ids(&[260, 261]));
}

#[test]
fn a_token_that_is_one_piece_is_the_encoding_of_its_text() {
    for (name, _, tokenizer) in kinds() {
        let table = tokenizer.table();
        let tokens = (0..table.width() as u32).map(TokenId);
        let mut found = 0;
        for token in tokens.filter(|&token| table.is_reachable(token)) {
            let Ok(text) = std::str::from_utf8(table.text(token)) else { continue };
            if !table.is_byte_fallback(token) && tokenizer.is_one_piece(text) {
                assert!(tokenizer.is_written("", text, ""), "{name}: {text:?}");
                found += 1;
            }
        }
        assert!(found > 20, "{name}: {found}");
    }
}
