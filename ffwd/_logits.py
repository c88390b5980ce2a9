"""Masking of logits in CPU memory."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ffwd._native import BitmaskError, mask_logits

_HALVES = ("float16", "bfloat16")
# NumPy computes the names of its types with each access.
_KINDS = {np.dtype(name): name for name in ("float32", "float16")}


def apply_token_bitmask_inplace(
    logits: Any,
    bitmask: Any,
    indices: Sequence[int] | Any | None = None,
    *,
    mask_rows: Sequence[int] | Any | None = None,
    source: Any | None = None,
    vocab_size: int | None = None,
    dtype: str | None = None,
    threads: int | None = None,
) -> list[int]:
    """Set to -inf, in place, every logit whose token the bitmask does not allow.

    The other logits, including NaN, keep their bits. Columns from `vocab_size` on are padding of
    the model's output layer and become -inf too. Bits past the last column are ignored. Runs
    without the interpreter lock.

    Args:
        logits: `[rows, width]` or `[width]`; a NumPy array or a torch tensor on the CPU, float32,
            float16, bfloat16 or float64. Rows may be strided, but the numbers of a row must be
            adjacent. A NumPy array of bfloat16 has the type of `ml_dtypes`, or is of uint16 with
            `dtype="bfloat16"`.
        bitmask: `[rows, words]` or `[words]`, int32 or uint32, NumPy or torch on the CPU, as
            `Matcher.fill_bitmask` writes it. It is only read.
        indices: The rows of the logits to mask, all different; by default all, and then the bitmask
            has as many rows as the logits. Row `i` of the bitmask is for row `i` of the logits, as
            in XGrammar.
        mask_rows: The row of the bitmask for each masked row of the logits, if it differs. Rows may
            repeat.
        source: Logits of the same shape and type. The masked rows are written as those of `source`
            under the mask, which is read only where tokens are allowed; by default the logits
            themselves are masked.
        vocab_size: The number of tokens; by default as many as both arrays have room for. Without
            it, bits between the last token and the end of its word must be 0, as
            `Matcher.fill_bitmask` writes them.
        dtype: "float16" or "bfloat16", for logits of int16 or uint16 that hold the bits of these.
        threads: The most threads to use; by default one per processor, but only one below 8 MiB of
            output.

    Returns:
        The masked rows in which every allowed token has the logit -inf. NaN is another logit.

    Raises:
        BitmaskError: A type, shape, layout, position or row number that does not fit. Nothing is
            written then.

    """
    memory, halves = _logits(logits, dtype)
    return mask_logits(
        memory,
        _bitmask(bitmask),
        indices=_row_numbers("indices", indices),
        mask_rows=_row_numbers("mask_rows", mask_rows),
        halves=halves,
        vocab_size=vocab_size,
        threads=threads,
        source=None if source is None else _logits(source, dtype)[0],
    )


def _logits(logits: Any, dtype: str | None) -> tuple[np.ndarray[Any, Any], str | None]:
    """Return the memory of logits, with 16-bit floats as their bits, and the name of their type."""
    if dtype is not None and dtype not in _HALVES:
        raise BitmaskError(f'dtype must be "float16" or "bfloat16", not {dtype!r}')
    if isinstance(logits, np.ndarray):
        array, kind = logits, _KINDS.get(logits.dtype) or logits.dtype.name
    else:
        array = _shared("the logits", logits)
        kind = _KINDS.get(array.dtype) or str(logits.dtype).removeprefix("torch.")
    if kind in ("int16", "uint16"):
        if dtype is None:
            raise BitmaskError(
                f'logits of {kind} may be float16 or bfloat16: say which with dtype="bfloat16"'
            )
        return array.view(np.uint16), dtype
    if dtype is not None and dtype != kind:
        raise BitmaskError(f"the logits are {kind}, not {dtype}")
    # Numbers in the other byte order keep their type, and are refused for it.
    if kind in _HALVES and array.dtype.isnative:
        return array.view(np.uint16), kind
    return array, None


def _bitmask(bitmask: Any) -> np.ndarray[Any, Any]:
    return bitmask if isinstance(bitmask, np.ndarray) else _shared("the bitmask", bitmask)


def _shared(what: str, tensor: Any) -> np.ndarray[Any, Any]:
    """Return a NumPy array that shares a torch tensor's memory; bfloat16 as int16."""
    # If there is a tensor, torch has been imported. Other libraries' arrays would be copied.
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor):
        raise BitmaskError(
            f"{what} must be a NumPy array or a torch tensor, not {type(tensor).__name__}"
        )
    try:
        if tensor.dtype is torch.bfloat16 and not tensor.requires_grad:
            tensor = tensor.view(torch.int16)
        # Fails for the tensors that `_why_not` describes. Checking first would cost more than
        # everything else: each attribute of a tensor takes microseconds while torch's code is not
        # in the caches.
        array: np.ndarray[Any, Any] = tensor.numpy()
    except (RuntimeError, TypeError) as cause:
        raise BitmaskError(_why_not(what, tensor, cause)) from cause
    return array


def _why_not(what: str, tensor: Any, cause: Exception) -> str:
    if not tensor.is_cpu:
        return (
            f"the memory of {what} is on {tensor.device}; the function of this name in"
            " ffwd.adapters.logits masks logits there"
        )
    if tensor.requires_grad:
        return f"{what} must not require a gradient: writing in place would break it"
    return f"the memory of {what} cannot be shared with NumPy: {cause}"


def _row_numbers(name: str, rows: Any) -> Any:
    if rows is None:
        return None
    numbers = rows.tolist() if hasattr(rows, "tolist") else rows
    if isinstance(numbers, int) or any(isinstance(number, bool) for number in numbers):
        raise BitmaskError(f"{name} must be a list of row numbers, not {rows!r}")
    return numbers
