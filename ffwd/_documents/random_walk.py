"""JSON documents at random."""

from __future__ import annotations

import random
from typing import Any

from ffwd._documents.characters import first_character, pick, put_character
from ffwd._documents.cursor import Cursor
from ffwd._documents.json_walk import DIGITS, NUMBER, OTHER, QUOTE, JsonWalk, Members, Option
from ffwd._documents.texts import Texts

MOST_ITEMS = 5
"""Of an array at the root; each level around an array takes one away."""

MOST_EXTRAS = 3
"""Members whose names the schema does not list; where it lists others, half of the objects have
none."""

MOST_CHARACTERS = 24
MOST_DIGITS = 6
MOST_NUMBERS = 256
"""Where no more numbers than these are allowed, they are equally likely."""

MOST_DEPTH = 8
"""Values below it are the shortest ones."""

_MOST_STEPS = 400
"""Of one string or number; after them it takes the shortest end."""

_PLAIN = DIGITS | set(b"-.")
# Where one of these is allowed, so are many others.
_MANY = (b"12345", b"-12345", b"0.12345", b"-0.12345")
_QUOTE_ONLY = frozenset({QUOTE})


class RandomWalk(JsonWalk):
    """A document whose choices are drawn: see docs/cli.md for the distribution."""

    def __init__(
        self,
        cursor: Cursor,
        texts: Texts,
        memo: dict[object, Any],
        source: random.Random,
        *,
        max_bytes: int,
        any_order: bool,
    ) -> None:
        super().__init__(cursor, texts, memo)
        self._source = source
        self._any_order = any_order
        # The other half is for what must follow.
        self._soft_bytes = max_bytes // 2

    def _is_short(self, depth: int) -> bool:
        return depth > MOST_DEPTH or len(self.cursor.text) > self._soft_bytes

    def choose_value(self, options: list[Option], depth: int) -> Option | None:
        """Draw one, each equally likely."""
        if self._is_short(depth) or not options:
            return None
        return options[pick(self._source, len(options))]

    def choose_length(self, depth: int) -> int:
        """Draw a length up to a bound, each equally likely."""
        if self._is_short(depth + 1):
            return 0
        return pick(self._source, max(1, MOST_ITEMS - depth) + 1)

    def heads_for_end(self) -> bool:
        """Toss a coin for each item or member beyond the chosen ones."""
        return self._source.random() < 0.5

    def open_members(self, depth: int) -> Members:
        """Draw how many names that the schema does not list the object has at most."""
        members = super().open_members(depth)
        if not self._is_short(depth + 1):
            members.most_extras = pick(self._source, MOST_EXTRAS + 1)
        return members

    def choose_name(
        self, members: Members, names: list[bytes], *, is_open: bool, can_close: bool
    ) -> bytes | None:
        """Toss a coin for each listed name, once in the object."""
        if self._is_short(members.depth + 1):
            return None
        if not members.names:
            if names and self._source.random() < 0.5:
                members.most_extras = 0
            if not can_close:
                self._choose_branch(members, names)
        left = [name for name in names if name not in members.declined]
        if self._any_order:
            _shuffle(left, self._source)
        for name in left:
            # Where the object cannot end yet, the last one must come.
            if (name == left[-1] and not can_close) or self._source.random() < 0.5:
                return name
            members.declined.add(name)
        if is_open and members.extras < members.most_extras:
            return OTHER
        if not can_close and names:
            return names[pick(self._source, len(names))]
        return None

    def _choose_branch(self, members: Members, names: list[bytes]) -> None:
        """Choose a branch of `anyOf` or `oneOf` where the names belong to different ones."""
        branches: dict[bytes, str] = {}
        for name in names:
            branch = self._branch(name)
            if branch is not None:
                branches[name] = branch
        different = list(dict.fromkeys(branches.values()))
        if len(different) > 1:
            chosen = different[pick(self._source, len(different))]
            members.declined |= {name for name, branch in branches.items() if branch != chosen}

    def _branch(self, name: bytes) -> str | None:
        cursor = self.cursor
        start = len(cursor.text)
        cursor.put(name)
        found = {_branch_of(pointer) for item in cursor.expected() for pointer in item.pointers} - {
            None
        }
        cursor.back_to(start)
        return found.pop() if len(found) == 1 else None

    def write_string(self, *, is_name: bool) -> None:
        """Draw a length, and then characters until the string may end."""
        cursor, source = self.cursor, self._source
        length = 1 + pick(source, 8) if is_name else pick(source, MOST_CHARACTERS + 1)
        for count in range(_MOST_STEPS):
            allowed = cursor.allowed()
            if QUOTE in allowed and (count >= length or len(allowed) == 1):
                cursor.put(b'"')
                return
            if len(cursor.text) > self._soft_bytes:
                break
            if count >= length and source.random() < 0.5:
                # Half of the characters lead to the end of a pattern that is not over.
                cursor.put(first_character(cursor.completion(), escapes=True))
            else:
                put_character(cursor, source, without=_QUOTE_ONLY, readable=is_name, escapes=True)
        self.finish_string()

    def write_number(self) -> None:
        """Draw a sign, and how many digits there are before and after the point."""
        start = len(self.cursor.text)
        few = self._few_numbers()
        if few:
            self.cursor.put(few[pick(self._source, len(few))])
        else:
            self._write_number()
        if not self.is_plain(bytes(self.cursor.text[start:])):
            self.cursor.back_to(start)
            self.finish_number()

    def _few_numbers(self) -> list[bytes]:
        """Return all numbers that may come, or none if they are many."""
        key = ("numbers", self.pointers())
        if key not in self._memo:
            self._memo[key] = self._find_few_numbers()
        return [each for each in self._memo[key] if self._fits_whole(each, is_number=True)]

    def _find_few_numbers(self) -> list[bytes]:
        cursor = self.cursor
        if any(cursor.fits_without_budget(each) for each in _MANY):
            return []
        start = len(cursor.text)
        found: list[bytes] = []
        left = [b""]
        steps = 0
        while left:
            steps += 1
            text = left.pop()
            cursor.back_to(start)
            cursor.put(text)
            if text[-1:].isdigit() and text != b"-0" and self.number_may_end():
                found.append(text)
            # A number with another spelling of its exponent or fraction is no other number.
            more = [byte for byte in cursor.allowed() if byte in _PLAIN]
            left.extend(text + bytes([byte]) for byte in more)
            if steps > 3 * MOST_NUMBERS or len(found) > MOST_NUMBERS:
                found = []
                break
        cursor.back_to(start)
        return sorted(found)

    def _write_number(self) -> None:
        cursor, source = self.cursor, self._source
        is_negative = source.random() < 0.5
        has_fraction = source.random() < 0.5
        has_exponent = source.random() < 0.0625
        most = 15 if source.random() < 0.125 else MOST_DIGITS
        digits = 1 + pick(source, most)
        for _ in range(_MOST_STEPS):
            allowed = [byte for byte in cursor.allowed() if byte in NUMBER]
            figures = [byte for byte in allowed if byte in DIGITS]
            exponents = [byte for byte in allowed if byte in b"eE"]
            can_end = cursor.text[-1:].isdigit() and self.number_may_end()
            if not allowed or len(cursor.text) > self._soft_bytes:
                break
            if ord("-") in allowed and (is_negative or not figures):
                is_negative = False
                cursor.put(b"-")
            elif figures and digits > 0:
                if digits > 1 and not cursor.text[-1:].isdigit():
                    # A number with a leading zero has no further digits.
                    figures = [byte for byte in figures if byte != ord("0")] or figures
                digits -= 1
                cursor.put(bytes([figures[pick(source, len(figures))]]))
            elif ord(".") in allowed and has_fraction:
                has_fraction = False
                digits = 1 + pick(source, 4)
                cursor.put(b".")
            elif exponents and (has_exponent or not (can_end or figures)):
                has_exponent = False
                digits = 1 + pick(source, 2)
                is_negative = source.random() < 0.5
                cursor.put(bytes(exponents[-1:]))
            elif can_end:
                return
            elif figures and source.random() < 0.5:
                cursor.put(bytes([figures[pick(source, len(figures))]]))
            else:
                cursor.put(cursor.completion()[:1])
        if not (cursor.text[-1:].isdigit() and self.number_may_end()):
            self.finish_number()


def _branch_of(pointer: str) -> str | None:
    """Return a pointer up to the last branch in it."""
    parts = pointer.split("/")
    for index in range(len(parts) - 2, -1, -1):
        if parts[index] in ("anyOf", "oneOf") and parts[index + 1].isdigit():
            return "/".join(parts[: index + 2])
    return None


def _shuffle(items: list[bytes], source: random.Random) -> None:
    for index in range(len(items) - 1, 0, -1):
        other = pick(source, index + 1)
        items[index], items[other] = items[other], items[index]
