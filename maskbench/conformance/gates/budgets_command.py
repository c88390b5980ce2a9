"""`python -m maskbench conformance budgets`: texts with a budget of tokens end in time."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click
from rich.progress import Progress

from maskbench import options
from maskbench.tokenizer import TokenizerError, resolve


@click.command("budgets")
@click.option("--schemas", type=click.IntRange(min=1), default=10_000, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@options.tokenizer("bytes")
@options.out("All failures, as JSON.")
def budgets_command(schemas: int, seed: int, tokenizer: str, out: Path | None) -> None:
    """Walks at random with budgets from the shortest completion on: all must end in time."""
    import ffwd
    from maskbench.conformance.gates import budgets

    with tempfile.TemporaryDirectory(prefix="maskbench-") as directory:
        try:
            spec = resolve(tokenizer, Path(directory))
        except TokenizerError as error:
            raise click.ClickException(str(error)) from error
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
