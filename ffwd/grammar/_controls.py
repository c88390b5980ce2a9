"""Names of control tokens in texts."""

import re
from collections.abc import Collection, Set
from typing import TypeAlias

Piece: TypeAlias = tuple[str, bool]
"""A text, and whether it is the name of a control token."""


class Controls:
    """Finds the names of control tokens in texts, the longest first, as tokenizers do.

    A grammar never writes a token that ends the output: end tokens are allowed when the output is
    complete. The names of these, `ends`, are therefore ignored.
    """

    def __init__(self, names: Collection[str], ends: Set[str] = frozenset()) -> None:
        self._names = names
        self._ends = ends
        self._pattern: re.Pattern[str] | None = None

    def has(self, text: str) -> bool:
        """Return whether a text contains such a name."""
        return any(index % 2 and piece for index, piece in enumerate(self._cut(text)))

    def split(self, text: str) -> list[Piece]:
        """Return the parts of a text, none of them empty."""
        return [
            (piece, index % 2 == 1)
            for index, piece in enumerate(self._cut(text))
            if piece and not (index % 2 and piece in self._ends)
        ]

    def _cut(self, text: str) -> list[str]:
        """Yield texts and names in turn."""
        if not self._names:
            return [text]
        if self._pattern is None:
            longest_first = sorted(filter(None, self._names), key=len, reverse=True)
            self._pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")
        return self._pattern.split(text)
