"""Texts of a grammar that is no JSON Schema, at random."""

from __future__ import annotations

import json
import random
import re

from ffwd._documents.characters import first_character, pick, put_character
from ffwd._documents.cursor import END, Cursor
from ffwd._explain import Expected

MOST_TERMINALS = 24
MOST_CHARACTERS = 24
_ALPHABETS = (
    frozenset(b"0123456789"),
    frozenset(b"abcdefghijklmnopqrstuvwxyz"),
    frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    frozenset(b" \t\r\n"),
)


_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_SHORTENED = re.compile(r'" or [0-9,]+ more')


class TextWalk:
    """One text, whose terminals and characters are drawn: see docs/cli.md."""

    def __init__(self, cursor: Cursor, source: random.Random, *, max_bytes: int) -> None:
        self._cursor = cursor
        self._source = source
        self._soft_bytes = max_bytes // 2
        self._terminals_left = pick(source, MOST_TERMINALS + 1)
        self._characters_left = pick(source, MOST_CHARACTERS + 1)

    def run(self) -> str:
        """Write a text and return it."""
        cursor = self._cursor
        while True:
            allowed = cursor.allowed()
            if allowed == [END]:
                break
            if len(allowed) == 1:
                cursor.put(bytes(allowed))
            elif len(cursor.text) >= self._soft_bytes:
                cursor.put(cursor.completion())
                break
            elif not self._step():
                break
        return cursor.text.decode()

    def _step(self) -> bool:
        """Write a character, or the beginning of a terminal; return False at the end."""
        cursor = self._cursor
        items = cursor.expected()
        begun = [item for item in items if item.begun]
        fresh = [item for item in items if not item.begun and item.kind != "end" and item.example]
        can_end = END in cursor.allowed()
        if begun and (self._characters_left > 0 or not (fresh or can_end)):
            self._more(fresh)
            return True
        if can_end and (self._terminals_left <= 0 or not fresh):
            return False
        if not fresh:
            self._more(fresh)
            return True
        if self._terminals_left <= 0:
            # The text heads for its end, but its terminals still have random characters.
            first = cursor.completion()[0]
            fresh = [item for item in fresh if _alike(item, first)] or fresh
        self._begin(fresh[pick(self._source, len(fresh))], fresh)
        return True

    def _more(self, fresh: list[Expected]) -> None:
        """Continue a terminal, in a way that begins no other if there is one."""
        self._characters_left -= 1
        if self._characters_left < 0 and self._source.random() < 0.5:
            completion = self._cursor.completion()
            if completion:
                self._cursor.put(first_character(completion))
                return
        put_character(self._cursor, self._source, without=_literals(fresh))

    def _begin(self, item: Expected, fresh: list[Expected]) -> None:
        self._terminals_left -= 1
        self._characters_left = pick(self._source, MOST_CHARACTERS + 1)
        assert item.example
        listed = [each for each in _listed(item) if self._cursor.fits(each)]
        if listed:
            self._cursor.put(listed[pick(self._source, len(listed))])
            return
        first = item.example[0]
        alphabet = next((each for each in _ALPHABETS if first in each), None)
        if alphabet is None:
            self._cursor.put(first_character(item.example) if first >= 0x80 else bytes([first]))
            return
        others = frozenset(self._cursor.allowed()) - alphabet
        put_character(self._cursor, self._source, without=others | _literals(fresh))


def _listed(item: Expected) -> list[bytes]:
    """Return the texts that a terminal is one of, or nothing if it is a pattern."""
    if not item.what.startswith('"') or _SHORTENED.search(item.what):
        return []
    found = (json.loads(text) for text in _TEXT.findall(item.what))
    return [text.encode() for text in found if text]


def _alike(item: Expected, first: int) -> bool:
    """Return whether an item begins with a byte, or with one like it if it is no fixed text."""
    example = (item.example or b"\0")[0]
    if example == first:
        return True
    is_fixed = item.what.startswith('"')
    return not is_fixed and any(first in each and example in each for each in _ALPHABETS)


def _literals(items: list[Expected]) -> frozenset[int]:
    """Return the first bytes of the terminals that are fixed texts."""
    return frozenset(
        item.example[0] for item in items if item.example and item.what.startswith('"')
    )
