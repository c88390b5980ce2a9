"""Characters at random: mostly readable ones, and sometimes others that are allowed."""

from __future__ import annotations

import random

from ffwd._documents.cursor import END, Cursor

_READABLE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ")
_PRINTABLE = frozenset(range(0x20, 0x7F)) - _READABLE - {ord("\\")}
_BACKSLASH = frozenset(b"\\")
_WIDE = frozenset(range(0x80, 0x100))
_REST = frozenset(range(0x80)) - _READABLE - _PRINTABLE - _BACKSLASH
_CLASSES = (_READABLE, _PRINTABLE, _BACKSLASH, _WIDE, _REST)
WEIGHTS = (88, 5, 2, 4, 1)
"""Out of 100: letters, digits and space; other printable ASCII; escapes; non-ASCII; the rest."""

_KNOWN = "äéñßøłžİıΩжקعनกかカ漢字한€™…“”ﬁ\u0301\u200b\u200d\u202e\ufeff\ufffd😀🇪👩𝒳𐍈\U0010fffd"
"""Of the non-ASCII characters, three quarters are of these."""

_NO_END = {END}


def weighted(source: random.Random, weights: list[int]) -> int:
    """Return an index with these weights."""
    drawn = source.random() * sum(weights)
    for index, weight in enumerate(weights):
        drawn -= weight
        if drawn < 0:
            return index
    return max(index for index, weight in enumerate(weights) if weight)


def pick(source: random.Random, count: int) -> int:
    """Return a number below `count`, the same in all versions of Python."""
    return int(source.random() * count)


def put_character(
    cursor: Cursor,
    source: random.Random,
    *,
    without: frozenset[int],
    readable: bool = False,
    escapes: bool = False,
) -> None:
    """Append a character that begins with none of the bytes `without`, if there is any.

    Bytes of one kind are equally likely. `readable` takes no others while there are readable ones.
    With `escapes` a backslash begins an escape of JSON, which is written whole.
    """
    allowed = set(cursor.allowed()) - _NO_END
    allowed = (allowed - without) or allowed
    members = [sorted(allowed & kind) for kind in _CLASSES]
    if readable and members[0]:
        kind = 0
    else:
        weights = [weight if found else 0 for weight, found in zip(WEIGHTS, members, strict=True)]
        kind = weighted(source, weights)
    if _CLASSES[kind] is _WIDE and _put_known(cursor, source, members[kind]):
        return
    first = members[kind][pick(source, len(members[kind]))]
    cursor.put(bytes([first]))
    if escapes and first == ord("\\"):
        if _put_any(cursor, source) == b"u":
            for _ in range(4):
                _put_any(cursor, source)
    elif first >= 0xC0:
        while any(0x80 <= byte < 0xC0 for byte in cursor.allowed()):
            _put_any(cursor, source)


def _put_known(cursor: Cursor, source: random.Random, leads: list[int]) -> bool:
    if source.random() >= 0.75:
        return False
    known = [each.encode() for each in _KNOWN]
    fitting = [each for each in known if each[0] in leads and cursor.fits(each)]
    if not fitting:
        return False
    cursor.put(fitting[pick(source, len(fitting))])
    return True


def _put_any(cursor: Cursor, source: random.Random) -> bytes:
    allowed = [byte for byte in cursor.allowed() if byte != END]
    text = bytes([allowed[pick(source, len(allowed))]])
    cursor.put(text)
    return text


def first_character(text: bytes, *, escapes: bool = False) -> bytes:
    """Return the first character of a text, or its first escape of JSON."""
    first = text[0]
    if escapes and first == ord("\\"):
        return text[: 6 if text[1:2] == b"u" else 2]
    if first < 0xC0:
        return text[:1]
    return text[: 2 if first < 0xE0 else 3 if first < 0xF0 else 4]
