//! Finds the terminal that consumes what must follow it, if longest matches leave no text.
//!
//! Followed by a character that no terminal can consume, the culprit would give the grammar a text:
//! each terminal is tried. If several are at fault, it is the first of a smallest set of them.

use std::sync::Arc;

use super::{Engine, GrammarOptions};
use ffwd_grammar::graph::Expansion;
use ffwd_grammar::{Grammar, GrammarError, GrammarErrorKind, Lexing, Longest, Node, NodeId, Rule};

/// The most terminals and nodes of a tried grammar; a larger one blames the first terminal found.
const MAX_TERMINALS: usize = 24;
const MAX_NODES: usize = 4_096;

/// The terminal at fault; `None` if that takes too long to find.
pub(super) fn find(
    engine: &Arc<Engine>,
    grammar: &Grammar,
    options: &GrammarOptions,
) -> Option<NodeId> {
    let all: Vec<NodeId> = (0..grammar.num_nodes() as u32).map(NodeId).collect();
    let all: Vec<NodeId> = all.into_iter().filter(|&node| is_longest(grammar, node)).collect();
    if all.len() > MAX_TERMINALS || grammar.num_nodes() > MAX_NODES {
        return None;
    }
    let has_text = |ended: &[NodeId]| -> Option<bool> {
        let mut grammar = grammar.clone();
        grammar.separate(ended).ok()?;
        let done = engine.compile_as_it_is(&grammar, options.clone(), false, Expansion::AsNeeded);
        match done {
            Ok(_) => Some(true),
            Err(error) if error.exceeded().is_some() => None,
            Err(_) => Some(false),
        }
    };
    for &node in &all {
        if has_text(&[node])? {
            return Some(node);
        }
    }
    if !has_text(&all)? {
        return None;
    }
    let mut least = all.clone();
    for node in all.into_iter().rev() {
        let without: Vec<NodeId> = least.iter().copied().filter(|&other| other != node).collect();
        if has_text(&without)? {
            least = without;
        }
    }
    least.first().copied()
}

fn is_longest(grammar: &Grammar, node: NodeId) -> bool {
    let greedy = |lexing: &Lexing| {
        matches!(lexing, Lexing::Longest { lexing: Longest::Greedy | Longest::Ignored, .. })
    };
    matches!(grammar.node(node), Node::Lexeme(lexeme) if greedy(&lexeme.lexing))
}

/// The error of a grammar whose longest matches leave no continuation.
pub(super) fn error(grammar: &Grammar, node: NodeId) -> GrammarError {
    let is_own = |rule: &&Rule| rule.body.is_some_and(|body| is_lexeme_of(grammar, body, node));
    // Terminals with the same pattern are one.
    let own: Vec<&Rule> = grammar.rules.iter().filter(is_own).collect();
    let around = || grammar.rule_with(node);
    let which = match (&own[..], around()) {
        ([], Some(rule)) => format!("a terminal of the rule `{}`", rule.name),
        ([], None) => "a terminal".to_owned(),
        (rules, _) => {
            let names: Vec<String> = rules.iter().map(|rule| format!("`{}`", rule.name)).collect();
            format!("the terminal {}", names.join(" or "))
        }
    };
    GrammarError::of(
        grammar,
        own.first().copied().or_else(around).and_then(|rule| rule.place),
        GrammarErrorKind::Swallowed,
        format!(
            "the grammar matches no text: {which} takes all that could follow it, as terminals end \
             at their longest match; put another terminal between, or make it lazy"
        ),
    )
}

/// Whether a body is a lexeme, with what is ignored behind it.
fn is_lexeme_of(grammar: &Grammar, body: NodeId, lexeme: NodeId) -> bool {
    let mut body = body;
    loop {
        body = match grammar.node(body) {
            &Node::Limit { inner, .. } | &Node::Span(_, inner) => inner,
            Node::Seq(parts) => match **parts {
                [first, skip] if is_ignored(grammar, skip) => first,
                _ => return false,
            },
            _ => return body == lexeme,
        };
    }
}

/// Whether a part is the ignored text.
fn is_ignored(grammar: &Grammar, part: NodeId) -> bool {
    let mut part = part;
    while let &Node::Repeat { inner, .. } = grammar.node(part) {
        part = inner;
    }
    let ignored =
        |lexing: &Lexing| matches!(lexing, Lexing::Longest { lexing: Longest::Ignored, .. });
    matches!(grammar.node(part), Node::Lexeme(lexeme) if ignored(&lexeme.lexing))
}
