"""How numbers are written: plainly, unless all valid spellings are asked for."""

import itertools
import json
import math
import random
from typing import Any

import jsonschema_rs
import pytest
from compiled import END, accepts, byte_vocabulary, mask

import ffwd


def made(schema: Any, **options: Any) -> ffwd.CompiledGrammar:
    grammar = ffwd.json_schema(schema, whitespace="compact", **options)
    return ffwd.compile(grammar, byte_vocabulary())


@pytest.mark.parametrize(
    ("schema", "plain", "only_any"),
    [
        (
            {"type": "number"},
            ["1.0", "1e3", "40801796E0300", "1.7976931348623157e308", "5e-9999", "0e4845"],
            ["40801796E04845", "1e309", "-1e400", "9" * 400, "1.8e308"],
        ),
        (
            {"type": "integer"},
            ["21", "-0", "9" * 308, "1" * 309],
            ["21.0", "2e1", "-0.0", "1" * 310],
        ),
        ({"type": ["integer", "string"], "minimum": 3}, ["3", '"a"'], ["3.0", "3e0", "1e400"]),
        ({"type": "number", "multipleOf": 5}, ["10"], ["10.0", "5e1"]),
        ({"type": "number", "multipleOf": 0.5}, ["10", "10.0", "1.5", "5e3"], ["5e400"]),
        ({"enum": [1, 2]}, ["1"], ["1.0", "1e0"]),
        ({"const": 3, "type": "integer"}, ["3"], ["3.0"]),
        ({"enum": [1, 2.5]}, ["1", "1.0", "2.5", "2.50"], []),
        ({"type": "number", "exclusiveMinimum": 0}, ["0.001", "12e3", "1e308"], ["1e309"]),
        ({"type": "number", "minimum": -5}, ["12e3", "-4.5", "0.5"], ["1e400"]),
        ({"type": "integer", "not": {"const": 4}}, ["3", "5"], ["3.0", "1e400"]),
        # Bounds and values that ask for more.
        ({"type": "number", "minimum": 1e300}, ["1e300", "1e308"], ["1e309"]),
        ('{"type": "number", "minimum": 1e400}', ["1e400", "2e999"], []),
        ('{"type": "number", "maximum": 1e400}', ["1e399", "-1e308"], ["-1e309"]),
        ('{"type": "integer", "minimum": 1e400}', ["1" + "0" * 400], ["1e400"]),
        ('{"enum": [1e400, 1]}', ["1" + "0" * 400, "1"], ["1.0", "1e400"]),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}, ["1"], []),
    ],
)
def test_spellings(schema: Any, plain: list[str], only_any: list[str]) -> None:
    one, other = made(schema), made(schema, numbers="any")
    for text in plain:
        assert accepts(one, text), text[:40]
        assert accepts(other, text), text[:40]
    for text in only_any:
        assert not accepts(one, text), text[:40]
        assert accepts(other, text), text[:40]


ITEMS = ["0", "1", "-1", "2", "3", "1.5", "-0.5", "100", "1.5e-7"]
SPELLED = [*ITEMS, "1.0", "2.0", "1e0", "10e-1", "3.00", "1e22", "1e400", "0.0", '"1"', "null"]
# Schemas in which something depends on what a number is not.
SCHEMAS: list[Any] = [
    {"contains": {"type": "integer"}, "minContains": 1, "maxContains": 1},
    {"items": {"type": "number"}, "contains": {"type": "integer"}, "maxContains": 1},
    {"items": {"type": "integer"}, "contains": {"minimum": 2}, "maxContains": 1},
    {"items": {"oneOf": [{"type": "integer"}, {"type": "number", "maximum": 1}]}},
    {"items": {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 1.5}]}},
    {"items": {"type": "number", "not": {"type": "integer", "minimum": 1}}},
    {"items": {"if": {"type": "integer"}, "then": {"minimum": 1}, "else": {"type": "number"}}},
    {"items": {"type": "integer"}, "uniqueItems": True},
    {"items": {"type": "number"}, "uniqueItems": True},
    {"not": {"items": {"type": "integer"}}},
    {"not": {"contains": {"const": 1}}, "items": {"type": ["integer", "null"]}},
    {"prefixItems": [{"type": "integer"}], "unevaluatedItems": {"type": "number"}},
    {"oneOf": [{"items": {"type": "integer"}}, {"items": {"maximum": 1}}]},
    {"items": {"enum": [1, 2, 3]}, "uniqueItems": True, "contains": {"enum": [1]}},
]


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_what_depends_on_numbers_is_judged_by_their_values(schema: Any, order: str) -> None:
    """What is taken is valid, and of what is written plainly nothing else is refused."""
    schema = {"type": "array", "maxItems": 3, **schema}
    one, other = (made(schema, numbers=n, property_order=order) for n in ("plain", "any"))
    validator = jsonschema_rs.Draft202012Validator(schema)
    taken = 0
    for items in itertools.chain(
        itertools.product(SPELLED, repeat=1), itertools.product(SPELLED, repeat=2)
    ):
        text = f"[{','.join(items)}]"
        if accepts(one, text):
            taken += 1
            assert accepts(other, text), text
            assert all(math.isfinite(i) for i in json.loads(text) if isinstance(i, (int, float)))
            assert validator.is_valid(json.loads(text)), text
        elif all(item in ITEMS or item in ('"1"', "null") for item in items):
            assert not accepts(other, text), text
    assert taken


def test_walks_are_finite_and_end() -> None:
    """Bytes at random, mostly digits: each text can be ended, and is a finite double."""
    source = random.Random(5)
    schemas = [
        {"type": "number"},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number", "maximum": -3.5},
        {"type": "integer"},
        {"type": "integer", "minimum": 17},
        {"type": "number", "multipleOf": 0.25},
    ]
    for round_number in range(60):
        matcher = made(schemas[round_number % len(schemas)]).matcher()
        written = bytearray()
        for _ in range(source.choice([5, 20, 330])):
            bits = mask(matcher, END + 1)
            allowed = [byte for byte in range(END) if bits[byte]]
            digits = [byte for byte in allowed if chr(byte).isdigit()]
            if not allowed:
                break
            rare = not digits or source.random() < 0.02
            byte = source.choice(allowed if rare else digits)
            assert matcher.accept_token(byte)
            written.append(byte)
        while not (bits := mask(matcher, END + 1))[END]:
            byte = next(byte for byte in b"0123456789.e-" if bits[byte])
            assert matcher.accept_token(byte)
            written.append(byte)
        assert math.isfinite(float(written))


def test_all_schemas_of_a_grammar_write_numbers_alike() -> None:
    parts = [ffwd.json_schema(True), ffwd.json_schema(True, numbers="any")]
    with pytest.raises(ffwd.GrammarError, match="the same numbers"):
        ffwd.compile(ffwd.seq(*parts), byte_vocabulary())
    with pytest.raises(ValueError, match="numbers must be one of plain, any"):
        ffwd.json_schema(True, numbers="all")  # type: ignore[call-overload]


def test_a_saved_grammar_keeps_how_numbers_are_written() -> None:
    for numbers in ("plain", "any"):
        grammar = made({"type": "integer"}, numbers=numbers)
        loaded = ffwd.CompiledGrammar.from_bytes(grammar.to_bytes(), byte_vocabulary())
        assert accepts(loaded, "1.0") == (numbers == "any")
