//! Counting the tokens of a text that grows at its beginning.

use std::sync::Arc;

use smallvec::SmallVec;

use super::error::TextError;
use super::options::{EncodeOptions, PartOptions};
use super::{SpecialPolicy, Tokenizer};
use crate::bpe::{Method, PiecePrepender};
use crate::pretokenizer::{Boundaries, HypothesisId};
use crate::vocabulary::TokenId;

/// Pieces up to this length are encoded on their own.
const SHORT: usize = 48;

/// How many long pieces are kept track of at once.
const LONG_PIECES: usize = 4;

/// The end of the open piece, relative to an offset within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    /// Counted from the end of the text.
    at: usize,
    /// The hypothesis that holds there, with an empty piece; none at the end of the text.
    next: Option<HypothesisId>,
}

/// The settled hypotheses of one offset: the end of their piece, or that they are wrong.
type Settled = SmallVec<[(HypothesisId, Option<End>); 3]>;

/// A text that grows at its start, with its token count.
///
/// The count is that of encoding the current text alone, with special tokens as text. Bytes of an
/// incomplete character at the start are not counted until the character is complete.
///
/// The text after an offset never changes, so for every hypothesis that was examined there the
/// validity and the end of its piece are settled for ever. All offsets are counted from the end of
/// the text, which is stored backwards.
pub struct PrependEncoder {
    tokenizer: Arc<Tokenizer>,
    options: PartOptions,
    /// The text backwards, complete characters only.
    text: Vec<u8>,
    /// The end of a character whose start is missing, backwards.
    pending: SmallVec<[u8; 4]>,
    /// By place, the settled hypotheses: where the open piece ends, if they hold.
    settled: Vec<Settled>,
    /// How many tokens the text has from each place on; 0 inside a character.
    totals: Vec<usize>,
    /// Pieces by their ends, with the counts of their suffixes; the most recently used first.
    long: SmallVec<[(usize, PiecePrepender); LONG_PIECES]>,
}

impl PrependEncoder {
    /// An empty text.
    ///
    /// If the tokenizer normalizes, and normalization is on, prepended text that it could change is
    /// refused.
    pub fn new(tokenizer: Arc<Tokenizer>, options: PartOptions) -> Result<Self, TextError> {
        tokenizer.boundaries(options.pretokenize)?;
        Ok(Self {
            tokenizer,
            options,
            text: Vec::new(),
            pending: SmallVec::new(),
            settled: vec![SmallVec::new()],
            totals: vec![0],
            long: SmallVec::new(),
        })
    }

    /// How many bytes the text has.
    pub fn len(&self) -> usize {
        self.text.len() + self.pending.len()
    }

    /// Whether the text has no byte yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes of the text are complete characters.
    pub fn complete(&self) -> usize {
        self.text.len()
    }

    /// The text.
    pub fn text(&self) -> Vec<u8> {
        self.pending.iter().rev().chain(self.text.iter().rev()).copied().collect()
    }

    /// Puts text in front, which may begin within a character. In case of an error, whose offset
    /// is one in `bytes`, the text is as it was.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TextError> {
        self.tokenizer.check_bytes(bytes)?;
        let (length, pending) = (self.text.len(), self.pending.clone());
        for (at, &byte) in bytes.iter().enumerate().rev() {
            if let Err(error) = self.push_byte(byte) {
                self.truncate(length);
                self.pending = pending;
                return Err(error.shifted(at));
            }
        }
        Ok(())
    }

    fn push_byte(&mut self, byte: u8) -> Result<(), TextError> {
        self.pending.push(byte);
        if byte & 0xC0 == 0x80 && self.pending.len() < 4 {
            return Ok(());
        }
        let character: SmallVec<[u8; 4]> = self.pending.iter().rev().copied().collect();
        if std::str::from_utf8(&character).map_or(0, |text| text.chars().count()) != 1 {
            return Err(TextError::NotUtf8 { at: 0 });
        }
        if self.options.normalize {
            self.tokenizer.normalizer.keeps(&character)?;
        }
        self.pending.clear();
        self.push_character(&character)
    }

    fn push_character(&mut self, character: &[u8]) -> Result<(), TextError> {
        let tokenizer = self.tokenizer.clone();
        let boundaries = tokenizer.boundaries(self.options.pretokenize)?;
        self.text.extend(character.iter().rev());
        let place = self.text.len();
        self.settled.resize_with(place + 1, SmallVec::new);
        self.totals.resize(place + 1, 0);
        let start = boundaries.start();
        let Some(end) = self.end_of(boundaries, place, start) else {
            return Err(TextError::NotUtf8 { at: 0 });
        };
        self.totals[place] =
            self.count_piece(&tokenizer, place, end.at) + self.rest(&tokenizer, boundaries, end);
        Ok(())
    }

    /// Truncates the text to its last `length` bytes; does nothing if it is shorter.
    pub fn truncate(&mut self, length: usize) {
        if length >= self.text.len() {
            self.pending.truncate(length - self.text.len());
            return;
        }
        let inside = self.text[..length].iter().rev().take_while(|&byte| byte & 0xC0 == 0x80);
        let complete = length - inside.count();
        self.pending = SmallVec::from_slice(&self.text[complete..length]);
        self.text.truncate(complete);
        self.settled.truncate(complete + 1);
        self.totals.truncate(complete + 1);
        self.long.retain(|&mut (end, _)| end < complete);
        for (end, prepender) in &mut self.long {
            prepender.truncate(complete - *end);
        }
    }

    /// How many tokens the text has, without the bytes of a character that is not complete.
    pub fn count(&mut self) -> Result<usize, TextError> {
        let length = self.text.len();
        let first = self.text.last();
        let spaced = first.is_some_and(|&first| {
            let dummy = self.tokenizer.dummy_space.filter(|_| self.options.dummy_space);
            dummy.is_some_and(|dummy| dummy.is_before(first))
        });
        if !spaced {
            return Ok(self.totals[length]);
        }
        let pending = std::mem::take(&mut self.pending);
        let pushed = self.push_character(b" ");
        let count = self.totals.last().copied().unwrap_or(0);
        self.truncate(length);
        self.pending = pending;
        pushed.map(|()| count)
    }

    /// The tokens of the text, without the bytes of a character that is not complete. Encodes all
    /// of it.
    pub fn tokens(&self) -> Result<Vec<TokenId>, TextError> {
        let options = EncodeOptions {
            special: SpecialPolicy::Text,
            method: Method::Backtracking,
            part: self.options,
        };
        let text: Vec<u8> = self.text.iter().rev().copied().collect();
        self.tokenizer.encode(&text, &options)
    }

    /// Returns the end of a hypothesis' open piece; `None` if the later text refutes it.
    fn end_of(
        &mut self,
        boundaries: &Boundaries,
        place: usize,
        hypothesis: HypothesisId,
    ) -> Option<End> {
        // Its dependencies may be unsettled too, and so on; without recursion, because the chain
        // may be long.
        let mut wanted: SmallVec<[(usize, HypothesisId); 8]> = SmallVec::new();
        let mut now = (place, hypothesis);
        loop {
            let (place, hypothesis) = now;
            let result = match self.settled(place, hypothesis) {
                Some(known) => known,
                None => match self.settle(boundaries, place, hypothesis) {
                    Ok(end) => {
                        self.settled[place].push((hypothesis, end));
                        end
                    }
                    Err(needed) => {
                        wanted.push(now);
                        now = needed;
                        continue;
                    }
                },
            };
            match wanted.pop() {
                Some(next) => now = next,
                None => return result,
            }
        }
    }

    fn settled(&self, place: usize, hypothesis: HypothesisId) -> Option<Option<End>> {
        self.settled[place].iter().find(|&&(other, _)| other == hypothesis).map(|&(_, end)| end)
    }

    /// Settles a hypothesis, or returns one that must be settled before.
    fn settle(
        &self,
        boundaries: &Boundaries,
        place: usize,
        hypothesis: HypothesisId,
    ) -> Result<Option<End>, (usize, HypothesisId)> {
        if place == 0 {
            return Ok(boundaries.can_end(hypothesis).then_some(End { at: 0, next: None }));
        }
        let mut after = place;
        let mut character = SmallVec::<[u8; 4]>::new();
        while after == place || (after > 0 && self.text[after - 1] & 0xC0 == 0x80) {
            after -= 1;
            character.push(self.text[after]);
        }
        let read = |from: HypothesisId| {
            character.iter().try_fold(from, |state, &byte| boundaries.step(state, byte))
        };
        // The character continues the piece, or follows its end.
        if let Some(next) = read(hypothesis) {
            match self.settled(after, next) {
                None => return Err((after, next)),
                Some(Some(end)) => return Ok(Some(end)),
                Some(None) => {}
            }
        }
        for &closed in boundaries.close(hypothesis) {
            let Some(next) = read(closed) else { continue };
            match self.settled(after, next) {
                None => return Err((after, next)),
                Some(Some(_)) => return Ok(Some(End { at: place, next: Some(closed) })),
                Some(None) => {}
            }
        }
        Ok(None)
    }

    /// Returns how many tokens follow the end of a piece. That position is not the start of a text,
    /// but usually it is equivalent, and if not, then after a piece or two.
    fn rest(&mut self, tokenizer: &Tokenizer, boundaries: &Boundaries, from: End) -> usize {
        let mut here = from;
        let mut fresh = End { at: from.at, next: Some(boundaries.start()) };
        let (mut ours, mut theirs) = (0, 0);
        while here != fresh {
            // The one that is behind advances by a piece, or both do.
            let here_goes = here.at >= fresh.at;
            let fresh_goes = fresh.at >= here.at;
            let next_here = if here_goes { self.next_end(boundaries, here) } else { here };
            let next_fresh = if fresh_goes { self.next_end(boundaries, fresh) } else { fresh };
            if here.at == fresh.at && next_here == next_fresh {
                break;
            }
            if here_goes {
                ours += self.count_piece(tokenizer, here.at, next_here.at);
            }
            if fresh_goes {
                theirs += self.count_piece(tokenizer, fresh.at, next_fresh.at);
            }
            (here, fresh) = (next_here, next_fresh);
        }
        self.totals[from.at] + ours - theirs
    }

    /// The end of the piece that begins at the end of another.
    fn next_end(&mut self, boundaries: &Boundaries, end: End) -> End {
        let next = end.next.and_then(|next| self.end_of(boundaries, end.at, next));
        next.unwrap_or(End { at: 0, next: None })
    }

    /// How many tokens the piece between two places has.
    fn count_piece(&mut self, tokenizer: &Tokenizer, start: usize, end: usize) -> usize {
        let length = start - end;
        if length <= SHORT {
            let piece: SmallVec<[u8; SHORT]> =
                self.text[end..start].iter().rev().copied().collect();
            return tokenizer.count_piece(&piece, 0, length);
        }
        match self.long.iter().position(|&(other, _)| other == end) {
            Some(place) => self.long[..=place].rotate_right(1),
            None => {
                self.long.truncate(LONG_PIECES - 1);
                self.long.insert(0, (end, PiecePrepender::new()));
            }
        }
        let table = &tokenizer.table;
        let prepender = &mut self.long[0].1;
        for &byte in &self.text[(end + prepender.len()).min(start)..start] {
            prepender.push(table, byte);
        }
        prepender.count_of_suffix(length)
    }
}
