"""The report as one HTML page that needs nothing else: no network, no files beside it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from maskbench.report import contents, figures
from maskbench.report.changes import changes
from maskbench.report.run import Run
from maskbench.report.table import Column, Table, Unit, Value, columns, printable, show

_PAGE = Path(__file__).parent / "page"
# The most rows of a list of schemas; more make the page slow to open.
_MOST_ROWS = 2000
_MANY_ROWS = 40

# The parts of the bars: the count, and its name.
_BAR_PARTS = (
    ("passed", "passed"), ("refused", "refused"), ("wrong_reject", "wrong reject"),
    ("wrong_accept", "wrong accept"), ("failed", "failed"), ("crashed", "crashed"),
    ("timed_out", "timed out"), ("out_of_memory", "out of memory"),
)  # fmt: skip

_SETTINGS = {
    "whitespace": "whitespace", "property_order": "property order",
    "time_limit_s": "time limit in s", "memory_limit_bytes": "memory limit",
    "chunk": "schemas per turn", "rounds": "rounds",
    "forced": "forced tokens", "cold_store": "stores emptied", "pin": "processor",
    "engine_samples": "samples of engines", "jobs": "jobs", "executor": "executor",
}  # fmt: skip


@dataclass(frozen=True)
class ShownTable:
    """A table as the template sees it: cells as (value, text, column, whether it is the best)."""

    table: Table
    rows: list[list[tuple[Value, str, Column, bool]]]
    cut: int
    """Rows that are left out."""

    is_long: bool


def page(runs: Sequence[Run], against: Run | None = None) -> str:
    """Return the whole page; the first run is compared with `against`, an earlier one."""
    shown = [
        _run(f"r{number}", run, against if number == 0 else None) for number, run in enumerate(runs)
    ]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            title=_title(runs),
            tokenizers=_tokenizers(runs),
            runs=shown,
            data=_data(shown),
            **_common(),
        )
    )


def tables_page(
    title: str, facts: Mapping[str, str], tables: Sequence[Table], plots: Sequence[figures.Curves]
) -> str:
    """Return a page of tables and of curves by percentile, of a command other than `run`."""
    environment = _environment()
    names = list(dict.fromkeys(line.engine for plot in plots for line in plot.lines))
    run = {"key": "r0", "numbers": {name: number for number, name in enumerate(names)}}
    shown = {**run, "curves_shown": plots, "curves_own": (), "scatters": ()}
    return environment.get_template("tables.html.j2").render(
        title=title, facts=facts, run=run, tables=[_shown(table) for table in tables],
        plots=plots, data=_data([shown]), **_common(),
    )  # fmt: skip


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_PAGE), autoescape=True, undefined=StrictUndefined,
        finalize=_written,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def _common() -> dict[str, Any]:
    """Return what every page has: style, script and the box of plots."""
    script = (_PAGE / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return {
        "style": Markup((_PAGE / "report.css").read_text(encoding="utf-8")),
        "script": Markup(script),
        "script_hash": f"sha256-{digest}",
        "verdict_names": {label for _, label in _BAR_PARTS},
        "box": {
            "width": figures.WIDTH,
            "height": figures.HEIGHT,
            "left": figures.LEFT,
            "right": figures.WIDTH - figures.RIGHT,
            "top": figures.TOP,
            "bottom": figures.HEIGHT - figures.BOTTOM,
        },
    }


def _written(value: object) -> object:
    """Return foreign text for a template, without controls and lone surrogates."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return value


def _title(runs: Sequence[Run]) -> str:
    names = list(dict.fromkeys(name for run in runs for name in run.engines))
    engines = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    counts = {len({r.index for log in run.logs.values() for r in log.records}) for run in runs}
    schemas = f"{max(counts):,} schemas" if counts else ""
    return f"{engines} on {schemas}"


def _tokenizers(runs: Sequence[Run]) -> str:
    return ", ".join(dict.fromkeys(str(run.document["tokenizer"]["name"]) for run in runs))


def _run(key: str, run: Run, against: Run | None) -> dict[str, Any]:
    tables = {table.key: _shown(table) for table in contents.tables_of(run)}
    tables["overview"] = _shown(_overview(run))
    if against is not None:
        tables |= {table.key: _shown(table) for table in changes(run, against)}
    shown = figures.curves(run, "common") if run.peers else []
    own = figures.curves(run, "own")
    bars = [_bar(engine, run.engine(engine)) for engine in run.engines]
    used = {part["label"] for bar in bars for part in bar["parts"]}
    found = {
        "key": key,
        "title": run.title,
        "subject": run.subject,
        "is_pair": bool(run.peers),
        "numbers": {name: number for number, name in enumerate(run.engines)},
        # A table that a run does not have is asked for, too.
        "tables": dict.fromkeys(("refusals", "mask_common", "first_mask_common", "differences",
                                 "forced_common", "speed_changes")) | tables,
        "minima": [shown for name, shown in tables.items() if name.startswith("min_")],
        "goals": [shown for name, shown in tables.items() if name.startswith("goals")],
        "curves_shown": [replace(f, title=f"{f.title}, all pass") for f in shown],
        "curves_own": [replace(f, title=f"{f.title}, own") for f in own],
        "scatters": figures.scatters(run),
        "slowest": [
            {
                "name": engine,
                "masks": _of_engine(tables["slowest_masks"].table, engine, number),
                "first": _of_engine(tables["slowest_first_masks"].table, engine, number),
            }
            for number, engine in enumerate(run.engines)
        ],
        "bars": bars,
        "bar_names": [label for _, label in _BAR_PARTS if label in used],
        "facts": _facts(run),
    }  # fmt: skip
    parts = [("summary", "Summary"), ("verdicts", "Verdicts"), ("masks", "Masks"),
             ("compile", "Compile"), ("schemas", "Schemas"), ("goals", "Pairs"),
             ("forced", "Forced tokens"), ("minima", "Minima"), ("slowest", "Slowest"),
             ("differences", "Differences"), ("changes", "Changes")]  # fmt: skip
    absent = set()
    if not found["scatters"]:
        absent |= {"schemas", "goals"}
    if not run.peers:
        absent.add("differences")
    if run.minima is None:
        absent.add("minima")
    if against is None:
        absent.add("changes")
    found["parts"] = [part for part in parts if part[0] not in absent]
    return found


def _shown(table: Table) -> ShownTable:
    compared = (
        table.key.removeprefix("min_").startswith(("mask_", "first_mask_")) and len(table.rows) > 1
    )
    best: dict[int, Value] = {}
    if compared:
        for index, column in enumerate(table.columns):
            known = [v for row in table.rows if isinstance(v := row[index], float)]
            if known and column.unit is Unit.MICROSECONDS:
                best[index] = min(known)
            elif known and column.unit is Unit.PER_SECOND:
                best[index] = max(known)
    rows = [
        [
            (value, show(value, column.unit), column, index in best and value == best[index])
            for index, (value, column) in enumerate(zip(row, table.columns, strict=True))
        ]
        for row in table.rows[:_MOST_ROWS]
    ]
    return ShownTable(table, rows, len(table.rows) - len(rows), len(table.rows) > _MANY_ROWS
                      and table.key in ("differences", "verdict_changes"))  # fmt: skip


def _of_engine(table: Table, engine: str, number: int) -> ShownTable:
    """Return the table's rows of one engine, without the column that names it."""
    return _shown(
        replace(
            table,
            key=f"{table.key}_{number}",
            columns=table.columns[1:],
            rows=tuple(row[1:] for row in table.rows if row[0] == engine),
            title=table.title.partition(" of each engine")[0],
        )
    )


def _overview(run: Run) -> Table:
    """Return the overview of each engine, with times over the schemas that all engines pass."""
    rows = []
    for summary in run.summaries:
        counts = run.engine(summary.name)["counts"]
        times = summary.own if run.common is None else run.common.times[summary.name]
        forced = summary.common.forced
        rows.append(
            (
                summary.name,
                counts["passed"] / counts["schemas"] if counts["schemas"] else None,
                counts["wrong_accept_schemas"],
                *(None if times.mask_us is None else times.mask_us[name]
                  for name in ("avg", "p50", "p99")),
                *(None if times.first_mask_us is None else times.first_mask_us[name]
                  for name in ("p50", "p99")),
                forced.forced / forced.tokens if forced is not None and forced.tokens else None,
                run.engine(summary.name).get("peak_memory_bytes"),
            )
        )  # fmt: skip
    masks = run.summaries[0].own.masks if run.common is None else run.common.masks
    schemas = run.summaries[0].own.schemas if run.common is None else run.common.schemas
    return Table(
        "overview",
        "At a glance, times in µs",
        (
            Column("engine"),
            Column("passing", Unit.SHARE),
            Column("wrong accept", Unit.COUNT),
            *columns(
                Unit.MICROSECONDS,
                ("mask avg", "mask p50", "mask p99", "compile p50", "compile p99"),
            ),
            Column("forced share", Unit.SHARE),
            Column("peak memory", Unit.BYTES),
        ),
        tuple(rows),
        (f"Times and forced shares over what {'all engines pass' if run.peers else 'it passes'}: "
         f"{schemas:,} schemas, {masks:,} masks.",),
    )  # fmt: skip


def _bar(engine: str, about: dict[str, Any]) -> dict[str, Any]:
    counts = about["counts"]
    # Among the wrong schemas, those with a wrong accept are worse.
    accepts = counts["wrong_accept_schemas"]
    numbers = {**counts, "wrong_accept": accepts, "wrong_reject": counts["wrong"] - accepts}
    total = counts["schemas"]
    parts = [
        {
            "key": label.replace(" ", "-"),
            "label": label,
            "count": f"{numbers[name]:,}",
            "percent": f"{100 * numbers[name] / total:.4f}",
        }
        for name, label in _BAR_PARTS
        if total and numbers.get(name)
    ]
    return {
        "engine": engine,
        "parts": parts,
        "share": f"{counts['passed'] / total:.2%}" if total else "n/a",
    }


def _facts(run: Run) -> list[tuple[str, str]]:
    document = run.document
    found: list[tuple[str, Any]] = [("Command", document.get("command"))]
    if "started" in document:
        complete = "" if document.get("complete", True) else "; interrupted, so not all schemas"
        found.append(("Run", f"{document['started']}, {document['seconds']:,} s{complete}"))
    machine = document.get("machine")
    if machine:
        found.append(("Machine", "; ".join(f"{k} {v}" for k, v in machine.items() if v)))
    tokenizer = document["tokenizer"]
    found.append(("Tokenizer", _words(tokenizer, ("name", "vocab_size", "sha256"))))
    data = document.get("data")
    if data:
        found.append(("Data", _words(data, ("name", "schemas", "chosen", "sample", "seed",
                                            "slice", "skipped_instances"))))  # fmt: skip
    settings = document.get("settings", {})
    named = {label: settings[name] for name, label in _SETTINGS.items() if name in settings}
    if named.get("memory limit"):
        named["memory limit"] = show(named["memory limit"], Unit.BYTES)
    found.append(("Settings", _words(named, named)))
    for engine in run.engines:
        versions = run.engine(engine)["versions"]
        found.append((engine, "; ".join(f"{name} {value}" for name, value in versions.items())))
    return [(name, str(value)) for name, value in found if value]


def _words(values: dict[str, Any], names: Iterable[str]) -> str:
    """Return names and values; what is not set is left out."""
    return "; ".join(
        f"{name.replace('_', ' ')} {'yes' if values[name] is True else values[name]}"
        for name in names
        if values.get(name) not in (None, False, {}, [])
    )


def _data(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the script's data about the plots."""
    found: dict[str, Any] = {"curves": {}, "scatters": {}}
    for run in runs:
        for figure in (*run["curves_shown"], *run["curves_own"]):
            found["curves"][f"{run['key']}-{figure.key}"] = {
                "x": asdict(figure.x),
                "y": asdict(figure.y),
                "lines": [
                    {"engine": line.engine, "number": line.number, "points": line.points}
                    for line in figure.lines
                ],
            }
        for figure in run["scatters"]:
            found["scatters"][f"{run['key']}-{figure.key}"] = {
                "subject": figure.subject,
                "peer": figure.peer,
                "x": asdict(figure.x),
                "y": asdict(figure.y),
                "ids": [printable(name) for name in figure.ids],
                "xs": figure.xs,
                "ys": figure.ys,
            }
    return found
