//! Small vocabularies for the tests of every layer that knows tokens.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "only tests use it")]

use proptest::prelude::RngExt;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::{TokenId, Vocabulary};

/// Chosen for what they cross: the ends of strings, members, escapes and characters.
const CROSSING: [&[u8]; 44] = [
    b"\"",
    b"\":",
    b"\",",
    b"\":\"",
    b"\",\"",
    b"{\"",
    b"{\"a",
    b"{\"a\":",
    b"{\"a\":1",
    b"\":1,\"",
    b"\":1,\"a\"",
    b"a\":1,\"a\":",
    b"\"b\":2,\"b\":",
    b"x\":0,\"x\":0",
    b"x\":0,\"y\":0,\"x\":",
    b"\"x\":0,\"x\":0}",
    b",\"b\":",
    b"},",
    b"}}",
    b"]}",
    b"[]",
    b"{}",
    b"[[",
    b"],[",
    b"\\u",
    b"\\u00",
    b"\\u001",
    b"\\n\"",
    b"\\\\",
    b"\\\"",
    b"n\\",
    b"\"\"",
    b"\xC3",
    b"\xC3\xA9",
    b"\xA9",
    b"\xA9\"",
    b"a\xE2\x82",
    b"\xAC\":",
    b"\xF0\x9F",
    b"\x98\x80\"",
    b"true",
    b"null,",
    b"-1.5e",
    b", \"",
];

/// What the random tokens are made of.
const PIECES: [&str; 32] = [
    "\"", "\":", "\",\"", ":", ",", "{", "}", "[", "]", " ", "\\", "\\u", "00", "1f", "a", "b",
    "name", "é", "€", "😀", "\n", "1", "0", ".5", "-", "e", "tr", "ue", "null", "x", "kind", "ab",
];

/// A generator that gives the same numbers in every run.
pub fn seeded(seed: u8) -> TestRng {
    TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32])
}

/// All single bytes, the crossing tokens, `random` random ones (some twice), tokens that are no
/// text, two end tokens, and a few ids more than there are tokens.
pub fn vocabulary(seed: u8, random: usize) -> Vocabulary {
    let mut rng = seeded(seed);
    let mut tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|byte| Some(vec![byte])).collect();
    tokens.extend(CROSSING.iter().map(|token| Some(token.to_vec())));
    tokens.extend([None, Some(b"<end>".to_vec()), Some(Vec::new()), None]);
    let eos = [TokenId(256 + CROSSING.len() as u32 + 1), TokenId(256 + CROSSING.len() as u32 + 3)];
    for at in 0..random {
        let mut bytes = Vec::new();
        // Many tokens begin with the same mark, so that subtrees are large.
        match at % 5 {
            0 => bytes.push(b'"'),
            1 => bytes.push(b'a'),
            _ => {}
        }
        for _ in 0..rng.random_range(1..6) {
            bytes.extend(PIECES[rng.random_range(0..PIECES.len())].bytes());
        }
        if at % 7 == 0 {
            // Cut anywhere, also inside of a character.
            let from = rng.random_range(0..bytes.len());
            bytes.drain(..from);
        }
        tokens.push(Some(bytes));
    }
    let texts: Vec<Option<&[u8]>> = tokens.iter().map(Option::as_deref).collect();
    Vocabulary::new(&texts, &eos, Some(texts.len() + 5)).unwrap()
}

/// Exactly the single bytes and these tokens, in this order, and then one end token.
pub fn vocabulary_of(tokens: &[&str]) -> Vocabulary {
    let bytes: Vec<[u8; 1]> = (0..=255u8).map(|byte| [byte]).collect();
    let mut texts: Vec<Option<&[u8]>> = bytes.iter().map(|byte| Some(&byte[..])).collect();
    texts.extend(tokens.iter().map(|token| Some(token.as_bytes())));
    texts.push(None);
    let eos = TokenId(texts.len() as u32 - 1);
    Vocabulary::new(&texts, &[eos], None).unwrap()
}

/// The longest token at each place: like a tokenizer, the bytes of a text decide its tokens, and
/// more text may change the last of them.
pub fn encode_greedily(vocabulary: &Vocabulary, text: &[u8]) -> Vec<TokenId> {
    let trie = vocabulary.trie();
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let longest = (1..=rest.len().min(vocabulary.max_token_bytes()))
            .rev()
            .find_map(|length| {
                let node = trie.find(&rest[..length])?;
                Some((length, *trie.tokens_at(node).first()?))
            })
            .unwrap();
        tokens.push(longest.1);
        rest = &rest[longest.0..];
    }
    tokens
}
