"""Keeping a process on one processor, so that times do not hold its moves."""

from __future__ import annotations

import os

from maskbench.errors import InputError


class ProcessorError(InputError, ValueError):
    """A processor that this process may not run on; the message names it."""


def stay_on(processor: int) -> None:
    """Runs this process, and the threads that it will start, on one processor.

    Does nothing where the system cannot do it. Raises `ProcessorError`.
    """
    _keep_to({processor})


def stay_off(*processors: int) -> None:
    """Leaves processors to others, unless there are no more."""
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
