"""The tokens of random walks towards the end: closing values, and texts of the schema."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from maskbench.conformance.gates.patterns import likely_match

# The tokens that lead to the end of a value soonest outside of strings.
_CLOSERS = b'}],"0123456789ntfe-:.[{'


class Guide:
    """Chooses the tokens of a walk: any that is allowed, or those that lead to the end."""

    def __init__(self, schema: Any, single: Mapping[bytes, int]) -> None:
        """`single` has the tokens of one byte."""
        self.place = Place()
        self._plans = Plans(schema)
        self._single = single
        self._plan = b""

    def start(self) -> None:
        """Begin a walk."""
        self.place = Place()
        self._plan = b""
        self._plans.start()

    def append(self, text: bytes) -> None:
        """Append the text of a token."""
        self.place.append(text)

    def next(
        self,
        source: random.Random,
        bits: npt.NDArray[np.uint8],
        allowed: npt.NDArray[np.intp],
        *,
        ending: bool,
    ) -> int:
        """Return one of the `allowed` tokens; `bits` has them as a number per token, 0 or 1."""
        place = self.place
        token = int(allowed[source.randrange(len(allowed))])
        # Not always, because a path to the end can go in circles, such as ever more digits.
        if self._plan or (ending and source.random() < 0.95):
            if place.in_string and (place.opened or source.random() < 0.2) and not self._plan:
                self._plan = self._plans.next(source, place)
            chosen = self._towards_the_end(source, bits)
            token = token if chosen is None else chosen
        return token

    def _towards_the_end(self, source: random.Random, bits: npt.NDArray[np.uint8]) -> int | None:
        """Return a token of one byte, and drop the rest of the plan if it deviates."""
        single = self._single
        plan, self._plan = self._plan, b""
        if self.place.in_string:
            planned = single.get(plan[:1])
            if planned is not None and bits[planned]:
                self._plan = plan[1:]
                return planned
            quote = single.get(b'"')
            if quote is not None and bits[quote]:
                return quote
            short = [token for token in single.values() if bits[token]]
            return source.choice(short) if short else None
        for byte in _CLOSERS:
            token = single.get(bytes([byte]))
            if token is not None and bits[token]:
                return token
        return None


class Plans:
    """Texts for strings: names that objects need, and those in the schema."""

    def __init__(self, schema: Any) -> None:
        self._required = required_names(schema)
        self._next_required: dict[str | None, list[str]] = {}
        self._texts = sorted(set(_texts(schema)))
        self._patterns = sorted(set(_patterns(schema)))

    def start(self) -> None:
        """Forget which names were written."""
        self._next_required = {}

    def next(self, source: random.Random, place: Place) -> bytes:
        """Return a text to write next: one of the schema's, or one that its patterns match."""
        names = self._required.get(place.owner) if place.opened and place.in_key else None
        if names and source.random() < 0.9:
            # Each in turn, because an object may need them all.
            left = self._next_required.get(place.owner) or source.sample(names, len(names))
            text = left.pop()
            self._next_required[place.owner] = left
        elif self._patterns and source.random() < 0.5:
            text = likely_match(source, source.choice(self._patterns))
        elif place.opened and self._texts:
            text = source.choice(self._texts)
        else:
            return b""
        return json.dumps(text, ensure_ascii=False)[1:].encode(errors="replace")


class Place:
    """The text so far, and whether it stops inside a string."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.in_string = False
        self.opened = False
        """Whether the last byte opened a string."""
        self.in_key = False
        """Whether the last string is a key."""
        self._escaped = False
        self._open = b""
        self._owners: list[str | None] = []
        self._last = 0
        self._string = 0

    @property
    def owner(self) -> str | None:
        """The key whose value the innermost object is, or belongs to; None at the root."""
        return self._owners[-1] if self._owners else None

    def _opens(self, byte: int) -> None:
        key = None
        if self._last == ord(":"):
            key = self.text[self._string : self.text.rfind(b'"')].decode(errors="replace")
        elif self._owners:
            key = self._owners[-1]
        self._owners.append(key)
        self._open += bytes([byte])

    def append(self, text: bytes) -> None:
        """Append the text."""
        for byte in text:
            self.text.append(byte)
            self.opened = False
            if self._escaped:
                self._escaped = False
            elif self.in_string and byte == ord("\\"):
                self._escaped = True
            elif byte == ord('"'):
                self.in_string = not self.in_string
                self.opened = self.in_string
                if self.opened:
                    self._string = len(self.text)
                    self.in_key = self._open[-1:] == b"{" and self._last in b"{,"
            elif self.in_string:
                continue
            elif byte in b"{[":
                self._opens(byte)
            elif byte in b"}]":
                self._open = self._open[:-1]
                # Texts that are no JSON may close brackets that are not open.
                self._owners = self._owners[:-1]
            if byte not in b" \t\r\n":
                self._last = byte


def required_names(schema: Any) -> dict[str | None, list[str]]:
    """Return the required names of objects, by their property; None at the root."""
    found: dict[str | None, set[str]] = {None: set(_required_here(schema, schema, 8))}

    def visit(value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                visit(item)
        elif isinstance(value, dict):
            properties = value.get("properties")
            if isinstance(properties, dict):
                for name, member in properties.items():
                    found.setdefault(name, set()).update(_required_here(member, schema, 8))
            for member in value.values():
                visit(member)

    visit(schema)
    return {name: sorted(names) for name, names in found.items() if names}


def _required_here(schema: Any, root: Any, depth: int) -> Iterator[str]:
    """Return the names in `required` of a schema, of those in place, and of its items."""
    if not isinstance(schema, dict) or depth == 0:
        return
    required = schema.get("required")
    if isinstance(required, list):
        yield from (name for name in required if isinstance(name, str))
    for keyword in ("allOf", "anyOf", "oneOf", "items", "then", "else", "additionalProperties"):
        parts = schema.get(keyword)
        for part in parts if isinstance(parts, list) else [parts]:
            yield from _required_here(part, root, depth - 1)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target = root
        for step in reference[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            target = target.get(step) if isinstance(target, dict) else None
        yield from _required_here(target, root, depth - 1)


def _patterns(value: Any) -> Iterator[str]:
    """Return every pattern of a schema."""
    if isinstance(value, dict):
        for key, member in value.items():
            if key == "pattern" and isinstance(member, str):
                yield member
            if key == "patternProperties" and isinstance(member, dict):
                yield from member
            yield from _patterns(member)
    elif isinstance(value, list):
        for item in value:
            yield from _patterns(item)


def _texts(value: Any) -> Iterator[str]:
    """Return every string of a schema and every name in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from _texts(member)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
