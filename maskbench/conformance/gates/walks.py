"""Random walks through the masks of an engine: each must end in a valid document.

A walk takes any token that its mask allows, uniformly, for some steps. Then it heads for the end:
it closes open values, and prefers short ones. It also writes names and texts of the schema, because
chance would rarely choose a required name among all allowed keys.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import ffwd
from maskbench.conformance.gates.guides import Guide
from maskbench.conformance.gates.judges import Judges, RepeatedKeyError, UnjudgeableError, parse
from maskbench.engines.base import Session

MAX_STEPS = 20_000
MAX_FREE_STEPS = 80
PROBES = 2
"""Allowed tokens, and as many others, that are compared with what is accepted at each step."""

RETRIES = 1


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

    LACKED_TOKEN = "mask lacks a token"
    """A token that the mask does not allow would be accepted."""

    NO_TEXT = "token without text"
    """The mask allows a token that is no text, such as a special one, and does not end."""

    FAILED = "failed"
    """The engine raised or reported an error in the midst of it."""

    ENDLESS = "too long"
    """No end within the steps, also when tried again without free steps."""

    UNJUDGED = "not judged"
    """A document that the validators cannot be asked about."""


DEAD_ENDS = frozenset(
    {Ending.EMPTY_MASK, Ending.REFUSED_TOKEN, Ending.LACKED_TOKEN, Ending.NO_TEXT}
)
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
        """Return the mask as one number per token, 0 or 1."""
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
    """Return single bytes, token b being byte b, and an end."""
    texts = [*(bytes([byte]) for byte in range(256)), None]
    return VocabularyTokens(ffwd.Vocabulary(texts, eos_token_ids=[256]))


def start_of(compiled: ffwd.CompiledGrammar, tokens: VocabularyTokens) -> Callable[[], Session]:
    """Return the start of an ffwd walk without an engine around it."""

    def start() -> Session:
        matcher = compiled.matcher()
        return Session(
            fill=partial(matcher.fill_bitmask, tokens.rows),
            accept=matcher.accept_token,
            problem=lambda: None,
            validate=matcher.validate_tokens,
        )

    return start


def judged(walk: Walk, judges: Judges) -> Walk:
    """Return the walk with the verdict of both validators, if it has reached its end."""
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
        # If a validator fails, there is no verdict.
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
        self._guide = Guide(schema, tokens.single)
        self._max_steps = max_steps

    def walk(self, source: random.Random) -> Walk:
        """Return one walk, not judged. Errors of the engine are not caught."""
        walk = self._free_walk(source, source.randint(0, MAX_FREE_STEPS))
        for _ in range(RETRIES):
            if walk.ending is not Ending.ENDLESS:
                break
            walk = self._free_walk(source, 0)
        return walk

    def finish(self, source: random.Random, taken: Sequence[int]) -> Walk:
        """Return a walk that starts with these tokens and then heads for the end."""
        return self._free_walk(source, 0, taken)

    def _free_walk(
        self, source: random.Random, free_steps: int, before: Sequence[int] = ()
    ) -> Walk:
        tokens = self._tokens
        session = self._start()
        guide = self._guide
        guide.start()
        taken: list[int] = []

        def ended(ending: Ending, detail: str = "") -> Walk:
            problem = session.problem()
            if problem is not None:
                ending, detail = Ending.FAILED, problem
            return Walk(ending, bytes(guide.place.text), detail, tuple(taken))

        for token in before:
            if not session.accept(token):
                return ended(Ending.REFUSED_TOKEN, f"token {token}: {tokens.texts[token]!r}")
            guide.append(tokens.texts[token] or b"")
            taken.append(token)
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
            contradiction = self._contradiction(session, bits, allowed, step)
            if contradiction is not None:
                return ended(*contradiction)
            token = guide.next(source, bits, allowed, ending=step >= free_steps)
            text = tokens.texts[token]
            if text is None:
                if token in tokens.ends:
                    continue
                return ended(Ending.NO_TEXT, f"the mask allows token {token}")
            if not session.accept(token):
                return ended(Ending.REFUSED_TOKEN, f"the mask allows token {token}: {text!r}")
            guide.append(text)
            taken.append(token)
        return ended(Ending.ENDLESS)

    def _contradiction(
        self,
        session: Session,
        bits: npt.NDArray[np.uint8],
        allowed: npt.NDArray[np.intp],
        step: int,
    ) -> tuple[Ending, str] | None:
        """Return how the mask differs from what is accepted, for some tokens.

        None also where the engine cannot be asked without going on.
        """
        if session.validate is None:
            return None
        # Drawn separately, so that a walk does not depend on the checked tokens.
        source = random.Random(step)
        probed = [int(token) for token in source.choices(allowed, k=PROBES)]
        probed += [source.randrange(len(bits)) for _ in range(PROBES)]
        for token in probed:
            text = self._tokens.texts[token]
            if text is None:
                continue
            if bool(session.validate([token])) != bool(bits[token]):
                ending = Ending.REFUSED_TOKEN if bits[token] else Ending.LACKED_TOKEN
                return ending, f"token {token}: {text!r}"
        return None
