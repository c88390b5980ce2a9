"""Grammars that cannot be used: a typed error that says what and where, from every front end.

Large and hostile ones run in another process, which must answer in time and in little memory.
"""

import concurrent.futures
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import badgrammars
import pytest
from compiled import END, byte_vocabulary

import ffwd
from ffwd import (
    Grammar,
    GrammarError,
    InvalidSchemaError,
    UnsatisfiableSchemaError,
    choice,
    json_schema,
    limit,
    regex,
    repeat,
    rule,
    rules,
    text_until,
    token,
)

# A second or so on an idle machine; the rest is for busy ones.
TIMEOUT_S = 300

Place = tuple[int, int] | None

# The text, what the error says, and line and column.
LARK = {
    "an unknown rule": ("start: b\n  | a c\na: /x/", "no rule or terminal `b`", (1, 8)),
    "an unknown terminal": ('start: "x"\n  | "é" A', "no rule or terminal `A`", (2, 9)),
    "an unknown name within a terminal": ("start: A\nA: B", "there is no|not defined", (2, 4)),
    "no start": ('a: "x"', "no rule `start`", (1, 1)),
    "a rule that needs itself": ('start: "x" | a\na: "y" a', "`a` matches no text: it", (2, 1)),
    "rules that need each other": (
        'start: "x" | c\nb: "y" c\nc: b "x"', "`b` matches no text: it needs", (2, 1)
    ),
    "left recursion without an end": ("start: a\na: a", "`a` matches no text: it needs", (2, 1)),
    "left recursion through empty rules": (
        'start: a\na: e a e | e b\nb: e a\ne: "x"?', "`a` matches no text: it needs", (2, 1)
    ),
    "a terminal that contradicts itself": (
        'start: "x" A\nA: "y" & "z"', "`A` matches no text: its text", (2, 1)
    ),
    "a part that contradicts itself": (
        'start: "x" | a\na[stop=/b/]: /a*/ & /c/', "`a` matches no text: its text", (2, 1)
    ),
    "a condition that never holds": (
        'start: a::0\na::_: "x" %if bit_set(3)', "no text", (2, 1)
    ),
    "a repetition": ('start: "x"{3,2}', "largest count is less than", (1, 11)),
    "a token that is not there": ('start: "x"\n  | <|nope|>', "no token", (2, 5)),
    "an id that is not there": ("start: <[5,999]>", "not all in the vocabulary of 261", (1, 8)),
    "an end token": ('start: "x" <end>', "the token <end> ends the output", (1, 12)),
    "an end token by its id": ('start: "x" <[256]>', "the token 256 ends the output", (1, 12)),
    "a terminal takes what follows": ('start: A "a"\nA: /a+/', "`A` takes all", (2, 1)),
    "a pattern": ("start: /(a/", "unclosed group", (1, 9)),
    "a pattern of another kind": (r"start: /(a)\1/", "backreference", (1, 12)),
    "a terminal within itself": ('start: A\nA: "x" A', "contains itself", (2, 8)),
    "a rule twice": ('start: "x"\nstart: "y"', "defined twice", (2, 1)),
    "an open bracket": ('start: ("x"', "", (1, 12)),
    "a schema that is no JSON": ('start: "x"\n  %json {"type":}', "expected value", (2, 17)),
}  # fmt: skip

GBNF = {
    "an unknown rule": ("root ::= a", "rule `a` is not defined", (1, 10)),
    "an empty grammar": ("", "has no rules", (1, 1)),
    "no root": ('a ::= "x"', "rule `root`, with which", (1, 1)),
    "a rule that needs itself": (
        'root ::= "x" | a\na ::= "y" a', "`a` matches no text: it needs", (2, 1)
    ),
    "left recursion without an end": ("root ::= a\na ::= b\nb ::= a", "needs itself", (2, 1)),
    "left recursion through empty rules": (
        'root ::= a\na ::= e a e\ne ::= "x"? | ""', "`a` matches no text: it needs", (2, 1)
    ),
    "a repetition": ('root ::= "x"{3,2}', "3,2}` are out of order", (1, 13)),
    "a token that is not there": ("root ::= <nope>", "no token", (1, 10)),
    "an id that is not there": ("root ::= <[999]>", "not all in the vocabulary of 261", (1, 10)),
    "an end token": ('root ::= "é" <end>', "the token <end> ends the output", (1, 14)),
    "a rule twice": ('root ::= "x"\nroot ::= "y"', "defined twice, first in line 1", (2, 1)),
    "an open bracket": ('root ::= ("x"', "not closed by", (1, 10)),
    "an open string": ('root ::= "x', "", (1, 10)),
    "an empty class": ("root ::= []", "must not be empty", (1, 10)),
}  # fmt: skip

EBNF = {
    "an unknown rule": ("root ::= a", "rule `a` is not defined", (1, 10)),
    "no root": ('a ::= "x"', "rule `root`, with which", (1, 1)),
    "a rule that needs itself": (
        'root ::= "x" | a\na ::= "y" a', "`a` matches no text: it needs", (2, 1)
    ),
    "left recursion through empty rules": (
        'root ::= a\na ::= e a e\ne ::= "x"? | ""', "`a` matches no text: it needs", (2, 1)
    ),
    "a repetition": ('root ::= "x"{3,2}', "3,2}` are out of order", (1, 13)),
    "a budget of nothing": ('root[max_tokens=0] ::= "x"', "must be at least 1", (1, 17)),
    "an id that is not there": ("root ::= Token(999)", "vocabulary of 261", (1, 10)),
    "an end token": ('root ::= "x" Token(256)', "the token 256 ends the output", (1, 14)),
}  # fmt: skip

PYTHON: dict[str, tuple[Callable[[], Grammar], str]] = {
    "an unknown rule": (lambda: rules({"a": rule("b")}), "the rule 'b'"),
    "a start that is not there": (lambda: rules({"a": "x"}, start="b"), "the start is 'b'"),
    "no rule": (lambda: rules({}), "at least one definition"),
    "a rule that needs itself": (
        lambda: rules({"a": "x" + rule("a")}), "`a` matches no text: it needs"
    ),
    "left recursion through empty rules": (
        lambda: rules({"a": rule("e") + rule("a"), "e": repeat("x")}), "`a` matches no text: it"
    ),
    "a repetition": (lambda: repeat("x", 3, 2), "max must be at least min"),
    "a choice of nothing": (lambda: choice([]), "at least one option"),
    "a token that is not there": (lambda: "x" + token("<nope>"), "no token"),
    "an id that is not there": (lambda: token(999), "not all in the vocabulary of 261"),
    "an end token": (lambda: "x" + token("<end>"), "the token <end> ends the output"),
    "end tokens": (lambda: ffwd.tokens([END, "<end>"]), "these tokens end the output"),
    "no token that is left": (
        lambda: ffwd.tokens([(0, 260)], exclude=True), "all tokens but those that end the output"
    ),
    "a negative budget": (lambda: limit("x", max_tokens=-1), "max_tokens must be from 0"),
    "a stop of nothing": (lambda: text_until([""]), "stop must not be empty"),
    "a stop that may not come": (
        lambda: text_until(["ab"], excluding=["b"]) + "x", "its text would have to"
    ),
    "languages without a text in common": (
        lambda: "x" + (regex("a+") & regex("b+")), "its text would have to"
    ),
    "such languages alone": (lambda: regex("a+") & regex("b+"), "no text matches"),
}  # fmt: skip

TAGS: dict[str, tuple[dict[str, Any], str]] = {
    "a tag without an end": (
        {"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": []},
        "'end' must not be empty",
    ),
    "a tag around what contradicts itself": (
        {"type": "tag", "begin": "<a>", "content": {"type": "regex", "pattern": "a(?!a)(?=a)b"},
         "end": "</a>"},
        "its text would have to",
    ),
    "a tag around nothing": (
        {"type": "tag", "begin": "<a>",
         "content": {"type": "grammar", "grammar": 'root ::= "x" root'}, "end": "</a>"},
        "`root` matches no text: it needs",
    ),
    "a token that is not there": ({"type": "token", "token": "<nope>"}, "<nope>"),
    "an unknown format": ({"type": "tagg"}, "tagg"),
    "a schema without a value": (
        {"type": "json_schema", "json_schema": False}, "it is `false`"
    ),
    "a trigger that begins no tag": (
        {"type": "triggered_tags", "triggers": ["<b"],
         "tags": [{"begin": "<a>", "content": {"type": "any_text"}, "end": "</a>"}]},
        "<a>|trigger",
    ),
}  # fmt: skip


def compiled(grammar: Grammar) -> ffwd.CompiledGrammar:
    return ffwd.compile(grammar, byte_vocabulary(named=True))


def refused(grammar: Grammar, says: str, place: Place) -> None:
    with pytest.raises(GrammarError, match=says) as caught:
        compiled(grammar)
    assert (caught.value.line, caught.value.column) == place, str(caught.value)
    shown = str(caught.value).splitlines()
    # A caret below the place.
    assert shown[-1].index("^") - 2 == caught.value.column - 1, str(caught.value)


@pytest.mark.parametrize("name", LARK)
def test_lark(name: str) -> None:
    text, says, place = LARK[name]
    refused(ffwd.lark(text), says, place)


@pytest.mark.parametrize("name", GBNF)
def test_gbnf(name: str) -> None:
    text, says, place = GBNF[name]
    refused(ffwd.gbnf(text), says, place)


@pytest.mark.parametrize("name", EBNF)
def test_ebnf(name: str) -> None:
    text, says, place = EBNF[name]
    refused(ffwd.ebnf(text), says, place)


@pytest.mark.parametrize("name", PYTHON)
def test_python(name: str) -> None:
    make, says = PYTHON[name]
    with pytest.raises(GrammarError, match=says):
        compiled(make())


@pytest.mark.parametrize("name", TAGS)
def test_structural_tags(name: str) -> None:
    tag, says = TAGS[name]
    with pytest.raises(ffwd.FfwdError, match=says) as caught:
        compiled(ffwd.structural_tag({"type": "structural_tag", "format": tag}))
    assert type(caught.value) is not ffwd.FfwdError


@pytest.mark.parametrize("end", [END, "<end>"])
def test_end_tokens_beside_others_are_left_out(end: int | str) -> None:
    """A set of which some token can come is no fault."""
    matcher = compiled("x" + ffwd.tokens([end, "<tool>"])).matcher()
    assert matcher.accept_tokens([ord("x")])
    assert matcher.validate_tokens([END]) == 0
    assert matcher.validate_tokens([257]) == 1


SCHEMAS = [
    ('start: "x" %json {"type":"strin"}', InvalidSchemaError, "/type", (1, 12)),
    ('start: "x"\n  | %json {"$ref":"#/no"}', InvalidSchemaError, "/$ref", (2, 5)),
    ('start: %json {"minimum":3,"maximum":2,"type":"integer"}',
     UnsatisfiableSchemaError, "", (1, 8)),
    ('start: a b\na: %json {"type":"null"}\nb: %json {"anyOf":[{"pattern":3}]}',
     InvalidSchemaError, "/anyOf/0/pattern", (3, 4)),
    ('start: a | b\na: %json false\nb: %json true', UnsatisfiableSchemaError, "", (2, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "error", "pointer", "place"), SCHEMAS)
def test_schemas_within_lark(
    text: str, error: type[ffwd.SchemaError], pointer: str, place: Place
) -> None:
    """Where the schema is, and where in it."""
    with pytest.raises(error) as caught:
        compiled(ffwd.lark(text))
    assert caught.value.pointer.rpartition("#")[2] == pointer
    assert (caught.value.line, caught.value.column) == place
    assert str(caught.value).splitlines()[-1].endswith("^")


def test_schemas_elsewhere_have_no_line() -> None:
    for grammar in (json_schema({"type": "strin"}), "x" + json_schema({"type": "strin"})):
        with pytest.raises(InvalidSchemaError) as caught:
            compiled(grammar)
        assert (caught.value.pointer, caught.value.line, caught.value.column) == (
            "/type", None, None
        )  # fmt: skip


def test_a_bad_tool_is_named() -> None:
    schema = {"type": "object", "properties": {"a": False}, "required": ["a"]}
    functions = [{"name": "good"}, {"name": "bad", "parameters": schema}]
    tools = [{"type": "function", "function": function} for function in functions]
    with pytest.raises(ffwd.tools.RefusedToolsError) as caught:
        ffwd.openai.tools(tools, format="hermes")
    assert [refusal.name for refusal in caught.value.refused] == ["bad"]


Use = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def use() -> Iterator[Use]:
    """`badgrammars.use` in a process of its own, which is replaced when a test has lost it."""
    context = multiprocessing.get_context("spawn")
    pools: list[ProcessPoolExecutor] = []

    def call(name: str) -> dict[str, Any]:
        if not pools:
            pools.append(ProcessPoolExecutor(1, context, initializer=badgrammars.limit_memory))
            # Importing takes a while, and is no part of what is timed.
            pools[-1].submit(badgrammars.use, "lark: comments").result(timeout=600)
        try:
            return pools[-1].submit(badgrammars.use, name).result(timeout=TIMEOUT_S)
        except (concurrent.futures.TimeoutError, concurrent.futures.BrokenExecutor) as failure:
            for process in list((pools[-1]._processes or {}).values()):
                process.kill()
            pools.pop().shutdown(wait=True, cancel_futures=True)
            raise AssertionError(f"no answer: {type(failure).__name__}") from failure

    yield call
    for pool in pools:
        pool.shutdown()


TYPED = {"GrammarError", "LimitExceededError", "StructuralTagError", "RefusedToolsError"}


@pytest.mark.parametrize("name", badgrammars.LARGE)
def test_large_grammars(use: Use, name: str) -> None:
    """They compile and make masks, or are refused, soon and in little memory."""
    answer = use(name)
    assert answer["error"] in TYPED | {None}, answer
    assert answer["error"] is None or answer["message"]
    assert len(answer["message"]) < 1_000
