"""`python -m maskbench speed processors`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from maskbench import commands, options, results
from maskbench.tokenizer import HuggingFaceEncoder, resolve

FORMAT = "maskbench-processors-1"
_DTYPES = ("float32", "bfloat16")


@click.command("processors")
@options.data()
@options.tokenizer()
@options.sample
@click.option("--batch", "batches", multiple=True, type=click.IntRange(1), default=(1, 8, 32, 128))
@click.option("--dtype", "dtypes", multiple=True, type=click.Choice(_DTYPES), default=_DTYPES)
@click.option("--steps", type=click.IntRange(2), default=48, show_default=True, help="Of a row.")
@click.option("--threads", type=click.IntRange(1), default=2, show_default=True, help="For all.")
@options.rounds(3)
@options.out("Write the figures to this JSON file.")
def processors_command(
    data: Path,
    tokenizer: str,
    sample: int | None,
    seed: int,
    batches: tuple[int, ...],
    dtypes: tuple[str, ...],
    steps: int,
    threads: int,
    rounds: int,
    out: Path | None,
) -> None:
    """Time logits processors of transformers, ffwd's beside those of XGrammar and llguidance."""
    import torch
    from transformers import PreTrainedTokenizerFast

    import ffwd
    import ffwd.tokenizer
    from maskbench.speed.processors import measure
    from maskbench.speed.processors.rows import Peers

    torch.set_num_threads(threads)
    with commands.workplace() as scratch:
        spec = resolve(tokenizer, scratch)
        vocabulary = ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size)
        jobs = commands.jobs(data, sample, seed, HuggingFaceEncoder(spec))
        loaded = PreTrainedTokenizerFast.from_pretrained(str(spec.directory))
    peers = Peers(vocabulary, loaded, spec.vocab_size, threads)
    texts = measure.texts(jobs, peers, steps, max(batches))
    if not texts:
        raise click.ClickException(f"no document of {steps} tokens is accepted by every engine")
    console = options.console(160)
    cells = []
    for dtype in dtypes:
        table: Table | None = None
        for batch in batches:
            rows = [texts[row % len(texts)] for row in range(batch)]
            times = measure.measure(peers, rows, spec.vocab_size, getattr(torch, dtype), rounds)
            cells.append(
                {
                    "dtype": dtype,
                    "rows": batch,
                    "us": {name: vars(taken) for name, taken in times.items()},
                }
            )
            own, *others = times.values()
            if table is None:
                table = Table("rows", *times, title_justify="left")
                table.title = f"{dtype}: µs a step, p50 / p99; times ffwd's"
            table.add_row(
                str(batch),
                f"{own.p50:,.0f} / {own.p99:,.0f}",
                *(
                    f"{one.p50:,.0f} ({one.p50 / own.p50:.1f}x)"
                    f" / {one.p99:,.0f} ({one.p99 / own.p99:.1f}x)"
                    for one in others
                ),
            )
        console.print(table)
    document = {
        "format": FORMAT,
        "machine": results.machine(),
        "tokenizer": spec.name,
        "schemas": len({text.schema for text in texts}),
        "steps": steps,
        "threads": threads,
        "rounds": rounds,
        "cells": cells,
    }
    commands.save(document, out, console)
