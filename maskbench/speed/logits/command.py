"""`python -m maskbench speed logits`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from maskbench import commands, options, results
from maskbench.tokenizer import resolve

if TYPE_CHECKING:
    from maskbench.speed.logits.masks import Bitmasks

FORMAT = "maskbench-logits-1"
_DTYPES = ("float32", "float16", "bfloat16")


@click.command("logits")
@click.option("--device", default="cpu", show_default=True, help="As torch names it: cpu, cuda.")
@click.option("--batch", "batches", multiple=True, type=click.IntRange(1), default=(1, 4, 16, 64))
@click.option(
    "--width", "widths", multiple=True, type=click.IntRange(1), default=(128_256, 201_088)
)
@click.option("--dtype", "dtypes", multiple=True, type=click.Choice(_DTYPES), default=_DTYPES)
@click.option(
    "--density",
    "densities",
    multiple=True,
    type=click.FloatRange(0, 1),
    default=(0.001, 0.5, 0.999),
    help="Shares of random bits that are set.",
)
@options.tokenizers(about=f"For masks of grammars, or none. {options.TOKENIZER_HELP}")
@options.data()
@click.option("--schemas", type=click.IntRange(1), default=60, show_default=True)
@options.rounds(9)
@click.option("--calls", type=click.IntRange(1), default=5, show_default=True, help="In a round.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="For all.")
@click.option("--compiled", is_flag=True, help="Also peers that torch.compile makes ready.")
@options.out()
def logits_command(
    device: str,
    batches: tuple[int, ...],
    widths: tuple[int, ...],
    dtypes: tuple[str, ...],
    densities: tuple[float, ...],
    names: tuple[str, ...],
    data: Path,
    schemas: int,
    rounds: int,
    calls: int,
    threads: int,
    compiled: bool,
    out: Path | None,
) -> None:
    """Compare the speed of masking logits, and check that all results are equal."""
    import torch

    from maskbench.speed.logits import masks as made
    from maskbench.speed.logits.measure import Problem, WrongResultError, measure

    torch.set_num_threads(threads)
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise click.ClickException(f"torch cannot use {device}: {error}") from error
    # By width: what the masks are, and how to make some rows of them.
    kinds: list[tuple[int, str, Any]] = [
        (
            width,
            f"{density:.1%} of the bits",
            lambda rows, width=width, density=density: made.random_masks(rows, width, density),
        )
        for width in widths
        for density in densities
    ]
    with commands.workplace() as scratch:
        for name in names:
            if name == "none":
                continue
            spec = resolve(name, scratch / Path(name).name)
            pool = made.grammar_masks(spec, data, schemas=schemas, count=max(batches))
            kinds.append((spec.vocab_size, f"grammars, {name}", _first_rows(pool)))
    console = options.console(200)
    cells = []
    missing: dict[str, str] = {}
    for dtype in dtypes:
        table: Table | None = None
        for width, label, make in kinds:
            for rows in batches:
                problem = Problem(rows, width, getattr(torch, dtype), make(rows))
                try:
                    timings, missing = measure(
                        problem,
                        device=device,
                        rounds=rounds,
                        calls=calls,
                        threads=threads,
                        compiled=compiled,
                    )
                except WrongResultError as error:
                    raise click.ClickException(
                        f"{dtype}, {width} columns, {rows} rows, {label}: {error}"
                    ) from error
                allowed = made.share(problem.masks, width)
                cells.append(
                    {
                        "dtype": dtype,
                        "width": width,
                        "rows": rows,
                        "masks": label,
                        "allowed": allowed,
                        "us": {name: vars(timing) for name, timing in timings.items()},
                    }
                )
                if table is None:
                    first, *others = timings
                    table = Table("width", "masks", "rows", first, *others, title_justify="left")
                    table.title = f"{dtype} on {device}: µs, median; times ffwd's"
                ours, *theirs = timings.values()
                table.add_row(
                    f"{width:,}",
                    f"{label} ({allowed:.1%})" if label.startswith("grammars") else label,
                    str(rows),
                    f"{ours.median:.1f}",
                    *(f"{timing.median:.1f} ({timing.ratio:.1f}x)" for timing in theirs),
                )
        if table is not None:
            console.print(table)
    for peer, reason in missing.items():
        console.print(f"Without {peer}: {reason}", markup=False)
    document = {
        "format": FORMAT,
        "tokenizer": ", ".join(names),
        "machine": results.machine(),
        "device": device,
        "threads": threads,
        "rounds": rounds,
        "calls": calls,
        "cells": cells,
    }
    commands.save(document, out, console)


def _first_rows(pool: Bitmasks) -> Any:
    return lambda rows: pool[:rows]
