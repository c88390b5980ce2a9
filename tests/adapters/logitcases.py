"""Problems for every way of masking logits, each against `torch.where`."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ffwd.adapters.logits import Backend, apply_token_bitmask_inplace

INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
SHAPES = [(1, 1, 1), (2, 33, 1), (3, 96, 3), (2, 4096, 128), (3, 4200, 131), (2, 9000, 300)]
ROWS: list[tuple[list[int] | None, list[int] | None]] = [
    (None, None),
    ([1], None),
    ([1, 0], [0, 0]),
    ([], None),
    (None, [1, 1]),
]


@dataclass(frozen=True)
class Case:
    """One call."""

    logits: torch.Tensor
    bitmask: torch.Tensor
    options: dict[str, Any]


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """NaN is not equal to itself, its bits are."""
    return tensor.contiguous().view(INTEGERS[tensor.element_size()]).cpu()


def make(rows: int, width: int, words: int, dtype: torch.dtype, density: float, seed: int) -> Case:
    """Logits with NaN and both infinities; random bits."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, width, generator=generator)
    chosen = torch.rand(rows, width, generator=generator)
    logits[chosen < 0.02] = -torch.inf
    logits[chosen > 0.98] = torch.inf
    logits[(chosen > 0.5) & (chosen < 0.52)] = torch.nan
    allowed = torch.rand(rows, words * 32, generator=generator) < density
    packed = np.packbits(allowed.numpy(), axis=1, bitorder="little").view("<i4").astype(np.int32)
    return Case(logits.to(dtype), torch.from_numpy(packed), {})


def cases() -> Iterator[Case]:
    """All types, densities at both ends, shapes on both sides of a block, named rows."""
    types = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
    seed = 0
    for dtype, density, shape in itertools.product(types, [0.0, 0.02, 0.5, 0.98, 1.0], SHAPES):
        seed += 1
        yield make(*shape, dtype, density, seed)
    for dtype, (indices, mask_rows) in itertools.product(types, ROWS):
        case = make(2, 4200, 131, dtype, 0.5, seed)
        options = {"indices": indices, "mask_rows": mask_rows}
        yield Case(case.logits, case.bitmask, options)
        yield Case(case.logits, case.bitmask, {**options, "vocab_size": 4100})
    for vocab_size in (1, 31, 32, 95, 4096, 4192):
        case = make(2, 4200, 131, torch.float32, 0.99, seed)
        yield Case(case.logits, case.bitmask, {"vocab_size": vocab_size})


def expected(case: Case) -> torch.Tensor:
    """The slow twin: a bit at a time would be the same, in an hour."""
    logits = case.logits
    width = logits.shape[1]
    octets = case.bitmask.numpy().astype("<i4").view(np.uint8)
    unpacked = np.unpackbits(octets, axis=1, bitorder="little")[:, :width].astype(np.bool_)
    allowed = np.pad(unpacked, ((0, 0), (0, width - unpacked.shape[1])))
    if (vocab_size := case.options.get("vocab_size")) is not None:
        allowed[:, vocab_size:] = False
    indices = case.options.get("indices")
    rows = range(logits.shape[0]) if indices is None else indices
    mask_rows = case.options.get("mask_rows")
    result = logits.clone()
    for row, mask_row in zip(rows, rows if mask_rows is None else mask_rows, strict=True):
        result[row] = torch.where(torch.from_numpy(allowed[mask_row]), logits[row], -torch.inf)
    return result


def check(device: str, backend: Backend | None) -> int:
    """Compare; returns the number of cases."""
    everything = list(cases())
    for case in everything:
        by_hand = bits(expected(case))
        masked = case.logits.to(device, copy=True)
        mask = case.bitmask.to(device)
        apply_token_bitmask_inplace(masked, mask, backend=backend, **case.options)
        assert torch.equal(bits(masked), by_hand), (case.logits.dtype, case.options)
        # Rows apart, a mask in the processor's memory, row numbers as a tensor.
        rows, width = case.logits.shape
        wide = torch.zeros(rows, 2, width + 3, dtype=case.logits.dtype, device=device)
        view = wide[:, 1, 2:-1]
        view.copy_(case.logits)
        options = {
            name: torch.tensor(value, dtype=torch.int64, device=device)
            if isinstance(value, list)
            else value
            for name, value in case.options.items()
        }
        apply_token_bitmask_inplace(view, case.bitmask.numpy(), backend=backend, **options)
        assert torch.equal(bits(view), by_hand), (case.logits.dtype, case.options)
        view.zero_()
        assert not wide.any(), "written outside of the logits"
    return len(everything)
