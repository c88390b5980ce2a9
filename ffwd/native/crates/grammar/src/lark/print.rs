//! Grammars as text, for tests.

use crate::Longest;
use crate::{
    Argument, Change, Comparison, Condition, Grammar, Lexing, Node, NodeId, Operand, SpanPart,
    TokenItem,
};
use ffwd_regular::regex::Ast;

/// The rules of a grammar, one a line, and the start.
pub(super) fn printed(grammar: &Grammar) -> String {
    let printer = Printer { grammar };
    let mut lines = Vec::new();
    for (index, rule) in grammar.rules.iter().enumerate() {
        let body = rule.body.map_or("?".into(), |body| printer.node(body));
        lines.push(format!("{}#{index}: {body}", rule.name));
    }
    if let Some(start) = grammar.start {
        let start = printer.node(start);
        if start != "start#0" {
            lines.push(format!("= {start}"));
        }
    }
    lines.join("\n")
}

struct Printer<'a> {
    grammar: &'a Grammar,
}

impl Printer<'_> {
    fn node(&self, id: NodeId) -> String {
        let all = |parts: &[NodeId], between: &str| {
            let parts: Vec<_> = parts.iter().map(|&part| self.node(part)).collect();
            parts.join(between)
        };
        match self.grammar.node(id) {
            Node::Seq(parts) => format!("({})", all(parts, " ")),
            Node::Choice(parts) => format!("({})", all(parts, " | ")),
            Node::Repeat { inner, min, max } => {
                format!("{}{}", self.node(*inner), count(*min, *max))
            }
            Node::Rule(rule, argument) => {
                let name = &self.grammar.rules[rule.0 as usize].name;
                format!("{name}#{}{}", rule.0, argument_text(argument))
            }
            Node::Guard(condition, inner) => {
                format!("[{} => {}]", condition_text(condition), self.node(*inner))
            }
            Node::Lexeme(lexeme) => {
                let scope = match lexeme.lexing {
                    Lexing::Anywhere => "".into(),
                    Lexing::Longest { scope, lexing } => {
                        let scope = if scope.0 == 0 { "".into() } else { format!("@{}", scope.0) };
                        format!("{scope}{}", if lexing == Longest::Lazy { "!" } else { "" })
                    }
                };
                format!("{}{scope}", language(&lexeme.language))
            }
            Node::Tokens(tokens) => {
                let items: Vec<_> = tokens
                    .items
                    .iter()
                    .map(|item| match item {
                        TokenItem::Ids(first, last) => format!("{first}-{last}"),
                        TokenItem::Named(name) => name.to_string(),
                    })
                    .collect();
                format!("<{}{}>", if tokens.exclude { "^" } else { "" }, items.join(","))
            }
            Node::Json(json) => format!("json{}", self.grammar.json[json.0 as usize].schema),
            Node::Span(span, inner) => {
                let span = &self.grammar.spans[span.0 as usize];
                let part = match &span.part {
                    SpanPart::Whole => "".into(),
                    SpanPart::Body { ending, .. } => format!("-{}", language(ending)),
                    SpanPart::Ending { ending, .. } => format!("+{}", language(ending)),
                };
                format!("{{{}{part}: {}}}", span.name, self.node(*inner))
            }
            Node::Limit { max_tokens, inner } => format!("{}<={max_tokens}", self.node(*inner)),
        }
    }
}

fn count(min: u32, max: Option<u32>) -> String {
    match (min, max) {
        (0, Some(1)) => "?".into(),
        (0, None) => "*".into(),
        (1, None) => "+".into(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    }
}

fn argument_text(argument: &Argument) -> String {
    match argument {
        Argument::None => "".into(),
        Argument::Value(value) => format!("::{value}"),
        Argument::Same => "::_".into(),
        Argument::Changed(change) => match change {
            Change::Increment(run) => format!("::incr[{}+{}]", run.start, run.length),
            Change::Decrement(run) => format!("::decr[{}+{}]", run.start, run.length),
            Change::SetBit(bit) => format!("::set({bit})"),
            Change::ClearBit(bit) => format!("::clear({bit})"),
            Change::And(bits) => format!("::and({bits})"),
            Change::Or(bits) => format!("::or({bits})"),
        },
    }
}

fn condition_text(condition: &Condition) -> String {
    let all = |parts: &[Condition]| parts.iter().map(condition_text).collect::<Vec<_>>().join(", ");
    match condition {
        Condition::True => "true".into(),
        Condition::BitSet(bit) => format!("set({bit})"),
        Condition::BitClear(bit) => format!("clear({bit})"),
        Condition::Compare { of, comparison, with } => {
            let of = match of {
                Operand::Value(run) => format!("[{}+{}]", run.start, run.length),
                Operand::Count(run) => format!("count[{}+{}]", run.start, run.length),
            };
            let sign = match comparison {
                Comparison::Equal => "==",
                Comparison::NotEqual => "!=",
                Comparison::Less => "<",
                Comparison::LessOrEqual => "<=",
                Comparison::Greater => ">",
                Comparison::GreaterOrEqual => ">=",
            };
            format!("{of} {sign} {with}")
        }
        Condition::And(parts) => format!("and({})", all(parts)),
        Condition::Or(parts) => format!("or({})", all(parts)),
        Condition::Not(inner) => format!("not({})", condition_text(inner)),
    }
}

fn language(ast: &Ast) -> String {
    let all =
        |parts: &[Ast], between: &str| parts.iter().map(language).collect::<Vec<_>>().join(between);
    match ast {
        Ast::Empty => "none".into(),
        Ast::Epsilon => "\"\"".into(),
        Ast::Class(class) => {
            let end = |code: u32| char::from_u32(code).unwrap_or('?').escape_default().to_string();
            let range = |&(low, high): &(u32, u32)| match low == high {
                true => end(low),
                false => format!("{}-{}", end(low), end(high)),
            };
            format!("[{}]", class.ranges().iter().map(range).collect::<String>())
        }
        Ast::Literal(text) => format!("{text:?}"),
        Ast::Concat(parts) => format!("({})", all(parts, "·")),
        Ast::Alternation(parts) => format!("({})", all(parts, "|")),
        Ast::Intersection(parts) => format!("({})", all(parts, "&")),
        Ast::Repeat { inner, min, max } => format!("{}{}", language(inner), count(*min, *max)),
        Ast::Complement(inner) => format!("~{}", language(inner)),
        Ast::Substring(chunks) => format!("substring{:?}", chunks.texts()),
        other => format!("{other:?}"),
    }
}
