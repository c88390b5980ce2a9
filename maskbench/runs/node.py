"""On a machine of a cluster: one chunk for all engines in turn, with the same limits as ever.

A process of the cluster that gets chunk after chunk keeps its engines between them.
"""

from __future__ import annotations

import atexit
import os
import pickle
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from maskbench.engines import EngineSetup
from maskbench.runs.cores import physical_cores
from maskbench.runs.local import Group
from maskbench.runs.settings import EngineStart, EngineStartError, RunSettings, Turn, TurnResult


@dataclass(frozen=True)
class NodeSetup:
    """The settings with which a run's engines start."""

    engines: tuple[str, ...]
    setup: EngineSetup
    settings: RunSettings


@dataclass(frozen=True)
class NodeResult:
    """The results of a chunk, and the engines' versions on this machine."""

    starts: dict[str, EngineStart]
    turns: tuple[TurnResult, ...]


_groups: dict[NodeSetup, Group] = {}
"""The engines of this process, by what they were started with; one at most."""


def serve(folder: str, work: bytes) -> bytes:
    """Run a chunk as it is sent: pickled, with its files unpacked in the folder.

    Returns a pickled `NodeResult`, or an `EngineStartError`.
    """
    node, turns = pickle.loads(work)
    directory = Path(folder) / "tokenizer"
    if directory.is_dir():
        tokenizer = replace(node.setup.tokenizer, directory=directory)
        node = replace(node, setup=replace(node.setup, tokenizer=tokenizer))
    try:
        return pickle.dumps(run_turns(node, turns))
    except EngineStartError as error:
        return pickle.dumps(error)


def run_turns(node: NodeSetup, turns: Sequence[Turn]) -> NodeResult:
    """Run the turns on a processor that no other chunk has. Raises `EngineStartError`."""
    with _own_processor() as processor:
        group = _group(node, processor)
        for process in group.processes:
            _move(process.pid, processor)
        results = tuple(group.run(turns, lambda engine: None))
        return NodeResult(group.starts, results)


def _group(node: NodeSetup, processor: int | None) -> Group:
    found = _groups.get(node)
    if found is None:
        while _groups:
            _groups.popitem()[1].__exit__(None, None, None)
        scratch = Path(tempfile.mkdtemp(prefix="maskbench-"))
        settings = replace(node.settings, pin=processor)
        found = Group(node.engines, node.setup, settings, scratch)
        found.__enter__()
        atexit.register(found.__exit__, None, None, None)
        _groups[node] = found
    else:
        # Processes that are started again are to begin on this chunk's processor.
        for process in found.processes:
            process.pin(processor)
    return found


def _move(pid: int | None, processor: int | None) -> None:
    """Move a process with all its threads."""
    if pid is None or processor is None or not hasattr(os, "sched_setaffinity"):
        return
    with suppress(psutil.Error, OSError):
        for thread in psutil.Process(pid).threads():
            os.sched_setaffinity(thread.id, {processor})


@contextmanager
def _own_processor() -> Iterator[int | None]:
    """Wait for a core without another chunk on this machine, and hold it.

    A cluster counts processors without saying which; a locked file for each says it.
    """
    try:
        import fcntl
    except ImportError:  # not a Unix
        yield None
        return
    folder = Path(tempfile.gettempdir()) / f"maskbench-processors-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    cores = physical_cores()[::-1]
    while True:
        for core in cores:
            with (folder / str(core)).open("w") as file:
                try:
                    fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    continue
                yield core
                return
        time.sleep(0.1)
