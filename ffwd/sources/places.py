"""From a JSON pointer to the line and the column of a JSON text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from json import JSONDecodeError, JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]

_SPACE = re.compile(r"[ \t\n\r]*")


def locate(text: str, pointer: str) -> tuple[int, int] | None:
    """Return the position of a pointer's value, from 1; None if the text lacks it.

    Pointers into other documents, which begin with their URI, have no place in this one.
    """
    if pointer and not pointer.startswith("/"):
        return None
    try:
        place = _find(text, [_unescaped(step) for step in pointer.split("/")[1:]])
    except (JSONDecodeError, IndexError, RecursionError):
        return None
    return None if place is None else line_and_column(text, place)


def locate_all(text: str, pointers: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the positions of many pointers' values as `locate` does, in one pass over the text.

    Pointers whose values the text lacks have none.
    """
    root = _Wanted()
    for pointer in pointers:
        if not pointer or pointer.startswith("/"):
            node = root
            for step in pointer.split("/")[1:]:
                node = node.below.setdefault(_unescaped(step), _Wanted())
            node.pointers.append(pointer)
    found: dict[str, int] = {}
    # Behind an error, values stay without a position.
    with suppress(JSONDecodeError, IndexError, RecursionError):
        _visit(text, _skip(text, 0), root, found)
    ends = [match.start() for match in re.finditer("\n", text)]
    places = {}
    for pointer, place in found.items():
        before = bisect_left(ends, place)
        places[pointer] = (before + 1, place - (ends[before - 1] if before else -1))
    return places


@dataclass(slots=True)
class _Wanted:
    """The pointers that end at a value, and those into it by their next step."""

    pointers: list[str] = field(default_factory=list)
    below: dict[str, _Wanted] = field(default_factory=dict)

    def all(self) -> Iterator[str]:
        yield from self.pointers
        for one in self.below.values():
            yield from one.all()


def _visit(text: str, place: int, wanted: _Wanted, found: dict[str, int]) -> int:
    """Note the values of the wanted pointers in the value at an index; return the index after."""
    for pointer in wanted.pointers:
        found[pointer] = place
    opening = text[place : place + 1]
    if not wanted.below or opening not in ("{", "["):
        return _after(text, place)
    close = "}" if opening == "{" else "]"
    place, index, seen = _skip(text, place + 1), 0, set()
    while text[place] != close:
        if opening == "{":
            if text[place] != '"':
                raise JSONDecodeError("expected a name", text, place)
            key, place = scanstring(text, place + 1)
            place = _skip(text, place)
            if text[place] != ":":
                raise JSONDecodeError("expected a colon", text, place)
            place = _skip(text, place + 1)
        else:
            key = str(index)
            index += 1
        inside = wanted.below.get(key)
        if inside is None:
            place = _after(text, place)
        else:
            if key in seen:
                # The last of several members of a name is the one that counts.
                for pointer in inside.all():
                    found.pop(pointer, None)
            seen.add(key)
            place = _skip(text, _visit(text, place, inside, found))
        if text[place] == ",":
            place = _skip(text, place + 1)
    return place + 1


def syntax_error(text: str) -> tuple[int, int] | None:
    """Return the offset at which a text stops being JSON; None if it is JSON, or too deep."""
    try:
        JSONDecoder().decode(text)
    except JSONDecodeError as error:
        return error.lineno, error.colno
    except (RecursionError, ValueError):
        return None
    return None


def line_and_column(text: str, place: int) -> tuple[int, int]:
    """Return the line and column of an index into a text."""
    return text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)


def caret(text: str, line: int, column: int, *, width: int = 76) -> str:
    """Return the line of a position with a caret below it."""
    source = text.split("\n")[line - 1].rstrip("\r")
    first = max(0, column - 1 - width // 2)
    cut = source[first : first + width]
    # Tabs stay tabs, so that the caret stands below its character.
    before = "".join("\t" if c == "\t" else " " for c in cut[: column - 1 - first])
    return f"  {cut}\n  {before}^"


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _find(text: str, steps: list[str]) -> int | None:
    place = _skip(text, 0)
    for step in steps:
        opening = text[place : place + 1]
        if opening == "{":
            found = _member(text, place, step)
        elif opening == "[" and step.isascii() and step.isdigit():
            found = _item(text, place, int(step))
        else:
            found = None
        if found is None:
            return None
        place = found
    return place


def _member(text: str, place: int, name: str) -> int | None:
    """Return the last of several members of a name, which is the one that counts."""
    found = None
    place = _skip(text, place + 1)
    while text[place] == '"':
        key, place = scanstring(text, place + 1)
        place = _skip(text, _skip(text, place) + 1)
        if key == name:
            found = place
        place = _after(text, place)
        if text[place] == "}":
            break
        place = _skip(text, place + 1)
    return found


def _item(text: str, place: int, index: int) -> int | None:
    place = _skip(text, place + 1)
    while text[place] != "]":
        if index == 0:
            return place
        index -= 1
        place = _after(text, place)
        if text[place] == ",":
            place = _skip(text, place + 1)
    return None


_DECODER = JSONDecoder()


def _after(text: str, place: int) -> int:
    """Return the index after a value."""
    return _skip(text, _DECODER.raw_decode(text, place)[1])


def _skip(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    assert match is not None
    return match.end()
