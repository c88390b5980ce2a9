//! The names of a grammar's parts in messages.

use std::fmt;

use rustc_hash::FxHashSet;

use super::source::Excerpt;
use super::{Grammar, Node, NodeId, Rule};

/// A part of a grammar for people: its rule, and its position in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The rule, if the place is in one.
    pub rule: Option<String>,
    /// The notation of the source, and the position.
    pub place: Option<(&'static str, Excerpt)>,
}

impl Described {
    /// Line and column, from 1.
    pub fn line_and_column(&self) -> Option<(usize, usize)> {
        self.place.as_ref().map(|(_, excerpt)| (excerpt.line, excerpt.column))
    }
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => write!(f, "a part of the rule `{rule}`")?,
            None => f.write_str("a part of the grammar")?,
        }
        if let Some((source, Excerpt { line, column, .. })) = &self.place {
            write!(f, " ({source}, line {line}, column {column})")?;
        }
        Ok(())
    }
}

impl Grammar {
    /// The first rule that has a node in its body, and its place.
    pub fn described(&self, node: NodeId) -> Described {
        self.described_rule(self.rule_with(node))
    }

    /// The first rule that has a node in its body.
    pub fn rule_with(&self, node: NodeId) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.body.is_some_and(|body| self.has(body, node)))
    }

    /// Describes a grammar by its start, without more precise information.
    pub fn described_limits(&self) -> Described {
        self.described_rule(self.rules.first())
    }

    fn described_rule(&self, rule: Option<&Rule>) -> Described {
        let place = rule.and_then(|rule| rule.place).and_then(|place| {
            let source = self.sources.get(place.source.0 as usize)?;
            Some((source.kind, Excerpt::at(&source.text, place.offset as usize)))
        });
        Described { rule: rule.map(|rule| rule.name.to_string()), place }
    }

    /// Returns whether a node is part of another one, without following other rules.
    fn has(&self, body: NodeId, wanted: NodeId) -> bool {
        let mut pending = vec![body];
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        while let Some(node) = pending.pop() {
            if node == wanted {
                return true;
            }
            if !seen.insert(node) {
                continue;
            }
            match self.node(node) {
                Node::Seq(parts) | Node::Choice(parts) => pending.extend_from_slice(parts),
                Node::Repeat { inner, .. }
                | Node::Guard(_, inner)
                | Node::Span(_, inner)
                | Node::Limit { inner, .. } => pending.push(*inner),
                Node::Rule(..) | Node::Lexeme(_) | Node::Tokens(_) | Node::Json(_) => {}
            }
        }
        false
    }
}
