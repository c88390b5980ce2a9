//! A text in progress: every way in which its pieces may have ended so far, each with the number
//! of tokens that it makes.
//!
//! A pre-tokenizer's patterns look ahead, so the end of a piece may show much later: whether the
//! last of a million spaces belongs to the spaces or to the word after them, or whether a newline
//! that follows makes one piece of them. So the text is read by all hypotheses at once. Exactly
//! one of them holds if the text ends here.

use smallvec::SmallVec;

use super::error::TextError;
use crate::bpe::{BpeTable, PieceAppender};
use crate::pretokenizer::{Boundaries, HypothesisId};

/// One hypothesis about a text so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Live {
    pub hypothesis: HypothesisId,
    /// Where the open piece begins.
    pub start: usize,
    /// How many tokens the text has before it.
    pub before: usize,
}

pub(super) type Lives = SmallVec<[Live; 4]>;

/// Pieces up to this length are encoded on their own whenever they are counted.
const SHORT: usize = 24;

/// How many long pieces are kept track of at once: as many as hypotheses disagree about.
const LONG_PIECES: usize = 4;

/// The token counts of the long pieces that were counted last.
#[derive(Default)]
pub(super) struct LongPieces {
    /// By where they begin in the text, the most recently used first. What they have read of the
    /// text lies within it, beyond the end of the piece perhaps.
    kept: SmallVec<[(usize, PieceAppender); LONG_PIECES]>,
}

impl LongPieces {
    /// How many tokens the piece has that the text from `start` on is.
    pub fn count(&mut self, table: &BpeTable, text: &[u8], start: usize) -> usize {
        let piece = &text[start..];
        if piece.len() <= SHORT {
            return table.count_piece(piece);
        }
        if table.whole_piece(piece).is_some() {
            return 1;
        }
        let place = self.kept.iter().position(|&(other, _)| other == start);
        match place {
            Some(place) => self.kept[..=place].rotate_right(1),
            None => {
                self.kept.truncate(LONG_PIECES - 1);
                self.kept.insert(0, (start, PieceAppender::new()));
            }
        }
        let appender = &mut self.kept[0].1;
        for &byte in &piece[appender.len().min(piece.len())..] {
            appender.push(table, byte);
        }
        appender.count_of_prefix(table, piece.len())
    }

    /// The text has been cut down to so many bytes.
    pub fn truncate(&mut self, length: usize) {
        self.kept.retain(|&mut (start, _)| start < length);
        for (start, appender) in &mut self.kept {
            appender.truncate(length - *start);
        }
    }
}

/// Reads one byte under every hypothesis. `count` gives the number of tokens of the piece from a
/// place to where the byte stands. Leaves `next` empty if the byte cannot come there.
#[inline]
pub(super) fn advance(
    boundaries: &Boundaries,
    lives: &[Live],
    at: usize,
    byte: u8,
    next: &mut Lives,
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

/// How far apart the places are at which hypotheses are kept, to go back to.
const MARK: usize = 32;

/// A text that is being written, with its hypotheses.
pub(super) struct Progress {
    text: Vec<u8>,
    /// The hypotheses after all of the text.
    lives: Lives,
    /// How much of the text is complete characters, and the hypotheses there.
    complete: usize,
    at_complete: Lives,
    /// The hypotheses at multiples of [`MARK`], from 0 on: those at the `i`-th are
    /// `marked[marks[i]..marks[i + 1]]`.
    marked: Vec<Live>,
    marks: Vec<usize>,
    long: LongPieces,
}

impl Progress {
    pub fn new(boundaries: &Boundaries) -> Self {
        let first = Live { hypothesis: boundaries.start(), start: 0, before: 0 };
        let lives: Lives = SmallVec::from_slice(&[first]);
        Self {
            text: Vec::new(),
            at_complete: lives.clone(),
            complete: 0,
            marked: lives.to_vec(),
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
        self.complete
    }

    /// Whether something holds of every hypothesis, of which it is told the text, too.
    pub fn all_lives(&mut self, mut f: impl FnMut(&[u8], &Live, &mut LongPieces) -> bool) -> bool {
        let (text, long) = (&self.text[..self.complete], &mut self.long);
        self.at_complete.iter().all(|live| f(text, live, long))
    }

    /// Appends bytes. If one of them cannot stand where it does, nothing has changed.
    pub fn push(
        &mut self,
        boundaries: &Boundaries,
        table: &BpeTable,
        bytes: &[u8],
    ) -> Result<(), TextError> {
        let length = self.text.len();
        self.text.reserve(bytes.len());
        for &byte in bytes {
            if !self.push_byte(boundaries, table, byte) {
                let at = self.text.len();
                self.truncate(boundaries, table, length);
                return Err(TextError::NotUtf8 { at });
            }
        }
        Ok(())
    }

    fn push_byte(&mut self, boundaries: &Boundaries, table: &BpeTable, byte: u8) -> bool {
        let (text, long) = (&self.text, &mut self.long);
        let mut next = Lives::new();
        advance(boundaries, &self.lives, text.len(), byte, &mut next, |start| {
            long.count(table, text, start)
        });
        if next.is_empty() {
            return false;
        }
        self.lives = next;
        self.text.push(byte);
        if self.lives.iter().any(|live| boundaries.can_end(live.hypothesis)) {
            self.complete = self.text.len();
            self.at_complete.clone_from(&self.lives);
        }
        if self.text.len() % MARK == 0 {
            self.marks.push(self.marked.len());
            self.marked.extend_from_slice(&self.lives);
        }
        true
    }

    /// Goes back to a shorter text.
    pub fn truncate(&mut self, boundaries: &Boundaries, table: &BpeTable, length: usize) {
        if length >= self.text.len() {
            return;
        }
        self.long.truncate(length);
        // From the mark before the character that the text is cut in, or behind, if there is one.
        let mut mark = length / MARK;
        let mut tail = SmallVec::<[u8; 2 * MARK]>::from_slice(&self.text[mark * MARK..length]);
        while mark > 0 && !tail.iter().any(|byte| byte & 0xC0 != 0x80) {
            mark -= 1;
            tail = SmallVec::from_slice(&self.text[mark * MARK..length]);
        }
        let start = self.marks[mark];
        let end = self.marks.get(mark + 1).copied().unwrap_or(self.marked.len());
        self.lives = SmallVec::from_slice(&self.marked[start..end]);
        self.marks.truncate(mark + 1);
        self.marked.truncate(end);
        self.text.truncate(mark * MARK);
        self.complete = self.text.len();
        self.at_complete.clone_from(&self.lives);
        for &byte in &tail {
            self.push_byte(boundaries, table, byte);
        }
    }

    /// How many tokens the complete characters of the text have.
    pub fn count(&mut self, boundaries: &Boundaries, table: &BpeTable) -> usize {
        let ending = self.at_complete.iter().find(|live| boundaries.can_end(live.hypothesis));
        match ending {
            Some(live) if self.complete > live.start => {
                live.before + self.long.count(table, &self.text[..self.complete], live.start)
            }
            _ => 0,
        }
    }
}
