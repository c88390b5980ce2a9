"""The command line: `python -m maskbench run`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import click
from rich.console import Console

from maskbench import packaged, results, tables
from maskbench.batches.command import batches_command
from maskbench.canonical_demo.command import demo_command
from maskbench.canonicality.command import canonicality_command
from maskbench.canonicality.gates import canonical_walks_command, continuations_command
from maskbench.comparison import comparisons
from maskbench.data import (
    BUILTIN_CORPUS,
    DataError,
    Slice,
    Source,
    choose,
    parse_case,
    read_sources,
)
from maskbench.documents import Encoder, Job, UnwritableSchemaError, Whitespace, prepare
from maskbench.encoding.command import tokenizers_command
from maskbench.engines import EngineSetup, MissingEngineError, find, known_engines
from maskbench.fetch import fetch_command
from maskbench.gates.command import fuzz_command, keywords_command
from maskbench.gates.walk_command import walk_command
from maskbench.growth.command import growth_command
from maskbench.hard.command import hard_command
from maskbench.instructions import instructions_command
from maskbench.logits.command import logits_command
from maskbench.operations.command import operations_command
from maskbench.processor import stay_off
from maskbench.progress import progress
from maskbench.runner import EngineStartError, RunSettings, run
from maskbench.tokenizer import BUILTIN_NAME, HuggingFaceEncoder, TokenizerError, resolve


@dataclass
class Preparation:
    """What could not be given to the engines, counted while jobs are prepared."""

    broken: list[str] = field(default_factory=list)
    unwritable_schemas: list[str] = field(default_factory=list)
    skipped_instances: int = 0

    def chunks(
        self, sources: list[Source], encoder: Encoder, whitespace: Whitespace, size: int
    ) -> Iterator[list[Job]]:
        """Jobs in chunks, prepared when they are asked for."""
        for start in range(0, len(sources), size):
            jobs = []
            for index, source in enumerate(sources[start : start + size], start):
                try:
                    prepared = prepare(parse_case(source), index, encoder, whitespace)
                except DataError as error:
                    self.broken.append(str(error))
                    continue
                except UnwritableSchemaError as error:
                    self.unwritable_schemas.append(f"{source.place}: {error}")
                    continue
                self.skipped_instances += prepared.skipped_instances
                jobs.append(prepared.job)
            yield jobs


def _parse_slice(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> Slice | None:
    if value is None:
        return None
    try:
        return Slice.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


def _parse_engine_samples(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, int]:
    samples = {}
    for value in values:
        name, _, count = value.rpartition("=")
        if not name or not count.isdecimal() or int(count) < 1:
            raise click.BadParameter(f"expected ENGINE=N, got {value!r}", context, parameter)
        samples[name] = int(count)
    return samples


@click.group()
def main() -> None:
    """Measures engines for constrained decoding on JSON schemas."""


main.add_command(batches_command)
main.add_command(demo_command)
main.add_command(canonical_walks_command)
main.add_command(canonicality_command)
main.add_command(continuations_command)
main.add_command(fetch_command)
main.add_command(fuzz_command)
main.add_command(growth_command)
main.add_command(hard_command)
main.add_command(instructions_command)
main.add_command(keywords_command)
main.add_command(logits_command)
main.add_command(operations_command)
main.add_command(tokenizers_command)
main.add_command(walk_command)


@main.command("run")
@click.option(
    "--engine",
    "engine_list",
    default="ffwd",
    show_default=True,
    help=f"Comma-separated: {', '.join(known_engines())}, or module:Class.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=BUILTIN_CORPUS,
    help="A .jsonl or .jsonl.xz file, or a folder of .json files. Default: the built-in corpus.",
)
@click.option(
    "--tokenizer",
    default=BUILTIN_NAME,
    show_default=True,
    help=f"A Hugging Face folder, 'builtin', or one of {', '.join(packaged.NAMES)}.",
)
@click.option("--sample", type=click.IntRange(min=1), help="Draw this many schemas.")
@click.option("--seed", type=int, default=0, show_default=True, help="For --sample.")
@click.option(
    "--slice",
    "part",
    metavar="I/N",
    callback=_parse_slice,
    help="Every N-th schema, beginning with the I-th.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds per schema, after which the engine's process is killed.",
)
@click.option(
    "--whitespace",
    type=click.Choice([w.value for w in Whitespace]),
    default=Whitespace.FLEXIBLE.value,
    show_default=True,
)
@click.option(
    "--property-order",
    type=click.Choice(["declared", "any"]),
    default="declared",
    show_default=True,
    help="For ffwd and XGrammar; llguidance has the declared one only.",
)
@click.option(
    "--chunk",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Schemas per turn of an engine.",
)
@click.option("--no-forced", is_flag=True, help="Do not count forced tokens.")
@click.option("--cold-store", is_flag=True, help="Empty the engines' stores before each schema.")
@click.option(
    "--engine-sample",
    "engine_samples",
    metavar="ENGINE=N",
    multiple=True,
    callback=_parse_engine_samples,
    help="Give this engine N of the schemas only; may be repeated.",
)
@click.option(
    "--pin", type=click.IntRange(min=0), metavar="CPU", help="Run all engines on this processor."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write all results to this JSON file, and the samples next to it.",
)
def run_command(
    engine_list: str,
    data: Path,
    tokenizer: str,
    sample: int | None,
    seed: int,
    part: Slice | None,
    time_limit: float,
    whitespace: str,
    property_order: str,
    chunk: int,
    no_forced: bool,
    cold_store: bool,
    engine_samples: dict[str, int],
    pin: int | None,
    out: Path | None,
) -> None:
    """Runs engines on the same schemas and instances and prints verdicts and times."""
    engines = list(dict.fromkeys(name.strip() for name in engine_list.split(",") if name.strip()))
    if not engines:
        raise click.UsageError("--engine names no engine")
    if strangers := engine_samples.keys() - set(engines):
        raise click.UsageError(f"--engine-sample: not in --engine: {', '.join(strangers)}")
    mode = Whitespace(whitespace)
    settings = RunSettings(time_limit_s=time_limit, forced=not no_forced, pin=pin)
    if pin is not None:
        stay_off(pin)
    preparation = Preparation()
    started, clock = results.utc_now(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="maskbench-") as directory:
        scratch = Path(directory)
        try:
            for name in engines:
                find(name)
            everything = read_sources(data)
            sources = choose(everything, sample=sample, seed=seed, part=part)
            spec = resolve(tokenizer, scratch)
            with progress(len(sources), engines) as advance:
                logs = run(
                    engines,
                    preparation.chunks(sources, HuggingFaceEncoder(spec), mode, chunk),
                    EngineSetup(spec, mode, property_order, cold_store),
                    settings,
                    scratch,
                    advance,
                    {
                        name: frozenset(Random(seed).sample(range(len(sources)), count))
                        for name, count in engine_samples.items()
                        if count < len(sources)
                    },
                )
        except (DataError, TokenizerError, MissingEngineError, EngineStartError) as error:
            raise click.ClickException(str(error)) from error
    summaries = results.summarise(logs)
    pairs = comparisons(logs, "ffwd" if "ffwd" in engines else engines[0])
    measured = logs[engines[0]].offered
    lost = len(preparation.broken) + len(preparation.unwritable_schemas)
    about = {
        "started": started,
        "seconds": round(time.monotonic() - clock, 1),
        "complete": measured + lost == len(sources),
        "machine": results.machine(),
        "settings": {
            "whitespace": mode.value,
            "property_order": property_order,
            "time_limit_s": time_limit,
            "chunk": chunk,
            "forced": not no_forced,
            "cold_store": cold_store,
            "engine_samples": engine_samples,
            "pin": pin,
        },
        "tokenizer": {
            "name": spec.name,
            "vocab_size": spec.vocab_size,
            "eos_token_ids": list(spec.eos_token_ids),
            "sha256": spec.sha256,
        },
        "data": {
            "name": data.name,
            "schemas": len(everything),
            "chosen": len(sources),
            "sample": sample,
            "seed": seed,
            "slice": None if part is None else f"{part.index}/{part.count}",
            "broken": preparation.broken,
            "unwritable_schemas": preparation.unwritable_schemas,
            "skipped_instances": preparation.skipped_instances,
        },
    }
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    _say_what_was_left_out(console, preparation, measured, len(sources))
    tables.show(console, summaries)
    tables.show_comparisons(console, pairs)
    if out is not None:
        samples = results.write(out, about, logs, summaries, pairs)
        console.print(f"Written: {out} and {samples}", soft_wrap=True)


@main.command("compare")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--subject", default="ffwd", show_default=True, help="The engine beside its peers.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
def compare_command(files: tuple[Path, ...], subject: str, markdown: bool) -> None:
    """Prints the tables of pairs of engines for results that `run --out` has written."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    for file in files:
        try:
            document, logs = results.read(file)
        except results.ResultsError as error:
            raise click.ClickException(str(error)) from error
        if subject not in logs:
            raise click.ClickException(f"{file}: no engine {subject!r}; it has {', '.join(logs)}")
        settings = document["settings"]
        store = "emptied before each schema" if settings["cold_store"] else "kept"
        title = f"{document['tokenizer']['name']}, store {store}, {file.name}"
        pairs = comparisons(logs, subject)
        if markdown:
            click.echo(f"### {title}\n\n{tables.markdown(pairs)}")
        else:
            console.print(title, style="bold underline")
            tables.show_comparisons(console, pairs)


def _say_what_was_left_out(
    console: Console, preparation: Preparation, measured: int, chosen: int
) -> None:
    for line in preparation.broken:
        console.print(f"left out, broken: {line}", markup=False, soft_wrap=True)
    for line in preparation.unwritable_schemas:
        console.print(f"left out, schema without text: {line}", markup=False, soft_wrap=True)
    if preparation.skipped_instances:
        console.print(f"left out: {preparation.skipped_instances} instances without UTF-8 text")
    missing = chosen - measured - len(preparation.broken) - len(preparation.unwritable_schemas)
    if missing:
        console.print(f"interrupted: {missing} of {chosen} schemas were not measured")


if __name__ == "__main__":
    main(prog_name="python -m maskbench")
