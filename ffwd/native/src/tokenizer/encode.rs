//! Encoding and counting whole texts.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::error::TextError;
use super::options::{EncodeOptions, PartOptions, Scope};
use super::specials::{Finders, Stretch};
use super::Tokenizer;
use crate::bpe::Method;
use crate::vocabulary::TokenId;

/// What a text is made of once it has been cut.
enum Part<'t> {
    Token(TokenId),
    Piece(&'t [u8]),
}

impl Tokenizer {
    /// The tokens of a text.
    pub fn encode(&self, text: &[u8], options: &EncodeOptions) -> Result<Vec<TokenId>, TextError> {
        let mut out = Vec::with_capacity(text.len() / 3 + 8);
        let _ = self.cut(text, options, &mut |part| {
            match part {
                Part::Token(token) => out.push(token),
                Part::Piece(piece) => self.encode_piece(piece, options.method, &mut out),
            }
            ControlFlow::Continue(())
        })?;
        Ok(out)
    }

    /// The tokens of a stretch in the middle of a text: only cut and merged.
    pub fn encode_part(&self, text: &[u8], out: &mut Vec<TokenId>) {
        for piece in self.pretokenizer.pieces(text) {
            self.table.encode_piece(&text[piece.start..piece.end], out);
        }
    }

    /// How many tokens a text has.
    pub fn count(&self, text: &[u8], options: &EncodeOptions) -> Result<usize, TextError> {
        Ok(self.count_up_to(text, usize::MAX, options)?.unwrap_or(usize::MAX))
    }

    /// How many tokens a text has; `None` if they are more than `limit`. Reads no more of the
    /// text than it takes to know that.
    pub fn count_up_to(
        &self,
        text: &[u8],
        limit: usize,
        options: &EncodeOptions,
    ) -> Result<Option<usize>, TextError> {
        let longest = self.table.max_token_bytes();
        let mut count = 0;
        let mut scratch = Vec::new();
        let flow = self.cut(text, options, &mut |part| {
            match part {
                Part::Token(_) => count += 1,
                // No token is longer than the longest.
                Part::Piece(piece) if piece.len().div_ceil(longest) > limit - count => {
                    return ControlFlow::Break(());
                }
                Part::Piece(piece) if options.method == Method::Backtracking => {
                    count += self.table.count_piece(piece);
                }
                Part::Piece(piece) => {
                    scratch.clear();
                    self.encode_piece(piece, options.method, &mut scratch);
                    count += scratch.len();
                }
            }
            if count > limit {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok(flow.is_continue().then_some(count))
    }

    #[inline]
    fn encode_piece(&self, piece: &[u8], method: Method, out: &mut Vec<TokenId>) {
        match method {
            Method::Backtracking => self.table.encode_piece(piece, out),
            other => self.table.encode_piece_by(other, piece, out),
        }
    }

    /// Calls back with the parts of a text in order, until told to stop.
    fn cut(
        &self,
        text: &[u8],
        options: &EncodeOptions,
        f: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, TextError> {
        self.specials.forbid(text, &options.special)?;
        let finders = self.specials.finders(&options.special)?;
        if finders.is_empty() {
            return self.cut_stretch(text, true, &finders, &options.part, f);
        }
        let mut begun = false;
        self.specials.cut_raw(&finders, text, |stretch| {
            let first = !std::mem::replace(&mut begun, true);
            match stretch {
                Stretch::Token(token) => Ok(self.cut_token(token, first, &options.part, f)),
                Stretch::Text { start, end } => self
                    .cut_stretch(&text[start..end], first, &finders, &options.part, f)
                    .map_err(|error| error.shifted(start)),
            }
        })
    }

    /// A token that was found; `first`: at the beginning of the text.
    fn cut_token(
        &self,
        token: TokenId,
        first: bool,
        options: &PartOptions,
        f: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let dummy = self.dummy_space.filter(|_| options.dummy_space && first);
        if dummy.is_some_and(|dummy| dummy.scope == Scope::Text) {
            f(Part::Piece(b" "))?;
        }
        f(Part::Token(token))
    }

    /// The stretch between tokens that are found in the text as it is.
    fn cut_stretch(
        &self,
        text: &[u8],
        first: bool,
        finders: &Finders,
        options: &PartOptions,
        f: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, TextError> {
        let text = match options.normalize {
            true => self.normalizer.apply(text)?,
            false => Cow::Borrowed(text),
        };
        let mut begun = !first;
        self.specials.cut_normalized(finders, &text, |stretch| {
            let first = !std::mem::replace(&mut begun, true);
            Ok(match stretch {
                Stretch::Token(token) => self.cut_token(token, first, options, f),
                Stretch::Text { start, end } => {
                    self.cut_pieces(&text[start..end], first, options, f)
                }
            })
        })
    }

    /// A stretch of normalized text in which nothing is looked for any more.
    fn cut_pieces(
        &self,
        text: &[u8],
        first: bool,
        options: &PartOptions,
        f: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let dummy = self.dummy_space.filter(|dummy| {
            options.dummy_space
                && (first || dummy.scope == Scope::Every)
                && dummy.is_before(text[0])
        });
        let text = match dummy {
            Some(_) => Cow::Owned([b" ", text].concat()),
            None => Cow::Borrowed(text),
        };
        for piece in self.splitter(options.pretokenize).pieces(&text) {
            f(Part::Piece(&text[piece.start..piece.end]))?;
        }
        ControlFlow::Continue(())
    }
}
