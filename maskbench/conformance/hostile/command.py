"""`python -m maskbench conformance hostile`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from maskbench import commands, options, results
from maskbench.conformance.hostile.cases import CASES
from maskbench.conformance.hostile.measure import MAX_BYTES, MAX_SECONDS, Cost, measure
from maskbench.tokenizer import resolve

FORMAT = "maskbench-hostile-1"


@click.command("hostile")
@options.tokenizer("gpt2")
@click.option("--case", "wanted", multiple=True, help="Only cases that have this in their name.")
@options.time_limit(60.0, "Seconds per case, after which its process is killed.")
@click.option(
    "--strict",
    is_flag=True,
    help=f"Fail where a call takes over {MAX_SECONDS:g} s or a case over {MAX_BYTES / 1e9:g} GB.",
)
@options.markdown
@options.out()
def hostile_command(
    tokenizer: str,
    wanted: tuple[str, ...],
    time_limit: float,
    strict: bool,
    markdown: bool,
    out: Path | None,
) -> None:
    """Measure what hostile grammars cost under ffwd's default limits."""
    names = [name for name in CASES if not wanted or any(part in name for part in wanted)]
    started = results.utc_now()
    console = options.console(140)
    found: list[Cost] = []
    with commands.workplace() as scratch:
        spec = resolve(tokenizer, scratch)
        for cost in measure(names, spec, time_limit):
            found.append(cost)
            if not markdown:
                console.print(f"{cost.name}: {_line(cost)}", highlight=False, soft_wrap=True)
    if markdown:
        click.echo(as_markdown(found))
    else:
        _show(console, found)
    document = {
        **commands.about(FORMAT, spec, started),
        "cases": [asdict(cost) for cost in found],
    }
    commands.save(document, out, console)
    faults = {cost.name: cost.fault for cost in found if cost.fault}
    if strict and faults:
        listed = "; ".join(f"{name}: {fault}" for name, fault in faults.items())
        raise click.ClickException(f"{len(faults)} of {len(found)} cases are too much: {listed}")


def _line(cost: Cost) -> str:
    call = f", {cost.call} {cost.call_s:.3f} s" if cost.call else ""
    fault = f"  TOO MUCH: {cost.fault}" if cost.fault else ""
    return (
        f"{cost.outcome}, compile {cost.compile_s:.3f} s{call}, "
        f"{cost.memory_bytes / 1e6:,.0f} MB{fault}"
    )


def _show(console: Console, found: list[Cost]) -> None:
    table = Table("slowest", "case", "s", "MB", "outcome")
    slowest = sorted(found, key=lambda cost: -cost.slowest_s)[:8]
    largest = sorted(found, key=lambda cost: -cost.memory_bytes)[:4]
    for kind, costs in (("time", slowest), ("memory", largest)):
        for cost in costs:
            megabytes = f"{cost.memory_bytes / 1e6:,.0f}"
            table.add_row(kind, cost.name, f"{cost.slowest_s:.3f}", megabytes, cost.outcome)
        table.add_section()
    console.print(table)


def as_markdown(found: list[Cost]) -> str:
    """Return one row a case, in the order of the list."""
    lines = [
        "| case | | outcome | compile s | slowest call s | peak MB |",
        "| --- | --- | --- | --: | --: | --: |",
    ]
    for cost in found:
        call = f"{cost.call_s:.3f} ({cost.call})" if cost.call else ""
        lines.append(
            f"| {cost.name} | {CASES[cost.name].what} | {cost.outcome} | {cost.compile_s:.3f} "
            f"| {call} | {cost.memory_bytes / 1e6:,.0f} |"
        )
    return "\n".join(lines)
