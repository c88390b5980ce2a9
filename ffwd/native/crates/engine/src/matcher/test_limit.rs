//! Parts of texts keep to their limits, and whatever can keep to them may come.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use proptest::prelude::RngExt;
use proptest::test_runner::TestRng;

use super::*;
use crate::engine::{Engine, EngineConfig, GrammarOptions};
use crate::mask::token_set::bits;
use ffwd_grammar::oracle::{is_text_of, pattern};
use ffwd_grammar::{Grammar, Node, NodeId, TokenItem, TokenSet};
use ffwd_regular::regex::rust_dialect;
use ffwd_tokenizer::vocabulary::testing::seeded;
use ffwd_tokenizer::vocabulary::Vocabulary;

const TOKENS: [&str; 8] = ["aa", "ab", "ba", "aab", "bb", "abab", "ba;", "a;"];
const LEAVES: [&str; 8] = ["a", "b", "ab", "a|bb", "a{1,3}", "[ab]{2}", "b?", "a?b|aab"];

fn engine() -> Arc<Engine> {
    let bytes: Vec<[u8; 1]> = (0..=255u8).map(|byte| [byte]).collect();
    let mut texts: Vec<Option<&[u8]>> = bytes.iter().map(|byte| Some(&byte[..])).collect();
    texts.extend(TOKENS.iter().map(|token| Some(token.as_bytes())));
    // A control token, and the end.
    texts.extend([None, None]);
    let vocabulary = Vocabulary::new(&texts, &[TokenId(texts.len() as u32 - 1)], None).unwrap();
    Arc::new(Engine::new(vocabulary, None, EngineConfig::default()))
}

fn compile(engine: &Arc<Engine>, grammar: &Grammar) -> Arc<Compiled> {
    Arc::new(engine.compile_grammar(grammar, GrammarOptions::default()).unwrap())
}

/// A part with a finite language.
fn random_part(random: &mut TestRng, grammar: &mut Grammar, depth: usize) -> NodeId {
    if depth == 0 {
        return pattern(grammar, LEAVES[random.random_range(0..LEAVES.len())]);
    }
    match random.random_range(0..7) {
        0..=1 => {
            let parts = (0..2).map(|_| random_part(random, grammar, depth - 1)).collect();
            grammar.seq(parts).unwrap()
        }
        2 => {
            let parts = (0..2).map(|_| random_part(random, grammar, depth - 1)).collect();
            grammar.choice(parts).unwrap()
        }
        3 => {
            let inner = random_part(random, grammar, depth - 1);
            grammar.repeat(inner, random.random_range(0..2), Some(2)).unwrap()
        }
        _ => {
            let inner = random_part(random, grammar, depth - 1);
            grammar.limit(random.random_range(1..4), inner).unwrap()
        }
    }
}

/// The possible ends of a node that starts at a place of a text, with the token of each byte.
fn ends(grammar: &Grammar, node: NodeId, text: &[u8], of: &[usize], at: usize) -> BTreeSet<usize> {
    match grammar.node(node) {
        Node::Seq(parts) => parts.iter().fold(BTreeSet::from([at]), |starts, &part| {
            starts.iter().flat_map(|&at| ends(grammar, part, text, of, at)).collect()
        }),
        Node::Choice(parts) => {
            parts.iter().flat_map(|&part| ends(grammar, part, text, of, at)).collect()
        }
        &Node::Repeat { inner, min, max } => {
            let mut all = BTreeSet::new();
            let mut now = BTreeSet::from([at]);
            for count in 0..=max.unwrap() {
                if count >= min {
                    all.extend(now.iter().copied());
                }
                now = now.iter().flat_map(|&at| ends(grammar, inner, text, of, at)).collect();
            }
            all
        }
        Node::Lexeme(lexeme) => (at..=text.len())
            .filter(|&end| {
                let part = std::str::from_utf8(&text[at..end]).unwrap();
                is_text_of(lexeme, part)
            })
            .collect(),
        &Node::Limit { max_tokens, inner } => ends(grammar, inner, text, of, at)
            .into_iter()
            .filter(|&end| end == at || of[end - 1] - of[at] < max_tokens as usize)
            .collect(),
        other => panic!("{other:?}"),
    }
}

const LONGEST: usize = 7;

/// All sequences of tokens that the grammar takes, read from the grammar itself.
fn all_sequences(grammar: &Grammar, engine: &Engine) -> HashSet<Vec<TokenId>> {
    let vocabulary = engine.vocabulary();
    let is_used = |token: &TokenId| {
        let text = vocabulary.text(*token);
        !text.is_empty() && text.iter().all(|byte| b"ab".contains(byte))
    };
    let tokens: Vec<TokenId> =
        (0..vocabulary.width() as u32).map(TokenId).filter(is_used).collect();
    let mut found = HashSet::new();
    let mut pending: Vec<(Vec<TokenId>, Vec<u8>, Vec<usize>)> = vec![Default::default()];
    while let Some((sequence, text, of)) = pending.pop() {
        if ends(grammar, grammar.start.unwrap(), &text, &of, 0).contains(&text.len()) {
            found.insert(sequence.clone());
        }
        for &token in &tokens {
            let more = vocabulary.text(token);
            if text.len() + more.len() <= LONGEST {
                let of = of.iter().copied().chain(more.iter().map(|_| sequence.len())).collect();
                let sequence = sequence.iter().copied().chain([token]).collect();
                pending.push((sequence, [&text[..], more].concat(), of));
            }
        }
    }
    found
}

fn longest(grammar: &Grammar, node: NodeId) -> usize {
    match grammar.node(node) {
        Node::Seq(parts) => parts.iter().map(|&part| longest(grammar, part)).sum(),
        Node::Choice(parts) => parts.iter().map(|&p| longest(grammar, p)).max().unwrap_or(0),
        &Node::Repeat { inner, max, .. } => longest(grammar, inner) * max.unwrap() as usize,
        &Node::Limit { inner, .. } => longest(grammar, inner),
        _ => 3,
    }
}

fn mask(matcher: &Matcher) -> Vec<TokenId> {
    let mut row = vec![0; matcher.compiled().engine.vocabulary().mask_words()];
    matcher.fill_bitmask(&mut row).unwrap();
    bits(&row).collect()
}

#[test]
fn masks_are_what_keeps_to_the_limits() {
    let engine = engine();
    let vocabulary = engine.vocabulary().clone();
    let mut random = seeded(11);
    let (mut compared, mut missing, mut refused) = (0, 0, 0);
    for _ in 0..450 {
        let mut grammar = Grammar::new();
        let start = random_part(&mut random, &mut grammar, 3);
        if longest(&grammar, start) > LONGEST {
            continue;
        }
        grammar.start = Some(start);
        let all = all_sequences(&grammar, &engine);
        let compiled = compile(&engine, &grammar);
        let matcher = Matcher::beginning(compiled.clone(), &Beginning::default());
        if all.is_empty() {
            assert!(matches!(matcher, Err(MatcherError::Part { .. })), "{grammar:?}");
            refused += 1;
            continue;
        }
        let Ok(matcher) = matcher else {
            missing += 1;
            continue;
        };
        let prefixes: HashSet<Vec<TokenId>> = all
            .iter()
            .flat_map(|sequence| (0..=sequence.len()).map(|end| sequence[..end].to_vec()))
            .collect();
        let mut sorted: Vec<&Vec<TokenId>> = prefixes.iter().collect();
        sorted.sort();
        for prefix in sorted.into_iter().filter(|_| random.random_range(0..3) == 0) {
            let mut matcher = matcher.clone();
            if !matcher.accept_all(prefix).unwrap() {
                missing += 1;
                continue;
            }
            let allowed = mask(&matcher);
            for &token in &allowed {
                let next: Vec<TokenId> = prefix.iter().copied().chain([token]).collect();
                match vocabulary.is_eos(token) {
                    true => assert!(all.contains(prefix), "{prefix:?} {grammar:?}"),
                    false => assert!(prefixes.contains(&next), "{next:?} {grammar:?}"),
                }
                assert_eq!(matcher.validate(&[token]).unwrap(), 1);
            }
            assert_eq!(matcher.is_accepting(), all.contains(prefix), "{prefix:?} {grammar:?}");
            for token in (0..vocabulary.width() as u32).map(TokenId) {
                let next: Vec<TokenId> = prefix.iter().copied().chain([token]).collect();
                let taken = matcher.clone().accept(token).unwrap();
                assert_eq!(taken, allowed.contains(&token), "{prefix:?} {token} {grammar:?}");
                missing += usize::from(prefixes.contains(&next) && !taken);
                compared += usize::from(prefixes.contains(&next));
            }
        }
    }
    println!("{compared} compared, {missing} missing, {refused} refused");
    assert!(
        compared > 1000 && missing * 50 < compared && refused > 0,
        "{compared} {missing} {refused}"
    );
}

/// Walks at random, with rollbacks, forks and drafts, up to the end.
fn walk(random: &mut TestRng, compiled: &Arc<Compiled>, beginning: &Beginning) -> Vec<TokenId> {
    let mut matcher = Matcher::beginning(compiled.clone(), beginning).unwrap();
    let mut masks: Vec<Vec<TokenId>> = Vec::new();
    for step in 0..400 {
        let allowed = mask(&matcher);
        assert!(!allowed.is_empty(), "{:?}", matcher.tokens());
        masks.truncate(matcher.tokens().len());
        masks.push(allowed.clone());
        if step % 5 == 1 {
            // Neither may know of a text that the other does not.
            let width = compiled.engine.vocabulary().width() as u32;
            let is_taken = |&token: &TokenId| matcher.validate(&[token]).unwrap() == 1;
            let taken: Vec<TokenId> = (0..width).map(TokenId).filter(is_taken).collect();
            assert_eq!(taken, allowed, "{:?}", matcher.tokens());
        }
        if step % 7 == 3 && !matcher.tokens().is_empty() {
            let count = random.random_range(1..=matcher.tokens().len());
            let taken: Vec<TokenId> = matcher.tokens()[matcher.tokens().len() - count..].to_vec();
            matcher.rollback(count).unwrap();
            assert_eq!(mask(&matcher), masks[matcher.tokens().len()]);
            assert_eq!(matcher.validate(&taken).unwrap(), count);
            assert!(matcher.clone().accept_all(&taken).unwrap());
        }
        if step % 11 == 5 {
            compiled.begin_anew();
            let anew = mask(&matcher);
            assert_eq!(anew, masks[matcher.tokens().len()]);
        }
        let allowed = mask(&matcher);
        let token = allowed[random.random_range(0..allowed.len())];
        assert!(matcher.accept(token).unwrap());
        if matcher.is_terminated() {
            let tokens = matcher.tokens().to_vec();
            let mut again = Matcher::beginning(compiled.clone(), beginning).unwrap();
            assert_eq!(again.validate(&tokens).unwrap(), tokens.len());
            assert!(again.accept_all(&tokens).unwrap());
            return tokens;
        }
    }
    panic!("the text has not ended: {:?}", matcher.tokens());
}

/// How many tokens the first run of these bytes takes part in.
fn tokens_of_run(compiled: &Compiled, tokens: &[TokenId], within: impl Fn(u8) -> bool) -> usize {
    let vocabulary = compiled.engine.vocabulary();
    let is_in = |token: &&TokenId| vocabulary.text(**token).iter().any(|&byte| within(byte));
    tokens.iter().filter(is_in).count()
}

#[test]
fn free_text_ends_in_time() {
    let engine = engine();
    let mut random = seeded(5);
    for (max, inner) in [(1, "[ab]*"), (3, "[ab]{2,}"), (20, "(ab)*|b+"), (40, "(?s:[^;]*)")] {
        let mut grammar = Grammar::new();
        let free = pattern(&mut grammar, inner);
        let limited = grammar.limit(max, free).unwrap();
        let close = pattern(&mut grammar, ";;");
        grammar.start = Some(grammar.seq(vec![limited, close]).unwrap());
        let compiled = compile(&engine, &grammar);
        for _ in 0..12 {
            let tokens = walk(&mut random, &compiled, &Beginning::default());
            let count = tokens_of_run(&compiled, &tokens, |byte| byte != b';');
            assert!(count <= max as usize, "{inner} {tokens:?}");
        }
        // The part's tokens in the prompt do not count.
        let prefill = b"abab".to_vec();
        let begun = Beginning { prefill, ..Beginning::default() };
        if inner != "(ab)*|b+" || max > 1 {
            let tokens = walk(&mut random, &compiled, &begun);
            assert!(tokens_of_run(&compiled, &tokens, |byte| byte != b';') <= max as usize);
        }
        let budget = Beginning { max_tokens: Some(6), ..Beginning::default() };
        assert!(walk(&mut random, &compiled, &budget).len() <= 6);
    }
}

/// Free text before a part with a limit, closed by a text that has several splits into tokens.
#[test]
fn free_text_before_limits_ends_in_time() {
    let engine = engine();
    let mut random = seeded(6);
    let mut grammar = Grammar::new();
    let scope = grammar.add_scope();
    let word = rust_dialect::anchored("[ab]*").unwrap();
    let word = grammar.terminal(word, scope, false).unwrap();
    let limited = grammar.limit(3, word).unwrap();
    let close = pattern(&mut grammar, ";(ab|a)");
    grammar.start = Some(grammar.seq(vec![limited, close]).unwrap());
    let compiled = compile(&engine, &grammar);
    let close = Close::Text(b"aab".as_slice().into());
    let opening = Some(Opening { close, controls: Vec::new() });
    for max_tokens in 4..20 {
        let begun = Beginning {
            opening: opening.clone(),
            max_tokens: Some(max_tokens),
            ..Beginning::default()
        };
        for _ in 0..6 {
            assert!(walk(&mut random, &compiled, &begun).len() <= max_tokens);
        }
    }
}

#[test]
fn at_the_limit_the_closing_text_is_forced() {
    let engine = engine();
    let mut grammar = Grammar::new();
    let free = pattern(&mut grammar, "[ab ]*");
    let limited = grammar.limit(2000, free).unwrap();
    let close = pattern(&mut grammar, ";end");
    grammar.start = Some(grammar.seq(vec![limited, close]).unwrap());
    let compiled = compile(&engine, &grammar);
    let mut matcher = Matcher::new(compiled.clone()).unwrap();
    for _ in 0..2000 {
        assert!(matcher.accept(TokenId(u32::from(b'a'))).unwrap());
    }
    {
        let (generation, state) = matcher.here().unwrap();
        let automaton = &generation.automaton;
        assert_eq!(automaton.only_byte(automaton.threads(state)).unwrap(), Some(b';'));
    }
    assert_eq!(mask(&matcher), [TokenId(u32::from(b';'))]);
    // All of it are a few states and masks.
    assert!(compiled.generation().automaton.num_states() < 16);
    matcher.rollback(1).unwrap();
    assert!(mask(&matcher).len() > 5);
}

#[test]
fn tokens_that_are_no_text_are_among_completions() {
    let engine = engine();
    let control = engine.vocabulary().width() as u32 - 2;
    let mut grammar = Grammar::new();
    let free = pattern(&mut grammar, "[ab]*");
    let limited = grammar.limit(3, free).unwrap();
    let items = [TokenItem::Ids(control, control)].into();
    let token = Node::Tokens(Arc::new(TokenSet { items, exclude: false, place: None }));
    let token = grammar.add(token).unwrap();
    let rest = pattern(&mut grammar, "b");
    grammar.start = Some(grammar.seq(vec![limited, token, rest]).unwrap());
    let compiled = compile(&engine, &grammar);
    let mut random = seeded(9);
    for max in [None, Some(3), Some(4)] {
        for _ in 0..8 {
            let beginning = Beginning { max_tokens: max, ..Beginning::default() };
            let tokens = walk(&mut random, &compiled, &beginning);
            let place = tokens.iter().position(|token| token.0 == control).unwrap();
            assert!(
                place <= 3
                    && tokens.len() == place + 3
                    && max.is_none_or(|max| tokens.len() <= max)
            );
        }
    }
    let beginning = Beginning { max_tokens: Some(2), ..Beginning::default() };
    let error = Matcher::beginning(compiled, &beginning).unwrap_err();
    assert!(matches!(error, MatcherError::Budget { needed: 3, max_tokens: 2 }), "{error}");
}

#[test]
fn recursion_and_repetition_count_each_part() {
    let engine = engine();
    let mut random = seeded(3);
    // E: "(" E{<=6} ")" | "a", and a list of parts of at most two tokens.
    let mut grammar = Grammar::new();
    let rule = grammar.declare("e", None).unwrap();
    let inner = grammar.rule(rule).unwrap();
    let limited = grammar.limit(6, inner).unwrap();
    let (open, close) = (pattern(&mut grammar, "\\("), pattern(&mut grammar, "\\)"));
    let nested = grammar.seq(vec![open, limited, close]).unwrap();
    let plain = pattern(&mut grammar, "a");
    let body = grammar.choice(vec![nested, plain]).unwrap();
    grammar.define(rule, body);
    grammar.start = Some(inner);
    let compiled = compile(&engine, &grammar);
    let mut deepest = 0;
    for _ in 0..30 {
        let tokens = walk(&mut random, &compiled, &Beginning::default());
        deepest = deepest.max(tokens.iter().filter(|token| token.0 == u32::from(b'(')).count());
    }
    assert_eq!(deepest, 3);
    let mut grammar = Grammar::new();
    let word = pattern(&mut grammar, "[ab]+");
    let word = grammar.limit(2, word).unwrap();
    let mark = pattern(&mut grammar, ";");
    let item = grammar.seq(vec![word, mark]).unwrap();
    grammar.start = Some(grammar.repeat(item, 3, Some(5)).unwrap());
    let compiled = compile(&engine, &grammar);
    for _ in 0..20 {
        let tokens = walk(&mut random, &compiled, &Beginning::default());
        let mut run = 0;
        for &token in &tokens {
            let text = engine.vocabulary().text(token);
            run += usize::from(text.first().is_some_and(|&byte| byte != b';'));
            assert!(run <= 2, "{tokens:?}");
            run = if text.contains(&b';') { 0 } else { run };
        }
    }
}

#[test]
fn a_part_that_cannot_end_in_time_is_an_error_with_its_rule() {
    let engine = engine();
    let mut grammar = Grammar::new();
    let source = grammar.add_source("EBNF", "root ::= x\nlong[max_tokens=2] ::= \"aabbaabb\"");
    let place = Some(ffwd_grammar::Place { source, offset: 11 });
    let rule = grammar.declare("long", place).unwrap();
    let text = pattern(&mut grammar, "ababababab");
    let body = grammar.limit(2, text).unwrap();
    grammar.define(rule, body);
    grammar.start = Some(grammar.rule(rule).unwrap());
    let compiled = compile(&engine, &grammar);
    let matchers =
        [Matcher::new(compiled.clone()), Matcher::beginning(compiled, &Beginning::default())];
    for matcher in matchers {
        let error = matcher.unwrap_err();
        assert!(error.to_string().contains("the rule `long` (EBNF, line 2, column 1)"), "{error}");
        let MatcherError::Part { needed: 3, max_tokens: 2, .. } = error else { panic!("{error}") };
    }
}
