"""The measurements: all ways in turns on the same logits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from statistics import median

import torch

from maskbench.speed.logits.masks import Bitmasks
from maskbench.speed.logits.ways import Way, ways


@dataclass(frozen=True)
class Timing:
    """Microseconds per call of one way, over all rounds."""

    median: float
    best: float
    ratio: float
    """The median over the rounds of its time by ffwd's in the same round, medians of each."""


@dataclass(frozen=True)
class Problem:
    """One cell of the benchmark."""

    rows: int
    width: int
    dtype: torch.dtype
    masks: Bitmasks


class WrongResultError(Exception):
    """A way has masked other logits than `torch.where`; the message says which and where."""


def measure(
    problem: Problem, *, device: str, rounds: int, calls: int, threads: int, compiled: bool
) -> tuple[dict[str, Timing], dict[str, str]]:
    """Time every way on a problem, by name, and say which ways are missing.

    In each round every way has its turn, of some calls that are timed after one that is not. Before
    each call the logits are written anew, so all ways find them in the same caches. Every way's
    result is looked at once.

    Raises:
        WrongResultError: A way that leaves other logits than the rest.

    """
    torch.manual_seed(0)
    source = torch.randn(problem.rows, problem.width).to(device=device, dtype=problem.dtype)
    logits = source.clone()
    found, missing = ways(logits, problem.masks, threads=threads, compiled=compiled)
    compare(found, logits, source)
    times: dict[str, list[list[float]]] = {way.name: [] for way in found}
    clock = _cuda_clock if device.startswith("cuda") else _clock
    for turn in range(rounds):
        for way in found[turn % len(found) :] + found[: turn % len(found)]:
            taken = []
            for _ in range(calls + 1):
                logits.copy_(source)
                taken.append(clock(way.call))
            times[way.name].append(taken[1:])
    own = [median(taken) for taken in times[found[0].name]]
    return {
        name: Timing(
            median(chain.from_iterable(turns)),
            min(chain.from_iterable(turns)),
            median(median(taken) / ours for taken, ours in zip(turns, own, strict=True)),
        )
        for name, turns in times.items()
    }, missing


def compare(found: list[Way], logits: torch.Tensor, source: torch.Tensor) -> None:
    """Call every way twice, and raise `WrongResultError` if one is not as `torch.where`."""
    results = {}
    for way in found:
        logits.copy_(source)
        result = way.call()
        results[way.name] = (result if isinstance(result, torch.Tensor) else logits).clone()
        # Warm by now: compiled kernels, the caches of an allocator.
        way.call()
    for way in found:
        if way.same and not torch.equal(results[way.name], results["where"]):
            differing = (results[way.name] != results["where"]).nonzero()[0].tolist()
            raise WrongResultError(
                f"{way.name} differs from torch.where in row {differing[0]}, column {differing[1]}"
            )


def _clock(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1000


def _cuda_clock(call: Callable[[], object]) -> float:
    """Measure until the device is done, including the host's time to start it."""
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    call()
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - start) / 1000
