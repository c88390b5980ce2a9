"""How much memory a process holds, and whether the system has killed it for that.

What counts is the resident size. The size of the address space would be cheaper to limit
(`RLIMIT_AS`), but allocators and threads reserve far more of it than they ever use, so that such
a limit changes what is measured.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

_RESET_PEAK = "5"  # of proc(5), /proc/pid/clear_refs

_SIGNS = ("std::bad_alloc", "memory allocation of", "MemoryError", "Cannot allocate memory")


def resident_bytes(pid: int) -> int | None:
    """The resident size of a process, None if there is no such process."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def reset_own_peak() -> None:
    """From here on `own_peak_bytes` counts anew, where the system can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK, encoding="ascii")


def own_peak_bytes() -> int | None:
    """The largest resident size since `reset_own_peak`, None where that is not known."""
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
    """Where memory runs out the system is to kill this process, and not the one that started it."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def kills_by_the_system() -> int | None:
    """How many processes the system has killed so far because memory ran out, if it says so."""
    try:
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    except OSError:
        pass
    return None


def speaks_of_memory(text: str) -> bool:
    """Whether a message is one that a failed allocation leaves."""
    return any(sign in text for sign in _SIGNS)


def written(size: int) -> str:
    """A size for people, in GiB or MiB."""
    return f"{size / (1 << 30):.2f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MiB"


def largest(*sizes: int | None) -> int | None:
    """The largest of the sizes that are known."""
    return max((size for size in sizes if size is not None), default=None)
