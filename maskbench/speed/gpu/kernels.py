"""Masks onto logits on a device, against the memory limit that a copy on the device shows."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from maskbench.speed.logits.masks import Bitmasks
from maskbench.speed.logits.measure import compare
from maskbench.speed.logits.ways import ways

_COPIED = 256 << 20
_CALLS = 20


def microseconds(call: Callable[[], object], device: torch.device, rounds: int) -> float:
    """Return the device's time of a call: the median over rounds of some calls in a row.

    On CUDA the calls are one graph, so that the host's time to start them is not in it; a call that
    cannot be captured is timed by events.
    """
    call()
    if device.type != "cuda":
        taken = []
        for _ in range(rounds):
            started = time.perf_counter_ns()
            call()
            taken.append((time.perf_counter_ns() - started) / 1e3)
        return median(taken)
    run: Callable[[], object] = lambda: [call() for _ in range(_CALLS)]  # noqa: E731
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        run = graph.replay
    except RuntimeError:
        torch.cuda.synchronize()
    found = []
    for _ in range(rounds + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        found.append(begin.elapsed_time(end) * 1e3 / _CALLS)
    return float(median(found[1:]))


def bandwidth(device: torch.device, rounds: int) -> float:
    """Return how many bytes a second a copy on the device reads and writes."""
    size = _COPIED if device.type == "cuda" else _COPIED >> 3
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    taken = microseconds(lambda: target.copy_(source), device, rounds)
    return float(2 * size / (taken / 1e6))


def measure(
    masks: Bitmasks, width: int, dtype: torch.dtype, device: torch.device, *, rounds: int
) -> tuple[dict[str, float], int, dict[str, str]]:
    """Return the microseconds of every way, the bytes that none can do without, and who is missing.

    The bytes are the masks, read, and the logits that become -inf, written.

    Raises:
        WrongResultError: A way leaves other logits than `torch.where`.

    """
    torch.manual_seed(0)
    source = torch.randn(len(masks), width).to(device=device, dtype=dtype)
    logits = source.clone()
    # llguidance's function is compiled by torch for the first call.
    compiled = device.type == "cuda"
    found, missing = ways(logits, masks, threads=torch.get_num_threads(), compiled=compiled)
    if "llguidance" in missing and not compiled:
        missing["llguidance"] = "torch compiles its function, which is measured on CUDA only"
    compare(found, logits, source)
    times = {way.name: microseconds(way.call, device, rounds) for way in found}
    allowed = int.from_bytes(masks.tobytes(), "little").bit_count()
    written: Any = (len(masks) * width - allowed) * source.element_size()
    return times, masks.nbytes + written, missing
