//! Regular grammars as one expression, for intersections and complements.

use super::{Argument, Grammar, GrammarError, GrammarErrorKind, Lexing, Node, NodeId, RuleId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::regex::{Ast, Look};

/// How many nodes the expression may have, shared ones counted as often as they occur.
const MAX_SIZE: usize = 1 << 20;
/// How deep it may nest.
const MAX_DEPTH: usize = 500;

/// The language of one node, with what it takes.
#[derive(Clone)]
struct NodeLanguage {
    ast: Ast,
    size: usize,
    depth: usize,
}

/// The language of a node.
///
/// # Errors It is not known to be regular: it has a JSON Schema, tokens, a recursive rule, a lexer,
/// or a feature of grammars only, such as a limit in tokens. Or a part of a sequence has a
/// lookaround, whose context is unknown there. Or the expression would be too large.
pub fn language(grammar: &Grammar, root: NodeId) -> Result<Ast, GrammarError> {
    let mut known: rustc_hash::FxHashMap<NodeId, NodeLanguage> = rustc_hash::FxHashMap::default();
    let mut open: rustc_hash::FxHashSet<NodeId> = rustc_hash::FxHashSet::default();
    let mut pending = vec![root];
    while let Some(&id) = pending.last() {
        if known.contains_key(&id) {
            pending.pop();
            continue;
        }
        let parts = parts(grammar, id)?;
        let missing: Vec<NodeId> =
            parts.iter().copied().filter(|part| !known.contains_key(part)).collect();
        if missing.is_empty() {
            pending.pop();
            open.remove(&id);
            let parts: Vec<NodeLanguage> = parts.iter().map(|part| known[part].clone()).collect();
            known.insert(id, combine(grammar.node(id), &parts)?);
            continue;
        }
        // A second visit with a part missing: the node is part of itself.
        if !open.insert(id) {
            return Err(refused(grammar, id, "a rule that uses itself"));
        }
        pending.extend(missing);
    }
    Ok(known.remove(&root).map_or(Ast::Empty, |language| language.ast))
}

/// Returns the parts of a node, if they can be regular.
fn parts(grammar: &Grammar, id: NodeId) -> Result<Vec<NodeId>, GrammarError> {
    let unsupported = |feature| Err(refused(grammar, id, feature));
    match grammar.node(id) {
        Node::Seq(parts) | Node::Choice(parts) => Ok(parts.to_vec()),
        Node::Repeat { inner, .. } => Ok(vec![*inner]),
        Node::Rule(RuleId(rule), Argument::None) => {
            match grammar.rules.get(*rule as usize).and_then(|rule| rule.body) {
                Some(body) => Ok(vec![body]),
                None => unsupported("a rule that is not defined"),
            }
        }
        Node::Lexeme(lexeme) if lexeme.lexing == Lexing::Anywhere => Ok(Vec::new()),
        Node::Lexeme(_) => unsupported("a lexer, whose terminals are the longest that match,"),
        Node::Rule(..) | Node::Guard(..) => unsupported("a rule with a parameter"),
        Node::Tokens(_) => unsupported("a token"),
        Node::Json(_) => unsupported("a JSON Schema"),
        Node::Span(..) => unsupported("a span that is reported"),
        Node::Limit { .. } => unsupported("a limit in tokens"),
    }
}

fn combine(node: &Node, parts: &[NodeLanguage]) -> Result<NodeLanguage, GrammarError> {
    let asts = || parts.iter().map(|part| part.ast.clone());
    let looks = || parts.iter().any(|part| part.ast.looks_around() != Look::Nowhere);
    let copies = match node {
        Node::Seq(_) => parts.len() > 1,
        Node::Repeat { max, .. } => *max != Some(1),
        _ => false,
    };
    if copies && looks() {
        let feature = "a pattern that looks around itself";
        return Err(GrammarError {
            kind: GrammarErrorKind::Unsupported(feature),
            message: format!("an intersection or complement with {feature} as a part of something"),
            place: None,
        });
    }
    let size = parts.iter().fold(1, |sum: usize, part| sum.saturating_add(part.size));
    let depth = 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0);
    if size > MAX_SIZE {
        return Err(LimitExceeded::new("language_size", MAX_SIZE).into());
    }
    if depth > MAX_DEPTH {
        return Err(LimitExceeded::new("language_nesting", MAX_DEPTH).into());
    }
    let ast = match node {
        Node::Seq(_) => Ast::concat(asts()),
        Node::Choice(_) => Ast::alternation(asts()),
        Node::Repeat { min, max, .. } => {
            Ast::repeat(asts().next().unwrap_or(Ast::Epsilon), *min, *max)
        }
        Node::Lexeme(lexeme) => {
            return Ok(NodeLanguage {
                size: 1 + lexeme.language.memory_bytes() / 32,
                ast: lexeme.language.clone(),
                depth,
            });
        }
        // A rule is its body; nothing else has got here.
        _ => Ast::alternation(asts()),
    };
    Ok(NodeLanguage { ast, size, depth })
}

fn refused(grammar: &Grammar, id: NodeId, feature: &'static str) -> GrammarError {
    let place = match grammar.node(id) {
        Node::Rule(RuleId(rule), _) => {
            grammar.rules.get(*rule as usize).and_then(|rule| rule.place)
        }
        _ => None,
    };
    let message = format!(
        "{feature} cannot be part of an intersection or complement: only texts, patterns, choices, \
         sequences and repetitions of them can"
    );
    GrammarError::of(grammar, place, GrammarErrorKind::Unsupported(feature), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenSet;
    use ffwd_regular::regex::oracle::matches;
    use ffwd_regular::regex::{parse, Dialect, PatternOptions};

    fn pattern(text: &str) -> Ast {
        parse(text, &PatternOptions::new(Dialect::Python)).unwrap()
    }

    #[test]
    fn regular_grammars_are_one_expression() {
        let mut grammar = Grammar::new();
        let word = grammar.text(pattern("[ab]+")).unwrap();
        let rule = grammar.declare("words", None).unwrap();
        let comma = grammar.text(Ast::literal(",")).unwrap();
        let more = grammar.seq(vec![comma, word]).unwrap();
        let many = grammar.repeat(more, 1, Some(2)).unwrap();
        let body = grammar.seq(vec![word, many]).unwrap();
        grammar.define(rule, body);
        let used = grammar.rule(rule).unwrap();
        let either = grammar.choice(vec![used, comma]).unwrap();
        let language = language(&grammar, either).unwrap();
        for (text, expected) in
            [("ab,a", true), (",", true), ("a,b,a", true), ("a", false), ("a,b,a,b", false)]
        {
            assert_eq!(matches(&language, text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_regular_is_refused_by_name() {
        let mut grammar = Grammar::new();
        let letter = grammar.text(Ast::literal("a")).unwrap();
        let rule = grammar.declare("nested", None).unwrap();
        let used = grammar.rule(rule).unwrap();
        let body = grammar.seq(vec![letter, used, letter]).unwrap();
        grammar.define(rule, body);
        let schema = grammar.json("true", None).unwrap();
        let tokens = TokenSet { items: Box::new([]), exclude: true, place: None };
        let token = grammar.add(Node::Tokens(tokens.into())).unwrap();
        let limit = grammar.limit(3, letter).unwrap();
        let boundary = grammar.text(pattern(r"a\b.*")).unwrap();
        let part = grammar.seq(vec![boundary, letter]).unwrap();
        for node in [used, body, schema, token, limit, part] {
            let error = language(&grammar, node).unwrap_err();
            assert!(matches!(error.kind, GrammarErrorKind::Unsupported(_)), "{error}");
        }
        assert!(language(&grammar, boundary).is_ok());
    }

    #[test]
    fn shared_and_nested_parts_have_limits() {
        let mut grammar = Grammar::new();
        let mut node = grammar.text(Ast::literal("a")).unwrap();
        let (mut shared, mut nested) = (node, node);
        for _ in 0..100 {
            shared = grammar.seq(vec![shared, shared]).unwrap();
        }
        for count in 0..100_000 {
            nested = grammar.choice(vec![nested, node]).unwrap();
            node = grammar.repeat(nested, 1, Some(2 + count)).unwrap();
        }
        for node in [shared, nested, node] {
            let error = language(&grammar, node).unwrap_err();
            assert!(matches!(error.kind, GrammarErrorKind::Limit(_)), "{error}");
        }
    }
}
