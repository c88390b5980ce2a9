"""A table of keywords and engines: what each engine makes of a keyword, found out by probes.

A probe is a schema with instances that are valid and instances that are not. An engine is *exact*
if it lets all of the former through and none of the latter; *refused* if it does not take the
schema; *widened* if an invalid instance gets through; *too narrow* if a valid one does not.
"""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass
from typing import Any

from maskbench.documents import Document, Encoder, Job
from maskbench.verdicts import SchemaRecord, Verdict


@dataclass(frozen=True)
class Probe:
    """A schema that turns on one keyword, with instances as compact JSON text."""

    keyword: str
    schema: Any
    valid: tuple[str, ...]
    invalid: tuple[str, ...]
    property_order: str = "declared"
    """The mode of the engines that have more than one."""


def _probe(
    keyword: str, schema: Any, valid: list[str], invalid: list[str], order: str = "declared"
) -> Probe:
    return Probe(keyword, schema, tuple(valid), tuple(invalid), order)


_ARRAY = {"type": "array"}
_OBJECT = {"type": "object"}
_DECLARED = {"type": "object", "properties": {"a": True, "b": True}}
_INTEGERS = {"type": "array", "items": {"type": "integer"}}

PROBES: tuple[Probe, ...] = (
    _probe("type", {"type": ["integer", "null"]}, ["1", "null"], ["1.5", '"a"', "{}"]),
    _probe("enum", {"enum": [1, "a", [True]]}, ["1", '"a"', "[true]"], ["2", '"b"', "[]"]),
    _probe("const", {"const": {"a": 1}}, ['{"a":1}'], ['{"a":2}', "{}"]),
    _probe(
        "minimum, maximum",
        {"type": "number", "minimum": 1.5, "exclusiveMaximum": 12},
        ["1.5", "11.9", "2"],
        ["1.4", "12", "-2"],
    ),
    _probe("multipleOf", {"type": "number", "multipleOf": 0.25}, ["1.75", "3"], ["1.7", "0.1"]),
    _probe(
        "multipleOf of integers", {"type": "integer", "multipleOf": 7}, ["14", "700"], ["15", "1"]
    ),
    _probe(
        "minLength, maxLength",
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"ab"', '"żół"'],
        ['"a"', '"abcd"'],
    ),
    _probe("pattern", {"type": "string", "pattern": "b.d"}, ['"abcd"', '"bxd"'], ['"bd"', '"x"']),
    _probe(
        "pattern with lookahead",
        {"type": "string", "pattern": "^(?=.*[0-9])(?=.*[a-z]).{3,}$"},
        ['"ab1"', '"1xx"'],
        ['"abc"', '"123"', '"a1"'],
    ),
    _probe(
        "pattern with word boundary",
        {"type": "string", "pattern": "\\bcat\\b"},
        ['"a cat."', '"cat"'],
        ['"cats"', '"concat"'],
    ),
    _probe(
        "format",
        {"type": "string", "format": "date"},
        ['"2024-02-29"'],
        ['"2023-02-29"', '"2024-13-01"', '"x"'],
    ),
    _probe(
        "properties, required",
        {**_OBJECT, "properties": {"a": {"type": "integer"}, "b": True}, "required": ["a"]},
        ['{"a":1}', '{"a":1,"b":2}'],
        ['{"a":"x"}', '{"b":1}', "{}"],
    ),
    _probe(
        "properties in any order",
        {**_OBJECT, "properties": {"a": True, "b": True}, "required": ["a"]},
        ['{"a":1,"b":2}', '{"b":1,"a":2}', '{"c":1,"a":2}'],
        ["{}", '{"b":1}'],
        "any",
    ),
    _probe(
        "a key twice",
        {**_OBJECT, "additionalProperties": {"type": "integer"}},
        ['{"a":1,"b":1}'],
        ['{"a":1,"a":2}'],
    ),
    _probe(
        "additionalProperties",
        {**_OBJECT, "properties": {"a": True}, "additionalProperties": {"type": "integer"}},
        ['{"a":"x","b":1}'],
        ['{"a":1,"b":"x"}'],
    ),
    _probe(
        "patternProperties",
        {
            **_OBJECT,
            "patternProperties": {"^x": {"type": "integer"}},
            "additionalProperties": {"type": "string"},
        },
        ['{"x1":1,"y":"a"}'],
        ['{"x1":"a"}'],
    ),
    _probe(
        "patternProperties that overlap",
        {
            **_OBJECT,
            "patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 5}},
            "additionalProperties": False,
        },
        ['{"ab":5,"a":1,"b":"x"}'],
        ['{"ab":4}', '{"ab":"x"}', '{"c":1}'],
    ),
    _probe(
        "propertyNames",
        {**_OBJECT, "propertyNames": {"pattern": "^[a-c]+$"}},
        ['{"abc":1}'],
        ['{"abd":1}', '{"":1}'],
    ),
    _probe(
        "minProperties, maxProperties",
        {**_OBJECT, "minProperties": 1, "maxProperties": 2},
        ['{"a":1}', '{"a":1,"b":2}'],
        ["{}", '{"a":1,"b":2,"c":3}'],
    ),
    _probe(
        "dependentRequired",
        {**_DECLARED, "dependentRequired": {"a": ["b"]}},
        ['{"a":1,"b":2}', '{"b":1}', "{}"],
        ['{"a":1}'],
    ),
    _probe(
        "dependentSchemas",
        {**_DECLARED, "dependentSchemas": {"a": {"properties": {"b": {"type": "null"}}}}},
        ['{"a":1,"b":null}', '{"b":1}'],
        ['{"a":1,"b":2}'],
    ),
    _probe(
        "unevaluatedProperties",
        {
            **_OBJECT,
            "anyOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, True],
            "unevaluatedProperties": False,
        },
        ['{"a":1}', "{}"],
        ['{"a":"x"}', '{"a":1,"b":2}'],
    ),
    _probe("items", _INTEGERS, ["[]", "[1,2]"], ['["a"]', '[1,"a"]']),
    _probe(
        "prefixItems",
        {**_ARRAY, "prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
        ["[1]", '[1,"a"]', "[]"],
        ['["a"]', "[1,2]"],
    ),
    _probe(
        "minItems, maxItems",
        {**_INTEGERS, "minItems": 1, "maxItems": 2},
        ["[1]", "[1,2]"],
        ["[]", "[1,2,3]"],
    ),
    _probe("uniqueItems", {**_INTEGERS, "uniqueItems": True}, ["[1,2]", "[]"], ["[1,1]"]),
    _probe(
        "contains",
        {**_ARRAY, "items": True, "contains": {"type": "integer"}},
        ['["a",1]', "[1]"],
        ["[]", '["a"]'],
    ),
    _probe(
        "minContains, maxContains",
        {**_INTEGERS, "contains": {"minimum": 5}, "minContains": 1, "maxContains": 2},
        ["[1,5]", "[5,6,1]"],
        ["[1]", "[5,6,7]"],
    ),
    _probe(
        "unevaluatedItems",
        {
            **_ARRAY,
            "prefixItems": [True],
            "anyOf": [{"prefixItems": [True, {"type": "null"}]}, True],
            "unevaluatedItems": False,
        },
        ["[1]", "[1,null]"],
        ["[1,2]", "[1,null,3]"],
    ),
    _probe(
        "allOf",
        {
            "allOf": [
                {**_OBJECT, "properties": {"a": {"minimum": 3}}, "required": ["a"]},
                {"properties": {"a": {"type": "integer"}}},
            ]
        },
        ['{"a":3}'],
        ['{"a":2}', '{"a":3.5}', "{}"],
    ),
    _probe("anyOf", {"anyOf": [{"const": "a"}, {"type": "null"}]}, ['"a"', "null"], ['"b"', "1"]),
    _probe(
        "anyOf of objects that overlap",
        {
            "anyOf": [
                {**_OBJECT, "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {**_OBJECT, "properties": {"a": {"type": "string"}}, "required": ["b"]},
            ]
        },
        ['{"a":1}', '{"a":"x","b":1}'],
        ['{"a":"x"}', '{"a":true,"b":1}'],
    ),
    _probe(
        "oneOf", {"oneOf": [{"type": "string"}, {"type": "null"}]}, ['"a"', "null"], ["1", "[]"]
    ),
    _probe(
        "oneOf that overlaps",
        {"oneOf": [{"type": "integer", "minimum": 3}, {"type": "integer", "maximum": 5}]},
        ["2", "6"],
        ["3", "4", "5"],
    ),
    _probe(
        "not",
        {"type": "string", "not": {"enum": ["a", "b"]}},
        ['"c"', '"ab"'],
        ['"a"', '"b"'],
    ),
    _probe(
        "not of an object",
        {**_DECLARED, "not": {"required": ["a"], "properties": {"a": {"type": "integer"}}}},
        ['{"a":"x"}', '{"b":1}', "{}"],
        ['{"a":1}'],
    ),
    _probe(
        "if, then, else",
        {
            **_OBJECT,
            "properties": {"kind": {"enum": ["n", "s"]}, "value": True},
            "required": ["kind", "value"],
            "if": {"properties": {"kind": {"const": "n"}}},
            "then": {"properties": {"value": {"type": "number"}}},
            "else": {"properties": {"value": {"type": "string"}}},
        },
        ['{"kind":"n","value":1}', '{"kind":"s","value":"x"}'],
        ['{"kind":"n","value":"x"}', '{"kind":"s","value":1}'],
    ),
    _probe(
        "$ref",
        {"$ref": "#/$defs/list", "$defs": {"list": {**_ARRAY, "items": {"$ref": "#/$defs/list"}}}},
        ["[[],[[]]]"],
        ["[1]", "[[1]]"],
    ),
    _probe(
        "$ref with siblings",
        {"$ref": "#/$defs/n", "maximum": 5, "$defs": {"n": {"type": "integer"}}},
        ["5"],
        ["6", "1.5"],
    ),
    _probe(
        "$dynamicRef",
        {
            "$id": "https://example.com/tree",
            "$dynamicAnchor": "node",
            **_OBJECT,
            "properties": {"next": {"$dynamicRef": "#node"}},
            "additionalProperties": False,
        },
        ['{"next":{}}', "{}"],
        ['{"next":1}', '{"next":{"x":1}}'],
    ),
)


def jobs(encoder: Encoder, property_order: str) -> list[Job]:
    """The probes of a property order, as what engines are given."""
    return [
        Job(
            index,
            probe.keyword,
            json.dumps(probe.schema),
            tuple(
                Document(valid, array("i", encoder.encode(text)))
                for valid, texts in ((True, probe.valid), (False, probe.invalid))
                for text in texts
            ),
        )
        for index, probe in enumerate(PROBES)
        if probe.property_order == property_order
    ]


def cell(record: SchemaRecord) -> str:
    """What an engine makes of a probe, in a word."""
    if record.verdict is not Verdict.WRONG:
        return "exact" if record.verdict is Verdict.PASSED else record.verdict.value
    found = {"widened": record.wrong_accepts, "too narrow": record.wrong_rejects}
    return ", ".join(word for word, count in found.items() if count)


def table(records: dict[str, dict[int, SchemaRecord]]) -> str:
    """Markdown: a row for each probe, a column for each engine, whose records are by probe."""
    lines = [
        f"| keyword | {' | '.join(records)} |",
        f"| --- |{' --- |' * len(records)}",
    ]
    for index, probe in enumerate(PROBES):
        cells = (cell(listed[index]) for listed in records.values())
        lines.append(f"| {probe.keyword} | {' | '.join(cells)} |")
    return "\n".join(lines)
