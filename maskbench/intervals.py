"""95% confidence intervals of shares and of means."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_QUANTILE = 1.959964
_RESAMPLES = 10_000


def share_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return Wilson's score interval of a share.

    Args:
        successes: How many of the trials.
        trials: At least 1.

    """
    share, ratio = successes / trials, _QUANTILE**2 / trials
    centre = share + ratio / 2
    half = _QUANTILE * math.sqrt((share * (1 - share) + ratio / 4) / trials)
    # Rounding may leave a bound a little outside.
    return max((centre - half) / (1 + ratio), 0.0), min((centre + half) / (1 + ratio), 1.0)


def mean_interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a mean.

    Args:
        values: At least one.
        seed: Of the resampling; the same seed gives the same interval.

    """
    sample = np.asarray(values, dtype=np.float64)
    random = np.random.default_rng(seed)
    means = [
        sample[random.integers(len(sample), size=len(sample))].mean() for _ in range(_RESAMPLES)
    ]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)
