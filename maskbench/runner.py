"""The parent: one process per engine, the same jobs in interleaved chunks, limits from outside."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType

from maskbench import worker
from maskbench.documents import Job
from maskbench.engines import EngineSetup
from maskbench.verdicts import Ended, SchemaRecord

_START_LIMIT_S = 300.0
_LOG_TAIL_BYTES = 2000


class EngineStartError(RuntimeError):
    """An engine that cannot be started; the message says why."""


@dataclass(frozen=True)
class RunSettings:
    """How engines are run.

    `time_limit_s` holds for the timed part of each schema, and again for the counting of its
    forced tokens, which `forced` switches on.
    """

    time_limit_s: float = 30.0
    forced: bool = True
    pin: int | None = None
    """The processor that all engines run on, in turns."""


@dataclass
class EngineLog:
    """What a run collects of one engine: one record per job, in the order of the jobs."""

    versions: dict[str, str] = field(default_factory=dict)
    start_seconds: float = 0.0
    records: list[SchemaRecord] = field(default_factory=list)
    offered: int = 0
    """Jobs of the run, also those that this engine was not chosen for."""


@dataclass(frozen=True)
class _Died:
    ended: Ended
    detail: str


class EngineProcess:
    """One engine's worker process, started again whenever it crashes or must be killed."""

    def __init__(self, name: str, setup: EngineSetup, settings: RunSettings, scratch: Path) -> None:
        self._settings = settings
        log = scratch / f"worker-{name.replace(':', '-').replace('/', '-')}.log"
        self._start = worker.WorkerSetup(name, setup, settings.forced, log, settings.pin)
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self.versions: dict[str, str] = {}
        self.start_seconds = 0.0

    def __enter__(self) -> EngineProcess:
        self._launch()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kill()

    def run(self, jobs: Sequence[Job], progress: Callable[[], None]) -> list[SchemaRecord]:
        """Runs the jobs one after the other and returns a record for each."""
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
            timed = self._receive(self._settings.time_limit_s)
            if isinstance(timed, _Died):
                yield SchemaRecord.ended_early(job, timed.ended, timed.detail)
                return
            assert isinstance(timed, worker.TimedResult)
            assert timed.index == job.index
            if not self._settings.forced:
                yield SchemaRecord.measured(job, timed.measured, None)
                continue
            forced = self._receive(self._settings.time_limit_s)
            if isinstance(forced, _Died):
                detail = f"while counting forced tokens: {forced.detail}"
                yield SchemaRecord.ended_early(job, forced.ended, detail)
                return
            assert isinstance(forced, worker.ForcedResult)
            assert forced.index == job.index
            yield SchemaRecord.measured(job, timed.measured, forced.count, forced.problem)

    def _launch(self) -> None:
        self._start.log.write_bytes(b"")
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=worker.main, args=(theirs, self._start), daemon=True)
        process.start()
        theirs.close()  # or the end of the process would not be seen
        self._process, self._connection = process, ours
        message = self._receive(_START_LIMIT_S)
        if isinstance(message, worker.Ready):
            self.versions = message.versions
            self.start_seconds = message.seconds
            return
        self._kill()
        reason = message.message if isinstance(message, worker.NotReady) else str(message)
        if isinstance(message, _Died):
            reason = f"{message.ended.value} while starting: {message.detail}"
        raise EngineStartError(f"{self._start.engine}: {reason}")

    def _receive(self, limit_s: float) -> worker.Message | _Died:
        connection, process = self._connection, self._process
        assert connection is not None
        assert process is not None
        try:
            if not connection.poll(limit_s):
                self._kill()
                return _Died(Ended.TIMED_OUT, f"killed after {limit_s:g} s")
            message: worker.Message = connection.recv()
        except (EOFError, OSError):
            process.join(5)
            code = process.exitcode
            self._kill()
            return _Died(Ended.CRASHED, f"{_describe_exit(code)}\n{self._log_tail()}".strip())
        return message

    def _kill(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._connection = self._process = None

    def _log_tail(self) -> str:
        data = self._start.log.read_bytes()
        return data[-_LOG_TAIL_BYTES:].decode("utf-8", errors="replace")


def run(
    engines: Sequence[str],
    chunks: Iterable[Sequence[Job]],
    setup: EngineSetup,
    settings: RunSettings,
    scratch: Path,
    progress: Callable[[str], None] = lambda engine: None,
    only: Mapping[str, Collection[int]] | None = None,
) -> dict[str, EngineLog]:
    """Runs every chunk on every engine in turn and returns the logs by engine.

    The first engine of a chunk changes from chunk to chunk. An interrupt from the keyboard ends
    the run after the last chunk that all engines have finished. An engine in `only` gets none but
    the jobs with these indices. Raises `EngineStartError`.
    """
    logs = {name: EngineLog() for name in engines}
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(EngineProcess(name, setup, settings, scratch))
            for name in engines
        }
        for name, process in processes.items():
            logs[name].versions = process.versions
            logs[name].start_seconds = process.start_seconds
        try:
            for number, jobs in enumerate(chunks):
                first = number % len(engines)
                done = {
                    name: processes[name].run(
                        _chosen(jobs, only, name),
                        lambda name=name: progress(name),  # type: ignore[misc]
                    )
                    for name in (*engines[first:], *engines[:first])
                }
                for name, records in done.items():
                    logs[name].records.extend(records)
                    logs[name].offered += len(jobs)
        except KeyboardInterrupt:
            pass
    return logs


def _chosen(
    jobs: Sequence[Job], only: Mapping[str, Collection[int]] | None, engine: str
) -> Sequence[Job]:
    if only is None or engine not in only:
        return jobs
    return [job for job in jobs if job.index in only[engine]]


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "closed its pipe"
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exited with status {code}"
