"""Bitmasks onto logits by torch's own operations, on any device."""

import torch

_WORD_BITS = 32


def blocked_on_device(bits: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """Unpack int32 bitmasks [rows, words] on their device: bool [rows, vocab_size], True = -inf."""
    shifts = torch.arange(_WORD_BITS, dtype=torch.int32, device=bits.device)
    allowed = (bits.unsqueeze(-1) >> shifts) & 1
    return (allowed == 0).flatten(1)[:, :vocab_size]


def blocked_columns(bits: torch.Tensor, vocab_size: int, width: int) -> torch.Tensor:
    """Unpack bitmasks for logits of some width; columns past the vocabulary are blocked."""
    blocked = blocked_on_device(bits, vocab_size)
    return torch.nn.functional.pad(blocked, (0, width - vocab_size), value=True)


def mask_logits(
    logits: torch.Tensor,
    bits: torch.Tensor,
    rows: torch.Tensor | None,
    mask_rows: torch.Tensor | None,
    vocab_size: int,
) -> None:
    """Set to -inf, in place, what the bitmask does not allow.

    Args:
        logits: [rows, width].
        bits: int32 [mask rows, words] on the same device.
        rows: int64 [n], rows of the logits; None for all.
        mask_rows: int64 [n], the row of `bits` for each; None for the same numbers.
        vocab_size: At most `width` and `32 * words`.

    """
    chosen = rows if mask_rows is None else mask_rows
    blocked = blocked_columns(
        bits if chosen is None else bits[chosen], vocab_size, logits.shape[-1]
    )
    if rows is None:
        logits.masked_fill_(blocked, -torch.inf)
    else:
        logits[rows] = logits[rows].masked_fill(blocked, -torch.inf)
