//! Grammars that are put together node by node, with all kinds of nodes in each other: rules that
//! call each other in any way, tokens, schemas, lexemes, spans and limits.

use arbitrary::Unstructured;
use ffwd_bounds::error::LimitExceeded;
use ffwd_grammar::free_text;
use ffwd_grammar::{Grammar, NodeId, RuleId, SpanKind, TokenItem, TokenSet};
use ffwd_grammar::{Node, ScopeId};
use ffwd_regular::regex::{parse, Ast, Dialect, PatternOptions};

use crate::driver::Driver;
use crate::engine::{NAMED, OTHER};
use crate::rules;
use crate::shape::Shape;

const TEXTS: [&str; 10] = ["a", "b", "ab", "", "(", ")", ",", "é", "<a>", "\n"];
const PATTERNS: [&str; 10] =
    ["[a-c]+", "[0-9]{1,3}", "a*", "(?s:.)*", "ab|a", "[^<]*", "(a|b)?c", "\\w+", " +", "a{2,5}"];
const SCHEMAS: [&str; 6] = [
    "true",
    r#"{"type":"integer"}"#,
    r#"{"type":"string","maxLength":3}"#,
    r#"{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false}"#,
    r#"{"type":"array","items":{"enum":["a",1]},"maxItems":2}"#,
    r#"{"enum":["x","xy"]}"#,
];

pub fn run(data: &[u8]) {
    let (shape, steps) = data.split_at(data.len() / 2);
    let mut input = Unstructured::new(shape);
    let mut shape = Shape::new(&mut input, 40);
    if let Ok(grammar) = build(&mut shape) {
        rules::check(Ok(grammar), Driver::new(steps));
    }
}

struct Builder<'s, 'u, 'd> {
    grammar: Grammar,
    rules: Vec<RuleId>,
    scope: ScopeId,
    shape: &'s mut Shape<'u, 'd>,
}

fn build(shape: &mut Shape<'_, '_>) -> Result<Grammar, LimitExceeded> {
    let mut grammar = Grammar::new();
    let scope = grammar.add_scope();
    let rules = (0..1 + shape.count(3))
        .map(|number| grammar.declare(&format!("r{number}"), None))
        .collect::<Result<Vec<_>, _>>()?;
    let mut builder = Builder { grammar, rules, scope, shape };
    for rule in builder.rules.clone() {
        let body = builder.node(0)?;
        builder.grammar.define(rule, body);
    }
    let first = builder.rules[0];
    let start = builder.grammar.rule(first)?;
    builder.grammar.start = Some(start);
    Ok(builder.grammar)
}

fn pattern(text: &str) -> Ast {
    match parse(text, &PatternOptions::new(Dialect::Rust)) {
        Ok(language) => language,
        Err(error) => panic!("a pattern that is known: {error}"),
    }
}

impl Builder<'_, '_, '_> {
    fn node(&mut self, depth: usize) -> Result<NodeId, LimitExceeded> {
        if depth > 5 || !self.shape.part() {
            return self.leaf();
        }
        match self.shape.below(12) {
            0 | 1 => {
                let parts = self.nodes(3, depth)?;
                self.grammar.seq(parts)
            }
            2 | 3 => {
                let parts = self.nodes(3, depth)?;
                self.grammar.choice(parts)
            }
            4 | 5 => {
                let inner = self.node(depth + 1)?;
                let (min, max) = self.shape.pick(&[
                    (0, None),
                    (1, None),
                    (0, Some(1)),
                    (2, Some(4)),
                    (0, Some(0)),
                    (3, None),
                    (0, Some(70)),
                ]);
                self.grammar.repeat(inner, min, max)
            }
            6 | 7 => {
                let rule = self.shape.pick(&self.rules);
                self.grammar.rule(rule)
            }
            8 => {
                let inner = self.node(depth + 1)?;
                let kind =
                    self.shape.pick(&[SpanKind::Capture, SpanKind::ToolCall, SpanKind::Json]);
                self.grammar.span(kind, "s", inner)
            }
            9 if self.shape.flag() => {
                let inner = self.node(depth + 1)?;
                let most = 1 + self.shape.below(6) as u32;
                self.grammar.limit(most, inner)
            }
            _ => self.leaf(),
        }
    }

    fn nodes(&mut self, most: usize, depth: usize) -> Result<Vec<NodeId>, LimitExceeded> {
        let count = self.shape.count(most);
        (0..count).map(|_| self.node(depth + 1)).collect()
    }

    fn leaf(&mut self) -> Result<NodeId, LimitExceeded> {
        match self.shape.below(12) {
            0..=3 => {
                let text = self.shape.pick(&TEXTS);
                self.grammar.text(Ast::literal(text))
            }
            4 | 5 => {
                let language = pattern(self.shape.pick(&PATTERNS));
                self.grammar.text(language)
            }
            6 | 7 => {
                let language = pattern(self.shape.pick(&PATTERNS));
                let lazy = self.shape.flag();
                self.grammar.terminal(language, self.scope, lazy)
            }
            8 => {
                let schema = self.shape.pick(&SCHEMAS);
                self.grammar.json(schema, None)
            }
            9 | 10 => {
                let items = match self.shape.below(4) {
                    0 => vec![TokenItem::Ids(NAMED.0, NAMED.0)],
                    1 => vec![TokenItem::Named("<|call|>".into())],
                    2 => vec![TokenItem::Ids(u32::from(b'a'), u32::from(b'c'))],
                    _ => vec![TokenItem::Ids(0, OTHER.0)],
                };
                let exclude = self.shape.once_in(4);
                let tokens = TokenSet { items: items.into(), exclude, place: None };
                self.grammar.add(Node::Tokens(tokens.into()))
            }
            _ => {
                let excluding = [self.shape.pick(&TEXTS[6..]).to_owned()];
                let ending = self.shape.pick(&["", "<a>"]);
                self.grammar.text(free_text::any_text(&excluding, ending, None))
            }
        }
    }
}
