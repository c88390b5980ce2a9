"""Strings that know the origin of each of their characters.

A template cuts, trims, joins and searches the texts of messages freely. `Tracked` behaves like a
`str` with the same characters, and keeps an *origin* for each. After the rendering it is known
which `<|im_end|>` comes from the template and which from a user.

The result of an operation without an exact rule here is `FUZZY` as a whole: it contains some of a
caller's text at unknown positions. A caller's text never counts as the template's.
"""

# ruff: noqa: D102 The methods behave as those of `str`.

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, SupportsIndex

from jinja2 import Undefined
from markupsafe import Markup, escape

TEMPLATE = 0
"""Written by the template."""
CALLER = 1
"""Of a tool, a document or a variable."""
FUZZY = 2
"""By an operation whose result cannot be told apart."""
TAG = 3
"""The end of the message that is to be continued."""
_FIRST_MESSAGE = 4


def origin_of_message(index: int, *, trusted: bool) -> int:
    """Return the origin of a message's characters."""
    return _FIRST_MESSAGE + 2 * index + trusted


def message_of(origin: int) -> int | None:
    """Return the index of the message, None for other origins."""
    return (origin - _FIRST_MESSAGE) // 2 if origin >= _FIRST_MESSAGE else None


def may_control(origin: int) -> bool:
    """Return whether control tokens may be found in such characters."""
    return origin == TEMPLATE or (origin >= _FIRST_MESSAGE and (origin - _FIRST_MESSAGE) % 2 == 1)


def is_tag(text: str, place: int) -> bool:
    """Return whether the `TAG` is at a position, as far as origins show.

    A template may also write it (LFM2.5's does, after tool calls).
    """
    return not isinstance(text, Tracked) or text._origins[place] in (TAG, TEMPLATE)


class UntrackableError(Exception):
    """Text was converted to a value without characters."""


class Tracked(str):
    """Text of which at least one character is not the template's."""

    __slots__ = ("_markup", "_origins")
    _origins: "array[int]"
    _markup: bool
    """Whether jinja's `Markup` stands here, which escapes what is added to it."""

    def _plain(self) -> str:
        return Markup(raw(self)) if self._markup else raw(self)

    def __str__(self) -> str:
        return make(raw(self), self._origins) if self._markup else self

    def __iter__(self) -> Iterator[str]:
        for index in range(len(self)):
            yield self[index]

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        text = str.__getitem__(self, key)
        if isinstance(key, slice):
            return make(text, self._origins[key], self._markup)
        return make(text, array("I", (self._origins[key.__index__()],)), self._markup)

    def __add__(self, other: str) -> str:
        result: str = add(self, other)
        return result

    def __radd__(self, other: str) -> str:
        result: str = add(other, self)
        return result

    def __mul__(self, count: SupportsIndex) -> str:
        return make(raw(self) * count, self._origins * count.__index__(), self._markup)

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> str:
        from ffwd.chat.jinja.formatting import percent

        result: str = percent(self, values)
        return result

    def __rmod__(self, template: str) -> str:
        from ffwd.chat.jinja.formatting import percent

        result: str = percent(template, self)
        return result

    def __format__(self, spec: str) -> str:
        return self if not spec else fuzzy(format(raw(self), spec))

    # ------------------------------------------------------------------ a stretch of the text

    def strip(self, chars: str | None = None) -> str:
        chars = raw(chars)
        start = len(self) - len(str.lstrip(self, chars))
        return self[start : start + len(str.strip(self, chars))]

    def lstrip(self, chars: str | None = None) -> str:
        return self[len(self) - len(str.lstrip(self, raw(chars))) :]

    def rstrip(self, chars: str | None = None) -> str:
        return self[: len(str.rstrip(self, raw(chars)))]

    def removeprefix(self, prefix: str, /) -> str:
        return self[len(prefix) :] if str.startswith(self, prefix) else self

    def removesuffix(self, suffix: str, /) -> str:
        return self[: -len(suffix)] if suffix and str.endswith(self, suffix) else self

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._pieces(raw(self).split(raw(sep), maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._pieces(raw(self).rsplit(raw(sep), maxsplit), sep)

    def _pieces(self, pieces: list[str], sep: str | None) -> list[str]:
        text = raw(self)
        found, at = [], 0
        for piece in pieces:
            # Pieces between white space start without any, so the next position is theirs.
            start = at if sep is not None else text.index(piece, at)
            found.append(self[start : start + len(piece)])
            at = start + len(piece) + (0 if sep is None else len(sep))
        return found

    def splitlines(self, keepends: bool = False) -> list[str]:
        found, at = [], 0
        for line, whole in zip(
            raw(self).splitlines(keepends), raw(self).splitlines(True), strict=True
        ):
            found.append(self[at : at + len(line)])
            at += len(whole)
        return found

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        return self._around(raw(self).partition(raw(sep)))

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:
        return self._around(raw(self).rpartition(raw(sep)))

    def _around(self, parts: tuple[str, str, str]) -> tuple[str, str, str]:
        first, second = len(parts[0]), len(parts[0]) + len(parts[1])
        return self[:first], self[first:second], self[second:]

    # ------------------------------------------------------------------------ other characters

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> str:
        text, old = raw(self), raw(old)
        if not old or self._markup:
            return fuzzy(self._plain().replace(old, plain(new), count))  # type: ignore[no-any-return]
        left = count.__index__()
        found: list[str] = []
        at = 0
        while left != 0 and (place := text.find(old, at)) >= 0:
            found += (self[at:place], new)
            at = place + len(old)
            left -= 1
        return concat([*found, self[at:]])

    def join(self, items: Iterable[str], /) -> str:
        items = list(items)
        self._plain().join(plain(items))  # raises what the original does
        if self._markup:
            items = [escaped(item) for item in items]
        found: list[str] = []
        for item in items:
            found += (self, item)
        return concat(found[1:], markup=self._markup)

    def _same_length(self, text: str) -> str:
        if len(text) != len(self):
            return fuzzy(text)  # type: ignore[no-any-return]
        return make(text, self._origins, self._markup)

    def upper(self) -> str:
        return self._same_length(str.upper(self))

    def lower(self) -> str:
        return self._same_length(str.lower(self))

    def capitalize(self) -> str:
        return self._same_length(str.capitalize(self))

    def title(self) -> str:
        return self._same_length(str.title(self))

    def swapcase(self) -> str:
        return self._same_length(str.swapcase(self))

    def casefold(self) -> str:
        return self._same_length(str.casefold(self))

    def center(self, width: SupportsIndex, fill: str = " ", /) -> str:
        return fuzzy(self._plain().center(width, raw(fill)))  # type: ignore[no-any-return]

    def ljust(self, width: SupportsIndex, fill: str = " ", /) -> str:
        return fuzzy(self._plain().ljust(width, raw(fill)))  # type: ignore[no-any-return]

    def rjust(self, width: SupportsIndex, fill: str = " ", /) -> str:
        return fuzzy(self._plain().rjust(width, raw(fill)))  # type: ignore[no-any-return]

    def zfill(self, width: SupportsIndex, /) -> str:
        return fuzzy(self._plain().zfill(width))  # type: ignore[no-any-return]

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str:
        return fuzzy(self._plain().expandtabs(tabsize))  # type: ignore[no-any-return]

    def translate(self, table: Any, /) -> str:
        return fuzzy(self._plain().translate(plain(table)))  # type: ignore[no-any-return]

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        raise UntrackableError("the template encodes a message's text as bytes")


def raw(text: Any) -> Any:
    """Return a string as exactly `str`; anything else unchanged."""
    if type(text) is str or not isinstance(text, str):
        return text
    return str.__str__(text)


def make(text: str, origins: "array[int]", markup: bool = False) -> str:
    """Return a string with these origins; no `Tracked` if all are the template's."""
    if not origins or not any(origins):
        return Markup(text) if markup else text
    made = str.__new__(Tracked, raw(text))
    made._origins = origins
    made._markup = markup
    return made


def uniform(text: str, origin: int) -> str:
    """Return a string with a single origin."""
    return make(raw(text), array("I", (origin,)) * len(text))


def origins_of(text: str) -> "array[int]":
    """Return the origin of each character."""
    return text._origins if isinstance(text, Tracked) else array("I", (TEMPLATE,)) * len(text)


def is_markup(text: Any) -> bool:
    """Return whether jinja's `Markup` occurs here."""
    return text._markup if isinstance(text, Tracked) else isinstance(text, Markup)


def tracks(value: Any) -> bool:
    """Return whether there is tracked text in a value."""
    if isinstance(value, Tracked):
        return True
    if isinstance(value, Mapping):
        return any(tracks(key) or tracks(item) for key, item in value.items())
    return isinstance(value, (list, tuple, set)) and any(map(tracks, value))


def may_track(value: Any) -> bool:
    """Return whether a value contains tracked text, or cannot be searched."""
    if value is None or isinstance(value, (bool, int, float, range, Undefined)):
        return False
    if type(value) in (list, tuple, dict):
        items = [*value, *value.values()] if isinstance(value, dict) else value
        return any(map(may_track, items))
    return not isinstance(value, str) or isinstance(value, Tracked)


def plain(value: Any) -> Any:
    """Return the value with plain strings."""
    if isinstance(value, Tracked):
        return value._plain()
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return value


def mark(value: Any, origin: int) -> Any:
    """Return the value with one origin for all of its strings, including keys."""
    if isinstance(value, str):
        return uniform(value, origin)
    if isinstance(value, dict):
        return {mark(key, origin): mark(item, origin) for key, item in value.items()}
    if isinstance(value, list):
        return [mark(item, origin) for item in value]
    if isinstance(value, tuple):
        return tuple(mark(item, origin) for item in value)
    return value


def fuzzy(value: Any) -> Any:
    """Return the result of an operation without a rule: its strings are `FUZZY`."""
    if isinstance(value, (bytes, bytearray)):
        raise UntrackableError("the template turns a message's text into bytes")
    if isinstance(value, str) and not isinstance(value, Tracked):
        return make(raw(value), array("I", (FUZZY,)) * len(value), isinstance(value, Markup))
    if isinstance(value, list):
        return [fuzzy(item) for item in value]
    if isinstance(value, tuple):
        return tuple(fuzzy(item) for item in value)
    return value


def concat(items: Iterable[str], *, markup: bool = False) -> str:
    """Return the concatenated strings."""
    items = list(items)
    text = "".join(items)
    if not any(isinstance(item, Tracked) for item in items):
        return Markup(text) if markup else text
    origins = array("I")
    for item in items:
        origins.extend(origins_of(item))
    return make(text, origins, markup)


def expand(text: str, spelling: Callable[[str], str], *, markup: bool = False) -> str:
    """Return each character in another form, of the same origin."""
    written: list[str] = []
    origins = array("I")
    for character, origin in zip(raw(text), origins_of(text), strict=True):
        written.append(spelling(character))
        origins.extend((origin,) * len(written[-1]))
    return make("".join(written), origins, markup)


def escaped(text: str) -> str:
    """Return the result of `markupsafe.escape`."""
    if is_markup(text):
        return text
    if not isinstance(text, Tracked):
        return escape(text)
    return expand(text, lambda character: str(escape(character)), markup=True)


def add(left: Any, right: Any) -> Any:
    """Return `left + right`, where one of them is tracked."""
    text = plain(left) + plain(right)  # raises what the original does
    if isinstance(text, Markup):
        left, right = escaped(left), escaped(right)
    return concat([left, right], markup=isinstance(text, Markup))
