"""`python -m maskbench conformance fuzz`, `finite` and `keywords`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from maskbench import commands, options
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup
from maskbench.runner import RunSettings, run
from maskbench.tokenizer import BUILTIN_NAME, HuggingFaceEncoder, resolve

if TYPE_CHECKING:
    from maskbench.conformance.gates.fuzz import Failure
    from maskbench.verdicts import SchemaRecord


@click.command("fuzz")
@click.option("--pairs", type=click.IntRange(min=1), default=100_000, show_default=True)
@options.seed()
@click.option("--shrink", default=20, show_default=True, help="How many failures to make small.")
@options.out("Failures, as JSON.")
def fuzz_command(pairs: int, seed: int, shrink: int, out: Path | None) -> None:
    """Compares ffwd's verdicts on generated schemas with those of two validators."""
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
    click.echo(f"schemas refused: {report.refused.total()}")
    for reason, count in report.refused.most_common():
        click.echo(f"  {count:6} {reason}")
    failures = [fuzz.shrink(failure, tokens) for failure in report.failures[:shrink]]
    _finish(failures + report.failures[shrink:], shrink, out)


@click.command("finite")
@click.option("--schemas", type=click.IntRange(min=1), default=50_000, show_default=True)
@options.seed()
@click.option("--show", default=20, show_default=True, help="How many failures to print.")
def finite_command(schemas: int, seed: int, show: int) -> None:
    """Compares ffwd's masks with all texts of generated schemas that have few values."""
    from maskbench.conformance.gates import finite

    report = finite.run(schemas, seed, finite.joined_tokens())
    click.echo(
        f"seed {seed}: {report.schemas} schemas ({report.exact} with all texts known, "
        f"{report.unsatisfiable} unsatisfiable), {report.values} values, {report.steps} masks"
    )
    click.echo(f"left out, with too many values: {report.left_out}")
    click.echo(f"schemas refused: {report.refused.total()}")
    for reason, count in report.refused.most_common():
        click.echo(f"  {count:6} {reason}")
    click.echo(f"failures: {len(report.failures)}")
    for failure in report.failures[:show]:
        text = json.dumps(failure.schema)
        click.echo(f"  {text[:600]}  <-  {failure.text[:200]!r}  {failure.detail[:200]}")
    if report.failures:
        raise SystemExit(1)


@click.command("keywords")
@options.engine_list("ffwd,llguidance,xgrammar,outlines-core")
def keywords_command(engine_list: str) -> None:
    """Prints a table of keywords and engines: exact, refused, widened or too narrow."""
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


def _finish(failures: list[Failure], shown: int, out: Path | None) -> None:
    click.echo(f"failures: {len(failures)}")
    for failure in failures[:shown]:
        schema = json.dumps(failure.schema, ensure_ascii=False)
        click.echo(f"  {schema[:300]}  <-  {failure.instance[:200]!r}  {failure.detail[:200]}")
    if out is not None:
        entries = [
            {
                "schema": failure.schema,
                "instance": failure.instance,
                "valid": failure.expected,
                "detail": failure.detail,
            }
            for failure in failures
        ]
        out.write_text(json.dumps(entries, indent=1, ensure_ascii=False), encoding="utf-8")
    if failures:
        raise SystemExit(1)
