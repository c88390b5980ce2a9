//! Byte-pair encodings for tests, and an encoder that follows the definition without any fast
//! algorithm.

use std::collections::HashMap;

use super::{Base, BpeSpec, Merges};
use crate::vocabulary::TokenId;

/// The first ids are those of the bytes, in order, and then come these tokens, ranked in this
/// order.
pub fn ranked(tokens: &[&[u8]]) -> BpeSpec {
    let mut pieces: Vec<(TokenId, Box<[u8]>)> =
        (0..=255u8).map(|byte| (TokenId(u32::from(byte)), Box::from([byte]))).collect();
    pieces.extend((256..).map(TokenId).zip(tokens.iter().map(|&text| Box::from(text))));
    BpeSpec {
        base: Base::Bytes,
        byte_tokens: std::array::from_fn(|byte| Some(TokenId(byte as u32))),
        merges: Merges::Ranked(pieces.iter().map(|(token, _)| *token).collect()),
        pieces,
        whole_pieces: false,
        missing_from: None,
    }
}

/// Byte tokens first, and then these characters and tokens, ranked in this order.
pub fn of_characters(characters: &str, tokens: &[&str]) -> BpeSpec {
    let texts = characters.chars().map(String::from).chain(tokens.iter().map(|t| t.to_string()));
    let pieces: Vec<(TokenId, Box<[u8]>)> =
        (256..).map(TokenId).zip(texts.map(|text| text.into_bytes().into())).collect();
    BpeSpec {
        base: Base::Characters,
        byte_tokens: std::array::from_fn(|byte| Some(TokenId(byte as u32))),
        merges: Merges::Ranked(pieces.iter().map(|(token, _)| *token).collect()),
        pieces,
        whole_pieces: false,
        missing_from: None,
    }
}

/// Learns merges from a text: again and again the most frequent pair becomes a token, never
/// across a space. The merges are listed.
pub fn train(text: &[u8], merges: usize) -> BpeSpec {
    let mut spec = ranked(&[]);
    let mut words: HashMap<Vec<TokenId>, usize> = HashMap::new();
    for word in text.split_inclusive(|&byte| byte == b' ') {
        *words.entry(word.iter().map(|&byte| TokenId(u32::from(byte))).collect()).or_default() += 1;
    }
    let mut words: Vec<(Vec<TokenId>, usize)> = words.into_iter().collect();
    words.sort_unstable();
    let mut listed = Vec::new();
    for _ in 0..merges {
        let mut counts: HashMap<(TokenId, TokenId), usize> = HashMap::new();
        for (word, count) in &words {
            for pair in word.windows(2) {
                *counts.entry((pair[0], pair[1])).or_default() += count;
            }
        }
        let best = counts.into_iter().max_by_key(|&(pair, count)| (count, std::cmp::Reverse(pair)));
        let Some(((left, right), _)) = best else { break };
        let merged = TokenId(spec.pieces.len() as u32);
        let text = [&*spec.pieces[left.index()].1, &*spec.pieces[right.index()].1].concat();
        spec.pieces.push((merged, text.into()));
        listed.push((left, right, merged));
        for (word, _) in &mut words {
            replace(word, left, right, merged);
        }
    }
    spec.merges = Merges::Listed(listed);
    spec
}

fn replace(word: &mut Vec<TokenId>, left: TokenId, right: TokenId, merged: TokenId) {
    let mut at = 0;
    while at + 1 < word.len() {
        if word[at] == left && word[at + 1] == right {
            word[at] = merged;
            word.remove(at + 1);
        }
        at += 1;
    }
}

/// A realistic vocabulary: the ranks of the file that the environment variable FFWD_TEST_RANKS
/// names, with a token in base64 and a rank in each line. Without it, a small one, trained on the
/// sources of this module.
pub fn realistic() -> BpeSpec {
    let Ok(path) = std::env::var("FFWD_TEST_RANKS") else { return train(&sources(), 400) };
    let file = std::fs::read_to_string(&path).unwrap();
    let mut tokens: Vec<(u32, Vec<u8>)> = file
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(text, rank)| (rank.parse().unwrap(), from_base64(text)))
        .collect();
    tokens.sort_unstable();
    let mut spec = ranked(&[]);
    spec.byte_tokens = [None; 256];
    for (id, text) in &tokens {
        if let &[byte] = &text[..] {
            spec.byte_tokens[usize::from(byte)] = Some(TokenId(*id));
        }
    }
    spec.merges = Merges::Ranked(tokens.iter().map(|(id, _)| TokenId(*id)).collect());
    spec.pieces = tokens.into_iter().map(|(id, text)| (TokenId(id), text.into())).collect();
    spec.whole_pieces = true;
    spec
}

/// A text to train on and to encode.
pub fn sources() -> Vec<u8> {
    let parts = [include_str!("table.rs"), include_str!("pair.rs"), include_str!("tests.rs")];
    parts.concat().into_bytes()
}

fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for digit in text.trim_end_matches('=').chars() {
        bits = bits << 6 | DIGITS.find(digit).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// Encoding by definition, from the specification alone: of all pairs that merge, the most urgent
/// one does, the leftmost of several, until none does.
pub struct Definition {
    spec: BpeSpec,
    texts: HashMap<TokenId, Vec<u8>>,
    by_text: HashMap<Vec<u8>, (usize, TokenId)>,
    by_pair: HashMap<(TokenId, TokenId), (usize, TokenId)>,
}

impl Definition {
    pub fn new(spec: &BpeSpec) -> Self {
        let texts: HashMap<_, _> =
            spec.pieces.iter().map(|(token, text)| (*token, text.to_vec())).collect();
        let mut by_text = HashMap::new();
        let mut by_pair = HashMap::new();
        match &spec.merges {
            Merges::Ranked(tokens) => {
                for (rank, token) in tokens.iter().enumerate() {
                    by_text.entry(texts[token].clone()).or_insert((rank, *token));
                }
            }
            Merges::Listed(list) => {
                for (rank, &(left, right, merged)) in list.iter().enumerate() {
                    by_pair.insert((left, right), (rank, merged));
                }
            }
        }
        Self { spec: spec.clone(), texts, by_text, by_pair }
    }

    /// The symbols of a text before any merge, those that never merge without their text.
    fn base(&self, text: &[u8]) -> Vec<(TokenId, Option<Vec<u8>>)> {
        let byte = |byte: u8| self.spec.byte_tokens[usize::from(byte)].unwrap();
        if self.spec.base == Base::Bytes {
            return text.iter().map(|&b| (byte(b), Some(vec![b]))).collect();
        }
        let mut symbols = Vec::new();
        for chunk in text.utf8_chunks() {
            for character in chunk.valid().chars() {
                let character = character.to_string().into_bytes();
                let ranked = self.by_text.get(&character).map(|&(_, token)| token);
                let given = self.spec.pieces.iter().find(|(_, text)| **text == character[..]);
                match ranked.or(given.map(|(token, _)| *token)) {
                    Some(token) => symbols.push((token, Some(character))),
                    None => symbols.extend(character.iter().map(|&b| (byte(b), None))),
                }
            }
            symbols.extend(chunk.invalid().iter().map(|&b| (byte(b), None)));
        }
        symbols
    }

    pub fn encode(&self, text: &[u8]) -> Vec<TokenId> {
        if self.spec.whole_pieces {
            let whole = self.by_text.get(text).map(|&(_, token)| token);
            let given = self.spec.pieces.iter().find(|(_, piece)| **piece == *text);
            let merged = self.merge(text);
            if merged.len() == 1 {
                return merged;
            }
            if let Some(token) = whole.or(given.map(|(token, _)| *token)) {
                return vec![token];
            }
            return merged;
        }
        self.merge(text)
    }

    pub fn merge(&self, text: &[u8]) -> Vec<TokenId> {
        let mut symbols = self.base(text);
        loop {
            let best = symbols
                .windows(2)
                .enumerate()
                .filter_map(|(at, pair)| {
                    let (left, right) = (pair[0].1.as_ref()?, pair[1].1.as_ref()?);
                    let found = match self.spec.merges {
                        Merges::Ranked(_) => self.by_text.get(&[&left[..], right].concat()),
                        Merges::Listed(_) => self.by_pair.get(&(pair[0].0, pair[1].0)),
                    };
                    found.map(|&(rank, token)| (rank, at, token))
                })
                .min();
            let Some((_, at, token)) = best else { break };
            symbols[at] = (token, Some(self.texts[&token].clone()));
            symbols.remove(at + 1);
        }
        symbols.into_iter().map(|(token, _)| token).collect()
    }
}
