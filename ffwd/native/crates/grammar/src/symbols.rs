//! A grammar as the automaton follows it: symbols without left recursion, and of each symbol only
//! the texts that are not empty, beside a flag for the empty one.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::graph::{Expanded, Graph, VertexId};
use super::left_corners::components;
use super::left_recursion::SymbolBuilder;
use super::table::Table;
use super::values::{Key, Values};
use super::NodeId;
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// An interned symbol of one [`Symbols`].
/// Its place among the symbols, those that are known from the start on first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

impl SymbolId {
    /// The empty text and nothing else.
    pub(crate) const EMPTY: Self = Self(0);
}

/// Texts that are not empty; whether the empty one belongs too is said by [`Symbols::is_nullable`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// Nothing but perhaps the empty text.
    Empty,
    /// The first, and then the second.
    Seq(SymbolId, SymbolId),
    /// Any of these.
    Choice(Arc<[SymbolId]>),
    /// Any number of times.
    Star(SymbolId),
    /// This many repetitions, at most `max` and at least `min`.
    Repeat {
        /// What is repeated.
        inner: SymbolId,
        /// How often at least.
        min: u32,
        /// How often at most; `None` is unbounded.
        max: Option<u32>,
    },
    /// A lexeme, a set of tokens, or a JSON value.
    Leaf(NodeId),
    /// A reported or limited node of the grammar, and its content.
    Marked(NodeId, SymbolId),
    /// The same texts without the empty one.
    NonEmpty(SymbolId),
    /// A part of the grammar that may contain itself: [`Symbols::meaning`] resolves it.
    Part(u32),
    /// A part of a rule with a parameter, with its value: see [`super::live::Live::later`].
    Later(u32),
}

impl Symbol {
    /// Returns the first symbols of a symbol, without cycles and without later parts.
    pub(super) fn corners(
        &self,
        is_nullable: impl Fn(SymbolId) -> bool,
    ) -> SmallVec<[SymbolId; 2]> {
        match self {
            Self::Empty | Self::Leaf(_) | Self::Part(_) | Self::Later(_) => SmallVec::new(),
            &Self::Seq(first, then) if is_nullable(first) => SmallVec::from_slice(&[first, then]),
            Self::Choice(parts) => SmallVec::from_slice(parts),
            &Self::Seq(inner, _)
            | &Self::Star(inner)
            | &Self::Repeat { inner, .. }
            | &Self::Marked(_, inner)
            | &Self::NonEmpty(inner) => SmallVec::from_slice(&[inner]),
        }
    }
}

/// The interned symbols of one grammar that are known before any text is read.
#[derive(Debug)]
pub struct Symbols {
    symbols: Vec<Symbol>,
    nullable: Vec<bool>,
    ids: FxHashMap<Symbol, SymbolId>,
    /// The symbols of the parts.
    pub(super) parts: Vec<SymbolId>,
    /// Each exceeds the ranks of all possible first symbols.
    ranks: Vec<u32>,
    /// Whether parts are reported or limited.
    has_marks: bool,
    /// The symbol of all texts of the grammar.
    pub start: SymbolId,
    /// The reported or limited parts that can start with themselves and with their context: they
    /// have no symbol.
    pub unmarked: Vec<NodeId>,
    /// The values of rules with a parameter that are added later.
    values: Option<Arc<Values>>,
    /// The parts with values that are there from the start on.
    pub(super) keys: Vec<Key>,
    of_parts: FxHashMap<NodeId, SymbolId>,
    /// The ranks of parts that depend on a parameter, for all of its values.
    later_ranks: FxHashMap<NodeId, u32>,
}

/// How many symbols a grammar may have.
const MAX_SYMBOLS: usize = 16_000_000;

impl Symbols {
    /// The symbol of an id that is less than [`Self::len`].
    #[inline]
    pub fn get(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.0 as usize]
    }

    /// Whether the empty text belongs to a symbol.
    #[inline]
    pub fn is_nullable(&self, id: SymbolId) -> bool {
        self.nullable[id.0 as usize]
    }

    /// What a [`Symbol::Part`] stands for.
    #[inline]
    pub fn meaning(&self, part: u32) -> SymbolId {
        self.parts[part as usize]
    }

    /// Returns a number that exceeds the rank of every possible first symbol.
    #[inline]
    pub fn rank(&self, id: SymbolId) -> u32 {
        self.ranks[id.0 as usize]
    }

    /// All symbols, each after its possible first symbols.
    pub fn by_rank(&self) -> Vec<SymbolId> {
        let mut symbols: Vec<SymbolId> = (0..self.symbols.len() as u32).map(SymbolId).collect();
        symbols.sort_unstable_by_key(|&id| self.rank(id));
        symbols
    }

    /// Finds what symbols can start with. Leaves and later parts are given; any other symbol has
    /// the union over its first symbols.
    ///
    /// `order` has some symbols and all that they can start with, by rank. The others have the
    /// default.
    pub fn beginnings<F: Clone + Default>(
        &self,
        order: &[SymbolId],
        of_leaf: impl Fn(&Symbol) -> F,
        join: impl Fn(&mut F, &F),
    ) -> Vec<F> {
        let mut found = vec![F::default(); self.symbols.len()];
        for &id in order {
            let symbol = self.get(id);
            let mut begins = match symbol {
                Symbol::Leaf(_) | Symbol::Later(_) => of_leaf(symbol),
                _ => F::default(),
            };
            let mut add = |first: SymbolId| join(&mut begins, &found[first.0 as usize]);
            match symbol {
                &Symbol::Part(part) => add(self.meaning(part)),
                _ => symbol.corners(|id| self.is_nullable(id)).into_iter().for_each(add),
            }
            found[id.0 as usize] = begins;
        }
        found
    }

    /// The least length of a text of a symbol that is not empty, from that of its parts and of leaves;
    /// `u32::MAX` if none is known.
    pub fn shortest(
        &self,
        id: SymbolId,
        of: impl Fn(SymbolId) -> u32,
        of_leaf: impl FnOnce(&Symbol) -> u32,
    ) -> u32 {
        let needed = |id: SymbolId| if self.is_nullable(id) { 0 } else { of(id) };
        match self.get(id) {
            Symbol::Empty => u32::MAX,
            &Symbol::Seq(first, then) => {
                let both = of(first).saturating_add(needed(then));
                both.min(needed(first).saturating_add(of(then)))
            }
            Symbol::Choice(parts) => parts.iter().map(|&part| of(part)).min().unwrap_or(u32::MAX),
            &Symbol::Star(inner) | &Symbol::Marked(_, inner) | &Symbol::NonEmpty(inner) => {
                of(inner)
            }
            &Symbol::Repeat { inner, min, .. } => {
                let more = needed(inner).saturating_mul(min.saturating_sub(1));
                of(inner).saturating_add(more)
            }
            &Symbol::Part(part) => of(self.meaning(part)),
            leaf @ (Symbol::Leaf(_) | Symbol::Later(_)) => of_leaf(leaf),
        }
    }

    /// Returns the first symbols of a rank's symbol, and after these the parts with a parameter,
    /// for all of its values.
    fn corners(&self, place: usize, later: &[NodeId]) -> SmallVec<[usize; 2]> {
        let of_part = |node: NodeId| match later.binary_search(&node) {
            Ok(number) => Some(self.symbols.len() + number),
            Err(_) => self.of_parts.get(&node).map(|id| id.0 as usize),
        };
        match self.symbols.get(place) {
            Some(&Symbol::Part(part)) => SmallVec::from_slice(&[self.meaning(part).0 as usize]),
            Some(&Symbol::Later(part)) => of_part(self.keys[part as usize].0).into_iter().collect(),
            Some(symbol) => {
                symbol.corners(|id| self.is_nullable(id)).iter().map(|id| id.0 as usize).collect()
            }
            None => {
                let node = later[place - self.symbols.len()];
                let corners = self.values.as_ref().map_or(&[][..], |values| values.corners(node));
                corners.iter().filter_map(|&corner| of_part(corner)).collect()
            }
        }
    }

    fn rank_all(&mut self) -> Result<(), LimitExceeded> {
        const UNSEEN: u32 = u32::MAX;
        let later = self.values.as_ref().map(|values| values.dependent()).unwrap_or_default();
        let mut ranks = vec![UNSEEN; self.symbols.len() + later.len()];
        let mut path: Vec<(usize, SmallVec<[usize; 2]>, u32)> = Vec::new();
        for root in 0..ranks.len() {
            if ranks[root] == UNSEEN {
                path.push((root, self.corners(root, &later), 0));
            }
            while let Some((id, corners, rank)) = path.last_mut() {
                meter::charge(1)?;
                match corners.pop() {
                    None => {
                        let (id, mut rank) = (*id, *rank);
                        if let (Some(&node), Some(values)) = (
                            id.checked_sub(self.symbols.len()).and_then(|n| later.get(n)),
                            &self.values,
                        ) {
                            // Room for the symbols of a part with a value.
                            rank += values.grammar().node(node).children().len() as u32 + 8;
                        }
                        ranks[id] = rank;
                        path.pop();
                        if let Some((_, _, outer)) = path.last_mut() {
                            *outer = (*outer).max(rank + 1);
                        }
                    }
                    Some(corner) => match ranks[corner] {
                        UNSEEN => path.push((corner, self.corners(corner, &later), 0)),
                        known => *rank = (*rank).max(known + 1),
                    },
                }
            }
        }
        let of_later = ranks.split_off(self.symbols.len());
        self.ranks = ranks;
        self.later_ranks = later.into_iter().zip(of_later).collect();
        Ok(())
    }

    /// A symbol, if it is known from the start on.
    #[inline]
    pub(super) fn known(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(id.0 as usize)
    }

    pub(super) fn find(&self, symbol: &Symbol) -> Option<SymbolId> {
        self.ids.get(symbol).copied()
    }

    /// The symbol of a part that depends on no parameter and that parts use which do.
    pub(super) fn of_part(&self, node: NodeId) -> Option<SymbolId> {
        self.of_parts.get(&node).copied()
    }

    /// The rank of a part, whatever its value.
    pub(super) fn rank_of_part(&self, node: NodeId) -> u32 {
        self.later_ranks.get(&node).map_or(0, |rank| rank + 1)
    }

    /// Returns the facts that need no values, and the initial parts, if parts with values are added
    /// later.
    pub(crate) fn values(&self) -> Option<(&Arc<Values>, &[Key])> {
        Some((self.values.as_ref()?, &self.keys))
    }

    /// Whether parts of rules with a parameter are added later, with the values that a text
    /// reaches.
    pub fn has_values(&self) -> bool {
        self.values.is_some()
    }

    pub(super) fn has_marks(&self) -> bool {
        self.has_marks
    }

    /// How many symbols there are.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Always false: the empty text has a symbol.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn of(graph: &Graph) -> Result<Self, LimitExceeded> {
        Self::with_values(graph, None, &[])
    }

    /// The symbols of a grammar's graph.
    ///
    /// # Errors
    /// There are too many, or left recursion through too many parts.
    pub fn of_expanded(expanded: &Expanded) -> Result<Self, LimitExceeded> {
        Self::with_values(&expanded.graph, expanded.values.as_ref(), &expanded.used)
    }

    /// `used`: the vertices of parts that rules use which come later.
    fn with_values(
        graph: &Graph,
        values: Option<&Arc<Values>>,
        used: &[(NodeId, VertexId)],
    ) -> Result<Self, LimitExceeded> {
        let mut symbols = Self {
            symbols: vec![Symbol::Empty],
            nullable: vec![true],
            ids: FxHashMap::default(),
            parts: Vec::new(),
            ranks: Vec::new(),
            has_marks: !graph.marked.is_empty(),
            start: SymbolId::EMPTY,
            unmarked: Vec::new(),
            values: values.cloned(),
            keys: Vec::new(),
            of_parts: FxHashMap::default(),
            later_ranks: FxHashMap::default(),
        };
        let component_of = components(graph);
        let mut building = SymbolBuilder::new(graph, &component_of, &mut symbols);
        let start = building.symbol(graph.start)?;
        for &(node, vertex) in used {
            let symbol = building.symbol(vertex)?;
            building.symbols.of_parts.insert(node, symbol);
        }
        building.finish()?;
        symbols.start = start;
        symbols.rank_all()?;
        Ok(symbols)
    }
}

impl Table for Symbols {
    fn get(&self, id: SymbolId) -> &Symbol {
        self.get(id)
    }

    fn is_nullable(&self, id: SymbolId) -> bool {
        self.is_nullable(id)
    }

    fn has_marks(&self) -> bool {
        self.has_marks
    }

    fn intern(&mut self, symbol: Symbol, nullable: bool) -> Result<SymbolId, LimitExceeded> {
        meter::charge(1)?;
        if self.symbols.len() >= MAX_SYMBOLS {
            return Err(LimitExceeded::new("grammar_symbols", MAX_SYMBOLS));
        }
        match self.ids.entry(symbol) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(entry) => {
                let id = SymbolId(self.symbols.len() as u32);
                self.symbols.push(entry.key().clone());
                self.nullable.push(nullable);
                entry.insert(id);
                Ok(id)
            }
        }
    }
}
