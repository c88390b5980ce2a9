"""The figures of the HTML page as numbers in a box: percentile curves and scatters.

Curves are decimated here: of millions of samples a curve keeps some hundred.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskbench.comparison import common_schemas, prefixes
from maskbench.report.run import Run
from maskbench.statistics import first_mask_samples, mask_samples, passing

WIDTH, HEIGHT = 600.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 14.0, 12.0, 46.0
_POINTS = 240
_LAYERS = 16


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis between two values, or two exponents, in the box's units."""

    low: float
    high: float
    start: float
    stop: float

    def at(self, exponent: float) -> float:
        """Return the coordinate of a decimal exponent."""
        share = (exponent - self.low) / (self.high - self.low)
        return round(self.start + share * (self.stop - self.start), 2)


@dataclass(frozen=True)
class Tick:
    """A line across the box, with its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Line:
    """One engine's curve: the path, and its points as (nines, time in µs)."""

    engine: str
    number: int
    """Of the engine in the run, for its colour."""

    path: str
    points: list[tuple[float, float]]


@dataclass(frozen=True)
class Curves:
    """Times by percentile. The x axis counts nines: 1 is 90%, 2 is 99%."""

    key: str
    title: str
    samples: str
    """How many, in words."""

    x: Axis
    y: Axis
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    lines: list[Line]


@dataclass(frozen=True)
class Scatter:
    """The subject's time for each schema against a peer's, both in µs."""

    key: str
    title: str
    subject: str
    peer: str
    peer_number: int
    x: Axis
    y: Axis
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    paths: list[str]
    """Of the points, in layers, so that many of them at one place are darker than a few."""

    ids: list[str]
    xs: list[float]
    ys: list[float]
    faster: int
    """On how many of the schemas the subject is."""

    median: float
    """Of how many times longer the peer takes."""


def curves(run: Run, scope: str) -> list[Curves]:
    """Masks, and compile + first mask; `scope` is `own` or `common`. Empty ones are left out."""
    masks: dict[str, NDArray[np.float32]] = {}
    first: dict[str, NDArray[np.float32]] = {}
    common = common_schemas(run.logs, run.engines)[0] if scope == "common" else None
    if common is not None:
        masks, first = _common_samples(run, common)
    else:
        for engine, log in run.logs.items():
            chosen = passing(log.records)
            records = [record for record in log.records if record.index in chosen]
            masks[engine], first[engine] = mask_samples(records), first_mask_samples(records)
    found = [
        percentile_curves(f"mask_{scope}", "Mask + accept", masks, "masks"),
        percentile_curves(f"first_mask_{scope}", "Compile + first mask", first, "schemas"),
    ]
    return [figure for figure in found if figure is not None]


def _common_samples(
    run: Run, common: Sequence[int]
) -> tuple[dict[str, NDArray[np.float32]], dict[str, NDArray[np.float32]]]:
    masks, first = {}, {}
    records = {name: {r.index: r for r in log.records} for name, log in run.logs.items()}
    lengths = {
        index: [
            min(document.masks for document in documents)
            for documents in zip(*(records[n][index].documents for n in run.engines), strict=True)
        ]
        for index in common
    }
    for name in run.engines:
        parts = [part for i in common for part in prefixes(records[name][i], lengths[i])]
        masks[name] = np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)
        first[name] = first_mask_samples(records[name][i] for i in common)
    return masks, first


def percentile_curves(
    key: str, title: str, samples: dict[str, NDArray[np.float32]], what: str
) -> Curves | None:
    """Return a curve of microseconds by percentile for each name; None without any."""
    known = {name: np.sort(values) for name, values in samples.items() if len(values)}
    if not known:
        return None
    points = {name: _decimated(values) for name, values in known.items()}
    x = Axis(0.0, max(p[-1][0] for p in points.values()), LEFT, WIDTH - RIGHT)
    times = [us for p in points.values() for _, us in p]
    y = _times_axis(times, HEIGHT - BOTTOM, TOP)
    numbers = {name: number for number, name in enumerate(samples)}
    sizes = sorted({len(values) for values in known.values()})
    size = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    return Curves(
        key,
        title,
        f"{size} {what}",
        x,
        y,
        _percent_ticks(x),
        _time_ticks(y),
        [
            Line(
                name,
                numbers[name],
                "M" + "L".join(f"{x.at(t)} {y.at(math.log10(max(us, 1e-3)))}" for t, us in p),
                p,
            )
            for name, p in points.items()
        ],
    )


def _decimated(ordered: NDArray[np.float32]) -> list[tuple[float, float]]:
    """Return samples by rank, evenly over the nines, with the least and the greatest.

    The sample of rank r of n stands at the percentile (r - 1/2) / n, so that the greatest one has
    a place too.
    """
    count = len(ordered)
    nines = np.linspace(0.0, math.log10(2 * count), _POINTS)
    ranks = np.rint(count * (1 - 10.0**-nines) + 0.5).astype(np.int64).clip(1, count)
    return [
        (round(math.log10(count / (count - rank + 0.5)), 4), float(f"{ordered[rank - 1]:.4g}"))
        for rank in np.unique(np.concatenate(([1], ranks, [count]))).tolist()
    ]


def scatters(run: Run) -> list[Scatter]:
    """Return for each peer: mean time of a mask, and compile + first mask, by schema."""
    found = []
    subject = {record.index: record for record in run.logs[run.subject].records}
    numbers = {name: number for number, name in enumerate(run.engines)}
    for peer in run.rivals:
        common = common_schemas(run.logs, [run.subject, peer])[0]
        others = {record.index: record for record in run.logs[peer].records}
        masks: list[tuple[str, float, float]] = []
        first: list[tuple[str, float, float]] = []
        for index in common:
            one, two = subject[index], others[index]
            lengths = [min(a.masks, b.masks)
                       for a, b in zip(one.documents, two.documents, strict=True)]  # fmt: skip
            if sum(lengths):
                ours, theirs = (np.concatenate(prefixes(r, lengths)) for r in (one, two))
                masks.append((one.id, _mean(theirs), _mean(ours)))
            if one.first_mask_us is not None and two.first_mask_us is not None:
                first.append((one.id, two.first_mask_us, one.first_mask_us))
        for key, title, points in (
            ("mask", "Mean time of a mask, by schema", masks),
            ("first_mask", "Compile + first mask, by schema", first),
        ):
            # A time of nothing has no place on a logarithmic axis.
            seen = [point for point in points if point[1] > 0 and point[2] > 0]
            if seen:
                found.append(_scatter(f"{key}_{numbers[peer]}", title, run.subject, peer,
                                      numbers[peer], seen))  # fmt: skip
    return found


def _scatter(
    key: str,
    title: str,
    subject: str,
    peer: str,
    number: int,
    points: list[tuple[str, float, float]],
) -> Scatter:
    ids = [name for name, _, _ in points]
    xs = [float(f"{x:.4g}") for _, x, _ in points]
    ys = [float(f"{y:.4g}") for _, _, y in points]
    x = _times_axis([*xs, *ys], LEFT, WIDTH - RIGHT)
    y = Axis(x.low, x.high, HEIGHT - BOTTOM, TOP)
    dots = [f"M{x.at(math.log10(a))} {y.at(math.log10(b))}h0" for a, b in zip(xs, ys, strict=True)]
    layers = min(_LAYERS, -(-len(dots) // _POINTS))
    ratios = sorted(a / b for a, b in zip(xs, ys, strict=True))
    return Scatter(
        key,
        title,
        subject,
        peer,
        number,
        x,
        y,
        _time_ticks(x),
        _time_ticks(y),
        ["".join(dots[layer::layers]) for layer in range(layers)],
        ids,
        xs,
        ys,
        sum(ratio > 1 for ratio in ratios),
        ratios[(len(ratios) - 1) // 2],
    )


def _mean(samples: NDArray[np.float32]) -> float:
    return float(np.mean(samples, dtype=np.float64))


def _times_axis(times: Sequence[float], start: float, stop: float) -> Axis:
    """Return the axis from a power of ten to one, or to three of one, around all times."""
    low = math.log10(max(min(times), 1e-3))
    high = math.log10(max(max(times), 1e-3))
    bottom = max(step for step in _steps(low) if step <= low + 1e-9)
    top = min(step for step in _steps(high) if step >= high - 1e-9)
    return Axis(bottom, top if top > bottom else bottom + 1, start, stop)


def _steps(exponent: float) -> tuple[float, float, float]:
    """Return 1 and 3 times the power of ten below, and the power above, as exponents."""
    whole = math.floor(exponent)
    return whole, whole + math.log10(3), whole + 1


def _time_ticks(axis: Axis) -> list[Tick]:
    """Return ticks at powers of ten; if they are few, at three times these too."""
    powers = range(math.floor(axis.low), math.floor(axis.high + 1e-9) + 1)
    factors = (1, 3) if axis.high - axis.low < 2.5 else (1,)
    found = [
        (power + math.log10(factor), f"{factor * 10 ** (power % 3)} {_unit(power)}")
        for power in powers
        for factor in factors
    ]
    return [
        Tick(axis.at(at), label) for at, label in found if axis.low - 1e-9 <= at <= axis.high + 1e-9
    ]


def _unit(power: int) -> str:
    """Return the unit that writes this many times ten microseconds with up to three digits."""
    return {-1: "ns", 0: "µs", 1: "ms", 2: "s"}.get(power // 3, f"· 10^{power // 3 * 3} µs")


def _percent_ticks(axis: Axis) -> list[Tick]:
    found = [Tick(axis.at(0.0), "0")]
    if math.log10(2) < axis.high:
        found.append(Tick(axis.at(math.log10(2)), "50"))
    for nines in range(1, math.floor(axis.high) + 1):
        text = "90" if nines == 1 else "99" if nines == 2 else f"99.{'9' * (nines - 2)}"
        found.append(Tick(axis.at(nines), text))
    return found
