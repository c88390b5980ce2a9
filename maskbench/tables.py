"""The tables that a run prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

from maskbench.comparison import Comparison
from maskbench.goals import judge
from maskbench.results import EngineSummary
from maskbench.statistics import STATISTICS, Scope

_REASONS = 8


def show(console: Console, summaries: list[EngineSummary]) -> None:
    """Prints verdicts first, then times over each engine's own and over the common schemas."""
    # Titles are printed apart, because a table's own title is wrapped to the table's width.
    console.print("Verdicts: schemas, and in brackets instances", style="bold")
    console.print(_verdicts(summaries))
    for summary in summaries:
        if summary.refused_reasons:
            console.print(f"{summary.name}: refused because", style="bold")
            console.print(_reasons(summary))
    console.print("Times in µs over the schemas that each engine itself passes", style="bold")
    console.print(_times(summaries, _own))
    if len(summaries) > 1:
        console.print("Times in µs over the schemas that all engines pass", style="bold")
        console.print(_times(summaries, _common))


def show_comparisons(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Prints each comparison with its goals, and what is not in it."""
    for comparison in comparisons:
        console.print(
            f"Times in µs over the schemas that {comparison.name} pass: "
            f"{comparison.schemas:,} schemas, {comparison.masks:,} masks",
            style="bold",
        )
        console.print(_goals(comparison))
        for why, ids in comparison.left_out.items():
            console.print(f"  left out, {why}: {len(ids):,}", markup=False)


def markdown(comparisons: Sequence[Comparison]) -> str:
    """The same tables in Markdown."""
    lines = []
    for comparison in comparisons:
        left_out = [f"{why} {len(ids):,}" for why, ids in comparison.left_out.items()]
        lines.append(
            f"Over the {comparison.schemas:,} schemas that {comparison.name} pass, "
            f"{comparison.masks:,} masks (left out: {', '.join(left_out) or 'none'}):"
        )
        head = ["µs", comparison.subject, *comparison.peers, "ratio", "must", "aim"]
        lines += ["", f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
        lines += [f"| {' | '.join(cells)} |" for cells in _goal_rows(comparison)]
        lines.append("")
    return "\n".join(lines)


def _goals(comparison: Comparison) -> Table:
    table = _table([comparison.subject, *comparison.peers, "ratio", "must", "aim"])
    for cells in _goal_rows(comparison):
        table.add_row(*cells)
    return table


def _goal_rows(comparison: Comparison) -> list[list[str]]:
    """A goal a row: the times, the better peer against the subject, must and aim."""
    return [
        [
            judgement.goal.title,
            _time(judgement.own),
            *("-" if us is None else _time(us) for us in judgement.peers),
            "-" if judgement.ratio is None else f"{judgement.ratio:.1f}x",
            f"{judgement.goal.must}: {'met' if judgement.must else 'missed'}",
            f"{judgement.goal.aim}: {'met' if judgement.aim else 'missed'}",
        ]
        for judgement in judge(comparison)
    ]


def _own(summary: EngineSummary) -> Scope:
    return summary.own


def _common(summary: EngineSummary) -> Scope:
    return summary.common


def _table(names: list[str]) -> Table:
    table = Table()
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    return table


def _verdicts(summaries: list[EngineSummary]) -> Table:
    table = _table([s.name for s in summaries])
    counts = [summary.counts for summary in summaries]
    table.add_row("schemas", *(f"{c.schemas:,} ({c.instances:,})" for c in counts))
    table.add_row("passing", *(_with_percent(c.passed, c.schemas) for c in counts))
    table.add_row("refused", *(f"{c.refused:,}" for c in counts))
    table.add_row(
        "wrong rejects",
        *(f"{c.wrong_reject_schemas:,} ({c.wrong_reject_instances:,})" for c in counts),
    )
    table.add_row(
        "wrong accepts",
        *(f"{c.wrong_accept_schemas:,} ({c.wrong_accept_instances:,})" for c in counts),
    )
    table.add_row("failed", *(f"{c.failed:,} ({c.failed_instances:,})" for c in counts))
    table.add_row("crashes", *(f"{c.crashed:,}" for c in counts))
    table.add_row("timeouts", *(f"{c.timed_out:,}" for c in counts))
    table.add_row("out of memory", *(f"{c.out_of_memory:,}" for c in counts))
    return table


def _reasons(summary: EngineSummary) -> Table:
    table = Table()
    table.add_column("schemas", justify="right")
    table.add_column("reason", overflow="fold")
    for reason, count in summary.refused_reasons[:_REASONS]:
        table.add_row(f"{count:,}", reason)
    rest = sum(count for _, count in summary.refused_reasons[_REASONS:])
    if rest:
        table.add_row(f"{rest:,}", f"{len(summary.refused_reasons) - _REASONS:,} other reasons")
    return table


def _times(summaries: list[EngineSummary], scope_of: Callable[[EngineSummary], Scope]) -> Table:
    table = _table([s.name for s in summaries])
    scopes = [scope_of(summary) for summary in summaries]
    table.add_row("schemas", *(f"{scope.schemas:,}" for scope in scopes))
    table.add_row("masks", *(f"{scope.masks:,}" for scope in scopes), end_section=True)
    for heading, times in (
        ("mask", [scope.mask_us for scope in scopes]),
        ("compile + first mask", [scope.first_mask_us for scope in scopes]),
    ):
        for name in STATISTICS:
            table.add_row(
                f"{heading} {name}",
                *("-" if values is None else _time(values[name]) for values in times),
                end_section=name == STATISTICS[-1],
            )
    forced = [scope.forced for scope in scopes]
    table.add_row(
        "forced share",
        *("n/a" if f is None or not f.tokens else f"{f.forced / f.tokens:.2%}" for f in forced),
    )
    table.add_row(
        "non-canonical sequences",
        *("n/a" if f is None else f"{f.noncanonical:,} of {f.sequences:,}" for f in forced),
    )
    return table


def _time(us: float) -> str:
    return f"{us:,.0f}" if us >= 1000 else f"{us:.1f}" if us >= 10 else f"{us:.2f}"


def _with_percent(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})" if whole else "0"
