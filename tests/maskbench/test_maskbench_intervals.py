"""Confidence intervals against published and exact ones."""

import numpy as np
import pytest

from maskbench.intervals import mean_interval, share_interval


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Wilson's bounds solve (p - x)² = z² x (1 - x) / n.
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (58, 60, 0.8864, 0.9908),
        (1, 2, 0.0945, 0.9055),
    ],
)
def test_bounds_of_shares(successes, trials, low, high):
    found = share_interval(successes, trials)
    assert found == pytest.approx((low, high), abs=1e-4)
    share = successes / trials
    for bound in found:
        squared = 1.959964**2 * bound * (1 - bound) / trials
        assert (share - bound) ** 2 == pytest.approx(squared, abs=1e-9)


def test_bounds_of_means_are_those_of_normal_theory_and_can_be_repeated():
    values = np.random.default_rng(3).exponential(size=400).tolist()
    low, high = mean_interval(values)
    half = 1.96 * np.std(values) / 20
    assert (low, high) == pytest.approx((np.mean(values) - half, np.mean(values) + half), abs=0.02)
    assert mean_interval(values) == (low, high)
    assert mean_interval(values, seed=1) != (low, high)
    assert mean_interval([2.5]) == (2.5, 2.5)
