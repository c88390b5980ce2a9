"""Measuring growth, in this process and on one thread.

Comparisons over minutes use processor time, which other work on the machine does not affect.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter, perf_counter_ns, process_time_ns

import numpy as np
from numpy.typing import NDArray

import ffwd
import ffwd.grammar
from ffwd import Vocabulary
from maskbench.documents import Encoder, Whitespace, write_instance
from maskbench.engines.base import Engine, FailedError, RefusedError, Session
from maskbench.speed.growth.outputs import Output
from maskbench.speed.growth.schemas import Family

TENTHS = 10

# A size is measured until this much time has passed, and at least once.
_ENOUGH_S = 0.5
_ROUNDS = 5


@dataclass(frozen=True)
class OutputGrowth:
    """One long output. Processor times of mask + accept, in microseconds."""

    name: str
    tokens: int
    cold: tuple[float, ...]
    """The average of each tenth where every mask was new to the engine."""

    known: tuple[float, ...]
    """The average of each tenth when the same grammar reads the document again: the best of three
    readings, tenth by tenth, so that what else the machine does is not in it."""

    def ratio(self, times: Sequence[float]) -> float:
        """Return the last tenth divided by the first."""
        return times[-1] / times[0]


@dataclass(frozen=True)
class SizeCost:
    """A schema of one size. Times in microseconds; `problem` says why there are none.

    `first_mask` is processor time, those of masks are wall-clock times.
    """

    size: int
    schema_bytes: int
    first_mask: float = 0.0
    """Compile + first mask: the best of up to five, each in an emptied store."""

    mask_average: float = 0.0
    mask_slowest: float = 0.0
    problem: str | None = None


@dataclass(frozen=True)
class SchemaGrowth:
    """A family of schemas, from its smallest to its largest."""

    name: str
    costs: tuple[SizeCost, ...]

    def per_tenfold(self) -> tuple[float, ...]:
        """Return how many times longer ten times the size takes, from each size to the next."""
        done = [cost.first_mask for cost in self.costs if cost.problem is None]
        return tuple(larger / smaller for smaller, larger in pairwise(done))


def output_growth(
    engine: Engine, encoder: Encoder, outputs: Sequence[Output], count: int
) -> Iterator[OutputGrowth]:
    """Match each output token by token, first with an empty cache, then three times more.

    Raises `FailedError` if the engine does not take a document.
    """
    for output in outputs:
        tokens = output.tokens(encoder, count)
        engine.forget()
        compiled = engine.compile(json.dumps(output.schema))
        cold = _tenths(compiled.session(), tokens, output.name)
        again = [_tenths(compiled.session(), tokens, output.name) for _ in range(3)]
        known = tuple(min(times) for times in zip(*again, strict=True))
        yield OutputGrowth(output.name, len(tokens), cold, known)


def schema_growth(
    engine: Engine, encoder: Encoder, families: Sequence[Family], largest: int | None = None
) -> Iterator[SchemaGrowth]:
    """Compile each family's schemas, up to the `largest`, and reads each one's document."""
    for family in families:
        sizes = [size for size in family.sizes if largest is None or size <= largest]
        yield SchemaGrowth(family.name, tuple(_cost(engine, encoder, family, s) for s in sizes))


def _cost(engine: Engine, encoder: Encoder, family: Family, size: int) -> SizeCost:
    schema, document = family.make(size)
    text = json.dumps(schema)
    tokens = array("i", encoder.encode(write_instance(document, Whitespace.COMPACT)))
    rounds: list[tuple[float, float, float]] = []
    began = perf_counter()
    while len(rounds) < _ROUNDS and (not rounds or perf_counter() - began < _ENOUGH_S):
        engine.forget()
        try:
            start = process_time_ns()
            compiled = engine.compile(text)
            session = compiled.session()
            session.fill()
            first = (process_time_ns() - start) / 1000
            if problem := session.problem():
                raise FailedError(problem)
            masks = _read(compiled.session(), tokens, f"{family.name}, {size}")
        except (RefusedError, FailedError) as error:
            return SizeCost(size, len(text), problem=str(error).partition("\n")[0])
        rounds.append((first, float(np.mean(masks)), float(np.max(masks))))
    first, average, slowest = (min(times) for times in zip(*rounds, strict=True))
    return SizeCost(size, len(text), first, average, slowest)


def _read(session: Session, tokens: array[int], what: str) -> NDArray[np.float64]:
    """Return the time of mask + accept for each token. Raises `FailedError` if one is refused."""
    fill, accept, now = session.fill, session.accept, perf_counter_ns
    times = np.empty(len(tokens))
    for position, token in enumerate(tokens):
        start = now()
        fill()
        accepted = accept(token)
        times[position] = now() - start
        if not accepted:
            raise FailedError(f"{what}: token {position} of the document was refused")
    return times / 1000


def _tenths(session: Session, tokens: array[int], what: str) -> tuple[float, ...]:
    """Return the average time of mask + accept in each tenth. Raises `FailedError`."""
    fill, accept = session.fill, session.accept
    averages = []
    for part in np.array_split(np.asarray(tokens), TENTHS):
        wanted = part.tolist()
        start = process_time_ns()
        for token in wanted:
            fill()
            if not accept(token):
                raise FailedError(f"{what}: token {token} of the document was refused")
        averages.append((process_time_ns() - start) / 1000 / len(wanted))
    return tuple(averages)


@dataclass(frozen=True)
class MemoryUse:
    """The memory of ffwd after a long output, in bytes."""

    name: str
    tokens: int
    matcher: int
    matcher_at_start: int
    grammar: int


def memory_use(
    vocabulary: Vocabulary, encoder: Encoder, outputs: Sequence[Output], count: int
) -> Iterator[MemoryUse]:
    """Return the memory of a matcher that can roll back to its start, and of its grammar."""
    for output in outputs:
        grammar = ffwd.compile(
            ffwd.grammar.json_schema(output.schema, whitespace="flexible"), vocabulary
        )
        rows = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
        matcher = grammar.matcher()
        at_start = matcher.memory_bytes
        tokens = output.tokens(encoder, count)[:count]
        for token in tokens:
            matcher.fill_bitmask(rows)
            matcher.accept_token(token)
        yield MemoryUse(
            output.name,
            len(tokens),
            matcher.memory_bytes,
            at_start,
            grammar.stats()["memory_bytes"],
        )
