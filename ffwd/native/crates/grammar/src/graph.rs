//! The reachable part of a grammar as one graph: rules and parameters are resolved, and each vertex
//! knows whether it accepts any text, and the empty one.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::parameter::{apply, holds};
use super::values::{too_many_values, Facts, Key, Question, Values};
use super::{Argument, Grammar, GrammarError, GrammarErrorKind, Node, NodeId, Rule, RuleId};
use ffwd_bounds::error::{LimitExceeded, COMPILE_STEPS};
use ffwd_bounds::meter;

/// A part of a grammar, with the parameter of the rule around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct VertexId(pub u32);

impl VertexId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Vertex {
    Seq(Box<[VertexId]>),
    Choice(Box<[VertexId]>),
    Repeat {
        inner: VertexId,
        min: u32,
        max: Option<u32>,
    },
    /// The same texts as another one.
    Same(VertexId),
    /// A lexeme, a set of tokens, or a JSON value: the units of a text.
    Leaf(NodeId),
    /// A part that the matcher reports or limits: a node of the grammar, and its content.
    Marked(NodeId, VertexId),
    /// No text.
    Never,
    /// A part that depends on a parameter, with its value: its own parts are found later.
    Later(Key),
}

impl Vertex {
    pub fn children(&self) -> &[VertexId] {
        match self {
            Self::Seq(parts) | Self::Choice(parts) => parts,
            Self::Repeat { inner, .. } | Self::Same(inner) | Self::Marked(_, inner) => {
                std::slice::from_ref(inner)
            }
            Self::Leaf(_) | Self::Never | Self::Later(_) => &[],
        }
    }
}

/// The properties of a leaf's texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafFacts {
    /// Whether some text that is not empty belongs to it.
    pub alive: bool,
    /// Whether the empty text does.
    pub nullable: bool,
}

/// How many parts a grammar may have. Parts of rules with a parameter count once for each value.
pub(crate) const MAX_VERTICES: usize = 4_000_000;

/// What the start of one grammar reaches.
#[derive(Debug)]
pub struct Graph {
    pub(crate) vertices: Vec<Vertex>,
    /// Whether the empty text belongs to a vertex.
    pub(crate) nullable: Vec<bool>,
    /// Whether any text does.
    pub(crate) productive: Vec<bool>,
    /// Whether any text that is not empty does.
    pub(crate) nonempty: Vec<bool>,
    /// The rules of a vertex.
    pub(super) rules: FxHashMap<VertexId, RuleId>,
    pub(crate) start: VertexId,
    /// The nodes of parts that are reported or limited.
    pub marked: Vec<NodeId>,
}

/// When rules with a parameter are expanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expansion {
    /// Few values in advance, many only when a text reaches them.
    #[default]
    AsNeeded,
    /// Every value before any text is read.
    Beforehand,
    /// Every value only when a text reaches it.
    Later,
}

/// How many parts with values are expanded in advance if they need not be.
const FEW_VALUES: usize = 5_000;
/// The steps of a part with a value.
const STEPS: usize = 16;

/// How parameters are read.
#[derive(Clone, Copy)]
enum Mode<'g> {
    /// Each value is examined, up to this number of parts with one.
    Beforehand(usize),
    /// Parts that depend on one are not examined.
    Later(&'g Values),
    /// Each part once, as if every condition held.
    WithoutValues,
}

pub(super) struct GraphBuilder<'g> {
    grammar: &'g Grammar,
    mode: Mode<'g>,
    pub vertices: Vec<Vertex>,
    pub ids: FxHashMap<(NodeId, Option<u64>), VertexId>,
    pub rules: FxHashMap<VertexId, RuleId>,
    pending: Vec<(VertexId, NodeId, Option<u64>)>,
    with_value: usize,
    /// The part that is being read.
    reading: Option<NodeId>,
}

impl<'g> GraphBuilder<'g> {
    fn new(grammar: &'g Grammar, mode: Mode<'g>) -> Self {
        Self {
            grammar,
            mode,
            vertices: Vec::new(),
            ids: FxHashMap::default(),
            rules: FxHashMap::default(),
            pending: Vec::new(),
            with_value: 0,
            reading: None,
        }
    }

    pub fn without_values(grammar: &'g Grammar) -> Self {
        Self::new(grammar, Mode::WithoutValues)
    }

    pub fn read_all(&mut self) -> Result<(), GrammarError> {
        while let Some((id, node, parameter)) = self.pending.pop() {
            self.reading = Some(node);
            let vertex = self.read(node, parameter);
            self.vertices[id.index()] = vertex.map_err(|error| match error.kind {
                GrammarErrorKind::Limit(limit) if parameter.is_some() && is_of_input(limit) => {
                    too_many_values(self.grammar, self.grammar.rule_with(node), limit)
                }
                _ => error,
            })?;
        }
        Ok(())
    }

    /// Returns the vertex of a node. Its parts are examined later.
    pub fn vertex(
        &mut self,
        node: NodeId,
        parameter: Option<u64>,
    ) -> Result<VertexId, LimitExceeded> {
        let parameter = match self.mode {
            Mode::Beforehand(_) => parameter,
            Mode::Later(values) => values.key(node, parameter).1,
            Mode::WithoutValues => None,
        };
        if let Some(&known) = self.ids.get(&(node, parameter)) {
            return Ok(known);
        }
        meter::charge(1)?;
        if self.vertices.len() >= MAX_VERTICES {
            return Err(LimitExceeded::new("grammar_parts", MAX_VERTICES));
        }
        if parameter.is_some() {
            meter::charge(STEPS)?;
            self.with_value += 1;
            if let Mode::Beforehand(most) = self.mode {
                if self.with_value > most {
                    return Err(LimitExceeded::new(VALUES, most));
                }
            }
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
        if let Mode::Later(values) = self.mode {
            if values.depends(node) {
                return Ok(Vertex::Later((node, parameter)));
            }
        }
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
                        format!("the rule `{}` is used and not defined", known.name),
                    ));
                };
                let body = self.vertex(body, argument)?;
                self.rules.insert(body, rule);
                Vertex::Same(body)
            }
            Node::Guard(_, inner) if matches!(self.mode, Mode::WithoutValues) => {
                Vertex::Same(self.vertex(*inner, None)?)
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

/// Whether some part of a grammar depends on the value of a parameter.
fn has_parameters(grammar: &Grammar) -> bool {
    grammar.nodes.iter().any(|node| match node {
        Node::Guard(..) => true,
        Node::Rule(_, argument) => *argument != Argument::None,
        _ => false,
    })
}

/// The error of a rule that may begin with itself, and whose parameter has more values than a limit
/// allows.
pub(super) fn begins_with_itself(
    grammar: &Grammar,
    rule: Option<&Rule>,
    limit: LimitExceeded,
) -> GrammarError {
    let Some(rule) = rule.filter(|_| is_of_input(limit)) else { return limit.into() };
    let message = format!(
        "the rule `{}` may begin with itself, with too many values of its parameter: {limit}; let a \
         text come before it, or count less far",
        rule.name
    );
    GrammarError::of(grammar, rule.place, GrammarErrorKind::Limit(limit), message)
}

/// Returns whether the input exceeds a limit, rather than a clock or a cancellation.
fn is_of_input(limit: LimitExceeded) -> bool {
    !limit.is_interruption() || limit.limit == COMPILE_STEPS
}

/// The limit on parts with values that are expanded in advance.
const VALUES: &str = "parametric_parts";

/// A graph and, if rules with a parameter are expanded later, the parts that they use, with their
/// vertices.
#[derive(Debug)]
pub struct Expanded {
    /// The graph before any text is read.
    pub graph: Graph,
    pub(crate) values: Option<Arc<Values>>,
    pub(crate) used: Vec<(NodeId, VertexId)>,
}

impl Graph {
    /// Reads what the start of a grammar reaches. `leaf` knows lexemes, sets of tokens and schemas;
    /// `expansion` says when rules with a parameter are expanded.
    ///
    /// # Errors A rule is not defined, a rule accepts no text, or there are too many parts.
    pub fn expanded(
        grammar: &Arc<Grammar>,
        expansion: Expansion,
        mut leaf: impl FnMut(NodeId) -> Result<LeafFacts, GrammarError>,
    ) -> Result<Expanded, GrammarError> {
        Self::check_without_values(grammar, &mut leaf)?;
        let plain = |graph: Self| Expanded { graph, values: None, used: Vec::new() };
        if expansion != Expansion::Later {
            let most = if expansion == Expansion::AsNeeded { FEW_VALUES } else { MAX_VERTICES };
            match Self::read(grammar, Mode::Beforehand(most), &mut leaf, Vec::new()) {
                Err(GrammarError { kind: GrammarErrorKind::Limit(limit), .. })
                    if limit.limit == VALUES && expansion == Expansion::AsNeeded => {}
                found => return found.map(|(graph, _)| plain(graph)),
            }
        }
        let found = match grammar.start {
            Some(start) => Values::of(grammar, start, &mut leaf)?,
            None => Err(None),
        };
        let values = match found {
            Ok(values) if values.has_ranks() => values,
            // If marked parts can start with themselves, each value is a separate part.
            found => {
                let rule = found.err().flatten().map(|rule| &grammar.rules[rule.0 as usize]);
                let mode = Mode::Beforehand(MAX_VERTICES);
                let read = Self::read(grammar, mode, &mut leaf, Vec::new());
                let (graph, _) = read.map_err(|error| match error.kind {
                    GrammarErrorKind::Limit(limit) if rule.is_some() && is_of_input(limit) => {
                        begins_with_itself(grammar, rule, limit)
                    }
                    _ => error,
                })?;
                return Ok(plain(graph));
            }
        };
        let mut used: Vec<NodeId> = Vec::new();
        for node in values.dependent() {
            let children = match *grammar.node(node) {
                Node::Rule(rule, argument) => values.body(rule, argument, None).map(|key| key.0),
                _ => None,
            };
            used.extend(children.iter().chain(grammar.node(node).children()));
        }
        used.retain(|&node| !values.depends(node));
        used.sort_unstable();
        used.dedup();
        let (graph, used) = Self::read(grammar, Mode::Later(&values), &mut leaf, used)?;
        Ok(Expanded { graph, values: Some(Arc::new(values)), used })
    }

    /// Reads the reachable part of a grammar. `leaf` describes lexemes, sets of tokens and schemas.
    ///
    /// # Errors
    /// A rule is undefined, a rule accepts no text, or there are too many parts.
    #[cfg(test)]
    pub(crate) fn of(
        grammar: &Grammar,
        mut leaf: impl FnMut(NodeId) -> Result<LeafFacts, GrammarError>,
    ) -> Result<Self, GrammarError> {
        Self::check_without_values(grammar, &mut leaf)?;
        let mode = Mode::Beforehand(MAX_VERTICES);
        Self::read(grammar, mode, &mut leaf, Vec::new()).map(|(graph, _)| graph)
    }

    /// Refuses rules that have no text even if every condition holds. Whether some value makes a
    /// rule reachable would take all values to find, and a refusal must not depend on one.
    fn check_without_values(
        grammar: &Grammar,
        leaf: &mut dyn FnMut(NodeId) -> Result<LeafFacts, GrammarError>,
    ) -> Result<(), GrammarError> {
        match has_parameters(grammar) {
            true => Self::read(grammar, Mode::WithoutValues, leaf, Vec::new()).map(|_| ()),
            false => Ok(()),
        }
    }

    /// `used`: further parts to read, whose vertices are returned.
    fn read(
        grammar: &Grammar,
        mode: Mode<'_>,
        leaf: &mut dyn FnMut(NodeId) -> Result<LeafFacts, GrammarError>,
        used: Vec<NodeId>,
    ) -> Result<(Self, Vec<(NodeId, VertexId)>), GrammarError> {
        let mut building = GraphBuilder::new(grammar, mode);
        let Some(start) = grammar.start else {
            return Err(GrammarError::of(
                grammar,
                None,
                GrammarErrorKind::UnknownRule,
                "the grammar has no start",
            ));
        };
        let start = building.vertex(start, None)?;
        let mut vertices_of = Vec::with_capacity(used.len());
        for node in used {
            vertices_of.push((node, building.vertex(node, None)?));
        }
        building.read_all()?;
        let GraphBuilder { vertices, rules, .. } = building;
        let mut marked: Vec<NodeId> = Vec::new();
        let mut known = Facts::default();
        let mut later: FxHashMap<Key, [bool; 3]> = FxHashMap::default();
        let mut facts = Vec::with_capacity(vertices.len());
        for vertex in &vertices {
            facts.push(match vertex {
                Vertex::Leaf(node) => leaf(*node)?,
                _ => LeafFacts { alive: false, nullable: false },
            });
            match (vertex, mode) {
                (Vertex::Marked(node, _), _) => marked.push(*node),
                (&Vertex::Later(key), Mode::Later(values)) => {
                    let mut answers = [false; 3];
                    let questions = [Question::Nullable, Question::Productive, Question::Nonempty];
                    for question in questions {
                        answers[question as usize] = known.holds(values, question, key).map_err(
                            |limit| match is_of_input(limit) {
                                true => values.blamed(key.0, limit),
                                false => limit.into(),
                            },
                        )?;
                    }
                    later.insert(key, answers);
                }
                _ => {}
            }
        }
        if let Mode::Later(values) = mode {
            let is_mark =
                |node: &NodeId| matches!(grammar.node(*node), Node::Span(..) | Node::Limit { .. });
            marked.extend(values.dependent().into_iter().filter(is_mark));
        }
        let answer = |question: Question, key: &Key| match later.get(key) {
            Some(answers) if answers[question as usize] => Need::Nothing,
            _ => Need::Never,
        };
        let (facts, answer) = (&facts, &answer);
        let leaves = |question: Question, fact: fn(&LeafFacts) -> bool| {
            move |id: usize, vertex: &Vertex| match vertex {
                Vertex::Seq(_) => Need::All,
                Vertex::Repeat { min: 0, .. } => Need::Nothing,
                Vertex::Leaf(_) if fact(&facts[id]) => Need::Nothing,
                Vertex::Leaf(_) | Vertex::Never => Need::Never,
                Vertex::Later(key) => answer(question, key),
                _ => Need::Any,
            }
        };
        let nullable = fixpoint(&vertices, leaves(Question::Nullable, |leaf| leaf.nullable));
        let productive =
            fixpoint(&vertices, leaves(Question::Productive, |leaf| leaf.nullable || leaf.alive));
        let nonempty = fixpoint(&vertices, |id, vertex| match vertex {
            Vertex::Seq(parts) if !parts.iter().all(|part| productive[part.index()]) => Need::Never,
            Vertex::Repeat { max: Some(0), .. } | Vertex::Never => Need::Never,
            Vertex::Leaf(_) if !facts[id].alive => Need::Never,
            Vertex::Leaf(_) => Need::Nothing,
            Vertex::Later(key) => answer(Question::Nonempty, key),
            _ => Need::Any,
        });
        let graph = Self { vertices, nullable, productive, nonempty, rules, start, marked };
        let by_rule = matches!(mode, Mode::WithoutValues) || !has_parameters(grammar);
        graph.check(grammar, by_rule)?;
        Ok((graph, vertices_of))
    }

    /// Rejects a grammar without texts, and if `by_rule` rules that accept no text.
    fn check(&self, grammar: &Grammar, by_rule: bool) -> Result<(), GrammarError> {
        let mut without = vec![false; grammar.rules.len()];
        for rule in self.rules.values() {
            without[rule.0 as usize] = true;
        }
        for (vertex, rule) in &self.rules {
            without[rule.0 as usize] &= !self.productive[vertex.index()];
        }
        if self.productive[self.start.index()] && !(by_rule && without.contains(&true)) {
            return Ok(());
        }
        Err(self.blame(grammar, &without))
    }
}

/// The children that must satisfy a property so that a vertex does.
pub(super) enum Need {
    Nothing,
    Any,
    All,
    Never,
}

/// The vertices with a property, as a least fixpoint: each needs a reason. Linear.
fn fixpoint(vertices: &[Vertex], need: impl Fn(usize, &Vertex) -> Need) -> Vec<bool> {
    proven(vertices, need).into_iter().map(|order| order != u32::MAX).collect()
}

/// As [`fixpoint`], with the order in which vertices get the property, the nearest reason first;
/// `u32::MAX` without it.
pub(super) fn proven(vertices: &[Vertex], need: impl Fn(usize, &Vertex) -> Need) -> Vec<u32> {
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
    let mut order = vec![u32::MAX; vertices.len()];
    let mut next = 0;
    while let Some(&id) = pending.get(next) {
        next += 1;
        if order[id as usize] != u32::MAX {
            continue;
        }
        order[id as usize] = next as u32;
        for &user in &users[id as usize] {
            let left = &mut missing[user as usize];
            *left = left.saturating_sub(1);
            if *left == 0 {
                pending.push(user);
            }
        }
    }
    order
}
