"""`python -m maskbench canonicality`."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from maskbench import packaged, results
from maskbench.canonicality.variants import NAMES, Mode, variant
from maskbench.data import BUILTIN_CORPUS, DataError, Slice, choose, read_sources
from maskbench.engines import MissingEngineError
from maskbench.pool import Lost, Pool, PoolStartError
from maskbench.progress import progress
from maskbench.tokenizer import BUILTIN_NAME, TokenizerError, resolve

if TYPE_CHECKING:
    from ffwd import Vocabulary
    from maskbench.canonicality.survey import CaseCount, SurveySetup, SurveyTask, Totals

DATA_HELP = "A .jsonl(.xz, .zst) file, or a folder of .json files. Default: the built-in corpus."
TOKENIZER_HELP = f"A Hugging Face folder, 'builtin', or one of {', '.join(packaged.NAMES)}."


def parse_slice(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> Slice | None:
    """Reads `--slice`."""
    if value is None:
        return None
    try:
        return Slice.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


@click.command("canonicality")
@click.option("--tokenizer", default=BUILTIN_NAME, show_default=True, help=TOKENIZER_HELP)
@click.option("--data", type=click.Path(path_type=Path), default=BUILTIN_CORPUS, help=DATA_HELP)
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
    type=click.Choice(NAMES),
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
@click.option("--sample", type=click.IntRange(min=1), help="Draw this many schemas.")
@click.option("--seed", type=int, default=0, show_default=True, help="For --sample.")
@click.option("--slice", "part", metavar="I/N", callback=parse_slice, help="Every N-th schema.")
@click.option("--processes", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    help="Seconds per schema, after which the process is killed and the schema is lost.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write all counts to this JSON file, and the tables as Markdown next to it.",
)
def canonicality_command(
    tokenizer: str,
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
    """Counts forced tokens, and how often they are not the document's, for ways of forcing."""
    from maskbench.canonicality import report
    from maskbench.canonicality.forcing import ENGINES, Ffwd
    from maskbench.canonicality.survey import Surveyor, SurveySetup, SurveyTask, Totals

    modes = tuple(Mode(name) for name in mode_names) or tuple(Mode)
    wanted = [variant(name) for name in NAMES if name in (variant_names or NAMES)]
    wanted = [v for v in wanted if v.engine in (engine_names or ENGINES)]
    if not wanted:
        raise click.UsageError("no --variant is one of the chosen --engine")
    started, clock = results.utc_now(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="maskbench-") as directory:
        scratch = Path(directory)
        try:
            everything = read_sources(data)
            sources = choose(everything, sample=sample, seed=seed, part=part)
            spec = resolve(tokenizer, scratch)
            engines = {name: ENGINES[name](spec) for name in {v.engine for v in wanted}}
            variants, unavailable = report.available(engines, wanted)
            vocabulary = Ffwd(spec).vocabulary
            totals = Totals.of(modes, variants)
            with Pool[SurveySetup, SurveyTask, "CaseCount"](
                Surveyor,
                SurveySetup(spec, modes, variants),
                processes=processes,
                time_limit_s=time_limit,
                scratch=scratch,
            ) as pool:
                tasks = [SurveyTask(i, source) for i, source in enumerate(sources)]
                complete = _collect(pool, tasks, totals)
        except (DataError, TokenizerError, MissingEngineError, PoolStartError) as error:
            raise click.ClickException(str(error)) from error
    about = {
        "started": started,
        "seconds": round(time.monotonic() - clock, 1),
        "complete": complete,
        "machine": results.machine(),
        "versions": {name: engine.version for name, engine in engines.items()},
        "tokenizer": {"name": spec.name, "sha256": spec.sha256},
        "data": {
            "name": data.name,
            "schemas": len(everything),
            "chosen": len(sources),
            "sample": sample,
            "seed": seed,
            "slice": None if part is None else f"{part.index}/{part.count}",
        },
        "definitions": report.DEFINITIONS,
    }
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    if not complete:
        console.print(f"interrupted after {totals.cases} of {len(sources)} schemas")
    report.show(console, totals, unavailable)
    if out is not None:
        document = report.as_json(about, totals, unavailable, _text_of(vocabulary))
        out.write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")
        table = out.with_suffix(".md")
        table.write_text(report.markdown(about, totals, unavailable), encoding="utf-8")
        console.print(f"Written: {out} and {table}", soft_wrap=True)


def _collect(
    pool: Pool[SurveySetup, SurveyTask, CaseCount], tasks: Sequence[SurveyTask], totals: Totals
) -> bool:
    """Adds the counts of all tasks, and says whether none was left because of an interrupt."""
    with progress(len(tasks), ["schemas"]) as advance:
        try:
            for task, result in pool.run(tasks):
                advance("schemas")
                if isinstance(result, Lost):
                    totals.lost.append(f"{task.source.default_id}: {result.why}")
                else:
                    totals.add(result)
        except KeyboardInterrupt:
            return False
    return True


def _text_of(vocabulary: Vocabulary) -> Callable[[int], str]:
    """The text of a token, for a report."""

    def text(token: int) -> str:
        return (vocabulary.token_bytes(token) or b"").decode("utf-8", errors="replace")

    return text
