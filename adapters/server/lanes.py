"""Threads apart by what their work costs, so that heavy work delays no other.

Heavy work has few threads of a lower priority: whatever else has to be done gets the processor
first, and many heavy requests wait for each other only.
"""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

_NICER = 5
"""How much lower the priority of heavy work is: about a third of the share of other threads. A
thread may hold Python's lock, so that it must not be starved altogether."""
_LOWEST = 19


def quick_lane(name: str, threads: int) -> ThreadPoolExecutor:
    """Threads for work that is bounded by something small."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"ffwd-{name}")


def heavy_lane(name: str, threads: int = 1) -> ThreadPoolExecutor:
    """Threads for work that may take long, behind all others where the system knows of that."""
    return ThreadPoolExecutor(
        threads, thread_name_prefix=f"ffwd-heavy-{name}", initializer=_step_back
    )


def _step_back() -> None:
    """Lower the priority of this thread. Only Linux has priorities of single threads."""
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    now = os.getpriority(os.PRIO_PROCESS, thread)
    # More is always allowed, and less only to the privileged.
    os.setpriority(os.PRIO_PROCESS, thread, min(now + _NICER, _LOWEST))
