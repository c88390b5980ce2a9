//! Tokenization of whole texts: special tokens, normalization, the added space, pieces, and merges;
//! and token counts of changing texts.
//!
//! * [`Tokenizer`] encodes, counts, splits and decodes; many texts at once, texts with control
//!   tokens between them, and with the position of each token
//! * [`AppendEncoder`] and [`PrependEncoder`]: a text that grows at its end or its start
//! * [`IntervalCounter`] counts the tokens of any part of a text
//!
//! The last three use `pretokenizer::Boundaries`, which finds the possible ends of a partial text's
//! pieces. At nearly every offset it has one hypothesis, and never more than a few.

mod append;
mod batch;
mod encode;
mod error;
mod interval;
mod model_file;
mod model_json;
mod normalizer;
mod offsets;
mod options;
mod piece_cache;
mod piece_map;
mod prepend;
mod progress;
mod prompt;
mod rank_file;
mod recent;
mod specials;
mod split;
#[cfg(test)]
mod test_texts;
#[cfg(test)]
mod tests;
mod unused;

use std::sync::{Arc, OnceLock};

use crate::bpe::BpeTable;
use crate::pretokenizer::{Boundaries, PreTokenizer, StageSpec};
use crate::vocabulary::TokenId;

use piece_cache::PieceCaches;
use piece_map::PieceMap;

pub use append::AppendEncoder;
pub use error::{TextError, TokenizerError};
pub use interval::IntervalCounter;
pub use model_file::{ModelFile, PieceReader};
pub use model_json::{read_model, Writing};
pub use normalizer::Normalizer;
pub use offsets::{in_characters, Located};
pub use options::{DummySpace, EncodeOptions, PartOptions, Scope};
pub use prepend::PrependEncoder;
pub use prompt::PromptPart;
pub use rank_file::read_rank_file;
pub use specials::{SpecialPolicy, SpecialToken, SpecialTokens};
pub use unused::UnusedTokens;

/// Limits of a tokenizer, which make parts of a text, though not whole texts, inexact.
const NOT_FOLLOWED: &str = "the pre-tokenizer cannot be followed while a text is being written";
const TEXT_TOKENS: &str = "added tokens are looked for in every text";

/// The parts of a [`Tokenizer`].
pub struct TokenizerParts {
    /// How one piece of text is encoded.
    pub table: Arc<BpeTable>,
    /// The pre-tokenizer's stages; without any, texts are not split.
    pub stages: Vec<StageSpec>,
    /// The added tokens, control tokens among them.
    pub specials: Vec<SpecialToken>,
    /// The changes to a text before it is split.
    pub normalizer: Normalizer,
    /// The space that is written before texts, if one is.
    pub dummy_space: Option<DummySpace>,
    /// The differences from the original, by name.
    pub limits: Vec<String>,
    /// The number of ids; by default up to the largest that is given.
    pub vocab_size: Option<usize>,
}

/// A tokenizer: from text to tokens and back.
pub struct Tokenizer {
    table: Arc<BpeTable>,
    /// Made when a text is first encoded.
    pieces: OnceLock<PieceMap>,
    caches: PieceCaches,
    pretokenizer: PreTokenizer,
    /// The replacement of a disabled pre-tokenizer: it never splits.
    uncut: PreTokenizer,
    specials: SpecialTokens,
    normalizer: Normalizer,
    dummy_space: Option<DummySpace>,
    limits: Vec<String>,
    vocab_size: usize,
}

impl Tokenizer {
    /// Builds a tokenizer of its parts.
    ///
    /// # Errors
    /// A part is invalid or too large, or `vocab_size` is too small for the ids.
    pub fn new(parts: TokenizerParts) -> Result<Self, TokenizerError> {
        let largest = parts.specials.iter().map(|token| token.id.index() + 1).max();
        let width = parts.table.width().max(largest.unwrap_or(0));
        let vocab_size = parts.vocab_size.unwrap_or(width);
        if vocab_size < width {
            return Err(TokenizerError::TooNarrow { width: vocab_size, ids: width });
        }
        let pretokenizer = PreTokenizer::new(&parts.stages)?;
        let specials = SpecialTokens::new(parts.specials)?;
        let mut limits = parts.limits;
        if let Some(limit) = pretokenizer.boundaries_limit() {
            limits.push(format!("{NOT_FOLLOWED}: {limit}"));
        }
        if specials.any_text() {
            limits.push(TEXT_TOKENS.into());
        }
        Ok(Self {
            pieces: OnceLock::new(),
            caches: PieceCaches::default(),
            table: parts.table,
            pretokenizer,
            uncut: PreTokenizer::new(&[])?,
            specials,
            normalizer: parts.normalizer,
            dummy_space: parts.dummy_space,
            limits,
            vocab_size,
        })
    }

    /// How one piece of text is encoded.
    pub fn table(&self) -> &BpeTable {
        &self.table
    }

    /// How texts are split into pieces.
    pub fn pretokenizer(&self) -> &PreTokenizer {
        &self.pretokenizer
    }

    /// The added tokens, and the search for them.
    pub fn specials(&self) -> &SpecialTokens {
        &self.specials
    }

    /// The number of ids.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Returns the differences from the original, by name; empty if there are none.
    pub fn limits(&self) -> &[String] {
        &self.limits
    }

    /// Returns the bytes of a token, or the name of a special token; empty for an id without text.
    pub fn token_bytes(&self, token: TokenId) -> Result<&[u8], TextError> {
        if token.index() >= self.vocab_size {
            return Err(TextError::UnknownToken { token, size: self.vocab_size });
        }
        let text = self.table.text(token);
        if !text.is_empty() {
            return Ok(text);
        }
        Ok(self.specials.content(token).unwrap_or_default().as_bytes())
    }

    /// The bytes that tokens stand for, special tokens written by name.
    pub fn decode(&self, tokens: &[TokenId]) -> Result<Vec<u8>, TextError> {
        let mut out = Vec::with_capacity(4 * tokens.len());
        for &token in tokens {
            out.extend_from_slice(self.token_bytes(token)?);
        }
        Ok(out)
    }

    /// About how many bytes of memory the tokenizer holds.
    pub fn memory_bytes(&self) -> usize {
        let pieces = self.pieces.get().map_or(0, PieceMap::memory_bytes);
        self.table.memory_bytes() + pieces + self.caches.memory_bytes()
    }

    fn pieces(&self) -> &PieceMap {
        self.pieces.get_or_init(|| PieceMap::new(&self.table))
    }

    /// Rejects a text with a byte that no token has.
    fn check_bytes(&self, text: &[u8]) -> Result<(), TextError> {
        match self.table.missing_byte(text) {
            Some((at, byte)) => Err(TextError::NoByteToken { byte, at }),
            None => Ok(()),
        }
    }

    fn splitter(&self, pretokenize: bool) -> &PreTokenizer {
        if pretokenize {
            &self.pretokenizer
        } else {
            &self.uncut
        }
    }

    /// Returns the boundaries for changing texts, or why they are unavailable.
    fn boundaries(&self, pretokenize: bool) -> Result<&Boundaries, TextError> {
        if self.specials.any_text() {
            return Err(TextError::NotIncremental(TEXT_TOKENS.into()));
        }
        self.splitter(pretokenize)
            .boundaries()
            .ok_or_else(|| TextError::NotIncremental(NOT_FOLLOWED.into()))
    }
}
