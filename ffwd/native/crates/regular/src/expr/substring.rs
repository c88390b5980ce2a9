//! Runs of adjacent pieces of a text, as a suffix automaton of the pieces.
//!
//! Its states are the possible rests of the text after some pieces, at any position; there are at
//! most twice as many as pieces. (A. Blumer et al., *The smallest automaton recognizing the
//! subwords of a text*, 1985.) The transitions of a state are sorted by the bytes of their pieces,
//! and followed byte by byte like the texts of [`super::listed`].

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};

use super::byte_set::ByteSet;
use ffwd_bounds::error::LimitExceeded;

/// How many pieces one text may have.
const MAX_CHUNKS: usize = 1 << 20;
/// How many bytes.
const MAX_BYTES: usize = 1 << 26;

/// The suffix automaton of a sequence of byte strings, none of which is empty.
#[derive(Debug)]
pub struct SubstringTable {
    /// The distinct pieces, sorted.
    pieces: Vec<Box<[u8]>>,
    /// The text, by the numbers of its pieces.
    text: Vec<u32>,
    /// The start of each state's transitions, and the end of the last one's.
    starts: Vec<u32>,
    /// By state, then by piece.
    transitions: Vec<Transition>,
    /// How many bytes can follow each state.
    longest: Vec<u32>,
    longest_piece: u32,
    occurring: ByteSet,
    hash: u64,
}

#[derive(Clone, Copy, Debug)]
struct Transition {
    piece: u32,
    to: u32,
}

/// The automaton while it is made.
#[derive(Default)]
struct Building {
    /// The length of each state's longest text, in pieces.
    lengths: Vec<u32>,
    /// The state of the longest ending of its texts that has another state; itself for the first.
    links: Vec<u32>,
    /// The number of pieces of the text after which it is first reached.
    ends: Vec<u32>,
    /// Its last transition in `list`, or `u32::MAX`.
    heads: Vec<u32>,
    /// Piece, target, and the transition of the same state before it.
    list: Vec<(u32, u32, u32)>,
    places: FxHashMap<(u32, u32), u32>,
}

impl Building {
    fn state(&mut self, length: u32, link: u32, end: u32) -> u32 {
        self.lengths.push(length);
        self.links.push(link);
        self.ends.push(end);
        self.heads.push(u32::MAX);
        self.lengths.len() as u32 - 1
    }

    fn target(&self, state: u32, piece: u32) -> Option<u32> {
        self.places.get(&(state, piece)).map(|&place| self.list[place as usize].1)
    }

    fn set(&mut self, state: u32, piece: u32, to: u32) {
        if let Some(&place) = self.places.get(&(state, piece)) {
            self.list[place as usize].1 = to;
            return;
        }
        let place = self.list.len() as u32;
        self.places.insert((state, piece), place);
        self.list.push((piece, to, self.heads[state as usize]));
        self.heads[state as usize] = place;
    }

    fn transitions(&self, state: u32) -> impl Iterator<Item = Transition> + '_ {
        let mut place = self.heads[state as usize];
        std::iter::from_fn(move || {
            let &(piece, to, before) = self.list.get(place as usize)?;
            place = before;
            Some(Transition { piece, to })
        })
    }

    /// Adds the next piece of the text, which was read up to the state `last`.
    fn push(&mut self, last: u32, piece: u32) -> u32 {
        let length = self.lengths[last as usize] + 1;
        let new = self.state(length, 0, length);
        let mut at = last;
        let known = loop {
            if let Some(known) = self.target(at, piece) {
                break known;
            }
            self.set(at, piece, new);
            if at == 0 {
                return new;
            }
            at = self.links[at as usize];
        };
        let length = self.lengths[at as usize] + 1;
        if self.lengths[known as usize] == length {
            self.links[new as usize] = known;
            return new;
        }
        // The shorter texts of a known state end in one more place than the longer ones.
        let shorter = self.state(length, self.links[known as usize], self.ends[known as usize]);
        let copied: Vec<Transition> = self.transitions(known).collect();
        copied.iter().rev().for_each(|copy| self.set(shorter, copy.piece, copy.to));
        self.links[known as usize] = shorter;
        self.links[new as usize] = shorter;
        while self.target(at, piece) == Some(known) {
            self.set(at, piece, shorter);
            if at == 0 {
                break;
            }
            at = self.links[at as usize];
        }
        new
    }
}

impl SubstringTable {
    pub fn new(chunks: &[Vec<u8>]) -> Result<Self, LimitExceeded> {
        let bytes: usize = chunks.iter().map(Vec::len).sum();
        if bytes > MAX_BYTES {
            return Err(LimitExceeded::new("substring_text_bytes", MAX_BYTES));
        }
        if chunks.len() > MAX_CHUNKS {
            return Err(LimitExceeded::new("substring_chunks", MAX_CHUNKS));
        }
        let mut pieces: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        pieces.sort_unstable();
        pieces.dedup();
        let numbers: FxHashMap<&[u8], u32> =
            pieces.iter().enumerate().map(|(number, &piece)| (piece, number as u32)).collect();
        let text: Vec<u32> = chunks.iter().map(|chunk| numbers[chunk.as_slice()]).collect();
        let mut building = Building::default();
        let mut last = building.state(0, 0, 0);
        for &piece in &text {
            last = building.push(last, piece);
        }
        let mut read = vec![0];
        read.extend(chunks.iter().scan(0, |sum, chunk| {
            *sum += chunk.len() as u32;
            Some(*sum)
        }));
        let longest = building.ends.iter().map(|&end| bytes as u32 - read[end as usize]).collect();
        let mut starts = vec![0];
        let mut transitions = Vec::with_capacity(building.list.len());
        for state in 0..building.lengths.len() as u32 {
            let from = transitions.len();
            transitions.extend(building.transitions(state));
            transitions[from..].sort_unstable_by_key(|transition| transition.piece);
            starts.push(transitions.len() as u32);
        }
        let mut occurring = ByteSet::EMPTY;
        pieces.iter().for_each(|piece| piece.iter().for_each(|&byte| occurring.insert(byte)));
        let pieces: Vec<Box<[u8]>> = pieces.into_iter().map(Box::from).collect();
        let longest_piece = pieces.iter().map(|piece| piece.len()).max().unwrap_or(0) as u32;
        let mut hasher = FxHasher::default();
        (&pieces, &text).hash(&mut hasher);
        let hash = hasher.finish();
        Ok(Self { pieces, text, starts, transitions, longest, longest_piece, occurring, hash })
    }

    fn piece(&self, transition: u32) -> &[u8] {
        &self.pieces[self.transitions[transition as usize].piece as usize]
    }

    pub fn memory_bytes(&self) -> usize {
        let pieces: usize = self.pieces.iter().map(|piece| piece.len() + 16).sum();
        pieces
            + self.transitions.capacity() * std::mem::size_of::<Transition>()
            + (self.text.capacity() + self.starts.capacity() + self.longest.capacity()) * 4
            + std::mem::size_of::<Self>()
    }
}

/// The rest of a run of pieces after its beginning.
#[derive(Clone, Debug)]
pub struct Substring {
    table: Arc<SubstringTable>,
    place: RunPosition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RunPosition {
    /// Whole pieces were read.
    State(u32),
    /// After at least one byte of the pieces of these transitions, which are longer.
    Within { from: u32, to: u32, read: u32 },
}

impl Substring {
    /// All runs of the pieces.
    pub fn all(table: Arc<SubstringTable>) -> Self {
        Self { table, place: RunPosition::State(0) }
    }

    /// Whether the run may end here.
    pub fn ends(&self) -> bool {
        matches!(self.place, RunPosition::State(_))
    }

    /// Whether nothing may follow.
    pub fn is_over(&self) -> bool {
        matches!(self.place, RunPosition::State(state) if self.table.longest[state as usize] == 0)
    }

    /// Returns the rests after one more byte: at the end of a piece, and within others.
    pub fn next(&self, byte: u8) -> [Option<Self>; 2] {
        let table = &*self.table;
        let (from, to, read) = match self.place {
            RunPosition::State(state) => {
                (table.starts[state as usize], table.starts[state as usize + 1], 0)
            }
            RunPosition::Within { from, to, read } => (from, to, read),
        };
        let bound = |from: u32, below: &dyn Fn(u8) -> bool| {
            let (mut low, mut high) = (from, to);
            while low < high {
                let middle = low + (high - low) / 2;
                if below(table.piece(middle)[read as usize]) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        let first = bound(from, &|other| other < byte);
        let end = bound(first, &|other| other <= byte);
        if first == end {
            return [None, None];
        }
        let with = |place| Some(Self { table: self.table.clone(), place });
        let read = read + 1;
        // A piece that is over stands before those that it begins.
        let over = table.piece(first).len() == read as usize;
        let whole = over.then(|| RunPosition::State(table.transitions[first as usize].to));
        let rest = first + u32::from(over);
        let part = (rest < end).then_some(RunPosition::Within { from: rest, to: end, read });
        [whole.and_then(with), part.and_then(with)]
    }

    /// The least and the greatest number of bytes of the rest.
    pub fn lengths(&self) -> (u32, u32) {
        match self.place {
            RunPosition::State(state) => (0, self.table.longest[state as usize]),
            RunPosition::Within { from, to, read } => {
                let lengths = (from..to).map(|transition| {
                    let rest = self.table.piece(transition).len() as u32 - read;
                    let to = self.table.transitions[transition as usize].to;
                    (rest, rest + self.table.longest[to as usize])
                });
                lengths.fold((u32::MAX, 0), |(least, most), (short, long)| {
                    (least.min(short), most.max(long))
                })
            }
        }
    }

    /// Returns the most bytes of a piece: they complete any run.
    pub fn longest_piece(&self) -> u32 {
        self.table.longest_piece
    }

    /// All bytes that occur in the text.
    pub fn occurring(&self) -> ByteSet {
        self.table.occurring
    }

    /// Returns the rest of the only piece that can continue, and the state after it.
    fn only(&self) -> Option<(&[u8], u32)> {
        match self.place {
            RunPosition::Within { from, to, read } if to - from == 1 => {
                let rest = &self.table.piece(from)[read as usize..];
                Some((rest, self.table.transitions[from as usize].to))
            }
            _ => None,
        }
    }
}

impl PartialEq for Substring {
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (&self.table, &other.table);
        let places = match (self.only(), other.only()) {
            (None, None) => self.place == other.place,
            (mine, theirs) => mine == theirs,
        };
        let tables =
            || mine.hash == theirs.hash && mine.text == theirs.text && mine.pieces == theirs.pieces;
        places && (Arc::ptr_eq(mine, theirs) || tables())
    }
}

impl Eq for Substring {}

impl Hash for Substring {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.table.hash.hash(state);
        match self.only() {
            Some(only) => only.hash(state),
            None => self.place.hash(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    use super::*;
    use crate::expr::{Lexeme, LexemeSpec, Spelling};
    use crate::regex::{oracle, substring_of, Ast};

    fn accepts(lexeme: &Lexeme, text: &str) -> bool {
        let mut state = lexeme.start();
        for byte in text.bytes() {
            let Some(next) = lexeme.next(state, byte).unwrap() else { return false };
            state = next;
        }
        state.accepts()
    }

    #[test]
    fn the_automaton_reads_what_the_oracle_does() {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]);
        let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
        let chunk = prop::sample::select(vec!["a", "b", "ab", "ba", "aab", "é", "ê", "éa", "\n"]);
        let chunks = prop::collection::vec(chunk, 0..9);
        let texts = prop::collection::vec("[abéê\n]{0,6}", 12);
        let runs = (0..9usize, 0..9usize);
        TestRunner::new_with_rng(config, rng)
            .run(&(chunks, texts, runs), |(chunks, mut texts, (from, to))| {
                let chunks: Vec<String> = chunks.into_iter().map(String::from).collect();
                let to = to.min(chunks.len());
                texts.push(chunks[from.min(to)..to].concat());
                let language = substring_of(&chunks);
                let both = Ast::concat([
                    Ast::intersection([language.clone(), Ast::complement(Ast::literal("ab"))]),
                    Ast::optional(Ast::literal("b")),
                ]);
                for language in [language, both] {
                    let spec = LexemeSpec::new(Spelling::Utf8, [language.clone()]);
                    let lexeme = Lexeme::new(spec).unwrap();
                    for text in &texts {
                        let expected = oracle::matches(&language, text);
                        prop_assert_eq!(accepts(&lexeme, text), expected, "{:?} {}", &chunks, text);
                    }
                }
                Ok(())
            })
            .unwrap();
    }

    #[test]
    fn a_long_text_has_few_states() {
        // A de Bruijn-like text, in which most parts occur only once.
        let mut seed = 7u32;
        let text: Vec<String> = (0..100_000)
            .map(|_| {
                seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                char::from(b'a' + (seed >> 16) as u8 % 26).to_string()
            })
            .collect();
        let spelled: Vec<Vec<u8>> = text.iter().map(|c| c.clone().into_bytes()).collect();
        let table = SubstringTable::new(&spelled).unwrap();
        assert!(table.longest.len() <= 2 * text.len());
        assert!(table.transitions.len() <= 3 * text.len());
        let language = substring_of(&text);
        let lexeme = Lexeme::new(LexemeSpec::new(Spelling::Utf8, [language])).unwrap();
        let whole = text.concat();
        assert!(accepts(&lexeme, &whole) && accepts(&lexeme, &whole[1234..50_000]));
        assert!(!accepts(&lexeme, &format!("{}!", &whole[1234..5000])));
    }

    #[test]
    fn too_many_chunks_are_refused() {
        let chunks = vec!["a".to_owned(); MAX_CHUNKS + 1];
        let spec = LexemeSpec::new(Spelling::Utf8, [substring_of(&chunks)]);
        assert!(Lexeme::new(spec).is_err());
    }
}
