//! A slow recognizer of a grammar's texts, by sets of end positions, for tests of the front ends.
//!
//! A token given by its id stands for the character U+E000 plus the id; a token given by name
//! stands for its name. Limits, guards and schemas are not supported.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "only tests use it")]

use rustc_hash::FxHashMap;

use super::{Grammar, Node, NodeId, TokenItem, TokenSet};
use ffwd_regular::regex::oracle::matches;

/// The character that stands for a token in texts.
pub fn token(id: u32) -> char {
    char::from_u32(0xE000 + id).unwrap()
}

/// Whether the whole text, of at most 63 characters, belongs to the grammar.
pub fn accepts(grammar: &Grammar, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    assert!(text.len() < 64, "the text is too long for the oracle");
    let mut oracle = Oracle { grammar, text, ends: FxHashMap::default(), changed: true };
    let start = grammar.start.expect("the grammar has a start");
    // A recursive rule uses the result of the previous round.
    while std::mem::take(&mut oracle.changed) {
        oracle.find(start, 0, &mut FxHashMap::default());
    }
    oracle.ends[&(start, 0)] >> oracle.text.len() & 1 == 1
}

struct Oracle<'g> {
    grammar: &'g Grammar,
    text: Vec<char>,
    ends: FxHashMap<(NodeId, usize), u64>,
    changed: bool,
}

type Asked = FxHashMap<(NodeId, usize), ()>;

impl Oracle<'_> {
    fn find(&mut self, id: NodeId, from: usize, asked: &mut Asked) -> u64 {
        if asked.insert((id, from), ()).is_some() {
            return self.ends.get(&(id, from)).copied().unwrap_or(0);
        }
        let ends = match self.grammar.node(id).clone() {
            Node::Seq(parts) => {
                parts.iter().fold(1 << from, |starts, &part| self.step(part, starts, asked))
            }
            Node::Choice(parts) => {
                parts.iter().fold(0, |ends, &part| ends | self.find(part, from, asked))
            }
            Node::Repeat { inner, min, max } => {
                let mut now = 1 << from;
                for _ in 0..min.min(64) {
                    now = self.step(inner, now, asked);
                }
                let mut ends = now;
                for _ in min..max.unwrap_or(u32::MAX).min(min.saturating_add(64)) {
                    now = self.step(inner, now, asked);
                    ends |= now;
                }
                ends
            }
            Node::Rule(rule, _) => {
                let body = self.grammar.rules[rule.0 as usize].body.expect("a body");
                self.find(body, from, asked)
            }
            Node::Lexeme(lexeme) => {
                let fits = |&end: &usize| {
                    let text: String = self.text[from..end].iter().collect();
                    matches(&lexeme.language, &text)
                };
                (from..=self.text.len()).filter(fits).fold(0, |ends, end| ends | 1 << end)
            }
            Node::Tokens(tokens) => self.tokens(&tokens, from),
            Node::Span(_, inner) => self.find(inner, from, asked),
            other => panic!("{other:?} is not known to the oracle"),
        };
        let known = self.ends.entry((id, from)).or_default();
        self.changed |= *known | ends != *known;
        *known |= ends;
        *known
    }

    fn step(&mut self, id: NodeId, starts: u64, asked: &mut Asked) -> u64 {
        let from = (0..=self.text.len()).filter(|&from| starts >> from & 1 == 1);
        from.fold(0, |ends, from| ends | self.find(id, from, asked))
    }

    fn tokens(&self, tokens: &TokenSet, from: usize) -> u64 {
        let rest = &self.text[from..];
        let number = rest.first().and_then(|&c| (c as u32).checked_sub(0xE000));
        let mut ends = 0;
        for item in &tokens.items {
            match item {
                TokenItem::Ids(first, last) => {
                    let found = number.is_some_and(|id| (*first..=*last).contains(&id));
                    ends |= u64::from(found) << (from + 1).min(63);
                }
                TokenItem::Named(name) => {
                    let length = name.chars().count();
                    let found = rest.len() >= length && name.chars().eq(rest[..length].to_vec());
                    ends |= u64::from(found) << (from + length).min(63);
                }
            }
        }
        match (tokens.exclude, number) {
            (false, _) => ends,
            (true, Some(0..=0xFF)) if ends == 0 => 1 << (from + 1),
            (true, _) => 0,
        }
    }
}

/// A part that a regular expression matches.
pub fn pattern(grammar: &mut Grammar, pattern: &str) -> NodeId {
    grammar.text(ffwd_regular::regex::rust_dialect::anchored(pattern).unwrap()).unwrap()
}

/// Whether a lexeme has a text.
pub fn is_text_of(lexeme: &super::Lexeme, text: &str) -> bool {
    ffwd_regular::regex::oracle::matches(&lexeme.language, text)
}
