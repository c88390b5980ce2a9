"""Separate threads for light and heavy work, so that heavy work delays no other.

Heavy work has few threads of a lower priority: all other work gets the processor first, and many
heavy requests wait only for each other.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

from ffwd.adapters.shared.priority import NICER, step_back


def quick_lane(name: str, threads: int) -> ThreadPoolExecutor:
    """Return threads for work with a small bound."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"ffwd-{name}")


def heavy_lane(name: str, threads: int = 1, *, nicer: int = NICER) -> ThreadPoolExecutor:
    """Return threads for slow work, at a low priority if the system supports it."""
    return ThreadPoolExecutor(
        threads,
        thread_name_prefix=f"ffwd-heavy-{name}",
        initializer=partial(step_back, nicer=nicer),
    )


@dataclass(eq=False)
class Job:
    """A call in a `ReplacingLane`, the thread that runs it, and whether it was replaced."""

    call: Callable[[], object] | None
    """None once it has begun: what it refers to may hold the job."""
    thread: int | None = None
    began: float | None = None
    """When the thread began with it, in `time.monotonic`."""
    done: bool = False
    replaced: bool = False


class ReplacingLane:
    """Threads for short calls; a slow call is replaced, so that it does not block the others.

    Args:
        name: Of the threads.
        threads: How many calls run at once, those aside that have been replaced.

    """

    def __init__(self, name: str, threads: int) -> None:
        self._name = f"ffwd-{name}"
        self._threads = threads
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        for _ in range(threads):
            self._begin()

    def submit(self, call: Callable[[], object]) -> Job:
        """Have a thread make a call, which raises nothing."""
        job = Job(call)
        self._queue.put(job)
        return job

    def replace(self, job: Job) -> None:
        """Continue a running call at a lower priority, and start a new thread in its place."""
        with self._lock:
            if job.thread is None or job.done or job.replaced:
                return
            job.replaced = True
            step_back(job.thread)
        self._begin()

    def close(self) -> None:
        """End the threads when they have made the calls that are waiting."""
        for _ in range(self._threads):
            self._queue.put(None)

    def _begin(self) -> None:
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while self._call_next():
            pass

    def _call_next(self) -> bool:
        """Make the next call, and return whether this thread should make another.

        Waiting for the next call holds no reference to the previous one.
        """
        job = self._queue.get()
        if job is None or job.call is None:
            return False
        with self._lock:
            job.thread, job.began = threading.get_native_id(), time.monotonic()
        call, job.call = job.call, None
        call()
        with self._lock:
            job.done = True
            return not job.replaced
