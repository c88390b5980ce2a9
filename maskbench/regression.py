"""`python -m maskbench compare THEN NOW`: fails if verdicts got worse, or instruction counts rose.

Both files are of the same kind: results or baselines of verdicts, or instruction counts.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from maskbench import options
from maskbench.report import renderers
from maskbench.report.table import Column, Table, Unit
from maskbench.results import FORMAT as RESULTS_FORMAT
from maskbench.tools import instructions
from maskbench.verdicts import Verdict
from maskbench.walk import Outcome

VERDICTS_FORMAT = "maskbench-verdicts-1"

# Results without an answer; a schema with one of these got worse than any other result.
_FELL = frozenset({Verdict.FAILED.value, Verdict.CRASHED.value, Verdict.TIMED_OUT.value,
                   "out of memory"})  # fmt: skip

# The conditions of verdicts besides the engine, as far as a file states them.
_CONDITIONS = ("whitespace", "property_order", "time_limit_s", "forced")


class ComparisonError(click.ClickException):
    """Files that cannot be compared; the command ends with status 2, for nothing was judged."""

    exit_code = 2


@dataclass(frozen=True)
class Judged:
    """The result of one engine for one schema."""

    verdict: str
    wrong_rejects: int = 0
    wrong_accepts: int = 0

    def worse_than(self, then: Judged) -> str | None:
        """Return in what way it is worse, if it is."""
        passed = Verdict.PASSED.value
        if then.verdict == passed != self.verdict:
            return "no longer passes"
        if self.wrong_accepts > then.wrong_accepts:
            return "more wrong accepts"
        if self.wrong_rejects > then.wrong_rejects:
            return "more wrong rejects"
        if self.verdict in _FELL and self.verdict != then.verdict:
            return f"now {self.verdict}"
        return None

    def __str__(self) -> str:
        wrong = [f"{count} wrong {what}{'s' if count > 1 else ''}"
                 for count, what in ((self.wrong_rejects, "reject"), (self.wrong_accepts, "accept"))
                 if count]  # fmt: skip
        return ", ".join(wrong) if self.verdict == Verdict.WRONG.value else self.verdict


Verdicts = dict[str, dict[str, Judged]]
"""By engine and schema. A schema that comes again under the same id has a number after it."""


@dataclass(frozen=True)
class VerdictChange:
    """One engine, one schema; None where it is in one of the files only."""

    engine: str
    id: str
    then: Judged | None
    now: Judged | None
    why: str | None
    """In what way it is worse; None if it is not."""


def verdict_changes(then: Verdicts, now: Verdicts, *, common_only: bool) -> list[VerdictChange]:
    """Return everything that differs, engine by engine, in the order of the schemas.

    A schema that only one side has is worse, for it is not judged, and so is an engine that is
    gone; `common_only` leaves these out. Engines that are new are not looked at.
    """
    found = []
    for engine, before in then.items():
        after = now.get(engine)
        if after is None:
            if not common_only:
                found.append(VerdictChange(engine, "(all)", None, None, "no longer there"))
            continue
        for key in {**before, **after}:
            old, new = before.get(key), after.get(key)
            if old == new or (common_only and (old is None or new is None)):
                continue
            if new is None:
                why = "no longer there"
            elif old is None:
                why = "not in the first file"
            else:
                why = new.worse_than(old) or ""
            found.append(VerdictChange(engine, key, old, new, why or None))
    return found


def verdicts_of(document: dict[str, Any], place: object) -> Verdicts:
    """Return the verdicts of results or a baseline. Raises `ComparisonError`."""
    kind = document.get("format")
    try:
        engines = document["engines"].items()
        if kind == VERDICTS_FORMAT:
            return {
                engine: {key: _from_baseline(value) for key, value in schemas.items()}
                for engine, schemas in engines
            }
        if kind == RESULTS_FORMAT:
            return {engine: _from_results(about["schemas"]) for engine, about in engines}
    except (KeyError, TypeError, AttributeError) as error:
        raise ComparisonError(f"{place}: {error!r}") from error
    raise ComparisonError(f"{place}: neither results, nor verdicts, nor instruction counts")


def _from_results(schemas: list[dict[str, Any]]) -> dict[str, Judged]:
    found: dict[str, Judged] = {}
    seen: Counter[str] = Counter()
    for schema in schemas:
        seen[schema["id"]] += 1
        number = seen[schema["id"]]
        key = schema["id"] if number == 1 else f"{schema['id']} ({number})"
        documents = schema.get("documents", ())
        found[key] = Judged(
            schema["verdict"],
            sum(d["valid"] and d["outcome"] == Outcome.REJECTED.value for d in documents),
            sum(not d["valid"] and d["outcome"] == Outcome.ACCEPTED.value for d in documents),
        )
    return found


def _from_baseline(value: str | dict[str, Any]) -> Judged:
    return Judged(value) if isinstance(value, str) else Judged(**value)


def baseline(document: dict[str, Any], place: object) -> str:
    """Return the verdicts of results as a small file with readable changes."""
    settings = document.get("settings", {})
    engines = {
        engine: {
            key: judged.verdict if judged == Judged(judged.verdict) else asdict(judged)
            for key, judged in schemas.items()
        }
        for engine, schemas in verdicts_of(document, place).items()
    }
    small = {
        "format": VERDICTS_FORMAT,
        "tokenizer": {"name": document["tokenizer"]["name"]},
        "settings": {name: settings[name] for name in _CONDITIONS if name in settings},
    }
    # A schema a line.
    parts = [
        f" {json.dumps(engine)}: {{\n"
        + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(schemas.items()))
        + "\n }"
        for engine, schemas in engines.items()
    ]
    return json.dumps(small)[:-1] + ', "engines": {\n' + ",\n".join(parts) + "\n}}\n"


@click.command("baseline")
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False))
def baseline_command(results: Path, out: Path) -> None:
    """Write the verdicts of a run, as a reference for `compare`."""
    document = _read(results)
    if not document.get("complete", False):
        raise ComparisonError(f"{results}: the run was interrupted")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(baseline(document, results), encoding="utf-8")
    click.echo(f"Written: {out}")


@click.command("compare")
@click.argument("then", type=click.Path(path_type=Path))
@click.argument("now", type=click.Path(path_type=Path))
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=instructions.TOLERANCE,
    show_default=True,
    help="For instruction counts: how many percent more are allowed.",
)
@click.option(
    "--common-only",
    is_flag=True,
    help="Leave out engines, schemas and workloads that one of the files does not have.",
)
def compare_command(then: Path, now: Path, tolerance: float, common_only: bool) -> None:
    """Exit with 1 if verdicts got worse or instruction counts rose from THEN to NOW.

    Both are results, verdicts that `baseline` has written, or counts of `tools instructions`.
    Unreadable or incomparable files are an error with status 2.
    """
    before, after = _read(then), _read(now)
    console = options.console(140)
    if ("instructions" in before) != ("instructions" in after):
        raise ComparisonError(f"{then} and {now} are of different kinds")
    if "instructions" in before:
        _compare_counts(console, (then, before), (now, after), tolerance, common_only)
    else:
        _compare_verdicts(console, (then, before), (now, after), common_only)


def _compare_verdicts(
    console: Console,
    then: tuple[Path, dict[str, Any]],
    now: tuple[Path, dict[str, Any]],
    common_only: bool,
) -> None:
    for line in _other_conditions(then[1], now[1]):
        console.print(f"Not the same work: {line}", markup=False, soft_wrap=True)
    before, after = verdicts_of(then[1], then[0]), verdicts_of(now[1], now[0])
    shared = [engine for engine in before if engine in after]
    if not shared:
        raise ComparisonError(f"{then[0]} and {now[0]} have no engine in common")
    found = verdict_changes(before, after, common_only=common_only)
    worse = [change for change in found if change.why is not None]
    other = len(found) - len(worse)
    judged = sum(len(before[e].keys() & after[e].keys()) for e in shared)
    if not judged:
        raise ComparisonError(f"{then[0]} and {now[0]} have no schema in common")
    if worse:
        rows = [(c.engine, c.id, _text(c.then), _text(c.now), c.why) for c in worse]
        renderers.terminal(
            console, [Table("worse", "Worse", _named("engine", "schema", "then", "now", "why"),
                            tuple(rows))],
        )  # fmt: skip
    console.print(
        f"{judged:,} verdicts compared ({', '.join(shared)}): "
        f"{len(worse):,} worse, {other:,} changed otherwise."
    )
    if worse:
        raise SystemExit(1)


def _compare_counts(
    console: Console,
    then: tuple[Path, dict[str, Any]],
    now: tuple[Path, dict[str, Any]],
    tolerance: float,
    common_only: bool,
) -> None:
    if then[1].get("toolchain") != now[1].get("toolchain"):
        raise ComparisonError(
            "instruction counts of different compilers or C libraries say nothing about each "
            f"other: {then[1].get('toolchain')} and {now[1].get('toolchain')}"
        )
    try:
        changes = instructions.compare(
            {str(k): int(v) for k, v in then[1]["instructions"].items()},
            {str(k): int(v) for k, v in now[1]["instructions"].items()},
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise ComparisonError(f"{then[0]}, {now[0]}: {error!r}") from error
    if common_only:
        changes = [change for change in changes if change.percent is not None]
    if not changes:
        raise ComparisonError(f"{then[0]} and {now[0]} have no workload in common")
    shares = [None if c.percent is None else c.percent / 100 for c in changes]
    named = (
        Column("workload"), Column("then", Unit.COUNT), Column("now", Unit.COUNT),
        Column("change", Unit.SHARE),
    )  # fmt: skip
    rows = [(c.name, c.then, c.now, share) for c, share in zip(changes, shares, strict=True)]
    renderers.terminal(console, [Table("instructions", "Instructions", named, tuple(rows))])
    worse = [c.name for c in changes if c.percent is None or c.percent > tolerance]
    if worse:
        console.print(
            f"Over {tolerance:g}% more, or not counted: {', '.join(worse)}", soft_wrap=True
        )
        raise SystemExit(1)


def _other_conditions(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    pairs = [("tokenizer", then.get("tokenizer", {}).get("name"),
              now.get("tokenizer", {}).get("name"))]  # fmt: skip
    before, after = then.get("settings", {}), now.get("settings", {})
    pairs += [(name, before.get(name), after.get(name)) for name in _CONDITIONS]
    return [f"{name} was {old}, is {new}" for name, old, new in pairs if old != new]


def _named(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names)


def _text(judged: Judged | None) -> str:
    return "-" if judged is None else str(judged)


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ComparisonError(f"{path}: {error}") from error
    if not isinstance(document, dict):
        raise ComparisonError(f"{path}: not a JSON object")
    return document
