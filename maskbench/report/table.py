"""One definition of a table for all renderers: columns with units, and the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

Value = str | int | float | None

MISSING = "n/a"


class Unit(str, Enum):
    """The unit of a column's values; `value` is its name in machine-readable forms."""

    TEXT = ""
    COUNT = "count"
    SHARE = "share"
    """Of one: 0.5 is half."""

    MICROSECONDS = "us"
    SECONDS = "s"
    BYTES = "bytes"
    PER_SECOND = "1/s"
    RATIO = "ratio"


@dataclass(frozen=True)
class Column:
    """A heading, and the unit of everything below it."""

    name: str
    unit: Unit = Unit.TEXT

    @property
    def is_number(self) -> bool:
        """Whether its cells are set flush right, and sorted by value."""
        return self.unit is not Unit.TEXT


@dataclass(frozen=True)
class Table:
    """Values in rows, whose first column is the row's name."""

    key: str
    """A name for programs, unique within a report of one run."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    """Lines below the table."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.key}: {len(row)} values for {len(self.columns)} columns")


def columns(unit: Unit, names: Sequence[str]) -> tuple[Column, ...]:
    """Return columns of the same unit."""
    return tuple(Column(name, unit) for name in names)


def show(value: Value, unit: Unit) -> str:
    """Return a value for people, with its unit unless the heading states it."""
    if value is None:
        return MISSING
    if isinstance(value, str):
        return printable(value)
    if unit is Unit.SHARE:
        return f"{value:.2%}"
    if unit is Unit.MICROSECONDS:
        return microseconds(value)
    if unit is Unit.BYTES:
        return _bytes(value)
    if unit is Unit.RATIO:
        return f"{value:.1f}x" if value >= 0.1 else f"{value:.2g}x"
    if unit is Unit.SECONDS:
        return f"{value:,.2f}"
    return f"{value:,.0f}"


def microseconds(us: float) -> str:
    """Return three digits or more, without an exponent."""
    size = abs(us)
    return f"{us:,.0f}" if size >= 1000 else f"{us:.1f}" if size >= 10 else f"{us:.2f}"


def printable(text: str) -> str:
    """Return the text with unprintable characters (controls, lone surrogates) escaped.

    Ids and reasons come from data and engines, and must not steer a terminal.
    """
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def _bytes(count: float) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            digits = 2 if unit == "GiB" else 0
            return f"{count / size:,.{digits}f} {unit}"
    return f"{count:,.0f} B"
