//! Rules with a parameter that come with their values, beside the same expanded beforehand.

use std::sync::Arc;

use proptest::prelude::RngExt;
use proptest::test_runner::TestRng;

use super::test_rules::{assert_same_masks, options};
use super::tests::{engine, read};
use super::{CompileError, Compiled, Engine, Source};
use ffwd_grammar::graph::Expansion;
use ffwd_grammar::{
    Argument, BitRange, Change, Comparison, Condition, Grammar, GrammarErrorKind, Lexing, Node,
    NodeId, Operand, RuleId,
};
use ffwd_regular::regex::Ast;
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};

fn compile(
    engine: &Arc<Engine>,
    grammar: &Grammar,
    expansion: Expansion,
) -> Result<Compiled, CompileError> {
    engine.compile_as_it_is(grammar, options(), false, expansion)
}

/// Whether parts with values come later.
fn has_later_values(compiled: &Compiled) -> bool {
    match &compiled.source {
        Source::Rules { program, .. } => program.symbols.has_values(),
        _ => false,
    }
}

fn random_condition(random: &mut TestRng, depth: usize) -> Condition {
    let bit = random.random_range(0..4);
    match random.random_range(0..if depth == 0 { 3 } else { 6 }) {
        0 => Condition::BitSet(bit),
        1 => Condition::BitClear(bit),
        2 => {
            let run = BitRange { start: 0, length: random.random_range(1..4) };
            let of = match random.random_range(0..3) {
                0 => Operand::Count(run),
                _ => Operand::Value(run),
            };
            let comparison = match random.random_range(0..3) {
                0 => Comparison::Less,
                1 => Comparison::GreaterOrEqual,
                _ => Comparison::NotEqual,
            };
            Condition::Compare { of, comparison, with: random.random_range(0..6) }
        }
        3 => Condition::Not(Arc::new(random_condition(random, depth - 1))),
        4 => Condition::And((0..2).map(|_| random_condition(random, depth - 1)).collect()),
        _ => Condition::Or((0..2).map(|_| random_condition(random, depth - 1)).collect()),
    }
}

fn random_argument(random: &mut TestRng) -> Argument {
    let run = BitRange { start: random.random_range(0..2), length: random.random_range(1..4) };
    let bit = random.random_range(0..4);
    match random.random_range(0..8) {
        0 => Argument::Value(random.random_range(0..8)),
        1 => Argument::Same,
        2 => Argument::Changed(Change::SetBit(bit)),
        3 => Argument::Changed(Change::ClearBit(bit)),
        4 => Argument::Changed(Change::Decrement(run)),
        5 => Argument::Changed(Change::And(random.random_range(0..16))),
        _ => Argument::Changed(Change::Increment(run)),
    }
}

/// Rules that have a parameter and one that has none. Their alternatives begin with anything.
fn random_grammar(random: &mut TestRng) -> Grammar {
    let mut grammar = Grammar::new();
    let scope = grammar.add_scope();
    let longest = random.random_bool(0.5);
    let rules: Vec<RuleId> =
        ["s", "p", "q", "plain"].iter().map(|name| grammar.declare(name, None).unwrap()).collect();
    let leaf = |grammar: &mut Grammar, text: &str| match longest {
        true => grammar.terminal(Ast::literal(text), scope, false).unwrap(),
        false => grammar.text(Ast::literal(text)).unwrap(),
    };
    for (number, &rule) in rules.iter().enumerate() {
        let mut alternatives: Vec<NodeId> = Vec::new();
        for _ in 0..random.random_range(1..4) {
            let mut parts: Vec<NodeId> = Vec::new();
            for _ in 0..random.random_range(0..4) {
                let part = match random.random_range(0..5) {
                    0..=1 => leaf(&mut grammar, ["a", "b", "ab", "ca"][random.random_range(0..4)]),
                    2 => {
                        let argument = match random_argument(random) {
                            Argument::Value(value) => Argument::Value(value),
                            _ if number == 0 || number == 3 => Argument::Value(0),
                            other => other,
                        };
                        grammar.add(Node::Rule(rules[random.random_range(1..3)], argument)).unwrap()
                    }
                    3 => grammar.rule(rules[3]).unwrap(),
                    _ => {
                        let inner = leaf(&mut grammar, "c");
                        grammar.repeat(inner, random.random_range(0..2), Some(2)).unwrap()
                    }
                };
                parts.push(part);
            }
            let may_repeat = !parts.is_empty();
            let mut node = grammar.seq(parts).unwrap();
            if (number == 1 || number == 2) && random.random_bool(0.7) {
                let condition = random_condition(random, 1);
                node = grammar.add(Node::Guard(condition, node)).unwrap();
            }
            if may_repeat && random.random_bool(0.1) {
                node = grammar.repeat(node, 0, None).unwrap();
            }
            alternatives.push(node);
        }
        let body = grammar.choice(alternatives).unwrap();
        grammar.define(rule, body);
    }
    grammar.start = Some(grammar.rule(rules[0]).unwrap());
    grammar
}

#[test]
fn values_that_come_later_have_the_masks_of_those_expanded_beforehand() {
    let mut random = seeded(5);
    let engine = engine(vocabulary(1, 60));
    let (mut compared, mut later, mut refused) = (0, 0, 0);
    for _ in 0..1500 {
        let grammar = random_grammar(&mut random);
        let expected = compile(&engine, &grammar, Expansion::Beforehand);
        let found = compile(&engine, &grammar, Expansion::Later);
        match (expected, found) {
            (Ok(expected), Ok(found)) => {
                later += usize::from(has_later_values(&found));
                compared += 1;
                assert_same_masks([&found, &expected], &mut random, &format!("{grammar:?}"));
            }
            (Err(CompileError::Grammar(expected)), Err(CompileError::Grammar(found))) => {
                refused += 1;
                assert_eq!(found.kind, expected.kind, "{found}; {expected} {grammar:?}");
            }
            (Err(expected), _) => panic!("{expected} {grammar:?}"),
            (Ok(_), Err(error)) => panic!("{error} {grammar:?}"),
        }
    }
    assert!(compared > 200 && refused > 60, "{compared} {refused}");
    // Also those whose rules begin with themselves.
    assert_eq!(later, compared);
}

/// `count` counters, each up to `most`, and an end when all are reached.
fn counters(count: u8, most: u64, guarded: bool) -> Grammar {
    let mut grammar = Grammar::new();
    let rule = grammar.declare("lst", None).unwrap();
    let mut alternatives = Vec::new();
    let run = |number: u8| BitRange { start: 8 * number, length: 8 };
    let compare = |number: u8, comparison: Comparison| Condition::Compare {
        of: Operand::Value(run(number)),
        comparison,
        with: most,
    };
    for number in 0..count {
        let text = Ast::literal(&format!("{} ", char::from(b'a' + number)));
        let text = grammar
            .add(Node::Lexeme(ffwd_grammar::Lexeme { language: text, lexing: Lexing::Anywhere }));
        let argument = Argument::Changed(Change::Increment(run(number)));
        let next = grammar.add(Node::Rule(rule, argument)).unwrap();
        let node = grammar.seq(vec![text.unwrap(), next]).unwrap();
        let guard = Node::Guard(compare(number, Comparison::Less), node);
        alternatives.push(grammar.add(guard).unwrap());
    }
    let mut end = grammar.text(Ast::literal("X")).unwrap();
    if guarded {
        let all = (0..count).map(|number| compare(number, Comparison::Equal)).collect();
        end = grammar.add(Node::Guard(Condition::And(all), end)).unwrap();
    }
    alternatives.push(end);
    let body = grammar.choice(alternatives).unwrap();
    grammar.define(rule, body);
    grammar.start = Some(grammar.add(Node::Rule(rule, Argument::Value(0))).unwrap());
    grammar
}

#[test]
fn seven_counters_are_followed_to_their_end() {
    let engine = engine(vocabulary(1, 20));
    for guarded in [false, true] {
        let grammar = counters(7, 50, guarded);
        let compiled = compile(&engine, &grammar, Expansion::AsNeeded).unwrap();
        assert!(has_later_values(&compiled));
        let all: String = ('a'..='g').map(|name| format!("{name} ").repeat(50)).collect();
        assert_eq!(read(&compiled, &(all.clone() + "X")), Ok(()));
        assert!(read(&compiled, &(all + "a X")).is_err());
        assert_eq!(read(&compiled, "g a X").is_ok(), !guarded);
    }
}

#[test]
fn a_condition_that_never_holds_ends_in_a_limit_that_names_the_rule() {
    let engine = engine(vocabulary(1, 20));
    let mut grammar = counters(7, 50, true);
    let rule = RuleId(0);
    // No counter gets that far.
    let body = grammar.rules[0].body.unwrap();
    let Node::Choice(parts) = grammar.node(body).clone() else { panic!() };
    let mut parts = parts.to_vec();
    parts.pop();
    let run = BitRange { start: 0, length: 8 };
    let never =
        Condition::Compare { of: Operand::Value(run), comparison: Comparison::Greater, with: 100 };
    let end = grammar.text(Ast::literal("X")).unwrap();
    parts.push(grammar.add(Node::Guard(never, end)).unwrap());
    let body = grammar.choice(parts).unwrap();
    grammar.define(rule, body);
    let Err(CompileError::Grammar(error)) = compile(&engine, &grammar, Expansion::AsNeeded) else {
        panic!("it compiles")
    };
    assert!(matches!(error.kind, GrammarErrorKind::Limit(_)), "{error}");
    assert!(error.message.contains("the rule `lst`"), "{error}");
}
