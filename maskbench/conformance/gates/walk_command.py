"""`python -m maskbench conformance walk`: dead ends and invalid documents of every engine."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from maskbench import commands, options
from maskbench.data import (
    DataError,
    Slice,
    Source,
    choose,
    parse_case,
    read_sources,
)
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup, find
from maskbench.progress import progress
from maskbench.tokenizer import TokenizerSpec, resolve

if TYPE_CHECKING:
    from maskbench.conformance.gates.walk_runs import EngineWalks, Schema, WalkSettings

FORMAT = "maskbench-walks-1"


@click.command("walk")
@options.engine_list("ffwd")
@options.tokenizer()
@options.data()
@click.option("--generated", is_flag=True, help="Instead, draw --sample schemas of all keywords.")
@options.sample
@options.part
@click.option("--only", multiple=True, metavar="ID", help="Only this schema; may be repeated.")
@click.option("--per-schema", type=click.IntRange(min=1), default=4, show_default=True)
@options.whitespace
@options.property_order()
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    default=5000,
    show_default=True,
    help="A walk that has not come to its end by then is too long.",
)
@options.time_limit(60.0, "Seconds a walk, after which the engine's process is killed.")
@click.option("--show", type=click.IntRange(min=0), default=10, help="Failures to print an engine.")
@click.option("--strict", is_flag=True, help="Exit with 1 if a walk did not end in a valid text.")
@options.out("All, as JSON.")
def walk_command(
    engine_list: str,
    tokenizer: str,
    data: Path,
    generated: bool,
    sample: int | None,
    part: Slice | None,
    only: tuple[str, ...],
    per_schema: int,
    seed: int,
    whitespace: str,
    property_order: str,
    max_tokens: int,
    time_limit: float,
    show: int,
    strict: bool,
    out: Path | None,
) -> None:
    """Walk at random through engines' masks: each walk must end in a valid document."""
    from maskbench.conformance.gates.walk_runs import WalkSettings, judge_all, walk_all

    engines = options.names(engine_list)
    broken: list[str] = []
    done: dict[str, EngineWalks] = {}
    with commands.workplace() as scratch:
        for name in engines:
            find(name)
        drawn = (
            _generated(seed, sample or 1000)
            if generated
            else _of_data(data, sample, seed, part, broken)
        )
        schemas = _only(drawn, only)
        spec = resolve(tokenizer, scratch)
        settings = WalkSettings(
            setup=EngineSetup(spec, Whitespace(whitespace), property_order),
            seed=seed,
            per_schema=per_schema,
            max_steps=max_tokens,
            time_limit_s=time_limit,
        )
        with progress(len(schemas), engines) as advance:
            for number, name in enumerate(engines):
                place = scratch / f"engine-{number}"
                done[name] = walk_all(
                    name,
                    schemas,
                    settings,
                    place,
                    partial(advance, name),
                )
                judge_all(done[name], schemas, settings, place)
    console = options.console()
    for line in broken:
        console.print(f"left out, broken: {line}", markup=False, soft_wrap=True)
    console.print(table(done))
    for name, walks in done.items():
        _say_failures(console, name, walks, show)
    console.print(
        f"Seed {seed}. The same options with --only ID repeat the walks of a schema, which are the "
        "same whatever others there are.",
        soft_wrap=True,
    )
    document = _document(done, settings, spec, len(schemas), broken)
    commands.save(document, out, console)
    if strict and any(not_as_they_should(walks) for walks in done.values()):
        raise SystemExit(1)


def not_as_they_should(walks: EngineWalks) -> bool:
    """Return whether a walk was lost, failed, was too long, had a dead end or an invalid document.

    A document that only one validator rejects, or that they cannot judge, does not count.
    """
    from maskbench.conformance.gates.walks import DISPUTED, Ending

    fine = DISPUTED | {Ending.VALID, Ending.UNJUDGED}
    return bool(
        walks.lost or walks.failed or any(w.ending not in fine for w in walks.walks.values())
    )


def counts(walks: EngineWalks) -> dict[str, int]:
    """Return the rows of the table, from the top, for one engine."""
    from maskbench.conformance.gates.walks import DEAD_ENDS, Ending

    endings = Counter(walk.ending for walk in walks.walks.values())
    timed_out = sum(why.startswith("killed after") for why in walks.lost.values())
    walked = {schema_id for schema_id, _ in walks.walks}
    return {
        "schemas walked": len(walked),
        "schemas refused": len(walks.refused),
        "schemas not compiled": len(walks.failed),
        "walks": len(walks.walks) + len(walks.lost),
        "finished": sum(
            count
            for ending, count in endings.items()
            if ending not in DEAD_ENDS | {Ending.ENDLESS, Ending.FAILED}
        ),
        "dead ends": sum(endings[ending] for ending in DEAD_ENDS),
        **{ending.value: endings[ending] for ending in Ending},
        "process died": len(walks.lost) - timed_out,
        "timed out": timed_out,
    }


def table(done: dict[str, EngineWalks]) -> Table:
    """Return a table with a row for each way to end and a column for each engine."""
    shown = Table(title="random mask walks")
    shown.add_column("")
    columns = [counts(walks) for walks in done.values()]
    for name in done:
        shown.add_column(name, justify="right")
    for row in columns[0]:
        shown.add_row(row, *(f"{column[row]:,}" for column in columns))
    return shown


def _of_data(
    data: Path, sample: int | None, seed: int, part: Slice | None, broken: list[str]
) -> Iterator[Schema]:
    from maskbench.conformance.gates.walk_runs import Schema

    def schema_of(source: Source) -> Schema | None:
        try:
            case = parse_case(source)
            text = json.dumps(case.schema, allow_nan=False)
        except DataError as error:
            broken.append(str(error))
        except (ValueError, RecursionError) as error:
            broken.append(f"{source.place}: schema without text: {error}")
        else:
            return Schema(case.id, text, case.schema)
        return None

    chosen = choose(read_sources(data), sample=sample, seed=seed, part=part)
    return (schema for schema in map(schema_of, chosen) if schema is not None)


def _generated(seed: int, count: int) -> Iterator[Schema]:
    from maskbench.conformance.gates.schemas import draw_schema
    from maskbench.conformance.gates.walk_runs import Schema

    for number in range(count):
        value = draw_schema(random.Random(f"schema {seed} {number}"))
        yield Schema(f"generated_{number}", json.dumps(value), value)


def _only(schemas: Iterator[Schema], only: Sequence[str]) -> list[Schema]:
    chosen = {schema.id: schema for schema in schemas if not only or schema.id in only}
    if unknown := set(only) - set(chosen):
        raise click.UsageError(f"--only: no schema {', '.join(sorted(unknown))} among the chosen")
    return list(chosen.values())


def _failures(walks: EngineWalks) -> Iterator[dict[str, Any]]:
    from maskbench.conformance.gates.walks import Ending

    for (schema_id, number), walk in walks.walks.items():
        if walk.ending is not Ending.VALID:
            yield {
                "id": schema_id,
                "walk": number,
                "ending": walk.ending.value,
                "detail": walk.detail,
                "text": walk.text.decode(errors="replace"),
                "tokens": list(walk.tokens),
            }
    for (schema_id, number), why in walks.lost.items():
        yield {"id": schema_id, "walk": number, "ending": "process lost", "detail": why}
    for schema_id, why in walks.failed.items():
        yield {"id": schema_id, "ending": "not compiled", "detail": why}


def _say_failures(console: Console, name: str, walks: EngineWalks, show: int) -> None:
    failures = list(_failures(walks))
    if not failures or not show:
        return
    console.print(
        f"{name}: {len(failures)} walks to look at, the first {min(show, len(failures))}:"
    )
    for failure in failures[:show]:
        place = f"{failure['id']} walk {failure['walk']}" if "walk" in failure else failure["id"]
        detail = " ".join(failure["detail"].split())[:160]
        text = failure.get("text", "")
        line = f"  {place}: {failure['ending']}: {detail}  <-  {text[-100:]!r}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _document(
    done: dict[str, EngineWalks],
    settings: WalkSettings,
    spec: TokenizerSpec,
    schemas: int,
    broken: list[str],
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "settings": {
            "seed": settings.seed,
            "schemas": schemas,
            "per_schema": settings.per_schema,
            "whitespace": settings.setup.whitespace.value,
            "property_order": settings.setup.property_order,
            "max_tokens": settings.max_steps,
            "time_limit_s": settings.time_limit_s,
        },
        "tokenizer": spec.plain(),
        "broken": broken,
        "engines": {
            name: {
                "versions": walks.versions,
                "counts": counts(walks),
                "refused_reasons": dict(
                    Counter(reason for reason, _ in walks.refused.values()).most_common()
                ),
                "failures": list(_failures(walks)),
            }
            for name, walks in done.items()
        },
    }
