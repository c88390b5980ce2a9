"""`python -m maskbench speed operations`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click
from rich.table import Table

from maskbench import options, results
from maskbench.data import DataError, choose, parse_case, read_sources
from maskbench.documents import UnwritableSchemaError, Whitespace, prepare
from maskbench.engines import EngineSetup, MissingEngineError, find
from maskbench.speed.operations.measure import OPERATIONS, Nanoseconds, compare
from maskbench.tokenizer import HuggingFaceEncoder, TokenizerError, resolve

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
    jobs = []
    with tempfile.TemporaryDirectory(prefix="maskbench-") as scratch:
        try:
            spec = resolve(tokenizer, Path(scratch))
            setup = EngineSetup(spec, Whitespace.FLEXIBLE)
            engines = {name: find(name)(setup) for name in names}
            encoder = HuggingFaceEncoder(spec)
            everything = read_sources(data)
            for index, source in enumerate(choose(everything, sample=sample, seed=seed, part=None)):
                case = parse_case(source)
                try:
                    prepared = prepare(case, index, encoder, Whitespace.FLEXIBLE)
                except UnwritableSchemaError:
                    continue
                jobs.append(prepared.job)
        except (DataError, TokenizerError, MissingEngineError) as error:
            raise click.ClickException(str(error)) from error
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
    if out is not None:
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
        out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


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
