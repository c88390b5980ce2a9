"""Files that programs keep: workflows, rules, themes, dashboards, messages."""

from __future__ import annotations

from maskbench.shapes.shape import (
    BOOL,
    DROP,
    INT,
    STR,
    Shape,
    array,
    defs,
    enum,
    form,
    integer,
    number,
    obj,
    pattern,
    ref,
    words,
)

SHAPES = [
    Shape(
        "dashboard_panels",
        obj(
            {
                "title": STR,
                "refresh": {"anyOf": [{"const": False}, pattern("^[1-9][0-9]*[smh]$")]},
                "panels": array(
                    {
                        "type": "object",
                        "properties": {
                            "type": words("graph", "stat", "row"),
                            "grid": obj(
                                {
                                    "x": integer(0, 23),
                                    "y": integer(0),
                                    "w": integer(1, 24),
                                    "h": integer(1),
                                }
                            ),
                        },
                        "required": ["type", "grid"],
                        "if": {"properties": {"type": {"const": "row"}}},
                        "then": {"properties": {"collapsed": BOOL}, "required": ["collapsed"]},
                    }
                ),
            }
        ),
        lambda d: {
            "title": d.title(),
            "refresh": d.pick((False, "30s", "5m")),
            "panels": [
                {"type": "graph", "grid": {"x": 0, "y": 0, "w": 12, "h": 8}, "unit": "ms"},
                {"type": "row", "grid": {"x": 0, "y": 8, "w": 24, "h": 1}, "collapsed": d.bool()},
            ],
        },
        (
            ("refresh", True),
            ("refresh", "0s"),
            ("panels/0/grid/w", 25),
            ("panels/1/collapsed", DROP),
            ("panels/0/type", "pie"),
            ("panels/0/grid", DROP),
        ),
        features=("if", "then"),
    ),
    Shape(
        "workflow_graph",
        obj(
            {
                "nodes": {
                    "type": "object",
                    "additionalProperties": obj(
                        {
                            "run": STR,
                            "needs": array(STR, uniqueItems=True),
                            "when": {"$ref": "#/$defs/cond"},
                        },
                        optional=["needs", "when"],
                    ),
                    "minProperties": 1,
                    "maxProperties": 20,
                }
            },
            **defs(
                {
                    "cond": {
                        "anyOf": [
                            BOOL,
                            obj({"not": {"$ref": "#/$defs/cond"}}),
                            obj({"all": array({"$ref": "#/$defs/cond"}, 1)}),
                            obj({"equals": array(STR, 2, 2)}),
                        ]
                    }
                }
            ),
        ),
        lambda d: {
            "nodes": {
                "build": {"run": "make"},
                d.word(): {
                    "run": "make test",
                    "needs": ["build"],
                    "when": d.pick(
                        (
                            True,
                            {"not": {"equals": ["a", d.word()]}},
                            {"all": [True, {"equals": ["x", "y"]}]},
                        )
                    ),
                },
            }
        },
        (
            ("nodes", {}),
            ("nodes/x", {"run": "a", "needs": ["b", "b"]}),
            ("nodes/x", {"run": "a", "when": {"all": []}}),
            ("nodes/x", {"run": "a", "when": {"equals": ["a"]}}),
            ("nodes/x", {"needs": []}),
        ),
        features=("$ref", "uniqueItems", "maxProperties"),
    ),
    Shape(
        "lint_rules",
        obj(
            {
                "extends": {"anyOf": [STR, array(STR)]},
                "rules": {
                    "type": "object",
                    "additionalProperties": {
                        "oneOf": [
                            ref("level"),
                            {
                                "type": "array",
                                "prefixItems": [ref("level")],
                                "items": {"type": ["object", "string", "integer"]},
                                "minItems": 1,
                            },
                        ]
                    },
                },
            },
            optional=["extends"],
            **defs({"level": {"enum": [0, 1, 2, "off", "warn", "error"]}}),
        ),
        lambda d: {
            "extends": d.pick(("base", ["a", "b"])),
            "rules": {
                "no-tabs": d.pick((0, "off")),
                "indent": ["error", 4, {"x": 1}],
                "quotes": [2],
            },
        },
        (
            ("rules/eol", 3),
            ("rules/eol", []),
            ("rules/eol", ["loud"]),
            ("rules/eol", ["warn", None]),
            ("extends", 1),
        ),
        optional=("extends",),
        features=("oneOf", "prefixItems"),
    ),
    Shape(
        "theme_tokens",
        obj(
            {
                "colors": {
                    "type": "object",
                    "patternProperties": {
                        "^[a-z]+(-[0-9]{2,3})?$": pattern("^#([0-9a-fA-F]{6}|[0-9a-fA-F]{8})$")
                    },
                    "additionalProperties": False,
                },
                "spacing": array(number(0, 512), 1, 16),
                "fonts": obj(
                    {
                        "body": array(STR, 1),
                        "size": {"anyOf": [integer(6, 96), enum("small", "large")]},
                    }
                ),
            }
        ),
        lambda d: {
            "colors": {"primary-500": f"#{d.hex(6)}", "ink": "#000000FF"},
            "spacing": [0, 4.5, 8],
            "fonts": {"body": ["Inter", "sans-serif"], "size": d.pick((14, "large"))},
        },
        (
            ("colors/primary-500", "#fff"),
            ("colors/Primary", "#000000"),
            ("spacing", []),
            ("spacing/0", -1),
            ("fonts/size", 5),
            ("fonts/size", "huge"),
        ),
        features=("patternProperties",),
    ),
    Shape(
        "message_union_deep",
        obj(
            {
                "blocks": array(
                    {
                        "anyOf": [
                            obj({"type": {"const": "text"}, "text": STR}),
                            obj(
                                {
                                    "type": {"const": "image"},
                                    "source": {
                                        "oneOf": [
                                            obj({"kind": {"const": "url"}, "url": form("uri")}),
                                            obj(
                                                {
                                                    "kind": {"const": "data"},
                                                    "mime": words("image/png", "image/jpeg"),
                                                    "base64": pattern("^[A-Za-z0-9+/]*={0,2}$"),
                                                }
                                            ),
                                        ]
                                    },
                                }
                            ),
                            obj(
                                {
                                    "type": {"const": "list"},
                                    "ordered": BOOL,
                                    "items": array(
                                        array({"$ref": "#/properties/blocks/items/anyOf/0"}, 1), 1
                                    ),
                                }
                            ),
                        ]
                    },
                    1,
                ),
                "edited": {"type": ["string", "null"], "format": "date-time"},
                "n": INT,
            }
        ),
        lambda d: {
            "blocks": [
                {"type": "text", "text": d.sentence()},
                {
                    "type": "image",
                    "source": d.pick(
                        (
                            {"kind": "url", "url": d.uri()},
                            {"kind": "data", "mime": "image/png", "base64": "iVBORw0="},
                        )
                    ),
                },
                {"type": "list", "ordered": True, "items": [[{"type": "text", "text": "a"}]]},
            ],
            "edited": d.pick((None, d.instant())),
            "n": 1,
        },
        (
            ("blocks", []),
            ("blocks/1/source/kind", "file"),
            ("blocks/2/items/0", []),
            ("blocks/2/items/0/0/type", "image"),
            ("blocks/0/text", DROP),
            ("edited", "now"),
        ),
        features=("anyOf", "oneOf", "$ref"),
    ),
]
