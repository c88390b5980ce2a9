//! The bytes of every token, and which tokens are those of single bytes.

use super::spec::{Base, BpeError, BpeSpec, MAX_BYTES, MAX_IDS};
use crate::vocabulary::TokenId;

/// The bytes of each token, by its id.
#[derive(Debug)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    /// The bytes of token `i` are `bytes[offsets[i]..offsets[i + 1]]`.
    offsets: Vec<u32>,
    byte_tokens: Box<[TokenId; 256]>,
    /// The id from which on tokens only stand in for bytes that have none.
    missing_from: Option<TokenId>,
    base: Base,
    longest: usize,
}

impl Texts {
    pub fn new(spec: &BpeSpec) -> Result<Self, BpeError> {
        let mut byte_tokens = Box::new([TokenId(0); 256]);
        // With characters as base, a byte token encodes only characters without a token, not every
        // text with the byte.
        let allowed = spec.missing_from.filter(|_| spec.base == Base::Bytes);
        let mut next = allowed;
        for (byte, token) in (0..=255u8).zip(spec.byte_tokens) {
            let stand_in = || {
                next.as_mut().map(|next| std::mem::replace(next, TokenId(next.0.saturating_add(1))))
            };
            let token = token.or_else(stand_in).ok_or(BpeError::NoByteToken(byte))?;
            byte_tokens[usize::from(byte)] = token;
        }
        let missing_from = allowed.filter(|_| next != allowed);
        if let (Some(from), Some((last, _))) =
            (missing_from, spec.pieces.iter().max_by_key(|(token, _)| *token))
        {
            if *last >= from {
                return Err(BpeError::TwiceGiven(*last));
            }
        }
        let mut given: Vec<(TokenId, &[u8])> =
            spec.pieces.iter().map(|(token, text)| (*token, &**text)).collect();
        let single: Vec<u8> = (0..=255).collect();
        for (byte, &token) in byte_tokens.iter().enumerate() {
            given.push((token, &single[byte..=byte]));
        }
        // Files list their tokens in order, which a stable sort uses.
        given.sort();
        // A byte token that is also listed among the pieces must have the same bytes there.
        given.dedup();
        let width = given.last().map_or(0, |(token, _)| token.index() + 1);
        if let Some(&(last, _)) = given.last().filter(|_| width > MAX_IDS) {
            return Err(BpeError::IdTooLarge(last));
        }
        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        for (token, text) in given {
            if text.is_empty() {
                return Err(BpeError::Empty(token));
            }
            if token.index() + 1 < offsets.len() {
                return Err(BpeError::TwiceGiven(token));
            }
            offsets.resize(token.index() + 1, bytes.len() as u32);
            bytes.extend_from_slice(text);
            if bytes.len() > MAX_BYTES {
                return Err(BpeError::TooManyBytes);
            }
            offsets.push(bytes.len() as u32);
        }
        bytes.shrink_to_fit();
        offsets.shrink_to_fit();
        let longest = offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max();
        let (base, longest) = (spec.base, longest.unwrap_or(0));
        Ok(Self { bytes, offsets, byte_tokens, missing_from, base, longest })
    }

    /// From the texts of all tokens one after the other, with `offsets[0]` of 0 and ascending to
    /// their length. `None` if a byte has another token than one of its own.
    pub fn of_saved(
        bytes: Vec<u8>,
        offsets: Vec<u32>,
        byte_tokens: [TokenId; 256],
        missing_from: Option<TokenId>,
    ) -> Option<Self> {
        let longest = offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max();
        let texts = Self {
            bytes,
            offsets,
            byte_tokens: Box::new(byte_tokens),
            missing_from,
            base: Base::Bytes,
            longest: longest.unwrap_or(0),
        };
        let is_own = |byte: u8| texts.get(texts.byte_token(byte)) == [byte];
        let fits = missing_from.is_none_or(|token| token.index() < texts.width());
        ((0..=255).all(is_own) && fits).then_some(texts)
    }

    pub fn base(&self) -> Base {
        self.base
    }

    /// The length of the longest token.
    #[inline]
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the bytes of a token; empty for an id that is no token of the table.
    #[inline]
    pub fn get(&self, token: TokenId) -> &[u8] {
        match self.offsets.get(token.index()..token.index() + 2) {
            Some(&[start, end]) => &self.bytes[start as usize..end as usize],
            _ => &[],
        }
    }

    /// One more than the largest id.
    pub fn width(&self) -> usize {
        self.offsets.len() - 1
    }

    pub fn tokens(&self) -> impl Iterator<Item = (TokenId, &[u8])> + Clone {
        (0..self.width() as u32)
            .map(|id| (TokenId(id), self.get(TokenId(id))))
            .filter(|(_, text)| !text.is_empty())
    }

    /// The id from which on tokens only stand in for bytes that have none.
    pub fn missing_from(&self) -> Option<TokenId> {
        self.missing_from
    }

    #[inline]
    pub fn byte_token(&self, byte: u8) -> TokenId {
        self.byte_tokens[usize::from(byte)]
    }

    /// Whether a token stands for a byte that is not part of any piece.
    #[inline]
    pub fn is_byte_fallback(&self, token: TokenId) -> bool {
        self.base == Base::Characters
            && matches!(self.get(token), &[byte] if self.byte_token(byte) == token)
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.offsets.capacity() * 4
    }
}
