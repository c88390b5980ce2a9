"""Changes since an earlier run: verdicts by schema, and times over schemas that passed both."""

from __future__ import annotations

from dataclasses import replace

from maskbench.comparison import compare
from maskbench.regression import verdict_changes, verdicts_of
from maskbench.report.run import Run
from maskbench.report.table import Column, Table, Unit, Value, columns
from maskbench.runner import EngineLog

_SHOWN = ("avg", "p50", "p99", "p99.9", "max")


def changes(now: Run, then: Run) -> list[Table]:
    """Return tables of the engines that both runs have."""
    return [speed_changes(now, then), verdict_changes_table(now, then)]


def speed_changes(now: Run, then: Run) -> Table:
    """Return times then and now, over the schemas that the engine passed in both runs."""
    rows: list[tuple[Value, ...]] = []
    for engine in now.engines:
        if engine not in then.logs:
            continue
        both = compare(_paired(now.logs[engine], then.logs[engine]), "now", ["then"])
        for part, what in (("mask_us", "mask"), ("first_mask_us", "compile + first mask")):
            for name in _SHOWN:
                new, old = both.own(part, name), both.better_peer(part, name)
                ratio = None if new is None or not old else new / old
                rows.append((engine, f"{what} {name}", both.schemas, old, new, ratio))
    return Table(
        "speed_changes",
        f"Times in µs, {then.name} and now, over what each engine passed both times",
        (
            Column("engine"),
            Column("statistic"),
            Column("schemas", Unit.COUNT),
            *columns(Unit.MICROSECONDS, ("then", "now")),
            Column("now / then", Unit.RATIO),
        ),
        tuple(rows),
    )


def _paired(now: EngineLog, then: EngineLog) -> dict[str, EngineLog]:
    """Return both, with only the schemas that agree in id and labels, under common indices."""
    old = {record.id: record for record in then.records}
    ours, theirs = [], []
    for index, record in enumerate(now.records):
        other = old.get(record.id)
        if other is not None and other.labels == record.labels:
            ours.append(replace(record, index=index))
            theirs.append(replace(other, index=index))
    return {"now": EngineLog(records=ours), "then": EngineLog(records=theirs)}


def verdict_changes_table(now: Run, then: Run) -> Table:
    """Return every schema whose verdict is another."""
    found = verdict_changes(
        verdicts_of(then.document, then.name), verdicts_of(now.document, now.name), common_only=True
    )
    return Table(
        "verdict_changes",
        f"Verdicts that changed since {then.name}",
        tuple(Column(name) for name in ("engine", "schema", "then", "now", "worse")),
        tuple((c.engine, c.id, str(c.then), str(c.now), c.why or "no") for c in found),
    )
