"""Compiled grammars of an engine: each compiled once, on separate threads, in bounded memory."""

import os
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias

import ffwd
from ffwd import CompiledGrammar, Grammar, LimitExceededError, Limits, Vocabulary
from ffwd.adapters.shared.metrics import GrammarMetrics
from ffwd.adapters.shared.requests import GrammarRequest, grammar_of

DEFAULT_CACHE_BYTES = 1 << 30
DEFAULT_LIMITS = Limits()
_MEASURED_AGAIN = 4
"""How many of the grammars that are kept are measured whenever one is added.

The interpreter lock is held meanwhile, and an engine's step waits for it."""

_Work: TypeAlias = tuple[GrammarRequest, Limits]
"""What is compiled, and what it may use."""

_caches: "weakref.WeakSet[GrammarCache]" = weakref.WeakSet()


@dataclass(frozen=True)
class CacheStats:
    """The counters and the size of a cache.

    Attributes:
        hits: Requests whose grammar was there, or was being compiled.
        misses: Requests whose grammar had to be compiled.
        failures: Of these, those with an error; errors are not kept.
        evictions: Grammars that were evicted for the bound. Matchers that use one keep it.
        grammars: How many are held.
        memory_bytes: About how many bytes they hold, what was built lazily included.

    """

    hits: int
    misses: int
    failures: int
    evictions: int
    grammars: int
    memory_bytes: int


class GrammarCache:
    """Compiled grammars by their requests; the least recently used is evicted first.

    Any number of threads may ask; a grammar that several ask for at once is compiled once. A
    process that is forked keeps what is there, and has threads of its own.

    The grammars grow as they are used. So whenever one is added, a few of the others are measured
    again, each in its turn, and the bound is checked: the work does not grow with their number.

    Args:
        vocabulary: What the grammars are compiled for.
        max_bytes: How many bytes the grammars that are kept may hold together. The newest is
            always kept.
        limits: What each of them may use.
        workers: How many threads `submit` compiles with.
        read: What a request is as a grammar.
        metrics: Where requests, compilations and refusals are counted.

    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        max_bytes: int = DEFAULT_CACHE_BYTES,
        limits: Limits = DEFAULT_LIMITS,
        workers: int = 2,
        read: Callable[[GrammarRequest], Grammar] = grammar_of,
        metrics: GrammarMetrics | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self._max_bytes = max_bytes
        self._limits = limits
        self._read = read
        self._metrics = metrics
        self._kept: OrderedDict[GrammarRequest, CompiledGrammar] = OrderedDict()
        self._held: dict[GrammarRequest, int] = {}
        self._total = 0
        self._turn: list[GrammarRequest] = []
        self._hits = self._misses = self._failures = self._evictions = 0
        self._num_workers = workers
        self._begin()
        _caches.add(self)

    def _begin(self) -> None:
        """Make a lock and threads of this process, without another one's unfinished work."""
        self._lock = Lock()
        self._in_progress: dict[_Work, Future[CompiledGrammar]] = {}
        self._workers = ThreadPoolExecutor(self._num_workers, thread_name_prefix="ffwd-compile")

    def get(
        self, request: GrammarRequest, *, limits: Limits | None = None, counts: bool = True
    ) -> CompiledGrammar:
        """Return the compiled grammar; compile it in this thread if necessary.

        Args:
            request: What is asked for.
            limits: What it may use if it has to be compiled, instead of the limits of all.
            counts: Whether metrics count it as a request.

        Raises:
            FfwdError: What is wrong with the grammar, as `grammar_of` and `ffwd.compile` say it.

        """
        work = (request, limits or self._limits)
        metrics = self._metrics if counts else None
        found = self._find(work, metrics)
        if isinstance(found, CompiledGrammar):
            return found
        future, is_ours = found
        if is_ours:
            self._compile(work, future, metrics)
        return future.result()

    def kept(self, request: GrammarRequest) -> CompiledGrammar | None:
        """Return the cached grammar, if any; nothing is compiled or counted."""
        with self._lock:
            return self._kept.get(request)

    def submit(self, request: GrammarRequest) -> "Future[CompiledGrammar]":
        """Return the compiled grammar, or its error, as a future of a thread."""
        work = (request, self._limits)
        found = self._find(work, self._metrics)
        if isinstance(found, CompiledGrammar):
            done: Future[CompiledGrammar] = Future()
            done.set_result(found)
            return done
        future, is_ours = found
        if is_ours:
            try:
                self._workers.submit(self._compile, work, future, self._metrics)
            except RuntimeError as error:  # After `close`.
                self._finish(work, future, error)
        return future

    def stats(self) -> CacheStats:
        """Return counters since it was made, and what is held now."""
        with self._lock:
            kept = list(self._kept.values())
            counts = (self._hits, self._misses, self._failures, self._evictions)
        return CacheStats(*counts, grammars=len(kept), memory_bytes=sum(map(_held, kept)))

    def clear(self) -> None:
        """Evict all grammars; matchers keep theirs."""
        with self._lock:
            self._kept.clear()
            self._held.clear()
            self._total = 0

    def close(self) -> None:
        """Evict all grammars and end the threads; running compilations finish."""
        self._workers.shutdown(wait=False)
        self.clear()

    def _find(
        self, work: _Work, metrics: GrammarMetrics | None
    ) -> CompiledGrammar | tuple["Future[CompiledGrammar]", bool]:
        """Return the grammar, or its future and whether the caller must compile it."""
        found = self._look_up(work)
        is_new = isinstance(found, tuple) and found[1]
        if metrics is not None and not is_new:
            metrics.cached()
        return found

    def _look_up(self, work: _Work) -> CompiledGrammar | tuple["Future[CompiledGrammar]", bool]:
        request, _ = work
        with self._lock:
            kept = self._kept.get(request)
            if kept is not None:
                self._kept.move_to_end(request)
                self._hits += 1
                return kept
            future = self._in_progress.get(work)
            if future is not None:
                self._hits += 1
                return future, False
            self._misses += 1
            future = self._in_progress[work] = Future()
            return future, True

    def _compile(
        self, work: _Work, future: "Future[CompiledGrammar]", metrics: GrammarMetrics | None
    ) -> None:
        request, limits = work
        began = time.perf_counter()
        try:
            compiled = ffwd.compile(self._read(request), self.vocabulary, limits=limits)
        # Any error belongs to the waiting callers, who would wait forever otherwise.
        except BaseException as error:
            # Under smaller limits than those of all, the request is made again.
            is_final = limits == self._limits or not isinstance(error, LimitExceededError)
            if metrics is not None and is_final:
                metrics.refused(error)
            self._finish(work, future, error)
            if not isinstance(error, Exception):
                raise
        else:
            if metrics is not None:
                metrics.compiled(time.perf_counter() - began)
            self._finish(work, future, compiled)

    def _finish(
        self,
        work: _Work,
        future: "Future[CompiledGrammar]",
        outcome: CompiledGrammar | BaseException,
    ) -> None:
        if isinstance(outcome, CompiledGrammar):
            self._keep(work, outcome)
            future.set_result(outcome)
            return
        with self._lock:
            self._in_progress.pop(work, None)
            self._failures += 1
        future.set_exception(outcome)

    def _keep(self, work: _Work, compiled: CompiledGrammar) -> None:
        """Add a grammar, and evict others for it."""
        request, _ = work
        with self._lock:
            self._in_progress.pop(work, None)
            self._kept[request] = compiled
            if not self._turn:
                self._turn = list(self._kept)
            turn, self._turn = self._turn[:_MEASURED_AGAIN], self._turn[_MEASURED_AGAIN:]
            due = {other: self._kept[other] for other in turn if other in self._kept}
        due[request] = compiled
        # Without the lock, because a grammar that another thread is building may take a moment to
        # answer.
        measured = {other: _held(grammar) for other, grammar in due.items()}
        with self._lock:
            for other, size in measured.items():
                if self._kept.get(other) is due[other]:
                    self._total += size - self._held.get(other, 0)
                    self._held[other] = size
            self._evict()

    def _evict(self) -> None:
        while self._total > self._max_bytes and len(self._kept) > 1:
            oldest, _ = self._kept.popitem(last=False)
            self._total -= self._held.pop(oldest, 0)
            self._evictions += 1


def _begin_in_child() -> None:
    """Start again in a forked process."""
    for cache in list(_caches):
        cache._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)


def _held(compiled: CompiledGrammar) -> int:
    return compiled.stats()["memory_bytes"]
