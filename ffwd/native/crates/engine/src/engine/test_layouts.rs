//! Layouts that a text decides for, against texts that `serde_json` writes.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use serde_json::Value;

use super::tests::{engine, read, walk_and_compare, COMPACT, FLEXIBLE};
use super::{Compiled, Engine};
use ffwd_automaton::{PropertyOrder, Whitespace, WhitespaceMode, Writing};
use ffwd_grammar::Grammar;
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};

pub(super) const CONSISTENT: Whitespace = Whitespace { mode: WhitespaceMode::Consistent };

/// A blank after each separator, and no line break.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

fn written(value: &Value, formatter: impl Formatter) -> String {
    let mut bytes = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter)).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// A value in each layout, in the same order for all values.
pub(super) fn in_each_layout(value: &Value) -> Vec<String> {
    let mut texts = vec![written(value, CompactFormatter), written(value, Spaced)];
    let indents = (1..=8).map(|blanks| " ".repeat(blanks)).chain(["\t".to_owned()]);
    for indent in indents {
        texts.push(written(value, PrettyFormatter::with_indent(indent.as_bytes())));
    }
    texts
}

/// A value in all layouts.
fn layouts(value: &Value) -> BTreeSet<String> {
    in_each_layout(value).into_iter().collect()
}

const VALUES: [&str; 14] = [
    "true",
    "\"a b\"",
    "[]",
    "{}",
    "[true]",
    "[true,null]",
    "[[]]",
    "[[[]],{}]",
    "{\"a\":true}",
    "{\"a\":[],\"b\":{}}",
    "{\"a\":{\"b\":[true,{\"c\":\", :\"}]},\"d\":[[true],[null]]}",
    "[[[[[true]]]],null]",
    "[[[{\"a\":[true,null]}]]]",
    "[{},{\"b\":[[],[null]]}]",
];

/// All texts of a grammar that begin with one.
fn texts_from(compiled: &Compiled, so_far: &mut Vec<u8>, texts: &mut BTreeSet<String>) {
    let text = String::from_utf8(so_far.clone()).unwrap();
    let generation = compiled.generation();
    let automaton = &generation.automaton;
    let threads = automaton.walk(automaton.threads(automaton.start()), so_far).unwrap().unwrap();
    if automaton.accepts(&threads).unwrap() {
        texts.insert(text);
    }
    assert!(texts.len() < 1_000);
    for byte in 0..128 {
        if !automaton.step(&threads, byte).unwrap().is_empty() {
            so_far.push(byte);
            texts_from(compiled, so_far, texts);
            so_far.pop();
        }
    }
}

#[test]
fn the_texts_of_a_value_are_those_of_the_layouts() {
    let engine = engine(vocabulary(31, 0));
    for value in VALUES {
        let value: Value = serde_json::from_str(value).unwrap();
        for order in [PropertyOrder::Declared, PropertyOrder::Any] {
            let writing = Writing { property_order: order, ..Writing::from(CONSISTENT) };
            let schema = serde_json::json!({ "const": value }).to_string();
            let compiled = engine.compile_json_schema(&schema, writing).unwrap();
            let mut found = BTreeSet::new();
            texts_from(&compiled, &mut Vec::new(), &mut found);
            let expected = layouts(&value);
            assert!(found.is_superset(&expected), "{value}: {found:?}");
            // In any order there are others of the members, too.
            assert!(order == PropertyOrder::Any || found.len() == expected.len(), "{found:?}");
        }
    }
}

#[test]
fn a_text_that_mixes_layouts_is_refused() {
    let engine = engine(vocabulary(32, 0));
    for schema in ["true", r#"{"type": ["array", "object"], "uniqueItems": true}"#] {
        let compiled = engine.compile_json_schema(schema, CONSISTENT).unwrap();
        for value in
            VALUES.iter().filter(|value| schema == "true" || !value.starts_with(['t', '"']))
        {
            let value: Value = serde_json::from_str(value).unwrap();
            let all = layouts(&value);
            for text in &all {
                assert_eq!(read(&compiled, text), Ok(()), "{text}");
                for at in 0..=text.len() {
                    let (before, after) = text.split_at(at);
                    let spaces = [" ", "\t", "\n", "\r", "  "];
                    let mut wrong: Vec<String> =
                        spaces.iter().map(|space| format!("{before}{space}{after}")).collect();
                    if after.starts_with([' ', '\t', '\n']) {
                        wrong.push(format!("{before}{}", &after[1..]));
                    }
                    for wrong in wrong.iter().filter(|text| !all.contains(*text)) {
                        // White space within a string is another value.
                        let same = serde_json::from_str::<Value>(wrong).is_ok_and(|v| v == value);
                        assert!(!same || read(&compiled, wrong).is_err(), "{wrong:?}");
                    }
                }
            }
        }
    }
}

/// Two readings of one JSON text, which what follows tells apart, and two values that are laid out
/// each for itself.
#[test]
fn values_of_one_grammar_have_their_own_layouts() {
    let engine = engine(vocabulary(33, 200));
    let one = r#"{"type": "object", "properties": {"a": true}, "required": ["a"]}"#;
    let two = r#"{"type": "object", "properties": {"a": true, "b": {}}, "required": ["a"]}"#;
    let compile = |own: [Option<Whitespace>; 2], default: &Whitespace, apart: bool| {
        let mut grammar = Grammar::new();
        let [first, second] = [(one, 0), (two, 1)].map(|(schema, at)| {
            let own: Option<Whitespace> = own[at].clone();
            grammar.json_with(schema, None, own).unwrap()
        });
        let mut text = |text| grammar.text(ffwd_regular::regex::Ast::literal(text)).unwrap();
        let [x, y] = ["x", "y"].map(&mut text);
        let start = match apart {
            true => grammar.seq(vec![first, x, second]).unwrap(),
            false => {
                let (first, second) = (vec![first, x], vec![second, y]);
                let parts = [first, second].map(|parts| grammar.seq(parts).unwrap());
                grammar.choice(parts.to_vec()).unwrap()
            }
        };
        grammar.start = Some(start);
        engine.compile_grammar(&grammar, default.clone().into()).unwrap()
    };
    let (compact, spaced) = (r#"{"a":[1,2]}"#, r#"{"a": [1, 2]}"#);
    let lines = "{\n \"a\": [\n  1,\n  2\n ]\n}";
    for whitespace in [COMPACT, FLEXIBLE, CONSISTENT] {
        let compiled = compile([None, None], &whitespace, false);
        for end in ["x", "y"] {
            for value in [r#"{"a":1}"#, r#"{"a":"s"}"#, r#"{"a":{"b":[null,-1.5]}}"#, compact] {
                assert_eq!(read(&compiled, &format!("{value}{end}")), Ok(()), "{value}{end}");
            }
        }
        assert_eq!(read(&compiled, r#"{"a":1,"b":2}y"#), Ok(()));
        for number in 0..4 {
            walk_and_compare(&compiled, &mut seeded(number), 14, "two readings");
        }
    }
    let compiled = compile([Some(CONSISTENT), Some(CONSISTENT)], &COMPACT, true);
    for first in [compact, spaced, lines] {
        for second in [compact, spaced, lines] {
            assert_eq!(read(&compiled, &format!("{first}x{second}")), Ok(()));
        }
    }
    let compiled = compile([Some(CONSISTENT), None], &COMPACT, true);
    assert_eq!(read(&compiled, &format!("{lines}x{compact}")), Ok(()));
    assert_eq!(read(&compiled, &format!("{spaced}x{spaced}")), Err(spaced.len() + 6));
    let compiled = compile([None, Some(FLEXIBLE)], &COMPACT, true);
    let loose = "{ \"a\" :1 }";
    assert_eq!(read(&compiled, &format!("{compact}x{loose}")), Ok(()));
    assert_eq!(read(&compiled, &format!("{loose}x{loose}")), Err(1));
    for number in 0..4 {
        let compiled = compile([Some(CONSISTENT), Some(FLEXIBLE)], &COMPACT, number % 2 == 0);
        walk_and_compare(&compiled, &mut seeded(number), 14, "two layouts");
    }
}

fn blanks(text: &str) -> usize {
    text.bytes().filter(u8::is_ascii_whitespace).count()
}

/// A completion goes on in the layout that the text has decided for, also where it is long.
#[test]
fn completions_keep_the_layout() {
    let engine: Arc<Engine> = engine(vocabulary(34, 0));
    let schema = r#"{"type": "array", "items": {"type": "array", "minItems": 2,
        "items": {"const": 7}}, "minItems": 3000}"#;
    let compiled = engine.compile_json_schema(schema, CONSISTENT).unwrap();
    let generation = compiled.generation();
    let automaton = &generation.automaton;
    let value = Value::from(vec![serde_json::json!([7, 7]); 3000]);
    for (begun, formatted) in [
        ("[[7", written(&value, CompactFormatter)),
        ("[[7, ", written(&value, Spaced)),
        ("[\n\t", written(&value, PrettyFormatter::with_indent(b"\t"))),
        ("[\n   [", written(&value, PrettyFormatter::with_indent(b"   "))),
    ] {
        let threads = automaton.threads(automaton.start());
        let threads = automaton.walk(threads, begun.as_bytes()).unwrap().unwrap();
        let completion = automaton.completing().shortest(&threads).unwrap().expect("it is found");
        let text = format!("{begun}{}", String::from_utf8(completion.text).unwrap());
        assert_eq!(blanks(&text), blanks(&formatted), "{begun}");
        assert_eq!(text, formatted);
    }
}
