//! Grammars of rules as bytes.

use std::sync::Arc;

use super::ast::{Languages, ReadLanguages};
use super::bytes::{Reader, Writer};
use super::options::Saved;
use super::SavedError;
use ffwd_grammar::{
    Argument, BitRange, Change, Comparison, Condition, Grammar, Json, JsonId, Lexeme, Lexing, Node,
    NodeId, Operand, Place, RuleId, ScopeId, Source, SourceId, Span, SpanId, SpanKind, TokenItem,
    TokenSet, Whitespace,
};
use ffwd_grammar::{Longest, SpanPart};

/// How deep the conditions of a guard may nest.
const MAX_CONDITIONS: u32 = 200;

const KINDS: [SpanKind; 7] = [
    SpanKind::Capture,
    SpanKind::Reasoning,
    SpanKind::Content,
    SpanKind::ToolCall,
    SpanKind::ToolName,
    SpanKind::ToolArguments,
    SpanKind::Json,
];

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

const MALFORMED: SavedError = SavedError::Malformed("a grammar");

/// The names of values defined elsewhere, in the order of `KINDS` and so on.
fn place_of<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|other| other == one).unwrap_or(all.len()) as u8
}

fn pick<T: Copy>(all: &[T], place: u8) -> Result<T, SavedError> {
    all.get(usize::from(place)).copied().ok_or(MALFORMED)
}

pub(super) fn write(writer: &mut Writer, grammar: &Grammar) -> Result<(), SavedError> {
    let mut languages = Languages::default();
    let mut nodes = Writer::default();
    nodes.length(grammar.num_nodes());
    for id in 0..grammar.num_nodes() as u32 {
        write_node(&mut nodes, &mut languages, grammar.node(NodeId(id)))?;
    }
    let mut spans = Writer::default();
    spans.length(grammar.spans.len());
    for span in &grammar.spans {
        spans.byte(place_of(&KINDS, &span.kind));
        write_part(&mut spans, &mut languages, &span.part)?;
        spans.text(&span.name);
    }
    languages.write(writer);
    writer.number(grammar.num_scopes());
    writer.length(grammar.sources.len());
    for source in &grammar.sources {
        writer.text(source.kind);
        writer.text(&source.text);
    }
    writer.length(grammar.json.len());
    for json in &grammar.json {
        writer.text(&json.schema);
        write_place(writer, json.place);
        writer.flag(json.whitespace.is_some());
        if let Some(whitespace) = &json.whitespace {
            whitespace.write(writer);
        }
    }
    writer.0.extend_from_slice(&spans.0);
    writer.length(grammar.rules.len());
    for rule in &grammar.rules {
        writer.text(&rule.name);
        write_place(writer, rule.place);
        writer.optional(rule.body.map(|body| body.0));
    }
    writer.0.extend_from_slice(&nodes.0);
    writer.optional(grammar.start.map(|start| start.0));
    Ok(())
}

fn write_part(
    writer: &mut Writer,
    languages: &mut Languages,
    part: &SpanPart,
) -> Result<(), SavedError> {
    let (tag, body, ending) = match part {
        SpanPart::Whole => {
            writer.byte(0);
            return Ok(());
        }
        SpanPart::Body { body, ending } => (1, body, ending),
        SpanPart::Ending { body, ending } => (2, body, ending),
    };
    writer.byte(tag);
    for language in [body, ending] {
        writer.number(languages.add(language)?);
    }
    Ok(())
}

fn write_place(writer: &mut Writer, place: Option<Place>) {
    writer.optional(place.map(|place| place.source.0));
    if let Some(place) = place {
        writer.number(place.offset);
    }
}

fn write_node(
    writer: &mut Writer,
    languages: &mut Languages,
    node: &Node,
) -> Result<(), SavedError> {
    match node {
        Node::Seq(parts) | Node::Choice(parts) => {
            writer.byte(u8::from(matches!(node, Node::Choice(_))));
            writer.length(parts.len());
            parts.iter().for_each(|part| writer.number(part.0));
        }
        Node::Repeat { inner, min, max } => {
            writer.byte(2);
            writer.number(inner.0);
            writer.number(*min);
            writer.optional(*max);
        }
        Node::Rule(rule, argument) => {
            writer.byte(3);
            writer.number(rule.0);
            write_argument(writer, argument);
        }
        Node::Guard(condition, inner) => {
            writer.byte(4);
            write_condition(writer, condition, 0)?;
            writer.number(inner.0);
        }
        Node::Lexeme(Lexeme { language, lexing }) => {
            writer.byte(5);
            writer.number(languages.add(language)?);
            match lexing {
                Lexing::Anywhere => writer.byte(0),
                Lexing::Longest { scope, lexing } => {
                    writer.byte(match lexing {
                        Longest::Greedy => 1,
                        Longest::Lazy => 2,
                        Longest::Ignored => 3,
                    });
                    writer.number(scope.0);
                }
            }
        }
        Node::Tokens(tokens) => {
            writer.byte(6);
            writer.flag(tokens.exclude);
            write_place(writer, tokens.place);
            writer.length(tokens.items.len());
            for item in &tokens.items {
                match item {
                    TokenItem::Ids(first, last) => {
                        writer.byte(0);
                        writer.number(*first);
                        writer.number(*last);
                    }
                    TokenItem::Named(name) => {
                        writer.byte(1);
                        writer.text(name);
                    }
                }
            }
        }
        Node::Json(json) => {
            writer.byte(7);
            writer.number(json.0);
        }
        Node::Span(span, inner) => {
            writer.byte(8);
            writer.number(span.0);
            writer.number(inner.0);
        }
        Node::Limit { max_tokens, inner } => {
            writer.byte(9);
            writer.number(*max_tokens);
            writer.number(inner.0);
        }
    }
    Ok(())
}

fn write_argument(writer: &mut Writer, argument: &Argument) {
    let change = match argument {
        Argument::None => return writer.byte(0),
        Argument::Same => return writer.byte(1),
        Argument::Value(value) => {
            writer.byte(2);
            return writer.number(*value);
        }
        Argument::Changed(change) => change,
    };
    let (tag, number) = match *change {
        Change::Increment(range) | Change::Decrement(range) => {
            writer.byte(3 + u8::from(matches!(change, Change::Decrement(_))));
            return write_bits(writer, range);
        }
        Change::SetBit(bit) => (5, bit.into()),
        Change::ClearBit(bit) => (6, bit.into()),
        Change::And(mask) => (7, mask),
        Change::Or(mask) => (8, mask),
    };
    writer.byte(tag);
    writer.number(number);
}

fn write_bits(writer: &mut Writer, range: BitRange) {
    writer.byte(range.start);
    writer.byte(range.length);
}

fn write_condition(
    writer: &mut Writer,
    condition: &Condition,
    depth: u32,
) -> Result<(), SavedError> {
    if depth > MAX_CONDITIONS {
        return Err(SavedError::Unsupported("a condition nested that deep"));
    }
    match condition {
        Condition::True => writer.byte(0),
        Condition::BitSet(bit) => {
            writer.byte(1);
            writer.byte(*bit);
        }
        Condition::BitClear(bit) => {
            writer.byte(2);
            writer.byte(*bit);
        }
        Condition::Compare { of, comparison, with } => {
            writer.byte(3);
            let (Operand::Value(range) | Operand::Count(range)) = of;
            writer.flag(matches!(of, Operand::Count(_)));
            write_bits(writer, *range);
            writer.byte(place_of(&COMPARISONS, comparison));
            writer.number(*with);
        }
        Condition::And(parts) | Condition::Or(parts) => {
            writer.byte(4 + u8::from(matches!(condition, Condition::Or(_))));
            writer.length(parts.len());
            for part in parts.iter() {
                write_condition(writer, part, depth + 1)?;
            }
        }
        Condition::Not(inner) => {
            writer.byte(6);
            write_condition(writer, inner, depth + 1)?;
        }
    }
    Ok(())
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Grammar, SavedError> {
    let languages = ReadLanguages::read(reader)?;
    let mut grammar = Grammar::new();
    let scopes = reader.length()?;
    for _ in 0..scopes {
        grammar.add_scope();
    }
    grammar.sources = reader.list(|reader| {
        let kind = reader.text()?;
        let kind = SOURCES.iter().find(|known| **known == kind).copied().unwrap_or("grammar");
        Ok(Source { kind, text: reader.text()?.into() })
    })?;
    grammar.json = reader.list(|reader| {
        let (schema, place) = (reader.text()?.into(), read_place(reader)?);
        let whitespace = match reader.flag()? {
            true => Some(Whitespace::read(reader)?),
            false => None,
        };
        Ok(Json { schema, place, whitespace })
    })?;
    grammar.spans = reader.list(|reader| {
        let kind = pick(&KINDS, reader.byte()?)?;
        let part = read_part(reader, &languages)?;
        Ok(Span { kind, name: reader.text()?.into(), part })
    })?;
    let mut bodies = Vec::new();
    for _ in 0..reader.length()? {
        let name = reader.text()?;
        let place = read_place(reader)?;
        grammar.declare(name, place).map_err(|_| MALFORMED)?;
        bodies.push(reader.optional()?);
    }
    for place in 0..reader.length()? {
        let node = read_node(reader, &grammar, &languages, place as u32)?;
        // Each occurred once, so each gets its old number.
        if grammar.add(node).map_err(|_| MALFORMED)? != NodeId(place as u32) {
            return Err(MALFORMED);
        }
    }
    let known = |id: u32| {
        let is_known = (id as usize) < grammar.num_nodes();
        (is_known && !is_ignored(&grammar, NodeId(id))).then_some(NodeId(id)).ok_or(MALFORMED)
    };
    let bodies: Vec<Option<NodeId>> =
        bodies.into_iter().map(|body| body.map(known).transpose()).collect::<Result<_, _>>()?;
    let start = reader.optional()?.map(known).transpose()?;
    for (rule, body) in bodies.into_iter().enumerate() {
        if let Some(body) = body {
            grammar.define(RuleId(rule as u32), body);
        }
    }
    grammar.start = start;
    Ok(grammar)
}

/// Whether a node is ignored text, which is optional wherever it occurs.
fn is_ignored(grammar: &Grammar, node: NodeId) -> bool {
    const LEXING: Longest = Longest::Ignored;
    matches!(
        grammar.node(node),
        Node::Lexeme(Lexeme { lexing: Lexing::Longest { lexing: LEXING, .. }, .. })
    )
}

/// The notations of sources; others are called grammars.
const SOURCES: [&str; 4] = ["Lark", "GBNF", "EBNF", "regular expression"];

fn read_part(reader: &mut Reader<'_>, languages: &ReadLanguages) -> Result<SpanPart, SavedError> {
    let tag = reader.byte()?;
    if tag == 0 {
        return Ok(SpanPart::Whole);
    }
    let body = languages.get(reader.small()?)?;
    let ending = languages.get(reader.small()?)?;
    match tag {
        1 => Ok(SpanPart::Body { body, ending }),
        2 => Ok(SpanPart::Ending { body, ending }),
        _ => Err(MALFORMED),
    }
}

fn read_place(reader: &mut Reader<'_>) -> Result<Option<Place>, SavedError> {
    Ok(match reader.optional()? {
        None => None,
        Some(source) => Some(Place { source: SourceId(source), offset: reader.small()? }),
    })
}

fn read_node(
    reader: &mut Reader<'_>,
    grammar: &Grammar,
    languages: &ReadLanguages,
    before: u32,
) -> Result<Node, SavedError> {
    let below = |id: u32, end: usize| ((id as usize) < end).then_some(id).ok_or(MALFORMED);
    let any = |reader: &mut Reader<'_>| -> Result<NodeId, SavedError> {
        Ok(NodeId(below(reader.small()?, before as usize)?))
    };
    let node = |reader: &mut Reader<'_>| {
        let node = any(reader)?;
        (!is_ignored(grammar, node)).then_some(node).ok_or(MALFORMED)
    };
    Ok(match reader.byte()? {
        tag @ (0 | 1) => {
            let parts: Arc<[NodeId]> = reader.list(node)?.into();
            if tag == 0 {
                Node::Seq(parts)
            } else {
                Node::Choice(parts)
            }
        }
        2 => {
            let (inner, min, max) = (any(reader)?, reader.small()?, reader.optional()?);
            if max.is_some_and(|max| max < min) || (min > 0 && is_ignored(grammar, inner)) {
                return Err(MALFORMED);
            }
            Node::Repeat { inner, min, max }
        }
        3 => {
            let rule = RuleId(below(reader.small()?, grammar.rules.len())?);
            Node::Rule(rule, read_argument(reader)?)
        }
        4 => Node::Guard(read_condition(reader, 0)?, node(reader)?),
        5 => {
            let language = languages.get(reader.small()?)?;
            let lexing = match reader.byte()? {
                0 => Lexing::Anywhere,
                tag @ 1..=3 => {
                    let scope = ScopeId(below(reader.small()?, grammar.num_scopes() as usize)?);
                    let lexing = match tag {
                        1 => Longest::Greedy,
                        2 => Longest::Lazy,
                        _ => Longest::Ignored,
                    };
                    Lexing::Longest { scope, lexing }
                }
                _ => return Err(MALFORMED),
            };
            Node::Lexeme(Lexeme { language, lexing })
        }
        6 => {
            let exclude = reader.flag()?;
            let place = read_place(reader)?;
            let items = reader.list(|reader| match reader.byte()? {
                0 => Ok(TokenItem::Ids(reader.small()?, reader.small()?)),
                1 => Ok(TokenItem::Named(reader.text()?.into())),
                _ => Err(MALFORMED),
            })?;
            Node::Tokens(TokenSet { items: items.into(), exclude, place }.into())
        }
        7 => Node::Json(JsonId(below(reader.small()?, grammar.json.len())?)),
        8 => {
            let span = SpanId(below(reader.small()?, grammar.spans.len())?);
            Node::Span(span, node(reader)?)
        }
        9 => Node::Limit { max_tokens: reader.small()?, inner: node(reader)? },
        _ => return Err(MALFORMED),
    })
}

fn read_argument(reader: &mut Reader<'_>) -> Result<Argument, SavedError> {
    Ok(Argument::Changed(match reader.byte()? {
        0 => return Ok(Argument::None),
        1 => return Ok(Argument::Same),
        2 => return Ok(Argument::Value(reader.number()?)),
        3 => Change::Increment(read_bits(reader)?),
        4 => Change::Decrement(read_bits(reader)?),
        5 => Change::SetBit(read_bit(reader)?),
        6 => Change::ClearBit(read_bit(reader)?),
        7 => Change::And(reader.number()?),
        8 => Change::Or(reader.number()?),
        _ => return Err(MALFORMED),
    }))
}

fn read_bit(reader: &mut Reader<'_>) -> Result<u8, SavedError> {
    reader.byte().and_then(|bit| if bit < 64 { Ok(bit) } else { Err(MALFORMED) })
}

fn read_bits(reader: &mut Reader<'_>) -> Result<BitRange, SavedError> {
    let (start, length) = (reader.byte()?, reader.byte()?);
    if u32::from(start) + u32::from(length) > 64 || length == 0 {
        return Err(MALFORMED);
    }
    Ok(BitRange { start, length })
}

fn read_condition(reader: &mut Reader<'_>, depth: u32) -> Result<Condition, SavedError> {
    if depth > MAX_CONDITIONS {
        return Err(MALFORMED);
    }
    Ok(match reader.byte()? {
        0 => Condition::True,
        1 => Condition::BitSet(read_bit(reader)?),
        2 => Condition::BitClear(read_bit(reader)?),
        3 => {
            let count = reader.flag()?;
            let range = read_bits(reader)?;
            let of = if count { Operand::Count(range) } else { Operand::Value(range) };
            let comparison = pick(&COMPARISONS, reader.byte()?)?;
            Condition::Compare { of, comparison, with: reader.number()? }
        }
        tag @ (4 | 5) => {
            let parts: Arc<[Condition]> =
                reader.list(|reader| read_condition(reader, depth + 1))?.into();
            if tag == 4 {
                Condition::And(parts)
            } else {
                Condition::Or(parts)
            }
        }
        6 => Condition::Not(read_condition(reader, depth + 1)?.into()),
        _ => return Err(MALFORMED),
    })
}
