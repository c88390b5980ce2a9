"""What belongs to one rendering, and not to the environment that many share."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ffwd.chat.errors import TemplateLimitError
from ffwd.chat.limits import DEFAULT_LIMITS, TemplateLimits


@dataclass
class Run:
    """One rendering: its budget, its clock, and what `{% generation %}` marked."""

    limits: TemplateLimits = DEFAULT_LIMITS
    now: datetime | None = None
    work: int = 0
    blocks: list[str] = field(default_factory=list)
    generation_spans: list[tuple[int, int]] = field(default_factory=list)

    def spend(self, units: int = 1) -> None:
        """Count work; raises `TemplateLimitError` past the limit."""
        self.work += units
        if self.work > self.limits.work:
            raise TemplateLimitError(
                f"the template does more than {self.limits.work} units of work (rounds of loops, "
                "calls, items, characters): TemplateLimits(work=...) allows more"
            )

    def check_length(self, length: int) -> None:
        """Refuse a string before it is made."""
        if length > self.limits.characters:
            raise TemplateLimitError(
                f"the template makes a string of {length} characters, more than "
                f"{self.limits.characters}: TemplateLimits(characters=...) allows more"
            )

    def made(self, value: Any) -> Any:
        """Count what was made, and give it back."""
        if isinstance(value, str):
            self.check_length(len(value))
            self.spend(1 + (len(value) >> 6))
        elif isinstance(value, (list, tuple, dict, range)):
            self.spend(1 + len(value))
        return value


# Compilation evaluates what is constant, under limits of its own.
_CURRENT: ContextVar[Run | None] = ContextVar("ffwd.chat rendering", default=None)


def current() -> Run:
    """The rendering of this thread or task; a new one outside of any."""
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
