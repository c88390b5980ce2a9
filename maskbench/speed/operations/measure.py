"""Single calls of engines in turns, on the same documents.

Before each token the mask is computed, untimed, as it is where a model samples. Each other call
is timed by itself; what the clock takes is subtracted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from maskbench.documents import Job
from maskbench.engines import Engine
from maskbench.engines.base import FailedError, RefusedError, Session

OPERATIONS = ("accept", "rollback", "fork", "validate", "forced")

DRAFT = 16
"""How many tokens are validated at once."""

EVERY = 4
"""After how many tokens the operations other than accept come."""

Nanoseconds = dict[str, list[int]]


def _fresh() -> Nanoseconds:
    return {operation: [] for operation in OPERATIONS}


@dataclass
class Samples:
    """The times of one engine by operation.

    They are those of the first walk through each document, and of the second on the same grammar.
    """

    first: Nanoseconds = field(default_factory=_fresh)
    later: Nanoseconds = field(default_factory=_fresh)

    def add(self, first: Nanoseconds, later: Nanoseconds) -> None:
        """Add the times of one document."""
        for operation in OPERATIONS:
            self.first[operation] += first[operation]
            self.later[operation] += later[operation]


def clock_cost(rounds: int = 2001) -> int:
    """Return the time of timing itself."""
    clock = time.perf_counter_ns
    costs = []
    for _ in range(rounds):
        start = clock()
        costs.append(clock() - start)
    return int(median(costs))


def walk(session: Session, tokens: list[int], cost: int) -> Nanoseconds | None:
    """Return one document, back and forth; None where the engine refuses a token of it."""
    clock = time.perf_counter_ns
    times = _fresh()
    accept, fill = session.accept, session.fill
    for place, token in enumerate(tokens):
        fill()
        start = clock()
        accepted = accept(token)
        times["accept"].append(clock() - start - cost)
        if not accepted:
            return None
        if place % EVERY == EVERY - 1:
            _others(session, tokens, place + 1, times, cost)
    return times


def _others(session: Session, tokens: list[int], read: int, times: Nanoseconds, cost: int) -> None:
    def timed(operation: str, call: Callable[[], object]) -> None:
        clock = time.perf_counter_ns
        start = clock()
        result = call()
        times[operation].append(clock() - start - cost)
        del result  # after the clock

    if session.forced is not None:
        timed("forced", session.forced)
    if session.fork is not None:
        timed("fork", session.fork)
    if session.validate is not None and len(tokens) - read >= DRAFT:
        validate, draft = session.validate, tokens[read : read + DRAFT]
        timed("validate", lambda: validate(draft))
    if session.rollback is not None:
        rollback, count = session.rollback, 1 + read // EVERY % EVERY
        timed("rollback", lambda: rollback(count))
        for token in tokens[read - count : read]:
            session.accept(token)


def compare(engines: dict[str, Engine], jobs: list[Job]) -> tuple[dict[str, Samples], int]:
    """Return times by engine, and the number of documents that every engine accepts."""
    samples = {name: Samples() for name in engines}
    cost = clock_cost()
    documents = 0
    for job in jobs:
        try:
            compiled = {name: engine.compile(job.schema) for name, engine in engines.items()}
        except (RefusedError, FailedError):
            continue
        for document in job.documents:
            if not document.valid:
                continue
            tokens = document.tokens.tolist()
            walks: dict[str, list[Nanoseconds | None]] = {name: [] for name in engines}
            for _ in range(2):
                for name, grammar in compiled.items():
                    walks[name].append(walk(grammar.session(), tokens, cost))
            found = {name: (first, later) for name, (first, later) in walks.items()}
            if any(first is None or later is None for first, later in found.values()):
                continue
            documents += 1
            for name, (first, later) in found.items():
                if first is not None and later is not None:
                    samples[name].add(first, later)
    return samples, documents
