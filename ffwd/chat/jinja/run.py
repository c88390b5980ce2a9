"""The state of one rendering, outside the shared environment."""

import sys
import time
from collections.abc import ItemsView, KeysView, ValuesView
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from ffwd.chat.errors import TemplateLimitError
from ffwd.chat.limits import DEFAULT_LIMITS, TemplateLimits

_MOST_BITS = 1 << 16
# The sizes of containers up to this one are not cached.
_SMALL = 64


class Size(NamedTuple):
    """The size of a value's output; shared parts count each time."""

    items: int
    characters: int
    depth: int


@dataclass
class Run:
    """One rendering: its budget, its clock, and what `{% generation %}` marked."""

    limits: TemplateLimits = DEFAULT_LIMITS
    now: datetime | None = None
    work: int = 0
    blocks: list[str] = field(default_factory=list)
    generation_spans: list[tuple[int, int]] = field(default_factory=list)
    deadline: float = field(init=False)
    # By identity; the reference keeps the container alive, so that no other one gets its identity.
    _sizes: dict[int, tuple[Any, Size]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.limits.seconds

    def spend(self, units: int = 1) -> None:
        """Count work, and look at the clock; raises `TemplateLimitError` past a limit."""
        self.work += units
        if self.work > self.limits.work:
            raise TemplateLimitError(
                f"the template does more than {self.limits.work} units of work (rounds of loops, "
                "calls, items, characters): TemplateLimits(work=...) allows more"
            )
        if time.monotonic() > self.deadline:
            raise TemplateLimitError(
                f"the template takes longer than {self.limits.seconds} seconds: "
                "TemplateLimits(seconds=...) allows more"
            )

    def check_length(self, length: int) -> None:
        """Refuse a string before it is made."""
        if length > self.limits.characters:
            raise TemplateLimitError(
                f"the template makes a string of {length} characters, more than "
                f"{self.limits.characters}: TemplateLimits(characters=...) allows more"
            )

    def made(self, value: Any) -> Any:
        """Count a value, and return it."""
        if isinstance(value, str):
            self.check_length(len(value))
            self.spend(1 + (sys.getsizeof(value) >> 6))
        elif isinstance(value, int):
            check_integer(value)
        elif isinstance(value, (list, tuple, dict)):
            self.spend(1 + len(value))
            size = self.size(value)
            if size.items + size.characters > self.limits.characters:
                raise TemplateLimitError(
                    f"the template makes a {type(value).__name__} of {size.items} items and "
                    f"{size.characters} characters in all, more than {self.limits.characters}: "
                    "TemplateLimits(characters=...) allows more"
                )
        elif isinstance(value, range):
            self.spend(1 + len(value))
        return value

    def size(self, value: Any) -> Size:
        """Return the size of a value.

        A list may occur in another one many times, and that one in a third: after a few such steps
        the text exceeds any memory. So containers are measured when they are made, from the sizes
        of their items.
        """
        if isinstance(value, (str, bytes)):
            return Size(1, len(value), 0)
        if isinstance(value, dict):
            parts: Any = [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple)):
            parts = value
        elif isinstance(value, (KeysView, ItemsView, ValuesView)):
            # They are made at each call, so their identity does not last.
            return self._sum([*value])
        else:
            return Size(1, 0, 0)
        known = self._sizes.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        size = self._sum(parts)
        if size.items > _SMALL:
            self._sizes[id(value)] = (value, size)
            self.spend()
        return size

    def _sum(self, parts: Any) -> Size:
        items, characters, depth = 1, 0, 0
        for index, part in enumerate(parts):
            if index & 4095 == 4095:
                self.spend()
            size = self.size(part)
            items += size.items
            characters += size.characters
            depth = max(depth, size.depth)
        return Size(items, characters, depth + 1)


def check_integer(value: int) -> None:
    """Refuse numbers with which one operation takes long."""
    if value.bit_length() > _MOST_BITS:
        raise TemplateLimitError(f"the template computes a number of more than {_MOST_BITS} bits")


# Compilation evaluates constants, under separate limits.
_CURRENT: ContextVar[Run | None] = ContextVar("ffwd.chat rendering", default=None)


def current() -> Run:
    """Return the rendering of this thread or task, or a fresh one outside of any."""
    return _CURRENT.get() or Run()


class running:  # noqa: N801
    """`with running(Run(...)):` makes it `current`."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __enter__(self) -> Run:
        self._token = _CURRENT.set(self._run)
        return self._run

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)
