"""The thread that runs the model: continuous batching, with masks computed in parallel.

In each round, sequences join and leave. Those with a mask go through the model together, and a
token is chosen for each with fresh logits. Other threads accept it, append forced tokens and
compute the next mask. A pass waits a moment for masks, and then runs without the sequences whose
masks are late, so a slow grammar delays its own sequence only.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ffwd.adapters.server.errors import ApiError, internal, late, stopping
from ffwd.adapters.server.lanes import Job, ReplacingLane, heavy_lane
from ffwd.adapters.server.metrics import ServerMetrics
from ffwd.adapters.server.options import ServerOptions
from ffwd.adapters.server.sampling import choose
from ffwd.adapters.server.slots import SlotModel
from ffwd.adapters.server.texts import ON_TIME_AGAIN, Text, advance

_log = logging.getLogger("ffwd.server")

_SLOW_THREADS = 2
_POLL = 0.25
"""Seconds between looks at deadlines while nothing happens."""
_STUCK = 0.05
"""Seconds after which a mask gives its place among the quick ones up. Others may wait for it."""


@dataclass(eq=False)
class _Work:
    """Texts of one grammar that are being advanced."""

    texts: list[Text]
    waited_for: bool
    job: Job | None = None
    """In the quick lane."""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    """Which do not grow because others keep the machine busy."""
    error: BaseException | None = None


class Scheduler:
    """Writes texts with a model.

    Args:
        model: Runs the forward passes; this thread alone uses it.
        vocab_size: How many of its logits are tokens.
        max_cached_tokens: How many tokens its cache has room for.
        options: Limits.
        metrics: Counters.

    """

    def __init__(
        self,
        model: SlotModel,
        *,
        vocab_size: int,
        max_cached_tokens: int,
        options: ServerOptions,
        metrics: ServerMetrics,
    ) -> None:
        self._model = model
        self._vocab_size = vocab_size
        self._max_cached = max_cached_tokens
        self._options = options
        self._metrics = metrics
        self._changed = threading.Condition()
        self._waiting: deque[Text] = deque()
        self._done: deque[_Work] = deque()
        self._running: list[Text] = []
        self._work: set[_Work] = set()
        self._stopping = False
        self._fast = ReplacingLane("mask", options.mask_threads)
        self._slow = heavy_lane("mask", _SLOW_THREADS)
        self._thread = threading.Thread(target=self._run, name="ffwd-model", daemon=True)
        metrics.watch(metrics.running, lambda: len(self._running))
        metrics.watch(metrics.waiting, lambda: len(self._waiting))

    # ------------------------------------------------------------------------ for other threads

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it works."""
        return self._thread.is_alive() and not self._stopping

    @property
    def idle(self) -> bool:
        """Whether no text is there."""
        return not self._running and not self._waiting

    def submit(self, texts: Sequence[Text]) -> None:
        """Write texts.

        Raises:
            ApiError: The server is shutting down.

        """
        with self._changed:
            if self._stopping:
                raise stopping()
            self._waiting.extend(texts)
            self._changed.notify()

    def cancel(self, texts: Sequence[Text]) -> None:
        """Abandon texts in any state."""
        with self._changed:
            for text in texts:
                text.cancelled = True
            self._changed.notify()

    def stop(self) -> None:
        """End the remaining texts with an error, and the threads."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(timeout=60)
        self._fast.close()
        self._slow.shutdown(wait=False, cancel_futures=True)

    # --------------------------------------------------------------------------- the model's own

    def _run(self) -> None:
        while not self._stopping:
            self._guarded_round()
        self._drop_all(stopping())

    def _guarded_round(self) -> None:
        try:
            self._round()
        # Their requests get the error; the thread must continue for the others.
        except Exception as error:
            _log.exception("a round of the scheduler failed")
            self._drop_all(internal(error))

    def _round(self) -> None:
        self._retire()
        self._admit()
        self._collect()
        self._replace()
        ready = [text for text in self._running if text.ready and text.open]
        if ready:
            self._pass(ready)
            return
        if not self._running:
            self._model.release()
        with self._changed:
            if not self._done and not self._stopping and not self._has_new():
                self._changed.wait(self._pause())

    def _pause(self) -> float | None:
        """Return how many seconds to wait for news at most."""
        if any(work.job is not None for work in self._work):
            return _STUCK
        return _POLL if self._running or self._waiting else None

    def _has_new(self) -> bool:
        return any(text.cancelled for text in self._running) or (
            bool(self._waiting) and len(self._running) < self._options.max_batch and self._fits()
        )

    def _retire(self) -> None:
        """Free the slots of finished sequences; the last slot's sequence moves into each."""
        now = time.monotonic()
        with self._changed:
            expired = [text for text in self._waiting if text.deadline <= now]
            gone = {id(text) for text in self._waiting if text.cancelled or text.deadline <= now}
            if gone:
                self._waiting = deque(text for text in self._waiting if id(text) not in gone)
        for text in [*expired, *(text for text in self._running if text.deadline <= now)]:
            text.fail(late(self._options.deadline))
        slot = 0
        while slot < len(self._running):
            text = self._running[slot]
            if not (text.finished or text.cancelled):
                slot += 1
                continue
            self._metrics.completion_tokens.inc(text.num_tokens)
            self._metrics.forced_tokens.inc(text.forced)
            moved = self._running.pop()
            if moved is not text:
                self._model.move(len(self._running), slot, moved.in_cache)
                self._running[slot] = moved

    def _admit(self) -> None:
        joined: list[Text] = []
        with self._changed:
            while self._waiting and len(self._running) < self._options.max_batch and self._fits():
                text = self._waiting.popleft()
                self._running.append(text)
                joined.append(text)
        for text in joined:
            self._metrics.prompt_tokens.inc(text.num_prompt)
        self._advance(joined, [None] * len(joined))

    def _fits(self) -> bool:
        """Whether the cache has room for the next text, as long as it and the others may become."""
        longest = max(text.longest for text in (*self._running, self._waiting[0]))
        return (len(self._running) + 1) * longest <= self._max_cached

    def _collect(self) -> None:
        """Wait a moment for masks, and return the finished ones."""
        until = time.monotonic() + self._options.late
        with self._changed:
            while not self._stopping and any(work.waited_for for work in self._work):
                self._take_done()
                left = until - time.monotonic()
                outstanding = [work for work in self._work if work.waited_for]
                if not outstanding:
                    break
                if left > 0:
                    self._changed.wait(left)
                    continue
                for work in outstanding:
                    work.waited_for = False
                    self._metrics.late_masks.inc(len(work.texts))
                    for text in work.texts:
                        text.late = ON_TIME_AGAIN
            self._take_done()

    def _replace(self) -> None:
        """Replace threads that are stuck in one mask."""
        before = time.monotonic() - _STUCK
        for work in self._work:
            if work.job is not None and (work.job.began or before) < before:
                self._fast.replace(work.job)

    def _take_done(self) -> None:
        while self._done:
            work = self._done.popleft()
            self._work.discard(work)
            self._metrics.mask_seconds.observe(work.seconds)
            for text in work.texts:
                if work.error is not None:
                    text.fail(internal(work.error))
                text.ready = True
                if text.late and work.seconds < self._options.late:
                    text.late -= 1
                if work.processor_seconds >= self._options.late:
                    text.heavy = ON_TIME_AGAIN
                elif text.heavy:
                    text.heavy -= 1

    def _pass(self, ready: list[Text]) -> None:
        """Return one forward pass over short chunks, and some over parts of long ones."""
        slots = {id(text): slot for slot, text in enumerate(self._running)}
        size = self._options.prefill_tokens
        width = self._width([min(text.pending, size) for text in ready])
        short = [text for text in ready if text.pending <= width]
        long = [text for text in ready if text.pending > width]
        if short:
            self._forward(short, slots, width)
        # The first ones; the others wait for a later round.
        long.sort(key=lambda text: text.deadline)
        room = size
        while long and room > 0:
            taken, widest = self._neighbours(long, slots)
            self._forward(taken, slots, widest)
            room -= widest * len(taken)
            gone = {id(text) for text in taken}
            long = [text for text in long if id(text) not in gone]

    def _width(self, pending: list[int]) -> int:
        """Return the most input tokens of sequences that share a forward pass.

        All sequences are padded to the widest, so one with many forced tokens may be faster alone.
        The estimate counts the work in tokens, and the fixed cost of a pass.
        """
        count, beside = len(pending), self._model.pass_tokens
        best, least = 0, float("inf")
        for width in sorted({0, *pending}):
            # At most as long as a part of a prompt may delay the others.
            if count * width > max(self._options.prefill_tokens, count):
                break
            apart = [tokens + beside for tokens in pending if tokens > width]
            cost = sum(apart) + (count * width + beside if width else 0)
            if cost < least:
                best, least = width, cost
        return best

    def _neighbours(self, long: list[Text], slots: dict[int, int]) -> tuple[list[Text], int]:
        """Return the first sequence and those in the next slots that fit."""
        size = self._options.prefill_tokens
        taken, widest = [long[0]], min(long[0].pending, size)
        waiting = {slots[id(text)]: text for text in long}
        slot = slots[id(long[0])] + 1
        while slot in waiting:
            pending = min(waiting[slot].pending, size)
            wider = max(widest, pending)
            # Not if the padding would cost more than a pass.
            padding = wider * (len(taken) + 1) - widest * len(taken) - pending
            if wider * (len(taken) + 1) > size or padding > self._model.pass_tokens:
                break
            taken.append(waiting[slot])
            widest, slot = wider, slot + 1
        return taken, widest

    def _forward(self, texts: list[Text], slots: dict[int, int], width: int) -> None:
        places = {slots[id(text)]: text for text in texts}
        first, last = min(places), max(places) + 1
        chunks: list[list[int]] = []
        for slot in range(first, last):
            text = places.get(slot)
            chunks.append([] if text is None else text.ids[text.in_cache : text.in_cache + width])
        held = [text.in_cache for text in self._running[first:last]]
        try:
            logits = self._model.logits(first, held, chunks)
        except Exception as error:
            _log.exception("a forward pass failed")
            for text in texts:
                text.fail(internal(error))
            return
        self._metrics.forward_passes.inc()
        self._metrics.batch.observe(len(texts))
        whole: list[Text] = []
        for slot, text in sorted(places.items()):
            text.in_cache += len(chunks[slot - first])
            if not text.pending:
                whole.append(text)
        if not whole:
            return
        rows = [slots[id(text)] - first for text in whole]
        masks = [text.mask for text in whole if text.mask is not None]
        tokens = choose(
            logits[rows], masks, [text.sampling for text in whole], vocab_size=self._vocab_size
        )
        going: list[Text] = []
        chosen: list[int | None] = []
        for text, token in zip(whole, tokens, strict=True):
            if token is None:
                text.fail(internal(RuntimeError("the model gave no finite logits")))
            else:
                going.append(text)
                chosen.append(token)
        self._advance(going, chosen)

    def _advance(self, texts: Sequence[Text], tokens: Sequence[int | None]) -> None:
        """Let texts accept their tokens, those of one grammar together."""
        groups: dict[tuple[int, bool, bool], tuple[list[Text], list[int | None]]] = {}
        for text, token in zip(texts, tokens, strict=True):
            text.ready = False
            kind = (id(text.grammar), text.late > 0, text.heavy > 0)
            group = groups.setdefault(kind, ([], []))
            group[0].append(text)
            group[1].append(token)
        for (_, is_late, is_heavy), (members, given) in groups.items():
            work = _Work(members, waited_for=not is_late)
            self._work.add(work)
            call = partial(self._do, work, partial(advance, members, given))
            if is_heavy:
                self._slow.submit(call)
            else:
                work.job = self._fast.submit(call)

    def _do(self, work: _Work, call: Callable[[], float]) -> None:
        began = time.thread_time()
        try:
            work.seconds = call()
        # The thread that owns the texts reports it to them.
        except BaseException as error:
            work.error = error
        work.processor_seconds = time.thread_time() - began
        with self._changed:
            self._done.append(work)
            self._changed.notify()

    def _drop_all(self, error: ApiError) -> None:
        with self._changed:
            texts = [*self._running, *self._waiting]
            self._waiting.clear()
        for text in texts:
            text.fail(error)
        self._running.clear()
        self._work.clear()
        self._model.release()
