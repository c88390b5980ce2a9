"""Schemas drawn from a grammar of all keywords.

Names, texts and numbers come from small sets, so that keywords meet: a name is declared, matched
by a pattern, required and forbidden in the same schema more often than not.
"""

from __future__ import annotations

import random
from typing import Any

DIALECTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
NAMES = ("a", "b", "c", "ab", "bc", "", 'q"', "é\n", "a/~b", "1")
TEXTS = (
    "",
    "a",
    "b",
    "ab",
    "ba",
    "aab",
    "é",
    "🐢",
    'q"\\',
    "\n",
    "a b",
    "12",
    "2024-02-29",
    "1.2.3.4",
)
PATTERNS = (
    "^a",
    "b$",
    "a|c",
    "^.$",
    "[ab]",
    "^$",
    r"\d",
    "^[^a]*$",
    "a.*b",
    "^(ab?)+$",
    "^a?b?c?$",
    "^(?=.*a).{1,3}$",
    "^(?!a)",
    "^[a-cé]{0,2}$",
)
FORMATS = ("date", "ipv4", "uuid", "no-such-format")
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
NUMBERS = (-2, -1, 0, 1, 2, 3, 5, 10, 0.5, 1.5, -0.5, 2.25, 0.1)
DIVISORS = (1, 2, 3, 0.5, 0.1, 1.5, 0.25, 10, 7)

_KEYWORDS: dict[str, tuple[str, ...]] = {
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength", "pattern", "pattern", "format"),
    "array": (
        "items",
        "prefix",
        "additionalItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "unevaluatedItems",
    ),
    "object": (
        "properties",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
    ),
}
_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "$ref", "enum", "const")
_UNKNOWN_TO = {
    "4": {
        "const",
        "contains",
        "propertyNames",
        "if",
        "unevaluatedItems",
        "unevaluatedProperties",
        "dependentRequired",
        "dependentSchemas",
    },
    "6": {
        "if",
        "unevaluatedItems",
        "unevaluatedProperties",
        "dependentRequired",
        "dependentSchemas",
    },
    "7": {
        "unevaluatedItems",
        "unevaluatedProperties",
        "dependentRequired",
        "dependentSchemas",
    },
    "2019-09": {"dependencies"},
    "2020-12": {"dependencies", "additionalItems"},
}


def draw_schema(source: random.Random) -> dict[str, Any]:
    """Return a schema with a `$schema`, in any dialect."""
    dialect = source.choice(tuple(DIALECTS))
    schema = _Draw(source, dialect).root()
    return {"$schema": DIALECTS[dialect], **schema}


class _Draw:
    def __init__(self, source: random.Random, dialect: str) -> None:
        self._source = source
        self._dialect = dialect
        self._definitions = source.choice((0, 0, 1, 2))
        self._defs = "$defs" if dialect in ("2019-09", "2020-12") else "definitions"

    def root(self) -> dict[str, Any]:
        drawn = self._schema(3, first=0)
        # A reference beside which nothing counts would make the root a detour.
        while not isinstance(drawn, dict) or "$ref" in drawn:
            drawn = self._schema(3, first=0)
        if self._definitions:
            drawn[self._defs] = {
                f"d{index}": self._schema(2, first=index + 1) for index in range(self._definitions)
            }
        return drawn

    def _schema(self, depth: int, *, first: int | None) -> Any:
        """Return a schema of at most `depth` levels.

        In place, only definitions from `first` on may be referred to, so that no reference leads
        back without progress; with None, inside a container, all may be.
        """
        source = self._source
        if source.random() < 0.12 and self._dialect != "4":
            return source.random() < 0.7
        if depth <= 0 or source.random() < 0.15:
            return self._leaf()
        schema: dict[str, Any] = {}
        kind = source.choice(("integer", "string", "array", "array", "object", "object", "object"))
        if source.random() < 0.5:
            schema["type"] = "number" if kind == "integer" and source.random() < 0.5 else kind
        elif source.random() < 0.1:
            schema["type"] = source.sample(TYPES, 2)
        for _ in range(source.choice((1, 1, 2, 2, 3))):
            self._add(schema, source.choice(_KEYWORDS[kind]), depth, first)
        if source.random() < 0.4:
            self._add(schema, source.choice(_IN_PLACE), depth, first)
        return schema

    def _leaf(self) -> dict[str, Any]:
        source = self._source
        leaf: dict[str, Any] = {"type": source.choice(TYPES)}
        if source.random() < 0.3:
            leaf = {}
            self._add(leaf, source.choice(("enum", "const")), 0, None)
        elif source.random() < 0.3:
            kind = {"number": "integer"}.get(leaf["type"], leaf["type"])
            if kind in ("integer", "string"):
                self._add(leaf, source.choice(_KEYWORDS[kind]), 0, None)
        return leaf

    def _inside(self, depth: int) -> Any:
        return self._schema(depth - 1, first=None)

    def _in_place(self, depth: int, first: int | None) -> Any:
        return self._schema(depth - 1, first=first)

    def _few(self, lower: int, upper: int) -> range:
        return range(self._source.randint(lower, upper))

    def _names(self, most: int) -> list[str]:
        return self._source.sample(NAMES, self._source.randint(1, most))

    def _add(self, schema: dict[str, Any], keyword: str, depth: int, first: int | None) -> None:
        if keyword in _UNKNOWN_TO[self._dialect]:
            return
        source = self._source
        match keyword:
            case "minimum" | "maximum":
                schema[keyword] = source.choice(NUMBERS)
            case "exclusiveMinimum" | "exclusiveMaximum":
                if self._dialect == "4":
                    bound = "minimum" if keyword == "exclusiveMinimum" else "maximum"
                    schema[bound] = source.choice(NUMBERS)
                    schema[keyword] = source.random() < 0.8
                else:
                    schema[keyword] = source.choice(NUMBERS)
            case "multipleOf":
                schema[keyword] = source.choice(DIVISORS)
            case "minLength" | "maxLength" | "minItems" | "maxItems":
                schema[keyword] = source.randint(0, 3)
            case "minProperties" | "maxProperties":
                schema[keyword] = source.randint(0, 4)
            case "pattern":
                schema[keyword] = source.choice(PATTERNS)
            case "format":
                schema[keyword] = source.choice(FORMATS)
            case "uniqueItems":
                schema[keyword] = source.random() < 0.9
            case "items":
                schema[keyword] = self._inside(depth)
            case "prefix":
                name = "prefixItems" if self._dialect == "2020-12" else "items"
                schema[name] = [self._inside(depth) for _ in self._few(1, 3)]
            case "contains":
                # In 2019-09 the validators let `contains` decide what is evaluated, and Python's
                # jsonschema overlooks `additionalProperties`, both against the standard.
                if self._dialect != "2019-09" or "unevaluatedItems" not in schema:
                    self._add_contains(schema, depth)
            case "required":
                schema[keyword] = self._names(3)
            case "properties":
                schema[keyword] = {name: self._inside(depth) for name in self._names(4)}
            case "patternProperties":
                patterns = source.sample(PATTERNS, source.randint(1, 2))
                schema[keyword] = {pattern: self._inside(depth) for pattern in patterns}
            case "propertyNames":
                schema[keyword] = self._property_names(depth)
            case "dependentRequired":
                schema[keyword] = {name: self._names(2) for name in self._names(2)}
            case "dependentSchemas":
                schema[keyword] = {name: self._in_place(depth, first) for name in self._names(2)}
            case "dependencies":
                schema[keyword] = {
                    name: self._names(2)
                    if source.random() < 0.5
                    else self._object(self._in_place(depth, first))
                    for name in self._names(2)
                }
            case "additionalItems" | "additionalProperties":
                if self._dialect == "2019-09" and "unevaluatedProperties" in schema:
                    return
                schema[keyword] = source.choice((False, self._inside(depth)))
            case "unevaluatedItems" | "unevaluatedProperties":
                if self._dialect == "2019-09" and not {
                    "contains",
                    "additionalProperties",
                }.isdisjoint(schema):
                    return
                schema[keyword] = source.choice((False, self._inside(depth)))
            case "allOf" | "anyOf" | "oneOf":
                schema[keyword] = [self._in_place(depth, first) for _ in self._few(1, 3)]
            case "not":
                schema[keyword] = self._in_place(depth, first)
            case "if":
                for part in ("if", "then", "else"):
                    if part == "if" or source.random() < 0.7:
                        schema[part] = self._in_place(depth, first)
            case "$ref":
                self._add_reference(schema, first)
            case "enum":
                schema[keyword] = [draw_value(source, 2) for _ in self._few(1, 4)]
            case "const":
                schema[keyword] = draw_value(source, 2)

    def _object(self, schema: Any) -> Any:
        """In draft 4, no boolean stands for a schema."""
        return schema if isinstance(schema, dict) or self._dialect != "4" else {}

    def _add_contains(self, schema: dict[str, Any], depth: int) -> None:
        source = self._source
        schema["contains"] = self._inside(depth)
        if self._dialect in ("2019-09", "2020-12"):
            if source.random() < 0.4:
                schema["minContains"] = source.randint(0, 2)
            if source.random() < 0.4:
                schema["maxContains"] = source.randint(0, 2)

    def _property_names(self, depth: int) -> Any:
        source = self._source
        drawn: dict[str, Any] = {}
        self._add(drawn, source.choice(("pattern", "maxLength", "minLength", "enum")), 0, None)
        return drawn if source.random() < 0.7 else {"not": drawn}

    def _add_reference(self, schema: dict[str, Any], first: int | None) -> None:
        targets = [f"#/{self._defs}/d{index}" for index in range(first or 0, self._definitions)]
        if first is None:
            targets.append("#")
        if targets:
            schema["$ref"] = self._source.choice(targets)


def draw_value(source: random.Random, depth: int) -> Any:
    """Return any small value."""
    kinds: tuple[str, ...] = ("number", "string")
    if source.random() < 0.7:
        kinds = ("null", "boolean", "number", "string", "array", "object") if depth else ("number",)
    match source.choice(kinds):
        case "null":
            return None
        case "boolean":
            return source.random() < 0.5
        case "number":
            return source.choice(NUMBERS)
        case "string":
            return source.choice(TEXTS)
        case "array":
            return [draw_value(source, depth - 1) for _ in range(source.randint(0, 3))]
        case _:
            names = source.sample(NAMES, source.randint(0, 3))
            return {name: draw_value(source, depth - 1) for name in names}
