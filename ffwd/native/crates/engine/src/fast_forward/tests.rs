//! Forced tokens with a tokenizer that takes the longest token at each place.

use std::sync::Arc;

use proptest::prelude::RngExt;

use super::*;
use crate::engine::{Encoder, Engine, EngineConfig};
use ffwd_automaton::{Whitespace, WhitespaceMode};
use ffwd_tokenizer::vocabulary::testing::{encode_greedily, seeded, vocabulary, vocabulary_of};

struct Greedy(Vocabulary);

impl Encoder for Greedy {
    fn encode(&self, text: &str) -> Result<Vec<TokenId>, EncodeError> {
        Ok(encode_greedily(&self.0, text.as_bytes()))
    }
}

fn engine(tokens: &[&str]) -> Arc<Engine> {
    let encoder = Box::new(Greedy(vocabulary_of(tokens)));
    Arc::new(Engine::new(vocabulary_of(tokens), Some(encoder), EngineConfig::default()))
}

/// A matcher for a pattern that has taken these tokens.
fn matcher(tokens: &[&str], pattern: &str, taken: &[&str]) -> Matcher {
    let compiled = engine(tokens).compile_regex(pattern).unwrap();
    let mut matcher = Matcher::new(Arc::new(compiled)).unwrap();
    for text in taken {
        let trie = matcher.compiled().engine.vocabulary().trie();
        let token = trie.tokens_at(trie.find(text.as_bytes()).unwrap())[0];
        assert!(matcher.accept(token).unwrap());
    }
    matcher
}

fn texts(matcher: &Matcher, options: FastForward) -> Vec<String> {
    let vocabulary = matcher.compiled().engine.vocabulary();
    fast_forward_tokens(matcher, &options)
        .unwrap()
        .into_iter()
        .map(|token| String::from_utf8(vocabulary.text(token).to_vec()).unwrap())
        .collect()
}

fn backing_off(backoff: Backoff) -> FastForward {
    FastForward { max_tokens: None, method: Method::Backoff(backoff) }
}

fn default() -> FastForward {
    backing_off(Backoff::default())
}

fn backoff(tokens: usize) -> FastForward {
    backing_off(Backoff { tokens, ..Backoff::default() })
}

fn conservative() -> FastForward {
    backing_off(Backoff { conservative: true, ..Backoff::default() })
}

const ORDER: [&str; 4] = ["say ", "order", "orderId", "ord"];

#[test]
fn a_token_that_may_go_on_is_left_out() {
    let forked = matcher(&ORDER, "say order(Id|!)", &[]);
    assert_eq!(forced_bytes(&forked, 100).unwrap(), b"say order");
    assert_eq!(texts(&forked, default()), ["say "]);
    assert_eq!(texts(&forked, conservative()), ["say "]);
    assert_eq!(texts(&forked, backoff(1)), ["say "]);
    assert_eq!(texts(&forked, backoff(0)), ["say ", "order"]);
}

#[test]
fn only_the_conservative_variant_does_not_ask_the_grammar() {
    let forked = matcher(&ORDER, "say order[!?]", &[]);
    assert_eq!(texts(&forked, default()), ["say ", "order"]);
    assert_eq!(texts(&forked, conservative()), ["say "]);
    assert_eq!(
        texts(&forked, backing_off(Backoff { tokens: 0, bytes: None, conservative: true })),
        ["say ", "order"]
    );
}

#[test]
fn a_longer_token_may_begin_within_a_token() {
    let tokens = ["ab", "bcd"];
    let forked = matcher(&tokens, "xabc(d|e)", &[]);
    assert_eq!(texts(&forked, backoff(2)), ["x"]);
    assert_eq!(texts(&forked, backoff(1)), ["x", "ab", "c"]);
    // With `d` refused, nothing goes on from `bc`.
    let straight = matcher(&tokens, "xabc(f|e)", &[]);
    assert_eq!(texts(&straight, backoff(2)), ["x", "ab", "c"]);
}

#[test]
fn the_longest_suffix_that_goes_on_decides() {
    // Both `c` and `bc` go on; the token that holds the `b` must be left out too.
    let forked = matcher(&["ab", "bcd", "cd"], "xabc(d|e)", &[]);
    assert_eq!(texts(&forked, default()), ["x"]);
    assert_eq!(texts(&forked, backoff(1)), ["x", "ab"]);
}

#[test]
fn the_search_may_be_bounded_in_bytes() {
    let forked = matcher(&ORDER, "say order(Id|!)", &[]);
    let bytes = |bytes| backing_off(Backoff { bytes: Some(bytes), tokens: 0, conservative: false });
    for (most, expected) in [(0, 2), (1, 2), (4, 2), (5, 1), (7, 1), (100, 1)] {
        assert_eq!(texts(&forked, bytes(most)).len(), expected, "{most} bytes");
    }
}

#[test]
fn what_is_forced_up_to_the_end_is_forced_whole() {
    let whole = matcher(&["say ", "order", "orderId"], "say order", &[]);
    // The text can only end here, so no longer token comes.
    assert_eq!(texts(&whole, default()), ["say ", "order"]);
    assert_eq!(texts(&whole, conservative()), ["say "]);
    let mut done = whole;
    done.accept_all(&fast_forward_tokens(&done, &backoff(0)).unwrap()).unwrap();
    assert!(done.is_accepting());
    assert!(texts(&done, default()).is_empty());
    let end = done.compiled().engine.vocabulary().eos()[0];
    assert!(done.accept(end).unwrap());
    assert!(texts(&done, default()).is_empty());
    assert!(forced_bytes(&done, 9).unwrap().is_empty());
}

#[test]
fn nothing_is_forced_past_a_possible_end() {
    let maybe = matcher(&["ab", "abc"], "ab(c)?", &[]);
    assert_eq!(forced_bytes(&maybe, 9).unwrap(), b"ab");
    assert!(texts(&maybe, default()).is_empty());
    let ended = matcher(&["ab", "abc"], "ab(c)?", &["ab"]);
    assert!(forced_bytes(&ended, 9).unwrap().is_empty());
}

#[test]
fn at_most_so_many_tokens_are_returned() {
    let straight = matcher(&["ab"], "ababab!", &[]);
    for most in 0..6 {
        let options = FastForward { max_tokens: Some(most), ..default() };
        assert_eq!(texts(&straight, options).len(), most.min(4));
    }
}

#[test]
fn the_last_token_is_encoded_with_what_follows() {
    // After `x` the tokenizer writes `yz` as one token; after its own `xy` it would not.
    let tokens = ["xy", "yz", "zz"];
    let after = |taken: &[&str], pattern: &str| texts(&matcher(&tokens, pattern, taken), default());
    // `x` and `yzz` together are `xy`, `zz`: the `x` does not stay, so `yzz` is encoded alone.
    assert_eq!(after(&["x"], "xyzz!"), ["yz", "z", "!"]);
    // `xy` stays what it is.
    assert_eq!(after(&["xy"], "xyzz!"), ["zz", "!"]);
    assert_eq!(after(&["w"], "wyzz!"), ["yz", "z", "!"]);
}

#[test]
fn forced_bytes_end_between_characters() {
    let accents = matcher(&[], "é€(a|b)", &[]);
    for (most, expected) in [(0, ""), (1, ""), (2, "é"), (3, "é"), (4, "é"), (5, "é€"), (9, "é€")]
    {
        assert_eq!(forced_bytes(&accents, most).unwrap(), expected.as_bytes(), "{most}");
    }
    // Both characters begin with the same byte, which alone is no text.
    let half = matcher(&[], "x(é|è)", &[]);
    assert_eq!(forced_bytes(&half, 9).unwrap(), b"x");
    let mut within = matcher(&[], "é!", &[]);
    within.accept(TokenId(0xC3)).unwrap();
    assert!(texts(&within, default()).is_empty());
    within.accept(TokenId(0xA9)).unwrap();
    assert_eq!(texts(&within, default()), ["!"]);
}

#[test]
fn without_a_tokenizer_tokens_cannot_be_forced() {
    let engine = Engine::new(vocabulary_of(&[]), None, EngineConfig::default());
    assert!(engine.encode("a").unwrap().is_none());
    let matcher = Matcher::new(Arc::new(Arc::new(engine).compile_regex("ab").unwrap())).unwrap();
    let error = fast_forward_tokens(&matcher, &default()).unwrap_err();
    assert!(matches!(error, FastForwardError::NoEncoder));
    assert_eq!(forced_bytes(&matcher, 9).unwrap(), b"ab", "bytes need none");
}

/// A tokenizer that does what it should not.
struct Bad(Option<Vec<TokenId>>);

impl Encoder for Bad {
    fn encode(&self, text: &str) -> Result<Vec<TokenId>, EncodeError> {
        let failed = || EncodeError { text: text.into(), message: "no".into() };
        self.0.clone().ok_or_else(failed)
    }
}

#[test]
fn a_tokenizer_is_believed_as_far_as_the_grammar_goes() {
    let ask = |answer: Option<Vec<u32>>| {
        let encoder = Bad(answer.map(|ids| ids.into_iter().map(TokenId).collect()));
        let engine =
            Engine::new(vocabulary_of(&["ab"]), Some(Box::new(encoder)), EngineConfig::default());
        let compiled = Arc::new(engine).compile_regex("abab").unwrap();
        fast_forward_tokens(&Matcher::new(Arc::new(compiled)).unwrap(), &default())
    };
    let ids = |answer: Vec<u32>| -> Vec<u32> {
        ask(Some(answer)).unwrap().into_iter().map(|token| token.0).collect()
    };
    assert_eq!(ids(vec![256, 256]), [256, 256]);
    assert_eq!(ids(vec![256, 97, 97]), [256, 97]);
    assert_eq!(ids(vec![98, 256]), [] as [u32; 0]);
    assert_eq!(ids(vec![]), [] as [u32; 0]);
    match ask(None).unwrap_err() {
        FastForwardError::Encode(error) => assert_eq!(error.text, "abab"),
        other => panic!("{other:?}"),
    }
}

/// Whatever the options: forced tokens spell a beginning of the forced bytes, and are accepted.
#[test]
fn forced_tokens_are_forced() {
    let encoder = Box::new(Greedy(vocabulary(41, 400)));
    let engine = Arc::new(Engine::new(vocabulary(41, 400), Some(encoder), EngineConfig::default()));
    let schema = r#"{"type": "object", "properties": {"name": {"const": "née"}, "kind": {"enum": ["ab", "abc"]},
        "a": {"type": "array", "items": {"type": "null"}, "minItems": 2}},
        "required": ["name", "kind", "a"], "additionalProperties": false}"#;
    let whitespace = Whitespace { mode: WhitespaceMode::Compact };
    let compiled = Arc::new(engine.compile_json_schema(schema, whitespace).unwrap());
    let variants = [
        default(),
        backoff(0),
        backoff(1),
        conservative(),
        backing_off(Backoff { bytes: Some(7), ..Backoff::default() }),
    ];
    let mut rng = seeded(1);
    let mut forced = 0;
    for _ in 0..20 {
        let mut matcher = Matcher::new(compiled.clone()).unwrap();
        while !matcher.is_terminated() && matcher.tokens().len() < 60 {
            let bytes = forced_bytes(&matcher, 1000).unwrap();
            let mut longest = Vec::new();
            for options in &variants {
                let tokens = fast_forward_tokens(&matcher, options).unwrap();
                let spelled: Vec<u8> = tokens
                    .iter()
                    .flat_map(|&token| engine.vocabulary().text(token).to_vec())
                    .collect();
                assert!(bytes.starts_with(&spelled));
                assert_eq!(matcher.validate(&tokens).unwrap(), tokens.len());
                if tokens.len() > longest.len() {
                    longest = tokens;
                }
            }
            forced += longest.len();
            assert!(matcher.accept_all(&longest).unwrap());
            let allowed = matcher.allowed().unwrap();
            matcher.accept(allowed[rng.random_range(0..allowed.len())]).unwrap();
        }
    }
    assert!(forced > 50, "only {forced} tokens were forced");
}

#[test]
fn what_is_forced_stays_so_when_all_that_was_built_is_let_go() {
    let pattern = "(ab+cd|abxy[0-9]ef)(gh|gi){3}";
    let tokens = ["ab", "cd", "xy", "ef", "gh"];
    let mut one = matcher(&tokens, pattern, &[]);
    let mut other = matcher(&tokens, pattern, &[]);
    let mut rng = seeded(21);
    for _ in 0..200 {
        if rng.random_range(0..3) == 0 {
            other.compiled().begin_anew();
        }
        assert_eq!(forced_bytes(&one, 50).unwrap(), forced_bytes(&other, 50).unwrap());
        assert_eq!(texts(&one, default()), texts(&other, default()));
        let allowed = one.allowed().unwrap();
        match allowed.get(rng.random_range(0..allowed.len().max(1))) {
            Some(&token) => assert!(one.accept(token).unwrap() && other.accept(token).unwrap()),
            None => {
                one.reset().unwrap();
                other.reset().unwrap();
            }
        }
    }
}
