"""Counting the forced tokens of a document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns

from maskbench.engines.base import FailedError
from maskbench.sums import added


@dataclass(frozen=True)
class ForcedWalk:
    """A sequence in a grammar."""

    accept: Callable[[int], bool]
    force: Callable[[], Sequence[int]]


@dataclass(frozen=True)
class ForcedCount:
    """Fast-forward tokens over a schema's accepted valid documents.

    At each point the engine is asked for its forced tokens. If they are the document's next
    tokens, all are taken (`forced` grows). If they are others, that is one non-canonical sequence
    and one token is taken; if there are none, one token is taken.
    """

    tokens: int = 0
    forced: int = 0
    sequences: int = 0
    noncanonical: int = 0

    __add__ = added


@dataclass(frozen=True)
class Forced(ForcedCount):
    """Fast-forward tokens over documents, with the times of the calls."""

    empty: int = 0
    """How many times nothing was forced."""
    ns_sequences: int = 0
    """Time of the calls that forced something."""
    ns_empty: int = 0

    @property
    def share(self) -> float | None:
        """Forced tokens among all, None of no tokens."""
        return self.forced / self.tokens if self.tokens else None


@dataclass(frozen=True)
class Miss:
    """A non-canonical sequence: its position, the forced tokens, and the document's."""

    before: tuple[int, ...]
    forced: tuple[int, ...]
    document: tuple[int, ...]


class RefusedTokenError(FailedError):
    """An earlier accepted token of a document was refused."""


_CONTEXT = 12


def count_forced(walk: ForcedWalk, tokens: Sequence[int]) -> tuple[Forced, list[Miss]]:
    """Walk through a document of accepted tokens. Raises `RefusedTokenError`."""
    accept, force, now = walk.accept, walk.force, perf_counter_ns
    text = list(tokens)
    misses = []
    position = count = sequences = empty = ns_sequences = ns_empty = 0
    while position < len(text):
        start = now()
        forced = force()
        spent = now() - start
        step = 1
        if forced:
            sequences += 1
            ns_sequences += spent
            end = position + len(forced)
            if text[position:end] == list(forced):
                step = len(forced)
                count += step
            else:
                before = text[max(0, position - _CONTEXT) : position]
                misses.append(Miss(tuple(before), tuple(forced), tuple(text[position : end + 4])))
        else:
            empty += 1
            ns_empty += spent
        for token in text[position : position + step]:
            if not accept(token):
                raise RefusedTokenError(f"token {token} was accepted before, and is refused now")
        position += step
    result = Forced(len(text), count, sequences, len(misses), empty, ns_sequences, ns_empty)
    return result, misses
