"""Hard cases on each engine in turns, each time in an emptied store."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from maskbench.data import Case
from maskbench.documents import Encoder, Whitespace, prepare
from maskbench.engines import EngineSetup
from maskbench.runner import RunSettings, run
from maskbench.statistics import describe_times
from maskbench.verdicts import SchemaRecord, Verdict


@dataclass(frozen=True)
class HardFigures:
    """One engine on one case. Times are in microseconds; None where there are none."""

    verdict: str
    detail: str | None
    first_mask: float | None
    """Compile + first mask, the best of the rounds."""

    masks: int
    mask_us: dict[str, float] | None
    """Each mask counts with the best of its rounds, all of which were cold."""


@dataclass(frozen=True)
class HardColumn:
    """One of the figures: compile + first mask, or a statistic of the masks."""

    statistic: str | None

    def __call__(self, figures: HardFigures) -> float | None:
        """Return the time in microseconds, if there is one."""
        if self.statistic is None:
            return figures.first_mask
        return None if figures.mask_us is None else figures.mask_us[self.statistic]


@dataclass(frozen=True)
class MeasuredCase:
    """One case on all engines, by their names."""

    name: str
    what: str
    schema_bytes: int
    engines: dict[str, HardFigures]

    def ratio(self, subject: str, peer: str, of: HardColumn) -> float | None:
        """Return how many times longer the peer takes, if both pass."""
        own, other = self.engines[subject], self.engines[peer]
        if own.verdict != "passed" or other.verdict != "passed":
            return None
        times = of(own), of(other)
        if times[0] is None or times[1] is None or times[0] == 0:
            return None
        return times[1] / times[0]


def measure(
    engines: Sequence[str],
    cases: Sequence[tuple[Case, str]],
    setup: EngineSetup,
    settings: RunSettings,
    encoder: Encoder,
    scratch: Path,
    *,
    rounds: int,
    progress: Callable[[str], None],
) -> list[MeasuredCase]:
    """Run every case `rounds` times on every engine. Raises `EngineStartError`."""
    jobs = [
        prepare(case, number, encoder, Whitespace.FLEXIBLE).job
        for number, (case, _) in enumerate(cases)
    ]
    # All rounds of a case one after the other, so that a machine that gets slower is so for all.
    chunks = [[job] for job in jobs for _ in range(rounds)]
    logs = run(engines, chunks, setup, settings, scratch, progress)
    found = []
    for number, (case, what) in enumerate(cases):
        figures = {
            name: _figures([r for r in logs[name].records if r.index == number]) for name in engines
        }
        found.append(MeasuredCase(case.id, what, len(jobs[number].schema), figures))
    return found


def _figures(records: Sequence[SchemaRecord]) -> HardFigures:
    worst = next((r for r in records if r.verdict is not Verdict.PASSED), None)
    if worst is not None or not records:
        verdict = "interrupted" if worst is None else worst.verdict.value
        detail = None if worst is None else worst.reason or worst.detail
        return HardFigures(verdict, detail, None, 0, None)
    first = [record.first_mask_us for record in records if record.first_mask_us is not None]
    times = np.min([_masks(record.mask_us) for record in records], axis=0)
    return HardFigures("passed", None, min(first), len(times), describe_times(times))


def _masks(samples: array[float]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.frombuffer(samples, dtype=np.float32)
