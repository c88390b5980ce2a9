"""Descriptions of grammars: what they keep, and what they refuse before anything is compiled."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ffwd
from ffwd.grammar import Choice, JsonSchema, Regex, choice, json_schema, regex

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


def nested(depth: int) -> dict[str, Any]:
    """`depth` objects, one in the other."""
    schema: dict[str, Any] = {}
    for _ in range(depth - 1):
        schema = {"not": schema}
    return schema


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=4))
def test_a_dict_becomes_the_same_json(schema: dict[str, Any]) -> None:
    """Values and order."""
    text = json_schema(schema).schema
    again = json.loads(text)
    assert again == schema
    assert json.dumps(again) == json.dumps(schema)


def test_order_and_characters_are_kept() -> None:
    """Properties come in declared order, and a pointer shows names as they were written."""
    assert json_schema({"b": 1, "a": "é😀"}).schema == '{"b": 1, "a": "é😀"}'


def test_text_is_taken_as_it_is() -> None:
    """Also text that is no schema: what is in it, `compile` looks at."""
    assert json_schema('{ "type":"object"}').schema == '{ "type":"object"}'
    assert json_schema(True).schema == json_schema("true").schema == "true"
    assert json_schema(False).schema == "false"


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"minimum": math.nan}, "/minimum"),
        ({"enum": [1, math.inf]}, "/enum/1"),
        ({"enum": [-math.inf]}, "/enum/0"),
        ({"properties": {"a/b~": {"const": "\ud800"}}}, "/properties/a~1b~0/const"),
        ({"properties": {"\udfff": {}}}, "/properties"),
        ({"properties": {1: {}}}, "/properties"),
        ({"enum": [{None: 1}]}, "/enum/0"),
        ({"enum": {1, 2}}, "/enum"),
        ({"const": b"bytes"}, "/const"),
        ({"const": np.float32(1)}, "/const"),
        ({"x": [math.nan], "y": math.nan}, "/x/0"),
    ],
)
def test_what_json_does_not_have_is_refused(schema: dict[Any, Any], pointer: str) -> None:
    """With the place in the schema."""
    with pytest.raises(ffwd.InvalidSchemaError) as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer
    assert pointer in str(caught.value)


def test_a_lone_surrogate_in_the_text_is_refused() -> None:
    """UTF-8 has no form for it, so the native core could not be given the text."""
    with pytest.raises(ffwd.InvalidSchemaError) as caught:
        json_schema('{"const": "\ud800"}')
    assert caught.value.pointer == ""


def test_nesting_is_bounded() -> None:
    """Long before Python's own recursion limit would end the process's call."""
    assert json_schema(nested(512)).schema.count("{") == 512
    for depth in (514, 200_000):
        with pytest.raises(ffwd.LimitExceededError) as caught:
            json_schema(nested(depth))
        assert (caught.value.limit, caught.value.maximum) == ("nesting", 512)
        # The place is said whole where a program reads it, and in short where people do.
        assert len(caught.value.pointer) > 2000
        assert len(str(caught.value)) < 300


def test_a_value_that_contains_itself_is_refused() -> None:
    """It has no text."""
    schema: dict[str, Any] = {}
    schema["not"] = {"allOf": [schema]}
    with pytest.raises(ffwd.InvalidSchemaError, match="circular: the root contains") as raised:
        json_schema(schema)
    assert raised.value.pointer == "/not/allOf/0"
    schema = {"const": []}
    schema["const"].append(schema["const"])
    with pytest.raises(ffwd.InvalidSchemaError, match="circular: /const contains itself"):
        json_schema(schema)


def test_a_value_that_is_repeated_exponentially_is_refused() -> None:
    """Small in memory, and its text would fill every disk."""
    lists: list[Any] = []
    text: list[Any] = ["x" * 1_000_000] * 1000
    for _ in range(100):
        lists = [lists, lists]
    with pytest.raises(ffwd.LimitExceededError, match="schema_values"):
        json_schema({"enum": lists})
    with pytest.raises(ffwd.LimitExceededError, match="schema_characters"):
        json_schema({"enum": text})


def test_a_long_integer_is_refused() -> None:
    """Python would refuse to write it."""
    assert json_schema({"maximum": 2**13_999}).schema
    with pytest.raises(ffwd.LimitExceededError, match="integer"):
        json_schema({"maximum": 2**15_000})


@pytest.mark.parametrize("schema", [None, 1, [], b"{}", object()])
def test_a_schema_of_another_type(schema: Any) -> None:
    """A mistake of the program, not of the schema's author."""
    with pytest.raises(TypeError, match="schema must be"):
        json_schema(schema)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"whitespace": "none"}, ValueError),
        ({"whitespace": None}, ValueError),
        ({"max_whitespace": -1}, ValueError),
        ({"max_whitespace": 4097}, ValueError),
        ({"max_whitespace": True}, TypeError),
        ({"max_whitespace": 1.0}, TypeError),
        ({"max_whitespace": "1"}, TypeError),
    ],
)
def test_options_are_checked(options: dict[str, Any], error: type[Exception]) -> None:
    """In the function and in the data class."""
    with pytest.raises(error, match="whitespace"):
        json_schema({}, **options)
    with pytest.raises(error, match="whitespace"):
        JsonSchema("{}", **options)


@pytest.mark.parametrize(
    ("pattern", "line", "column"),
    [("\ud800", 1, 1), ("ab\udfff", 1, 3), ("a\nbc\n\nd\ud800", 4, 2)],
)
def test_a_pattern_with_a_lone_surrogate(pattern: str, line: int, column: int) -> None:
    """The place counts from 1."""
    for call in (regex, lambda text: choice(["fine", text])):
        with pytest.raises(ffwd.GrammarError) as caught:
            call(pattern)
        assert (caught.value.line, caught.value.column) == (line, column)


def test_patterns_are_kept() -> None:
    """Whatever is in them."""
    assert regex("(?x) a # b\n").pattern == "(?x) a # b\n"
    with pytest.raises(TypeError, match="pattern must be"):
        regex(b"a")  # type: ignore[arg-type]


def test_choices() -> None:
    """A sequence of texts, of which a text is not one."""
    assert choice(["a", "", "a"]) == Choice(("a", "", "a"))
    with pytest.raises(TypeError, match="not one str"):
        choice("abc")
    with pytest.raises(TypeError, match="option 1"):
        choice(["a", 1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="tuple"):
        Choice(["a"])  # type: ignore[arg-type]
    with pytest.raises(ffwd.GrammarError, match="at least one"):
        choice([])


def test_descriptions_are_values() -> None:
    """They can be keys of a cache, and cannot be changed."""
    assert len({json_schema({}), json_schema("{}"), regex("a"), Regex("a"), choice(["a"])}) == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        regex("a").pattern = "b"  # type: ignore[misc]


def test_compile_checks_its_arguments() -> None:
    """Before anything native is called."""
    with pytest.raises(TypeError, match="vocabulary must be a Vocabulary"):
        ffwd.compile(regex("a"), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("batch_size", "vocab_size", "shape"),
    [(1, 1, (1, 1)), (3, 32, (3, 1)), (2, 33, (2, 2)), (0, 5, (0, 1)), (1, 128_256, (1, 4008))],
)
def test_a_new_bitmask_allows_everything(
    batch_size: int, vocab_size: int, shape: tuple[int, int]
) -> None:
    """One word per 32 tokens, rounded up."""
    bitmask = ffwd.allocate_bitmask(batch_size, vocab_size)
    assert (bitmask.shape, bitmask.dtype) == (shape, np.int32)
    assert (bitmask.view(np.uint32) == 0xFFFFFFFF).all()
    assert bitmask.flags.c_contiguous
    assert bitmask.flags.writeable


@pytest.mark.parametrize(("batch_size", "vocab_size"), [(-1, 5), (1, 0), (1, -32)])
def test_a_bitmask_of_no_size(batch_size: int, vocab_size: int) -> None:
    """Refused by name."""
    with pytest.raises(ffwd.BitmaskError, match="must"):
        ffwd.allocate_bitmask(batch_size, vocab_size)
