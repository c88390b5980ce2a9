//! The search for a text after which something is off a stack.
//!
//! It is best first. If estimates are much too small, all short beginnings look better than any long
//! one, and these multiply with each choice. After a number of stacks the search therefore tries
//! *layers*: texts of as many lexemes are compared with each other only, and the best few of each
//! layer are followed. As every stack of an automaton has a completion, mostly some of these end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::completion::search::{in_order, Completing};
use crate::error::Result;
use crate::json::relaid::is_relaid;
use crate::run::completions::{Between, Edge};
use crate::stacks::cells::Cell;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::ThreadLexeme;
use ffwd_bounds::meter;

/// How many stacks one search may look at.
pub const MAX_COMPLETION_STEPS: usize = 20_000;
/// How many of these it looks at before it tries layers, and how many in these.
const MAX_BEST_FIRST: usize = 4_000;
const MAX_IN_LAYERS: usize = 10_000;
/// How many stacks of a layer are followed.
const LAYER: usize = 8;
/// Above this many required items or repeats, the search takes one after the other.
const MANY: u64 = 64;

/// A stack that the search has come to.
struct Visit {
    at: Between,
    length: u32,
    from: usize,
    text: Arc<[u8]>,
    /// Whether the text is a key without a name.
    is_key: bool,
    tokens: SmallVec<[(usize, u32); 1]>,
}

pub(crate) struct Frontier<'a> {
    completing: Completing<'a>,
    visits: Vec<Visit>,
    /// For each stack, the visit with the shortest text.
    shortest: FxHashMap<Between, usize>,
    /// How many items or repeats the first stack needs, if these are very many.
    left: Option<u64>,
}

impl<'a> Frontier<'a> {
    pub(crate) fn new(completing: Completing<'a>, start: Between) -> Self {
        let (text, tokens) = (Arc::from([]), SmallVec::new());
        let visits = vec![Visit { at: start, length: 0, from: 0, text, tokens, is_key: false }];
        let shortest = FxHashMap::from_iter([(start, 0)]);
        // If very much is required, take one step of it.
        let left = completing.left_of(start.0).filter(|&left| left > MANY);
        Self { completing, visits, shortest, left }
    }

    /// A text after which something is off the first stack, and what follows.
    pub(crate) fn search(mut self) -> Result<Option<Edge>> {
        // Ordered by the estimated length of the whole, then by the rest, then the newest first.
        let mut queue = BinaryHeap::from([Reverse((0u64, 0u64, Reverse(0usize)))]);
        let mut tried_layers = false;
        while let Some(Reverse((_, _, Reverse(current)))) = queue.pop() {
            meter::charge(4)?;
            if !self.is_shortest(current) {
                continue;
            }
            if self.is_end(current)? {
                return Ok(Some(self.edge_of(current)));
            }
            if self.visits.len() > MAX_COMPLETION_STEPS {
                return Ok(None);
            }
            if self.visits.len() > MAX_BEST_FIRST && !std::mem::replace(&mut tried_layers, true) {
                let layers = Self::new(self.completing, self.visits[0].at);
                if let Some(edge) = layers.search_in_layers()? {
                    return Ok(Some(edge));
                }
            }
            for (visit, left) in self.follow(current)? {
                let length = u64::from(self.visits[visit].length);
                // If estimates are too small, prefer depth to breadth.
                queue.push(Reverse((length + left + left / 4, left, Reverse(visit))));
            }
        }
        Ok(None)
    }

    fn search_in_layers(mut self) -> Result<Option<Edge>> {
        let mut layer = vec![0];
        let mut best: Option<usize> = None;
        while !layer.is_empty() && self.visits.len() <= MAX_IN_LAYERS {
            let mut next: Vec<(u64, u64, usize)> = Vec::new();
            for current in layer.drain(..) {
                meter::charge(4)?;
                if !self.is_shortest(current) {
                    continue;
                }
                if self.is_end(current)? {
                    let length = self.visits[current].length;
                    if best.is_none_or(|best| length < self.visits[best].length) {
                        best = Some(current);
                    }
                    continue;
                }
                for (visit, left) in self.follow(current)? {
                    next.push((u64::from(self.visits[visit].length) + left, left, visit));
                }
            }
            if let Some(best) = best {
                let length = u64::from(self.visits[best].length);
                next.retain(|&(whole, ..)| whole < length);
            }
            next.sort_unstable();
            layer.extend(next.into_iter().take(LAYER).map(|(_, _, visit)| visit));
        }
        Ok(best.map(|best| self.edge_of(best)))
    }

    fn is_shortest(&self, visit: usize) -> bool {
        self.shortest.get(&self.visits[visit].at) == Some(&visit)
    }

    /// Whether something is off the first stack, or one of very many parts has ended.
    fn is_end(&self, visit: usize) -> Result<bool> {
        let automaton = self.completing.automaton;
        let &Cell { height, parent, .. } = automaton.cell(self.visits[0].at.0);
        let at = self.visits[visit].at;
        if automaton.cell(at.0).height < height {
            return Ok(true);
        }
        let now = self.completing.left_of(at.0);
        // One less, or down to the number above which steps are single.
        let is_nearer = match (self.left, now) {
            (Some(left), Some(now)) => now < left,
            (None, Some(now)) => now > MANY,
            (_, None) => false,
        };
        let is_step = visit != 0 && at.2.is_none() && is_nearer;
        Ok(is_step && is_relaid(automaton, parent, automaton.cell(at.0).parent)?)
    }

    /// Adds the stacks after a visit that have no shorter text, each with its estimated rest.
    fn follow(&mut self, from: usize) -> Result<Vec<(usize, u64)>> {
        let automaton = self.completing.automaton;
        let Visit { at, length, .. } = self.visits[from];
        let mut edges: Vec<Edge> = Vec::new();
        for thread in &automaton.following(at.0, at.1)? {
            if thread.lexeme == ThreadLexeme::End {
                // The rest of the stack may be empty.
                edges.push(Edge::of(Arc::from([]), (StackId::END, TextId::NONE, None)));
            } else {
                self.completing.edges(thread, &mut edges)?;
            }
        }
        if let Some((lexeme, state)) = at.2 {
            let lexeme = automaton.lexeme(lexeme);
            let mut failed = Ok(());
            edges.retain(|edge| match edge.text.first().map(|&byte| lexeme.next(state, byte)) {
                Some(Ok(next)) => next.is_none(),
                Some(Err(error)) => {
                    failed = Err(error);
                    false
                }
                None => true,
            });
            failed?;
        }
        let mut added = Vec::with_capacity(edges.len());
        for edge in in_order(edges) {
            let is_key = edge.distinct.is_some();
            let length = length.saturating_add(edge.length());
            let Edge { text, tokens, to, .. } = edge;
            let better = |&at: &usize| self.visits[at].length <= length;
            if self.shortest.get(&to).is_some_and(better) {
                continue;
            }
            let left = u64::from(self.completing.estimate(to.0)?);
            self.shortest.insert(to, self.visits.len());
            added.push((self.visits.len(), left));
            self.visits.push(Visit { at: to, length, from, text, tokens, is_key });
        }
        Ok(added)
    }

    /// The way to a visit, from the first one.
    fn edge_of(&self, last: usize) -> Edge {
        let automaton = self.completing.automaton;
        let mut way = Vec::new();
        let mut visit = last;
        while visit != 0 {
            way.push(visit);
            visit = self.visits[visit].from;
        }
        way.reverse();
        let &Cell { height, frame, .. } = automaton.cell(self.visits[0].at.0);
        let is_array = matches!(frame, Frame::ArrayOpen(_) | Frame::ArrayAfter(_));
        let mut distinct: Vec<Arc<[u8]>> = Vec::new();
        let mut item: Vec<u8> = Vec::new();
        for &visit in &way {
            let Visit { from, text, is_key, .. } = &self.visits[visit];
            let level = automaton.cell(self.visits[*from].at.0).height;
            if *is_key && level == height {
                distinct.push(text.clone());
            }
            if is_array && level > height {
                item.extend_from_slice(text);
            } else if !item.is_empty() {
                distinct.push(std::mem::take(&mut item).into());
            }
        }
        if !item.is_empty() {
            distinct.push(item.into());
        }
        let mut text = Vec::new();
        let mut tokens = SmallVec::new();
        for visit in way.into_iter().map(|visit| &self.visits[visit]) {
            let before = text.len();
            tokens.extend(visit.tokens.iter().map(|&(place, token)| (before + place, token)));
            text.extend_from_slice(&visit.text);
        }
        let distinct = (!distinct.is_empty()).then(|| distinct.into());
        Edge { text: text.into(), tokens, to: self.visits[last].at, distinct }
    }
}
