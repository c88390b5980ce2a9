"""Integers as parsers read them that do not read JSON: digits, and nothing behind a point."""

from collections.abc import Iterator, Mapping
from typing import Any

from ffwd.grammar import Grammar, regex

_BEYOND = frozenset({"multipleOf", "enum", "const", "not", "allOf", "anyOf", "oneOf", "if"})


def plain_integer(schema: Any) -> Grammar | None:
    """Return the integers of a schema as digits; None unless it is a plain schema of integers."""
    if not isinstance(schema, Mapping) or schema.get("type") != "integer":
        return None
    if _BEYOND & schema.keys():
        return None
    least = _bound(schema, "minimum", "exclusiveMinimum", 1)
    most = _bound(schema, "maximum", "exclusiveMaximum", -1)
    if least is False or most is False or (None not in (least, most) and least > most):
        return None
    return regex("|".join(_signed(least, most)))


def _bound(schema: Mapping[str, Any], closed: str, open_: str, step: int) -> Any:
    """Return the tighter of two bounds, as an integer; None without one, False for a non-number."""
    found: list[int] = []
    for keyword, inwards in ((closed, 0), (open_, step)):
        value = schema.get(keyword)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 10**30:
            return False
        whole = int(value)
        if whole == value:
            whole += inwards
        elif (whole < value) == (step > 0):
            whole += step
        found.append(whole)
    if not found:
        return None
    return max(found) if step > 0 else min(found)


def _signed(least: int | None, most: int | None) -> Iterator[str]:
    if least is None or least < 0:
        biggest = None if least is None else -least
        smallest = 1 if most is None or most >= 0 else -most
        yield f"-(?:{'|'.join(_unsigned(smallest, biggest))})"
    if most is None or most >= 0:
        yield from _unsigned(max(least or 0, 0), most)


def _unsigned(least: int, most: int | None) -> Iterator[str]:
    """Return patterns of the integers from one number to another, without leading zeros."""
    digits = len(str(least))
    if most is None:
        yield from _same_length(least, 10**digits - 1)
        yield f"[1-9][0-9]{{{digits},}}"
        return
    while digits < len(str(most)):
        yield from _same_length(least, 10**digits - 1)
        least, digits = 10**digits, digits + 1
    yield from _same_length(least, most)


def _same_length(least: int, most: int) -> Iterator[str]:
    """Return patterns of numbers of equally many digits, without leading zeros."""
    yield from _padded(str(least), str(most))


def _padded(low: str, high: str) -> Iterator[str]:
    """Return patterns of runs of equally many digits, which may begin with zeros."""
    if set(low) == {"0"} and set(high) == {"9"}:
        yield f"[0-9]{{{len(low)}}}"
        return
    if len(low) == 1:
        yield f"[{low}-{high}]"
        return
    if low[0] == high[0]:
        yield from (low[0] + rest for rest in _padded(low[1:], high[1:]))
        return
    first, last = int(low[0]), int(high[0])
    if set(low[1:]) != {"0"}:
        yield from (low[0] + rest for rest in _padded(low[1:], "9" * (len(low) - 1)))
        first += 1
    ends = set(high[1:]) != {"9"}
    if last - ends >= first:
        yield f"[{first}-{last - ends}][0-9]{{{len(low) - 1}}}"
    if ends:
        yield from (high[0] + rest for rest in _padded("0" * (len(low) - 1), high[1:]))
