//! Dead ends after a longest match, found in advance.
//!
//! Only lexemes for which [`swallowed`](crate::rules::swallowed) cannot exclude a dead end are examined
//! here. A row of lexemes (see [`rules`](crate::rules::starts)) is examined with the stacks after them:
//! from which of its states can it end so that something follows that it does not consume itself?
//! The successors are other rows, so this is a search in a graph of rows, backwards from the end of
//! the text.
//!
//! A row within a part that has a limit of tokens has a second exit: at the limit its lexemes end
//! wherever they can, and the text after the part may begin with any byte. Rows do not know the
//! number of tokens, so the search assumes that the limit may be met at any time; the matcher
//! checks when it is.
//!
//! The graph may be infinite. For at most [`MAX_ROWS`] rows the search is exact: a state is dead if
//! and only if no text leads from it to an end, or to a lexeme whose dead ends are excluded. Other
//! rows count as alive: those beyond the limit, after a lexeme that ends anywhere, in JSON, after
//! token sets, and with very large lexemes. Their dead ends may be found only when the text is
//! closer to them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::EngineError;
use crate::json::keys::TextId;
use crate::rules::starts::Rules;
use crate::rules::swallowed::going_on;
use crate::run::automaton::Automaton;
use crate::stacks::frame::{Frame, StackId};
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_grammar::NodeId;
use ffwd_regular::expr::{ByteSet, LexState, Lexeme, Verdict};

/// The most rows that one search examines.
const MAX_ROWS: usize = 256;
/// How many states of a lexeme are looked at.
const MAX_STATES: usize = 4_096;

/// A state of a lexeme, and the stack of what follows it.
type Place = (u32, StackId, LexState);

/// The known fate of a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fate {
    /// No text goes on from it to an end.
    dead: bool,
    /// So it is from here, or from some later state of the lexeme.
    may_die: bool,
}

/// By lexeme and state; `None` where there are too many states.
type Shapes = FxHashMap<(u32, LexState), Option<Arc<Shape>>>;

/// The results for one grammar.
#[derive(Debug, Default)]
pub(crate) struct DeadEnds {
    shapes: Mutex<Shapes>,
    known: Mutex<FxHashMap<Place, Fate>>,
}

/// The states of a lexeme from one on, and how it ends.
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
    fn of(lexeme: &Lexeme, start: LexState) -> Result<Option<Self>, LimitExceeded> {
        let mut shape = Self {
            states: vec![start],
            places: FxHashMap::from_iter([(start, 0)]),
            before: vec![Vec::new()],
            endings: FxHashMap::default(),
        };
        let mut place = 0;
        while let Some(&state) = shape.states.get(place) {
            meter::charge(32)?;
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

impl Shape {
    fn fates(&self, alive: &[bool]) -> Vec<Fate> {
        let mut fates: Vec<Fate> =
            alive.iter().map(|&alive| Fate { dead: !alive, may_die: false }).collect();
        let mut pending: Vec<usize> = (0..fates.len()).filter(|&place| fates[place].dead).collect();
        while let Some(place) = pending.pop() {
            if !std::mem::replace(&mut fates[place].may_die, true) {
                pending.extend_from_slice(&self.before[place]);
            }
        }
        fates
    }
}

/// Which languages of a lexeme are followed by something wherever they end, whatever it is that may.
#[derive(Clone, Copy)]
struct Safe(Verdict);

impl Safe {
    fn of(rules: &Rules, lexeme: u32) -> Self {
        let family = rules.families.values().find(|family| family.lexeme.get() == Some(&lexeme));
        Self(family.map_or(0, |family| family.safe))
    }

    /// Whether some, and whether all of the languages that are left in a state are such ones.
    fn among(self, lexeme: &Lexeme, state: LexState) -> (bool, bool) {
        match lexeme.alive_in(state) {
            // Not known.
            Verdict::MAX => (false, false),
            left => (left & self.0 != 0, left & !self.0 == 0),
        }
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

/// Rows that are looked at, each from where it began.
#[derive(Default)]
struct Search {
    keys: Vec<Place>,
    places: FxHashMap<Place, usize>,
    /// Rows to examine, the shortest stacks first.
    pending: BinaryHeap<Reverse<(u32, usize)>>,
    looked_into: usize,
    /// The shapes of examined rows.
    shapes: FxHashMap<usize, Arc<Shape>>,
    exits: Vec<(usize, Exit)>,
    /// Lexemes and the languages of them that ended where they take what could follow; and whether
    /// that is all that could.
    taking: Vec<(u32, Verdict, bool)>,
}

impl Automaton {
    /// Takes out the threads from which no text goes on to an end.
    pub(crate) fn drop_dead_ends(
        &self,
        rules: &Rules,
        threads: &mut Threads,
    ) -> Result<(), EngineError> {
        if !rules.program.swallowing.is_possible() {
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
        Ok(self.fate(thread)?.dead)
    }

    /// Whether a thread can come to where no text goes on to an end, or is there.
    #[inline]
    pub fn may_dead_end(&self, thread: &Thread) -> Result<bool, EngineError> {
        match self.rules() {
            Some(rules) if rules.program.swallowing.is_possible() => Ok(self.fate(thread)?.may_die),
            _ => Ok(false),
        }
    }

    /// Whether no text goes on from any of these threads to an end.
    pub fn are_dead_ends(&self, threads: &[Thread]) -> Result<bool, EngineError> {
        match self.rules() {
            Some(rules) if rules.program.swallowing.is_possible() => {
                let mut threads: Threads = threads.iter().copied().collect();
                self.drop_dead_ends(rules, &mut threads)?;
                Ok(threads.is_empty())
            }
            _ => Ok(false),
        }
    }

    /// Whether a thread is in a row all of whose lexemes that are left are followed by something
    /// wherever they end.
    pub(crate) fn is_safe(&self, thread: &Thread) -> bool {
        let (ThreadLexeme::Lexeme(lexeme), Some(rules)) = (thread.lexeme, self.rules()) else {
            return false;
        };
        if !rules.program.swallowing.is_possible() {
            return true;
        }
        let (some, all) = Safe::of(rules, lexeme).among(self.lexeme(lexeme), thread.lex_state());
        some && all
    }

    fn is_row(&self, stack: StackId) -> bool {
        matches!(self.cell(stack).frame, Frame::Row(_) | Frame::Begun)
    }

    /// Returns the fate of a thread; a thread without a row counts as alive.
    fn fate(&self, thread: &Thread) -> Result<Fate, EngineError> {
        let (ThreadLexeme::Lexeme(lexeme), Some(rules)) = (thread.lexeme, self.rules()) else {
            return Ok(Fate::default());
        };
        if !self.is_row(thread.stack) || self.is_safe(thread) {
            return Ok(Fate::default());
        }
        let key = (lexeme, thread.stack, thread.lex_state());
        if let Some(&known) = rules.dead_ends.known.lock().get(&key) {
            return Ok(known);
        }
        let mut search = Search::default();
        self.add_row(rules, &mut search, key);
        // The fates of examined rows, and the fates if no row beyond them were alive. A few others
        // determine those of most rows.
        let (mut fates, mut surely);
        let mut enough = 1;
        loop {
            while search.looked_into < enough {
                let Some(Reverse((_, row))) = search.pending.pop() else { break };
                meter::charge(16)?;
                self.look_into(rules, &mut search, row)?;
                search.looked_into += 1;
            }
            // All states of all rows are looked at, twice and mostly more than once each.
            let states = search.shapes.values().map(|shape| shape.states.len());
            meter::charge(8 * states.sum::<usize>())?;
            (fates, surely) = (search.fates(true), search.fates(false));
            let is_sure = fates.get(&0) == surely.get(&0);
            if is_sure || search.pending.is_empty() || enough >= MAX_ROWS {
                break;
            }
            enough *= 2;
        }
        let mut known = rules.dead_ends.known.lock();
        for (row, fates) in &fates {
            if *row == 0 || surely[row] == *fates {
                meter::charge(2 * fates.len())?;
                let (lexeme, stack, _) = search.keys[*row];
                let safe = Safe::of(rules, lexeme);
                for (&state, &fate) in search.shapes[row].states.iter().zip(fates) {
                    if safe.among(self.lexeme(lexeme), state) == (true, true) {
                        continue;
                    }
                    known.entry((lexeme, stack, state)).or_insert(fate);
                }
            }
        }
        // A lexeme with too many states has none that are known to be dead.
        Ok(*known.entry(key).or_default())
    }

    fn add_row(&self, rules: &Rules, search: &mut Search, key: Place) -> usize {
        let fresh = search.keys.len();
        let row = *search.places.entry(key).or_insert(fresh);
        if row == fresh {
            search.keys.push(key);
            search.pending.push(Reverse((self.height_after(rules, key.1), row)));
        }
        row
    }

    fn look_into(&self, rules: &Rules, search: &mut Search, row: usize) -> Result<(), EngineError> {
        let (lexeme, stack, start) = search.keys[row];
        let Some(shape) = self.shape(rules, lexeme, start)? else { return Ok(()) };
        search.shapes.insert(row, shape.clone());
        let safe = Safe::of(rules, lexeme);
        let is_safe = |place: &usize| safe.among(self.lexeme(lexeme), shape.states[*place]).0;
        let from: Vec<usize> = (0..shape.states.len()).filter(is_safe).collect();
        search.exits.push((row, Exit { from, alive: true, to: Vec::new() }));
        for ((verdict, goes_on), from) in &shape.endings {
            if from.iter().all(is_safe) {
                continue;
            }
            let ended = self.exit(stack, ThreadLexeme::Lexeme(lexeme), *verdict, TextId::NONE)?;
            let starts = self.starts(ended)?;
            let mut exit = self.exit_to(rules, search, starts, goes_on)?;
            exit.from.clone_from(from);
            let takes = self.takes_first(starts, goes_on)?;
            if takes && !exit.alive {
                search.taking.push((lexeme, *verdict, exit.to.is_empty()));
            }
            search.exits.push((row, exit));
            // At a limit the inner lexemes end, even if they could continue.
            for below in self.below_limits(rules, ended) {
                let starts = self.starts(below)?;
                let mut exit = self.exit_to(rules, search, starts, &ByteSet::EMPTY)?;
                exit.from.clone_from(from);
                search.exits.push((row, exit));
            }
        }
        Ok(())
    }

    /// Returns the exit of a row for threads that begin with none of some bytes.
    fn exit_to(
        &self,
        rules: &Rules,
        search: &mut Search,
        starts: &[Thread],
        goes_on: &ByteSet,
    ) -> Result<Exit, EngineError> {
        let mut exit = Exit { from: Vec::new(), alive: false, to: Vec::new() };
        for start in starts {
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
            if !self.is_row(start.stack) {
                exit.alive = true;
                break;
            }
            let key = (index, start.stack, start.lex_state());
            let mut seen: FxHashSet<LexState> = FxHashSet::default();
            for byte in begun {
                let Some(state) = next.next(start.lex_state(), byte)? else { continue };
                if !seen.insert(state) {
                    continue;
                }
                if Safe::of(rules, index).among(&next, state).0 {
                    exit.alive = true;
                    break;
                }
                let place = (index, start.stack, state);
                let known = rules.dead_ends.known.lock().get(&place).copied();
                match known {
                    Some(fate) => exit.alive |= !fate.dead,
                    None => exit.to.push((self.add_row(rules, search, key), state)),
                }
            }
            if exit.alive {
                break;
            }
        }
        Ok(exit)
    }

    /// Whether one of the threads can begin with one of some bytes.
    fn takes_first(&self, starts: &[Thread], goes_on: &ByteSet) -> Result<bool, EngineError> {
        for start in starts {
            if let ThreadLexeme::Lexeme(index) = start.lexeme {
                let begun = going_on(self.lexeme(index), start.lex_state())?;
                if begun.iter().any(|byte| goes_on.contains(byte)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The first lexeme in the order of the grammar that was found to take all that could follow it,
    /// on the way from the start of a grammar without texts.
    pub fn taking_lexeme(&self) -> Result<Option<NodeId>, EngineError> {
        let Some(rules) = self.rules() else { return Ok(None) };
        let stack = self.push(Frame::Symbol(rules.program.symbols.start), StackId::END)?;
        let mut search = Search::default();
        for thread in self.starts(stack)? {
            if let ThreadLexeme::Lexeme(lexeme) = thread.lexeme {
                self.add_row(rules, &mut search, (lexeme, thread.stack, thread.lex_state()));
            }
        }
        // Results from earlier searches lack their reasons.
        rules.dead_ends.known.lock().clear();
        while let Some(Reverse((_, row))) = search.pending.pop() {
            if search.looked_into >= MAX_ROWS {
                break;
            }
            self.look_into(rules, &mut search, row)?;
            search.looked_into += 1;
        }
        let nodes = search.taking.iter().filter_map(|&(lexeme, verdict, all)| {
            let family =
                rules.families.values().find(|family| family.lexeme.get() == Some(&lexeme))?;
            Some((!all, family.first_of(verdict & !family.safe)?))
        });
        Ok(nodes.min().map(|(_, node)| node))
    }

    fn shape(
        &self,
        rules: &Rules,
        lexeme: u32,
        start: LexState,
    ) -> Result<Option<Arc<Shape>>, EngineError> {
        let mut shapes = rules.dead_ends.shapes.lock();
        if let Some(known) = shapes.get(&(lexeme, start)) {
            return Ok(known.clone());
        }
        let shape = Shape::of(self.lexeme(lexeme), start)?.map(Arc::new);
        shapes.insert((lexeme, start), shape.clone());
        Ok(shape)
    }
}

impl Search {
    /// Returns the fates of the states of each examined row. `beyond`: whether the others are
    /// alive.
    fn fates(&self, beyond: bool) -> FxHashMap<usize, Vec<Fate>> {
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
        alive.into_iter().map(|(row, alive)| (row, self.shapes[&row].fates(&alive))).collect()
    }
}
