//! What a grammar's start reaches, as one graph: rules and parameters are resolved, and for each
//! vertex it is known whether any text belongs to it, and whether the empty one does.

use rustc_hash::FxHashMap;

use super::parameter::{apply, holds};
use super::{Argument, Grammar, GrammarError, GrammarErrorKind, Node, NodeId, RuleId};
use crate::error::LimitExceeded;
use crate::meter;

/// A part of a grammar, with the parameter of the rule around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VertexId(pub u32);

impl VertexId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
pub enum Vertex {
    Seq(Box<[VertexId]>),
    Choice(Box<[VertexId]>),
    Repeat {
        inner: VertexId,
        min: u32,
        max: Option<u32>,
    },
    /// The same texts as another one.
    Same(VertexId),
    /// A lexeme, a set of tokens, or a JSON value: what a text is made of.
    Leaf(NodeId),
    /// A part that the matcher reports, or limits: a node of the grammar, and what is inside.
    Marked(NodeId, VertexId),
    /// No text.
    Never,
}

impl Vertex {
    pub fn children(&self) -> &[VertexId] {
        match self {
            Self::Seq(parts) | Self::Choice(parts) => parts,
            Self::Repeat { inner, .. } | Self::Same(inner) | Self::Marked(_, inner) => {
                std::slice::from_ref(inner)
            }
            Self::Leaf(_) | Self::Never => &[],
        }
    }
}

/// What is known of the texts of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafFacts {
    /// Whether some text that is not empty belongs to it.
    pub alive: bool,
    /// Whether the empty text does.
    pub nullable: bool,
}

/// How many parts a grammar may have, those of rules with a parameter once for each of its values.
pub const MAX_VERTICES: usize = 4_000_000;

#[derive(Debug)]
pub struct Graph {
    pub vertices: Vec<Vertex>,
    /// Whether the empty text belongs to a vertex.
    pub nullable: Vec<bool>,
    /// Whether any text does.
    pub productive: Vec<bool>,
    /// Whether any text that is not empty does.
    pub nonempty: Vec<bool>,
    /// The rules of a vertex.
    pub(super) rules: FxHashMap<VertexId, RuleId>,
    pub start: VertexId,
}

struct Building<'g> {
    grammar: &'g Grammar,
    vertices: Vec<Vertex>,
    ids: FxHashMap<(NodeId, Option<u64>), VertexId>,
    rules: FxHashMap<VertexId, RuleId>,
    pending: Vec<(VertexId, NodeId, Option<u64>)>,
}

impl Building<'_> {
    /// The vertex of a node. What it is made of is looked at later.
    fn vertex(&mut self, node: NodeId, parameter: Option<u64>) -> Result<VertexId, LimitExceeded> {
        if let Some(&known) = self.ids.get(&(node, parameter)) {
            return Ok(known);
        }
        meter::charge(1)?;
        if self.vertices.len() >= MAX_VERTICES {
            return Err(LimitExceeded::new("parts of one grammar", MAX_VERTICES));
        }
        let id = VertexId(self.vertices.len() as u32);
        self.vertices.push(Vertex::Never);
        self.ids.insert((node, parameter), id);
        self.pending.push((id, node, parameter));
        Ok(id)
    }

    fn all(
        &mut self,
        nodes: &[NodeId],
        parameter: Option<u64>,
    ) -> Result<Box<[VertexId]>, LimitExceeded> {
        nodes.iter().map(|&node| self.vertex(node, parameter)).collect()
    }

    fn read(&mut self, node: NodeId, parameter: Option<u64>) -> Result<Vertex, GrammarError> {
        let grammar = self.grammar;
        Ok(match grammar.node(node) {
            Node::Seq(parts) => Vertex::Seq(self.all(parts, parameter)?),
            Node::Choice(parts) => Vertex::Choice(self.all(parts, parameter)?),
            &Node::Repeat { inner, min, max } => {
                if max.is_some_and(|max| max < min) {
                    return Err(GrammarError::of(
                        grammar,
                        None,
                        GrammarErrorKind::Contradiction,
                        format!("at least {min} and at most {} times", max.unwrap_or_default()),
                    ));
                }
                Vertex::Repeat { inner: self.vertex(inner, parameter)?, min, max }
            }
            &Node::Rule(rule, argument) => {
                let argument = match argument {
                    Argument::None => None,
                    Argument::Value(value) => Some(value),
                    Argument::Same => parameter,
                    Argument::Changed(change) => parameter.map(|value| apply(change, value)),
                };
                let known = &grammar.rules[rule.0 as usize];
                let Some(body) = known.body else {
                    return Err(GrammarError::of(
                        grammar,
                        known.place,
                        GrammarErrorKind::UnknownRule,
                        format!("the rule {} is used and not defined", known.name),
                    ));
                };
                let body = self.vertex(body, argument)?;
                self.rules.insert(body, rule);
                Vertex::Same(body)
            }
            Node::Guard(condition, inner) => match holds(condition, parameter.unwrap_or(0)) {
                true => Vertex::Same(self.vertex(*inner, parameter)?),
                false => Vertex::Never,
            },
            Node::Lexeme(_) | Node::Tokens(_) | Node::Json(_) => Vertex::Leaf(node),
            &Node::Span(_, inner) | &Node::Limit { inner, .. } => {
                Vertex::Marked(node, self.vertex(inner, parameter)?)
            }
        })
    }
}

impl Graph {
    /// Reads what the start of a grammar reaches. `leaf` knows lexemes, sets of tokens and schemas.
    ///
    /// # Errors
    /// A rule is not defined, no text belongs to a rule, or there are too many parts.
    pub fn of(
        grammar: &Grammar,
        mut leaf: impl FnMut(NodeId) -> Result<LeafFacts, GrammarError>,
    ) -> Result<Self, GrammarError> {
        let mut building = Building {
            grammar,
            vertices: Vec::new(),
            ids: FxHashMap::default(),
            rules: FxHashMap::default(),
            pending: Vec::new(),
        };
        let Some(start) = grammar.start else {
            return Err(GrammarError::of(
                grammar,
                None,
                GrammarErrorKind::UnknownRule,
                "the grammar has no start",
            ));
        };
        let start = building.vertex(start, None)?;
        while let Some((id, node, parameter)) = building.pending.pop() {
            building.vertices[id.index()] = building.read(node, parameter)?;
        }
        let Building { vertices, rules, .. } = building;
        let mut facts = Vec::with_capacity(vertices.len());
        for vertex in &vertices {
            facts.push(match vertex {
                Vertex::Leaf(node) => leaf(*node)?,
                _ => LeafFacts { alive: false, nullable: false },
            });
        }
        let facts = &facts;
        let leaves = |fact: fn(&LeafFacts) -> bool| {
            move |id: usize, vertex: &Vertex| match vertex {
                Vertex::Seq(_) => Need::All,
                Vertex::Repeat { min: 0, .. } => Need::Nothing,
                Vertex::Leaf(_) if fact(&facts[id]) => Need::Nothing,
                Vertex::Leaf(_) | Vertex::Never => Need::Never,
                _ => Need::Any,
            }
        };
        let nullable = fixpoint(&vertices, leaves(|leaf| leaf.nullable));
        let productive = fixpoint(&vertices, leaves(|leaf| leaf.nullable || leaf.alive));
        let nonempty = fixpoint(&vertices, |id, vertex| match vertex {
            Vertex::Seq(parts) if !parts.iter().all(|part| productive[part.index()]) => Need::Never,
            Vertex::Repeat { max: Some(0), .. } | Vertex::Never => Need::Never,
            Vertex::Leaf(_) if !facts[id].alive => Need::Never,
            Vertex::Leaf(_) => Need::Nothing,
            _ => Need::Any,
        });
        let graph = Self { vertices, nullable, productive, nonempty, rules, start };
        graph.check(grammar)?;
        Ok(graph)
    }

    /// Refuses rules to which no text belongs. With a parameter, only some value need have texts.
    fn check(&self, grammar: &Grammar) -> Result<(), GrammarError> {
        let mut without = vec![false; grammar.rules.len()];
        for rule in self.rules.values() {
            without[rule.0 as usize] = true;
        }
        for (vertex, rule) in &self.rules {
            without[rule.0 as usize] &= !self.productive[vertex.index()];
        }
        if self.productive[self.start.index()] && !without.contains(&true) {
            return Ok(());
        }
        Err(self.blame(grammar, &without))
    }
}

/// Of which children something must hold so that it does of a vertex.
enum Need {
    Nothing,
    Any,
    All,
    Never,
}

/// The vertices of which something holds, where nothing does without a reason. Linear.
fn fixpoint(vertices: &[Vertex], need: impl Fn(usize, &Vertex) -> Need) -> Vec<bool> {
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); vertices.len()];
    // How many children are still missing.
    let mut missing: Vec<u32> = Vec::with_capacity(vertices.len());
    let mut pending: Vec<u32> = Vec::new();
    for (id, vertex) in vertices.iter().enumerate() {
        let children = vertex.children();
        let count = match need(id, vertex) {
            Need::Nothing => 0,
            Need::Any => 1,
            Need::All => children.len() as u32,
            Need::Never => u32::MAX,
        };
        missing.push(count);
        if count == 0 {
            pending.push(id as u32);
        }
        if !matches!(count, 0 | u32::MAX) {
            for child in children {
                users[child.index()].push(id as u32);
            }
        }
    }
    let mut holds = vec![false; vertices.len()];
    while let Some(id) = pending.pop() {
        if std::mem::replace(&mut holds[id as usize], true) {
            continue;
        }
        for &user in &users[id as usize] {
            let left = &mut missing[user as usize];
            *left = left.saturating_sub(1);
            if *left == 0 {
                pending.push(user);
            }
        }
    }
    holds
}
