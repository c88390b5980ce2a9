"""`python -m maskbench conformance budgets`: texts with a budget of tokens end in time."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.progress import Progress

from maskbench import commands, options
from maskbench.tokenizer import resolve


@click.command("budgets")
@click.option("--schemas", type=click.IntRange(min=1), default=10_000, show_default=True)
@options.seed()
@options.tokenizer("bytes")
@options.out("All failures, as JSON.")
def budgets_command(schemas: int, seed: int, tokenizer: str, out: Path | None) -> None:
    """Walks at random with budgets from the shortest completion on: all must end in time."""
    import ffwd
    from maskbench.conformance.gates import budgets

    with commands.workplace() as scratch:
        spec = resolve(tokenizer, scratch)
        vocabulary = ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size)
        with Progress(console=options.console(), transient=True) as progress:
            task = progress.add_task("schemas", total=schemas)
            report = budgets.run(
                schemas, seed, vocabulary, lambda report: progress.update(task, advance=1)
            )
    click.echo(
        f"seed {seed}: {report.schemas} schemas, {report.walks} walks of {report.tokens} tokens, "
        f"{report.full} used their whole budget"
    )
    click.echo(
        f"left out: {report.unsatisfiable} unsatisfiable, {sum(report.refused.values())} refused"
    )
    for reason, count in sorted(report.refused.items(), key=lambda item: -item[1]):
        click.echo(f"  {count:6} {reason}")
    click.echo(f"failures: {len(report.failures)}")
    for failure in report.failures[:10]:
        click.echo(f"  {json.dumps(failure.schema)[:300]}: {failure.max_tokens}, {failure.detail}")
    if out is not None:
        out.write_text(json.dumps(report.as_json(), ensure_ascii=False, indent=1))
    if report.failures:
        raise SystemExit(1)
