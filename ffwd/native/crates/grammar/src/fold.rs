//! Folding of a grammar's regular parts into lexemes.
//!
//! Front ends write a node for each string and character class. With fewer and larger lexemes there
//! are fewer parallel stacks, and more of a token lies within one lexeme. Sequences, alternatives,
//! repetitions and non-recursive rules of lexemes that may end anywhere therefore become one
//! lexeme. Longest-match lexemes, tokens, schemas, spans, limits, guards and rules with arguments
//! stay unchanged, and their surroundings fold up to them. Intersections and complements stay too.
//! They are usually free text, and alone they are shared by many grammars; whether they accept any
//! text is only known when they are compiled, and reported with their rule.
//!
//! Folding a part with a single use is free. A part with several uses is copied into each, so only
//! small ones are folded, within a budget in proportion to the grammar. The whole takes linear
//! time, and the grammar grows by a constant factor at most.

use std::sync::Arc;

use super::{Argument, Grammar, Lexeme, Lexing, Node, NodeId, RuleId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::regex::{Ast, Look};

/// The largest folded lexeme, see [`weight`].
const MAX_WEIGHT: usize = 4096;
/// The largest part that is copied into several places.
const MAX_SHARED: usize = 256;
/// How deeply the language of a folded lexeme may nest.
const MAX_DEPTH: usize = 100;
/// The budget for copies, and its increase for each part of a node.
const BUDGET: usize = 1 << 16;
const BUDGET_OF_PART: usize = 4;
/// Sequences and alternatives within others of their kind are spliced up to this length.
const MAX_SPLICED: usize = 16;

/// Folds what is regular into lexemes. The texts stay the same.
pub fn fold_regular(grammar: &mut Grammar) -> Result<(), LimitExceeded> {
    let (languages, budget) = analyse(grammar, None);
    let copies = vec![None; grammar.num_nodes()];
    let mut folding = Folding { old: grammar, languages, budget, new: Grammar::new(), copies };
    let mut bodies = Vec::with_capacity(grammar.rules.len());
    for rule in &grammar.rules {
        bodies.push(rule.body.map(|body| folding.copy(body)).transpose()?);
    }
    let start = grammar.start.map(|start| folding.copy(start)).transpose()?;
    let Grammar { nodes, ids, .. } = folding.new;
    grammar.nodes = nodes;
    grammar.ids = ids;
    for (rule, body) in grammar.rules.iter_mut().zip(bodies) {
        rule.body = body;
    }
    grammar.start = start;
    Ok(())
}

/// Passes each regular rule that is not too large to a visitor, its dependencies first. References
/// to the rule use the language that the visitor returns; with `None` they stay. Rules without a
/// node of their own are not visited.
pub fn visit_rules(grammar: &Grammar, mut visitor: impl FnMut(RuleId, &Ast) -> Option<Ast>) {
    analyse(grammar, Some(&mut visitor));
}

/// A language, with what it costs to write it out.
#[derive(Clone, Debug)]
struct Regular {
    language: Ast,
    weight: usize,
    depth: usize,
}

impl Regular {
    fn new(language: Ast) -> Option<Self> {
        let (weight, depth) = weight(&language);
        (weight <= MAX_WEIGHT && depth <= MAX_DEPTH).then_some(Self { language, weight, depth })
    }
}

/// The size of a language, about in expressions, and how deeply it nests.
fn weight(language: &Ast) -> (usize, usize) {
    const RANGES: usize = 4;
    const BYTES: usize = 16;
    match language {
        Ast::Empty | Ast::Epsilon | Ast::Magnitude(_) | Ast::Finite(_) => (1, 1),
        Ast::Class(class) => (1 + class.ranges().len() / RANGES, 1),
        Ast::Literal(text) => (1 + text.len() / BYTES, 1),
        Ast::Substring(chunks) => (1 + chunks.texts().len() + chunks.num_bytes() / BYTES, 1),
        Ast::Concat(parts) | Ast::Alternation(parts) | Ast::Intersection(parts) => {
            let parts = parts.iter().map(weight);
            let (sum, deepest) = parts.fold((1usize, 0), |(sum, deepest), (weight, depth)| {
                (sum.saturating_add(weight), deepest.max(depth))
            });
            (sum, deepest + 1)
        }
        Ast::Repeat { inner, .. }
        | Ast::Complement(inner)
        | Ast::Before(inner)
        | Ast::After(inner) => {
            let (weight, depth) = weight(inner);
            (weight + 1, depth + 1)
        }
        Ast::Approximate { known, possible } => {
            let (known, possible) = (weight(known), weight(possible));
            (known.0 + possible.0, known.1.max(possible.1) + 1)
        }
    }
}

/// Returns the language of a reference to a rule.
type ChangeRule<'c> = &'c mut dyn FnMut(RuleId, &Ast) -> Option<Ast>;

/// Whether a language is made of concatenations, alternations and repetitions.
fn is_plain(language: &Ast) -> bool {
    match language {
        Ast::Intersection(_) | Ast::Complement(_) => false,
        Ast::Concat(parts) | Ast::Alternation(parts) => parts.iter().all(is_plain),
        Ast::Repeat { inner, .. } => is_plain(inner),
        _ => true,
    }
}

/// The languages of the nodes of a grammar.
struct NodeLanguages {
    /// The language of each regular node.
    of: Vec<Option<Regular>>,
    /// In how many places each node is used.
    uses: Vec<u32>,
}

/// Computes the languages of the nodes, parts first.
fn analyse(grammar: &Grammar, mut change: Option<ChangeRule<'_>>) -> (NodeLanguages, usize) {
    let count = grammar.num_nodes();
    let mut uses = vec![0u32; count];
    let mut budget = BUDGET;
    for node in &grammar.nodes {
        for &child in node.children() {
            uses[child.0 as usize] += 1;
        }
        budget += BUDGET_OF_PART * (1 + node.children().len());
    }
    let mut languages = NodeLanguages { of: vec![None; count], uses };
    let mut states = vec![FoldState::New; count];
    let mut stack: Vec<(NodeId, usize)> = Vec::new();
    for root in 0..count {
        stack.push((NodeId(root as u32), 0));
        while let Some((id, next)) = stack.pop() {
            let index = id.0 as usize;
            if next == 0 && states[index] != FoldState::New {
                // An open node refers to itself, so it has no language.
                continue;
            }
            states[index] = FoldState::Open;
            if let Some(below) = grammar.below(id, next) {
                stack.push((id, next + 1));
                stack.push((below, 0));
                continue;
            }
            languages.of[index] = languages.find(grammar, id, &mut budget, &mut change);
            states[index] = FoldState::Done;
        }
    }
    (languages, budget)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FoldState {
    New,
    Open,
    Done,
}

impl Node {
    /// Returns the parts of the node, without the bodies of rules.
    pub(super) fn children(&self) -> &[NodeId] {
        match self {
            Self::Seq(parts) | Self::Choice(parts) => parts,
            Self::Repeat { inner, .. }
            | Self::Guard(_, inner)
            | Self::Span(_, inner)
            | Self::Limit { inner, .. } => std::slice::from_ref(inner),
            Self::Rule(..) | Self::Lexeme(_) | Self::Tokens(_) | Self::Json(_) => &[],
        }
    }
}

impl Grammar {
    /// The part of a node with a number; of a rule its body.
    fn below(&self, id: NodeId, index: usize) -> Option<NodeId> {
        match self.node(id) {
            Node::Rule(rule, _) if index == 0 => self.rules[rule.0 as usize].body,
            node => node.children().get(index).copied(),
        }
    }
}

impl NodeLanguages {
    fn of(&self, id: NodeId) -> Option<&Regular> {
        self.of[id.0 as usize].as_ref()
    }

    fn find(
        &self,
        grammar: &Grammar,
        id: NodeId,
        budget: &mut usize,
        change: &mut Option<ChangeRule<'_>>,
    ) -> Option<Regular> {
        match grammar.node(id) {
            Node::Lexeme(Lexeme { language, lexing: Lexing::Anywhere }) => {
                let apart = language.looks_around() != Look::Nowhere
                    || language.is_approximate()
                    || change.is_none() && !is_plain(language);
                if apart {
                    None
                } else {
                    Regular::new(language.clone())
                }
            }
            Node::Seq(parts) => self.join(parts, budget, concat),
            // A rule without texts keeps its place.
            Node::Choice(parts) if parts.is_empty() && change.is_none() => None,
            Node::Choice(parts) => self.join(parts, budget, alternation),
            &Node::Repeat { inner, min, max } => self.join(&[inner], budget, |parts| {
                let inner = parts.first().cloned().unwrap_or(Ast::Empty);
                Ast::repeat(inner, min, max)
            }),
            &Node::Rule(rule, Argument::None) => {
                let regular = self.of(grammar.rules[rule.0 as usize].body?)?;
                match change {
                    Some(change) => Regular::new(change(rule, &regular.language)?),
                    None => Some(regular.clone()),
                }
            }
            _ => None,
        }
    }

    /// The joint language of several nodes, if all have one and it is not too large.
    fn join(
        &self,
        parts: &[NodeId],
        budget: &mut usize,
        how: impl FnOnce(Vec<Ast>) -> Ast,
    ) -> Option<Regular> {
        let mut run = Run::default();
        for &part in parts {
            let regular = self.of(part)?;
            if !run.push(regular, self.uses[part.0 as usize], budget) {
                return None;
            }
        }
        let (weight, depth) = (run.weight + 1, run.depth + 1);
        Some(Regular { language: how(run.parts), weight, depth })
    }
}

/// Adjacent languages to merge.
#[derive(Default)]
struct Run {
    parts: Vec<Ast>,
    weight: usize,
    depth: usize,
}

impl Run {
    /// `false` if that would be too much.
    fn push(&mut self, part: &Regular, uses: u32, budget: &mut usize) -> bool {
        if self.weight + part.weight >= MAX_WEIGHT || part.depth >= MAX_DEPTH {
            return false;
        }
        if uses > 1 {
            if part.weight > MAX_SHARED || part.weight > *budget {
                return false;
            }
            *budget -= part.weight;
        }
        self.parts.push(part.language.clone());
        self.weight += part.weight;
        self.depth = self.depth.max(part.depth);
        true
    }
}

/// One after the other. Strings side by side become one.
fn concat(parts: Vec<Ast>) -> Ast {
    let mut joined: Vec<Ast> = Vec::with_capacity(parts.len());
    let mut text = String::new();
    let close = |joined: &mut Vec<Ast>, text: &mut String| {
        if !text.is_empty() {
            joined.push(Ast::literal(text));
            text.clear();
        }
    };
    let mut add = |joined: &mut Vec<Ast>, part: &Ast| match part {
        Ast::Epsilon => {}
        Ast::Literal(more) => text.push_str(more),
        other => {
            close(joined, &mut text);
            joined.push(other.clone());
        }
    };
    for part in &parts {
        match part {
            Ast::Empty => return Ast::Empty,
            Ast::Concat(inner) if inner.len() <= MAX_SPLICED => {
                inner.iter().for_each(|part| add(&mut joined, part));
            }
            other => add(&mut joined, other),
        }
    }
    close(&mut joined, &mut text);
    match joined.len() {
        0 => Ast::Epsilon,
        1 => joined.swap_remove(0),
        _ => Ast::Concat(joined.into()),
    }
}

/// Any of them. Characters become one class.
fn alternation(parts: Vec<Ast>) -> Ast {
    let mut joined: Vec<Ast> = Vec::with_capacity(parts.len());
    let mut ranges = Vec::new();
    let mut add = |part: &Ast| match part {
        Ast::Empty => {}
        Ast::Class(class) => ranges.extend_from_slice(class.ranges()),
        other => joined.push(other.clone()),
    };
    for part in &parts {
        match part {
            Ast::Alternation(inner) if inner.len() <= MAX_SPLICED => {
                inner.iter().for_each(&mut add)
            }
            other => add(other),
        }
    }
    if !ranges.is_empty() {
        joined.push(Ast::Class(ffwd_regular::regex::CharClass::new(ranges)));
    }
    match joined.len() {
        0 => Ast::Empty,
        1 => joined.swap_remove(0),
        _ => Ast::Alternation(joined.into()),
    }
}

/// Writes a grammar anew.
struct Folding<'g> {
    old: &'g Grammar,
    languages: NodeLanguages,
    budget: usize,
    new: Grammar,
    copies: Vec<Option<NodeId>>,
}

impl Folding<'_> {
    /// Copies a node with all its parts.
    fn copy(&mut self, root: NodeId) -> Result<NodeId, LimitExceeded> {
        let mut stack = vec![(root, false)];
        while let Some((id, parts_done)) = stack.pop() {
            let index = id.0 as usize;
            if self.copies[index].is_some() || self.languages.of(id).is_some() {
                continue;
            }
            let children = self.old.node(id).children();
            if !parts_done && !children.is_empty() {
                stack.push((id, true));
                stack.extend(children.iter().map(|&child| (child, false)));
                continue;
            }
            let copy = self.node(id)?;
            self.copies[index] = Some(copy);
        }
        self.copied(root)
    }

    /// Returns the copy of a node that was copied or is regular.
    fn copied(&mut self, id: NodeId) -> Result<NodeId, LimitExceeded> {
        match (self.languages.of(id), self.copies[id.0 as usize]) {
            (Some(regular), _) => self.new.text(regular.language.clone()),
            (None, Some(copy)) => Ok(copy),
            (None, None) => self.new.choice(Vec::new()),
        }
    }

    /// A node that is not regular as a whole, whose parts were copied.
    fn node(&mut self, id: NodeId) -> Result<NodeId, LimitExceeded> {
        match self.old.node(id) {
            Node::Seq(parts) => {
                let parts = self.sequence(parts)?;
                self.new.seq(parts)
            }
            Node::Choice(parts) => {
                let parts = self.alternatives(parts)?;
                self.new.choice(parts)
            }
            &Node::Repeat { inner, min, max } => {
                let inner = self.copied(inner)?;
                self.new.repeat(inner, min, max)
            }
            Node::Guard(condition, inner) => {
                let inner = self.copied(*inner)?;
                self.new.add(Node::Guard(condition.clone(), inner))
            }
            &Node::Span(span, inner) => {
                let inner = self.copied(inner)?;
                self.new.add(Node::Span(span, inner))
            }
            &Node::Limit { max_tokens, inner } => {
                let inner = self.copied(inner)?;
                self.new.limit(max_tokens, inner)
            }
            other => self.new.add(other.clone()),
        }
    }

    /// Makes one lexeme of each run of regular parts.
    fn sequence(&mut self, parts: &Arc<[NodeId]>) -> Result<Vec<NodeId>, LimitExceeded> {
        let mut copies = Vec::with_capacity(parts.len());
        let mut run = Run::default();
        for &part in parts.iter() {
            let uses = self.languages.uses[part.0 as usize];
            let regular = self.languages.of(part);
            if regular.is_some_and(|part| run.push(part, uses, &mut self.budget)) {
                continue;
            }
            self.close(&mut run, concat, &mut copies)?;
            // A part that is too large for its neighbours may start a run of its own.
            let regular = self.languages.of(part);
            if !regular.is_some_and(|part| run.push(part, uses, &mut self.budget)) {
                copies.push(self.copied(part)?);
            }
        }
        self.close(&mut run, concat, &mut copies)?;
        Ok(copies)
    }

    /// Makes one lexeme of the regular alternatives.
    fn alternatives(&mut self, parts: &Arc<[NodeId]>) -> Result<Vec<NodeId>, LimitExceeded> {
        let mut copies = Vec::with_capacity(parts.len());
        let mut run = Run::default();
        for &part in parts.iter() {
            let uses = self.languages.uses[part.0 as usize];
            let regular = self.languages.of(part);
            if regular.is_some_and(|part| run.push(part, uses, &mut self.budget)) {
                continue;
            }
            if run.weight + MAX_SHARED >= MAX_WEIGHT {
                self.close(&mut run, alternation, &mut copies)?;
            }
            copies.push(self.copied(part)?);
        }
        self.close(&mut run, alternation, &mut copies)?;
        Ok(copies)
    }

    fn close(
        &mut self,
        run: &mut Run,
        how: impl FnOnce(Vec<Ast>) -> Ast,
        copies: &mut Vec<NodeId>,
    ) -> Result<(), LimitExceeded> {
        let run = std::mem::take(run);
        if !run.parts.is_empty() {
            copies.push(self.new.text(how(run.parts))?);
        }
        Ok(())
    }
}
