"""Schemas that refer to themselves, and definitions that are shared."""

from __future__ import annotations

from typing import Any

from maskbench.shapes.draw import Draw
from maskbench.shapes.shape import (
    BOOL,
    DROP,
    NULL,
    NUM,
    STR,
    Shape,
    array,
    enum,
    integer,
    obj,
    pattern,
    ref,
    text,
    words,
)


def _tree(d: Draw, depth: int) -> dict[str, Any]:
    count = d.int(0, 2) if depth else 0
    return {"value": d.int(-9, 99), "children": [_tree(d, depth - 1) for _ in range(count)]}


def _expression(d: Draw, depth: int) -> Any:
    if depth == 0 or d.int(0, 3) == 0:
        return d.pick((d.int(0, 99), d.num(0, 9), {"var": d.chars("xyz", 1)}))
    return {
        "op": d.pick(("+", "-", "*", "/")),
        "left": _expression(d, depth - 1),
        "right": _expression(d, depth - 1),
    }


def _json(d: Draw, depth: int) -> Any:
    if depth == 0:
        return d.pick((None, True, False, 0, -1.5, 1e21, "", d.sentence()))
    if d.bool():
        return d.list(0, 3, lambda: _json(d, depth - 1))
    return {d.word(): _json(d, depth - 1), d.slug(): _json(d, depth - 1)}


def _comment(d: Draw, depth: int) -> dict[str, Any]:
    return {
        "author": d.name(),
        "text": d.sentence(),
        "replies": [_comment(d, depth - 1) for _ in range(d.int(0, 2) if depth else 0)],
    }


def _element(d: Draw, depth: int) -> dict[str, Any]:
    children = [_element(d, depth - 1) if d.bool() else d.sentence() for _ in range(min(depth, 2))]
    return {
        "tag": d.pick(("div", "span", "p", "ul", "li")),
        "attributes": {"class": d.slug()},
        "children": children,
    }


def _schema_like(d: Draw, depth: int) -> dict[str, Any]:
    if depth == 0:
        return {"type": d.pick(("string", "number", "boolean"))}
    return {
        "type": "object",
        "properties": {d.word(): _schema_like(d, depth - 1), d.ident(): _schema_like(d, 0)},
    }


SHAPES = [
    Shape(
        "tree",
        {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "children": array({"$ref": "#"})},
            "required": ["value", "children"],
            "additionalProperties": False,
        },
        lambda d: {"value": 0, "children": [_tree(d, 2), _tree(d, 1)]},
        (
            ("value", 0.5),
            ("children/0/value", "1"),
            ("children/0/children", DROP),
            ("children/1/children/+", []),
            ("children/+", {"value": 1, "children": [], "parent": None}),
        ),
    ),
    Shape(
        "linked_list",
        {
            "$defs": {
                "node": obj(
                    {"item": text(1, 20), "next": {"anyOf": [ref("node"), NULL]}},
                )
            },
            "$ref": "#/$defs/node",
        },
        lambda d: {
            "item": d.word(),
            "next": {"item": d.word(), "next": d.pick((None, {"item": "z", "next": None}))},
        },
        (
            ("item", ""),
            ("next/item", "x" * 21),
            ("next/next", DROP),
            ("next/next", "end"),
            ("previous", None),
        ),
    ),
    Shape(
        "expression",
        {
            "$defs": {
                "expr": {
                    "anyOf": [
                        NUM,
                        obj({"var": pattern("^[a-z]$")}),
                        obj(
                            {
                                "op": enum("+", "-", "*", "/"),
                                "left": ref("expr"),
                                "right": ref("expr"),
                            }
                        ),
                    ]
                }
            },
            "$ref": "#/$defs/expr",
        },
        lambda d: {"op": "+", "left": _expression(d, 3), "right": _expression(d, 2)},
        (
            ("op", "%"),
            ("left", "x"),
            ("left", {"var": "xy"}),
            ("right", None),
            ("right", {"op": "+", "left": 1}),
            ("right", {"op": "+", "left": 1, "right": {"var": ""}}),
        ),
    ),
    Shape(
        "json_value",
        {
            "$defs": {
                "value": {
                    "anyOf": [
                        {"type": ["null", "boolean", "number", "string"]},
                        array(ref("value")),
                        {"type": "object", "additionalProperties": ref("value")},
                    ]
                }
            },
            "type": "object",
            "properties": {"payload": ref("value"), "kind": STR},
            "required": ["payload", "kind"],
        },
        lambda d: {"payload": _json(d, 3), "kind": d.word(), "note": d.sentence()},
        (("payload", DROP), ("kind", 1), ("", []), ("kind", ["a"])),
        optional=("note",),
    ),
    Shape(
        "comment_thread",
        {
            "definitions": {
                "comment": obj(
                    {
                        "author": text(1, 40),
                        "text": text(1, 300),
                        "replies": array({"$ref": "#/definitions/comment"}, None, 5),
                    },
                    optional=["replies"],
                )
            },
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "url": {"type": "string"},
                "comments": array({"$ref": "#/definitions/comment"}),
            },
            "required": ["url", "comments"],
            "additionalProperties": False,
        },
        lambda d: {"url": d.uri(), "comments": [_comment(d, 2), _comment(d, 1)]},
        (
            ("comments/0/author", ""),
            ("comments/0/replies/+", {"author": "a"}),
            ("comments/1/replies", [{"author": "a", "text": "b"}] * 6),
            ("comments/1/likes", 3),
            ("comments", None),
        ),
        optional=("comments/0/replies", "comments/1/replies"),
    ),
    Shape(
        "markup",
        {
            "$defs": {
                "node": {"anyOf": [STR, ref("element")]},
                "element": obj(
                    {
                        "tag": words("div", "span", "p", "ul", "li"),
                        "attributes": {"type": "object", "additionalProperties": STR},
                        "children": array(ref("node")),
                    },
                    optional=["attributes"],
                ),
            },
            "$ref": "#/$defs/element",
        },
        lambda d: _element(d, 3),
        (
            ("tag", "script"),
            ("attributes/id", 7),
            ("children/+", 5),
            ("children/+", {"tag": "p"}),
            ("children", "text"),
            ("style", {}),
        ),
        optional=("attributes",),
    ),
    Shape(
        "menu",
        {
            "$defs": {
                "entry": obj(
                    {
                        "label": text(1, 40),
                        "shortcut": pattern("^(Ctrl|Alt)\\+[A-Z]$"),
                        "entries": array(ref("entry"), 1),
                    },
                    optional=["shortcut", "entries"],
                )
            },
            **obj({"bar": array(ref("entry"), 1, 8)}),
        },
        lambda d: {
            "bar": [
                {
                    "label": d.title(),
                    "shortcut": f"Ctrl+{d.chars('ABCX', 1)}",
                    "entries": [{"label": d.title(), "entries": [{"label": d.word()}]}],
                }
            ]
        },
        (
            ("bar", []),
            ("bar/0/shortcut", "Ctrl+x"),
            ("bar/0/entries", []),
            ("bar/0/entries/0/label", ""),
            ("bar/0/entries/0/entries/0/icon", "x"),
        ),
        optional=("bar/0/shortcut", "bar/0/entries"),
    ),
    Shape(
        "mutual_folders",
        {
            "$defs": {
                "folder": obj(
                    {"name": STR, "folders": array(ref("folder")), "files": array(ref("file"))}
                ),
                "file": obj(
                    {"name": pattern("\\.[a-z]{1,4}$"), "bytes": integer(0), "link": ref("target")},
                    optional=["link"],
                ),
                "target": {"anyOf": [ref("file"), ref("folder")]},
            },
            "$ref": "#/$defs/folder",
        },
        lambda d: {
            "name": d.word(),
            "folders": [{"name": d.word(), "folders": [], "files": []}],
            "files": [
                {
                    "name": f"{d.slug()}.txt",
                    "bytes": d.int(0, 10**7),
                    "link": d.pick(
                        (
                            {"name": "x", "folders": [], "files": []},
                            {"name": "a.md", "bytes": 0},
                        )
                    ),
                }
            ],
        },
        (
            ("files/0/name", "noextension"),
            ("files/0/bytes", -1),
            ("files/0/link", {"name": "x", "folders": []}),
            ("folders/0/files", DROP),
            ("folders/+", {"name": "a.md", "bytes": 0}),
        ),
        optional=("files/0/link",),
    ),
    Shape(
        "mini_schema",
        {
            "$defs": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "type": words("object", "string", "number", "boolean", "array"),
                        "properties": {
                            "type": "object",
                            "additionalProperties": ref("schema"),
                        },
                        "items": ref("schema"),
                        "minimum": NUM,
                        "nullable": BOOL,
                    },
                    "required": ["type"],
                    "additionalProperties": False,
                }
            },
            "$ref": "#/$defs/schema",
        },
        lambda d: {**_schema_like(d, 3), "nullable": d.bool()},
        (
            ("type", "integer"),
            ("type", DROP),
            ("properties/extra", {"type": "string", "format": "date"}),
            ("properties/extra", "string"),
            ("nullable", "no"),
        ),
        optional=("nullable",),
    ),
    Shape(
        "shared_definitions",
        {
            "$defs": {
                "money": obj({"amount": integer(0), "currency": words("EUR", "USD")}),
                "period": obj({"from": pattern("^[0-9]{4}$"), "to": pattern("^[0-9]{4}$")}),
            },
            **obj(
                {
                    "budget": ref("money"),
                    "spent": ref("money"),
                    "left": {"anyOf": [ref("money"), NULL]},
                    "period": ref("period"),
                    "earlier": array(ref("period")),
                }
            ),
        },
        lambda d: {
            "budget": {"amount": d.int(0, 10**6), "currency": "EUR"},
            "spent": {"amount": d.int(0, 10**6), "currency": "USD"},
            "left": d.pick((None, {"amount": 0, "currency": "EUR"})),
            "period": {"from": d.digits(4), "to": d.digits(4)},
            "earlier": d.list(0, 2, lambda: {"from": d.digits(4), "to": d.digits(4)}),
        },
        (
            ("budget/amount", -1),
            ("spent/currency", "GBP"),
            ("left", 0),
            ("period/to", "99"),
            ("earlier/+", {"from": "2020"}),
            ("period", None),
        ),
    ),
]
