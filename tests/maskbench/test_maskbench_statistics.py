"""Percentiles and counts against their definitions."""

import random
from array import array
from fractions import Fraction

import numpy as np
import pytest

from maskbench.canonicality.counts import ForcedCount
from maskbench.results import summarise
from maskbench.runner import EngineLog
from maskbench.statistics import (
    STATISTICS,
    count_verdicts,
    describe_times,
    refusal_reasons,
    slowest_first_masks,
    slowest_masks,
)
from maskbench.verdicts import SchemaRecord, Verdict
from maskbench.walk import DocumentResult, Outcome


def by_definition(samples, percent):
    """The smallest sample that at least `percent` of the samples do not exceed."""
    return min(
        x for x in samples if Fraction(sum(y <= x for y in samples), len(samples)) * 100 >= percent
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 10, 99, 100, 101, 999, 1000, 1001])
def test_percentiles_are_exact(count):
    source = random.Random(count)
    samples = np.array([source.choice((source.random(), 0.5)) for _ in range(count)], np.float32)
    described = describe_times(samples)
    assert tuple(described) == STATISTICS
    values = samples.tolist()
    for name in STATISTICS[1:-1]:
        assert described[name] == by_definition(values, Fraction(name[1:])), name
    assert described["max"] == max(values)
    assert described["avg"] == pytest.approx(sum(values) / count, rel=1e-12)


def test_no_samples_have_no_statistics():
    assert describe_times(np.zeros(0, np.float32)) is None


def test_average_of_many_samples_does_not_lose_precision():
    samples = np.full(3_000_000, 0.1, np.float32)
    assert describe_times(samples)["avg"] == pytest.approx(float(np.float32(0.1)), rel=1e-9)


def record(index, verdict, *, masks=(), first=None, forced=None, reason=None, outcomes=()):
    labels = tuple(label for label, _ in outcomes)
    documents = tuple(DocumentResult(outcome, 0) for _, outcome in outcomes)
    if masks:
        labels, documents = (True,), (DocumentResult(Outcome.ACCEPTED, len(masks)),)
    return SchemaRecord(
        index, f"id{index}", verdict, labels, documents, reason, None, first,
        array("f", masks), forced,
    )  # fmt: skip


def test_scopes_hold_what_they_say():
    one = EngineLog(records=[
        record(0, Verdict.PASSED, masks=[1, 2], first=10, forced=ForcedCount(10, 5, 2, 0)),
        record(1, Verdict.PASSED, masks=[3], first=20, forced=ForcedCount(10, 0, 1, 1)),
        record(2, Verdict.WRONG, masks=[100], first=900, forced=ForcedCount(10, 9, 9, 9)),
    ])  # fmt: skip
    two = EngineLog(records=[
        record(0, Verdict.PASSED, masks=[7], first=70),
        record(1, Verdict.TIMED_OUT),
        record(2, Verdict.PASSED, masks=[8, 9], first=80),
    ])  # fmt: skip
    first, second = summarise({"one": one, "two": two})
    assert (first.own.schemas, first.own.masks, first.own.mask_us["avg"]) == (2, 3, 2.0)
    assert first.own.forced == ForcedCount(20, 5, 3, 1)
    assert first.own.first_mask_us["max"] == 20
    assert (first.common.schemas, first.common.mask_us["max"]) == (1, 2.0)
    assert first.common.forced == ForcedCount(10, 5, 2, 0)
    assert (second.own.schemas, second.own.mask_us["avg"]) == (2, 8.0)
    assert second.own.forced is None
    assert (second.common.schemas, second.common.first_mask_us["avg"]) == (1, 70.0)


def test_verdicts_add_up():
    accepted, rejected, failed = Outcome.ACCEPTED, Outcome.REJECTED, Outcome.FAILED
    records = [
        record(0, Verdict.PASSED, outcomes=[(True, accepted), (False, rejected)]),
        record(1, Verdict.WRONG, outcomes=[(True, rejected), (True, rejected), (False, accepted)]),
        record(2, Verdict.WRONG, outcomes=[(False, accepted)]),
        record(3, Verdict.FAILED, outcomes=[(True, failed)]),
        record(4, Verdict.REFUSED, reason="b"),
        record(5, Verdict.REFUSED, reason="a"),
        record(6, Verdict.REFUSED, reason="b"),
        record(7, Verdict.CRASHED),
        record(8, Verdict.TIMED_OUT),
    ]
    counts = count_verdicts(records)
    assert (counts.schemas, counts.instances) == (9, 7)
    assert (counts.passed, counts.refused, counts.wrong) == (1, 3, 2)
    assert (counts.failed, counts.crashed, counts.timed_out) == (1, 1, 1)
    assert (counts.wrong_reject_schemas, counts.wrong_reject_instances) == (1, 2)
    assert (counts.wrong_accept_schemas, counts.wrong_accept_instances) == (2, 2)
    assert counts.failed_instances == 1
    assert refusal_reasons(records) == [("b", 2), ("a", 1)]


def test_slowest_are_found_with_their_place():
    records = [
        record(0, Verdict.PASSED, masks=[1, 50, 3], first=5),
        record(1, Verdict.PASSED, masks=[2, 2], first=7),
        record(2, Verdict.WRONG, masks=[60]),
        record(3, Verdict.REFUSED),
    ]
    found = [(mask.us, mask.id, mask.position) for mask in slowest_masks(records, 2)]
    assert found == [(60, "id2", 0), (50, "id0", 1)]
    assert slowest_first_masks(records, 9) == [(7, "id1"), (5, "id0")]
