"""`python -m maskbench canonicality`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from maskbench import commands, options, results
from maskbench.canonicality.variants import ALIASES, NAMES, Mode, Variant, variant
from maskbench.data import Slice, Source, choose, read_sources
from maskbench.pool import Lost, Pool
from maskbench.progress import progress
from maskbench.tokenizer import BUILTIN_NAME, TokenizerSpec, resolve

if TYPE_CHECKING:
    from maskbench.canonicality.survey import CaseCount, SurveySetup, SurveyTask, Totals


@click.command("canonicality")
@options.tokenizers((BUILTIN_NAME,), f"May be repeated. {options.TOKENIZER_HELP}")
@options.data()
@click.option(
    "--mode",
    "mode_names",
    type=click.Choice([mode.value for mode in Mode]),
    multiple=True,
    help="Whitespace: A flexible in the schema, C compact, D fixed separators. Default: all.",
)
@click.option(
    "--variant",
    "variant_names",
    type=click.Choice([*NAMES, *ALIASES]),
    multiple=True,
    help="Ways of forcing. Default: all of the chosen engines.",
)
@click.option(
    "--engine",
    "engine_names",
    type=click.Choice(["ffwd", "llguidance"]),
    multiple=True,
    help="Default: both.",
)
@options.sample
@options.part
@options.processes
@options.time_limit(
    120.0, "Seconds per schema, after which the process is killed and the schema is lost."
)
@options.out("Write all counts to this JSON file, and the tables as Markdown and CSV next to it.")
def canonicality_command(
    names: tuple[str, ...],
    data: Path,
    mode_names: tuple[str, ...],
    variant_names: tuple[str, ...],
    engine_names: tuple[str, ...],
    sample: int | None,
    seed: int,
    part: Slice | None,
    processes: int,
    time_limit: float,
    out: Path | None,
) -> None:
    """Count forced tokens, and how often they differ from the document's, for ways of forcing."""
    from maskbench.canonicality import overview, report
    from maskbench.canonicality.forcing import ENGINES

    chosen = {variant(name).name for name in variant_names or NAMES}
    wanted = [variant(name) for name in NAMES if name in chosen]
    wanted = [v for v in wanted if v.engine in (engine_names or ENGINES)]
    if not wanted:
        raise click.UsageError("no --variant is one of the chosen --engine")
    console = options.console()
    entries = []
    with commands.workplace() as directory:
        everything = read_sources(data)
        sources = choose(everything, sample=sample, seed=seed, part=part)
        about_data = {
            "name": data.name,
            "schemas": len(everything),
            "chosen": len(sources),
            "sample": sample,
            "seed": seed,
            "slice": None if part is None else f"{part.index}/{part.count}",
        }
        modes = tuple(Mode(name) for name in mode_names) or tuple(Mode)
        work = _Work(sources, modes, wanted, processes, time_limit)
        chosen_names = list(dict.fromkeys(names))
        for number, name in enumerate(chosen_names):
            scratch = directory / str(number)
            scratch.mkdir()
            survey = work.run(resolve(name, scratch), scratch)
            about = survey.about | {"data": about_data, "definitions": report.DEFINITIONS}
            entries.append(overview.Entry(survey.tokenizer, survey.totals))
            if len(chosen_names) > 1:
                console.print(f"\n{survey.tokenizer}", style="bold underline")
            if not survey.complete:
                cases = survey.totals.cases
                console.print(f"interrupted after {cases} of {len(sources)} schemas")
            report.show(console, survey.totals, survey.unavailable, defined=number > 0)
            if out is not None:
                # Written before the next one starts, which may take hours.
                place = (
                    out
                    if len(chosen_names) == 1
                    else out.with_stem(f"{out.stem}-{survey.tokenizer}")
                )
                written = _write(place, about, survey)
                console.print(f"Written: {', '.join(map(str, written))}", soft_wrap=True)
            if not survey.complete:
                break
    if len(entries) > 1:
        overview.show(console, entries)
    if out is not None:
        table = out.with_suffix(".csv")
        table.write_text(overview.csv_of(entries), encoding="utf-8")
        console.print(f"Written: {table}", soft_wrap=True)
        if len(chosen_names) > 1:
            text = out.with_suffix(".md")
            text.write_text(overview.markdown(entries, about_data), encoding="utf-8")
            console.print(f"Written: {text}", soft_wrap=True)


@dataclass(frozen=True)
class _Survey:
    """The counts of one tokenizer."""

    tokenizer: str
    about: dict[str, Any]
    totals: Totals
    unavailable: dict[str, str]
    text_of: Callable[[int], str]
    complete: bool


@dataclass(frozen=True)
class _Work:
    """The work on each tokenizer."""

    sources: list[Source]
    modes: tuple[Mode, ...]
    wanted: list[Variant]
    processes: int
    time_limit: float

    def run(self, spec: TokenizerSpec, scratch: Path) -> _Survey:
        """Count all cases. Raises `MissingEngineError` and `PoolStartError`."""
        from maskbench.canonicality import report
        from maskbench.canonicality.forcing import ENGINES, Ffwd
        from maskbench.canonicality.survey import Surveyor, SurveySetup, SurveyTask, Totals

        started, clock = results.utc_now(), time.monotonic()
        engines = {name: ENGINES[name](spec) for name in {v.engine for v in self.wanted}}
        variants, unavailable = report.available(engines, self.wanted)
        totals = Totals.of(self.modes, variants)
        with Pool[SurveySetup, SurveyTask, "CaseCount"](
            Surveyor,
            SurveySetup(spec, self.modes, variants),
            processes=self.processes,
            time_limit_s=self.time_limit,
            scratch=scratch,
        ) as pool:
            tasks = [SurveyTask(i, source) for i, source in enumerate(self.sources)]
            complete = _collect(pool, tasks, totals, spec.name)
        about = {
            "command": commands.command_line(),
            "started": started,
            "seconds": round(time.monotonic() - clock, 1),
            "complete": complete,
            "machine": results.machine(),
            "versions": {name: engine.version for name, engine in engines.items()},
            "tokenizer": {"name": spec.name, "sha256": spec.sha256},
        }
        bytes_of = Ffwd(spec).vocabulary.token_bytes

        def text_of(token: int) -> str:
            return (bytes_of(token) or b"").decode("utf-8", errors="replace")

        return _Survey(spec.name, about, totals, unavailable, text_of, complete)


def _write(out: Path, about: dict[str, Any], survey: _Survey) -> tuple[Path, Path]:
    """Write everything as JSON, and the tables as Markdown."""
    from maskbench.canonicality import report

    document = report.as_json(about, survey.totals, survey.unavailable, survey.text_of)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")
    table = out.with_suffix(".md")
    table.write_text(report.markdown(about, survey.totals, survey.unavailable), encoding="utf-8")
    return out, table


def _collect(
    pool: Pool[SurveySetup, SurveyTask, CaseCount],
    tasks: Sequence[SurveyTask],
    totals: Totals,
    name: str,
) -> bool:
    """Add the counts of all tasks, and return whether no interrupt dropped any."""
    with progress(len(tasks), [name]) as advance:
        try:
            for task, result in pool.run(tasks):
                advance(name)
                if isinstance(result, Lost):
                    totals.lost.append(f"{task.source.default_id}: {result.why}")
                else:
                    totals.add(result)
        except KeyboardInterrupt:
            return False
    return True
