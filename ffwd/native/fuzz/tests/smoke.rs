//! Every target on its committed corpus, and on inputs near by: what `make fuzz-smoke` runs, with a
//! stable toolchain and without libFuzzer.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};

/// As much as the main thread of an interpreter has.
const STACK: usize = 8 << 20;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder("corpus").join(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "the target {target} has no corpus");
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// The words of a dictionary in libFuzzer's notation.
fn words(dictionary: &str) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(folder("dictionaries").join(dictionary)).unwrap();
    let quoted = text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(unescaped).collect()
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = match rest.strip_prefix(b"\\x") {
            Some([high, low, tail @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
                tail
            }
            _ => {
                bytes.push(*first);
                tail
            }
        };
    }
    bytes
}

/// Marsaglia's xorshift, seeded.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }
}

/// One input of the corpus, changed in a few places.
fn changed(corpus: &[Vec<u8>], words: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut data = corpus[random.below(corpus.len())].clone();
    for _ in 0..1 + random.below(4) {
        let at = random.below(data.len() + 1);
        let end = at + random.below((data.len() - at).min(12) + 1);
        match random.below(7) {
            0 if at < data.len() => data[at] ^= 1 << random.below(8),
            1 if at < data.len() => data[at] = random.below(256) as u8,
            2 => drop(data.drain(at..end)),
            3 => {
                let copy = data[at..end].to_vec();
                data.splice(at..at, copy);
            }
            4 | 5 if !words.is_empty() => {
                let word = words[random.below(words.len())].clone();
                data.splice(at..end, word);
            }
            _ => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                let to = from + random.below((other.len() - from).min(40) + 1);
                data.splice(at..end, other[from..to].iter().copied());
            }
        }
    }
    data
}

fn run(target: fn(&[u8]), data: &[u8]) {
    let outcome = catch_unwind(AssertUnwindSafe(|| target(data)));
    assert!(outcome.is_ok(), "the input b\"{}\"", data.escape_ascii());
}

fn smoke(name: &'static str, target: fn(&[u8]), dictionary: Option<&str>, count: usize) {
    let words = dictionary.map(words).unwrap_or_default();
    let work = move || {
        let corpus = corpus(name);
        for data in &corpus {
            run(target, data);
            // Cut off, as what came over a network may be.
            run(target, &data[..data.len() / 2]);
        }
        let mut random = Random(0x5DEE_CE66);
        for _ in 0..count {
            run(target, &changed(&corpus, &words, &mut random));
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Seeds of another version of the format would test nothing but its first bytes.
#[test]
fn the_seeds_of_saved_grammars_are_of_this_format() {
    let seeds = corpus("saved_grammar");
    let read = seeds.iter().filter(|seed| ffwd_fuzz::saved_grammar::is_read(seed)).count();
    // One is cut off.
    assert_eq!(read, seeds.len() - 1);
}

macro_rules! smoke {
    ($($name:ident $count:literal $($dictionary:literal)?;)*) => {$(
        #[test]
        fn $name() {
            let dictionary = [$($dictionary)?].first().copied();
            smoke(stringify!($name), ffwd_fuzz::$name::run, dictionary, $count);
        }
    )*};
}

smoke! {
    bpe 3000;
    composed 600;
    ebnf 600 "ebnf.dict";
    gbnf 600 "gbnf.dict";
    lark 600 "lark.dict";
    matcher 200;
    model 2000 "tokenizer.dict";
    pretokenizer 600 "regex.dict";
    regex 1000 "regex.dict";
    regex_shape 400;
    saved_grammar 600;
    saved_text 1000;
    schema 600 "schema.dict";
    schema_shape 300;
    stream 3000;
}
