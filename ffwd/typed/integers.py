"""Integers in forms that JSON Schema allows and pydantic does not parse: `7.0`, `12e2`."""

import re
from decimal import Decimal, InvalidOperation

_STRING_OR_NUMBER = re.compile(
    r'"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?', re.DOTALL
)
# Longer ones Python itself does not read from text.
_MAX_DIGITS = 4_000


def respell_integers(text: str, *, longer_than: int = 0) -> str:
    """Return JSON text in which whole numbers are written as digits.

    Args:
        text: The text.
        longer_than: Only numbers whose spelling has more characters.

    """

    def respell(found: "re.Match[str]") -> str:
        written = found[0]
        if written[0] == '"' or len(written) <= longer_than or written.lstrip("-").isdigit():
            return written
        return _respelt(written)

    return _STRING_OR_NUMBER.sub(respell, text)


def _respelt(written: str) -> str:
    try:
        number = Decimal(written)
    except InvalidOperation:  # an exponent that is longer than Python's
        return written
    # Digits that are left of the point; a number with very many is not written out.
    if not -1 <= number.adjusted() < _MAX_DIGITS or len(written) > _MAX_DIGITS:
        return written
    with_point = f"{number:f}"
    whole, _, fraction = with_point.partition(".")
    return whole if not fraction.strip("0") else written
