//! Free text before the text of the grammar, such as a model's reasoning, up to what closes it.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use crate::mask::token_set::set_bits;
use ffwd_tokenizer::vocabulary::{Descent, NodeId, TokenId, Vocabulary};

/// The end of the free text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Close {
    /// These tokens, one after the other; the first is no text.
    Tokens(Box<[TokenId]>),
    /// Text, in any tokens, at its first occurrence.
    Text(Box<[u8]>),
}

impl Close {
    fn len(&self) -> usize {
        match self {
            Self::Tokens(tokens) => tokens.len(),
            Self::Text(text) => text.len(),
        }
    }
}

/// A text that begins with free text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The end of the free text; the prefix or the grammar's text begins right after it.
    pub close: Close,
    /// Tokens without text that are allowed in it.
    pub controls: Vec<TokenId>,
}

/// The position of a sequence that starts with free text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// In the text of the grammar, or in the prefix before it.
    Grammar,
    /// In the free text, whose last bytes or tokens match this much of its end.
    Free(u32),
}

/// The effect of a token in free text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Refused,
    Stays(Stage),
    /// The grammar's text, or its prefix, starts with this many last bytes of the token.
    Begins(usize),
}

/// A token within which the free text's end is complete, and how many of its bytes come after that.
type Closing = (TokenId, usize);

/// An [`Opening`] prepared for a vocabulary.
#[derive(Debug)]
pub struct Preamble {
    vocabulary: Arc<Vocabulary>,
    close: Close,
    /// The allowed tokens without text, sorted.
    controls: Box<[TokenId]>,
    /// For each prefix of the end: the length of its longest proper suffix that is a prefix, too
    /// (Knuth, Morris and Pratt).
    falls_back: Box<[u32]>,
    /// The tokens that close the free text, by the matched length of its end.
    closing: Box<[OnceLock<Box<[Closing]>>]>,
}

/// The rest of the free text's end.
#[derive(Clone, Copy, Debug)]
pub enum Rest<'p> {
    Tokens(&'p [TokenId]),
    Text(&'p [u8]),
}

impl Preamble {
    pub fn new(vocabulary: Arc<Vocabulary>, opening: Opening) -> Self {
        let Opening { close, controls } = opening;
        let is_text = |token: &TokenId| !vocabulary.text(*token).is_empty();
        let mut controls: Vec<TokenId> = match &close {
            Close::Tokens(tokens) => controls.iter().chain(tokens.iter()).copied().collect(),
            Close::Text(_) => controls,
        };
        controls.retain(|token| !is_text(token));
        controls.sort_unstable();
        controls.dedup();
        let falls_back = match &close {
            Close::Tokens(tokens) => suffixes(tokens),
            Close::Text(text) => suffixes(text),
        };
        let bytes = if matches!(close, Close::Text(_)) { close.len() } else { 0 };
        let closing = (0..bytes).map(|_| OnceLock::new()).collect();
        Self { vocabulary, close, controls: controls.into(), falls_back, closing }
    }

    /// Before any token.
    pub fn start(&self) -> Stage {
        Stage::Free(0)
    }

    /// How many positions the free text has, by the matched length of its end.
    pub fn places(&self) -> u32 {
        self.close.len() as u32
    }

    /// Returns the rest of the free text's end.
    pub fn rest(&self, matched: u32) -> Rest<'_> {
        match &self.close {
            Close::Tokens(tokens) => Rest::Tokens(&tokens[matched as usize..]),
            Close::Text(text) => Rest::Text(&text[matched as usize..]),
        }
    }

    /// Returns the effect of a token in free text.
    pub fn step(&self, stage: Stage, token: TokenId) -> Step {
        let Stage::Free(matched) = stage else { return Step::Refused };
        let mut matched = matched as usize;
        let text = self.vocabulary.text(token);
        if text.is_empty() && self.controls.binary_search(&token).is_err() {
            return Step::Refused;
        }
        match &self.close {
            Close::Tokens(tokens) => match advance(tokens, &self.falls_back, matched, token) {
                Some(next) => matched = next,
                None => return Step::Begins(0),
            },
            Close::Text(_) if text.is_empty() => matched = 0,
            Close::Text(close) => {
                for (at, &byte) in text.iter().enumerate() {
                    match advance(close, &self.falls_back, matched, byte) {
                        Some(next) => matched = next,
                        None => return Step::Begins(text.len() - at - 1),
                    }
                }
            }
        }
        Step::Stays(Stage::Free(matched as u32))
    }

    /// The number of bytes after which the free text is closed; `None` if it is not.
    pub fn length(&self, stage: Stage, text: &[u8]) -> Option<usize> {
        let (Stage::Free(matched), Close::Text(close)) = (stage, &self.close) else { return None };
        let mut matched = matched as usize;
        for (at, &byte) in text.iter().enumerate() {
            match advance(close, &self.falls_back, matched, byte) {
                Some(next) => matched = next,
                None => return Some(at + 1),
            }
        }
        None
    }

    /// Overwrites a row with the allowed tokens in free text. `begins` says whether the grammar's
    /// text, or its prefix, can start with the last bytes of a token.
    pub fn fill<E>(
        &self,
        stage: Stage,
        row: &mut [u32],
        mut begins: impl FnMut(TokenId, usize) -> Result<bool, E>,
    ) -> Result<(), E> {
        let words = self.vocabulary.texts();
        row[..words.len()].copy_from_slice(words);
        row[words.len()..].fill(0);
        self.keep_controls(row);
        let Stage::Free(matched) = stage else { return Ok(()) };
        for &(token, rest) in self.closing(matched as usize) {
            if rest > 0 && !begins(token, rest)? {
                row[token.index() / 32] &= !(1 << (token.0 % 32));
            }
        }
        Ok(())
    }

    /// Returns the tokens that close the free text, by their text.
    pub fn closing_tokens(&self, stage: Stage) -> impl Iterator<Item = TokenId> + '_ {
        let closing = match stage {
            Stage::Free(matched) => self.closing(matched as usize),
            Stage::Grammar => &[],
        };
        closing.iter().map(|&(token, _)| token)
    }

    /// Restores tokens without text in a mask that is restricted to canonical tokens.
    pub fn keep_controls(&self, row: &mut [u32]) {
        set_bits(row, &self.controls);
    }

    fn closing(&self, matched: usize) -> &[Closing] {
        let (Some(known), Close::Text(close)) = (self.closing.get(matched), &self.close) else {
            return &[];
        };
        known.get_or_init(|| {
            let mut found = Vec::new();
            let trie = self.vocabulary.trie();
            let Ok(()) = trie.walk(NodeId::ROOT, matched, |&matched, node, _| {
                let next = advance(close, &self.falls_back, matched, trie.byte(node));
                if next.is_none() {
                    found.extend(trie.below(node).map(|(rest, token)| (token, rest)));
                }
                Ok::<_, Infallible>(next.map_or(Descent::Skip, Descent::Below))
            });
            found.into()
        })
    }
}

fn suffixes<T: PartialEq>(pattern: &[T]) -> Box<[u32]> {
    let mut falls_back = vec![0u32; pattern.len() + 1];
    let mut matched = 0;
    for at in 1..pattern.len() {
        while matched > 0 && pattern[matched] != pattern[at] {
            matched = falls_back[matched] as usize;
        }
        matched += usize::from(pattern[matched] == pattern[at]);
        falls_back[at + 1] = matched as u32;
    }
    falls_back.into()
}

/// The length of the longest prefix of the pattern that ends the text after one more item; `None`
/// for the whole pattern.
fn advance<T: PartialEq>(
    pattern: &[T],
    falls_back: &[u32],
    mut matched: usize,
    item: T,
) -> Option<usize> {
    while matched > 0 && pattern[matched] != item {
        matched = falls_back[matched] as usize;
    }
    matched += usize::from(pattern[matched] == item);
    (matched < pattern.len()).then_some(matched)
}
