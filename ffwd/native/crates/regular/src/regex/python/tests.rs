use super::super::oracle::matches;
use super::super::{parse, Dialect, PatternErrorKind, PatternOptions};

fn options(flags: &str) -> PatternOptions {
    PatternOptions::new(Dialect::Python).with_flags(flags)
}

fn kind(pattern: &str) -> (PatternErrorKind, usize) {
    let error = parse(pattern, &options("")).unwrap_err();
    (error.kind, error.offset)
}

/// Each with what `re.fullmatch` finds, and what it does not.
const FULL: [(&str, &str, &[&str], &[&str]); 33] = [
    ("", "", &[""], &["a"]),
    ("a|ab", "", &["a", "ab"], &["b", ""]),
    ("a{2}b{,2}c{1,}d{,}", "", &["aac", "aabbccddd"], &["ac", "aabbbc"]),
    ("a{,b}{}{1,2x}", "", &["a{,b}{}{1,2x}"], &["a"]),
    (r"\w\d\s", "", &["é٣\u{a0}", "_1\u{1c}", "²1 "], &["-1 ", "a² "]),
    (r"\w\d\s", "a", &["_1\t"], &["é1 ", "a٣ ", "a1\u{a0}"]),
    (r"(?a:\w)\w", "", &["aé"], &["éa"]),
    (r"(?u:\w)\w", "a", &["éa"], &["aé"]),
    (r"[]a-c-]+[^]\]]", "", &["]-ab!"], &["]]", "d!"]),
    (r"[\w-]x[a\-c][\b]", "", &["-x-\u{8}", "éxa\u{8}"], &["-xb\u{8}"]),
    (r"[[:alpha:]]", "", &["a]", ":]"], &["b", "b]"]),
    (r"\x41\u00e9\U0001F600\101\0\08\377", "", &["Aé😀A\0\u{0}8ÿ"], &[""]),
    (r"\a\f\n\r\t\v\\\.\-\é", "", &["\u{7}\u{c}\n\r\t\u{b}\\.-é"], &[""]),
    ("a.c", "", &["abc", "a\rc"], &["a\nc"]),
    ("a.c", "s", &["a\nc"], &[]),
    ("^a$", "", &["a"], &["a\n", ""]),
    ("a$\n", "", &["a\n"], &["a", "a\n\n"]),
    ("a$\n^b", "m", &["a\nb"], &["a\n", "ab"]),
    (r"\Aa\Z\n?", "m", &["a"], &["a\n"]),
    (r"a\b.\B-", "", &["a--"], &["a-b", "aa-"]),
    (r"\b\w+\b \Bx?", "", &["a "], &["a x"]),
    (r"é\ba|a\b", "", &["a"], &["éa"]),
    (r"é\ba|a\b", "a", &["a", "éa"], &[]),
    (r"\B", "", &[], &[""]),
    ("(?i)straße[k-l]", "", &["STRAẞE\u{212a}", "ſtraßeL"], &["strasseK"]),
    ("(?i:i)i(?-i:i)", "i", &["İıi", "iIi"], &["iiI"]),
    ("[^k]", "i", &["a"], &["K", "k", "\u{212a}"]),
    ("(?x) a # b\n [ ] \\  | c", "", &["a  ", "c"], &["a", "ab"]),
    ("(?x: a b)(?-x: c)", "", &["ab c"], &["abc"]),
    ("(?#x)a(?#)*(?P<é1>b)(?:c)?+", "", &["b", "aabc"], &["bcc"]),
    ("(?=a.)(?!.b)\\w+(?<=c)(?<!bc)", "", &["ac", "adc"], &["abc", "bc", "acbc"]),
    ("a++b|[ac]*+a|(?>a|ab)c|(?>ab|a)c", "", &["aab", "ac", "abc"], &["aa", "caca"]),
    (
        "(?>a|ab)c|(?>(?:xy)*)x|(?>b?)b|x{1,2}+x",
        "",
        &["ac", "bb", "xyx", "xxx"],
        &["abc", "b", "xx"],
    ),
];

#[test]
fn whole_matches_are_those_of_python() {
    for (pattern, flags, matched, unmatched) in FULL {
        let ast = parse(pattern, &options(flags)).unwrap();
        for (texts, expected) in [(matched, true), (unmatched, false)] {
            for text in texts {
                assert_eq!(matches(&ast, text), expected, "{pattern:?} {text:?}");
            }
        }
    }
}

#[test]
fn searches_are_those_of_python() {
    for (pattern, flags, found, unfound) in [
        ("a$", "", &["a", "ba\n"][..], &["a\n\n", "ab"][..]),
        ("^b$", "m", &["a\nb\nc", "b"], &["ab", "a\nbc"]),
        (r"\bfoo\b", "", &["a foo.", "foo"], &["foob", "éfoo"]),
        (r"\bfoo\b", "a", &["éfoo"], &["_foo"]),
        ("(?<!a)b(?!c)", "", &["b", "cb", "bcb"], &["ab", "bc"]),
        (r"\B", "", &["aa", " "], &["", "a"]),
        ("x?", "", &["", "a"], &[]),
    ] {
        let ast = parse(pattern, &options(flags).searched()).unwrap();
        for (texts, expected) in [(found, true), (unfound, false)] {
            for text in texts {
                assert_eq!(matches(&ast, text), expected, "{pattern:?} {text:?}");
            }
        }
    }
}

#[test]
fn characters_have_the_names_that_are_given() {
    let names = [("EM DASH".to_owned(), '—')];
    let named = PatternOptions { characters: names.into(), ..options("") };
    let ast = parse(r"\N{EM DASH}[\N{EM DASH}a]", &named).unwrap();
    assert!(matches(&ast, "—a") && !matches(&ast, "-a"));
    assert!(parse(r"\N{EN DASH}", &named).is_err());
}

#[test]
fn faults_have_a_kind_and_a_place() {
    use PatternErrorKind::{Invalid, Unsupported};
    let atomic = Unsupported("atomic group or possessive quantifier");
    for (pattern, expected, offset) in [
        ("é(", Invalid, 1),
        ("a)", Invalid, 1),
        ("a**", Invalid, 2),
        ("a{2}{3}", Invalid, 4),
        ("^*", Invalid, 1),
        (r"\b+", Invalid, 2),
        ("|*", Invalid, 1),
        ("a{3,2}", Invalid, 1),
        ("[b-a]", Invalid, 1),
        (r"[\d-z]", Invalid, 1),
        ("[]", Invalid, 0),
        (r"\y", Invalid, 0),
        (r"[\A]", Invalid, 1),
        (r"\x4", Invalid, 0),
        (r"\400", Invalid, 0),
        (r"\1", Invalid, 0),
        (r"\N{x}", Invalid, 0),
        ("a(?i)", Invalid, 1),
        ("(?i", Invalid, 0),
        ("(?L)", Invalid, 0),
        ("(?au:a)", Invalid, 0),
        ("(?-:a)", Invalid, 0),
        ("(?i-i:a)", Invalid, 0),
        ("(?z)", Invalid, 0),
        ("(?<n>a)", Invalid, 0),
        ("(?P<1>a)", Invalid, 0),
        ("(?P<n>a)(?P<n>a)", Invalid, 8),
        ("(?<=a*)b", Invalid, 0),
        ("(?#a", Invalid, 0),
        (r"(a)\1", Unsupported("backreference"), 3),
        ("(?P<n>a)(?P=n)", Unsupported("backreference"), 8),
        ("(a)(?(1)b)", Unsupported("conditional"), 3),
        ("x(?>a*a)b", atomic.clone(), 1),
        ("(?:a|ab)*+b", atomic, 8),
    ] {
        assert_eq!(kind(pattern), (expected, offset), "{pattern}");
    }
}

#[test]
fn hostile_patterns_are_read_or_refused() {
    for (pattern, readable) in [
        ("(".repeat(200) + "a" + &")".repeat(200), true),
        ("(".repeat(100_000), false),
        ("(".repeat(1000) + &")".repeat(1000), false),
        ("(a{1,1000}){1,1000}".into(), true),
        ("(?:".repeat(100) + "a" + &"{1,1000})".repeat(100), true),
        ("(?=".repeat(150) + "a" + &")".repeat(150), true),
        ("(?>".repeat(150) + "a|b" + &")".repeat(150), true),
        ("(?:".repeat(150) + "a|bc" + &")?+".repeat(150), false),
        ("(a+)+$".into(), true),
        ("(?:a|aa)+(?!a)b".into(), true),
        ("a".repeat(1 << 16), true),
        ("a".repeat((1 << 16) + 1), false),
        (r"\w".repeat(1 << 15), false),
        ("(?:".repeat(20_000), false),
        ("a{4294967295}".into(), false),
        ("(?<=".repeat(150) + "a" + &")".repeat(150), true),
        ("|".repeat(1 << 16), true),
    ] {
        for options in [options(""), options("i").searched()] {
            let read = parse(&pattern, &options);
            let shown: String = pattern.chars().take(40).collect();
            assert_eq!(read.is_ok(), readable, "{shown} {:?}", read.err());
        }
    }
}
