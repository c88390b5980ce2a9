"""`python -m maskbench speed grammars`."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from maskbench import commands, options, results
from maskbench.conformance.grammars.real import FORMATS, NAMES, read_real
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup
from maskbench.progress import progress
from maskbench.speed.grammars.measure import GrammarEngine, GrammarFigures, measure
from maskbench.tokenizer import TokenizerSpec, resolve

FORMAT = "maskbench-grammars-speed-1"
_DEFAULT = "ffwd:lark,llguidance:lark,ffwd:ebnf,xgrammar:ebnf"
_SHOWN = ("avg", "p50", "p99", "max")


@click.command("grammars")
@click.option(
    "--engine",
    "engine_list",
    default=_DEFAULT,
    show_default=True,
    help=f"Comma-separated engine:format; formats are {', '.join(FORMATS)}.",
)
@options.tokenizers()
@click.option("--grammar", "wanted", type=click.Choice(NAMES), multiple=True, default=NAMES)
@options.rounds(5)
@options.pin("Run on this processor.")
@options.markdown
@options.out()
def grammars_speed_command(
    engine_list: str,
    names: tuple[str, ...],
    wanted: tuple[str, ...],
    rounds: int,
    pin: int | None,
    markdown: bool,
    out: Path | None,
) -> None:
    """Measure engines on grammars of JSON, Python expressions, SQL and C, in turns."""
    try:
        contestants = [GrammarEngine.parse(part) for part in options.names(engine_list)]
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if unknown := {contestant.format for contestant in contestants} - set(FORMATS):
        raise click.UsageError(f"--engine: no format {', '.join(sorted(unknown))}")
    if pin is not None:
        os.sched_setaffinity(0, {pin})
    console = options.console(140)
    grammars = [read_real(name) for name in wanted]
    started = results.utc_now()
    runs = []
    with commands.workplace() as scratch:
        for name in names:
            spec = resolve(name, scratch)
            setup = EngineSetup(spec, Whitespace.FLEXIBLE, cold_store=True)
            total = rounds * len(grammars) * len(contestants)
            with progress(total, [name]) as advance:
                found = measure(
                    contestants,
                    grammars,
                    setup,
                    rounds=rounds,
                    advance=partial(advance, name),
                )
            if markdown:
                click.echo(as_markdown(spec, found))
            else:
                _show(console, spec, found)
            runs.append(
                {
                    "tokenizer": {"name": spec.name, "sha256": spec.sha256},
                    "grammars": {
                        grammar: {str(c): asdict(figures) for c, figures in by_engine.items()}
                        for grammar, by_engine in found.items()
                    },
                }
            )
    document = {
        "format": FORMAT,
        "started": started,
        "machine": results.machine(),
        "rounds": rounds,
        "runs": runs,
    }
    commands.save(document, out, console)


def _rows(found: dict[str, dict[GrammarEngine, GrammarFigures]]) -> list[list[str]]:
    """Return a row for each grammar and contestant; ratios are to the first contestant."""
    rows = []
    for grammar, by_engine in found.items():
        own = next(iter(by_engine.values()))
        for contestant, figures in by_engine.items():
            row = [grammar, str(contestant)]
            if figures.problem is not None or figures.first is None or figures.second is None:
                problem = " ".join((figures.problem or "").split())
                rows.append([*row, "", problem[:60], *[""] * (2 * len(_SHOWN))])
                continue
            row += [f"{figures.tokens:,}", _cell(figures.compile_us, own.compile_us)]
            for times, base in ((figures.first, own.first), (figures.second, own.second)):
                row += [_cell(times[s], None if base is None else base[s]) for s in _SHOWN]
            rows.append(row)
    return rows


def _cell(time: float | None, base: float | None) -> str:
    if time is None:
        return "-"
    text = f"{time:,.0f}" if time >= 100 else f"{time:.1f}" if time >= 10 else f"{time:.2f}"
    return text if not base or time == base else f"{text} ({time / base:.1f}x)"


_TITLES = (
    "grammar", "engine", "tokens", "compile + first mask",
    *_SHOWN, *(f"known: {statistic}" for statistic in _SHOWN),
)  # fmt: skip


def _show(
    console: Console, spec: TokenizerSpec, found: dict[str, dict[GrammarEngine, GrammarFigures]]
) -> None:
    console.print(
        f"{spec.name}: µs of mask + accept; in brackets, how many times as long as the first; "
        "known: a second pass through the same documents",
        style="bold",
    )
    table = Table(*_TITLES)
    last = None
    for row in _rows(found):
        if last not in (None, row[0]):
            table.add_section()
        table.add_row(*row)
        last = row[0]
    console.print(table)


def as_markdown(spec: TokenizerSpec, found: dict[str, dict[GrammarEngine, GrammarFigures]]) -> str:
    """Return the same as a table of Markdown."""
    lines = [f"{spec.name}", "", f"| {' | '.join(_TITLES)} |", f"|{' --- |' * len(_TITLES)}"]
    lines += [f"| {' | '.join(row)} |" for row in _rows(found)]
    return "\n".join(lines)
