//! Whole grammars against slow twins: masks, duplicate keys, limits.

use std::collections::HashSet;

use proptest::prelude::RngExt;
use proptest::test_runner::TestRng;

use super::test_layouts::CONSISTENT;
use super::*;
use ffwd_automaton::{Layout, PropertyOrder, StateId, Whitespace, WhitespaceMode};
use ffwd_json_schema::SchemaErrorKind;
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary, vocabulary_of};

pub(super) const COMPACT: Whitespace = Whitespace { mode: WhitespaceMode::Compact };
const SPACED: Whitespace = Whitespace { mode: WhitespaceMode::SingleSpace };
pub(super) const FLEXIBLE: Whitespace =
    Whitespace { mode: WhitespaceMode::Flexible { max_run: 2 } };

fn layout(item: &str, key: &str, indent: Option<&str>) -> Whitespace {
    let layout = Layout::new(item, key, indent).unwrap();
    Whitespace { mode: WhitespaceMode::Layout(Arc::new(layout)) }
}

const SCHEMAS: [&str; 34] = [
    r#"true"#,
    r#"{"type": "null"}"#,
    r#"{"type": ["boolean", "integer"]}"#,
    r#"{"type": "string"}"#,
    r#"{"type": "string", "minLength": 2, "maxLength": 5}"#,
    r#"{"type": "string", "minLength": 3}"#,
    r#"{"type": "string", "maxLength": 90}"#,
    r#"{"type": "string", "pattern": "^a{2,70}b?$"}"#,
    r#"{"type": "string", "pattern": "^(\\S+ ){0,40}\\S+$", "maxLength": 60}"#,
    r#"{"type": "string", "pattern": "[\"\\\\]", "maxLength": 4}"#,
    r#"{"type": "string", "pattern": "^(?!ab)[a-z\u0000-\u001f]*$"}"#,
    r#"{"enum": ["a", "ab", "abc", "name", "né", "\u0001", 1, 1.5, null, {"a": [1]}]}"#,
    r#"{"type": "integer", "minimum": -3, "maximum": 120}"#,
    r#"{"type": "number", "exclusiveMinimum": 0, "maximum": 7.25}"#,
    r#"{"type": "number"}"#,
    r#"{"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}"#,
    r#"{"prefixItems": [{"const": "a"}, {"type": "null"}], "items": {"type": "boolean"}, "type": "array"}"#,
    r#"{"type": "array", "items": {"type": "array", "items": {"type": "string"}}}"#,
    r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"], "additionalProperties": false}"#,
    r#"{"type": "object", "properties": {"a": {"type": "integer"}, "ab": {"type": "string"}, "name": {}}}"#,
    r#"{"type": "object", "properties": {"a": true, "aé": true, "a\"b": true, "": true}}"#,
    r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#,
    r#"{"type": "object", "properties": {"x": {"type": "integer"}, "y": false},
        "additionalProperties": {"type": "integer"}}"#,
    r#"{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x", "kind"]}"#,
    r#"{"anyOf": [{"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}},
                   "required": ["kind", "x"], "additionalProperties": false},
                  {"type": "object", "properties": {"kind": {"const": "b"}, "name": {"type": "string"}},
                   "required": ["kind"], "additionalProperties": false}]}"#,
    r#"{"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}},
                  {"type": "object", "properties": {"b": {"type": "string"}},
                   "additionalProperties": {"type": "null"}}]}"#,
    r#"{"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                  {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": {"type": "integer"}}]}"#,
    r#"{"anyOf": [{"type": "string", "maxLength": 3}, {"type": "string", "pattern": "^ab+$"}, {"const": "xyz"}]}"#,
    r##"{"$defs": {"tree": {"type": "object", "properties": {"name": {"type": "string"},
         "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "additionalProperties": false}},
        "$ref": "#/$defs/tree"}"##,
    r#"{"allOf": [{"type": "object", "properties": {"a": {"minimum": 1}}},
                  {"properties": {"a": {"type": "integer", "maximum": 9}, "b": {}}, "required": ["b"]}]}"#,
    r#"{"type": "object", "properties": {"d": {"type": "string", "format": "date"}}, "required": ["d"]}"#,
    r#"{"oneOf": [{"type": "integer"}, {"type": "string"}, {"type": "array", "items": true}]}"#,
    r#"{"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 0.5}]}, "minItems": 2}"#,
    r#"{"type": "object", "properties": {"a": {"type": "object", "properties": {"a": {"type": "object",
        "properties": {"a": {"type": "null"}}}}}}}"#,
];

const PATTERNS: [&str; 22] = [
    "",
    "a",
    "(ab)*",
    "a{3,9}b",
    "[ab]{0,200}x",
    "(a|ab)(c|bcd)?",
    "[^a]*",
    "(?s:.*)",
    ".{2,40}",
    r"\d+(\.\d+)?",
    r"(\S+ ){1,50}\S+",
    "é{1,3}|€+|😀",
    "(true|false|null)(,(true|false|null))*",
    "(?i:name|kind)",
    r#""([^"\\]|\\.)*""#,
    "a*b*c*",
    "(a{2,3}){2,3}",
    "[ -~]{5}",
    r"(1|0)?[0-9]e-?[0-9]{1,3}",
    "(aa|bb){0,30}(a|b)?",
    r"\p{Greek}+x?",
    "(((a?b?)c?)d?)*",
];

pub(super) fn engine(vocabulary: Vocabulary) -> Arc<Engine> {
    Arc::new(Engine::new(vocabulary, None, EngineConfig::default()))
}

/// Every token's bytes, read by the automaton from the state; the end tokens where it accepts.
fn mask_by_brute_force(compiled: &Compiled, state: StateId) -> Vec<TokenId> {
    let (generation, engine) = (compiled.generation(), &compiled.engine);
    let automaton = &generation.automaton;
    let vocabulary = engine.vocabulary();
    let allowed = |token: &TokenId| match vocabulary.text(*token) {
        [] if vocabulary.is_eos(*token) => automaton.is_accepting(state),
        text => automaton.read(automaton.threads(state), token.0, text).unwrap().is_some(),
    };
    (0..vocabulary.width() as u32).map(TokenId).filter(allowed).collect()
}

pub(super) fn assert_mask(
    compiled: &Compiled,
    state: StateId,
    so_far: &[u8],
    what: &str,
) -> Vec<TokenId> {
    let vocabulary = compiled.engine.vocabulary();
    let generation = compiled.generation();
    let mask = generation.masker.compute(&generation.automaton, state).unwrap();
    let expected = mask_by_brute_force(compiled, state);
    let tokens = mask.tokens();
    let shown = |of: &[TokenId], without: &[TokenId]| -> Vec<String> {
        of.iter()
            .filter(|token| !without.contains(token))
            .map(|&token| String::from_utf8_lossy(vocabulary.text(token)).into_owned())
            .collect()
    };
    assert_eq!(
        tokens,
        expected,
        "{what} after {:?}: refused {:?}, allowed {:?}",
        String::from_utf8_lossy(so_far),
        shown(&expected, &tokens),
        shown(&tokens, &expected),
    );
    assert!(!tokens.is_empty(), "{what}: dead end after {:?}", String::from_utf8_lossy(so_far));
    let mut row = vec![u32::MAX; vocabulary.mask_words() + 1];
    mask.fill(&mut row);
    let filled: Vec<TokenId> = crate::mask::token_set::bits(&row).collect();
    assert_eq!(filled, expected);
    for token in (0..vocabulary.width() as u32).map(TokenId) {
        assert_eq!(mask.contains(token), expected.binary_search(&token).is_ok());
    }
    tokens
}

/// Tokens that end something, rather than go on inside of a string for ever.
fn ends_something(text: &[u8]) -> bool {
    text.iter().any(|byte| b"\"}],:".contains(byte))
}

/// Follows random tokens from the start, and compares every mask on the way. Returns the text if
/// it came to an end.
pub(super) fn walk_and_compare(
    compiled: &Compiled,
    rng: &mut TestRng,
    steps: usize,
    what: &str,
) -> Option<Vec<u8>> {
    let (generation, engine) = (compiled.generation(), &compiled.engine);
    let automaton = &generation.automaton;
    let vocabulary = engine.vocabulary();
    let mut state = automaton.start();
    let mut text = Vec::new();
    for _ in 0..steps {
        let allowed = assert_mask(compiled, state, &text, what);
        let ending: Vec<TokenId> = allowed
            .iter()
            .copied()
            .filter(|&token| ends_something(vocabulary.text(token)))
            .collect();
        let choices =
            if ending.is_empty() || rng.random_range(0..2) == 0 { &allowed } else { &ending };
        let token = choices[rng.random_range(0..choices.len())];
        if vocabulary.is_eos(token) {
            return Some(text);
        }
        text.extend_from_slice(vocabulary.text(token));
        let text = vocabulary.text(token);
        let threads = automaton.read(automaton.threads(state), token.0, text).unwrap();
        state = automaton.intern(threads.unwrap()).unwrap();
    }
    None
}

/// Reads one JSON text and panics where an object has a key twice.
pub(super) fn assert_no_key_twice(text: &str) {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    // Canonical spelling: equal keys are equal bytes, and a colon follows each key.
    let mut open: Vec<HashSet<&str>> = Vec::new();
    let mut strings = text.char_indices();
    let mut last_string = "";
    while let Some((at, character)) = strings.next() {
        match character {
            '{' | '[' => open.push(HashSet::new()),
            '}' | ']' => drop(open.pop()),
            ':' => assert!(open.last_mut().unwrap().insert(last_string), "twice: {text}"),
            '"' => loop {
                match strings.next().unwrap() {
                    (_, '\\') => drop(strings.next()),
                    (end, '"') => {
                        last_string = &text[at..end];
                        break;
                    }
                    _ => {}
                }
            },
            _ => {}
        }
    }
    assert!(open.is_empty(), "{value}");
}

#[test]
fn masks_of_schemas_are_what_brute_force_finds() {
    let engine = engine(vocabulary(1, 600));
    let mut ended = 0;
    for (number, schema) in SCHEMAS.iter().enumerate() {
        let mut rng = seeded(number as u8);
        for whitespace in [COMPACT, SPACED, FLEXIBLE, CONSISTENT, layout(",", ": ", Some("\t"))] {
            let what = format!("{schema} {whitespace:?}");
            let compiled = engine.compile_json_schema(schema, whitespace).unwrap();
            for _ in 0..3 {
                if let Some(text) = walk_and_compare(&compiled, &mut rng, 18, &what) {
                    assert_no_key_twice(std::str::from_utf8(&text).unwrap());
                    ended += 1;
                }
            }
        }
    }
    assert!(ended > 60, "only {ended} walks came to an end");
}

#[test]
fn masks_of_patterns_are_what_brute_force_finds() {
    let engine = engine(vocabulary(2, 600));
    for (number, pattern) in PATTERNS.iter().enumerate() {
        let mut rng = seeded(number as u8);
        let compiled = engine.compile_regex(pattern).unwrap();
        let judge = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
        for _ in 0..5 {
            if let Some(text) = walk_and_compare(&compiled, &mut rng, 15, pattern) {
                let text = std::str::from_utf8(&text).unwrap();
                assert!(judge.is_match(text), "{pattern} does not match {text:?}");
            }
        }
    }
}

/// Large subtrees of the vocabulary are grafted or taken as a whole, which small ones never are.
#[test]
fn masks_over_large_subtrees_are_what_brute_force_finds() {
    let engine = engine(vocabulary(4, 4000));
    for schema in [SCHEMAS[3], SCHEMAS[6], SCHEMAS[19], SCHEMAS[25], SCHEMAS[28]] {
        let mut rng = seeded(9);
        let compiled = engine.compile_json_schema(schema, COMPACT).unwrap();
        for _ in 0..2 {
            walk_and_compare(&compiled, &mut rng, 8, schema);
        }
    }
    for pattern in ["(?s:.*)", "[^a]*", ".{2,40}", "a[a-z\"]*", "(a|\"|[^x]b)*"] {
        let mut rng = seeded(10);
        let compiled = engine.compile_regex(pattern).unwrap();
        walk_and_compare(&compiled, &mut rng, 6, pattern);
    }
}

#[test]
fn masks_do_not_depend_on_what_was_kept_or_let_go() {
    let config = EngineConfig { lexeme_bytes: 1, lexeme_mask_bytes: 1, grammar_bytes: 1 };
    let engine = Arc::new(Engine::new(vocabulary(5, 200), None, config));
    engine.prepare().unwrap();
    for schema in [SCHEMAS[4], SCHEMAS[8], SCHEMAS[19], SCHEMAS[26]] {
        let mut rng = seeded(11);
        let compiled = engine.compile_json_schema(schema, SPACED).unwrap();
        walk_and_compare(&compiled, &mut rng, 12, schema);
        engine.clear_memos();
        walk_and_compare(&compiled, &mut rng, 12, schema);
    }
}

/// Whether a whole text belongs to a grammar, and if not how many of its bytes could be read.
pub(super) fn read(compiled: &Compiled, text: &str) -> Result<(), usize> {
    let generation = compiled.generation();
    let automaton = &generation.automaton;
    let mut state = automaton.start();
    for (at, byte) in text.bytes().enumerate() {
        match automaton.walk(automaton.threads(state), &[byte]).unwrap() {
            Some(threads) => state = automaton.intern(threads).unwrap(),
            None => return Err(at),
        }
    }
    if automaton.is_accepting(state) {
        Ok(())
    } else {
        Err(text.len())
    }
}

#[test]
fn a_key_comes_once() {
    let engine = engine(vocabulary(6, 50));
    let open = r#"{"properties": {"a": {"type": "integer"}}, "type": "object"}"#;
    let ints = r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#;
    // Undeclared in one branch and declared in the other.
    let group = r#"{"anyOf": [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false},
        {"type": "object", "properties": {"x": {"type": "integer"}}}]}"#;
    // The second branch takes `a` as an undeclared key, after which the first has it declared.
    let both = r#"{"anyOf": [
        {"type": "object", "properties": {"b": {}, "a": {}}},
        {"type": "object", "additionalProperties": {"type": "integer"}}]}"#;
    let cases = [
        (open, r#"{"a":1,"b":2}"#, Ok(())),
        (open, r#"{"a":1,"a":2}"#, Err(9)),
        (open, r#"{"a":1,"b":2,"b":3}"#, Err(15)),
        (open, r#"{"a":1,"b":2,"bb":3}"#, Ok(())),
        (open, r#"{"b":{"b":1},"c":{"b":1}}"#, Ok(())),
        (open, r#"{"b":[{"b":1},{"b":1}],"b":1}"#, Err(25)),
        // A declared key after an undeclared one is out of order.
        (open, r#"{"b":2,"a":1}"#, Err(9)),
        (open, r#"{"\n":2,"\n":1}"#, Err(11)),
        // Another spelling of the same key is no spelling at all.
        (open, r#"{"b":2,"\u0062":1}"#, Err(12)),
        (ints, r#"{"":1,"":2}"#, Err(7)),
        (ints, r#"{"k":1,"kk":2,"k":3}"#, Err(16)),
        (ints, r#"{"é":1,"è":2,"é":3}"#, Err(18)),
        (group, r#"{"a":1}"#, Ok(())),
        (group, r#"{"a":1,"a":1}"#, Err(9)),
        (group, r#"{"x":1,"a":1,"a":1}"#, Err(15)),
        (group, r#"{"a":1,"y":1,"y":1}"#, Err(15)),
        (both, r#"{"a":1,"b":1}"#, Ok(())),
        (both, r#"{"a":1,"b":1,"a":1}"#, Err(15)),
        (both, r#"{"b":1,"a":1,"b":1}"#, Err(15)),
    ];
    for (schema, text, expected) in cases {
        let compiled = engine.compile_json_schema(schema, COMPACT).unwrap();
        assert_eq!(read(&compiled, text), expected, "{text}\n{schema}");
    }
}

/// Masks know it too where one token holds the end of a key and all of the next one.
#[test]
fn a_key_comes_once_also_within_one_token() {
    let engine = engine(vocabulary(7, 0));
    let vocabulary = engine.vocabulary();
    let schema = r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#;
    let compiled = engine.compile_json_schema(schema, COMPACT).unwrap();
    let generation = compiled.generation();
    let Generation { automaton, masker, .. } = &**generation;
    for (before, token, allowed) in [
        (r#"{""#, r#"x":0,"x":0"#, false),
        (r#"{"y"#, r#"x":0,"x":0"#, true),
        (r#"{""#, r#"x":0,"y":0,"x":"#, false),
        (r#"{"a":0,"b"#, r#"x":0,"y":0,"x":"#, true),
        (r#"{"y":0,""#, r#"x":0,"y":0,"x":"#, false),
        (r#"{"#, r#""x":0,"x":0}"#, false),
        (r#"{"a"#, r#"":1,"a""#, false),
        (r#"{"b"#, r#"":1,"a""#, true),
        (r#"{"a":1,"b"#, r#"":1,"a""#, false),
        (r#"{""#, r#"a":1,"a":"#, false),
        (r#"{"b"#, r#"a":1,"a":"#, true),
        (r#"{"a":1,"b"#, r#"a":1,"a":"#, false),
    ] {
        let id = vocabulary.trie().tokens_at(vocabulary.trie().find(token.as_bytes()).unwrap())[0];
        let threads = automaton.walk(automaton.threads(automaton.start()), before.as_bytes());
        let state = automaton.intern(threads.unwrap().unwrap()).unwrap();
        let mask = masker.compute(automaton, state).unwrap();
        assert_eq!(mask.contains(id), allowed, "{before} then {token}");
        assert_mask(&compiled, state, before.as_bytes(), schema);
    }
}

/// A token that ends a name and begins one more needs no second look, where only names come.
#[test]
fn a_name_comes_once_also_within_one_token() {
    let tokens = [
        "\":\"\",\"",
        "\":1,\"",
        "\":1,\"b",
        "b\":1,\"a",
        "\":1,\"a\":1,\"",
        "\":1,\"b\":1,\"a",
        "\":{\"b\":1},\"",
        "\":{\"b\":1,\"b",
        "\":{\"b\":1,\"c",
        "\\\":1,\"",
        "\":[1,\"a",
    ];
    let engine = engine(vocabulary_of(&tokens));
    let names = r#""a": {}, "b": {"type": ["integer", "string"]}, "ab": {}, "a\"": {}, "c": {}"#;
    let schema = format!(
        r#"{{"type": "object", "properties": {{{names}}}, "additionalProperties": false}}"#
    );
    for property_order in [PropertyOrder::Declared, PropertyOrder::Any] {
        let writing = Writing { property_order, ..Writing::from(COMPACT) };
        let compiled = engine.compile_json_schema(&schema, writing).unwrap();
        let generation = compiled.generation();
        let Generation { automaton, masker, .. } = &**generation;
        for name in ["", "\"", "\"a", "\"b", "\"ab", "\"a\\", "\"a\\\""] {
            for before in ["{", "{\"a\":1,", "{\"c\":{\"x\":1,"] {
                let text = format!("{before}{name}");
                let threads = automaton.walk(automaton.threads(automaton.start()), text.as_bytes());
                let Some(threads) = threads.unwrap() else { continue };
                let state = automaton.intern(threads).unwrap();
                let resolved = || masker.counters.doubts.load(Ordering::Relaxed);
                let earlier = resolved();
                let allowed = assert_mask(&compiled, state, text.as_bytes(), &schema);
                let two_keys = engine.vocabulary().tokens_with_two_keys();
                let allowed = two_keys.iter().filter(|token| allowed.contains(token)).count();
                if text == "{\"b" {
                    // Some of them begin and end a key.
                    assert!(allowed as u64 > resolved() - earlier, "{allowed}");
                }
            }
        }
    }
}

/// No text is allowed after a refused name, even if the name is written in several tokens.
#[test]
fn a_refused_name_is_refused_with_whatever_follows_it() {
    let engine = engine(vocabulary(1, 600));
    let vocabulary = engine.vocabulary();
    let schema = r#"{"type": "object", "properties": {"a": {}}}"#;
    let compiled = engine.compile_json_schema(schema, FLEXIBLE).unwrap();
    let generation = compiled.generation();
    let Generation { automaton, masker, .. } = &**generation;
    // `a` must not come after an undeclared key.
    let before = r#"{"b":1,""#;
    let threads = automaton.walk(automaton.threads(automaton.start()), before.as_bytes());
    let state = automaton.intern(threads.unwrap().unwrap()).unwrap();
    let mask = masker.compute(automaton, state).unwrap();
    let node = vocabulary.trie().find(b"a\":").unwrap();
    for token in vocabulary.trie().tokens_below(node) {
        assert!(!mask.contains(*token), "{}", vocabulary.text(*token).escape_ascii());
    }
}

#[test]
fn alternatives_stand_or_fall_by_their_verdicts() {
    let engine = engine(vocabulary(8, 0));
    let cases: [(&str, &[&str], &[&str]); 6] = [
        (
            SCHEMAS[24],
            &[r#"{"kind":"a","x":1}"#, r#"{"kind":"b"}"#, r#"{"kind":"b","name":""}"#],
            &[r#"{"kind":"a"}"#, r#"{"kind":"b","x":1}"#, r#"{"kind":"a","name":"n"}"#],
        ),
        (
            SCHEMAS[25],
            &[r#"{"a":1,"c":[]}"#, r#"{"b":"","c":null}"#, r#"{"b":1}"#, "{}"],
            &[r#"{"a":""}"#, "[]"],
        ),
        (
            SCHEMAS[16],
            &[r#"["a",null,true,false]"#, r#"["a"]"#, "[]"],
            &[r#"["b"]"#, r#"["a",true]"#],
        ),
        (SCHEMAS[29], &[r#"{"a":9,"b":0}"#, r#"{"b":0}"#], &[r#"{"a":0,"b":0}"#, r#"{"a":1}"#]),
        (SCHEMAS[22], &[r#"{"x":1,"z":2}"#, r#"{"z":2}"#], &[r#"{"y":1}"#, r#"{"z":""}"#]),
        (SCHEMAS[23], &[r#"{"x":1,"kind":2}"#], &[r#"{"x":1}"#, r#"{"kind":2,"x":1}"#]),
    ];
    for (schema, accepted, refused) in cases {
        let compiled = engine.compile_json_schema(schema, COMPACT).unwrap();
        for text in accepted {
            assert_eq!(read(&compiled, text), Ok(()), "{text}\n{schema}");
        }
        for text in refused {
            assert!(read(&compiled, text).is_err(), "{text}\n{schema}");
        }
    }
}

#[test]
fn white_space_is_where_its_mode_has_it() {
    let engine = engine(vocabulary(8, 0));
    let schema = r#"{"type": "object", "properties": {"a": {"type": "array"}}}"#;
    for (whitespace, accepted, refused) in [
        (COMPACT, r#"{"a":[1,2],"b":3}"#, r#"{"a": [1,2]}"#),
        (SPACED, r#"{"a": [1, 2], "b": 3}"#, r#"{"a":[1,2]}"#),
        (FLEXIBLE, "{ \"a\"\t: [\n1 ,\r\n2 ] , \"b\":3  }", "{   \"a\":[]}"),
        (FLEXIBLE, r#"{"a":[1,2],"b":3}"#, " {}"),
    ] {
        let compiled = engine.compile_json_schema(schema, whitespace).unwrap();
        assert_eq!(read(&compiled, accepted), Ok(()), "{accepted}");
        assert!(read(&compiled, refused).is_err(), "{refused}");
    }
    let compiled = engine.compile_json_schema(schema, FLEXIBLE).unwrap();
    assert_eq!(read(&compiled, "{} "), Err(2), "no white space after the root");
}

#[test]
fn indentation_follows_the_depth() {
    let engine = engine(vocabulary(9, 0));
    let schema = r#"{"properties": {"a": {"type": "array"}, "b": {"type": "object"}}}"#;
    let two = || layout(",", ": ", Some("  "));
    for (whitespace, text) in [
        (two(), "{}"),
        (two(), "[]"),
        (two(), "[\n  1,\n  2\n]"),
        (two(), "{\n  \"a\": [],\n  \"b\": {}\n}"),
        (
            two(),
            "{\n  \"a\": [\n    [],\n    [\n      1\n    ]\n  ],\n  \"b\": {\n    \"c\": {}\n  },\n  \"d\": 0\n}",
        ),
        (layout(" ,", ":", Some("")), "{\n\"a\":[\n1 ,\n2\n] ,\n\"b\":{}\n}"),
        (layout(",\t", " : ", None), "{\"a\" : [1,\t2],\t\"b\" : {}}"),
    ] {
        let compiled = engine.compile_json_schema(schema, whitespace).unwrap();
        assert_eq!(read(&compiled, text), Ok(()), "{text}");
        // Each run of white space is exact: one byte less or more is refused.
        for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_whitespace()) {
            let (before, after) = text.split_at(at);
            let longer = format!("{before}{}{after}", char::from(byte));
            assert!(read(&compiled, &longer).is_err(), "{longer}");
            assert!(read(&compiled, &format!("{before}{}", &after[1..])).is_err(), "{text} {at}");
        }
    }
    let compiled = engine.compile_json_schema(schema, two()).unwrap();
    for refused in ["{\n}", "[\n]", "{ }", "[1]", "{\n \"a\": []\n}", "[\n  1\n  ]", "\n1", "1\n"] {
        assert!(read(&compiled, refused).is_err(), "{refused}");
    }
}

#[test]
fn a_layout_is_separators_with_white_space() {
    for (item, key, indent) in [
        ("", ":", None),
        (",", "", None),
        (";", ":", None),
        (",,", ":", None),
        (",", ":\u{a0}", None),
        (",", ":", Some("x")),
    ] {
        assert_eq!(Layout::new(item, key, indent), None, "{item:?} {key:?} {indent:?}");
    }
}

fn refusal(engine: &Arc<Engine>, schema: &str) -> CompileError {
    engine.compile_json_schema(schema, COMPACT).unwrap_err()
}

#[test]
fn limits_are_errors_that_name_them() {
    let engine = engine(vocabulary(8, 0));
    let deep = format!("{}true{}", r#"{"items":"#.repeat(600), "}".repeat(600));
    match refusal(&engine, &deep) {
        CompileError::Engine(EngineError::Schema(error)) => {
            let limit = SchemaErrorKind::Limit { limit: "nesting", maximum: 512 };
            assert_eq!(error.kind, limit);
        }
        other => panic!("{other:?}"),
    }
    // More kinds of strings at one place than a verdict has bits.
    let branch = |at: usize| {
        let text = format!(r#"{{"type": "string", "maxLength": {at}}}"#);
        let items = format!(r#"{{"type": "array", "minItems": 1, "items": {text}}}"#);
        let members =
            format!(r#"{{"type": "object", "properties": {{"a": {text}}}, "required": ["a"]}}"#);
        (items, members)
    };
    let (items, members): (Vec<String>, Vec<String>) = (0..130).map(branch).unzip();
    let wide = format!(r#"{{"anyOf": [{}, {}]}}"#, items.join(","), members.join(","));
    let compiled = engine.compile_json_schema(&wide, COMPACT).unwrap();
    let generation = compiled.generation();
    let automaton = &generation.automaton;
    let start = automaton.threads(automaton.start());
    // Alternatives of objects are read in parts.
    assert!(automaton.walk(start, br#"{"a":"b""#).unwrap().is_some());
    match automaton.walk(start, b"[").unwrap_err() {
        EngineError::Schema(error) => {
            let limit = SchemaErrorKind::Limit { limit: "schemas_of_one_value", maximum: 128 };
            assert_eq!(error.kind, limit);
            assert_eq!(error.pointer, "/anyOf/0/items");
        }
        other => panic!("{other:?}"),
    }
    // Everything built before stays usable.
    assert!(automaton.walk(start, b"{").unwrap().is_some());
}

#[test]
fn what_nothing_matches_is_an_error() {
    let engine = engine(vocabulary(8, 0));
    match refusal(&engine, r#"{"type": "string", "pattern": "^a$", "minLength": 2}"#) {
        CompileError::Engine(EngineError::Schema(error)) => {
            assert_eq!(error.kind, SchemaErrorKind::Unsatisfiable);
        }
        other => panic!("{other:?}"),
    }
    let nothing = engine.compile_regex(r"[a&&b]").unwrap_err();
    assert!(matches!(nothing, CompileError::Unsatisfiable(_)), "{nothing:?}");
    let nothing = engine.compile_choice(&[]).unwrap_err();
    assert!(matches!(nothing, CompileError::Unsatisfiable(_)), "{nothing:?}");
    match engine.compile_regex("a\n(b").unwrap_err() {
        CompileError::Pattern { line, column, .. } => assert_eq!((line, column), (2, 1)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_choice_is_one_of_its_texts() {
    let engine = engine(vocabulary(8, 100));
    let options: Vec<String> = ["ab", "abc", "é", "", "x y"].map(String::from).to_vec();
    let compiled = engine.compile_choice(&options).unwrap();
    for option in &options {
        assert_eq!(read(&compiled, option), Ok(()));
    }
    assert_eq!(read(&compiled, "x"), Err(1));
    assert_eq!(read(&compiled, "abcd"), Err(3));
    let mut rng = seeded(12);
    for _ in 0..4 {
        walk_and_compare(&compiled, &mut rng, 6, "choice");
    }
}

#[test]
fn grammars_share_what_lies_in_their_lexemes() {
    let engine = engine(vocabulary(8, 100));
    let schema = r#"{"type": "array", "items": {"type": "string", "pattern": "^a+$"}}"#;
    let walks = |engine: &Engine| {
        let compiled = Arc::clone(&engine.lexemes);
        (compiled.len(), engine.lexeme_masks.walks())
    };
    let first = engine.compile_json_schema(schema, COMPACT).unwrap();
    walk_and_compare(&first, &mut seeded(13), 12, schema);
    let before = walks(&engine);
    let second = engine.compile_json_schema(schema, COMPACT).unwrap();
    walk_and_compare(&second, &mut seeded(13), 12, schema);
    assert_eq!(walks(&engine), before, "nothing was walked or built again");
    assert!(second.stats().iter().any(|&(name, count)| name == "masks_computed" && count > 0));
}
