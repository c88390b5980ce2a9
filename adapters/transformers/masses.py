"""The probability that a model gives to the tokens that a grammar allows, step by step.

Its product over the tokens of a text is the importance weight of the text: what the model makes of
it, divided by the probability with which masks lead to it (arXiv 2504.05410, section 2).
"""

from collections.abc import Sequence

import torch

from ffwd.adapters.logits import to_device

_BLOCK = 64
"""How many rows of logits are converted to float32 at a time."""


@torch.no_grad()
def log_total(logits: torch.Tensor) -> torch.Tensor:
    """Return the log-sum-exp of each row of logits [rows, width], in float32."""
    return logits.float().logsumexp(dim=-1)


@torch.no_grad()
def log_mass(total: torch.Tensor, masked: torch.Tensor) -> torch.Tensor:
    """Return the log probability of all tokens that a mask leaves, in nats.

    Args:
        total: The `log_total` of the model's logits: [rows].
        masked: These logits with -inf for tokens that are not allowed: [rows, width].

    Returns:
        Shape [rows], float32, at most 0; -inf if no token is left.

    """
    return (log_total(masked) - total).clamp(max=0.0)


class Masses:
    """The log masses of the tokens of each row, in their order.

    The mass of a sampled token is that of its mask, and the mass of a forced one is the model's
    probability of the token: no other was allowed.

    Args:
        rows: How many rows there are.

    """

    def __init__(self, rows: int) -> None:
        self.rows: list[list[float]] = [[] for _ in range(rows)]

    def add(self, rows: Sequence[int], values: Sequence[float]) -> None:
        """Append the log mass of the next token of some rows."""
        for row, value in zip(rows, values, strict=True):
            self.rows[row].append(value)

    @torch.no_grad()
    def add_forced(self, logits: torch.Tensor, tokens: Sequence[Sequence[int]]) -> None:
        """Append those of forced tokens, which a pass has read.

        Args:
            logits: Of that pass, after the last tokens of each row: [rows, last, width].
            tokens: The last tokens of each row that it has read and that have no mass yet.

        """
        found = [(row, len(new)) for row, new in enumerate(tokens) if new]
        flat = [token for new in tokens for token in new]
        if not flat:
            return
        last = logits.shape[1] - 1
        row = torch.tensor([row for row, number in found for _ in range(number)])
        column = torch.tensor([last - number + i for _, number in found for i in range(number)])
        place = to_device(torch.stack([row, column, torch.tensor(flat)]), logits.device)
        values: list[float] = []
        for part in place.split(_BLOCK, dim=1):
            scores = logits[part[0], part[1]].float()
            own = scores.gather(1, part[2].unsqueeze(1)).squeeze(1)
            values += (own - scores.logsumexp(dim=-1)).clamp(max=0.0).tolist()
        self.add([row for row, number in found for _ in range(number)], values)
