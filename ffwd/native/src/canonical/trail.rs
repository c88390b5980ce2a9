//! The context along a growing, and sometimes shrinking, sequence of tokens.

use crate::vocabulary::TokenId;

use super::context::{Canonicality, Context};

/// How many tokens lie between two contexts that are kept.
const STRIDE: usize = 64;

/// Knows the context after the tokens of one sequence, and how far they are canonical.
#[derive(Clone, Debug)]
pub struct Trail {
    /// After every `STRIDE` tokens, from the start on, with how many tokens before were not canonical.
    kept: Vec<(Context, usize)>,
    current: Context,
    strays: usize,
    length: usize,
}

impl Trail {
    pub fn new(start: Context) -> Self {
        Self { kept: vec![(start.clone(), 0)], current: start, strays: 0, length: 0 }
    }

    /// The context after `tokens`, which are those of the last time and more, unless
    /// [`Self::shorten`] was told otherwise.
    pub fn after(&mut self, canonicality: &Canonicality, tokens: &[TokenId]) -> &Context {
        for &token in tokens.get(self.length..).unwrap_or_default() {
            let (next, canonical) = canonicality.follow(&self.current, token);
            self.current = next;
            self.strays += usize::from(!canonical);
            self.length += 1;
            if self.length.is_multiple_of(STRIDE) {
                self.kept.push((self.current.clone(), self.strays));
            }
        }
        &self.current
    }

    /// How many tokens could not be where they are in any tokenization.
    pub fn strays(&self) -> usize {
        self.strays
    }

    /// Only the first `length` tokens are left.
    pub fn shorten(&mut self, length: usize) {
        if length >= self.length {
            return;
        }
        self.kept.truncate(length / STRIDE + 1);
        self.length = (self.kept.len() - 1) * STRIDE;
        if let Some((context, strays)) = self.kept.last() {
            self.current = context.clone();
            self.strays = *strays;
        }
    }
}
