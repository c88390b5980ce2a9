//! Dead ends after a longest match, found in advance.
//!
//! Only lexemes for which [`swallowed`](crate::rules::swallowed) cannot exclude a dead end are
//! examined here. A row of lexemes (see [`rules`](crate::rules::starts)) is examined with the
//! stacks after them. The search finds the states from which the row can end before something that
//! it does not consume itself. The successors are other rows, so this is a search in a graph of
//! rows, backwards from the end of the text.
//!
//! A row within a part that has a limit of tokens has a second exit. At the limit its lexemes end
//! wherever they can, and the text after the part may start with any byte. Rows do not know the
//! number of tokens, so the search assumes that the limit may be met at any time; the matcher
//! checks when it is.
//!
//! Between rows stand parts that consume nothing of what follows: lexemes that end wherever they
//! can, JSON values, and tokens that are taken as a whole. Each of them can end from all of its
//! states, so it is dead exactly if everything after it is.
//!
//! The graph may be infinite. For at most [`MAX_ROWS`] rows the search is exact. A state is dead if
//! and only if no text leads from it to an end, or to a lexeme without dead ends. Rows beyond the
//! limit and those with very large lexemes count as alive. Their dead ends may be found only when
//! the text is closer to them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Result;
use crate::rules::shapes::{Fate, RowPlace, Shape};
use crate::rules::successors::going_on;
use crate::rules::tables::Rules;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LexemeId, StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::meter;
use ffwd_grammar::NodeId;
use ffwd_regular::expr::{ByteSet, LexState, Lexeme, Verdict};

/// The most rows that one search examines.
const MAX_ROWS: usize = 256;
/// The languages of a lexeme that have a continuation wherever they end.
#[derive(Clone, Copy)]
struct Safe(Verdict);

impl Safe {
    fn of(rules: &Rules, lexeme: LexemeId) -> Self {
        let family = rules.families.values().find(|family| family.lexeme.get() == Some(&lexeme));
        Self(family.map_or(0, |family| family.safe))
    }

    /// Whether some, and whether all, remaining languages of a state are among these.
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
    /// Whether a live continuation is allowed.
    alive: bool,
    /// The rows that may follow, after their first byte.
    to: Vec<(usize, LexState)>,
}

/// The examined rows, each from its beginning.
#[derive(Default)]
struct Search {
    keys: Vec<RowPlace>,
    places: FxHashMap<RowPlace, usize>,
    /// Rows to examine, the shortest stacks first.
    pending: BinaryHeap<Reverse<(u32, usize)>>,
    looked_into: usize,
    /// The shapes of examined rows.
    shapes: FxHashMap<usize, Arc<Shape>>,
    exits: Vec<(usize, Exit)>,
    /// Lexemes, their languages that can end only where they consume what could follow, and whether
    /// they consume all of it.
    taking: Vec<(LexemeId, Verdict, bool)>,
}

impl Rules {
    /// Removes the threads that no text completes.
    pub(crate) fn drop_dead_ends(&self, on: &impl On, threads: &mut Threads) -> Result<()> {
        if !self.program.swallowing.is_possible() {
            return Ok(());
        }
        let mut kept = Threads::new();
        for thread in threads.iter() {
            if !self.is_dead_end(on, thread)? {
                kept.push(*thread);
            }
        }
        *threads = kept;
        Ok(())
    }

    /// Whether a thread is known to have no completion.
    pub(crate) fn is_dead_end(&self, on: &impl On, thread: &Thread) -> Result<bool> {
        Ok(self.program.swallowing.is_possible() && self.fate(on, thread)?.dead)
    }

    /// Whether a thread is at a dead end, or can reach one.
    #[inline]
    pub(crate) fn may_dead_end(&self, on: &impl On, thread: &Thread) -> Result<bool> {
        Ok(self.program.swallowing.is_possible() && self.fate(on, thread)?.may_die)
    }

    /// Whether none of these threads has a completion.
    pub(crate) fn are_dead_ends(&self, on: &impl On, threads: &[Thread]) -> Result<bool> {
        if !self.program.swallowing.is_possible() {
            return Ok(false);
        }
        let mut threads: Threads = threads.iter().copied().collect();
        self.drop_dead_ends(on, &mut threads)?;
        Ok(threads.is_empty())
    }

    /// Whether a thread is in a row whose remaining lexemes all have a continuation wherever they
    /// end.
    pub(crate) fn is_safe(&self, on: &impl On, thread: &Thread) -> bool {
        let ThreadLexeme::Lexeme(lexeme) = thread.lexeme else {
            return false;
        };
        if !self.program.swallowing.is_possible() {
            return true;
        }
        let (some, all) = Safe::of(self, lexeme).among(on.lexeme(lexeme), thread.lex_state());
        some && all
    }

    fn is_row(&self, on: &impl On, stack: StackId) -> bool {
        matches!(on.cell(stack).frame, Frame::Row(_) | Frame::Begun)
    }

    /// Returns the stack after a thread that is in no row: after a lexeme that ends wherever it
    /// can, a JSON value, or a token that is taken as a whole.
    fn after_part(&self, on: &impl On, thread: &Thread) -> StackId {
        let mut stack = thread.stack;
        loop {
            let cell = on.cell(stack);
            if cell.frame.is_rule() || cell.frame == Frame::End {
                return stack;
            }
            stack = cell.parent;
        }
    }

    /// Returns the fate of a thread.
    fn fate(&self, on: &impl On, thread: &Thread) -> Result<Fate> {
        let lexeme = match thread.lexeme {
            ThreadLexeme::End => return Ok(Fate::default()),
            ThreadLexeme::Lexeme(lexeme) if self.is_row(on, thread.stack) => lexeme,
            _ => return self.fate_before(on, self.after_part(on, thread)),
        };
        if self.is_safe(on, thread) {
            return Ok(Fate::default());
        }
        let key = (lexeme, thread.stack, thread.lex_state());
        if let Some(&known) = self.dead_ends.known.lock().get(&key) {
            return Ok(known);
        }
        let mut search = Search::default();
        self.add_row(on, &mut search, key);
        // The fates of examined rows, and the fates if no row beyond them were alive. A few others
        // determine those of most rows.
        let (mut fates, mut surely);
        let mut enough = 1;
        loop {
            while search.looked_into < enough {
                let Some(Reverse((_, row))) = search.pending.pop() else { break };
                meter::charge(16)?;
                self.look_into(on, &mut search, row)?;
                search.looked_into += 1;
            }
            // All states of all rows are examined twice, most of them several times.
            let states = search.shapes.values().map(|shape| shape.states.len());
            meter::charge(8 * states.sum::<usize>())?;
            (fates, surely) = (search.fates(true), search.fates(false));
            let is_sure = fates.get(&0) == surely.get(&0);
            if is_sure || search.pending.is_empty() || enough >= MAX_ROWS {
                break;
            }
            enough *= 2;
        }
        let mut known = self.dead_ends.known.lock();
        for (row, fates) in &fates {
            meter::charge(2 * fates.len())?;
            let (lexeme, stack, _) = search.keys[*row];
            let safe = Safe::of(self, lexeme);
            let states = search.shapes[row].states.iter();
            for ((&state, &fate), &sure) in states.zip(fates).zip(&surely[row]) {
                if safe.among(on.lexeme(lexeme), state) == (true, true) {
                    continue;
                }
                let place = (lexeme, stack, state);
                if fate == sure {
                    known.entry(place).or_insert(fate);
                } else if place == key {
                    // A later state may have a search of its own, which finds it dead.
                    known.entry(place).or_insert(Fate { may_die: sure.may_die, ..fate });
                }
            }
        }
        // A lexeme with too many states has none that are known to be dead.
        Ok(*known.entry(key).or_default())
    }

    /// The fate of what consumes nothing of the stack after it: dead if all lexemes on it are.
    fn fate_before(&self, on: &impl On, stack: StackId) -> Result<Fate> {
        if let Some(&known) = self.dead_ends.before.lock().get(&stack) {
            return Ok(known);
        }
        let mut dead = false;
        if let Some(rows) = self.next_rows(on, stack)? {
            dead = true;
            for row in &rows {
                dead &= self.fate(on, row)?.dead;
            }
        }
        let fate = Fate { dead, may_die: dead };
        self.dead_ends.before.lock().insert(stack, fate);
        Ok(fate)
    }

    /// The rows that can begin on a stack, or after parts that consume nothing of what follows.
    /// `None` if the text can end there, or if these parts are too many.
    fn next_rows(&self, on: &impl On, stack: StackId) -> Result<Option<Threads>> {
        let mut rows = Threads::new();
        let mut stacks = vec![stack];
        let mut seen: FxHashSet<StackId> = FxHashSet::default();
        while let Some(stack) = stacks.pop() {
            if !seen.insert(stack) {
                continue;
            }
            if seen.len() > MAX_ROWS {
                return Ok(None);
            }
            meter::charge(1)?;
            for start in on.starts(stack)? {
                match start.lexeme {
                    ThreadLexeme::End => return Ok(None),
                    ThreadLexeme::Lexeme(_) if self.is_row(on, start.stack) => rows.push(*start),
                    _ => stacks.push(self.after_part(on, start)),
                }
            }
        }
        Ok(Some(rows))
    }

    fn add_row(&self, on: &impl On, search: &mut Search, key: RowPlace) -> usize {
        let fresh = search.keys.len();
        let row = *search.places.entry(key).or_insert(fresh);
        if row == fresh {
            search.keys.push(key);
            search.pending.push(Reverse((self.height_after(on, key.1), row)));
        }
        row
    }

    fn look_into(&self, on: &impl On, search: &mut Search, row: usize) -> Result<()> {
        let (lexeme, stack, start) = search.keys[row];
        let Some(shape) = self.shape(on, lexeme, start)? else { return Ok(()) };
        search.shapes.insert(row, shape.clone());
        let safe = Safe::of(self, lexeme);
        let is_safe = |place: &usize| safe.among(on.lexeme(lexeme), shape.states[*place]).0;
        let from: Vec<usize> = (0..shape.states.len()).filter(is_safe).collect();
        search.exits.push((row, Exit { from, alive: true, to: Vec::new() }));
        for ((verdict, goes_on), from) in &shape.endings {
            if from.iter().all(is_safe) {
                continue;
            }
            let ended = on.exit(stack, ThreadLexeme::Lexeme(lexeme), *verdict, TextId::NONE)?;
            let starts = on.starts(ended)?;
            let mut exit = self.exit_to(on, search, starts, goes_on)?;
            exit.from.clone_from(from);
            let takes = self.takes_first(on, starts, goes_on)?;
            if takes && !exit.alive {
                search.taking.push((lexeme, *verdict, exit.to.is_empty()));
            }
            search.exits.push((row, exit));
            // At a limit the inner lexemes end, even if they could continue.
            for below in self.below_limits(on, ended) {
                let starts = on.starts(below)?;
                let mut exit = self.exit_to(on, search, starts, &ByteSet::EMPTY)?;
                exit.from.clone_from(from);
                search.exits.push((row, exit));
            }
        }
        Ok(())
    }

    /// Returns the exit of a row for threads that begin with none of some bytes.
    fn exit_to(
        &self,
        on: &impl On,
        search: &mut Search,
        starts: &[Thread],
        goes_on: &ByteSet,
    ) -> Result<Exit> {
        let mut exit = Exit { from: Vec::new(), alive: false, to: Vec::new() };
        for start in starts {
            let index = match start.lexeme {
                ThreadLexeme::Lexeme(index) => index,
                ThreadLexeme::Tokens(_) => {
                    self.exit_to_part(on, search, start, &mut exit)?;
                    continue;
                }
                ThreadLexeme::End | ThreadLexeme::Key | ThreadLexeme::Escape(_) => {
                    exit.alive = true;
                    break;
                }
            };
            let next = on.lexeme(index).clone();
            let begun = going_on(&next, start.lex_state())?;
            let mut begun = begun.iter().filter(|&byte| !goes_on.contains(byte)).peekable();
            if begun.peek().is_none() {
                continue;
            }
            if !self.is_row(on, start.stack) {
                self.exit_to_part(on, search, start, &mut exit)?;
                continue;
            }
            let key = (index, start.stack, start.lex_state());
            let mut seen: FxHashSet<LexState> = FxHashSet::default();
            for byte in begun {
                let Some(state) = next.next(start.lex_state(), byte)? else { continue };
                if !seen.insert(state) {
                    continue;
                }
                if Safe::of(self, index).among(&next, state).0 {
                    exit.alive = true;
                    break;
                }
                let place = (index, start.stack, state);
                let known = self.dead_ends.known.lock().get(&place).copied();
                match known {
                    Some(fate) => exit.alive |= !fate.dead,
                    None => exit.to.push((self.add_row(on, search, key), state)),
                }
            }
            if exit.alive {
                break;
            }
        }
        Ok(exit)
    }

    /// Adds the rows after a part that consumes nothing of them to an exit.
    fn exit_to_part(
        &self,
        on: &impl On,
        search: &mut Search,
        part: &Thread,
        exit: &mut Exit,
    ) -> Result<()> {
        let Some(rows) = self.next_rows(on, self.after_part(on, part))? else {
            exit.alive = true;
            return Ok(());
        };
        for row in &rows {
            let ThreadLexeme::Lexeme(lexeme) = row.lexeme else { continue };
            if self.is_safe(on, row) {
                exit.alive = true;
                return Ok(());
            }
            let key = (lexeme, row.stack, row.lex_state());
            let known = self.dead_ends.known.lock().get(&key).copied();
            match known {
                Some(fate) => exit.alive |= !fate.dead,
                None => exit.to.push((self.add_row(on, search, key), row.lex_state())),
            }
        }
        Ok(())
    }

    /// Whether one of the threads can begin with one of some bytes.
    fn takes_first(&self, on: &impl On, starts: &[Thread], goes_on: &ByteSet) -> Result<bool> {
        for start in starts {
            if let ThreadLexeme::Lexeme(index) = start.lexeme {
                let begun = going_on(on.lexeme(index), start.lex_state())?;
                if begun.iter().any(|byte| goes_on.contains(byte)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// For a grammar without texts: the first lexeme, in the order of the grammar, that consumes
    /// everything that could follow it.
    pub(crate) fn taking_lexeme(&self, on: &impl On) -> Result<Option<NodeId>> {
        let stack = on.push(Frame::Symbol(self.program.symbols.start), StackId::END)?;
        let mut search = Search::default();
        for row in self.next_rows(on, stack)?.iter().flatten() {
            if let ThreadLexeme::Lexeme(lexeme) = row.lexeme {
                self.add_row(on, &mut search, (lexeme, row.stack, row.lex_state()));
            }
        }
        // Results from earlier searches lack their reasons.
        self.dead_ends.known.lock().clear();
        while let Some(Reverse((_, row))) = search.pending.pop() {
            if search.looked_into >= MAX_ROWS {
                break;
            }
            self.look_into(on, &mut search, row)?;
            search.looked_into += 1;
        }
        let nodes = search.taking.iter().filter_map(|&(lexeme, verdict, all)| {
            let family =
                self.families.values().find(|family| family.lexeme.get() == Some(&lexeme))?;
            Some((!all, family.first_of(verdict & !family.safe)?))
        });
        Ok(nodes.min().map(|(_, node)| node))
    }

    fn shape(&self, on: &impl On, lexeme: LexemeId, start: LexState) -> Result<Option<Arc<Shape>>> {
        let mut shapes = self.dead_ends.shapes.lock();
        if let Some(known) = shapes.get(&(lexeme, start)) {
            return Ok(known.clone());
        }
        let shape = Shape::of(on.lexeme(lexeme), start)?.map(Arc::new);
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
        // The exits to which a state of a row can lead.
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
