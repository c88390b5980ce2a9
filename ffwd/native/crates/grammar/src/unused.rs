//! Rules that no text needs.

use std::sync::Arc;

use super::source::Excerpt;
use super::{Grammar, Node, NodeId, Place, SourceId};

/// A rule, or a terminal, that the start does not reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedRule {
    /// As its source names it.
    pub name: Arc<str>,
    /// Where its source defines it.
    pub place: Option<Place>,
}

impl Grammar {
    /// The rules that a start does not reach, in the order of their sources. They have no effect,
    /// and only their syntax is checked.
    pub fn unused_rules(&self, start: NodeId) -> Vec<UnusedRule> {
        let mut seen = vec![false; self.num_nodes()];
        let mut used = vec![false; self.rules.len()];
        let mut pending = vec![start];
        while let Some(id) = pending.pop() {
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            match self.node(id) {
                &Node::Rule(rule, _) => {
                    used[rule.0 as usize] = true;
                    pending.extend(self.rules[rule.0 as usize].body);
                }
                node => pending.extend_from_slice(node.children()),
            }
        }
        let declared = self.rules.iter().zip(used).filter(|(_, used)| !used);
        let declared = declared.map(|(rule, _)| rule.as_unused());
        let mut unused: Vec<UnusedRule> = declared.chain(self.unused.iter().cloned()).collect();
        unused.sort_by_key(|rule| rule.place.map_or((1, None), |place| (0, Some(place))));
        unused
    }

    /// The notation, line and column of each of these places, which are sorted. Linear, because
    /// texts may have very many rules.
    pub fn positions(&self, rules: &[UnusedRule]) -> Vec<Option<(&'static str, usize, usize)>> {
        let mut read = Place { source: SourceId(u32::MAX), offset: 0 };
        let (mut line, mut column) = (1, 1);
        let mut position = |place: Place| {
            let source = self.sources.get(place.source.0 as usize)?;
            if place.source != read.source {
                read = Place { offset: 0, ..place };
                (line, column) = (1, 1);
            }
            let between = source.text.get(read.offset as usize..place.offset as usize)?;
            line += between.bytes().filter(|&byte| byte == b'\n').count();
            column = match between.rfind('\n') {
                Some(end) => between[end..].chars().count(),
                None => column + between.chars().count(),
            };
            read = place;
            Some((source.kind, line, column))
        };
        rules.iter().map(|rule| rule.place.and_then(&mut position)).collect()
    }

    /// Returns the notation and the excerpt of a position.
    pub fn excerpt(&self, place: Place) -> Option<(&'static str, Excerpt)> {
        let source = self.sources.get(place.source.0 as usize)?;
        Some((source.kind, Excerpt::at(&source.text, place.offset as usize)))
    }
}

impl super::Rule {
    fn as_unused(&self) -> UnusedRule {
        UnusedRule { name: self.name.clone(), place: self.place }
    }
}
