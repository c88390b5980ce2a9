//! Counting the tokens of a text that grows at its end.

use std::sync::Arc;

use super::error::TextError;
use super::options::{EncodeOptions, PartOptions};
use super::progress::Progress;
use super::{SpecialPolicy, Tokenizer};
use crate::bpe::Method;
use crate::vocabulary::TokenId;

/// A text that grows at its end, and the number of its tokens at every moment.
///
/// The count is that of encoding the text so far alone, with special tokens as text. Bytes of an
/// incomplete character at the end are not counted until it is complete.
pub struct AppendEncoder {
    tokenizer: Arc<Tokenizer>,
    options: PartOptions,
    progress: Progress,
    /// Whether the text is written after a dummy space.
    spaced: bool,
}

impl AppendEncoder {
    /// An empty text.
    ///
    /// If the tokenizer normalizes, and normalization is on, appended text that it could change is
    /// refused.
    pub fn new(tokenizer: Arc<Tokenizer>, options: PartOptions) -> Result<Self, TextError> {
        let progress = Progress::new(tokenizer.boundaries(options.pretokenize)?);
        Ok(Self { tokenizer, options, progress, spaced: false })
    }

    /// How many bytes the text has.
    pub fn len(&self) -> usize {
        self.progress.text().len() - usize::from(self.spaced)
    }

    /// Whether the text has no byte yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.progress.text()[usize::from(self.spaced)..]
    }

    /// Appends text, which may end within a character. In case of an error the text is as it was.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TextError> {
        let Some(&first) = bytes.first() else { return Ok(()) };
        let length = self.len();
        let tokenizer = &*self.tokenizer;
        tokenizer.check_bytes(bytes).map_err(|error| error.shifted(length))?;
        let boundaries = tokenizer.boundaries(self.options.pretokenize)?;
        if length == 0 {
            let dummy = tokenizer.dummy_space.filter(|_| self.options.dummy_space);
            self.spaced = dummy.is_some_and(|dummy| dummy.is_before(first));
            if self.spaced {
                self.progress.push(boundaries, tokenizer, b" ")?;
            }
        }
        let unchecked = self.progress.complete();
        let pushed = self.progress.push(boundaries, tokenizer, bytes).and_then(|()| {
            if !self.options.normalize || tokenizer.normalizer.is_identity() {
                return Ok(());
            }
            let complete = self.progress.complete();
            tokenizer
                .normalizer
                .keeps(&self.progress.text()[unchecked..complete])
                .map_err(|error| error.shifted(unchecked))
        });
        pushed.map_err(|error| {
            let error = error.unshifted(usize::from(self.spaced));
            self.truncate(length);
            error
        })
    }

    /// Truncates the text to its first `length` bytes; does nothing if it is shorter.
    pub fn truncate(&mut self, length: usize) {
        let Ok(boundaries) = self.tokenizer.boundaries(self.options.pretokenize) else { return };
        if length == 0 {
            self.progress.truncate(boundaries, &self.tokenizer, 0);
            self.spaced = false;
        } else if let Some(kept) = length.checked_add(usize::from(self.spaced)) {
            self.progress.truncate(boundaries, &self.tokenizer, kept);
        }
    }

    /// How many tokens the text has, without the bytes of a character that is not complete.
    pub fn count(&mut self) -> usize {
        match self.tokenizer.boundaries(self.options.pretokenize) {
            _ if self.complete() == 0 => 0,
            Ok(boundaries) => self.progress.count(boundaries, &self.tokenizer),
            Err(_) => 0,
        }
    }

    /// How many bytes of the text are complete characters.
    pub fn complete(&self) -> usize {
        self.progress.complete().saturating_sub(usize::from(self.spaced))
    }

    /// The tokens of the text, without the bytes of a character that is not complete. Encodes all
    /// of it.
    pub fn tokens(&self) -> Result<Vec<TokenId>, TextError> {
        let options = EncodeOptions {
            special: SpecialPolicy::Text,
            method: Method::Backtracking,
            part: self.options,
        };
        self.tokenizer.encode(&self.text()[..self.complete()], &options)
    }
}
