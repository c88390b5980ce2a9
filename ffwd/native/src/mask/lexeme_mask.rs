//! What the tokens of a vocabulary do from one state of a lexeme.

use super::token_set::{set_bits, Bitmap};
use super::walk::Collected;
use crate::error::LimitExceeded;
use crate::expr::{LexState, Lexeme, Verdict};
use crate::vocabulary::{ByteTrie, NodeId, TokenId, Vocabulary};

/// Tokens that stay within a lexeme.
#[derive(Clone, Debug)]
pub enum Inner {
    Few(Box<[TokenId]>),
    Many(Bitmap),
}

impl Inner {
    pub(super) fn of(vocabulary: &Vocabulary, tokens: Vec<TokenId>) -> Self {
        Self::of_runs(vocabulary, &[&tokens])
    }

    /// Of the tokens of all runs.
    pub(super) fn of_runs(vocabulary: &Vocabulary, runs: &[&[TokenId]]) -> Self {
        let count: usize = runs.iter().map(|run| run.len()).sum();
        if count <= vocabulary.mask_words() / 4 {
            Self::Few(runs.concat().into())
        } else {
            let mut bitmap = vec![0; vocabulary.mask_words()];
            for run in runs {
                set_bits(&mut bitmap, run);
            }
            Self::Many(bitmap.into())
        }
    }
}

/// Tokens that go past the end of a lexeme, with one verdict.
#[derive(Debug)]
pub struct ExitGroup {
    /// Which languages of the lexeme hold at the end.
    pub accept: Verdict,
    /// What the tokens spell after the end.
    pub rests: ByteTrie,
    /// Subtrees of the vocabulary's own trie, too large to copy: below these nodes the lexeme has
    /// ended. With `true` the tokens at the node itself belong to the group too.
    pub grafts: Box<[(NodeId, bool)]>,
    /// Large subtrees of the vocabulary's trie in which the lexeme may end at every node, the top
    /// one included.
    pub everywhere: Box<[NodeId]>,
}

#[derive(Debug)]
pub struct LexemeMask {
    pub inner: Inner,
    pub exits: Vec<ExitGroup>,
}

impl LexemeMask {
    /// The mask of another state that differs from this one's at most in what it says of the
    /// tokens in `doubtful`. `None` where the exits are too many to be listed.
    pub(super) fn recheck(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
        doubtful: &[TokenId],
    ) -> Result<Option<Self>, LimitExceeded> {
        if self.exits.iter().any(|exit| !exit.everywhere.is_empty()) {
            return Ok(None);
        }
        let mut doubted = vec![0; vocabulary.mask_words()];
        set_bits(&mut doubted, doubtful);
        let is_doubted = |token: TokenId| doubted[token.index() / 32] >> (token.0 % 32) & 1 == 1;
        let mut inner: Vec<TokenId> = Vec::new();
        let mut exits: Vec<Collected<'_>> = Vec::new();
        for group in &self.exits {
            let own = Collected::group(&mut exits, group.accept);
            for (depth, token) in group.rests.below(NodeId::ROOT) {
                if !is_doubted(token) {
                    let text = vocabulary.text(token);
                    own.rests.push((&text[text.len() - depth..], token));
                }
            }
            for &(node, with_node) in &group.grafts {
                for (depth, token) in vocabulary.trie().below(node) {
                    if (depth > 0 || with_node) && !is_doubted(token) {
                        let text = vocabulary.text(token);
                        own.rests.push((&text[text.len() - depth..], token));
                    }
                }
            }
        }
        for &token in doubtful {
            let text = vocabulary.text(token);
            let mut current = Some(state);
            for (at, &byte) in text.iter().enumerate() {
                let Some(from) = current else { break };
                current = lexeme.next(from, byte)?;
                let Some(next) = current else { break };
                if next.accepts() && (next.is_final() || at + 1 < text.len()) {
                    let own = Collected::group(&mut exits, lexeme.accept(next));
                    own.rests.push((&text[at + 1..], token));
                }
                if next.is_final() {
                    current = None;
                }
            }
            if current.is_some() {
                inner.push(token);
            }
        }
        let inner = match &self.inner {
            Inner::Few(tokens) => {
                inner.extend(tokens.iter().copied().filter(|&token| !is_doubted(token)));
                Inner::of(vocabulary, inner)
            }
            Inner::Many(bitmap) => {
                let mut own: Vec<u32> =
                    bitmap.iter().zip(&doubted).map(|(word, doubt)| word & !doubt).collect();
                set_bits(&mut own, &inner);
                Inner::Many(own.into())
            }
        };
        let exits = exits.into_iter().map(Collected::build).collect();
        Ok(Some(Self { inner, exits }))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let inner = match &self.inner {
            Inner::Few(tokens) => tokens.len() * 4,
            Inner::Many(bitmap) => bitmap.len() * 4,
        };
        let exits: usize =
            self.exits.iter().map(|exit| exit.rests.memory_bytes() + exit.grafts.len() * 8).sum();
        inner + exits + 128
    }
}
