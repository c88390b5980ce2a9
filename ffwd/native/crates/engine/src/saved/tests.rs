use std::sync::Arc;

use super::*;
use crate::engine::{Compiled, Engine, EngineConfig, GrammarOptions, Recipe};
use crate::matcher::{Beginning, Close, Matcher, Opening};
use ffwd_automaton::{
    Escapes, Layout, Numbers, PropertyOrder, Whitespace, WhitespaceMode, Writing,
};
use ffwd_grammar::{
    Argument, BitRange, Change, Comparison, Condition, Grammar, Lexing, Node, Operand, Place,
    SpanKind, TokenItem, TokenSet,
};
use ffwd_json_schema::{Parsing, Policy, Registry};
use ffwd_regular::regex::{parse, substring_of, Ast, Dialect, PatternOptions};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

fn engine(extra: &[&str]) -> Arc<Engine> {
    let mut tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|byte| Some(vec![byte])).collect();
    tokens.extend(extra.iter().map(|text| Some(text.as_bytes().to_vec())));
    let end = TokenId(tokens.len() as u32);
    tokens.push(None);
    tokens.push(None);
    let tokens: Vec<Option<&[u8]>> = tokens.iter().map(Option::as_deref).collect();
    let vocabulary = Vocabulary::new(&tokens, &[end], None).unwrap();
    Arc::new(Engine::new(vocabulary, None, EngineConfig::default()))
}

fn options() -> GrammarOptions {
    let layout = Layout::new(" ,\n", ":\t", Some("  ")).unwrap();
    let whitespace = Whitespace { mode: WhitespaceMode::Layout(Arc::new(layout)) };
    let documents = [("http://a/b".into(), r#"{"type":"null"}"#.into())];
    let mut options = GrammarOptions::from(whitespace);
    options.writing.property_order = PropertyOrder::Any;
    options.writing.numbers = Numbers::Any;
    options.writing.escapes = Escapes::Any;
    options.parsing.policy = Policy::Lenient;
    options.parsing.registry = Arc::new(Registry::new(documents));
    options
}

fn pattern(text: &str) -> Ast {
    parse(text, &PatternOptions::new(Dialect::Python).searched()).unwrap()
}

/// A grammar with a node of every kind.
fn everything() -> Grammar {
    let mut grammar = Grammar::new();
    let source = grammar.add_source("Lark", "start: \"é\"\nrule: /x/");
    let place = Some(Place { source, offset: 3 });
    let scope = grammar.add_scope();
    let word = grammar.terminal(pattern(r"(?i:a)\b[^\w]{2,}(?!x)"), scope, true).unwrap();
    let text = grammar.text(substring_of(&["a".into(), "bc".into()])).unwrap();
    let rule = grammar.declare("rule", place).unwrap();
    let used = grammar.rule(rule).unwrap();
    let items = Box::new([TokenItem::Ids(3, 5), TokenItem::Named("<|x|>".into())]);
    let tokens = TokenSet { items, exclude: true, place };
    let tokens = grammar.add(Node::Tokens(tokens.into())).unwrap();
    let json = grammar.json(r#"{"$ref": "http://a/b"}"#, place).unwrap();
    let span = grammar.span(SpanKind::ToolName, "name", word).unwrap();
    let limit = grammar.limit(7, span).unwrap();
    let bits = BitRange { start: 3, length: 4 };
    let count = Condition::Compare {
        of: Operand::Count(bits),
        comparison: Comparison::LessOrEqual,
        with: u64::MAX,
    };
    let not = Condition::Not(Condition::BitSet(63).into());
    let guard = Condition::And([count, not, Condition::True, Condition::BitClear(0)].into());
    let guard = grammar.add(Node::Guard(guard, text)).unwrap();
    let mut parts = vec![word, text, used, tokens, json, limit, guard];
    for argument in [
        Argument::Same,
        Argument::Value(1 << 63),
        Argument::Changed(Change::Increment(bits)),
        Argument::Changed(Change::Decrement(bits)),
        Argument::Changed(Change::SetBit(1)),
        Argument::Changed(Change::ClearBit(2)),
        Argument::Changed(Change::And(3)),
        Argument::Changed(Change::Or(4)),
    ] {
        parts.push(grammar.add(Node::Rule(rule, argument)).unwrap());
    }
    let any = grammar.choice(parts).unwrap();
    let many = grammar.repeat(any, 2, Some(9)).unwrap();
    let more = grammar.repeat(any, 0, None).unwrap();
    let start = grammar.seq(vec![many, more]).unwrap();
    grammar.define(rule, text);
    grammar.start = Some(start);
    grammar
}

fn written(grammar: &Grammar) -> Vec<u8> {
    let mut writer = bytes::Writer::default();
    grammar::write(&mut writer, grammar).unwrap();
    writer.0
}

#[test]
fn every_node_of_a_grammar_comes_back() {
    let grammar = everything();
    let bytes = written(&grammar);
    let mut reader = Reader::new(&bytes);
    let again = grammar::read(&mut reader).unwrap();
    reader.end().unwrap();
    assert_eq!(written(&again), bytes);
    assert_eq!((again.num_nodes(), again.start), (grammar.num_nodes(), grammar.start));
    for id in 0..grammar.num_nodes() as u32 {
        let id = ffwd_grammar::NodeId(id);
        assert_eq!(again.node(id), grammar.node(id));
    }
    assert_eq!(again.sources[0].kind, "Lark");
    let lexed =
        |node: &Node| matches!(node, Node::Lexeme(lexeme) if lexeme.lexing != Lexing::Anywhere);
    assert!((0..again.num_nodes() as u32).any(|id| lexed(again.node(ffwd_grammar::NodeId(id)))));
}

#[test]
fn ignored_text_is_optional() {
    for (min, is_read) in [(0, true), (1, false), (2, false)] {
        let mut grammar = Grammar::new();
        let scope = grammar.add_scope();
        let ignored = grammar.ignored(Ast::literal(" "), scope).unwrap();
        let ignored = grammar.repeat(ignored, min, None).unwrap();
        let word = grammar.terminal(pattern("a+"), scope, false).unwrap();
        grammar.start = Some(grammar.seq(vec![word, ignored]).unwrap());
        let read = grammar::read(&mut Reader::new(&written(&grammar)));
        assert_eq!(read.is_ok(), is_read, "{min}");
    }
}

fn compiled(engine: &Arc<Engine>) -> Vec<Compiled> {
    let mut grammar = Grammar::new();
    let rule = grammar.declare("list", None).unwrap();
    let used = grammar.rule(rule).unwrap();
    let (open, close) =
        (grammar.text(Ast::literal("(")).unwrap(), grammar.text(Ast::literal(")")).unwrap());
    let many = grammar.repeat(used, 0, None).unwrap();
    let body = grammar.seq(vec![open, many, close]).unwrap();
    grammar.define(rule, body);
    grammar.start = Some(used);
    vec![
        engine.compile_regex("a+(b|é){3,5}").unwrap(),
        engine.compile_language(pattern(r"(?<!x)\bfoo(?=.*z)")).unwrap(),
        engine.compile_language(substring_of(&["x".into(), "yz".into(), "(".into()])).unwrap(),
        engine.compile_choice(&["x".into(), "y".into(), "(a)".into()]).unwrap(),
        engine.compile_json_schema(r#"{"items": {"$ref": "http://a/b"}}"#, options()).unwrap(),
        engine.compile_grammar(&grammar, options()).unwrap(),
    ]
}

fn mask(matcher: &Matcher) -> Vec<u32> {
    let mut row = vec![0; matcher.compiled().engine.vocabulary().mask_words()];
    matcher.fill_bitmask(&mut row).unwrap();
    row
}

/// Tokens that the grammar takes, the first or the last that it offers.
fn walk(matcher: &mut Matcher, steps: usize) {
    for step in 0..steps {
        let row = mask(matcher);
        let offered: Vec<u32> = (0..row.len() as u32 * 32)
            .filter(|id| row[*id as usize / 32] >> (id % 32) & 1 == 1)
            .collect();
        let token = offered[step * 7 % offered.len()];
        assert!(matcher.accept(TokenId(token)).unwrap());
        if matcher.is_terminated() {
            break;
        }
    }
}

#[test]
fn grammars_and_texts_come_back() {
    let engine = engine(&["ab", "((", "null", "<think>"]);
    for compiled in compiled(&engine) {
        let bytes = save_grammar(&compiled).unwrap();
        let again = Arc::new(load_grammar(&bytes, &engine).unwrap());
        assert_eq!(save_grammar(&again).unwrap(), bytes);
        let control = TokenId(engine.vocabulary().width() as u32 - 1);
        for beginning in [
            Beginning::default(),
            Beginning { recent: vec![TokenId(7)], prefix: b" p".to_vec(), ..Beginning::default() },
            Beginning {
                opening: Some(Opening {
                    close: Close::Tokens([control].into()),
                    controls: Vec::new(),
                }),
                ..Beginning::default()
            },
            Beginning {
                opening: Some(Opening {
                    close: Close::Text(b"</t>".to_vec().into()),
                    controls: vec![control],
                }),
                ..Beginning::default()
            },
        ] {
            let mut matcher = Matcher::beginning(again.clone(), &beginning).unwrap();
            for _ in 0..6 {
                let saved = save_text(&matcher).unwrap();
                let loaded = load_text(&saved, again.clone()).unwrap();
                assert_eq!(loaded.tokens(), matcher.tokens());
                assert_eq!(loaded.is_terminated(), matcher.is_terminated());
                assert_eq!(save_text(&loaded).unwrap(), saved);
                if matcher.is_terminated() {
                    break;
                }
                assert_eq!(mask(&loaded), mask(&matcher));
                walk(&mut matcher, 2);
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_with_a_reason() {
    let (engine, other) = (engine(&["ab"]), engine(&["ba"]));
    let first = Arc::new(engine.compile_regex("a+b").unwrap());
    let second = Arc::new(engine.compile_regex("a+c").unwrap());
    let grammar = save_grammar(&first).unwrap();
    let text = save_text(&Matcher::new(first.clone()).unwrap()).unwrap();
    let reason = |bytes: &[u8]| load_grammar(bytes, &engine).unwrap_err().reason();
    assert_eq!(reason(&text), "kind");
    assert_eq!(reason(b""), "length");
    assert_eq!(reason(b"{\"a\": 1}"), "kind");
    assert_eq!(reason(&grammar[..grammar.len() - 1]), "length");
    assert_eq!(reason(&[&grammar[..], b"x"].concat()), "length");
    let mut newer = grammar.clone();
    newer[5] += 1;
    assert_eq!(reason(&newer), "version");
    let mut changed = grammar.clone();
    changed[HEADER + 3] ^= 1;
    assert_eq!(reason(&changed), "checksum");
    assert_eq!(load_grammar(&grammar, &other).unwrap_err().reason(), "vocabulary");
    assert_eq!(load_text(&text, second).unwrap_err().reason(), "grammar");
    assert_eq!(load_text(&grammar, first.clone()).unwrap_err().reason(), "kind");
    let payload = [
        &recipe::fingerprint(first.recipe()).unwrap().0.to_le_bytes()[..],
        &[0, 0, 0, 0, 0, 0, 1, 98],
    ]
    .concat();
    let vocabulary = Fingerprint::of_vocabulary(engine.vocabulary());
    let forged = seal(SavedKind::Text, vocabulary, &payload);
    assert_eq!(load_text(&forged, first).unwrap_err().reason(), "malformed");
}

/// Bytes whose header and checksum are right, and whose payload is anything.
#[test]
fn changed_payloads_are_read_or_refused() {
    let engine = engine(&["ab", "(("]);
    let vocabulary = Fingerprint::of_vocabulary(engine.vocabulary());
    let mut payloads: Vec<Vec<u8>> = compiled(&engine)
        .iter()
        .map(|compiled| {
            let bytes = save_grammar(compiled).unwrap();
            bytes[HEADER..bytes.len() - CHECKSUM].to_vec()
        })
        .collect();
    payloads.push({
        let recipe = Recipe::Rules { grammar: Arc::new(everything()), options: options() };
        let Recipe::Rules { grammar, .. } = &recipe else { return };
        written(grammar)
    });
    let mut seed = 1u32;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % below
    };
    let (mut read, mut refused) = (0, 0);
    for payload in &payloads {
        for _ in 0..400 {
            let mut changed = payload.clone();
            for _ in 0..=next(3) {
                let at = next(changed.len());
                match next(4) {
                    0 => changed[at] = next(256) as u8,
                    1 => changed[at] ^= 1 << next(8),
                    2 => changed.truncate(at.max(1)),
                    _ => changed.insert(at, next(256) as u8),
                }
            }
            let mut reader = Reader::new(&changed);
            let known = grammar::read(&mut reader).is_ok();
            match load_grammar(&seal(SavedKind::Grammar, vocabulary, &changed), &engine) {
                Ok(_) => read += 1,
                Err(_) => refused += 1,
            }
            read += usize::from(known);
        }
    }
    assert!(read > 20 && refused > 500, "{read} {refused}");
}

/// One by one and together, without those that have their defaults.
#[test]
fn every_option_comes_back() {
    let none = GrammarOptions::default();
    let modes = [
        WhitespaceMode::Consistent,
        WhitespaceMode::Flexible { max_run: 300 },
        WhitespaceMode::Compact,
        WhitespaceMode::SingleSpace,
    ];
    let mut all: Vec<GrammarOptions> =
        modes.into_iter().map(|mode| Whitespace { mode }.into()).collect();
    let Writing { whitespace, property_order, numbers, escapes } = options().writing;
    let Parsing { policy, registry } = options().parsing;
    let writing = [
        Writing { whitespace, ..Writing::default() },
        Writing { property_order, ..Writing::default() },
        Writing { numbers, ..Writing::default() },
        Writing { escapes, ..Writing::default() },
    ];
    let parsing =
        [Parsing { policy, ..Parsing::default() }, Parsing { registry, ..Parsing::default() }];
    all.extend(writing.map(GrammarOptions::from));
    all.extend(parsing.map(|parsing| GrammarOptions { parsing, ..GrammarOptions::default() }));
    all.push(options());
    let mut seen = std::collections::HashSet::new();
    for given in all {
        let bytes = written_options(&given);
        assert_eq!(bytes == [0], given == none, "{given:?}");
        assert!(seen.insert(bytes.clone()), "{given:?} is written like others");
        let mut reader = Reader::new(&bytes);
        assert_eq!(options::read(&mut reader).unwrap(), given);
        reader.end().unwrap();
    }
}

/// Options with defaults have no bytes, so a default that changes would change what is saved.
#[test]
fn defaults_belong_to_the_format() {
    let GrammarOptions { writing, parsing } = GrammarOptions::default();
    assert_eq!(writing.whitespace.mode, WhitespaceMode::Consistent);
    assert_eq!(writing.property_order, PropertyOrder::Declared);
    assert_eq!(writing.numbers, Numbers::Plain);
    assert_eq!(writing.escapes, Escapes::Canonical);
    assert_eq!(parsing.policy, Policy::Strict);
    assert_eq!(parsing.registry, Arc::default());
    assert_eq!(VERSION, 3, "the defaults of another version are written here");
}

#[test]
fn unknown_options_are_refused() {
    let engine = engine(&[]);
    let vocabulary = Fingerprint::of_vocabulary(engine.vocabulary());
    let known = written_options(&options());
    let mut newer = vec![1];
    newer.extend(&known[..known.len() - 1]);
    // A pair of some later version, and the end.
    newer.extend([99, 1, 0]);
    newer.extend([2, b'{', b'}']);
    let error = load_grammar(&seal(SavedKind::Grammar, vocabulary, &newer), &engine).unwrap_err();
    assert_eq!(error.reason(), "version");
    assert!(matches!(error, SavedError::Option { number: 99 }), "{error}");
    assert!(error.to_string().contains("option 99"), "{error}");
    // The same without that pair is read.
    let at = newer.len() - 6;
    newer.drain(at..at + 2);
    load_grammar(&seal(SavedKind::Grammar, vocabulary, &newer), &engine).unwrap();
}

fn written_options(given: &GrammarOptions) -> Vec<u8> {
    let mut writer = bytes::Writer::default();
    options::write(&mut writer, given).unwrap();
    writer.0
}

#[test]
fn deep_and_wide_lies_are_refused() {
    let engine = engine(&[]);
    let vocabulary = Fingerprint::of_vocabulary(engine.vocabulary());
    let refused = |payload: &[u8]| {
        load_grammar(&seal(SavedKind::Grammar, vocabulary, payload), &engine).unwrap_err().reason()
    };
    // Complements of complements, and pairs of pairs.
    for (tag, ids) in [(9u8, 1usize), (5, 2)] {
        let mut writer = bytes::Writer::default();
        writer.byte(0);
        writer.number(100_001u32);
        writer.byte(3);
        writer.text("a");
        for id in 0..100_000u32 {
            writer.byte(tag);
            writer.length(ids);
            (0..ids).for_each(|_| writer.number(id));
        }
        writer.number(100_000u32);
        assert_eq!(refused(&writer.0), "malformed");
    }
    // More items than there are bytes.
    assert_eq!(refused(&[0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]), "length");
    // A number that never ends.
    assert_eq!(refused(&[0xFF; 64]), "malformed");
    let mut nested = vec![2u8];
    nested.extend(written_options(&GrammarOptions::default()));
    // No languages, scopes, sources, schemas, spans and rules; one node, with a guard.
    nested.extend([0, 0, 0, 0, 0, 0, 1, 4]);
    nested.extend([6; 100_000]);
    assert_eq!(refused(&nested), "malformed");
}
