//! Accepting, validating and taking back, held against each other.

use std::sync::Arc;

use proptest::prelude::RngExt;

use super::*;
use crate::engine::{Engine, EngineConfig};
use crate::mask::token_set::bits;
use ffwd_automaton::{Threads, Whitespace, WhitespaceMode};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary, vocabulary_of};
use ffwd_tokenizer::vocabulary::Vocabulary;

const COMPACT: Whitespace = Whitespace { mode: WhitespaceMode::Compact };
const SCHEMA: &str = r#"{"type": "object", "properties": {"name": {"type": "string"},
    "a": {"type": "array", "items": {"type": "integer"}}}, "required": ["name"]}"#;

fn compiled(vocabulary: Vocabulary, schema: &str) -> Arc<Compiled> {
    let engine = Arc::new(Engine::new(vocabulary, None, EngineConfig::default()));
    Arc::new(engine.compile_json_schema(schema, COMPACT).unwrap())
}

/// The id of the token that spells a text.
fn id(compiled: &Compiled, text: &str) -> TokenId {
    let trie = compiled.engine.vocabulary().trie();
    trie.tokens_at(trie.find(text.as_bytes()).unwrap())[0]
}

fn ids(compiled: &Compiled, texts: &[&str]) -> Vec<TokenId> {
    texts.iter().map(|text| id(compiled, text)).collect()
}

fn eos(compiled: &Compiled) -> TokenId {
    compiled.engine.vocabulary().eos()[0]
}

fn row(matcher: &Matcher) -> Vec<TokenId> {
    let mut row = vec![u32::MAX; matcher.compiled().engine.vocabulary().mask_words()];
    matcher.fill_bitmask(&mut row).unwrap();
    bits(&row).collect()
}

/// What can be asked of a matcher.
fn seen(matcher: &Matcher) -> (StateId, Vec<TokenId>, bool, bool) {
    let tokens = matcher.tokens().to_vec();
    (matcher.state(), tokens, matcher.is_accepting(), matcher.is_terminated())
}

#[test]
fn a_token_is_accepted_if_and_only_if_its_bit_is_set() {
    let compiled = compiled(vocabulary(31, 300), SCHEMA);
    let width = compiled.engine.vocabulary().width() as u32;
    let mut rng = seeded(1);
    for _ in 0..4 {
        let mut matcher = Matcher::new(compiled.clone()).unwrap();
        for _ in 0..12 {
            let allowed = matcher.allowed().unwrap();
            assert_eq!(row(&matcher), allowed);
            // And again, from the memo.
            assert_eq!(matcher.allowed().unwrap(), allowed);
            let before = seen(&matcher);
            for token in (0..width).map(TokenId) {
                let expected = allowed.binary_search(&token).is_ok();
                assert_eq!(matcher.validate(&[token]).unwrap(), usize::from(expected));
                assert_eq!(matcher.accept(token).unwrap(), expected, "{token}");
                if expected {
                    matcher.rollback(1).unwrap();
                }
                assert_eq!(seen(&matcher), before, "{token}");
            }
            let token = allowed[rng.random_range(0..allowed.len())];
            matcher.accept(token).unwrap();
            if matcher.is_terminated() {
                break;
            }
        }
    }
}

#[test]
fn rollback_undoes_accept() {
    let compiled = compiled(vocabulary(32, 300), SCHEMA);
    let mut rng = seeded(2);
    let mut matcher = Matcher::new(compiled.clone()).unwrap();
    let mut history = vec![seen(&matcher)];
    for _ in 0..300 {
        let taken = history.len() - 1;
        if matcher.is_terminated() || rng.random_range(0..4) == 0 {
            let count = rng.random_range(0..=taken.min(6));
            matcher.rollback(count).unwrap();
            history.truncate(taken - count + 1);
        } else {
            let allowed = matcher.allowed().unwrap();
            assert!(matcher.accept(allowed[rng.random_range(0..allowed.len())]).unwrap());
            history.push(seen(&matcher));
        }
        assert_eq!(seen(&matcher), history[history.len() - 1]);
    }
    matcher.reset().unwrap();
    assert_eq!(seen(&matcher), history[0]);
}

#[test]
fn all_tokens_are_taken_or_none() {
    let compiled = compiled(vocabulary(33, 0), SCHEMA);
    let mut matcher = Matcher::new(compiled.clone()).unwrap();
    assert!(matcher.accept(id(&compiled, "{\"")).unwrap());
    let before = seen(&matcher);
    let good = ids(&compiled, &["n", "a", "m", "e", "\":\"", "x"]);
    let mut bad = good.clone();
    bad.extend(ids(&compiled, &["\"", "]", "x"]));
    assert_eq!(matcher.validate(&bad).unwrap(), 7);
    assert_eq!(matcher.validate(&good).unwrap(), 6);
    assert_eq!(seen(&matcher), before, "validation changes nothing");
    assert!(!matcher.accept_all(&bad).unwrap());
    assert_eq!(seen(&matcher), before);
    assert!(matcher.accept_all(&good).unwrap());
    assert_eq!(matcher.tokens().len(), 7);
    assert!(matcher.accept_all(&[]).unwrap());
    // An id that is none is an error, and takes back as well.
    let before = seen(&matcher);
    let outside = TokenId(compiled.engine.vocabulary().width() as u32);
    let error = matcher.accept_all(&[good[0], outside]).unwrap_err();
    assert!(
        matches!(error, MatcherError::OutOfRange { token, position: 8, .. } if token == outside)
    );
    assert_eq!(seen(&matcher), before);
    assert!(matcher.validate(&[good[0], outside]).is_err());
}

#[test]
fn the_end_token_ends() {
    let compiled = compiled(vocabulary(34, 0), r#"{"type": "integer"}"#);
    let end = eos(&compiled);
    let mut matcher = Matcher::new(compiled.clone()).unwrap();
    assert!(!matcher.accept(end).unwrap(), "not before the text is complete");
    assert!(!matcher.is_accepting());
    let one = id(&compiled, "1");
    assert_eq!(matcher.validate(&[one, end, one]).unwrap(), 2);
    assert_eq!(matcher.validate(&[one, end, end]).unwrap(), 2);
    assert!(matcher.accept(one).unwrap());
    assert!(matcher.is_accepting() && !matcher.is_terminated());
    assert!(matcher.accept(end).unwrap());
    assert!(matcher.is_accepting() && matcher.is_terminated());
    // A finished row of a batch can be sampled from, but nothing more is taken.
    assert_eq!(row(&matcher), compiled.engine.vocabulary().eos());
    assert!(matcher.allowed().unwrap().is_empty());
    assert_eq!(matcher.validate(&[end]).unwrap(), 0);
    let error = matcher.accept(end).unwrap_err();
    assert!(matches!(error, MatcherError::AfterEnd { position: 2, .. }));
    matcher.rollback(1).unwrap();
    assert!(!matcher.is_terminated());
    assert!(matcher.accept(id(&compiled, "2")).unwrap());
    let error = matcher.rollback(3).unwrap_err();
    assert!(matches!(error, MatcherError::RollbackTooFar { asked: 3, accepted: 2 }));
    // Either end token will do.
    assert!(matcher.accept(compiled.engine.vocabulary().eos()[1]).unwrap());
}

#[test]
fn tokens_that_are_no_text_are_refused() {
    let compiled = compiled(vocabulary(34, 0), "true");
    let vocabulary = compiled.engine.vocabulary();
    let mut matcher = Matcher::new(compiled.clone()).unwrap();
    let silent: Vec<TokenId> = (0..vocabulary.width() as u32)
        .map(TokenId)
        .filter(|&token| vocabulary.text(token).is_empty() && !vocabulary.is_eos(token))
        .collect();
    assert!(silent.len() > 5);
    for token in silent {
        assert!(!matcher.accept(token).unwrap());
    }
}

#[test]
fn a_copy_goes_its_own_way() {
    let compiled = compiled(vocabulary_of(&["tr", "ue"]), r#"{"enum": [true, "t"]}"#);
    let mut one = Matcher::new(compiled.clone()).unwrap();
    one.accept(id(&compiled, "tr")).unwrap();
    let mut other = one.clone();
    assert!(other.accept(id(&compiled, "ue")).unwrap());
    assert!(!one.is_accepting() && other.is_accepting());
    other.rollback(2).unwrap();
    assert_eq!(one.tokens().len(), 1);
    assert_eq!(other.state(), compiled.generation().automaton.start());
}

/// The state after all bytes of some tokens, read one after another without any memo.
fn state_after(compiled: &Compiled, tokens: &[TokenId]) -> StateId {
    let (generation, engine) = (compiled.generation(), &compiled.engine);
    let automaton = &generation.automaton;
    let mut threads: Threads = automaton.threads(automaton.start()).iter().copied().collect();
    for &token in tokens {
        threads = automaton.walk(&threads, engine.vocabulary().text(token)).unwrap().unwrap();
    }
    automaton.intern(threads).unwrap()
}

#[test]
fn long_texts_go_back_to_where_they_were() {
    let compiled =
        compiled(vocabulary(36, 300), r#"{"type": "array", "items": {"type": "string"}}"#);
    let mut rng = seeded(4);
    let mut matcher = Matcher::new(compiled.clone()).unwrap();
    let mut longest = 0;
    for step in 0..4000 {
        if step % 100 == 99 {
            let most = if step % 1000 == 999 { matcher.tokens().len() } else { 90 };
            matcher.rollback(rng.random_range(0..most.min(matcher.tokens().len()))).unwrap();
            assert_eq!(matcher.state(), state_after(&compiled, matcher.tokens()));
        }
        // Never the end of the text.
        let mut open = matcher.allowed().unwrap();
        open.retain(|&token| !compiled.engine.vocabulary().text(token).contains(&b']'));
        open.retain(|&token| !compiled.engine.vocabulary().text(token).is_empty());
        let token = open[rng.random_range(0..open.len())];
        assert!(matcher.accept(token).unwrap());
        longest = longest.max(matcher.tokens().len());
    }
    assert!(longest > 300);
    assert_eq!(matcher.state(), state_after(&compiled, matcher.tokens()));
}

#[test]
fn ten_thousand_tokens_are_small() {
    let compiled =
        compiled(vocabulary(37, 300), r#"{"type": "array", "items": {"type": "integer"}}"#);
    let mut matcher = Matcher::new(compiled.clone()).unwrap();
    let (open, one, comma) = (id(&compiled, "["), id(&compiled, "1"), id(&compiled, ","));
    assert!(matcher.accept(open).unwrap());
    for token in [one, comma].into_iter().cycle().take(9_999) {
        assert!(matcher.accept(token).unwrap());
    }
    assert!(matcher.memory_bytes() <= 50_000, "{}", matcher.memory_bytes());
    assert!(matcher.clone().memory_bytes() <= matcher.memory_bytes());
}

#[test]
fn a_batch_is_filled_as_each_row_alone() {
    let compiled = compiled(vocabulary(35, 300), SCHEMA);
    let words = compiled.engine.vocabulary().mask_words();
    let mut rng = seeded(3);
    let mut matchers: Vec<Matcher> =
        (0..12).map(|_| Matcher::new(compiled.clone()).unwrap()).collect();
    for (steps, matcher) in matchers.iter_mut().enumerate() {
        for _ in 0..steps {
            let allowed = matcher.allowed().unwrap();
            if let Some(&token) = allowed.get(rng.random_range(0..allowed.len().max(1))) {
                matcher.accept(token).unwrap();
            }
        }
    }
    for threads in [None, Some(1), Some(3), Some(100)] {
        let fresh = Arc::new(compiled.engine.compile_json_schema(SCHEMA, COMPACT).unwrap());
        let copies: Vec<Matcher> = matchers
            .iter()
            .map(|matcher| {
                let mut copy = Matcher::new(fresh.clone()).unwrap();
                assert!(copy.accept_all(matcher.tokens()).unwrap());
                copy
            })
            .collect();
        let mut rows = vec![vec![u32::MAX; words]; copies.len()];
        let work = copies.iter().zip(rows.iter_mut().map(|row| &mut row[..])).collect();
        fill_bitmasks(work, threads).unwrap();
        for (filled, matcher) in rows.iter().zip(&matchers) {
            assert_eq!(bits(filled).collect::<Vec<_>>(), row(matcher), "{threads:?}");
        }
    }
    fill_bitmasks(Vec::new(), None).unwrap();
}
