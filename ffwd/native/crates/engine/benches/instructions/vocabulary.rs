//! A vocabulary of a model's kind and a third of its size, made by rule.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use ffwd_tokenizer::bpe::{Base, BpeSpec, BpeTable, Merges};
use ffwd_tokenizer::pretokenizer::{Behavior, Dialect, StageSpec};
use ffwd_tokenizer::tokenizer::{Normalizer, Tokenizer, TokenizerParts};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

const WORDS: usize = 14_000;

/// Llama 3's.
const PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const ONSETS: [&str; 20] = [
    "b", "br", "c", "ch", "d", "f", "g", "h", "k", "l", "m", "n", "p", "pr", "r", "s", "st", "t",
    "v", "w",
];
const RIMES: [&str; 24] = [
    "a", "e", "i", "o", "u", "al", "an", "ar", "ed", "el", "en", "er", "es", "ia", "ing", "in",
    "ion", "is", "ly", "on", "or", "é", "ö", "y",
];
const SCRIPTS: [&str; 12] =
    ["日", "本", "中", "文", "ка", "на", "во", "ρα", "το", "한", "국", "🙂"];

/// Xorshift, seeded by the caller.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// A word of one to four syllables.
pub fn word(random: &mut Random) -> String {
    let syllables = 1 + random.below(4);
    (0..syllables).map(|_| format!("{}{}", random.pick(&ONSETS), random.pick(&RIMES))).collect()
}

pub struct Tokens {
    /// By id; the last one is the end token.
    texts: Vec<Vec<u8>>,
    pub tokenizer: Arc<Tokenizer>,
}

impl Tokens {
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let texts = texts();
        let ids = || (0..texts.len() as u32).map(TokenId);
        let mut byte_tokens = [None; 256];
        for id in ids().take(256) {
            byte_tokens[id.index()] = Some(id);
        }
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
            table: Arc::new(BpeTable::new(spec)?),
            stages: vec![stage],
            specials: Vec::new(),
            normalizer: Normalizer::default(),
            dummy_space: None,
            limits: Vec::new(),
            vocab_size: Some(texts.len() + 1),
        })?;
        Ok(Self { texts, tokenizer: Arc::new(tokenizer) })
    }

    pub fn vocabulary(&self) -> Result<Vocabulary, Box<dyn Error>> {
        let mut tokens: Vec<Option<&[u8]>> =
            self.texts.iter().map(|text| Some(text.as_slice())).collect();
        tokens.push(None);
        Ok(Vocabulary::new(&tokens, &[TokenId(self.texts.len() as u32)], None)?)
    }
}

/// The bytes, and then tokens by rank: the shorter a token, the earlier it merges.
fn texts() -> Vec<Vec<u8>> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut longer: BTreeSet<(usize, Vec<u8>)> = BTreeSet::new();
    let mut add = |text: &str| {
        // With what it is put together from.
        for end in 2..=text.len() {
            longer.insert((end, text.as_bytes()[..end].to_vec()));
        }
    };
    for _ in 0..WORDS {
        let word = word(&mut random);
        match random.below(4) {
            0 => add(&word),
            1 => {
                add(&word[..1].to_uppercase().chars().chain(word[1..].chars()).collect::<String>())
            }
            _ => add(&format!(" {word}")),
        }
    }
    for number in 0..1_000 {
        add(&format!("{number}"));
        add(&format!("{number:03}"));
    }
    for left in SCRIPTS {
        for right in SCRIPTS {
            add(&format!("{left}{right}"));
            add(&format!(" {right}{left}"));
        }
    }
    for run in 1..32 {
        add(&" ".repeat(run));
        add(&format!("\n{}", " ".repeat(run)));
        add(&format!("{}\n", "\t".repeat(run % 8)));
    }
    let marks = ["\"", "{", "}", "[", "]", ":", ",", ".", "-", "_", "/", "\\", "=", "(", ")", "<"];
    for first in marks {
        for second in marks {
            for third in marks {
                if random.below(3) == 0 {
                    add(&format!("{first}{second}{third}"));
                    add(&format!(" {first}{second}"));
                }
            }
        }
    }
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    bytes.chain(longer.into_iter().map(|(_, text)| text)).collect()
}
