//! Texts that a longest match has led to where nothing may come, seen beforehand.
//!
//! Only grammars for which [`swallowed`](super::swallowed) cannot rule it out come here. A row of
//! lexemes (see [`rules`](super::rules)) with the stacks after them is looked at as a whole: from
//! which of its states it can end so that something follows that it does not take itself. What
//! follows is other rows, so this is a search in a graph of rows, backwards from the end of the text.
//!
//! The graph may be infinite. Of at most [`MAX_ROWS`] rows it is exact: a state is dead if and only if
//! no text goes on from it to an end. Beyond these, in what follows a lexeme that ends anywhere, in
//! JSON, behind sets of tokens and with very large lexemes, a row is taken to be alive: then a dead
//! end may be found only when the text comes nearer to it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::config::Automaton;
use super::error::EngineError;
use super::frame::{Frame, StackId};
use super::keys::TextId;
use super::rules::Rules;
use super::swallowed::going_on;
use super::thread::{Thread, ThreadLexeme, Threads};
use crate::error::LimitExceeded;
use crate::expr::{ByteSet, LexState, Lexeme, Verdict};

/// How many rows one search looks into.
const MAX_ROWS: usize = 256;
/// How many states of a lexeme are looked at.
const MAX_STATES: usize = 4_096;

/// A lexeme, and the stack with the row of those after it.
type RowKey = (u32, StackId);
/// The states of a row from which no text goes on to an end.
type Dead = Arc<FxHashSet<LexState>>;

/// What has been found of one grammar.
#[derive(Debug, Default)]
pub(super) struct DeadEnds {
    shapes: Mutex<FxHashMap<u32, Option<Arc<Shape>>>>,
    known: Mutex<FxHashMap<RowKey, Dead>>,
}

/// A lexeme's states, and how it ends.
#[derive(Debug)]
struct Shape {
    states: Vec<LexState>,
    places: FxHashMap<LexState, usize>,
    /// The states before each.
    before: Vec<Vec<usize>>,
    /// By verdict, and the bytes with which it goes on nevertheless: the states.
    endings: FxHashMap<(Verdict, ByteSet), Vec<usize>>,
}

impl Shape {
    /// `None` if it has too many states.
    fn of(lexeme: &Lexeme) -> Result<Option<Self>, LimitExceeded> {
        let start = lexeme.start();
        let mut shape = Self {
            states: vec![start],
            places: FxHashMap::from_iter([(start, 0)]),
            before: vec![Vec::new()],
            endings: FxHashMap::default(),
        };
        let mut place = 0;
        while let Some(&state) = shape.states.get(place) {
            if shape.states.len() > MAX_STATES {
                return Ok(None);
            }
            let mut on = ByteSet::EMPTY;
            if !state.is_final() {
                let row = lexeme.row(state);
                for byte in 0..=255 {
                    let Some(next) = row.next(byte)? else { continue };
                    on.insert(byte);
                    let fresh = shape.states.len();
                    let next_place = *shape.places.entry(next).or_insert(fresh);
                    if next_place == fresh {
                        shape.states.push(next);
                        shape.before.push(Vec::new());
                    }
                    let before = &mut shape.before[next_place];
                    if before.last() != Some(&place) {
                        before.push(place);
                    }
                }
            }
            if state.accepts() {
                shape.endings.entry((lexeme.accept(state), on)).or_default().push(place);
            }
            place += 1;
        }
        Ok(Some(shape))
    }
}

/// How a row can end.
struct Exit {
    /// The states in which it does.
    from: Vec<usize>,
    /// Whether something may follow that is alive.
    alive: bool,
    /// The rows that may follow, after their first byte.
    to: Vec<(usize, LexState)>,
}

/// Rows that are looked at.
#[derive(Default)]
struct Search {
    keys: Vec<RowKey>,
    places: FxHashMap<RowKey, usize>,
    /// Those that are to be looked into, the shortest stacks first.
    pending: BinaryHeap<Reverse<(u32, usize)>>,
    /// Of those that were looked into.
    shapes: FxHashMap<usize, Arc<Shape>>,
    exits: Vec<(usize, Exit)>,
}

impl Automaton {
    /// Takes out the threads from which no text goes on to an end.
    pub(super) fn drop_dead_ends(
        &self,
        rules: &Rules,
        threads: &mut Threads,
    ) -> Result<(), EngineError> {
        if rules.program.swallowing.is_none() {
            return Ok(());
        }
        let mut kept = Threads::new();
        for thread in threads.iter() {
            if !self.is_dead_end(thread)? {
                kept.push(*thread);
            }
        }
        *threads = kept;
        Ok(())
    }

    /// Whether it is known that no text goes on from a thread to an end.
    fn is_dead_end(&self, thread: &Thread) -> Result<bool, EngineError> {
        let dead = self.dead_states(thread)?;
        Ok(dead.is_some_and(|dead| dead.contains(&thread.lex_state())))
    }

    /// Whether a thread can come to where no text goes on to an end, or is there.
    #[inline]
    pub fn may_dead_end(&self, thread: &Thread) -> Result<bool, EngineError> {
        match self.rules() {
            Some(rules) if rules.program.swallowing.is_some() => {
                Ok(self.dead_states(thread)?.is_some_and(|dead| !dead.is_empty()))
            }
            _ => Ok(false),
        }
    }

    /// Whether no text goes on from any of these threads to an end.
    pub fn are_dead_ends(&self, threads: &[Thread]) -> Result<bool, EngineError> {
        match self.rules() {
            Some(rules) if rules.program.swallowing.is_some() => {
                let mut threads: Threads = threads.iter().copied().collect();
                self.drop_dead_ends(rules, &mut threads)?;
                Ok(threads.is_empty())
            }
            _ => Ok(false),
        }
    }

    /// The dead states of the row that a thread is in; `None` if it is in none.
    fn dead_states(&self, thread: &Thread) -> Result<Option<Dead>, EngineError> {
        let (ThreadLexeme::Lexeme(lexeme), Frame::Row(_), Some(rules)) =
            (thread.lexeme, self.cell(thread.stack).frame, self.rules())
        else {
            return Ok(None);
        };
        let key = (lexeme, thread.stack);
        if let Some(known) = rules.dead_ends.known.lock().get(&key) {
            return Ok(Some(known.clone()));
        }
        let mut search = Search::default();
        self.add_row(rules, &mut search, key);
        while let Some(Reverse((_, row))) = search.pending.pop() {
            if search.shapes.len() >= MAX_ROWS {
                break;
            }
            self.look_into(rules, &mut search, row)?;
        }
        let dead = search.dead(true);
        // What would be no other if nothing beyond the rows that were looked into were alive.
        let surely = search.dead(false);
        let mut known = rules.dead_ends.known.lock();
        for (row, dead) in &dead {
            if *row == 0 || surely[row] == *dead {
                known.entry(search.keys[*row]).or_insert_with(|| Arc::new(dead.clone()));
            }
        }
        // A lexeme with too many states has none that are known to be dead.
        Ok(Some(known.entry(key).or_default().clone()))
    }

    fn add_row(&self, rules: &Rules, search: &mut Search, key: RowKey) -> usize {
        let fresh = search.keys.len();
        let row = *search.places.entry(key).or_insert(fresh);
        if row == fresh {
            search.keys.push(key);
            let height = |stack: &StackId| self.cell(*stack).height;
            let least = self.after_row(rules, key.1).iter().map(height).min();
            search.pending.push(Reverse((least.unwrap_or(0), row)));
        }
        row
    }

    fn look_into(&self, rules: &Rules, search: &mut Search, row: usize) -> Result<(), EngineError> {
        let (lexeme, stack) = search.keys[row];
        let Some(shape) = self.shape(rules, lexeme)? else { return Ok(()) };
        search.shapes.insert(row, shape.clone());
        for ((verdict, goes_on), from) in &shape.endings {
            let ended = self.exit(stack, ThreadLexeme::Lexeme(lexeme), *verdict, TextId::NONE)?;
            let mut exit = Exit { from: from.clone(), alive: false, to: Vec::new() };
            for start in self.starts(ended)? {
                let ThreadLexeme::Lexeme(index) = start.lexeme else {
                    // The end of the text, a token, or the key of an object.
                    exit.alive = true;
                    break;
                };
                let next = self.lexeme(index).clone();
                let begun = going_on(&next, start.lex_state())?;
                let mut begun = begun.iter().filter(|&byte| !goes_on.contains(byte)).peekable();
                if begun.peek().is_none() {
                    continue;
                }
                if !matches!(self.cell(start.stack).frame, Frame::Row(_)) {
                    exit.alive = true;
                    break;
                }
                let key = (index, start.stack);
                let known = rules.dead_ends.known.lock().get(&key).cloned();
                let mut seen: FxHashSet<LexState> = FxHashSet::default();
                for byte in begun {
                    let Some(state) = next.next(start.lex_state(), byte)? else { continue };
                    match &known {
                        Some(dead) => exit.alive |= !dead.contains(&state),
                        None if seen.insert(state) => {
                            let after = self.add_row(rules, search, key);
                            exit.to.push((after, state));
                        }
                        None => {}
                    }
                }
                if exit.alive {
                    break;
                }
            }
            search.exits.push((row, exit));
        }
        Ok(())
    }

    fn shape(&self, rules: &Rules, lexeme: u32) -> Result<Option<Arc<Shape>>, EngineError> {
        let mut shapes = rules.dead_ends.shapes.lock();
        if let Some(known) = shapes.get(&lexeme) {
            return Ok(known.clone());
        }
        let shape = Shape::of(self.lexeme(lexeme))?.map(Arc::new);
        shapes.insert(lexeme, shape.clone());
        Ok(shape)
    }
}

impl Search {
    /// The dead states of each row that was looked into. `beyond`: whether the others are alive.
    fn dead(&self, beyond: bool) -> FxHashMap<usize, FxHashSet<LexState>> {
        let mut alive: FxHashMap<usize, Vec<bool>> = FxHashMap::default();
        for (&row, shape) in &self.shapes {
            alive.insert(row, vec![false; shape.states.len()]);
        }
        // The exits that lead to a state of a row.
        let mut leading: FxHashMap<(usize, usize), Vec<usize>> = FxHashMap::default();
        let mut pending: Vec<(usize, usize)> = Vec::new();
        for (number, (row, exit)) in self.exits.iter().enumerate() {
            let mut is_alive = exit.alive;
            for &(to, state) in &exit.to {
                match self.shapes.get(&to) {
                    Some(shape) => {
                        leading.entry((to, shape.places[&state])).or_default().push(number);
                    }
                    None => is_alive |= beyond,
                }
            }
            if is_alive {
                pending.extend(exit.from.iter().map(|&place| (*row, place)));
            }
        }
        while let Some((row, place)) = pending.pop() {
            let Some(states) = alive.get_mut(&row) else { continue };
            if std::mem::replace(&mut states[place], true) {
                continue;
            }
            pending.extend(self.shapes[&row].before[place].iter().map(|&before| (row, before)));
            for &number in leading.get(&(row, place)).into_iter().flatten() {
                let (row, exit) = &self.exits[number];
                pending.extend(exit.from.iter().map(|&place| (*row, place)));
            }
        }
        let dead = |(row, alive): (usize, Vec<bool>)| {
            let states = self.shapes[&row].states.iter().zip(alive);
            (row, states.filter(|(_, alive)| !alive).map(|(&state, _)| state).collect())
        };
        alive.into_iter().map(dead).collect()
    }
}
