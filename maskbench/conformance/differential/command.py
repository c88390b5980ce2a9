"""`python -m maskbench conformance differential`."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from maskbench import commands, options
from maskbench.conformance.differential.rules import FAMILIES, FINDINGS, RULES
from maskbench.data import BUILTIN_CORPUS
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup, find
from maskbench.pool import Lost, Pool
from maskbench.tokenizer import BYTES_NAME, TokenizerSpec, resolve

if TYPE_CHECKING:
    from maskbench.conformance.differential.cases import CaseTask
    from maskbench.conformance.differential.journal import CaseJournal
    from maskbench.conformance.differential.reports import CaseReport, Finding

_REASONS = 12


@click.command("differential")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="No case begins later than that; shared by the tokenizers.",
)
@click.option("--cases", type=click.IntRange(min=1), help="At most so many for each tokenizer.")
@options.seed()
@options.tokenizers((BYTES_NAME,))
@click.option(
    "--schemas",
    type=click.Path(path_type=Path, exists=True),
    default=BUILTIN_CORPUS,
    help=options.DATA_HELP,
)
@click.option(
    "--family", "families", multiple=True, type=click.Choice([*FAMILIES]), default=[*FAMILIES]
)
@click.option("--case", "wanted", type=int, metavar="SEED", help="Only the case of this seed.")
@options.time_limit(120.0, "Seconds a case, after which its process is killed.")
@click.option("--show", type=click.IntRange(min=0), default=20, help="Findings to print.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@options.out("Keep the cases in this file, one a line, and go on with those that are there.")
def differential_command(
    minutes: float,
    cases: int | None,
    seed: int,
    names: tuple[str, ...],
    schemas: Path,
    families: tuple[str, ...],
    wanted: int | None,
    time_limit: float,
    show: int,
    as_json: bool,
    out: Path | None,
) -> None:
    """Compare ffwd's masks with llguidance's, and its verdicts with two validators, at random.

    Validators, or recognizers of the grammars, decide about differences. A difference that is
    ffwd's fault, or that no rule explains, is a finding, and the command ends with status 1.
    """
    from maskbench.conformance.differential.cases import PEER, SUBJECT
    from maskbench.conformance.differential.journal import CaseJournal

    with commands.workplace() as scratch:
        specs = [resolve(name, scratch) for name in names]
        about = {
            "seed": seed,
            "case": wanted,
            "tokenizers": {spec.name: spec.sha256 for spec in specs},
            "schemas": schemas.name,
            "families": families,
            "engines": {
                name: find(name)(EngineSetup(specs[0], Whitespace.COMPACT)).versions()
                for name in (SUBJECT, PEER)
            },
        }
        journal = CaseJournal(out, about)
        for spec in specs:
            deadline = monotonic() + minutes * 60 / len(specs)
            seeds = _seeds(seed, wanted, cases, len(journal.done.get(spec.name, ())))
            _run(journal, spec, schemas, families, seeds, deadline, time_limit, scratch)
    summary = _summary(journal, about)
    if as_json:
        click.echo(json.dumps(summary, indent=1))
    else:
        _show(options.console(), journal, summary, show, schemas)
    if any(report.findings for reports in journal.done.values() for report in reports):
        raise SystemExit(1)


def _seeds(seed: int, wanted: int | None, cases: int | None, done: int) -> Iterator[int]:
    """Return the seeds of the remaining cases."""
    from maskbench.conformance.differential.cases import case_seed

    if wanted is not None:
        if not done:
            yield wanted
        return
    number = done
    while cases is None or number < cases:
        yield case_seed(seed, number)
        number += 1


def _run(
    journal: CaseJournal,
    spec: TokenizerSpec,
    schemas: Path,
    families: tuple[str, ...],
    seeds: Iterator[int],
    deadline: float,
    time_limit: float,
    scratch: Path,
) -> None:
    """Run cases until the deadline. A case that is lost is run once more without the peer."""
    from maskbench.conformance.differential.cases import Cases, CaseSettings, CaseTask

    lost: dict[int, str] = {}
    again: list[CaseTask] = []

    def tasks() -> Iterator[CaseTask]:
        while True:
            if again:
                yield again.pop()
            elif monotonic() < deadline and (seed := next(seeds, None)) is not None:
                yield CaseTask(seed)
            else:
                return

    with Pool(
        Cases,
        CaseSettings(spec, schemas, families),
        processes=1,
        time_limit_s=time_limit,
        scratch=scratch,
    ) as pool:
        for task, answer in pool.run(tasks()):
            if isinstance(answer, Lost) and not task.alone:
                lost[task.seed] = answer.why
                again.append(CaseTask(task.seed, alone=True))
                continue
            journal.add(spec.name, _settled(task, answer, lost.get(task.seed)))


def _settled(task: CaseTask, answer: CaseReport | Lost, why: str | None) -> CaseReport:
    """Return the report of a case, also of one that was lost with the peer or without it."""
    from maskbench.conformance.differential.reports import CaseReport, Finding

    if isinstance(answer, Lost):
        report = CaseReport(task.seed, "lost", lost=answer.why)
        finding = Finding("case lost", "", "", {}, b"", None, (), answer.why)
        report.findings.append(finding)
        return report
    if why is not None:
        answer.lost = why
        answer.add("peer lost", " ".join(why.split())[:60])
    return answer


def _summary(journal: CaseJournal, about: dict[str, Any]) -> dict[str, Any]:
    from maskbench.conformance.differential.journal import plain
    from maskbench.conformance.differential.reports import OF_ONE, merged

    runs = {}
    for name, reports in journal.done.items():
        total = plain(merged(reports))
        for unused in OF_ONE:
            del total[unused]
        families = Counter(report.family for report in reports)
        refused: dict[str, Counter[str]] = {}
        for report in reports:
            for engine, reason in report.refused.items():
                refused.setdefault(engine, Counter())[reason] += 1
        runs[name] = {"cases": len(reports), "families": families, "refused": refused, **total}
    return {**about, "runs": runs}


def _show(
    console: Console, journal: CaseJournal, summary: dict[str, Any], show: int, schemas: Path
) -> None:
    columns = ["cases", "walks", "states", "alone", "bits", "differing_states", "differing_bits"]
    columns += ["examined", "verdicts"]
    table = Table("vocabulary", *(name.replace("_", " ") for name in columns), "findings")
    for name, run in summary["runs"].items():
        table.add_row(
            name, *(f"{run[column]:,}" for column in columns), f"{len(run['findings']):,}"
        )
    console.print(table)
    classes: Counter[str] = Counter()
    for run in summary["runs"].values():
        classes.update(run["classes"])
    table = Table("difference", "whose", "times", "reason")
    for name, count in sorted(classes.items()):
        rule = RULES[name.partition(" (")[0]]
        table.add_row(name, rule.owner, f"{count:,}", rule.reason)
    console.print(table)
    for name, run in summary["runs"].items():
        for engine, reasons in run["refused"].items():
            total = sum(reasons.values())
            console.print(f"{name}: {engine} does not take {total:,}", markup=False)
            for reason, count in reasons.most_common(_REASONS):
                console.print(f"  {count:5}  {reason}", markup=False, soft_wrap=True)
    shown = 0
    for name, reports in journal.done.items():
        for report in reports:
            for finding in report.findings:
                if shown < show:
                    _show_finding(console, name, report, finding, schemas)
                shown += 1
    console.print(f"Findings: {shown}")


def _show_finding(
    console: Console, tokenizer: str, report: CaseReport, finding: Finding, schemas: Path
) -> None:
    again = f"--case {report.seed} --tokenizer {tokenizer} --schemas {shlex.quote(str(schemas))}"
    lines = (
        f"\n{finding.what}: {FINDINGS[finding.what]}",
        f"  again: python -m maskbench conformance differential {again}",
        f"  {finding.kind} {' '.join(f'{k}={v}' for k, v in finding.options.items())}",
        f"  {finding.source[:2000]}",
        f"  after {finding.prefix!r}, token {finding.token!r}, "
        f"allowed by {', '.join(finding.allowed_by) or 'none'}",
        f"  {finding.detail[:500]}",
    )
    for line in lines:
        console.print(line, markup=False, soft_wrap=True, highlight=False)
