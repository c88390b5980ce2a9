"""Hostile grammars of rules."""

from __future__ import annotations

from collections.abc import Callable

import ffwd
from ffwd import Grammar
from maskbench.conformance.hostile.case import HostileCase
from maskbench.conformance.hostile.schemas import WORDS

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _lark(name: str, what: str, text: str, begin: bytes = b"") -> HostileCase:
    return HostileCase(name, what, lambda: ffwd.lark(text), begin)


def _gbnf(name: str, what: str, text: str, begin: bytes = b"") -> HostileCase:
    return HostileCase(name, what, lambda: ffwd.gbnf(text), begin)


def _ebnf(name: str, what: str, text: str, begin: bytes = b"") -> HostileCase:
    return HostileCase(name, what, lambda: ffwd.ebnf(text), begin)


def _made(name: str, what: str, grammar: Callable[[], Grammar], begin: bytes = b"") -> HostileCase:
    return HostileCase(name, what, grammar, begin)


def _left(count: int) -> str:
    """Return rules that each start with all others."""
    rules = [
        f'r{n} ::= "y" | ' + " | ".join(f'r{m} "{WORDS[n]}"' for m in range(count))
        for n in range(count)
    ]
    return "\n".join(["root ::= r0", *rules])


def _operators(levels: int) -> str:
    """Return expressions with an operator for each level, left associative."""
    rules = [f'e{n}: e{n} "{_LETTERS[n]}" e{n + 1} | e{n + 1}' for n in range(levels)]
    return "\n".join(["start: e0", *rules, f'e{levels}: /[0-9]+/ | "(" start ")"'])


def _tags(count: int) -> Grammar:
    return ffwd.structural_tag(
        {
            "type": "structural_tag",
            "format": {
                "type": "triggered_tags",
                "triggers": ["<f="],
                "tags": [
                    {
                        "type": "tag",
                        "begin": f"<f={word}>",
                        "content": {"type": "json_schema", "json_schema": {"type": "object"}},
                        "end": "</f>",
                    }
                    for word in WORDS[:count]
                ],
            },
        }
    )


def _deep(levels: int) -> Grammar:
    grammar: Grammar = ffwd.lit("x")
    for _ in range(levels):
        grammar = ffwd.choice([ffwd.seq(ffwd.lit("a"), grammar, ffwd.lit("b")), ffwd.lit("c")])
    return grammar


GRAMMARS = (
    _gbnf(
        "palindrome",
        "every place may be the middle",
        "root ::= " + " | ".join(f'"{c}" root "{c}" | "{c}"' for c in _LETTERS),
        b"abcdefgfedcbaabcd" * 4,
    ),
    _gbnf(
        "echoes",
        "the most ambiguous grammar",
        'root ::= root root root | root root | "a"',
        b"a" * 200,
    ),
    _gbnf(
        "nothing",
        "cycles of empty rules",
        'root ::= a* b* "x"\na ::= b* c*\nb ::= c* a* | "b"?\nc ::= a* b* | "c"?',
        b"bcbc",
    ),
    _gbnf("spirals", "60 rules that begin with each other", _left(60), b"y"),
    _gbnf(
        "ladder",
        "10,000 rules in a row",
        "root ::= r0\n"
        + "\n".join(f'r{n} ::= "a" r{n + 1} | "b" r{n + 1}' for n in range(10_000))
        + '\nr10000 ::= "c"',
        b"ab" * 60,
    ),
    _gbnf(
        "stairs",
        "left recursion 2,000 rules long",
        "root ::= r0\n"
        + "\n".join(f'r{n} ::= r{n + 1} "a"?' for n in range(2000))
        + '\nr2000 ::= r0 "b" | "c"',
        b"cab",
    ),
    _gbnf(
        "doubling",
        "a text of 2 ** 60 characters",
        "root ::= r0\n"
        + "\n".join(f"r{n} ::= r{n + 1} r{n + 1}" for n in range(60))
        + '\nr60 ::= "a"',
        b"a" * 60,
    ),
    _gbnf(
        "counts",
        "repeats of repeats of rules",
        'root ::= (a{0,1000} b?){1000,100000}\na ::= "x" | "y" a\nb ::= "z"',
        b"xyxz" * 20,
    ),
    _gbnf(
        "optional",
        "5,000 parts that may be left out",
        "root ::= " + " ".join(f'("{w}" " ")?' for w in WORDS[:5000]) + ' "end"',
        b"aaw ",
    ),
    _gbnf(
        "parentheses",
        "nested deeper than may be read",
        "root ::= " + "(" * 3000 + '"a"' + ")" * 3000,
        b"a",
    ),
    _ebnf(
        "strings",
        "one text in two ways at each place",
        'root ::= ("a" | "aa" | "aaa" | "a" "a")* "b"',
        b"a" * 200,
    ),
    _lark(
        "lexemes",
        "5,000 literals beside a name",
        "start: (NAME | KEY)*\nNAME: /[a-z]+/\nKEY: "
        + " | ".join(f'"{w}"' for w in WORDS[:5000])
        + "\n%ignore /[ ]+/",
        b"aaw aax ",
    ),
    _lark(
        "terminals",
        "130 that overlap",
        "start: ("
        + " | ".join(f"T{n}" for n in range(130))
        + ")*\n"
        + "\n".join(f"T{n}: /[a-z]*{c}[a-z]{{{n % 9}}}[0-9]?/" for n, c in enumerate(_LETTERS * 5)),
        b"abcabc",
    ),
    _lark(
        "swallow",
        "lexemes that may take the beginning of another one",
        'start: r0\nr0: T0 | r1 T1 "c" T0 "ac"\nr1: T0 | (T1 r0 "bb"){2}\n'
        'T0: (/[^bac1]/ | "bb" | "-" | "") (/[bc]/ | "c")\nT1: /./ | "c" | "-\\\\-" | ""',
    ),
    _lark(
        "comments",
        "lexemes that may take all that follows",
        "start: (STMT | COMMENT | BLOCK)*\nSTMT: /[a-z]+;/\n"
        "COMMENT: /#[^\\n]*\\n/\nBLOCK: /x(.|\\n)*?y/\n%ignore /[ \\n]+/",
        b"abc; # d\n x y ",
    ),
    _lark(
        "regexes",
        "counted terminals",
        "start: (A B?){1,1000}\nA: /(a|b)*a(a|b){30}/\nB: /(b|c)*b(b|c){30}/",
        b"ab" * 40,
    ),
    _lark("expressions", "20 levels of operators", _operators(20), b"1a2b3c(4)"),
    _lark(
        "documents",
        "JSON in JSON in rules",
        'start: doc ("," doc)*\n'
        'doc: %json {"anyOf": [{"type": "object"}, {"type": "array"}]}'
        ' | %json {"type": "object", "additionalProperties": {"type": "integer"}}',
        b'{"a":[1,{"b":2}],"c":',
    ),
    _made("tags", "a choice of 2,000 tools", lambda: _tags(2000), b"text <f=aaw>{"),
    _made(
        "triggers",
        "what is no trigger may come",
        lambda: ffwd.dispatch({f"<{w}>": ffwd.lit(w) for w in WORDS[:2000]}),
        b"text <aaw>",
    ),
    _made("repetition", "compositions 10,000 deep", lambda: _deep(10_000), b"ab"),
    _made(
        "alternation",
        "a choice of 20,000 sequences",
        lambda: ffwd.choice([ffwd.seq(ffwd.lit(w), ffwd.regex("[a-z]+")) for w in WORDS[:10_000]]),
        b"aaw",
    ),
)
