//! Encoding and counting whole texts.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::error::TextError;
use super::options::{EncodeOptions, PartOptions, Scope};
use super::recent::Recent;
use super::specials::{Finders, Stretch};
use super::Tokenizer;
use crate::bpe::Method;
use crate::pretokenizer::PreTokenizer;
use crate::vocabulary::TokenId;

/// A part of a text after special tokens are found.
pub(super) enum Part<'t> {
    Token {
        token: TokenId,
        place: TextRange,
    },
    /// `dummy`: the first byte is the space that the tokenizer adds.
    Text {
        text: &'t [u8],
        dummy: bool,
        place: TextRange,
    },
}

/// The range of a part of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextRange {
    /// A part of the text without changes.
    pub raw: (usize, usize),
    /// The range within the normalized part; `None` for all of it.
    pub normalized: Option<(usize, usize)>,
}

impl Tokenizer {
    /// The tokens of a text.
    pub fn encode(&self, text: &[u8], options: &EncodeOptions) -> Result<Vec<TokenId>, TextError> {
        let mut out = Vec::with_capacity(text.len() / 3 + 8);
        let _ = self.cut(text, options, &mut |part| {
            match part {
                Part::Token { token, .. } => out.push(token),
                Part::Text { text, .. } => {
                    let splitter = self.splitter(options.part.pretokenize);
                    self.encode_pieces(splitter, text, options.method, &mut out);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(out)
    }

    /// The tokens of a part in the middle of a text: only split and merged.
    #[cfg(test)]
    pub(crate) fn encode_part(&self, text: &[u8], out: &mut Vec<TokenId>) {
        self.encode_pieces(&self.pretokenizer, text, Method::Backtracking, out);
    }

    pub(super) fn encode_pieces(
        &self,
        splitter: &PreTokenizer,
        text: &[u8],
        method: Method,
        out: &mut Vec<TokenId>,
    ) {
        if method != Method::Backtracking {
            for piece in splitter.pieces(text) {
                self.table.encode_piece_by(method, &text[piece.start..piece.end], out);
            }
            return;
        }
        let (pieces, mut cache) = (self.pieces(), self.caches.borrow(text.len()));
        let mut recent = Recent::new(text.len());
        for piece in splitter.pieces(text) {
            let (start, end) = (piece.start, piece.end);
            cache.encode(text, start, end, out, |out| {
                match pieces.get(&self.table, text, start, end) {
                    Some(token) => out.push(token),
                    None => recent.encode(text, start, end, out, |piece, out| {
                        self.table.encode_piece(piece, out);
                    }),
                }
            });
        }
    }

    /// How many tokens a text has.
    pub fn count(&self, text: &[u8], options: &EncodeOptions) -> Result<usize, TextError> {
        Ok(self.count_up_to(text, usize::MAX, options)?.unwrap_or(usize::MAX))
    }

    /// How many tokens a text has; `None` if they are more than `limit`. Reads only as much of the
    /// text as that needs.
    pub fn count_up_to(
        &self,
        text: &[u8],
        limit: usize,
        options: &EncodeOptions,
    ) -> Result<Option<usize>, TextError> {
        let mut count = 0;
        let flow = self.cut(text, options, &mut |part| {
            match part {
                Part::Token { .. } => count += 1,
                Part::Text { text, .. } => self.count_pieces(text, limit, options, &mut count)?,
            }
            if count > limit {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok(flow.is_continue().then_some(count))
    }

    /// Adds the number of tokens of a stretch to `count`, until it is above `limit`.
    fn count_pieces(
        &self,
        text: &[u8],
        limit: usize,
        options: &EncodeOptions,
        count: &mut usize,
    ) -> ControlFlow<()> {
        let longest = self.table.max_token_bytes();
        // No token is longer than the longest.
        if text.len().div_ceil(longest) > limit - *count {
            return ControlFlow::Break(());
        }
        let mut scratch = Vec::new();
        let (pieces, mut cache) = (self.pieces(), self.caches.borrow(text.len()));
        let mut recent = Recent::new(text.len());
        for piece in self.splitter(options.part.pretokenize).pieces(text) {
            let (start, end) = (piece.start, piece.end);
            *count += if options.method == Method::Backtracking {
                cache.count(text, start, end, &mut scratch, |out| {
                    match pieces.get(&self.table, text, start, end) {
                        Some(token) => {
                            out.push(token);
                            1
                        }
                        None => recent.count(text, start, end, |piece| {
                            self.table.encode_piece(piece, out);
                            out.len()
                        }),
                    }
                })
            } else {
                scratch.clear();
                self.table.encode_piece_by(options.method, &text[start..end], &mut scratch);
                scratch.len()
            };
            if *count > limit {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// How many tokens a piece of a text has.
    #[inline]
    pub(super) fn count_piece(&self, text: &[u8], start: usize, end: usize) -> usize {
        match self.pieces().get(&self.table, text, start, end) {
            Some(_) => 1,
            None => self.table.count_piece(&text[start..end]),
        }
    }

    /// Calls back with the parts of a text in order, until told to stop.
    pub(super) fn cut(
        &self,
        text: &[u8],
        options: &EncodeOptions,
        f: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, TextError> {
        self.check_bytes(text)?;
        self.specials.forbid(text, &options.special)?;
        let finders = self.specials.finders(&options.special)?;
        if finders.is_empty() {
            return self.cut_stretch(text, (0, text.len()), true, &finders, &options.part, f);
        }
        let mut begun = false;
        self.specials.cut_raw(&finders, text, |stretch| {
            let first = !std::mem::replace(&mut begun, true);
            self.cut_found(text, stretch, first, &finders, &options.part, f)
        })
    }

    /// A stretch of the text as it is; `first`: the text begins with it.
    pub(super) fn cut_found(
        &self,
        text: &[u8],
        stretch: Stretch,
        first: bool,
        finders: &Finders,
        options: &PartOptions,
        f: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, TextError> {
        match stretch {
            Stretch::Token { token, start, end } => {
                let place = TextRange { raw: (start, end), normalized: None };
                Ok(self.cut_token(token, place, first, options, f))
            }
            Stretch::Text { start, end } => {
                self.cut_stretch(text, (start, end), first, finders, options, f)
            }
        }
    }

    /// A found token; `first`: at the start of the text.
    fn cut_token(
        &self,
        token: TokenId,
        place: TextRange,
        first: bool,
        options: &PartOptions,
        f: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let dummy = self.dummy_space.filter(|_| options.dummy_space && first);
        if dummy.is_some_and(|dummy| dummy.scope == Scope::Text) {
            f(Part::Text { text: b" ", dummy: true, place })?;
        }
        f(Part::Token { token, place })
    }

    /// The part between tokens that are found in the unchanged text.
    fn cut_stretch(
        &self,
        text: &[u8],
        raw: (usize, usize),
        first: bool,
        finders: &Finders,
        options: &PartOptions,
        f: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, TextError> {
        let stretch = &text[raw.0..raw.1];
        let text = match options.normalize {
            true => self.normalizer.apply(stretch).map_err(|error| error.shifted(raw.0))?,
            false => Cow::Borrowed(stretch),
        };
        let mut begun = !first;
        self.specials.cut_normalized(finders, &text, |stretch| {
            let first = !std::mem::replace(&mut begun, true);
            Ok(match stretch {
                Stretch::Token { token, start, end } => {
                    let place = TextRange { raw, normalized: Some((start, end)) };
                    self.cut_token(token, place, first, options, f)
                }
                Stretch::Text { start, end } => {
                    let place = TextRange { raw, normalized: Some((start, end)) };
                    self.cut_text(&text[start..end], place, first, options, f)
                }
            })
        })
    }

    /// A part of normalized text that is not searched any more.
    fn cut_text(
        &self,
        text: &[u8],
        place: TextRange,
        first: bool,
        options: &PartOptions,
        f: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let dummy = self.dummy_space.filter(|dummy| {
            options.dummy_space
                && (first || dummy.scope == Scope::Every)
                && dummy.is_before(text[0])
        });
        match dummy {
            Some(_) => f(Part::Text { text: &[b" ", text].concat(), dummy: true, place }),
            None => f(Part::Text { text, dummy: false, place }),
        }
    }
}
