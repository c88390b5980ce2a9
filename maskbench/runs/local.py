"""Chunks on this machine: groups of engines, each group on its own processor."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from maskbench.engines import EngineSetup
from maskbench.runs import memory
from maskbench.runs.process import EngineProcess, StoppedError
from maskbench.runs.settings import EngineStart, RunSettings, Turn, TurnResult
from maskbench.verdicts import SchemaRecord

Progress = Callable[[str], None]


class Group:
    """One process for each engine and round. They never run at the same time.

    The processes of an engine's rounds meet the same schemas in the same order. So they keep the
    same between schemas, and no round knows anything from another.
    """

    def __init__(
        self,
        engines: Sequence[str],
        setup: EngineSetup,
        settings: RunSettings,
        scratch: Path,
        stop: threading.Event | None = None,
    ) -> None:
        self._rounds: dict[str, list[EngineProcess]] = {name: [] for name in engines}
        for number in range(settings.rounds):
            folder = scratch / f"round-{number}"
            folder.mkdir(parents=True, exist_ok=True)
            for name, rounds in self._rounds.items():
                rounds.append(EngineProcess(name, setup, settings, folder, stop))
        self._stack = ExitStack()

    def __enter__(self) -> Group:
        with ExitStack() as stack:
            for process in self.processes:
                stack.enter_context(process)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def processes(self) -> list[EngineProcess]:
        """Return those of all engines and rounds."""
        return [process for rounds in self._rounds.values() for process in rounds]

    @property
    def starts(self) -> dict[str, EngineStart]:
        """Return the versions and settings of each engine."""
        return {name: rounds[0].start for name, rounds in self._rounds.items()}

    def run(self, turns: Iterable[Turn], progress: Progress) -> Iterator[TurnResult]:
        """Return one turn after the other. Raises `EngineStartError` and `StoppedError`."""
        for turn in turns:
            *others, last = self._rounds[turn.engine]
            rounds = [process.run(turn.jobs, lambda: None) for process in others]
            rounds.append(last.run(turn.jobs, partial(progress, turn.engine)))
            records = tuple(map(SchemaRecord.of_rounds, zip(*rounds, strict=True)))
            peak = memory.largest(*(process.peak_memory_bytes for process in (*others, last)))
            yield TurnResult(turn.chunk, turn.engine, records, peak)


class LocalExecutor:
    """Runs one group of engines on each pinned processor.

    One group runs within the caller's thread. Each of several has a thread, which waits for its
    engines nearly all the time. All take chunks from the same list, so that none is idle before the
    list is empty.
    """

    def __init__(
        self,
        engines: Sequence[str],
        setup: EngineSetup,
        settings: RunSettings,
        scratch: Path,
        progress: Progress,
        pins: Sequence[int | None] | None = None,
    ) -> None:
        self._stop = threading.Event()
        self._progress = progress
        self._groups = []
        for number, pin in enumerate([settings.pin] if pins is None else pins):
            folder = scratch / f"group-{number}"
            folder.mkdir(parents=True, exist_ok=True)
            pinned = replace(settings, pin=pin)
            self._groups.append(Group(engines, setup, pinned, folder, self._stop))
        self._stack = ExitStack()

    def __enter__(self) -> LocalExecutor:
        # The others start in the threads that use them, for a worker ends with its thread.
        self._stack.enter_context(self._groups[0])
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._stack.close()

    @property
    def starts(self) -> dict[str, EngineStart]:
        """Return the versions and settings of each engine."""
        return self._groups[0].starts

    def run(self, chunks: Iterable[Sequence[Turn]]) -> Iterator[TurnResult]:
        """Run the turns of all chunks, and yield them as they end. Raises `EngineStartError`."""
        if len(self._groups) == 1:
            for turns in chunks:
                yield from self._groups[0].run(turns, self._progress)
            return
        yield from self._side_by_side(chunks)

    def _side_by_side(self, chunks: Iterable[Sequence[Turn]]) -> Iterator[TurnResult]:
        left = iter(chunks)
        taking = threading.Lock()
        done: queue.SimpleQueue[TurnResult | BaseException | None] = queue.SimpleQueue()

        def serve(group: Group, *, started: bool) -> None:
            try:
                with ExitStack() as stack:
                    if not started:
                        stack.enter_context(group)
                    while not self._stop.is_set():
                        with taking:
                            turns = next(left, None)
                        if turns is None:
                            break
                        for result in group.run(turns, self._progress):
                            done.put(result)
                done.put(None)
            except StoppedError:
                done.put(None)
            except BaseException as error:  # raised again where the results are taken
                done.put(error)

        threads = [
            threading.Thread(target=serve, args=(group,), kwargs={"started": number == 0})
            for number, group in enumerate(self._groups)
        ]
        for thread in threads:
            thread.start()
        try:
            running = len(threads)
            while running:
                result = done.get()
                if isinstance(result, BaseException):
                    raise result
                if result is None:
                    running -= 1
                else:
                    yield result
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
