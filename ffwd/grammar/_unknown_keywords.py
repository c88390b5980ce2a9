"""Unknown keywords of a schema that resemble a known one."""

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ffwd._native import FfwdError

if TYPE_CHECKING:
    from ffwd.grammar._kinds import JsonSchema

# Handwritten schemas are shorter, and the warning is for their authors.
_LONGEST_SCHEMA = 256 * 1024
_MAX_SHOWN = 5


class UnknownKeywordWarning(UserWarning):
    """A schema has an unknown keyword that resembles a known one.

    The standard ignores such a keyword, so the grammar accepts texts that it was meant to forbid.
    """


@dataclass(frozen=True)
class UnknownKeyword:
    """An unknown keyword that resembles a known one.

    Attributes:
        pointer: JSON pointer of its value.
        keyword: The keyword in the schema.
        suggestion: The known keyword that it resembles.

    """

    pointer: str
    keyword: str
    suggestion: str


def unknown_keywords(grammar: "JsonSchema") -> list[UnknownKeyword]:
    """Return the unknown keywords of a schema that resemble a known one, with that one.

        >>> ffwd.unknown_keywords(ffwd.json_schema({"type": "string", "maxlength": 3}))
        [UnknownKeyword(pointer='/maxlength', keyword='maxlength', suggestion='maxLength')]

    `fidelity_report` lists all keywords of a schema.

    Raises:
        InvalidSchemaError: A value that is no JSON Schema, with the `pointer` to the position.
        LimitExceededError: A limit was exceeded, with `limit` and `maximum`.
        TypeError: `grammar` is something else.

    """
    from ffwd.grammar._fidelity import fidelity_report

    return [
        UnknownKeyword(one.pointer, one.keyword, one.suggestion)
        for one in fidelity_report(grammar)
        if one.suggestion is not None
    ]


def warn_of_unknown_keywords(schemas: Iterable["JsonSchema"]) -> None:
    """Warn of keywords of schemas that look misspelt.

    The warning points at the line that called ffwd. The compilation reports other errors of a
    schema.
    """
    for schema in schemas:
        if len(schema.schema) > _LONGEST_SCHEMA:
            continue
        try:
            found = unknown_keywords(schema)
        except FfwdError:
            continue
        if not found:
            continue
        listed = ", ".join(
            f"{one.keyword!r} at {one.pointer!r} (did you mean {one.suggestion!r}?)"
            for one in found[:_MAX_SHOWN]
        )
        more = f" and {len(found) - _MAX_SHOWN} more" if len(found) > _MAX_SHOWN else ""
        warnings.warn(
            f"the schema has keywords that JSON Schema does not know, which ask for nothing: "
            f"{listed}{more}",
            UnknownKeywordWarning,
            stacklevel=_callers_level(),
        )


def _callers_level() -> int:
    """Return the `stacklevel`, for the caller, of the first function outside ffwd."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ffwd."):
        frame, level = frame.f_back, level + 1
    return level
