//! A call may be ended at any of its charges, and be refused memory by the system at any of its
//! allocations. Whatever it has built by then is right or is gone: asked again, the same objects answer
//! as if nothing had happened.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may end")]

use std::sync::Arc;

use ffwd_automaton::{Whitespace, WhitespaceMode};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::limits::Limits;
use ffwd_bounds::meter::{faults, heap, Meter};
use ffwd_engine::engine::{CompileError, Compiled, Engine, EngineConfig};
use ffwd_engine::fast_forward::forced_bytes;
use ffwd_engine::matcher::{Matcher, MatcherError};
use ffwd_grammar::{gbnf, lark};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

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

/// What goes wrong.
struct Fault {
    inject: fn(Option<u64>),
    left: fn() -> Option<u64>,
}

const CHARGES: Fault = Fault { inject: faults::inject, left: faults::left };
const ALLOCATIONS: Fault = Fault { inject: heap::faults::inject, left: heap::faults::left };

/// Which of them are left, of either kind.
fn left() -> [Option<u64>; 2] {
    [(CHARGES.left)(), (ALLOCATIONS.left)()]
}

/// Does it until it is done, and counts how often it was ended by a fault.
fn done<T, E: From<LimitExceeded> + std::fmt::Debug>(
    ended: &mut usize,
    mut work: impl FnMut() -> Result<T, E>,
) -> T {
    loop {
        let before = left();
        match work() {
            Ok(result) => return result,
            Err(error) => {
                // Nothing else goes wrong here.
                assert!(before != [None; 2] && left() == [None; 2], "{error:?}");
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
        engine.compile_grammar(&grammar, compact.into())
    })
}

/// Accepts a token once, and before that twice, which is taken back.
fn accept(matcher: &mut Matcher, token: TokenId) -> Result<(bool, bool), MatcherError> {
    let twice = matcher.bounded_mut(|matcher| matcher.accept_all(&[token, token]))?;
    if twice {
        matcher.bounded_mut(|matcher| matcher.rollback(2))?;
    }
    Ok((twice, matcher.bounded_mut(|matcher| matcher.accept(token))?))
}

/// All that is asked of a case: each answer as text.
fn answers(case: &Case, ended: &mut usize) -> Vec<String> {
    let engine = engine();
    let limits = Limits::default();
    let compiled = done(ended, || compile(&engine, case, &limits)).within(limits);
    let mut matcher = Matcher::new(Arc::new(compiled)).unwrap();
    let words = engine.vocabulary().mask_words();
    let mut answers = Vec::new();
    let tokens = spelled(&engine, case.document);
    for (at, &token) in tokens.iter().enumerate() {
        let mut row = vec![0u32; words];
        done(ended, || matcher.bounded(|matcher| matcher.fill_bitmask(&mut row)));
        answers.push(format!("{at} mask {row:?}"));
        let forced = done(ended, || matcher.bounded(|matcher| forced_bytes(matcher, 100)));
        answers.push(format!("{at} forced {forced:?}"));
        let valid = done(ended, || matcher.bounded(|matcher| matcher.validate(&tokens[at..])));
        answers.push(format!("{at} valid {valid}"));
        // Tokens that are refused, too.
        for other in [0x31, 0x61, 0x22, 0x7D, 256, 262, 270].map(TokenId) {
            let valid = done(ended, || matcher.bounded(|matcher| matcher.validate(&[other])));
            answers.push(format!("{at} valid {other} {valid}"));
        }
        if at % 3 == 0 {
            let short = done(ended, || matcher.bounded(|matcher| matcher.shortest_completion()));
            answers.push(format!("{at} completion {short:?}"));
        }
        let before = matcher.clone();
        let accepted = done(ended, || {
            let mut next = before.clone();
            let accepted = accept(&mut next, token);
            if accepted.is_err() {
                // A failed call has changed nothing.
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

/// Has the fault happen at one place after another. Whether a call may go on to its end, as it may
/// where no charge comes after an allocation.
fn at_each_place(fault: &Fault, may_go_on: bool) {
    for case in CASES {
        (fault.inject)(None);
        let expected = answers(case, &mut 0);
        (fault.inject)(Some(u64::MAX - 1));
        assert_eq!(answers(case, &mut 0), expected, "counting is no fault: {}", case.text);
        let all = u64::MAX - 1 - (fault.left)().unwrap();
        assert!(all > 100, "{all} places: {}", case.text);
        let mut endings = 0;
        let places = places(all);
        for &place in &places {
            (fault.inject)(Some(place));
            let mut ended = 0;
            let found = answers(case, &mut ended);
            let at = format!("a fault at place {place} of {all}: {}", case.text);
            assert!(ended == 1 || may_go_on && ended == 0, "{ended} were ended by {at}");
            assert!((fault.left)().is_none() || may_go_on, "it did not happen: {at}");
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "after {at}");
            }
            assert_eq!(found.len(), expected.len(), "after {at}");
            endings += ended;
        }
        assert!(endings * 2 > places.len(), "{endings} of {}: {}", places.len(), case.text);
    }
    (fault.inject)(None);
}

#[test]
fn a_fault_at_any_charge_changes_no_answer() {
    at_each_place(&CHARGES, false);
}

#[test]
fn an_allocation_that_is_refused_at_any_place_changes_no_answer() {
    at_each_place(&ALLOCATIONS, true);
}

/// A program of its own allocator; the bindings bring one.
mod stingy {
    use std::alloc::{GlobalAlloc, Layout, System};

    use ffwd_bounds::error::Breach;
    use ffwd_bounds::meter::heap::Metered;

    use super::*;

    /// The system's allocator, which on demand has nothing left but what is given back to it.
    struct Stingy;

    thread_local! {
        static EMPTY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }

    // SAFETY: all is passed on to the system's, or refused.
    #[allow(unsafe_code)]
    unsafe impl GlobalAlloc for Stingy {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            match EMPTY.with(|empty| empty.replace(false)) {
                true => std::ptr::null_mut(),
                // SAFETY: as the caller has promised.
                false => unsafe { System.alloc(layout) },
            }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: as the caller has promised.
            unsafe { System.dealloc(block, layout) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Metered<Stingy> = Metered(Stingy);

    #[test]
    fn a_system_without_memory_ends_the_call_only() {
        let engine = engine();
        let begin = |engine: &Arc<Engine>| {
            let compiled = compile(engine, &CASES[0], &Limits::default()).unwrap();
            Matcher::new(Arc::new(compiled)).unwrap()
        };
        let (mut matcher, mut other) = (begin(&engine), begin(&super::engine()));
        let mut row = vec![0u32; engine.vocabulary().mask_words()];
        let mut expected = row.clone();
        let mut refused = 0;
        for token in spelled(&engine, CASES[0].document) {
            EMPTY.with(|empty| empty.set(true));
            let filled = matcher.bounded(|matcher| matcher.fill_bitmask(&mut row));
            EMPTY.with(|empty| empty.set(false));
            // With the reserve it may as well go on to its end.
            if let Err(error) = filled {
                let limit = error.exceeded().unwrap();
                assert_eq!((limit.limit, limit.breach()), ("system_memory", Breach::OutOfMemory));
                assert!(limit.maximum > 0 && limit.is_interruption());
                refused += 1;
            }
            matcher.bounded(|matcher| matcher.fill_bitmask(&mut row)).unwrap();
            other.fill_bitmask(&mut expected).unwrap();
            assert_eq!(row, expected);
            let accepted = matcher.bounded_mut(|matcher| matcher.accept(token)).unwrap();
            assert_eq!(accepted, other.accept(token).unwrap());
        }
        assert!(refused > 3, "{refused}");
    }
}

#[test]
fn a_call_takes_no_more_memory_than_it_may() {
    let engine = engine();
    let mut refused = 0;
    for kilobytes in [1, 4, 16, 64, 256, 1024] {
        let limits = Limits { work_bytes: kilobytes << 10, ..Limits::default() };
        for case in CASES {
            match compile(&engine, case, &limits) {
                Ok(compiled) => {
                    let matcher = Matcher::new(Arc::new(compiled.within(limits))).unwrap();
                    let mut row = vec![0u32; engine.vocabulary().mask_words()];
                    let Err(error) = matcher.bounded(|matcher| matcher.fill_bitmask(&mut row))
                    else {
                        continue;
                    };
                    let limit = error.exceeded().unwrap();
                    assert_eq!(
                        (limit.limit, limit.maximum),
                        ("work_bytes", limits.work_bytes as u64)
                    );
                    refused += 1;
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("the limit on work_bytes"), "{text}");
                    assert!(text.contains(&(kilobytes << 10).to_string()), "{text}");
                    refused += 1;
                }
            }
            assert!(kilobytes < 1024, "a megabyte is enough for {}", case.text);
        }
    }
    assert!(refused > CASES.len());
}
