"""ECMA-262 patterns in the dialect of Python's `re`, for a validator that uses it."""

from __future__ import annotations

import re
from typing import Any

_WORD = "A-Za-z0-9_"
_SPACE = r"\t\n\x0b\x0c\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_OUTSIDE = {
    "$": r"\Z",
    ".": r"[^\n\r\u2028\u2029]",
    r"\d": "[0-9]",
    r"\D": "[^0-9]",
    r"\w": f"[{_WORD}]",
    r"\W": f"[^{_WORD}]",
    r"\s": f"[{_SPACE}]",
    r"\S": f"[^{_SPACE}]",
    r"\b": f"(?:(?<![{_WORD}])(?=[{_WORD}])|(?<=[{_WORD}])(?![{_WORD}]))",
    r"\B": f"(?:(?<![{_WORD}])(?![{_WORD}])|(?<=[{_WORD}])(?=[{_WORD}]))",
    r"\/": "/",
}
_INSIDE = {r"\d": "0-9", r"\w": _WORD, r"\s": _SPACE, r"\/": "/"}
_PIECE = re.compile(r"\\.|.", re.DOTALL)
# Keywords whose value maps names or patterns to schemas.
_MAPS = frozenset(
    ("properties", "$defs", "definitions", "dependentSchemas", "dependencies", "patternProperties")
)
_VALUES = frozenset(("const", "enum", "default", "examples"))


def python_pattern(pattern: str) -> str:
    """Return the pattern in a form that Python reads in the same way."""
    written = []
    in_class = False
    for piece in _PIECE.findall(pattern):
        if in_class:
            written.append(_INSIDE.get(piece, r"\[" if piece == "[" else piece))
            in_class = piece != "]"
        else:
            written.append(_OUTSIDE.get(piece, piece))
            in_class = piece == "["
    # A class of nothing and one of everything.
    text = "".join(written).replace("[^]", r"[\s\S]").replace("(?<", "(?P<")
    return text.replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")


def for_python(schema: Any) -> Any:
    """Return the schema with its patterns in Python's dialect."""
    if not isinstance(schema, dict):
        return [for_python(item) for item in schema] if isinstance(schema, list) else schema
    return {key: _member(key, value) for key, value in schema.items()}


def _member(key: str, value: Any) -> Any:
    if key in _VALUES:
        return value
    if key == "pattern" and isinstance(value, str):
        return python_pattern(value)
    if key in _MAPS and isinstance(value, dict):
        return {
            python_pattern(name) if key == "patternProperties" else name: for_python(member)
            for name, member in value.items()
        }
    return for_python(value)
