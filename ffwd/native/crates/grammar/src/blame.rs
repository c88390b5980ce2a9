//! The reason why a part of a grammar accepts no text.

use rustc_hash::FxHashMap;

use super::graph::{Graph, Vertex, VertexId};
use super::{Grammar, GrammarError, GrammarErrorKind, Node, Place, RuleId, TokenItem, TokenSet};

/// The reason at the end of the path from a part without texts.
struct Cause {
    why: String,
    /// The position, if it is more precise than the rule.
    place: Option<Place>,
}

impl Graph {
    /// Returns the error of a grammar whose start, or a rule that it reaches, accepts no text.
    /// `without` says of each rule whether it accepts no text with any parameter. The first such
    /// rule in the source is followed down to the part that by itself accepts none.
    pub(super) fn blame(&self, grammar: &Grammar, without: &[bool]) -> GrammarError {
        const LAST: Place = Place { source: super::SourceId(u32::MAX), offset: u32::MAX };
        let place = |rule: RuleId| grammar.rules[rule.0 as usize].place;
        let order = |rule: RuleId| (place(rule).unwrap_or(LAST), rule);
        let mut found: Vec<(VertexId, RuleId)> =
            self.rules.iter().map(|(&vertex, &rule)| (vertex, rule)).collect();
        found.retain(|(_, rule)| without[rule.0 as usize]);
        let first = found.into_iter().min_by_key(|&(vertex, rule)| (order(rule), vertex));
        let mut at = first.map_or(self.start, |(vertex, _)| vertex);
        // The rules whose bodies are the parts of the path. A body that only names another rule is
        // that rule's part.
        let mut path: Vec<Option<(bool, RuleId)>> = Vec::new();
        let mut steps: FxHashMap<VertexId, usize> = FxHashMap::default();
        let (begun, cause) = loop {
            if let Some(&begun) = steps.get(&at) {
                let why = "it needs itself without an alternative that ends".to_owned();
                break (begun, Cause { why, place: None });
            }
            steps.insert(at, path.len());
            let rule = self.rules.get(&at).copied().filter(|rule| without[rule.0 as usize]);
            let is_name = matches!(self.vertices[at.index()], Vertex::Same(_));
            path.push(rule.map(|rule| (is_name, rule)));
            let missing = self.vertices[at.index()]
                .children()
                .iter()
                .find(|child| !self.productive[child.index()]);
            match missing {
                Some(&child) => at = child,
                None => break (path.len(), cause(grammar, &self.vertices[at.index()])),
            }
        };
        // In a cycle it is the first in the source; otherwise the innermost.
        let circle = path[begun..].iter().flatten().copied();
        let before = path[..begun].iter().flatten().copied();
        let circle = circle.min_by_key(|&(is_name, rule)| (is_name, order(rule)));
        let rule = circle.or_else(|| before.last()).map(|(_, rule)| rule);
        let whose = match rule {
            Some(rule) => format!("the rule `{}`", grammar.rules[rule.0 as usize].name),
            None => "the grammar".to_owned(),
        };
        GrammarError::of(
            grammar,
            cause.place.or_else(|| rule.and_then(place)),
            GrammarErrorKind::NonProductive,
            format!("{whose} matches no text: {}", cause.why),
        )
    }
}

/// Returns why a part accepts no text, although all of its parts do.
fn cause(grammar: &Grammar, vertex: &Vertex) -> Cause {
    let because = |why: &str| Cause { why: why.to_owned(), place: None };
    match vertex {
        Vertex::Leaf(node) => match grammar.node(*node) {
            Node::Tokens(set) => Cause { why: without_tokens(set), place: set.place },
            _ => because("its text would have to satisfy conditions that contradict each other"),
        },
        Vertex::Later(_) => because("no value that its parameter comes to leads to an end"),
        Vertex::Never => because("the condition of none of its alternatives holds"),
        _ => because("it is a choice of nothing"),
    }
}

/// Why no token belongs to a set of known ones.
fn without_tokens(set: &TokenSet) -> String {
    if set.exclude {
        return "all tokens but those that end the output are excluded".to_owned();
    }
    let which = match *set.items {
        [] => return "it is a set of no tokens".to_owned(),
        [TokenItem::Named(ref name)] => format!("the token {name} ends"),
        [TokenItem::Ids(first, last)] if first == last => format!("the token {first} ends"),
        _ => "these tokens end".to_owned(),
    };
    format!(
        "{which} the output and cannot be part of a rule: leave that out, as an end token is \
         allowed wherever the text is complete"
    )
}
