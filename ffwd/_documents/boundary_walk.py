"""JSON documents at the edges of a schema: each option of each choice, and the odd values.

A walk makes decisions, each at a place in the schema among labelled options. A *script* fixes the
first decisions, and the shortest way follows. Every option that such a walk passes by becomes a
script of its own, so each option of each place is taken in a document that is short otherwise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ffwd._documents.characters import first_character
from ffwd._documents.cursor import END, Cursor, quoted
from ffwd._documents.json_walk import (
    NUMBER,
    OTHER,
    QUOTE,
    JsonWalk,
    Members,
    Option,
    string_end,
)
from ffwd._documents.texts import Texts

MOST_ITEMS = 40
MOST_CHARACTERS = 300
MOST_DIGITS = 30
DEEPEST = 24
"""Bounds of the longest arrays, strings and numbers, and of the deepest values."""

_DENSE_DEPTH = 4
_MOST_SCRIPTS = 10_000
_MOST_FIRST = 4

_STRINGS = (
    *(
        "",
        " ",
        "a",
        "A",
        "0",
        "-1",
        "null",
        "true",
        "{}",
        '"',
        "\\",
        "/",
        "'",
        "<a>&",
        "${a}",
        "%s",
    ),
    *("\x00", "\x01", "\x1b[0m", "\x1f", "\x7f", "\x85", "\b\f\n\r\t", "a\nb", "  a  "),
    *("é", "e\u0301", "ß", "İ", "ﬁ", "Ω", "漢字", "\u0627", "\u202etxt", "\u2028"),
    *(
        "\u200b",
        "\ufeff",
        "\ufffd",
        "\ufffe",
        "\U0001f600",
        "\U0001d4b3",
        "\U0010ffff",
        "👩\u200d👧",
        "🇪🇺",
    ),
    *("a" * 255, "é" * 128, "\U0001f600" * 64, "__proto__", "constructor", "../../etc/passwd"),
    *("2000-02-29", "1999-12-31T23:59:60Z", "1e400", "NaN", "Infinity", "' OR 1=1 --"),
)
_NAMES = ("", " ", "a", "\x00", '"', "\\", "é", "e\u0301", "\U0001f600", "__proto__", "0", "a" * 64)
_NUMBERS = tuple(
    spelled.encode()
    for spelled in (
        *("0", "-0", "0.0", "-0.0", "1", "-1", "0.1", "-0.1", "1.0", "1e0", "1E+0", "1e1", "1e-1"),
        *("127", "128", "-128", "-129", "255", "256", "32767", "32768", "65535", "65536"),
        *("2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296"),
        *("9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993"),
        *("9223372036854775807", "9223372036854775808", "-9223372036854775808"),
        *("-9223372036854775809", "18446744073709551615", "18446744073709551616"),
        *("100000000000000000000000000000", "0.30000000000000004", "3.141592653589793238462643"),
        *("1.7976931348623157e308", "1.7976931348623157e+308", "-1.7976931348623157e308"),
        *("1e308", "2.2250738585072014e-308", "5e-324", "4.9e-324", "-5e-324", "1e-7", "1e21"),
    )
)
_NEAR = ("-1", "+1", "-0.5", "+0.5")


@dataclass(slots=True)
class Ledger:
    """The options that the documents of one schema have taken so far.

    Attributes:
        taken: The options that some document has, each with its place.
        queued: The options that have a script, each with its place.
        scripts: Decisions that begin a document to come.

    """

    taken: set[tuple[object, str]] = field(default_factory=set)
    queued: set[tuple[object, str]] = field(default_factory=set)
    scripts: deque[tuple[int, ...]] = field(default_factory=deque)


class BoundaryWalk(JsonWalk):
    """A document by a script.

    `dense` walks have no script: they take options that no document has yet, and all properties.
    `deep` ones take what leads deeper.
    """

    def __init__(
        self,
        cursor: Cursor,
        texts: Texts,
        memo: dict[object, Any],
        ledger: Ledger,
        *,
        script: Sequence[int] = (),
        style: str = "script",
    ) -> None:
        super().__init__(cursor, texts, memo)
        self._ledger = ledger
        self._script = script
        self._style = style
        self._trail: list[int] = []
        self._open: list[object] = []
        self.is_new = False
        """Whether the document has an option that none had before."""

    def _decide(
        self, place: object, labels: Sequence[str], shortest: int, dense: int | None, deep: int
    ) -> int:
        """Return the index of an option; `dense` is that of a dense walk where all were taken."""
        ledger = self._ledger
        at = len(self._trail)
        if at < len(self._script):
            chosen = self._script[at]
        elif self._style == "deep":
            chosen = deep
        elif self._style == "dense":
            unseen = (i for i, label in enumerate(labels) if (place, label) not in ledger.taken)
            chosen = next(unseen, shortest) if dense is None else dense
        else:
            chosen = shortest
            for index, label in enumerate(labels):
                if (place, label) not in ledger.queued and len(ledger.scripts) < _MOST_SCRIPTS:
                    ledger.queued.add((place, label))
                    if index != shortest:
                        ledger.scripts.append((*self._trail, index))
        key = (place, labels[chosen])
        self.is_new = self.is_new or key not in ledger.taken
        ledger.taken.add(key)
        self._trail.append(chosen)
        return chosen

    # ------------------------------------------------------------------------------------- choices

    def choose_value(self, options: list[Option], depth: int) -> Option | None:
        """Take the option of the script, or one that is new, or one that is deep."""
        if depth > DEEPEST or not options:
            return None
        if len(options) == 1:
            return options[0]
        completion = self.cursor.completion()
        shortest = _first_of(completion, options)
        deep = next((i for i, o in enumerate(options) if o.kind in ("object", "array")), shortest)
        if self._style == "dense" and depth > _DENSE_DEPTH:
            return options[shortest]
        place = ("value", self.pointers())
        labels = [option.label for option in options]
        return options[self._decide(place, labels, shortest, None, deep)]

    def choose_length(self, depth: int) -> int:
        """Take no item, one, two, or as many as there may be."""
        lengths = (0, 1, 2, MOST_ITEMS)
        deep = 1 if depth < DEEPEST else 0
        if self._style == "dense" and depth > _DENSE_DEPTH:
            return 0
        place = ("array", self.pointers())
        return lengths[self._decide(place, [str(length) for length in lengths], 0, None, deep)]

    def choose_name(
        self, members: Members, names: list[bytes], *, is_open: bool, can_close: bool
    ) -> bytes | None:
        """Take the name of the script, every name, or the shortest way."""
        place = ("name", self.pointers())
        options: list[bytes | None] = [*names]
        if is_open:
            options.append(OTHER)
        if can_close:
            options.append(None)
        shortest = len(options) - 1
        if not can_close:
            completion = self.cursor.completion()
            name = completion[: string_end(completion, 1)]
            shortest = names.index(name) if name in names else shortest
        if members.depth > DEEPEST or not options:
            return None
        dense = 0 if names else shortest
        if self._style == "dense" and (
            members.depth > _DENSE_DEPTH or (members.depth and place in self._open)
        ):
            dense = shortest
        elif self._style == "dense" and not names and is_open and members.extras == 0:
            dense = options.index(OTHER)
        if not members.names and self._style == "dense":
            self._open.append(place)
        deep = shortest
        if self._style == "deep" and members.depth < DEEPEST and not members.names:
            deep = self._deepest(options, shortest)
        labels = ["}" if name is None else name.decode() for name in options]
        return options[self._decide(place, labels, shortest, dense, deep)]

    def _deepest(self, options: list[bytes | None], shortest: int) -> int:
        """Return the name whose value may be an object or an array."""
        start = len(self.cursor.text)
        for index, name in enumerate(options):
            if not name:
                continue
            self.cursor.put(name)
            self._reach(b":")
            self.cursor.put(b":")
            self._space()
            found = {ord("{"), ord("[")} & set(self.cursor.allowed())
            self.cursor.back_to(start)
            if found:
                return index
        return options.index(OTHER) if OTHER in options else shortest

    def write_string(self, *, is_name: bool) -> None:
        """Write one of the odd strings that fit, the shortest, or the longest."""
        place = ("name text" if is_name else "string", self.pointers())
        cursor = self.cursor
        completion = cursor.completion()
        shortest = completion[: string_end(completion, 0)]
        options = {shortest: None}
        for text in _NAMES if is_name else _STRINGS:
            spelled = quoted(text)[1:]
            if cursor.fits(spelled):
                options.setdefault(spelled)
        if not is_name:
            for listed in self.texts.strings if len(options) < 3 else ():
                if cursor.fits(listed[1:]):
                    options.setdefault(listed[1:])
        labels = [text.decode() for text in options] + ["longest"]
        # A pattern that refuses the odd strings has edges of its own.
        firsts = self._firsts() if len(options) < 4 else []
        labels += [f"begins {first!r}" for first in firsts]
        chosen = self._decide(place, labels, 0, None, 0)
        if chosen < len(options):
            cursor.put(list(options)[chosen])
        elif chosen == len(options):
            self._longest()
        else:
            cursor.put(firsts[chosen - len(options) - 1])
            self.finish_string()

    def _firsts(self) -> list[bytes]:
        allowed = [byte for byte in self.cursor.allowed() if byte not in (QUOTE, END, ord("\\"))]
        ascii_bytes = [bytes([byte]) for byte in allowed if byte < 0x80]
        firsts = [*ascii_bytes[: _MOST_FIRST // 2], *ascii_bytes[-_MOST_FIRST // 2 :]]
        wide = [each.encode() for each in "é漢\U0001f600" if self.cursor.fits(each.encode())]
        return list(dict.fromkeys(firsts + wide))

    def _longest(self) -> None:
        """Write characters as long as there may be any, up to the bound."""
        cursor = self.cursor
        for count in range(MOST_CHARACTERS):
            allowed = cursor.allowed()
            letters = [byte for byte in b"abcdefghijklmnopqrstuvwxyz" if byte in allowed]
            others = [b for b in allowed if b not in (QUOTE, ord("\\"), END) and b < 0x80]
            if letters:
                cursor.put(bytes([letters[count % len(letters)]]))
            elif others:
                cursor.put(bytes([others[count % len(others)]]))
            elif QUOTE in allowed:
                break
            else:
                cursor.put(first_character(cursor.completion(), escapes=True))
        self.finish_string()

    def write_number(self) -> None:
        """Write one of the odd numbers that fit, one of the schema's or next to it, or the rest."""
        place = ("number", self.pointers())
        cursor = self.cursor
        start = len(cursor.text)
        self.finish_number()
        shortest = bytes(cursor.text[start:])
        cursor.back_to(start)
        options = {shortest: None}
        for number in (*_near(self.texts.numbers), *_NUMBERS):
            if number not in options and cursor.fits(number) and self.ends_after(number):
                options.setdefault(number)
        labels = [text.decode() for text in options] + ["longest"]
        chosen = self._decide(place, labels, 0, None, 0)
        if chosen < len(options):
            cursor.put(list(options)[chosen])
        else:
            self._longest_number()
        if not self.is_plain(bytes(cursor.text[start:])):
            cursor.back_to(start)
            cursor.put(shortest)

    def _longest_number(self) -> None:
        """Write digits as long as there may be any, up to the bound."""
        cursor = self.cursor
        for _ in range(MOST_DIGITS):
            figures = [byte for byte in b"9876543210." if byte in cursor.allowed()]
            if not figures:
                break
            cursor.put(bytes(figures[:1]))
        if not self.number_may_end():
            self.finish_number()


def _near(numbers: Sequence[bytes]) -> Iterator[bytes]:
    """Return the numbers of a schema, and those next to them."""
    for number in numbers[:256]:
        yield number
        try:
            whole = int(number)
        except ValueError:
            continue
        if len(number) < 40:
            for more in _NEAR:
                value = 2 * whole + int(2 * float(more))
                sign, half = ("-" if value < 0 else ""), abs(value)
                yield f"{sign}{half // 2}{'.5' if half % 2 else ''}".encode()


def _first_of(completion: bytes, options: list[Option]) -> int:
    """Return the index of the option that begins a completion."""
    kinds = {ord('"'): "string", ord("{"): "object", ord("["): "array"}
    first = completion[0]
    kind = kinds.get(first, "number" if first in NUMBER else "literal")
    fitting = [
        index
        for index, option in enumerate(options)
        if option.kind == kind or (option.kind == "literal" and completion.startswith(option.text))
    ]
    return fitting[-1] if fitting else 0
