//! Listed texts: a sorted table, and its ranges of texts with a common prefix.
//!
//! A union of a hundred thousand texts would be a million expressions. In a sorted table the texts
//! with a common prefix are adjacent, so the continuations form a range, and a derivative is found
//! by bisection.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::byte_set::ByteSet;
use ffwd_bounds::error::LimitExceeded;

/// How many bytes the texts of one table may have.
const MAX_BYTES: usize = 1 << 30;
/// The number of texts in a block with known lengths and bytes.
const BLOCK: usize = 64;
/// Ranges of at most this many texts are equal if their continuations are.
const FEW: usize = 16;

/// Strings of bytes, sorted, each once.
#[derive(Debug)]
pub struct TextTable {
    bytes: Vec<u8>,
    /// The start of each text, and the end of the last one.
    starts: Vec<u32>,
    blocks: Vec<Extent>,
    /// All bytes that occur.
    occurring: ByteSet,
    hash: u64,
}

/// The common properties of some texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub shortest: u32,
    pub longest: u32,
    /// ASCII bytes that one of them has, as bits.
    pub any: u128,
    /// ASCII bytes that each of them is known to have.
    pub all: u128,
}

impl Extent {
    const NONE: Self = Self { shortest: u32::MAX, longest: 0, any: 0, all: u128::MAX };

    fn with(self, other: Self) -> Self {
        Self {
            shortest: self.shortest.min(other.shortest),
            longest: self.longest.max(other.longest),
            any: self.any | other.any,
            all: self.all & other.all,
        }
    }

    fn of(text: &[u8]) -> Self {
        let ascii = |bits, &byte: &u8| if byte.is_ascii() { bits | 1 << byte } else { bits };
        let bytes = text.iter().fold(0, ascii);
        let length = text.len() as u32;
        Self { shortest: length, longest: length, any: bytes, all: bytes }
    }
}

impl TextTable {
    /// From texts, which stand in one buffer one after the other: where each ends.
    pub fn new(buffer: &[u8], ends: &[usize]) -> Result<Self, LimitExceeded> {
        if buffer.len() > MAX_BYTES {
            return Err(LimitExceeded::new("listed_text_bytes", MAX_BYTES));
        }
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let mut texts: Vec<&[u8]> =
            begins.zip(ends).map(|(begin, &end)| &buffer[begin..end]).collect();
        // Mostly they are sorted already, but for what is escaped.
        texts.sort();
        texts.dedup();
        let mut table = Self {
            bytes: Vec::with_capacity(buffer.len()),
            starts: Vec::with_capacity(texts.len() + 1),
            blocks: Vec::with_capacity(texts.len().div_ceil(BLOCK)),
            occurring: ByteSet::EMPTY,
            hash: 0,
        };
        table.starts.push(0);
        for block in texts.chunks(BLOCK) {
            let mut extent = Extent { all: 0, ..Extent::NONE };
            // Each byte is classified once for a block: marking is quicker than setting bits.
            let mut marked = [false; 256];
            for text in block {
                text.iter().for_each(|&byte| marked[usize::from(byte)] = true);
                extent.shortest = extent.shortest.min(text.len() as u32);
                extent.longest = extent.longest.max(text.len() as u32);
                table.bytes.extend_from_slice(text);
                table.starts.push(table.bytes.len() as u32);
            }
            let mut bytes = ByteSet::EMPTY;
            let occur = (0..=255u8).filter(|&byte| marked[usize::from(byte)]);
            occur.for_each(|byte| bytes.insert(byte));
            extent.any = bytes.ascii();
            table.occurring = table.occurring.union(&bytes);
            table.blocks.push(extent);
        }
        let mut hasher = FxHasher::default();
        (&table.bytes, &table.starts).hash(&mut hasher);
        table.hash = hasher.finish();
        Ok(table)
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the text at an index of the sorted order.
    #[inline]
    pub fn text(&self, place: usize) -> &[u8] {
        &self.bytes[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    /// The byte at a place in a text, or `None` where it ends before.
    #[inline]
    fn byte(&self, place: usize, at: usize) -> Option<u8> {
        self.text(place).get(at).copied()
    }

    /// About how many bytes of memory the table holds.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.starts.capacity() * 4
            + self.blocks.capacity() * std::mem::size_of::<Extent>()
            + std::mem::size_of::<Self>()
    }
}

/// Texts of a table that begin with the same bytes, which have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    from: u32,
    to: u32,
    read: u32,
}

impl Span {
    fn places(self) -> Range<usize> {
        self.from as usize..self.to as usize
    }
}

impl TextTable {
    /// Whether one of the texts ends here. It stands first.
    #[inline]
    pub fn ends(&self, span: Span) -> bool {
        self.text(span.from as usize).len() == span.read as usize
    }

    /// Whether nothing may follow.
    #[inline]
    pub fn is_over(&self, span: Span) -> bool {
        span.to - span.from == 1 && self.ends(span)
    }

    /// Those of the texts that do not end here.
    #[inline]
    pub fn going_on(&self, span: Span) -> Option<Span> {
        let from = span.from + u32::from(self.ends(span));
        (from < span.to).then_some(Span { from, ..span })
    }

    /// The next byte, if there is only one text.
    #[inline]
    pub fn only_byte(&self, span: Span) -> Option<u8> {
        if span.to - span.from > 1 {
            return None;
        }
        self.byte(span.from as usize, span.read as usize)
    }

    /// Returns the texts that continue with a byte, and those with higher ones.
    #[inline]
    pub fn split(&self, span: Span, byte: u8) -> (Option<Span>, Option<Span>) {
        let (at, from, end) = (span.read as usize, span.from as usize, span.to as usize);
        let first = gallop(from, end, |place| self.byte(place, at) < Some(byte));
        let after = gallop(first, end, |place| self.byte(place, at) <= Some(byte));
        let (first, after) = (first as u32, after as u32);
        let found = Span { from: first, to: after, read: span.read + 1 };
        let rest = Span { from: after, ..span };
        ((first < after).then_some(found), (after < span.to).then_some(rest))
    }
}

/// The rests of some texts of a table that start with the same bytes. It is never empty.
#[derive(Clone, Debug)]
pub struct Listed {
    table: Arc<TextTable>,
    span: Span,
}

impl Listed {
    /// All texts of a table; `None` if it has none.
    pub(crate) fn all(table: Arc<TextTable>) -> Option<Self> {
        let to = table.len() as u32;
        (to > 0).then_some(Self { table, span: Span { from: 0, to, read: 0 } })
    }

    /// The table that the texts stand in.
    pub fn table(&self) -> &TextTable {
        &self.table
    }

    /// Which texts of the table are left, and how much of them was read.
    pub fn span(&self) -> Span {
        self.span
    }

    /// How many texts are left.
    pub fn count(&self) -> usize {
        self.span.places().len()
    }

    /// Whether one of the texts ends here.
    pub(crate) fn ends(&self) -> bool {
        self.table.ends(self.span)
    }

    /// Whether nothing may follow.
    pub(crate) fn is_over(&self) -> bool {
        self.table.is_over(self.span)
    }

    /// Returns the rests after one more byte.
    pub(crate) fn next(&self, byte: u8) -> Option<Self> {
        let span = self.table.split(self.span, byte).0?;
        Some(Self { table: self.table.clone(), span })
    }

    /// What is left of the texts.
    pub(crate) fn rests(&self) -> impl Iterator<Item = &[u8]> {
        self.span.places().map(|place| &self.table.text(place)[self.span.read as usize..])
    }

    /// The lengths and bytes of what is left. For many texts the bytes are those of the whole
    /// texts, and none counts as being in each.
    pub(crate) fn extent(&self) -> Extent {
        let (places, read) = (self.span.places(), self.span.read);
        if places.len() <= 2 * BLOCK {
            return self.rests().map(Extent::of).fold(Extent::NONE, Extent::with);
        }
        let whole = places.start.div_ceil(BLOCK)..places.end / BLOCK;
        let edges = (places.start..whole.start * BLOCK).chain(whole.end * BLOCK..places.end);
        let extents = edges.map(|place| Extent::of(self.table.text(place)));
        let blocks = self.table.blocks[whole].iter().copied();
        let extent = extents.chain(blocks).fold(Extent::NONE, Extent::with);
        let (shortest, longest) = (extent.shortest - read, extent.longest - read);
        Extent { shortest, longest, ..extent }
    }

    /// All bytes that occur in the table.
    pub(crate) fn occurring(&self) -> ByteSet {
        self.table.occurring
    }

    fn is_few(&self) -> bool {
        self.span.places().len() <= FEW
    }
}

impl PartialEq for Listed {
    fn eq(&self, other: &Self) -> bool {
        if self.span.places().len() != other.span.places().len() {
            return false;
        }
        if self.is_few() {
            return self.rests().eq(other.rests());
        }
        let (mine, theirs) = (&self.table, &other.table);
        let equal = || {
            mine.hash == theirs.hash && mine.starts == theirs.starts && mine.bytes == theirs.bytes
        };
        self.span == other.span && (Arc::ptr_eq(mine, theirs) || equal())
    }
}

impl Eq for Listed {}

impl Hash for Listed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.is_few() {
            self.rests().for_each(|rest| rest.hash(state));
        } else {
            (self.table.hash, self.span).hash(state);
        }
    }
}

/// The first place in `from..end` at which a predicate fails that holds before it. Takes a number
/// of steps that is logarithmic in the distance.
#[inline]
fn gallop(from: usize, end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (from, 1);
    let high = loop {
        let next = low + step;
        if next > end {
            break end;
        }
        if !holds(next - 1) {
            break next - 1;
        }
        low = next;
        step *= 2;
    };
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
