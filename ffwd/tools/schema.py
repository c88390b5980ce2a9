"""The properties and the types of a schema, for styles other than JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ffwd._native import UnsupportedSchemaError
from ffwd.grammar import JsonSchema, Whitespace, json_schema

# They restrict the object itself, beyond which properties it has and what these are.
_OF_OBJECTS = (
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
)
# The id under which the whole schema is embedded, so that references within it keep their targets.
_ROOT = "urn:ffwd:tool"
_MAX_REFERENCES = 64


def unsupported(message: str, pointer: str, keyword: str) -> UnsupportedSchemaError:
    """Return an error about a keyword that a style of arguments cannot follow."""
    error = UnsupportedSchemaError(f"{message} (at {pointer!r})")
    error.pointer = pointer
    error.keyword = keyword
    return error


@dataclass(frozen=True)
class Properties:
    """The properties of an object that is written otherwise than as JSON.

    Attributes:
        declared: Their schemas by name, in the order of the schema.
        required: Those that must come.
        others: The schema of those that are not declared; None where there can be none.

    """

    declared: Mapping[str, Any]
    required: frozenset[str]
    others: Any


class ToolSchema:
    """A tool's schema, as the document of its references."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self._has_references = "$ref" in json.dumps(root) or "$dynamicRef" in json.dumps(root)

    def resolve(self, schema: Any, pointer: str) -> tuple[Any, str]:
        """Return the target of a schema that is a reference, with its pointer."""
        for _ in range(_MAX_REFERENCES):
            if not isinstance(schema, Mapping) or "$ref" not in schema:
                return schema, pointer
            reference = schema["$ref"]
            if not isinstance(reference, str) or not reference.startswith("#"):
                raise unsupported(f"the reference {reference!r} leaves the schema", pointer, "$ref")
            pointer, schema = reference[1:], self._at(reference[1:], pointer)
        raise unsupported("references lead to each other without end", pointer, "$ref")

    def _at(self, pointer: str, place: str) -> Any:
        value: Any = self.root
        for key in pointer.split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")
            if isinstance(value, Mapping) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            else:
                raise unsupported(f"the reference '#{pointer}' leads nowhere", place, "$ref")
        return value

    def properties(self, schema: Any, pointer: str) -> Properties:
        """Return the properties of an object.

        Raises:
            UnsupportedSchemaError: The object is restricted by more than its properties.

        """
        schema, pointer = self.resolve(schema, pointer)
        if schema is True:
            return Properties({}, frozenset(), True)
        if not isinstance(schema, Mapping):
            raise unsupported("arguments need a schema that is an object", pointer, "type")
        for keyword in _OF_OBJECTS:
            if keyword in schema:
                raise unsupported(
                    f"{keyword!r} is only supported where arguments are JSON, and not where each "
                    "is written on its own",
                    f"{pointer}/{keyword}",
                    keyword,
                )
        declared = schema.get("properties", {})
        required = schema.get("required", ())
        if not isinstance(declared, Mapping) or not isinstance(required, (list, tuple)):
            raise unsupported("`properties` or `required` is malformed", pointer, "properties")
        others = schema.get("additionalProperties", None if declared else True)
        missing = [name for name in required if name not in declared]
        if missing:
            raise unsupported(
                f"the property {missing[0]!r} is required and not declared",
                f"{pointer}/required",
                "required",
            )
        return Properties(declared, frozenset(required), None if others is False else others)

    def value(
        self, schema: Any, pointer: str, *, whitespace: Whitespace = "consistent"
    ) -> JsonSchema:
        """Return the JSON text of a value at a position of the document."""
        if not self._has_references or isinstance(schema, bool):
            found = schema
            if isinstance(schema, Mapping) and "$schema" in self.root:
                found = {"$schema": self.root["$schema"], **schema}
            return json_schema(_plain(found), whitespace=whitespace)
        base = self.root.get("$id", _ROOT)
        document: dict[str, Any] = {
            "$defs": {"tool": {**self.root, "$id": base}},
            "$ref": f"{base}#{pointer}",
        }
        if "$schema" in self.root:
            document["$schema"] = self.root["$schema"]
        return json_schema(document, whitespace=whitespace)


def _plain(schema: Any) -> bool | dict[str, Any]:
    return dict(schema) if isinstance(schema, Mapping) else schema


def key_pointer(pointer: str, *keys: str) -> str:
    """Return the pointer of a position below another."""
    return pointer + "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
