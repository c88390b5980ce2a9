"""`python -m maskbench serving`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from maskbench import commands, options, results
from maskbench.speed.tokenizers import texts
from maskbench.tokenizer import resolve

FORMAT = "maskbench-serving-1"


@click.command("serving")
@options.tokenizers()
@options.rounds(5)
@click.option("--threads", type=click.IntRange(1), default=4, show_default=True)
@click.option(
    "--tokens",
    type=click.IntRange(1000),
    default=100_000,
    show_default=True,
    help="Length of the long stream; what else is done goes with it.",
)
@click.option("--memory/--no-memory", default=True, show_default=True)
@options.out("Write the figures to this JSON file; for one tokenizer.")
def serving_command(
    names: tuple[str, ...], rounds: int, threads: int, tokens: int, memory: bool, out: Path | None
) -> None:
    """Compare a server's operations on a tokenizer: encoding texts, and streaming ids."""
    if out is not None and len(names) > 1:
        raise click.UsageError("--out is for one tokenizer")
    # Before the peer is loaded, which reads it once.
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    console = Console()
    with commands.workplace() as scratch:
        for name in names:
            spec = resolve(name, scratch)
            file = spec.directory / "tokenizer.json"
            figures = _show(console, name, file, rounds, threads, tokens)
            document = {
                "format": FORMAT,
                "machine": results.machine(),
                "tokenizer": name,
                "rounds": rounds,
                "figures": figures,
                "memory": _show_memory(console, name, file) if memory else {},
            }
            commands.save(document, out, console)


def _show(
    console: Console, name: str, file: Path, rounds: int, threads: int, tokens: int
) -> list[dict[str, Any]]:
    """Print the table and return its rows."""
    from maskbench.serving import groups, peers

    found, missing = peers.load(file, peers.PEERS)
    size = 10 * tokens
    settings = groups.ServingSettings(
        texts=texts.builtin(min(size, texts.MEGABYTE)),
        streamed=tokens,
        threads=threads,
        largest=size,
    )
    console.print(f"{name}: {rounds} rounds in turns, medians", style="bold")
    others = [peer for peer in found if peer != "ffwd"]
    table = Table("group", "what", "unit", *found, *(f"{peer} / ffwd" for peer in others))
    rows: list[dict[str, Any]] = []
    try:
        for figure in groups.measure(found, settings, rounds):
            table.add_row(
                figure.group,
                figure.what,
                figure.unit,
                *(f"{figure.value(peer):,.1f}" for peer in found),
                *(f"{figure.ratio(peer):.2f}x" for peer in others),
            )
            rows.append(
                {
                    "group": figure.group,
                    "what": figure.what,
                    "unit": figure.unit,
                    "values": {peer: figure.value(peer) for peer in found},
                }
            )
    except groups.WrongAnswerError as error:
        raise click.ClickException(str(error)) from error
    console.print(table)
    console.print("x: how many times as long as ffwd.")
    for peer, reason in missing.items():
        console.print(f"Without {peer}: {reason}")
    return rows


def _show_memory(console: Console, name: str, file: Path) -> dict[str, dict[str, int]]:
    """Print the table and return its rows, in bytes."""
    from maskbench.serving import memory, peers

    found, _ = peers.load(file, peers.PEERS)
    table = Table("memory", "loaded (MB)", "after 1 MB was encoded (MB)")
    rows = {}
    for peer in found:
        try:
            taken = memory.memory_of(peer, file)
        except memory.MemoryProcessError as error:
            raise click.ClickException(str(error)) from error
        table.add_row(peer, f"{taken.loaded / 1e6:.0f}", f"{taken.used / 1e6:.0f}")
        rows[peer] = {"loaded": taken.loaded, "used": taken.used}
    console.print(f"{name}: resident memory", style="bold")
    console.print(table)
    return rows
