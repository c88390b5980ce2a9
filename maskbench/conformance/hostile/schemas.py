"""Hostile JSON Schemas."""

from __future__ import annotations

import json
import string
from typing import Any

import ffwd
from ffwd import Grammar
from maskbench.conformance.hostile.case import HostileCase

WORDS = [a + b + c for a in string.ascii_letters for b in string.ascii_letters for c in "wxyz"]


def _schema(name: str, what: str, schema: Any, begin: bytes = b"") -> HostileCase:
    def grammar() -> Grammar:
        made: Grammar = ffwd.json_schema(
            schema() if callable(schema) else schema, whitespace="flexible"
        )
        return made

    return HostileCase(name, what, grammar, begin)


def _nested(opening: str, inner: str, closing: str, levels: int) -> str:
    return opening * levels + inner + closing * levels


def _fibonacci(levels: int) -> dict[str, Any]:
    """Return definitions that each refer to the one before twice."""
    definitions: dict[str, Any] = {"d0": {"type": "integer"}}
    for n in range(1, levels):
        below = {"$ref": f"#/$defs/d{n - 1}"}
        definitions[f"d{n}"] = {
            "type": "object",
            "properties": {"l": below, "r": below},
            "required": ["l", "r"],
        }
    return {"$ref": f"#/$defs/d{levels - 1}", "$defs": definitions}


def _products(count: int, keyword: str = "anyOf") -> dict[str, Any]:
    """Return a conjunction of choices: 2 ** count alternatives when it is multiplied out."""
    return {
        "allOf": [
            {
                keyword: [
                    {"properties": {f"k{n}": {"type": kind}}, "required": [f"k{n}"]}
                    for kind in ("integer", "string")
                ]
            }
            for n in range(count)
        ]
    }


def _fan(levels: int, width: int) -> dict[str, Any]:
    """Return definitions that are each any of several references to the next."""
    definitions = {
        f"d{n}": {
            "anyOf": [
                {
                    "properties": {f"p{n}_{w}": {"$ref": f"#/$defs/d{n + 1}"}},
                    "required": [f"p{n}_{w}"],
                }
                for w in range(width)
            ]
        }
        for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {"type": "null"}}}


def _one_of(count: int) -> dict[str, Any]:
    """Return objects that may all be the same one."""
    return {
        "oneOf": [
            {
                "type": "object",
                "properties": {f"a{n}": {"minimum": n}, "b": {"maxLength": n}},
                "minProperties": n % 4,
            }
            for n in range(count)
        ]
    }


def _unevaluated(count: int) -> dict[str, Any]:
    """Return a schema whose evaluated properties depend on each of the conditions."""
    return {
        "type": "object",
        "allOf": [
            {
                "if": {"required": [f"k{n}"]},
                "then": {"properties": {f"t{n}": {"type": "integer"}}},
                "else": {"properties": {f"e{n}": {"type": "string"}}},
            }
            for n in range(count)
        ],
        "unevaluatedProperties": False,
    }


def _dependent(count: int) -> dict[str, Any]:
    """Return properties that each require the next ones, and change their values."""
    return {
        "type": "object",
        "dependentSchemas": {
            f"k{n}": {
                "required": [f"k{(n + 1) % count}"],
                "properties": {f"k{(n + 2) % count}": {"minimum": n}},
            }
            for n in range(count)
        },
    }


def _crossword(letters: str) -> dict[str, Any]:
    """Return strings that hold each pair of letters in this order."""
    return {
        "type": "string",
        "allOf": [{"pattern": f"{a}.*{b}"} for a in letters for b in reversed(letters)],
    }


def _keys(count: int) -> dict[str, Any]:
    """Return patterns of keys that overlap in every way."""
    return {
        "type": "object",
        "patternProperties": {
            f"^.*{c}.{{{n}}}": {"minimum": n} for n, c in enumerate(WORDS[:count])
        },
        "additionalProperties": False,
        "minProperties": 3,
    }


SCHEMAS = (
    _schema("brackets", "text that is nothing but nesting", "[" * 200_000),
    _schema("nesting", "deeper than may be read", _nested('{"items":', "true", "}", 600)),
    _schema(
        "staircase", "as deep as may be read", _nested('{"items":', "true", "}", 500), b"[" * 400
    ),
    _schema("whitespace", "a long text that says nothing", " " * 4_000_000 + "true", b"1"),
    _schema("haystack", "more text than may be read", '"' + "x" * 5_000_000 + '"'),
    _schema(
        "enumeration",
        "100,000 texts",
        lambda: {"enum": [f"{w}{n}" for w in WORDS[:5000] for n in range(20)]},
        b'"a',
    ),
    _schema(
        "twins",
        "two texts that differ at their end",
        {"enum": ["x" * 500_000, "x" * 499_999 + "y"]},
        b'"xx',
    ),
    _schema(
        "records",
        "a choice of 20,000 objects",
        lambda: {"enum": [{"a": n, "b": [n]} for n in range(20_000)]},
        b"{",
    ),
    _schema("integers", "200,000 numbers", lambda: {"enum": list(range(0, 1_400_000, 7))}, b"70"),
    _schema(
        "properties",
        "10,000 that may come",
        lambda: {"properties": {w: {} for w in WORDS[:10_000]}},
        b'{"a',
    ),
    _schema(
        "requirements",
        "5,000 that must come",
        lambda: {
            "properties": {w: {"type": "null"} for w in WORDS[:5000]},
            "required": WORDS[:5000],
        },
        b"{",
    ),
    _schema(
        "disorder",
        "requirements of which none is declared",
        lambda: {"required": WORDS[:3000], "minProperties": 3500},
        b"{",
    ),
    _schema(
        "cluster",
        "5,000 definitions that refer to each other",
        lambda: {
            "$ref": "#/$defs/0",
            "$defs": {
                str(n): {
                    "properties": {
                        str(m): {"$ref": f"#/$defs/{(n * m + 1) % 5000}"} for m in range(10)
                    }
                }
                for n in range(5000)
            },
        },
        b'{"1":{',
    ),
    _schema("fibonacci", "a value that doubles 60 times", _fibonacci(60), b'{"l":' * 59 + b"1"),
    _schema("fan", "eight ways on each of 300 levels", lambda: _fan(300, 8), b'{"p0_1":'),
    _schema(
        "chain",
        "5,000 references in a row",
        lambda: {
            "$ref": "#/$defs/0",
            "$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(5000)}
            | {"5000": {"type": "null"}},
        },
        b"n",
    ),
    _schema("product", "a conjunction of 24 choices", _products(24), b'{"k0":1,"k1":"'),
    _schema(
        "parity", "a conjunction of 24 exclusive choices", _products(24, "oneOf"), b'{"k0":1,"k1":"'
    ),
    _schema(
        "conjunction",
        "2,000 parts that all hold",
        lambda: {
            "allOf": [
                {"properties": {f"k{n}": {"minimum": m} for n in range(10)}} for m in range(2000)
            ]
        },
        b'{"k1":5',
    ),
    _schema(
        "bounds",
        "3,000 bounds of one number",
        lambda: {
            "allOf": [{"not": {"multipleOf": 2 * n + 3}} for n in range(3000)],
            "type": "integer",
        },
        b"1",
    ),
    _schema("rivals", "100 objects of which exactly one must hold", _one_of(100), b'{"a1":5,"b":"'),
    _schema(
        "union",
        "800 objects, told apart by a key",
        lambda: {
            "anyOf": [
                {"type": "object", "properties": {w: {"const": w}}, "required": [w]}
                for w in WORDS[:800]
            ]
        },
        b"{",
    ),
    _schema(
        "negation",
        "not one of 60 objects",
        lambda: {
            "type": "object",
            "not": {"anyOf": [{"required": [f"k{n}", f"l{n}"]} for n in range(60)]},
        },
        b'{"k1":1,',
    ),
    _schema(
        "denial",
        "not nested 200 times",
        _nested('{"not":', '{"type":"object","required":["a"]}', "}", 200),
        b"{",
    ),
    _schema(
        "conditions",
        "60 conditions, and nothing beside what they evaluate",
        _unevaluated(60),
        b'{"k1":1,',
    ),
    _schema("dependencies", "40 properties that ask for each other", _dependent(40), b'{"k1":1,'),
    _schema("keyrings", "25 overlapping patterns of keys", _keys(25), b'{"a'),
    _schema(
        "lottery",
        "10,000 different items",
        {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": 20_000},
            "uniqueItems": True,
            "minItems": 10_000,
        },
        b"[1,2,3,",
    ),
    _schema(
        "pigeons",
        "more different items than there are",
        {
            "type": "array",
            "items": {"enum": list(range(1000))},
            "uniqueItems": True,
            "minItems": 1001,
        },
        b"[1,",
    ),
    _schema(
        "boxes",
        "90 different arrays of arrays",
        {
            "type": "array",
            "items": {"type": "array", "items": {"enum": [0, 1]}, "maxItems": 6},
            "uniqueItems": True,
            "minItems": 90,
        },
        b"[[0],[1],[0,1],",
    ),
    _schema(
        "contains",
        "50 kinds of items that must come",
        {
            "allOf": [
                {"contains": {"minimum": n, "maximum": n + 5}, "minContains": 2}
                for n in range(0, 100, 2)
            ]
        },
        b"[1,2,",
    ),
    _schema(
        "tuples",
        "20,000 items, each of its own kind",
        lambda: {"prefixItems": [{"const": n} for n in range(20_000)], "minItems": 20_000},
        b"[0,1,",
    ),
    _schema("crossword", "a string with every pair of letters", _crossword("abcdefg"), b'"abc'),
    _schema(
        "quiz",
        "a pattern that counts from the end",
        {"pattern": "a.{60}b.{60}c"},
        b'"' + b"abc" * 60,
    ),
    _schema(
        "foresight",
        "lookaheads that count",
        {"pattern": "^(?=.*a.{40})(?=.*b.{41})(?=.*c.{42})"},
        b'"abc',
    ),
    _schema(
        "essay",
        "words within a number of characters",
        {"pattern": "^(?:\\S+\\s+){0,199}\\S+$", "maxLength": 500, "minLength": 50},
        b'"' + b"ab cd " * 60,
    ),
    _schema(
        "length",
        "a string of 10 ** 9 characters",
        {"type": "string", "minLength": 10**9, "maxLength": 10**9 + 1},
        b'"aaa',
    ),
    _schema("digits", "a bound of 100,000 digits", '{"minimum":1' + "0" * 100_000 + "}", b"1000"),
    _schema("exponent", "a bound that no memory holds", '{"maximum":1e999999999}', b"1e99"),
    _schema(
        "steps",
        "multiples of many large numbers",
        {
            "type": "integer",
            "allOf": [
                {"multipleOf": p} for p in (999_983, 999_979, 999_961, 999_959, 999_953, 999_931)
            ],
        },
        b"1",
    ),
    _schema(
        "fractions",
        "multiples of small parts",
        {
            "type": "number",
            "allOf": [
                {"multipleOf": 0.0000007},
                {"multipleOf": 0.00000011},
                {"not": {"multipleOf": 0.0000077}},
            ],
        },
        b"0.",
    ),
    _schema(
        "formats",
        "a string of eight formats at once",
        {
            "type": "string",
            "allOf": [
                {"format": f}
                for f in (
                    "email",
                    "uri",
                    "hostname",
                    "idn-email",
                    "iri",
                    "date-time",
                    "uuid",
                    "ipv6",
                )
            ],
        },
        b'"',
    ),
    _schema(
        "aliases",
        "a recursive schema in many dynamic scopes",
        lambda: json.dumps(
            {
                "$id": "http://a/",
                "$dynamicAnchor": "n",
                "$ref": "#/$defs/0",
                "$defs": {
                    str(n): {
                        "$id": f"s{n}",
                        "$dynamicAnchor": "n",
                        "anyOf": [
                            {"$dynamicRef": "#n"},
                            {"$ref": f"s{(n + 1) % 60}"},
                            {"type": "null"},
                        ],
                    }
                    for n in range(60)
                },
            }
        ),
        b"n",
    ),
)
