"""The common options of the JSON Schemas of one grammar."""

from typing import Any

from ffwd.grammar._errors import grammar_error
from ffwd.grammar._kinds import JsonSchema
from ffwd.grammar._writing import LAYOUT, WRITING, Writing


class SharedWriting:
    """The options and documents that all JSON Schemas of one grammar share."""

    def __init__(self) -> None:
        self._first: JsonSchema | None = None
        self._documents: dict[str, str] = {}

    def take(self, schema: JsonSchema) -> None:
        """Add a schema.

        Raises:
            GrammarError: Its order of properties, its policy, or its document for a URI differs
                from that of an earlier schema.

        """
        first = self._first = self._first or schema
        for name in (name for name in WRITING if name not in LAYOUT):
            one, other = getattr(first, name), getattr(schema, name)
            if one != other:
                raise grammar_error(
                    f"the JSON Schemas of one grammar must have the same {name}, "
                    f"which is {one!r} in one and {other!r} in another"
                )
        for uri, document in schema.registry:
            if self._documents.setdefault(uri, document) != document:
                raise grammar_error(
                    f"the JSON Schemas of one grammar have different documents for {uri!r}"
                )

    def native(self) -> dict[str, Any]:
        """Return the arguments for the native core.

        The whitespace is that of schemas in Lark grammars, which have none of their own: that of
        the first schema beside them, or any that JSON allows.
        """
        writing = self._first or Writing(whitespace="flexible")
        return {"writing": writing, "registry": tuple(self._documents.items())}
