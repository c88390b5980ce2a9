//! Text, cut into pieces by all stages of a pre-tokenizer.

use super::classes::Classes;
use super::dfa::Memo;
use super::stage::Stage;
use super::PreTokenizer;

/// One piece of a text. It begins where the one before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub start: usize,
    pub end: usize,
    /// Whether it is the same piece whatever text follows: its end, and those of the pieces before
    /// it, were decided without looking at the end of the text.
    pub certain: bool,
    /// Whether the text behind it, cut for itself, gives the pieces that follow. That is so at
    /// every piece where there is one stage, and at nearly all where there are several.
    pub restart: bool,
}

/// The pieces of a text, in time linear in its length.
#[derive(Debug)]
pub struct Pieces<'p, 't> {
    pretokenizer: &'p PreTokenizer,
    text: &'t [u8],
    at: usize,
    /// Whether all pieces so far are certain.
    certain: bool,
    /// One for each stage.
    levels: Vec<Level>,
}

/// The piece of one stage that is being cut further.
#[derive(Debug)]
struct Level {
    end: usize,
    /// How much of the text up to `end` is certain to belong to the piece; one more if it is also
    /// certain to end there.
    known: usize,
    divisible: bool,
    memo: Memo,
}

impl<'p, 't> Pieces<'p, 't> {
    pub(super) fn new(pretokenizer: &'p PreTokenizer, text: &'t [u8], from: usize) -> Self {
        let levels = pretokenizer
            .stages
            .iter()
            .map(|_| Level { end: from, known: from, divisible: true, memo: Memo::default() })
            .collect();
        Self { pretokenizer, text, at: from, certain: true, levels }
    }
}

#[cfg(test)]
impl Pieces<'_, '_> {
    /// How many bytes all stages have scanned.
    pub fn scanned(&self) -> usize {
        self.levels.iter().map(|level| level.memo.scanned).sum()
    }
}

impl Level {
    fn refill(&mut self, stage: &Stage, classes: &Classes, text: &[u8], from: usize, known: usize) {
        let cut = stage.cut(classes, text, from, known, &mut self.memo);
        self.end = cut.end;
        self.known = if cut.looked <= known { cut.end + 1 } else { cut.sure };
        self.divisible = cut.divisible;
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
        let (mut outer_end, mut outer_known) = (self.text.len(), self.text.len());
        for (level, stage) in self.levels.iter_mut().zip(&self.pretokenizer.stages) {
            if level.end == start {
                let text = &self.text[..outer_end];
                level.refill(stage, &self.pretokenizer.classes, text, start, outer_known);
            }
            (outer_end, outer_known) = (level.end, level.known);
        }
        let end = outer_end;
        let restart = self.levels.iter().all(|level| level.end == end || level.divisible);
        self.at = end;
        self.certain &= outer_known > end;
        Some(Piece { start, end, certain: self.certain, restart })
    }
}
