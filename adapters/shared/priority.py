"""Lower priorities for threads whose work can wait."""

import os
import sys
import threading

NICER = 15
"""How much lower the priority of heavy work is that releases Python's lock: about a thirtieth of
the share of other threads."""
NICER_IN_PYTHON = 5
"""The same of work in Python: about a third. It holds Python's lock, so that others wait for it."""
_LOWEST = 19


def step_back(thread: int | None = None, *, nicer: int = NICER) -> None:
    """Lower the priority of a thread, or of this one. Only Linux has one for each thread."""
    if sys.platform != "linux":
        return
    thread = threading.get_native_id() if thread is None else thread
    now = os.getpriority(os.PRIO_PROCESS, thread)
    # Raising the niceness is always allowed; lowering it needs privileges.
    os.setpriority(os.PRIO_PROCESS, thread, min(now + nicer, _LOWEST))
