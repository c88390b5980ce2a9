"""Schemas whose objects have no other properties than those that they declare."""

from typing import Any

# Keywords whose value is a schema, several by name, or several in a list.
ONE = ("items", "additionalProperties", "contains", "propertyNames", "additionalItems",
       "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
LISTED = ("prefixItems",)
# Schemas in these apply to the same value.
SAME = ("allOf", "anyOf", "oneOf")
# Beside these keywords, the declared properties are known only from all schemas together.
APPLICATORS = (*SAME, "$ref", "$dynamicRef", "if", "dependentSchemas", "patternProperties")


def closed(schema: object, *, whole: bool = True) -> Any:
    """Return the schema with objects closed that declare properties and allow no others by name.

    Args:
        schema: A schema, or what stands in place of one. It is not changed.
        whole: Whether it says all about its value, and is not one of several that do.

    """
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in NAMED and isinstance(value, dict):
            made[key] = {name: closed(inner) for name, inner in value.items()}
        elif key in ONE or (key in LISTED and isinstance(value, list)):
            made[key] = [closed(i) for i in value] if isinstance(value, list) else closed(value)
        elif key in SAME and isinstance(value, list):
            # A branch is closed separately if nothing beside it declares properties.
            alone = key != "allOf" and not any(name in schema for name in ("properties", "allOf"))
            made[key] = [closed(inner, whole=whole and alone) for inner in value]
        else:
            made[key] = value
    says = ("additionalProperties", "unevaluatedProperties")
    if whole and "properties" in schema and not any(name in schema for name in says):
        plain = not any(name in schema for name in APPLICATORS)
        made["additionalProperties" if plain else "unevaluatedProperties"] = False
    return made
