//! Grammars with texts that they have and have not, and grammars that are refused.

use super::parse;
use crate::fold::fold_regular;
use crate::oracle::{accepts, token};
use crate::{Grammar, GrammarErrorKind, Node, SpanKind};

/// A grammar, texts of it, and texts that are none.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const SYNTAX: &[Case] = &[
    (r#"root ::= "a""#, &["a"], &["", "b"]),
    ("# first\n root # name\n ::= \"a\"\n\n \"b\" # last", &["ab"], &["a"]),
    ("root ::= \"a\"\n | \"b\" # comment\n | \"c\"\nx ::= \"d\"", &["a", "b", "c"], &["d", ""]),
    (r#"root ::= "" | ()"#, &[""], &["a"]),
    (r#"root ::= "a" ( ) "b""#, &["ab"], &["a"]),
    (
        r#"root ::= "\x41\u00e9\U0001F600\x1F600\x20\n\t\0\e\?\'\/\"\\""#,
        &["Aé😀😀 \n\t\0\u{1b}?'/\"\\"],
        &["A"],
    ),
    (r#"root ::= "\x4142""#, &["\u{4142}"], &["A42"]),
    (r#"root ::= [a-c-]"#, &["a", "c", "-"], &["d", ""]),
    (r#"root ::= [--/]"#, &["-", ".", "/"], &[",", "0"]),
    (r#"root ::= [\^\$\.\*\]\-a\x62]"#, &["^", "$", ".", "*", "]", "-", "a", "b"], &["c", "\\"]),
    (r#"root ::= [a^] [^a]"#, &["a^", "^b"], &["aa", "b^"]),
    (r#"root ::= []"#, &[], &["", "a", "]"]),
    (r#"root ::= [^]+"#, &["a\né"], &[""]),
    (r#"root ::= "a"* "b"+ "c"?"#, &["b", "aabbc"], &["", "a", "bcc"]),
    (r#"root ::= "ab"{2}"#, &["abab"], &["ab", "abb"]),
    (r#"root ::= "a" { 2 , 3 }"#, &["aa", "aaa"], &["a", "aaaa"]),
    (r#"root ::= "a"{2,} "b"{1,-1}"#, &["aab", "aaabb"], &["ab", "aa"]),
    (r#"root ::= "a"{0} ("b"+)?"#, &["", "bb"], &["a"]),
    ("root ::= a.b-c_1 _\na.b-c_1 ::= \"x\"\n_ ::= \"y\"", &["xy"], &["x"]),
    ("root ::= root \"a\" | \"b\"", &["b", "baa"], &["", "ab"]),
    ("root ::= a[b-c]\na ::= \"x\"", &["xb"], &["x", "b"]),
    // Lookahead assertions are promises: they change nothing.
    ("root ::= r \"b\"\nr ::= \"a\" (= \"c\")", &["ab"], &["ac", "a"]),
    ("root ::= r [bc]\nr ::= \"a\" (= \"c\" x | ())\nx ::= \"d\"", &["ab", "ac"], &["a"]),
    ("root ::= \"a\" (=\"b\")", &["a"], &["ab"]),
    // Options.
    ("root ::= x [0-9]*\nx[lazy] ::= [a-z]+", &["a", "a12"], &["ab", "ab1"]),
    ("root ::= x [0-9]*\nx[lazy] ::= [a-z]*", &["", "12"], &["a", "a1"]),
    (
        "root ::= x [b0-9]*\nx[lazy] ::= \"a\" | \"ab\" | \"cd\"",
        &["a", "ab", "abb", "cd1"],
        &["cdb?"],
    ),
    ("root ::= x [0-9!]*\nx[ lazy ] ::= y \"!\"\ny ::= [a-z]*", &["!", "ab!!1"], &["ab"]),
    ("root ::= x \"!\"\nx[max_chars=2] ::= [a-z]*", &["!", "ab!"], &["abc!"]),
    ("root ::= x \"!\"\nx[max_chars=3] ::= (\"ab\")*", &["!", "ab!", "abab!"], &["ababab!"]),
    ("root ::= x \"!\"\nx[max_chars=0] ::= [a-z]+", &["a!"], &["ab!", "!"]),
    (
        "root ::= x \"!\"\nx[max_chars=2] ::= \"a\" | \"abcd\" | \"ab\" | \"abc\"",
        &["a!", "ab!"],
        &["abc!", "abcd!"],
    ),
    (
        "root[capture] ::= x\nx[capture=\"it]\", max_chars=2] ::= [a-z]{1,3}",
        &["a", "ab"],
        &["abc", ""],
    ),
    // Macros.
    (r#"root ::= Regex("a.c|\\d{2}")"#, &["abc", "a\nc", "12"], &["a", "abcd", "1"]),
    (r#"root ::= "x" Regex("a.", flags="iu") "y""#, &["xaby", "xABy"], &["xa\ny"]),
    (r#"root ::= Regex("a.", flags="si")"#, &["A\n"], &["a"]),
    (r#"root ::= Regex("(?i)ab|c.")"#, &["aB", "C\n"], &["c", "a"]),
    (r#"root ::= Regex("(?i)[(?P<]x", flags="i")"#, &["(X", "px", "?x"], &["x"]),
    (
        r#"root ::= Regex("(?P<n>ab)c(?<m>\\(?P<o>d|)(?:[(?P<n>])")"#,
        &["abc<", "abcP<o>dn", "abc(P<o>d("],
        &["abcd", "ab<"],
    ),
    (r#"root ::= Regex(".+", json_string=true)"#, &["aé"], &["\"", "\\", "\n", ""]),
    (
        r#"root ::= "x" Substring("ab", "", "c", "ab") "y""#,
        &["xy", "xaby", "xcy", "xabcaby"],
        &["xacy", "xbcy"],
    ),
    ("root ::= Substring()", &[""], &["a"]),
    (
        "root ::= TagDispatch((\"<a>\", r))\nr ::= \"q\"",
        &["", "xx", "<a>q", "x<a>qy<<a>q", "<", "<a"],
        &["<a>", "<a>z"],
    ),
    (
        "root ::= TagDispatch((\"<a>\", r), loop_after_dispatch=false)\nr ::= \"q\"",
        &["", "x<a>q"],
        &["<a>qz", "<a>"],
    ),
    (
        "root ::= TagDispatch((\"<a>\", r), excludes=(\"zz\", \"<ab\",))\nr ::= \"q\"",
        &["", "z", "azb", "<a>q"],
        &["zz", "azz", "<a>qzz", "<ab"],
    ),
    (
        "root ::= \"(\" TagDispatch((\"ab\", r)) \")\"\nr ::= \"q\"",
        &["()", "(a)", "(abq)"],
        &["(ab)", ")"],
    ),
    // A tag within another one: both may begin something.
    (
        "root ::= TagDispatch((\"<\", r), (\"<b\", q))\nr ::= \"q\"\nq ::= \"x\"",
        &["<q", "<bx", "a<bx<q"],
        &["<", "<b", "<c"],
    ),
    (
        "root ::= TagDispatch((\"ab\", r), (\"xabc\", q))\nr ::= \"q\"\nq ::= \"x\"",
        &["xabq", "xabcx", "abq", "xa"],
        &["xab", "xabz", "xabc"],
    ),
    ("root ::= TagDispatch((\"aa\", r))\nr ::= \"b\"", &["aab", "a", "aaba"], &["aaab", "aa"]),
    (
        "root ::= TagDispatch((\"ab\", r), excludes=(\"bc\"))\nr ::= \"c\"",
        &["abc", "b"],
        &["bc", "abcbc"],
    ),
    ("root ::= TagDispatch(excludes=(\"b\",)) \"b\"", &["b", "aab"], &["bb", "a"]),
];

const KINDS: &[Case] = &[
    (
        r##"
        root    ::= array | object
        any     ::= number | string | "true" | "false" | "null" | array | object
        integer ::= ("0" | "-"? [1-9] [0-9]*)
        number  ::= integer ("." [0-9]+)? ([eE] [+-]? [0-9]+)?
        string  ::= ["] chars
        chars   ::= ["] | [^"\\\x00-\x1F] chars | "\\" escape chars (= [ \n\t]* [,:}\]])
        escape  ::= ["\\/bfnrt] | "u" [A-Fa-f0-9]{4}
        array   ::= "[" ("" | ws any (ws "," ws any)*) ws "]"
        object  ::= "{" ("" | ws string ws ":" ws any (ws "," ws string ws ":" ws any)*) ws "}"
        ws      ::= [ \n\t]*
        "##,
        &["[]", r#"{"a": [1, -1.5e+3, "x\u00e9\n"], "b": {} }"#, "[null\n]"],
        &["1", r#"{"a" 1}"#, r#"[01]"#, r#"["\x"]"#, "[\"\n\"]"],
    ),
    (
        "root ::= expr (\"=\" expr)*\nexpr ::= term ([-+*/] term)*\nterm ::= num | \"(\" expr \")\"\n\
         num ::= [0-9]+",
        &["1+2", "(3*4)-5=7", "2=2=2"],
        &["", "1+", "(1"],
    ),
];

fn parsed(text: &str) -> Grammar {
    parse(text, "root").unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn texts_are_those_of_the_grammar_folded_or_not() {
    for &(text, valid, invalid) in SYNTAX.iter().chain(KINDS) {
        let plain = parsed(text);
        let mut folded = plain.clone();
        fold_regular(&mut folded).unwrap();
        for (name, grammar) in [("plain", &plain), ("folded", &folded)] {
            for &example in valid {
                assert!(accepts(grammar, example), "{name} {text:?} must have {example:?}");
            }
            for &example in invalid {
                assert!(!accepts(grammar, example), "{name} {text:?} must not have {example:?}");
            }
        }
    }
}

#[test]
fn tokens_are_by_id() {
    let [one, two, three] = [token(1), token(2), token(3)];
    for (text, valid, invalid) in [
        (
            "root ::= Token(1, 2) \"a\"",
            vec![format!("{one}a"), format!("{two}a")],
            vec![format!("{three}a")],
        ),
        (
            "root ::= ExcludeToken(1, 2)*",
            vec![String::new(), format!("{three}{three}")],
            vec![two.into()],
        ),
        (
            "root ::= TokenTagDispatch((1, r), excludes=(2,))\nr ::= \"q\"",
            vec![String::new(), format!("{three}{one}q{three}{one}q"), three.into()],
            vec![one.into(), two.into(), format!("{one}q{two}")],
        ),
        (
            "root ::= TokenTagDispatch((1, r), (2, r), loop_after_dispatch=false)\nr ::= \"q\"",
            vec![String::new(), format!("{three}{one}q"), format!("{two}q")],
            vec![one.into(), format!("{one}q{three}")],
        ),
        ("root ::= TokenTagDispatch()", vec![format!("{one}{two}")], vec!["a".to_owned()]),
    ] {
        let grammar = parsed(text);
        valid.iter().for_each(|example| assert!(accepts(&grammar, example), "{text}: {example:?}"));
        for example in invalid {
            assert!(!accepts(&grammar, &example), "{text}: {example:?}");
        }
    }
}

#[test]
fn options_are_limits_and_captures() {
    let grammar = parsed("root ::= x x\nx[max_tokens=3, capture=\"y\", lazy] ::= \"a\"+");
    let rule = &grammar.rules[0];
    assert_eq!(&*rule.name, "x");
    let Node::Span(span, inner) = *grammar.node(rule.body.unwrap()) else { panic!() };
    let span = &grammar.spans[span.0 as usize];
    assert_eq!((span.kind, &*span.name), (SpanKind::Capture, "y"));
    let Node::Limit { max_tokens, inner } = *grammar.node(inner) else { panic!() };
    assert_eq!(max_tokens, 3);
    assert!(matches!(grammar.node(inner), Node::Lexeme(_)));
}

#[test]
fn a_lazy_rule_may_use_another() {
    let text =
        "root ::= outer [ab!]*\nouter[lazy] ::= \"<\" inner \"!\"\ninner[lazy] ::= \"a\" | \"ab\"";
    let grammar = parsed(text);
    assert!(accepts(&grammar, "<a!!") && !accepts(&grammar, "<ab!"));
}

/// A grammar that is refused, the line and the column, and a part of the message.
type Refused = (&'static str, usize, usize, &'static str);

const REFUSED: &[Refused] = &[
    ("", 1, 1, "no rules"),
    ("x ::= \"a\"", 1, 1, "is not defined; the grammar has `x`"),
    ("root ::= x", 1, 10, "the rule `x` is not defined"),
    ("root ::= \"a\"\nroot ::= \"b\"", 2, 1, "defined twice, first in line 1"),
    ("root ::= | \"a\"", 1, 10, "the empty text is written \"\""),
    ("root ::= \"a\" |", 1, 15, "the empty text is written \"\""),
    ("root ::=", 1, 9, "the grammar ends"),
    ("root ::= \nb ::= \"a\"", 2, 1, "the empty text is written"),
    ("root ::= \"a\" b ::= \"c\"", 1, 14, "line of its own"),
    ("root ::= (\"a\"\nb ::= \"c\"", 1, 10, "not closed by )"),
    ("root ::= \"a\")", 1, 13, "closes nothing"),
    ("root = \"a\"", 1, 6, "::= must follow"),
    ("1r ::= \"a\"", 1, 1, "a rule must begin here"),
    ("true ::= \"a\"", 1, 1, "cannot be the name"),
    ("root ::= true", 1, 10, "no rule"),
    ("root ::= 5", 1, 10, "'5' was found"),
    ("root ::= \"a\";", 1, 13, "';' was found"),
    ("root ::= 'a'", 1, 10, "a string"),
    ("root ::= .", 1, 10, "the rule `.` is not defined"),
    ("root ::= \"a", 1, 10, "no closing \""),
    ("root ::= \"a\nb\"", 1, 10, "does not end in its line"),
    ("root ::= [a-z", 1, 10, "no closing ]"),
    ("root ::= [a\n]", 1, 10, "does not end in its line"),
    ("root ::= [z-a]", 1, 11, "write its lower end first"),
    ("root ::= [\\d]", 1, 11, "write its characters"),
    ("root ::= \"\\q\"", 1, 11, "\\q is no escape"),
    ("root ::= \"\\$\"", 1, 11, "\\$ is no escape"),
    ("root ::= \"\\xZZ\"", 1, 11, "1 hexadecimal"),
    ("root ::= \"\\xfffffffff\"", 1, 11, "no such character"),
    ("root ::= \"\\ud800\"", 1, 11, "surrogate"),
    ("root ::= \"a\"+?", 1, 14, "needs brackets"),
    ("root ::= * \"a\"", 1, 10, "nothing stands before"),
    ("root ::= \"a\"{,3}", 1, 14, "a number must stand here"),
    ("root ::= \"a\"{3,-2}", 1, 16, "a number must stand here"),
    ("root ::= \"a\"{3,2}", 1, 13, "the counts `{3,2}` are out of order"),
    ("root ::= \"a\"{99999999999}", 1, 14, "repetition_count"),
    ("root ::= (= \"b\")", 1, 10, "a string"),
    ("root ::= (\"a\" (= \"b\"))", 1, 15, "a rule of its own"),
    ("root ::= \"a\" (= \"b\") \"c\"", 1, 22, "the next rule must begin here"),
    ("root ::= \"a\" (= nope)", 1, 17, "the rule `nope` is not defined"),
    ("root ::= \"a\" (= \"b\"", 1, 14, "not closed by )"),
    ("root[] ::= \"a\"", 1, 6, "no option of a rule"),
    ("root[foo] ::= \"a\"", 1, 6, "no option of a rule"),
    ("root[lazy, lazy] ::= \"a\"", 1, 12, "given twice"),
    ("root[max_tokens] ::= \"a\"", 1, 16, "needs a number"),
    ("root[max_tokens=0] ::= \"a\"", 1, 17, "at least 1"),
    ("root[capture=\"\"] ::= \"a\"", 1, 14, "the name of a capture"),
    ("root[lazy max_chars=1] ::= \"a\"", 1, 11, "a comma or ]"),
    ("root[temperature=0.5] ::= \"a\"", 1, 6, "the temperature of a rule: not supported"),
    ("root ::= x\nx[lazy] ::= \"a\" x | \"b\"", 2, 1, "not regular"),
    ("root ::= x\nx[max_chars=3] ::= Token(1)", 2, 1, "not regular"),
    ("root ::= x\nx[lazy] ::= y\ny[capture] ::= \"a\"", 2, 1, "neither capture nor"),
    ("root ::= Token", 1, 15, "is a macro"),
    ("root ::= Token()", 1, 10, "needs the id"),
    ("root ::= Token(\"<think>\")", 1, 16, "whole number"),
    ("root ::= Token(-1)", 1, 16, "whole number"),
    ("root ::= Token(1 2)", 1, 18, "a comma or )"),
    ("root ::= Token(1,)", 1, 18, "a string, a number"),
    ("root ::= Token(1, 99999999999)", 1, 19, "32 bits"),
    ("root ::= Token(1, x=2)", 1, 21, "no named ones"),
    ("root ::= Token((((((((((((((((((1))))))))))))))))))", 1, 32, "macro_nesting"),
    ("root ::= ExcludeToken((1, 2))", 1, 23, "whole number"),
    ("root ::= TagDispatch(\"a\")", 1, 22, "pairs"),
    ("root ::= TagDispatch((\"a\", \"b\"))", 1, 28, "the name of a rule"),
    ("root ::= TagDispatch((1, root))", 1, 23, "not empty"),
    ("root ::= TagDispatch((\"\", root))", 1, 23, "not empty"),
    ("root ::= TagDispatch((\"a\", x))", 1, 28, "the rule `x` is not defined"),
    ("root ::= TagDispatch((\"xab\", root), excludes=(\"ab\",))", 1, 23, "can never come"),
    ("root ::= TagDispatch(loop=true)", 1, 27, "it has loop_after_dispatch and excludes"),
    ("root ::= TagDispatch(loop_after_dispatch=1)", 1, 42, "true or false"),
    ("root ::= TokenTagDispatch((1, root), excludes=(1,))", 1, 28, "cannot be both"),
    ("root ::= TagDispatch((\"a\", root)", 1, 21, "not closed by )"),
    ("root ::= Regex(1)", 1, 10, "one string"),
    ("root ::= Regex(\"(\")", 1, 16, "of the pattern"),
    ("root ::= Regex(\"a\", flags=\"m\")", 1, 27, "no flag 'm'"),
    ("root ::= Regex(\"(?i)(?P<n>a)(\")", 1, 16, "at character 12 of the pattern"),
    ("root ::= Regex(\"a(?i)b\")", 1, 16, "at character 1 of the pattern"),
    ("root ::= Regex(\"a\", json_string=1)", 1, 33, "true or false"),
    ("root ::= Substring(1)", 1, 20, "a string"),
];

#[test]
fn what_is_wrong_has_a_place_and_says_what_would_work() {
    for &(text, line, column, message) in REFUSED {
        let error = parse(text, "root").expect_err(text);
        assert_eq!((error.line(), error.column()), (line, column), "{text:?}: {error}");
        assert!(error.message.contains(message), "{text:?}: {error}");
        assert!(error.to_string().contains("(EBNF, line"), "{error}");
    }
}

#[test]
fn errors_have_kinds() {
    let kind = |text| parse(text, "root").unwrap_err().kind;
    assert_eq!(kind("root ::= ("), GrammarErrorKind::Syntax);
    assert_eq!(kind("root ::= x"), GrammarErrorKind::UnknownRule);
    assert_eq!(kind("root ::= \"\"\nroot ::= \"\""), GrammarErrorKind::RepeatedRule);
    assert_eq!(kind("root ::= \"a\"{2,1}"), GrammarErrorKind::Contradiction);
    assert_eq!(kind("root ::= Regex(\"(\")"), GrammarErrorKind::Pattern);
    assert!(matches!(kind("root ::= Regex(\"(a)\\\\1\")"), GrammarErrorKind::Unsupported(_)));
    assert!(matches!(kind("root[temperature=1] ::= \"\""), GrammarErrorKind::Unsupported(_)));
}

fn limit(text: &str) -> &'static str {
    match parse(text, "root").expect_err("a limit").kind {
        GrammarErrorKind::Limit(limit) => limit.limit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn hostile_grammars_are_read_or_refused() {
    let nested = "nesting";
    assert_eq!(limit(&format!("root ::= {}", "(".repeat(100_000))), nested);
    let deep = format!("root ::= {}\"a\"{}", "(".repeat(100_000), ")+".repeat(100_000));
    assert_eq!(limit(&deep), nested);
    let tags: String = (0..300).map(|n| format!("(\"tag{n}\", root), ")).collect();
    assert_eq!(limit(&format!("root ::= TagDispatch({tags}excludes=())")), "dispatch_tags");
    let tag = "x".repeat(1 << 20);
    let text = format!("root ::= TagDispatch((\"{tag}\", root))");
    assert_eq!(limit(&text), "dispatch_tag_bytes");
    let chain: String = (0..40_000).map(|n| format!("r{n} ::= \"a\" r{} \"b\"\n", n + 1)).collect();
    let lazy: String = (0..20_000).map(|n| format!("r{n}[lazy] ::= \"a\" | \"ab\"\n")).collect();
    for text in [
        format!("{chain}r40000 ::= \"\"\nroot ::= r0"),
        format!("{lazy}root ::= r0"),
        format!("root ::= {} \"c\"", "\"name\" | ".repeat(120_000)),
        format!("root ::= \"{}\"", "x".repeat(1 << 20)),
        format!("root ::= [{}]", "a-zé".repeat(200_000)),
        format!("root ::= {}", "x[a \"b\"] ".repeat(100_000) + "\nx ::= \"\""),
        format!("root ::= {}", "x y ".repeat(250_000) + "\nx ::= \"\"\ny ::= \"\""),
        format!("root ::= Token({}1)", "1, ".repeat(300_000)),
        format!("{}\nroot ::= \"a\"", "# comment\n".repeat(100_000)),
    ] {
        let mut grammar = parsed(&text);
        fold_regular(&mut grammar).unwrap();
    }
}
