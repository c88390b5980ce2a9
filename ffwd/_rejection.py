"""Tokens from a model under a constraint that is only known token by token."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_MOST_DRAWS = 256
"""After so many draws for the weight, all tokens are checked, and the rest is a known chance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RejectionSample:
    """A token that `sample_by_rejection` has drawn.

    Attributes:
        token: Its id.
        log_mass: The log of an unbiased estimate of the probability of all allowed tokens, in nats.
        checks: How many tokens were checked.

    """

    token: int
    log_mass: float
    checks: int


def sample_by_rejection(
    logits: Any,
    allowed: Callable[[int], bool],
    *,
    random: np.random.Generator | None = None,
) -> RejectionSample:
    """Draw a token that a predicate allows, and check only the tokens that are drawn.

        sample = ffwd.sample_by_rejection(logits, lambda token: is_fine(token))

    It is for constraints without a mask, such as Python code: with masks, `log_mass` is exact.
    The token has the model's probability, divided by that of all allowed tokens. A rejected token
    is not drawn again, so a peaked distribution needs few checks. The method is adaptive weighted
    rejection sampling (arXiv 2504.05410). Its weight here: with the rejected tokens removed, draws
    go on until two are allowed. If `n` draws were needed, the mass is estimated as
    what was not removed, divided by `n - 1`.

    Args:
        logits: The model's, one row [width], or log probabilities; -inf is never drawn.
        allowed: Called once for a token at most; the answer must not change.
        random: The source of randomness.

    Raises:
        ValueError: The logits are not one row of numbers, or no token with a finite one is allowed.

    """
    random = np.random.default_rng() if random is None else random
    scores = np.asarray(logits, dtype=np.float64)
    if scores.ndim != 1 or np.isnan(scores).any() or (scores == np.inf).any():
        raise ValueError(
            f"logits must be one row of numbers, not {scores.ndim} axes with NaN or infinity"
        )
    known: dict[int, bool] = {}

    def check(token: int) -> bool:
        if token not in known:
            known[token] = bool(allowed(token))
        return known[token]

    shares = np.exp(scores - scores.max(initial=0.0, where=np.isfinite(scores)))
    shares = shares / shares.sum() if shares.sum() > 0 else shares
    token = _first(shares, check, random)
    if token is None:
        raise ValueError(f"none of the {len(known)} tokens with a finite logit is allowed")
    left = np.array(shares)
    left[[rejected for rejected, fine in known.items() if not fine]] = 0.0
    draws = _draws(left, check, random)
    log_mass = math.log(min(float(left.sum()), 1.0)) - math.log(draws - 1)
    return RejectionSample(token=token, log_mass=log_mass, checks=len(known))


def _first(
    shares: np.ndarray[Any, np.dtype[np.float64]],
    check: Callable[[int], bool],
    random: np.random.Generator,
) -> int | None:
    """Return the first allowed token of those that are drawn, each once."""
    # The order of exponential variables with these rates is that of drawing without replacement.
    with np.errstate(divide="ignore"):
        times = random.exponential(size=len(shares)) / shares
    begin, size = 0, 16
    drawable = int((shares > 0).sum())
    while begin < drawable:
        # Few are drawn as a rule, so the order is found in parts.
        end = min(begin + size, drawable)
        part = np.argpartition(times, end - 1)[:end]
        for token in part[np.argsort(times[part])][begin:].tolist():
            if check(token):
                return int(token)
        begin, size = end, size * 8
    return None


def _draws(
    shares: np.ndarray[Any, np.dtype[np.float64]],
    check: Callable[[int], bool],
    random: np.random.Generator,
) -> int:
    """Return how many draws it takes until two are allowed; one token at least is."""
    sums = np.cumsum(shares)
    draws = found = 0
    while found < 2 and draws < _MOST_DRAWS:
        draws += 1
        place = int(np.searchsorted(sums, random.random() * sums[-1], side="right"))
        found += check(place)
    if found == 2:
        return draws
    tokens = np.flatnonzero(shares)
    fine = [check(token) for token in tokens.tolist()]
    chance = min(float(shares[tokens[fine]].sum() / sums[-1]), 1.0)
    # Its largest number stands for all above, of which the inverse is nearly 0.
    return draws + sum(int(random.geometric(chance)) for _ in range(2 - found))
