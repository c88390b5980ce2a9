//! Texts that begin with something else than the grammar's text, against what their bytes say.

use std::sync::Arc;

use proptest::prelude::RngExt;

use super::*;
use crate::engine::{Engine, EngineConfig};
use crate::mask::token_set::bits;
use ffwd_automaton::{Whitespace, WhitespaceMode};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};
use ffwd_tokenizer::vocabulary::Vocabulary;

const COMPACT: Whitespace = Whitespace { mode: WhitespaceMode::Compact };
const SCHEMA: &str = r#"{"type": "object", "properties": {"a": {"type": "string"},
    "b": {"type": "integer"}}, "required": ["a"]}"#;

/// A vocabulary with three tokens more that are no text; the last of them ends the output.
fn with_controls(vocabulary: &Vocabulary) -> Vocabulary {
    let width = vocabulary.width() as u32;
    let mut texts: Vec<Option<&[u8]>> = (0..width)
        .map(|id| Some(vocabulary.text(TokenId(id))).filter(|text| !text.is_empty()))
        .collect();
    texts.extend([None; 3]);
    Vocabulary::new(&texts, &[TokenId(width + 2)], None).unwrap()
}

fn compiled(seed: u8) -> Arc<Compiled> {
    let vocabulary = with_controls(&vocabulary(seed, 400));
    let engine = Arc::new(Engine::new(vocabulary, None, EngineConfig::default()));
    Arc::new(engine.compile_json_schema(SCHEMA, COMPACT).unwrap())
}

/// The state of the tokens so far, read from the beginning every time.
fn is_possible(compiled: &Compiled, beginning: &Beginning, tokens: &[TokenId]) -> bool {
    let vocabulary = compiled.engine.vocabulary();
    let mut tokens = tokens.iter().copied();
    let mut text: Vec<u8> = Vec::new();
    if let Some(Opening { close, controls }) = &beginning.opening {
        let mut read: Vec<TokenId> = Vec::new();
        loop {
            let Some(token) = tokens.next() else { return true };
            let in_close = |close: &[TokenId]| close.contains(&token);
            let is_known = match close {
                Close::Tokens(close) => in_close(close) || controls.contains(&token),
                Close::Text(_) => controls.contains(&token),
            };
            if vocabulary.text(token).is_empty() && !is_known {
                return false;
            }
            read.push(token);
            match close {
                Close::Tokens(close) if read.ends_with(close) => break,
                Close::Tokens(_) => {}
                // Text does not go on across what is none.
                Close::Text(_) if vocabulary.text(token).is_empty() => text.clear(),
                Close::Text(close) => {
                    text.extend(vocabulary.text(token));
                    let at = text.windows(close.len()).position(|window| *window == **close);
                    if let Some(at) = at {
                        text.drain(..at + close.len());
                        break;
                    }
                }
            }
        }
    }
    let mut ended = false;
    for token in tokens {
        if ended || vocabulary.text(token).is_empty() && !vocabulary.is_eos(token) {
            return false;
        }
        ended = vocabulary.is_eos(token);
        text.extend(vocabulary.text(token));
    }
    let shared = text.len().min(beginning.prefix.len());
    if text[..shared] != beginning.prefix[..shared] || ended && shared < beginning.prefix.len() {
        return false;
    }
    let whole = [&beginning.prefill[..], &text[shared..]].concat();
    let generation = compiled.generation();
    let automaton = &generation.automaton;
    let threads = automaton.walk(automaton.threads(automaton.start()), &whole).unwrap();
    threads.is_some_and(|threads| !ended || automaton.accepts(&threads).unwrap())
}

fn beginnings(compiled: &Compiled) -> Vec<Beginning> {
    let width = compiled.engine.vocabulary().width() as u32;
    let (one, two) = (TokenId(width - 3), TokenId(width - 2));
    let some_text = TokenId(7);
    let text = |text: &str| Close::Text(text.as_bytes().into());
    let tokens = |tokens: &[TokenId]| Close::Tokens(tokens.into());
    let opening = |close, controls: &[TokenId]| Some(Opening { close, controls: controls.into() });
    let with = |opening, prefix: &str, prefill: &str| Beginning {
        prefix: prefix.into(),
        prefill: prefill.into(),
        opening,
        ..Beginning::default()
    };
    vec![
        with(None, "ab", ""),
        with(None, "", r#"{"a":"x"#),
        with(None, "x", r#"{"a":"x"#),
        with(opening(tokens(&[one]), &[]), "", ""),
        with(opening(tokens(&[one]), &[two]), "\n", ""),
        with(opening(tokens(&[one, two, one]), &[]), "", r#"{"#),
        with(opening(tokens(&[one, one, some_text, one]), &[]), "", ""),
        with(opening(text("abab"), &[]), "", ""),
        with(opening(text("a"), &[]), "b", r#"{"#),
        with(opening(text("ba"), &[two]), "", ""),
    ]
}

#[test]
fn masks_and_accepted_tokens_are_what_the_bytes_say() {
    let compiled = compiled(71);
    let width = compiled.engine.vocabulary().width() as u32;
    let mut rng = seeded(72);
    let mut closed = 0;
    for (number, beginning) in beginnings(&compiled).iter().enumerate() {
        for walk in 0..3 {
            let mut matcher = Matcher::beginning(compiled.clone(), beginning).unwrap();
            for _ in 0..30 {
                let mut row = vec![u32::MAX; compiled.engine.vocabulary().mask_words()];
                matcher.fill_bitmask(&mut row).unwrap();
                let allowed: Vec<TokenId> = bits(&row).collect();
                assert!(matcher.is_terminated() || matcher.allowed().unwrap() == allowed);
                if !matcher.is_terminated() {
                    for token in (0..width).map(TokenId) {
                        let mut tokens = matcher.tokens().to_vec();
                        tokens.push(token);
                        let expected = is_possible(&compiled, beginning, &tokens);
                        let at = format!("{number}.{walk} {tokens:?}");
                        assert_eq!(allowed.contains(&token), expected, "{at}");
                        assert_eq!(matcher.validate(&[token]).unwrap() == 1, expected, "{at}");
                    }
                }
                let back = rng.random_range(0..8);
                if matcher.is_terminated() || back == 0 {
                    let count = rng.random_range(0..=matcher.tokens().len());
                    matcher.rollback(count).unwrap();
                    continue;
                }
                // What closes the free text is one of many.
                let others: Vec<TokenId> = allowed
                    .iter()
                    .copied()
                    .filter(|&token| {
                        let mut after = matcher.clone();
                        after.accept(token).unwrap() && after.stage != matcher.stage
                    })
                    .collect();
                let from = if others.is_empty() || back < 4 { &allowed } else { &others };
                let token = from[rng.random_range(0..from.len())];
                let before = matcher.stage;
                assert!(matcher.accept(token).unwrap());
                closed += usize::from(before != Stage::Grammar && matcher.stage == Stage::Grammar);
            }
            matcher.reset().unwrap();
            assert!(matcher.tokens().is_empty());
            let fresh = Matcher::beginning(compiled.clone(), beginning).unwrap();
            assert_eq!(matcher.allowed().unwrap(), fresh.allowed().unwrap());
        }
    }
    assert!(closed > 10, "{closed}");
}

#[test]
fn beginnings_that_cannot_be_are_refused() {
    let compiled = compiled(74);
    let begin = |beginning: Beginning| Matcher::beginning(compiled.clone(), &beginning).map(drop);
    let width = compiled.engine.vocabulary().width() as u32;
    let ids = |ids: &[u32]| -> Vec<TokenId> { ids.iter().copied().map(TokenId).collect() };
    let closed_by = |close, controls: &[u32]| Beginning {
        opening: Some(Opening { close, controls: ids(controls) }),
        ..Beginning::default()
    };
    let refused = begin(Beginning { prefill: br#"{"a":1"#.to_vec(), ..Beginning::default() });
    assert!(matches!(refused, Err(MatcherError::Prefill { byte: 5 })), "{refused:?}");
    for close in [Close::Text(Box::default()), Close::Tokens(Box::default())] {
        assert!(matches!(begin(closed_by(close, &[])), Err(MatcherError::EmptyClose)));
    }
    let control = width - 3;
    for bad in [width - 1, width, u32::MAX] {
        for close in [vec![bad], vec![control, bad]] {
            let refused = begin(closed_by(Close::Tokens(ids(&close).into()), &[]));
            assert!(matches!(refused, Err(MatcherError::BadClose(TokenId(id))) if id == bad));
        }
    }
    let refused = begin(closed_by(Close::Tokens(ids(&[0, control]).into()), &[]));
    assert!(matches!(refused, Err(MatcherError::BadClose(TokenId(0)))), "{refused:?}");
    for bad in [0, width - 1, width] {
        let close = Close::Tokens(ids(&[control]).into());
        let refused = begin(closed_by(close, &[control, bad]));
        assert!(matches!(refused, Err(MatcherError::BadControl(TokenId(id))) if id == bad));
    }
}
