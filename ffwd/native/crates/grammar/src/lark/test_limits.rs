//! Grammars that are large or made to be expensive.

use super::*;
use crate::GrammarErrorKind;

/// The limit that a grammar passes; `None` if it is accepted or has another fault.
fn limit(text: &str) -> Option<&'static str> {
    match parse(text).map_err(|error| error.kind) {
        Err(GrammarErrorKind::Limit(limit)) => Some(limit.limit),
        _ => None,
    }
}

const NESTING: &str = "nesting";
const BYTES: &str = "lark_terminal_bytes";

#[test]
fn nesting_is_limited() {
    let around = |open: &str, inner: &str, close: &str, times: usize| {
        format!("start: {}{inner}{}", open.repeat(times), close.repeat(times))
    };
    assert!(parse(&around("(", "\"a\"", ")", 150)).is_ok());
    assert!(parse(&around("[", "\"a\"", "]", 150)).is_ok());
    for text in [
        around("(", "\"a\"", ")", 100_000),
        around("[", "\"a\"", "]", 100_000),
        around("(", "", "", 500_000),
        around("~(", "\"a\"", ")", 100_000),
        around("%lark { start: ", "\"a\"", "}", 50_000),
        around("t{", "\"a\"", "}", 100_000),
        around("", "\"a\" %if ", "", 1) + &"not(".repeat(100_000),
    ] {
        assert_eq!(limit(&text), Some(NESTING), "{}", &text[..30]);
    }
}

#[test]
fn json_may_nest_as_its_own_limits_allow() {
    let schema = "[".repeat(100_000) + &"]".repeat(100_000);
    assert!(parse(&format!("start: %json {schema}")).is_ok());
}

#[test]
fn terminals_that_double_are_refused() {
    let mut text = String::from("start: A0\n");
    for index in 0..100 {
        text += &format!("A{index}: A{0} \"x\" A{0}\n", index + 1);
    }
    assert_eq!(limit(&(text.clone() + "A100: \"a\"")), Some(BYTES));
    assert_eq!(limit(&(text.replace("\"x\"", "|") + "A100: \"a\"")), Some(BYTES));
    assert_eq!(limit(&(text.replace("\"x\"", "&") + "A100: \"a\"")), Some(BYTES));
}

#[test]
fn chains_of_terminals_are_bounded() {
    let chain = |length: usize, body: &str| {
        let mut text = String::from("start: A0\n");
        for index in 0..length {
            text += &format!("A{index}: {}\n", body.replace('N', &format!("A{}", index + 1)));
        }
        text + &format!("A{length}: \"a\"")
    };
    assert!(parse(&chain(30_000, "N")).is_ok());
    assert!(parse(&chain(400, "N+")).is_ok());
    assert_eq!(limit(&chain(30_000, "N+")), Some("lark_terminal_nesting"));
    assert_eq!(limit(&chain(30_000, "\"x\" N")), Some(BYTES));
}

#[test]
fn chains_of_rules_may_be_long() {
    let mut text = String::from("start: a0\n");
    for index in 0..50_000 {
        text += &format!("a{index}: \"x\" a{}\n", index + 1);
    }
    assert_eq!(parse(&(text + "a50000: \"a\"")).unwrap().rules.len(), 50_002);
}

#[test]
fn templates_that_grow_are_refused() {
    let text = "start: t{\"a\"}\nt{x}: x | t{u{x}}\nu{x}: \"(\" x \")\"";
    assert_eq!(limit(text), Some("template_uses"));
    let many = "a ".repeat(1000);
    let text =
        format!("start: t{{\"a\"}}\nt{{x}}: {many} | t{{u{{x}}}}\nu{{x}}: \"(\" x \")\"\na: \"a\"");
    assert_eq!(limit(&text), Some("lark_elements"));
}

#[test]
fn large_grammars_are_read_in_linear_time() {
    let names: String = (0..60_000).map(|index| format!("| \"name{index}\"\n")).collect();
    let big = "x".repeat(200_000);
    for text in [
        format!("start: A\nA: \"a\"\n{names}"),
        format!("start: \"a\"\n{names}"),
        format!("start: A\nA: \"{big}\"\n{}", "| A2\n".repeat(100_000)) + "A2: \"b\"",
        // Each use of a large terminal is the same node.
        format!("start: {}\nA: \"{big}\"", "A ".repeat(200_000)),
        format!("start: {}", "/\\w/ ".repeat(150_000)),
        format!("start: \"a\"{}", "\n".repeat(1_000_000)),
        format!("start: \"a\" // {big}\n// {big}"),
    ] {
        assert!(parse(&text).is_ok(), "{}", &text[..40]);
    }
    assert_eq!(limit(&" ".repeat(MAX_LENGTH + 1)), Some("lark_bytes"));
    let distinct: String = (0..20_000).map(|index| format!("/\\w{index}/ ")).collect();
    assert_eq!(limit(&format!("start: {distinct}")), Some(BYTES));
}

#[test]
fn any_part_of_a_grammar_is_read_or_refused() {
    let text = "%import common.INT -> N // c\n%llguidance {\"no_forcing\": true}\n%ignore / +/s\n\
                ?start: a{\"x\"i, N} | b::0x1 <[^1-2,3]> [\"a\"..\"é\"] -> y\n\
                a{p, q}: p ~ 2..3 q{1,}\nb::_: \"\" %if and(lt(_, 2), not(bit_set(1))) | c b::incr([0:2])\n\
                c[lazy, capture=\"d\", max_tokens=3, suffix=/\\/+/]: ~\"\\u00e9\" | T\n\
                T: %regex {\"substring_chars\": \"ab\"} & (\"a\" | \"\")+\n\
                d: %json {\"type\": [\"integer\"]} %lark { start: \"}\" } @e\n";
    assert_eq!(parse(text).map(|_| ()), Ok(()));
    let ends: Vec<usize> = (0..=text.len()).filter(|&end| text.is_char_boundary(end)).collect();
    let (mut accepted, mut refused) = (0, 0);
    let mut read = |text: &str| match parse(text) {
        Ok(_) => accepted += 1,
        Err(error) => {
            refused += 1;
            assert!(error.line() <= 1 + text.matches('\n').count(), "{text}");
        }
    };
    for pair in ends.windows(2) {
        let (before, rest, after) = (&text[..pair[0]], &text[pair[0]..], &text[pair[1]..]);
        read(before);
        read(rest);
        read(&format!("{before}{after}"));
        for sign in ["(", "}", "\"", "/", "\\", "\n", "%", "é", "::", "<"] {
            read(&format!("{before}{sign}{rest}"));
        }
    }
    assert!(accepted > 400 && refused > 4000, "{accepted} {refused}");
}
