"""Worker processes that serve one task at a time; one that dies or hangs costs only its task."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from time import monotonic
from typing import Any, Generic, TypeVar

from maskbench.errors import InputError
from maskbench.processor import work_quietly

Setup = TypeVar("Setup")
Task = TypeVar("Task")
Result = TypeVar("Result")

START_LIMIT_S = 300.0
MAX_STARTS = 4
"""How often a process is started in place of a lost one, each time with twice the time limit."""

LOG_TAIL_BYTES = 2000


class PoolStartError(InputError, RuntimeError):
    """A worker that cannot be started; the message says why."""


@dataclass(frozen=True)
class Lost:
    """A task without a result: an error was raised, the process died, or time ran out."""

    why: str


@dataclass(frozen=True)
class _Ready:
    problem: str | None = None


@dataclass(frozen=True)
class _Start:
    factory: Callable[[Any], Callable[[Any], Any]]
    setup: Any
    log: Path


class _Worker(Generic[Task]):
    """One process and its current task; `starts` others have ended before they were ready."""

    def __init__(self, start: _Start, starts: int = 0) -> None:
        start.log.write_bytes(b"")
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._log = start.log
        self._process: SpawnProcess = context.Process(
            target=_serve, args=(theirs, start), daemon=True
        )
        self._process.start()
        theirs.close()  # or the end of the process would not be seen
        self.task: Task | None = None
        self.ready = False
        self.starts = starts
        self._limit_s = START_LIMIT_S * 2**starts
        self.deadline = monotonic() + self._limit_s

    def give(self, task: Task, limit_s: float) -> None:
        self.task = task
        self._limit_s = limit_s
        self.deadline = monotonic() + limit_s
        with suppress(OSError):  # a failed send shows as the death of the process
            self.connection.send(task)

    def late(self) -> str:
        """Say that time ran out."""
        if self.task is None:
            return f"the process was not ready after {self._limit_s:g} s"
        return f"killed after {self._limit_s:g} s"

    def kill(self) -> str:
        """End the process, and return how it had ended by itself, if it had."""
        self._process.join(0.2)
        code = self._process.exitcode
        self.connection.close()
        self._process.kill()
        self._process.join()
        tail = self._log.read_bytes()[-LOG_TAIL_BYTES:].decode("utf-8", errors="replace")
        return f"the process ended with status {code}\n{tail}".strip()


class Pool(Generic[Setup, Task, Result]):
    """`factory(setup)` runs once in each process and returns what serves a task.

    `factory` is a module's function or class, for it is sent by name. An error that it raises
    ends the run; one that is raised while a task is served costs the task. The run ends too if the
    first processes die before they are ready; later ones are started again, up to `MAX_STARTS`.
    """

    def __init__(
        self,
        factory: Callable[[Setup], Callable[[Task], Result]],
        setup: Setup,
        *,
        processes: int,
        time_limit_s: float,
        scratch: Path,
    ) -> None:
        self._starts = [
            _Start(factory, setup, scratch / f"worker-{number}.log") for number in range(processes)
        ]
        self._limit_s = time_limit_s
        self._workers: list[_Worker[Task]] = []
        self._was_ready = False

    def __enter__(self) -> Pool[Setup, Task, Result]:
        self._workers = [_Worker(start) for start in self._starts]
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()
        self._workers = []

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Result | Lost]]:
        """Return each task with its result, in the order in which they are done.

        Raises `PoolStartError`.
        """
        left = iter(tasks)
        exhausted = False
        while True:
            for worker in self._workers:
                if not exhausted and worker.ready and worker.task is None:
                    task = next(left, None)
                    if task is None:
                        exhausted = True
                    else:
                        worker.give(task, self._limit_s)
            busy = [w for w in self._workers if w.task is not None or not (w.ready or exhausted)]
            if not busy:
                return
            soonest = min(worker.deadline for worker in busy)
            heard = wait([w.connection for w in busy], max(0.0, soonest - monotonic()))
            for worker in busy:
                if worker.connection in heard or worker.deadline <= monotonic():
                    yield from self._hear(worker, heard=worker.connection in heard)

    def _hear(self, worker: _Worker[Task], *, heard: bool) -> Iterator[tuple[Task, Result | Lost]]:
        task = worker.task
        try:
            message = worker.connection.recv() if heard else None
        except (EOFError, OSError):
            heard, message = True, None
        if message is None:
            why = worker.kill() if heard else worker.late()
            if task is not None:
                self._replace(worker)
                yield task, Lost(why)
            elif self._was_ready and worker.starts + 1 < MAX_STARTS:
                self._replace(worker, worker.starts + 1)
            else:
                raise PoolStartError(why)
        elif isinstance(message, _Ready):
            if message.problem is not None:
                raise PoolStartError(message.problem)
            worker.ready = self._was_ready = True
        else:
            worker.task = None
            assert task is not None
            yield task, message

    def _replace(self, worker: _Worker[Task], starts: int = 0) -> None:
        number = self._workers.index(worker)
        worker.kill()
        self._workers[number] = _Worker(self._starts[number], starts)


def _end_with_parent() -> None:
    """End this process when its parent has, whatever it serves then."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _serve(connection: Connection, start: _Start) -> None:
    work_quietly(start.log)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        serve = start.factory(start.setup)
    except Exception as error:
        connection.send(_Ready(f"{type(error).__name__}: {error}"))
        return
    gc.freeze()  # what was loaded is never looked at again
    connection.send(_Ready())
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            result = serve(task)
        except Exception as error:
            # A panic of native code is no Exception, and ends the process.
            result = Lost(f"{type(error).__name__}: {error}")
        connection.send(result)
