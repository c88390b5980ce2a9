"""`python -m maskbench speed hard`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from maskbench import commands, options, results
from maskbench.data import Case, parse_case, read_sources
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup, find
from maskbench.processor import stay_off
from maskbench.progress import progress
from maskbench.runner import RunSettings
from maskbench.runs.settings import GIB
from maskbench.speed.hard import cases as hard
from maskbench.speed.hard.measure import HardColumn, MeasuredCase, measure
from maskbench.tokenizer import HuggingFaceEncoder, resolve

FORMAT = "maskbench-hard-1"

# Title, and where the time is found.
COLUMNS: tuple[tuple[str, HardColumn], ...] = (
    ("compile + first mask", HardColumn(None)),
    ("slowest mask", HardColumn("max")),
    ("p99", HardColumn("p99")),
    ("average", HardColumn("avg")),
)


@click.command("hard")
@options.engine_list("ffwd,llguidance")
@options.tokenizer()
@click.option("--case", "wanted", multiple=True, help="Only cases that have this in their name.")
@click.option("--generated/--no-generated", default=True, help="The cases that are made here.")
@options.data(None, "MaskBench's data: the schemas that the generated ones are modelled on.")
@click.option("--ids", help="Comma-separated: other schemas of --data, by their ids.")
@options.rounds(3)
@options.time_limit(60.0, "Seconds per case, after which the engine's process is killed.")
@options.memory_limit
@options.pin()
@options.markdown
@options.out()
def hard_command(
    engine_list: str,
    tokenizer: str,
    wanted: tuple[str, ...],
    generated: bool,
    data: Path | None,
    ids: str | None,
    rounds: int,
    time_limit: float,
    memory_limit: float,
    pin: int | None,
    markdown: bool,
    out: Path | None,
) -> None:
    """Measure schemas that make engines slow, by name."""
    engines = options.names(engine_list)
    if ids is not None and data is None:
        raise click.UsageError("--ids are of schemas in --data")
    console = options.console(140)
    if pin is not None:
        stay_off(pin)
    settings = RunSettings(
        time_limit_s=time_limit, forced=False, pin=pin, memory_limit=int(memory_limit * GIB)
    )
    started = results.utc_now()
    with commands.workplace() as scratch:
        for name in engines:
            find(name)
        cases = [(h.case(), h.what) for h in hard.generate()] if generated else []
        if data is not None:
            chosen = hard.real() if ids is None else tuple(ids.split(","))
            cases += [(case, "") for case in _real(console, data, chosen)]
        cases = [c for c in cases if not wanted or any(part in c[0].id for part in wanted)]
        spec = resolve(tokenizer, scratch)
        with progress(len(cases) * rounds, engines) as advance:
            found = measure(
                engines,
                cases,
                EngineSetup(spec, Whitespace.FLEXIBLE, cold_store=True),
                settings,
                HuggingFaceEncoder(spec),
                scratch,
                rounds=rounds,
                progress=advance,
            )
    if markdown:
        click.echo(as_markdown(found, engines))
    else:
        _show(console, found, engines)
    document = {
        **commands.about(FORMAT, spec, started),
        "rounds": rounds,
        "cases": [asdict(case) for case in found],
    }
    commands.save(document, out, console)


def _real(console: Console, data: Path, ids: tuple[str, ...]) -> list[Case]:
    """Return the cases with these ids, in their order."""
    found = {}
    for source in read_sources(data):
        # Parsing all of them would take longer than measuring some.
        if any(id in source.text for id in ids):
            case = parse_case(source)
            found[case.id] = case
    for id in ids:
        if id not in found:
            console.print(f"not in {data.name}: {id}", markup=False)
    return [found[id] for id in ids if id in found]


def _show(console: Console, found: list[MeasuredCase], engines: list[str]) -> None:
    console.print(
        f"Times in µs, each time in an emptied store; in brackets, how many times longer than "
        f"{engines[0]}",
        style="bold",
    )
    table = Table("case", "engine", "masks", *(title for title, _ in COLUMNS))
    for case in found:
        for name, figures in case.engines.items():
            title = case.name if name == engines[0] else ""
            if figures.verdict != "passed":
                table.add_row(title, name, "", f"{figures.verdict}: {figures.detail or ''}"[:60])
                continue
            cells = (_cell(case, engines[0], name, of) for _, of in COLUMNS)
            table.add_row(title, name, f"{figures.masks:,}", *cells)
        table.add_section()
    console.print(table)


def as_markdown(found: list[MeasuredCase], engines: list[str]) -> str:
    """Return one row a case, with the engines' times beside each other."""
    titles = [f"{title}: {', '.join(engines)}" for title, _ in COLUMNS]
    lines = [f"| case | {' | '.join(titles)} |", f"|{' --- |' * (1 + len(titles))}"]
    for case in found:
        cells = []
        for _, of in COLUMNS:
            times = (_cell(case, engines[0], name, of) for name in engines)
            cells.append(", ".join(times))
        lines.append(f"| {case.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(case: MeasuredCase, subject: str, engine: str, of: HardColumn) -> str:
    figures = case.engines[engine]
    time = of(figures)
    if time is None:
        return figures.verdict if figures.verdict != "passed" else "-"
    text = f"{time:,.0f}" if time >= 100 else f"{time:.1f}"
    ratio = case.ratio(subject, engine, of)
    return text if engine == subject or ratio is None else f"{text} ({ratio:.1f}x)"
