"""Schemas whose strings and names of properties do not have certain texts in them."""

import re
from typing import Any

from ffwd.grammar._structural_tags.closed import LISTED, NAMED, ONE, SAME

# The name of the schema for values that the schema does not constrain.
FREE = "ffwd: without"


def without(schema: object, texts: tuple[str, ...]) -> Any:
    """Return the schema without the strings that contain one of the texts.

    Strings with a `pattern` or `format` are what that says, and nothing more.
    """
    pattern = "|".join(re.sub(r"[\^$\\.*+?()\[\]{}|/]", r"\\\g<0>", text) for text in texts)
    bare = {"not": {"type": "string", "pattern": pattern}}
    names = {"propertyNames": {"not": {"pattern": pattern}}}
    reference = {"$ref": f"#/$defs/{FREE}"}
    free = {**bare, **names, "additionalProperties": reference, "items": reference}
    changed = _without(schema, [bare, names], reference)
    return {**changed, "$defs": {**changed.get("$defs", {}), FREE: free}}


def _without(schema: object, forbid: list[dict[str, Any]], free: dict[str, Any]) -> Any:
    if schema is True or schema == {}:
        return free
    if not isinstance(schema, dict):
        return schema

    def inner(value: object) -> Any:
        return _without(value, forbid, free)

    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in NAMED and isinstance(value, dict):
            made[key] = {name: inner(one) for name, one in value.items()}
        elif key in (*LISTED, *SAME) and isinstance(value, list):
            made[key] = [inner(one) for one in value]
        elif key in ONE:
            made[key] = [inner(i) for i in value] if isinstance(value, list) else inner(value)
        else:
            made[key] = value
    if "$ref" in schema:
        return made
    if not any(name in schema for name in ("additionalProperties", "unevaluatedProperties")):
        made["additionalProperties"] = free
    if not any(name in schema for name in ("items", "unevaluatedItems")):
        made["items"] = free
    bare, names = forbid
    constrained = "pattern" in schema or "format" in schema
    made["allOf"] = [*made.get("allOf", []), names if constrained else {**bare, **names}]
    return made
