"""Tokens from logits: greedily or at random, each text with a generator of its own."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ffwd.adapters.logits import apply_token_bitmask_inplace


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the tokens of a text are chosen.

    Attributes:
        temperature: 0 for the likeliest token.
        top_p: The likeliest tokens whose probabilities reach this sum.
        top_k: At most so many of the likeliest tokens; 0 for all.
        min_p: Tokens at least so likely, beside the likeliest one.
        chance: The source of randomness. What a text is does not depend on which others are written
            beside it, as far as the model's logits do not.

    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    chance: random.Random = field(default_factory=random.Random)

    @property
    def cuts(self) -> bool:
        """Whether the distribution is cut off."""
        return self.top_p < 1 or self.top_k > 0 or self.min_p > 0


def choose(
    logits: torch.Tensor,
    masks: Sequence[np.ndarray[Any, np.dtype[np.int32]]],
    samplings: Sequence[Sampling],
    *,
    vocab_size: int,
) -> list[int | None]:
    """Choose a token for each row of logits [rows, width]; the logits are changed.

    None where every token that a mask allows has no finite logit.
    """
    apply_token_bitmask_inplace(logits, np.stack(masks), vocab_size=vocab_size)
    best = logits.max(dim=-1)
    # A mask leaves minus infinity; NaN and infinity are the model's.
    sound = torch.isfinite(best.values).tolist()
    tokens: list[int | None] = best.indices.tolist()
    drawn = [row for row, s in enumerate(samplings) if sound[row] and s.temperature > 0]
    plain = [row for row in drawn if not samplings[row].cuts]
    cut = [row for row in drawn if samplings[row].cuts]
    for rows, draw in ((plain, _draw), (cut, _draw_cut)):
        if rows:
            chosen = draw(_probabilities(logits, rows, samplings), [samplings[r] for r in rows])
            for row, token in zip(rows, chosen, strict=True):
                tokens[row] = token
    return [token if ok else None for token, ok in zip(tokens, sound, strict=True)]


def _probabilities(
    logits: torch.Tensor, rows: list[int], samplings: Sequence[Sampling]
) -> torch.Tensor:
    heat = torch.tensor([[samplings[row].temperature] for row in rows], device=logits.device)
    # Beside the largest one, so that a temperature near 0 gives no infinity.
    chosen = logits[rows]
    return torch.softmax((chosen - chosen.amax(dim=-1, keepdim=True)) / heat, dim=-1)


def _draw(probabilities: torch.Tensor, samplings: Sequence[Sampling]) -> list[int]:
    sums = probabilities.double().cumsum(dim=-1)
    shares = torch.tensor(
        [[s.chance.random()] for s in samplings], dtype=torch.double, device=sums.device
    )
    places = torch.searchsorted(sums, shares * sums[:, -1:], right=True)
    # Rounding may take the last share past the end.
    last = probabilities.shape[-1] - 1 - (probabilities > 0).flip(-1).int().argmax(-1)
    found: list[int] = torch.minimum(places.squeeze(-1), last).tolist()
    return found


def _draw_cut(probabilities: torch.Tensor, samplings: Sequence[Sampling]) -> list[int]:
    ordered = probabilities.sort(dim=-1, descending=True, stable=True)
    values, device = ordered.values, probabilities.device
    before = values.cumsum(dim=-1) - values
    rank = torch.arange(values.shape[-1], device=device)
    top_p = torch.tensor([[s.top_p] for s in samplings], device=device)
    top_k = torch.tensor([[s.top_k or values.shape[-1]] for s in samplings], device=device)
    min_p = torch.tensor([[s.min_p] for s in samplings], device=device)
    kept = (before < top_p) & (rank < top_k) & (values >= min_p * values[:, :1])
    kept[:, 0] = True
    places = _draw(values.masked_fill(~kept, 0.0), samplings)
    return [int(ordered.indices[row, place]) for row, place in enumerate(places)]
