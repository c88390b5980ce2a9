"""Random values that look like data."""

from __future__ import annotations

import builtins
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_FIRST = ("Ada", "Béla", "Chidi", "Dorothea", "Emre", "Fatima", "Grete", "Hye-jin", "Ines", "José")
_LAST = ("Okafor", "Lindqvist", "Nakamura", "O'Brien", "Šimić", "Müller", "Haddad", "Quispe", "Roy")
_NOUNS = (
    "order", "invoice", "sensor", "account", "record", "window", "garden", "engine", "river",
    "ticket", "parcel", "signal", "bridge", "market", "folder", "paper", "lamp", "report",
)  # fmt: skip
_ADJECTIVES = (
    "quiet", "late", "blue", "broken", "annual", "hidden", "northern", "fragile", "bright",
    "sealed", "double", "open", "weekly", "remote",
)  # fmt: skip
_VERBS = ("arrived", "was returned", "needs a check", "is due", "went missing", "looks fine")
_TAILS = ("", "", " — see note", " (again)", ', "as agreed"', " 🙂", "\nSecond line.", " C:\\tmp")


class Draw:
    """Draws from one seeded source."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def int(self, low: builtins.int, high: builtins.int) -> builtins.int:
        """Return an integer, both ends included."""
        return self._source.randint(low, high)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return self._source.choice(options)

    def word(self) -> str:
        """Return a noun in lower case."""
        return self.pick(_NOUNS)

    def sentence(self) -> str:
        """Return a sentence, sometimes with a character that JSON escapes or that is not ASCII."""
        verb, tail = self.pick(_VERBS), self.pick(_TAILS)
        return f"The {self.pick(_ADJECTIVES)} {self.word()} {verb}.{tail}"

    def name(self) -> str:
        """Return a person's name."""
        return f"{self.pick(_FIRST)} {self.pick(_LAST)}"
