"""`python -m maskbench speed tokenizers`."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from maskbench import commands, options
from maskbench.speed.tokenizers import texts
from maskbench.tokenizer import resolve


@click.command("tokenizers")
@options.tokenizers()
@click.option(
    "--text",
    "paths",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A text file, of which the first megabyte is read. Default: built-in texts.",
)
@options.rounds(3)
@click.option("--adversarial/--no-adversarial", default=True, show_default=True)
def tokenizers_command(
    names: tuple[str, ...], paths: tuple[Path, ...], rounds: int, adversarial: bool
) -> None:
    """Compare the speed of encoding by tokenizers, on one thread."""
    # This must precede the import of the peers: some start threads of their own, whatever their
    # options.
    os.environ["RAYON_NUM_THREADS"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    console = Console()
    samples = {path.name: texts.read(path) for path in paths} or texts.builtin()
    with commands.workplace() as scratch:
        for name in names:
            spec = resolve(name, scratch)
            file = spec.directory / "tokenizer.json"
            _show_throughput(console, name, file, samples, rounds)
            _show_incremental(console, name, file, samples)
            if adversarial:
                _show_growth(console, name, file)


def _show_throughput(
    console: Console, name: str, file: Path, samples: dict[str, str], rounds: int
) -> None:
    from maskbench.serving.peers import load
    from maskbench.speed.tokenizers import measure
    from maskbench.speed.tokenizers.peers import PEERS

    found, missing = load(file, PEERS)
    peers = list(found)
    results = measure.throughput(file, peers, samples, rounds)
    console.print(f"{name}: MB/s, first call (later calls)", style="bold")
    table = Table("text", *peers, *(f"ffwd / {peer}" for peer in peers[1:]))
    for label in samples:
        cells = [results[peer, label] for peer in peers]
        table.add_row(
            label,
            *(
                f"{cell.first_call:.1f} ({cell.later_call:.1f})"
                + ("" if cell.same_ids else " other ids")
                for cell in cells
            ),
            *(f"{cells[0].first_call / cell.first_call:.2f}x" for cell in cells[1:]),
        )
    console.print(table)
    for peer, reason in missing.items():
        console.print(f"Without {peer}: {reason}")


def _show_incremental(console: Console, name: str, file: Path, samples: dict[str, str]) -> None:
    from ffwd.tokenizer import Bpe
    from maskbench.speed.tokenizers import measure

    bpe = Bpe.from_huggingface(file)
    console.print(
        f"{name}: texts in progress, ns per byte where nothing else is said", style="bold"
    )
    table = Table(
        "text",
        "encode",
        "append",
        "append, count each",
        "prepend",
        "prepare intervals",
        "count 10 kB (µs)",
        "encode 10 kB (µs)",
        "ratio",
        "encode 2 kB (µs)",
    )
    for label, text in samples.items():
        costs = measure.incremental(bpe, text[:300_000])
        table.add_row(
            label,
            f"{costs.encode:.1f}",
            f"{costs.append:.1f}",
            f"{costs.append_and_count:.1f}",
            f"{costs.prepend:.1f}",
            f"{costs.interval_prepare:.1f}",
            f"{costs.interval_us:.2f}",
            f"{costs.encode_interval_us:.1f}",
            f"{costs.encode_interval_us / costs.interval_us:.0f}x",
            f"{costs.short_us:.1f}",
        )
    console.print(table)


def _show_growth(console: Console, name: str, file: Path) -> None:
    from ffwd.tokenizer import Bpe
    from maskbench.speed.tokenizers import measure

    bpe = Bpe.from_huggingface(file)
    console.print(f"{name}: 1,000,000 bytes against 100,000, times the time", style="bold")
    small, large = texts.adversarial(100_000), texts.adversarial(1_000_000)
    table: Table | None = None
    for label in small:
        growth = measure.growth(bpe, small[label], large[label])
        table = table or Table("text", *growth)
        table.add_row(label, *(f"{times:.1f}x" for times in growth.values()))
    if table is not None:
        console.print(table)
