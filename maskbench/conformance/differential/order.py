"""The order of properties that ffwd documents, if a schema determines it clearly."""

from __future__ import annotations

from typing import Any

# Keywords that combine several objects, or that depend on the value.
_TOGETHER = frozenset(
    [
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "dependentSchemas",
        "dependencies",
        "$dynamicRef",
        "$recursiveRef",
        "contains",
        "propertyNames",
        "unevaluatedProperties",
        "unevaluatedItems",
        "enum",
        "const",
        "$id",
        "id",
    ]
)


class UnclearOrderError(ValueError):
    """A schema whose order does not follow from one list of properties for each object."""


def in_declared_order(schema: Any, instance: Any, root: Any) -> Any:
    """Return the instance with declared properties first, in order, and then all others.

    Raises `UnclearOrderError`.
    """
    if not isinstance(schema, dict):
        return instance
    if "$ref" in schema:
        return in_declared_order(_target(schema, root), instance, root)
    if not _TOGETHER.isdisjoint(schema):
        raise UnclearOrderError
    if isinstance(instance, dict):
        properties = schema.get("properties", {})
        if schema.get("patternProperties"):
            raise UnclearOrderError
        names = [name for name in properties if name in instance]
        names += [name for name in instance if name not in properties]
        others = schema.get("additionalProperties", True)
        return {
            name: in_declared_order(properties.get(name, others), instance[name], root)
            for name in names
        }
    if isinstance(instance, list):
        items = schema.get("items", True)
        if isinstance(items, list) or "prefixItems" in schema:
            raise UnclearOrderError
        return [in_declared_order(items, item, root) for item in instance]
    return instance


def _target(schema: dict[str, Any], root: Any) -> Any:
    """Return the target of a reference without siblings that points into the root."""
    reference = schema["$ref"]
    if len(schema) > 1 or not isinstance(reference, str) or not reference.startswith("#/"):
        raise UnclearOrderError
    target = root
    for step in reference[2:].split("/"):
        target = target.get(step) if isinstance(target, dict) else None
    if target is None:
        raise UnclearOrderError
    return target
