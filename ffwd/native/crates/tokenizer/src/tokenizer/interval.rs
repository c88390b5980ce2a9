//! Counting the tokens of any stretch of a text.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::error::TextError;
use super::options::PartOptions;
use super::progress::{advance, beginning, ending, Live, LongPieces};
use super::Tokenizer;
use crate::bpe::{Base, BpeTable, PieceAppender, PieceIntervals};
use crate::pretokenizer::Boundaries;

/// The distance between the positions with stored hypotheses.
const MARK: usize = 32;

/// The counts of pieces longer than this are kept.
const LONG: usize = 64;

/// A text, prepared so that the tokens of any of its stretches can be counted.
///
/// The count is that of encoding the stretch alone, with special tokens as text. The tokenizer's
/// dummy space before it counts unless that is switched off.
///
/// The pieces of a stretch soon equal those of the whole text, whatever stands before it. From the
/// position on where the hypotheses about both agree, the two counts grow alike. Near the end of
/// the stretch the hypotheses about the whole text are stored. So a count reads a few dozen bytes,
/// unless the stretch starts within a piece of thousands, which is then read once.
pub struct IntervalCounter {
    tokenizer: Arc<Tokenizer>,
    options: PartOptions,
    text: Box<[u8]>,
    prepared: Prepared,
}

enum Prepared {
    /// All of the text is one piece.
    OnePiece(PieceIntervals),
    Pieces(CountedPieces),
}

/// The pieces of a text, with their counts.
struct CountedPieces {
    /// The hypotheses at multiples of [`MARK`]: at the `i`-th, `lives[marks[i]..marks[i + 1]]`.
    marks: Vec<usize>,
    lives: Vec<Live>,
    /// Pieces that are longer than [`LONG`] at some mark, by their starts; read at least up to the
    /// next mark.
    long: FxHashMap<usize, PieceAppender>,
}

impl IntervalCounter {
    /// Reads a text that the tokenizer does not normalize. It must be UTF-8 unless it is all one
    /// piece.
    pub fn new(
        tokenizer: Arc<Tokenizer>,
        text: &[u8],
        options: PartOptions,
    ) -> Result<Self, TextError> {
        tokenizer.check_bytes(text)?;
        let boundaries = tokenizer.boundaries(options.pretokenize)?;
        if options.normalize {
            tokenizer.normalizer.keeps(text)?;
        }
        let uncut = !options.pretokenize || tokenizer.pretokenizer.is_whole();
        let prepared = if uncut {
            if tokenizer.table.base() == Base::Characters {
                std::str::from_utf8(text)
                    .map_err(|error| TextError::NotUtf8 { at: error.valid_up_to() })?;
            }
            Prepared::OnePiece(PieceIntervals::new(&tokenizer.table, text))
        } else {
            std::str::from_utf8(text)
                .map_err(|error| TextError::NotUtf8 { at: error.valid_up_to() })?;
            Prepared::Pieces(CountedPieces::new(boundaries, &tokenizer, text)?)
        };
        Ok(Self { options, prepared, text: text.into(), tokenizer })
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// How many tokens a stretch has. Its ends, in bytes, must not be inside a character, unless
    /// the tokens are of bytes and the text is one piece.
    pub fn count(&self, range: Range<usize>) -> Result<usize, TextError> {
        let (start, end) = (range.start, range.end);
        if start > end || end > self.text.len() {
            return Err(TextError::OutOfRange { start, end, length: self.text.len() });
        }
        let table = &self.tokenizer.table;
        let whole_characters = match self.prepared {
            Prepared::OnePiece(_) => table.base() == Base::Characters,
            Prepared::Pieces(_) => true,
        };
        if whole_characters {
            let inside = |at: usize| self.text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
            if let Some(at) = [start, end].into_iter().find(|&at| inside(at)) {
                return Err(TextError::InsideCharacter { at });
            }
        }
        if start == end {
            return Ok(0);
        }
        let dummy = self.tokenizer.dummy_space.filter(|_| self.options.dummy_space);
        let spaced = dummy.is_some_and(|dummy| dummy.is_before(self.text[start]));
        match &self.prepared {
            Prepared::OnePiece(intervals) if spaced => {
                Ok(intervals.count_after_space(table, start..end))
            }
            Prepared::OnePiece(intervals) => Ok(intervals.count(table, start..end)),
            Prepared::Pieces(pieces) => {
                let boundaries = self.tokenizer.boundaries(self.options.pretokenize)?;
                let stretch = LastStretch::new(&self.tokenizer, &self.text[..end], start, spaced);
                pieces.count(boundaries, &self.tokenizer, stretch)
            }
        }
    }
}

impl CountedPieces {
    fn new(boundaries: &Boundaries, tokenizer: &Tokenizer, text: &[u8]) -> Result<Self, TextError> {
        let mut pieces = Self { marks: Vec::new(), lives: Vec::new(), long: FxHashMap::default() };
        let mut recent = LongPieces::default();
        let mut lives = beginning(boundaries, 0);
        let mut next = Vec::new();
        for (at, &byte) in text.iter().enumerate() {
            if at % MARK == 0 {
                pieces.mark(&tokenizer.table, text, at, &lives);
            }
            advance(boundaries, &lives, at, byte, &mut next, |start| {
                let known = pieces.long_count(&tokenizer.table, start, at);
                known.unwrap_or_else(|| recent.count(tokenizer, text, start, at))
            });
            if next.is_empty() {
                return Err(TextError::NotUtf8 { at });
            }
            std::mem::swap(&mut lives, &mut next);
        }
        pieces.mark(&tokenizer.table, text, text.len(), &lives);
        pieces.lives.shrink_to_fit();
        Ok(pieces)
    }

    /// Stores the hypotheses at a position, and the counts of their long pieces up to the next
    /// mark.
    fn mark(&mut self, table: &BpeTable, text: &[u8], at: usize, lives: &[Live]) {
        self.marks.push(self.lives.len());
        self.lives.extend_from_slice(lives);
        for live in lives.iter().filter(|live| at - live.start > LONG) {
            let appender = self.long.entry(live.start).or_default();
            let end = text.len().min(at + MARK);
            appender.extend(table, &text[live.start + appender.len()..end]);
        }
    }

    /// The hypotheses about the whole text at a mark.
    fn at_mark(&self, mark: usize) -> &[Live] {
        let end = self.marks.get(mark + 1).copied().unwrap_or(self.lives.len());
        &self.lives[self.marks[mark]..end]
    }

    /// Returns the count of a long piece with known parts.
    fn long_count(&self, table: &BpeTable, start: usize, end: usize) -> Option<usize> {
        if end - start <= LONG {
            return None;
        }
        let appender = self.long.get(&start).filter(|appender| end - start <= appender.len())?;
        Some(appender.count_of_prefix(table, end - start))
    }

    fn count(
        &self,
        boundaries: &Boundaries,
        tokenizer: &Tokenizer,
        mut stretch: LastStretch<'_>,
    ) -> Result<usize, TextError> {
        // Reads the stretch alone until it agrees with the whole text.
        let (text, start) = (stretch.text, stretch.start);
        let end = text.len();
        let mut lives = beginning(boundaries, start);
        let mut next = Vec::new();
        if stretch.spaced {
            advance(boundaries, &lives, start, b' ', &mut next, |_| 0);
            next.iter_mut().for_each(|live| live.start = SPACE);
            std::mem::swap(&mut lives, &mut next);
        }
        for (at, &byte) in (0..end).zip(text).skip(start) {
            if at % MARK == 0 {
                if let Some((before, behind)) = same(&lives, self.at_mark(at / MARK)) {
                    let whole = self.count_to(boundaries, tokenizer, text, end)?;
                    return Ok(before + (whole - behind));
                }
            }
            advance(boundaries, &lives, at, byte, &mut next, |start| stretch.piece(start, at));
            std::mem::swap(&mut lives, &mut next);
        }
        let live = ending(boundaries, &lives).ok_or(TextError::InsideCharacter { at: end })?;
        Ok(live.before + stretch.piece(live.start, end))
    }

    /// How many tokens the text has up to a place, if it ends there.
    fn count_to(
        &self,
        boundaries: &Boundaries,
        tokenizer: &Tokenizer,
        text: &[u8],
        end: usize,
    ) -> Result<usize, TextError> {
        let count = |start: usize, end: usize| {
            let known = self.long_count(&tokenizer.table, start, end);
            known.unwrap_or_else(|| tokenizer.count_piece(text, start, end))
        };
        let mark = end / MARK;
        let mut lives = self.at_mark(mark).to_vec();
        let mut next = Vec::new();
        for (at, &byte) in (0..end).zip(text).skip(mark * MARK) {
            advance(boundaries, &lives, at, byte, &mut next, |start| count(start, at));
            std::mem::swap(&mut lives, &mut next);
        }
        let live = ending(boundaries, &lives).ok_or(TextError::InsideCharacter { at: end })?;
        Ok(live.before + count(live.start, end))
    }
}

/// The start of a piece that begins with the dummy space.
const SPACE: usize = usize::MAX;

/// A stretch at the end of a text, and the counts of its pieces.
struct LastStretch<'t> {
    tokenizer: &'t Tokenizer,
    text: &'t [u8],
    start: usize,
    /// Whether it is written after a dummy space.
    spaced: bool,
    recent: LongPieces,
    /// The part of the piece with the dummy space that was read, with its encoding.
    head: Vec<u8>,
    head_recent: LongPieces,
}

impl<'t> LastStretch<'t> {
    fn new(tokenizer: &'t Tokenizer, text: &'t [u8], start: usize, spaced: bool) -> Self {
        Self {
            tokenizer,
            text,
            start,
            spaced,
            recent: LongPieces::default(),
            head: Vec::new(),
            head_recent: LongPieces::default(),
        }
    }

    /// How many tokens the piece between two places has.
    fn piece(&mut self, start: usize, end: usize) -> usize {
        if start != SPACE {
            return self.recent.count(self.tokenizer, self.text, start, end);
        }
        if self.head.is_empty() {
            self.head.push(b' ');
        }
        let read = self.start + self.head.len() - 1;
        if read < end {
            self.head.extend_from_slice(&self.text[read..end]);
        }
        self.head_recent.count(self.tokenizer, &self.head, 0, end - self.start + 1)
    }
}

/// If the hypotheses about a stretch equal those about the whole text, the number of tokens that
/// each has before the first of them.
fn same(stretch: &[Live], whole: &[Live]) -> Option<(usize, usize)> {
    let (before, behind) = (stretch.first()?.before, whole.first()?.before);
    let alike = |(a, b): (&Live, &Live)| {
        a.hypothesis == b.hypothesis && a.start == b.start && a.before + behind == b.before + before
    };
    let same = stretch.len() == whole.len() && stretch.iter().zip(whole).all(alike);
    same.then_some((before, behind))
}
