//! What the rows of a bitmask hold, so that a row is not written again.

use std::sync::Arc;

use crate::mask::token_set::{clear_bits, has_bit, set_bits, TokenMask};
use ffwd_tokenizer::vocabulary::TokenId;

/// The content of a row before a request's stop tokens.
#[derive(Clone, Debug, Default)]
enum Base {
    /// Anything.
    #[default]
    Unknown,
    /// Every bit.
    Everything,
    /// A mask, kept so that no other one has its address.
    Mask(Arc<TokenMask>),
    /// A mask of this one token.
    Only(TokenId),
}

/// A request's stop tokens, and whether the text could end.
type Stops = Option<(Arc<[TokenId]>, bool)>;

/// What is known of a row of a bitmask. By default nothing.
#[derive(Clone, Debug, Default)]
pub struct Held {
    base: Base,
    stops: Stops,
}

/// A request's own stop tokens where its text stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct StopsHere<'s> {
    pub tokens: &'s Arc<[TokenId]>,
    pub may_end: bool,
}

impl StopsHere<'_> {
    fn is(&self, held: &Stops) -> bool {
        match held {
            None => self.tokens.is_empty(),
            Some((tokens, may_end)) => Arc::ptr_eq(tokens, self.tokens) && *may_end == self.may_end,
        }
    }

    /// Allows the stop tokens where the text can end, and only there. One with a text of its own
    /// stays where nothing else is allowed.
    pub fn apply(&self, row: &mut [u32]) {
        if self.may_end {
            set_bits(row, self.tokens);
            return;
        }
        let had: Vec<TokenId> =
            self.tokens.iter().copied().filter(|&token| has_bit(row, token)).collect();
        if had.is_empty() {
            return;
        }
        clear_bits(row, &had);
        if row.iter().all(|&word| word == 0) {
            set_bits(row, &had);
        }
    }
}

impl Held {
    /// Allows every token.
    pub fn write_everything(&mut self, row: &mut [u32]) {
        if !matches!(self.base, Base::Everything) {
            row.fill(u32::MAX);
            *self = Self { base: Base::Everything, stops: None };
        }
    }

    /// Allows every token but some.
    pub(super) fn write_without(&mut self, row: &mut [u32], excluded: &[TokenId]) {
        self.write_everything(row);
        if !excluded.is_empty() {
            clear_bits(row, excluded);
            *self = Self::default();
        }
    }

    /// Allows one token.
    pub(super) fn write_only(&mut self, row: &mut [u32], token: TokenId, stops: StopsHere<'_>) {
        if matches!(self.base, Base::Only(held) if held == token) && stops.is(&self.stops) {
            return;
        }
        self.write(row, &TokenMask::only(token), stops);
        self.base = Base::Only(token);
    }

    /// Allows the tokens of a mask.
    pub(super) fn write_mask(
        &mut self,
        row: &mut [u32],
        mask: &Arc<TokenMask>,
        stops: StopsHere<'_>,
    ) {
        let is_same = matches!(&self.base, Base::Mask(held) if Arc::ptr_eq(held, mask));
        if is_same && stops.is(&self.stops) {
            return;
        }
        self.write(row, mask, stops);
        self.base = Base::Mask(mask.clone());
    }

    fn write(&mut self, row: &mut [u32], mask: &TokenMask, stops: StopsHere<'_>) {
        match (&self.base, &self.stops) {
            (Base::Mask(old), None) => mask.replace(old, row),
            (Base::Only(old), None) => mask.replace(&TokenMask::only(*old), row),
            _ => mask.fill(row),
        }
        self.stops = None;
        if !stops.tokens.is_empty() {
            stops.apply(row);
            self.stops = Some((stops.tokens.clone(), stops.may_end));
        }
    }

    /// Makes a row what another one is, of which `self` tells.
    pub(super) fn copy_to(&self, from: &[u32], held: &mut Self, to: &mut [u32]) {
        to.copy_from_slice(from);
        *held = self.clone();
    }
}
