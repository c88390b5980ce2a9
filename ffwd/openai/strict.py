"""The rules of OpenAI's `strict` for schemas."""

from collections.abc import Iterator, Mapping
from typing import Any

from ffwd._native import InvalidSchemaError
from ffwd.tools.schema import key_pointer

# "Structured Outputs: supported schemas": these are refused there, so they are here.
_REFUSED = (
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
)
# Deeper than any schema that can be compiled; pointers grow with it.
_MAX_NESTING = 512
_ONE = ("items", "additionalItems", "contains")
_LISTED = ("anyOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions")


class StrictSchemaError(InvalidSchemaError):
    """A schema that `strict` does not allow, at the JSON pointer `pointer`."""

    def __init__(self, message: str, pointer: str) -> None:
        super().__init__(f"{message} (at {pointer!r})" if pointer else message)
        self.pointer = pointer


def check_strict(schema: object) -> None:
    """Raise an error for a schema that OpenAI's strict mode rejects.

    The root is an object without `anyOf`. Every object states `additionalProperties: false` and
    lists all its properties as required. `anyOf` is the only keyword that combines schemas.

    Raises:
        StrictSchemaError: The schema breaks a rule, at its `pointer`.

    """
    if not isinstance(schema, Mapping):
        raise StrictSchemaError("the schema must be an object", "")
    if schema.get("type") != "object" and "$ref" not in schema:
        raise StrictSchemaError('the root must have "type": "object"', "")
    if "anyOf" in schema:
        raise StrictSchemaError("the root must not be anyOf", "/anyOf")
    for found, pointer in _schemas(schema):
        for keyword in _REFUSED:
            if keyword in found:
                raise StrictSchemaError(
                    f"strict schemas cannot have {keyword!r}", key_pointer(pointer, keyword)
                )
        kinds = found.get("type")
        is_object = kinds == "object" or (isinstance(kinds, (list, tuple)) and "object" in kinds)
        if is_object or "properties" in found:
            _check_object(found, pointer)


def _check_object(schema: Mapping[str, Any], pointer: str) -> None:
    if schema.get("additionalProperties") is not False:
        raise StrictSchemaError(
            "strict schemas must state additionalProperties: false for every object", pointer
        )
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    if not isinstance(required, (list, tuple)) or not isinstance(properties, Mapping):
        raise StrictSchemaError("`required` must be a list and `properties` an object", pointer)
    missing = [name for name in properties if name not in required]
    if missing:
        raise StrictSchemaError(
            "strict schemas must list all properties of an object as required; "
            f"missing: {', '.join(map(repr, missing))}",
            pointer,
        )


def _schemas(schema: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield all subschemas with their pointers, without recursion because schemas may be deep."""
    coming: list[tuple[Any, str]] = [(schema, "")]
    while coming:
        found, pointer = coming.pop()
        if not isinstance(found, Mapping):
            continue
        if pointer.count("/") > 2 * _MAX_NESTING:
            raise StrictSchemaError(f"nested more than {_MAX_NESTING} deep", "")
        yield found, pointer
        for keyword in _NAMED:
            if isinstance(named := found.get(keyword), Mapping):
                coming += [
                    (each, key_pointer(pointer, keyword, key)) for key, each in named.items()
                ]
        for keyword in _LISTED:
            if isinstance(listed := found.get(keyword), (list, tuple)):
                coming += [(each, f"{pointer}/{keyword}/{i}") for i, each in enumerate(listed)]
        coming += [(found[keyword], f"{pointer}/{keyword}") for keyword in _ONE if keyword in found]
