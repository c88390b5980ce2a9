"""Tools of requests, for several tests."""

from typing import Any

SCALARS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 8},
        "days": {"type": "integer", "minimum": 0, "maximum": 14},
        "share": {"type": "number", "minimum": 0.25, "maximum": 1000, "multipleOf": 0.25},
        "metric": {"type": "boolean"},
        "unit": {"type": "string", "enum": ["C", "F", "kelvin"]},
    },
    "required": ["city", "metric"],
    "additionalProperties": False,
}
NESTED: dict[str, Any] = {
    "type": "object",
    "$defs": {
        "place": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 5},
                "near": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
            },
            "required": ["name", "near"],
            "additionalProperties": False,
        }
    },
    "properties": {
        "places": {
            "type": "array",
            "items": {"$ref": "#/$defs/place"},
            "minItems": 1,
            "maxItems": 2,
        },
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 4}, "maxItems": 2},
    },
    "required": ["places"],
    "additionalProperties": False,
}


def function(name: str, parameters: Any, **more: Any) -> dict[str, Any]:
    """A tool as in chat completions."""
    return {
        "type": "function",
        "function": {"name": name, "description": name, "parameters": parameters, **more},
    }


TOOLS = [function("get_weather", SCALARS), function("plan_route", NESTED), function("now", None)]
SCHEMAS: dict[str, Any] = {
    "get_weather": SCALARS,
    "plan_route": NESTED,
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
}
