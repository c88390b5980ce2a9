"""Counting the forced tokens of a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter_ns

from maskbench.canonicality.forcing import Walk
from maskbench.walk import ForcedCount


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
    """A non-canonical sequence: where it was, what was forced and what the document has."""

    before: tuple[int, ...]
    forced: tuple[int, ...]
    document: tuple[int, ...]


class RefusedTokenError(Exception):
    """A token of a document was refused that had been accepted before."""


_CONTEXT = 12


def count_forced(walk: Walk, tokens: Sequence[int]) -> tuple[Forced, list[Miss]]:
    """Walks a document of tokens that is known to be accepted. Raises `RefusedTokenError`."""
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
