"""Compiled grammars of an engine: each compiled once, by threads of its own, in bounded memory."""

import os
import weakref
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

import ffwd
from ffwd import CompiledGrammar, Grammar, Limits, Vocabulary
from ffwd.adapters.shared.requests import GrammarRequest, grammar_of

DEFAULT_CACHE_BYTES = 1 << 30
DEFAULT_LIMITS = Limits()


_caches: "weakref.WeakSet[GrammarCache]" = weakref.WeakSet()


@dataclass(frozen=True)
class CacheStats:
    """The counters and the size of a cache.

    Attributes:
        hits: Requests whose grammar was there, or was being compiled.
        misses: Requests whose grammar had to be compiled.
        failures: Of these, those with an error; errors are not kept.
        evictions: Grammars that were let go for the bound. Matchers that use one keep it.
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
    """Compiled grammars by their requests, the least recently used let go first.

    Any number of threads may ask; a grammar that several ask for at once is compiled once. A
    process that is forked keeps what is there, and has threads of its own.

    The grammars grow as they are used, so the bound is checked with what they hold at the time,
    whenever one is added.

    Args:
        vocabulary: What the grammars are compiled for.
        max_bytes: How many bytes the grammars that are kept may hold together. The newest is
            always kept.
        limits: What each of them may use.
        workers: How many threads `submit` compiles with.
        read: What a request is as a grammar.

    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        max_bytes: int = DEFAULT_CACHE_BYTES,
        limits: Limits = DEFAULT_LIMITS,
        workers: int = 2,
        read: Callable[[GrammarRequest], Grammar] = grammar_of,
    ) -> None:
        self.vocabulary = vocabulary
        self._max_bytes = max_bytes
        self._limits = limits
        self._read = read
        self._kept: OrderedDict[GrammarRequest, CompiledGrammar] = OrderedDict()
        self._hits = self._misses = self._failures = self._evictions = 0
        self._num_workers = workers
        self._begin()
        _caches.add(self)

    def _begin(self) -> None:
        """Make a lock and threads of this process, without another one's unfinished work."""
        self._lock = Lock()
        self._in_progress: dict[GrammarRequest, Future[CompiledGrammar]] = {}
        self._workers = ThreadPoolExecutor(self._num_workers, thread_name_prefix="ffwd-compile")

    def get(self, request: GrammarRequest) -> CompiledGrammar:
        """Return the compiled grammar; compile it in this thread if necessary.

        Raises:
            FfwdError: What is wrong with the grammar, as `grammar_of` and `ffwd.compile` say it.

        """
        found = self._find(request)
        if isinstance(found, CompiledGrammar):
            return found
        future, is_ours = found
        if is_ours:
            self._compile(request, future)
        return future.result()

    def kept(self, request: GrammarRequest) -> CompiledGrammar | None:
        """Return the cached grammar, if any; nothing is compiled or counted."""
        with self._lock:
            return self._kept.get(request)

    def submit(self, request: GrammarRequest) -> "Future[CompiledGrammar]":
        """Return the compiled grammar, or its error, as a future of a thread."""
        found = self._find(request)
        if isinstance(found, CompiledGrammar):
            done: Future[CompiledGrammar] = Future()
            done.set_result(found)
            return done
        future, is_ours = found
        if is_ours:
            try:
                self._workers.submit(self._compile, request, future)
            except RuntimeError as error:  # After `close`.
                self._finish(request, future, error)
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

    def close(self) -> None:
        """Evict all grammars and end the threads; running compilations finish."""
        self._workers.shutdown(wait=False)
        self.clear()

    def _find(
        self, request: GrammarRequest
    ) -> CompiledGrammar | tuple["Future[CompiledGrammar]", bool]:
        """Return the grammar, or its future and whether the caller must compile it."""
        with self._lock:
            kept = self._kept.get(request)
            if kept is not None:
                self._kept.move_to_end(request)
                self._hits += 1
                return kept
            future = self._in_progress.get(request)
            if future is not None:
                self._hits += 1
                return future, False
            self._misses += 1
            future = self._in_progress[request] = Future()
            return future, True

    def _compile(self, request: GrammarRequest, future: "Future[CompiledGrammar]") -> None:
        try:
            compiled = ffwd.compile(self._read(request), self.vocabulary, limits=self._limits)
        # Whatever it is belongs to those who wait, who would wait forever otherwise.
        except BaseException as error:
            self._finish(request, future, error)
            if not isinstance(error, Exception):
                raise
        else:
            self._finish(request, future, compiled)

    def _finish(
        self,
        request: GrammarRequest,
        future: "Future[CompiledGrammar]",
        outcome: CompiledGrammar | BaseException,
    ) -> None:
        with self._lock:
            self._in_progress.pop(request, None)
            if isinstance(outcome, CompiledGrammar):
                self._kept[request] = outcome
                self._let_go()
            else:
                self._failures += 1
        if isinstance(outcome, CompiledGrammar):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)

    def _let_go(self) -> None:
        held = {request: _held(kept) for request, kept in self._kept.items()}
        total = sum(held.values())
        while total > self._max_bytes and len(self._kept) > 1:
            oldest, _ = self._kept.popitem(last=False)
            total -= held[oldest]
            self._evictions += 1


def _begin_in_child() -> None:
    """Start again in a forked process."""
    for cache in list(_caches):
        cache._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)


def _held(compiled: CompiledGrammar) -> int:
    return compiled.stats()["memory_bytes"]
