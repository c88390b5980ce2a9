"""A process that ends with the one that started it, however that one ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # of prctl(2)


def end_with(parent: int) -> None:
    """End this process when the thread that started it ends; do nothing outside Linux.

    A worker that hangs in native code would outlive a run that is killed: it finds out that its
    pipe is closed only when it has something to say.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it had ended before
        os._exit(1)
