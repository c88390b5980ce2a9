//! Many texts, texts with tokens between them, and places: each beside `encode`.

use proptest::prelude::*;

use super::tests::{kinds, parts, split, texts, tokenizer};
use super::*;
use crate::bpe::testing::ranked;

fn allowed() -> EncodeOptions {
    EncodeOptions { special: SpecialPolicy::Allowed, ..Default::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The tokens' places follow each other, and each holds the token's text.
    #[test]
    fn tokens_lie_where_their_bytes_are(text in texts()) {
        for (name, _, tokenizer) in kinds() {
            let options = EncodeOptions::default();
            let located = tokenizer.encode_with_offsets(text.as_bytes(), &options).unwrap();
            let expected = tokenizer.encode(text.as_bytes(), &options).unwrap();
            prop_assert_eq!(&located.tokens, &expected, "{}", name);
            let mut at = 0;
            for (&token, &(start, end)) in located.tokens.iter().zip(&located.offsets) {
                prop_assert!(start <= at && at <= end, "{name} {start} {at} {end}");
                let spelled = tokenizer.token_bytes(token).unwrap();
                let lies = &text.as_bytes()[start..end];
                // Before the text stands a space that is not in it.
                prop_assert!(spelled == lies || (start == 0 && spelled == [b" ", lies].concat()));
                at = end;
            }
            prop_assert_eq!(at, text.len());
        }
    }

    #[test]
    fn batches_are_their_texts(texts in prop::collection::vec(texts(), 0..5), long in any::<bool>()) {
        let longer = "the cat sat. ".repeat(if long { 4_000 } else { 0 });
        let batch: Vec<&[u8]> =
            texts.iter().map(String::as_bytes).chain([longer.as_bytes()]).collect();
        for (name, _, tokenizer) in kinds() {
            let options = EncodeOptions::default();
            let expected: Vec<_> =
                batch.iter().map(|text| tokenizer.encode(text, &options).unwrap()).collect();
            for threads in [None, Some(1), Some(2), Some(9)] {
                let encoded = tokenizer.encode_batch(&batch, &options, threads);
                prop_assert_eq!(encoded.as_ref(), Ok(&expected), "{}", name);
            }
        }
    }

    /// As if the tokens had been found in the whole text, which has no other.
    #[test]
    fn parts_are_as_if_the_tokens_were_found(
        texts in prop::collection::vec((texts(), prop::option::of(0..3usize)), 0..5),
    ) {
        let names = ["<a>", "<l>", "<r>"];
        for scope in [None, Some(Scope::First), Some(Scope::Every)] {
            let tokenizer = tokenizer(TokenizerParts {
                specials: vec![
                    SpecialToken::plain(TokenId(300), names[0]),
                    SpecialToken { lstrip: true, ..SpecialToken::plain(TokenId(301), names[1]) },
                    SpecialToken { rstrip: true, ..SpecialToken::plain(TokenId(302), names[2]) },
                    SpecialToken { text: true, ..SpecialToken::plain(TokenId(303), "\t") },
                ],
                normalizer: Normalizer { compose: true, replaced: Vec::new() },
                dummy_space: scope.map(|scope| DummySpace { scope, before_space: false }),
                ..parts(ranked(&[b"at", b"cat", b" c"]), vec![split(r" ?[a-z]+|\s+|[^a-z\s]+")])
            });
            let mut joined = String::new();
            let mut given = Vec::new();
            for (text, name) in &texts {
                joined.push_str(text);
                given.push(PromptPart::Text(text.as_bytes()));
                if let Some(place) = *name {
                    joined.push_str(names[place]);
                    given.push(PromptPart::Token(TokenId(300 + place as u32)));
                }
            }
            let expected = tokenizer.encode(joined.as_bytes(), &allowed());
            prop_assert_eq!(tokenizer.encode_parts(&given), expected);
        }
    }
}

#[test]
fn every_part_is_a_text_where_no_token_is_ever_found() {
    let tokenizer = tokenizer(TokenizerParts {
        dummy_space: Some(DummySpace { scope: Scope::Text, before_space: true }),
        vocab_size: Some(400),
        ..parts(ranked(&[b" a"]), Vec::new())
    });
    let given = [
        PromptPart::Token(TokenId(300)),
        PromptPart::Text(b""),
        PromptPart::Text(b"a"),
        PromptPart::Text(b"a"),
        PromptPart::Token(TokenId(300)),
        PromptPart::Text(b"a"),
    ];
    let expected = [300, 256, 97, 300, 256].map(TokenId);
    assert_eq!(tokenizer.encode_parts(&given), Ok(expected.to_vec()));
    let unknown = [PromptPart::Token(TokenId(400))];
    let error = TextError::UnknownToken { token: TokenId(400), size: 400 };
    assert_eq!(tokenizer.encode_parts(&unknown), Err(error));
}

#[test]
fn the_first_text_with_an_error_is_named() {
    let tokenizer = tokenizer(TokenizerParts {
        specials: vec![SpecialToken::plain(TokenId(300), "<a>")],
        ..parts(ranked(&[]), Vec::new())
    });
    let options = EncodeOptions { special: SpecialPolicy::Forbidden, ..Default::default() };
    let long = "x".repeat(100_000);
    let batch: [&[u8]; 4] = [b"ok", b"a<a>", long.as_bytes(), b"<a>"];
    let error = tokenizer.encode_batch(&batch, &options, Some(3)).unwrap_err();
    assert_eq!(error.byte(), Some(1));
    assert!(error.to_string().starts_with("text 1 of the batch: "), "{error}");
}

#[test]
fn places_of_what_is_found_and_of_what_is_changed() {
    let tokenizer = tokenizer(TokenizerParts {
        specials: vec![
            SpecialToken { lstrip: true, ..SpecialToken::plain(TokenId(300), "<a>") },
            SpecialToken { normalized: true, ..SpecialToken::plain(TokenId(301), "é") },
        ],
        normalizer: Normalizer { compose: true, replaced: vec![("▁".into(), " ".into())] },
        dummy_space: Some(DummySpace { scope: Scope::Text, before_space: true }),
        ..parts(ranked(&[]), Vec::new())
    });
    let located = |text: &str| {
        let located = tokenizer.encode_with_offsets(text.as_bytes(), &allowed()).unwrap();
        let ids: Vec<u32> = located.tokens.iter().map(|token| token.0).collect();
        (ids, located.offsets)
    };
    assert_eq!(
        located("x \t<a>▁e\u{301}"),
        (vec![32, 120, 300, 32, 301], vec![(0, 0), (0, 1), (1, 6), (6, 9), (9, 12)])
    );
    assert_eq!(located("<a>y"), (vec![32, 300, 121], vec![(0, 0), (0, 3), (3, 4)]));
    assert_eq!(located(""), (vec![], vec![]));
}
