"""Other forms of the same JSON value: the change that makes an engine accept a text."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation

from maskbench.documents import Whitespace

NUMBERS = "numbers"
PLAIN = "plain numbers"
STRINGS = "strings"
SPACE = "whitespace"
_CHANGES = (SPACE, STRINGS, NUMBERS, PLAIN)
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")|(-?[0-9][-+.0-9eE]*)|([ \t\r\n]+)|([\[\]{}:,]|[a-z]+)')
_MAX_DIGITS = 400


def respelled(text: str, changes: frozenset[str], whitespace: Whitespace) -> str:
    """Return a JSON text with some parts in their usual form.

    `NUMBERS`: no exponents. `PLAIN`: moreover, integers as digits only. `STRINGS`: characters are
    themselves where JSON has that. `SPACE`: no whitespace but what the mode writes.
    """
    item, key = whitespace.separators
    written = []
    for string, number, space, other in _TOKEN.findall(text):
        if string and STRINGS in changes:
            written.append(json.dumps(json.loads(string), ensure_ascii=False))
        elif number and (NUMBERS in changes or PLAIN in changes):
            written.append(_plain(number, shortest=PLAIN in changes))
        elif space and SPACE in changes:
            continue
        elif other in (",", ":") and SPACE in changes:
            written.append(item if other == "," else key)
        else:
            written.append(string or number or space or other)
    return "".join(written)


def explaining(
    text: str, whitespace: Whitespace, accepts: Callable[[str], bool]
) -> frozenset[str] | None:
    """Return the fewest changes that make the text accepted, possibly none; or None."""
    tried = set()
    for changes in _subsets():
        try:
            other = respelled(text, changes, whitespace)
            other.encode()
        except ValueError:
            # A lone surrogate has no other spelling than its escape.
            continue
        if other not in tried and accepts(other):
            return changes
        tried.add(other)
    return None


def _subsets() -> Iterator[frozenset[str]]:
    for size in range(len(_CHANGES) + 1):
        for chosen in itertools.combinations(_CHANGES, size):
            yield frozenset(chosen)


def _plain(number: str, *, shortest: bool) -> str:
    if not shortest and "e" not in number.lower():
        return number
    try:
        value = Decimal(number)
    except InvalidOperation:
        # An exponent beyond all bounds.
        return number
    if abs(value.adjusted()) > _MAX_DIGITS:
        return number
    plain = format(value, "f")
    if shortest and "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return "0" if shortest and plain in ("-0", "") else plain
