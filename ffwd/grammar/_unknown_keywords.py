"""Keywords of a schema that are none, and look like one."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ffwd._native import FfwdError

if TYPE_CHECKING:
    from ffwd.grammar._kinds import JsonSchema

# Of all drafts.
_ASSERTIONS = (
    "$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions", "$schema", "$id", "$anchor",
    "type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
    "properties", "required", "additionalProperties", "patternProperties", "propertyNames",
    "minProperties", "maxProperties", "dependencies", "dependentRequired", "dependentSchemas",
    "unevaluatedProperties", "items", "prefixItems", "additionalItems", "unevaluatedItems",
    "contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems",
    "minLength", "maxLength", "pattern", "format",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
)  # fmt: skip
# A word that is closer to one of these was meant to say nothing.
_ANNOTATIONS = (
    "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly",
    "$comment", "contentEncoding", "contentMediaType", "contentSchema", "discriminator", "nullable",
)  # fmt: skip
_BY_LOWER = {word.lower(): word for word in (*_ASSERTIONS, *_ANNOTATIONS)}
_CLOSE = 0.8
_LONGEST = 40
# A schema that somebody writes by hand is no longer, and the warning is for them.
_LONGEST_SCHEMA = 256 * 1024
_MAX_SHOWN = 5

UNKNOWN = "an unknown keyword"


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


def suggestion_for(keyword: str) -> str | None:
    """The keyword that a word was probably meant to be; None where there is none.

    A word near an annotation (`descripton`) has none: it would have asked for nothing, too.
    """
    # One that is known may be unknown to the schema's own draft.
    if len(keyword) > _LONGEST or keyword in _ASSERTIONS:
        return None
    close = get_close_matches(keyword.lower(), _BY_LOWER, n=1, cutoff=_CLOSE)
    word = _BY_LOWER[close[0]] if close else None
    return word if word in _ASSERTIONS else None


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


def warn_of_unknown_keywords(schemas: Iterable["JsonSchema"], *, stacklevel: int = 3) -> None:
    """Warn of the keywords of schemas that look like a slip of the pen.

    A schema with which something else is wrong is left to what compiles it.
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
            stacklevel=stacklevel,
        )
