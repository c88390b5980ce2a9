//! Grammars that eight threads share, against the same grammars read by one. Every mask must be the
//! same, whatever the others compile, build and evict meanwhile, and wherever their calls end.
//!
//! `make tsan` runs this with ThreadSanitizer, which looks for accesses that nothing orders.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use ffwd_automaton::{PropertyOrder, Whitespace, WhitespaceMode, Writing};
use ffwd_bounds::limits::Limits;
use ffwd_bounds::meter::{faults, heap};
use ffwd_engine::engine::{Compiled, Engine, EngineConfig};
use ffwd_engine::fast_forward::{default_method, fast_forward_tokens, FastForward};
use ffwd_engine::logits;
use ffwd_engine::matcher::{fill_bitmasks, Beginning, Matcher, MatcherError};
use ffwd_grammar::lark;
use ffwd_tokenizer::bpe::{Base, BpeSpec, BpeTable, Merges};
use ffwd_tokenizer::canonical::Canonicality;
use ffwd_tokenizer::pretokenizer::{Behavior, Dialect, StageSpec};
use ffwd_tokenizer::tokenizer::{EncodeOptions, Normalizer, Tokenizer, TokenizerParts};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// The allocator of the Python module, which counts the memory that a call takes.
#[global_allocator]
static ALLOCATOR: heap::Metered<std::alloc::System> = heap::Metered(std::alloc::System);

const THREADS: u64 = 8;
const STEPS: usize = 30;

const PATTERN: &str = r"'s| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Xorshift.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

/// Bytes, and tokens that are merged from them.
fn engine() -> (Arc<Engine>, Arc<Tokenizer>) {
    let longer = [
        "ab", "abc", "ac", "{\"", "\":", "\",", "\",\"", "\":\"", "},", "]}", "12", "123", " a",
        " ab", " the", " t", "th", "the", "xx", "xxx", "let", "le", " =", "ee", "key", "ke", "[\"",
        "\"]", "tr", "tru", "true", "nu", "nul", "null", "é", "  ",
    ];
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let mut texts: Vec<Vec<u8>> = bytes.collect();
    let mut more: Vec<Vec<u8>> = longer.iter().map(|text| text.as_bytes().to_vec()).collect();
    // With what they are put together from, the shorter first.
    for text in longer {
        more.extend((2..text.len()).map(|end| text.as_bytes()[..end].to_vec()));
    }
    more.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    more.dedup();
    texts.extend(more);
    let ids = || (0..texts.len() as u32).map(TokenId);
    let mut byte_tokens = [None; 256];
    ids().take(256).for_each(|id| byte_tokens[id.index()] = Some(id));
    let spec = BpeSpec {
        base: Base::Bytes,
        pieces: ids().map(|id| (id, texts[id.index()].as_slice().into())).collect(),
        byte_tokens,
        merges: Merges::Ranked(ids().collect()),
        whole_pieces: true,
        missing_from: None,
    };
    let stage = StageSpec::Split {
        pattern: PATTERN.into(),
        dialect: Dialect::FancyRegex,
        invert: false,
        behavior: Behavior::Isolated,
    };
    let tokenizer = Tokenizer::new(TokenizerParts {
        table: Arc::new(BpeTable::new(spec).unwrap()),
        stages: vec![stage],
        specials: Vec::new(),
        normalizer: Normalizer::default(),
        dummy_space: None,
        limits: Vec::new(),
        vocab_size: Some(texts.len() + 1),
    });
    let tokenizer = Arc::new(tokenizer.unwrap());
    let mut tokens: Vec<Option<&[u8]>> = texts.iter().map(|text| Some(text.as_slice())).collect();
    tokens.push(None);
    let vocabulary = Vocabulary::new(&tokens, &[TokenId(texts.len() as u32)], None).unwrap();
    let canonicality = Canonicality::new(tokenizer.clone()).map(Arc::new).unwrap();
    let engine = Engine::new(vocabulary, None, EngineConfig::default());
    (Arc::new(engine.with_tokenizer(tokenizer.clone(), Some(canonicality))), tokenizer)
}

const SCHEMAS: [&str; 3] = [
    r#"{"type": "object", "properties": {"ab": {"type": "string", "pattern": "^a+b?$"},
        "key": {"type": "integer", "minimum": 12}}, "additionalProperties": {"type": "array",
        "items": {"enum": ["a", "ab", "abc", 1, null]}, "uniqueItems": true}}"#,
    r##"{"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "properties": {"a": {"$ref":
        "#/$defs/t"}, "b": {"type": "string"}}}}}"##,
    r#"{"oneOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"properties": {"a": {"minimum": 2}, "b": {}}, "required": ["b"]}], "type": "object"}"#,
];
const LARK: &str = r#"
start: line+
line: "let " NAME " = " sum ";"
sum: atom ((" + " | " - ") atom)*
atom: /[0-9]+/ | NAME | "(" sum ")" | %json {"type": "array", "items": {"type": "boolean"}}
NAME: /[a-z]{1,9}/
"#;
const REGEX: &str = "([a-c]+x{2,9}( the|12)[0-9]{2,5};)*";

const KINDS: usize = SCHEMAS.len() + 2;

fn compile(engine: &Arc<Engine>, kind: usize, max_bytes: usize) -> Arc<Compiled> {
    let whitespace = Whitespace { mode: WhitespaceMode::Compact };
    let writing = Writing { property_order: PropertyOrder::Any, ..Writing::from(whitespace) };
    let compiled = match SCHEMAS.get(kind) {
        Some(schema) => engine.compile_json_schema(schema, writing),
        None if kind == SCHEMAS.len() => engine.compile_regex(REGEX),
        None => engine.compile_grammar(&lark::parse(LARK).unwrap(), writing.into()),
    };
    Arc::new(compiled.unwrap().within(Limits { memory_bytes: max_bytes, ..Limits::default() }))
}

fn set(row: &[u32]) -> Vec<TokenId> {
    let bits = row.iter().enumerate().flat_map(|(at, &word)| {
        (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at as u32 * 32 + bit)
    });
    bits.map(TokenId).collect()
}

/// Writes a random text, and returns the hash of all that is seen of it. The text depends on the
/// seed and on what is seen, and not on what `meddle` does.
fn write(seed: u64, compiled: &Arc<Compiled>, meddle: &dyn Fn(&mut Random, &Matcher)) -> u64 {
    let (mut random, mut other) = (Random::new(seed), Random::new(!seed));
    let beginning = Beginning { canonical: seed % 2 == 1, ..Beginning::default() };
    let mut matcher = Matcher::beginning(compiled.clone(), &beginning).unwrap();
    let words = compiled.engine.vocabulary().mask_words();
    let (mut row, mut copy) = (vec![0; words], vec![0; words]);
    let mut seen = DefaultHasher::new();
    for _ in 0..STEPS {
        if random.one_in(5) {
            let fork = matcher.clone();
            let work = vec![(&matcher, &mut row[..]), (&fork, &mut copy[..])];
            fill_bitmasks(work, Some(2)).unwrap();
            assert_eq!(row, copy);
        } else {
            matcher.bounded(|matcher| matcher.fill_bitmask(&mut row)).unwrap();
        }
        row.iter().for_each(|&word| seen.write_u32(word));
        seen.write_u8(matcher.is_accepting().into());
        meddle(&mut other, &matcher);
        if matcher.is_terminated() || random.one_in(7) {
            let count = random.below(matcher.tokens().len() + 1);
            matcher.bounded_mut(|matcher| matcher.rollback(count)).unwrap();
            continue;
        }
        if random.one_in(7) {
            let options = FastForward { max_tokens: None, method: default_method(&matcher) };
            let forced = matcher.bounded(|matcher| fast_forward_tokens(matcher, &options)).unwrap();
            forced.iter().for_each(|token| seen.write_u32(token.0));
            assert!(matcher.bounded_mut(|matcher| matcher.accept_all(&forced)).unwrap());
            continue;
        }
        let allowed = set(&row);
        let draft = [0; 3].map(|_| allowed[random.below(allowed.len())]);
        seen.write_usize(matcher.bounded(|matcher| matcher.validate(&draft)).unwrap());
        assert!(matcher.bounded_mut(|matcher| matcher.accept(draft[0])).unwrap());
    }
    seen.finish()
}

/// The end of a call: its deadline passes, or the system refuses it memory.
const FAULTS: [fn(Option<u64>); 2] = [faults::inject, heap::faults::inject];

/// Ends a call at some charge or allocation, if it gets that far. Returns whether it ended: a call
/// on what has been built already takes fewer of them.
fn interrupt(random: &mut Random, matcher: &Matcher) -> bool {
    let mut fork = matcher.clone();
    let mut row = vec![0; matcher.compiled().engine.vocabulary().mask_words()];
    fork.fill_bitmask(&mut row).unwrap();
    let allowed = set(&row);
    if fork.is_terminated() {
        return false;
    }
    let inject = FAULTS[random.below(FAULTS.len())];
    inject(Some(1 + random.below(20) as u64));
    let token = allowed[random.below(allowed.len())];
    let accepted = fork.bounded_mut(|fork| fork.accept(token));
    assert_eq!(fork.tokens().len(), matcher.tokens().len() + usize::from(accepted.is_ok()));
    let ended = accepted.and_then(|_| Ok(fork.bounded(|fork| fork.fill_bitmask(&mut row))?));
    inject(None);
    let Err(error) = ended else { return false };
    let exceeded = match &error {
        MatcherError::Engine(error) => error.exceeded(),
        _ => None,
    };
    assert!(exceeded.is_some_and(|limit| limit.is_interruption()), "{error}");
    true
}

#[test]
fn eight_threads_see_what_one_sees() {
    let (alone, _) = engine();
    let seeds = |kind: usize| (0..3).map(move |seed| (kind, seed));
    let scripts: Vec<(usize, u64)> = (0..KINDS).flat_map(seeds).collect();
    let expected: Vec<u64> = scripts
        .iter()
        .map(|&(kind, seed)| write(seed, &compile(&alone, kind, 256 << 20), &|_, _| ()))
        .collect();

    // How many calls end below depends on what other threads have built by then; on one thread it
    // does not.
    let (interrupted, _) = engine();
    let ended = Cell::new(0);
    for (&(kind, seed), &expected) in scripts.iter().zip(&expected) {
        let meddle = |random: &mut Random, matcher: &Matcher| {
            ended.set(ended.get() + usize::from(random.one_in(15) && interrupt(random, matcher)));
        };
        assert_eq!(write(seed, &compile(&interrupted, kind, 20_000), &meddle), expected);
    }
    assert!(ended.get() > 50, "{}", ended.get());

    let (engine, tokenizer) = engine();
    engine.limit_memory(Some(50_000), Some(50_000));
    let all = |bytes| (0..KINDS).map(|kind| compile(&engine, kind, bytes)).collect::<Vec<_>>();
    let (little, enough) = (all(1), all(256 << 20));
    let barrier = Barrier::new(THREADS as usize);
    let encoded = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, tokenizer) = (&engine, &tokenizer);
            let (scripts, expected) = (&scripts, &expected);
            let (encoded, little) = (&encoded, &little);
            let (enough, barrier) = (&enough, &barrier);
            scope.spawn(move || {
                let meddle = |random: &mut Random, matcher: &Matcher| match random.below(60) {
                    0 => engine.clear_memos(),
                    1 | 2 => engine.limit_memory(Some(random.below(1_000_000)), None),
                    3 | 4 => {
                        let text = b"the key {\"ab\":12} let abc = 123;";
                        let options = EncodeOptions::default();
                        let tokens = tokenizer.encode(text, &options).unwrap();
                        encoded.fetch_add(tokens.len(), Ordering::Relaxed);
                    }
                    5 => assert!(!little[0].stats().is_empty()),
                    6..=9 => {
                        interrupt(random, matcher);
                    }
                    _ => {}
                };
                let mut random = Random::new(thread);
                barrier.wait();
                for turn in 0..scripts.len() {
                    // Each thread begins somewhere else, so that all meet each other's grammars.
                    let at = (turn + 2 * thread as usize) % scripts.len();
                    let (kind, seed) = scripts[at];
                    let own;
                    let shared = match random.below(5) {
                        0 => {
                            own = compile(engine, kind, 20_000);
                            &own
                        }
                        1 | 2 => &enough[kind],
                        _ => &little[kind],
                    };
                    assert_eq!(write(seed, shared, &meddle), expected[at], "{kind}, {seed}");
                }
            });
        }
    });
    let evictions = |grammar: &Arc<Compiled>| {
        grammar.stats().iter().find(|(name, _)| *name == "evictions").map_or(0, |(_, count)| *count)
    };
    assert!(little.iter().map(evictions).sum::<u64>() > 0);
    assert!(encoded.into_inner() > 0);
}

/// Enough rows for the threads of the pool, and enough logits and texts for threads of their own.
#[test]
fn work_that_is_shared_out_is_that_of_one_thread() {
    let (engine, tokenizer) = engine();
    let words = engine.vocabulary().mask_words();
    let compiled = compile(&engine, 0, 256 << 20);
    let mut random = Random::new(7);
    let mut matchers: Vec<Matcher> =
        (0..64).map(|_| Matcher::new(compiled.clone()).unwrap()).collect();
    for _ in 0..6 {
        for matcher in &mut matchers {
            let allowed = matcher.allowed().unwrap();
            assert!(matcher.accept(allowed[random.below(allowed.len())]).unwrap());
            if matcher.is_terminated() {
                matcher.reset().unwrap();
            }
        }
        // Rows of 128 kB, so that they are much to copy.
        let mut rows = vec![vec![!0; 32 << 10]; matchers.len()];
        let work = matchers.iter().zip(&mut rows).map(|(matcher, row)| (matcher, &mut row[..]));
        fill_bitmasks(work.collect(), Some(4)).unwrap();
        for (matcher, row) in matchers.iter().zip(&rows) {
            let mut alone = vec![0; words];
            matcher.fill_bitmask(&mut alone).unwrap();
            assert_eq!(alone, row[..words]);
        }
        let width = engine.vocabulary().width();
        let logits = |threads: usize| {
            let mut logits = vec![vec![1.0f32; width]; rows.len()];
            let masks = rows.iter().map(|row| &row[..words]);
            let work = logits.iter_mut().zip(masks).map(|(logits, words)| logits::Work {
                logits,
                source: None,
                words,
            });
            logits::apply(work.collect(), f32::NEG_INFINITY, width, threads.try_into().ok());
            logits
        };
        assert_eq!(logits(4), logits(1));
    }
    let text = "the key {\"ab\":12} let abc = 123; ".repeat(300);
    let texts = vec![text.as_bytes(); 12];
    let encode = |threads| tokenizer.encode_batch(&texts, &EncodeOptions::default(), Some(threads));
    assert_eq!(encode(4).unwrap(), encode(1).unwrap());
}
