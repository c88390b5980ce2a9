"""`python -m maskbench serving`."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from maskbench import options
from maskbench.tokenizer import TokenizerError, resolve

if TYPE_CHECKING:
    from maskbench.serving.turns import Row


@click.command("serving")
@options.tokenizer("llama3")
@options.rounds(5)
@click.option("--quick", is_flag=True, help="As little as shows that everything runs.")
@click.option("--group", "only", multiple=True, help="Only this group; may be given several times.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Also write the rows to this file, as JSON."
)
def serving_command(
    tokenizer: str, rounds: int, quick: bool, only: tuple[str, ...], out: Path | None
) -> None:
    """Compares what a server asks of a tokenizer, in twelve groups."""
    # Batches are encoded with as many threads as a library takes by itself.
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    from maskbench.serving.groups import GROUPS, Material, Plan
    from maskbench.serving.memory import memory
    from maskbench.serving.peers import available

    names = [*GROUPS, "memory"]
    for name in only:
        if name not in names:
            raise click.UsageError(f"--group must be one of {', '.join(names)}, not {name}")
    plan = Plan.quick() if quick else Plan(rounds=rounds)
    material = Material(20_000 if quick else 1_000_000)
    console = Console()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        try:
            spec = resolve(tokenizer, Path(scratch))
        except TokenizerError as error:
            raise click.ClickException(str(error)) from error
        file = spec.directory / "tokenizer.json"
        peers, missing = available(file)
        for peer, reason in missing.items():
            console.print(f"Without {peer}: {reason}")
        for name in only or names:
            found = list(
                memory(peers, file) if name == "memory" else GROUPS[name](peers, material, plan)
            )
            rows += found
            _show(console, name, found)
    if out is not None:
        out.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    if any(row.other_answers for row in rows):
        raise click.ClickException("some answers are not the same")


def _show(console: Console, group: str, rows: list[Row]) -> None:
    peers = list(rows[0].values)
    table = Table(group, "unit", *peers, *(f"ffwd / {peer}" for peer in peers[1:]), title=None)
    for row in rows:
        cells = [
            _number(row.values[peer]) + (" other answer" if peer in row.other_answers else "")
            for peer in peers
        ]
        table.add_row(row.case, row.unit, *cells, *(f"{row.ratio(p):.1f}x" for p in peers[1:]))
    console.print(table)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
