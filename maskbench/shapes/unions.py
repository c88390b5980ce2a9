"""Alternatives, tuples, conditions and the keywords that combine schemas."""

from __future__ import annotations

from maskbench.shapes.shape import (
    BOOL,
    DROP,
    INT,
    NULL,
    NUM,
    STR,
    Shape,
    array,
    enum,
    form,
    integer,
    number,
    obj,
    pattern,
    ref,
    text,
    words,
)

_SQUARE = obj({"kind": {"const": "square"}, "side": number(0)})
_CIRCLE = obj({"kind": {"const": "circle"}, "radius": number(0)})
_POLYGON = obj({"kind": {"const": "polygon"}, "points": array(array(NUM, 2, 2), 3)})

SHAPES = [
    Shape(
        "shapes_any_of",
        array({"anyOf": [_SQUARE, _CIRCLE, _POLYGON]}, 1),
        lambda d: d.list(
            1,
            4,
            lambda: d.pick(
                (
                    {"kind": "square", "side": d.num(0, 9)},
                    {"kind": "circle", "radius": d.num(0, 9)},
                    {"kind": "polygon", "points": [[0, 0], [1, d.num(0, 9)], [d.int(0, 5), 1]]},
                )
            ),
        ),
        (
            ("", []),
            ("+", {"kind": "square", "radius": 1}),
            ("+", {"kind": "circle", "radius": -1}),
            ("+", {"kind": "polygon", "points": [[0, 0], [1, 1]]}),
            ("+", {"kind": "oval"}),
            ("+", None),
        ),
    ),
    Shape(
        "shape_one_of",
        {"oneOf": [_SQUARE, _CIRCLE]},
        lambda d: d.pick(
            ({"kind": "square", "side": d.num(0, 9)}, {"kind": "circle", "radius": d.int(0, 9)})
        ),
        (("kind", "triangle"), ("area", 1), ("", {"kind": "square"}), ("", "square")),
        features=("oneOf",),
    ),
    Shape(
        "overlapping_one_of",
        obj({"n": {"oneOf": [integer(0, 10), integer(5, 20)]}}),
        lambda d: {"n": d.pick((d.int(0, 4), d.int(11, 20)))},
        (("n", 5), ("n", 10), ("n", 21), ("n", -1)),
        features=("oneOf",),
    ),
    Shape(
        "string_or_object",
        obj(
            {
                "author": {"anyOf": [STR, obj({"name": STR, "url": form("uri")})]},
                "bugs": {"anyOf": [form("uri"), BOOL]},
                "size": {"anyOf": [integer(1), words("auto", "fit")]},
            }
        ),
        lambda d: {
            "author": d.pick((d.name(), {"name": d.name(), "url": d.uri()})),
            "bugs": d.pick((d.uri(), False)),
            "size": d.pick((d.int(1, 99), "auto", "fit")),
        },
        (
            ("author", {"name": "x"}),
            ("author", None),
            ("bugs", "no uri"),
            ("bugs", 0),
            ("size", 0),
            ("size", "big"),
        ),
    ),
    Shape(
        "nullable_everything",
        obj(
            {
                "text": {"type": ["string", "null"], "maxLength": 10},
                "count": {"type": ["integer", "null"], "minimum": 1},
                "flag": {"type": ["boolean", "null"]},
                "list": {"type": ["array", "null"], "items": INT, "maxItems": 2},
                "object": {"anyOf": [obj({"x": INT}), NULL]},
            }
        ),
        lambda d: {
            "text": d.pick((None, d.word())),
            "count": d.pick((None, d.int(1, 9))),
            "flag": d.pick((None, True)),
            "list": d.pick((None, [1, 2], [])),
            "object": d.pick((None, {"x": d.int(0, 9)})),
        },
        (
            ("text", "x" * 11),
            ("count", 0),
            ("flag", 0),
            ("list", [1, 2, 3]),
            ("list", ["1"]),
            ("object", {}),
            ("object", {"x": None}),
        ),
    ),
    Shape(
        "tuple_closed",
        {
            "type": "array",
            "prefixItems": [words("add", "remove"), pattern("^/"), {"type": ["number", "string"]}],
            "items": False,
            "minItems": 2,
        },
        lambda d: [d.pick(("add", "remove")), f"/{d.slug()}", d.pick((d.int(0, 9), d.word()))],
        (
            ("0", "move"),
            ("1", "relative"),
            ("2", None),
            ("+", 1),
            ("", ["add"]),
            ("", ["/x", "add"]),
        ),
        optional=("2",),
    ),
    Shape(
        "tuple_open",
        {
            "type": "array",
            "prefixItems": [STR, INT],
            "items": BOOL,
            "minItems": 2,
            "maxItems": 5,
        },
        lambda d: [d.word(), d.int(0, 99), *d.list(0, 3, d.bool)],
        (("0", 1), ("1", "x"), ("", ["a", 1, "b"]), ("", ["a"]), ("", ["a", 1, *[True] * 4])),
    ),
    Shape(
        "matrix",
        array(array(NUM, 3, 3), 3, 3),
        lambda d: [[d.num(-9, 9) for _ in range(3)] for _ in range(3)],
        (("0", [1, 2]), ("0", [1, 2, 3, 4]), ("+", [1, 2, 3]), ("0/0", "1"), ("2", DROP)),
    ),
    Shape(
        "table_of_cells",
        obj(
            {
                "header": array(text(1, 20), 1, 6),
                "rows": array(array({"type": ["string", "number", "null"]}, 1, 6), None, 50),
            }
        ),
        lambda d: {
            "header": ["when", "what", "how much"],
            "rows": d.list(0, 5, lambda: [d.date(), d.sentence(), d.pick((None, d.num(0, 9)))]),
        },
        (
            ("header", []),
            ("header/0", ""),
            ("rows/+", []),
            ("rows/+", [True]),
            ("rows/+", [1, 2, 3, 4, 5, 6, 7]),
            ("rows", DROP),
        ),
    ),
    Shape(
        "all_of_merge",
        {
            "$defs": {
                "base": {
                    "type": "object",
                    "properties": {"id": integer(1), "created": form("date")},
                    "required": ["id"],
                }
            },
            "allOf": [
                ref("base"),
                {
                    "type": "object",
                    "properties": {"title": text(1, 30), "id": integer(None, 1000)},
                    "required": ["title"],
                },
            ],
        },
        lambda d: {"id": d.int(1, 1000), "created": d.date(), "title": d.title()},
        (("id", 0), ("id", 1001), ("created", "today"), ("title", ""), ("title", DROP)),
        optional=("created",),
        features=("allOf",),
    ),
    Shape(
        "all_of_bounds",
        obj(
            {
                "n": {"allOf": [integer(10), integer(None, 20)]},
                "s": {"allOf": [pattern("^a"), pattern("z$"), text(None, 8)]},
            }
        ),
        lambda d: {"n": d.int(10, 20), "s": f"a{d.chars('bc', 0, 6)}z"},
        (("n", 9), ("n", 21), ("s", "abc"), ("s", "bcz"), ("s", "abcdefghz")),
        features=("allOf",),
    ),
    Shape(
        "conditional_address",
        {
            **obj({"country": words("US", "NL"), "code": STR}),
            "if": {"properties": {"country": {"const": "US"}}},
            "then": {"properties": {"code": pattern("^[0-9]{5}$")}},
            "else": {"properties": {"code": pattern("^[0-9]{4} [A-Z]{2}$")}},
        },
        lambda d: d.pick(
            (
                {"country": "US", "code": d.digits(5)},
                {"country": "NL", "code": f"{d.digits(4)} AB"},
            )
        ),
        (
            ("", {"country": "US", "code": "1234 AB"}),
            ("", {"country": "NL", "code": "12345"}),
            ("country", "DE"),
            ("code", "x"),
        ),
        features=("if", "then", "else"),
    ),
    Shape(
        "dependent_fields",
        {
            **obj(
                {"card": pattern("^[0-9]{16}$"), "expires": STR, "cash": BOOL},
                optional=["card", "expires", "cash"],
            ),
            "dependentRequired": {"card": ["expires"]},
        },
        lambda d: {"card": d.digits(16), "expires": "2031-04", "cash": d.bool()},
        (("expires", DROP), ("card", "1234"), ("cash", "no"), ("cvc", "123")),
        optional=("cash",),
        features=("dependentRequired",),
    ),
    Shape(
        "not_reserved",
        obj({"user": {"type": "string", "not": {"enum": ["root", "admin"]}}, "n": INT}),
        lambda d: {"user": d.pick((d.word(), "rooted", "adm", "")), "n": d.int(0, 9)},
        (("user", "root"), ("user", "admin"), ("user", 0), ("n", DROP)),
        features=("not",),
    ),
    Shape(
        "unique_tags",
        {**array(words("a", "b", "c", "d"), 1, 4), "uniqueItems": True},
        lambda d: d.some(("a", "b", "c", "d"), 1, 4),
        (("", []), ("", ["a", "a"]), ("", ["a", "b", "a"]), ("0", "e")),
        features=("uniqueItems",),
    ),
    Shape(
        "contains_admin",
        {
            **array(obj({"role": words("admin", "user"), "name": STR}), 1),
            "contains": {"properties": {"role": {"const": "admin"}}},
        },
        lambda d: [{"role": "user", "name": d.name()}, {"role": "admin", "name": d.name()}],
        (("1", DROP), ("1/role", "user"), ("0/role", "guest"), ("", [])),
        features=("contains",),
    ),
    Shape(
        "short_keys",
        {
            "type": "object",
            "propertyNames": pattern("^[a-z]{1,3}$"),
            "additionalProperties": integer(0, 9),
            "minProperties": 1,
            "maxProperties": 3,
        },
        lambda d: {"a": d.int(0, 9), "bcd": d.int(0, 9)},
        (("", {}), ("long", 1), ("A", 1), ("a", 10), ("", {"a": 1, "b": 1, "c": 1, "d": 1})),
        optional=("bcd",),
        features=("propertyNames", "minProperties", "maxProperties"),
    ),
    Shape(
        "versioned_union",
        {
            "anyOf": [
                obj({"version": {"const": 1}, "name": STR}),
                obj({"version": {"const": 2}, "first": STR, "last": STR}),
                obj(
                    {
                        "version": {"const": 3},
                        "names": array(obj({"part": enum("given", "family"), "text": text(1)}), 1),
                        "preferred": {"type": ["string", "null"]},
                    },
                    optional=["preferred"],
                ),
            ]
        },
        lambda d: d.pick(
            (
                {"version": 1, "name": d.name()},
                {"version": 2, "first": d.word(), "last": d.word()},
                {
                    "version": 3,
                    "names": [{"part": "given", "text": d.word()}],
                    "preferred": d.pick((None, d.word())),
                },
            )
        ),
        (
            ("version", 4),
            ("", {"version": 1, "first": "a", "last": "b"}),
            ("", {"version": 2, "first": "a"}),
            ("", {"version": 3, "names": []}),
            ("", {"version": 3, "names": [{"part": "middle", "text": "x"}]}),
        ),
    ),
    Shape(
        "any_value",
        obj({"anything": True, "nothing": {"not": {}}}, optional=["nothing"], closed=False),
        lambda d: {"anything": d.pick((None, 0, "x", [], {"a": []})), "more": d.sentence()},
        (("anything", DROP), ("nothing", 1), ("", []), ("", None)),
        optional=("more",),
        features=("not",),
    ),
]
