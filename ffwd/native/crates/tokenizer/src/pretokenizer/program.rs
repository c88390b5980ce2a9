//! A pattern as a list of threads: the alternatives of a backtracking engine, in its order.

use regex_syntax::hir::ClassUnicode;
use rustc_hash::FxHashMap;

use super::classes::{ClassId, ClassSet};
use super::error::PreTokenizerError;
use super::syntax::{Look, RepeatKind, Syntax};
use ffwd_bounds::error::LimitExceeded;

/// A position in a pattern before a character, or after the match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PlaceId(pub u16);

impl PlaceId {
    pub const MATCH: Self = Self(0);
}

/// One continuation: from this position, if the next character is of one of these classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Thread {
    pub place: PlaceId,
    pub next: ClassSet,
}

/// The most places of a pattern with its counted repetitions written out.
const MAX_PLACES: usize = 1024;

/// A pattern compiled for classes of characters.
#[derive(Debug)]
pub(super) struct Program {
    /// Best first; never [`PlaceId::MATCH`], as no pattern matches the empty text.
    pub start: Vec<Thread>,
    /// The threads after a position's character, best first.
    after: Vec<Vec<Thread>>,
}

impl Program {
    pub fn after(&self, place: PlaceId) -> &[Thread] {
        &self.after[usize::from(place.0)]
    }

    /// An upper bound on the work of reading one character with these threads.
    pub fn cost(&self, threads: &[Thread]) -> usize {
        let pushed: usize = threads.iter().map(|thread| 1 + self.after(thread.place).len()).sum();
        // Each is compared with those that were pushed before it, at most one at each place.
        pushed * pushed.min(self.after.len())
    }
}

/// A pattern before the classes of characters are known.
pub(super) struct Draft {
    pattern: String,
    states: Vec<State>,
    start: usize,
    /// The sets that the states refer to by their index.
    pub sets: Vec<ClassUnicode>,
    possessive: Vec<Possessive>,
}

enum State {
    Match,
    Character {
        set: usize,
        then: usize,
    },
    Look {
        set: usize,
        at_end: bool,
        then: usize,
    },
    /// Both, the first one first.
    Split(usize, usize),
}

/// A possessive repetition: it equals the greedy one if no match starts where that gives a
/// character back.
struct Possessive {
    offset: usize,
    /// The repeated set, if it is one character.
    set: Option<usize>,
    then: usize,
}

impl Draft {
    pub fn new(pattern: &str, node: &Syntax) -> Result<Self, PreTokenizerError> {
        let mut draft = Self {
            pattern: pattern.to_owned(),
            states: vec![State::Match],
            start: 0,
            sets: Vec::new(),
            possessive: Vec::new(),
        };
        draft.start = draft.add(node, 0)?;
        Ok(draft)
    }

    fn push(&mut self, state: State) -> Result<usize, PreTokenizerError> {
        if self.states.len() == MAX_PLACES {
            return Err(LimitExceeded::new("pattern_places", MAX_PLACES).into());
        }
        self.states.push(state);
        Ok(self.states.len() - 1)
    }

    fn set(&mut self, set: &ClassUnicode) -> usize {
        if let Some(index) = self.sets.iter().position(|known| known == set) {
            return index;
        }
        self.sets.push(set.clone());
        self.sets.len() - 1
    }

    /// The state that reads `node` and continues at `then`.
    fn add(&mut self, node: &Syntax, then: usize) -> Result<usize, PreTokenizerError> {
        match node {
            Syntax::Empty => Ok(then),
            Syntax::Class(class) => {
                let set = self.set(class);
                self.push(State::Character { set, then })
            }
            Syntax::Look(Look { next, at_end }) => {
                let set = self.set(next);
                self.push(State::Look { set, at_end: *at_end, then })
            }
            Syntax::Concat(nodes) => {
                nodes.iter().rev().try_fold(then, |then, node| self.add(node, then))
            }
            Syntax::Alternation(nodes) => {
                let mut starts = Vec::with_capacity(nodes.len());
                for node in nodes {
                    starts.push(self.add(node, then)?);
                }
                let last = starts.pop().unwrap_or(then);
                starts
                    .into_iter()
                    .rev()
                    .try_fold(last, |rest, start| self.push(State::Split(start, rest)))
            }
            Syntax::Repeat { node, least, most, kind, offset } => {
                if is_nullable(node) {
                    return Err(PreTokenizerError::Unsupported {
                        construct: "a repetition of what may be empty",
                        offset: *offset,
                    });
                }
                if *kind == RepeatKind::Possessive {
                    let offset = *offset;
                    let set = match &**node {
                        Syntax::Class(class) => Some(self.set(class)),
                        _ => None,
                    };
                    self.possessive.push(Possessive { offset, set, then });
                }
                self.repeat(node, *least, *most, *kind == RepeatKind::Lazy, then)
            }
        }
    }

    fn repeat(
        &mut self,
        node: &Syntax,
        least: u32,
        most: Option<u32>,
        lazy: bool,
        then: usize,
    ) -> Result<usize, PreTokenizerError> {
        let split = |more, enough| {
            if lazy {
                State::Split(enough, more)
            } else {
                State::Split(more, enough)
            }
        };
        let mut next = then;
        match most {
            None => {
                // The loop is a state that its own body leads back to.
                let again = self.push(State::Match)?;
                let body = self.add(node, again)?;
                self.states[again] = split(body, then);
                next = again;
            }
            Some(most) => {
                for _ in least..most {
                    let body = self.add(node, next)?;
                    next = self.push(split(body, then))?;
                }
            }
        }
        for _ in 0..least {
            next = self.add(node, next)?;
        }
        Ok(next)
    }

    /// `unions[i]` is what the i-th set is in classes.
    pub fn finish(&self, unions: &[ClassSet]) -> Result<Program, PreTokenizerError> {
        let start = self.threads(self.start, unions);
        if start.iter().any(|thread| thread.place == PlaceId::MATCH) {
            return Err(PreTokenizerError::MatchesEmpty { pattern: self.pattern.clone() });
        }
        for possessive in &self.possessive {
            self.check_possessive(possessive, unions)?;
        }
        let after = self
            .states
            .iter()
            .map(|state| match *state {
                State::Character { then, .. } => self.threads(then, unions),
                _ => Vec::new(),
            })
            .collect();
        Ok(Program { start, after })
    }

    /// The threads that begin in a state, as [`push_thread`] keeps them.
    fn threads(&self, state: usize, unions: &[ClassSet]) -> Vec<Thread> {
        let mut threads = Vec::new();
        // The conditions under which a state was entered: entering it again matters only with
        // others.
        let mut entered: FxHashMap<usize, ClassSet> = FxHashMap::default();
        let mut stack = vec![(state, ClassSet::ALL)];
        while let Some((state, next)) = stack.pop() {
            let before = entered.entry(state).or_insert(ClassSet::NONE);
            let next = next.without(*before);
            *before = before.or(next);
            if next.is_empty() {
                continue;
            }
            let place = PlaceId(state as u16);
            match self.states[state] {
                State::Match => push_thread(&mut threads, Thread { place, next }),
                State::Character { set, .. } => {
                    push_thread(&mut threads, Thread { place, next: next.and(unions[set]) });
                }
                State::Look { set, at_end, then } => {
                    let end = if at_end { ClassSet::END } else { ClassSet::NONE };
                    stack.push((then, next.and(unions[set].or(end))));
                }
                State::Split(first, second) => {
                    stack.push((second, next));
                    stack.push((first, next));
                }
            }
        }
        threads
    }

    /// A possessive repetition matches what the greedy one does if what follows it cannot fail,
    /// or cannot begin with a character that was given back.
    fn check_possessive(
        &self,
        possessive: &Possessive,
        unions: &[ClassSet],
    ) -> Result<(), PreTokenizerError> {
        let follow = self.threads(possessive.then, unions);
        let mut matches = ClassSet::NONE;
        let mut begins = ClassSet::NONE;
        for thread in &follow {
            begins = begins.or(thread.next);
            if thread.place == PlaceId::MATCH {
                matches = matches.or(thread.next);
            }
        }
        let given_back = possessive.set.map(|set| unions[set]);
        let cannot_fail = matches == ClassSet::ALL;
        if cannot_fail || given_back.is_some_and(|set| set.and(begins).is_empty()) {
            return Ok(());
        }
        Err(PreTokenizerError::Possessive { offset: possessive.offset })
    }
}

/// Whether a tree may match the empty text, perhaps under conditions.
fn is_nullable(node: &Syntax) -> bool {
    match node {
        Syntax::Empty | Syntax::Look(_) => true,
        Syntax::Class(_) => false,
        Syntax::Concat(nodes) => nodes.iter().all(is_nullable),
        Syntax::Alternation(nodes) => nodes.iter().any(is_nullable),
        Syntax::Repeat { node, least, .. } => *least == 0 || is_nullable(node),
    }
}

/// Adds a thread behind those that are tried before it.
///
/// It keeps the classes at which it makes a difference. At the others, an earlier thread has
/// matched or is at the same place.
pub(super) fn push_thread(threads: &mut Vec<Thread>, mut thread: Thread) {
    for earlier in threads.iter() {
        if earlier.place == thread.place || earlier.place == PlaceId::MATCH {
            thread.next = thread.next.without(earlier.next);
        }
    }
    if !thread.next.is_empty() {
        threads.push(thread);
    }
}

/// Reads one character, or the end. Writes the continuing threads to `into`, and returns whether
/// the pattern had matched before it.
pub(super) fn step(
    program: &Program,
    threads: &[Thread],
    class: ClassId,
    into: &mut Vec<Thread>,
) -> bool {
    into.clear();
    for thread in threads.iter().filter(|thread| thread.next.contains(class)) {
        if thread.place == PlaceId::MATCH {
            return true;
        }
        for &follower in program.after(thread.place) {
            push_thread(into, follower);
        }
    }
    false
}
