"""The thread that runs the model: continuous batching, with masks computed in parallel.

In each round, sequences join and leave, and go through the model together. Other threads have
accepted their last tokens and appended the forced ones; they compute the masks while the model
runs. Then a token is chosen for each. A pass waits a moment for tokens at its beginning, and for
masks at its end. A sequence whose tokens are late joins a later pass, and one whose mask is late
keeps its logits, so a slow grammar delays its own sequence only.
"""

import logging
import operator
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from ffwd.adapters.logits import StagedBitmask, to_device
from ffwd.adapters.server.errors import ApiError, internal, late, stopping
from ffwd.adapters.server.lanes import Job, ReplacingLane, heavy_lane
from ffwd.adapters.server.logprobs import allowed, distributions, scored
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
    settled: bool = False
    """Whether a pass may take their tokens."""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    """Which do not grow because others keep the machine busy."""
    tokens: int = 0
    """How many came."""
    forced: int = 0
    """How many of them were forced."""
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
        self._settled = False
        """Whether tokens were settled since the round began."""
        self._stopping = False
        self._staged: StagedBitmask | None = None
        """Where the masks of a pass are put together; grows with the batch."""
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
        """Whether no text is there, and all work on earlier ones is counted."""
        return not (self._running or self._waiting or self._work)

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
        self._settled = False
        self._retire()
        self._admit()
        self._collect()
        self._replace()
        held = [text for text in self._running if text.logits is not None and text.ready]
        if held:
            self._choose(
                held, torch.stack([text.logits for text in held if text.logits is not None])
            )
        ready = [text for text in self._running if text.to_pass]
        if ready:
            self._pass(ready)
        if held or ready:
            return
        if not self._running:
            self._model.release()
        with self._changed:
            if not (self._done or self._settled or self._stopping or self._has_new()):
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
            text.logits = None
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
        """Wait a moment for accepted and forced tokens."""
        self._await(lambda: [work for work in self._work if work.waited_for and not work.settled])

    def _await(self, outstanding: Callable[[], list[_Work]]) -> None:
        """Wait a moment for threads; those that take longer are waited for no more."""
        until = time.monotonic() + self._options.late
        with self._changed:
            self._take_done()
            while not self._stopping and (missing := outstanding()):
                left = until - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    self._take_done()
                    continue
                for work in missing:
                    work.waited_for = False
                    self._metrics.late_masks.inc(len(work.texts))
                    for text in work.texts:
                        text.late = ON_TIME_AGAIN

    def _replace(self) -> None:
        """Replace threads that are stuck in one mask."""
        before = time.monotonic() - _STUCK
        for work in self._work:
            if work.job is not None and (work.job.began or before) < before:
                self._fast.replace(work.job)

    def _take_done(self) -> None:
        while self._done:
            work = self._done.popleft()
            self._metrics.mask_seconds.observe(work.seconds)
            self._metrics.completion_tokens.inc(work.tokens)
            self._metrics.forced_tokens.inc(work.forced)
            self._work.discard(work)
            for text in work.texts:
                if work.error is not None:
                    text.fail(internal(work.error))
                text.settled = text.ready = True
                if text.late and work.seconds < self._options.late:
                    text.late -= 1
                if work.processor_seconds >= self._options.late:
                    text.heavy = ON_TIME_AGAIN
                elif text.heavy:
                    text.heavy -= 1

    def _pass(self, ready: list[Text]) -> None:
        """Run the model over what the sequences have, in as few padded passes as pay."""
        slots = {id(text): slot for slot, text in enumerate(self._running)}
        room = self._options.prefill_tokens
        taken: dict[int, list[Text]] = {}
        # No token of an answer waits for prompts: those have their turns, the earliest first.
        for text in sorted(ready, key=lambda text: (text.pending > 1, text.deadline)):
            width = min(text.pending, self._options.prefill_tokens)
            if width == 1 or room == self._options.prefill_tokens or width <= room:
                taken.setdefault(width, []).append(text)
                room -= width if width > 1 else 0
        for widths in self._passes({width: len(texts) for width, texts in taken.items()}):
            texts = [text for width in widths for text in taken[width]]
            self._forward(sorted(texts, key=lambda text: slots[id(text)]), slots, max(widths))

    def _passes(self, counts: dict[int, int]) -> list[list[int]]:
        """Group the counts of new tokens, and of the sequences that have each, by forward passes.

        All sequences of a pass are padded to the widest. The cost is counted in tokens, with the
        fixed cost of a pass.
        """
        widths = sorted(counts)
        # Of the first so many widths: the least cost, and where the last pass begins.
        best: list[tuple[int, int]] = [(0, 0)]
        for last, width in enumerate(widths, 1):
            rows, found = 0, (sys.maxsize, 0)
            for first in range(last - 1, -1, -1):
                rows += counts[widths[first]]
                # At most as long as a part of a prompt may delay the others.
                if first < last - 1 and rows * width > self._options.prefill_tokens:
                    break
                cost = best[first][0] + rows * width + self._model.pass_tokens
                found = min(found, (cost, first))
            best.append(found)
        passes: list[list[int]] = []
        last = len(widths)
        while last:
            first = best[last][1]
            passes.append(widths[first:last])
            last = first
        return passes[::-1]

    def _forward(self, texts: list[Text], slots: dict[int, int], width: int) -> None:
        """Continue texts, in the order of their slots, by at most `width` tokens."""
        chunks = [text.ids[text.in_cache : text.in_cache + width] for text in texts]
        try:
            logits = self._read(texts, [slots[id(text)] for text in texts], chunks)
        except Exception as error:
            _log.exception("a forward pass failed")
            for text in texts:
                text.fail(internal(error))
            return
        self._metrics.forward_passes.inc()
        self._metrics.batch.observe(len(texts))
        for text, chunk in zip(texts, chunks, strict=True):
            text.in_cache += len(chunk)
        rows = [row for row, text in enumerate(texts) if not text.pending]
        if not rows:
            return
        whole = {id(texts[row]) for row in rows}
        self._await(
            lambda: [
                work
                for work in self._work
                if work.waited_for and any(id(text) in whole for text in work.texts)
            ]
        )
        now = [row for row in rows if texts[row].ready]
        for row in rows:
            if not texts[row].ready:
                texts[row].logits = logits[row].clone()
        self._choose([texts[row] for row in now], _rows(logits, now))

    def _read(self, texts: list[Text], slots: list[int], chunks: list[list[int]]) -> torch.Tensor:
        """Return the logits after each chunk, and score the known tokens after its others."""
        held = [text.in_cache for text in texts]
        known = [text.unscored(len(chunk)) for text, chunk in zip(texts, chunks, strict=True)]
        if not any(known):
            return self._model.logits(slots, held, chunks)
        # Whether the token behind a chunk is known.
        after = [text.pending > len(chunk) for text, chunk in zip(texts, chunks, strict=True)]
        keep = max(map(operator.sub, known, after)) + 1
        logits = self._model.last_logits(slots, held, chunks, keep)
        for row, (text, number) in enumerate(zip(texts, known, strict=True)):
            if number and text.scores is not None:
                end = keep if after[row] else keep - 1
                first = text.num_prompt + len(text.scores)
                text.scores.add_forced(
                    logits[row, end - number : end], text.ids[first : first + number]
                )
        return logits[:, -1].float()

    def _choose(self, texts: list[Text], logits: torch.Tensor) -> None:
        """Choose the next token of each text that goes on, and let those that have ended end."""
        rows = [row for row, text in enumerate(texts) if text.open]
        for text in texts:
            text.logits = None
        ended = [text for text in texts if text.scoring]
        self._advance(ended, [None] * len(ended))
        if not rows:
            return
        whole = [texts[row] for row in rows]
        masks = [text.mask for text in whole if text.mask is not None]
        staged = self._staged
        if staged is None or staged.rows < len(masks) or staged.device != logits.device:
            staged = StagedBitmask(2 * len(masks), self._vocab_size, logits.device)
            self._staged = staged
        logits = _rows(logits, rows)
        scoring = [row for row, text in enumerate(whole) if text.scores is not None]
        logs = distributions(_rows(logits, scoring)) if scoring else None
        for row, text in enumerate(whole):
            if text.adjustments is not None:
                text.adjustments.apply(logits[row], text.ids, text.num_prompt)
        tokens = choose(
            logits,
            masks,
            [text.sampling for text in whole],
            vocab_size=self._vocab_size,
            staged=staged,
        )
        if logs is not None:
            chosen_tokens = [tokens[row] for row in scoring]
            _score([whole[row] for row in scoring], logs, chosen_tokens, self._vocab_size)
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
            text.ready = text.settled = False
            kind = (id(text.grammar), text.late > 0, text.heavy > 0)
            group = groups.setdefault(kind, ([], []))
            group[0].append(text)
            group[1].append(token)
        for (_, is_late, is_heavy), (members, given) in groups.items():
            work = _Work(members, waited_for=not is_late)
            self._work.add(work)
            settled = partial(self._settle, work)
            call = partial(self._do, work, partial(advance, members, given, settled))
            if is_heavy:
                self._slow.submit(call)
            else:
                work.job = self._fast.submit(call)

    def _settle(self, work: _Work) -> None:
        with self._changed:
            work.settled = self._settled = True
            for text in work.texts:
                text.settled = True
            self._changed.notify()

    def _do(self, work: _Work, call: Callable[[], float]) -> None:
        began = time.thread_time()
        tokens = sum(text.num_tokens for text in work.texts)
        forced = sum(text.forced for text in work.texts)
        try:
            work.seconds = call()
        # The thread that owns the texts reports it to them.
        except BaseException as error:
            work.error = error
        work.processor_seconds = time.thread_time() - began
        work.tokens = sum(text.num_tokens for text in work.texts) - tokens
        work.forced = sum(text.forced for text in work.texts) - forced
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


def _rows(logits: torch.Tensor, rows: list[int]) -> torch.Tensor:
    """Return rows of logits, in order, without waiting for the device."""
    if len(rows) == len(logits):
        return logits
    return logits[to_device(torch.tensor(rows, dtype=torch.long), logits.device)]


def _score(
    texts: list[Text], logs: torch.Tensor, tokens: list[int | None], vocab_size: int
) -> None:
    """Score the chosen tokens; a text without one ends with an error."""
    wanted = [0 if text.scores is None else text.scores.top for text in texts]
    found = scored(logs, [token or 0 for token in tokens], wanted)
    for text, score in zip(texts, found, strict=True):
        if text.scores is not None:
            text.scores.add([score])
    weighed = [
        (row, text.scores, text.mask)
        for row, text in enumerate(texts)
        if text.scores is not None and text.scores.weighed and text.mask is not None
    ]
    if weighed:
        rows, collecting, masks = zip(*weighed, strict=True)
        masses = allowed(_rows(logs, list(rows)), masks, vocab_size=vocab_size)
        for scores, mass in zip(collecting, masses, strict=True):
            scores.log_masses.append(mass)
