//! A call may be ended at any of its charges. Whatever it has built by then is right or is gone:
//! asked again, the same objects answer as if nothing had happened.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may end")]

use std::sync::Arc;

use ffwd_native::automaton::{Whitespace, WhitespaceMode};
use ffwd_native::engine::{CompileError, Compiled, Engine, EngineConfig, GrammarOptions};
use ffwd_native::error::LimitExceeded;
use ffwd_native::fast_forward::forced_bytes;
use ffwd_native::json_schema::Policy;
use ffwd_native::limits::Limits;
use ffwd_native::matcher::{Matcher, MatcherError};
use ffwd_native::meter::{faults, Meter};
use ffwd_native::vocabulary::{TokenId, Vocabulary};
use ffwd_native::{gbnf, lark};

const TOKENS: &[&str] = &[
    "aa", "ab", "ba", "{\"", "\":", "\"a\":", "\"}", "},", "],[", "1,", ",2", "12", "a b", " b",
    "\n", "bab", "aab", "\"a", "b\"", "null", "[[", "]]",
];

enum Kind {
    Schema,
    Lark,
    Gbnf,
}

struct Case {
    kind: Kind,
    text: &'static str,
    /// What is read.
    document: &'static str,
}

const CASES: &[Case] = &[
    Case {
        kind: Kind::Schema,
        text: r#"{"type": "object", "properties": {"a": {"pattern": "^a+b{2,9}$"}, "b": {"type":
            "integer", "minimum": 3}}, "required": ["b"], "not": {"required": ["c", "a"]},
            "patternProperties": {"^c": {"enum": [1, 12, null]}}}"#,
        document: r#"{"a":"aabb","ab":[1],"b":12}"#,
    },
    Case {
        kind: Kind::Schema,
        text: r#"{"type": "array", "items": {"oneOf": [{"type": "array", "items": {"enum": [1, 2]},
            "maxItems": 2}, {"type": "integer"}, {"type": "number", "minimum": 7}]}, "uniqueItems": true,
            "contains": {"const": 2}, "minItems": 4}"#,
        document: "[[1],[1,2],3,2]",
    },
    Case {
        kind: Kind::Schema,
        text: r##"{"$ref": "#/$defs/t", "$defs": {"t": {"anyOf": [{"type": "object", "properties": {"a":
            {"$ref": "#/$defs/t"}}, "required": ["a"], "additionalProperties": false}, {"type":
            "string", "maxLength": 3, "pattern": "a.*b"}, {"type": "null"}]}}}"##,
        document: r#"{"a":{"a":"aab"}}"#,
    },
    Case {
        kind: Kind::Lark,
        text: "start: (word | block)+\nword: NAME | KEY\nblock: \"a\" BODY \"b\"\nNAME: /[a-z]+/\n\
               KEY: \"ab\" | \"ba\"\nBODY: /[ab]*bab/\n%ignore /[ \\n]+/",
        document: "ab aab\nbab ba",
    },
    Case {
        kind: Kind::Lark,
        text: "start: pair (\",\" pair)*\npair: STRING | %json {\"type\": \"object\", \
               \"additionalProperties\": {\"type\": \"integer\"}}\nSTRING: /a(.|\\n)*?b/",
        document: "aab,{\"a\":12}",
    },
    Case {
        kind: Kind::Gbnf,
        text: "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"a\" | \"b\" | root root",
        document: "aabaaab",
    },
    Case {
        kind: Kind::Gbnf,
        text: "root ::= (x | y){2,40} \"12\"\nx ::= \"a\"? \"b\"*\ny ::= [ab]{1,3} | y \"null\"",
        document: "abbaaab12",
    },
];

fn engine() -> Arc<Engine> {
    let bytes: Vec<[u8; 1]> = (0..=255u8).map(|byte| [byte]).collect();
    let mut texts: Vec<Option<&[u8]>> = bytes.iter().map(|byte| Some(&byte[..])).collect();
    texts.extend(TOKENS.iter().map(|token| Some(token.as_bytes())));
    texts.push(None);
    let vocabulary = Vocabulary::new(&texts, &[TokenId(texts.len() as u32 - 1)], None).unwrap();
    Arc::new(Engine::new(vocabulary, None, EngineConfig::default()))
}

/// Does it until it is done, and counts how often it was ended by a fault.
fn done<T, E: From<LimitExceeded> + std::fmt::Debug>(
    ended: &mut usize,
    mut work: impl FnMut() -> Result<T, E>,
) -> T {
    loop {
        let before = faults::left();
        match work() {
            Ok(result) => return result,
            Err(error) => {
                // Nothing else goes wrong here.
                assert!(before.is_some() && faults::left().is_none(), "{error:?}");
                *ended += 1;
            }
        }
    }
}

fn compile(engine: &Arc<Engine>, case: &Case, limits: &Limits) -> Result<Compiled, CompileError> {
    Meter::compiling(limits, None).run(|| {
        let grammar = match case.kind {
            Kind::Schema => {
                let compact = Whitespace { mode: WhitespaceMode::Compact };
                return engine.compile_json_schema(case.text, compact);
            }
            Kind::Lark => lark::parse(case.text)?,
            Kind::Gbnf => gbnf::parse(case.text, "root")?,
        };
        let compact = Whitespace { mode: WhitespaceMode::Compact };
        let (registry, policy) = (Arc::default(), Policy::default());
        let options = GrammarOptions { writing: compact.into(), registry, policy };
        engine.compile_grammar(&grammar, options)
    })
}

/// Accepts a token once, and before that twice, which is taken back.
fn accept(matcher: &mut Matcher, token: TokenId) -> Result<(bool, bool), MatcherError> {
    let twice = matcher.meter().run(|| matcher.accept_all(&[token, token]))?;
    if twice {
        matcher.meter().run(|| matcher.rollback(2))?;
    }
    Ok((twice, matcher.meter().run(|| matcher.accept(token))?))
}

/// All that is asked of a case: each answer as text.
fn answers(case: &Case, ended: &mut usize) -> Vec<String> {
    let engine = engine();
    let limits = Limits::default();
    let compiled = done(ended, || compile(&engine, case, &limits)).within(limits);
    let mut matcher = Matcher::new(Arc::new(compiled));
    let words = engine.vocabulary().mask_words();
    let mut answers = Vec::new();
    let tokens = spelled(&engine, case.document);
    for (at, &token) in tokens.iter().enumerate() {
        let mut row = vec![0u32; words];
        done(ended, || matcher.meter().run(|| matcher.fill_bitmask(&mut row)));
        answers.push(format!("{at} mask {row:?}"));
        let forced = done(ended, || matcher.meter().run(|| forced_bytes(&matcher, 100)));
        answers.push(format!("{at} forced {forced:?}"));
        let valid = done(ended, || matcher.meter().run(|| matcher.validate(&tokens[at..])));
        answers.push(format!("{at} valid {valid}"));
        // Tokens that are refused, too.
        for other in [0x31, 0x61, 0x22, 0x7D, 256, 262, 270].map(TokenId) {
            let valid = done(ended, || matcher.meter().run(|| matcher.validate(&[other])));
            answers.push(format!("{at} valid {other} {valid}"));
        }
        if at % 3 == 0 {
            let short = done(ended, || matcher.meter().run(|| matcher.shortest_completion()));
            answers.push(format!("{at} completion {short:?}"));
        }
        let before = matcher.clone();
        let accepted = done(ended, || {
            let mut next = before.clone();
            let accepted = accept(&mut next, token);
            if accepted.is_err() {
                // What has failed has changed nothing.
                assert!([at, at + 2].contains(&next.tokens().len()), "{:?}", next.tokens());
            }
            matcher = next;
            accepted
        });
        answers.push(format!("{at} accepted {accepted:?}"));
        if !accepted.1 {
            break;
        }
    }
    answers
}

/// The longest tokens that spell a text.
fn spelled(engine: &Engine, text: &str) -> Vec<TokenId> {
    let trie = engine.vocabulary().trie();
    let mut tokens = Vec::new();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let token = |length: usize| {
            let node = trie.find(&rest[..length])?;
            Some((length, *trie.tokens_at(node).first()?))
        };
        let (length, token) = (1..=rest.len().min(6)).rev().find_map(token).unwrap();
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

/// Each of the first charges, and after that fewer the later they come.
fn places(charges: u64) -> Vec<u64> {
    let each = 80;
    let mut places: Vec<u64> = (1..=charges.min(each)).collect();
    let (mut place, mut step) = (each, 1);
    while place < charges {
        place += step;
        step = step * 9 / 8 + 1;
        places.push(place.min(charges));
    }
    places
}

#[test]
fn a_fault_at_any_charge_changes_no_answer() {
    for case in CASES {
        faults::inject(None);
        let expected = answers(case, &mut 0);
        faults::inject(Some(u64::MAX - 1));
        assert_eq!(answers(case, &mut 0), expected, "counting is no fault: {}", case.text);
        let charges = u64::MAX - 1 - faults::left().unwrap();
        assert!(charges > 100, "{charges} charges: {}", case.text);
        for place in places(charges) {
            faults::inject(Some(place));
            let mut ended = 0;
            let found = answers(case, &mut ended);
            let at = format!("a fault at charge {place} of {charges}: {}", case.text);
            assert_eq!(ended, 1, "swallowed: {at}");
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "after {at}");
            }
            assert_eq!(found.len(), expected.len(), "after {at}");
        }
    }
    faults::inject(None);
}
