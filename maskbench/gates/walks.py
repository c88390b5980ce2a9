"""Random walks through the masks of an engine: each must end in a valid document.

A walk takes any token that its mask allows, uniformly, for some steps. Then it goes for the end: it
closes what it can, prefers short values, and spells names and texts that the schema mentions, since
a required name would hardly come up by chance among all the keys that may come.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import ffwd
from maskbench.engines.base import Session
from maskbench.gates.judges import Judges, RepeatedKeyError, UnjudgeableError, parse
from maskbench.gates.patterns import likely_match

MAX_STEPS = 20_000
MAX_FREE_STEPS = 80
RETRIES = 1
# What leads to the end of a value soonest, where no string is being written.
_CLOSERS = b'}],"0123456789ntfe-:.[{'


class Ending(str, Enum):
    """How a walk ended."""

    VALID = "valid"
    """At the end, in a document that both validators accept (or that nobody has judged yet)."""

    INVALID = "invalid by both validators"
    INVALID_RUST = "invalid by jsonschema-rs only"
    INVALID_PYTHON = "invalid by jsonschema only"
    NOT_JSON = "not JSON"
    REPEATED_KEY = "a key twice"
    EMPTY_MASK = "empty mask"
    """No token is allowed, not even the end."""

    REFUSED_TOKEN = "accept refused"
    """A token that the mask allows is not accepted."""

    NO_TEXT = "token without text"
    """The mask allows a token that is no text, such as a special one, and does not end."""

    FAILED = "failed"
    """The engine raised or reported an error in the midst of it."""

    ENDLESS = "too long"
    """No end within the steps, also when tried again without free steps."""

    UNJUDGED = "not judged"
    """A document that the validators cannot be asked about."""


DEAD_ENDS = frozenset({Ending.EMPTY_MASK, Ending.REFUSED_TOKEN, Ending.NO_TEXT})
DISPUTED = frozenset({Ending.INVALID_RUST, Ending.INVALID_PYTHON})
INVALID = frozenset({Ending.INVALID, Ending.NOT_JSON, Ending.REPEATED_KEY})
"""Beyond dispute."""


@dataclass(frozen=True)
class Walk:
    """A walk's ending, with its tokens and text so far and what is wrong with it."""

    ending: Ending
    text: bytes
    detail: str = ""
    tokens: tuple[int, ...] = ()


class Tokens:
    """The texts of a vocabulary's tokens (None for one without), and its tokens of one byte."""

    def __init__(
        self,
        texts: Sequence[bytes | None],
        ends: Iterable[int],
        bitmask: npt.NDArray[np.int32],
    ) -> None:
        """`bitmask` is where a session writes its masks, shape `(ceil(len(texts) / 32),)`."""
        self.texts = texts
        self.single = {text: t for t, text in enumerate(texts) if text and len(text) == 1}
        self.ends = frozenset(ends)
        self._bytes = bitmask.view(np.uint8)

    def allowed(self) -> npt.NDArray[np.uint8]:
        """The mask as one number a token, 0 or 1."""
        bits = np.unpackbits(self._bytes, bitorder="little")
        return bits[: len(self.texts)]


class VocabularyTokens(Tokens):
    """Those of a vocabulary of ffwd's, with `rows` for one mask."""

    def __init__(self, vocabulary: ffwd.Vocabulary) -> None:
        texts = [vocabulary.token_bytes(token) for token in range(vocabulary.vocab_size)]
        self.vocabulary = vocabulary
        self.rows = ffwd.allocate_bitmask(1, len(texts))
        super().__init__(texts, vocabulary.eos_token_ids, self.rows[0])


def byte_tokens() -> VocabularyTokens:
    """Single bytes, token b being byte b, and an end."""
    texts = [*(bytes([byte]) for byte in range(256)), None]
    return VocabularyTokens(ffwd.Vocabulary(texts, eos_token_ids=[256]))


def start_of(compiled: ffwd.CompiledGrammar, tokens: VocabularyTokens) -> Callable[[], Session]:
    """What begins a walk of ffwd's without an engine around it."""

    def start() -> Session:
        matcher = compiled.matcher()
        return Session(
            fill=partial(matcher.fill_bitmask, tokens.rows),
            accept=matcher.accept_token,
            problem=lambda: None,
        )

    return start


def judged(walk: Walk, judges: Judges) -> Walk:
    """The walk with the verdict of both validators, if it had come to its end."""
    if walk.ending is not Ending.VALID:
        return walk
    try:
        instance = parse(walk.text.decode(), exactly=judges.exactly)
    except UnjudgeableError as error:
        return replace(walk, ending=Ending.UNJUDGED, detail=str(error))
    except RepeatedKeyError as error:
        return replace(walk, ending=Ending.REPEATED_KEY, detail=str(error))
    except (ValueError, RecursionError) as error:
        return replace(walk, ending=Ending.NOT_JSON, detail=str(error))
    try:
        rust, python = judges.refusals(instance)
    except Exception as error:
        # Whatever a validator gives up with, there is no verdict.
        detail = f"{type(error).__name__}: {error}"
        return replace(walk, ending=Ending.UNJUDGED, detail=detail)
    if not rust and not python:
        return walk
    ending = Ending.INVALID
    if not (rust and python):
        ending = Ending.INVALID_RUST if rust else Ending.INVALID_PYTHON
    return replace(walk, ending=ending, detail="; ".join(rust + python))


class Walker:
    """Walks through the masks of one compiled schema."""

    def __init__(
        self,
        schema: Any,
        start: Callable[[], Session],
        tokens: Tokens,
        max_steps: int = MAX_STEPS,
    ) -> None:
        """`start` begins a session, whose masks are written to the bitmask of `tokens`."""
        self._start = start
        self._tokens = tokens
        self._plans = Plans(schema)
        self._max_steps = max_steps

    def walk(self, source: random.Random) -> Walk:
        """One walk, not judged. What the engine raises is not caught."""
        walk = self._free_walk(source, source.randint(0, MAX_FREE_STEPS))
        for _ in range(RETRIES):
            if walk.ending is not Ending.ENDLESS:
                break
            walk = self._free_walk(source, 0)
        return walk

    def _free_walk(self, source: random.Random, free_steps: int) -> Walk:
        tokens = self._tokens
        session = self._start()
        self._plans.start()
        place = Place()
        taken: list[int] = []
        plan = b""

        def ended(ending: Ending, detail: str = "") -> Walk:
            problem = session.problem()
            if problem is not None:
                ending, detail = Ending.FAILED, problem
            return Walk(ending, bytes(place.text), detail, tuple(taken))

        for step in range(self._max_steps):
            session.fill()
            bits = tokens.allowed()
            allowed = np.flatnonzero(bits)
            if not len(allowed):
                return ended(Ending.EMPTY_MASK, "no token is allowed")
            if step >= free_steps or len(allowed) <= len(tokens.ends):
                end = next((token for token in tokens.ends if bits[token]), None)
                if end is not None:
                    if not session.accept(end):
                        return ended(Ending.REFUSED_TOKEN, "the mask allows the end")
                    return ended(Ending.VALID)
            token = int(allowed[source.randrange(len(allowed))])
            # Not always, for a way out can go in circles, such as ever more digits.
            if plan or (step >= free_steps and source.random() < 0.95):
                if place.in_string and (place.opened or source.random() < 0.2) and not plan:
                    plan = self._plans.next(source, place)
                chosen, plan = self._towards_the_end(source, bits, place, plan)
                token = token if chosen is None else chosen
            text = tokens.texts[token]
            if text is None:
                if token in tokens.ends:
                    continue
                return ended(Ending.NO_TEXT, f"the mask allows token {token}")
            if not session.accept(token):
                return ended(Ending.REFUSED_TOKEN, f"the mask allows token {token}: {text!r}")
            place.append(text)
            taken.append(token)
        return ended(Ending.ENDLESS)

    def _towards_the_end(
        self, source: random.Random, bits: npt.NDArray[np.uint8], place: Place, plan: bytes
    ) -> tuple[int | None, bytes]:
        """A token of one byte, and the rest of the text that is being spelled."""
        single = self._tokens.single
        if place.in_string:
            planned = single.get(plan[:1])
            if planned is not None and bits[planned]:
                return planned, plan[1:]
            quote = single.get(b'"')
            if quote is not None and bits[quote]:
                return quote, b""
            short = [token for token in single.values() if bits[token]]
            return (source.choice(short) if short else None), b""
        for byte in _CLOSERS:
            token = single.get(bytes([byte]))
            if token is not None and bits[token]:
                return token, b""
        return None, b""


class Plans:
    """Texts to spell in strings: names that objects need, and what the schema mentions."""

    def __init__(self, schema: Any) -> None:
        self._required = required_names(schema)
        self._next_required: dict[str | None, list[str]] = {}
        self._texts = sorted(set(_texts(schema)))
        self._patterns = sorted(set(_patterns(schema)))

    def start(self) -> None:
        """Forgets which names were spelled."""
        self._next_required = {}

    def next(self, source: random.Random, place: Place) -> bytes:
        """A text to spell from here on: one of the schema's, or what its patterns search for."""
        names = self._required.get(place.owner) if place.opened and place.in_key else None
        if names and source.random() < 0.9:
            # Each in turn, for an object may need them all.
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
        """Goes on with the text."""
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
                self._owners.pop()
            if byte not in b" \t\r\n":
                self._last = byte


def required_names(schema: Any) -> dict[str | None, list[str]]:
    """What objects need, by the name of the property whose value they are; None at the root."""
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
    """Names in the `required` of a schema, of those that apply in place, and of its items."""
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
    """Every pattern of a schema."""
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
    """Every string of a schema and every name in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from _texts(member)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
