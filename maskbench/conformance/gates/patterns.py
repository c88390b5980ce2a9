"""Texts that regular expressions tend to match, as hints for random walks."""

from __future__ import annotations

import random
import re

_ESCAPES = {"d": "1", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a", "n": "\n", "t": "\t"}
_QUANTIFIER = re.compile(r"[*+?]\??|\{(\d+)(?:,\d*)?\}\??")
_LOOKAROUND = re.compile(r"\?(?:=|!|<=|<!)")
_GROUP_KIND = re.compile(r"\?(?::|<[^>]*>|P<[^>]*>)")


def likely_match(source: random.Random, pattern: str) -> str:
    """Return a text that the pattern probably matches; it is a guess."""
    return _Guess(source, pattern).alternatives()


class _Guess:
    """A reader that writes down a match as it goes, and takes what it does not know literally."""

    def __init__(self, source: random.Random, pattern: str) -> None:
        self._source = source
        self._pattern = pattern
        self._at = 0

    def alternatives(self) -> str:
        options = [""]
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if char == ")":
                break
            self._at += 1
            if char == "|":
                options.append("")
            elif char not in "^$":
                options[-1] += self._repeated(self._piece(char))
        return self._source.choice(options)

    def _piece(self, char: str) -> str:
        if char == "(":
            rest = self._pattern[self._at :]
            looks = _LOOKAROUND.match(rest)
            kind = _GROUP_KIND.match(rest)
            self._at += len((looks or kind or [""])[0])
            inside = self.alternatives()
            self._at += 1
            return "" if looks else inside
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        return "a" if char == "." else char

    def _escape(self) -> str:
        char = self._pattern[self._at : self._at + 1]
        self._at += 1
        return "" if char in "bB" else _ESCAPES.get(char, char)

    def _class(self) -> str:
        end = self._at
        while end < len(self._pattern) and self._pattern[end] != "]":
            end += 2 if self._pattern[end] == "\\" else 1
        inside = self._pattern[self._at : end]
        self._at = end + 1
        if inside.startswith("^"):
            return next(
                char for char in "a1 -_\u00e9\u4e00" if char not in inside or char == "\u4e00"
            )
        members = []
        for found in re.finditer(r"(\\?.)(?:-(\\?.))?", inside, re.DOTALL):
            first = found[1]
            members.append(_ESCAPES.get(first[1], first[1]) if len(first) == 2 else first)
        return self._source.choice(members or [""])

    def _repeated(self, piece: str) -> str:
        found = _QUANTIFIER.match(self._pattern, self._at)
        if not found:
            return piece
        self._at = found.end()
        if found[1]:
            return piece * min(int(found[1]), 1000)
        least = 1 if found[0][0] == "+" else 0
        return piece * self._source.randint(least, 1)
