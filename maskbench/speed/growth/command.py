"""`python -m maskbench speed growth`."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from maskbench import commands, options, results
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup, find
from maskbench.processor import stay_on
from maskbench.speed.growth.outputs import OUTPUTS
from maskbench.speed.growth.schemas import FAMILIES
from maskbench.tokenizer import HuggingFaceEncoder, resolve

if TYPE_CHECKING:
    from maskbench.speed.growth.measure import MemoryUse, OutputGrowth, SchemaGrowth

FORMAT = "maskbench-growth-1"


@click.command("growth")
@click.option(
    "--engine",
    "engine_name",
    default="ffwd",
    show_default=True,
    help=f"One of {options.ENGINES_HELP}",
)
@options.tokenizer()
@click.option(
    "--tokens",
    type=click.IntRange(min=1_000),
    default=100_000,
    show_default=True,
    help="The length of the long outputs.",
)
@click.option(
    "--history",
    type=click.IntRange(min=100),
    default=10_000,
    show_default=True,
    help="The tokens after which a matcher's memory is looked at.",
)
@click.option("--largest", type=click.IntRange(min=10), help="Leave out larger schemas.")
@click.option("--family", "wanted", multiple=True, help="Only what has this in its name.")
@click.option(
    "--whitespace",
    type=click.Choice([whitespace.value for whitespace in Whitespace]),
    default=Whitespace.FLEXIBLE.value,
    show_default=True,
    help="What schemas admit between values.",
)
@options.pin("Run on this processor.")
@options.out()
def growth_command(
    engine_name: str,
    tokenizer: str,
    tokens: int,
    history: int,
    largest: int | None,
    wanted: tuple[str, ...],
    whitespace: str,
    pin: int | None,
    out: Path | None,
) -> None:
    """Measure the growth of time with the length of an output and with the size of a schema."""
    from maskbench.speed.growth.measure import memory_use, output_growth, schema_growth

    outputs = [o for o in OUTPUTS if not wanted or any(w in o.name for w in wanted)]
    families = [f for f in FAMILIES if not wanted or any(w in f.name for w in wanted)]
    started = results.utc_now()
    console = options.console(140)
    with commands.workplace() as scratch:
        if pin is not None:
            stay_on(pin)
        spec = resolve(tokenizer, scratch)
        setup = EngineSetup(spec, Whitespace(whitespace), cold_store=True)
        engine = find(engine_name)(setup)
        encoder = HuggingFaceEncoder(spec)
        about = commands.about(FORMAT, spec, started) | {"engine": engine.versions()}
        clock = time.monotonic()
        lengths = list(output_growth(engine, encoder, outputs, tokens))
        _show_lengths(console, lengths)
        memory: list[MemoryUse] = []
        if engine_name == "ffwd":
            from ffwd.tokenizer import from_huggingface

            vocabulary = from_huggingface(spec.directory, vocab_size=spec.vocab_size)
            memory = list(memory_use(vocabulary, encoder, outputs, history))
            _show_memory(console, memory)
        sizes = list(schema_growth(engine, encoder, families, largest))
        _show_sizes(console, sizes)
    document: dict[str, Any] = about | {
        "seconds": round(time.monotonic() - clock, 1),
        "outputs": [asdict(growth) for growth in lengths],
        "memory": [asdict(use) for use in memory],
        "schemas": [asdict(growth) | {"per_tenfold": growth.per_tenfold()} for growth in sizes],
    }
    commands.save(document, out, console)


def _show_lengths(console: Console, growths: list[OutputGrowth]) -> None:
    console.print("Mask + accept in µs, averages of tenths of one output", style="bold")
    table = Table("output", "tokens", "", "first", "second", "last", "last / first")
    for growth in growths:
        rows = (("nothing known", growth.cold), ("read again", growth.known))
        for number, (label, times) in enumerate(rows):
            table.add_row(
                "" if number else growth.name,
                "" if number else f"{growth.tokens:,}",
                label,
                f"{times[0]:.2f}",
                f"{times[1]:.2f}",
                f"{times[-1]:.2f}",
                f"{growth.ratio(times):.2f}",
            )
    console.print(table)


def _show_memory(console: Console, uses: list[MemoryUse]) -> None:
    console.print("Memory in kB, with everything there to roll back to", style="bold")
    table = Table("output", "tokens", "matcher", "matcher at the start", "grammar")
    for use in uses:
        held = (use.matcher, use.matcher_at_start, use.grammar)
        cells = (f"{size / 1e3:,.1f}" for size in held)
        table.add_row(use.name, f"{use.tokens:,}", *cells)
    console.print(table)


def _show_sizes(console: Console, growths: list[SchemaGrowth]) -> None:
    console.print(
        "Compile + first mask in ms, in an emptied store, and how many times longer ten times the "
        "size takes; masks are those of one short document",
        style="bold",
        soft_wrap=True,
    )
    table = Table("schema", "size", "kB", "compile + first mask", "per tenfold",
                  "slowest mask", "average mask (µs)")  # fmt: skip
    for growth in growths:
        ratios = iter((None, *growth.per_tenfold()))
        for number, cost in enumerate(growth.costs):
            name = "" if number else growth.name
            size, length = f"{cost.size:,}", f"{cost.schema_bytes / 1000:,.0f}"
            if cost.problem is not None:
                table.add_row(name, size, length, cost.problem)
                continue
            ratio = next(ratios, None)
            table.add_row(
                name,
                size,
                length,
                f"{cost.first_mask / 1000:,.2f}",
                "" if ratio is None else f"{ratio:.1f}x",
                f"{cost.mask_slowest / 1000:,.2f}",
                f"{cost.mask_average:,.1f}",
            )
    console.print(table)
