//! Escapes in strings of JSON, where all of them may be written.
//!
//! All else in this crate, such as names, patterns, earlier keys and earlier items, reads strings as
//! they are written canonically. So an escape is read apart from it: after the backslash a thread
//! waits with the escape so far, as long as one of its characters may come. When the escape is
//! complete, the thread that waits reads that character as it is written canonically.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::error::Result;
use crate::interning::intern::Interner;
use crate::interning::memory::{map_entry, Held};
use crate::run::automaton::Automaton;
use crate::stacks::ids::{LexemeId, TextId};
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use crate::writing::{Escapes, Writing};
use ffwd_bounds::meter;
use ffwd_regular::expr::escape::{written, written_ranges, Escape, EscapeStep};
use ffwd_regular::expr::{LexState, Spelling};

/// How many characters of an escape are tried for a completion. Most lead to the same threads.
const MAX_CHARACTERS: usize = 64;

/// What is waiting: the lexeme of a thread, and its state.
type Waiting = (ThreadLexeme, u32);

impl Held for Waiting {}

/// The threads that wait for a character.
#[derive(Debug)]
pub(crate) struct AnyEscapes {
    waiting: Interner<Waiting>,
    /// Whether some character of an escape may come, by the state of a string's lexeme.
    may_come: Mutex<FxHashMap<Place, bool>>,
    /// Characters of an escape that lead to different threads, by the same.
    characters: Mutex<FxHashMap<Place, Arc<[Character]>>>,
}

/// The state of a string's lexeme, and an escape by its number.
type Place = (LexemeId, LexState, u32);

/// The canonical bytes of a character.
type Character = SmallVec<[u8; 6]>;

const MAX_WAITING: usize = 8_000_000;

impl AnyEscapes {
    pub(crate) fn of(writing: &Writing) -> Option<Self> {
        let waiting = Interner::new("escaped_places", MAX_WAITING);
        let new = Self { waiting, may_come: Mutex::default(), characters: Mutex::default() };
        (writing.escapes == Escapes::Any).then_some(new)
    }

    /// About how many bytes of memory these hold.
    pub(crate) fn memory_bytes(&self) -> usize {
        let known = self.may_come.lock().len() * map_entry::<Place, bool>();
        let characters = self.characters.lock().len() * map_entry::<Place, Arc<[Character]>>();
        // Most lists have a few characters.
        self.waiting.memory_bytes() + known + 2 * characters
    }
}

/// A search for characters whose canonical bytes are within some ranges.
struct Search<'a> {
    range: &'a [(u8, u8)],
    is_last: bool,
    /// The threads after some number of bytes.
    seen: FxHashSet<(usize, Threads)>,
}

/// A character of an escape, and the threads after it.
pub(crate) struct Escaped {
    /// The bytes after those of the escape that have come.
    pub rest: Vec<u8>,
    pub threads: Threads,
}

/// Whether some thread is within an escape.
pub fn is_in_escape(threads: &[Thread]) -> bool {
    threads.iter().any(|thread| matches!(thread.lexeme, ThreadLexeme::Escape(_)))
}

/// Reads escapes in the strings of an automaton.
#[derive(Clone, Copy, Debug)]
pub struct Escaping<'a> {
    automaton: &'a Automaton,
    escapes: &'a AnyEscapes,
}

impl Automaton {
    /// Reads escapes; `None` if strings are written in one way.
    #[inline]
    pub fn escaping(&self) -> Option<Escaping<'_>> {
        self.escapes.as_ref().map(|escapes| Escaping { automaton: self, escapes })
    }
}

impl Escaping<'_> {
    /// The lexeme of a string in which a thread is, if what is recorded matters only at its end.
    pub fn string_of(&self, thread: &Thread) -> Option<(LexemeId, LexState)> {
        let ThreadLexeme::Lexeme(index) = thread.lexeme else { return None };
        let is_plain = self.is_string(index) && thread.transcript == TextId::NONE;
        is_plain.then(|| (index, thread.lex_state()))
    }

    fn is_string(&self, index: LexemeId) -> bool {
        self.automaton.lexeme(index).spec().spelling == Spelling::JsonString
    }

    /// Whether a byte begins an escape, or continues one.
    #[inline]
    pub(crate) fn reads(&self, thread: &Thread, byte: u8) -> bool {
        match thread.lexeme {
            ThreadLexeme::Escape(_) => true,
            ThreadLexeme::Key => byte == b'\\',
            ThreadLexeme::Lexeme(index) => byte == b'\\' && self.is_string(index),
            ThreadLexeme::End | ThreadLexeme::Tokens(_) => false,
        }
    }

    /// Whether an escape may begin.
    pub(crate) fn may_begin(&self, threads: &[Thread]) -> Result<bool> {
        Ok(!self.automaton.step(threads, b'\\')?.is_empty())
    }

    /// The thread that an escape is for, and the escape; that of a thread in none is yet to begin.
    pub(crate) fn before(&self, thread: &Thread) -> (Thread, Option<Escape>) {
        match thread.lexeme {
            ThreadLexeme::Escape(id) => {
                let &(lexeme, state) = self.escapes.waiting.get(id);
                (Thread { lexeme, state, ..*thread }, Some(Escape::of(thread.state)))
            }
            _ => (*thread, None),
        }
    }

    /// Steps a thread by a byte of an escape.
    pub(crate) fn step(
        &self,
        thread: &Thread,
        byte: u8,
        is_last: bool,
        next: &mut Threads,
    ) -> Result<()> {
        let (before, escape) = self.before(thread);
        let step = match escape {
            Some(escape) => escape.next(byte),
            None => Some(EscapeStep::Within(Escape::START)),
        };
        match step {
            Some(EscapeStep::Ended(character)) => {
                next.extend(self.read_character(&before, &written(character), is_last)?);
            }
            Some(EscapeStep::Within(escape)) if self.may_be(&before, escape, is_last)? => {
                let id = self.escapes.waiting.intern((before.lexeme, before.state))?;
                let lexeme = ThreadLexeme::Escape(id);
                next.push(Thread { lexeme, state: escape.number(), ..before });
            }
            None | Some(EscapeStep::Within(_)) => {}
        }
        Ok(())
    }

    /// Whether some character of an escape may come.
    fn may_be(&self, before: &Thread, escape: Escape, is_last: bool) -> Result<bool> {
        let mut may_come = false;
        let mut look = |before: &Thread| {
            self.each_character(before, escape, is_last, &mut |_| {
                may_come = true;
                false
            })
        };
        match self.string_of(before) {
            Some((index, state)) => {
                let place = (index, state, escape.number());
                if let Some(&known) = self.escapes.may_come.lock().get(&place) {
                    return Ok(known);
                }
                look(&Thread { text: TextId::NONE, ..*before })?;
                self.escapes.may_come.lock().insert(place, may_come);
            }
            None => look(before)?,
        }
        Ok(may_come)
    }

    /// The threads after the canonical bytes of a character.
    fn read_character(&self, before: &Thread, written: &[u8], is_last: bool) -> Result<Threads> {
        let mut threads = Threads::from_slice(&[*before]);
        for (at, &byte) in written.iter().enumerate() {
            threads = self.step_character(&threads, byte, is_last && at + 1 == written.len())?;
        }
        Ok(threads)
    }

    fn step_character(&self, threads: &[Thread], byte: u8, is_last: bool) -> Result<Threads> {
        meter::charge(1 + threads.len())?;
        let mut next = Threads::new();
        for thread in threads {
            self.automaton.step_written(thread, byte, is_last, &mut next)?;
        }
        self.automaton.settle(&mut next)?;
        Ok(next)
    }

    /// Tells the threads after the characters of an escape, for one of those with equal threads,
    /// with its canonical bytes. Ends when told `false`.
    fn each_character(
        &self,
        before: &Thread,
        escape: Escape,
        is_last: bool,
        out: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let mut told: FxHashSet<Threads> = FxHashSet::default();
        let mut out = |written: &[u8], threads: Threads| !told.insert(threads) || out(written);
        for (low, high) in escape.characters() {
            for range in written_ranges(low, high) {
                let mut search = Search { range: &range, is_last, seen: FxHashSet::default() };
                let mut bytes = SmallVec::new();
                let start = Threads::from_slice(&[*before]);
                if !self.look_for_characters(&mut search, &mut bytes, start, &mut out)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads on from the first bytes of characters; `false` as soon as enough were told.
    fn look_for_characters(
        &self,
        search: &mut Search<'_>,
        bytes: &mut SmallVec<[u8; 6]>,
        threads: Threads,
        out: &mut dyn FnMut(&[u8], Threads) -> bool,
    ) -> Result<bool> {
        let depth = bytes.len();
        let Some(&(low, high)) = search.range.get(depth) else { return Ok(out(bytes, threads)) };
        let is_last = search.is_last && depth + 1 == search.range.len();
        for byte in low..=high {
            let next = self.step_character(&threads, byte, is_last)?;
            if next.is_empty() || !search.seen.insert((depth, next.clone())) {
                continue;
            }
            bytes.push(byte);
            if !self.look_for_characters(search, bytes, next, out)? {
                return Ok(false);
            }
            bytes.truncate(depth);
        }
        Ok(true)
    }

    /// Characters of an escape, one for each set of threads that they lead to but for what is
    /// recorded there, up to a fixed number.
    fn characters(&self, before: &Thread, escape: Escape) -> Result<Arc<[Character]>> {
        let list = |before: &Thread| -> Result<Arc<[Character]>> {
            let mut characters = Vec::new();
            self.each_character(before, escape, true, &mut |written| {
                characters.push(Character::from_slice(written));
                characters.len() < MAX_CHARACTERS
            })?;
            Ok(characters.into())
        };
        let Some((index, state)) = self.string_of(before) else { return list(before) };
        let place = (index, state, escape.number());
        if let Some(known) = self.escapes.characters.lock().get(&place) {
            return Ok(known.clone());
        }
        let found = list(&Thread { text: TextId::NONE, ..*before })?;
        self.escapes.characters.lock().insert(place, found.clone());
        Ok(found)
    }

    /// Characters of the escape of a thread, one for each set of threads that they lead to, up to a
    /// fixed number.
    pub(crate) fn endings(&self, thread: &Thread) -> Result<Vec<Escaped>> {
        let (before, Some(escape)) = self.before(thread) else { return Ok(Vec::new()) };
        let characters = self.characters(&before, escape)?;
        let escaped = characters.iter().map(|written| {
            let threads = self.read_character(&before, written, true)?;
            Ok(Escaped { rest: escape.rest(written), threads })
        });
        escaped.collect()
    }
}
