"""The set-up of a process: its processor, so that times contain no moves, and its output."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from pathlib import Path

from maskbench.errors import InputError


class ProcessorError(InputError, ValueError):
    """A processor that this process may not run on; the message names it."""


def work_quietly(log: Path) -> None:
    """Write all output of this process to a file, crashes too; interrupts are the parent's."""
    # Native code writes to the descriptors themselves, so these are replaced.
    sys.stdout.flush()
    sys.stderr.flush()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()


def stay_on(processor: int) -> None:
    """Run this process, and the threads that it will start, on one processor.

    Does nothing where the system cannot do it. Raises `ProcessorError`.
    """
    _keep_to({processor})


def stay_off(*processors: int) -> None:
    """Leave processors to others, unless there are no more."""
    if hasattr(os, "sched_getaffinity"):
        others = os.sched_getaffinity(0) - set(processors)
        if others:
            _keep_to(others)


def _keep_to(processors: set[int]) -> None:
    if not hasattr(os, "sched_setaffinity"):
        return
    try:
        os.sched_setaffinity(0, processors)
    except OSError as error:
        named = ", ".join(str(number) for number in sorted(processors))
        raise ProcessorError(f"cannot run on processor {named}: {error.strerror}") from error
