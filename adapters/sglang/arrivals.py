"""Requests whose grammars are still compiled do not delay those that are running.

While a grammar is compiled, SGLang's scheduler waits for it before each step, for
`SGLANG_GRAMMAR_POLL_INTERVAL` seconds: 5 ms, about as long as a step. With ffwd's backend it looks
once if requests are running, and waits as before if none is.
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
            self.SGLANG_GRAMMAR_POLL_INTERVAL = min(interval, _ONE_LOOK_SECONDS)
            try:
                return original(self)
            finally:
                self.SGLANG_GRAMMAR_POLL_INTERVAL = interval

        return get_ready_grammar_requests

    return wrap


def _is_running(scheduler: Any) -> bool:
    # The requests of a first pass are in the last batch only.
    batches = (scheduler.running_batch, scheduler.last_batch)
    return any(batch is not None and not batch.is_empty() for batch in batches)
