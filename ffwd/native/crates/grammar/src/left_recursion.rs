//! Symbols of the parts of a grammar, without left recursion.
//!
//! Vertices that can begin with each other form a strongly connected set. The left-corner transform
//! is done for each of its vertices that is needed.

use rustc_hash::FxHashMap;

use super::graph::{Graph, Vertex, VertexId};
use super::left_corner_transform::{transformed, Corners};
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
        let nullable = self.graph.nullable[target.index()];
        let mut set = LeftRecursiveSet { builder: self, component };
        let (symbol, members) = transformed(&mut set, target, nullable)?;
        for member in &members {
            if let Vertex::Marked(node, _) = self.graph.vertices[member.index()] {
                self.symbols.unmarked.push(node);
            }
        }
        Ok(symbol)
    }
}

/// Vertices that can begin with each other.
struct LeftRecursiveSet<'b, 'g> {
    builder: &'b mut SymbolBuilder<'g>,
    component: u32,
}

impl Corners for LeftRecursiveSet<'_, '_> {
    type Part = VertexId;
    type Table = Symbols;

    fn table(&mut self) -> &mut Symbols {
        self.builder.symbols
    }

    fn step(&mut self) -> Result<(), LimitExceeded> {
        self.builder.step()
    }

    fn is_member(&self, vertex: VertexId) -> bool {
        self.builder.component_of[vertex.index()] == Some(self.component)
    }

    fn productions(
        &mut self,
        vertex: VertexId,
    ) -> Result<Vec<(VertexId, SymbolId)>, LimitExceeded> {
        self.builder.productions(vertex)
    }

    fn symbol(&mut self, vertex: VertexId) -> Result<SymbolId, LimitExceeded> {
        self.builder.symbol(vertex)
    }

    fn reserve(&mut self, _: &[SymbolId], nullable: bool) -> Result<SymbolId, LimitExceeded> {
        let symbols = &mut self.builder.symbols;
        let part = symbols.parts.len() as u32;
        symbols.parts.push(SymbolId::EMPTY);
        symbols.intern(Symbol::Part(part), nullable)
    }

    fn resolve(&mut self, reserved: SymbolId, meaning: SymbolId) {
        let symbols = &mut self.builder.symbols;
        if let &Symbol::Part(part) = symbols.get(reserved) {
            symbols.parts[part as usize] = meaning;
        }
    }
}
