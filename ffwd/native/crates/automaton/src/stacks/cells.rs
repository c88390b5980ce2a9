//! Stacks: hash-consed lists of frames, each in a cell with what is known of the stack.

use std::sync::OnceLock;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::interning::intern::{Ids, ShortHash};
use crate::interning::memory::{element, map_entry, Bytes};
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LayoutId, StackId, TextId};
use crate::stacks::lexemes::Lexemes;
use crate::stacks::thread::{Thread, ThreadLexeme};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::expr::Verdict;

/// How an accepted lexeme leaves a stack: the lexeme, its verdict, and the text of the key or item
/// that ends with it, where that matters.
pub type ExitKey = (ThreadLexeme, Verdict, TextId);

/// The first few exits of a stack: any thread appends to them, and reads them without a lock.
#[derive(Debug, Default)]
pub struct FirstExits(OnceLock<Box<(ExitKey, StackId, FirstExits)>>);

/// How many exits of a stack are kept in its own list; the rest, mostly the keys of large objects,
/// is found by hashing.
const MAX_FIRST_EXITS: usize = 6;

impl FirstExits {
    pub fn get(&self, key: &ExitKey) -> Option<StackId> {
        let mut list = self;
        while let Some(entry) = list.0.get() {
            if entry.0 == *key {
                return Some(entry.1);
            }
            list = &entry.2;
        }
        None
    }

    /// Keeps an exit; `false` where the list is full.
    pub fn insert(&self, key: ExitKey, stack: StackId) -> bool {
        let mut list = self;
        for _ in 0..MAX_FIRST_EXITS {
            let entry = list.0.get_or_init(|| Box::new((key, stack, Self::default())));
            if entry.0 == key {
                return true;
            }
            list = &entry.2;
        }
        false
    }
}

/// A frame on a stack.
#[derive(Debug)]
pub struct Cell {
    pub frame: Frame,
    pub parent: StackId,
    /// How many frames the stack has.
    pub height: u32,
    /// How many open containers contain the value above or inside this frame.
    pub depth: u32,
    /// How the JSON value of this frame is laid out.
    pub layout: LayoutId,
    /// Whether the text above is part of an item that later ones are compared with.
    pub transcribed: bool,
    /// Whether such an item ends with the value of this frame.
    pub ends_compared_item: bool,
    /// The nearest item of the stack that others are compared with, or [`Self::OWN_LEVEL`].
    pub level: StackId,
    /// Whether the stack has earlier items that are stored beside a schema.
    pub has_history: bool,
    /// The lexemes that may begin here.
    pub starts: OnceLock<Box<[Thread]>>,
    pub exits: FirstExits,
}

impl Cell {
    /// The frame is itself the nearest item.
    pub const OWN_LEVEL: StackId = StackId(u32::MAX);
}

/// How many stacks there are at most.
pub const MAX_CELLS: usize = 8_000_000;

/// All stacks of an automaton, and its lexemes.
#[derive(Debug)]
pub struct Stacks {
    cells: boxcar::Vec<Cell>,
    ids: Mutex<Ids>,
    /// Exits that are not in the lists of their stacks.
    exits: Mutex<FxHashMap<(StackId, ExitKey), StackId>>,
    pub lexemes: Lexemes,
    /// Bytes of the beginnings on stacks, and of their exits.
    pub flow_bytes: Bytes,
}

impl Stacks {
    /// Without any stack. The first that is pushed must be [`StackId::END`], whose frame is
    /// [`Frame::End`].
    pub fn new(lexemes: Lexemes) -> Self {
        let (ids, exits) = (Mutex::default(), Mutex::default());
        let (cells, flow_bytes) = (boxcar::Vec::new(), Bytes::default());
        Self { cells, ids, exits, lexemes, flow_bytes }
    }

    #[inline]
    pub fn cell(&self, stack: StackId) -> &Cell {
        &self.cells[stack.0 as usize]
    }

    /// How many stacks there are.
    pub fn len(&self) -> usize {
        self.cells.count()
    }

    /// The stack with one more frame. `keeps_history` says whether a new cell's frame has earlier
    /// items beside the schema.
    pub fn push(
        &self,
        frame: Frame,
        parent: StackId,
        keeps_history: impl FnOnce() -> bool,
    ) -> Result<StackId> {
        let hash = ShortHash::of(&(frame, parent));
        let is = |id: u32| {
            let cell = &self.cells[id as usize];
            (cell.frame, cell.parent) == (frame, parent)
        };
        let mut ids = self.ids.lock();
        if let Some(known) = ids.find(hash, is) {
            return Ok(StackId(known));
        }
        meter::charge(1)?;
        meter::check::stacks(self.cells.count() + 1)?;
        if self.cells.count() >= MAX_CELLS {
            return Err(LimitExceeded::new("grammar_stacks", MAX_CELLS).into());
        }
        let below = self.cells.get(parent.0 as usize);
        let is_compared = |frame: Frame| matches!(frame, Frame::AwaitComparedItem(_));
        let level = match below {
            _ if is_compared(frame) => Cell::OWN_LEVEL,
            Some(cell) if cell.level == Cell::OWN_LEVEL => parent,
            Some(cell) => cell.level,
            None => StackId::END,
        };
        let id = self.cells.push(Cell {
            frame,
            parent,
            height: below.map_or(0, |cell| cell.height + 1),
            depth: below.map_or(0, |cell| cell.depth) + u32::from(frame.is_container()),
            layout: match frame {
                Frame::Layout(layout) => layout,
                _ => below.map_or(LayoutId::default(), |cell| cell.layout),
            },
            transcribed: is_compared(frame) || below.is_some_and(|cell| cell.transcribed),
            ends_compared_item: below.is_some_and(|cell| is_compared(cell.frame)),
            level,
            has_history: keeps_history() || below.is_some_and(|cell| cell.has_history),
            starts: OnceLock::new(),
            exits: FirstExits::default(),
        }) as u32;
        ids.insert(hash, id);
        Ok(StackId(id))
    }

    pub fn known_exit(&self, stack: StackId, key: ExitKey) -> Option<StackId> {
        let first = self.cell(stack).exits.get(&key);
        first.or_else(|| self.exits.lock().get(&(stack, key)).copied())
    }

    pub fn keep_exit(&self, stack: StackId, key: ExitKey, next: StackId) {
        self.flow_bytes.add(map_entry::<(StackId, ExitKey), StackId>());
        if !self.cell(stack).exits.insert(key, next) {
            self.exits.lock().insert((stack, key), next);
        }
    }

    /// The nearest item of a stack that later ones are compared with; the empty stack without any.
    pub fn level(&self, stack: StackId) -> StackId {
        match self.cell(stack).level {
            Cell::OWN_LEVEL => stack,
            level => level,
        }
    }

    /// About how many bytes of memory the stacks hold.
    pub fn memory_bytes(&self) -> usize {
        self.len() * (element::<Cell>() + Ids::ENTRY_BYTES) + self.flow_bytes.get()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::stacks::ids::{ArrayPendingId, QueryId};
    use ffwd_regular::expr::LexemeStore;

    fn empty() -> Stacks {
        let stacks = Stacks::new(Lexemes::new(Arc::new(LexemeStore::new(1 << 20))));
        assert_eq!(stacks.push(Frame::End, StackId::END, || false).unwrap(), StackId::END);
        stacks
    }

    /// Their sizes are counted for each stack of a grammar.
    #[test]
    fn frames_and_cells_stay_small() {
        assert_eq!(std::mem::size_of::<Frame>(), 8);
        assert_eq!(std::mem::size_of::<Cell>(), 72);
    }

    #[test]
    fn equal_stacks_are_one() {
        let stacks = empty();
        let push = |frame, parent| stacks.push(frame, parent, || false).unwrap();
        let colon = push(Frame::Colon, StackId::END);
        assert_eq!(push(Frame::Colon, StackId::END), colon);
        let more = push(Frame::Colon, colon);
        assert_ne!(more, colon);
        assert_eq!((stacks.cell(more).height, stacks.cell(more).parent), (2, colon));
        assert_eq!(stacks.len(), 3);
    }

    /// The bytes of the first few exits and of those that are found by hashing.
    #[test]
    fn exits_are_found_again() {
        let stacks = empty();
        let key = |verdict| (ThreadLexeme::Key, verdict, TextId(7));
        for verdict in 0..20 {
            assert_eq!(stacks.known_exit(StackId::END, key(verdict)), None);
            stacks.keep_exit(StackId::END, key(verdict), StackId(verdict as u32));
        }
        for verdict in 0..20 {
            let known = stacks.known_exit(StackId::END, key(verdict));
            assert_eq!(known, Some(StackId(verdict as u32)));
        }
    }

    #[test]
    fn compared_items_tell_their_level() {
        let stacks = empty();
        let item = Frame::AwaitComparedItem(ArrayPendingId(3));
        let outer = stacks.push(item, StackId::END, || true).unwrap();
        let value = stacks.push(Frame::Value(QueryId(0)), outer, || false).unwrap();
        let inside = stacks.push(Frame::Colon, value, || false).unwrap();
        assert!(stacks.cell(value).ends_compared_item && !stacks.cell(inside).ends_compared_item);
        for stack in [outer, value, inside] {
            assert!(stacks.cell(stack).transcribed && stacks.cell(stack).has_history);
            assert_eq!(stacks.level(stack), outer);
        }
        assert_eq!(stacks.level(StackId::END), StackId::END);
    }
}
