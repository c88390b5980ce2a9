//! The tokens of a request so far, their text, and the position of each token in it.

use std::ops::Range;
use std::sync::Arc;

use super::decoder::Decoder;
use super::error::UnknownToken;
use super::unfinished::Unfinished;
use crate::vocabulary::TokenId;

/// Tokens and their text, which grow together.
///
/// A token covers each character that it has a byte of, so tokens that share a character overlap in
/// characters. In bytes they never overlap.
#[derive(Clone, Debug)]
pub struct Sequence {
    decoder: Arc<Decoder>,
    skip_special_tokens: bool,
    tokens: Vec<TokenId>,
    places: Vec<TokenOffset>,
    bytes: Vec<u8>,
    /// The certain part of the text.
    text: String,
    characters: usize,
    unfinished: Unfinished,
    /// Whether nothing is written yet and the start of a text differs.
    first: bool,
    prompt: Prompt,
}

/// The position of a token: in the bytes, and in characters of the text.
#[derive(Clone, Copy, Debug)]
struct TokenOffset {
    end_byte: usize,
    start: usize,
    end: usize,
}

/// How much of the sequence is the prompt.
#[derive(Clone, Copy, Debug, Default)]
struct Prompt {
    tokens: usize,
    text: usize,
}

impl Sequence {
    /// The empty sequence. With `skip_special_tokens`, special tokens add no text.
    pub fn new(decoder: Arc<Decoder>, skip_special_tokens: bool) -> Self {
        let first = decoder.has_start();
        Self {
            decoder,
            skip_special_tokens,
            tokens: Vec::new(),
            places: Vec::new(),
            bytes: Vec::new(),
            text: String::new(),
            characters: 0,
            unfinished: Unfinished::default(),
            first,
            prompt: Prompt::default(),
        }
    }

    /// Adds a token. Returns the text that has become certain by it. An unknown one changes nothing.
    pub fn append(&mut self, token: TokenId) -> Result<&str, UnknownToken> {
        let entry = self.decoder.token(token)?;
        let before = self.text.len();
        let mut start = self.characters;
        let shown = !entry.special || !self.skip_special_tokens;
        if shown && !entry.bytes.is_empty() {
            let bytes;
            (bytes, self.first) = match self.first {
                true => self.decoder.first_bytes(token, entry),
                false => (entry.bytes, false),
            };
            let begun = self.unfinished;
            self.unfinished.push(bytes, &mut self.text);
            self.bytes.extend_from_slice(bytes);
            let new = &self.text[before..];
            self.characters += new.chars().count();
            if !begun.is_empty() && self.is_broken_off(begun, bytes) {
                start += 1;
            }
        } else if !self.unfinished.is_empty() {
            // The incomplete character has no byte of this token.
            start += 1;
        }
        let end = self.characters + usize::from(!self.unfinished.is_empty());
        self.tokens.push(token);
        let end = if shown { end.max(start) } else { start };
        self.places.push(TokenOffset { end_byte: self.bytes.len(), start, end });
        Ok(&self.text[before..])
    }

    /// Adds tokens. Returns the text that has become certain by them. If one is unknown, none is added.
    pub fn append_batch(&mut self, tokens: &[TokenId]) -> Result<&str, UnknownToken> {
        for &token in tokens {
            self.decoder.token(token)?;
        }
        let before = self.text.len();
        for &token in tokens {
            self.append(token)?;
        }
        Ok(&self.text[before..])
    }

    /// Returns whether these bytes do not continue an open character.
    fn is_broken_off(&self, begun: Unfinished, bytes: &[u8]) -> bool {
        let mut character = begun.bytes().to_vec();
        character.extend(bytes.first());
        !bytes.is_empty()
            && std::str::from_utf8(&character).is_err_and(|error| error.error_len().is_some())
    }

    /// Marks the appended tokens as the prompt.
    pub fn end_prompt(&mut self) {
        self.prompt = Prompt { tokens: self.tokens.len(), text: self.text.len() };
    }

    /// Whether a text begins here: after a special token, and at the beginning.
    pub fn at_text_start(&self) -> bool {
        self.tokens.last().is_none_or(|&last| self.decoder.token(last).is_ok_and(|it| it.special))
    }

    /// All tokens, the prompt first.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The tokens up to the last [`Self::end_prompt`]; none without one.
    pub fn prompt_tokens(&self) -> &[TokenId] {
        &self.tokens[..self.prompt.tokens]
    }

    /// The tokens after the prompt.
    pub fn generated_tokens(&self) -> &[TokenId] {
        &self.tokens[self.prompt.tokens..]
    }

    /// The bytes of all tokens.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the text without an incomplete character at its end.
    #[cfg(test)]
    pub(crate) fn certain_text(&self) -> &str {
        &self.text
    }

    /// The text of all tokens: [`Decoder::decode`] of them.
    pub fn text(&self) -> String {
        self.with_end(&self.text)
    }

    /// The text of the prompt, without the beginning of a character that it may end with.
    pub fn prompt_text(&self) -> &str {
        &self.text[..self.prompt.text]
    }

    /// Returns the text after the prompt's, including a character that starts in the prompt.
    pub fn generated_text(&self) -> String {
        self.with_end(&self.text[self.prompt.text..])
    }

    fn with_end(&self, text: &str) -> String {
        let mut out = text.to_owned();
        self.unfinished.clone().finish(&mut out);
        out
    }

    /// The bytes held back: the beginning of a character.
    pub fn unfinished(&self) -> &[u8] {
        self.unfinished.bytes()
    }

    /// Returns each token's range in [`bytes`](Self::bytes).
    pub fn byte_ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        let mut start = 0;
        self.places.iter().map(move |place| {
            let range = start..place.end_byte;
            start = place.end_byte;
            range
        })
    }

    /// Returns each token's range in [`text`](Self::text), in characters.
    pub fn character_ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        self.places.iter().map(|place| place.start..place.end)
    }
}
