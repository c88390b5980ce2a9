//! A grammar as the automaton follows it: symbols without left recursion, and of each symbol only
//! the texts that are not empty, beside a flag for the empty one.
//!
//! # Left recursion
//!
//! Vertices that can begin with each other form a strongly connected set `S`. Within it each
//! production reads `k → seed`, which begins with something outside, or `k → j α` with `j` in `S`.
//! So a text of `i` is a seed of some `k`, and then the `α` on a way from `k` to `i` upwards:
//! the left-corner transform. It is done for each `i` that is needed; vertices with the same ways
//! are one, so that the ways of `E → E "+" T | T` are a plain repetition of `"+" T`.

use std::collections::hash_map::Entry;
use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::graph::{Graph, Vertex, VertexId};
use super::left_corners::components;
use super::values::{Key, Values};
use super::NodeId;
use crate::error::LimitExceeded;
use crate::meter;

/// An interned symbol of one [`Symbols`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

impl SymbolId {
    /// The empty text and nothing else.
    pub const EMPTY: Self = Self(0);
}

/// Texts that are not empty; whether the empty one belongs too is said by [`Symbols::is_nullable`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// Nothing but perhaps the empty text.
    Empty,
    /// The first, and then the second.
    Seq(SymbolId, SymbolId),
    Choice(Arc<[SymbolId]>),
    /// Any number of times.
    Star(SymbolId),
    /// So many times, at most `max` and at least `min`.
    Repeat {
        inner: SymbolId,
        min: u32,
        max: Option<u32>,
    },
    /// A lexeme, a set of tokens, or a JSON value.
    Leaf(NodeId),
    /// What the matcher reports or limits, a node of the grammar; and what is inside.
    Marked(NodeId, SymbolId),
    /// The same texts without the empty one.
    NonEmpty(SymbolId),
    /// A part of the grammar that may have itself as a part: what it stands for is found by
    /// [`Symbols::meaning`].
    Part(u32),
    /// A part of a rule with a parameter, with its value: see [`super::live::Live::later`].
    Later(u32),
}

impl Symbol {
    /// What a symbol can begin with; none of these leads back to it. Of what comes later not.
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

#[derive(Debug)]
pub struct Symbols {
    symbols: Vec<Symbol>,
    nullable: Vec<bool>,
    ids: FxHashMap<Symbol, SymbolId>,
    /// What a part stands for.
    parts: Vec<SymbolId>,
    /// Larger than that of any symbol that a symbol can begin with.
    ranks: Vec<u32>,
    /// Whether parts are reported or limited.
    has_marks: bool,
    pub start: SymbolId,
    /// The parts that are to be reported or limited, begin with themselves, and can begin with what
    /// is around them: they have no symbol.
    pub unmarked: Vec<NodeId>,
    /// Where rules with a parameter come later.
    values: Option<Arc<Values>>,
    /// The parts with values that are there from the start on.
    keys: Vec<Key>,
    of_parts: FxHashMap<NodeId, SymbolId>,
    /// Of parts that depend on a parameter, whatever it is.
    later_ranks: FxHashMap<NodeId, u32>,
}

/// Where symbols are made.
pub(super) trait Table {
    fn get(&self, id: SymbolId) -> &Symbol;

    fn is_nullable(&self, id: SymbolId) -> bool;

    fn intern(&mut self, symbol: Symbol, nullable: bool) -> Result<SymbolId, LimitExceeded>;

    fn seq(&mut self, first: SymbolId, then: SymbolId) -> Result<SymbolId, LimitExceeded> {
        if first == SymbolId::EMPTY {
            return Ok(then);
        }
        if then == SymbolId::EMPTY {
            return Ok(first);
        }
        let nullable = self.is_nullable(first) && self.is_nullable(then);
        self.intern(Symbol::Seq(first, then), nullable)
    }

    /// Any of the parts, and the empty text if `nullable`.
    fn choice(&mut self, parts: Vec<SymbolId>, nullable: bool) -> Result<SymbolId, LimitExceeded> {
        let mut seen = FxHashSet::default();
        let parts: Vec<SymbolId> = parts.into_iter().filter(|&part| seen.insert(part)).collect();
        let alone = match parts[..] {
            [one] => self.is_nullable(one) || !nullable,
            _ => false,
        };
        if alone {
            return Ok(parts[0]);
        }
        let nullable = nullable || parts.iter().any(|&part| self.is_nullable(part));
        if !nullable {
            return self.intern(Symbol::Choice(parts.into()), false);
        }
        // The empty text is a part like any other, so that equal choices are one.
        let mut parts = parts;
        if !parts.contains(&SymbolId::EMPTY) && !parts.iter().any(|&part| self.is_nullable(part)) {
            parts.push(SymbolId::EMPTY);
        }
        if parts == [SymbolId::EMPTY] {
            return Ok(SymbolId::EMPTY);
        }
        self.intern(Symbol::Choice(parts.into()), true)
    }

    /// Whether parts are reported or limited: then a part that is left empty may be reported, too.
    fn has_marks(&self) -> bool;

    /// Any number of times. Repeats within repeats are taken apart, for `(a* | b)*` is `(a | b)*`: on
    /// stacks there would be any number of them above each other.
    fn star(&mut self, inner: SymbolId) -> Result<SymbolId, LimitExceeded> {
        let mut parts: BTreeSet<SymbolId> = BTreeSet::new();
        self.add_repeated(inner, &mut parts)?;
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for part in parts.iter().copied().collect::<Vec<_>>() {
                let bare = self.without_repeats_at_ends(part, &parts)?;
                if bare != part {
                    changed = true;
                    parts.remove(&part);
                    self.add_repeated(bare, &mut parts)?;
                }
            }
        }
        let parts: Vec<SymbolId> = parts.into_iter().collect();
        if parts.is_empty() {
            return Ok(SymbolId::EMPTY);
        }
        let kept = self.not_repeated(&parts);
        let inner = self.choice(kept, false)?;
        self.intern(Symbol::Star(inner), true)
    }

    /// Adds parts with which `(part | …)*` is `(inner | …)*`: none of them is a repeat, a choice or empty.
    fn add_repeated(
        &mut self,
        inner: SymbolId,
        parts: &mut BTreeSet<SymbolId>,
    ) -> Result<(), LimitExceeded> {
        let mut pending = vec![inner];
        while let Some(part) = pending.pop() {
            meter::charge(1)?;
            match self.get(part) {
                Symbol::Empty => {}
                &Symbol::Star(inner)
                | &Symbol::NonEmpty(inner)
                | &Symbol::Repeat { inner, min: 0 | 1, .. } => pending.push(inner),
                Symbol::Choice(parts) => pending.extend_from_slice(parts),
                // Where both may be left out, either is a part.
                &Symbol::Seq(first, then)
                    if !self.has_marks() && self.is_nullable(first) && self.is_nullable(then) =>
                {
                    pending.extend([first, then]);
                }
                _ => {
                    parts.insert(part);
                }
            }
        }
        Ok(())
    }

    /// A part of a repeated choice without what it begins or ends with, if that is a repeat of what are
    /// parts of the choice already, or of the rest: `(a b* | b)*` is `(a | b)*`, and `(a a*)*` is `a*`.
    fn without_repeats_at_ends(
        &mut self,
        part: SymbolId,
        parts: &BTreeSet<SymbolId>,
    ) -> Result<SymbolId, LimitExceeded> {
        let mut sequence: Vec<SymbolId> = Vec::new();
        let mut rest = part;
        while let &Symbol::Seq(first, then) = self.get(rest) {
            meter::charge(1)?;
            sequence.push(first);
            rest = then;
        }
        sequence.push(rest);
        let mut sequence = &sequence[..];
        while let [others @ .., last] = sequence {
            if others.is_empty() || !self.is_repeat_of(*last, others, parts)? {
                break;
            }
            sequence = others;
        }
        while let [first, others @ ..] = sequence {
            if others.is_empty() || !self.is_repeat_of(*first, others, parts)? {
                break;
            }
            sequence = others;
        }
        let mut bare = SymbolId::EMPTY;
        for &symbol in sequence.iter().rev() {
            bare = self.seq(symbol, bare)?;
        }
        Ok(bare)
    }

    /// Whether a symbol is any number of some parts of a repeated choice, or of a sequence of symbols.
    fn is_repeat_of(
        &mut self,
        symbol: SymbolId,
        others: &[SymbolId],
        parts: &BTreeSet<SymbolId>,
    ) -> Result<bool, LimitExceeded> {
        let &Symbol::Star(inner) = self.get(symbol) else { return Ok(false) };
        let mut repeated = BTreeSet::new();
        self.add_repeated(inner, &mut repeated)?;
        let is_known = |one: &SymbolId| parts.contains(one) || others == [*one];
        Ok(repeated.iter().all(is_known))
    }

    /// The parts of a repeated choice without those that are several others, one after the other.
    fn not_repeated(&self, parts: &[SymbolId]) -> Vec<SymbolId> {
        let bare = |id: SymbolId| match self.get(id) {
            &Symbol::NonEmpty(inner) => inner,
            _ => id,
        };
        let bare_parts: FxHashSet<SymbolId> = parts.iter().map(|&part| bare(part)).collect();
        let mut kept = Vec::with_capacity(parts.len());
        for &part in parts {
            let mut rest = bare(part);
            let mut repeats = false;
            while let &Symbol::Seq(first, then) = self.get(rest) {
                repeats = bare_parts.contains(&bare(first));
                rest = bare(then);
                if !repeats {
                    break;
                }
            }
            if !(repeats && bare_parts.contains(&rest)) {
                kept.push(part);
            }
        }
        kept
    }

    fn repeat(
        &mut self,
        inner: SymbolId,
        min: u32,
        max: Option<u32>,
    ) -> Result<SymbolId, LimitExceeded> {
        // Of what may be empty any smaller number of times is enough.
        let min = if self.is_nullable(inner) { 0 } else { min };
        if max != Some(0) && matches!(self.get(inner), Symbol::Star(_)) {
            return Ok(inner);
        }
        match (min, max) {
            (_, Some(0)) => Ok(SymbolId::EMPTY),
            (0, None) => self.star(inner),
            (1, Some(1)) => Ok(inner),
            (0, Some(1)) => self.choice(vec![inner], true),
            (1, None) => {
                let star = self.star(inner)?;
                self.seq(inner, star)
            }
            _ => self.intern(Symbol::Repeat { inner, min, max }, min == 0),
        }
    }

    fn non_empty(&mut self, inner: SymbolId) -> Result<SymbolId, LimitExceeded> {
        if self.is_nullable(inner) {
            self.intern(Symbol::NonEmpty(inner), false)
        } else {
            Ok(inner)
        }
    }
}

/// How many symbols a grammar may have.
const MAX_SYMBOLS: usize = 16_000_000;
/// How many steps all left recursion together may take.
const MAX_STEPS: usize = 16_000_000;

impl Symbols {
    #[inline]
    pub fn get(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.0 as usize]
    }

    /// Whether the empty text belongs to a symbol.
    #[inline]
    pub fn is_nullable(&self, id: SymbolId) -> bool {
        self.nullable[id.0 as usize]
    }

    #[inline]
    pub fn meaning(&self, part: u32) -> SymbolId {
        self.parts[part as usize]
    }

    /// A number that is larger than that of any symbol that this one can begin with.
    #[inline]
    pub fn rank(&self, id: SymbolId) -> u32 {
        self.ranks[id.0 as usize]
    }

    /// What a place of the ranks can begin with: symbols, and behind these parts with a parameter
    /// whatever their values are.
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
                            // Room for the symbols that a part with a value is made of.
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

    /// Where parts with values come later: what is known without the values, and the parts that are
    /// there from the start on.
    pub fn values(&self) -> Option<(&Arc<Values>, &[Key])> {
        Some((self.values.as_ref()?, &self.keys))
    }

    pub(super) fn has_marks(&self) -> bool {
        self.has_marks
    }

    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// About how many bytes of memory it holds.
    pub fn memory_bytes(&self) -> usize {
        let shared = |symbol: &Symbol| match symbol {
            Symbol::Choice(parts) => parts.len() * 4 + 16,
            _ => 0,
        };
        let each = 3 * std::mem::size_of::<Symbol>() + 16;
        self.symbols.len() * each
            + self.symbols.iter().map(shared).sum::<usize>()
            + self.parts.len() * 4
    }

    /// The symbols of a grammar's graph.
    ///
    /// # Errors
    /// There are too many, or left recursion through too many parts.
    pub fn of(graph: &Graph) -> Result<Self, LimitExceeded> {
        Self::with_values(graph, None, &[])
    }

    /// As [`Self::of`], where rules with a parameter come later. `used`: the vertices of parts that
    /// those rules use.
    ///
    /// # Errors
    /// As there.
    pub fn with_values(
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
        let mut building = Building {
            graph,
            component_of: &component_of,
            symbols: &mut symbols,
            known: FxHashMap::default(),
            pending: Vec::new(),
            steps: 0,
        };
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
            return Err(LimitExceeded::new("symbols of one grammar", MAX_SYMBOLS));
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

/// The nodes that mark a part which can begin with itself. Where left recursion is removed, such a part
/// has no beginning of its own.
pub fn recursive_marks(graph: &Graph) -> Vec<NodeId> {
    let component_of = components(graph);
    let vertices = graph.vertices.iter().zip(component_of);
    let marks = vertices.filter_map(|(vertex, component)| match (vertex, component) {
        (&Vertex::Marked(node, _), Some(_)) => Some(node),
        _ => None,
    });
    marks.collect()
}

/// A place of a left recursion: what leads on, and where to.
type Way = (SymbolId, VertexId);
/// What a text of a vertex is a text of too, and the ways on from all of these.
type Climb = (Vec<VertexId>, Vec<Way>);

struct Building<'g> {
    graph: &'g Graph,
    component_of: &'g [Option<u32>],
    symbols: &'g mut Symbols,
    /// The parts of vertices, and of left-recursive ones.
    known: FxHashMap<VertexId, SymbolId>,
    /// Parts without a meaning.
    pending: Vec<(u32, VertexId)>,
    steps: usize,
}

impl Building<'_> {
    /// The symbol of a vertex: a leaf, or a part whose meaning is found later.
    fn symbol(&mut self, vertex: VertexId) -> Result<SymbolId, LimitExceeded> {
        let mut vertex = vertex;
        // Rules that stand for others only; a circle of them is left-recursive.
        while self.component_of[vertex.index()].is_none() {
            let Vertex::Same(inner) = self.graph.vertices[vertex.index()] else { break };
            vertex = inner;
        }
        if let Some(&known) = self.known.get(&vertex) {
            return Ok(known);
        }
        let nullable = self.graph.nullable[vertex.index()];
        let symbol = if !self.graph.nonempty[vertex.index()] {
            if nullable {
                SymbolId::EMPTY
            } else {
                self.symbols.intern(Symbol::Choice([].into()), false)?
            }
        } else if let Vertex::Later(key) = self.graph.vertices[vertex.index()] {
            let part = self.symbols.keys.len() as u32;
            self.symbols.keys.push(key);
            self.symbols.intern(Symbol::Later(part), nullable)?
        } else if let Vertex::Leaf(node) = self.graph.vertices[vertex.index()] {
            let leaf = self.symbols.intern(Symbol::Leaf(node), false)?;
            self.symbols.choice(vec![leaf], nullable)?
        } else {
            let part = self.symbols.parts.len() as u32;
            self.symbols.parts.push(SymbolId::EMPTY);
            self.pending.push((part, vertex));
            self.symbols.intern(Symbol::Part(part), nullable)?
        };
        self.known.insert(vertex, symbol);
        Ok(symbol)
    }

    fn finish(&mut self) -> Result<(), LimitExceeded> {
        while let Some((part, vertex)) = self.pending.pop() {
            let meaning = match self.component_of[vertex.index()] {
                None => self.plain(vertex)?,
                Some(component) => self.recursive(vertex, component)?,
            };
            self.symbols.parts[part as usize] = meaning;
        }
        Ok(())
    }

    /// What a vertex stands for that never begins with itself.
    fn plain(&mut self, vertex: VertexId) -> Result<SymbolId, LimitExceeded> {
        let graph = self.graph;
        match &graph.vertices[vertex.index()] {
            Vertex::Seq(parts) => self.sequence(parts),
            Vertex::Choice(parts) => {
                let mut symbols = Vec::with_capacity(parts.len());
                for &part in parts.iter().filter(|part| graph.productive[part.index()]) {
                    symbols.push(self.symbol(part)?);
                }
                self.symbols.choice(symbols, false)
            }
            &Vertex::Repeat { inner, min, max } => {
                let inner = self.symbol(inner)?;
                self.symbols.repeat(inner, min, max)
            }
            &Vertex::Same(inner) => self.symbol(inner),
            &Vertex::Marked(node, inner) => {
                let inner = self.symbol(inner)?;
                let nullable = self.symbols.is_nullable(inner);
                self.symbols.intern(Symbol::Marked(node, inner), nullable)
            }
            Vertex::Leaf(_) | Vertex::Later(_) => self.symbol(vertex),
            Vertex::Never => self.symbols.choice(Vec::new(), false),
        }
    }

    fn sequence(&mut self, parts: &[VertexId]) -> Result<SymbolId, LimitExceeded> {
        let mut sequence = SymbolId::EMPTY;
        for &part in parts.iter().rev() {
            let first = self.symbol(part)?;
            sequence = self.symbols.seq(first, sequence)?;
        }
        Ok(sequence)
    }

    fn step(&mut self) -> Result<(), LimitExceeded> {
        meter::charge(1)?;
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(LimitExceeded::new("steps to remove left recursion", MAX_STEPS));
        }
        Ok(())
    }

    /// The productions of a vertex without the empty text: what they begin with, and what follows.
    fn productions(
        &mut self,
        vertex: VertexId,
    ) -> Result<Vec<(VertexId, SymbolId)>, LimitExceeded> {
        let graph = self.graph;
        let mut found = Vec::new();
        match &graph.vertices[vertex.index()] {
            Vertex::Seq(parts) => {
                for (place, &part) in parts.iter().enumerate() {
                    self.step()?;
                    if graph.nonempty[part.index()] {
                        let rest = self.sequence(&parts[place + 1..])?;
                        found.push((part, rest));
                    }
                    if !graph.nullable[part.index()] {
                        break;
                    }
                }
            }
            Vertex::Choice(parts) => {
                found.extend(parts.iter().map(|&part| (part, SymbolId::EMPTY)));
            }
            &Vertex::Repeat { inner, min, max } => {
                let symbol = self.symbol(inner)?;
                let max = max.map(|max| max.saturating_sub(1));
                let rest = self.symbols.repeat(symbol, min.saturating_sub(1), max)?;
                found.push((inner, rest));
            }
            &Vertex::Same(inner) | &Vertex::Marked(_, inner) => {
                found.push((inner, SymbolId::EMPTY));
            }
            Vertex::Leaf(_) | Vertex::Never | Vertex::Later(_) => {}
        }
        found.retain(|(first, _)| graph.nonempty[first.index()]);
        Ok(found)
    }

    /// What a vertex stands for that may begin with itself.
    fn recursive(&mut self, target: VertexId, component: u32) -> Result<SymbolId, LimitExceeded> {
        // From the target down: all of the set that it can begin with.
        let mut members = vec![target];
        let mut seen: FxHashSet<VertexId> = members.iter().copied().collect();
        // Where a vertex that has been read leads, without and with something after it.
        let mut up: FxHashMap<VertexId, Vec<VertexId>> = FxHashMap::default();
        let mut ways: FxHashMap<VertexId, Vec<Way>> = FxHashMap::default();
        let mut seeds: Vec<(SymbolId, VertexId)> = Vec::new();
        let mut next = 0;
        while let Some(&member) = members.get(next) {
            next += 1;
            for (first, rest) in self.productions(member)? {
                self.step()?;
                if self.component_of[first.index()] == Some(component) {
                    if seen.insert(first) {
                        members.push(first);
                    }
                    if self.symbols.is_nullable(rest) {
                        up.entry(first).or_default().push(member);
                    }
                    if rest != SymbolId::EMPTY {
                        let rest = self.symbols.non_empty(rest)?;
                        ways.entry(first).or_default().push((rest, member));
                    }
                } else {
                    let symbol = self.symbol(first)?;
                    let symbol = self.symbols.non_empty(symbol)?;
                    let seed = self.symbols.seq(symbol, rest)?;
                    seeds.push((seed, member));
                }
            }
        }
        for member in &members {
            if let Vertex::Marked(node, _) = self.graph.vertices[member.index()] {
                self.symbols.unmarked.push(node);
            }
        }
        let states = self.closed(&members, &up, &ways)?;
        let place: FxHashMap<VertexId, usize> =
            members.iter().enumerate().map(|(place, &member)| (member, place)).collect();
        let classes = self.classes(&states, &place, target)?;
        let symbols = self.symbols_of(&states, &place, &classes, target)?;
        let mut parts = Vec::with_capacity(seeds.len());
        for (seed, from) in seeds {
            let after = symbols[classes[place[&from]]];
            parts.push(self.symbols.seq(seed, after)?);
        }
        self.symbols.choice(parts, self.graph.nullable[target.index()])
    }

    /// For each member what it is a text of too, and the ways on from all of these.
    fn closed(
        &mut self,
        members: &[VertexId],
        up: &FxHashMap<VertexId, Vec<VertexId>>,
        ways: &FxHashMap<VertexId, Vec<Way>>,
    ) -> Result<Vec<Climb>, LimitExceeded> {
        let mut states = Vec::with_capacity(members.len());
        for &member in members {
            let mut all = vec![member];
            let mut seen: FxHashSet<VertexId> = all.iter().copied().collect();
            let mut on: Vec<Way> = Vec::new();
            let mut next = 0;
            while let Some(&one) = all.get(next) {
                next += 1;
                for &outer in up.get(&one).into_iter().flatten() {
                    self.step()?;
                    if seen.insert(outer) {
                        all.push(outer);
                    }
                }
                for &way in ways.get(&one).into_iter().flatten() {
                    self.step()?;
                    on.push(way);
                }
            }
            states.push((all, on));
        }
        Ok(states)
    }

    /// Members with the same ways to the target are of one class.
    fn classes(
        &mut self,
        states: &[Climb],
        place: &FxHashMap<VertexId, usize>,
        target: VertexId,
    ) -> Result<Vec<usize>, LimitExceeded> {
        let mut classes: Vec<usize> =
            states.iter().map(|(all, _)| usize::from(all.contains(&target))).collect();
        let mut count = 0;
        loop {
            let mut ids: FxHashMap<(usize, Vec<(SymbolId, usize)>), usize> = FxHashMap::default();
            let mut next = Vec::with_capacity(classes.len());
            for (state, (_, ways)) in states.iter().enumerate() {
                let mut on = Vec::with_capacity(ways.len());
                for (way, to) in ways {
                    self.step()?;
                    on.push((*way, classes[place[to]]));
                }
                on.sort_unstable();
                on.dedup();
                let fresh = ids.len();
                next.push(*ids.entry((classes[state], on)).or_insert(fresh));
            }
            let found = ids.len();
            classes = next;
            if found == count {
                return Ok(classes);
            }
            count = found;
        }
    }

    /// What may follow up to the target, by class.
    fn symbols_of(
        &mut self,
        states: &[Climb],
        place: &FxHashMap<VertexId, usize>,
        classes: &[usize],
        target: VertexId,
    ) -> Result<Vec<SymbolId>, LimitExceeded> {
        let count = classes.iter().max().map_or(0, |max| max + 1);
        let mut member_of = vec![0; count];
        for (member, &class) in classes.iter().enumerate() {
            member_of[class] = member;
        }
        // Every class leads to the target: all members were found below it.
        let mut symbols = Vec::with_capacity(count);
        let mut parts = Vec::with_capacity(count);
        for &member in &member_of {
            let (all, ways) = &states[member];
            let accepts = all.contains(&target);
            let itself = |to: &VertexId| classes[place[to]] == classes[member];
            if accepts && ways.iter().all(|(_, to)| itself(to)) {
                let ways = ways.iter().map(|&(way, _)| way).collect();
                let one = self.symbols.choice(ways, false)?;
                let star = match self.symbols.get(one) {
                    Symbol::Choice(none) if none.is_empty() => SymbolId::EMPTY,
                    _ => self.symbols.star(one)?,
                };
                symbols.push(star);
                parts.push(None);
            } else {
                let part = self.symbols.parts.len() as u32;
                self.symbols.parts.push(SymbolId::EMPTY);
                symbols.push(self.symbols.intern(Symbol::Part(part), accepts)?);
                parts.push(Some(part));
            }
        }
        for (class, part) in parts.into_iter().enumerate() {
            let Some(part) = part else { continue };
            let (all, ways) = &states[member_of[class]];
            let mut on = Vec::with_capacity(ways.len());
            for (way, to) in ways {
                on.push(self.symbols.seq(*way, symbols[classes[place[to]]])?);
            }
            let meaning = self.symbols.choice(on, all.contains(&target))?;
            self.symbols.parts[part as usize] = meaning;
        }
        Ok(symbols)
    }
}
