"""Times of `fill_bitmasks`, and of threads that fill rows of their own.

Rows stand at different places of documents. *Hits* are masks that are known, *misses* are the
first masks of grammars that have just been compiled. Grammars are *shared* by all rows, or each
row has one of its own.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

import ffwd
from maskbench.documents import Job

Bitmask = NDArray[np.int32]


@dataclass(frozen=True)
class Excerpt:
    """A schema, and the tokens of a part of a document."""

    schema: str
    tokens: list[int]


def places(jobs: list[Job], vocabulary: ffwd.Vocabulary) -> list[Excerpt]:
    """Return every eighth place of documents that ffwd takes, those of one schema together."""
    found = []
    for job in jobs:
        try:
            grammar = ffwd.compile(ffwd.json_schema(job.schema, whitespace="flexible"), vocabulary)
        except ffwd.FfwdError:
            continue
        for document in job.documents:
            tokens = document.tokens.tolist()
            if document.valid and grammar.matcher().validate_tokens(tokens) == len(tokens):
                found += [Excerpt(job.schema, tokens[:end]) for end in range(0, len(tokens), 8)]
    return found


def _cycle(found: list[Excerpt], shared: bool) -> Iterator[Excerpt]:
    if not shared:
        return itertools.cycle(found)
    schemas = [place.schema for place in found]
    most = max(set(schemas), key=schemas.count)
    return itertools.cycle([place for place in found if place.schema == most])


def matchers(
    found: list[Excerpt], vocabulary: ffwd.Vocabulary, rows: int, shared: bool
) -> list[ffwd.Matcher]:
    """Return a matcher for each row, on grammars without cached masks."""
    grammars: dict[tuple[str, int], ffwd.CompiledGrammar] = {}
    made = []
    for row, place in enumerate(itertools.islice(_cycle(found, shared), rows)):
        key = (place.schema, 0 if shared else row)
        if key not in grammars:
            grammars[key] = ffwd.compile(
                ffwd.json_schema(place.schema, whitespace="flexible"), vocabulary
            )
        matcher = grammars[key].matcher()
        if not matcher.accept_tokens(place.tokens):
            raise ValueError("a document that was taken before is refused")
        made.append(matcher)
    return made


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def hits(
    rows: list[ffwd.Matcher], bitmask: Bitmask, threads: list[int], rounds: int
) -> list[float]:
    """Return seconds of one call by number of threads, these in turns: medians."""
    times: dict[int, list[float]] = {count: [] for count in threads}
    ffwd.fill_bitmasks(rows, bitmask, threads=1)
    for _ in range(rounds):
        for count in threads:
            call = _fill(rows, bitmask, count)
            times[count].append(_seconds(call))
    return [median(times[count]) for count in threads]


def _fill(rows: list[ffwd.Matcher], bitmask: Bitmask, threads: int) -> Callable[[], object]:
    return lambda: ffwd.fill_bitmasks(rows, bitmask, threads=threads)


def misses(
    fresh: Callable[[], list[ffwd.Matcher]], bitmask: Bitmask, threads: list[int], rounds: int
) -> list[float]:
    """Measure as `hits`, each call on fresh grammars. Raises `ValueError` on differences."""
    times: dict[int, list[float]] = {count: [] for count in threads}
    expected: Bitmask | None = None
    for _ in range(rounds):
        for count in threads:
            rows = fresh()
            times[count].append(_seconds(_fill(rows, bitmask, count)))
            if expected is None:
                expected = bitmask.copy()
            elif not np.array_equal(expected, bitmask):
                raise ValueError(f"{count} threads fill other masks")
    return [median(times[count]) for count in threads]


def readers(groups: list[list[ffwd.Matcher]], words: int, seconds: float) -> float:
    """Rows per second of threads that each fill known masks again and again, one group each."""
    ready, stop = threading.Barrier(len(groups) + 1), threading.Event()
    counts = [0] * len(groups)

    def read(number: int, rows: list[ffwd.Matcher]) -> None:
        bitmask = np.zeros((len(rows), words), dtype=np.int32)
        ffwd.fill_bitmasks(rows, bitmask, threads=1)
        ready.wait()
        while not stop.is_set():
            ffwd.fill_bitmasks(rows, bitmask, threads=1)
            counts[number] += len(rows)

    threads = [
        threading.Thread(target=read, args=(number, rows)) for number, rows in enumerate(groups)
    ]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - start)
