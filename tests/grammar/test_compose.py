"""Grammars as values: what composes with what, and what is refused before anything is compiled."""

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import Any

import pytest
from composed import CASES, SUM
from recognise import accepts

import ffwd
from ffwd.grammar import Choice, Repeat, Rules, Seq, Text

EVERY: list[ffwd.Grammar] = [
    ffwd.lit("a"),
    ffwd.lit("<|x|>", controls=True),
    ffwd.regex("[a-z]+"),
    ffwd.json_schema({"type": "object"}),
    ffwd.choice(["a", ffwd.regex("b")]),
    ffwd.seq("a", ffwd.regex("b")),
    ffwd.repeat("a", 1, 3, separator=","),
    ffwd.optional("a"),
    ffwd.any_text(excluding=["x"], max_chars=4),
    ffwd.text_until("x"),
    ffwd.dispatch({"<x>": "a"}),
    ffwd.token(3),
    ffwd.tokens([1, (5, 9), "<|x|>"], exclude=True),
    ffwd.capture("name", "a"),
    ffwd.span("tool_call", "a", name="f"),
    ffwd.limit("a", max_tokens=3),
    ffwd.template("{x}!", x=ffwd.regex("a+")),
    SUM,
    ffwd.lark('start: "a"'),
    ffwd.gbnf('root ::= "a"'),
    ffwd.ebnf('root ::= "a"'),
    ffwd.reasoning("a"),
    ffwd.structural_tag({"type": "structural_tag", "format": {"type": "any_text"}}),
]


def names_of_calls() -> dict[str, Any]:
    return {name: getattr(ffwd, name) for name in dir(ffwd) if not name.startswith("_")}


@pytest.mark.parametrize("grammar", EVERY, ids=repr)
def test_a_grammar_is_a_value(grammar: ffwd.Grammar) -> None:
    """It can be shown, compared, hashed, copied and sent to another process."""
    assert isinstance(grammar, ffwd.Grammar)
    same = eval(repr(grammar), names_of_calls())
    for other in (same, copy.deepcopy(grammar), pickle.loads(pickle.dumps(grammar))):
        assert other == grammar
        assert hash(other) == hash(grammar)
        assert repr(other) == repr(grammar)
    for field in dataclasses.fields(grammar):  # type: ignore[arg-type]
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(grammar, field.name, None)


def test_grammars_differ() -> None:
    """Each is equal to itself alone."""
    assert len(set(EVERY)) == len(EVERY)
    for index, grammar in enumerate(EVERY):
        assert [other == grammar for other in EVERY] == [i == index for i in range(len(EVERY))]
    assert ffwd.lit("a") != "a"
    assert ffwd.repeat("a", 1) != ffwd.repeat("a")
    assert ffwd.choice(["a", ffwd.regex("b")]) != ffwd.choice([ffwd.regex("b"), "a"])


@pytest.mark.parametrize("inner", EVERY, ids=repr)
def test_any_may_be_part_of_any(inner: ffwd.Grammar) -> None:
    """Whatever it was read from."""
    for outer in (
        inner + "x",
        "x" + inner,
        inner | "x",
        "x" | inner,
        ffwd.seq(inner, inner),
        ffwd.choice([inner, "x"]),
        ffwd.repeat(inner, separator=inner),
        ffwd.optional(inner),
        ffwd.capture("c", inner),
        ffwd.limit(inner, max_tokens=5),
        ffwd.rule("r", inner),
        ffwd.rules({"r": inner}),
        ffwd.dispatch({"t": inner}),
        ffwd.template("{f}", f=inner),
        ffwd.reasoning(inner),
    ):
        assert isinstance(outer, ffwd.Grammar)
        assert outer != inner


def test_operators_flatten() -> None:
    """So that long sums have short reprs."""
    a, b, c = ffwd.regex("a"), ffwd.regex("b"), ffwd.regex("c")
    assert (a + b) + c == a + (b + c) == ffwd.seq(a, b, c) == Seq((a, b, c))
    assert (a | b) | c == a | (b | c) == Choice((a, b, c))
    assert "x" + a + "y" == Seq((Text("x"), a, Text("y")))
    assert ffwd.seq(a) is a
    assert ffwd.seq() == Seq(())
    for call in (lambda: a + 1, lambda: 1 + a, lambda: a | None, lambda: None | a):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize(("grammar", "yes", "no"), CASES, ids=repr)
def test_what_grammars_mean(grammar: ffwd.Grammar, yes: list[str], no: list[str]) -> None:
    """By the slow recogniser."""
    assert [text for text in yes if not accepts(grammar, text)] == []
    assert [text for text in no if accepts(grammar, text)] == []


def test_names_mean_the_innermost_rule() -> None:
    """Each definition is its own scope."""
    inner = ffwd.rules({"a": "x", "b": ffwd.rule("a") + ffwd.rule("c")}, start="b")
    outer = ffwd.rules({"a": "y", "c": "z", "s": ffwd.rule("a") + inner + ffwd.rule("a")}, "s")
    assert accepts(outer, "yxzy")
    assert not accepts(outer, "xxzx")
    # The same value at two places, where a name means different rules.
    free = ffwd.rule("a") + "!"
    both = ffwd.rules({"a": "1", "s": free + ffwd.rules({"a": "2", "t": free}, "t")}, "s")
    assert accepts(both, "1!2!")
    assert not accepts(both, "1!1!")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ffwd.choice([]), "at least one"),
        (lambda: ffwd.repeat("a", 3, 1), "max must be at least min"),
        (lambda: ffwd.repeat("a", -1), "min must be from 0"),
        (lambda: ffwd.repeat("a", 0, 2**32), "max must be from 0"),
        (lambda: ffwd.rule(""), "must not be empty"),
        (lambda: ffwd.rules({}), "at least one definition"),
        (lambda: ffwd.rules({"a": "x"}, "b"), "the start is 'b'"),
        (lambda: Rules((("a", Text("x")), ("a", Text("y"))), "a"), "defined twice"),
        (lambda: ffwd.token(-1), "no token has the id"),
        (lambda: ffwd.token(""), "must not be empty"),
        (lambda: ffwd.tokens([]), "at least one token"),
        (lambda: ffwd.tokens([(5, 4)]), "no token has the id"),
        (lambda: ffwd.tokens([range(0, 8, 2)]), "step 1"),
        (lambda: ffwd.any_text(excluding=["a", ""]), "must not be empty"),
        (lambda: ffwd.any_text(max_chars=-1), "max_chars"),
        (lambda: ffwd.text_until([]), "at least one stop"),
        (lambda: ffwd.text_until(""), "must not be empty"),
        (lambda: ffwd.dispatch({}), "at least one trigger"),
        (lambda: ffwd.dispatch({"": "a"}), "must not be empty"),
        (lambda: ffwd.capture("", "a"), "must not be empty"),
        (lambda: ffwd.limit("a", max_tokens=-1), "max_tokens"),
        (lambda: ffwd.reasoning("a", close=""), "must not be empty"),
        (lambda: ffwd.reasoning("a", max_tokens=-1), "max_tokens"),
        (lambda: ffwd.template("{a", a="x"), "cannot be read"),
        (lambda: ffwd.template("a}", a="x"), "cannot be read"),
        (lambda: ffwd.template("{a!r}", a="x"), "plain name"),
        (lambda: ffwd.template("{a:3}", a="x"), "plain name"),
        (lambda: ffwd.template("{a.b}", a="x"), "plain name"),
        (lambda: ffwd.template("{}", a="x"), "needs a name"),
        (lambda: ffwd.template("x", a="x"), "no field 'a'"),
        (lambda: ffwd.lit("\ud800"), "lone surrogate"),
        (lambda: ffwd.lark("\ud800"), "lone surrogate"),
        (lambda: ffwd.gbnf("x", ""), "must not be empty"),
    ],
)
def test_bad_grammars(call: Any, message: str) -> None:
    """Refused where they are made, by what is wrong."""
    with pytest.raises(ffwd.GrammarError, match=message) as caught:
        call()
    assert (caught.value.line, caught.value.column) == (1, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ffwd.lit(b"a"),  # type: ignore[arg-type]
        lambda: ffwd.seq("a", None),  # type: ignore[arg-type]
        lambda: ffwd.repeat(1),  # type: ignore[arg-type]
        lambda: ffwd.repeat("a", True),
        lambda: ffwd.repeat("a", 1.0),  # type: ignore[arg-type]
        lambda: ffwd.optional(None),  # type: ignore[arg-type]
        lambda: ffwd.rule(1),  # type: ignore[arg-type]
        lambda: ffwd.rules([("a", "x")]),  # type: ignore[arg-type]
        lambda: ffwd.rules({"a": 1}),  # type: ignore[dict-item]
        lambda: ffwd.token(1.0),  # type: ignore[arg-type]
        lambda: ffwd.token(True),
        lambda: ffwd.tokens("abc"),
        lambda: ffwd.tokens([b"a"]),  # type: ignore[list-item]
        lambda: ffwd.tokens([1], exclude=1),  # type: ignore[arg-type]
        lambda: ffwd.any_text(excluding=b"a"),  # type: ignore[arg-type]
        lambda: ffwd.any_text(excluding=[1]),  # type: ignore[list-item]
        lambda: ffwd.text_until("a", include=1),  # type: ignore[arg-type]
        lambda: ffwd.dispatch({"a": 1}),  # type: ignore[dict-item]
        lambda: ffwd.dispatch({"a": "b"}, loop=1),  # type: ignore[arg-type]
        lambda: ffwd.capture(1, "a"),  # type: ignore[arg-type]
        lambda: ffwd.limit("a", max_tokens="3"),  # type: ignore[arg-type]
        lambda: ffwd.template(ffwd.lit("a")),  # type: ignore[arg-type]
        lambda: ffwd.template("{a}", a=1),  # type: ignore[arg-type]
        lambda: ffwd.reasoning("a", close=3),  # type: ignore[arg-type]
        lambda: ffwd.reasoning("a", opened=None),  # type: ignore[arg-type]
        lambda: ffwd.lark(b"start: A"),  # type: ignore[arg-type]
        lambda: Repeat("a"),  # type: ignore[arg-type]
        lambda: Seq(["a"]),  # type: ignore[arg-type]
        lambda: ffwd.structural_tag([]),  # type: ignore[arg-type]
    ],
)
def test_wrong_types(call: Any) -> None:
    """Mistakes of the program."""
    with pytest.raises(TypeError):
        call()


def test_a_template_names_the_place() -> None:
    """Of a field that is not given."""
    with pytest.raises(ffwd.GrammarError, match="'b' is not given") as caught:
        ffwd.template("a\n {a} {b}", a="x")
    assert (caught.value.line, caught.value.column) == (2, 6)


def test_kinds_of_spans() -> None:
    """There are only these."""
    with pytest.raises(ValueError, match="kind must be one of capture, reasoning"):
        ffwd.span("tool", "a")  # type: ignore[arg-type]


def test_what_is_shared_is_small() -> None:
    """A value with exponentially many places is compared, hashed, shown and lowered at once."""
    one: ffwd.Grammar = ffwd.regex("a")
    other: ffwd.Grammar = ffwd.regex("a")
    for _ in range(200):
        one, other = Seq((one, one)), Seq((other, other))
    assert one == other
    assert hash(one) == hash(other)
    assert len(repr(one)) < 3000
    for _ in range(200):
        one = ffwd.rules({"x": one, "s": Seq((one, ffwd.rule("x"), one))}, "s")
    assert hash(one) != hash(other)


def test_nesting_has_no_limit() -> None:
    """Nothing here recurses."""
    deep: ffwd.Grammar = ffwd.rule("r")
    for _ in range(100_000):
        deep = ffwd.repeat(deep, 0, 3)
    deep = ffwd.rule("r", deep)
    assert hash(deep)
    assert deep == deep
    assert repr(deep).startswith("rules({'r': repeat(")


def test_hashes_of_another_process() -> None:
    """Are not kept by pickle: strings have other ones there."""
    code = "import sys, pickle, ffwd; sys.stdout.buffer.write(pickle.dumps(ffwd.lit('a') | 'b'))"
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": "7"}
        | {"PYTHONPATH": ":".join(sys.path)}
    )  # fmt: skip
    assert pickle.loads(made.stdout) in {ffwd.lit("a") | "b"}
