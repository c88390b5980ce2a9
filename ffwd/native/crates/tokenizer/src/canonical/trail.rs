//! The context along a growing, and sometimes shrinking, sequence of tokens.

use crate::vocabulary::TokenId;

use super::context::{Canonicality, Context};

/// The number of tokens between two permanently stored contexts.
const STRIDE: usize = 256;
/// The number of tokens between two stored contexts among the last tokens.
const STEP: usize = 16;
/// For how many contexts room is made at a time.
const ROOM: usize = 8;

/// A context, and how many tokens before it were not canonical.
type TrailPosition = (Context, usize);

/// The context after the tokens of one sequence, and how far they are canonical.
#[derive(Clone, Debug)]
pub struct Trail {
    /// After every `STRIDE` tokens, from the start on, up to where `recent` begins.
    kept: Vec<TrailPosition>,
    /// After every `STEP` tokens since then, that place first.
    recent: Vec<TrailPosition>,
    current: Context,
    strays: usize,
    length: usize,
}

fn push(places: &mut Vec<TrailPosition>, place: TrailPosition) {
    if places.len() == places.capacity() {
        places.reserve_exact(ROOM);
    }
    places.push(place);
}

impl Trail {
    /// The trail before any token, where the context is `start`.
    pub fn new(start: Context) -> Self {
        let first = || vec![(start.clone(), 0)];
        Self { kept: first(), recent: first(), current: start, strays: 0, length: 0 }
    }

    /// The context after `tokens`, which continue those of the last call unless [`Self::shorten`]
    /// was called.
    pub fn after(&mut self, canonicality: &Canonicality, tokens: &[TokenId]) -> &Context {
        for &token in tokens.get(self.length..).unwrap_or_default() {
            let (next, canonical) = canonicality.follow(&self.current, token);
            self.current = next;
            self.strays += usize::from(!canonical);
            self.length += 1;
            if self.length.is_multiple_of(STEP) {
                push(&mut self.recent, (self.current.clone(), self.strays));
                if self.recent.len() > 2 * STRIDE / STEP {
                    push(&mut self.kept, self.recent[STRIDE / STEP].clone());
                    self.recent.drain(..STRIDE / STEP);
                }
            }
        }
        &self.current
    }

    /// How many tokens are at positions that no tokenization gives them.
    pub fn strays(&self) -> usize {
        self.strays
    }

    /// Only the first `length` tokens are left.
    pub fn shorten(&mut self, length: usize) {
        if length >= self.length {
            return;
        }
        let begins = (self.kept.len() - 1) * STRIDE;
        if let Some(since) = length.checked_sub(begins) {
            self.recent.truncate(since / STEP + 1);
        } else {
            self.kept.truncate(length / STRIDE + 1);
            self.recent.clear();
            self.recent.extend(self.kept.last().cloned());
        }
        self.length = (self.kept.len() - 1) * STRIDE + (self.recent.len() - 1) * STEP;
        if let Some((context, strays)) = self.recent.last() {
            self.current = context.clone();
            self.strays = *strays;
        }
    }

    /// About how many bytes of memory the kept contexts hold.
    pub fn memory_bytes(&self) -> usize {
        (self.kept.capacity() + self.recent.capacity()) * std::mem::size_of::<TrailPosition>()
    }
}
