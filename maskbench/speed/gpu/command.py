"""`python -m maskbench gpu`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from maskbench import commands, options, results
from maskbench.report import renderers
from maskbench.report.command import format_of, outputs
from maskbench.tokenizer import WIDE_NAME, resolve

FORMAT = "maskbench-gpu-1"
_SHAPES = ("tiny", "1b", "8b")


@click.command("gpu")
@click.option("--device", default="cuda", show_default=True, help="As torch names it: cpu, cuda.")
@click.option("--shape", "shapes", multiple=True, type=click.Choice(_SHAPES),
              help="Of the models. Default: 8b and 1b; tiny on a CPU.")  # fmt: skip
@click.option("--batch", "batches", multiple=True, type=click.IntRange(1), default=(1, 8, 32, 128),
              show_default=True, help="Rows that write documents.")  # fmt: skip
@click.option("--mask-batch", "mask_batches", multiple=True, type=click.IntRange(1),
              default=(1, 8, 32, 128, 512), show_default=True,
              help="Rows of logits that are masked.")  # fmt: skip
@click.option("--steps", type=click.IntRange(6), default=48, show_default=True, help="Of a row.")
@click.option("--joins", type=click.IntRange(1), default=5, show_default=True, help="Newcomers.")
@click.option("--graphs/--no-graphs", default=True, help="Passes as CUDA graphs.")
@click.option("--threads", type=click.IntRange(1), help="For all. Default: all processors.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), default=9.0, show_default=True,
              help="What is not begun by then is left out.")  # fmt: skip
@options.tokenizer(WIDE_NAME)
@options.data()
@options.rounds(3)
@outputs
@options.out("Write the figures to this JSON file.")
def gpu_command(
    device: str,
    shapes: tuple[str, ...],
    batches: tuple[int, ...],
    mask_batches: tuple[int, ...],
    steps: int,
    joins: int,
    graphs: bool,
    threads: int | None,
    minutes: float,
    tokenizer: str,
    data: Path,
    rounds: int,
    form: str,
    reports: tuple[Path, ...],
    out: Path | None,
) -> None:
    """Measure what masks and forced tokens cost and save beside a model on a GPU."""
    until = time.monotonic() + 60 * minutes
    # No model is fetched, and no engine may ask a hub for one.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch

    from maskbench.speed.gpu import measure

    threads = threads or len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    try:
        place = torch.empty(1, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise click.ClickException(f"torch cannot use {device}: {error}") from error
    plan = measure.Plan(
        shapes=shapes or (("tiny",) if place.type == "cpu" else ("8b", "1b")),
        batches=batches,
        mask_batches=mask_batches,
        steps=steps,
        joins=joins,
        graphs=graphs,
        threads=threads,
        rounds=rounds,
        until=until,
    )
    with commands.workplace() as scratch:
        spec = resolve(tokenizer, scratch)
        measured = measure.measure(plan, spec, data, place)
    facts = measure.facts(place, spec)
    title = f"{facts['device']}, {spec.name}"
    if form == "terminal":
        console = options.console(140)
        console.print(title, markup=False)
        renderers.terminal(console, measured.tables)
    else:
        click.echo(_render(form, title, facts, measured), nl=False)
    for path in reports:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_render(format_of(path), title, facts, measured), encoding="utf-8")
    document = {
        "format": FORMAT,
        "machine": results.machine(),
        "tokenizer": spec.name,
        "device": facts,
        "settings": plan.plain(),
        "tables": {
            table.key: {
                "columns": [column.name for column in table.columns],
                "rows": table.rows,
                "notes": table.notes,
            }
            for table in measured.tables
        },
    }
    commands.save(document, out, options.console(160))
    if measured.failed:
        raise click.ClickException("; ".join(measured.failed))


def _render(form: str, title: str, facts: dict[str, str], measured: object) -> str:
    from maskbench.speed.gpu.measure import Measured

    assert isinstance(measured, Measured)
    if form == "html":
        # The other forms do without its template engine.
        from maskbench.report.html import tables_page

        return tables_page(title, facts, measured.tables, measured.plots)
    renderer = {"csv": renderers.as_csv, "json": renderers.as_json, "markdown": renderers.markdown}
    return renderer[form]([(title, measured.tables)])
