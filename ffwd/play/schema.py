"""The JSON of the page: the state, as JSON Schema, and the check of a value against it."""

from __future__ import annotations

from typing import Any, get_args

from ffwd.grammar._regex import Dialect
from ffwd.grammar._writing import Escapes, Numbers, Policy, PropertyOrder, Whitespace
from ffwd.play.errors import PlayError
from ffwd.sources import LANGUAGES

MAX_TEXT = 1 << 18
"""The most characters of the text beside a grammar."""
MAX_GRAMMAR = 1 << 22
"""The most characters of a grammar."""
GIVEN = "python"
"""The notation of a grammar that was made in Python, which the page cannot edit."""


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _text(most: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": most}


def _integer(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 0, "maximum": most}


OPTIONS = _object(
    {
        "whitespace": {"enum": list(get_args(Whitespace))},
        "max_whitespace": _integer(4096),
        "separators": {"type": ["array", "null"], "items": _text(64), "maxItems": 2},
        "indent": {"type": ["integer", "string", "null"]},
        "property_order": {"enum": list(get_args(PropertyOrder))},
        "numbers": {"enum": list(get_args(Numbers))},
        "escapes": {"enum": list(get_args(Escapes))},
        "policy": {"enum": list(get_args(Policy))},
    },
    [],
)
GRAMMAR = _object(
    {
        "language": {"enum": [*LANGUAGES, GIVEN]},
        "text": _text(MAX_GRAMMAR),
        "options": OPTIONS,
        "root": _text(200),
        "dialect": {"enum": list(get_args(Dialect))},
        "flags": _text(10),
        "registry": {
            "type": "array",
            "items": {"type": "array", "items": _text(MAX_GRAMMAR), "minItems": 2, "maxItems": 2},
        },
    },
    ["language", "text"],
)
STATE = _object(
    {
        "grammar": GRAMMAR,
        "tokenizer": _text(4096),
        "text": _text(MAX_TEXT),
        "cursor": _integer(2 * MAX_TEXT),
        "tokens": {
            "type": ["object", "null"],
            "properties": {
                "ids": {"type": "array", "items": _integer(1 << 31), "maxItems": MAX_TEXT},
                "healed": {"type": "array", "items": _integer(MAX_TEXT), "maxItems": MAX_TEXT},
            },
            "required": ["ids", "healed"],
            "additionalProperties": False,
        },
        "prompt": _text(MAX_TEXT),
        "max_tokens": {"type": "integer", "minimum": 1, "maximum": 4096},
        "temperature": {"type": "number", "minimum": 0, "maximum": 10},
        "seed": _integer(1 << 31),
    },
    ["grammar", "tokenizer", "text"],
)
"""The state of a page: a grammar, a tokenizer, a text with a cursor in UTF-16 units, and what is
asked of a model. `tokens` has the ids of the text if a model wrote it, and the indices of healed
ones."""

_NAMES = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
    "boolean": (bool,),
}


def check(value: Any, schema: dict[str, Any], pointer: str = "") -> None:
    """Check a JSON value against one of the schemas here, which use few keywords.

    Raises:
        PlayError: The first fault, with the JSON pointer to it.

    """
    if "enum" in schema and (not isinstance(value, str) or value not in schema["enum"]):
        allowed = ", ".join(f"`{one}`" for one in schema["enum"])
        raise PlayError(f"{_at(pointer)} must be one of {allowed}, not {_shown(value)}", pointer)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, name) for name in types):
        expected = " or ".join(types)
        raise PlayError(f"{_at(pointer)} must be {expected}, not {_shown(value)}", pointer)
    if isinstance(value, dict):
        _check_members(value, schema, pointer)
    elif isinstance(value, list):
        _check_size(len(value), schema, "minItems", "maxItems", "items", pointer)
        for index, item in enumerate(value):
            check(item, schema.get("items", {}), f"{pointer}/{index}")
    elif isinstance(value, str):
        _check_size(len(value), schema, "minLength", "maxLength", "characters", pointer)
    elif isinstance(value, (int, float)):
        _check_size(value, schema, "minimum", "maximum", "", pointer)


def _check_members(value: dict[str, Any], schema: dict[str, Any], pointer: str) -> None:
    known = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            raise PlayError(f"{_at(pointer)} lacks `{name}`", pointer)
    for name, item in value.items():
        if name not in known:
            names = ", ".join(f"`{one}`" for one in known)
            raise PlayError(
                f"{_at(pointer)} has the unknown name {_shown(name)}: known are {names}", pointer
            )
        check(item, known[name], f"{pointer}/{name}")


def _check_size(
    size: float, schema: dict[str, Any], least: str, most: str, unit: str, pointer: str
) -> None:
    # Written so that NaN, which Python reads, is within no bounds.
    if most in schema and not size <= schema[most]:
        unit = f" {unit}" if unit else ""
        raise PlayError(
            f"{_at(pointer)} must be at most {schema[most]:,}{unit}, not {size:,}", pointer
        )
    if least in schema and not size >= schema[least]:
        unit = f" {unit}" if unit else ""
        raise PlayError(
            f"{_at(pointer)} must be at least {schema[least]:,}{unit}, not {size:,}", pointer
        )


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _NAMES[name])


def _at(pointer: str) -> str:
    return f"`{pointer}`" if pointer else "the value"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, str):
        return f"`{value[:80]}`" + ("…" if len(value) > 80 else "")
    return str(value)[:80]
