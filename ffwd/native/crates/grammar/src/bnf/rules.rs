//! The rules of a grammar by name, while it is read.

use rustc_hash::FxHashMap;

use super::text::Cursor;
use crate::{Grammar, GrammarError, GrammarErrorKind, NodeId, Place, RuleId, SourceId};

/// The names of rules, and where each was named first.
#[derive(Debug)]
pub(crate) struct Rules<'t> {
    source: SourceId,
    ids: FxHashMap<&'t str, RuleId>,
    /// In the order in which they were named first.
    named: Vec<(&'t str, usize)>,
}

impl<'t> Rules<'t> {
    pub fn new(source: SourceId) -> Self {
        Self { source, ids: FxHashMap::default(), named: Vec::new() }
    }

    pub fn place(&self, offset: usize) -> Option<Place> {
        Some(Place { source: self.source, offset: offset as u32 })
    }

    /// The rule with a name, if it was named.
    pub fn id(&self, name: &str) -> Option<RuleId> {
        self.ids.get(name).copied()
    }

    /// The rule with a name, which may yet have no body.
    pub fn named(
        &mut self,
        grammar: &mut Grammar,
        name: &'t str,
        offset: usize,
    ) -> Result<RuleId, GrammarError> {
        if let Some(&known) = self.ids.get(name) {
            return Ok(known);
        }
        let id = grammar.declare(name, self.place(offset))?;
        self.ids.insert(name, id);
        self.named.push((name, offset));
        Ok(id)
    }

    /// Gives a rule its body.
    pub fn define(
        &mut self,
        grammar: &mut Grammar,
        cursor: &Cursor<'_>,
        (name, offset): (&'t str, usize),
        body: NodeId,
    ) -> Result<(), GrammarError> {
        let id = self.named(grammar, name, offset)?;
        let place = self.place(offset);
        let rule = &mut grammar.rules[id.0 as usize];
        if rule.body.is_some() {
            let first = rule.place.map_or(0, |place| place.offset as usize);
            let first = cursor.line(first);
            let message = format!(
                "the rule `{name}` is defined twice, first in line {first}: give one of them \
                 another name, or join them with |"
            );
            return Err(cursor.error(offset, GrammarErrorKind::RepeatedRule, message));
        }
        rule.place = place;
        grammar.define(id, body);
        Ok(())
    }

    /// Checks that all named rules have a body, and makes one of them the start.
    pub fn finish(
        &self,
        grammar: &mut Grammar,
        cursor: &Cursor<'_>,
        root: &str,
    ) -> Result<(), GrammarError> {
        let unknown = |id: RuleId, grammar: &Grammar| grammar.rules[id.0 as usize].body.is_none();
        for &(name, offset) in &self.named {
            if unknown(self.ids[name], grammar) {
                let message =
                    format!("the rule `{name}` is not defined{}", self.alike(grammar, name));
                return Err(cursor.error(offset, GrammarErrorKind::UnknownRule, message));
            }
        }
        let Some(&id) = self.ids.get(root) else {
            let message = if self.named.is_empty() {
                format!("the grammar has no rules: it must begin with {root} ::= …")
            } else {
                format!(
                    "the rule `{root}`, with which a text begins, is not defined{}",
                    self.alike(grammar, root)
                )
            };
            return Err(cursor.error(0, GrammarErrorKind::UnknownRule, message));
        };
        let start = grammar.rule(id)?;
        grammar.start = Some(start);
        Ok(())
    }

    /// Suggests a rule with a similar name, or lists the rules.
    fn alike(&self, grammar: &Grammar, name: &str) -> String {
        const SHOWN: usize = 8;
        let plain = |name: &str| name.replace(['-', '_', '.'], "").to_lowercase();
        let defined = || {
            let names = self.named.iter().map(|&(name, _)| name);
            names.filter(|&name| grammar.rules[self.ids[name].0 as usize].body.is_some())
        };
        if let Some(meant) = defined().find(|other| plain(other) == plain(name)) {
            return format!(": is `{meant}` meant?");
        }
        let shown: Vec<String> = defined().take(SHOWN).map(|name| format!("`{name}`")).collect();
        let more = if defined().nth(SHOWN).is_some() { ", …" } else { "" };
        match shown.is_empty() {
            true => String::new(),
            false => format!("; the grammar has {}{more}", shown.join(", ")),
        }
    }
}
