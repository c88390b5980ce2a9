"""One engine's process, with limits that are watched from outside."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from time import monotonic
from types import ModuleType

from maskbench import worker
from maskbench.documents import Job
from maskbench.engines import EngineSetup
from maskbench.pool import LOG_TAIL_BYTES, START_LIMIT_S
from maskbench.runs import memory
from maskbench.runs.settings import EngineStart, EngineStartError, RunSettings
from maskbench.verdicts import Ended, SchemaRecord

LOOK_S = 0.05
"""Between two looks at a worker's size. A process that does nothing but touch new pages gets some
hundred MiB further in this time, and a look costs some ten microseconds of another processor."""


class StoppedError(Exception):
    """The run is over before this job is."""


@dataclass(frozen=True)
class _Died:
    ended: Ended
    detail: str
    retained: bool = False
    """Most of the memory was held before the job began."""


class EngineProcess:
    """One engine's worker process, started again whenever it crashes or must be killed."""

    def __init__(
        self,
        name: str,
        setup: EngineSetup,
        settings: RunSettings,
        scratch: Path,
        stop: threading.Event | None = None,
    ) -> None:
        self._settings = settings
        self._stop = stop
        log = scratch / f"worker-{name.replace(':', '-').replace('/', '-')}.log"
        self._setup = worker.WorkerSetup(name, setup, settings.forced, log, settings.pin)
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._kills = memory.kills_by_the_system()
        self._served = 0
        self._before: int | None = None
        self._largest: int | None = None
        self.start: EngineStart
        """Of the first process, once it runs."""
        self.peak_memory_bytes: int | None = None
        """The largest resident size of any process of the engine so far."""

    def __enter__(self) -> EngineProcess:
        self.start = self._launch()
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    @property
    def pid(self) -> int | None:
        """The process that runs now, if one does."""
        return None if self._process is None else self._process.pid

    def pin(self, processor: int | None) -> None:
        """Set the processor of later processes."""
        self._setup = replace(self._setup, pin=processor)

    def run(self, jobs: Sequence[Job], progress: Callable[[], None]) -> list[SchemaRecord]:
        """Run the jobs one after the other and return a record for each.

        Raises `EngineStartError` if the engine does not start again, and `StoppedError`.
        """
        records: list[SchemaRecord] = []
        while len(records) < len(jobs):
            rest = jobs[len(records) :]
            if self._connection is None:
                self._launch()
            for record in self._run_until_death(rest):
                records.append(record)
                progress()
        return records

    def _run_until_death(self, jobs: Sequence[Job]) -> Iterator[SchemaRecord]:
        connection = self._connection
        assert connection is not None
        # A failed send shows as the death of the process at the first receive.
        with suppress(OSError):
            connection.send(list(jobs))
        for job in jobs:
            self._before = self._largest = self._look()
            timed = self._receive(self._settings.time_limit_s)
            if isinstance(timed, _Died):
                # Memory that earlier schemas left in the process does not count for this one.
                if not timed.retained:
                    yield SchemaRecord.ended_early(job, timed.ended, timed.detail, self._largest)
                return
            assert isinstance(timed, worker.TimedResult)
            assert timed.index == job.index
            peak = self._peak(timed.peak_memory_bytes)
            if peak is not None and peak > self._settings.memory_limit:
                # It ended before the check, and the verdict must not depend on that.
                died = self._kill_for_memory(peak)
                if not died.retained:
                    yield SchemaRecord.ended_early(job, died.ended, died.detail, peak)
                return
            if not self._settings.forced:
                self._served += 1
                yield SchemaRecord.measured(job, timed.measured, None, peak_memory_bytes=peak)
                continue
            forced = self._receive(self._settings.time_limit_s)
            if isinstance(forced, _Died):
                if not forced.retained:
                    detail = f"while counting forced tokens: {forced.detail}"
                    yield SchemaRecord.ended_early(job, forced.ended, detail, self._largest)
                return
            assert isinstance(forced, worker.ForcedResult)
            assert forced.index == job.index
            self._served += 1
            yield SchemaRecord.measured(
                job, timed.measured, forced.count, forced.problem, peak_memory_bytes=peak
            )

    def _peak(self, reported: int | None) -> int | None:
        """Return a schema's peak: the worker's figure, or, without one, the largest sample."""
        self._look()
        peak = self._largest if reported is None else reported
        self.peak_memory_bytes = memory.largest(self.peak_memory_bytes, peak)
        return peak

    def _launch(self) -> EngineStart:
        self._setup.log.write_bytes(b"")
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=worker.main, args=(theirs, self._setup), daemon=True)
        self._kills = memory.kills_by_the_system()
        with _without_main():
            process.start()
        theirs.close()  # or the end of the process would not be seen
        self._process, self._connection = process, ours
        self._served = 0
        self._before = self._largest = None
        message = self._receive(START_LIMIT_S)
        if isinstance(message, worker.Ready):
            size = self._look()
            return EngineStart(message.versions, message.seconds, size)
        self._kill()
        reason = message.message if isinstance(message, worker.NotReady) else str(message)
        if isinstance(message, _Died):
            reason = f"{message.ended.value} while starting: {message.detail}"
        raise EngineStartError(f"{self._setup.engine}: {reason}")

    def _look(self) -> int | None:
        """Return the worker's resident size, and remember it if it is the largest."""
        assert self._process is not None
        assert self._process.pid is not None
        size = memory.resident_bytes(self._process.pid)
        self._largest = memory.largest(self._largest, size)
        self.peak_memory_bytes = memory.largest(self.peak_memory_bytes, size)
        return size

    def _receive(self, limit_s: float) -> worker.Message | _Died:
        """Return the worker's next message, or how it ended without one."""
        connection = self._connection
        assert connection is not None
        deadline = monotonic() + limit_s
        try:
            while not connection.poll(max(0.0, min(LOOK_S, deadline - monotonic()))):
                if self._stop is not None and self._stop.is_set():
                    raise StoppedError
                size = self._look()
                if size is not None and size > self._settings.memory_limit:
                    return self._kill_for_memory(size)
                if monotonic() >= deadline:
                    self._kill()
                    return _Died(Ended.TIMED_OUT, f"killed after {limit_s:g} s")
            message: worker.Message = connection.recv()
        except (EOFError, OSError):
            return self._bury()
        if isinstance(message, worker.OutOfMemory):
            # The remains of a failed allocation must not be measured.
            self._kill()
            return _Died(Ended.OUT_OF_MEMORY, message.message)
        return message

    def _kill_for_memory(self, size: int) -> _Died:
        limit = self._settings.memory_limit
        self._kill()
        detail = f"killed at {memory.written(size)} resident, the limit is {memory.written(limit)}"
        before = self._before or 0
        retained = self._served > 0 and before > limit // 2
        return _Died(Ended.OUT_OF_MEMORY, detail, retained)

    def _bury(self) -> _Died:
        """Return the description of a process that ended by itself."""
        assert self._process is not None
        self._process.join(5)
        code = self._process.exitcode
        self._kill()
        kills, said = memory.kills_by_the_system(), self._log_tail()
        if code == -signal.SIGKILL and None not in (kills, self._kills) and kills != self._kills:
            return _Died(Ended.OUT_OF_MEMORY, "killed by the system, whose memory had run out")
        ended = Ended.OUT_OF_MEMORY if memory.speaks_of_memory(said) else Ended.CRASHED
        return _Died(ended, f"{_describe_exit(code)}\n{said}".strip())

    def _kill(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._connection = self._process = None

    def _log_tail(self) -> str:
        data = self._setup.log.read_bytes()
        return data[-LOG_TAIL_BYTES:].decode("utf-8", errors="replace")


_starting = threading.Lock()


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep a process that is started here from importing this one's main module.

    That is the command line with all its commands, and their size would count as the engine's.
    """
    with _starting:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "closed its pipe"
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exited with status {code}"
