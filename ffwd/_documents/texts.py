"""The names and values that a schema lists: candidates that are tried against its matcher."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from ffwd._documents.cursor import quoted

_MOST = 4096
"""Of names, of strings and of numbers; a schema with more has the first of each."""

_LONGEST = 512
"""Bytes of one."""


class Texts:
    """The names and values in the text of a schema.

    Attributes:
        names: Strings that may be names of properties, as JSON, in the order of the schema.
        strings: All other strings and these, as JSON.
        numbers: All numbers, as the schema spells them.

    """

    def __init__(self, schemas: Iterable[str]) -> None:
        names: dict[bytes, None] = {}
        strings: dict[bytes, None] = {}
        numbers: dict[bytes, None] = {}
        for schema in schemas:
            for kind, text in _scalars(schema):
                found = {"name": names, "string": strings, "number": numbers}[kind]
                if len(found) < _MOST and len(text) <= _LONGEST:
                    found.setdefault(text)
        # An array of strings may be names that are required, which no other place lists.
        self.names = tuple(dict.fromkeys([*names, *strings]))[:_MOST]
        self.strings = tuple(dict.fromkeys([*strings, *names]))[:_MOST]
        self.numbers = tuple(numbers)


class _Spelled(str):
    """A number as it is written."""

    __slots__ = ()


def _scalars(schema: str) -> Iterator[tuple[str, bytes]]:

    try:
        value = json.loads(
            schema,
            object_pairs_hook=lambda pairs: ("object", pairs),
            parse_int=_Spelled,
            parse_float=_Spelled,
        )
    except RecursionError:
        # Such a schema has no candidates; its documents are valid without them.
        return
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, _Spelled):
            yield "number", value.encode()
        elif isinstance(value, str):
            if _is_text(value):
                yield "string", quoted(value)
        elif isinstance(value, list):
            left.extend(reversed(value))
        elif isinstance(value, tuple):
            for name, _ in value[1]:
                if _is_text(name):
                    yield "name", quoted(name)
            left.extend(each for _, each in reversed(value[1]))


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
