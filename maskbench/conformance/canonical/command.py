"""`python -m maskbench conformance continuations` and `canonical-walks`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from maskbench import commands, options
from maskbench.canonicality.variants import FFWD, NAMES, Mode, variant
from maskbench.data import Slice, Source, choose, read_sources
from maskbench.pool import Lost, Pool
from maskbench.progress import progress
from maskbench.sums import added
from maskbench.tokenizer import TokenizerSpec, resolve

if TYPE_CHECKING:
    from maskbench.conformance.canonical.continuations import Wrong
    from maskbench.conformance.canonical.walks import Astray

_SHOWN = 20

_QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "slowest": 1.0}
# Fields of walks that are written otherwise.
_LONG = frozenset(("astray", "mask_us"))

_FORCING = tuple(name for name in NAMES if variant(name).engine == FFWD)


@dataclass(frozen=True)
class _Work:
    """The arguments of both commands."""

    tokenizer: TokenizerSpec
    modes: tuple[Mode, ...]
    sources: list[Source]
    scratch: Path


def _common(command: options.Command) -> options.Command:
    """Add the options of both commands, before their own."""
    mode = click.option(
        "--mode",
        "mode_names",
        type=click.Choice([mode.value for mode in Mode]),
        multiple=True,
        help="Whitespace: A flexible, C compact, D fixed separators. Default: all.",
    )
    for option in (
        options.out("All figures, as JSON."),
        options.processes,
        options.part,
        options.sample,
        mode,
        options.data(),
        options.tokenizer(),
    ):
        command = option(command)
    return command


@click.command("continuations")
@_common
@click.option("--variant", "name", type=click.Choice(_FORCING), default="exact", show_default=True)
@click.option(
    "--compared",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Stop when so many continuations have been compared, or the schemas are used up.",
)
def continuations_command(
    tokenizer: str,
    data: Path,
    mode_names: tuple[str, ...],
    sample: int | None,
    part: Slice | None,
    seed: int,
    processes: int,
    out: Path | None,
    name: str,
    compared: int,
) -> None:
    """Compare forced tokens with the encodings of random continuations."""
    from maskbench.conformance.canonical.continuations import (
        Checked,
        ContinuationGate,
        ContinuationSetup,
    )

    lost = []
    with _work(tokenizer, data, mode_names, sample, seed, part) as work:
        setup = ContinuationSetup(work.tokenizer, work.modes, variant(name), seed=seed)
        pool = Pool[ContinuationSetup, Source, Checked](
            ContinuationGate, setup, processes=processes, time_limit_s=120, scratch=work.scratch
        )
        total = Checked()
        with pool, progress(compared, ["continuations"]) as advance:
            for source, result in pool.run(work.sources):
                if isinstance(result, Lost):
                    lost.append(f"{source.default_id}: {result.why}")
                    continue
                total = added(total, result)
                for _ in range(result.compared):
                    advance("continuations")
                if total.compared >= compared:
                    break
    click.echo(
        f"{tokenizer}, {name}, seed {seed}: {total.compared} continuations compared, "
        f"{len(total.wrong)} wrong"
    )
    for verdict, count in total.verdicts.most_common():
        click.echo(f"  {count:6} {verdict.value}")
    _finish([_plain(wrong) for wrong in total.wrong], lost, out, {"verdicts": total.verdicts})


@click.command("canonical-walks")
@_common
@click.option(
    "--walks", type=click.IntRange(min=1), default=1, show_default=True, help="On each schema."
)
def canonical_walks_command(
    tokenizer: str,
    data: Path,
    mode_names: tuple[str, ...],
    sample: int | None,
    part: Slice | None,
    seed: int,
    processes: int,
    out: Path | None,
    walks: int,
) -> None:
    """Walk at random under canonical masks: texts must encode to the tokens of the walk."""
    from maskbench.conformance.canonical.walks import (
        CanonicalWalks,
        SchemaWalks,
        WalkSetup,
        quantile,
    )

    lost = []
    with _work(tokenizer, data, mode_names, sample, seed, part) as work:
        pool = Pool[WalkSetup, Source, SchemaWalks](
            CanonicalWalks,
            WalkSetup(work.tokenizer, work.modes, walks, seed),
            processes=processes,
            time_limit_s=300,
            scratch=work.scratch,
        )
        total = SchemaWalks()
        with pool, progress(len(work.sources), ["schemas"]) as advance:
            for source, result in pool.run(work.sources):
                advance("schemas")
                if isinstance(result, Lost):
                    lost.append(f"{source.default_id}: {result.why}")
                else:
                    total.add(result)
    click.echo(f"{tokenizer}, seed {seed}: {total.schemas} schemas")
    for way, walked in total.ways.items():
        click.echo(f"{way}: {walked.walks} walks, {walked.tokens} tokens")
        click.echo(f"  {walked.equal:6} are encoded into their own tokens")
        click.echo(f"  {walked.unequal_after_fallback:6} are not, after a mask that fell back")
        click.echo(f"  {len(walked.astray):6} are not, and no mask fell back")
        click.echo(f"  {walked.unfinished:6} did not end")
        click.echo(f"  {walked.unreadable:6} are not UTF-8")
        click.echo(f"  {walked.fell_back:6} had masks that fell back; masks by reason:")
        for reason, count in walked.fallbacks.most_common():
            click.echo(f"    {count:6} {reason}")
    times = sum((walked.mask_us for walked in total.ways.values()), Counter())
    mean = sum(us * count for us, count in times.items()) / max(times.total(), 1)
    mask_us = {
        "average": round(mean),
        **{name: quantile(times, share) for name, share in _QUANTILES.items()},
    }
    parts = ", ".join(f"{name} {value}" for name, value in mask_us.items())
    click.echo(f"{times.total()} masks, processor time in microseconds: {parts}")
    click.echo(f"schemas left out: {total.refused.total()}")
    for reason, count in total.refused.most_common():
        click.echo(f"  {count:6} {reason}")
    failures = [
        {"way": way} | _plain(astray)
        for way, walked in total.ways.items()
        for astray in walked.astray
    ]
    figures = {
        "schemas": total.schemas,
        "refused": total.refused,
        "ways": {
            way: {name: value for name, value in vars(walked).items() if name not in _LONG}
            for way, walked in total.ways.items()
        },
        "mask_us": mask_us,
    }
    _finish(failures, lost, out, figures)


@contextmanager
def _work(
    tokenizer: str,
    data: Path,
    mode_names: tuple[str, ...],
    sample: int | None,
    seed: int,
    part: Slice | None,
) -> Iterator[_Work]:
    """Provide the work, and explain errors and interrupts."""
    modes = tuple(Mode(name) for name in mode_names) or tuple(Mode)
    with commands.workplace() as scratch:
        sources = choose(read_sources(data), sample=sample, seed=seed, part=part)
        yield _Work(resolve(tokenizer, scratch), modes, sources, scratch)


def _plain(found: Wrong | Astray) -> dict[str, Any]:
    return asdict(found) | {"mode": found.mode.value}


def _finish(
    failures: list[dict[str, Any]], lost: list[str], out: Path | None, figures: dict[str, Any]
) -> None:
    """Print failures and write everything; exit with 1 if there is a failure."""
    for line in lost:
        click.echo(f"lost: {line}")
    click.echo(f"failures: {len(failures)}")
    for failure in failures[:_SHOWN]:
        click.echo("  " + json.dumps(failure, ensure_ascii=False)[:400])
    document = figures | {"lost": lost, "failures": failures}
    commands.save(document, out, options.console())
    if failures:
        raise SystemExit(1)
