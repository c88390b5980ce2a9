//! One grammar copied into another.

use super::{
    Grammar, JsonId, Lexeme, Lexing, Node, NodeId, Place, Rule, RuleId, ScopeId, SourceId,
};
use super::{SpanId, TokenSet, UnusedRule};
use ffwd_bounds::error::LimitExceeded;

impl Grammar {
    /// Copies a grammar, and returns the node of its start; `None` if it has none. Its rules stay
    /// separate, whatever their names are, and its lexemes compete only with each other.
    pub fn include(&mut self, other: &Self) -> Result<Option<NodeId>, LimitExceeded> {
        let Some(start) = other.start else { return Ok(None) };
        let offset = Offsets {
            rules: self.rules.len() as u32,
            json: self.json.len() as u32,
            spans: self.spans.len() as u32,
            sources: self.sources.len() as u32,
            scopes: self.num_scopes,
        };
        self.sources.extend(other.sources.iter().cloned());
        self.spans.extend(other.spans.iter().cloned());
        self.num_scopes += other.num_scopes;
        for rule in &other.unused {
            let place = rule.place.map(|place| offset.place(place));
            self.unused.push(UnusedRule { place, ..rule.clone() });
        }
        for json in &other.json {
            let place = json.place.map(|place| offset.place(place));
            self.json.push(super::Json { place, ..json.clone() });
        }
        for rule in &other.rules {
            let place = rule.place.map(|place| offset.place(place));
            self.declare(&rule.name, place)?;
        }
        // Children come before their parents.
        let mut copies: Vec<NodeId> = Vec::with_capacity(other.nodes.len());
        for node in &other.nodes {
            let copy = offset.node(node, &copies);
            copies.push(self.add(copy)?);
        }
        for (index, Rule { body, .. }) in other.rules.iter().enumerate() {
            if let Some(body) = body {
                self.define(RuleId(offset.rules + index as u32), copies[body.0 as usize]);
            }
        }
        Ok(Some(copies[start.0 as usize]))
    }
}

/// The offsets that are added to the copied ids.
struct Offsets {
    rules: u32,
    json: u32,
    spans: u32,
    sources: u32,
    scopes: u32,
}

impl Offsets {
    fn place(&self, place: Place) -> Place {
        Place { source: SourceId(place.source.0 + self.sources), ..place }
    }

    fn node(&self, node: &Node, copies: &[NodeId]) -> Node {
        let copy = |id: NodeId| copies[id.0 as usize];
        match node {
            Node::Seq(parts) => Node::Seq(parts.iter().map(|&part| copy(part)).collect()),
            Node::Choice(parts) => Node::Choice(parts.iter().map(|&part| copy(part)).collect()),
            &Node::Repeat { inner, min, max } => Node::Repeat { inner: copy(inner), min, max },
            &Node::Rule(rule, argument) => Node::Rule(RuleId(rule.0 + self.rules), argument),
            Node::Guard(condition, inner) => Node::Guard(condition.clone(), copy(*inner)),
            Node::Lexeme(Lexeme { language, lexing }) => {
                let lexing = match *lexing {
                    Lexing::Anywhere => Lexing::Anywhere,
                    Lexing::Longest { scope, lexing } => {
                        Lexing::Longest { scope: ScopeId(scope.0 + self.scopes), lexing }
                    }
                };
                Node::Lexeme(Lexeme { language: language.clone(), lexing })
            }
            Node::Tokens(tokens) => {
                let place = tokens.place.map(|place| self.place(place));
                Node::Tokens(TokenSet { place, ..TokenSet::clone(tokens) }.into())
            }
            &Node::Json(json) => Node::Json(JsonId(json.0 + self.json)),
            &Node::Span(span, inner) => Node::Span(SpanId(span.0 + self.spans), copy(inner)),
            &Node::Limit { max_tokens, inner } => Node::Limit { max_tokens, inner: copy(inner) },
        }
    }
}
