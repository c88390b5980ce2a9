"""`python -m maskbench speed batches`."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table

from maskbench import commands, options, results
from maskbench.tokenizer import HuggingFaceEncoder, resolve

FORMAT = "maskbench-batches-1"

READERS = 8
"""How many threads share one grammar where readers are measured."""


@click.command("batches")
@options.data()
@options.tokenizer()
@options.sample
@click.option("--rows", "sizes", multiple=True, type=click.IntRange(min=1), default=(64, 512))
@options.rounds(9)
@click.option("--seconds", type=float, default=2.0, show_default=True, help="Of each reading.")
@options.out("Write the figures to this JSON file.")
def batches_command(
    data: Path,
    tokenizer: str,
    sample: int | None,
    seed: int,
    sizes: tuple[int, ...],
    rounds: int,
    seconds: float,
    out: Path | None,
) -> None:
    """Time `fill_bitmasks` with one thread to one per processor, and with concurrent threads."""
    import ffwd
    from maskbench.speed.batches import measure

    with commands.workplace() as scratch:
        spec = resolve(tokenizer, scratch)
        vocabulary = ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size)
        encoder = HuggingFaceEncoder(spec)
        jobs = commands.jobs(data, sample, seed, encoder)
    found = measure.places(jobs, vocabulary)
    if not found:
        raise click.ClickException("no document of the data is taken")
    words = ffwd.allocate_bitmask(1, vocabulary.vocab_size).shape[1]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = list(range(1, (cores or 1) + 1))
    console = options.console()
    figures: list[dict[str, Any]] = []
    table = Table("rows", "masks", "grammars", *(f"{count} threads (µs)" for count in threads))
    for size in sizes:
        bitmask = np.zeros((size, words), dtype=np.int32)
        for shared in (True, False):
            make = partial(measure.matchers, found, vocabulary, size, shared)
            for masks in ("hits", "misses"):
                if masks == "hits":
                    times = measure.hits(make(), bitmask, threads, rounds * 20)
                else:
                    times = measure.misses(make, bitmask, threads, rounds)
                grammars = "one" if shared else "one per row"
                cells = [
                    f"{value * 1e6:,.0f} ({times[0] / value:.2f}x)" if value else "0"
                    for value in times
                ]
                table.add_row(f"{size}", masks, grammars, *cells)
                figures.append(
                    {"rows": size, "masks": masks, "grammars": grammars, "seconds": times}
                )
    console.print(table)
    grammar_rows = partial(measure.matchers, found, vocabulary)
    # All places of the one grammar, whatever the number of rows.
    pool = grammar_rows(READERS * max(sizes), True)
    shared_groups = [pool[number::READERS] for number in range(READERS)]
    apart_groups = [grammar_rows(max(sizes), True) for _ in threads]
    together = measure.readers(shared_groups, words, seconds)
    apart = measure.readers(apart_groups, words, seconds)
    console.print(
        f"Known masks per second: {together:,.0f} on {READERS} threads that share a grammar, "
        f"{apart:,.0f} on {len(threads)} threads with a grammar each ({together / apart:.2f}x)"
    )
    document = {
        "format": FORMAT,
        "machine": results.machine(),
        "tokenizer": spec.name,
        "data": data.name,
        "sample": sample,
        "seed": seed,
        "threads": threads,
        "calls": figures,
        "readers": {"shared": together, "apart": apart},
    }
    commands.save(document, out, console)
