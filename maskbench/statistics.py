"""Exact statistics of recorded times, and counts of verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest

import numpy as np
from numpy.typing import NDArray

from maskbench.canonicality.counts import ForcedCount
from maskbench.verdicts import SchemaRecord, Verdict

# Name -> thousandths, so that ranks are computed in integers.
_PERCENTILES = {
    "p25": 250,
    "p50": 500,
    "p75": 750,
    "p90": 900,
    "p95": 950,
    "p99": 990,
    "p99.9": 999,
}

STATISTICS = ("avg", *_PERCENTILES, "max")


def describe_times(samples: NDArray[np.float32]) -> dict[str, float] | None:
    """Average, percentiles and maximum, in the samples' unit; None if there are no samples.

    A percentile is by nearest rank: the smallest sample that at least p% of the samples do not
    exceed. It is always one of the samples.
    """
    count = len(samples)
    if count == 0:
        return None
    ordered = np.sort(samples)
    result = {"avg": float(np.mean(ordered, dtype=np.float64))}
    for name, thousandths in _PERCENTILES.items():
        rank = -(-thousandths * count // 1000)
        result[name] = float(ordered[rank - 1])
    result["max"] = float(ordered[-1])
    return result


def mask_samples(records: Iterable[SchemaRecord]) -> NDArray[np.float32]:
    """Return all mask times of the records, in their order, in microseconds."""
    arrays = [np.frombuffer(r.mask_us, dtype=np.float32) for r in records if r.mask_us]
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.float32)


def first_mask_samples(records: Iterable[SchemaRecord]) -> NDArray[np.float32]:
    """Compile + first mask of each record that has it, in microseconds."""
    return np.array(
        [r.first_mask_us for r in records if r.first_mask_us is not None], dtype=np.float32
    )


@dataclass(frozen=True)
class Scope:
    """Times and forced tokens over some of the schemas. Times are in microseconds."""

    schemas: int
    masks: int
    mask_us: dict[str, float] | None
    first_mask_us: dict[str, float] | None
    forced: ForcedCount | None


def describe_scope(records: Sequence[SchemaRecord], indices: Collection[int]) -> Scope:
    """Return statistics over the records with these indices."""
    chosen = [record for record in records if record.index in indices]
    samples = mask_samples(chosen)
    counts = [record.forced for record in chosen if record.forced is not None]
    return Scope(
        schemas=len(chosen),
        masks=len(samples),
        mask_us=describe_times(samples),
        first_mask_us=describe_times(first_mask_samples(chosen)),
        forced=sum(counts, ForcedCount()) if counts else None,
    )


def passing(records: Iterable[SchemaRecord]) -> frozenset[int]:
    """Return the indices of the schemas that passed."""
    return frozenset(r.index for r in records if r.verdict is Verdict.PASSED)


@dataclass(frozen=True)
class Counts:
    """How many schemas, and where it differs how many instances, met which fate.

    The seven verdicts add up to `schemas`, with `wrong` for the schemas with a wrong reject, a
    wrong accept, or both.
    """

    schemas: int
    instances: int
    passed: int
    refused: int
    wrong: int
    failed: int
    crashed: int
    timed_out: int
    out_of_memory: int
    wrong_reject_schemas: int
    wrong_reject_instances: int
    wrong_accept_schemas: int
    wrong_accept_instances: int
    failed_instances: int


def count_verdicts(records: Sequence[SchemaRecord]) -> Counts:
    """Return counts over all records."""
    verdicts = Counter(record.verdict for record in records)
    return Counts(
        schemas=len(records),
        instances=sum(len(record.labels) for record in records),
        passed=verdicts[Verdict.PASSED],
        refused=verdicts[Verdict.REFUSED],
        wrong=verdicts[Verdict.WRONG],
        failed=verdicts[Verdict.FAILED],
        crashed=verdicts[Verdict.CRASHED],
        timed_out=verdicts[Verdict.TIMED_OUT],
        out_of_memory=verdicts[Verdict.OUT_OF_MEMORY],
        wrong_reject_schemas=sum(record.wrong_rejects > 0 for record in records),
        wrong_reject_instances=sum(record.wrong_rejects for record in records),
        wrong_accept_schemas=sum(record.wrong_accepts > 0 for record in records),
        wrong_accept_instances=sum(record.wrong_accepts for record in records),
        failed_instances=sum(record.failed_documents for record in records),
    )


def refusal_reasons(records: Iterable[SchemaRecord]) -> list[tuple[str, int]]:
    """Return the categories of refusals, most frequent first."""
    counter = Counter(r.reason for r in records if r.reason is not None)
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))


@dataclass(frozen=True)
class SlowMask:
    """One slow mask with its position."""

    us: float
    id: str
    document: int
    position: int


def slowest_masks(records: Iterable[SchemaRecord], limit: int) -> list[SlowMask]:
    """Return the slowest masks, at most one per schema, slowest first."""
    found = []
    for record in records:
        if record.mask_us:
            number = int(np.argmax(np.frombuffer(record.mask_us, dtype=np.float32)))
            document, position = record.place_of_mask(number)
            found.append(SlowMask(record.mask_us[number], record.id, document, position))
    return nlargest(limit, found, key=lambda mask: mask.us)


def slowest_first_masks(records: Iterable[SchemaRecord], limit: int) -> list[tuple[float, str]]:
    """Return the slowest compile + first mask in microseconds, with the schema's id."""
    found = [(r.first_mask_us, r.id) for r in records if r.first_mask_us is not None]
    return nlargest(limit, found, key=lambda item: item[0])
