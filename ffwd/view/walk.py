"""`walk`: a matcher along the tokens of a text, with masks and forced tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ffwd._bitmask import allocate_bitmask
from ffwd._native import Matcher


@dataclass(frozen=True, slots=True)
class Stretch:
    """Tokens that the grammar forces, or one that a mask decides.

    Attributes:
        tokens: The tokens.
        forced: Whether nothing else could follow, so that no mask was filled.
        mask: The row of the mask before the token, which the next stretch overwrites; None if it
            is forced or the text had ended.
        mask_time: The nanoseconds of filling it.
        accept_time: The nanoseconds of finding and accepting the tokens.
        accepted: Whether the grammar accepts the token; nothing follows otherwise.

    """

    tokens: tuple[int, ...]
    forced: bool
    mask: NDArray[Any] | None
    mask_time: int
    accept_time: int
    accepted: bool = True


def walk(matcher: Matcher, ids: Sequence[int], *, forced: bool = True) -> Iterator[Stretch]:
    """Accept tokens one by one, and yield each stretch of them; the last one may be rejected.

    `forced`: whether forced tokens skip the mask.
    """
    bitmask = allocate_bitmask(1, matcher.grammar.vocabulary.vocab_size)
    place = 0
    while place < len(ids):
        started = time.perf_counter_ns()
        if forced and not matcher.is_terminated():
            follows = matcher.fast_forward_tokens()
            run = _common(follows, ids[place : place + len(follows)])
            if run and matcher.accept_tokens(run):
                spent = time.perf_counter_ns() - started
                yield Stretch(tuple(run), True, None, 0, spent)
                place += len(run)
                continue
        mask, spent = None, 0
        if not matcher.is_terminated():
            begun = time.perf_counter_ns()
            matcher.fill_bitmask(bitmask, 0)
            mask, spent = bitmask[0], time.perf_counter_ns() - begun
        begun = time.perf_counter_ns()
        accepted = not matcher.is_terminated() and matcher.accept_token(ids[place])
        taken = time.perf_counter_ns() - begun
        yield Stretch((ids[place],), False, mask, spent, taken, accepted)
        if not accepted:
            return
        place += 1


def _common(left: Sequence[int], right: Sequence[int]) -> list[int]:
    found = []
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        found.append(one)
    return found
