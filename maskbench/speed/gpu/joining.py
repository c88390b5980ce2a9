"""An unseen schema joins warm requests, and the others lose some time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

from maskbench.speed.gpu.decoding import Overlapped, write
from maskbench.speed.gpu.models import Passes
from maskbench.speed.processors.measure import TokenizedDocument
from maskbench.speed.processors.rows import Peers


@dataclass
class Joined:
    """The cost of newcomers for the requests beside them, in microseconds."""

    step: float = 0.0
    """The median step before a newcomer."""

    lost: list[float] = field(default_factory=list)
    """For each newcomer: how much longer all steps took from its arrival on."""

    worst: float = 0.0
    """The longest of these steps."""

    waited: list[int] = field(default_factory=list)
    """Steps until the newcomer's grammar was compiled."""

    steps: int = 0
    """How many follow an arrival."""

    after: list[float] = field(default_factory=list)
    """Each of these steps, of all newcomers."""


class _Newcomer:
    """Takes the last row's place when its grammar is compiled, in a thread as in a server."""

    def __init__(self, peers: Peers, engine: str, way: Overlapped, new: TokenizedDocument) -> None:
        self._peers = peers
        self._engine = engine
        self._way = way
        self._new = new
        self._thread = ThreadPoolExecutor(1)
        self._compiled: Future[Any] | None = None
        self.arrival = len(new.tokens)
        self.waited: int | None = None

    def before(self, step: int) -> None:
        """Arrive in the middle, and join once the grammar is there."""
        if self.waited is None and self._compiled is not None and self._compiled.done():
            self._way.join(len(self._way.texts) - 1, self._compiled.result(), self._new)
            self.waited = step - self.arrival
        if step == self.arrival:
            self._compiled = self._thread.submit(
                self._peers.matcher, self._engine, self._new.schema
            )

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def most_columns(warm: Sequence[TokenizedDocument], fresh: Sequence[TokenizedDocument]) -> int:
    """Return the columns that passes need: a newcomer may join with the last step of the others."""
    return sum(max(len(text.tokens) for text in texts) for texts in (warm, fresh)) + 2


def joining(
    passes: Passes,
    peers: Peers,
    engine: str,
    warm: Sequence[TokenizedDocument],
    fresh: Sequence[TokenizedDocument],
    device: torch.device,
    *,
    over: Callable[[], bool] = lambda: False,
) -> Joined:
    """Let each fresh document join once; its schema is compiled only then.

    The passes have `most_columns`, for how late a newcomer joins depends on the machine.
    The documents of `warm` have three times as many tokens as those of `fresh`, so that a newcomer
    arrives after a third. None joins once the time is over, but the first.
    """
    found = Joined(steps=2 * len(fresh[0].tokens))
    before: list[float] = []
    for new in (None, *fresh):
        if found.lost and over():
            break
        rows = peers.rows(engine, [text.schema for text in warm])
        way = Overlapped(f"{engine}, joining", rows, list(warm), peers.vocab_size, device)
        if new is None:
            # Masks of the warm requests are filled for the first time.
            write(passes, way)
            continue
        newcomer = _Newcomer(peers, engine, way, new)
        written = write(passes, way, before=newcomer.before)
        newcomer.close()
        usual = median(written.steps[: newcomer.arrival])
        after = written.steps[newcomer.arrival :]
        before.append(usual)
        found.lost.append(sum(after) - usual * len(after))
        found.worst = max(found.worst, *after)
        found.after += after
        found.waited.append(len(after) if newcomer.waited is None else newcomer.waited)
    found.step = median(before)
    return found
