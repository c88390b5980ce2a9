"""The curves as an SVG picture: a box for each part of the work, on one scale of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from maskbench.conformance.soak.memory import Curve, Sample

_WIDTH, _HEIGHT = 310.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 14.0, 34.0, 40.0
_MIB = 1 << 20


def svg(curves: Sequence[Curve]) -> str:
    """Return a picture of all curves in a row."""
    largest = max(sample.resident_bytes for curve in curves for sample in curve.samples)
    step = next(s for s in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10**9)
                if largest / _MIB / s <= 6)  # fmt: skip
    top = (largest // _MIB // step + 1) * step
    width = _WIDTH * len(curves)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {_HEIGHT:g}" '
        f'width="{width:g}" height="{_HEIGHT:g}" font-family="sans-serif" font-size="11" '
        'role="img" aria-label="Resident size over the work done">',
        f'<rect width="{width:g}" height="{_HEIGHT:g}" fill="#ffffff"/>',
    ]
    for number, curve in enumerate(curves):
        parts += _box(curve, number * _WIDTH, top, step)
    return "\n".join([*parts, "</svg>", ""])


def _box(curve: Curve, offset: float, top: int, step: int) -> list[str]:
    left, right = offset + _LEFT, offset + _WIDTH - _RIGHT
    bottom = _HEIGHT - _BOTTOM

    def across(done: float) -> float:
        return left + (right - left) * done / curve.total

    def up(mebibytes: float) -> float:
        return bottom - (bottom - _TOP) * mebibytes / top

    def at(sample: Sample) -> str:
        return f"{across(sample.done):.1f},{up(sample.resident_bytes / _MIB):.1f}"

    parts = [
        f'<text x="{left:.1f}" y="20" font-size="13" font-weight="bold">'
        f"{escape(f'{curve.total:,} {curve.name}')}</text>"
    ]
    for mebibytes in range(0, top + 1, step):
        y = up(mebibytes)
        parts.append(f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end" '
                     f'fill="#555555">{mebibytes}</text>')  # fmt: skip
    for quarter in range(5):
        x = across(curve.total * quarter / 4)
        parts.append(f'<path d="M{x:.1f} {_TOP:g}V{bottom:g}" stroke="#eeeeee"/>')
        if quarter % 2:
            continue
        anchor = "start" if quarter == 0 else "end" if quarter == 4 else "middle"
        parts.append(f'<text x="{x:.1f}" y="{bottom + 15:g}" text-anchor="{anchor}" '
                     f'fill="#555555">{curve.total * quarter // 4:,}</text>')  # fmt: skip
    allowed = up(curve.verdict().allowed / _MIB)
    parts += [
        f'<path d="M{across(curve.total * 0.75):.1f} {allowed:.1f}H{right:.1f}" '
        'stroke="#c0392b" stroke-dasharray="4 3"/>',
        f'<polyline points="{" ".join(map(at, curve.samples))}" fill="none" '
        'stroke="#1f5fa8" stroke-width="1.5" stroke-linejoin="round"/>',
        f'<text x="{left:.1f}" y="{_HEIGHT - 8:g}" fill="#555555">'
        "MiB resident; dashed: what is allowed at last</text>",
    ]
    return parts
