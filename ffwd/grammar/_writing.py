"""How the JSON of a grammar is written."""

from typing import Any

from ffwd.grammar._errors import grammar_error
from ffwd.grammar._kinds import JsonSchema

# All JSON of one grammar has the same ones.
SHARED = (
    "whitespace", "max_whitespace", "layout_separators", "layout_indent", "property_order",
    "numbers", "policy"
)  # fmt: skip


class Writing:
    """What the JSON Schemas of one grammar have in common."""

    def __init__(self) -> None:
        self._first: JsonSchema | None = None
        self._documents: dict[str, str] = {}

    def take(self, schema: JsonSchema) -> None:
        """Add a schema.

        Raises:
            GrammarError: It is to be written in another way than those before, or has another
                document for a URI.

        """
        first = self._first = self._first or schema
        for name in SHARED:
            one, other = getattr(first, name), getattr(schema, name)
            if one != other:
                option = name.removeprefix("layout_")
                raise grammar_error(
                    f"the JSON Schemas of one grammar must have the same {option}, "
                    f"which is {one!r} in one and {other!r} in another"
                )
        for uri, document in schema.registry:
            if self._documents.setdefault(uri, document) != document:
                raise grammar_error(
                    f"the JSON Schemas of one grammar have different documents for {uri!r}"
                )

    def options(self) -> dict[str, Any]:
        """What the native core is told."""
        schema = self._first or JsonSchema("true")
        return {
            "whitespace": schema.whitespace,
            "max_whitespace": schema.max_whitespace,
            "separators": schema.layout_separators,
            "indent": schema.layout_indent,
            "any_order": schema.property_order == "any",
            "any_numbers": schema.numbers == "any",
            "registry": tuple(self._documents.items()),
            "lenient": schema.policy == "lenient",
        }
