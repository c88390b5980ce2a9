"""Names of control tokens within texts."""

import re
from collections.abc import Collection
from typing import TypeAlias

Piece: TypeAlias = tuple[str, bool]
"""A text, and whether it is the name of a control token."""


class Controls:
    """Finds the names of control tokens in texts, the longest first, as tokenizers do."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._pattern: re.Pattern[str] | None = None

    def split(self, text: str) -> list[Piece]:
        """The text in pieces, none of them empty."""
        if not self._names:
            return [(text, False)] if text else []
        if self._pattern is None:
            longest_first = sorted(filter(None, self._names), key=len, reverse=True)
            self._pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")
        pieces = self._pattern.split(text)
        return [(piece, index % 2 == 1) for index, piece in enumerate(pieces) if piece]
