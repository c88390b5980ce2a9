"""The process of one engine: receives jobs, sends results, and may crash or hang."""

from __future__ import annotations

import gc
import multiprocessing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter

from maskbench.canonicality.counts import ForcedCount
from maskbench.documents import Job
from maskbench.engines import EngineSetup, MissingEngineError, find
from maskbench.processor import ProcessorError, stay_on, work_quietly
from maskbench.runs import memory
from maskbench.runs.lifeline import end_with
from maskbench.walk import MaskTimer, Measured, describe_error, raise_if_out_of_memory


@dataclass(frozen=True)
class WorkerSetup:
    """The arguments of a worker process."""

    engine: str
    setup: EngineSetup
    forced: bool
    log: Path
    pin: int | None = None
    """The processor to run on."""


@dataclass(frozen=True)
class Ready:
    """The engine is loaded with its tokenizer, after `seconds`."""

    versions: dict[str, str]
    seconds: float


@dataclass(frozen=True)
class NotReady:
    """The engine cannot be used at all."""

    message: str


@dataclass(frozen=True)
class TimedResult:
    """The verdicts and times of the job with this index."""

    index: int
    measured: Measured
    peak_memory_bytes: int | None = None
    """The process's largest resident size meanwhile, where the system says it."""


@dataclass(frozen=True)
class ForcedResult:
    """The forced tokens of the job with this index: a count, nothing, or what went wrong."""

    index: int
    count: ForcedCount | None
    problem: str | None = None


@dataclass(frozen=True)
class OutOfMemory:
    """An allocation failed while a job was served."""

    message: str


Message = Ready | NotReady | TimedResult | ForcedResult | OutOfMemory


def main(connection: Connection, start: WorkerSetup) -> None:
    """Serve lists of jobs until the parent sends None or ends.

    For each job it sends one `TimedResult` and, if the run wants it, one `ForcedResult`. The
    parent counts on this order, and watches the time between two messages and the size of this
    process. After `OutOfMemory` it is of no use any more.
    """
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None:
        end_with(parent.pid)
    memory.be_the_first_to_go()
    work_quietly(start.log)
    began = perf_counter()
    try:
        # Before the engine is loaded, so that its threads stay there too.
        if start.pin is not None:
            stay_on(start.pin)
        engine = find(start.engine)(start.setup)
    except (MissingEngineError, ProcessorError) as error:
        connection.send(NotReady(str(error)))
        return
    walker = MaskTimer(engine, start.setup.tokenizer.eos_token_ids)
    # From here on the garbage collector does not run while a clock does, and never visits loaded
    # objects.
    gc.collect()
    gc.freeze()
    gc.disable()
    connection.send(Ready(engine.versions(), perf_counter() - began))
    while (jobs := _receive(connection)) is not None:
        for job in jobs:
            engine.forget()
            try:
                _serve(connection, walker, job, forced=start.forced)
            except MemoryError as error:
                connection.send(OutOfMemory(f"an allocation failed: {error}".rstrip(": ")))
                return
            gc.collect()


def _serve(connection: Connection, walker: MaskTimer, job: Job, *, forced: bool) -> None:
    memory.reset_own_peak()
    measured, compiled = walker.measure(job)
    connection.send(TimedResult(job.index, measured, memory.own_peak_bytes()))
    if not forced:
        return
    result = ForcedResult(job.index, None)
    if compiled is not None:
        try:
            result = ForcedResult(job.index, walker.count_forced(compiled, job.documents, measured))
        except Exception as error:
            raise_if_out_of_memory(error)
            result = ForcedResult(job.index, None, describe_error(error))
    connection.send(result)


def _receive(connection: Connection) -> list[Job] | None:
    try:
        jobs: list[Job] | None = connection.recv()
    except EOFError:
        return None
    return jobs
