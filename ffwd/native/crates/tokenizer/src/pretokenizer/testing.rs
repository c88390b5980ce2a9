//! Patterns and texts for the tests.

use super::{Behavior, Dialect, StageSpec};

pub const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub const QWEN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub const R50K_TIKTOKEN: &str =
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";
pub const CL100K_TIKTOKEN: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
/// DeepSeek's third one.
pub const DEEPSEEK: &str = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";
/// The pattern of CLIP and similar models: it leaves white space between the matches.
pub const GAPS: &str = r"'s|'t|'re|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+";

pub fn isolated(pattern: &str) -> StageSpec {
    split(pattern, Behavior::Isolated, false)
}

pub fn split(pattern: &str, behavior: Behavior, invert: bool) -> StageSpec {
    let dialect = Dialect::Oniguruma;
    StageSpec::Split { pattern: pattern.to_owned(), dialect, invert, behavior }
}

pub fn tiktoken(pattern: &str) -> StageSpec {
    StageSpec::Split {
        pattern: pattern.to_owned(),
        dialect: Dialect::FancyRegex,
        invert: true,
        behavior: Behavior::Removed,
    }
}

/// Pre-tokenizers of real tokenizers, by name.
pub fn real() -> Vec<(&'static str, Vec<StageSpec>)> {
    vec![
        ("gpt2", vec![StageSpec::ByteLevelRegex]),
        ("llama3", vec![isolated(CL100K)]),
        ("qwen", vec![isolated(QWEN)]),
        ("qwen3.5", vec![isolated(QWEN35)]),
        ("o200k", vec![isolated(O200K)]),
        ("tekken", vec![isolated(TEKKEN)]),
        ("r50k of tiktoken", vec![tiktoken(R50K_TIKTOKEN)]),
        ("cl100k of tiktoken", vec![tiktoken(CL100K_TIKTOKEN)]),
        ("o200k of tiktoken", vec![tiktoken(O200K)]),
        (
            "deepseek",
            vec![
                isolated(r"\p{N}{1,3}"),
                isolated("[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+"),
                isolated(DEEPSEEK),
            ],
        ),
        ("metaspace", vec![StageSpec::Metaspace]),
        ("whole", vec![]),
    ]
}

/// Every kind of stage and behavior.
pub fn constructed() -> Vec<(String, Vec<StageSpec>)> {
    let mut cases: Vec<(String, Vec<StageSpec>)> = Vec::new();
    let patterns = [
        GAPS,
        r"\s+",
        "-|a",
        "--",
        "a*b|a",
        r"a(?=b)|b(?!a)a?|\d+$",
        r"(?:ab|a)+?(?=-)|b{2,3}",
        r"a+?b??a|[^a ]{1,2}?",
    ];
    let behaviors = [
        Behavior::Isolated,
        Behavior::MergedWithPrevious,
        Behavior::MergedWithNext,
        Behavior::Contiguous,
    ];
    for pattern in patterns {
        for behavior in behaviors {
            for invert in [false, true] {
                let name = format!("{pattern} {behavior:?} {invert}");
                cases.push((name, vec![split(pattern, behavior, invert)]));
            }
        }
    }
    let mut add = |name: &str, stages| cases.push((name.to_owned(), stages));
    add("digits", vec![StageSpec::Digits { individual: true }, StageSpec::ByteLevelRegex]);
    add("runs", vec![StageSpec::Digits { individual: false }, StageSpec::ByteLevelRegex]);
    for behavior in behaviors {
        let punctuation = StageSpec::Punctuation { behavior };
        add(&format!("punctuation {behavior:?}"), vec![punctuation, isolated(QWEN)]);
    }
    let text =
        StageSpec::SplitText { text: "a-".to_owned(), invert: false, behavior: behaviors[1] };
    add("text", vec![text, StageSpec::Digits { individual: true }]);
    add(
        "three",
        vec![
            split("-|a", Behavior::MergedWithNext, false),
            split(r"\s+", Behavior::MergedWithPrevious, true),
            isolated(CL100K),
        ],
    );
    cases
}

const ALPHABET: &[char] = &[
    'a',
    'b',
    's',
    't',
    'r',
    'e',
    'v',
    'm',
    'l',
    'd',
    'A',
    'S',
    'L',
    'T',
    '\u{17F}',
    '\u{212A}',
    '\u{1C5}',
    '\u{2B0}',
    'é',
    '\'',
    '\'',
    '\u{2BC}',
    ' ',
    ' ',
    '\t',
    '\r',
    '\n',
    '\u{85}',
    '\u{2028}',
    '\u{A0}',
    '\u{3000}',
    '1',
    '2',
    '\u{663}',
    '\u{2167}',
    '\u{345}',
    '\u{301}',
    '中',
    '龥',
    'あ',
    'ー',
    '・',
    '\u{3099}',
    '\u{309B}',
    '!',
    '"',
    '/',
    '{',
    '-',
    '-',
    '😀',
    '\u{200D}',
    '$',
    '\u{2581}',
    '\u{378}',
    '\u{FFFD}',
    '\u{10FFFF}',
    '\0',
];

/// A small generator of random numbers, the same in every run (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// A text over a few characters of the adversarial alphabet.
    pub fn text(&mut self, longest: usize) -> String {
        let few: Vec<char> = (0..2 + self.below(5)).map(|_| self.pick(ALPHABET)).collect();
        let length = self.below(longest + 1);
        (0..length)
            .map(|_| if self.below(8) == 0 { self.pick(ALPHABET) } else { self.pick(&few) })
            .collect()
    }
}
