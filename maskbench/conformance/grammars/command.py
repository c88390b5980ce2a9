"""`python -m maskbench conformance grammars`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from maskbench import commands, options, results
from maskbench.conformance.grammars.cases import KINDS, GrammarCase, read_corpus
from maskbench.conformance.grammars.compare import (
    CompareSettings,
    GrammarComparison,
    GrammarReport,
    default_peers,
)
from maskbench.conformance.grammars.expected import Expected, read_expected
from maskbench.conformance.grammars.generated import generated
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup, find
from maskbench.pool import Lost, Pool
from maskbench.progress import progress
from maskbench.tokenizer import resolve

FORMAT = "maskbench-grammars-1"


@click.command("grammars")
@click.option("--engine", "subject", default="ffwd", show_default=True, help=options.ENGINES_HELP)
@click.option("--peer", help="Whom to compare with; by default one that reads the format.")
@options.tokenizers(("bytes",))
@click.option("--case", "wanted", multiple=True, help="Only cases that have this in their name.")
@click.option("--kind", type=click.Choice(KINDS), help="Only cases of this format.")
@click.option("--walks", type=click.IntRange(1), default=20, show_default=True)
@click.option("--steps", type=click.IntRange(1), default=60, show_default=True)
@options.seed()
@options.time_limit(60.0, "Seconds a case, after which the process is killed.")
@options.processes
@click.option("--show", type=click.IntRange(min=0), default=40, help="Cases to print.")
@click.option("--strict", is_flag=True, help="Exit with 1 if anything is not as expected.")
@options.out()
def grammars_command(
    subject: str,
    peer: str | None,
    names: tuple[str, ...],
    wanted: tuple[str, ...],
    kind: str | None,
    walks: int,
    steps: int,
    seed: int,
    time_limit: float,
    processes: int,
    show: int,
    strict: bool,
    out: Path | None,
) -> None:
    """Compare masks of engines on a corpus of Lark, GBNF, EBNF and regular expressions."""
    console = options.console()
    peers = {kind: peer or default for kind, default in default_peers().items()}
    documents = []
    bad = False
    with commands.workplace() as scratch:
        for name in {subject, *peers.values()}:
            find(name)
        expected = read_expected()
        cases = [
            case
            for case in (*read_corpus(), *generated())
            if (kind is None or case.kind == kind)
            and (not wanted or any(part in case.name for part in wanted))
        ]
        for name in names:
            spec = resolve(name, scratch)
            settings = CompareSettings(
                EngineSetup(spec, Whitespace.FLEXIBLE), subject, peers, seed, walks, steps
            )
            reports = _run(cases, settings, processes, time_limit, scratch)
            verdicts = {r.name: verdict(r, expected.get(r.name), subject) for r in reports}
            bad |= any(is_bad(what) for what in verdicts.values())
            _show(console, name, reports, verdicts, show)
            documents.append(
                {
                    "tokenizer": {"name": spec.name, "sha256": spec.sha256},
                    "verdicts": verdicts,
                    "cases": [_plain(report) for report in reports],
                }
            )
    document = {
        "format": FORMAT,
        "machine": results.machine(),
        "subject": subject,
        "peers": peers,
        "seed": seed,
        "runs": documents,
    }
    commands.save(document, out, console)
    if strict and bad:
        raise SystemExit(1)


def verdict(report: GrammarReport, expected: Expected | None, subject: str) -> str:
    """Return the result of a case, in a word or two; its `is_bad` marks a failure."""
    if report.skipped is not None:
        return "skipped"
    wrong = [wrong for wrong in report.wrong_examples if wrong.startswith(f"{subject} ")]
    if subject in report.refused:
        return "REFUSED BY THE SUBJECT"
    if wrong:
        return "WRONG EXAMPLES"
    found = None
    if report.peer in report.refused:
        found = "refused"
    elif report.differences:
        found = "masks"
    elif report.gave_up is not None:
        found = "gave up"
    if found is None:
        return "equal"
    if expected is not None and expected.what == found:
        return f"expected: {found}"
    return f"UNEXPECTED: {found}"


def is_bad(what: str) -> bool:
    """Return whether a verdict is in capitals."""
    return what[:3].isupper()


def _run(
    cases: list[GrammarCase],
    settings: CompareSettings,
    processes: int,
    time_limit: float,
    scratch: Path,
) -> list[GrammarReport]:
    reports: dict[str, GrammarReport] = {}
    with (
        progress(len(cases), [settings.setup.tokenizer.name]) as advance,
        Pool(
            GrammarComparison,
            settings,
            processes=processes,
            time_limit_s=time_limit,
            scratch=scratch,
        ) as pool,
    ):
        for case, answer in pool.run(cases):
            if isinstance(answer, Lost):
                answer = GrammarReport(
                    case.name, case.kind, settings.peers[case.kind], gave_up=answer.why
                )
            reports[case.name] = answer
            advance(settings.setup.tokenizer.name)
    return [reports[case.name] for case in cases]


def _show(
    console: Console,
    name: str,
    reports: list[GrammarReport],
    verdicts: dict[str, str],
    show: int,
) -> None:
    table = Table("format", "cases", "masks", *sorted(set(verdicts.values())), title=name)
    for kind in (*KINDS, "all"):
        those = [report for report in reports if kind in (report.kind, "all")]
        counts = Counter(verdicts[report.name] for report in those)
        table.add_row(
            kind,
            f"{len(those)}",
            f"{sum(report.masks for report in those):,}",
            *(f"{counts[what]}" for what in sorted(set(verdicts.values()))),
        )
    console.print(table)
    bad = [report for report in reports if is_bad(verdicts[report.name])]
    for report in bad[:show]:
        console.print(f"{report.kind} {report.name}: {verdicts[report.name]}", markup=False)
        for engine, why in report.refused.items():
            console.print(f"  {engine}: {' '.join(why.split())[:200]}", markup=False)
        for wrong in report.wrong_examples[:4]:
            console.print(f"  {wrong}", markup=False)
        for difference in report.differences:
            console.print(
                f"  {difference.walk}, after {difference.text[-60:]!r}: "
                f"{difference.counts[0]} only here {', '.join(difference.subject_only)}; "
                f"{difference.counts[1]} only there {', '.join(difference.peer_only)}",
                markup=False,
                soft_wrap=True,
            )
        if report.gave_up is not None:
            console.print(f"  {' '.join(report.gave_up.split())[:300]}", markup=False)


def _plain(report: GrammarReport) -> dict[str, Any]:
    plain = asdict(report)
    for difference in plain["differences"]:
        difference["text"] = difference["text"].decode(errors="replace")
    return plain
