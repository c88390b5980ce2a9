//! Rules with a parameter, whose values are examined only when a text reaches them.
//!
//! A part that depends on the parameter of the rule around it has one meaning for each value. The
//! grammar without its conditions answers questions about all values at once. With every condition
//! true, the answer covers everything possible; with every one false, only what always holds. If
//! these differ, the parts of one value are examined until the answer is known, depth first and the
//! nearest end first. The answer is a least fixpoint: a part that this search does not prove does
//! not have the property.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::graph::{proven, Graph, GraphBuilder, LeafFacts, Need, Vertex, VertexId};
use super::left_corners::{components, corners};
use super::parameter::{apply, holds};
use super::{Argument, Grammar, GrammarError, Node, NodeId, RuleId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// A part of a grammar, and the parameter of the rule around it where it depends on that.
pub type Key = (NodeId, Option<u64>);

/// A question about a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Whether the empty text belongs to it.
    Nullable,
    /// Whether any text does.
    Productive,
    /// Whether any text does that is not empty.
    Nonempty,
}

/// How many parts one question may look at.
const MAX_LOOKED_AT: usize = 1_000_000;
/// How many parts may begin with each other.
const MAX_RANK: u32 = 1 << 24;
/// The steps of one part that is looked at.
const STEPS: usize = 16;

/// The properties of a part for all values.
#[derive(Clone, Debug)]
struct Known {
    depends: bool,
    leaf: LeafFacts,
    /// By question: whether it may hold, and whether it does in any case.
    may: [bool; 3],
    must: [bool; 3],
    /// The order in which texts of the parts are found: the nearest end first.
    order: u32,
    /// Its first parts that are known without values. Parts that can begin with each other have one
    /// of them, and that one has the first parts of all.
    corners: Box<[NodeId]>,
    /// The set of parts that it can begin with, and that can begin with it.
    set: Option<u32>,
}

/// The properties of a grammar without the values of parameters.
#[derive(Debug)]
pub struct Values {
    grammar: Arc<Grammar>,
    parts: FxHashMap<NodeId, Known>,
    /// The rules of the parts that depend on a parameter, by their bodies.
    rules: FxHashMap<NodeId, RuleId>,
}

impl Values {
    /// `Err` if parameters cannot be resolved later, because a part that depends on one and is
    /// reported or limited may start with itself. The error names the first rule of such parts, if
    /// there is one.
    ///
    /// # Errors
    /// As [`Graph::expanded`].
    pub fn of(
        grammar: &Arc<Grammar>,
        start: NodeId,
        leaf: &mut dyn FnMut(NodeId) -> Result<LeafFacts, GrammarError>,
    ) -> Result<Result<Self, Option<RuleId>>, GrammarError> {
        let mut building = GraphBuilder::without_values(grammar);
        let start = building.vertex(start, None)?;
        building.read_all()?;
        let GraphBuilder { vertices, rules, ids, .. } = building;
        let mut nodes = vec![NodeId(0); vertices.len()];
        for (&(node, _), &vertex) in &ids {
            nodes[vertex.index()] = node;
        }
        let mut facts = Vec::with_capacity(vertices.len());
        for vertex in &vertices {
            facts.push(match vertex {
                Vertex::Leaf(node) => leaf(*node)?,
                _ => LeafFacts { alive: false, nullable: false },
            });
        }
        let guarded = |id: usize| matches!(grammar.node(nodes[id]), Node::Guard(..));
        let simple = |hold: bool, fact: fn(&LeafFacts) -> bool| {
            let facts = &facts;
            proven(&vertices, move |id, vertex| match vertex {
                Vertex::Same(_) if !hold && guarded(id) => Need::Never,
                Vertex::Seq(_) => Need::All,
                Vertex::Repeat { min: 0, .. } => Need::Nothing,
                Vertex::Leaf(_) if fact(&facts[id]) => Need::Nothing,
                Vertex::Leaf(_) | Vertex::Never | Vertex::Later(..) => Need::Never,
                _ => Need::Any,
            })
        };
        let nonempty = |hold: bool, productive: &[u32]| {
            proven(&vertices, |id, vertex| match vertex {
                Vertex::Same(_) if !hold && guarded(id) => Need::Never,
                Vertex::Seq(parts) if parts.iter().any(|p| productive[p.index()] == u32::MAX) => {
                    Need::Never
                }
                Vertex::Repeat { max: Some(0), .. } | Vertex::Never | Vertex::Later(..) => {
                    Need::Never
                }
                Vertex::Leaf(_) if !facts[id].alive => Need::Never,
                Vertex::Leaf(_) => Need::Nothing,
                _ => Need::Any,
            })
        };
        let answers = |hold: bool| {
            let nullable = simple(hold, |leaf| leaf.nullable);
            let productive = simple(hold, |leaf| leaf.nullable || leaf.alive);
            let nonempty = nonempty(hold, &productive);
            [nullable, productive, nonempty]
        };
        let (may, must) = (answers(true), answers(false));
        let of = |answers: &[Vec<u32>; 3], id: usize| {
            std::array::from_fn(|question| answers[question][id] != u32::MAX)
        };
        let mut depends = depends(grammar, &vertices, &nodes);
        let holds = |answer: &[u32]| answer.iter().map(|&order| order != u32::MAX).collect();
        let graph = Graph {
            nullable: holds(&may[0]),
            productive: holds(&may[1]),
            nonempty: holds(&may[2]),
            vertices,
            rules: FxHashMap::default(),
            start,
            marked: Vec::new(),
        };
        let sets = Sets::of(&graph, &mut depends);
        if sets.marked.contains(&true) {
            let is_marked = |vertex: &VertexId| {
                sets.of[vertex.index()].is_some_and(|set| sets.marked[set as usize])
            };
            let rules = rules.iter().filter(|(vertex, _)| is_marked(vertex));
            return Ok(Err(rules.map(|(_, &rule)| rule).min()));
        }
        let mut parts: FxHashMap<NodeId, Known> = FxHashMap::default();
        for (id, &node) in nodes.iter().enumerate() {
            let corners = sets.corners(&graph, VertexId(id as u32));
            let known = Known {
                depends: depends[id],
                leaf: facts[id],
                may: of(&may, id),
                must: of(&must, id),
                order: may[Question::Productive as usize][id],
                corners: corners.iter().map(|corner| nodes[corner.index()]).collect(),
                set: sets.of[id],
            };
            parts.insert(node, known);
        }
        let rules = rules.into_iter().map(|(vertex, rule)| (nodes[vertex.index()], rule));
        let rules = rules.collect();
        Ok(Ok(Self { grammar: grammar.clone(), parts, rules }))
    }

    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Whether a part has different texts for different values.
    pub fn depends(&self, node: NodeId) -> bool {
        self.parts.get(&node).is_some_and(|known| known.depends)
    }

    /// The part with a value, where it depends on that.
    pub fn key(&self, node: NodeId, value: Option<u64>) -> Key {
        (node, value.filter(|_| self.depends(node)))
    }

    /// The parts that depend on a parameter, sorted.
    pub fn dependent(&self) -> Vec<NodeId> {
        let mut found: Vec<NodeId> =
            self.parts.iter().filter(|(_, known)| known.depends).map(|(&node, _)| node).collect();
        found.sort_unstable();
        found
    }

    /// The set of parts that a part can begin with, and that can begin with it, if these depend on
    /// a parameter.
    pub fn set(&self, node: NodeId) -> Option<u32> {
        self.parts.get(&node).and_then(|known| known.set)
    }

    pub fn corners(&self, node: NodeId) -> &[NodeId] {
        self.parts.get(&node).map_or(&[], |known| &known.corners)
    }

    /// The body of a rule where it is used, and the value of its parameter there.
    pub fn body(&self, rule: RuleId, argument: Argument, value: Option<u64>) -> Option<Key> {
        let argument = match argument {
            Argument::None => None,
            Argument::Value(value) => Some(value),
            Argument::Same => value,
            Argument::Changed(change) => value.map(|value| apply(change, value)),
        };
        let body = self.grammar.rules[rule.0 as usize].body?;
        Some(self.key(body, argument))
    }

    /// Returns the parts of a part for a value; `None` if a condition does not hold.
    pub fn children(&self, (node, value): Key) -> Option<Vec<Key>> {
        Some(match self.grammar.node(node) {
            &Node::Rule(rule, argument) => self.body(rule, argument, value).into_iter().collect(),
            Node::Guard(condition, _) if !holds(condition, value.unwrap_or(0)) => return None,
            node => node.children().iter().map(|&child| self.key(child, value)).collect(),
        })
    }

    /// The rule around a part that depends on its parameter.
    pub fn rule(&self, node: NodeId) -> Option<&super::Rule> {
        let rule = self.rules.get(&node).map(|rule| &self.grammar.rules[rule.0 as usize]);
        rule.or_else(|| self.grammar.rule_with(node))
    }

    /// The error of a limit that is passed on behalf of a part.
    pub fn blamed(&self, node: NodeId, limit: LimitExceeded) -> GrammarError {
        too_many_values(&self.grammar, self.rule(node), limit)
    }
}

/// The error of a rule with more values than a limit allows.
pub fn too_many_values(
    grammar: &Grammar,
    rule: Option<&super::Rule>,
    limit: LimitExceeded,
) -> GrammarError {
    let mut error = GrammarError::from(limit);
    let Some(rule) = rule else { return error };
    error.message = format!(
        "the parameter of the rule `{}` takes too many values: {limit}; count less far, or let an \
         alternative without a condition end the rule",
        rule.name
    );
    error.place = rule.place.and_then(|place| grammar.excerpt(place));
    error
}

/// Which vertices depend on the parameter of the rule around.
fn depends(grammar: &Grammar, vertices: &[Vertex], nodes: &[NodeId]) -> Vec<bool> {
    let order = proven(vertices, |id, vertex| match (grammar.node(nodes[id]), vertex) {
        (Node::Guard(..), _) => Need::Nothing,
        (Node::Rule(_, Argument::Same | Argument::Changed(_)), _) => Need::Nothing,
        (Node::Rule(..), _) | (_, Vertex::Leaf(_) | Vertex::Never) => Need::Never,
        _ => Need::Any,
    });
    order.into_iter().map(|order| order != u32::MAX).collect()
}

/// The sets of vertices that can begin with each other, as far as they depend on a parameter.
struct Sets {
    /// For each vertex, its set.
    of: Vec<Option<u32>>,
    members: Vec<Vec<VertexId>>,
    /// Whether a part of a set is reported or limited.
    marked: Vec<bool>,
}

impl Sets {
    /// All members of a set depend on the parameter if one does.
    fn of(graph: &Graph, depends: &mut [bool]) -> Self {
        let mut of = components(graph);
        let count = of.iter().flatten().max().map_or(0, |&most| most as usize + 1);
        let mut members: Vec<Vec<VertexId>> = vec![Vec::new(); count];
        for (id, set) in of.iter().enumerate() {
            if let Some(set) = *set {
                members[set as usize].push(VertexId(id as u32));
            }
        }
        let mut marked = vec![false; count];
        for (members, marked) in members.iter().zip(&mut marked) {
            let depend = members.iter().any(|member| depends[member.index()]);
            for &member in members {
                let id = member.index();
                depends[id] = depend;
                *marked |= depend && matches!(graph.vertices[id], Vertex::Marked(..));
                of[id] = of[id].filter(|_| depend);
            }
        }
        Self { of, members, marked }
    }

    /// See [`Known::corners`].
    fn corners(&self, graph: &Graph, vertex: VertexId) -> Vec<VertexId> {
        // A part with only the empty text starts nothing, and may refer to itself in a cycle.
        let alive = |vertex: VertexId| {
            let corners = corners(graph, vertex).iter().copied();
            corners.filter(|corner| graph.nonempty[corner.index()])
        };
        let Some(set) = self.of[vertex.index()] else { return alive(vertex).collect() };
        let members = &self.members[set as usize];
        match members.first() {
            Some(&first) if first != vertex => vec![first],
            _ => {
                let all = members.iter().flat_map(|&member| alive(member));
                all.filter(|corner| self.of[corner.index()] != Some(set)).collect()
            }
        }
    }
}

/// The known properties of parts with values.
#[derive(Debug, Default)]
pub struct Facts {
    known: FxHashMap<(Question, Key), bool>,
}

/// A part that is looked at.
struct Looked {
    key: Key,
    /// How many of its parts must still be proved.
    missing: usize,
    shown: bool,
    /// Those that wait for it.
    waiting: Vec<u32>,
}

impl Facts {
    /// How many parts have been looked at.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// Whether something holds of a part.
    ///
    /// # Errors
    /// Too much has to be looked at.
    pub fn holds(
        &mut self,
        values: &Values,
        question: Question,
        root: Key,
    ) -> Result<bool, LimitExceeded> {
        if let Some(known) = self.known_of(values, question, root) {
            return Ok(known);
        }
        let mut looked = vec![Looked { key: root, missing: 0, shown: false, waiting: Vec::new() }];
        let mut ids: FxHashMap<Key, u32> = FxHashMap::from_iter([(root, 0)]);
        let mut pending: Vec<u32> = vec![0];
        while let Some(id) = pending.pop() {
            meter::charge(STEPS)?;
            if looked.len() > MAX_LOOKED_AT {
                return Err(LimitExceeded::new("parametric_parts", MAX_LOOKED_AT));
            }
            let key = looked[id as usize].key;
            let (need, mut children) = self.need(values, question, key)?;
            match need {
                Need::Nothing => self.show(&mut looked, id),
                Need::Never => {}
                Need::Any | Need::All => {
                    let any = matches!(need, Need::Any);
                    children.sort_by_key(|child| values.order(*child));
                    let known: Vec<Option<bool>> = children
                        .iter()
                        .map(|&child| match ids.get(&child) {
                            Some(&id) if looked[id as usize].shown => Some(true),
                            _ => self.known_of(values, question, child),
                        })
                        .collect();
                    let open = known.iter().filter(|known| **known != Some(true)).count();
                    if any && open < known.len() || !any && open == 0 {
                        self.show(&mut looked, id);
                    } else if any || !known.contains(&Some(false)) {
                        looked[id as usize].missing = if any { 1 } else { open };
                        // The nearest end last, so that it is looked at first.
                        for (&child, known) in children.iter().zip(&known).rev() {
                            if known.is_some() {
                                continue;
                            }
                            let fresh = looked.len() as u32;
                            let number = *ids.entry(child).or_insert(fresh);
                            if number == fresh {
                                let waiting = Vec::new();
                                looked.push(Looked {
                                    key: child,
                                    missing: 0,
                                    shown: false,
                                    waiting,
                                });
                                pending.push(number);
                            }
                            looked[number as usize].waiting.push(id);
                        }
                    }
                }
            }
            if looked[0].shown {
                self.keep(question, &looked, true);
                return Ok(true);
            }
        }
        // All parts that could prove it were examined.
        self.keep(question, &looked, false);
        Ok(false)
    }

    fn keep(&mut self, question: Question, looked: &[Looked], found: bool) {
        for one in looked.iter().filter(|one| one.shown || !found) {
            self.known.insert((question, one.key), one.shown);
        }
    }

    fn show(&self, looked: &mut [Looked], id: u32) {
        let mut pending = vec![id];
        while let Some(id) = pending.pop() {
            let one = &mut looked[id as usize];
            if std::mem::replace(&mut one.shown, true) {
                continue;
            }
            for user in std::mem::take(&mut one.waiting) {
                let user_of = &mut looked[user as usize];
                user_of.missing = user_of.missing.saturating_sub(1);
                if user_of.missing == 0 {
                    pending.push(user);
                }
            }
        }
    }

    fn known_of(&self, values: &Values, question: Question, key: Key) -> Option<bool> {
        let known = values.parts.get(&key.0)?;
        if known.must[question as usize] {
            return Some(true);
        }
        if !known.may[question as usize] {
            return Some(false);
        }
        self.known.get(&(question, key)).copied()
    }

    fn need(
        &mut self,
        values: &Values,
        question: Question,
        key: Key,
    ) -> Result<(Need, Vec<Key>), LimitExceeded> {
        let Some(children) = values.children(key) else { return Ok((Need::Never, Vec::new())) };
        let need = match (values.grammar.node(key.0), question) {
            (Node::Seq(_), Question::Nonempty) => {
                let mut productive = true;
                for &child in &children {
                    productive &= self.holds(values, Question::Productive, child)?;
                }
                if productive {
                    Need::Any
                } else {
                    Need::Never
                }
            }
            (Node::Seq(_), _) => Need::All,
            (Node::Repeat { max: Some(0), .. }, Question::Nonempty) => Need::Never,
            (Node::Repeat { min: 0, .. }, Question::Nullable | Question::Productive) => {
                Need::Nothing
            }
            (Node::Lexeme(_) | Node::Tokens(_) | Node::Json(_), _) => {
                let leaf = values.parts.get(&key.0).map(|known| known.leaf);
                let holds = leaf.is_some_and(|leaf| match question {
                    Question::Nullable => leaf.nullable,
                    Question::Productive => leaf.nullable || leaf.alive,
                    Question::Nonempty => leaf.alive,
                });
                if holds {
                    Need::Nothing
                } else {
                    Need::Never
                }
            }
            _ => Need::Any,
        };
        Ok((need, children))
    }
}

impl Values {
    fn order(&self, key: Key) -> u32 {
        self.parts.get(&key.0).map_or(u32::MAX, |known| known.order)
    }

    /// Whether all ranks are within the limit.
    pub fn has_ranks(&self) -> bool {
        self.parts.len() < (MAX_RANK / 16) as usize
    }
}
