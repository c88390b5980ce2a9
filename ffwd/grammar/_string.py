"""Texts as they are, with what JSON Schema says of strings."""

from dataclasses import dataclass

from ffwd.grammar._grammar import Grammar


@dataclass(frozen=True, eq=False, repr=False)
class StringText(Grammar):
    """The text of a string, without quotes and escapes, as tool calls in XML have it.

    Attributes:
        excluding: What does not come in it.
        other_than: What it is not.
        patterns: What it has in it: regular expressions of ECMAScript.
        formats: JSON Schema's formats that it has.
        min_chars: How many characters (code points) it has at least.
        max_chars: And at most.

    """

    excluding: tuple[str, ...] = ()
    other_than: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    min_chars: int = 0
    max_chars: int | None = None
