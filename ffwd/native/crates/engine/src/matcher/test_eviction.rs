//! Grammars with little memory against grammars that have enough.

use std::sync::Arc;

use proptest::prelude::RngExt;
use proptest::test_runner::TestRng;

use super::*;
use crate::engine::{Engine, EngineConfig};
use crate::mask::token_set::bits;
use ffwd_automaton::{PropertyOrder, Whitespace, WhitespaceMode, Writing};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};

const COMPACT: Whitespace = Whitespace { mode: WhitespaceMode::Compact };
const SCHEMAS: &[&str] = &[
    "{}",
    r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"},
        "x": {"type": "array", "items": {"enum": ["a", "ab", 1, null]}}}, "required": ["b"]}"#,
    r#"{"type": "object", "additionalProperties": {"type": ["integer", "boolean"]}}"#,
    r#"{"type": "array", "items": {"enum": ["a", "b", "ab", "x", 1, 2]}, "uniqueItems": true}"#,
    r#"{"oneOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"properties": {"a": {"minimum": 2}, "b": {}}, "required": ["b"]}], "type": "object"}"#,
    r##"{"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "properties": {"a": {"$ref":
        "#/$defs/t"}, "b": {"type": "string", "pattern": "^a+b?$"}}}}}"##,
    r#"{"type": "array", "contains": {"type": "integer"}, "minContains": 2, "maxContains": 3}"#,
];

fn both(engine: &Arc<Engine>, schema: &str, bytes: usize) -> (Arc<Compiled>, Arc<Compiled>) {
    let compile = || {
        let writing = Writing { property_order: PropertyOrder::Any, ..Writing::from(COMPACT) };
        engine.compile_json_schema(schema, writing).unwrap()
    };
    (Arc::new(compile()), Arc::new(compile().limited_to(bytes)))
}

fn row(matcher: &Matcher) -> Vec<TokenId> {
    let mut row = vec![u32::MAX; matcher.compiled().engine.vocabulary().mask_words()];
    matcher.fill_bitmask(&mut row).unwrap();
    bits(&row).collect()
}

/// A random walk of two matchers that must see the same, back and forth.
fn walk_both(rng: &mut TestRng, mut one: Matcher, mut other: Matcher, steps: usize, what: &str) {
    let width = one.compiled().engine.vocabulary().width() as u32;
    for _ in 0..steps {
        if rng.random_range(0..5) == 0 {
            other.compiled().begin_anew();
        }
        let allowed = row(&one);
        assert_eq!(allowed, row(&other), "{what}");
        assert_eq!(one.is_accepting(), other.is_accepting(), "{what}");
        let some = |rng: &mut TestRng| match rng.random_range(0..10) {
            0 => TokenId(rng.random_range(0..width)),
            _ => allowed[rng.random_range(0..allowed.len())],
        };
        if one.is_terminated() || rng.random_range(0..9) == 0 {
            let count = rng.random_range(0..=one.tokens().len());
            one.rollback(count).unwrap();
            other.rollback(count).unwrap();
            continue;
        }
        let draft = [some(rng), some(rng), some(rng)];
        assert_eq!(one.validate(&draft).unwrap(), other.validate(&draft).unwrap(), "{what}");
        if rng.random_range(0..9) == 0 {
            // The original goes on, and then the copy from where it was.
            let copy = other.clone();
            let _ = other.accept(draft[0]);
            assert_eq!(copy.tokens(), one.tokens());
            other = copy;
        }
        assert_eq!(one.accept(draft[0]).unwrap(), other.accept(draft[0]).unwrap(), "{what}");
        assert_eq!(one.tokens(), other.tokens());
    }
}

fn evictions(compiled: &Compiled) -> u64 {
    compiled.counters.evictions.load(Ordering::Relaxed)
}

#[test]
fn little_memory_changes_nothing() {
    let engine = Arc::new(Engine::new(vocabulary(41, 300), None, EngineConfig::default()));
    for (number, schema) in SCHEMAS.iter().enumerate() {
        for bytes in [1, 40_000] {
            let (enough, little) = both(&engine, schema, bytes);
            let mut rng = seeded(number as u8);
            for _ in 0..4 {
                let (one, other) =
                    (Matcher::new(enough.clone()).unwrap(), Matcher::new(little.clone()).unwrap());
                walk_both(&mut rng, one, other, 90, schema);
            }
            assert_eq!(evictions(&enough), 0);
            assert!(evictions(&little) > 20, "{schema}");
            assert!(little.counters.moves.load(Ordering::Relaxed) > 20, "{schema}");
        }
    }
    let pattern = "([a-c]+x[0-9]{2,5})*";
    let enough = Arc::new(engine.compile_regex(pattern).unwrap());
    let little = Arc::new(engine.compile_regex(pattern).unwrap().limited_to(1));
    let (one, other) = (Matcher::new(enough).unwrap(), Matcher::new(little.clone()).unwrap());
    walk_both(&mut seeded(40), one, other, 300, pattern);
    assert!(evictions(&little) > 20);
}

#[test]
fn a_grammar_with_too_little_memory_begins_anew_by_itself() {
    let engine = Arc::new(Engine::new(vocabulary(45, 300), None, EngineConfig::default()));
    for bytes in [1, 20_000, 100_000] {
        let (_, little) = both(&engine, SCHEMAS[2], bytes);
        for text in 0..40 {
            let text = format!(r#"{{"a{text}":1,"b{text}":true,"{text}":23}}"#);
            feed(&mut Matcher::new(little.clone()).unwrap(), &text);
        }
        assert!(evictions(&little) > 0, "{bytes}");
    }
}

#[test]
fn tokens_that_are_read_again_take_no_steps_of_the_call() {
    let engine = Arc::new(Engine::new(vocabulary(44, 300), None, EngineConfig::default()));
    let schema = r#"{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}"#;
    let (compiled, _) = both(&engine, schema, 1);
    let limits = Limits { call_steps: 2_000, ..Limits::default() };
    let mut matcher = Matcher::new(compiled.clone()).unwrap().limited_by(limits);
    let numbers: Vec<String> = (1000..2000).map(|number| number.to_string()).collect();
    feed(&mut matcher, &format!("[{}", numbers.join(",")));
    compiled.begin_anew();
    // All tokens together take more steps than a call may take.
    let comma = compiled.engine.vocabulary().trie().token_of_byte(b',').unwrap();
    assert!(matcher.bounded_mut(|matcher| matcher.accept(comma)).unwrap());
    assert_eq!(compiled.counters.moves.load(Ordering::Relaxed), 1);
    feed(&mut matcher, "7");
    feed(&mut matcher, "]");
    assert!(matcher.is_accepting());
}

#[test]
fn what_comes_before_the_text_is_read_again_too() {
    let engine = Arc::new(Engine::new(vocabulary(42, 300), None, EngineConfig::default()));
    let (enough, little) = both(&engine, SCHEMAS[1], 1);
    let plain = Beginning::default();
    let closed_by = |close| Some(Opening { close, controls: Vec::new() });
    let beginnings = [
        Beginning { prefix: b"ab".to_vec(), ..plain.clone() },
        Beginning { prefill: b"{\"a\":\"ab".to_vec(), ..plain.clone() },
        Beginning { opening: closed_by(Close::Text(b"aba"[..].into())), ..plain.clone() },
        Beginning {
            prefix: b"x\"".to_vec(),
            prefill: b"{".to_vec(),
            opening: closed_by(Close::Text(b"a"[..].into())),
            ..plain
        },
    ];
    let mut rng = seeded(41);
    for beginning in &beginnings {
        for _ in 0..6 {
            let one = Matcher::beginning(enough.clone(), beginning).unwrap();
            let other = Matcher::beginning(little.clone(), beginning).unwrap();
            walk_both(&mut rng, one, other, 60, "prefix");
        }
    }
    assert!(evictions(&little) > 20);
}

#[test]
fn threads_that_evict_each_others_states_see_no_difference() {
    let engine = Arc::new(Engine::new(vocabulary(43, 300), None, EngineConfig::default()));
    for schema in [SCHEMAS[1], SCHEMAS[2], SCHEMAS[3]] {
        let (enough, little) = both(&engine, schema, 1);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (one, other) =
                    (Matcher::new(enough.clone()).unwrap(), Matcher::new(little.clone()).unwrap());
                scope.spawn(move || walk_both(&mut seeded(thread), one, other, 120, schema));
            }
        });
        // How many there are depends on the order of the threads: while one evicts, others do not.
        let by_threads = evictions(&little);
        assert!(by_threads > 0);
        // Rows of one call, which other threads move at the same time.
        let words = engine.vocabulary().mask_words();
        let mut rng = seeded(9);
        let mut pairs: Vec<(Matcher, Matcher)> = (0..24)
            .map(|_| (Matcher::new(enough.clone()).unwrap(), Matcher::new(little.clone()).unwrap()))
            .collect();
        for _ in 0..20 {
            for (one, other) in &mut pairs {
                let allowed = one.allowed().unwrap();
                if let Some(&token) = allowed.get(rng.random_range(0..allowed.len().max(1))) {
                    assert!(one.accept(token).unwrap() && other.accept(token).unwrap());
                }
            }
            little.begin_anew();
            let mut rows = vec![vec![0; words]; pairs.len()];
            let work = pairs.iter().zip(&mut rows).map(|((_, other), row)| (other, &mut row[..]));
            fill_bitmasks(work.collect(), Some(4)).unwrap();
            for (filled, (one, _)) in rows.iter().zip(&pairs) {
                assert_eq!(bits(filled).collect::<Vec<_>>(), self::row(one));
            }
        }
        assert!(evictions(&little) >= by_threads + 20);
    }
}

/// Accepts a text byte by byte, asking for the mask before each.
fn feed(matcher: &mut Matcher, text: &str) {
    let compiled = matcher.compiled().clone();
    let trie = compiled.engine.vocabulary().trie();
    let mut row = vec![0; compiled.engine.vocabulary().mask_words()];
    for byte in text.bytes() {
        matcher.fill_bitmask(&mut row).unwrap();
        assert!(matcher.accept(trie.token_of_byte(byte).unwrap()).unwrap(), "{text}");
    }
}

#[test]
fn memory_stays_below_its_bound_however_many_texts_come() {
    let engine = Arc::new(Engine::new(vocabulary(44, 300), None, EngineConfig::default()));
    let schema = r#"{"type": "object", "additionalProperties": {"type": "array",
        "items": {"type": "string"}, "uniqueItems": true}}"#;
    const BUDGET: usize = 400_000;
    let (enough, little) = both(&engine, schema, BUDGET);
    let held = |compiled: &Compiled| compiled.generation().memory_bytes().total();
    let (mut most, mut idle) = (0, Vec::new());
    for text in 0..300 {
        // Keys and items that no other text has.
        let text = format!(r#"{{"k{text}":["a{text}","b{text}"],"x{}":["{text}"]}}"#, text * 7);
        feed(&mut Matcher::new(enough.clone()).unwrap(), &text);
        let mut matcher = Matcher::new(little.clone()).unwrap();
        feed(&mut matcher, &text);
        most = most.max(held(&little));
        // Waiting texts do not keep released states.
        if idle.len() < 50 {
            idle.push((matcher, text));
        }
    }
    assert!(held(&enough) > 4 * BUDGET, "{}", held(&enough));
    assert!(evictions(&little) > 3);
    // The states that one step builds come on top.
    assert!(most < BUDGET + BUDGET / 4, "{most}");
    for (matcher, text) in &mut idle {
        assert!(matcher.is_accepting());
        matcher.rollback(1).unwrap();
        let mut anew = Matcher::new(enough.clone()).unwrap();
        feed(&mut anew, &text[..text.len() - 1]);
        assert_eq!(row(matcher), row(&anew));
    }
}
