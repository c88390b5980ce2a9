"""The resident size of this process during the work, and the verdict on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

TOLERANCE_BYTES = 8 << 20
TOLERANCE_SHARE = 0.02


@dataclass(frozen=True)
class Sample:
    """One look: how much of the work was done, and how many bytes were resident then."""

    done: int
    resident_bytes: int


@dataclass(frozen=True)
class GrowthVerdict:
    """Whether the resident size grew.

    The largest size of the last quarter of the work is compared with that of the second quarter. A
    difference of `TOLERANCE_SHARE` of the latter, or of `TOLERANCE_BYTES` if that is more, is no
    growth. The first quarter is for caches to fill.
    """

    second_quarter: int
    last_quarter: int
    allowed: int

    @property
    def grew(self) -> bool:
        """Whether memory grew."""
        return self.last_quarter > self.allowed


@dataclass
class Curve:
    """The samples of one part of the work."""

    name: str
    total: int
    """How many steps there are to do."""

    samples: list[Sample] = field(default_factory=list)
    seconds: float = 0.0

    def verdict(self) -> GrowthVerdict:
        """Return the verdict on samples; the second and the last quarter need at least one each."""
        second = max(s.resident_bytes for s in self.samples if 1 < 4 * s.done / self.total <= 2)
        last = max(s.resident_bytes for s in self.samples if 4 * s.done / self.total > 3)
        return GrowthVerdict(second, last, allowed(second))


def allowed(resident_bytes: int) -> int:
    """Return the allowed resident size after this one."""
    return resident_bytes + max(TOLERANCE_BYTES, int(resident_bytes * TOLERANCE_SHARE))


def resident() -> int:
    """Return bytes of this process that are resident."""
    return int(psutil.Process().memory_info().rss)


def record(name: str, total: int, looks: int, step: Callable[[int], int]) -> Curve:
    """Do `total` steps, and measure the resident size `looks` times.

    `step` is given the number of those that are done, and returns how many more it did.
    """
    process = psutil.Process()
    curve = Curve(name, total)
    started = time.monotonic()
    done, next_look = 0, 0
    while done < total:
        if done >= next_look:
            curve.samples.append(Sample(done, process.memory_info().rss))
            next_look += max(1, total // looks)
        done += step(done)
    curve.samples.append(Sample(done, process.memory_info().rss))
    curve.seconds = time.monotonic() - started
    return curve
