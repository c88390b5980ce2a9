//! Free text before the text of the grammar, such as a model's reasoning, up to what closes it.

use std::sync::{Arc, OnceLock};

use crate::mask::token_set::set_bits;
use crate::vocabulary::{ByteTrie, NodeId, TokenId, Vocabulary};

/// What closes the free text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Close {
    /// A token that is not text.
    Token(TokenId),
    /// Text, spelled by whatever tokens, as soon as it has come for the first time.
    Text(Box<[u8]>),
}

/// A text that begins with free text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    pub close: Close,
    /// Tokens that follow what closes it, before anything else.
    pub then: Vec<TokenId>,
}

/// Where a text stands that begins with free text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// In the text of the grammar, or in the prefix before it.
    Grammar,
    /// In the free text, which ends with so many bytes of what closes it.
    Free(u32),
    /// After the free text and so many of the tokens that follow it.
    Then(u32),
}

/// What a token does to a text that has not reached the grammar's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Refused,
    Stays(Stage),
    /// The grammar's text, or its prefix, begins with the last so many bytes of the token.
    Begins(usize),
}

/// A token in which what closes the free text ends, and how many of its bytes come after.
type Closing = (TokenId, usize);

/// An [`Opening`] made ready for a vocabulary.
#[derive(Debug)]
pub struct Preamble {
    vocabulary: Arc<Vocabulary>,
    opening: Opening,
    /// For each number of bytes of what closes it: the longest proper suffix of these that it
    /// begins with (Knuth, Morris and Pratt).
    falls_back: Box<[u32]>,
    /// The tokens that close the free text, for each number of bytes of what closes it so far.
    closing: Box<[OnceLock<Box<[Closing]>>]>,
}

impl Preamble {
    pub fn new(vocabulary: Arc<Vocabulary>, opening: Opening) -> Self {
        let text: &[u8] = match &opening.close {
            Close::Token(_) => &[],
            Close::Text(text) => text,
        };
        let mut falls_back = vec![0u32; text.len() + 1];
        let mut matched = 0;
        for at in 1..text.len() {
            while matched > 0 && text[matched] != text[at] {
                matched = falls_back[matched] as usize;
            }
            matched += usize::from(text[matched] == text[at]);
            falls_back[at + 1] = matched as u32;
        }
        let closing = (0..text.len()).map(|_| OnceLock::new()).collect();
        Self { vocabulary, opening, falls_back: falls_back.into(), closing }
    }

    /// Before any token.
    pub fn start(&self) -> Stage {
        Stage::Free(0)
    }

    fn after_close(&self, rest: usize) -> Step {
        match self.opening.then.is_empty() {
            true => Step::Begins(rest),
            // What follows are tokens: no text comes between.
            false if rest == 0 => Step::Stays(Stage::Then(0)),
            false => Step::Refused,
        }
    }

    /// What a token does before the grammar's text.
    pub fn step(&self, stage: Stage, token: TokenId) -> Step {
        match stage {
            Stage::Grammar => Step::Refused,
            Stage::Then(done) => {
                let done = done as usize;
                if self.opening.then.get(done) != Some(&token) {
                    Step::Refused
                } else if done + 1 == self.opening.then.len() {
                    Step::Begins(0)
                } else {
                    Step::Stays(Stage::Then(done as u32 + 1))
                }
            }
            Stage::Free(matched) => {
                if self.opening.close == Close::Token(token) {
                    return self.after_close(0);
                }
                let text = self.vocabulary.text(token);
                if text.is_empty() {
                    return Step::Refused;
                }
                let mut matched = matched as usize;
                for (at, &byte) in text.iter().enumerate() {
                    match self.read(matched, byte) {
                        Some(next) => matched = next,
                        None => return self.after_close(text.len() - at - 1),
                    }
                }
                Step::Stays(Stage::Free(matched as u32))
            }
        }
    }

    /// How much of what closes the text it ends with after one more byte; `None` if all.
    fn read(&self, mut matched: usize, byte: u8) -> Option<usize> {
        let Close::Text(text) = &self.opening.close else { return Some(0) };
        while matched > 0 && text[matched] != byte {
            matched = self.falls_back[matched] as usize;
        }
        matched += usize::from(text[matched] == byte);
        (matched < text.len()).then_some(matched)
    }

    /// The tokens that must come next.
    pub fn forced(&self, stage: Stage) -> &[TokenId] {
        match stage {
            Stage::Then(done) => &self.opening.then[done as usize..],
            Stage::Free(_) | Stage::Grammar => &[],
        }
    }

    /// Overwrites a row with the tokens that may come next. `begins` says whether the grammar's text,
    /// or its prefix, can begin with the last so many bytes of a token; it may fail.
    pub fn fill<E>(
        &self,
        stage: Stage,
        row: &mut [u32],
        mut begins: impl FnMut(TokenId, usize) -> Result<bool, E>,
    ) -> Result<(), E> {
        let Stage::Free(matched) = stage else {
            row.fill(0);
            set_bits(row, &self.forced(stage)[..self.forced(stage).len().min(1)]);
            return Ok(());
        };
        let words = self.vocabulary.texts();
        row[..words.len()].copy_from_slice(words);
        row[words.len()..].fill(0);
        if let Close::Token(token) = self.opening.close {
            set_bits(row, &[token]);
            return Ok(());
        }
        for &(token, rest) in self.closing(matched as usize) {
            let allowed = match self.after_close(rest) {
                Step::Begins(0) | Step::Stays(_) => true,
                Step::Begins(rest) => begins(token, rest)?,
                Step::Refused => false,
            };
            if !allowed {
                row[token.index() / 32] &= !(1 << (token.0 % 32));
            }
        }
        Ok(())
    }

    /// Sets what closes the free text at once in a mask that canonical tokens are left of.
    pub fn keep_close(&self, stage: Stage, row: &mut [u32]) {
        if let (Stage::Free(_), Close::Token(token)) = (stage, &self.opening.close) {
            set_bits(row, &[*token]);
        }
    }

    fn closing(&self, matched: usize) -> &[Closing] {
        let Some(known) = self.closing.get(matched) else { return &[] };
        known.get_or_init(|| {
            let mut found = Vec::new();
            let trie = self.vocabulary.trie();
            let mut pending = vec![(NodeId::ROOT, matched)];
            while let Some((node, matched)) = pending.pop() {
                for (byte, child) in trie.children(node) {
                    match self.read(matched, byte) {
                        Some(next) => pending.push((child, next)),
                        None => self.closed(trie, child, &mut found),
                    }
                }
            }
            found.into()
        })
    }

    /// All tokens that lead through a node of the trie or end there.
    fn closed(&self, trie: &ByteTrie, node: NodeId, found: &mut Vec<Closing>) {
        let mut pending = vec![(node, 0)];
        while let Some((node, rest)) = pending.pop() {
            found.extend(trie.tokens_at(node).iter().map(|&token| (token, rest)));
            pending.extend(trie.children(node).map(|(_, child)| (child, rest + 1)));
        }
    }
}
