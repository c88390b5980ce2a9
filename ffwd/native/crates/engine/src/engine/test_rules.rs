//! Masks of grammars of rules.

use std::sync::Arc;

use proptest::prelude::RngExt;
use proptest::test_runner::TestRng;

use super::tests::{assert_mask, engine, read, walk_and_compare};
use super::{Compiled, Engine, GrammarOptions};
use ffwd_automaton::{Whitespace, WhitespaceMode};
use ffwd_grammar::graph::Expansion;
use ffwd_grammar::{Grammar, Node, NodeId, ScopeId, TokenItem, TokenSet};
use ffwd_regular::regex::{rust_dialect, Ast};
use ffwd_tokenizer::vocabulary::testing::{vocabulary, vocabulary_of};

pub(super) fn options() -> GrammarOptions {
    Whitespace { mode: WhitespaceMode::Compact }.into()
}

fn compile(engine: &Arc<Engine>, grammar: &Grammar) -> Compiled {
    engine.compile_grammar(grammar, options()).unwrap()
}

/// Rules as lists of alternatives of parts, set apart by blanks: names in capitals are rules,
/// `/x/` is an expression, `json:x` a schema, and anything else is text. With a scope, lexemes end
/// at their longest match, and what `ignore` matches may follow each.
struct Rules<'r> {
    rules: &'r [(&'r str, &'r [&'r str])],
    scope: Option<ScopeId>,
    ignore: Option<&'r str>,
}

impl Rules<'_> {
    fn lexeme(&self, grammar: &mut Grammar, language: Ast) -> NodeId {
        let Some(scope) = self.scope else { return grammar.text(language).unwrap() };
        let lexeme = grammar.terminal(language, scope, false).unwrap();
        let Some(ignore) = self.ignore else { return lexeme };
        let ignored = rust_dialect::anchored(ignore).unwrap();
        let ignored = grammar.ignored(ignored, scope).unwrap();
        let ignored = grammar.repeat(ignored, 0, None).unwrap();
        grammar.seq(vec![lexeme, ignored]).unwrap()
    }

    fn build(&self) -> Grammar {
        let mut grammar = Grammar::new();
        let names = self.rules.iter().map(|(name, _)| *name);
        let ids: Vec<_> = names.map(|name| grammar.declare(name, None).unwrap()).collect();
        for ((_, alternatives), &id) in self.rules.iter().zip(&ids) {
            let mut bodies = Vec::new();
            for alternative in *alternatives {
                let mut parts = Vec::new();
                for part in alternative.split(' ').filter(|part| !part.is_empty()) {
                    let rule = self.rules.iter().position(|(name, _)| *name == part);
                    let pattern = part.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
                    parts.push(if let Some(rule) = rule {
                        grammar.rule(ids[rule]).unwrap()
                    } else if let Some(pattern) = pattern {
                        let language = rust_dialect::anchored(pattern).unwrap();
                        self.lexeme(&mut grammar, language)
                    } else if let Some(schema) = part.strip_prefix("json:") {
                        grammar.json(schema, None).unwrap()
                    } else {
                        self.lexeme(&mut grammar, Ast::literal(part))
                    });
                }
                bodies.push(grammar.seq(parts).unwrap());
            }
            let body = grammar.choice(bodies).unwrap();
            grammar.define(id, body);
        }
        grammar.start = Some(grammar.rule(ids[0]).unwrap());
        grammar
    }
}

fn anywhere(rules: &[(&str, &[&str])]) -> Grammar {
    Rules { rules, scope: None, ignore: None }.build()
}

fn longest(rules: &[(&str, &[&str])], ignore: Option<&str>) -> Grammar {
    let scope = Some(Grammar::new().add_scope());
    Rules { rules, scope, ignore }.build()
}

fn walks(grammar: &Grammar, what: &str) {
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    for seed in 0..3 {
        let engine = engine(vocabulary(seed, 300));
        let compiled = compile(&engine, grammar);
        for _ in 0..12 {
            walk_and_compare(&compiled, &mut rng, 20, what);
        }
    }
}

fn assert_reads(grammar: &Grammar, accepted: &[&str], refused: &[&str]) {
    let engine = engine(vocabulary(1, 50));
    let compiled = compile(&engine, grammar);
    for text in accepted {
        assert_eq!(read(&compiled, text), Ok(()), "{text}");
    }
    for text in refused {
        assert!(read(&compiled, text).is_err(), "{text}");
    }
}

const EXPRESSIONS: &[(&str, &[&str])] =
    &[("E", &["E + E", "E * E", "( E )", "- E", "/[0-9]+/", "/[a-z]+/"])];

const VALUES: &[(&str, &[&str])] = &[
    ("V", &["S W", "N W", "{ W }", "{ W M }", "[ W ]", "[ W L ]", "true W", "null W"]),
    ("M", &["S W : W V , W M", "S W : W V }"]),
    ("L", &["V , W L", "V ] W"]),
    ("S", &["\" C \""]),
    ("C", &["", "/[^\"\\\\\\x00-\\x1f]/ C", "\\ X C"]),
    ("X", &["/[nt\"]/", "u H H"]),
    ("H", &["/[0-9a-f]/"]),
    ("N", &["/-?[1-9]/ D", "0"]),
    ("D", &["/[0-9]*/", ". /[0-9]+/"]),
    ("W", &["", "/ +/"]),
];

/// Two ways to compile a grammar have the same masks, wherever texts go.
pub(super) fn assert_same_masks(compiled: [&Compiled; 2], rng: &mut TestRng, what: &str) {
    for _ in 0..12 {
        let mut states = compiled.map(|compiled| compiled.generation().automaton.start());
        for _ in 0..20 {
            let [tokens, expected] = [(compiled[0], states[0]), (compiled[1], states[1])]
                .map(|(compiled, state)| assert_mask(compiled, state, b"", what));
            assert_eq!(tokens, expected, "{what}");
            let token = tokens[rng.random_range(0..tokens.len())];
            let vocabulary = compiled[0].engine.vocabulary();
            if vocabulary.is_eos(token) {
                break;
            }
            for (compiled, state) in compiled.into_iter().zip(&mut states) {
                let automaton = &compiled.generation().automaton;
                let text = vocabulary.text(token);
                let threads = automaton.read(automaton.threads(*state), token.0, text);
                *state = automaton.intern(threads.unwrap().unwrap()).unwrap();
            }
        }
    }
}

#[test]
fn folding_keeps_the_masks() {
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    for rules in [EXPRESSIONS, VALUES] {
        let grammar = anywhere(rules);
        for seed in 0..3 {
            let engine = engine(vocabulary(seed, 300));
            let folded = compile(&engine, &grammar);
            let plain =
                engine.compile_as_it_is(&grammar, options(), false, Expansion::AsNeeded).unwrap();
            assert_same_masks([&folded, &plain], &mut rng, "folding");
        }
    }
}

#[test]
fn rows_need_not_know_what_follows() {
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    for (rules, ignored) in [(EXPRESSIONS, None), (EXPRESSIONS, Some("[ ]+")), (VALUES, None)] {
        let grammar = longest(rules, ignored);
        for seed in 0..4 {
            let engine = engine(vocabulary(seed, 300));
            let [lazy, eager] = [false, true].map(|eager| {
                engine.compile_as_it_is(&grammar, options(), eager, Expansion::AsNeeded).unwrap()
            });
            assert_same_masks([&lazy, &eager], &mut rng, "rows");
        }
    }
}

#[test]
fn left_recursive_expressions() {
    let grammar = anywhere(EXPRESSIONS);
    assert_reads(&grammar, &["1", "1+2*(a+-b)", "--1", "((x))*7+8"], &["", "1+", "(1", "1)", "+1"]);
    walks(&grammar, "expressions");
    let grammar = longest(EXPRESSIONS, Some("[ ]+"));
    assert_reads(&grammar, &["1 + 2 * ( a  )", "1 "], &[" 1", "1 1", "a b", "1 +"]);
    walks(&grammar, "expressions with blanks");
}

#[test]
fn runs_that_come_back_to_where_they_began() {
    // After each minus, and after blanks, the same may come again, so tokens are long runs of them.
    let pieces = ["-", "-", "--", " ", "  ", "(", ")", "a", "+", "*", "1", "é"];
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    for size in [60, 400, 1500] {
        let token = |rng: &mut TestRng| {
            let length = rng.random_range(2..9);
            (0..length).map(|_| pieces[rng.random_range(0..pieces.len())]).collect::<String>()
        };
        let mut tokens: Vec<String> = (0..size).map(|_| token(&mut rng)).collect();
        tokens.extend((2..40).map(|length| "-".repeat(length)));
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let engine = engine(vocabulary_of(&tokens));
        for ignored in [None, Some("[ ]+"), Some("[ ]")] {
            let grammar = longest(EXPRESSIONS, ignored);
            let compiled = compile(&engine, &grammar);
            for _ in 0..6 {
                walk_and_compare(&compiled, &mut rng, 12, "runs");
            }
            let eager =
                engine.compile_as_it_is(&grammar, options(), true, Expansion::AsNeeded).unwrap();
            assert_same_masks([&compiled, &eager], &mut rng, "runs");
        }
    }
}

#[test]
fn ambiguous_texts_have_few_states() {
    let rules: &[(&str, &[&str])] = &[("S", &["S S", "S S S", "a", "b S a", ""])];
    let grammar = anywhere(rules);
    let engine = engine(vocabulary(1, 50));
    let compiled = compile(&engine, &grammar);
    assert_eq!(read(&compiled, &"a".repeat(200)), Ok(()));
    let text = "b".repeat(60) + &"a".repeat(130);
    assert_eq!(read(&compiled, &text), Ok(()));
    let generation = compiled.generation();
    let most = (0..generation.automaton.num_states() as u32)
        .map(|id| generation.automaton.threads(ffwd_automaton::StateId(id)).len())
        .max();
    assert!(most <= Some(8), "{most:?} threads");
    drop(generation);
    walks(&grammar, "ambiguous");
}

#[test]
fn palindromes() {
    let rules: &[(&str, &[&str])] = &[("S", &["a S a", "b S b", "c S c", "a", "b", ""])];
    let grammar = anywhere(rules);
    assert_reads(&grammar, &["", "abba", "abcacba", "cc"], &["ab", "abb", "cbcb"]);
    walks(&grammar, "palindromes");
    let engine = engine(vocabulary(1, 50));
    let compiled = compile(&engine, &grammar);
    assert_eq!(read(&compiled, &"a".repeat(300)), Ok(()));
}

#[test]
fn the_longest_match_counts() {
    let rules: &[(&str, &[&str])] =
        &[("S", &["if NAME", "NAME"]), ("NAME", &["/[a-z]+/", "/[a-z]+/ . NAME"])];
    let grammar = longest(rules, Some("[ ]+"));
    assert_reads(&grammar, &["if x", "ifx", "if", "a.b .c", "if a . b"], &["if if if", "a b", ""]);
    walks(&grammar, "names");
    // A number goes on as long as it can, also where it cannot end there.
    let rules: &[(&str, &[&str])] = &[("S", &["/[0-9]+/ .. /[0-9]+/", "/[0-9]+\\.[0-9]+/"])];
    let grammar = longest(rules, None);
    assert_reads(&grammar, &["1.5", "12.50"], &["1..5", "1."]);
    walks(&grammar, "numbers");
}

#[test]
fn json_within_rules() {
    let rules: &[(&str, &[&str])] = &[
        ("S", &["CALL", "CALL ; S"]),
        (
            "CALL",
            &[
                r#"f( json:{"type":"object","properties":{"a":{"type":"integer"}}} )"#,
                r#"g( json:{"enum":[1,"x",null]} )"#,
                r#"h( json:{"type":"array","items":{"type":"integer"},"maxItems":3} )"#,
            ],
        ),
    ];
    let grammar = anywhere(rules);
    assert_reads(
        &grammar,
        &[r#"f({"a":1})"#, "g(null);g(1)", "h([1,2,3]);f({})"],
        &[r#"f({"a":"x"})"#, "g(2)", "h([1,2,3,4])", "h([])f({})"],
    );
    walks(&grammar, "calls");
    let grammar = longest(rules, Some("[ ]+"));
    assert_reads(&grammar, &["g( 1) ; g(\"x\")"], &["g(1) g(1)"]);
    walks(&grammar, "calls with blanks");
}

#[test]
fn counted_repeats_are_not_unrolled() {
    let mut grammar = Grammar::new();
    let a = grammar.text(Ast::literal("a")).unwrap();
    let json = grammar.json(r#"{"type":"integer"}"#, None).unwrap();
    let both = grammar.seq(vec![a, json]).unwrap();
    let many = grammar.repeat(both, 2, Some(1_000_000)).unwrap();
    grammar.start = Some(many);
    assert_reads(&grammar, &["a1a2", "a-1a0a77"], &["", "a1", "a1a"]);
    walks(&grammar, "repeats");
}

#[test]
fn tokens_are_taken_as_a_whole() {
    let engine = engine(vocabulary(3, 200));
    let eos = engine.vocabulary().eos()[0];
    let mut grammar = Grammar::new();
    let set = |ids: &[(u32, u32)], exclude| {
        let items = ids.iter().map(|&(first, last)| TokenItem::Ids(first, last)).collect();
        ffwd_grammar::Node::Tokens(TokenSet { items, exclude, place: None }.into())
    };
    let one = grammar.add(set(&[(7, 7)], false)).unwrap();
    let others = grammar.add(set(&[(0, 9), (30, 40)], true)).unwrap();
    let words = grammar.text(rust_dialect::anchored("[a-z]*").unwrap()).unwrap();
    let many = grammar.repeat(others, 1, Some(3)).unwrap();
    grammar.start = Some(grammar.seq(vec![words, one, many]).unwrap());
    let compiled = compile(&engine, &grammar);
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    for _ in 0..30 {
        walk_and_compare(&compiled, &mut rng, 12, "tokens");
    }
    let generation = compiled.generation();
    let automaton = &generation.automaton;
    let start = automaton.threads(automaton.start());
    let next = automaton.step_token(start, 7).unwrap();
    assert!(!next.is_empty());
    assert!(automaton.step_token(start, 8).unwrap().is_empty());
    assert!(automaton.step_token(&next, eos.0).unwrap().is_empty());
    assert!(automaton.step_token(&next, 35).unwrap().is_empty());
    assert!(!automaton.step_token(&next, 50).unwrap().is_empty());
}

/// What was built of several schemas is evicted before any of them was met, and after.
#[test]
fn several_schemas_are_the_same_after_an_eviction() {
    let engine = engine(vocabulary(3, 200));
    let mut grammar = Grammar::new();
    let schemas = [
        r#"{"type":"object","properties":{"a":{"enum":["x",1]}},"additionalProperties":false}"#,
        r#"{"type":"array","items":{"type":"boolean"},"maxItems":2}"#,
        r#"{"type":"string","maxLength":2}"#,
        r#"{"type":"array","items":{"type":"boolean"},"maxItems":2}"#,
    ];
    let parts = schemas.iter().enumerate().map(|(number, schema)| {
        let name = grammar.text(Ast::literal(&format!("{number}="))).unwrap();
        let json = grammar.json(schema, None).unwrap();
        grammar.seq(vec![name, json]).unwrap()
    });
    let parts = parts.collect();
    grammar.start = Some(grammar.choice(parts).unwrap());
    let compiled = compile(&engine, &grammar);
    let texts = [r#"0={"a":1}"#, "1=[true]", r#"2="ab""#, "3=[false,true]"];
    for _ in 0..3 {
        for text in texts {
            compiled.begin_anew();
            assert_eq!(read(&compiled, text), Ok(()), "{text}");
        }
        assert_eq!(read(&compiled, "1=[1]"), Err(3));
    }
}

/// A lexeme that consumes all that could follow it is a dead end, also if tokens that are taken as a
/// whole lead there: one, several, or a text and one.
/// Parts that consume nothing of what follows: a token, a text, a lazy terminal, a JSON value.
fn part_that_ends_anywhere(grammar: &mut Grammar, kind: usize, scope: ScopeId) -> NodeId {
    match kind {
        0 => {
            let items = [TokenItem::Ids(0, 150)].into();
            let set = TokenSet { items, exclude: false, place: None };
            grammar.add(Node::Tokens(set.into())).unwrap()
        }
        1 => grammar.text(Ast::literal("(")).unwrap(),
        2 => grammar.text(rust_dialect::anchored("[xy]{1,2}|z").unwrap()).unwrap(),
        3 => grammar.terminal(rust_dialect::anchored("[x-z]").unwrap(), scope, true).unwrap(),
        4 => grammar.json(r#"{"type":"integer"}"#, None).unwrap(),
        _ => grammar.json(r#"{"type":"array"}"#, None).unwrap(),
    }
}

#[test]
fn parts_before_a_dead_end_are_not_offered() {
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    let befores = [("", 1), ("", 2), ("x", 1), ("y+", 1), ("y+", 3)];
    for (kind, (pattern, parts)) in (0..6).flat_map(|kind| befores.map(|before| (kind, before))) {
        let engine = engine(vocabulary(3, 200));
        let mut grammar = Grammar::new();
        let scope = grammar.add_scope();
        let part = part_that_ends_anywhere(&mut grammar, kind, scope);
        let part = grammar.repeat(part, parts, Some(parts)).unwrap();
        let word = rust_dialect::anchored("[a-c]+").unwrap();
        let word = grammar.terminal(word, scope, false).unwrap();
        let before = rust_dialect::anchored(pattern).unwrap();
        let before = grammar.terminal(before, scope, false).unwrap();
        let close = grammar.text(Ast::literal("a")).unwrap();
        let dead = grammar.seq(vec![before, part, word, close]).unwrap();
        let dead = grammar.repeat(dead, 0, None).unwrap();
        let ending = grammar.text(Ast::literal("b")).unwrap();
        grammar.start = Some(grammar.seq(vec![dead, ending]).unwrap());
        let compiled = compile(&engine, &grammar);
        for _ in 0..5 {
            let text = walk_and_compare(&compiled, &mut rng, 4, "dead ends");
            assert_eq!(text.as_deref(), Some(&b"b"[..]), "{kind}: {parts} after {pattern:?}");
        }
    }
}

#[test]
fn tokens_go_past_the_end_of_a_value() {
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    let engine = engine(vocabulary(7, 400));
    for schema in
        [r#"{"type":"number"}"#, r#"{"type":["boolean","null"]}"#, r#"{"enum":[1,11,"a"]}"#]
    {
        for after in ["a", "1", "[a-c]*", "<b>", ""] {
            let mut grammar = Grammar::new();
            let value = grammar.json(schema, None).unwrap();
            let text = grammar.text(rust_dialect::anchored(after).unwrap()).unwrap();
            let pair = grammar.seq(vec![value, text]).unwrap();
            grammar.start = Some(grammar.repeat(pair, 1, None).unwrap());
            let compiled = compile(&engine, &grammar);
            for _ in 0..5 {
                walk_and_compare(&compiled, &mut rng, 12, schema);
            }
        }
    }
}

#[test]
fn tokens_with_two_keys_may_come_as_a_whole() {
    let engine = engine(vocabulary(31, 200));
    let mut grammar = Grammar::new();
    let items = Box::new([TokenItem::Ids(u32::from(b'a'), u32::from(b'c'))]);
    let any = TokenSet { items, exclude: true, place: None };
    let any = grammar.add(Node::Tokens(any.into())).unwrap();
    let json = grammar.json("true", None).unwrap();
    grammar.start = Some(grammar.choice(vec![any, json]).unwrap());
    let compiled = compile(&engine, &grammar);
    let start = compiled.generation().automaton.start();
    let allowed = assert_mask(&compiled, start, b"", "any token, or JSON");
    let two_keys = engine.vocabulary().tokens_with_two_keys();
    assert!(two_keys.len() > 2 && two_keys.iter().all(|token| allowed.contains(token)));
}
