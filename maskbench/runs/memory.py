"""The memory of a process, and whether the system has killed it for that.

The measure is the resident size. A limit of the address space (`RLIMIT_AS`) would be cheaper. But
allocators and threads reserve far more of it than they ever use, so such a limit would change the
measurement.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

_RESET_PEAK = "5"  # of proc(5), /proc/pid/clear_refs

_SIGNS = ("std::bad_alloc", "memory allocation of", "MemoryError", "Cannot allocate memory")


def resident_bytes(pid: int) -> int | None:
    """Return the resident size of a process, None if the process does not exist."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def reset_own_peak() -> None:
    """Restart `own_peak_bytes`, if the system can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK, encoding="ascii")


def own_peak_bytes() -> int | None:
    """Return the largest resident size since `reset_own_peak`, None if it is unknown."""
    try:
        # Otherwise the peak would be that of the process's whole life.
        if not Path("/proc/self/clear_refs").exists():
            return None
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def be_the_first_to_go() -> None:
    """Ask the system to kill this process first when memory runs out, not its parent."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def kills_by_the_system() -> int | None:
    """Return how many processes the system has killed because memory ran out, if known."""
    try:
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    except OSError:
        pass
    return None


def speaks_of_memory(text: str) -> bool:
    """Return whether a message is one that a failed allocation leaves."""
    return any(sign in text for sign in _SIGNS)


def written(size: int) -> str:
    """Return a size for people, in GiB or MiB."""
    return f"{size / (1 << 30):.2f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MiB"


def largest(*sizes: int | None) -> int | None:
    """Return the largest of the known sizes."""
    return max((size for size in sizes if size is not None), default=None)
