//! From token ids back to text: the bytes of every token, and which of them are not text.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::error::{DecoderError, UnknownToken};
use crate::vocabulary::TokenId;

/// The bytes of all tokens of a vocabulary. Immutable: any number of streams share one.
#[derive(Debug)]
pub struct Decoder {
    bytes: Box<[u8]>,
    entries: Box<[TokenBytes]>,
    /// Ascending, each once.
    special: Box<[TokenId]>,
    start: TextStart,
}

/// The differences at the start of a text.
#[derive(Clone, Debug, Default)]
pub struct TextStart {
    /// A space at the start of the text is not part of it, for tokenizers that write one before
    /// each text.
    pub strip_first_space: bool,
    /// If that leaves a token empty, the text starts with the next one.
    pub strip_every_first_space: bool,
    /// The bytes of tokens at the start of a text, instead of their usual ones and with nothing
    /// dropped.
    pub first_tokens: FxHashMap<TokenId, Box<[u8]>>,
}

/// One token, found with one memory access: the start and number of its bytes, and flags.
#[derive(Clone, Copy, Debug)]
struct TokenBytes {
    start: u32,
    length_and_flags: u32,
}

const ABSENT: u32 = 1 << 31;
const SPECIAL: u32 = 1 << 30;
/// The bytes are whole characters.
const WHOLE: u32 = 1 << 29;
const LENGTH: u32 = WHOLE - 1;

/// Nearly every token has at most this many bytes.
const SHORT: usize = 16;

impl TokenBytes {
    fn length(self) -> usize {
        (self.length_and_flags & LENGTH) as usize
    }

    fn has(self, flag: u32) -> bool {
        self.length_and_flags & flag != 0
    }
}

/// A decoder's entry for a token.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether it is left out when special tokens are skipped.
    pub(crate) special: bool,
    /// Whether its bytes are whole characters of UTF-8.
    pub(crate) whole: bool,
}

impl Decoder {
    /// `tokens[i]` is what token `i` stands for, special tokens by name; `None` where there is no
    /// such token.
    pub fn new<T: AsRef<[u8]>>(
        tokens: &[Option<T>],
        special: &[TokenId],
        start: TextStart,
    ) -> Result<Self, DecoderError> {
        let size = tokens.len();
        let total: usize = tokens.iter().flatten().map(|token| token.as_ref().len()).sum();
        if u32::try_from(total).is_err() {
            return Err(DecoderError::TooLarge { maximum: u32::MAX as usize });
        }
        let mut bytes = Vec::with_capacity(total);
        let mut entries = Vec::with_capacity(size);
        for (index, token) in tokens.iter().enumerate() {
            let start = bytes.len() as u32;
            let length_and_flags = match token {
                None => ABSENT,
                Some(token) => {
                    let token = token.as_ref();
                    if token.len() > LENGTH as usize {
                        return Err(DecoderError::TooLong {
                            token: TokenId(index as u32),
                            length: token.len(),
                            maximum: LENGTH as usize,
                        });
                    }
                    bytes.extend_from_slice(token);
                    let whole = if std::str::from_utf8(token).is_ok() { WHOLE } else { 0 };
                    token.len() as u32 | whole
                }
            };
            entries.push(TokenBytes { start, length_and_flags });
        }
        for &special in special {
            let Some(entry) = entries.get_mut(special.index()) else {
                return Err(DecoderError::SpecialOutOfRange { special, size });
            };
            if entry.has(ABSENT) {
                return Err(DecoderError::SpecialWithoutToken { special });
            }
            entry.length_and_flags |= SPECIAL;
        }
        if let Some(&token) = start.first_tokens.keys().filter(|id| id.index() >= size).min() {
            return Err(DecoderError::FirstOutOfRange { token, size });
        }
        let mut special = special.to_vec();
        special.sort_unstable();
        special.dedup();
        Ok(Self { bytes: bytes.into(), entries: entries.into(), special: special.into(), start })
    }

    /// The number of ids.
    pub fn vocab_size(&self) -> usize {
        self.entries.len()
    }

    /// Returns the differences at the start of a text.
    pub fn start(&self) -> &TextStart {
        &self.start
    }

    /// Whether anything is.
    #[inline]
    pub(super) fn has_start(&self) -> bool {
        self.start.strip_first_space || !self.start.first_tokens.is_empty()
    }

    /// Returns a token's bytes at the start of a text, and whether the text still starts after it.
    pub(super) fn first_bytes<'a>(&'a self, id: TokenId, token: Token<'a>) -> (&'a [u8], bool) {
        let bytes = match self.start.first_tokens.get(&id) {
            Some(bytes) => bytes,
            None if self.start.strip_first_space => {
                token.bytes.strip_prefix(b" ").unwrap_or(token.bytes)
            }
            None => token.bytes,
        };
        (bytes, bytes.is_empty() && self.start.strip_every_first_space)
    }

    /// About how many bytes of memory the table holds.
    pub fn memory_bytes(&self) -> usize {
        let first: usize = self.start.first_tokens.values().map(|bytes| 32 + bytes.len()).sum();
        let special = size_of_val(&*self.special);
        size_of::<Self>() + self.bytes.len() + size_of_val(&*self.entries) + special + first
    }

    #[inline]
    pub(crate) fn token(&self, token: TokenId) -> Result<Token<'_>, UnknownToken> {
        let entry = match self.entries.get(token.index()) {
            Some(&entry) if !entry.has(ABSENT) => entry,
            Some(_) => return Err(UnknownToken::NoToken { token }),
            None => return Err(UnknownToken::OutOfRange { token, size: self.entries.len() }),
        };
        let start = entry.start as usize;
        Ok(Token {
            bytes: &self.bytes[start..start + entry.length()],
            special: entry.has(SPECIAL),
            whole: entry.has(WHOLE),
        })
    }

    /// The special tokens with their names, in the order of their ids.
    pub(crate) fn specials(&self) -> impl Iterator<Item = (TokenId, &[u8])> {
        self.special.iter().filter_map(|&id| Some((id, self.token(id).ok()?.bytes)))
    }

    /// Returns the bytes of tokens.
    pub fn decode_bytes(
        &self,
        tokens: &[TokenId],
        skip_special_tokens: bool,
    ) -> Result<Vec<u8>, UnknownToken> {
        Ok(self.gather(tokens, skip_special_tokens, self.has_start())?.0)
    }

    /// The bytes of tokens that follow others or, with `first`, start a text; and whether the text
    /// still starts after them.
    pub(super) fn gather(
        &self,
        tokens: &[TokenId],
        skip_special_tokens: bool,
        mut first: bool,
    ) -> Result<(Vec<u8>, bool), UnknownToken> {
        let mut out = Vec::with_capacity(4 * tokens.len() + SHORT);
        for &id in tokens {
            let token = self.token(id)?;
            if token.special && skip_special_tokens || token.bytes.is_empty() {
                continue;
            }
            if first {
                let bytes;
                (bytes, first) = self.first_bytes(id, token);
                out.extend_from_slice(bytes);
            } else {
                self.append(id, token, &mut out);
            }
        }
        Ok((out, first))
    }

    /// Appends a token's bytes. It copies a fixed number at once, a single move for nearly every
    /// token: a call for each length takes three times as long.
    #[inline]
    fn append(&self, id: TokenId, token: Token<'_>, out: &mut Vec<u8>) {
        let start = self.entries[id.index()].start as usize;
        let length = token.bytes.len();
        match self.bytes[start..].first_chunk::<SHORT>() {
            Some(bytes) if length <= SHORT => {
                let before = out.len();
                out.extend_from_slice(bytes);
                out.truncate(before + length);
            }
            _ => out.extend_from_slice(token.bytes),
        }
    }

    /// Returns the text of tokens. Each longest prefix of a character that does not continue, and
    /// each byte that starts no character, becomes one U+FFFD, as WHATWG's Encoding Standard says.
    pub fn decode(
        &self,
        tokens: &[TokenId],
        skip_special_tokens: bool,
    ) -> Result<String, UnknownToken> {
        let bytes = self.decode_bytes(tokens, skip_special_tokens)?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| {
            match String::from_utf8_lossy(error.as_bytes()) {
                Cow::Owned(text) => text,
                Cow::Borrowed(text) => text.to_owned(),
            }
        }))
    }
}
