//! Lexemes as graphs of their states, and which of the states are known to be dead ends.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::stacks::ids::{LexemeId, StackId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::expr::{ByteSet, LexState, Lexeme, Verdict};

/// How many states of a lexeme are looked at.
pub(crate) const MAX_STATES: usize = 4_096;

/// A state of a lexeme, and the stack of what follows it.
pub(crate) type RowPlace = (LexemeId, StackId, LexState);

/// The known fate of a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// No text completes it.
    pub(crate) dead: bool,
    /// This state, or some later state of the lexeme, is a dead end.
    pub(crate) may_die: bool,
}

/// By lexeme and state; `None` where there are too many states.
pub(crate) type Shapes = FxHashMap<(LexemeId, LexState), Option<Arc<Shape>>>;

/// The results for one grammar.
#[derive(Debug, Default)]
pub(crate) struct DeadEnds {
    pub(crate) shapes: Mutex<Shapes>,
    pub(crate) known: Mutex<FxHashMap<RowPlace, Fate>>,
    /// Of what ends on a stack and consumes nothing of it.
    pub(crate) before: Mutex<FxHashMap<StackId, Fate>>,
}

/// The states of a lexeme from one on, and how it ends.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) states: Vec<LexState>,
    pub(crate) places: FxHashMap<LexState, usize>,
    /// The states before each.
    pub(crate) before: Vec<Vec<usize>>,
    /// The states by verdict and by the bytes that continue the lexeme all the same.
    pub(crate) endings: FxHashMap<(Verdict, ByteSet), Vec<usize>>,
}

impl Shape {
    /// `None` if it has too many states.
    pub(crate) fn of(lexeme: &Lexeme, start: LexState) -> Result<Option<Self>, LimitExceeded> {
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
    pub(crate) fn fates(&self, alive: &[bool]) -> Vec<Fate> {
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
