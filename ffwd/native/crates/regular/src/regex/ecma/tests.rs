use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::super::oracle::{matches, size};
use super::super::PatternErrorKind;
use super::*;

/// A pattern, texts in which it is found, texts in which it is not.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const CASES: &[Case] = &[
    ("^abc$", &["abc"], &["abcd", "xabc", "abc\n", ""]),
    ("abc", &["abc", "xabcx", "\nabc\n"], &["ab", ""]),
    ("^foo", &["foo", "foobar"], &["xfoo"]),
    ("foo$", &["foo", "xfoo"], &["foox", "foo\n"]),
    ("^a|b$", &["a", "ax", "b", "xb"], &["xa", "bx", ""]),
    ("(^|,)x(,|$)", &["x", "x,", ",x", "a,x,b", "x,y", "y,x"], &["ax", "xa", "ax,", ",xa", ""]),
    ("^$", &[""], &["a", "\n"]),
    ("$^", &[""], &["a"]),
    ("a^b", &[], &["ab", "a^b", "b", "a"]),
    ("a$b", &[], &["ab", "a$b"]),
    ("a?^b", &["b", "bx"], &["ab", "a"]),
    ("a$b?", &["a", "xa"], &["ab"]),
    ("(^a)*", &["", "x", "a"], &[]),
    ("(^a)+", &["a", "aa"], &["ba", ""]),
    ("(^a){2}", &[], &["aa", "a"]),
    ("^(?:^a|b){2,3}$", &["ab", "bb", "abb", "bbb"], &["aa", "ba", "a", "b", "bba", "abbb"]),
    ("^(?:^|b){3}c", &["c", "bc", "bbc", "bbbc"], &["bbbbc", "xc"]),
    ("(?:a|$){3}", &["aaa", "", "aa", "xa", "x"], &[]),
    ("^(?:a|$){3}$", &["aaa", "aa", "a", ""], &["aaaa", "b"]),
    ("^(?:a|^|$){2}b", &["b", "ab", "aab"], &["aaab", "xb"]),
    ("", &["", "a"], &[]),
    ("^", &["", "a"], &[]),
    ("a|", &["", "b"], &[]),
    ("^(a|b|)$", &["a", "b", ""], &["ab"]),
    ("^.$", &["a", "é", "😀", "\u{85}"], &["\n", "\r", "\u{2028}", "\u{2029}", "", "ab"]),
    ("^[^]$", &["\n", "a"], &["", "ab"]),
    ("[]", &[], &["", "a", "]"]),
    ("^[^a-c]$", &["d", "\n"], &["a", "b", ""]),
    (r"^\d+$", &["0123"], &["٣", "a", ""]),
    (r"^\w+$", &["aZ_9"], &["é", "-"]),
    (r"^\W$", &["é", "-"], &["a", "_"]),
    (
        r"^\s$",
        &[" ", "\t", "\u{b}", "\u{c}", "\u{feff}", "\u{a0}", "\u{2028}", "\u{3000}"],
        &["\u{85}", "\u{200b}", "a"],
    ),
    (r"^\S+$", &["abc"], &["a b", ""]),
    (r"^[\s\S]*$", &["", "a\nb"], &[]),
    (r"^\u0041\x42\u{1F600}\uD83D\uDE00\cJ\0$", &["AB😀😀\n\0"], &["AB"]),
    (r"^[\uD83D\uDE00-\u{1F602}]$", &["😀", "😁"], &["😃"]),
    (r"\uD83D", &[], &["😀", "", "uD83D"]),
    (r"^[^\uD83D]$", &["😀"], &[""]),
    (r"^\p{L}+$", &["aéж"], &["1", ""]),
    (r"^\p{Script=Greek}\P{Lu}\p{ASCII}\p{Any}$", &["αaa\n"], &["aaaa", "αAaa"]),
    (r"^[\p{Nd}_]+$", &["١_2"], &["a"]),
    (r"^(?<year>\d{4})-(?:\d{2})$", &["2024-01"], &["202-01"]),
    ("^a{2}$", &["aa"], &["a", "aaa"]),
    ("^a{2,}$", &["aa", "aaaa"], &["a"]),
    ("^a{1,3}?$", &["a", "aaa"], &["", "aaaa"]),
    ("^a{0}$", &[""], &["a"]),
    ("^a*?b+?c??$", &["b", "aabbc"], &["ac"]),
    ("^(a*)*$", &["", "aaa"], &["b"]),
    (r"^[\b]$", &["\u{8}"], &["b"]),
    (r"^[a\-z]$", &["a", "-", "z"], &["b"]),
    (r"^[a-]$", &["a", "-"], &["b"]),
    (r"^[-a]$", &["a", "-"], &["b"]),
    (r"^\/\.\$$", &["/.$"], &["/x$"]),
    // Annex B.
    (r"^\-\_\@$", &["-_@"], &["x"]),
    (r"^a{$", &["a{"], &["a"]),
    (r"^a{,2}$", &["a{,2}"], &["a", "aa", ""]),
    (r"^{}]$", &["{}]"], &["{}"]),
    (r"^x{a}$", &["x{a}"], &["x"]),
    (r"^\101\1\08\8$", &["A\u{1}\u{0}88"], &["A"]),
    (r"^\777$", &["?7"], &["777"]),
    (r"^\c$", &["\\c"], &["c"]),
    (r"^[\c]$", &["\\", "c"], &["x"]),
    (r"^[\c1]\-$", &["\u{11}-"], &["1-"]),
    (r"^[\w-.]$", &["a", "-", "."], &["+"]),
    (r"^\u\x\xG\-$", &["uxxG-"], &["u"]),
    (r"^\p{L}\-\u{41}$", &["é-A"], &["1-A"]),
    (r"^\k\-$", &["k-"], &[]),
    ("^(?=a)*b", &["b"], &["ab"]),
    // Lookaheads.
    ("^(?!foo)[a-z]+$", &["bar", "fo"], &["foo", "foobar", ""]),
    ("^(?=.*[A-Z])(?=.*[0-9]).{3,5}$", &["aA1", "1Aaaa"], &["aaa", "A1", "aaaaA1"]),
    ("^(?!.*--)[a-z-]+$", &["a-b"], &["a--b", ""]),
    ("(?!a)b?$", &["", "b", "a", "x"], &[]),
    ("^(?!$)", &["a"], &[""]),
    ("^(?!a$|b$).*$", &["c", "ab", ""], &["a", "b", "\n"]),
    ("a(?!b)", &["a", "ac", "abac"], &["ab", "b", "abab"]),
    ("a(?=b)", &["ab", "xaby"], &["a", "ac", "ba"]),
    ("(?=b)a", &[], &["a", "b", "ab"]),
    ("^(?:(?=a)[ab])?b$", &["b", "ab"], &["bb", "a"]),
    ("^(?:(?!ab)[ab]){2}$", &["ba", "bb", "aa"], &["ab", "a", "bab"]),
    ("^((?!ab).)*$", &["", "a", "ba", "xyz"], &["ab", "xaby", "abab", "\n"]),
    ("^(?:(?!a)(?!bb)[a-c])+$", &["b", "cb", "bcb"], &["", "a", "bb", "cbb", "d"]),
    ("^x((?=.b|$|b).){2,3}$", &["xbb", "xbbb", "xab"], &["x", "xb", "xaab", "xbbbb"]),
    ("^(?:(?!a$)[ab])*$", &["", "b", "ab"], &["a", "ba"]),
    ("^(?:(?!).)*$", &[""], &["a"]),
    ("x(?=^y)", &[], &["xy", "x"]),
    ("(?=^y|x)[xy]z", &["yz", "axz"], &["ayz"]),
    ("(?!^y)yz", &["ayz", "yzyz"], &["yz"]),
    // Lookbehind, word boundaries, and lookaheads in repetitions.
    ("(?<=a)b", &["ab", "xabx"], &["b", "bb", "ba", "a"]),
    ("(?<!a)b", &["b", "bb", "cb", "abb"], &["ab", "a", ""]),
    ("^(?<!a)b", &["b"], &["ab"]),
    ("(?<=^a|bb)c", &["ac", "xbbc"], &["xac", "bc"]),
    ("(?<=a+b)c", &["abc", "aabc"], &["bc", "cbc"]),
    ("(?<![0-9]{2,})x", &["x", "1x"], &["12x", "123x"]),
    ("(?<=(?<!a)b)c", &["bc", "bbc"], &["abc", "c"]),
    ("(?=.b(?<=ab)c)a", &["abc"], &["xbc", "ab"]),
    ("^(?:a(?<!aa)|b)*$", &["", "a", "aba"], &["aa", "baa"]),
    (r"\bfoo\b", &["foo", "a foo!", "é foo"], &["foos", "a_foo", ""]),
    (r"^\b", &["a", "a!"], &["", "!a"]),
    (r"\B", &["", "!", "ab", "!a"], &["a", "a-b"]),
    (r"^(?:\w+\b ?)+$", &["ab cd", "ab"], &["", "ab  cd"]),
    (r"a\Bb\b", &["ab", "ab c"], &["a b", "abc"]),
    ("^((?!ab).)*c", &["c", "bac", "cab"], &["abc", "ab"]),
    ("^(?:(?=a).|b)+c$", &["abac", "bc"], &["c", "acc"]),
    ("^(?:(?=a)|b){2}a", &["a", "ba", "bba"], &["bbba", "c"]),
    (r"^(?:(?!\.\.)[a.])+/$", &["a.a/"], &["a..a/", "/", "./."]),
    (r"(?:^|\s)(?<!\S)x(?!\S)", &["x", "a x b"], &["ax", "xa"]),
];

#[test]
fn patterns_find_what_they_should() {
    for (pattern, found, missed) in CASES {
        let ast = search(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        for text in *found {
            assert!(matches(&ast, text), "{pattern} must be found in {text:?}");
        }
        for text in *missed {
            assert!(!matches(&ast, text), "{pattern} must not be found in {text:?}");
        }
    }
}

#[test]
fn common_patterns_give_small_trees() {
    let class = |low: char, high: char| Ast::Class(CharClass::new([(low as u32, high as u32)]));
    let any = Ast::any_text;
    let lower = || class('a', 'z');
    for (pattern, tree) in [
        ("^abc$", Ast::literal("abc")),
        ("^[a-z]+$", Ast::repeat(lower(), 1, None)),
        ("^foo", Ast::concat([Ast::literal("foo"), any()])),
        ("foo$", Ast::concat([any(), Ast::literal("foo")])),
        ("x", Ast::concat([any(), Ast::literal("x"), any()])),
        ("^foo.*", Ast::concat([Ast::literal("foo"), any()])),
        ("[a-z]+", Ast::concat([any(), lower(), any()])),
        ("[a-z]{2,5}x?", Ast::concat([any(), Ast::repeat(lower(), 2, Some(2)), any()])),
        (".*", any()),
        ("^.*", any()),
        ("", any()),
        (
            "^(?:a|b){3,500}$",
            Ast::repeat(Ast::alternation([Ast::literal("a"), Ast::literal("b")]), 3, Some(500)),
        ),
        ("^$", Ast::Epsilon),
        ("^(ab)c$", Ast::literal("abc")),
    ] {
        assert_eq!(search(pattern).unwrap(), tree, "{pattern}");
    }
    assert!(size(&search("^(?:[^@,]+|^x)(?:,|$)").unwrap()) < 40);
}

#[test]
fn broken_patterns_say_where() {
    for (pattern, offset) in [
        ("(", 0),
        ("é(a", 1),
        ("a)", 1),
        ("*", 0),
        ("a**", 2),
        ("a|+", 2),
        ("[a", 0),
        ("[b-a]", 1),
        ("a{2,1}", 1),
        ("{2}", 0),
        ("^*", 0),
        ("a\\", 1),
        ("(?a)", 0),
        ("(?P<n>a)", 0),
        ("(?<1>a)", 3),
        (r"\p{Nonsense}", 0),
        (r"\u{110000}", 0),
    ] {
        let error = search(pattern).unwrap_err();
        assert_eq!(error.kind, PatternErrorKind::Invalid, "{pattern}: {error}");
        assert_eq!(error.offset, offset, "{pattern}: {error}");
    }
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    for (pattern, feature) in [
        (r"(a)\1", "backreference"),
        (r"(?<n>a)\k<n>", "backreference"),
        ("(?<=a(?=b))", "lookahead in a lookbehind"),
        (r"(?<=a\b)", "lookahead in a lookbehind"),
        ("(?i)a", "inline flags"),
    ] {
        assert_eq!(
            search(pattern).unwrap_err().kind,
            PatternErrorKind::Unsupported(feature),
            "{pattern}"
        );
    }
}

#[test]
fn hostile_patterns_are_refused_quickly() {
    for pattern in [
        "(".repeat(100_000),
        format!("{}a{}", "(".repeat(300), ")".repeat(300)),
        "a".repeat(100_000),
        format!("{}^a{}", "(?:b|".repeat(190), ")*".repeat(190)),
        r"[\p{L}]".repeat(9000),
        "a{99999999999}".to_string(),
        format!("^{}", "(?:a(?=x)|b(?=y))".repeat(200)),
        format!("(?:{})*", r"\ba?".repeat(20_000)),
        format!(r"(?:{})*", r"(?:\ba|b)?(?=c)?".repeat(60)),
        r"(?:(?:(?:(?:(?:\ba){16}){16}){16}){16}){16}".to_string(),
        r"(?:\ba){17}".to_string(),
    ] {
        let error = search(&pattern).unwrap_err();
        assert!(matches!(error.kind, PatternErrorKind::TooLarge(_)), "{error}");
    }
    // Large, but harmless.
    for pattern in [
        "(a|^b|c$)?".repeat(100),
        "a?".repeat(20_000),
        "[^".repeat(20_000) + "]",
        "^".repeat(60_000),
    ] {
        let _ = search(&pattern);
    }
    let nested = format!("{}a{}", "(".repeat(190), ")*".repeat(190));
    assert!(search(&nested).is_ok());
}

/// Where a span of the node may end that begins at `from`, by the definition of each node.
fn ends(node: &Node, text: &[char], from: usize) -> BTreeSet<usize> {
    let here = |holds: bool| holds.then_some(from).into_iter().collect::<BTreeSet<usize>>();
    let word =
        |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(|&c| words().contains(c));
    match node {
        Node::Text(ast) => (from..=text.len())
            .filter(|&end| matches(ast, &text[from..end].iter().collect::<String>()))
            .collect(),
        Node::Start => here(from == 0),
        Node::End => here(from == text.len()),
        Node::Concat(parts) => parts.iter().fold(here(true), |starts, part| {
            starts.into_iter().flat_map(|start| ends(part, text, start)).collect()
        }),
        Node::Alternation(parts) => parts.iter().flat_map(|p| ends(p, text, from)).collect(),
        Node::Repeat { inner, min, max } => {
            let step = |starts: &BTreeSet<usize>| -> BTreeSet<usize> {
                starts.iter().flat_map(|&start| ends(inner, text, start)).collect()
            };
            let mut now = (0..*min).fold(here(true), |now, _| step(&now));
            let mut all = now.clone();
            for _ in *min..max.unwrap_or(min + 10) {
                now = step(&now);
                all.extend(&now);
            }
            all
        }
        Node::Lookahead { inner, negative, .. } => {
            here(ends(inner, text, from).is_empty() == *negative)
        }
        Node::Lookbehind { inner, negative, .. } => {
            let found = (0..=from).any(|start| ends(inner, text, start).contains(&from));
            here(found != *negative)
        }
        Node::WordBoundary { negative, .. } => {
            here((word(from.checked_sub(1)) != word(Some(from))) != *negative)
        }
    }
}

#[test]
fn languages_agree_with_the_definition_of_a_match() {
    let leaf = prop::sample::select(vec![
        "a", "b", "ab", "[ab]", ".", "^", "$", r"\b", r"\B", "(?:)", r"\W", "a?", "b*",
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    let pattern = leaf.prop_recursive(4, 12, 3, |inner| {
        let many = prop::collection::vec(inner.clone(), 1..4);
        let look = prop::sample::select(vec!["?=", "?!", "?<=", "?<!"]);
        let count = prop::sample::select(vec!["*", "+", "?", "{2}", "{1,2}", "{2,}"]);
        prop_oneof![
            many.clone().prop_map(|parts| parts.concat()),
            many.prop_map(|parts| format!("(?:{})", parts.join("|"))),
            (look, inner.clone()).prop_map(|(kind, inner)| format!("({kind}{inner})")),
            (inner, count).prop_map(|(inner, count)| format!("(?:{inner}){count}")),
        ]
    });
    let letters = prop::sample::select("ab-".chars().collect::<Vec<char>>());
    let texts = prop::collection::vec(prop::collection::vec(letters, 0..5), 6);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let config = ProptestConfig { cases: 1500, failure_persistence: None, ..Default::default() };
    TestRunner::new_with_rng(config, rng)
        .run(&(pattern, texts), |(pattern, texts)| {
            let node = node(&pattern, &PatternOptions::default()).unwrap();
            let plain = search(&pattern);
            let contextual = crate::regex::context::searched(&node);
            for text in &texts {
                let expected = (0..=text.len()).any(|start| !ends(&node, text, start).is_empty());
                let text: String = text.iter().collect();
                for language in [&plain, &contextual].into_iter().flatten() {
                    prop_assert_eq!(matches(language, &text), expected, "{} {:?}", pattern, text);
                    prop_assert_eq!(language.matches(&text), Ok(expected));
                }
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn flags_are_those_of_the_standard() {
    for (flags, pattern, found, unfound) in [
        ("i", "^[k-m]ß$", &["Kß", "lß"][..], &["kẞ", "\u{212a}ß"][..]),
        ("iu", "^[k-m]ß$", &["Kß", "kẞ", "\u{212a}ß"], &["jß"]),
        ("i", r"^\w$", &["k"], &["\u{212a}", "ſ"]),
        ("iu", r"^\w$", &["\u{212a}", "ſ"], &["é"]),
        ("iu", r"^[^x]\P{Lu}$", &["yA", "ya"], &["XA"]),
        ("iv", r"^[^x]\P{Lu}$", &["y1"], &["yA", "ya", "X1"]),
        ("m", "^b$", &["a\u{2028}b\rc", "b"], &["ab"]),
        ("s", "^a.b$", &["a\nb"], &["ab"]),
        ("", "^a(?i:b)c(?s-m:.)$", &["aBc\n"], &["abC\n", "ABc\n"]),
        ("i", "^a(?-i:b)$", &["Ab"], &["AB"]),
        ("v", r"^[[a-z]--[aeiou]]+$", &["xyz"], &["xa", "X"]),
        ("v", r"^[\p{L}&&\p{ASCII}--]$", &[], &[]),
        ("v", r"^[\p{L}&&\p{ASCII}]+$", &["abZ"], &["é", "1"]),
        ("v", r"^[a-c\q{xyz|d|}[0-9]]$", &["b", "xyz", "d", "", "7"], &["x", "e"]),
        ("v", r"^[\q{ab|cd}--\q{ab}]$", &["cd"], &["ab", "a"]),
        ("vi", r"^[\q{Ab|cd}&&\q{aB}]$", &["ab", "AB"], &["cd"]),
        ("v", r"^[\-\&&&[\&]]$", &[], &[]),
        ("v", r"^[^\d]$", &["a"], &["1", ""]),
        ("", r"^(?:(?<n>a)|(?<n>b))$", &["a", "b"], &["ab"]),
    ] {
        let options = PatternOptions::new(Dialect::Ecma).with_flags(flags).searched();
        let Ok(ast) = super::super::parse(pattern, &options) else {
            assert!(found.is_empty() && unfound.is_empty(), "{pattern}");
            continue;
        };
        for (texts, expected) in [(found, true), (unfound, false)] {
            for text in texts {
                assert_eq!(matches(&ast, text), expected, "/{pattern}/{flags} {text:?}");
            }
        }
    }
}

#[test]
fn what_flags_forbid_is_refused() {
    use PatternErrorKind::{Invalid, Unsupported};
    for (flags, pattern, kind) in [
        ("uv", "a", Invalid),
        ("g", "a", Invalid),
        ("u", r"\-", Invalid),
        ("u", "]", Invalid),
        ("m", "${2}", Invalid),
        ("m", "^*", Invalid),
        ("v", "[a&&b--c]", Invalid),
        ("v", "[ab&&c]", Invalid),
        ("v", "[a-c&&b]", Invalid),
        ("v", "[&&a]", Invalid),
        ("v", "[a&&]", Invalid),
        ("v", "[a!!]", Invalid),
        ("v", "[(]", Invalid),
        ("v", r"[^\q{ab}]", Invalid),
        ("v", "[[a]", Invalid),
        ("v", r"\p{RGI_Emoji}", Unsupported("property of strings")),
        ("", "(?<n>a)(?<n>b)", Invalid),
        ("", "(?<n>a)(?:b|(?<n>c))", Invalid),
        ("u", "(?i-i:a)", Invalid),
        ("u", "(?-:a)", Invalid),
        ("u", r"(?<n>a)\k<n>", Unsupported("backreference")),
    ] {
        let options = PatternOptions::new(Dialect::Ecma).with_flags(flags);
        let error = super::super::parse(pattern, &options).unwrap_err();
        assert_eq!(error.kind, kind, "/{pattern}/{flags}");
    }
    let nested = "[".repeat(100_000);
    let options = PatternOptions::new(Dialect::Ecma).with_flags("v");
    assert!(super::super::parse(&nested, &options).is_err());
}
