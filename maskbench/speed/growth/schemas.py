"""Families of schemas that grow in one thing, each with a document that is valid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """Schemas of one kind. `make(size)` gives a schema and an instance of it."""

    name: str
    sizes: tuple[int, ...]
    make: Callable[[int], tuple[Schema, Any]]


_SOME: tuple[Schema, ...] = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string"}},
    {"type": "string", "enum": ["on", "off", "auto"]},
)
_VALUES: tuple[Any, ...] = ("a text", 12, True, ["b"], "auto")


def name_of(number: int) -> str:
    """Return a name of a few syllables, a different one for each number."""
    syllables = ("ka", "lo", "mi", "ne", "pu", "ra", "so", "ti", "va", "ze")
    return (
        "".join(syllables[int(digit)] for digit in str(number)) + ("Rate", "Id", "Of")[number % 3]
    )


def _properties(size: int) -> tuple[Schema, Any]:
    properties = {name_of(i): _SOME[i % 5] for i in range(size)}
    chosen = sorted({0, size // 2, size - 1})
    return (
        {"type": "object", "properties": properties, "additionalProperties": False},
        {name_of(i): _VALUES[i % 5] for i in chosen},
    )


def _open_properties(size: int) -> tuple[Schema, Any]:
    schema, document = _properties(size)
    del schema["additionalProperties"]
    return schema, document


def _required(size: int) -> tuple[Schema, Any]:
    properties = {name_of(i): _SOME[i % 5] for i in range(size)}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return schema, {name_of(i): _VALUES[i % 5] for i in range(size)}


def _enum(size: int) -> tuple[Schema, Any]:
    return {"enum": [f"{name_of(i)} {i}" for i in range(size)]}, f"{name_of(size // 2)} {size // 2}"


def _numbers(size: int) -> tuple[Schema, Any]:
    return {"enum": [i * 7919 for i in range(size)]}, size // 2 * 7919


def _constants(keyword: str) -> Callable[[int], tuple[Schema, Any]]:
    def make(size: int) -> tuple[Schema, Any]:
        return {keyword: [{"const": name_of(i)} for i in range(size)]}, name_of(size // 2)

    return make


def _kinds(keyword: str) -> Callable[[int], tuple[Schema, Any]]:
    """Return a union of objects that differ in the value of one property."""

    def make(size: int) -> tuple[Schema, Any]:
        branches = [
            {
                "type": "object",
                "properties": {"kind": {"const": name_of(i)}, name_of(i): _SOME[i % 5]},
                "required": ["kind", name_of(i)],
                "additionalProperties": False,
            }
            for i in range(size)
        ]
        last = size - 1
        return {keyword: branches}, {"kind": name_of(last), name_of(last): _VALUES[last % 5]}

    return make


def _all_of(size: int) -> tuple[Schema, Any]:
    parts = [{"type": "object", "properties": {name_of(i): _SOME[i % 5]}} for i in range(size)]
    return {"allOf": parts}, {name_of(size - 1): _VALUES[(size - 1) % 5]}


def _all_of_references(size: int) -> tuple[Schema, Any]:
    definitions = {
        f"part{i}": {"type": "object", "properties": {name_of(i): _SOME[i % 5]}}
        for i in range(size)
    }
    parts = [{"$ref": f"#/$defs/part{i}"} for i in range(size)]
    return {"$defs": definitions, "allOf": parts}, {name_of(0): _VALUES[0]}


def _definitions(size: int) -> tuple[Schema, Any]:
    """Return definitions that one property each refers to."""
    definitions = {
        f"type{i}": {
            "type": "object",
            "properties": {name_of(i): _SOME[i % 5], "id": {"type": "integer"}},
            "required": ["id"],
        }
        for i in range(size)
    }
    properties = {f"p{i}": {"$ref": f"#/$defs/type{i}"} for i in range(size)}
    schema = {"$defs": definitions, "type": "object", "properties": properties}
    return schema, {"p0": {"id": 1}, f"p{size - 1}": {"id": 2}}


def _chain(size: int) -> tuple[Schema, Any]:
    """Return definitions that refer to the next one, and the last to the first."""
    definitions = {
        f"node{i}": {
            "type": "object",
            "properties": {
                "value": _SOME[i % 5],
                "next": {"$ref": f"#/$defs/node{(i + 1) % size}"},
            },
        }
        for i in range(size)
    }
    return {"$defs": definitions, "$ref": "#/$defs/node0"}, {"value": "a", "next": {"value": 3}}


def _recursive_union(size: int) -> tuple[Schema, Any]:
    """Return a syntax tree: every node may hold any kind of node."""
    definitions: Schema = {
        f"node{i}": {
            "type": "object",
            "properties": {
                "op": {"const": name_of(i)},
                "left": {"$ref": "#/$defs/node"},
                "right": {"$ref": "#/$defs/node"},
            },
            "required": ["op"],
            "additionalProperties": False,
        }
        for i in range(size)
    }
    definitions["node"] = {"anyOf": [{"$ref": f"#/$defs/node{i}"} for i in range(size)]}
    inner = {"op": name_of(size - 1)}
    return (
        {"$defs": definitions, "$ref": "#/$defs/node"},
        {"op": name_of(0), "left": {"op": name_of(size // 2), "right": inner}, "right": inner},
    )


def _nested(size: int) -> tuple[Schema, Any]:
    schema: Schema = {"type": "integer"}
    document: Any = 1
    for i in range(size):
        schema = {"type": "object", "properties": {name_of(i): schema}, "required": [name_of(i)]}
        document = {name_of(i): document}
    return schema, document


def _length(size: int) -> tuple[Schema, Any]:
    return {"type": "string", "pattern": f"^[a-z]{{1,{size}}}$"}, "abc"


def _words(size: int) -> tuple[Schema, Any]:
    return {"type": "string", "pattern": rf"^(\S+\s+){{0,{size}}}\S+$", "maxLength": 500}, "a few"


def _prefix_items(size: int) -> tuple[Schema, Any]:
    schema = {"type": "array", "prefixItems": [_SOME[i % 5] for i in range(size)], "items": False}
    return schema, [_VALUES[i % 5] for i in range(min(size, 10))]


def _pattern_properties(size: int) -> tuple[Schema, Any]:
    patterns = {f"^{name_of(i)}_[0-9]+$": _SOME[i % 5] for i in range(size)}
    schema = {"type": "object", "patternProperties": patterns, "additionalProperties": False}
    return schema, {
        f"{name_of(0)}_1": _VALUES[0],
        f"{name_of(size - 1)}_2": _VALUES[(size - 1) % 5],
    }


def _dependents(size: int) -> tuple[Schema, Any]:
    properties = {name_of(i): _SOME[i % 5] for i in range(size + 1)}
    needs = {name_of(i): [name_of(i + 1)] for i in range(size)}
    last = (name_of(size - 1), name_of(size))
    return (
        {"type": "object", "properties": properties, "dependentRequired": needs},
        {last[0]: _VALUES[(size - 1) % 5], last[1]: _VALUES[size % 5]},
    )


FAMILIES: tuple[Family, ...] = (
    Family("properties, closed", (10, 100, 1_000, 10_000), _properties),
    Family("properties, open", (10, 100, 1_000, 10_000), _open_properties),
    Family("properties, all required and written", (10, 100, 1_000, 10_000), _required),
    Family("enum of strings", (10, 100, 1_000, 10_000, 100_000), _enum),
    Family("enum of numbers", (10, 100, 1_000, 10_000, 100_000), _numbers),
    Family("anyOf of constants", (10, 100, 1_000, 10_000, 100_000), _constants("anyOf")),
    Family("oneOf of constants", (10, 100, 1_000, 10_000), _constants("oneOf")),
    Family("anyOf of objects with a kind", (10, 100, 1_000), _kinds("anyOf")),
    Family("oneOf of objects with a kind", (10, 100, 1_000), _kinds("oneOf")),
    Family("allOf of objects", (10, 100, 1_000, 10_000), _all_of),
    Family("allOf of references", (10, 100, 1_000, 10_000), _all_of_references),
    Family("$defs, one for each property", (10, 100, 1_000, 10_000), _definitions),
    Family("$defs in a ring", (10, 100, 1_000, 10_000), _chain),
    Family("$defs of a syntax tree", (10, 100, 1_000), _recursive_union),
    Family("nested objects", (10, 100), _nested),
    Family("bound of a repetition", (10, 100, 1_000, 10_000), _length),
    Family("bound of repeated words", (10, 100, 1_000), _words),
    Family("prefixItems", (10, 100, 1_000, 10_000), _prefix_items),
    Family("patternProperties", (10, 100), _pattern_properties),
    Family("dependentRequired", (10, 100), _dependents),
)
