//! The end of one pattern's match, by a table over classes of characters.
//!
//! A state is an ordered list of threads, so the table decides among all alternatives in one scan
//! as a backtracking engine does. A look-ahead is decided one character later: a cell says whether
//! there was a match before its character.

use rustc_hash::{FxHashMap, FxHashSet};

use super::classes::{ClassId, ClassSet, Classes};
use super::program::{step, Program, Thread};
use super::work::Work;
use ffwd_bounds::error::LimitExceeded;

/// The most states of one pattern.
const MAX_STATES: usize = 4096;

/// Columns of the table: one for each class, and the end.
const WIDTH: usize = 128;

/// A state as the place of its row. Row 0 is of the state without threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row(u32);

const DEAD: Row = Row(0);

/// The state that is reached, and below it, in bits that no row has, [`MATCHED`] and the others.
#[derive(Clone, Copy, Debug)]
struct Cell(u32);

/// The text before the character was a match.
const MATCHED: u32 = 1;
/// The state that is reached stays the same at every ASCII letter.
const LETTERS_STAY: u32 = 2;
/// The same, and each of these letters follows a match.
const LETTERS_MATCH: u32 = 4;

impl Cell {
    fn new(row: Row, matched: bool) -> Self {
        Self(row.0 | u32::from(matched))
    }

    #[inline]
    fn row(self) -> Row {
        Row(self.0 & !(WIDTH as u32 - 1))
    }

    #[inline]
    fn matched(self) -> bool {
        self.0 & MATCHED != 0
    }
}

#[derive(Debug)]
pub(super) struct Dfa {
    cells: Vec<Cell>,
    start: Row,
    /// The classes that may start a match.
    begins: ClassSet,
    /// ASCII characters that start no match.
    idle: [bool; 128],
    covers: bool,
}

impl Dfa {
    pub fn new(program: &Program, classes: &Classes) -> Result<Self, LimitExceeded> {
        let mut rows: Vec<Vec<Thread>> = vec![Vec::new(), program.start.clone()];
        let mut ids: FxHashMap<Vec<Thread>, Row> = FxHashMap::default();
        ids.insert(Vec::new(), DEAD);
        let start = Row(WIDTH as u32);
        ids.insert(program.start.clone(), start);
        let mut cells = vec![Cell(0); 2 * WIDTH];
        let mut next = Vec::new();
        let mut row = 1;
        let mut work = Work::new();
        while let Some(threads) = rows.get(row).cloned() {
            for class in classes.iter().chain([ClassId::END]) {
                work.spend(program.cost(&threads))?;
                let matched = step(program, &threads, class, &mut next);
                let id = match ids.get(&next) {
                    Some(&id) => id,
                    None => {
                        if rows.len() == MAX_STATES {
                            let limit = "pre_tokenizer_states";
                            return Err(LimitExceeded::new(limit, MAX_STATES));
                        }
                        let id = Row((rows.len() * WIDTH) as u32);
                        ids.insert(next.clone(), id);
                        rows.push(next.clone());
                        cells.resize(rows.len() * WIDTH, Cell(0));
                        id
                    }
                };
                cells[row * WIDTH + class.index()] = Cell::new(id, matched);
            }
            row += 1;
        }
        let begins = program.start.iter().fold(ClassSet::NONE, |set, thread| set.or(thread.next));
        let mut idle = [false; 128];
        for (byte, idle) in (0..).zip(&mut idle) {
            *idle = classes.of_ascii(byte).is_some_and(|class| !begins.contains(class));
        }
        let mut dfa = Self { cells, start, begins, idle, covers: false };
        dfa.mark_rows_of_letters(classes, rows.len());
        dfa.covers = dfa.find_uncovered(classes).is_none();
        Ok(dfa)
    }

    /// Marks the cells that lead to rows in which letters stay, so that runs of letters are read
    /// eight at a time.
    fn mark_rows_of_letters(&mut self, classes: &Classes, rows: usize) {
        let letters = (b'a'..=b'z').chain(b'A'..=b'Z').filter_map(|byte| classes.of_ascii(byte));
        let mut letters: Vec<ClassId> = letters.collect();
        letters.sort_unstable();
        letters.dedup();
        let marks: Vec<u32> = (0..rows)
            .map(|row| {
                let row = Row((row * WIDTH) as u32);
                let all = |matched: bool| {
                    let same = |cell: Cell| cell.row() == row && cell.matched() == matched;
                    row != DEAD && letters.iter().all(|&class| same(self.cell(row, class)))
                };
                match (all(false), all(true)) {
                    (true, _) => LETTERS_STAY,
                    (_, true) => LETTERS_STAY | LETTERS_MATCH,
                    _ => 0,
                }
            })
            .collect();
        for cell in &mut self.cells {
            cell.0 |= marks[cell.row().0 as usize / WIDTH];
        }
    }

    /// Whether a match starts at every position of every text, except at its end.
    pub fn covers(&self) -> bool {
        self.covers
    }

    /// A class with a character at which no match may start.
    fn find_uncovered(&self, classes: &Classes) -> Option<ClassId> {
        let mut seen: FxHashSet<Row> = FxHashSet::default();
        let mut stack = vec![self.start];
        while let Some(row) = stack.pop() {
            let ends = (row != self.start).then_some(ClassId::END);
            for class in classes.iter().chain(ends) {
                let cell = self.cell(row, class);
                if cell.matched() {
                    continue;
                }
                if cell.row() == DEAD {
                    return Some(class);
                }
                if seen.insert(cell.row()) {
                    stack.push(cell.row());
                }
            }
        }
        None
    }

    #[inline]
    fn cell(&self, row: Row, class: ClassId) -> Cell {
        self.cells[row.0 as usize + class.index()]
    }

    /// Whether a match may begin with a character of this class.
    #[inline]
    pub fn may_begin(&self, class: ClassId) -> bool {
        self.begins.contains(class)
    }

    /// The number of leading ASCII characters that start no match.
    #[inline]
    pub fn count_idle(&self, text: &[u8]) -> usize {
        let busy = |&byte: &u8| !self.idle.get(usize::from(byte)).copied().unwrap_or_default();
        text.iter().position(busy).unwrap_or(text.len())
    }

    /// The end of the match that begins at `from`, in the text that ends with `text`.
    #[inline]
    pub fn find(
        &self,
        classes: &Classes,
        text: &[u8],
        from: usize,
        memo: &mut Memo,
    ) -> Option<usize> {
        // Most matches are a few ASCII characters, and the character after them decides at once. No
        // match is empty, so `from` means none.
        let mut scan = Scan { row: self.start, at: from, end: from };
        let far = text.len().min(from + CHECKPOINT);
        while scan.at < far {
            let Some(class) = classes.of_ascii(text[scan.at]) else { break };
            let cell = self.cell(scan.row, class);
            scan.end = if cell.matched() { scan.at } else { scan.end };
            scan.row = cell.row();
            scan.at += 1;
            if scan.row == DEAD {
                #[cfg(test)]
                {
                    memo.scanned += scan.at - from;
                }
                return (scan.end > from).then_some(scan.end);
            }
            if cell.0 & LETTERS_STAY != 0 {
                let letters = count_letters(text, scan.at);
                scan.at += letters;
                // The last of them comes after a match, too.
                let matched = cell.0 & LETTERS_MATCH != 0 && letters > 0;
                scan.end = if matched { scan.at - 1 } else { scan.end };
            }
        }
        let end = self.find_on(classes, text, from, scan, memo);
        (end > from).then_some(end)
    }

    /// Continues a scan that began at `from`.
    fn find_on(
        &self,
        classes: &Classes,
        text: &[u8],
        from: usize,
        scan: Scan,
        memo: &mut Memo,
    ) -> usize {
        let Scan { mut row, mut at, mut end } = scan;
        let far = from + CHECKPOINT;
        memo.begin(from);
        loop {
            let Some(&byte) = text.get(at) else {
                if self.cell(row, ClassId::END).matched() {
                    end = at;
                    memo.passed.clear();
                }
                break;
            };
            let (class, length) = match classes.of_ascii(byte) {
                Some(class) => (class, 1),
                None => classes.decode_long(text, at),
            };
            let cell = self.cell(row, class);
            if cell.matched() {
                end = at;
                memo.passed.clear();
            }
            row = cell.row();
            at += length;
            let passes = at >= far && at % CHECKPOINT < length;
            if row == DEAD || (passes && !memo.pass(row, at)) {
                break;
            }
        }
        #[cfg(test)]
        {
            memo.scanned += at - from;
        }
        memo.finish();
        end
    }
}

/// The number of ASCII letters among the eight bytes at a position; 0 near the end of the text.
#[inline]
fn count_letters(text: &[u8], at: usize) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) else { return 0 };
    let word = u64::from_le_bytes(*bytes);
    // In seven bits and lower case; sums do not carry into the next byte.
    let lower = (word | (0x20 * EACH)) & !HIGH;
    let from_a = lower + (0x80 - u64::from(b'a')) * EACH;
    let after_z = lower + (0x7F - u64::from(b'z')) * EACH;
    let other = !(from_a & !after_z & !word) & HIGH;
    other.trailing_zeros() as usize / 8
}

/// A scan in progress.
struct Scan {
    row: Row,
    at: usize,
    /// The end of the best match so far.
    end: usize,
}

/// The distance between the positions that a scan records.
const CHECKPOINT: usize = 16;

/// Results of scans about the text after their match.
///
/// A scan may extend far beyond the end of its match, hoping for a longer one, and the next one
/// begins at that end. To avoid scanning the same text repeatedly, a scan records its states at
/// some offsets after the match: from there, no match is reached. (Reps, "Maximal-munch
/// tokenization in linear time", 1998, for ordered alternatives.)
#[derive(Debug, Default)]
pub(super) struct Memo {
    hopeless: FxHashSet<(Row, usize)>,
    /// The last place in `hopeless`.
    until: usize,
    /// The states of the current scan since its last match.
    passed: Vec<(Row, usize)>,
    /// How many bytes were scanned.
    #[cfg(test)]
    pub scanned: usize,
}

impl Memo {
    fn begin(&mut self, from: usize) {
        if from >= self.until && !self.hopeless.is_empty() {
            self.hopeless.clear();
        }
    }

    /// Whether to continue the scan.
    fn pass(&mut self, row: Row, at: usize) -> bool {
        if at <= self.until && self.hopeless.contains(&(row, at)) {
            return false;
        }
        self.passed.push((row, at));
        true
    }

    fn finish(&mut self) {
        for (row, at) in self.passed.drain(..) {
            self.until = self.until.max(at);
            self.hopeless.insert((row, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted_as_one_by_one() {
        for other in 0..=255 {
            for place in 0..8 {
                let mut text = *b"azAZmMqQ";
                text[place] = other;
                let letters = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
                assert_eq!(count_letters(&text, 0), letters, "{text:?}");
                assert_eq!(count_letters(&text, 1), 0, "fewer than eight bytes are left");
                assert_eq!(
                    count_letters(&[&text[..], &text].concat()[..15], 7).min(1),
                    usize::from(text[7].is_ascii_alphabetic())
                );
            }
        }
    }
}
