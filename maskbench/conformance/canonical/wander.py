"""Random continuations of a sequence to its end, token by token.

As `maskbench.conformance.gates.walks`, but with tokens of any length, for canonical masks seldom
allow single bytes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from time import thread_time_ns

import numpy as np
from numpy.typing import NDArray

import ffwd
from maskbench.conformance.gates.guides import Place, Plans
from maskbench.conformance.gates.walks import VocabularyTokens

MAX_STEPS = 600
# Listing all of a mask's tokens takes longer than some draws among all tokens.
_DRAWS = 16

_OPENING, _CLOSING = b"[{", b"]}"
# The tokens that lead to the end of a value soonest outside of strings.
_FIRST = b'}],"0123456789ntfe-:.[{'
_PUNCTUATION = frozenset(b'}]{[,:"')


@dataclass(frozen=True)
class Wandered:
    """The tokens that were chosen, without an end token; whether the end was reached."""

    tokens: list[int]
    finished: bool


class Wanderer:
    """Chooses tokens under the masks of matchers of one vocabulary."""

    def __init__(self, tokens: VocabularyTokens) -> None:
        self._tokens = tokens
        self.by_text: dict[bytes, list[int]] = {}
        for token, text in enumerate(tokens.texts):
            if text:
                self.by_text.setdefault(text, []).append(token)
        self._longest = max(map(len, self.by_text), default=0)
        self._ends = list(tokens.ends)
        self.mask_us: Counter[int] = Counter()
        """Masks by their processor time in microseconds, rounded up to two digits."""
        short = [text for text in self.by_text if text[0] in _FIRST and self._is_plain(text)]
        self._outside = self._ids(sorted(short, key=_cost))
        quoted = [text for text in short if text[:1] == b'"']
        self._inside = self._ids(sorted(quoted, key=_cost))

    def wander(
        self,
        matcher: ffwd.Matcher,
        text: bytes,
        plans: Plans,
        source: random.Random,
        free_steps: int,
        *,
        forced: bool = False,
    ) -> Wandered:
        """Continue `text`: some steps uniformly at random, then towards the end.

        `forced`: takes fast-forward tokens where there are any, as a generation loop does.
        """
        place = Place()
        place.append(text)
        plans.start()
        plan = b""
        chosen: list[int] = []
        for step in range(MAX_STEPS):
            if forced and (following := matcher.fast_forward_tokens()):
                self._accept(matcher, following, place)
                chosen += following
                plan = b""
            bits = self.allowed(matcher)
            can_end = bool(bits[self._ends].any())
            if can_end and step >= free_steps:
                return Wandered(chosen, True)
            bits[self._ends] = False
            token = None
            # Not always, because a path to the end can go in circles, such as ever more digits.
            if plan or (step >= free_steps and source.random() < 0.95):
                if place.in_string and place.opened and not plan:
                    plan = plans.next(source, place)
                token, plan = self._towards_the_end(bits, place, plan)
            if token is None:
                token = _drawn(bits, source)
            if token is None:
                return Wandered(chosen, can_end)
            self._accept(matcher, [token], place)
            chosen.append(token)
        return Wandered(chosen, False)

    def _accept(self, matcher: ffwd.Matcher, tokens: list[int], place: Place) -> None:
        if not matcher.accept_tokens(tokens):
            raise RuntimeError(f"tokens {tokens} were offered, and are refused")
        for token in tokens:
            place.append(self._tokens.texts[token] or b"")

    def allowed(self, matcher: ffwd.Matcher) -> NDArray[np.bool_]:
        """Return whether each token is allowed."""
        before = thread_time_ns()
        matcher.fill_bitmask(self._tokens.rows)
        self.mask_us[_rounded((thread_time_ns() - before) // 1000 + 1)] += 1
        words = self._tokens.rows[0].view(np.uint8)
        return np.unpackbits(words, bitorder="little").view(np.bool_)

    def _towards_the_end(
        self, bits: NDArray[np.bool_], place: Place, plan: bytes
    ) -> tuple[int | None, bytes]:
        """Return a token that leads to the end, and the rest of the plan."""
        # A quote alone is seldom the token that ends a string, so its end is searched below.
        if place.in_string and plan != b'"':
            for length in range(min(len(plan), self._longest), 0, -1):
                for token in self.by_text.get(plan[:length], ()):
                    if bits[token]:
                        return token, plan[length:]
        order = self._inside if place.in_string else self._outside
        allowed = order[bits[order]]
        return (int(allowed[0]) if len(allowed) else None), b""

    def _ids(self, texts: Iterable[bytes]) -> NDArray[np.intp]:
        return np.array([i for text in texts for i in self.by_text[text]], dtype=np.intp)

    @staticmethod
    def _is_plain(text: bytes) -> bool:
        return len(text) == 1 or all(byte in _PUNCTUATION for byte in text)


def _drawn(bits: NDArray[np.bool_], source: random.Random) -> int | None:
    """Return one of the allowed tokens, each with the same probability."""
    for _ in range(_DRAWS):
        token = source.randrange(len(bits))
        if bits[token]:
            return token
    allowed = np.flatnonzero(bits)
    return int(allowed[source.randrange(len(allowed))]) if len(allowed) else None


def _rounded(number: int) -> int:
    """Round up to two digits."""
    unit: int = 10 ** max(len(str(number)) - 2, 0)
    return -(-number // unit) * unit


def _cost(text: bytes) -> tuple[int, int, int, int]:
    """Return less for what closes more and begins less, then for a nearer end and longer tokens."""
    depth = sum(byte in _OPENING for byte in text) - sum(byte in _CLOSING for byte in text)
    return depth, text.count(b","), _FIRST.index(text[0]), -len(text)
