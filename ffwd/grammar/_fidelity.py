"""What becomes of each keyword of a schema."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from ffwd import _native
from ffwd.grammar._keywords import meant_by
from ffwd.grammar._kinds import JsonSchema

Fidelity: TypeAlias = Literal["enforced", "ignored", "widened", "refused"]
"""What becomes of a keyword; see `fidelity_report`."""

# The native core's reason for what no dialect has.
_UNKNOWN = "an unknown keyword"


@dataclass(frozen=True)
class KeywordFidelity:
    """What becomes of one keyword at one place of a schema.

    Attributes:
        pointer: JSON pointer of the keyword's value; behind a URI and `#` for a place in another
            document than the schema itself.
        keyword: Its name.
        fidelity: `"enforced"`: it holds, exactly. `"ignored"`: it asks for nothing. `"widened"`:
            it is not supported and was left out. `"refused"`: it is not supported, so the schema
            cannot be compiled.
        reason: Why it is not enforced; empty if it is.
        suggestion: The keyword that an unknown one is spelled much like; None for all others.

    """

    pointer: str
    keyword: str
    fidelity: Fidelity
    reason: str
    suggestion: str | None = None


def fidelity_report(grammar: JsonSchema) -> list[KeywordFidelity]:
    """What becomes of each keyword of a schema when it is compiled.

    A keyword is ignored if it is an annotation, is not known to the schema's dialect, has no effect
    where it stands, or stands in a schema that nothing leads to. Without `policy="lenient"` nothing
    is widened, and a schema in which nothing is refused means exactly what its keywords say.

    Args:
        grammar: From `json_schema`. It need not be one that compiles: what is not supported is
            listed as refused.

    Returns:
        All keywords in the order in which they stand, outer ones first; then those in places that
        only references lead to.

    Raises:
        InvalidSchemaError: The schema is not one, with the `pointer` to the place.
        LimitExceededError: A budget ran out, with `limit` and `maximum`.
        TypeError: `grammar` is something else.

    """
    if not isinstance(grammar, JsonSchema):
        raise TypeError(f"grammar must come from json_schema, not be {type(grammar).__name__}")
    report = _native.json_schema_fidelity(
        grammar.schema, registry=grammar.registry, lenient=grammar.policy == "lenient"
    )
    return [
        KeywordFidelity(
            pointer,
            keyword,
            cast(Fidelity, fidelity),
            reason,
            meant_by(keyword) if reason == _UNKNOWN else None,
        )
        for pointer, keyword, fidelity, reason in report
    ]
