"""Reports on the support of each keyword of a schema."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from ffwd import _native
from ffwd.grammar._keywords import meant_by
from ffwd.grammar._kinds import JsonSchema

Fidelity: TypeAlias = Literal["enforced", "ignored", "widened", "refused"]
"""What becomes of a keyword; see `fidelity_report`."""

# The native core's reason for a keyword that no dialect has.
_UNKNOWN = "an unknown keyword"


@dataclass(frozen=True)
class KeywordFidelity:
    """The support of one keyword at one position of a schema.

    Attributes:
        pointer: JSON pointer of the keyword's value; after a URI and `#` for a position in another
            document than the schema itself.
        keyword: Its name.
        fidelity: `"enforced"`: exactly. `"ignored"`: it has no effect. `"widened"`: it is
            unsupported and was dropped. `"refused"`: it is unsupported, so the schema cannot be
            compiled.
        reason: Why it is not enforced; empty if it is.
        suggestion: The known keyword that an unknown one resembles; otherwise None.

    """

    pointer: str
    keyword: str
    fidelity: Fidelity
    reason: str
    suggestion: str | None = None


def fidelity_report(grammar: JsonSchema) -> list[KeywordFidelity]:
    """Return the support of each keyword of a schema.

    A keyword is ignored if it is an annotation, unknown to the schema's dialect, without effect at
    its position, or in an unreferenced schema. Without `policy="lenient"` nothing is widened, and a
    schema without refused keywords is enforced exactly.

    Args:
        grammar: From `json_schema`. It need not compile: unsupported keywords are listed as
            refused.

    Returns:
        All keywords in the order of the schema, outer ones first; then those of positions that only
        references reach.

    Raises:
        InvalidSchemaError: A value that is no JSON Schema, with the `pointer` to the position.
        LimitExceededError: A limit was exceeded, with `limit` and `maximum`.
        TypeError: `grammar` is something else.

    """
    if not isinstance(grammar, JsonSchema):
        raise TypeError(f"grammar must come from json_schema, not be {type(grammar).__name__}")
    report = _native.json_schema_fidelity(
        grammar.schema, writing=grammar, registry=grammar.registry
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
