"""Schemas for cases: drawn from all keywords, drawn as people write them, or of a corpus."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from maskbench.conformance.gates.schemas import DIALECTS, PATTERNS, TEXTS, draw_schema, draw_value
from maskbench.data import DataError, Source, parse_case

# Names as in real prompts, whereas `gates.schemas` has names that collide.
_NAMES = ("id", "name", "kind", "tags", "next", "a-b", "größe", "x y", "n1", "value")
_FORMATS: tuple[str, ...] = (
    "date",
    "time",
    "date-time",
    "uuid",
    "ipv4",
    "ipv6",
    "email",
    "uri",
    "duration",
)
_FORMATS += ("hostname", "json-pointer", "regex", "iri", "uri-template")
_BASE = "https://example.com/root.json"
_MAX_TEXT = 100_000


@dataclass(frozen=True)
class DrawnSchema:
    """A schema, and instances that are thought to be valid or invalid against it."""

    name: str
    schema: Any
    instances: tuple[Any, ...] = ()


def draw(source: random.Random, corpus: Sequence[Source]) -> DrawnSchema:
    """Return a schema of any sort."""
    chance = source.random()
    if chance < 0.35:
        return DrawnSchema("all keywords", draw_schema(source))
    if chance < 0.65 or not corpus:
        return DrawnSchema("usual keywords", draw_usual(source))
    return _of_corpus(source, corpus)


def _of_corpus(source: random.Random, corpus: Sequence[Source]) -> DrawnSchema:
    """Return one of the corpus, as it is or with some keywords changed."""
    while True:
        chosen = source.choice(corpus)
        # Large ones would take a case's whole time.
        if len(chosen.text) > _MAX_TEXT:
            continue
        try:
            case = parse_case(chosen)
        except DataError:
            continue
        instances = tuple(test.data for test in case.tests)
        if source.random() < 0.5:
            return DrawnSchema(case.id, case.schema, instances)
        schema = copy.deepcopy(case.schema)
        for _ in range(source.randint(1, 3)):
            _change(source, schema)
        return DrawnSchema(f"{case.id}, changed", schema, instances)


def _change(source: random.Random, schema: Any) -> None:
    """Remove a keyword somewhere, move a bound, or forbid or allow undeclared members."""
    places = [place for place in _schemas(schema) if place]
    if not places:
        return
    place = source.choice(places)
    match source.randrange(4):
        case 0:
            keys = [key for key in place if key not in ("$schema", "$defs", "definitions", "$id")]
            if keys:
                del place[source.choice(keys)]
        case 1:
            numbers = [k for k, v in place.items() if type(v) in (int, float)]
            if numbers:
                place[source.choice(numbers)] += source.choice((-1, 1))
        case 2:
            if "properties" in place:
                place["additionalProperties"] = source.choice((False, True, {"type": "integer"}))
        case _:
            if isinstance(place.get("required"), list) and place["required"]:
                place["required"].remove(source.choice(place["required"]))
            elif isinstance(place.get("properties"), dict) and place["properties"]:
                place["required"] = [source.choice(list(place["properties"]))]


def _schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the schemas within a schema, as far as the usual keywords lead."""
    if isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            if key in ("properties", "$defs", "definitions", "patternProperties"):
                for member in value.values() if isinstance(value, dict) else ():
                    yield from _schemas(member)
            elif key in ("items", "additionalProperties", "not", "if", "then", "else"):
                yield from _schemas(value)
            elif key in ("allOf", "anyOf", "oneOf", "prefixItems") and isinstance(value, list):
                for member in value:
                    yield from _schemas(member)


def draw_usual(source: random.Random) -> dict[str, Any]:
    """Return a schema with the most frequent keywords, and references of every sort."""
    return _Usual(source).root()


class _Usual:
    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._definitions = source.choice((0, 0, 1, 2, 3))
        # How each is referred to: by pointer, anchor, dynamic anchor, or an `$id` of its own.
        self._ways = [
            source.choice(("pointer", "pointer", "anchor", "dynamic", "id"))
            for _ in range(self._definitions)
        ]

    def root(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"$schema": DIALECTS["2020-12"]}
        if any(way in ("id", "anchor", "dynamic") for way in self._ways):
            schema["$id"] = _BASE
        schema |= self._typed(3)
        if self._definitions:
            schema["$defs"] = {
                f"d{number}": self._definition(number) for number in range(self._definitions)
            }
        return schema

    def _definition(self, number: int) -> dict[str, Any]:
        name = f"d{number}"
        marks = {
            "anchor": {"$anchor": name},
            "dynamic": {"$dynamicAnchor": name},
            "id": {"$id": f"{name}.json"},
        }
        return {**marks.get(self._ways[number], {}), **self._typed(2)}

    def _reference(self) -> dict[str, Any]:
        number = self._source.randrange(self._definitions)
        name = f"d{number}"
        match self._ways[number]:
            case "anchor":
                return {"$ref": f"{_BASE}#{name}"}
            case "dynamic":
                return {"$dynamicRef": f"{_BASE}#{name}"}
            case "id":
                return {"$ref": f"https://example.com/{name}.json"}
            case _:
                return {"$ref": f"{self._root_uri()}#/$defs/{name}"}

    def _root_uri(self) -> str:
        return _BASE if any(way in ("id", "anchor", "dynamic") for way in self._ways) else ""

    def _inside(self, depth: int) -> Any:
        source = self._source
        if self._definitions and source.random() < 0.2:
            return self._reference()
        if depth > 0 and source.random() < 0.12:
            return {"anyOf": [self._typed(depth - 1) for _ in range(source.randint(2, 3))]}
        if depth > 0 and source.random() < 0.06:
            return {"allOf": [self._object(depth - 1), self._object(depth - 1)]}
        if source.random() < 0.05:
            return source.choice((True, {}))
        return self._typed(depth)

    def _typed(self, depth: int) -> dict[str, Any]:
        source = self._source
        if depth <= 0:
            return self._scalar()
        match source.choice(("object", "object", "array", "scalar")):
            case "object":
                return self._object(depth)
            case "array":
                return self._array(depth)
            case _:
                return self._scalar()

    def _object(self, depth: int) -> dict[str, Any]:
        source = self._source
        names = source.sample(_NAMES, source.randint(1, 5))
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: self._inside(depth - 1) for name in names},
        }
        if source.random() < 0.7:
            wanted = [name for name in names if source.random() < 0.6]
            if source.random() < 0.1:
                wanted.append(source.choice(_NAMES))
            schema["required"] = sorted(set(wanted))
        if source.random() < 0.7:
            schema["additionalProperties"] = source.choice((False, False, self._inside(0)))
        if source.random() < 0.08:
            schema["patternProperties"] = {source.choice(PATTERNS): self._inside(0)}
        if source.random() < 0.06:
            schema["minProperties"] = source.randint(0, 2)
        if source.random() < 0.06:
            schema["maxProperties"] = source.randint(2, 5)
        return schema

    def _array(self, depth: int) -> dict[str, Any]:
        source = self._source
        schema: dict[str, Any] = {"type": "array", "items": self._inside(depth - 1)}
        if source.random() < 0.2:
            schema["prefixItems"] = [self._inside(0) for _ in range(source.randint(1, 3))]
            if source.random() < 0.5:
                schema["items"] = False
        if source.random() < 0.4:
            schema["minItems"] = source.randint(0, 3)
        if source.random() < 0.4:
            schema["maxItems"] = schema.get("minItems", 0) + source.randint(0, 3)
        if source.random() < 0.08:
            schema["uniqueItems"] = True
        return schema

    def _scalar(self) -> dict[str, Any]:
        source = self._source
        kind = source.choice(("string", "string", "integer", "number", "other", "enum"))
        if kind == "string":
            return self._string()
        if kind in ("integer", "number"):
            return self._number(kind)
        if kind == "enum":
            values = [draw_value(source, 1) for _ in range(source.randint(1, 4))]
            return {"enum": values} if source.random() < 0.8 else {"const": values[0]}
        return {"type": source.choice(("boolean", "null", ["string", "null"], ["integer", "null"]))}

    def _string(self) -> dict[str, Any]:
        source = self._source
        schema: dict[str, Any] = {"type": "string"}
        match source.choice(("plain", "length", "pattern", "format", "enum")):
            case "length":
                least = source.randint(0, 4)
                schema["minLength"] = least
                schema["maxLength"] = least + source.choice((0, 1, 3, 20))
            case "pattern":
                schema["pattern"] = source.choice(
                    (*PATTERNS, r"^[A-Z]{2}-\d{1,4}$", r"^\w+@\w+$", r"(foo|bar)+", r"^\S*$")
                )
                if source.random() < 0.3:
                    schema["maxLength"] = source.randint(1, 8)
            case "format":
                schema["format"] = source.choice(_FORMATS)
            case "enum":
                schema["enum"] = source.sample(TEXTS, source.randint(1, 4))
        return schema

    def _number(self, kind: str) -> dict[str, Any]:
        source = self._source
        schema: dict[str, Any] = {"type": kind}
        low: float = source.choice((-1000, -7, -1, 0, 1, 5, 99, 12345678901234567890))
        high: float = low + source.choice((0, 1, 9, 10, 250, 10**6))
        if kind == "number" and source.random() < 0.4:
            low, high = low + 0.5, high + 0.25 + 1
        if source.random() < 0.4:
            schema[source.choice(("minimum", "minimum", "exclusiveMinimum"))] = low
        if source.random() < 0.4:
            schema[source.choice(("maximum", "maximum", "exclusiveMaximum"))] = high
        if source.random() < 0.15:
            schema["multipleOf"] = source.choice((1, 2, 3, 7, 10, 0.5, 0.01, 250))
        return schema
