"""Requests whose grammars are still compiled do not delay those that are running.

While a grammar is compiled, SGLang's scheduler waits for it before each step, for
`SGLANG_GRAMMAR_POLL_INTERVAL` seconds: 5 ms, about as long as a step. With ffwd's backend it looks
once if requests are running, and waits as before if none is.

Several processes that look at one queue agree on the positions of what is ready, so each sees all
of it, and sleeps for the shortest time after its look. A single one is not shown what is not ready,
and does not sleep: the shortest sleep is 50 microseconds, and the thread that compiles takes the
interpreter lock meanwhile.
"""

import functools
from collections.abc import Callable
from typing import Any

# Long enough for SGLang's loop to look once, and too short for a second look.
_ONE_LOOK_SECONDS = 2e-5


def without_waiting(backend: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the wrapper of `GrammarManager.get_ready_grammar_requests` for a class of backends."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def get_ready_grammar_requests(self: Any) -> Any:
            ours = getattr(self.grammar_backend, "grammar_backend", self.grammar_backend)
            if not isinstance(ours, backend) or not _is_running(self.scheduler):
                return original(self)
            interval = self.SGLANG_GRAMMAR_POLL_INTERVAL
            shown: list[Any] = self.grammar_queue
            hidden: list[Any] = []
            if not _is_shared(self):
                shown, hidden = _split(shown, self.SGLANG_GRAMMAR_MAX_POLL_ITERATIONS)
            self.grammar_queue = shown
            self.SGLANG_GRAMMAR_POLL_INTERVAL = min(interval, _ONE_LOOK_SECONDS)
            try:
                return original(self)
            finally:
                self.SGLANG_GRAMMAR_POLL_INTERVAL = interval
                self.grammar_queue += hidden

        return get_ready_grammar_requests

    return wrap


def _is_running(scheduler: Any) -> bool:
    # The requests of a first pass are in the last batch only.
    batches = (scheduler.running_batch, scheduler.last_batch)
    return any(batch is not None and not batch.is_empty() for batch in batches)


def _is_shared(manager: Any) -> bool:
    return bool(manager.grammar_sync_size > 1 or manager.pp_size > 1)


def _split(queue: list[Any], most_looks: int) -> tuple[list[Any], list[Any]]:
    """Return the requests that SGLang has to look at, and the others, which have been looked at."""
    shown, hidden = [], []
    for request in queue:
        # An aborted one has ended, or its grammar is None.
        is_ready = request.finished() or request.grammar is None or request.grammar.done()
        # After its last look SGLang gives up.
        if is_ready or request.grammar_wait_ct + 1 >= most_looks:
            shown.append(request)
        else:
            request.grammar_wait_ct += 1
            hidden.append(request)
    return shown, hidden
