//! What alphabets say of longest matches against what states do.

use std::sync::Arc;

use proptest::prelude::RngExt;
use proptest::test_runner::{RngAlgorithm, TestRng};
use rustc_hash::FxHashMap;

use super::leaf::Leaf;
use super::swallowed::{Precision, Swallowing};
use ffwd_grammar::graph::{Expansion, Graph, LeafFacts};
use ffwd_grammar::symbols::Symbols;
use ffwd_grammar::{Grammar, Node, NodeId, RuleId};
use ffwd_regular::expr::LexemeStore;
use ffwd_regular::regex::rust_dialect::anchored;

const TERMINALS: [&str; 12] =
    ["a", "b", "ab", "a+", "[ab]+", "b*a", "(ab)+", "[a-c]{2}", "c", "[^a]", "\\p{L}+", "-?[0-9]+"];

/// A grammar of terminals in one scope, some of them lazy.
fn drawn(random: &mut TestRng) -> Grammar {
    let mut grammar = Grammar::new();
    let scope = grammar.add_scope();
    let rules: Vec<RuleId> =
        (0..3).map(|at| grammar.declare(&format!("r{at}"), None).unwrap()).collect();
    let terminal = |grammar: &mut Grammar, random: &mut TestRng| {
        let language = anchored(TERMINALS[random.random_range(0..TERMINALS.len())]).unwrap();
        grammar.terminal(language, scope, random.random_bool(0.1)).unwrap()
    };
    for place in 0..rules.len() {
        let mut alternatives = Vec::new();
        for _ in 0..random.random_range(1..4) {
            let mut parts = vec![terminal(&mut grammar, random)];
            for _ in 0..random.random_range(0..3) {
                let part = match rules.get(place + 1) {
                    Some(&rule) if random.random_bool(0.4) => grammar.rule(rule).unwrap(),
                    _ => terminal(&mut grammar, random),
                };
                let bounds = [(1, Some(1)), (0, None), (0, Some(1)), (2, Some(3))];
                let (min, max) = bounds[random.random_range(0..bounds.len())];
                parts.push(grammar.repeat(part, min, max).unwrap());
            }
            alternatives.push(grammar.seq(parts).unwrap());
        }
        let body = grammar.choice(alternatives).unwrap();
        grammar.define(rules[place], body);
    }
    grammar.start = Some(grammar.rule(rules[0]).unwrap());
    grammar
}

#[test]
fn alphabets_find_what_states_find() {
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let (mut swallowing, mut safe) = (0, 0);
    for _ in 0..600 {
        let grammar = Arc::new(drawn(&mut random));
        let lexemes = LexemeStore::new(usize::MAX);
        let mut leaves: FxHashMap<NodeId, Leaf> = FxHashMap::default();
        let expanded = Graph::expanded(&grammar, Expansion::AsNeeded, |node| {
            let Node::Lexeme(lexeme) = grammar.node(node) else { panic!("no lexeme") };
            let leaf = Leaf::Lexeme { language: lexeme.language.clone(), lexing: lexeme.lexing };
            leaves.insert(node, leaf);
            Ok(LeafFacts { alive: true, nullable: false })
        });
        let symbols = Symbols::of_expanded(&expanded.unwrap()).unwrap();
        let found = |precision| {
            let found = Swallowing::from(precision, &symbols, &leaves, &lexemes).unwrap();
            let mut nodes: Vec<NodeId> = found.lexemes.into_iter().collect();
            nodes.sort_unstable();
            nodes
        };
        let quick = found(Precision::Alphabets);
        assert_eq!(quick, found(Precision::Mixed), "{grammar:?}");
        match quick.is_empty() {
            true => safe += 1,
            false => swallowing += 1,
        }
    }
    assert!(swallowing > 100 && safe > 100, "{swallowing} and {safe}");
}
