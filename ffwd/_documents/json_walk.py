"""Writing a JSON document through the masks of a grammar.

The masks alone say what is valid. The walk knows the notation of JSON, and so where a choice is:
the kind of a value, the name of a member, one item more. Subclasses make the choices.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from ffwd._documents.cursor import Cursor
from ffwd._documents.texts import Texts

WHITESPACE = frozenset(b" \t\n\r")
_BEFORE_ITEMS = WHITESPACE | frozenset(b"]")
NUMBER = frozenset(b"+-.0123456789eE")
DIGITS = frozenset(b"0123456789")
_NUMBER_BYTES = frozenset(bytes([byte]) for byte in NUMBER)
QUOTE = ord('"')
# A name or value that is listed is recognised although another spelling of it is allowed.
_SPELLINGS = frozenset(b".eE\\")
_WORDS = (b"null", b"true", b"false")
# Names that no schema declares, unless it allows names that it does not list.
_FRESH = (b'"zq"', b'"q7_w"', b'"Zx-9"')
# How an explanation with many names ends.
_SHORTENED = re.compile(r'" or [0-9,]+ more')
_MOST_SPACES = 80
_MOST_STEPS = 4096

Kind = Literal["literal", "string", "number", "object", "array"]
OTHER = b""
"""Stands for a name that the schema does not list."""


@dataclass(frozen=True, slots=True)
class Option:
    """An alternative for a value: a whole literal, or a kind of value."""

    kind: Kind
    text: bytes

    @property
    def label(self) -> str:
        """A name for it among the options of one position."""
        return self.text.decode() if self.kind == "literal" else self.kind


@dataclass(slots=True)
class Members:
    """An object that is being written.

    Attributes:
        depth: The number of values around it.
        start: Where it starts, in bytes.
        names: Names that were written.
        declined: Names that were not chosen, and are not to be offered again.
        extras: How many names were written that the schema does not list.
        most_extras: A bound for `extras`.
        leads_to_end: Whether the last name is that of the shortest way to the end.

    """

    depth: int
    start: int
    names: list[bytes] = field(default_factory=list)
    declined: set[bytes] = field(default_factory=set)
    extras: int = 0
    most_extras: int = 0
    leads_to_end: bool = False


class JsonWalk:
    """One document. `run` writes it."""

    def __init__(self, cursor: Cursor, texts: Texts, memo: dict[object, Any]) -> None:
        """Begin a document. `memo` is what walks on the same grammar share."""
        self.cursor = cursor
        self.texts = texts
        self._memo = memo

    def run(self) -> str:
        """Write a document and return it."""
        self._space()
        self.value(0)
        # Nothing but an end, or white space before it, can come after a value.
        self.cursor.put(self.cursor.completion())
        return self.cursor.text.decode()

    # ----------------------------------------------------------------- choices, for subclasses

    def choose_value(self, options: list[Option], depth: int) -> Option | None:
        """Return one of the options, or None for the shortest value."""
        raise NotImplementedError

    def open_members(self, depth: int) -> Members:
        """Return the state of an object that begins."""
        return Members(depth=depth, start=len(self.cursor.text))

    def choose_name(
        self, members: Members, names: list[bytes], *, is_open: bool, can_close: bool
    ) -> bytes | None:
        """Return one of the names, `OTHER` for one that is not listed, or None for the end.

        None where the object cannot end stands for the name that leads to an end.
        """
        raise NotImplementedError

    def choose_length(self, depth: int) -> int:
        """Return the number of items for an array; it has more or fewer where it must."""
        raise NotImplementedError

    def heads_for_end(self) -> bool:
        """Return whether an item or member beyond the chosen ones leads to an end."""
        return True

    def write_string(self, *, is_name: bool) -> None:
        """Write a string after its opening quote, with the closing one."""
        raise NotImplementedError

    def write_number(self) -> None:
        """Write a number, which may already be a whole one."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------- the notation

    def value(self, depth: int) -> None:
        """Write a value."""
        option = self.choose_value(self._options(), depth)
        if option is None:
            self.write_shortest_value()
        elif option.kind == "literal":
            self.cursor.put(option.text)
        elif option.kind == "string":
            self.cursor.put(b'"')
            self.write_string(is_name=False)
        elif option.kind == "number":
            self.write_number()
        elif option.kind == "object":
            self._object(depth)
        else:
            self._array(depth)

    def _options(self) -> list[Option]:
        cursor = self.cursor
        allowed = set(cursor.allowed())
        options = [
            Option("literal", word) for word in _WORDS if word[0] in allowed and cursor.fits(word)
        ]
        if QUOTE in allowed:
            listed = self._listed(self.texts.strings)
            options += [Option("string", b"")] if listed is None else listed
        if not allowed.isdisjoint(NUMBER):
            listed = self._listed(self.texts.numbers)
            options += [Option("number", b"")] if listed is None else listed
        if ord("{") in allowed:
            options.append(Option("object", b""))
        if ord("[") in allowed:
            options.append(Option("array", b""))
        return options

    def _listed(self, candidates: tuple[bytes, ...]) -> list[Option] | None:
        """Return the strings or numbers that may come, or None if others may come, too."""
        cursor = self.cursor
        is_number = candidates is self.texts.numbers
        start = len(cursor.text)
        allowed = set(cursor.allowed())
        near: dict[bytes, set[int]] = {}
        first = b"" if is_number else b'"'
        if not is_number:
            cursor.put(first)
            allowed = set(cursor.allowed())
            cursor.back_to(start)
        at = len(first)
        seconds = {text[at] for text in candidates if len(text) > at}
        if allowed & (NUMBER if is_number else allowed) - seconds - _SPELLINGS:
            return None
        fitting = sorted(text for text in candidates if self._fits_whole(text, is_number=is_number))
        for text in fitting:
            for end in range(len(text)):
                near.setdefault(text[:end], set()).add(text[end])
        steps = 0
        before = b""
        for text in fitting:
            same = 0
            while same < min(len(before), len(text)) and before[same] == text[same]:
                same += 1
            cursor.back_to(start + same)
            for end in range(same + 1, len(text) + 1):
                steps += 1
                if steps > _MOST_STEPS:
                    break
                cursor.put(text[end - 1 : end])
                if end == len(text) and not is_number:
                    continue
                more = set(cursor.allowed())
                if is_number:
                    more &= NUMBER
                if more - near.get(text[:end], set()) - _SPELLINGS:
                    cursor.back_to(start)
                    return None
            before = bytes(cursor.text[start:])
        cursor.back_to(start)
        return [Option("literal", text) for text in fitting] or None

    def _fits_whole(self, text: bytes, *, is_number: bool) -> bool:
        if not self.cursor.fits(text):
            return False
        return not is_number or self.ends_after(text)

    def ends_after(self, number: bytes) -> bool:
        """Return whether a number, which fits, may be whole."""
        start = len(self.cursor.text)
        self.cursor.put(number)
        ends = self.number_may_end()
        self.cursor.back_to(start)
        return ends

    def number_may_end(self) -> bool:
        """Return whether the number before may be whole."""
        return not NUMBER.issuperset(self.cursor.allowed())

    def _array(self, depth: int) -> None:
        cursor = self.cursor
        cursor.put(b"[")
        length = self.choose_length(depth)
        count = 0
        while True:
            mark = len(cursor.text)
            can_close = self._reach(b"]")
            cursor.back_to(mark)
            can_go = self._reach(b",") if count else self._reach_item()
            if can_close and (count >= length or not can_go):
                cursor.back_to(mark)
                self._reach(b"]")
                cursor.put(b"]")
                return
            if count:
                cursor.put(b",")
                self._space()
            if count >= length and self.heads_for_end():
                self.write_shortest_value()
            else:
                self.value(depth + 1)
            count += 1

    def _object(self, depth: int) -> None:
        cursor = self.cursor
        cursor.put(b"{")
        members = self.open_members(depth)
        while True:
            mark = len(cursor.text)
            can_close = self._reach(b"}")
            cursor.back_to(mark)
            before = b"," if members.names else b'"'
            can_go = self._reach(before)
            name = None
            if can_go:
                if members.names:
                    cursor.put(b",")
                    self._reach(b'"')
                name = self._name(members, can_close)
            if name is None:
                cursor.back_to(mark)
                self._reach(b"}")
                cursor.put(b"}")
                return
            members.names.append(name)
            self._space()
            cursor.put(b":")
            self._space()
            if members.leads_to_end and self.heads_for_end():
                self.write_shortest_value()
            else:
                self.value(depth + 1)

    def _name(self, members: Members, can_close: bool) -> bytes | None:
        """Write a name and return it, or write nothing and return None."""
        cursor = self.cursor
        start = len(cursor.text)
        names, is_open = self._names()
        chosen = self.choose_name(members, names, is_open=is_open, can_close=can_close)
        if chosen is not None and not cursor.fits(chosen or b'"'):
            # No document with it would be short enough.
            chosen = None
        members.leads_to_end = chosen is None
        if chosen is None:
            if can_close:
                return None
            completion = cursor.completion()
            cursor.put(completion[: string_end(completion, 1)])
        elif chosen == OTHER:
            members.extras += 1
            cursor.put(b'"')
            self.write_string(is_name=True)
        else:
            cursor.put(chosen)
        return bytes(cursor.text[start:])

    def _names(self) -> tuple[list[bytes], bool]:
        """Return the listed names that may come, and whether there may be others."""
        cursor = self.cursor
        items = cursor.expected()
        shown = " ".join(item.what for item in items if item.kind == "key")
        candidates = self.texts.names
        is_whole = _SHORTENED.search(shown) is None
        if is_whole:
            # Trying a name costs more than this: the matcher remembers the names of an object.
            candidates = tuple(name for name in candidates if name.decode() in shown)
        start = len(cursor.text)
        cursor.put(b'"')
        first = set(cursor.allowed())
        cursor.back_to(start)
        fits = cursor.fits_without_budget
        names = [name for name in candidates if name[1] in first and fits(name)]
        if any(fits(fresh) for fresh in _FRESH):
            here = tuple(item.pointers for item in items)
            return [name for name in names if is_whole or self._is_declared(name, here)], True
        return names, bool(first - {name[1] for name in names} - _SPELLINGS)

    def _is_declared(self, name: bytes, here: object) -> bool:
        """Return whether the schema says something of a name, where any name may come."""
        key = ("declared", here, name)
        if key not in self._memo:
            self._memo[key] = any(
                item.kind == "key" and name.decode() in item.what
                for item in self.cursor.expected(name[:-1])
            )
        return bool(self._memo[key])

    def pointers(self) -> tuple[str, ...]:
        """Return the places in the schema that ask for what comes next."""
        return tuple(
            pointer
            for item in self.cursor.expected()
            if item.kind in ("value", "key")
            for pointer in item.pointers
        )

    # --------------------------------------------------------------------------------- white space

    def _space(self) -> None:
        """Write white space where nothing else may come."""
        while WHITESPACE.issuperset(self.cursor.allowed()):
            self.cursor.put(bytes(self.cursor.allowed()[:1]))

    def _reach(self, target: bytes) -> bool:
        """Write white space, if need be, until a byte is allowed; return whether it is."""
        return self._space_until(lambda allowed: target[0] in allowed)

    def _reach_item(self) -> bool:
        """Write white space, if need be, until a first item may come; return whether it may."""
        return self._space_until(lambda allowed: not _BEFORE_ITEMS.issuperset(allowed))

    def _space_until(self, is_reached: Callable[[Sequence[int]], bool]) -> bool:
        cursor = self.cursor
        for _ in range(_MOST_SPACES):
            allowed = cursor.allowed()
            if is_reached(allowed):
                return True
            spaces = [byte for byte in allowed if byte in WHITESPACE]
            if not spaces:
                return False
            cursor.put(bytes(spaces[:1]))
        return False

    # ---------------------------------------------------------------------------- the shortest way

    def write_shortest_value(self) -> None:
        """Write a short value."""
        completion = self.cursor.completion()
        self.cursor.put(completion[: value_end(completion)])

    def finish_string(self) -> None:
        """Write the shortest end of a string."""
        completion = self.cursor.completion()
        self.cursor.put(completion[: string_end(completion, 0)])

    def finish_number(self) -> None:
        """Write the shortest end of a number, or a short number."""
        cursor = self.cursor
        completion = cursor.completion()
        if bytes(cursor.text[-1:]) not in _NUMBER_BYTES and completion[0] not in NUMBER:
            # Another value would be shorter.
            first = [byte for byte in cursor.allowed() if byte in NUMBER][-1:]
            cursor.put(bytes(first))
            completion = cursor.completion()
        cursor.put(completion[: number_end(completion)])

    def is_plain(self, number: bytes) -> bool:
        """Return whether the double next to the number before is valid in its place, too.

        Most readers round to doubles, and with a bound next to it the rounded value may be invalid.
        Whole numbers of up to 19 digits are read exactly.
        """
        if number.lstrip(b"-").isdigit() and len(number) < 20:
            return True
        cursor = self.cursor
        end = len(cursor.text)
        value = float(number)
        if not math.isfinite(value):
            return False
        cursor.back_to(end - len(number))
        spellings = {repr(value), format(Decimal(repr(value)), "f")}
        if value.is_integer():
            spellings.add(str(int(value)))
        found = any(
            cursor.fits(each.encode()) and self.ends_after(each.encode()) for each in spellings
        )
        cursor.put(number)
        return found


def string_end(text: bytes, start: int) -> int:
    """Return where a string ends whose content begins at `start`."""
    at = start
    while text[at] != QUOTE:
        at += 2 if text[at] == ord("\\") else 1
    return at + 1


def number_end(text: bytes) -> int:
    """Return where a number ends that the text begins with or continues."""
    at = 0
    while at < len(text) and text[at] in NUMBER:
        at += 1
    return at


def value_end(text: bytes) -> int:
    """Return where the value ends that a text begins with; its beginning of JSON is well formed."""
    depth = at = 0
    while True:
        byte = text[at]
        if byte == QUOTE:
            at = string_end(text, at + 1)
        elif byte in b"{[":
            depth += 1
            at += 1
        elif byte in b"}]":
            depth -= 1
            at += 1
        elif depth or byte in WHITESPACE:
            at += 1
            continue
        elif byte in NUMBER and byte != ord("e"):
            return at + number_end(text[at:])
        else:
            return at + (5 if byte == ord("f") else 4)
        if not depth:
            return at
