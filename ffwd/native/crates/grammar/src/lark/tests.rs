use super::print::printed;
use super::*;
use crate::GrammarErrorKind;

/// The result for a grammar, rule by rule; `!` marks lazy lexemes.
const GRAMMARS: &[(&str, &str)] = &[
    // Strings, ranges, patterns.
    (r#"start: "a" "b""#, r#"start#0: ("a" "b")"#),
    (r#"start: "\n\u00e9\x41\ud83d\ude00\/\\\"""#, r#"start#0: "\néA😀/\\\"""#),
    (r#"start: "ab"i"#, "start#0: ([Aa]·[Bb])"),
    (r#"start: "" | ""i"#, "start#0: ()"),
    (r#"start: "a".."c""#, "start#0: [a-c]"),
    (r"start: /a\/b/", r#"start#0: "a/b""#),
    ("start: /a.b/is", r"start#0: ([Aa]·[\u{0}-\u{d7ff}\u{e000}-\u{10ffff}]·[Bb])"),
    ("start: /a b # c\n/x", r#"start#0: "ab""#),
    ("start: /^ab$/", r#"start#0: "ab""#),
    // Counts and groups.
    (r#"start: "a"? "b"* "c"+"#, r#"start#0: ("a"? "b"* "c"+)"#),
    (r#"start: "a"~2 "b" ~ 2 .. 3"#, r#"start#0: ("a"{2,2} "b"{2,3})"#),
    (r#"start: "a"{2} "b"{2,3} "c"{2,} "d"{,3}"#, r#"start#0: ("a"{2,2} "b"{2,3} "c"{2,} "d"{0,3})"#),
    (r#"start: "a"{0} ["b" "c"] ("d" | )"#, r#"start#0: (() ("b" "c")? ("d" | ()))"#),
    ("start: ", "start#0: ()"),
    // Lines and comments.
    ("start: \"a\" // c\n  # d\n\n | \"b\" # e\r\n\t| (\"c\"\n | \"d\")", r#"start#0: ("a" | "b" | ("c" | "d"))"#),
    // Rules.
    ("?start: a _b -> c\n!a: \"a\"\n_b: start", r#"start#0: (a#1 _b#2) ; a#1: "a" ; _b#2: start#0"#),
    ("start: a->b\na: start \"x\" | \"y\"", r#"start#0: a#1 ; a#1: ((start#0 "x") | "y")"#),
    ("start: \"a\"\nunused: nothing\nUNUSED: UNUSED", r#"start#0: "a""#),
    // Terminals.
    ("start: A A\nA: B? \"b\" | \"c\"\nB: /[0-9]/", r#"start#0: (A#1 A#1) ; A#1: (([0-9]?·"b")|"c")"#),
    ("start: A\nA: /a*/ & ~\"aa\" | \"b\" & \"c\"", r#"start#0: A#1 ; A#1: (("a"*&~"aa")|("b"&"c"))"#),
    ("start: ~(A | \"b\")+\nA: \"a\"", r#"start#0: ~("a"|"b")+"#),
    ("start: A\nA: [\"a\"] (\"b\" \"c\")~2", r#"start#0: A#1 ; A#1: ("a"?·("b"·"c"){2,2})"#),
    ("%import common.INT\n%import common.WS_INLINE -> ws\n%import common (CR, LF)\nstart: INT ws CR LF",
     r#"start#0: (INT#1 ws#2 CR#3 LF#4) ; INT#1: [0-9]+ ; ws#2: [\t ]+ ; CR#3: "\r" ; LF#4: "\n""#),
    (r#"start: %regex {"substring_chunks": ["ab", "", "c"]}"#, r#"start#0: substring["ab", "c"]"#),
    (r#"start: %regex {"substring_words": "a b"}"#, r#"start#0: substring["a", " ", "b"]"#),
    ("start: A\nA: %regex {\"substring_chars\": \"ab\"} \"!\"", r#"start#0: A#1 ; A#1: (substring["a", "b"]·"!")"#),
    // What is ignored.
    ("%ignore / +/\nstart: \"a\" <x> \"\" %json {} A\nA: \"b\"",
     r#"start#0: (("a" " "+*) (<<x>> " "+*) () (json{} " "+*) A#1) ; A#1: ("b" " "+*)"#),
    ("%ignore /x/\n%ignore Y\nY: \"y\"\nstart: \"a\"", r#"start#0: ("a" ("x"|"y")*)"#),
    ("%grammar_options {\"allow_initial_skip\": true, \"no_forcing\": true}\n%ignore / +/\nstart: \"a\"",
     r#"start#0: ("a" " "+*) ; = (" "+* start#0)"#),
    ("start: a \"c\"\na[max_chars=2]: /[ab]*/", r#"start#0: (a#1 "c") ; a#1: [a-b]{0,2}"#),
    ("%llguidance {\"allow_initial_skip\": true, \"no_forcing\": true}\n%ignore / +/\nstart: \"a\"",
     r#"start#0: ("a" " "+*) ; = (" "+* start#0)"#),
    ("%llguidance {\"ignore_once\": true}\n%ignore / +/\nstart: \"a\"", r#"start#0: ("a" " "+?)"#),
    ("%llguidance {\"skip_repetition\": \"once\"}\n%llguidance {}\n%ignore / +/\nstart: \"a\"", r#"start#0: ("a" " "+?)"#),
    // Special tokens.
    ("start: <|a|> </b> <[1]> <[1,3-5]>", "start#0: (<<|a|>> <</b>> <1-1> <1-1,3-5>)"),
    ("start: <[^1,3-5]> <[*]>", "start#0: (<^1-1,3-5> <^>)"),
    // Nested grammars.
    ("start: \"a\" %lark {\n  start: b\n  b: \"}\" // }\n} b\nb: \"c\"",
     r#"start#0: ("a" start#1 b#3) ; start#1: b#2 ; b#2: "}" ; b#3: "c""#),
    ("%ignore / /\nstart: %lark { start: \"a\" } %lark { start: \"b\"\n%ignore / / }",
     r#"start#0: ((start#1 " "*) (start#2 " "*)) ; start#1: "a"@1 ; start#2: ("b" " "*)"#),
    ("start: %json\n{\"a\": [\"}\"]} \"b\"", r#"start#0: (json{"a": ["}"]} "b")"#),
    ("start: %json true | %json {} ", "start#0: (jsontrue | json{})"),
    // Attributes.
    ("start: a b\na[capture]: b\nb[capture=\"c\"]: \"b\"", r#"start#0: (a#1 b#2) ; a#1: {a: b#2} ; b#2: {c: "b"}"#),
    ("%ignore / /\nstart: a\na[lazy, capture]: /b+/ \"c\"", r#"start#0: a#1 ; a#1: ({a: ("b"+·"c")!} " "*)"#),
    ("start: a\na[suffix=X, stop_capture=\"s\", capture]: /b*/\nX: \"x\"", r#"start#0: a#1 ; a#1: {a-"x": {s+"x": ("b"*·"x")!}}"#),
    ("start: a b\na[suffix=\"\"]: /a*/\nb[stop=\"\"]: /b*/", r#"start#0: (a#1 b#2) ; a#1: "a"* ; b#2: "b"*"#),
    ("start: a \"xy\" a X a \"z\"\na[stop=\"x\"]: /a*/\nX: \"x\"", r#"start#0: (a#1 "y" a#1 a#1 "z") ; a#1: ("a"*·"x")!"#),
    ("%ignore / /\nstart: a\na[max_tokens=3]: B \"c\"\nB: \"b\"", r#"start#0: a#1 ; a#1: (("b"·"c")<=3 " "*)"#),
    ("start: a\na[max_tokens=3]: b\nb: \"b\"", r#"start#0: a#1 ; a#1: b#2<=3 ; b#2: "b""#),
    ("start: a\na[max_tokens=3, capture]: %json {}", "start#0: a#1 ; a#1: {a: json{}<=3}"),
    ("start: a\na[max_tokens=0]: /b+/", "start#0: a#1 ; a#1: ()"),
    ("start: a\na[temperature=0.5]: \"b\" \"c\"", r#"start#0: a#1 ; a#1: ("b"·"c")"#),
    // Rules with a parameter.
    ("start: p::0x0f\np::_: \"\" %if is_ones([0:3]) | \"a\" p::set_bit(0) %if bit_clear(0) | p::_ -> x %if true",
     r#"start#0: p#1::15 ; p#1: ([[0+3] == 7 => ()] | [clear(0) => ("a" p#1::set(0))] | p#1::_)"#),
    ("start: p::18446744073709551615\np::_[capture]: p::incr([1:4]) p::decr(_) p::clear_bit(2) p::bit_and(3) p::bit_or(0x4)",
     r#"start#0: p#1::18446744073709551615 ; p#1: {p: (p#1::incr[1+3] p#1::decr[0+64] p#1::clear(2) p#1::and(3) p#1::or(4))}"#),
    ("start: p::0\np::_: \"a\" %if and(or(lt(_, 20), ge([0:2], 1)), not(bit_set(3))) | \"b\" %if bit_count_ne([0:4], 2)",
     r#"start#0: p#1::0 ; p#1: ([and(or([0+64] < 20, [0+2] >= 1), not(set(3))) => "a"] | [count[0+4] != 2 => "b"])"#),
    // Templates.
    ("start: _sep{INT, \",\"} _sep{INT, \",\"} _sep{a, \";\"}\n_sep{item, by}: item (by item)*\na: \"a\"\n%import common.INT",
     r#"start#0: (_sep#2 _sep#2 _sep#4) ; INT#1: [0-9]+ ; _sep#2: (INT#1 ("," INT#1)*) ; a#3: "a" ; _sep#4: (a#3 (";" a#3)*)"#),
    ("start: t{\"a\"}\nt{x}: x | \"(\" t{x} \")\"", r#"start#0: t#1 ; t#1: ("a" | ("(" t#1 ")"))"#),
    ("start: t{u{\"a\"}, \"b\"+}\nt{x, y}: x y\nu{x}: x x", r#"start#0: t#2 ; u#1: ("a" "a") ; t#2: (u#1 "b"+)"#),
    ("start: t{\"a\"}{2}\nt{x}: x", r#"start#0: t#1{2,2} ; t#1: "a""#),
];

#[test]
fn grammars_become_rules() {
    for (text, expected) in GRAMMARS {
        let found = parse(text).map(|grammar| printed(&grammar).replace('\n', " ; "));
        assert_eq!(found.as_deref(), Ok(*expected), "{text}");
    }
}

fn kind(kind: &GrammarErrorKind) -> &'static str {
    match kind {
        GrammarErrorKind::Syntax => "syntax",
        GrammarErrorKind::Pattern => "pattern",
        GrammarErrorKind::Unsupported(_) => "unsupported",
        GrammarErrorKind::UnknownRule => "unknown",
        GrammarErrorKind::RepeatedRule => "repeated",
        GrammarErrorKind::Limit(_) => "limit",
        _ => "other",
    }
}

/// What is wrong with a grammar, and where.
const FAULTS: &[(&str, &str)] = &[
    ("", "unknown 1:1"),
    ("START: \"a\"", "unknown 1:1"),
    ("start: a", "unknown 1:8"),
    ("start: A", "unknown 1:8"),
    ("start: \"é\" a\na: \"b\" | A", "unknown 2:10"),
    ("start: A\nA: B\nB: C", "unknown 3:4"),
    ("start: \"a\"\nstart: \"b\"", "repeated 2:1"),
    ("%import common.INT\nINT: \"1\"\nstart: INT", "repeated 2:1"),
    ("start: A\nA: B\nB: \"b\" | A", "unsupported 3:10"),
    ("start: A\nA: a\na: \"a\"", "syntax 2:4"),
    ("start: A\nA: <x>", "syntax 2:4"),
    ("start: A\nA: %json {}", "syntax 2:4"),
    ("start: A\nA: @x", "syntax 2:4"),
    ("start: A\nA: %lark { start: \"a\" }", "syntax 2:4"),
    // Tokens of the text.
    ("start: \"a", "syntax 1:8"),
    ("start: \"a\n\"", "syntax 1:8"),
    ("start: \"\\q\"", "syntax 1:9"),
    ("start: \"ab\\ud800\"", "syntax 1:11"),
    ("start: \"ab\\u12\"", "syntax 1:11"),
    ("start: \"\t\"", "syntax 1:9"),
    ("start: \"a\"x", "syntax 1:11"),
    ("start: 'a'", "syntax 1:8"),
    ("start: é", "syntax 1:8"),
    ("start: \"a\";", "syntax 1:11"),
    ("start: \"a\"\rx", "syntax 1:11"),
    ("start: Abc", "syntax 1:8"),
    ("start: __a", "syntax 1:8"),
    ("start: @", "syntax 1:8"),
    ("start: <a b>", "syntax 1:8"),
    ("start: <>", "syntax 1:8"),
    ("%foo\nstart: \"a\"", "syntax 1:1"),
    // Patterns.
    ("start: /a", "syntax 1:8"),
    ("start: /a/q", "syntax 1:11"),
    ("start: /a/l", "unsupported 1:9"),
    ("start: /a/ii", "pattern 1:9"),
    ("start: /éb[/", "pattern 1:11"),
    ("start: /éb[/i", "pattern 1:11"),
    ("start: /a\\bc/", "unsupported 1:10"),
    ("start: /a(?=b)/", "unsupported 1:10"),
    ("start: /(a)\\1/", "unsupported 1:12"),
    ("start: /^a/m", "unsupported 1:9"),
    // Structure.
    ("start \"a\"", "syntax 1:7"),
    ("start: (\"a\"", "syntax 1:12"),
    ("start: (\"a\"\n\"b\")", "syntax 1:12"),
    ("start: [\"a\")", "syntax 1:12"),
    ("start: \"a\")", "syntax 1:11"),
    ("start: \"a\" |\n\"b\"", "syntax 2:1"),
    ("start: \"a\" -> B", "syntax 1:15"),
    ("start: \"a\" & \"b\"", "unsupported 1:8"),
    ("start: ~~\"a\"", "syntax 1:9"),
    ("start: * \"a\"", "syntax 1:8"),
    ("start: \"a\"+?", "syntax 1:12"),
    ("start: \"a\"{3,2}", "syntax 1:11"),
    ("start: \"a\"{2", "syntax 1:13"),
    ("start: \"a\"~-1", "syntax 1:12"),
    ("start: \"a\"{1.5}", "syntax 1:12"),
    ("start: \"a\"{2147483648}", "syntax 1:12"),
    ("start: \"ab\"..\"c\"", "syntax 1:8"),
    ("start: \"a\"..\"\"", "syntax 1:13"),
    ("start: \"c\"..\"a\"", "syntax 1:8"),
    ("start: \"a\"..\"c\"i", "syntax 1:8"),
    ("start.1: \"a\"", "unsupported 1:6"),
    ("?A: \"a\"\nstart: A", "syntax 1:2"),
    // Directives.
    ("%import common.FOO\nstart: \"a\"", "unknown 1:1"),
    ("%import common (INT, FOO)\nstart: \"a\"", "unknown 1:22"),
    ("%import python.NAME\nstart: \"a\"", "unsupported 1:1"),
    ("%override a: \"a\"", "unsupported 1:1"),
    ("%extend a: \"a\"", "unsupported 1:1"),
    ("%declare\nstart: \"a\"", "syntax 1:9"),
    ("%declare A\nstart: A", "unknown 2:8"),
    ("start: @a", "unknown 1:8"),
    ("start: %json {\n  \"a\" 1}", "syntax 2:7"),
    ("start: %json", "syntax 1:13"),
    ("start: %regex {\"a\": 1}", "syntax 1:8"),
    ("start: %regex {\"substring_chars\": \"a\", \"substring_words\": \"b\"}", "syntax 1:8"),
    ("start: %lark {\n  start: a\n}", "unknown 2:10"),
    ("start: %lark {\n  a: \"a\"\n}", "unknown 1:8"),
    ("start: %lark {\n  start: \"a\"", "syntax 2:13"),
    ("%llguidance {\"other\": 1}\nstart: \"a\"", "unsupported 1:13"),
    ("%llguidance {\"allow_invalid_utf8\": true}\nstart: \"a\"", "unsupported 1:13"),
    ("%llguidance {\"no_forcing\": 1}\nstart: \"a\"", "syntax 1:13"),
    ("%llguidance []\nstart: \"a\"", "syntax 1:13"),
    // Special tokens.
    ("start: <[]>", "syntax 1:8"),
    ("start: <[^*]>", "syntax 1:8"),
    ("start: <[1,*]>", "syntax 1:8"),
    ("start: <[2-1]>", "syntax 1:8"),
    ("start: <[4294967296]>", "syntax 1:8"),
    // Attributes.
    ("start: a\na[other]: \"a\"", "syntax 2:3"),
    ("start: a\na[capture=x]: \"a\"", "syntax 2:11"),
    ("start: a\na[max_tokens=-1]: \"a\"", "syntax 2:14"),
    ("start: a\na[max_chars=-1]: \"a\"", "syntax 2:13"),
    ("start: a\na[max_chars=4]: \"a\" b\nb: \"b\"", "unsupported 2:1"),
    ("start: a\na[max_chars=4, suffix=\"b\"]: \"a\"", "unsupported 2:26"),
    ("start: a\na[lazy, lazy]: \"a\"", "syntax 2:9"),
    ("start: a\na[capture, capture=\"b\"]: \"a\"", "syntax 2:12"),
    ("start: a\na[capture, max_tokens=1, capture]: \"a\"", "syntax 2:26"),
    ("start: a\na[max_tokens=3, max_tokens=3]: \"a\"", "syntax 2:17"),
    ("start: a\na[max_chars=3, max_chars=3]: \"a\"", "syntax 2:16"),
    ("start: a\na[temperature=1, temperature=1]: \"a\"", "syntax 2:18"),
    ("start: a\na[suffix=\"b\", suffix=\"b\"]: \"a\"", "syntax 2:15"),
    ("start: a\na[suffix=\"b\", stop_capture=\"s\", stop_capture=\"s\"]: \"a\"", "syntax 2:33"),
    ("start: a\na[temperature=x]: \"a\"", "syntax 2:15"),
    ("start: a\na[stop=\"a\", suffix=\"b\"]: \"a\"", "syntax 2:13"),
    ("start: a\na[stop_capture=\"a\"]: \"a\"", "syntax 2:19"),
    ("start: a\na[lazy]: b\nb: \"a\"", "syntax 2:10"),
    ("start: a\na[suffix=<x>]: \"a\"", "syntax 2:10"),
    ("start: A\nA[lazy]: \"a\"", "syntax 2:2"),
    ("%ignore / /\nstart: a \"xy\"\na[stop=\"x\"]: /a*/", "unsupported 2:10"),
    // Rules with a parameter.
    ("start: p\np::_: \"a\" %if bit_set(0)", "syntax 1:8"),
    ("start: p::0\np: \"a\"", "syntax 1:8"),
    ("start: p::_\np::_: \"a\"", "syntax 1:8"),
    ("start: p::incr(_)\np::_: \"a\"", "syntax 1:8"),
    ("start: \"a\" %if bit_set(0)", "syntax 1:12"),
    ("start::_: \"a\"", "syntax 1:1"),
    ("start: p::0\np::_: \"a\" %if other(1)", "syntax 2:15"),
    ("start: p::other(0)\np::_: \"a\"", "syntax 1:11"),
    ("start: p::set_bit(64)\np::_: \"a\"", "syntax 1:19"),
    ("start: p::incr([3:3])\np::_: \"a\"", "syntax 1:19"),
    ("start: p::18446744073709551616\np::_: \"a\"", "syntax 1:11"),
    ("start: p::0\np::_[lazy]: \"a\"", "unsupported 2:10"),
    ("start: A\nA: \"a\" %if bit_set(0)", "syntax 2:8"),
    // Templates.
    ("start: t\nt{x}: x", "syntax 1:8"),
    ("start: t{\"a\"}\nt: \"b\"", "syntax 1:8"),
    ("start: t{\"a\", \"b\"}\nt{x}: x", "syntax 1:8"),
    ("start: t{\"a\"}\nt{x, x}: x", "syntax 2:6"),
    ("start: T{\"a\"}\nT{X}: X", "syntax 1:9"),
    ("start: \"a\"\nT{X}: X", "unsupported 2:2"),
];

#[test]
fn faults_have_a_kind_and_a_place() {
    for (text, expected) in FAULTS {
        let error = match parse(text) {
            Ok(grammar) => panic!("{text}: {}", printed(&grammar)),
            Err(error) => error,
        };
        let found = format!("{} {}:{}", kind(&error.kind), error.line(), error.column());
        assert_eq!(&found, expected, "{text}: {error}");
    }
}

#[test]
fn faults_are_shown_with_a_caret() {
    let error = parse("start: a\na: \"é\" b").unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no rule or terminal `b` (Lark, line 2, column 8)\n  a: \"é\" b\n         ^"
    );
}

#[test]
fn other_grammars_are_included_once() {
    let number = parse("start: /[0-9]+/ \"!\"").unwrap();
    let others = Grammars::from_iter([("number", &number), ("NUMBER", &number)]);
    let text = "%declare NUMBER\n%ignore / /\nstart: @number | @number \"a\" | NUMBER";
    let grammar = parse_with(text, &others).unwrap();
    assert_eq!(
        printed(&grammar),
        "start#0: ((start#1 \" \"*) | ((start#1 \" \"*) (\"a\" \" \"*)) | (start#2 \" \"*))\n\
         start#1: ([0-9]+@1 \"!\"@1)\nstart#2: ([0-9]+@2 \"!\"@2)"
    );
}

#[test]
fn common_terminals_are_those_of_lark() {
    use ffwd_regular::regex::{oracle::matches, rust_dialect::anchored};
    for (name, yes, no) in [
        ("DECIMAL", &["1.", ".5", "1.5"][..], &["1", ".", "1e5"][..]),
        ("FLOAT", &["1.", ".5e-3", "1e5", "1.5E+2"], &["1", ".", "e5"]),
        ("SIGNED_FLOAT", &["-1.", "+1e5"], &["-1", "--1."]),
        ("NUMBER", &["1", "1.", ".5", "1e5", "1.5e5"], &["-1", ".", ""]),
        ("SIGNED_NUMBER", &["1", "-1.", "+.5", "-1e5"], &["+-1", "e"]),
        ("_EXP", &["e5", "E-10"], &["e", "5"]),
        (
            "ESCAPED_STRING",
            &[r#""a""#, r#""\"""#, "\"\n\"", r#""""#],
            &["\"", r#""a"b""#, "\"\\\n\""],
        ),
        ("C_COMMENT", &["/**/", "/* a * / **/", "/***/"], &["/*/", "/* */ */"]),
        ("CNAME", &["_a1", "a"], &["1a", "é", ""]),
        ("WS", &[" \t\r\n\u{c}"], &["\u{b}", ""]),
        ("NEWLINE", &["\n", "\r\n\n"], &["\r", ""]),
        ("SQL_COMMENT", &["-- a"], &["- a", "-- a\n"]),
    ] {
        let language = anchored(common::pattern(name).unwrap()).unwrap();
        for text in yes {
            assert!(matches(&language, text), "{name} {text:?}");
        }
        for text in no {
            assert!(!matches(&language, text), "{name} {text:?}");
        }
    }
    for name in common::names().split(", ") {
        assert!(parse(&format!("%import common.{name}\nstart: {name}")).is_ok(), "{name}");
    }
}

#[test]
fn grammars_of_the_documentation_are_accepted() {
    let document = include_str!("../../../../../../docs/lark.md");
    let mut examples = document.split("```lark\n").skip(1);
    let read = |example: &str| parse(example.split("```").next().unwrap_or_default());
    assert!(examples.all(|example| read(example).is_ok()));
    assert_eq!(document.matches("```lark\n").count(), 4);
}
