//! The names of a grammar's nodes in the source.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::pattern;
use ffwd_grammar::{Excerpt, Grammar, Node, NodeId, RuleId, TokenItem};

/// How many rules of one terminal are named, and how many nodes are searched for them.
const MAX_RULES: usize = 4;
const MAX_STEPS: usize = 10_000;
/// How many tokens of a set are named.
const MAX_TOKENS: usize = 8;

/// A rule, and where its source has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePlace {
    /// As the source of the grammar names the rule.
    pub name: Arc<str>,
    /// The notation of the source, and line and column from 1.
    pub place: Option<(&'static str, usize, usize)>,
}

/// The nodes that have a node as a part, and the rules whose body it is.
pub struct Names<'g> {
    grammar: &'g Grammar,
    parents: FxHashMap<NodeId, Vec<NodeId>>,
    bodies: FxHashMap<NodeId, Vec<RuleId>>,
}

impl<'g> Names<'g> {
    pub fn of(grammar: &'g Grammar) -> Self {
        let mut parents: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for id in (0..grammar.num_nodes() as u32).map(NodeId) {
            let parts: &[NodeId] = match grammar.node(id) {
                Node::Seq(parts) | Node::Choice(parts) => parts,
                Node::Repeat { inner, .. }
                | Node::Guard(_, inner)
                | Node::Span(_, inner)
                | Node::Limit { inner, .. } => std::slice::from_ref(inner),
                Node::Rule(..) | Node::Lexeme(_) | Node::Tokens(_) | Node::Json(_) => &[],
            };
            for &part in parts {
                parents.entry(part).or_default().push(id);
            }
        }
        let mut bodies: FxHashMap<NodeId, Vec<RuleId>> = FxHashMap::default();
        for (rule, body) in grammar.rules.iter().map(|rule| rule.body).enumerate() {
            if let Some(body) = body {
                bodies.entry(body).or_default().push(RuleId(rule as u32));
            }
        }
        Self { grammar, parents, bodies }
    }

    /// The rules that have a node in their bodies, the first ones.
    pub fn rules_with(&self, node: NodeId) -> Vec<RulePlace> {
        let mut rules: Vec<RuleId> = Vec::new();
        let mut pending = vec![node];
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        while let Some(node) = pending.pop() {
            if !seen.insert(node) || seen.len() > MAX_STEPS {
                continue;
            }
            rules.extend(self.bodies.get(&node).into_iter().flatten());
            pending.extend(self.parents.get(&node).into_iter().flatten());
        }
        rules.sort_unstable();
        rules.dedup();
        rules.truncate(MAX_RULES);
        rules.into_iter().map(|rule| self.rule(rule)).collect()
    }

    fn rule(&self, rule: RuleId) -> RulePlace {
        let rule = &self.grammar.rules[rule.0 as usize];
        let place = rule.place.and_then(|place| {
            let source = self.grammar.sources.get(place.source.0 as usize)?;
            let excerpt = Excerpt::at(&source.text, place.offset as usize);
            Some((source.kind, excerpt.line, excerpt.column))
        });
        RulePlace { name: rule.name.clone(), place }
    }

    /// The description of a lexeme or a set of tokens.
    pub fn shown(&self, node: NodeId) -> String {
        match self.grammar.node(node) {
            Node::Lexeme(lexeme) => pattern::shown(&lexeme.language),
            Node::Tokens(set) => {
                let named = set.items.iter().take(MAX_TOKENS).map(|item| match item {
                    TokenItem::Named(name) => name.to_string(),
                    TokenItem::Ids(first, last) if first == last => format!("<[{first}]>"),
                    TokenItem::Ids(first, last) => format!("<[{first}-{last}]>"),
                });
                let mut all = named.collect::<Vec<_>>().join(", ");
                if set.items.len() > MAX_TOKENS {
                    all.push_str(&format!(" and {} more", set.items.len() - MAX_TOKENS));
                }
                match (set.exclude, set.items.is_empty()) {
                    (true, true) => "any token".to_owned(),
                    (true, false) => format!("any token but {all}"),
                    (false, _) => format!("the token {all}"),
                }
            }
            _ => "a part of the grammar".to_owned(),
        }
    }

    /// The text of a lexeme that has only one.
    pub fn literal(&self, node: NodeId) -> Option<&'g str> {
        match self.grammar.node(node) {
            Node::Lexeme(lexeme) => match &lexeme.language {
                ffwd_regular::regex::Ast::Literal(text) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }
}
