"""Random values that look like data."""

from __future__ import annotations

import builtins
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_FIRST = ("Ada", "Béla", "Chidi", "Dorothea", "Emre", "Fatima", "Grete", "Hye-jin", "Ines", "José")
_LAST = ("Okafor", "Lindqvist", "Nakamura", "O'Brien", "Šimić", "Müller", "Haddad", "Quispe", "Roy")
_CITIES = ("Zürich", "Lagos", "São Paulo", "Osaka", "Turku", "Reykjavík", "Halifax", "東京", "Pune")
_STREETS = ("Harbour Road", "Lindenallee", "Rue du Moulin", "Elm Street", "Via Roma", "Calle Sol")
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
_DOMAINS = ("example.com", "example.org", "mail.example.net", "shop.example.co.uk")


class Draw:
    """Draws from one seeded source."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def int(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return self._source.randint(low, high)

    def num(self, low: float, high: float, digits: builtins.int = 2) -> float:
        """A decimal with at most `digits` digits after the point."""
        return round(self._source.uniform(low, high), digits)

    def bool(self) -> bool:
        """True or false."""
        return self._source.random() < 0.5

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return self._source.choice(options)

    def some(self, options: Sequence[T], low: builtins.int, high: builtins.int) -> list[T]:
        """`low` to `high` different options, in their order."""
        count = self._source.randint(low, min(high, len(options)))
        chosen = set(self._source.sample(range(len(options)), count))
        return [option for index, option in enumerate(options) if index in chosen]

    def list(self, low: builtins.int, high: builtins.int, item: Callable[[], T]) -> list[T]:
        """`low` to `high` drawn items."""
        return [item() for _ in range(self._source.randint(low, high))]

    def chars(self, alphabet: str, low: builtins.int, high: builtins.int | None = None) -> str:
        """A string over the alphabet, of `low` characters or of `low` to `high`."""
        count = self._source.randint(low, low if high is None else high)
        return "".join(self._source.choice(alphabet) for _ in range(count))

    def digits(self, count: builtins.int) -> str:
        """Decimal digits."""
        return self.chars("0123456789", count)

    def hex(self, count: builtins.int) -> str:
        """Lower-case hexadecimal digits."""
        return self.chars("0123456789abcdef", count)

    def word(self) -> str:
        """A noun in lower case."""
        return self.pick(_NOUNS)

    def slug(self) -> str:
        """Two words with a hyphen."""
        return f"{self.pick(_ADJECTIVES)}-{self.word()}"

    def ident(self) -> str:
        """Two words with an underscore."""
        return f"{self.pick(_ADJECTIVES)}_{self.word()}"

    def title(self) -> str:
        """A few words, the first with a capital."""
        return f"{self.pick(_ADJECTIVES).capitalize()} {self.word()}"

    def sentence(self) -> str:
        """A sentence, at times with a character that JSON escapes or that is not ASCII."""
        verb, tail = self.pick(_VERBS), self.pick(_TAILS)
        return f"The {self.pick(_ADJECTIVES)} {self.word()} {verb}.{tail}"

    def name(self) -> str:
        """A person's name."""
        return f"{self.pick(_FIRST)} {self.pick(_LAST)}"

    def city(self) -> str:
        """A city."""
        return self.pick(_CITIES)

    def street(self) -> str:
        """A street with a number."""
        return f"{self.int(1, 199)} {self.pick(_STREETS)}"

    def email(self) -> str:
        """An address below an example domain."""
        return f"{self.pick(_ADJECTIVES)}.{self.word()}{self.int(1, 99)}@{self.host()}"

    def host(self) -> str:
        """A host name below an example domain."""
        return self.pick(_DOMAINS)

    def uri(self) -> str:
        """An https address."""
        return f"https://{self.host()}/{self.slug()}/{self.int(1, 9999)}"

    def uuid(self) -> str:
        """A version 4 UUID."""
        variant = self.pick("89ab")
        return f"{self.hex(8)}-{self.hex(4)}-4{self.hex(3)}-{variant}{self.hex(3)}-{self.hex(12)}"

    def date(self) -> str:
        """A day between 1990 and 2035."""
        return f"{self.int(1990, 2035)}-{self.int(1, 12):02}-{self.int(1, 28):02}"

    def time(self) -> str:
        """A time with an offset."""
        zone = self.pick(("Z", "+02:00", "-05:30"))
        return f"{self.int(0, 23):02}:{self.int(0, 59):02}:{self.int(0, 59):02}{zone}"

    def instant(self) -> str:
        """A date and time."""
        return f"{self.date()}T{self.time()}"

    def ipv4(self) -> str:
        """An IPv4 address."""
        return ".".join(str(self.int(0, 255)) for _ in range(4))

    def ipv6(self) -> str:
        """An IPv6 address."""
        return f"2001:db8:{self.hex(4)}::{self.hex(3)}"

    def version(self) -> str:
        """Three numbers with dots."""
        return f"{self.int(0, 12)}.{self.int(0, 40)}.{self.int(0, 9)}"
