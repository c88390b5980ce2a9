"""`python -m maskbench conformance soak`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

import ffwd
from ffwd.tokenizer import from_huggingface
from maskbench import commands, options, results
from maskbench.conformance.soak.memory import TOLERANCE_BYTES, TOLERANCE_SHARE, Curve
from maskbench.conformance.soak.plot import svg
from maskbench.conformance.soak.work import Soak
from maskbench.tokenizer import HuggingFaceEncoder, resolve

FORMAT = "maskbench-soak-1"
_MIB = 1 << 20


def _bytes(name: str, default: int, about: str) -> options.Option[options.Command]:
    return click.option(
        name, type=click.IntRange(min=1), default=default, show_default=True, metavar="MIB",
        help=about,
    )  # fmt: skip


def _count(name: str, default: int, about: str) -> options.Option[options.Command]:
    return click.option(
        name, type=click.IntRange(min=100), default=default, show_default=True, help=about
    )


@click.command("soak")
@options.tokenizer()
@_count("--accepts", 1_000_000, "Tokens to accept, a mask before each.")
@_count("--matchers", 100_000, "Matchers to make and drop.")
@_count("--grammars", 10_000, "Different grammars to compile.")
@_bytes("--cache-mib", 64, "What the grammars that are kept may hold together.")
@_bytes("--grammar-mib", 4, "What one grammar may hold.")
@_bytes("--shared-mib", 16, "What grammars may share: of lexemes, and again of their masks.")
@click.option("--looks", type=click.IntRange(min=20), default=400, show_default=True,
              help="How often each part looks at the resident size.")  # fmt: skip
@options.out()
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False),
              help="Draw the curves into this file, as SVG.")  # fmt: skip
def soak_command(
    tokenizer: str,
    accepts: int,
    matchers: int,
    grammars: int,
    cache_mib: int,
    grammar_mib: int,
    shared_mib: int,
    looks: int,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Measure whether this process grows over many tokens, matchers and grammars.

    Exits with 1 if the resident size grew: if at any time in the last quarter of a part it exceeds
    the maximum of the second by more than 2% and 8 MiB. Also prints the resident size after
    everything was freed: after a first, short round, and at the end.
    """
    started = results.utc_now()
    console = options.console(100)
    with commands.workplace() as scratch:
        spec = resolve(tokenizer, scratch)
        encoder = HuggingFaceEncoder(spec)
        vocabulary = from_huggingface(spec.directory, vocab_size=spec.vocab_size)
    vocabulary.limit_memory(lexeme_bytes=shared_mib * _MIB, lexeme_mask_bytes=shared_mib * _MIB)
    soak = Soak(
        vocabulary,
        encoder,
        cache_bytes=cache_mib * _MIB,
        grammar_bytes=grammar_mib * _MIB,
        looks=looks,
    )
    # What is made once in a process is no growth: modules, tables.
    for part, little in ((soak.accepts, 2000), (soak.matchers, 200), (soak.grammars, 100)):
        part(little)
    before = soak.let_go()
    curves = [soak.accepts(accepts), soak.matchers(matchers), soak.grammars(grammars)]
    cache, shared_bytes = asdict(soak.cache.stats()), vocabulary.memory_bytes
    after = soak.let_go()
    _show(console, curves)
    console.print(
        f"When all is let go of: {after / _MIB:.1f} MiB; "
        f"after a first, short round: {before / _MIB:.1f}"
    )
    document = {
        **commands.about(FORMAT, spec, started),
        "ffwd": ffwd.__version__,
        "mib": {"cache": cache_mib, "grammar": grammar_mib, "shared": shared_mib},
        "tolerance": {"bytes": TOLERANCE_BYTES, "share": TOLERANCE_SHARE},
        "cache": cache,
        "shared_bytes": shared_bytes,
        "let_go": {"before": before, "after": after},
        "parts": [
            {
                "name": curve.name,
                "total": curve.total,
                "seconds": round(curve.seconds, 1),
                "verdict": asdict(curve.verdict()) | {"grew": curve.verdict().grew},
                "samples": [[s.done, s.resident_bytes] for s in curve.samples],
            }
            for curve in curves
        ],
    }
    commands.save(document, out, console)
    if plot is not None:
        plot.write_text(svg(curves), encoding="utf-8")
        console.print(f"Drawn: {plot}", soft_wrap=True)
    if grown := [curve.name for curve in curves if curve.verdict().grew]:
        raise click.ClickException(f"the process grew over its {', '.join(grown)}")


def _show(console: Console, curves: list[Curve]) -> None:
    console.print("Resident size in MiB, the largest of each quarter", style="bold")
    table = Table("work", "seconds", "at the start", "second quarter", "last quarter",
                  "allowed", "")  # fmt: skip
    for curve in curves:
        verdict = curve.verdict()
        sizes = (
            curve.samples[0].resident_bytes,
            verdict.second_quarter,
            verdict.last_quarter,
            verdict.allowed,
        )
        table.add_row(
            f"{curve.total:,} {curve.name}",
            f"{curve.seconds:,.0f}",
            *(f"{size / _MIB:,.1f}" for size in sizes),
            "grew" if verdict.grew else "did not grow",
        )
    console.print(table)
