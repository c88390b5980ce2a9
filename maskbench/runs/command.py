"""`python -m maskbench run`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import click
from rich.console import Console

from maskbench import commands, options, results
from maskbench.data import Slice, choose, read_sources
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup, find
from maskbench.processor import stay_off
from maskbench.progress import progress
from maskbench.report import command as report
from maskbench.report.run import Run
from maskbench.runner import Executor, RunSettings, collect
from maskbench.runs import cluster
from maskbench.runs.cores import physical_cores, pins_for
from maskbench.runs.journal import Journal
from maskbench.runs.local import LocalExecutor
from maskbench.runs.preparation import Chunk, LeftOut, Preparation, sha256_of
from maskbench.runs.settings import GIB
from maskbench.tokenizer import HuggingFaceEncoder, resolve


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


def _parse_pins(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, ...]:
    if value is None:
        return ()
    parts = value.split(",")
    if not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"expected CPU[,CPU...], got {value!r}", context, parameter)
    return tuple(int(part) for part in parts)


@click.command("run")
@options.engine_list("ffwd")
@options.data()
@options.tokenizer()
@options.sample
@options.part
@options.time_limit(30.0, "Seconds per schema, after which the engine's process is killed.")
@options.memory_limit
@options.whitespace
@options.property_order(about="For ffwd and XGrammar; llguidance has the declared one only.")
@click.option(
    "--chunk",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Schemas per turn of an engine.",
)
@options.rounds(1)
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
    "--jobs",
    type=click.IntRange(min=1),
    help="So many chunks at a time, each on a core of its own. Default: 1; with Ray, no limit.",
)
@click.option(
    "--pin",
    "pins",
    metavar="CPU[,CPU...]",
    callback=_parse_pins,
    help="The processor that all engines run on, or one for each of --jobs.",
)
@click.option(
    "--executor",
    "executor_name",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where chunks run: on this machine, or on a Ray cluster that exists.",
)
@click.option("--ray-address", default="auto", show_default=True, help="Of the Ray cluster.")
@options.out("Write all results to this JSON file, and the samples next to it.")
@report.outputs
@click.option("--resume", is_flag=True, help="Go on with a run that has begun to write to --out.")
def run_command(
    engine_list: str,
    data: Path,
    tokenizer: str,
    sample: int | None,
    seed: int,
    part: Slice | None,
    time_limit: float,
    memory_limit: float,
    whitespace: str,
    property_order: str,
    chunk: int,
    rounds: int,
    no_forced: bool,
    cold_store: bool,
    engine_samples: dict[str, int],
    jobs: int | None,
    pins: tuple[int, ...],
    executor_name: str,
    ray_address: str,
    out: Path | None,
    form: str,
    reports: tuple[Path, ...],
    resume: bool,
) -> None:
    """Run engines on the same schemas and instances and print verdicts and times."""
    engines = options.names(engine_list)
    if strangers := engine_samples.keys() - set(engines):
        raise click.UsageError(f"--engine-sample: not in --engine: {', '.join(strangers)}")
    if resume and out is None:
        raise click.UsageError("--resume goes on with what is beside --out, which is not given")
    if executor_name == "ray" and pins:
        raise click.UsageError("--pin is for this machine; on Ray each chunk has its own core")
    mode = Whitespace(whitespace)
    settings = RunSettings(
        time_limit_s=time_limit,
        forced=not no_forced,
        memory_limit=int(memory_limit * GIB),
        rounds=rounds,
    )
    # The conditions of the results. A run can be resumed only if all of them are equal.
    about_settings = {
        "whitespace": mode.value,
        "property_order": property_order,
        "time_limit_s": time_limit,
        "memory_limit_bytes": settings.memory_limit,
        "chunk": chunk,
        "rounds": rounds,
        "forced": not no_forced,
        "cold_store": cold_store,
        "engine_samples": engine_samples,
        "pin": pins[0] if len(pins) == 1 else list(pins) or None,
        "jobs": jobs,
        "executor": executor_name,
    }
    # If the tables are for a program, everything else goes to standard error.
    console = options.console(140, stderr=form != "terminal")
    started, clock = results.utc_now(), time.monotonic()
    with ExitStack() as stack:
        scratch = stack.enter_context(commands.workplace())
        for name in engines:
            find(name)
        everything = read_sources(data)
        sources = choose(everything, sample=sample, seed=seed, part=part)
        only = {
            name: frozenset(Random(seed).sample(range(len(sources)), count))
            for name, count in engine_samples.items()
            if count < len(sources)
        }
        spec = resolve(tokenizer, scratch)
        preparation = Preparation(sources, HuggingFaceEncoder(spec), mode, chunk)
        journal = None
        if out is not None:
            journal = Journal(out.with_suffix(".parts"), resume=resume)
            stack.callback(journal.close)
            if resume:
                _say_what_is_there(console, journal, engines)
        setup = EngineSetup(spec, mode, property_order, cold_store)
        advance = stack.enter_context(
            progress(
                {name: len(only.get(name, sources)) for name in engines},
                engines,
                {} if journal is None else _done(journal),
            )
        )
        executor: Executor
        if executor_name == "ray":
            executor = stack.enter_context(
                cluster.RayExecutor(
                    engines, setup, settings, advance, address=ray_address, jobs=jobs
                )
            )
        else:
            places = pins_for(jobs or 1, pins)
            _leave(console, [place for place in places if place is not None])
            executor = stack.enter_context(
                LocalExecutor(engines, setup, settings, scratch, advance, places)
            )
        if journal is not None:
            journal.begin(
                {
                    "engines": engines,
                    "versions": {name: executor.starts[name].versions for name in engines},
                    "settings": about_settings,
                    "seed": seed,
                    "tokenizer": {"name": spec.name, "sha256": spec.sha256},
                    "data": {"cases": len(sources), "sha256": sha256_of(sources)},
                    "machine": results.machine()["processor"]
                    if executor_name == "local"
                    else "a cluster",
                }
            )
        collected = collect(
            executor,
            engines,
            _chunks(preparation, journal, engines),
            only=only,
            journal=journal,
        )
    logs, left_out = collected.logs, collected.left_out
    measured = logs[engines[0]].offered
    lost = len(left_out.broken) + len(left_out.unwritable_schemas)
    about: dict[str, Any] = {
        "command": commands.command_line(),
        "started": started,
        "seconds": round(time.monotonic() - clock, 1),
        "complete": measured + lost == len(sources),
        "resumed": resume,
        "machine": results.machine(),
        "settings": about_settings,
        "tokenizer": spec.plain(),
        "data": {
            "name": data.name,
            "schemas": len(everything),
            "chosen": len(sources),
            "sample": sample,
            "seed": seed,
            "slice": None if part is None else f"{part.index}/{part.count}",
            "broken": list(left_out.broken),
            "unwritable_schemas": list(left_out.unwritable_schemas),
            "skipped_instances": left_out.skipped_instances,
        },
    }
    _say_what_was_left_out(console, left_out, measured, len(sources))
    finished = Run.finished("this run" if out is None else out.name, about, logs)
    report.show([finished], form)
    # Before the reports, so that a failing report costs no results.
    if out is not None and journal is not None:
        _write(console, finished, out, journal)
    for path in reports:
        report.save(path, report.format_of(path), [finished])
        console.print(f"Written: {path}", soft_wrap=True)


def _write(console: Console, finished: Run, out: Path, journal: Journal) -> None:
    try:
        samples = finished.write(out)
    except OSError as error:
        raise click.ClickException(
            f"{out}: {error.strerror}: nothing is lost, --resume writes the results again from "
            f"{journal.folder}"
        ) from error
    console.print(f"Written: {out} and {samples}", soft_wrap=True)
    if finished.document["complete"]:
        journal.remove()
    else:
        console.print(f"What is finished is in {journal.folder}: go on with --resume")


def _chunks(
    preparation: Preparation, journal: Journal | None, engines: list[str]
) -> Iterator[Chunk]:
    """Return all chunks in order; those that are done come without their jobs."""
    for number in range(len(preparation)):
        done = None if journal is None else journal.finished(number, engines)
        yield preparation[number] if done is None else done


def _done(journal: Journal) -> dict[str, int]:
    counts: dict[str, int] = {}
    for (_, engine), turn in journal.turns.items():
        counts[engine] = counts.get(engine, 0) + len(turn.records)
    return counts


def _leave(console: Console, pins: list[int]) -> None:
    """Leave the processors to the engines, as far as there are others."""
    if not pins:
        return
    if not set(physical_cores()) - set(pins):
        console.print(
            "every core is measured on: this process, which prepares chunks, takes some of it"
        )
    stay_off(*pins)


def _say_what_is_there(console: Console, journal: Journal, engines: list[str]) -> None:
    if not journal.turns:
        console.print(f"{journal.folder}: nothing is finished yet, the run begins")
        return
    chunks = {chunk for chunk, _ in journal.turns}
    whole = sum(journal.finished(number, engines) is not None for number in chunks)
    console.print(f"{journal.folder}: {whole} chunks are finished, the run goes on")


def _say_what_was_left_out(console: Console, left_out: LeftOut, measured: int, chosen: int) -> None:
    for line in left_out.broken:
        console.print(f"left out, broken: {line}", markup=False, soft_wrap=True)
    for line in left_out.unwritable_schemas:
        console.print(f"left out, schema without text: {line}", markup=False, soft_wrap=True)
    if left_out.skipped_instances:
        console.print(f"left out: {left_out.skipped_instances} instances without UTF-8 text")
    missing = chosen - measured - len(left_out.broken) - len(left_out.unwritable_schemas)
    if missing:
        console.print(f"interrupted: {missing} of {chosen} schemas were not measured")
