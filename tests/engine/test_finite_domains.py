"""Items that depend on each other, where they have few values: exact masks, and no dead ends.

`python -m maskbench conformance finite` compares more schemas than are compared here.
"""

import json
import random
from typing import Any

import jsonschema_rs
import pytest

import ffwd
from maskbench.conformance.gates import finite
from maskbench.conformance.gates.walks import VocabularyTokens, byte_tokens
from maskbench.documents import Whitespace

FLAG = {"type": "object", "properties": {"x": {"type": "boolean"}}, "additionalProperties": False}


def pair(values: list[int]) -> Any:
    return {
        "type": "object",
        "properties": {"x": {"type": "boolean"}, "y": {"enum": values}},
        "required": ["x", "y"],
        "additionalProperties": False,
    }


def unique(**keywords: Any) -> Any:
    return {"type": "array", "uniqueItems": True, **keywords}


PAIRS = unique(minItems=3, maxItems=3, prefixItems=[pair([1, 2]), pair([1]), pair([1])])
TWO_CONTAINS = unique(
    items={"enum": [1, 2, 3]},
    allOf=[
        {"contains": {"enum": [1, 2]}, "minContains": 2},
        {"contains": {"enum": [1, 3]}, "minContains": 2},
    ],
)
ONE_LETTER = {"type": "array", "items": {"const": "a"}, "minItems": 1, "maxItems": 1}
NESTED = {
    "anyOf": [
        {"type": "null"},
        {"type": "array", "items": {"$ref": "#"}, "uniqueItems": True, "minItems": 2},
    ]
}
# Each value is built of the one before it.
CHAIN = {
    "anyOf": [
        {"const": "a"},
        unique(prefixItems=[{"$ref": "#"}, {"const": {}}], items=False, minItems=2),
    ]
}


@pytest.fixture(scope="module")
def tokens() -> VocabularyTokens:
    return byte_tokens()


def compiled(schema: Any, tokens: VocabularyTokens) -> ffwd.CompiledGrammar:
    grammar = ffwd.json_schema(schema, property_order="any", whitespace="compact")
    return ffwd.compile(grammar, tokens.vocabulary)


@pytest.mark.parametrize(
    "schema",
    [
        unique(minItems=2, items=ONE_LETTER),
        unique(minItems=4, items=FLAG),
        unique(minItems=3, items=FLAG | {"required": ["x"]}),
        unique(minItems=1502, items={"type": "integer", "minimum": 0, "maximum": 1500}),
        unique(minItems=4, items={"enum": [[1], [1.0], {"a": 1, "b": 2}, {"b": 2, "a": 1}, 3]}),
        unique(minItems=3, items=unique(items={"const": "a"})),
        unique(items=FLAG, contains={"required": ["x"]}, minContains=3),
        unique(minItems=6, items=unique(items={"enum": ["a", "b"]})),
    ],
)
def test_too_few_values_for_so_many_items(schema: Any, tokens: VocabularyTokens) -> None:
    with pytest.raises(ffwd.UnsatisfiableSchemaError):
        compiled(schema, tokens)


@pytest.mark.parametrize(
    ("schema", "valid"),
    [
        (TWO_CONTAINS, "[1,2,3]"),
        (unique(minItems=3, items=FLAG), '[{"x":true},{},{"x":false}]'),
        (unique(minItems=5, items=unique(items={"enum": ["a", "b"]})), None),
        (unique(minItems=20, items={"type": "integer", "minimum": 0, "maximum": 19}), None),
        (NESTED, "null"),
        (CHAIN, '[[["a",{}],{}],{}]'),
    ],
)
def test_just_enough_values(schema: Any, valid: str | None, tokens: VocabularyTokens) -> None:
    matcher = compiled(schema, tokens).matcher()
    if valid is None:
        completion = [token for token in matcher.shortest_completion() if token < 256]
        valid = bytes(completion).decode()
        assert jsonschema_rs.is_valid(schema, json.loads(valid))
    assert matcher.accept_tokens(list(valid.encode()))
    assert matcher.is_accepting()


def test_a_long_list_of_values_is_begun(tokens: VocabularyTokens) -> None:
    numbers = {"type": "integer", "minimum": 0, "maximum": 1500}
    matcher = compiled(unique(minItems=1501, items=numbers), tokens).matcher()
    assert matcher.accept_tokens(list(b"[1500,0,"))
    assert matcher.validate_tokens(list(b"7,")) == 2
    assert matcher.validate_tokens(list(b"0,")) == 0
    assert matcher.validate_tokens(list(b"7]")) == 1


def test_an_array_that_could_only_go_on_for_ever_is_not_begun(tokens: VocabularyTokens) -> None:
    matcher = compiled(NESTED, tokens).matcher()
    matcher.fill_bitmask(tokens.rows)
    assert [chr(token) for token, bit in enumerate(tokens.allowed()) if bit] == ["n"]


PAIR = unique(
    prefixItems=[{"$ref": "#/$defs/r"}] * 2,
    minItems=2,
    maxItems=2,
    contains={"type": "object", "properties": {"x": {"enum": [True, "n", "ab", "a"]}}},
)
COUNTED = unique(
    prefixItems=[{"const": 1}, {"$ref": "#/$defs/r"}],
    items={"$ref": "#/$defs/r"},
    contains={"anyOf": [{"type": "boolean"}, {"const": 3}]},
    maxContains=3,
)


@pytest.mark.parametrize(
    ("base", "inner", "text"),
    [
        ([{"enum": ["b", {"x": "a"}]}], PAIR, b'[{"x":"a"},["b",{"x":"a"}]]'),
        ([{"const": 3}], COUNTED, b"[1,3,[1,3],[1,[1,3],3]]"),
        ([{"const": False}], unique(items={"$ref": "#/$defs/r"}, maxItems=2), b"[[[false]],[[]]]"),
    ],
)
def test_values_of_values_take_few_steps(
    base: list[Any], inner: Any, text: bytes, tokens: VocabularyTokens
) -> None:
    """Each round of values has more arrays than the last one; a mask needs not list them all."""
    schema = {"$ref": "#/$defs/r", "$defs": {"r": {"anyOf": [*base, inner]}}}
    matcher = compiled(schema, tokens).matcher(limits=ffwd.Limits(call_steps=1_500_000))
    for byte in text:
        assert byte in matcher.allowed_token_ids()
        assert matcher.accept_token(byte)
    assert matcher.is_accepting()


@pytest.mark.parametrize("schema", [PAIRS, {"anyOf": [{"type": "null"}, PAIRS]}, TWO_CONTAINS])
def test_walks_never_meet_a_token_that_is_refused(schema: Any, tokens: VocabularyTokens) -> None:
    grammar = compiled(schema, tokens)
    (end,) = tokens.ends
    source = random.Random(0)
    for _ in range(60):
        matcher = grammar.matcher(max_tokens=120)
        text = bytearray()
        while True:
            matcher.fill_bitmask(tokens.rows)
            allowed = [token for token, bit in enumerate(tokens.allowed()) if bit]
            token = source.choice(allowed)
            assert matcher.accept_token(token), (bytes(text), token)
            if token == end:
                break
            text.append(token)
        assert jsonschema_rs.is_valid(schema, json.loads(text)), text


def test_masks_in_flexible_white_space_are_those_of_all_texts_but_for_blanks() -> None:
    report = finite.run(100, 2027, finite.joined_tokens(), Whitespace.FLEXIBLE)
    assert report.failures == []
    assert report.exact > report.schemas * 0.3


@pytest.mark.parametrize("whitespace", [Whitespace.CONSISTENT, Whitespace.SINGLE_SPACE])
def test_masks_are_those_of_all_layouts(whitespace: Whitespace) -> None:
    report = finite.run(60, 2028, finite.joined_tokens(), whitespace)
    assert report.failures == []
    assert report.exact > report.schemas * 0.3


def test_masks_are_those_of_all_texts() -> None:
    report = finite.run(600, 2026, finite.joined_tokens())
    assert report.failures == []
    assert report.refused.total() <= report.schemas * 0.01, report.refused
    assert report.exact > report.schemas * 0.3
    assert report.unsatisfiable < report.schemas * 0.4
