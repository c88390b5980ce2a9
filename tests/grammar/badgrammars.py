"""Large and hostile grammars, and what a process of its own does with them."""

import resource
from collections.abc import Callable
from typing import Any

import numpy as np
from compiled import END, byte_vocabulary, mask

import ffwd
from ffwd import choice, gbnf, json_schema, lark, lit, regex, repeat, rule, rules, seq

# Growth without bound ends the process, and with that the test.
MEMORY_BYTES = 4 << 30
MEGABYTE = 1 << 20


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def filled(text: str) -> str:
    """A text that is repeated up to a megabyte."""
    return text * (MEGABYTE // len(text))


def numbered(line: str, last: str, count: int = 40_000) -> str:
    """A line for each number, which also has the next one."""
    return "".join(line.format(n, n + 1) for n in range(count)) + last.format(count)


def nested(open_: str, close: str, inner: str, count: int = 100_000) -> str:
    return open_ * count + inner + close * count


def nested_values(wrap: Callable[[ffwd.Grammar], ffwd.Grammar], count: int) -> ffwd.Grammar:
    grammar: ffwd.Grammar = lit("x")
    for _ in range(count):
        grammar = wrap(grammar)
    return grammar


# By what is large in it. Each is to compile and make masks, or to be refused.
LARGE: dict[str, Callable[[], ffwd.Grammar]] = {
    "lark: a chain of rules": lambda: lark("start: r0\n" + numbered("r{}: r{}\n", 'r{}: "x"')),
    "lark: a chain of terminals": lambda: lark("start: T0\n" + numbered("T{}: T{}\n", 'T{}: "x"')),
    "lark: rules around each other": lambda: lark(
        "start: r0\n" + numbered('r{}: "a" r{} "b"\n', 'r{}: "x"')
    ),
    "lark: left recursion through all": lambda: lark(
        "start: r0\n" + numbered('r{0}: r{1} "a" | r0 "b" |\n', 'r{}: r0 "x" |', 400)
    ),
    "lark: nested brackets": lambda: lark("start: " + nested("(", ")", '"x"')),
    "lark: nested options": lambda: lark("start: " + nested("[", "]", '"x"')),
    "lark: nested repetitions": lambda: lark("start: " + nested("(", ")~2..9", '"x"', 1_000)),
    "lark: nested templates": lambda: lark(
        "start: " + nested("t{", "}", '"x"', 9_000) + "\nt{x}: x x"
    ),
    "lark: brackets that stay open": lambda: lark("start: " + filled("(")),
    "lark: alternatives": lambda: lark('start: "a"' + filled('\n  | "ab" start')),
    "lark: a string": lambda: lark(f'start: "{filled("abc")}"'),
    "lark: a pattern": lambda: lark(f"start: /{filled('a|b')}/"),
    "lark: a pattern with large counts": lambda: lark("start: /((a{0,999}){0,999}){0,999}b/"),
    "lark: a rule so often": lambda: lark('start: (a~0..4000000000 "b")~4000000000\na: "x" a |'),
    "lark: comments": lambda: lark(filled("// nothing\n") + 'start: "x"'),
    "lark: nothing but names": lambda: lark("start: " + filled("a ")),
    "lark: nested grammars": lambda: lark(nested("start: %lark {\n", "\n}", 'start: "x"', 9_000)),
    "lark: a schema": lambda: lark(f'start: %json {{"enum": [{"1," * 200_000} 2]}}'),
    "lark: a schema that nests": lambda: lark(f"start: %json {nested('[', ']', '', 200_000)}"),
    "lark: a parameter with all its values": lambda: lark(
        'start: a::0\na::_: "x" a::incr([0:40]) %if lt([0:40], 9999999) | "y"'
    ),
    "lark: a terminal takes what follows": lambda: lark(
        "start: r0\n" + numbered('r{}: "(" r{} ")" | A "a"\n', 'r{}: A "aa"', 3_000) + "\nA: /a+/"
    ),
    "gbnf: a chain of rules": lambda: gbnf(
        "root ::= r0\n" + numbered("r{} ::= r{}\n", 'r{} ::= "x"')
    ),
    "gbnf: rules around each other": lambda: gbnf(
        "root ::= r0\n" + numbered('r{} ::= "a" r{} "b"\n', 'r{} ::= "x"')
    ),
    "gbnf: doubled at each step": lambda: gbnf(
        "root ::= r0\n" + numbered("r{0} ::= r{1} r{1}\n", 'r{} ::= "x"')
    ),
    "gbnf: nested brackets": lambda: gbnf("root ::= " + nested("(", ")", '"x"')),
    "gbnf: nested repetitions": lambda: gbnf("root ::= " + nested("(", "){2,9}", '"x"', 1_000)),
    "gbnf: brackets that stay open": lambda: gbnf("root ::= " + filled("(")),
    "gbnf: a class": lambda: gbnf("root ::= [" + filled("a-z0-9") + "]+"),
    "gbnf: repetitions of the empty text": lambda: gbnf('root ::= (""* ("" | root)*)* "x"'),
    "gbnf: ambiguity": lambda: gbnf('root ::= root root | root "a" | "a" root | "a" | ""'),
    "gbnf: strings": lambda: gbnf("root ::= " + filled('"abc" ')),
    "ebnf: nested brackets": lambda: ffwd.ebnf("root ::= " + nested("(", ")", '"x"')),
    "ebnf: rules around each other": lambda: ffwd.ebnf(
        "root ::= r0\n" + numbered('r{} ::= "a" r{} "b"\n', 'r{} ::= "x"')
    ),
    "ebnf: tokens": lambda: ffwd.ebnf("root ::= Token(" + "1, " * 200_000 + "2)"),
    "regex: nested groups": lambda: regex(nested("(", ")", "x")),
    "regex: groups that stay open": lambda: regex(filled("(")),
    "regex: alternatives": lambda: regex(filled("ab|") + "c"),
    "regex: counts of counts": lambda: regex("(((a{1,999}b?){1,999}c?){1,999}d?){1,999}"),
    "regex: a count": lambda: regex("(ab?){4000000000}"),
    "regex: ways to match": lambda: regex("(x+x+)+y|(x|x|xx)*z"),
    "regex: what comes long before": lambda: regex("(a|b)*a(a|b){30000}"),
    "regex: what comes before several": lambda: regex("(.*a.{20}){20}"),
    "regex: lookahead": lambda: regex("(?=.*a{30})(?=.*b{30})(?!.*c{9}).*", dialect="python"),
    "regex: lookbehind": lambda: regex(r"(\b\w(?<=[a-z]{1,99}))*", dialect="ecma"),
    "regex: an intersection": lambda: (
        regex("(.*a.{15}){3}") & regex("(.*b.{16}){3}") & ~regex("(.*c.{17}){3}")
    ),
    "python: sequences in sequences": lambda: nested_values(lambda x: seq("(", x, ")"), 1_000),
    "python: choices of choices": lambda: nested_values(lambda x: choice([x, "a" + x]), 1_000),
    "python: repetitions of repetitions": lambda: nested_values(lambda x: repeat(x, 2, 3), 50_000),
    "python: rules in rules": lambda: nested_values(
        lambda x: rule("r", x | "(" + rule("r")), 9_000
    ),
    "python: many rules": lambda: rules(
        {f"r{n}": "a" + rule(f"r{n + 1}") | "b" for n in range(40_000)} | {"r40000": lit("x")}
    ),
    "python: many schemas": lambda: seq(*(json_schema({"const": n}) for n in range(300))),
    "python: a text": lambda: lit(filled("abc")) + regex("x*"),
    "python: triggers": lambda: ffwd.dispatch({f"<{n}>": "x" for n in range(3_000)}),
    "python: stops": lambda: ffwd.text_until([f"<{n}>" for n in range(3_000)]),
    "tags: many": lambda: ffwd.structural_tag(
        {
            "type": "structural_tag",
            "format": {
                "type": "triggered_tags",
                "triggers": ["<f"],
                "tags": [
                    {"begin": f"<f{n}>", "content": {"type": "any_text"}, "end": f"</f{n}>"}
                    for n in range(500)
                ],
            },
        }
    ),
    "tools: many": lambda: ffwd.openai.tools(
        [{"type": "function", "function": {"name": f"f{n}"}} for n in range(500)],
        tool_choice="required",
        format="hermes",
    ),
}  # fmt: skip


# Steps are the same on every machine. The default deadlines can pass on a busy one.
UNTIMED = ffwd.Limits(compile_seconds=None, call_seconds=None)


def use(name: str) -> dict[str, Any]:
    """Compiles a large grammar and follows a text of it; `error`: what was refused, or None."""
    try:
        compiled = ffwd.compile(LARGE[name](), byte_vocabulary(named=True), limits=UNTIMED)
        matcher = compiled.matcher()
        for _ in range(30):
            allowed = np.flatnonzero(mask(matcher, 261))
            assert len(allowed), "a dead end"
            token = int(allowed[len(allowed) // 2])
            assert matcher.accept_token(token)
            if token == END:
                break
    except ffwd.FfwdError as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {"error": None, "message": ""}
