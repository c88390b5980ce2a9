//! What the benchmarks share: tables from the peers' vocabularies, texts, and timing.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bpe::byte_pair_encoding::BytePairEncoding;
use ffwd_tokenizer::bpe::{Base, BpeSpec, BpeTable, Merges};
use ffwd_tokenizer::pretokenizer::{Behavior, Dialect, StageSpec};
use ffwd_tokenizer::tokenizer::{Normalizer, Tokenizer, TokenizerParts};
use ffwd_tokenizer::vocabulary::TokenId;

/// As the peer has it, which is how tiktoken had it at first: today a text that ends with white
/// space may be cut elsewhere.
pub const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The tokenizer that cuts a text into the matches of a pattern, and encodes each of them.
pub fn tokenizer_of(table: Arc<BpeTable>, pattern: &str) -> Tokenizer {
    let stage = StageSpec::Split {
        pattern: pattern.into(),
        dialect: Dialect::FancyRegex,
        invert: false,
        behavior: Behavior::Isolated,
    };
    let parts = TokenizerParts {
        table,
        stages: vec![stage],
        specials: Vec::new(),
        normalizer: Normalizer::default(),
        dummy_space: None,
        limits: Vec::new(),
        vocab_size: None,
    };
    Tokenizer::new(parts).expect("the patterns are supported")
}

/// The table of a peer's vocabulary.
pub fn table_of(peer: &BytePairEncoding) -> BpeTable {
    let tokens = || (0..peer.num_tokens() as u32).map(TokenId);
    let text = |token: TokenId| peer.token_bytes(token.0);
    let mut byte_tokens = [None; 256];
    for token in tokens() {
        if let &[byte] = text(token) {
            byte_tokens[usize::from(byte)] = Some(token);
        }
    }
    let spec = BpeSpec {
        base: Base::Bytes,
        pieces: tokens().map(|token| (token, text(token).into())).collect(),
        byte_tokens,
        merges: Merges::Ranked(tokens().collect()),
        whole_pieces: true,
        missing_from: None,
    };
    BpeTable::new(spec).expect("the vocabulary of a peer is one")
}

/// The files that the environment variable FFWD_BENCH_TEXTS lists, separated as in PATH, or else
/// the project's own documentation and sources.
pub fn texts() -> Vec<(String, String)> {
    let listed = std::env::var_os("FFWD_BENCH_TEXTS");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources: Vec<(String, Vec<PathBuf>)> = match listed {
        Some(listed) => std::env::split_paths(&listed)
            .map(|path| (path.file_name().unwrap_or_default().to_string_lossy().into(), vec![path]))
            .collect(),
        None => vec![
            ("documentation".into(), files_below(&root.join("docs"), "md")),
            ("code".into(), files_below(&root.join("ffwd/native/crates"), "rs")),
        ],
    };
    sources
        .into_iter()
        .map(|(name, files)| {
            let parts = files.iter().map(|file| {
                let bytes = std::fs::read(file).expect("a text of the benchmark can be read");
                String::from_utf8_lossy(&bytes).into_owned()
            });
            let mut text = parts.collect::<String>();
            text.truncate(text.floor_char_boundary(1_000_000));
            (name, text)
        })
        .collect()
}

fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder can be listed");
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let (folders, mut files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    files.retain(|path| path.extension().is_some_and(|found| found == extension));
    files.extend(folders.iter().flat_map(|folder| files_below(folder, extension)));
    files
}

/// Something to be timed, with its name.
pub type Contender<'a> = (&'a str, &'a mut dyn FnMut() -> usize);

const ROUNDS: usize = 9;

/// Runs all contenders in turn, several times over, and gives the median of each. All must give
/// the same number; otherwise a wrong one could look fast.
pub fn race(task: &str, bytes: usize, contenders: &mut [Contender<'_>]) {
    let mut times = vec![Vec::new(); contenders.len()];
    let mut results = vec![0; contenders.len()];
    for _ in 0..ROUNDS {
        for (index, (_, run)) in contenders.iter_mut().enumerate() {
            let start = Instant::now();
            results[index] = black_box(run());
            times[index].push(start.elapsed());
        }
    }
    let medians: Vec<Duration> = times.iter_mut().map(|times| median(times)).collect();
    print!("{task:<36}");
    for ((name, _), median) in contenders.iter().zip(&medians) {
        let speed = bytes as f64 / 1e6 / median.as_secs_f64();
        print!("  {name} {:>9.1} µs ({speed:>6.1} MB/s)", median.as_secs_f64() * 1e6);
    }
    if let [ours, others @ ..] = &medians[..] {
        for other in others {
            print!("  x{:.2}", other.as_secs_f64() / ours.as_secs_f64());
        }
    }
    println!();
    assert!(results.iter().all(|result| *result == results[0]), "{task}: {results:?}");
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
