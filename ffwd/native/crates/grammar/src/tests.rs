//! Left recursion is removed, and the language stays.

use std::collections::BTreeSet;

use super::graph::{Graph, LeafFacts};
use super::symbols::{Symbol, SymbolId, Symbols};
use super::{Grammar, Lexeme, Node, NodeId};
use ffwd_regular::regex::Ast;

/// A grammar of rules that are lists of alternatives; upper case letters are rules, `a?` and `a*` are
/// written as `[a]` and `{a}`.
fn grammar(rules: &[(char, &[&str])]) -> Grammar {
    let mut grammar = Grammar::new();
    let ids: Vec<_> =
        rules.iter().map(|(name, _)| grammar.declare(&name.to_string(), None).unwrap()).collect();
    for (index, (_, alternatives)) in rules.iter().enumerate() {
        let mut bodies = Vec::new();
        for text in *alternatives {
            let mut parts = Vec::new();
            let mut closing = Vec::new();
            for letter in text.chars() {
                match letter {
                    '[' | '{' => closing.push((letter, std::mem::take(&mut parts))),
                    ']' | '}' => {
                        let (open, before) = closing.pop().unwrap();
                        let inner = grammar.seq(std::mem::replace(&mut parts, before)).unwrap();
                        let max = (open == '[').then_some(1);
                        parts.push(grammar.repeat(inner, 0, max).unwrap());
                    }
                    'A'..='Z' => {
                        let rule = rules.iter().position(|(name, _)| *name == letter).unwrap();
                        parts.push(grammar.rule(ids[rule]).unwrap());
                    }
                    _ => parts.push(grammar.text(Ast::literal(&letter.to_string())).unwrap()),
                }
            }
            bodies.push(grammar.seq(parts).unwrap());
        }
        let body = grammar.choice(bodies).unwrap();
        grammar.define(ids[index], body);
    }
    grammar.start = Some(grammar.rule(ids[0]).unwrap());
    grammar
}

fn graph(grammar: &Grammar) -> Graph {
    Graph::of(grammar, |_| Ok(LeafFacts { alive: true, nullable: false })).unwrap()
}

const MAX: usize = 4;

type Texts = BTreeSet<String>;

fn joined(first: &Texts, then: &Texts) -> Texts {
    let pairs = first.iter().flat_map(|a| then.iter().map(move |b| format!("{a}{b}")));
    pairs.filter(|text| text.len() <= MAX).collect()
}

fn letter(grammar: &Grammar, node: NodeId) -> String {
    let Node::Lexeme(Lexeme { language: Ast::Literal(text), .. }) = grammar.node(node) else {
        panic!("not a literal")
    };
    text.to_string()
}

/// All texts up to a length, by iteration from below: the slow twin.
fn texts(grammar: &Grammar) -> Texts {
    let mut of: Vec<Texts> = vec![Texts::new(); grammar.num_nodes()];
    loop {
        let mut changed = false;
        for id in 0..grammar.num_nodes() {
            let now = match grammar.node(NodeId(id as u32)) {
                Node::Seq(parts) => {
                    let empty = Texts::from([String::new()]);
                    parts.iter().fold(empty, |text, part| joined(&text, &of[part.0 as usize]))
                }
                Node::Choice(parts) => {
                    parts.iter().flat_map(|part| of[part.0 as usize].iter().cloned()).collect()
                }
                Node::Repeat { inner, max, .. } => {
                    let mut all = Texts::from([String::new()]);
                    for _ in 0..max.unwrap_or(MAX as u32) {
                        let more = joined(&all, &of[inner.0 as usize]);
                        all.extend(more);
                    }
                    all
                }
                Node::Rule(rule, _) => {
                    of[grammar.rules[rule.0 as usize].body.unwrap().0 as usize].clone()
                }
                _ => Texts::from([letter(grammar, NodeId(id as u32))]),
            };
            changed |= now != of[id];
            of[id] = now;
        }
        if !changed {
            return of[grammar.start.unwrap().0 as usize].clone();
        }
    }
}

/// All texts up to a length of what symbols stand for.
fn texts_of_symbols(grammar: &Grammar, symbols: &Symbols) -> Texts {
    let empty = || Texts::from([String::new()]);
    let mut of: Vec<Texts> = vec![Texts::new(); symbols.len()];
    loop {
        let mut changed = false;
        for id in 0..symbols.len() {
            let id = SymbolId(id as u32);
            let whole = |id: SymbolId| {
                let mut all = of[id.0 as usize].clone();
                if symbols.is_nullable(id) {
                    all.extend(empty());
                }
                all
            };
            let mut now = match symbols.get(id) {
                Symbol::Empty => Texts::new(),
                &Symbol::Seq(first, then) => joined(&whole(first), &whole(then)),
                Symbol::Choice(parts) => parts.iter().flat_map(|&part| whole(part)).collect(),
                &Symbol::Star(inner) => {
                    let mut all = empty();
                    for _ in 0..MAX {
                        let more = joined(&all, &whole(inner));
                        all.extend(more);
                    }
                    all
                }
                Symbol::Repeat { .. } => panic!("no counts here"),
                &Symbol::Leaf(node) => Texts::from([letter(grammar, node)]),
                &Symbol::Marked(_, inner) | &Symbol::NonEmpty(inner) => whole(inner),
                &Symbol::Part(part) => whole(symbols.meaning(part)),
                Symbol::Later(_) => panic!("no parameters here"),
            };
            let nullable = now.remove("");
            assert!(
                !nullable
                    || symbols.is_nullable(id)
                    || matches!(symbols.get(id), Symbol::NonEmpty(_))
            );
            changed |= now != of[id.0 as usize];
            of[id.0 as usize] = now;
        }
        if !changed {
            let mut all = of[symbols.start.0 as usize].clone();
            if symbols.is_nullable(symbols.start) {
                all.extend(empty());
            }
            return all;
        }
    }
}

/// No symbol can begin with itself.
fn assert_no_left_recursion(symbols: &Symbols) {
    fn visit(symbols: &Symbols, id: SymbolId, state: &mut [u8]) {
        match state[id.0 as usize] {
            1 => panic!("left recursion is left"),
            2 => return,
            _ => state[id.0 as usize] = 1,
        }
        match symbols.get(id) {
            &Symbol::Seq(first, then) => {
                visit(symbols, first, state);
                if symbols.is_nullable(first) {
                    visit(symbols, then, state);
                }
            }
            Symbol::Choice(parts) => parts.iter().for_each(|&part| visit(symbols, part, state)),
            &Symbol::Star(inner) | &Symbol::Repeat { inner, .. } => visit(symbols, inner, state),
            &Symbol::Marked(_, inner) | &Symbol::NonEmpty(inner) => visit(symbols, inner, state),
            &Symbol::Part(part) => visit(symbols, symbols.meaning(part), state),
            Symbol::Leaf(_) | Symbol::Empty | Symbol::Later(_) => {}
        }
        state[id.0 as usize] = 2;
    }
    visit(symbols, symbols.start, &mut vec![0; symbols.len()]);
}

fn assert_same(rules: &[(char, &[&str])]) {
    let grammar = grammar(rules);
    let symbols = Symbols::of(&graph(&grammar)).unwrap();
    assert_no_left_recursion(&symbols);
    assert_eq!(texts_of_symbols(&grammar, &symbols), texts(&grammar), "{rules:?}");
}

#[test]
fn left_recursion_keeps_the_language() {
    assert_same(&[('E', &["E+T", "T"]), ('T', &["T*F", "F"]), ('F', &["(E)", "x"])]);
    assert_same(&[('E', &["E+E", "E*E", "-E", "(E)", "x"])]);
    assert_same(&[('S', &["Aa", "b"]), ('A', &["Ac", "Sd", ""])]);
    assert_same(&[('S', &["SS", "a", ""])]);
    assert_same(&[('A', &["Bx", "y"]), ('B', &["Cx", "z"]), ('C', &["Ax", "Bw", "v"])]);
}

#[test]
fn hidden_left_recursion_keeps_the_language() {
    assert_same(&[('S', &["NSa", "b"]), ('N', &["", "n"])]);
    assert_same(&[('S', &["[n]S[m]", "b"])]);
    assert_same(&[('S', &["{S}a", "b"])]);
    assert_same(&[('S', &["{Sc}a", "b"])]);
    assert_same(&[('S', &["S", "a"])]);
    assert_same(&[('S', &["T", "Sx"]), ('T', &["S", "a"])]);
    assert_same(&[('S', &["NS", "a"]), ('N', &["[S]"])]);
}

#[test]
fn other_recursion_keeps_the_language() {
    assert_same(&[('S', &["aSb", ""])]);
    assert_same(&[('S', &["aSa", "bSb", "a", "b", ""])]);
    assert_same(&[('S', &["{a}S[b]", "c"])]);
}

#[test]
fn random_grammars_keep_their_language() {
    let mut seed = 1u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    for _ in 0..200 {
        let names = ['S', 'A', 'B', 'C'];
        let mut texts: Vec<Vec<String>> = Vec::new();
        for _ in names {
            let mut alternatives = vec![["a", "b", "", "ab"][random(4) as usize].to_owned()];
            for _ in 0..1 + random(3) {
                let mut text = String::new();
                for _ in 0..1 + random(3) {
                    let part = ["S", "A", "B", "C", "a", "b", "[A]", "{B}", "[Ca]", "{aS}"];
                    text.push_str(part[random(10) as usize]);
                }
                alternatives.push(text);
            }
            texts.push(alternatives);
        }
        let alternatives: Vec<Vec<&str>> =
            texts.iter().map(|all| all.iter().map(String::as_str).collect()).collect();
        let rules: Vec<(char, &[&str])> =
            names.iter().zip(&alternatives).map(|(name, all)| (*name, &all[..])).collect();
        assert_same(&rules);
    }
}

#[test]
fn what_has_no_text_is_refused_by_name() {
    let grammar = grammar(&[('S', &["a", "B"]), ('B', &["bB"])]);
    let leaf = |_| Ok(LeafFacts { alive: true, nullable: false });
    let error = Graph::of(&grammar, leaf).unwrap_err();
    assert!(error.message.contains("the rule `B`"), "{error}");
}

#[test]
fn long_chains_take_no_stack() {
    let mut grammar = Grammar::new();
    let mut node = grammar.text(Ast::literal("x")).unwrap();
    for index in 0..200_000 {
        let rule = grammar.declare(&format!("r{index}"), None).unwrap();
        let optional = grammar.repeat(node, 0, Some(1)).unwrap();
        let seq = grammar.seq(vec![optional, node]).unwrap();
        grammar.define(rule, seq);
        node = grammar.rule(rule).unwrap();
    }
    grammar.start = Some(node);
    let symbols = Symbols::of(&graph(&grammar)).unwrap();
    assert!(symbols.len() > 200_000);
}
