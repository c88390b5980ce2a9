//! Symbols of the parts of a grammar, without left recursion.
//!
//! Vertices that can begin with each other form a strongly connected set `S`. Within it each
//! production reads `k → seed`, which starts outside of `S`, or `k → j α` with `j` in `S`. So a
//! text of `i` is a seed of some `k`, followed by the `α`s on a path from `k` up to `i`: the
//! left-corner transform. It is done for each `i` that is needed. Vertices with the same paths are
//! merged, so the paths of `E → E "+" T | T` are a plain repetition of `"+" T`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{Graph, Vertex, VertexId};
use super::left_corners::components;
use super::symbols::{Symbol, SymbolId, Symbols};
use super::table::Table;
use super::NodeId;
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// How many steps all left recursion together may take.
const MAX_STEPS: usize = 16_000_000;

/// Returns the nodes that mark a part which can start with itself. After left recursion is removed,
/// such a part has no start of its own.
pub fn recursive_marks(graph: &Graph) -> Vec<NodeId> {
    let component_of = components(graph);
    let vertices = graph.vertices.iter().zip(component_of);
    let marks = vertices.filter_map(|(vertex, component)| match (vertex, component) {
        (&Vertex::Marked(node, _), Some(_)) => Some(node),
        _ => None,
    });
    marks.collect()
}

/// A left-recursive use: what follows it, and the vertex that it leads to.
type Way = (SymbolId, VertexId);
/// The vertices whose texts include those of a vertex, and the transitions from these.
type Climb = (Vec<VertexId>, Vec<Way>);

pub(super) struct SymbolBuilder<'g> {
    graph: &'g Graph,
    component_of: &'g [Option<u32>],
    pub symbols: &'g mut Symbols,
    /// The parts of vertices, and of left-recursive ones.
    known: FxHashMap<VertexId, SymbolId>,
    /// Parts whose meaning is not found yet.
    pending: Vec<(u32, VertexId)>,
    steps: usize,
}

impl<'g> SymbolBuilder<'g> {
    pub fn new(
        graph: &'g Graph,
        component_of: &'g [Option<u32>],
        symbols: &'g mut Symbols,
    ) -> Self {
        let (known, pending) = (FxHashMap::default(), Vec::new());
        Self { graph, component_of, symbols, known, pending, steps: 0 }
    }

    /// The symbol of a vertex: a leaf, or a part whose meaning is found later.
    pub fn symbol(&mut self, vertex: VertexId) -> Result<SymbolId, LimitExceeded> {
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

    pub fn finish(&mut self) -> Result<(), LimitExceeded> {
        while let Some((part, vertex)) = self.pending.pop() {
            let meaning = match self.component_of[vertex.index()] {
                None => self.plain(vertex)?,
                Some(component) => self.recursive(vertex, component)?,
            };
            self.symbols.parts[part as usize] = meaning;
        }
        Ok(())
    }

    /// Returns the symbol of a vertex that never starts with itself.
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
            return Err(LimitExceeded::new("left_recursion_steps", MAX_STEPS));
        }
        Ok(())
    }

    /// The productions of a vertex without the empty text: the first part, and what follows it.
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

    /// Returns the symbol of a vertex that may start with itself.
    fn recursive(&mut self, target: VertexId, component: u32) -> Result<SymbolId, LimitExceeded> {
        // The members of the set that the target can start with, from the target down.
        let mut members = vec![target];
        let mut seen: FxHashSet<VertexId> = members.iter().copied().collect();
        // The vertices after a matched one, without and with a continuation.
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

    /// For each member, the members that contain its texts, and the transitions from all of these.
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

    /// Members with the same paths to the target form one class.
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

    /// Returns the continuations up to the target, by class.
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
