//! Regular expressions in the dialect of the `regex` crate.

use std::sync::OnceLock;

use regex_syntax::ast::Span;
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use regex_syntax::ParserBuilder;

use super::anchors::{searched, whole};
use super::ecma::class as ecma_class;
use super::error::{CLASS_RANGES, MAX_PATTERN, NESTED_GROUPS};
use super::node::Node;
use super::pattern::{Dialect, PatternOptions};
use super::{Ast, CharClass, PatternError};

/// Groups and operators that may nest.
const MAX_NESTING: u32 = 200;
/// Ranges that all classes of a pattern may have together.
const MAX_RANGES: usize = 1 << 19;

/// The language of all texts that the pattern matches from their start to their end.
pub fn anchored(pattern: &str) -> Result<Ast, PatternError> {
    parse(pattern, &PatternOptions::new(Dialect::Rust))
}

/// The language of a pattern.
pub(super) fn parse(pattern: &str, options: &PatternOptions) -> Result<Ast, PatternError> {
    if pattern.len() > MAX_PATTERN {
        return Err(PatternError::too_large(0, "pattern_bytes", MAX_PATTERN));
    }
    let mut parser = ParserBuilder::new()
        .utf8(true)
        .nest_limit(MAX_NESTING)
        .case_insensitive(options.has('i'))
        .multi_line(options.has('m'))
        .dot_matches_new_line(options.has('s'))
        .ignore_whitespace(options.has('x'))
        .swap_greed(options.has('U'))
        .crlf(options.has('R'))
        .build();
    let hir = parser.parse(pattern).map_err(|error| parse_error(pattern, &error))?;
    let node = convert(&hir, &mut 0)?;
    if options.search {
        searched(&node)
    } else {
        whole(&node)
    }
}

fn parse_error(pattern: &str, error: &regex_syntax::Error) -> PatternError {
    use regex_syntax::ast::ErrorKind;
    let place =
        |span: &Span| pattern.get(..span.start.offset).map_or(0, |before| before.chars().count());
    match error {
        regex_syntax::Error::Parse(error) => {
            let (offset, message) = (place(error.span()), error.kind().to_string());
            match error.kind() {
                ErrorKind::NestLimitExceeded(_) => {
                    PatternError::too_large(offset, NESTED_GROUPS, MAX_NESTING as usize)
                }
                ErrorKind::CaptureLimitExceeded => {
                    PatternError::too_large(offset, "pattern_groups", u32::MAX as usize)
                }
                ErrorKind::UnsupportedBackreference => {
                    PatternError::unsupported(offset, "backreference")
                }
                ErrorKind::UnsupportedLookAround => PatternError::unsupported(offset, "lookaround"),
                _ => PatternError::invalid(offset, message),
            }
        }
        regex_syntax::Error::Translate(error) => {
            PatternError::invalid(place(error.span()), error.kind().to_string())
        }
        _ => PatternError::invalid(0, error.to_string()),
    }
}

fn convert(hir: &Hir, ranges: &mut usize) -> Result<Node, PatternError> {
    Ok(match hir.kind() {
        HirKind::Empty => Node::epsilon(),
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => Node::Text(Ast::literal(text)),
            Err(_) => return Err(PatternError::unsupported(0, "bytes that are not UTF-8")),
        },
        HirKind::Class(class) => {
            let class = match class {
                Class::Unicode(class) => {
                    CharClass::new(class.iter().map(|r| (r.start() as u32, r.end() as u32)))
                }
                // Only ASCII ones, as the parser guarantees UTF-8.
                Class::Bytes(class) => {
                    CharClass::new(class.iter().map(|r| (u32::from(r.start()), u32::from(r.end()))))
                }
            };
            *ranges += class.ranges().len();
            if *ranges > MAX_RANGES {
                return Err(PatternError::too_large(0, CLASS_RANGES, MAX_RANGES));
            }
            Node::Text(Ast::class(class))
        }
        HirKind::Look(look) => assertion(*look),
        HirKind::Repetition(repetition) => Node::Repeat {
            inner: Box::new(convert(&repetition.sub, ranges)?),
            min: repetition.min,
            max: repetition.max,
        },
        HirKind::Capture(capture) => convert(&capture.sub, ranges)?,
        HirKind::Concat(parts) => Node::Concat(convert_all(parts, ranges)?),
        HirKind::Alternation(parts) => Node::Alternation(convert_all(parts, ranges)?),
    })
}

/// Converts a condition on a position.
fn assertion(look: Look) -> Node {
    let class = |codes: &str| {
        Node::Text(Ast::class(CharClass::new(codes.chars().map(|c| (c as u32, c as u32)))))
    };
    let ahead = |inner: Node, negative: bool| Node::Lookahead {
        inner: Box::new(inner),
        negative,
        offset: 0,
    };
    let behind = |inner: Node, negative: bool| Node::Lookbehind {
        inner: Box::new(inner),
        negative,
        offset: 0,
    };
    let word = |unicode: bool| if unicode { words().clone() } else { ecma_class::words() };
    let one = |unicode: bool| Node::Text(Ast::class(word(unicode)));
    let unicode = matches!(
        look,
        Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode
    );
    match look {
        Look::Start => Node::Start,
        Look::End => Node::End,
        Look::StartLF => Node::Alternation(vec![Node::Start, behind(class("\n"), false)]),
        Look::EndLF => Node::Alternation(vec![Node::End, ahead(class("\n"), false)]),
        // Between the two characters of a line end there is neither.
        Look::StartCRLF => {
            let alone = vec![behind(class("\r"), false), ahead(class("\n"), true)];
            Node::Alternation(vec![Node::Start, behind(class("\n"), false), Node::Concat(alone)])
        }
        Look::EndCRLF => {
            let alone = vec![ahead(class("\n"), false), behind(class("\r"), true)];
            Node::Alternation(vec![Node::End, ahead(class("\r"), false), Node::Concat(alone)])
        }
        Look::WordAscii | Look::WordUnicode => {
            Node::WordBoundary { negative: false, words: word(unicode) }
        }
        Look::WordAsciiNegate | Look::WordUnicodeNegate => {
            Node::WordBoundary { negative: true, words: word(unicode) }
        }
        Look::WordStartAscii | Look::WordStartUnicode => {
            Node::Concat(vec![behind(one(unicode), true), ahead(one(unicode), false)])
        }
        Look::WordEndAscii | Look::WordEndUnicode => {
            Node::Concat(vec![behind(one(unicode), false), ahead(one(unicode), true)])
        }
        Look::WordStartHalfAscii | Look::WordStartHalfUnicode => behind(one(unicode), true),
        Look::WordEndHalfAscii | Look::WordEndHalfUnicode => ahead(one(unicode), true),
    }
}

/// `\w` of Unicode.
fn words() -> &'static CharClass {
    static WORDS: OnceLock<CharClass> = OnceLock::new();
    WORDS.get_or_init(|| match regex_syntax::parse(r"\w").map(Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => {
            CharClass::new(class.iter().map(|r| (r.start() as u32, r.end() as u32)))
        }
        _ => ecma_class::words(),
    })
}

fn convert_all(parts: &[Hir], ranges: &mut usize) -> Result<Vec<Node>, PatternError> {
    parts.iter().map(|part| convert(part, ranges)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    use super::super::ecma;
    use super::super::oracle::matches;
    use super::super::PatternErrorKind;
    use super::*;

    const AROUND: [&str; 12] = [
        r"\b",
        r"\B",
        "(?m:^)",
        "(?m:$)",
        "(?mR:^)",
        "(?mR:$)",
        r"\b{start}",
        r"\b{end}",
        r"\b{start-half}",
        r"\b{end-half}",
        r"(?-u:\b)",
        r"(?-u:\b{end})",
    ];

    /// Patterns over a small alphabet, with anchors anywhere.
    fn patterns(around: &'static [&'static str]) -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            4 => "[abc]".prop_map(String::from),
            1 => Just(".".to_string()),
            1 => Just("[^b]".to_string()),
            1 => Just("[a-b]".to_string()),
            2 => Just("^".to_string()),
            2 => Just("$".to_string()),
            1 => Just("(?:)".to_string()),
            2 => prop::sample::select(around.to_vec()).prop_map(String::from),
        ];
        leaf.prop_recursive(4, 16, 3, |inner| {
            prop_oneof![
                3 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
                2 => prop::collection::vec(inner.clone(), 2..4)
                    .prop_map(|parts| format!("(?:{})", parts.join("|"))),
                2 => (inner, prop::sample::select(vec!["*", "+", "?", "{2}", "{1,2}", "{2,}", "{3,4}", "{0,2}?"]))
                    .prop_map(|(part, count)| format!("(?:{part}){count}")),
            ]
        })
    }

    fn run(
        cases: u32,
        around: &'static [&'static str],
        test: impl Fn(String, Vec<String>) -> Result<(), TestCaseError>,
    ) {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, rng);
        let texts = prop::collection::vec("[abcé \r\n]{0,6}", 24);
        runner.run(&(patterns(around), texts), |(pattern, texts)| test(pattern, texts)).unwrap();
    }

    fn check(
        options: &PatternOptions,
        expected: &regex::Regex,
        (pattern, texts): (&str, &[String]),
    ) -> Result<(), TestCaseError> {
        let ast = match super::parse(pattern, options) {
            Ok(ast) => ast,
            // Copies of what looks around are few.
            Err(error) => {
                prop_assert!(matches!(error.kind, PatternErrorKind::TooLarge(_)), "{}", error);
                return Ok(());
            }
        };
        for text in texts {
            let found = expected.is_match(text);
            prop_assert_eq!(matches(&ast, text), found, "{} {:?}", pattern, text);
        }
        Ok(())
    }

    #[test]
    fn whole_matches_agree_with_the_regex_crate() {
        for around in [&["x"][..], &AROUND] {
            run(1500, around, |pattern, texts| {
                let expected = regex::Regex::new(&format!(r"\A(?:{pattern})\z")).unwrap();
                check(&PatternOptions::default(), &expected, (&pattern, &texts))
            });
        }
    }

    #[test]
    fn searches_agree_with_the_regex_crate() {
        for around in [&["x"][..], &AROUND] {
            run(1500, around, |pattern, texts| {
                let expected = regex::Regex::new(&pattern).unwrap();
                check(&PatternOptions::default().searched(), &expected, (&pattern, &texts))
            });
        }
    }

    #[test]
    fn searches_of_the_other_dialect_agree_too() {
        // On these patterns and texts the two dialects agree, but for what a line end is.
        run(1500, &["x"], |pattern, texts| {
            let expected = regex::Regex::new(&pattern.replace('.', r"[^\n\r]")).unwrap();
            let ast = ecma::search(&pattern).unwrap();
            for text in texts {
                let found = expected.is_match(&text);
                prop_assert_eq!(matches(&ast, &text), found, "{} {:?}", pattern, text);
            }
            Ok(())
        });
    }

    #[test]
    fn flags_are_those_of_the_regex_crate() {
        for (flags, pattern) in [
            ("i", "aß"),
            ("m", "^a$"),
            ("s", "a.b"),
            ("x", "a b # c"),
            ("mR", "^a$"),
            ("U", "a*?b"),
        ] {
            let expected = regex::Regex::new(&format!("(?{flags}){pattern}")).unwrap();
            let options = PatternOptions::new(Dialect::Rust).with_flags(flags).searched();
            let ast = super::super::parse(pattern, &options).unwrap();
            for text in ["a", "Aß", "a\r\nb", "b\ra\r", "\na\n", "a\nb", "ab", "a b", "aẞ", "b"]
            {
                assert_eq!(matches(&ast, text), expected.is_match(text), "{flags} {text:?}");
            }
        }
        let options = PatternOptions::default().with_flags("ig");
        assert!(super::super::parse("a", &options).is_err());
    }

    #[test]
    fn the_dialect_is_that_of_the_regex_crate() {
        for (pattern, texts) in [
            (r"(?i)straße|K", &["STRASSE", "STRAßE", "k", "\u{212a}", "x"][..]),
            (r"\d+", &["12", "٣", ""]),
            (r"(?-u:\w)é", &["aé", "éé"]),
            (r"[\p{Greek}&&\pL]+", &["αβ", "a"]),
            (r"(?s).(?-s).", &["\na", "a\n"]),
            (r"(?x) a b # c", &["ab", "a b"]),
            (r"a{2,3}?", &["a", "aa", "aaa", "aaaa"]),
            (r"éb\bc|\w+\b.(?m)^x$", &["ébc", "é\nx", "a\nx"]),
            (r"\Aab\z|^$", &["ab", "", "abab"]),
            (r"\x{1F600}|\u00e9|[[:alpha:]]", &["😀", "é", "q", "1"]),
        ] {
            let expected = regex::Regex::new(
                &format!(
                    r"\A(?:{pattern}
)\z"
                )
                .replace('\n', if pattern.contains("(?x)") { "\n" } else { "" }),
            )
            .unwrap();
            let ast = anchored(pattern).unwrap();
            for text in texts {
                assert_eq!(matches(&ast, text), expected.is_match(text), "{pattern} {text:?}");
            }
        }
        assert_eq!(anchored("^abc$").unwrap(), Ast::literal("abc"));
    }

    #[test]
    fn faults_have_a_kind_and_a_place() {
        for (pattern, kind, offset) in [
            ("é(", PatternErrorKind::Invalid, 1),
            ("a\n|[b", PatternErrorKind::Invalid, 3),
            (r"(a)\1", PatternErrorKind::Unsupported("backreference"), 3),
            ("a(?=b)", PatternErrorKind::Unsupported("lookaround"), 1),
        ] {
            let error = anchored(pattern).unwrap_err();
            assert_eq!((error.kind, error.offset), (kind, offset), "{pattern}");
        }
        for pattern in [
            "(".repeat(100_000),
            "(".repeat(1000) + &")".repeat(1000),
            "a".repeat(100_000),
            r"\pL".repeat(9000),
        ] {
            let kind = anchored(&pattern).unwrap_err().kind;
            assert!(matches!(kind, PatternErrorKind::TooLarge(_)), "{kind}");
        }
    }
}
