//! The pieces of a text after all stages of a pre-tokenizer.

use super::dfa::Memo;
use super::PreTokenizer;

/// One piece of a text. It begins where the one before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The offset of its first byte in the text.
    pub start: usize,
    /// The offset behind its last byte.
    pub end: usize,
}

/// The pieces of a text, in time linear in its length.
#[derive(Debug)]
pub struct Pieces<'p, 't> {
    pretokenizer: &'p PreTokenizer,
    text: &'t [u8],
    at: usize,
    /// One for each stage.
    levels: Vec<Level>,
}

/// The piece of one stage that is being split further.
#[derive(Debug, Default)]
struct Level {
    end: usize,
    memo: Memo,
}

impl<'p, 't> Pieces<'p, 't> {
    pub(super) fn new(pretokenizer: &'p PreTokenizer, text: &'t [u8]) -> Self {
        let levels = pretokenizer.stages.iter().map(|_| Level::default()).collect();
        Self { pretokenizer, text, at: 0, levels }
    }

    /// How many bytes all stages have scanned.
    #[cfg(test)]
    pub(crate) fn scanned(&self) -> usize {
        self.levels.iter().map(|level| level.memo.scanned).sum()
    }
}

impl Iterator for Pieces<'_, '_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        let start = self.at;
        if start >= self.text.len() {
            return None;
        }
        let classes = &self.pretokenizer.classes;
        let mut end = self.text.len();
        for (level, stage) in self.levels.iter_mut().zip(&self.pretokenizer.stages) {
            // A piece of an earlier stage is the whole text for this one.
            if level.end == start {
                level.end = stage.cut(classes, &self.text[..end], start, &mut level.memo);
            }
            end = level.end;
        }
        self.at = end;
        Some(Piece { start, end })
    }
}
