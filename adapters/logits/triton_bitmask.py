"""Bitmasks onto logits by a Triton kernel. The one module that imports Triton.

The kernel never reads a logit: one program has 128 words of one row's mask, and writes -inf where
their bits are 0. So a mask that allows nearly all costs its own bytes, and one that allows nearly
nothing one write of the row.
"""

import contextlib
from typing import Any

import torch
import triton
import triton.language as tl

_BLOCK_WORDS = 128


# Batch sizes change from step to step and are no reason to compile again.
@triton.jit(do_not_specialize=["logits_rows", "bits_rows"])
def _mask_logits(
    logits,
    bits,
    rows,
    mask_rows,
    logits_stride,
    bits_stride,
    logits_rows,
    bits_rows,
    width,
    vocab_size,
    NAMED_ROWS: tl.constexpr,
    NAMED_MASK_ROWS: tl.constexpr,
    BLOCK_WORDS: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64)
    row = at
    if NAMED_ROWS:
        row = tl.load(rows + at)
    mask_row = row
    if NAMED_MASK_ROWS:
        mask_row = tl.load(mask_rows + at)
    # The host has not checked row numbers that are on the device.
    if (row >= 0) & (row < logits_rows) & (mask_row >= 0) & (mask_row < bits_rows):
        word = tl.program_id(1) * BLOCK_WORDS + tl.arange(0, BLOCK_WORDS)
        packed = tl.load(bits + mask_row * bits_stride + word, mask=word * 32 < vocab_size, other=0)
        bit = tl.arange(0, 32)
        token = word[:, None] * 32 + bit[None, :]
        allowed = (((packed[:, None] >> bit[None, :]) & 1) != 0) & (token < vocab_size)
        tl.store(
            logits + row * logits_stride + token,
            float("-inf"),
            mask=(token < width) & (allowed == 0),
        )


def mask_logits(
    logits: torch.Tensor,
    bits: torch.Tensor,
    rows: torch.Tensor | None,
    mask_rows: torch.Tensor | None,
    vocab_size: int,
) -> None:
    """Set to -inf, in place, what the bitmask does not allow; as `_torch_bitmask.mask_logits`.

    Rows of the logits and of the bits may lie apart; numbers of a row lie side by side. Row numbers
    out of range are left out.
    """
    width = logits.shape[1]
    count = logits.shape[0] if rows is None else rows.shape[0]
    if count == 0 or width == 0:
        return
    device: Any = contextlib.nullcontext()
    if logits.device.type != "cpu":
        # Triton launches on the current device, whichever the tensors are on.
        device = getattr(torch, logits.device.type).device(logits.device)
    grid = (count, triton.cdiv(width, 32 * _BLOCK_WORDS))
    with device:
        _mask_logits[grid](
            logits,
            bits,
            rows,
            mask_rows,
            logits.stride(0),
            bits.stride(0),
            logits.shape[0],
            bits.shape[0],
            width,
            vocab_size,
            NAMED_ROWS=rows is not None,
            NAMED_MASK_ROWS=mask_rows is not None,
            BLOCK_WORDS=_BLOCK_WORDS,
        )
