"""`python -m maskbench conformance fuzz`, `finite`, `budgets` and `keywords`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from maskbench import commands, options
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup
from maskbench.progress import progress
from maskbench.runner import RunSettings, run
from maskbench.tokenizer import BUILTIN_NAME, HuggingFaceEncoder, resolve

if TYPE_CHECKING:
    from maskbench.verdicts import SchemaRecord


@click.command("fuzz")
@click.option("--pairs", type=click.IntRange(min=1), default=100_000, show_default=True)
@options.seed()
@click.option("--shrink", default=20, show_default=True, help="How many failures to make small.")
@options.out("Failures, as JSON.")
def fuzz_command(pairs: int, seed: int, shrink: int, out: Path | None) -> None:
    """Compare ffwd's verdicts on generated schemas with those of two validators."""
    from maskbench.conformance.gates import fuzz
    from maskbench.conformance.gates.walks import byte_tokens

    tokens = byte_tokens()
    report = fuzz.run(pairs, seed, tokens)
    click.echo(
        f"seed {seed}: {report.pairs} pairs ({report.valid} valid) of {report.schemas} schemas "
        f"({report.unsatisfiable} unsatisfiable), {report.walks} walks"
    )
    click.echo(f"left out: {report.disagreements} instances on which the validators differ")
    click.echo(f"walks to documents on which they differ: {len(report.disputed)}")
    for place, failure in enumerate(report.failures[:shrink]):
        report.failures[place] = fuzz.shrink(failure, tokens)
    report.conclude(shrink, out)


@click.command("finite")
@click.option("--schemas", type=click.IntRange(min=1), default=50_000, show_default=True)
@options.seed()
@click.option(
    "--whitespace",
    type=click.Choice([whitespace.value for whitespace in Whitespace]),
    default=Whitespace.COMPACT.value,
    show_default=True,
    help="What is between values; flexible white space is left out of texts.",
)
@click.option("--show", default=20, show_default=True, help="How many failures to print.")
def finite_command(schemas: int, seed: int, whitespace: str, show: int) -> None:
    """Compare ffwd's masks with all texts of generated schemas that have few values."""
    from maskbench.conformance.gates import finite

    report = finite.run(schemas, seed, finite.joined_tokens(), Whitespace(whitespace))
    click.echo(
        f"seed {seed}: {report.schemas} schemas ({report.exact} with all texts known, "
        f"{report.unsatisfiable} unsatisfiable), {report.values} values, {report.steps} masks"
    )
    click.echo(f"left out, with too many values: {report.left_out}")
    report.conclude(show)


@click.command("budgets")
@click.option("--schemas", type=click.IntRange(min=1), default=10_000, show_default=True)
@options.seed()
@options.tokenizer("bytes")
@options.out("All failures, as JSON.")
def budgets_command(schemas: int, seed: int, tokenizer: str, out: Path | None) -> None:
    """Walk at random with budgets from the shortest completion on: all must end in time."""
    import ffwd
    from maskbench.conformance.gates import budgets

    with commands.workplace() as scratch:
        spec = resolve(tokenizer, scratch)
        vocabulary = ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size)
        with progress(schemas, ["schemas"]) as advance:
            report = budgets.run(schemas, seed, vocabulary, lambda _: advance("schemas"))
    click.echo(
        f"seed {seed}: {report.schemas} schemas, {report.walks} walks of {report.tokens} tokens, "
        f"{report.full} used their whole budget"
    )
    click.echo(f"left out: {report.unsatisfiable} unsatisfiable")
    report.conclude(10, out)


@click.command("keywords")
@options.engine_list("ffwd,llguidance,xgrammar,outlines-core")
def keywords_command(engine_list: str) -> None:
    """Print a table of keywords and engines: exact, refused, widened or too narrow."""
    from maskbench.conformance.gates import keywords

    names = options.names(engine_list)
    with commands.workplace() as scratch:
        spec = resolve(BUILTIN_NAME, scratch)
        encoder = HuggingFaceEncoder(spec)
        records: dict[str, dict[int, SchemaRecord]] = {name: {} for name in names}
        versions: dict[str, dict[str, str]] = {}
        for order in ("declared", "any"):
            setup = EngineSetup(spec, Whitespace.COMPACT, property_order=order)
            settings = RunSettings(forced=False)
            logs = run(names, [keywords.jobs(encoder, order)], setup, settings, scratch)
            for name, log in logs.items():
                records[name] |= {record.index: record for record in log.records}
                versions[name] = log.versions
    click.echo(keywords.table(records))
    known = (item for listed in versions.values() for item in listed.items())
    click.echo(", ".join(f"{name} {text}" for name, text in known if name != "options"))
