"""Keywords that combine schemas, each at its limits."""

from __future__ import annotations

from maskbench.shapes.shape import (
    INT,
    NULL,
    NUM,
    STR,
    Schema,
    array,
    integer,
    listed,
    obj,
    pattern,
    text,
)

_OBJECT: Schema = {"type": "object"}


def _kind(kind: str, **members: Schema) -> Schema:
    return obj({"kind": {"const": kind}, **members})


SHAPES = [
    listed(
        "kw_all_of_objects",
        {
            "allOf": [
                {**_OBJECT, "properties": {"a": {"minimum": 3}}, "required": ["a"]},
                {"properties": {"a": INT}},
            ]
        },
        ({"a": 3}, {"a": 4, "b": 1}),
        ({"a": 2}, {"a": 3.5}, {}),
        "allOf",
    ),
    listed(
        "kw_all_of_deep",
        {"allOf": [{"allOf": [{"allOf": [integer(1)]}, integer(None, 9)]}, {"not": {"const": 5}}]},
        (1, 4, 9),
        (0, 5, 10, "1"),
        "allOf",
    ),
    listed(
        "kw_all_of_enums",
        {"allOf": [{"enum": [1, 2, 3, "a"]}, {"enum": [2, 3, 4, "a"]}, {"type": "integer"}]},
        (2, 3),
        (1, 4, "a"),
        "allOf",
    ),
    listed(
        "kw_any_of_types",
        {"anyOf": [STR, integer(0), NULL]},
        ("a", 0, None),
        (-1, 1.5, True, []),
        "anyOf",
    ),
    listed(
        "kw_any_of_overlap",
        {"anyOf": [text(None, 2), pattern("^x")]},
        ("ab", "xabc", ""),
        ("abc", "axbc", 1),
        "anyOf",
    ),
    listed(
        "kw_any_of_required",
        {
            **_OBJECT,
            "properties": {"a": INT, "b": INT},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        ({"a": 1}, {"b": 1}, {"a": 1, "b": 1}),
        ({}, {"c": 1}, {"a": "x", "b": 1}),
        "anyOf",
    ),
    listed(
        "kw_any_of_objects_overlap",
        {
            "anyOf": [
                {**_OBJECT, "properties": {"a": INT}, "required": ["a"]},
                {**_OBJECT, "properties": {"a": STR}, "required": ["b"]},
            ]
        },
        ({"a": 1}, {"a": "x", "b": 1}),
        ({"a": "x"}, {"a": True, "b": 1}, {}),
        "anyOf",
    ),
    listed(
        "kw_one_of_types",
        {"oneOf": [STR, NULL, array(INT)]},
        ("a", None, [1]),
        (1, {}, ["a"]),
        "oneOf",
    ),
    listed(
        "kw_one_of_ranges",
        {"oneOf": [integer(None, 5), integer(3)]},
        (2, -1, 6),
        (3, 4, 5, 2.5),
        "oneOf",
    ),
    listed(
        "kw_one_of_multiples",
        {"type": "integer", "oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]},
        (2, 3, 4, 9),
        (1, 6, 12, 0),
        "oneOf",
    ),
    listed(
        "kw_one_of_required",
        {
            **_OBJECT,
            "properties": {"a": INT, "b": INT},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        ({"a": 1}, {"b": 2}, {"b": 1, "c": 0}),
        ({}, {"a": 1, "b": 2}, {"a": "x"}),
        "oneOf",
    ),
    listed(
        "kw_one_of_discriminator",
        {"oneOf": [_kind("a", x=INT), _kind("b", x=STR), _kind("c")]},
        ({"kind": "a", "x": 1}, {"kind": "b", "x": "1"}, {"kind": "c"}),
        ({"kind": "a", "x": "1"}, {"kind": "c", "x": 1}, {"kind": "d"}, {}),
        "oneOf",
    ),
    listed(
        "kw_one_of_open_objects",
        {"oneOf": [{**_OBJECT, "required": ["cat"]}, {**_OBJECT, "required": ["dog"]}]},
        ({"cat": 1}, {"dog": 1, "x": 2}),
        ({}, {"cat": 1, "dog": 1}),
        "oneOf",
    ),
    listed("kw_not_type", {"not": {"type": "string"}}, (1, None, [], {}), ("", "a"), "not"),
    listed(
        "kw_not_enum",
        {"type": "string", "not": {"enum": ["a", "b"]}},
        ("c", "ab", ""),
        ("a", "b", 1),
        "not",
    ),
    listed(
        "kw_not_pattern",
        {"type": "string", "not": {"pattern": "^tmp_|~$"}},
        ("a", "tmp", "x_tmp_"),
        ("tmp_a", "a~"),
        "not",
    ),
    listed(
        "kw_not_range",
        {"type": "integer", "not": {"minimum": 3, "maximum": 7}},
        (2, 8, -5),
        (3, 5, 7),
        "not",
    ),
    listed(
        "kw_not_required",
        {**_OBJECT, "not": {"required": ["secret"]}},
        ({}, {"public": 1}),
        ({"secret": 1}, {"a": 1, "secret": None}),
        "not",
    ),
    listed(
        "kw_not_both",
        {**_OBJECT, "properties": {"a": INT, "b": INT}, "not": {"required": ["a", "b"]}},
        ({"a": 1}, {"b": 1}, {}),
        ({"a": 1, "b": 2},),
        "not",
    ),
    listed(
        "kw_not_object",
        {
            **_OBJECT,
            "properties": {"a": True},
            "not": {"required": ["a"], "properties": {"a": INT}},
        },
        ({"a": "x"}, {"b": 1}, {}),
        ({"a": 1},),
        "not",
    ),
    listed(
        "kw_not_not",
        {"not": {"not": {"type": "integer", "minimum": 2}}},
        (2, 30),
        (1, "2", None),
        "not",
    ),
    listed(
        "kw_not_empty_array",
        {"type": "array", "not": {"maxItems": 0}},
        ([1], [None, 2]),
        ([],),
        "not",
    ),
    listed(
        "kw_if_then",
        {
            **_OBJECT,
            "properties": {"a": INT, "b": INT},
            "if": {"properties": {"a": {"minimum": 5}}, "required": ["a"]},
            "then": {"required": ["b"]},
        },
        ({"a": 5, "b": 1}, {"a": 4}, {}),
        ({"a": 5}, {"a": 9, "c": 1}),
        "if",
        "then",
    ),
    listed(
        "kw_if_else",
        {"if": {"type": "integer"}, "else": {"type": "string", "minLength": 2}},
        (1, "ab"),
        ("a", 1.5, None),
        "if",
        "else",
    ),
    listed(
        "kw_if_then_else_enum",
        {
            **obj({"unit": {"enum": ["C", "F"]}, "value": NUM}),
            "if": {"properties": {"unit": {"const": "C"}}},
            "then": {"properties": {"value": {"minimum": -273}}},
            "else": {"properties": {"value": {"minimum": -459}}},
        },
        ({"unit": "C", "value": -273}, {"unit": "F", "value": -459}),
        ({"unit": "C", "value": -274}, {"unit": "F", "value": -460}, {"unit": "K", "value": 0}),
        "if",
    ),
    listed(
        "kw_if_chain",
        {
            **obj({"n": integer(0), "s": STR}),
            "allOf": [
                {
                    "if": {"properties": {"n": {"const": k}}},
                    "then": {"properties": {"s": text(k, k)}},
                }
                for k in (1, 2, 3)
            ],
        },
        ({"n": 1, "s": "a"}, {"n": 3, "s": "abc"}, {"n": 0, "s": "anything"}),
        ({"n": 1, "s": "ab"}, {"n": 2, "s": ""}),
        "if",
        "allOf",
    ),
]
