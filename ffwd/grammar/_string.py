"""Verbatim texts with JSON Schema's constraints on strings."""

from dataclasses import dataclass

from ffwd.grammar._grammar import Grammar


@dataclass(frozen=True, eq=False, repr=False)
class StringText(Grammar):
    """The text of a string without quotes and escapes, as in XML tool calls.

    Attributes:
        excluding: The texts that it does not contain.
        other_than: The texts that it does not equal.
        patterns: ECMAScript regular expressions that match within it.
        formats: JSON Schema's formats that it satisfies.
        min_chars: The least number of characters (code points).
        max_chars: The largest number.

    """

    excluding: tuple[str, ...] = ()
    other_than: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    min_chars: int = 0
    max_chars: int | None = None
