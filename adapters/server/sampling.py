"""Tokens from logits: greedily or at random, each text with a generator of its own."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ffwd.adapters.logits import StagedBitmask, to_device


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


@torch.inference_mode()
def choose(
    logits: torch.Tensor,
    masks: Sequence[np.ndarray[Any, np.dtype[np.int32]]],
    samplings: Sequence[Sampling],
    *,
    vocab_size: int,
    staged: StagedBitmask | None = None,
) -> list[int | None]:
    """Choose a token for each row of logits [rows, width]; the logits are changed.

    None where every token that a mask allows has no finite logit. `staged` is where the masks are
    put together, with a row for each of them at least; a loop gives the same one each time.
    The device is asked once: each question would wait until it is done.
    """
    staged = staged or StagedBitmask(len(masks), vocab_size, logits.device)
    np.stack(masks, out=staged.writable()[: len(masks)])
    staged.apply(logits)
    best = logits.max(dim=-1)
    tokens = best.indices
    drawn = [row for row, s in enumerate(samplings) if s.temperature > 0]
    plain = [row for row in drawn if not samplings[row].cuts]
    cut = [row for row in drawn if samplings[row].cuts]
    for rows, draw in ((plain, _draw), (cut, _draw_cut)):
        if rows:
            chosen = [samplings[row] for row in rows]
            index = to_device(torch.tensor(rows), logits.device)
            tokens[index] = draw(_probabilities(logits[index], chosen), chosen)
    # A mask leaves minus infinity; NaN and infinity are the model's.
    found: list[int] = torch.where(torch.isfinite(best.values), tokens, -1).tolist()
    return [None if token < 0 else token for token in found]


def _probabilities(chosen: torch.Tensor, samplings: Sequence[Sampling]) -> torch.Tensor:
    heat = to_device(torch.tensor([[s.temperature] for s in samplings]), chosen.device)
    # Beside the largest one, so that a temperature near 0 gives no infinity.
    return torch.softmax((chosen - chosen.amax(dim=-1, keepdim=True)) / heat, dim=-1)


def _draw(probabilities: torch.Tensor, samplings: Sequence[Sampling]) -> torch.Tensor:
    sums = probabilities.double().cumsum(dim=-1)
    shares = to_device(
        torch.tensor([[s.chance.random()] for s in samplings], dtype=torch.double), sums.device
    )
    places = torch.searchsorted(sums, shares * sums[:, -1:], right=True)
    # Rounding may take the last share past the end.
    last = probabilities.shape[-1] - 1 - (probabilities > 0).flip(-1).int().argmax(-1)
    return torch.minimum(places.squeeze(-1), last)


def _draw_cut(probabilities: torch.Tensor, samplings: Sequence[Sampling]) -> torch.Tensor:
    ordered = probabilities.sort(dim=-1, descending=True, stable=True)
    values, device = ordered.values, probabilities.device
    before = values.cumsum(dim=-1) - values
    rank = torch.arange(values.shape[-1], device=device)
    top_p = to_device(torch.tensor([[s.top_p] for s in samplings]), device)
    top_k = to_device(torch.tensor([[s.top_k or values.shape[-1]] for s in samplings]), device)
    min_p = to_device(torch.tensor([[s.min_p] for s in samplings]), device)
    kept = (before < top_p) & (rank < top_k) & (values >= min_p * values[:, :1])
    kept[:, 0] = True
    places = _draw(values.masked_fill(~kept, 0.0), samplings)
    return ordered.indices.gather(1, places.unsqueeze(1)).squeeze(1)
