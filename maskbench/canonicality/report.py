"""The report of a survey: a table on the terminal, Markdown, and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from rich.console import Console
from rich.table import Table

from maskbench.canonicality.counts import Forced, Miss
from maskbench.canonicality.survey import ModeTotal, Total, Totals
from maskbench.canonicality.variants import Mode, Variant, variant

FORMAT = "maskbench-canonicality-1"

DEFINITIONS = """\
enc is the tokenizer's own encoding, pre-tokenizer and merges and all, of text in the middle of an \
output; B(T) are the bytes of the tokens T. T is closed canonical if enc(B(T)) = T. It is a \
canonical prefix if some continuation c exists with which enc(B(T) + c) begins with T, and a \
grammar-canonical one if B(T) + c is also a text of the grammar: forced tokens are to be that.
A document is a valid instance as `json.dumps(..., ensure_ascii=False)` writes it with the mode's \
separators; T is enc of it, without a prompt and without an end token. It is walked from i = 0: \
the engine is asked for its forced tokens F. If T goes on with F, they count as forced, and i \
grows by their number. If F is empty, i grows by one. If F is neither, that is one non-canonical \
sequence, and i grows by one.
Share: forced tokens of |T|. Bad: non-canonical sequences, of all sequences. µs: the time of one \
call from Python, where something was forced and where nothing was.
Backoff: the last token and the forced bytes are encoded; then the longest end of so many tokens, \
or bytes, is left out with which some longer token begins that the grammar allows."""

PUBLISHED = """\
Published for llguidance and Llama 3, mode A, on MaskBench: share 12.7%, conservative 12.1%; bad \
with k=0 97% of the sequences, with k=1 23 of them, with k=2 and more or 7 bytes none."""

MODES = {
    Mode.A: "schema with flexible whitespace, compact documents",
    Mode.C: "schema and documents compact",
    Mode.D: 'separators ", " and ": " fixed in both',
}

_HEADINGS = ("", "forced share", "bad", "sequences", "µs, some", "µs, none", "failed")


def scopes(totals: ModeTotal) -> Iterator[tuple[str, Callable[[Total], Forced]]]:
    """Return a mode's tables: over common documents, and over each engine's own if they differ."""
    yield f"{totals.common_documents:,} documents that all accept", lambda total: total.common
    if any(total.own != total.common for total in totals.variants.values()):
        yield "each engine's own documents", lambda total: total.own


def show(
    console: Console, totals: Totals, unavailable: dict[str, str], *, defined: bool = False
) -> None:
    """Print the definitions, unless they are printed, and the tables over common documents."""
    if not defined:
        for line in (DEFINITIONS, *_variants(totals), PUBLISHED):
            console.print(line, markup=False, soft_wrap=True)
    for mode, mode_totals in totals.modes.items():
        for scope, forced_of in islice(scopes(mode_totals), 1):
            console.print(f"\n{mode.value}: {MODES[mode]}; {scope}", style="bold")
            table = Table()
            for heading in _HEADINGS:
                table.add_column(heading, justify="right" if heading else "left")
            for row in _rows(mode_totals, forced_of):
                table.add_row(*row)
            console.print(table)
        console.print(_counted(mode_totals), markup=False, soft_wrap=True)
    for line in _left_out(totals, unavailable):
        console.print(line, markup=False, soft_wrap=True)


def markdown(about: dict[str, Any], totals: Totals, unavailable: dict[str, str]) -> str:
    """Return the same as Markdown."""
    lines = [f"# Forced tokens: {about['tokenizer']['name']}", "", DEFINITIONS, "", PUBLISHED, ""]
    lines += [f"- {key}: {value}" for key, value in about["versions"].items()]
    lines += [f"- data: {about['data']['name']}, {about['data']['chosen']:,} schemas", ""]
    lines += ["| variant | |", "|---|---|"]
    names = {name: None for total in totals.modes.values() for name in total.variants}
    lines += [f"| {name} | {variant(name).about} |" for name in names]
    for mode, mode_totals in totals.modes.items():
        for scope, forced_of in scopes(mode_totals):
            lines += ["", f"**{mode.value}**: {MODES[mode]}; {scope}", ""]
            lines += ["| " + " | ".join(_HEADINGS) + " |"]
            lines += ["|" + "|".join(["---", *["---:"] * (len(_HEADINGS) - 1)]) + "|"]
            lines += ["| " + " | ".join(row) + " |" for row in _rows(mode_totals, forced_of)]
        lines += ["", _counted(mode_totals)]
    lines += ["", *_left_out(totals, unavailable)]
    return "\n".join(lines).rstrip() + "\n"


def as_json(
    about: dict[str, Any],
    totals: Totals,
    unavailable: dict[str, str],
    text_of: Callable[[int], str],
) -> dict[str, Any]:
    """Return all counts."""
    return {
        "format": FORMAT,
        **about,
        "cases": totals.cases,
        "unusable": totals.unusable,
        "lost": totals.lost,
        "unavailable": unavailable,
        "modes": {
            mode.value: {
                "documents": total.documents,
                "common_documents": total.common_documents,
                "accepted": dict(total.accepted),
                "refused_schemas": dict(total.refused),
                "variants": {
                    name: _variant(counted, text_of) for name, counted in total.variants.items()
                },
            }
            for mode, total in totals.modes.items()
        },
    }


def _variant(total: Total, text_of: Callable[[int], str]) -> dict[str, Any]:
    return {
        "common": asdict(total.common) | {"share": total.common.share},
        "own": asdict(total.own) | {"share": total.own.share},
        "failed": dict(total.failed),
        "noncanonical": [
            {"case": case} | _miss(miss, text_of) for case, miss in total.misses
        ],
    }  # fmt: skip


def _miss(miss: Miss, text_of: Callable[[int], str]) -> dict[str, Any]:
    def written(tokens: Sequence[int]) -> list[str]:
        return [text_of(token) for token in tokens]

    return {
        "before": written(miss.before),
        "forced": written(miss.forced),
        "document": written(miss.document),
    }


def _rows(totals: ModeTotal, forced_of: Callable[[Total], Forced]) -> Iterator[tuple[str, ...]]:
    for name, total in totals.variants.items():
        forced = forced_of(total)
        share = forced.share
        yield (
            name,
            "n/a" if share is None else f"{share:.2%}",
            bad(forced),
            f"{forced.sequences:,}",
            _average_us(forced.ns_sequences, forced.sequences),
            _average_us(forced.ns_empty, forced.empty),
            f"{total.failed.total():,}",
        )


def bad(forced: Forced) -> str:
    """Return non-canonical sequences, with their share if there are any."""
    if not forced.noncanonical:
        return "0"
    return f"{forced.noncanonical:,} ({forced.noncanonical / forced.sequences:.2%})"


def _variants(totals: Totals) -> Iterator[str]:
    names = {name: None for total in totals.modes.values() for name in total.variants}
    yield from (f"{name}: {variant(name).about}" for name in names)


def _average_us(ns: int, calls: int) -> str:
    return f"{ns / calls / 1000:.2f}" if calls else "-"


def _counted(totals: ModeTotal) -> str:
    parts = [f"{totals.documents:,} valid documents"]
    parts += [f"{engine} accepts {count:,}" for engine, count in totals.accepted.items()]
    parts += [f"{engine} refuses {count:,} schemas" for engine, count in totals.refused.items()]
    return "; ".join(parts)


def _left_out(totals: Totals, unavailable: dict[str, str]) -> Iterator[str]:
    for name, why in unavailable.items():
        yield f"not with this tokenizer: {variant(name).name}: {why}"
    if totals.unusable:
        yield f"left out: {len(totals.unusable)} cases that cannot be read or written"
    for line in totals.lost:
        yield f"lost: {line}"
    for mode, mode_totals in totals.modes.items():
        for name, total in mode_totals.variants.items():
            for why, count in total.failed.most_common(3):
                yield f"failed in {mode.value}, {name}: {count:,} cases: {why}"


def available(
    engines: dict[str, Any], variants: Sequence[Variant]
) -> tuple[tuple[Variant, ...], dict[str, str]]:
    """Return the variants that the tokenizer allows, and why it does not allow the others."""
    reasons = {v.name: engines[v.engine].unavailable(v) for v in variants}
    kept = tuple(v for v in variants if reasons[v.name] is None)
    return kept, {name: why for name, why in reasons.items() if why is not None}
