"""The goals of ffwd on a card, judged by the measured tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from maskbench.report.table import Column, Table

SHAPE = "8b"
_MASKS = {1: 0.003, 8: 0.003, 32: 0.003, 128: 0.01}
"""The most of a token's time that masks may cost, by rows."""

_LIMIT = 1.3
"""The kernel's time over that of the memory limit."""

_FORCED_SHARE, _SPEED = "25%", 1.3
"""The speed of forced tokens over masks alone in documents of this share, at batch 1."""


def goals(tables: Sequence[Table]) -> Table | None:
    """Return each goal with its figure, and whether it is met; None where no table has one."""
    by_key = {table.key: list(_records(table)) for table in tables}
    rows = [
        *_kernel(by_key.get("kernels", [])),
        *_masks(by_key.get(f"tokens_{SHAPE}", [])),
        *_forced(by_key.get(f"documents_{SHAPE}", [])),
    ]
    if not rows:
        return None
    heads = ("goal", "at", "figure", "limit", "met")
    return Table("goals", "Goals", tuple(map(Column, heads)), tuple(rows))


def _records(table: Table) -> Iterator[dict[str, Any]]:
    names = [column.name for column in table.columns]
    return (dict(zip(names, row, strict=True)) for row in table.rows)


def _row(goal: str, at: str, figure: str, limit: str, met: bool) -> tuple[str, ...]:
    return goal, at, figure, limit, "yes" if met else "no"


def _kernel(found: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    for record in found:
        at = f"{record['logits']}, {record['rows']} rows"
        ratio = record["ffwd / limit"]
        yield _row("kernel, over the memory limit", at, f"{ratio:.2f}x", f"≤ {_LIMIT}x",
                   ratio <= _LIMIT)  # fmt: skip
        peers = [record.get(name) for name in ("xgrammar", "xgrammar, cuda")]
        best = min((time for time in peers if time is not None), default=None)
        if best is not None:
            ratio = record["ffwd"] / best
            yield _row("kernel, over XGrammar's fastest", at, f"{ratio:.2f}x", "≤ 1x", ratio <= 1)


def _masks(found: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    for record in found:
        limit = _MASKS.get(record["rows"])
        if record["masks"] == "ffwd, overlapped" and limit is not None:
            share = record["over none"]
            yield _row(f"masks, of a token's time ({SHAPE})", f"{record['rows']} rows",
                       f"{share:.2%}", f"< {limit:.1%}", share < limit)  # fmt: skip


def _forced(found: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    for record in found:
        if record["forced"] == _FORCED_SHARE and record["rows"] == 1:
            yield _row(f"forced tokens, speed over masks ({SHAPE})",
                       f"{record['share']:.1%} forced, 1 row", f"{record['speed']:.2f}x",
                       f"≥ {_SPEED}x", record["speed"] >= _SPEED)  # fmt: skip
