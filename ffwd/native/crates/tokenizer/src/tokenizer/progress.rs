//! A partial text: every possible division into pieces so far, each with its number of tokens.
//!
//! A pre-tokenizer's patterns look ahead, so the end of a piece may be decided much later. The last
//! of a million spaces belongs to the spaces or to the word after them, and a newline after them
//! makes them one piece. All hypotheses are therefore followed at once. Exactly one of them holds
//! if the text ends here.

use smallvec::SmallVec;

use super::error::TextError;
use super::Tokenizer;
use crate::bpe::{BpeTable, PieceAppender};
use crate::pretokenizer::{Boundaries, HypothesisId};

/// One hypothesis about a text so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Live {
    pub hypothesis: HypothesisId,
    /// The start of the open piece.
    pub start: usize,
    /// How many tokens the text has before it.
    pub before: usize,
}

/// Pieces up to this length are encoded on their own whenever they are counted.
const SHORT: usize = 24;

/// The most long pieces that are followed at once. Each belongs to hypotheses that disagree.
const LONG_PIECES: usize = 4;

/// The token counts of the long pieces that were counted last.
#[derive(Default)]
pub(super) struct LongPieces {
    /// By their start in the text, the most recently used first. They have read text within the
    /// current one, possibly beyond the end of the piece.
    kept: SmallVec<[(usize, PieceAppender); LONG_PIECES]>,
}

impl LongPieces {
    /// The number of tokens of the piece from `start` to `end`.
    #[inline]
    pub fn count(&mut self, tokenizer: &Tokenizer, text: &[u8], start: usize, end: usize) -> usize {
        if end - start <= SHORT {
            tokenizer.count_piece(text, start, end)
        } else {
            self.count_long(tokenizer.table(), &text[start..end], start)
        }
    }

    fn count_long(&mut self, table: &BpeTable, piece: &[u8], start: usize) -> usize {
        match self.kept.iter().position(|&(other, _)| other == start) {
            Some(place) => self.kept[..=place].rotate_right(1),
            None => {
                self.kept.truncate(LONG_PIECES - 1);
                self.kept.insert(0, (start, PieceAppender::new()));
            }
        }
        let appender = &mut self.kept[0].1;
        appender.extend(table, &piece[appender.len().min(piece.len())..]);
        appender.count_of_prefix(table, piece.len())
    }

    /// Truncates the text to this many bytes.
    pub fn truncate(&mut self, length: usize) {
        self.kept.retain(|&mut (start, _)| start < length);
        for (start, appender) in &mut self.kept {
            appender.truncate(length - *start);
        }
    }
}

/// Reads one byte under every hypothesis. `count` returns the number of tokens of the piece from a
/// place to the byte. Leaves `next` empty if the byte is not allowed.
#[inline]
pub(super) fn advance(
    boundaries: &Boundaries,
    lives: &[Live],
    at: usize,
    byte: u8,
    next: &mut Vec<Live>,
    mut count: impl FnMut(usize) -> usize,
) {
    next.clear();
    for live in lives {
        if let Some(hypothesis) = boundaries.step(live.hypothesis, byte) {
            next.push(Live { hypothesis, ..*live });
        }
        for &closed in boundaries.close(live.hypothesis) {
            if let Some(hypothesis) = boundaries.step(closed, byte) {
                let before = live.before + count(live.start);
                next.push(Live { hypothesis, start: at, before });
            }
        }
    }
}

/// The one hypothesis that holds if the text ends here.
pub(super) fn ending<'l>(boundaries: &Boundaries, lives: &'l [Live]) -> Option<&'l Live> {
    lives.iter().find(|live| boundaries.can_end(live.hypothesis))
}

/// The hypotheses about a text that begins at a place.
pub(super) fn beginning(boundaries: &Boundaries, start: usize) -> Vec<Live> {
    vec![Live { hypothesis: boundaries.start(), start, before: 0 }]
}

/// How many bytes follow the first one of a character.
fn following(first: u8) -> u8 {
    match first {
        0xC0..=0xDF => 1,
        0xE0..=0xEF => 2,
        0xF0..=0xFF => 3,
        _ => 0,
    }
}

/// The distance between the positions with stored hypotheses, to which a text can be truncated.
const MARK: usize = 32;

/// A partial text with its hypotheses.
pub(super) struct Progress {
    text: Vec<u8>,
    /// The hypotheses after all of the text, and room for those after the next byte.
    lives: Vec<Live>,
    next: Vec<Live>,
    /// How many bytes the incomplete character at the end lacks.
    missing: u8,
    /// Within a character: where it begins, and the hypotheses there.
    complete: usize,
    at_complete: Vec<Live>,
    /// The hypotheses at multiples of [`MARK`], from 0 on: those at the `i`-th are
    /// `marked[marks[i]..marks[i + 1]]`.
    marked: Vec<Live>,
    marks: Vec<usize>,
    long: LongPieces,
}

impl Progress {
    pub fn new(boundaries: &Boundaries) -> Self {
        let lives = beginning(boundaries, 0);
        Self {
            text: Vec::new(),
            next: Vec::new(),
            missing: 0,
            complete: 0,
            at_complete: Vec::new(),
            marked: lives.clone(),
            marks: vec![0],
            lives,
            long: LongPieces::default(),
        }
    }

    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// How much of the text is complete characters.
    pub fn complete(&self) -> usize {
        match self.missing {
            0 => self.text.len(),
            _ => self.complete,
        }
    }

    /// Returns whether every hypothesis satisfies a condition at the end of the last complete
    /// character. The condition also receives the text up to there.
    pub fn all_lives(&mut self, mut f: impl FnMut(&[u8], &Live, &mut LongPieces) -> bool) -> bool {
        let text = &self.text[..self.complete()];
        let lives = match self.missing {
            0 => &self.lives,
            _ => &self.at_complete,
        };
        lives.iter().all(|live| f(text, live, &mut self.long))
    }

    /// Appends bytes. If one of them is not allowed at its position, nothing changes.
    pub fn push(
        &mut self,
        boundaries: &Boundaries,
        tokenizer: &Tokenizer,
        bytes: &[u8],
    ) -> Result<(), TextError> {
        let length = self.text.len();
        self.text.reserve(bytes.len());
        for &byte in bytes {
            if !self.push_byte(boundaries, tokenizer, byte) {
                let at = self.text.len();
                self.truncate(boundaries, tokenizer, length);
                return Err(TextError::NotUtf8 { at });
            }
        }
        Ok(())
    }

    #[inline]
    fn push_byte(&mut self, boundaries: &Boundaries, tokenizer: &Tokenizer, byte: u8) -> bool {
        let (text, long) = (&self.text, &mut self.long);
        let at = text.len();
        advance(boundaries, &self.lives, at, byte, &mut self.next, |start| {
            long.count(tokenizer, text, start, at)
        });
        if self.next.is_empty() {
            return false;
        }
        std::mem::swap(&mut self.lives, &mut self.next);
        self.text.push(byte);
        if self.missing > 0 {
            self.missing -= 1;
        } else if byte >= 0x80 {
            self.missing = following(byte);
            self.complete = at;
            // Those from before the byte.
            self.at_complete.clone_from(&self.next);
        }
        if self.text.len().is_multiple_of(MARK) {
            self.marks.push(self.marked.len());
            self.marked.extend_from_slice(&self.lives);
        }
        true
    }

    /// Truncates the text.
    pub fn truncate(&mut self, boundaries: &Boundaries, tokenizer: &Tokenizer, length: usize) {
        if length >= self.text.len() {
            return;
        }
        self.long.truncate(length);
        // From a mark that is not within a character.
        let mut mark = length / MARK;
        while mark > 0 && self.text[mark * MARK] & 0xC0 == 0x80 {
            mark -= 1;
        }
        let tail = SmallVec::<[u8; 2 * MARK]>::from_slice(&self.text[mark * MARK..length]);
        let start = self.marks[mark];
        let end = self.marks.get(mark + 1).copied().unwrap_or(self.marked.len());
        self.lives.clear();
        self.lives.extend_from_slice(&self.marked[start..end]);
        self.marks.truncate(mark + 1);
        self.marked.truncate(end);
        self.text.truncate(mark * MARK);
        self.missing = 0;
        for &byte in &tail {
            self.push_byte(boundaries, tokenizer, byte);
        }
    }

    /// How many tokens the complete characters of the text have.
    pub fn count(&mut self, boundaries: &Boundaries, tokenizer: &Tokenizer) -> usize {
        let complete = self.complete();
        let lives = match self.missing {
            0 => &self.lives,
            _ => &self.at_complete,
        };
        match ending(boundaries, lives) {
            Some(live) if complete > live.start => {
                live.before + self.long.count(tokenizer, &self.text, live.start, complete)
            }
            _ => 0,
        }
    }
}
