use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::testing::{any_bytes, start};
use super::{Decoder, DecoderError, TextStart, UnknownToken};
use crate::vocabulary::TokenId;

fn ids(ids: &[u32]) -> Vec<TokenId> {
    ids.iter().copied().map(TokenId).collect()
}

const TOKENS: [Option<&[u8]>; 6] =
    [Some(b"<s>"), Some(b" a"), Some(b"\xE4\xB8"), Some(b"\x96"), None, Some(b"")];

fn decoder(strip_first_space: bool) -> Decoder {
    Decoder::new(&TOKENS, &[TokenId(0)], start(strip_first_space)).unwrap()
}

#[test]
fn tokens_are_put_together() {
    let decoder = decoder(false);
    assert_eq!(decoder.decode(&ids(&[0, 1, 2, 3, 5, 1]), true).unwrap(), " a世 a");
    assert_eq!(decoder.decode(&ids(&[0, 1]), false).unwrap(), "<s> a");
    assert_eq!(decoder.decode_bytes(&ids(&[2]), true).unwrap(), b"\xE4\xB8");
    assert_eq!(decoder.decode(&[], true).unwrap(), "");
    assert_eq!(decoder.vocab_size(), 6);
}

#[test]
fn only_a_space_that_the_text_begins_with_is_dropped() {
    let decoder = decoder(true);
    assert_eq!(decoder.decode(&ids(&[0, 1, 1]), true).unwrap(), "a a");
    assert_eq!(decoder.decode(&ids(&[5, 1]), true).unwrap(), "a");
    assert_eq!(decoder.decode(&ids(&[0, 1]), false).unwrap(), "<s> a");
    assert_eq!(decoder.decode(&ids(&[3, 1]), true).unwrap(), "\u{FFFD} a");
}

#[test]
fn unknown_ids_are_named() {
    let decoder = decoder(false);
    let unknown = decoder.decode(&ids(&[1, 4]), true).unwrap_err();
    assert_eq!(unknown, UnknownToken::NoToken { token: TokenId(4) });
    let unknown = decoder.decode(&ids(&[1, 6]), true).unwrap_err();
    assert_eq!(unknown, UnknownToken::OutOfRange { token: TokenId(6), size: 6 });
    assert_eq!(unknown.token(), TokenId(6));
}

#[test]
fn special_ids_must_be_tokens() {
    assert_eq!(
        Decoder::new(&TOKENS, &[TokenId(6)], start(false)).unwrap_err(),
        DecoderError::SpecialOutOfRange { special: TokenId(6), size: 6 }
    );
    assert_eq!(
        Decoder::new(&TOKENS, &[TokenId(4)], start(false)).unwrap_err(),
        DecoderError::SpecialWithoutToken { special: TokenId(4) }
    );
}

#[test]
fn a_token_may_be_different_where_a_text_begins() {
    let first = |id| TextStart {
        strip_first_space: true,
        first_tokens: [(TokenId(id), b" b".as_slice().into())].into_iter().collect(),
        ..TextStart::default()
    };
    let decoder = Decoder::new(&TOKENS, &[TokenId(0)], first(1)).unwrap();
    assert_eq!(decoder.decode(&ids(&[0, 5, 1, 1]), true).unwrap(), " b a");
    assert_eq!(decoder.decode(&ids(&[0, 1]), false).unwrap(), "<s> a");
    assert_eq!(
        Decoder::new(&TOKENS, &[], first(6)).unwrap_err(),
        DecoderError::FirstOutOfRange { token: TokenId(6), size: 6 }
    );
}

#[test]
fn a_text_may_begin_with_a_later_token() {
    let tokens: [Option<&[u8]>; 2] = [Some(b" "), Some(b" a")];
    for (every, expected) in [(false, "  a"), (true, "a")] {
        let start = TextStart {
            strip_first_space: true,
            strip_every_first_space: every,
            ..TextStart::default()
        };
        let decoder = Decoder::new(&tokens, &[], start).unwrap();
        assert_eq!(decoder.decode(&ids(&[0, 0, 1]), true).unwrap(), expected);
    }
}

#[test]
fn special_tokens_are_listed() {
    let decoder = decoder(false);
    assert_eq!(decoder.specials().collect::<Vec<_>>(), [(TokenId(0), b"<s>".as_slice())]);
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    /// However the bytes are cut into tokens.
    #[test]
    fn malformed_bytes_are_replaced_in_the_whole(
        tokens in proptest::collection::vec(any_bytes(), 0..8)
    ) {
        let table: Vec<Option<Vec<u8>>> = tokens.iter().cloned().map(Some).collect();
        let decoder = Decoder::new(&table, &[], start(false)).unwrap();
        let all: Vec<TokenId> = (0..table.len() as u32).map(TokenId).collect();
        let bytes = tokens.concat();
        prop_assert_eq!(decoder.decode(&all, true).unwrap(), String::from_utf8_lossy(&bytes));
        prop_assert_eq!(decoder.decode_bytes(&all, true).unwrap(), bytes);
    }
}
