"""Repetitions of a grammar."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ffwd.grammar._errors import grammar_error
from ffwd.grammar._grammar import Grammar, GrammarLike, as_grammar
from ffwd.grammar._sequence import shown

# The largest count of the native core.
MAX_COUNT = 2**32 - 1


@dataclass(frozen=True, eq=False, repr=False)
class Repeat(Grammar):
    """A repeated grammar, made by `repeat` and `optional`.

    Attributes:
        item: The repeated grammar.
        min: The least number of repetitions.
        max: The largest number; None for any.
        separator: The text between two of them, if any.
    """

    item: Grammar
    min: int = 0
    max: int | None = None
    separator: Grammar | None = None

    _function = "repeat"

    def __post_init__(self) -> None:
        for name, value in (("item", self.item), ("separator", self.separator)):
            if not isinstance(value, Grammar) and (name == "item" or value is not None):
                raise TypeError(f"{name} must be a grammar, not {type(value).__name__}")
        check_count(self.min, "min")
        if self.max is not None:
            check_count(self.max, "max")
            if self.max < self.min:
                raise grammar_error(
                    f"max must be at least min, which is {self.min}, and is {self.max}"
                )
        super().__post_init__()

    def _parts(self) -> tuple[Grammar, ...]:
        return (self.item,) if self.separator is None else (self.item, self.separator)

    def _label(self) -> tuple[int, int | None]:
        return (self.min, self.max)

    def _arguments(self) -> Iterable[tuple[str, object]]:
        yield "", shown(self.item)
        if self.min:
            yield "min", self.min
        if self.max is not None:
            yield "max", self.max
        if self.separator is not None:
            yield "separator", shown(self.separator)


def repeat(
    item: GrammarLike,
    min: int = 0,
    max: int | None = None,
    *,
    separator: GrammarLike | None = None,
) -> Repeat:
    """Return a grammar for several repetitions of one.

    Args:
        item: The repeated grammar.
        min: The least number of repetitions.
        max: The largest number; None for any.
        separator: The text between two of them: `repeat(item, separator=", ")`.

    Raises:
        GrammarError: `max` is less than `min`, or a count is negative or has more than 32 bits.
        TypeError: `item` or `separator` is neither a grammar nor a str, or a count is not an int.

    """
    between = None if separator is None else as_grammar(separator, "separator")
    return Repeat(as_grammar(item, "item"), min, max, between)


def optional(item: GrammarLike) -> Repeat:
    """Return a grammar for one or for the empty text.

    Raises:
        TypeError: `item` is neither a grammar nor a str.

    """
    return Repeat(as_grammar(item, "item"), 0, 1)


def check_count(value: object, name: str) -> None:
    """Raise an error unless the value is a number from 0 to 2³² - 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not 0 <= value <= MAX_COUNT:
        raise grammar_error(f"{name} must be from 0 to {MAX_COUNT}, not {value}")


def bounds(schema: Mapping[str, Any], kind: str) -> tuple[int, int | None]:
    """Return the values of `min…` and `max…`, which are whole numbers, in a JSON Schema.

    A largest number that no count reaches is none. A least one may be over `MAX_COUNT`.
    """
    least, most = schema.get(f"min{kind}", 0), schema.get(f"max{kind}")
    return int(least), None if most is None or most > MAX_COUNT else int(most)
