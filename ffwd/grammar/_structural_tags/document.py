"""A JSON Schema whose parts are read one by one."""

import hashlib
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

from ffwd.grammar._kinds import JsonSchema
from ffwd.grammar._repeat import MAX_COUNT, bounds
from ffwd.grammar._structural_tags.errors import StructuralTagError

KINDS = ("string", "number", "boolean", "null", "array", "object")
"""JSON's types of values."""

# Keywords without effect.
ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly"}
    | {"writeOnly", "$schema", "$id", "$defs", "definitions", "contentMediaType", "contentEncoding"}
)


def _is_count(value: object) -> bool:
    if isinstance(value, float):
        return value.is_integer() and value >= 0
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_type(value: object) -> bool:
    named = value if isinstance(value, list) else [value]
    return all(isinstance(name, str) and name in {*KINDS, "integer"} for name in named)


_SHAPES: dict[str, tuple[Callable[[object], bool], str]] = {
    "type": (_is_type, "must be a type of JSON, or a list of them"),
    "required": (
        lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
        "must be a list of strings",
    ),
    **dict.fromkeys(("enum", "anyOf", "oneOf", "allOf"), (_is_list, "must be a list")),
    **{
        name: (lambda value: isinstance(value, dict), "must be an object")
        for name in ("properties", "patternProperties")
    },
    **dict.fromkeys(
        [f"{end}{kind}" for end in ("min", "max") for kind in ("Properties", "Items", "Length")],
        (_is_count, "must be a whole number of 0 or more"),
    ),
}
"""The values that keywords may have, of those that are read here."""


class Document:
    """The schema of a tool's arguments.

    Places in it are JSON pointers; that of the whole is the empty one.
    """

    def __init__(
        self,
        schema: bool | dict[str, Any],
        pointer: str,
        json_schema: Callable[[dict[str, Any], dict[str, Any]], JsonSchema],
    ) -> None:
        self.schema = schema
        self._pointer = pointer
        self._json_schema = json_schema
        text = json.dumps(schema, sort_keys=False)
        self._uri = f"urn:ffwd:{hashlib.sha256(text.encode()).hexdigest()[:32]}"

    def error(self, place: str, message: str) -> StructuralTagError:
        """Return an error about a position of the schema."""
        return StructuralTagError.at(self._pointer + place, message)

    def bounds(self, place: str, schema: dict[str, Any], kind: str) -> tuple[int, int | None]:
        """Return the least and the largest number of `kind`, such as Items; None for any number."""
        least, most = bounds(schema, kind)
        if least > MAX_COUNT:
            raise self.error(f"{place}/min{kind}", f"must be at most {MAX_COUNT}")
        return least, most

    def at(self, place: str) -> bool | dict[str, Any]:
        """Return the schema at a position."""
        value: Any = self.schema
        for key in place.split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            else:
                raise self.error("", f"the reference to {place!r} leads nowhere")
        if not isinstance(value, (bool, dict)):
            raise self.error(place, "a schema must be an object or a boolean")
        if isinstance(value, dict):
            for keyword, (fits, message) in _SHAPES.items():
                if keyword in value and not fits(value[keyword]):
                    raise self.error(f"{place}/{keyword}", message)
        return value

    def resolve(self, place: str) -> str:
        """Return the target of a position that is only a reference."""
        seen = {place}
        while True:
            schema = self.at(place)
            if isinstance(schema, bool) or "$ref" not in schema:
                return place
            beside = sorted(schema.keys() - ANNOTATIONS - {"$ref"})
            if beside:
                raise self.error(place, f"{beside[0]!r} beside '$ref' is not supported in XML")
            reference = schema["$ref"]
            if not isinstance(reference, str) or not (reference + "/").startswith("#/"):
                raise self.error(
                    f"{place}/$ref", "only references into the schema itself are supported in XML"
                )
            place = unquote(reference[1:])
            if place in seen:
                raise self.error(place, "the reference leads to itself")
            seen.add(place)

    def kinds(self, place: str) -> frozenset[str]:
        """Return a superset of the types of values at a position."""
        return self._kinds(place, frozenset())

    def _kinds(self, place: str, around: frozenset[str]) -> frozenset[str]:
        place = self.resolve(place)
        schema = self.at(place)
        if isinstance(schema, bool) or place in around:
            return frozenset(KINDS) if schema else frozenset()
        around |= {place}
        found = frozenset(KINDS)
        if "type" in schema:
            named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            found &= {"number" if name == "integer" else name for name in named}
        for keyword in ("enum", "const"):
            if keyword in schema:
                values = schema["enum"] if keyword == "enum" else [schema["const"]]
                found &= {kind_of(value) for value in values}
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                inner = [self._kinds(f"{place}/{p}", around) for p in branches(schema, keyword)]
                found &= frozenset().union(*inner)
        for inner_place in branches(schema, "allOf"):
            found &= self._kinds(f"{place}/{inner_place}", around)
        return found

    def json(self, place: str, kinds: frozenset[str]) -> JsonSchema:
        """Return JSON text of a position's value, of these types."""
        named = [kind for kind in KINDS if kind in kinds]
        place = self.resolve(place)
        schema = self.at(place)
        if isinstance(schema, dict) and not _refers(schema):
            # Its meaning does not depend on its context.
            alone = schema if self.kinds(place) <= kinds else {"type": named, "allOf": [schema]}
            return self._json_schema(alone, {})
        reference = f"{self._uri}#{quote(place, safe='/~$')}"
        return self._json_schema({"$ref": reference, "type": named}, {self._uri: self.schema})

    def any_json(self, kinds: frozenset[str]) -> JsonSchema:
        """Return JSON text of any value of these types."""
        return self._json_schema({"type": [kind for kind in KINDS if kind in kinds]}, {})


def _refers(schema: dict[str, Any]) -> bool:
    """Return whether a schema contains references or their targets."""
    text = json.dumps(schema)
    return any(f'"{name}"' in text for name in ("$ref", "$dynamicRef", "$recursiveRef", "$id"))


def branches(schema: dict[str, Any], keyword: str) -> list[str]:
    """Return the positions of the schemas in a list, relative to the schema."""
    value = schema.get(keyword)
    return [f"{keyword}/{index}" for index in range(len(value))] if isinstance(value, list) else []


def escaped(key: str) -> str:
    """Return a key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def kind_of(value: object) -> str:
    """Return the type of a JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"
