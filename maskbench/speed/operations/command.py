"""`python -m maskbench speed operations`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from maskbench import commands, options, results
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup, find
from maskbench.speed.operations.measure import OPERATIONS, Nanoseconds, compare
from maskbench.tokenizer import HuggingFaceEncoder, resolve

FORMAT = "maskbench-operations-1"


@click.command("operations")
@options.engine_list("ffwd")
@options.data()
@options.tokenizer()
@options.sample
@options.out("Write the figures to this JSON file.")
def operations_command(
    engine_list: str, data: Path, tokenizer: str, sample: int | None, seed: int, out: Path | None
) -> None:
    """Times accept, rollback, fork, validate and forced tokens, one call at a time."""
    names = options.names(engine_list)
    with commands.workplace() as scratch:
        spec = resolve(tokenizer, scratch)
        setup = EngineSetup(spec, Whitespace.FLEXIBLE)
        engines = {name: find(name)(setup) for name in names}
        encoder = HuggingFaceEncoder(spec)
        jobs = commands.jobs(data, sample, seed, encoder)
        samples, documents = compare(engines, jobs)
    figures = {
        name: {"first": _figures(times.first), "later": _figures(times.later)}
        for name, times in samples.items()
    }
    console = options.console()
    console.print(
        f"{documents} documents that all engines take; µs of one call: average, p50, p99; "
        "first walk, and second on the same grammar"
    )
    table = Table("operation", "engine", "calls", "first walk", "second walk")
    for operation in OPERATIONS:
        for name in names:
            first, later = figures[name]["first"][operation], figures[name]["later"][operation]
            if first and later:
                calls = len(samples[name].first[operation])
                table.add_row(operation, name, f"{calls:,}", _cell(first), _cell(later))
    console.print(table)
    document = {
        "format": FORMAT,
        "machine": results.machine(),
        "tokenizer": spec.name,
        "data": data.name,
        "sample": sample,
        "seed": seed,
        "documents": documents,
        "versions": {name: engine.versions() for name, engine in engines.items()},
        "microseconds": figures,
    }
    commands.save(document, out, console)


def _figures(times: Nanoseconds) -> dict[str, list[float]]:
    """By operation: average, p50 and p99 in microseconds; nothing where there are no calls."""
    figures: dict[str, list[float]] = {}
    for operation, values in times.items():
        ordered = sorted(values)
        count = len(ordered)
        figures[operation] = (
            [
                sum(ordered) / count / 1000,
                ordered[count // 2] / 1000,
                ordered[min(count - 1, count * 99 // 100)] / 1000,
            ]
            if count
            else []
        )
    return figures


def _cell(figures: list[float]) -> str:
    return "  ".join(f"{value:.2f}" for value in figures)
