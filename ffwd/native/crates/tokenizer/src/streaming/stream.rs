//! Decoding token by token.

use std::sync::Arc;

use super::decoder::{Decoder, Token};
use super::error::UnknownToken;
use super::unfinished::Unfinished;
use crate::vocabulary::TokenId;

/// Decodes tokens one by one; the texts join to [`Decoder::decode`] of all of them.
///
/// Only an incomplete character is held back; [`flush`](Self::flush) returns the rest at the end.
#[derive(Clone, Debug)]
pub struct DecodeStream {
    decoder: Arc<Decoder>,
    skip_special_tokens: bool,
    /// Whether nothing is written yet and the start of a text differs.
    first: bool,
    unfinished: Unfinished,
    out: String,
}

impl DecodeStream {
    /// A stream at the start of a text. With `skip_special_tokens`, special tokens add no text.
    pub fn new(decoder: Arc<Decoder>, skip_special_tokens: bool) -> Self {
        let first = decoder.has_start();
        let unfinished = Unfinished::default();
        Self { decoder, skip_special_tokens, first, unfinished, out: String::new() }
    }

    /// A stream after a prompt, whose last text determines how the stream's text starts. A special
    /// token ends a text, so only the tokens after the last one count.
    pub fn after(&mut self, prompt: &[TokenId]) -> Result<(), UnknownToken> {
        self.restart();
        let mut begin = 0;
        for (index, &token) in prompt.iter().enumerate() {
            if self.decoder.token(token)?.special {
                begin = index + 1;
            }
        }
        self.step_batch(&prompt[begin..])?;
        Ok(())
    }

    pub(crate) fn decoder(&self) -> &Arc<Decoder> {
        &self.decoder
    }

    /// Restarts at the start of a text, and drops the bytes held back.
    pub(crate) fn restart(&mut self) {
        self.first = self.decoder.has_start();
        self.unfinished = Unfinished::default();
        self.out = String::new();
    }

    /// The bytes held back: the beginning of a character.
    pub fn unfinished(&self) -> &[u8] {
        self.unfinished.bytes()
    }

    /// The text that a token adds; empty if none is certain yet. An unknown token changes nothing.
    #[inline]
    pub fn step(&mut self, id: TokenId) -> Result<&str, UnknownToken> {
        // The shared table is borrowed apart from what the token changes.
        let Self { decoder, skip_special_tokens, first, unfinished, out } = self;
        let token = decoder.token(id)?;
        if token.special && *skip_special_tokens {
            return Ok("");
        }
        if token.whole && !*first && unfinished.is_empty() {
            return Ok(std::str::from_utf8(token.bytes).unwrap_or_default());
        }
        out.clear();
        write(decoder, (id, token), first, unfinished, out);
        Ok(out)
    }

    /// The text that several tokens add. If one of them is unknown, none changes anything.
    pub fn step_batch(&mut self, tokens: &[TokenId]) -> Result<&str, UnknownToken> {
        let Self { decoder, skip_special_tokens, first, unfinished, out } = self;
        let bytes;
        (bytes, *first) = decoder.gather(tokens, *skip_special_tokens, *first)?;
        out.clear();
        unfinished.push(&bytes, out);
        Ok(out)
    }

    /// The text that a token adds even if it is special.
    pub(super) fn step_shown(&mut self, id: TokenId) -> Result<&str, UnknownToken> {
        let Self { decoder, first, unfinished, out, .. } = self;
        let token = decoder.token(id)?;
        out.clear();
        write(decoder, (id, token), first, unfinished, out);
        Ok(out)
    }

    /// Ends the text: returns U+FFFD if it ends within a character. Restarts.
    pub fn flush(&mut self) -> &str {
        self.out.clear();
        self.unfinished.finish(&mut self.out);
        self.first = self.decoder.has_start();
        &self.out
    }
}

#[inline]
fn write(
    decoder: &Decoder,
    (id, token): (TokenId, Token<'_>),
    first: &mut bool,
    unfinished: &mut Unfinished,
    out: &mut String,
) {
    if token.bytes.is_empty() {
        return;
    }
    if *first {
        let bytes;
        (bytes, *first) = decoder.first_bytes(id, token);
        unfinished.push(bytes, out);
    } else if token.whole && unfinished.is_empty() {
        out.push_str(std::str::from_utf8(token.bytes).unwrap_or_default());
    } else {
        unfinished.push(token.bytes, out);
    }
}
