//! Grammars with texts that they have and have not, and grammars that are refused.

use super::parse;
use crate::fold::fold_regular;
use crate::oracle::{accepts, token};
use crate::{Grammar, GrammarError, GrammarErrorKind, Node, TokenItem};

/// A grammar, texts of it, and texts that are none.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const SYNTAX: &[Case] = &[
    (r#"root ::= "a""#, &["a"], &["", "b", "aa"]),
    ("root::=\"a\"# comment", &["a"], &[""]),
    ("# first\n\n root ::= \"a\" \"b\"\r\n\r\n# last", &["ab"], &["a"]),
    ("root ::= \n\n  \"a\"\n\nother ::= \"b\"\n", &["a"], &["b", "ab"]),
    ("root ::= \"a\" |\n\n  \"b\" | # comment\n \"c\"", &["a", "b", "c"], &["ab", ""]),
    ("root ::= (\n \"a\"\n | # comment\n \"b\"\n)\n", &["a", "b"], &["ab"]),
    ("root ::=", &[""], &["a"]),
    ("root ::= \"a\" |", &["", "a"], &["aa"]),
    ("root ::= | \"a\"", &["", "a"], &["aa"]),
    ("root ::= ()", &[""], &["a"]),
    ("root ::= (|\"a\")\"b\"", &["b", "ab"], &["a"]),
    (r#"root ::= """#, &[""], &["a"]),
    (r#"root ::= ""* "b""#, &["b"], &["", "bb"]),
    (r#"root ::= "\x41\u00e9\U0001F600\n\t\r\"\\\[\]\-""#, &["Aé😀\n\t\r\"\\[]-"], &["A"]),
    ("root ::= \"a\nb\"", &["a\nb"], &["ab"]),
    (r#"root ::= [a-c-]"#, &["a", "c", "-"], &["d", ""]),
    (r#"root ::= [-a]"#, &["a", "-"], &["b"]),
    (r#"root ::= [\x30-9\]\\]"#, &["0", "5", "]", "\\"], &["a", "x"]),
    (r#"root ::= [^a-c\n]"#, &["d", "é", "😀"], &["a", "b", "\n", "", "dd"]),
    (r#"root ::= [+-/]"#, &["+", ",", "/"], &["0", "*"]),
    (r#"root ::= [ぁ-ゟ]+"#, &["ひらがな"], &["カ", ""]),
    ("root ::= [a\n]", &["a", "\n"], &["b"]),
    ("root ::= .", &["a", "\n", "😀"], &["", "ab"]),
    (r#"root ::= "ab"*"#, &["", "ab", "abab"], &["a", "aab"]),
    (r#"root ::= "a"+ "b"?"#, &["a", "aab"], &["", "b", "abb"]),
    (r#"root ::= "a"{2}"#, &["aa"], &["a", "aaa"]),
    (r#"root ::= "a"{ 2 , 3 }"#, &["aa", "aaa"], &["a", "aaaa"]),
    (r#"root ::= "a"{2,}"#, &["aa", "aaaaaaa"], &["", "a"]),
    (r#"root ::= "a"{0}"#, &[""], &["a"]),
    (r#"root ::= ("a" | "b"){2} [cd]{1,2}"#, &["abc", "bbdc"], &["ac", "abccc"]),
    (r#"root ::= "a"{2}{2}"#, &["aaaa"], &["aa", "aaa"]),
    (r#"root ::= "a"?+"#, &["", "a", "aaa"], &["b"]),
    ("root ::= x x\nx ::= \"a\" | \"b\"", &["ab", "bb"], &["a", "abb"]),
    ("1 ::= \"a\"\n-b_C ::= 1 1\nroot ::= -b_C", &["aa"], &["a"]),
    ("root ::= \"(\" root \")\" | \"\"", &["", "(())"], &["(", "())"]),
    ("root ::= root \"+\" n | n\nn ::= [0-9]+", &["1", "1+23+4"], &["", "1+", "+1"]),
    ("root ::= e e | \"x\"\ne ::= | root", &["", "x", "xx", "xxxx"], &["y"]),
];

/// Grammars of the kinds that people write.
const KINDS: &[Case] = &[
    (
        r##"
        root   ::= object
        value  ::= object | array | string | number | ("true" | "false" | "null") ws
        object ::= "{" ws (member ("," ws member)*)? "}" ws
        member ::= string ":" ws value
        array  ::= "[" ws (
            value
            ("," ws value)*
        )? "]" ws
        string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
        number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [1-9] [0-9]{0,15})? ws
        ws     ::= | " " | "\n" [ \t]{0,20}
        "##,
        &["{}", r#"{"a": [1, -0.5e+3, "x\u00e9\n"], "b": {}}"#, "{\"a\":null}\n  "],
        &["[]", r#"{"a" 1}"#, r#"{"a": 01}"#, r#"{"a": "\x"}"#, "{\"\n\": 1}"],
    ),
    (
        "root ::= (sum \"=\" term \"\\n\")+\nsum ::= term ([-+*/] term)*\n\
         term ::= name | number | \"(\" sum \")\"\nname ::= [a-z] [a-z0-9_]*\nnumber ::= [0-9]+",
        &["1+x=y\n", "(1*(2-a_1))=3\na=b\n"],
        &["1+=y\n", "1=2", "(1=2\n"],
    ),
    (
        "root ::= \"1. \" move \" \" move \"\\n\" ([1-9] [0-9]? \". \" move \" \" move \"\\n\")*\n\
         move ::= (pawn | piece | castle) [+#]?\npiece ::= [NBKQR] [a-h]? [1-8]? \"x\"? [a-h] [1-8]\n\
         pawn ::= ([a-h] \"x\")? [a-h] [1-8] (\"=\" [NBQR])?\ncastle ::= \"O-O\" \"-O\"?",
        &["1. e4 e5\n", "1. e4 e5\n2. Nf3 O-O-O\n", "1. exd8=Q+ Rad1#\n"],
        &["1. e4\n", "1. e9 e5\n", "2. e4 e5\n"],
    ),
    (
        "root ::= item+\nitem ::= \"- \" [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ \"\\n\"",
        &["- a\n", "- one\n- zwei\n"],
        &["- \n", "a\n", "- a\u{2028}\n"],
    ),
    (
        "root ::= (type ws name \"(\" (arg (\",\" ws arg)*)? \")\" ws \"{\" ws statement* \"}\" ws)*\n\
         type ::= \"int\" | \"float\" | \"char\"\narg ::= type ws name\nname ::= [a-zA-Z_] [a-zA-Z_0-9]*\n\
         statement ::= (type ws name ws \"=\" ws sum \";\" |\n name ws \"=\" ws sum \";\" |\n\
         \"return\" ws sum \";\" |\n \"while\" \"(\" sum [<>] \"=\"? sum \")\" \"{\" statement* \"}\" |\n\
         \"if\" \"(\" sum \")\" \"{\" statement* \"}\" (\"else\" \"{\" statement* \"}\")?) ws\n\
         sum ::= product (ws [-+] ws product)*\nproduct ::= factor (ws [*/] ws factor)*\n\
         factor ::= name | [0-9]+ | \"-\" factor | \"(\" sum \")\" | name \"(\" (sum (\",\" ws sum)*)? \")\"\n\
         ws ::= ([ \\t\\n]+)?",
        &["", "int f(){return 1;}", "int f(int a, char b) { int x = a*(b+1); if(x){x = f(x, 1);} }"],
        &["int f()", "int f(){return 1}", "int f(){x = ;}"],
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
fn regular_grammars_become_one_lexeme() {
    // What has no brackets within brackets, of the kinds above.
    for index in [2, 3] {
        let mut grammar = parsed(KINDS[index].0);
        fold_regular(&mut grammar).unwrap();
        let start = grammar.rules[0].body.unwrap();
        assert!(matches!(grammar.node(start), Node::Lexeme(_)), "{:#?}", grammar.node(start));
    }
}

#[test]
fn tokens_are_by_id_or_by_name() {
    let grammar = parsed("root ::= <[5]> thought* </think> .\nthought ::= !<[5]> | !<|end|>");
    let [five, six] = [token(5), token(6)];
    for (text, expected) in [
        (format!("{five}</think>x"), true),
        (format!("{five}{six}{six}</think>x"), true),
        // Not the token 5, or not the one that is called so.
        (format!("{five}{five}</think>x"), true),
        (format!("{six}</think>x"), false),
        (format!("{five}</think>"), false),
    ] {
        assert_eq!(accepts(&grammar, &text), expected, "{text:?}");
    }
    let grammar = parsed("root ::= !</think>");
    let Node::Tokens(tokens) = grammar.node(grammar.rules[0].body.unwrap()) else { panic!() };
    assert!(tokens.exclude && tokens.place.is_some());
    assert_eq!(*tokens.items, [TokenItem::Named("</think>".into())]);
}

#[test]
fn another_rule_may_be_the_root() {
    let text = "root ::= \"a\"\nother ::= \"b\" root";
    assert!(accepts(&parse(text, "other").unwrap(), "ba"));
    assert_eq!(parse(text, "none").unwrap_err().kind, GrammarErrorKind::UnknownRule);
}

/// A grammar that is refused, the line and the column, and a part of the message.
type Refused = (&'static str, usize, usize, &'static str);

const REFUSED: &[Refused] = &[
    ("", 1, 1, "no rules"),
    ("# only a comment", 1, 1, "no rules"),
    (
        "x ::= \"a\"",
        1,
        1,
        "the rule `root`, with which a text begins, is not defined; the grammar has `x`",
    ),
    ("Root ::= \"a\"", 1, 1, "is `Root` meant?"),
    ("root ::= some-thing\nsome_thing ::= \"a\"", 1, 10, "is `some_thing` meant?"),
    ("root ::= \"a\" x", 1, 14, "the rule `x` is not defined"),
    ("root ::= \"a\"\nroot ::= \"b\"", 2, 1, "defined twice, first in line 1"),
    ("root ::= \"a\"\n  | \"b\"", 2, 3, "at the end of the line before"),
    ("root = \"a\"", 1, 6, "::= must follow"),
    ("root", 1, 5, "the grammar ends"),
    ("::= \"a\"", 1, 1, "a rule must begin here"),
    ("root ::= \"a\" ; x", 1, 14, "';' was found"),
    ("root ::= a b ::= \"c\"", 1, 12, "the rule `b` begins within another"),
    ("root ::= (\"a\"\nb ::= \"c\"", 2, 1, "close the brackets"),
    ("root ::= \nb ::= \"a\"", 2, 1, "begins within another"),
    ("root ::= \"a", 1, 10, "no closing \""),
    ("root ::= \"a\\", 1, 12, "nothing follows the backslash"),
    ("root ::= [a-z", 1, 10, "no closing ]"),
    ("root ::= [a-", 1, 10, "no closing ]"),
    ("root ::= []", 1, 10, "empty"),
    ("root ::= [^]", 1, 10, "any character is a dot"),
    ("root ::= [z-a]", 1, 11, "write its lower end first"),
    ("root ::= \"\\q\"", 1, 11, "\\q is no escape"),
    ("root ::= [\\d]", 1, 11, "write its characters"),
    ("root ::= \"\\x4\"", 1, 11, "2 hexadecimal"),
    ("root ::= \"\\u12\"", 1, 11, "4 hexadecimal"),
    ("root ::= \"é\\ud83d\\ude00\"", 1, 12, "surrogate"),
    ("root ::= \"\\U00110000\"", 1, 11, "no such character"),
    ("root ::= (\"a\"", 1, 10, "not closed by )"),
    ("root ::= \"a\")", 1, 13, "closes nothing"),
    ("root ::= *", 1, 10, "nothing stands before"),
    ("root ::= \"a\" | +", 1, 16, "nothing stands before"),
    ("root ::= (?)", 1, 11, "nothing stands before"),
    ("root ::= \"a\"{,3}", 1, 14, "a number must stand here"),
    ("root ::= \"a\"{x}", 1, 14, "a number must stand here"),
    ("root ::= \"a\"{2", 1, 15, "a repetition is written"),
    ("root ::= \"a\"{2;3}", 1, 15, "a repetition is written"),
    ("root ::= \"a\"{3,2}", 1, 13, "the counts `{3,2}` are out of order"),
    ("root ::= \"a\"{99999999999}", 1, 14, "repetition_count"),
    ("root ::= <think", 1, 10, "no closing >"),
    ("root ::= !\"a\"", 1, 11, "a token must follow the !"),
    ("root ::= <[x]>", 1, 10, "written <[12]>"),
    ("root ::= <[1>", 1, 10, "written <[12]>"),
    ("root ::= <[99999999999]>", 1, 12, "no token with the id"),
];

#[test]
fn what_is_wrong_has_a_place_and_says_what_would_work() {
    for &(text, line, column, message) in REFUSED {
        let error = parse(text, "root").expect_err(text);
        assert_eq!((error.line(), error.column()), (line, column), "{text:?}: {error}");
        assert!(error.message.contains(message), "{text:?}: {error}");
        assert!(error.to_string().contains("(GBNF, line"), "{error}");
    }
}

#[test]
fn errors_have_kinds() {
    let kind = |text| parse(text, "root").unwrap_err().kind;
    assert_eq!(kind("root ::= ("), GrammarErrorKind::Syntax);
    assert_eq!(kind("root ::= x"), GrammarErrorKind::UnknownRule);
    assert_eq!(kind("root ::= \"\"\nroot ::= \"\""), GrammarErrorKind::RepeatedRule);
    assert_eq!(kind("root ::= .{2,1}"), GrammarErrorKind::Contradiction);
    assert_eq!(kind("root ::= <[4294967296]>"), GrammarErrorKind::UnknownToken);
}

fn limit(result: Result<Grammar, GrammarError>) -> &'static str {
    match result.expect_err("a limit").kind {
        GrammarErrorKind::Limit(limit) => limit.limit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn hostile_grammars_are_read_or_refused() {
    let nested = "nesting";
    let deep = format!("root ::= {}", "(".repeat(100_000));
    assert_eq!(limit(parse(&deep, "root")), nested);
    let deep = format!("root ::= {}\"a\"{}", "(\"b\"".repeat(100_000), ")".repeat(100_000));
    assert_eq!(limit(parse(&deep, "root")), nested);
    let stacked = format!("root ::= \"a\"{}", "{2}".repeat(300_000));
    assert_eq!(limit(parse(&stacked, "root")), nested);
    let long = "#".repeat((64 << 20) + 1);
    assert_eq!(limit(parse(&long, "root")), "grammar_text_bytes");
    // A deep chain of rules, many alternatives, a long string and a large class are all fine.
    let chain: String = (0..40_000).map(|n| format!("r{n} ::= \"a\" r{} \"b\"\n", n + 1)).collect();
    for text in [
        format!("{chain}r40000 ::= \"\"\nroot ::= r0"),
        format!("root ::= {}", "\"name\" | ".repeat(120_000)),
        format!("root ::= \"{}\"", "x".repeat(1 << 20)),
        format!("root ::= [{}]", "a-zé".repeat(200_000)),
        format!("root ::= {}", "x y ".repeat(250_000) + "\nx ::= \"\"\ny ::= \"\""),
        format!("root ::= {}\"a\"{}", "(".repeat(900), ")".repeat(900)),
        format!("{}\nroot ::= \"a\"", "# comment\n".repeat(100_000)),
    ] {
        let mut grammar = parsed(&text);
        fold_regular(&mut grammar).unwrap();
    }
}
