"""Which processors there are to measure on: one of each physical core."""

from __future__ import annotations

import os
from pathlib import Path

from maskbench.runs.settings import ExecutorError


def physical_cores() -> list[int]:
    """Return the lowest processor of each core that this process may use, ascending.

    Two processors of one core take turns on its units, so that what runs on one slows the other.
    """
    if hasattr(os, "sched_getaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
    else:
        allowed = list(range(os.cpu_count() or 1))
    cores: dict[str, int] = {}
    for processor in allowed:
        cores.setdefault(_siblings(processor), processor)
    return list(cores.values())


def pins_for(jobs: int, pins: tuple[int, ...]) -> list[int | None]:
    """Return the processor of each group of engines: the given ones, or the last cores.

    A single group is only pinned on request. Raises `ExecutorError`.
    """
    if pins:
        if len(pins) != jobs or len(set(pins)) != jobs:
            raise ExecutorError(f"--jobs {jobs} needs {jobs} processors in --pin, got {len(pins)}")
        return list(pins)
    if jobs == 1:
        return [None]
    cores = physical_cores()
    if jobs > len(cores):
        raise ExecutorError(
            f"--jobs {jobs}: there are {len(cores)} cores to measure on, and engines that share "
            "one are measured with each other's work"
        )
    # The first ones are where the rest of the machine tends to be.
    return list(cores[-jobs:])


def _siblings(processor: int) -> str:
    """Return the identity that the processors of a core share."""
    topology = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    try:
        return topology.read_text(encoding="ascii").strip()
    except OSError:
        return str(processor)
