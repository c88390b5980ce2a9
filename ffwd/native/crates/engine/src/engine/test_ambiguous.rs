//! Ambiguous grammars: parts that may be empty, that begin with themselves in sight or hidden, and
//! repeats of repeats. Their texts are those that the slow recogniser knows, and each byte takes a
//! bounded number of steps, however many readings a text has.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::RngExt;
use proptest::test_runner::TestRng;

use super::test_rules::options;
use super::tests::engine;
use super::{Compiled, Engine};
use ffwd_automaton::{EngineError, Result, StateId};
use ffwd_bounds::limits::Limits;
use ffwd_bounds::meter::Meter;
use ffwd_grammar::graph::Expansion;
use ffwd_grammar::oracle::accepts;
use ffwd_grammar::{Grammar, NodeId, RuleId, ScopeId};
use ffwd_regular::regex::Ast;
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};

/// Grammars over `a` and `b`.
struct Drawn<'r> {
    random: &'r mut TestRng,
    grammar: Grammar,
    rules: Vec<RuleId>,
    /// Where lexemes end at their longest match. They are one letter, so it makes no difference.
    scope: Option<ScopeId>,
}

impl Drawn<'_> {
    fn grammar(random: &mut TestRng) -> Grammar {
        let mut grammar = Grammar::new();
        let scope = random.random_bool(0.5).then(|| grammar.add_scope());
        let count = random.random_range(1..5);
        let rules: Vec<RuleId> =
            (0..count).map(|at| grammar.declare(&format!("r{at}"), None).unwrap()).collect();
        let mut drawn = Drawn { random, grammar, rules, scope };
        for rule in drawn.rules.clone() {
            let mut alternatives = vec![drawn.ending()];
            for _ in 0..drawn.random.random_range(1..4) {
                alternatives.push(drawn.node(2));
            }
            let body = drawn.grammar.choice(alternatives).unwrap();
            drawn.grammar.define(rule, body);
        }
        drawn.grammar.start = Some(drawn.grammar.rule(drawn.rules[0]).unwrap());
        drawn.grammar
    }

    fn letter(&mut self) -> NodeId {
        let text = Ast::literal(["a", "b"][self.random.random_range(0..2)]);
        match self.scope {
            Some(scope) => self.grammar.terminal(text, scope, false).unwrap(),
            None => self.grammar.text(text).unwrap(),
        }
    }

    /// So that each rule has a text.
    fn ending(&mut self) -> NodeId {
        match self.random.random_range(0..3) {
            0 => self.grammar.seq(Vec::new()).unwrap(),
            _ => self.letter(),
        }
    }

    fn node(&mut self, depth: usize) -> NodeId {
        if depth == 0 || self.random.random_bool(0.2) {
            return match self.random.random_range(0..3) {
                0 => self.letter(),
                _ => {
                    let rule = self.rules[self.random.random_range(0..self.rules.len())];
                    self.grammar.rule(rule).unwrap()
                }
            };
        }
        let kind = self.random.random_range(0..4);
        if kind == 3 {
            let bounds =
                [(0, None), (1, None), (0, Some(1)), (0, Some(2)), (2, None), (1, Some(3))];
            let (min, max) = bounds[self.random.random_range(0..bounds.len())];
            let inner = self.node(depth - 1);
            return self.grammar.repeat(inner, min, max).unwrap();
        }
        let parts = (0..self.random.random_range(2..4)).map(|_| self.node(depth - 1)).collect();
        match kind {
            2 => self.grammar.choice(parts).unwrap(),
            _ => self.grammar.seq(parts).unwrap(),
        }
    }
}

/// The state after a letter, where it may come.
fn after(compiled: &Compiled, state: StateId, letter: u8) -> Result<Option<StateId>> {
    let generation = compiled.generation();
    let automaton = &generation.automaton;
    let threads = automaton.walk(automaton.threads(state), &[letter])?;
    threads.map(|threads| automaton.intern(threads)).transpose()
}

fn texts(length: usize) -> impl Iterator<Item = String> {
    (0..=length).flat_map(|length| {
        (0..1usize << length).map(move |bits| {
            (0..length).map(|at| if bits >> at & 1 == 1 { 'b' } else { 'a' }).collect()
        })
    })
}

fn compile(engine: &Arc<Engine>, grammar: &Grammar, folded: bool) -> Compiled {
    match folded {
        true => engine.compile_grammar(grammar, options()).unwrap(),
        false => engine.compile_as_it_is(grammar, options(), false, Expansion::AsNeeded).unwrap(),
    }
}

/// All texts up to this many letters are compared, and their allowed sets.
const LENGTH: usize = 5;

#[test]
fn ambiguous_grammars_have_the_texts_that_the_recogniser_knows() {
    let mut random = seeded(11);
    let engine = engine(vocabulary(1, 20));
    let (mut accepted, mut dead) = (0, 0);
    for case in 0..400 {
        let grammar = Drawn::grammar(&mut random);
        let what = |text: &str| format!("case {case}, {text:?}: {grammar:#?}");
        let known: BTreeSet<String> =
            texts(LENGTH).filter(|text| accepts(&grammar, text)).collect();
        accepted += known.len();
        let compiled = compile(&engine, &grammar, case % 2 == 0);
        let generation = compiled.generation();
        let automaton = &generation.automaton;
        let mut pending = vec![(String::new(), automaton.start())];
        while let Some((text, state)) = pending.pop() {
            let ends = automaton.is_accepting(state);
            assert_eq!(ends, known.contains(&text), "{}", what(&text));
            if text.len() == LENGTH {
                continue;
            }
            for letter in "ab".chars() {
                let longer = format!("{text}{letter}");
                let next = after(&compiled, state, letter as u8).unwrap();
                let begins = known.iter().any(|known| known.starts_with(&longer));
                match next {
                    Some(next) => {
                        if !begins {
                            // Then a longer text begins so.
                            let rest =
                                automaton.completing().shortest(automaton.threads(next)).unwrap();
                            let rest = String::from_utf8(rest.unwrap().text).unwrap();
                            let whole = format!("{longer}{rest}");
                            assert!(accepts(&grammar, &whole), "{}", what(&whole));
                        }
                        pending.push((longer, next));
                    }
                    None => {
                        dead += 1;
                        assert!(!begins, "{}", what(&longer));
                    }
                }
            }
        }
    }
    assert!(accepted > 5_000 && dead > 500, "{accepted} {dead}");
}

/// How many steps a byte may take, and how many bytes of memory a text of [`MANY`] letters.
const STEPS: u64 = 6_000_000;
const MEMORY: usize = 128 << 20;
const MANY: usize = 24;

#[test]
fn ambiguous_grammars_take_bounded_steps_and_memory() {
    let mut random = seeded(12);
    let engine = engine(vocabulary(1, 20));
    let limits = Limits { call_steps: STEPS, ..Limits::NONE };
    for case in 0..300 {
        let grammar = Drawn::grammar(&mut random);
        let mut compiling = Meter::compiling(&Limits { compile_steps: STEPS, ..limits }, None);
        let compiled = compiling
            .run(|| engine.compile_as_it_is(&grammar, options(), false, Expansion::AsNeeded));
        let compiled = compiled.unwrap_or_else(|error| panic!("case {case}: {error}"));
        let mut state = compiled.generation().automaton.start();
        for at in 0..MANY {
            let mut meter = Meter::calling(&limits, None);
            let next = meter.run(|| {
                let next = |letter| after(&compiled, state, letter);
                Ok::<_, EngineError>([next(b'a')?, next(b'b')?])
            });
            let next = next.unwrap_or_else(|error| panic!("case {case}, byte {at}: {error}"));
            let ways: Vec<StateId> = next.into_iter().flatten().collect();
            let Some(&way) = ways.get(random.random_range(0..ways.len().max(1))) else { break };
            state = way;
        }
        let memory = compiled.generation().automaton.memory_bytes().total();
        assert!(memory < MEMORY, "case {case}: {memory} bytes");
    }
}

#[test]
fn repeats_of_repeats_are_one_symbol() {
    // A: B*; B: A* | "x", and a long way round of it.
    for rules in [2, 5] {
        let mut grammar = Grammar::new();
        let names: Vec<RuleId> =
            (0..rules).map(|at| grammar.declare(&format!("r{at}"), None).unwrap()).collect();
        let x = grammar.text(Ast::literal("x")).unwrap();
        for (at, &rule) in names.iter().enumerate() {
            let next = grammar.rule(names[(at + 1) % rules]).unwrap();
            let many = grammar.repeat(next, 0, None).unwrap();
            let body = match at + 1 == rules {
                true => grammar.choice(vec![many, x]).unwrap(),
                false => many,
            };
            grammar.define(rule, body);
        }
        grammar.start = Some(grammar.rule(names[0]).unwrap());
        let engine = engine(vocabulary(1, 20));
        let compiled = compile(&engine, &grammar, false);
        let mut state = compiled.generation().automaton.start();
        let mut states = BTreeSet::from([state]);
        for _ in 0..100 {
            state = after(&compiled, state, b'x').unwrap().unwrap();
            states.insert(state);
        }
        assert!(states.len() <= 4, "{} states", states.len());
    }
}
