//! Folded grammars have the texts that they had before.

use super::fold::{fold_regular, visit_rules};
use super::oracle::accepts;
use super::{Grammar, Node, NodeId, SpanKind};
use ffwd_regular::regex::{Ast, CharClass};

/// A small random generator, so that failures come back.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

fn random_node(grammar: &mut Grammar, random: &mut Random, known: &[NodeId]) -> NodeId {
    let some = |random: &mut Random, most: usize| -> Vec<NodeId> {
        let count = random.below(most + 1);
        (0..count).map(|_| known[random.below(known.len())]).collect()
    };
    let one = known[random.below(known.len())];
    match random.below(12) {
        0 => grammar.text(Ast::literal(["a", "b", "ab", "ba"][random.below(4)])),
        1 => grammar.text(Ast::class(CharClass::new([('a' as u32, 'a' as u32 + 1)]))),
        2..=5 => {
            let parts = some(random, 3);
            grammar.seq(parts)
        }
        6..=8 => {
            let parts = some(random, 3);
            grammar.choice(parts)
        }
        9 => grammar.repeat(one, random.below(3) as u32, None),
        10 => {
            let min = random.below(3) as u32;
            grammar.repeat(one, min, Some(min + random.below(3) as u32))
        }
        _ => grammar.span(SpanKind::Capture, "name", one),
    }
    .unwrap()
}

fn random_grammar(random: &mut Random) -> Grammar {
    let mut grammar = Grammar::new();
    let rules: Vec<_> =
        (0..4).map(|index| grammar.declare(&format!("rule{index}"), None).unwrap()).collect();
    let mut known: Vec<NodeId> = vec![grammar.text(Ast::literal("a")).unwrap()];
    // Rules that call any rule are recursive as often as not.
    let calls = random.below(5);
    for &rule in &rules[..calls] {
        known.push(grammar.rule(rule).unwrap());
    }
    for (index, &rule) in rules.iter().enumerate() {
        for _ in 0..5 {
            let node = random_node(&mut grammar, random, &known);
            known.push(node);
        }
        grammar.define(rule, known[known.len() - 1]);
        if index % 2 == 0 {
            known.push(grammar.rule(rule).unwrap());
        }
    }
    grammar.start = known.last().copied();
    grammar
}

fn texts(length: usize) -> impl Iterator<Item = String> {
    (0..=length).flat_map(|length| {
        (0..1usize << length).map(move |bits| {
            (0..length).map(|at| if bits >> at & 1 == 1 { 'b' } else { 'a' }).collect()
        })
    })
}

#[test]
fn folding_keeps_the_texts() {
    let mut random = Random(0x5eed_1234_5678);
    let (mut folded_to_one, mut accepted) = (0, 0);
    for case in 0..400 {
        let plain = random_grammar(&mut random);
        let mut folded = plain.clone();
        fold_regular(&mut folded).unwrap();
        let start = folded.node(folded.start.unwrap());
        folded_to_one += usize::from(matches!(start, Node::Lexeme(_)));
        for text in texts(4) {
            let expected = accepts(&plain, &text);
            accepted += usize::from(expected);
            assert_eq!(accepts(&folded, &text), expected, "case {case}, {text:?}\n{plain:#?}");
        }
        let mut again = folded.clone();
        fold_regular(&mut again).unwrap();
        assert_eq!(accepts(&again, "ab"), accepts(&plain, "ab"), "case {case}");
    }
    assert!(folded_to_one > 40 && accepted > 1000, "{folded_to_one} {accepted}");
}

fn lexemes(grammar: &Grammar, from: NodeId) -> Vec<Ast> {
    let mut stack = vec![from];
    let mut found = Vec::new();
    while let Some(id) = stack.pop() {
        match grammar.node(id) {
            Node::Lexeme(lexeme) => found.push(lexeme.language.clone()),
            node => stack.extend(node.children()),
        }
    }
    found
}

#[test]
fn what_is_around_a_recursive_rule_folds_up_to_it() {
    // value = "(" digits "," value ")" | digits | "x"
    let mut grammar = Grammar::new();
    let value = grammar.declare("value", None).unwrap();
    let digits = grammar.declare("digits", None).unwrap();
    let [open, comma, close, x] =
        ["(", ",", ")", "x"].map(|text| grammar.text(Ast::literal(text)).unwrap());
    let digit = grammar.text(Ast::class(CharClass::new([(48, 57)]))).unwrap();
    let body = grammar.repeat(digit, 1, None).unwrap();
    grammar.define(digits, body);
    let digits = grammar.rule(digits).unwrap();
    let call = grammar.rule(value).unwrap();
    let list = grammar.seq(vec![open, digits, comma, call, close]).unwrap();
    let body = grammar.choice(vec![list, digits, x]).unwrap();
    grammar.define(value, body);
    grammar.start = Some(call);
    fold_regular(&mut grammar).unwrap();
    let body = grammar.rules[value.0 as usize].body.unwrap();
    // `(12,`, `)`, and a number or x.
    assert_eq!(lexemes(&grammar, body).len(), 3);
    for (text, expected) in [("x", true), ("(1,x)", true), ("(1,(22,3))", true), ("(1,)", false)] {
        assert_eq!(accepts(&grammar, text), expected, "{text}");
    }
}

#[test]
fn doubling_rules_do_not_blow_up() {
    let mut grammar = Grammar::new();
    let mut node = grammar.text(Ast::literal("a")).unwrap();
    for index in 0..1000 {
        let rule = grammar.declare(&format!("r{index}"), None).unwrap();
        let body = grammar.seq(vec![node, node]).unwrap();
        grammar.define(rule, body);
        node = grammar.rule(rule).unwrap();
    }
    grammar.start = Some(node);
    fold_regular(&mut grammar).unwrap();
    assert!(grammar.num_nodes() < 3000, "{}", grammar.num_nodes());
}

#[test]
fn long_chains_and_wide_alternatives_are_folded_in_pieces() {
    let mut grammar = Grammar::new();
    let mut node = grammar.text(Ast::literal("a")).unwrap();
    for index in 0..100_000 {
        let rule = grammar.declare("chain", None).unwrap();
        let more = grammar.text(Ast::literal(["b", "c"][index % 2])).unwrap();
        let again = grammar.repeat(node, 0, None).unwrap();
        let body = grammar.seq(vec![again, more]).unwrap();
        grammar.define(rule, body);
        node = grammar.rule(rule).unwrap();
    }
    let names: Vec<NodeId> = (0..100_000)
        .map(|index| grammar.text(Ast::literal(&format!("name{index}"))).unwrap())
        .collect();
    let names = grammar.choice(names).unwrap();
    let start = grammar.choice(vec![node, names]).unwrap();
    grammar.start = Some(start);
    fold_regular(&mut grammar).unwrap();
    let alternatives = lexemes(&grammar, grammar.start.unwrap());
    assert!((2..200).contains(&alternatives.len()), "{}", alternatives.len());
}

#[test]
fn languages_of_rules_can_be_changed_where_they_are_used() {
    let mut grammar = Grammar::new();
    let inner = grammar.declare("inner", None).unwrap();
    let outer = grammar.declare("outer", None).unwrap();
    let body = grammar.text(Ast::literal("a")).unwrap();
    grammar.define(inner, body);
    let call = grammar.rule(inner).unwrap();
    let body = grammar.seq(vec![call, call]).unwrap();
    grammar.define(outer, body);
    grammar.rule(outer).unwrap();
    let mut found = Vec::new();
    visit_rules(&grammar, |rule, language| {
        found.push((rule, language.clone()));
        (rule == inner).then(|| Ast::literal("b"))
    });
    assert_eq!(found, [(inner, Ast::literal("a")), (outer, Ast::literal("bb"))]);
}
