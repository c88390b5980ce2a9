"""Keywords of a schema that are none, and look like one."""

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ffwd._native import FfwdError

if TYPE_CHECKING:
    from ffwd.grammar._kinds import JsonSchema

# A schema that somebody writes by hand is no longer, and the warning is for them.
_LONGEST_SCHEMA = 256 * 1024
_MAX_SHOWN = 5


class UnknownKeywordWarning(UserWarning):
    """A schema has a keyword that JSON Schema does not know, and that looks like one it does.

    Such a keyword asks for nothing, as the standard has it, so texts come that it was to forbid.
    """


@dataclass(frozen=True)
class UnknownKeyword:
    """A keyword that is none.

    Attributes:
        pointer: JSON pointer of its value.
        keyword: As it is written.
        suggestion: The keyword that was meant, probably.

    """

    pointer: str
    keyword: str
    suggestion: str


def unknown_keywords(grammar: "JsonSchema") -> list[UnknownKeyword]:
    """The keywords of a schema that are none and look like one, with what was probably meant.

        >>> ffwd.unknown_keywords(ffwd.json_schema({"type": "string", "maxlength": 3}))
        [UnknownKeyword(pointer='/maxlength', keyword='maxlength', suggestion='maxLength')]

    `fidelity_report` lists all that a schema has in it.

    Raises:
        InvalidSchemaError: The schema is not one, with the `pointer` to the place.
        LimitExceededError: A budget ran out, with `limit` and `maximum`.
        TypeError: `grammar` is something else.

    """
    from ffwd.grammar._fidelity import fidelity_report

    return [
        UnknownKeyword(one.pointer, one.keyword, one.suggestion)
        for one in fidelity_report(grammar)
        if one.suggestion is not None
    ]


def warn_of_unknown_keywords(schemas: Iterable["JsonSchema"]) -> None:
    """Warn of the keywords of schemas that look like a slip of the pen.

    The warning is told at the line that called something of ffwd. A schema with which something
    else is wrong is left to what compiles it.
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
    """The `stacklevel`, for whoever calls this, of the first function that is not ffwd's."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ffwd."):
        frame, level = frame.f_back, level + 1
    return level
