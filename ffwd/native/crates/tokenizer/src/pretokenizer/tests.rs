//! Cutting against the slow twin, and what pieces say about themselves.

use super::oracle::Oracle;
use super::testing::{constructed, isolated, real, split, tiktoken, Random, CL100K, GAPS, O200K};
use super::*;

fn cases() -> Vec<(String, Vec<StageSpec>)> {
    let real = real().into_iter().map(|(name, stages)| (name.to_owned(), stages));
    real.chain(constructed()).collect()
}

fn cut(pretokenizer: &PreTokenizer, text: &str) -> Vec<String> {
    let pieces = pretokenizer.pieces(text.as_bytes());
    pieces.map(|piece| text[piece.start..piece.end].to_owned()).collect()
}

#[test]
fn pieces_are_those_of_the_slow_twin() {
    let real = real();
    let kinds: Vec<&str> = real.iter().map(|(name, _)| *name).collect();
    for (name, specs) in cases() {
        let pretokenizer = PreTokenizer::new(&specs).unwrap();
        let oracle = Oracle::new(&specs);
        let mut random = Random(1);
        let rounds = if kinds.contains(&name.as_str()) { 20_000 } else { 3_000 };
        for _ in 0..rounds {
            let text = random.text(12);
            assert_eq!(cut(&pretokenizer, &text), oracle.pieces(&text), "{name}: {text:?}");
        }
    }
}

#[test]
fn known_pieces() {
    let llama = PreTokenizer::new(&[isolated(CL100K)]).unwrap();
    for (text, pieces) in [
        ("It's  1234 \n\n x\r\n", &["It", "'s", " ", " ", "123", "4", " \n\n", " x", "\r\n"][..]),
        ("a\t\t\"b", &["a", "\t", "\t", "\"b"]),
        ("{\"$schema\":", &["{\"$", "schema", "\":"]),
        ("'\u{17F}x", &["'\u{17F}", "x"]),
        ("e\u{345}1", &["e", "\u{345}", "1"]),
    ] {
        assert_eq!(cut(&llama, text), pieces, "{text:?}");
    }
}

#[test]
fn bytes_that_are_not_utf8_count_as_replacement_characters() {
    for (name, specs) in cases() {
        let pretokenizer = PreTokenizer::new(&specs).unwrap();
        let mut random = Random(3);
        for _ in 0..1_000 {
            let mut bytes = random.text(12).into_bytes();
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() + 1);
                if at < bytes.len() && random.below(2) == 0 {
                    bytes.remove(at);
                } else {
                    bytes.insert(at, random.next() as u8);
                }
            }
            // The same with replacement characters, and where each character ends in both.
            let mut replaced = String::new();
            let mut ends = Vec::new();
            let mut end = 0;
            for chunk in bytes.utf8_chunks() {
                let valid =
                    chunk.valid().chars().map(|character| (character, character.len_utf8()));
                let invalid = chunk.invalid().iter().map(|_| (char::REPLACEMENT_CHARACTER, 1));
                for (character, length) in valid.chain(invalid) {
                    replaced.push(character);
                    end += length;
                    ends.push((replaced.len(), end));
                }
            }
            let expected: Vec<usize> = pretokenizer
                .pieces(replaced.as_bytes())
                .filter_map(|piece| ends.iter().find(|(new, _)| *new == piece.end))
                .map(|&(_, old)| old)
                .collect();
            let got: Vec<usize> = pretokenizer.pieces(&bytes).map(|piece| piece.end).collect();
            assert_eq!(got, expected, "{name}: {bytes:x?}");
        }
    }
}

/// How many bytes are scanned for each byte of the text.
fn scans_per_byte(pretokenizer: &PreTokenizer, text: &[u8]) -> f64 {
    let mut pieces = pretokenizer.pieces(text);
    let end = pieces.by_ref().last().map_or(0, |piece| piece.end);
    assert_eq!(end, text.len());
    pieces.scanned() as f64 / text.len() as f64
}

#[test]
fn no_text_is_scanned_again_and_again() {
    const LENGTH: usize = 200_000;
    let times = |unit: &str| unit.repeat(LENGTH / unit.len());
    let texts = [
        times(" ") + "x",
        times("\n"),
        times("\n ") + "x",
        times(" \n") + "x",
        times(&("\n".to_owned() + &" ".repeat(1000) + "x")),
        times("a"),
        times("A"),
        times("aA"),
        times("A'"),
        times("1"),
        times("中"),
        times("ア・"),
        times("\u{301}"),
        times("!\r\n"),
        times("a-"),
        times("'"),
        times("\u{FFFD}"),
    ];
    for (name, specs) in real() {
        let pretokenizer = PreTokenizer::new(&specs).unwrap();
        for text in &texts {
            let scans = scans_per_byte(&pretokenizer, text.as_bytes());
            // Up to three stages; text between matches, and behind one, is read once more.
            assert!(scans < 9.0, "{name}: {scans} for {:?}", &text[..4]);
        }
    }
    // Here every place would be scanned to the end of the text without memory.
    for pattern in ["a*b|a", "a+b", "(?:ab)*c|[ab]", r"\s+x|\s", "(?:a{1,20}-)*b|a|-"] {
        for invert in [false, true] {
            let specs = [split(pattern, Behavior::Contiguous, invert)];
            let pretokenizer = PreTokenizer::new(&specs).unwrap();
            for text in &texts {
                let scans = scans_per_byte(&pretokenizer, text.as_bytes());
                assert!(scans < 80.0, "{pattern}: {scans} for {:?}", &text[..4]);
            }
        }
    }
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let onig = |pattern: &str| PreTokenizer::new(&[isolated(pattern)]).unwrap_err().to_string();
    let fancy = |pattern: &str| PreTokenizer::new(&[tiktoken(pattern)]).unwrap_err().to_string();
    for (pattern, reason) in [
        ("(?<=a)b", "a lookbehind at offset 0"),
        ("a|(?<!a)b", "a lookbehind at offset 2"),
        ("(?>a+)b", "an atomic group at offset 0"),
        (r"(a)\1", "not valid at offset 3"),
        (r"^a", "an assertion about the text before at offset 0"),
        (r"a\b", "an assertion about the text before at offset 1"),
        (r"a(?!bc)", "a look-ahead at more than one character at offset 1"),
        (r"a(?!(?=b))", "a look-ahead at more than one character at offset 1"),
        (r"x(?!\S)a\b", "an assertion about the text before at offset 8"),
        ("(?i)a", "flags for the rest of a group at offset 0"),
        ("(?x:a)", "a flag other than i at offset 2"),
        ("(?i:ss)", "other than plain ASCII at offset 0"),
        ("(?i:é)", "other than plain ASCII at offset 0"),
        ("(?:a|b*)+", "a repetition of what may be empty at offset 8"),
        (r"\w+", r"the class \w"),
        ("[[:alpha:]]", "a POSIX class at offset 1"),
        ("[a--b]", "a class operation other than && at offset"),
        ("a**", "a quantifier of a quantifier at offset 2"),
        ("a{2}?b", "a lazy quantifier {n}? at offset 1"),
        ("a*", "matches the empty text"),
        ("(?=a)", "matches the empty text"),
        ("a++a", "the possessive quantifier at offset 1 may match other text"),
        ("(?:a|ab)?+b", "the possessive quantifier at offset 8 may match other text"),
        ("a[", "not valid at offset 1"),
        ("a(?!b", "not valid at offset 1: the look-ahead is not closed"),
        ("(?:a{1000}){1000}", "the limit on pattern_places (1024) was exceeded"),
        (&"(".repeat(10_000), "not valid at offset"),
    ] {
        let error = onig(pattern);
        assert!(error.contains(reason), "{pattern}: {error}");
    }
    assert!(fancy(GAPS).contains("removes text"));
    assert!(fancy(r"a\b").contains("an assertion about the text before"));
    let removed = [split(CL100K, Behavior::Removed, false)];
    assert!(PreTokenizer::new(&removed).unwrap_err().to_string().contains("removes text"));
    assert!(PreTokenizer::new(&vec![StageSpec::Metaspace; 17]).is_err());
    let long = format!("(?:a|b)*a(?:a|b){{{}}}c|a|b", 20);
    assert!(onig(&long).contains("pre_tokenizer_states"), "{}", onig(&long));
}

#[test]
fn dialects_differ() {
    let of = |pattern: &str, dialect| {
        let (pattern, behavior) = (pattern.to_owned(), Behavior::Isolated);
        PreTokenizer::new(&[StageSpec::Split { pattern, dialect, invert: false, behavior }])
    };
    let onig = of(r"\p{N}{1,3}+", Dialect::Oniguruma).unwrap();
    assert_eq!(cut(&onig, "1234567 89"), ["1234567", " ", "89"]);
    let fancy = of(r"\p{N}{1,3}+", Dialect::FancyRegex).unwrap();
    assert_eq!(cut(&fancy, "1234567 89"), ["123", "456", "7", " ", "89"]);
    let onig = of("a$", Dialect::Oniguruma).unwrap();
    assert_eq!(cut(&onig, "aba\nab a"), ["ab", "a", "\nab ", "a"]);
    let fancy = of("a$", Dialect::FancyRegex).unwrap();
    assert_eq!(cut(&fancy, "aba\nab a"), ["aba\nab ", "a"]);
    assert!(of(r"\w+", Dialect::FancyRegex).is_ok());
    assert!(of(O200K, Dialect::FancyRegex).is_ok());
}
