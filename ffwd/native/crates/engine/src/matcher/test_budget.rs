//! Texts with a budget: they end in time whatever is chosen, and masks say what may be chosen.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use proptest::prelude::RngExt;

use super::*;
use crate::engine::{Engine, EngineConfig};
use crate::mask::token_set::bits;
use ffwd_automaton::{Whitespace, WhitespaceMode};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary, vocabulary_of};
use ffwd_tokenizer::vocabulary::Vocabulary;

const COMPACT: Whitespace = Whitespace { mode: WhitespaceMode::Compact };
const CONSISTENT: Whitespace = Whitespace { mode: WhitespaceMode::Consistent };
const FLEXIBLE: Whitespace = Whitespace { mode: WhitespaceMode::Flexible { max_run: 4 } };

const SCHEMAS: [&str; 28] = [
    "true",
    r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a"]}"#,
    r#"{"required": ["name", "x", "kind"], "type": "object"}"#,
    r#"{"type": "array", "items": {"type": "string", "minLength": 3}, "minItems": 2}"#,
    r##"{"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "properties": {"l": {"$ref": "#/$defs/t"},
        "v": {"type": "integer"}}, "required": ["v"], "additionalProperties": false}}}"##,
    r##"{"anyOf": [{"type": "array", "items": {"$ref": "#"}, "minItems": 1}, {"const": "leaf"}]}"##,
    r#"{"oneOf": [{"properties": {"kind": {"const": "a"}, "x": {"type": "string", "minLength": 20}},
        "required": ["kind", "x"]}, {"properties": {"kind": {"const": "bb"}},
        "required": ["kind"]}], "type": "object"}"#,
    r#"{"not": {"additionalProperties": {"type": "integer"}}, "type": "object"}"#,
    r#"{"type": "array", "contains": {"const": 5}, "minContains": 2}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 4, "items": {"enum": [1, 2, "a", [], null]}}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 3}"#,
    r#"{"type": "object", "minProperties": 3}"#,
    r#"{"type": "object", "patternProperties": {"^x-": {"type": "boolean"}},
        "additionalProperties": false, "minProperties": 2}"#,
    r#"{"if": {"required": ["a"]}, "then": {"required": ["name"]}, "else": {"required": ["b"]},
        "type": "object"}"#,
    r#"{"type": "integer", "minimum": 1000, "multipleOf": 7}"#,
    r#"{"type": "string", "pattern": "^[ab]{2,}(x|yz)$", "maxLength": 9}"#,
    r#"{"type": "string", "format": "date-time"}"#,
    r#"{"enum": ["alpha", "beta", {"a": [1, 2]}, [null]]}"#,
    r#"{"dependentRequired": {"a": ["b", "name"], "b": ["x"]}, "type": "object"}"#,
    r#"{"allOf": [{"required": ["a"]}, {"properties": {"a": {"type": "array", "minItems": 2}}}],
        "type": "object"}"#,
    r#"{"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}},
        "required": ["a", "b"], "not": {"properties": {"a": {"maxLength": 1}}}}"#,
    r#"{"type": "object", "propertyNames": {"maxLength": 1}, "minProperties": 4}"#,
    r#"{"type": "object", "minProperties": 2,
        "additionalProperties": {"type": "object", "minProperties": 2}}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 3, "items": {"type": "string"}}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 2, "items": {"type": "object",
        "properties": {"a": {"uniqueItems": true, "minItems": 2}}, "required": ["a"],
        "minProperties": 2}}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 3, "items": {"type": "number"}}"#,
    r#"{"type": "object", "propertyNames": {"pattern": "^[ab]+$"}, "minProperties": 3,
        "additionalProperties": {"type": "string"}}"#,
    r#"{"type": "array", "minItems": 2, "items": {"type": "array", "items": {"type": "object",
        "patternProperties": {"^x": {"minItems": 1, "type": "array"}}, "minProperties": 2}}}"#,
];
/// How many vocabularies are drawn of tokens that cross items.
const ROUNDS_OF_CROSSING: usize = 12;
const PATTERNS: [&str; 5] = ["(ab|abc)*x", "a{3,9}", "[a-z]+@[a-z]{2}", "", "(?s:.*)end"];

fn engine(vocabulary: Vocabulary) -> Arc<Engine> {
    Arc::new(Engine::new(vocabulary, None, EngineConfig::default()))
}

fn grammars(engine: &Arc<Engine>) -> Vec<(String, Arc<Compiled>)> {
    let mut grammars = Vec::new();
    for (at, schema) in SCHEMAS.iter().enumerate() {
        let layouts = match (schema.contains("uniqueItems"), at % 2 == 0, at % 3 == 1) {
            // Where items that came decide, tokens that cross their ends matter.
            (true, ..) => vec![COMPACT, FLEXIBLE, CONSISTENT],
            (_, true, true) => vec![COMPACT, CONSISTENT],
            (_, true, false) => vec![COMPACT],
            (_, false, true) => vec![FLEXIBLE, CONSISTENT],
            (_, false, false) => vec![FLEXIBLE],
        };
        for whitespace in layouts {
            let compiled = engine.compile_json_schema(schema, whitespace);
            grammars.push((schema.to_string(), Arc::new(compiled.unwrap())));
        }
    }
    for pattern in PATTERNS {
        grammars.push((pattern.to_owned(), Arc::new(engine.compile_regex(pattern).unwrap())));
    }
    grammars
}

fn limited(compiled: &Arc<Compiled>, max_tokens: usize) -> Result<Matcher, MatcherError> {
    let beginning = Beginning { max_tokens: Some(max_tokens), ..Beginning::default() };
    Matcher::beginning(compiled.clone(), &beginning)
}

fn needed(compiled: &Arc<Compiled>) -> usize {
    match limited(compiled, 0) {
        Err(MatcherError::Budget { needed, max_tokens: 0 }) => needed,
        other => panic!("{other:?}"),
    }
}

/// The mask, after a check that it agrees with accepting each token.
fn checked_mask(matcher: &Matcher) -> Vec<TokenId> {
    let vocabulary = matcher.compiled().engine.vocabulary();
    let mut row = vec![u32::MAX; vocabulary.mask_words()];
    matcher.fill_bitmask(&mut row).unwrap();
    let mask: HashSet<TokenId> = bits(&row).collect();
    for id in 0..vocabulary.width() as u32 {
        let token = TokenId(id);
        let accepts = matcher.clone().accept(token).unwrap();
        let text = |token: &TokenId| String::from_utf8_lossy(vocabulary.text(*token)).into_owned();
        let before: Vec<String> = matcher.tokens().iter().map(text).collect();
        let what =
            || format!("{:?} after {before:?}, {:?} left", text(&token), matcher.tokens_left());
        assert_eq!(accepts, mask.contains(&token), "{}", what());
        assert_eq!(usize::from(accepts), matcher.validate(&[token]).unwrap());
    }
    let mut mask: Vec<TokenId> = mask.into_iter().collect();
    mask.sort_unstable();
    assert_eq!(mask, matcher.allowed().unwrap());
    mask
}

/// The completion of a matcher, which must be one.
fn checked_completion(matcher: &Matcher) -> usize {
    let completion = matcher.shortest_completion().unwrap();
    let mut other = matcher.clone();
    assert_eq!(other.validate(&completion).unwrap(), completion.len());
    assert!(other.accept_all(&completion).unwrap() && other.is_terminated());
    assert!(matcher.tokens_left().is_none_or(|left| completion.len() <= left));
    completion.len()
}

#[test]
fn every_walk_ends_in_time_and_masks_are_what_can_be_accepted() {
    let mut rng = seeded(71);
    let engine = engine(vocabulary(5, 200));
    for (name, compiled) in grammars(&engine) {
        let needed = needed(&compiled);
        assert_eq!(needed, checked_completion(&Matcher::new(compiled.clone()).unwrap()), "{name}");
        for more in [0, 0, 1, 3, 8, 20] {
            let mut matcher = limited(&compiled, needed + more).unwrap();
            let checks = rng.random_range(0..3) == 0;
            while !matcher.is_terminated() {
                let mask = match checks {
                    true => checked_mask(&matcher),
                    false => matcher.allowed().unwrap(),
                };
                assert!(!mask.is_empty(), "{name}: {:?}", matcher.tokens());
                if checks {
                    checked_completion(&matcher);
                }
                // Rarely the end, mostly what is long to complete.
                let tries = (0..4).map(|_| mask[rng.random_range(0..mask.len())]);
                let is_eos = |token: &TokenId| engine.vocabulary().is_eos(*token);
                let token = tries.into_iter().find(|token| !is_eos(token)).unwrap_or(mask[0]);
                if rng.random_range(0..6) == 0 {
                    // A token of the mask stays allowed.
                    compiled.begin_anew();
                }
                assert!(matcher.accept(token).unwrap());
                match rng.random_range(0..12) {
                    0 => {
                        let count = rng.random_range(0..matcher.tokens().len() + 1).min(9);
                        matcher.rollback(count).unwrap();
                    }
                    1 => matcher = matcher.clone(),
                    2 => compiled.begin_anew(),
                    _ => {}
                }
            }
            assert!(matcher.tokens().len() <= needed + more, "{name}");
            let ended = matcher.tokens().to_vec();
            assert_eq!(matcher.tokens_left(), Some(needed + more - ended.len()));
            matcher.reset().unwrap();
            assert!(matcher.accept_all(&ended).unwrap(), "{name}");
        }
    }
}

/// Arrays of different items in which a text that ends one way may be one item too few, or one that
/// came.
const DISTINCT: [&str; 10] = [
    SCHEMAS[9],
    r#"{"type": "array", "uniqueItems": true, "minItems": 3, "items": {"enum": ["a", "ab", "abb", "b", "bb"]}}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 3,
        "items": {"type": "integer", "minimum": 0, "maximum": 12}}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 3,
        "items": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 2, "items": {"type": "object",
        "properties": {"a": {"enum": [1, 2]}}, "additionalProperties": false}}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 3,
        "items": {"anyOf": [{"type": "string"}, {"const": 1}, {"const": []}]}}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 3, "prefixItems": [{"enum": [1, "a"]}],
        "items": {"enum": [1, 2, "a", [], null]}}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 3}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 2, "items": {"type": "array",
        "uniqueItems": true, "minItems": 1, "items": {"type": "string"}}}"#,
    r#"{"type": "array", "uniqueItems": true, "minItems": 3, "items": {"type": "number"}}"#,
];

/// Arrays whose items differ in one member only, with the number of bytes of a shortest one.
const DIFFERENT_MEMBERS: [(&str, usize); 6] = [
    (
        r#"{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false}"#,
        30,
    ),
    (
        r#"{"type": "object", "properties": {"a": {"enum": [1, 2, 33]}}, "required": ["a"],
        "additionalProperties": false}"#,
        26,
    ),
    (r#"{"type": "array", "items": {"enum": [1, 22]}, "minItems": 2, "maxItems": 2}"#, 21),
    (
        r#"{"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string",
        "pattern": "^[xy]{1,2}$"}}, "required": ["b"], "additionalProperties": false}},
        "required": ["a"], "additionalProperties": false}"#,
        50,
    ),
    (r#"{"enum": [{"a": 1}, {"a": 22}, {"a": [3]}, {"b": "long"}]}"#, 28),
    (
        r#"{"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true,
        "items": {"enum": [1, 2]}, "minItems": 1}}, "required": ["a"],
        "additionalProperties": false}"#,
        33,
    ),
];

#[test]
fn items_that_differ_in_one_member_have_completions() {
    let engine = engine(vocabulary_of(&[]));
    for (item, bytes) in DIFFERENT_MEMBERS {
        let schema =
            format!(r#"{{"type": "array", "uniqueItems": true, "minItems": 3, "items": {item}}}"#);
        let compiled = Arc::new(engine.compile_json_schema(&schema, COMPACT).unwrap());
        // And the end token.
        assert_eq!(needed(&compiled), bytes + 1, "{schema}");
        checked_completion(&Matcher::new(compiled.clone()).unwrap());
    }
}

/// What tokens around the ends of items are put together of.
const ENDS: [&str; 26] = [
    "\"", "a", "b", "\",", ",\"", "\"a\"", ",", "1", "2", "12", "[]", "],", "[", "]", "{}",
    "{\"a\":", "null", "nu", "ll,", "},", "[1", ",2", "\"\"", "\"\",", "[[", "1]",
];

#[test]
fn masks_near_the_end_are_what_can_be_accepted_where_tokens_cross_items() {
    let mut rng = seeded(73);
    let mut walks = 0;
    for round in 0..ROUNDS_OF_CROSSING {
        let tokens: Vec<String> = (0..25)
            .map(|_| {
                let pieces = 1 + rng.random_range(0..6u32) / 3 + u32::from(round % 2 == 1);
                (0..pieces).map(|_| ENDS[rng.random_range(0..ENDS.len())]).collect()
            })
            .collect();
        let mut tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens.retain(|token| token.len() > 1);
        let engine = engine(vocabulary_of(&tokens));
        for schema in DISTINCT {
            let compiled = Arc::new(engine.compile_json_schema(schema, COMPACT).unwrap());
            let needed = needed(&compiled);
            for more in [0, 1, 2, 4] {
                let mut matcher = limited(&compiled, needed + more).unwrap();
                while !matcher.is_terminated() {
                    let mask = checked_mask(&matcher);
                    checked_completion(&matcher);
                    // Rarely a single byte.
                    let tries = (0..3).map(|_| mask[rng.random_range(0..mask.len())]);
                    let token = tries.max_by_key(|token| token.0 >= 256).unwrap();
                    assert!(matcher.accept(token).unwrap());
                }
                walks += 1;
            }
        }
    }
    assert!(walks > 400);
}

#[test]
fn too_small_a_budget_is_an_error_that_says_what_suffices() {
    let engine = engine(vocabulary(5, 200));
    for (name, compiled) in grammars(&engine) {
        let needed = needed(&compiled);
        for max_tokens in 0..needed {
            match limited(&compiled, max_tokens) {
                Err(MatcherError::Budget { needed: said, max_tokens: of }) => {
                    assert_eq!((said, of), (needed, max_tokens), "{name}");
                }
                other => panic!("{other:?}"),
            }
        }
        limited(&compiled, needed).unwrap();
    }
}

/// How many tokens it takes at least, by trying all.
fn by_brute_force(compiled: &Arc<Compiled>) -> usize {
    let mut seen = HashSet::new();
    let mut pending = VecDeque::from([Matcher::new(compiled.clone()).unwrap()]);
    while let Some(matcher) = pending.pop_front() {
        for token in matcher.allowed().unwrap() {
            let mut next = matcher.clone();
            assert!(next.accept(token).unwrap());
            if next.is_terminated() {
                return next.tokens().len();
            }
            if seen.insert(next.state()) {
                pending.push_back(next);
            }
        }
    }
    panic!("some text ends")
}

#[test]
fn completions_are_the_shortest_where_bytes_are_tokens() {
    let engine = engine(vocabulary_of(&[]));
    for (name, compiled) in grammars(&engine) {
        // Schemas that take too long to try, or whose completion is not a shortest one because
        // estimates ignore a keyword.
        if needed(&compiled) > 6 {
            continue;
        }
        assert_eq!(needed(&compiled), by_brute_force(&compiled), "{name}");
    }
}

#[test]
fn completions_are_not_much_longer_than_the_shortest() {
    let engine = engine(vocabulary(9, 120));
    for (name, compiled) in grammars(&engine) {
        let needed = needed(&compiled);
        if needed > 3 {
            continue;
        }
        let fewest = by_brute_force(&compiled);
        assert!(fewest <= needed && needed <= fewest + 3, "{name}: {needed} for {fewest}");
    }
}

#[test]
fn what_comes_before_the_text_counts() {
    let base = vocabulary(3, 300);
    let width = base.width() as u32;
    let mut texts: Vec<Option<&[u8]>> =
        (0..width).map(|id| Some(base.text(TokenId(id))).filter(|text| !text.is_empty())).collect();
    texts.extend([None; 3]);
    let engine = engine(Vocabulary::new(&texts, &[TokenId(width + 2)], None).unwrap());
    let compiled = Arc::new(engine.compile_json_schema(SCHEMAS[1], COMPACT).unwrap());
    let close = |close| Some(Opening { close, controls: vec![TokenId(width + 1)] });
    let beginnings = [
        Beginning { prefix: b"ab".to_vec(), ..Beginning::default() },
        Beginning { prefill: br#"{"a":"x"#.to_vec(), ..Beginning::default() },
        Beginning {
            opening: close(Close::Tokens([TokenId(width)].into())),
            ..Beginning::default()
        },
        Beginning {
            opening: close(Close::Tokens([TokenId(width), TokenId(97)].into())),
            prefix: b"x".to_vec(),
            ..Beginning::default()
        },
        Beginning { opening: close(Close::Text((*b"aab").into())), ..Beginning::default() },
        Beginning {
            opening: close(Close::Text((*b"</a>").into())),
            prefix: b"name".to_vec(),
            prefill: br#"{"#.to_vec(),
            ..Beginning::default()
        },
    ];
    let mut rng = seeded(72);
    for beginning in beginnings {
        let free = Matcher::beginning(compiled.clone(), &beginning).unwrap();
        let needed = checked_completion(&free);
        for more in [0, 1, 2, 5, 12] {
            let limited = |max_tokens| {
                let max_tokens = Some(max_tokens);
                Matcher::beginning(compiled.clone(), &Beginning { max_tokens, ..beginning.clone() })
            };
            assert!(matches!(limited(needed - 1), Err(MatcherError::Budget { .. })));
            let mut matcher = limited(needed + more).unwrap();
            while !matcher.is_terminated() {
                let mask = checked_mask(&matcher);
                checked_completion(&matcher);
                assert!(matcher.accept(mask[rng.random_range(0..mask.len())]).unwrap());
                if rng.random_range(0..10) == 0 {
                    matcher.rollback(rng.random_range(0..matcher.tokens().len() + 1)).unwrap();
                }
                if rng.random_range(0..10) == 0 {
                    compiled.begin_anew();
                }
            }
            assert!(matcher.tokens().len() <= needed + more);
        }
    }
}
