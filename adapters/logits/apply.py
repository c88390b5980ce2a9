"""The call that puts bitmasks onto logits, and the choice of what does it."""

import importlib.util
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

import ffwd
from ffwd import BitmaskError
from ffwd.adapters.logits import torch_bitmask

Backend = Literal["native", "triton", "torch"]
"""What masks: ffwd's native core (processor only), a Triton kernel, or torch's own operations."""

_WORD_BITS = 32
_TRITON_DEVICES = ("cuda", "xpu")  # ROCm calls its devices cuda
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def default_backend(device: torch.device) -> Backend:
    """Return the fastest available way to mask logits on a device."""
    if device.type == "cpu":
        return "native"
    if device.type in _TRITON_DEVICES and importlib.util.find_spec("triton") is not None:
        return "triton"
    return "torch"


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy a tensor to a device. On CUDA neither the host nor the device waits for the other."""
    if device.type == "cuda" and tensor.is_cpu:
        # Page-locked memory is handed out again only after the device has read it.
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=device.type == "cuda")


def apply_token_bitmask_inplace(
    logits: torch.Tensor,
    bitmask: Any,
    indices: Sequence[int] | Any | None = None,
    *,
    mask_rows: Sequence[int] | Any | None = None,
    vocab_size: int | None = None,
    backend: Backend | None = None,
) -> None:
    """Set to -inf, in place, every logit whose token the bitmask does not allow.

    All is as in `ffwd.apply_token_bitmask_inplace`, but there is no `source`, and no rows are
    returned: on an accelerator nothing waits for the result.

    Args:
        logits: `[rows, width]` or `[width]` on any device; float32, float16, bfloat16 or float64.
        bitmask: `[rows, words]` or `[words]`, int32 or uint32: a tensor on the device of the
            logits, or a tensor or NumPy array in the processor's memory, which is copied. From
            page-locked memory (`Tensor.pin_memory`) the copy runs on while the host does; do not
            write there before the device has got to it.
        indices: The rows of the logits that are masked, all different; by default all. A tensor
            on the device is taken as it is: what is out of range there, Triton leaves out.
        mask_rows: The row of the bitmask for each of these, where it is another one.
        vocab_size: The number of tokens; by default as many as both have room for.
        backend: By default the fastest for the device, `default_backend`.

    Raises:
        BitmaskError: For a type, shape, layout, place or row number that does not fit. Nothing has
            been written then.
        ImportError: If `backend` is "triton", which is not installed.

    """
    backend = default_backend(logits.device) if backend is None else backend
    if backend == "native":
        ffwd.apply_token_bitmask_inplace(
            logits, bitmask, indices, mask_rows=mask_rows, vocab_size=vocab_size
        )
        return
    if backend not in ("triton", "torch"):
        raise BitmaskError(f'backend must be "native", "triton" or "torch", not {backend!r}')
    matrix = _matrix(logits)
    bits = _bits(bitmask, matrix.device)
    rows = _row_numbers("logits", indices, matrix.shape[0], matrix.device)
    # By default the mask of a row has the same number, and must exist.
    named = indices if mask_rows is None else mask_rows
    masks = _row_numbers("bitmask", named, bits.shape[0], matrix.device)
    _check_counts(matrix, bits, rows, masks)
    tokens = _tokens(vocab_size, matrix.shape[1], bits.shape[1] * _WORD_BITS)
    if backend == "triton":
        from ffwd.adapters.logits import triton_bitmask

        triton_bitmask.mask_logits(matrix, bits, rows, masks, tokens)
    else:
        torch_bitmask.mask_logits(matrix, bits, rows, masks, tokens)


def _matrix(logits: torch.Tensor) -> torch.Tensor:
    """Return the logits as [rows, width], if they are writable."""
    if not isinstance(logits, torch.Tensor):
        raise BitmaskError(f"logits must be a torch tensor, not {type(logits).__name__}")
    if logits.dtype not in _FLOATS:
        raise BitmaskError(
            f"logits must be float32, float64, float16 or bfloat16, not {logits.dtype}"
        )
    if logits.layout is not torch.strided or logits.dim() not in (1, 2):
        raise BitmaskError(
            f"the logits must have the shape [rows, width] or [width], not {list(logits.shape)}"
            f" ({logits.layout})"
        )
    if logits.requires_grad:
        raise BitmaskError("the logits must not require a gradient: writing in place breaks it")
    matrix = logits.unsqueeze(0) if logits.dim() == 1 else logits
    rows, width = matrix.shape
    if width > 1 and matrix.stride(1) != 1:
        raise BitmaskError("the rows of the logits must be contiguous")
    if rows > 1 and matrix.stride(0) < width:
        raise BitmaskError("the rows of the logits must not overlap in memory")
    return matrix


def _bits(bitmask: Any, device: torch.device) -> torch.Tensor:
    """Return the bitmask as int32 [rows, words] on a device."""
    if isinstance(bitmask, np.ndarray):
        if bitmask.dtype not in (np.int32, np.uint32):
            raise BitmaskError(f"a bitmask must be int32 or uint32, not {bitmask.dtype}")
        if not bitmask.flags.writeable or not bitmask.flags.c_contiguous:
            bitmask = bitmask.copy()
        bitmask = torch.from_numpy(bitmask.view(np.int32))
    if not isinstance(bitmask, torch.Tensor):
        raise BitmaskError(
            f"a bitmask must be a torch tensor or a NumPy array, not {type(bitmask).__name__}"
        )
    if bitmask.dtype not in (torch.int32, torch.uint32):
        raise BitmaskError(f"a bitmask must be int32 or uint32, not {bitmask.dtype}")
    if bitmask.dim() not in (1, 2):
        raise BitmaskError(
            f"the bitmask must have the shape [rows, words] or [words], not {list(bitmask.shape)}"
        )
    bits = bitmask.view(torch.int32)
    bits = bits.unsqueeze(0) if bits.dim() == 1 else bits
    if bits.shape[1] > 1 and bits.stride(1) != 1:
        raise BitmaskError("the rows of the bitmask must be contiguous")
    if bits.device == device:
        return bits
    if not bits.is_cpu:
        raise BitmaskError(f"the logits are on {device}, but the bitmask is on {bits.device}")
    return to_device(bits, device)


def _on_accelerator(rows: Any) -> bool:
    return isinstance(rows, torch.Tensor) and not rows.is_cpu


def _row_numbers(of: str, rows: Any, count: int, device: torch.device) -> torch.Tensor | None:
    """Return row numbers as int64 on a device, checked unless they come from one."""
    if rows is None:
        return None
    if _on_accelerator(rows):
        if rows.dim() != 1 or rows.dtype not in (torch.int32, torch.int64):
            raise BitmaskError(
                f"row numbers must be int32 or int64 in one dimension, not {rows.dtype} in"
                f" {rows.dim()}"
            )
        return to_device(rows.to(torch.int64), device).contiguous()
    numbers = rows.tolist() if hasattr(rows, "tolist") else rows
    if isinstance(numbers, int) or not all(type(number) is int for number in numbers):
        raise BitmaskError(f"rows of the {of} must be given as a list of numbers, not {rows!r}")
    for number in numbers:
        if not 0 <= number < count:
            raise BitmaskError(f"row {number} of the {of} is out of range: there are {count}")
    if of == "logits" and len(set(numbers)) != len(numbers):
        raise BitmaskError("a row of the logits is given twice")
    return to_device(torch.tensor(list(numbers), dtype=torch.int64), device)


def _check_counts(
    matrix: torch.Tensor,
    bits: torch.Tensor,
    rows: torch.Tensor | None,
    masks: torch.Tensor | None,
) -> None:
    count = matrix.shape[0] if rows is None else rows.shape[0]
    if masks is not None and masks.shape[0] != count:
        raise BitmaskError(f"{masks.shape[0]} mask_rows were given for {count} rows of the logits")
    if rows is None and masks is None and matrix.shape[0] != bits.shape[0]:
        raise BitmaskError(
            f"the logits have {matrix.shape[0]} rows and the bitmask {bits.shape[0]}; where not"
            " every row of the logits has one of its own, say which with indices and mask_rows"
        )


def _tokens(vocab_size: int | None, width: int, covered: int) -> int:
    if vocab_size is None:
        return min(width, covered)
    if vocab_size < 1:
        raise BitmaskError(f"vocab_size must be at least 1, but is {vocab_size}")
    if vocab_size > width:
        raise BitmaskError(f"vocab_size is {vocab_size}, but the logits have only {width} columns")
    if vocab_size > covered:
        raise BitmaskError(
            f"vocab_size is {vocab_size}, but a row of the bitmask has only {covered} bits"
        )
    return vocab_size
