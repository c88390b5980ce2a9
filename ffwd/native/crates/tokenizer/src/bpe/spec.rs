//! The parts of a byte-pair encoding, as a tokenizer's file states them.

use thiserror::Error;

use crate::vocabulary::TokenId;

/// The most ids of a table. The pair map keeps a token's id in this many bits of a slot.
pub(super) const MAX_IDS: usize = 1 << 22;
/// The most bytes of all tokens of a table together.
pub(super) const MAX_BYTES: usize = 1 << 24;
/// The most merges that may be listed.
pub(super) const MAX_MERGES: usize = 1 << 24;

/// The initial symbols of a text, before the first merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Its bytes, each of which has a token.
    Bytes,
    /// Its characters. Byte tokens, which never merge, encode characters without a piece and bytes
    /// outside characters.
    Characters,
}

/// Which tokens merge, the most urgent first.
#[derive(Clone, Debug)]
pub enum Merges {
    /// Any two adjacent tokens whose joined bytes are a token merge into it; the position in this
    /// list is the rank. If several tokens have the same bytes, the first counts.
    Ranked(Vec<TokenId>),
    /// Left, right and merged token. For a pair that is listed twice, the last position counts.
    Listed(Vec<(TokenId, TokenId, TokenId)>),
}

/// A byte-pair encoding, before it is compiled into a [`BpeTable`](super::BpeTable).
#[derive(Clone, Debug)]
pub struct BpeSpec {
    /// What merges begin with.
    pub base: Base,
    /// Every token of text with its bytes: without the special tokens, and with the byte tokens
    /// only if they are the base.
    pub pieces: Vec<(TokenId, Box<[u8]>)>,
    /// The tokens of the single bytes.
    pub byte_tokens: [Option<TokenId>; 256],
    /// The merges, in order of urgency.
    pub merges: Merges,
    /// Whether a piece of text that is a token is encoded as that token even if merges lead
    /// elsewhere.
    pub whole_pieces: bool,
    /// With bytes as base: bytes without a token are allowed, and the table numbers them from this
    /// id on. No text with one of them can be encoded.
    pub missing_from: Option<TokenId>,
}

/// Why a [`BpeSpec`] is invalid or too large.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BpeError {
    /// A byte has no token, and [`BpeSpec::missing_from`] does not allow that.
    #[error("no token encodes the byte 0x{0:02X}, so a text that has it cannot be encoded")]
    NoByteToken(u8),
    /// An id is too large for a table.
    #[error("the token {0} is outside the {MAX_IDS} ids that a table may have")]
    IdTooLarge(TokenId),
    /// Two pieces have the same id.
    #[error("the token {0} is given twice")]
    TwiceGiven(TokenId),
    /// A piece has no bytes.
    #[error("the token {0} has no bytes")]
    Empty(TokenId),
    /// A merge names an id that no piece has.
    #[error("the merges name the token {0}, which is not among the pieces")]
    UnknownToken(TokenId),
    /// The bytes of a merged token differ from those of its parts.
    #[error("the merge of {left} and {right} into {merged} does not have their bytes")]
    WrongMerge {
        /// The token in front.
        left: TokenId,
        /// The token behind it.
        right: TokenId,
        /// The token whose bytes are not those of the two.
        merged: TokenId,
    },
    /// The pieces are too long together.
    #[error("the tokens have more than the {MAX_BYTES} bytes that a table may have")]
    TooManyBytes,
    /// The list of merges is too long.
    #[error("there are more merges than the {MAX_MERGES} that a table may have")]
    TooManyMerges,
}
