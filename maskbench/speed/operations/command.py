"""`python -m maskbench speed operations`."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.table import Table

from maskbench import commands, options, results
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup, find
from maskbench.speed.operations.measure import OPERATIONS, Nanoseconds, compare
from maskbench.statistics import describe_times
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
    """Time accept, rollback, fork, validate and forced tokens, one call at a time."""
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
    """Return by operation: average, p50 and p99 in microseconds; nothing without calls."""
    described = {
        operation: describe_times(np.array(values, dtype=np.float32) / np.float32(1000))
        for operation, values in times.items()
    }
    return {
        operation: [found[name] for name in ("avg", "p50", "p99")] if found else []
        for operation, found in described.items()
    }


def _cell(figures: list[float]) -> str:
    return "  ".join(f"{value:.2f}" for value in figures)
