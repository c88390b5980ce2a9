"""Grammars that are put together, with texts that belong to them and texts that do not."""

import ffwd

SUM = ffwd.rules(
    {
        "sum": ffwd.rule("sum") + "+" + ffwd.rule("atom") | ffwd.rule("atom"),
        "atom": ffwd.regex("[0-9]+") | "(" + ffwd.rule("sum") + ")",
    }
)

CASES: list[tuple[ffwd.Grammar, list[str], list[str]]] = [
    (ffwd.repeat("a", 1, 3, separator=","), ["a", "a,a,a"], ["", "a,", ",a", "aa", "a,a,a,a"]),
    (ffwd.repeat("a", 0, 2, separator=","), ["", "a", "a,a"], ["a,a,a", ","]),
    (ffwd.repeat("ab", 2), ["abab", "ababab"], ["", "ab", "aba"]),
    (ffwd.repeat("ab", max=0), [""], ["ab"]),
    (ffwd.optional("ab"), ["", "ab"], ["a", "abab"]),
    (SUM, ["1", "1+2+(3+4)", "((5))"], ["", "1+", "(1", "1++2"]),
    (
        ffwd.rule("n", "(" + ffwd.repeat(ffwd.rule("n")) + ")"),
        ["()", "(()(()))"],
        ["", "(", "())"],
    ),
    (ffwd.any_text(excluding="ab"), ["", "ba", "aa\n"], ["ab", "xabx"]),
    (ffwd.any_text(max_chars=2), ["", "éé"], ["aaa"]),
    (ffwd.text_until("ab"), ["ab", "xab", "aab"], ["", "abab", "a", "abx"]),
    (ffwd.text_until(["a", "b"], max_chars=1), ["a", "xb"], ["xxa", "ab"]),
    (ffwd.text_until("a", excluding="x"), ["a", "ba"], ["xa"]),
    (ffwd.text_until("a", include=False), ["", "b"], ["a", "ba"]),
    (ffwd.dispatch({"<x>": "1"}), ["", "a<x>1b", "<x>1<x>1"], ["<x>", "<x>2"]),
    (ffwd.dispatch({"<x>": "1"}, loop=False), ["a", "a<x>1"], ["<x>1a", "<x>1<x>1"]),
    (ffwd.dispatch([("a", "1"), ("a", "2")]), ["a1a2"], ["a3"]),
    (ffwd.template("N: {n}{{}}", n=ffwd.regex("[0-9]+")), ["N: 12{}"], ["N: {}", "N: 1"]),
    (ffwd.template("{a}-{a}", a=ffwd.choice(["x", "y"])), ["x-y", "x-x"], ["x-", "z-z"]),
    (ffwd.limit("a", max_tokens=1), ["a"], ["b"]),
    (ffwd.reasoning("x"), ["<think>so</think>\n\nx", "<think></think>x"], ["x", "so</think>x"]),
    (ffwd.reasoning("x", opened=True), ["so</think>x", "</think> x"], ["x", "<think>so"]),
    (ffwd.reasoning("x", optional=True), ["x", "<think>a</think>x"], ["</think>x"]),
    (ffwd.reasoning("x", between="!"), ["<think>a</think>!x"], ["<think>a</think>x"]),
    (ffwd.reasoning("x", max_chars=1), ["<think>a</think>x"], ["<think>aa</think>x"]),
    (
        ffwd.reasoning("x", open="[T]", close="[/T]"),
        ["[T]</think>[/T]x"],
        ["[T]a[/T]b[/T]x"],
    ),
]
