//! Texts with control tokens between them, which are given as ids. Texts are not searched for
//! tokens.

use std::ops::ControlFlow;

use super::encode::Part;
use super::error::TextError;
use super::options::{EncodeOptions, Scope};
use super::specials::{white_space_at_end, white_space_at_start, SpecialPolicy};
use super::Tokenizer;
use crate::vocabulary::TokenId;

/// A part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptPart<'t> {
    /// Bytes to encode; special tokens in them are text.
    Text(&'t [u8]),
    /// A token as it is.
    Token(TokenId),
}

impl Tokenizer {
    /// The tokens of a prompt: those of its whole text, as if the tokenizer found exactly the given
    /// tokens.
    ///
    /// Adjacent texts are one part. Tokens absorb white space as they do when they are found. A
    /// space that is added before the text ([`Scope::Text`]) is added before every part: without
    /// found tokens, each part is a separate text.
    pub fn encode_parts(&self, parts: &[PromptPart<'_>]) -> Result<Vec<TokenId>, TextError> {
        let every = self.dummy_space.is_some_and(|dummy| dummy.scope == Scope::Text);
        let mut out = Vec::new();
        let mut stretch = Vec::new();
        let mut before = None;
        for part in parts.iter().copied() {
            match part {
                PromptPart::Text(text) => stretch.extend_from_slice(text),
                PromptPart::Token(token) => {
                    if token.index() >= self.vocab_size {
                        return Err(TextError::UnknownToken { token, size: self.vocab_size });
                    }
                    self.encode_stretch(&stretch, before, Some(token), every, &mut out)?;
                    stretch.clear();
                    out.push(token);
                    before = Some(token);
                }
            }
        }
        self.encode_stretch(&stretch, before, None, every, &mut out)?;
        Ok(out)
    }

    /// The tokens of the text between two tokens.
    fn encode_stretch(
        &self,
        text: &[u8],
        before: Option<TokenId>,
        after: Option<TokenId>,
        every: bool,
        out: &mut Vec<TokenId>,
    ) -> Result<(), TextError> {
        let flags = |token: Option<TokenId>| token.and_then(|token| self.specials.get(token));
        let start = match flags(before) {
            Some(token) if token.rstrip => white_space_at_start(text),
            _ => 0,
        };
        let end = match flags(after) {
            Some(token) if token.lstrip => text.len() - white_space_at_end(text),
            _ => text.len(),
        };
        let options = EncodeOptions::default();
        let finders = self.specials.finders(&SpecialPolicy::Text)?;
        let first = every || before.is_none();
        let mut push = |part: Part<'_>| {
            match part {
                Part::Token { token, .. } => out.push(token),
                Part::Text { text, .. } => {
                    self.encode_pieces(&self.pretokenizer, text, options.method, out);
                }
            }
            ControlFlow::Continue(())
        };
        let mut begun = !first;
        self.specials
            .cut_between(&finders, text, (start, end), |found| {
                let first = !std::mem::replace(&mut begun, true);
                self.cut_found(text, found, first, &finders, &options.part, &mut push)
            })
            .map(|_| ())
    }
}
