//! Regular expressions in the dialect of the `regex` crate, matched against the whole text.

use regex_syntax::ast::{AssertionKind, Span, Visitor};
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use regex_syntax::ParserBuilder;

use super::anchors::whole;
use super::error::{CLASS_RANGES, NESTED_GROUPS};
use super::node::Node;
use super::{Ast, CharClass, PatternError, PatternErrorKind};

const WORD_BOUNDARY: &str = "word boundary";
const MULTI_LINE: &str = "multi-line anchor";
/// Groups and operators that may nest.
const MAX_NESTING: u32 = 200;
/// Bytes that a pattern may have.
const MAX_LENGTH: usize = 1 << 16;
/// Ranges that all classes of a pattern may have together.
const MAX_RANGES: usize = 1 << 19;

/// The language of all texts that the pattern matches from their start to their end.
///
/// Word boundaries and multi-line anchors are refused by name.
pub fn anchored(pattern: &str) -> Result<Ast, PatternError> {
    if pattern.len() > MAX_LENGTH {
        return Err(PatternError::too_large(0, "bytes of a pattern", MAX_LENGTH));
    }
    let mut parser = ParserBuilder::new().utf8(true).nest_limit(MAX_NESTING).build();
    let hir = parser.parse(pattern).map_err(|error| parse_error(pattern, &error))?;
    let mut ranges = 0;
    let node = convert(&hir, &mut ranges).map_err(|error| locate(pattern, error))?;
    whole(&node)
}

/// Gives an error the place of the first assertion that can be its cause: the translated
/// expression knows no places.
fn locate(pattern: &str, error: PatternError) -> PatternError {
    let boundary = match error.kind {
        PatternErrorKind::Unsupported(WORD_BOUNDARY) => true,
        PatternErrorKind::Unsupported(MULTI_LINE) => false,
        _ => return error,
    };
    let Ok(ast) = regex_syntax::ast::parse::Parser::new().parse(pattern) else { return error };
    let found = regex_syntax::ast::visit(&ast, FindAssertion { boundary, found: None });
    let place = found.ok().flatten().and_then(|byte| pattern.get(..byte));
    PatternError { offset: place.map_or(0, |before| before.chars().count()), ..error }
}

/// Finds where the first word boundary, or line anchor, stands.
struct FindAssertion {
    boundary: bool,
    found: Option<usize>,
}

impl Visitor for FindAssertion {
    type Output = Option<usize>;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Self::Output, Self::Err> {
        Ok(self.found)
    }

    fn visit_pre(&mut self, ast: &regex_syntax::ast::Ast) -> Result<(), Self::Err> {
        if let regex_syntax::ast::Ast::Assertion(assertion) = ast {
            let line = matches!(assertion.kind, AssertionKind::StartLine | AssertionKind::EndLine);
            let text = matches!(assertion.kind, AssertionKind::StartText | AssertionKind::EndText);
            if self.found.is_none() && !text && line != self.boundary {
                self.found = Some(assertion.span.start.offset);
            }
        }
        Ok(())
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
                    PatternError::too_large(offset, "groups of a pattern", u32::MAX as usize)
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
        HirKind::Look(Look::Start) => Node::Start,
        HirKind::Look(Look::End) => Node::End,
        HirKind::Look(Look::StartLF | Look::EndLF | Look::StartCRLF | Look::EndCRLF) => {
            return Err(PatternError::unsupported(0, MULTI_LINE));
        }
        HirKind::Look(_) => return Err(PatternError::unsupported(0, WORD_BOUNDARY)),
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

fn convert_all(parts: &[Hir], ranges: &mut usize) -> Result<Vec<Node>, PatternError> {
    parts.iter().map(|part| convert(part, ranges)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    use super::super::ecma;
    use super::super::oracle::matches;
    use super::*;

    /// Patterns over a small alphabet, with anchors anywhere.
    fn patterns() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            4 => "[abc]".prop_map(String::from),
            1 => Just(".".to_string()),
            1 => Just("[^b]".to_string()),
            1 => Just("[a-b]".to_string()),
            2 => Just("^".to_string()),
            2 => Just("$".to_string()),
            1 => Just("(?:)".to_string()),
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

    fn run(cases: u32, test: impl Fn(String, Vec<String>) -> Result<(), TestCaseError>) {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, rng);
        let texts = prop::collection::vec("[abc\n]{0,6}", 24);
        runner.run(&(patterns(), texts), |(pattern, texts)| test(pattern, texts)).unwrap();
    }

    #[test]
    fn whole_matches_agree_with_the_regex_crate() {
        run(1500, |pattern, texts| {
            let expected = regex::Regex::new(&format!(r"\A(?:{pattern})\z")).unwrap();
            let ast = anchored(&pattern).unwrap();
            for text in texts {
                prop_assert_eq!(
                    matches(&ast, &text),
                    expected.is_match(&text),
                    "{} {:?}",
                    pattern,
                    text
                );
            }
            Ok(())
        });
    }

    #[test]
    fn searches_agree_with_the_regex_crate() {
        // On these patterns and texts the two dialects agree.
        run(1500, |pattern, texts| {
            let expected = regex::Regex::new(&pattern).unwrap();
            let ast = ecma::search(&pattern).unwrap();
            for text in texts {
                prop_assert_eq!(
                    matches(&ast, &text),
                    expected.is_match(&text),
                    "{} {:?}",
                    pattern,
                    text
                );
            }
            Ok(())
        });
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
            (r"éb\bc", PatternErrorKind::Unsupported("word boundary"), 2),
            ("(?m)^a", PatternErrorKind::Unsupported("multi-line anchor"), 4),
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
