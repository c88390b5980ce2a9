//! Threads that read one compiled grammar beside threads that have one each.
//!
//! `cargo bench --manifest-path maskbench/crates/Cargo.toml --bench readers` prints, for 1 to 8
//! threads, the processor time and the wall time of a token, which is a known mask copied and the
//! token accepted, with the vocabulary cl100k. What threads take from each other shows in the
//! processor time also where there are fewer processors than threads.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use ffwd_automaton::{Whitespace, WhitespaceMode};
use ffwd_engine::engine::{Compiled, Engine, EngineConfig};
use ffwd_engine::matcher::Matcher;
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

const SCHEMA: &str = r#"{"type": "array", "items": {"type": "object", "properties": {
    "name": {"type": "string"}, "born": {"type": "integer"}, "alive": {"type": "boolean"},
    "tags": {"type": "array", "items": {"enum": ["mathematics", "poetry", "music"]}}},
    "required": ["name", "born"], "additionalProperties": false}}"#;
const TEXT: &str = r#"[{"name":"Ada Lovelace","born":1815,"alive":false,"tags":["mathematics"]},{"name":"Clara Schumann","born":1819,"tags":["music","poetry"]}]"#;

const SPAN: Duration = Duration::from_millis(700);
const ROUNDS: usize = 5;

/// How long this thread has run on a processor, in nanoseconds.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = text.split_whitespace().next().expect("a number");
    first.parse().expect("a number")
}

fn compiled(engine: &Arc<Engine>) -> Arc<Compiled> {
    let whitespace = Whitespace { mode: WhitespaceMode::Compact };
    Arc::new(engine.compile_json_schema(SCHEMA, whitespace).expect("the schema is supported"))
}

/// Tokens per second of processor time and of wall time, all threads together.
fn read(grammars: &[Arc<Compiled>], tokens: &[TokenId]) -> (f64, f64) {
    let barrier = Barrier::new(grammars.len());
    let results: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let threads: Vec<_> = grammars
            .iter()
            .map(|compiled| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut row = vec![0; compiled.engine.vocabulary().mask_words()];
                    let mut walk = || {
                        let mut matcher = Matcher::new(compiled.clone()).expect("within limits");
                        for &token in tokens {
                            matcher.fill_bitmask(&mut row).expect("within limits");
                            assert!(matcher.accept(token).expect("within limits"));
                        }
                    };
                    walk();
                    barrier.wait();
                    let (start, from) = (Instant::now(), processor_time());
                    let mut read = 0;
                    while start.elapsed() < SPAN {
                        walk();
                        read += tokens.len() as u64;
                    }
                    (read, processor_time() - from)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let read: u64 = results.iter().map(|result| result.0).sum();
    let ran: u64 = results.iter().map(|result| result.1).sum();
    (read as f64 / (ran as f64 / 1e9), read as f64 / SPAN.as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let peer = bpe_openai::cl100k_base();
    let count = peer.bpe.num_tokens() as u32;
    let texts: Vec<Option<&[u8]>> = (0..count).map(|id| Some(peer.bpe.token_bytes(id))).collect();
    let eos = TokenId(count);
    let vocabulary = Vocabulary::new(&texts, &[eos], Some(count as usize + 1)).expect("bytes");
    let engine = Arc::new(Engine::new(vocabulary, None, EngineConfig::default()));
    let tokens: Vec<TokenId> = peer.encode(TEXT).into_iter().map(TokenId).collect();
    println!(
        "threads  shared: ns of processor, wall   apart: ns of processor, wall   shared/apart"
    );
    for threads in [1, 2, 4, 8] {
        let one = compiled(&engine);
        let shared: Vec<_> = (0..threads).map(|_| one.clone()).collect();
        let apart: Vec<_> = (0..threads).map(|_| compiled(&engine)).collect();
        // In turns, so that what else the machine does falls on both.
        let (mut by_shared, mut by_apart) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            by_shared.push(read(&shared, &tokens));
            by_apart.push(read(&apart, &tokens));
        }
        let of = |rates: &[(f64, f64)]| {
            let processor = median(rates.iter().map(|rate| rate.0).collect());
            (processor, median(rates.iter().map(|rate| rate.1).collect()))
        };
        let (shared, apart) = (of(&by_shared), of(&by_apart));
        println!(
            "{threads:7}  {:12.0} {:10.0}   {:22.0} {:10.0}   {:.2}x, {:.2}x",
            1e9 / shared.0,
            1e9 / shared.1,
            1e9 / apart.0,
            1e9 / apart.1,
            shared.0 / apart.0,
            shared.1 / apart.1,
        );
    }
}
