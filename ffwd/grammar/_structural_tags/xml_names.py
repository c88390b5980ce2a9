"""Names of arguments: the constraints of `propertyNames` and `patternProperties`."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from ffwd.grammar._choice import choice
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._languages import intersection
from ffwd.grammar._sequence import lit
from ffwd.grammar._string import StringText
from ffwd.grammar._structural_tags.document import ANNOTATIONS, Document
from ffwd.grammar._structural_tags.xml_strings import CONSTRAINTS, string_text


@dataclass(frozen=True)
class Names:
    """The constraints on names.

    Attributes:
        text: What is said of them as texts.
        listed: The only ones, if they are listed.

    """

    text: StringText = field(default_factory=StringText)
    listed: tuple[str, ...] | None = None

    @property
    def is_free(self) -> bool:
        """Whether nothing is said of texts."""
        return self.text == StringText()

    @property
    def is_nothing(self) -> bool:
        """Whether there is no name."""
        return self.listed == ()

    def allows(self, name: str) -> bool:
        """Return whether a list of names, if any, has this one, ignoring constraints."""
        return self.listed is None or name in self.listed

    def among(self, names: list[str]) -> Grammar:
        """Return the allowed ones of some names."""
        texts = choice([lit(name) for name in names])
        return texts if self.is_free else intersection(texts, self.text)

    def but(
        self, declared: tuple[str, ...], excluding: tuple[str, ...], patterns: tuple[str, ...]
    ) -> Grammar:
        """Return the allowed names that are undeclared and match these patterns as well."""
        text = replace(
            self.text,
            other_than=declared,
            excluding=excluding,
            patterns=(*patterns, *self.text.patterns),
        )
        if not self.listed:
            return text
        return intersection(choice([lit(name) for name in self.listed]), text)


ANY_NAME = Names()


def read_names(document: Document, place: str, schema: dict[str, Any]) -> Names:
    """Return the constraints of an object's `propertyNames`.

    Raises:
        StructuralTagError: They are unsupported.

    """
    value = schema.get("propertyNames", True)
    if value is True:
        return ANY_NAME
    if value is False:
        return Names(listed=())
    inner = document.resolve(f"{place}/propertyNames")
    said = document.at(inner)
    if isinstance(said, bool):
        return ANY_NAME if said else Names(listed=())
    known = {*CONSTRAINTS, "enum", "const", "type", *ANNOTATIONS}
    unknown = sorted(said.keys() - known)
    if unknown:
        raise document.error(
            f"{inner}/{unknown[0]}", f"{unknown[0]!r} of names is not supported in XML"
        )
    if "string" not in document.kinds(inner):
        return Names(listed=())
    listed = None
    if "enum" in said or "const" in said:
        values = said.get("enum", [said.get("const")])
        also = [said["const"]] if "const" in said else values
        listed = tuple(one for one in values if isinstance(one, str) and one in also)
    return Names(string_text(document, inner, said), listed)


def patterns_of(document: Document, place: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the `patternProperties` of an object."""
    patterns = schema.get("patternProperties", {})
    if not isinstance(patterns, dict):
        raise document.error(f"{place}/patternProperties", "this must be an object")
    return patterns


def avoiding(pattern: str) -> str:
    """Return a pattern of the texts in which another one matches nothing."""
    return rf"^(?![\s\S]*(?:{pattern}))"


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern matches in a name, as far as Python's dialect tells."""
    try:
        return re.search(pattern, name) is not None
    except re.error:
        # A pattern that only ECMAScript supports could match.
        return True
