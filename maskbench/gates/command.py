"""`python -m maskbench fuzz` and `python -m maskbench walks`."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from maskbench.data import BUILTIN_CORPUS, DataError, parse_case, read_sources
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup, MissingEngineError
from maskbench.runner import EngineStartError, RunSettings, run
from maskbench.tokenizer import BUILTIN_NAME, HuggingFaceEncoder, TokenizerError, resolve

if TYPE_CHECKING:
    from maskbench.gates.fuzz import Failure
    from maskbench.gates.walks import Tokens
    from maskbench.verdicts import SchemaRecord

_BYTES = "bytes"


@click.command("fuzz")
@click.option("--pairs", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--shrink", default=20, show_default=True, help="How many failures to make small.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Failures, as JSON.")
def fuzz_command(pairs: int, seed: int, shrink: int, out: Path | None) -> None:
    """Compares ffwd's verdicts on generated schemas with those of two validators."""
    from maskbench.gates import fuzz
    from maskbench.gates.walks import byte_tokens

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


@click.command("walks")
@click.option(
    "--schemas",
    "data",
    type=click.Path(path_type=Path),
    default=BUILTIN_CORPUS,
    help="A .jsonl(.xz, .zst) file, or a folder of .json files. Default: the built-in corpus.",
)
@click.option("--generated", is_flag=True, help="On schemas drawn from a grammar of keywords.")
@click.option("--walks", "count", type=click.IntRange(min=1), default=20_000, show_default=True)
@click.option("--per-schema", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--tokenizer",
    default=_BYTES,
    show_default=True,
    help="'bytes', a Hugging Face folder, 'deepseek', or 'builtin'.",
)
@click.option(
    "--property-order",
    type=click.Choice(["declared", "any"]),
    default="any",
    show_default=True,
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Failures, as JSON.")
def walks_command(
    data: Path,
    generated: bool,
    count: int,
    per_schema: int,
    seed: int,
    tokenizer: str,
    property_order: Literal["declared", "any"],
    out: Path | None,
) -> None:
    """Walks at random through ffwd's masks: each walk must end in a valid document."""
    import ffwd
    from maskbench.gates.fuzz import Failure
    from maskbench.gates.judges import Judges
    from maskbench.gates.walks import Ending, Walker

    try:
        tokens = _tokens(tokenizer)
        schemas = _generated(seed) if generated else _repeated(data)
    except (DataError, TokenizerError) as error:
        raise click.ClickException(str(error)) from error
    endings: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    failures: list[Failure] = []
    done = walked = 0
    for number, schema in enumerate(schemas):
        if done >= count:
            break
        source = random.Random(f"{seed} {number}")
        try:
            judges = Judges(schema)
        except ValueError:
            left_out["refused by a validator"] += 1
            continue
        try:
            grammar = ffwd.json_schema(
                json.dumps(schema), whitespace="compact", property_order=property_order
            )
            walker = Walker(schema, ffwd.compile(grammar, tokens.vocabulary), tokens, judges)
            walked += 1
            for _ in range(min(per_schema, count - done)):
                walk = walker.walk(source)
                done += 1
                endings[walk.ending.value] += 1
                if walk.ending not in (Ending.VALID, Ending.UNJUDGED):
                    text = walk.text.decode(errors="replace")
                    detail = f"{walk.ending.value}: {walk.detail}"
                    failures.append(Failure(schema, text, None, detail))
        except ffwd.UnsupportedSchemaError as error:
            left_out[f"unsupported: {error.keyword}"] += 1
        except ffwd.FfwdError as error:
            left_out[type(error).__name__] += 1
    click.echo(f"seed {seed}: {done} walks on {walked} schemas")
    for ending, number in endings.most_common():
        click.echo(f"  {number:6} {ending}")
    click.echo(f"schemas left out: {left_out.total()}")
    for reason, number in left_out.most_common():
        click.echo(f"  {number:6} {reason}")
    _finish(failures, 20, out)


@click.command("keywords")
@click.option(
    "--engine",
    "engine_list",
    default="ffwd,llguidance,xgrammar,outlines-core",
    show_default=True,
    help="Comma-separated.",
)
def keywords_command(engine_list: str) -> None:
    """Prints a table of keywords and engines: exact, refused, widened or too narrow."""
    from maskbench.gates import keywords

    names = [name.strip() for name in engine_list.split(",") if name.strip()]
    with tempfile.TemporaryDirectory(prefix="maskbench-") as directory:
        scratch = Path(directory)
        spec = resolve(BUILTIN_NAME, scratch)
        encoder = HuggingFaceEncoder(spec)
        records: dict[str, dict[int, SchemaRecord]] = {name: {} for name in names}
        versions: dict[str, dict[str, str]] = {}
        for order in ("declared", "any"):
            setup = EngineSetup(spec, Whitespace.COMPACT, property_order=order)
            settings = RunSettings(forced=False)
            try:
                logs = run(names, [keywords.jobs(encoder, order)], setup, settings, scratch)
            except (MissingEngineError, EngineStartError) as error:
                raise click.ClickException(str(error)) from error
            for name, log in logs.items():
                records[name] |= {record.index: record for record in log.records}
                versions[name] = log.versions
    click.echo(keywords.table(records))
    known = (item for listed in versions.values() for item in listed.items())
    click.echo(", ".join(f"{name} {text}" for name, text in known if name != "options"))


def _tokens(name: str) -> Tokens:
    import ffwd.tokenizer
    from maskbench.gates.walks import Tokens, byte_tokens

    if name == _BYTES:
        return byte_tokens()
    with tempfile.TemporaryDirectory(prefix="maskbench-") as scratch:
        spec = resolve(name, Path(scratch))
        return Tokens(ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size))


def _generated(seed: int) -> Iterator[Any]:
    from maskbench.gates.schemas import draw_schema

    number = 0
    while True:
        yield draw_schema(random.Random(f"schema {seed} {number}"))
        number += 1


def _repeated(data: Path) -> Iterator[Any]:
    """The schemas of a file, over and over; each time round walks go other ways."""
    schemas = [parse_case(source).schema for source in read_sources(data)]
    while schemas:
        yield from schemas


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
