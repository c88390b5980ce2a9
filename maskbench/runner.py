"""A run: the same jobs on all engines, in interleaved chunks, and what was collected of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from maskbench.documents import Job
from maskbench.engines import EngineSetup
from maskbench.runs import memory
from maskbench.runs.journal import Journal
from maskbench.runs.local import LocalExecutor
from maskbench.runs.preparation import Chunk, LeftOut
from maskbench.runs.settings import (
    EngineStart,
    EngineStartError,
    RunSettings,
    Turn,
    TurnResult,
)
from maskbench.verdicts import SchemaRecord

Only = Mapping[str, Collection[int]]
"""Engines that get none but the jobs with these indices."""


@dataclass
class EngineLog:
    """The records of one engine in a run: one per job, in the order of the jobs."""

    versions: dict[str, str] = field(default_factory=dict)
    start_seconds: float = 0.0
    records: list[SchemaRecord] = field(default_factory=list)
    offered: int = 0
    """Jobs of the run, also those that this engine was not chosen for."""
    start_memory_bytes: int | None = None
    """The resident size of the engine's process before its first schema."""
    peak_memory_bytes: int | None = None
    """The largest resident size of any of its processes."""

    @property
    def has_minima(self) -> bool:
        """Whether the run had several rounds."""
        return any(record.min_first_mask_us is not None for record in self.records)

    @property
    def minima(self) -> EngineLog:
        """The log with each call's minimum over the rounds as its time."""
        return replace(self, records=[record.minima for record in self.records])


class Executor(Protocol):
    """The machine or machines that run turns."""

    @property
    def starts(self) -> Mapping[str, EngineStart]:
        """Return the versions and settings of each engine."""

    def run(self, chunks: Iterable[Sequence[Turn]]) -> Iterator[TurnResult]:
        """Run the turns of all chunks, and yield them in the order in which they end."""


@dataclass
class Collected:
    """The records of a run so far."""

    logs: dict[str, EngineLog]
    left_out: LeftOut = field(default_factory=LeftOut)
    chunks: int = 0
    """Chunks that all engines have finished, which are those that the logs hold."""


def collect(
    executor: Executor,
    engines: Sequence[str],
    chunks: Iterable[Chunk],
    *,
    only: Only | None = None,
    journal: Journal | None = None,
) -> Collected:
    """Run every chunk on every engine in turn.

    The first engine of a chunk changes from chunk to chunk. Turns in the journal are not run again.
    An interrupt from the keyboard ends the run; the chunks count that all engines have finished.
    Raises `EngineStartError` and `JournalError`.
    """
    begun: dict[int, Chunk] = {}
    turns: dict[tuple[int, str], TurnResult] = {} if journal is None else dict(journal.turns)

    def work() -> Iterator[list[Turn]]:
        for chunk in chunks:
            begun[chunk.number] = replace(chunk, jobs=())
            first = chunk.number % len(engines)
            due = [
                Turn(chunk.number, name, _chosen(chunk.jobs, only, name))
                for name in (*engines[first:], *engines[:first])
                if (chunk.number, name) not in turns
            ]
            if due:
                yield due

    try:
        for result in executor.run(work()):
            if journal is not None:
                journal.add_chunk(begun[result.chunk])
                journal.add_turn(result)
            turns[result.chunk, result.engine] = result
    except KeyboardInterrupt:
        pass
    logs = {
        name: EngineLog(start.versions, start.seconds, start_memory_bytes=start.memory_bytes)
        for name, start in executor.starts.items()
    }
    collected = Collected(logs)
    for number, chunk in sorted(begun.items()):
        if any((number, name) not in turns for name in engines):
            continue
        collected.chunks += 1
        collected.left_out += chunk.left_out
        for name, log in logs.items():
            log.records.extend(turns[number, name].records)
            log.offered += chunk.offered
    for name, log in logs.items():
        log.peak_memory_bytes = memory.largest(
            log.start_memory_bytes,
            *(t.peak_memory_bytes for (_, engine), t in turns.items() if engine == name),
        )
    return collected


def run(
    engines: Sequence[str],
    chunks: Iterable[Sequence[Job]],
    setup: EngineSetup,
    settings: RunSettings,
    scratch: Path,
    progress: Callable[[str], None] = lambda engine: None,
    only: Only | None = None,
) -> dict[str, EngineLog]:
    """Run every chunk on every engine of this machine in turn and return the logs by engine.

    An interrupt from the keyboard ends the run after the last chunk that all engines have
    finished. Raises `EngineStartError`.
    """
    numbered = (Chunk(number, tuple(jobs), len(jobs)) for number, jobs in enumerate(chunks))
    with LocalExecutor(engines, setup, settings, scratch, progress) as executor:
        return collect(executor, engines, numbered, only=only).logs


def _chosen(jobs: Sequence[Job], only: Only | None, engine: str) -> tuple[Job, ...]:
    if only is None or engine not in only:
        return tuple(jobs)
    return tuple(job for job in jobs if job.index in only[engine])


__all__ = [
    "Collected",
    "EngineLog",
    "EngineStartError",
    "Executor",
    "RunSettings",
    "collect",
    "run",
]
