"""Several tokenizers beside each other, and all figures as lines of CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from maskbench.canonicality.report import DEFINITIONS, MODES, PUBLISHED, bad
from maskbench.canonicality.survey import Totals
from maskbench.canonicality.variants import Mode, variant

COLUMNS = (
    "tokenizer", "mode", "documents", "variant", "tokens", "forced", "share", "sequences",
    "noncanonical", "us_some", "us_none", "failed", "scope",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A tokenizer and its counts."""

    tokenizer: str
    totals: Totals


def show(console: Console, entries: Sequence[Entry]) -> None:
    """Print, for each mode, a table of variants by tokenizers."""
    for mode in _modes(entries):
        console.print(f"\n{_title(mode)}", style="bold")
        table = Table("", *(entry.tokenizer for entry in entries))
        for row in _rows(entries, mode):
            table.add_row(*row)
        console.print(table)


def markdown(entries: Sequence[Entry], data: dict[str, Any]) -> str:
    """Return the tables as Markdown, with the definitions."""
    lines = ["# Forced tokens by tokenizer", "", DEFINITIONS, "", PUBLISHED, ""]
    lines += [f"- {name}: {variant(name).about}" for name in _variants(entries)]
    lines += ["", f"Data: {data['name']}, {data['chosen']:,} of {data['schemas']:,} schemas"]
    for mode in _modes(entries):
        lines += ["", f"**{_title(mode)}**", ""]
        lines += [f"| | {' | '.join(entry.tokenizer for entry in entries)} |"]
        lines += [f"|---|{'---:|' * len(entries)}"]
        lines += [f"| {' | '.join(row)} |" for row in _rows(entries, mode)]
    return "\n".join(lines) + "\n"


def csv_of(entries: Sequence[Entry]) -> str:
    """Return a line for each tokenizer, mode, scope and variant, with the columns of `COLUMNS`.

    The scope is `common`, the documents of which all variants have a count, or `own`, those that
    the variant's engine accepts. `share` is a fraction, and times are in microseconds a call.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for entry in entries:
        for mode, total in entry.totals.modes.items():
            for name, counted in total.variants.items():
                for scope, forced in (("common", counted.common), ("own", counted.own)):
                    documents = (
                        total.common_documents
                        if scope == "common"
                        else total.accepted[variant(name).engine]
                    )
                    writer.writerow(
                        (
                            entry.tokenizer,
                            mode.value,
                            documents,
                            name,
                            forced.tokens,
                            forced.forced,
                            "" if forced.share is None else f"{forced.share:.6f}",
                            forced.sequences,
                            forced.noncanonical,
                            _us(forced.ns_sequences, forced.sequences),
                            _us(forced.ns_empty, forced.empty),
                            counted.failed.total(),
                            scope,
                        )
                    )
    return text.getvalue()


def _title(mode: Mode) -> str:
    return f"{mode.value}: {MODES[mode]}; share, bad sequences; documents that all accept"


def _modes(entries: Sequence[Entry]) -> list[Mode]:
    return list(dict.fromkeys(mode for entry in entries for mode in entry.totals.modes))


def _variants(entries: Sequence[Entry]) -> list[str]:
    return list(
        dict.fromkeys(
            name
            for entry in entries
            for total in entry.totals.modes.values()
            for name in total.variants
        )
    )


def _rows(entries: Sequence[Entry], mode: Mode) -> Iterator[tuple[str, ...]]:
    totals = [entry.totals.modes[mode] for entry in entries]
    for name in _variants(entries):
        cells = []
        for total in totals:
            forced = total.variants[name].common if name in total.variants else None
            known = forced is not None and forced.share is not None
            cells.append(f"{forced.share:.2%}, {bad(forced)}" if known and forced else "n/a")
        yield (name, *cells)
    yield ("documents", *(f"{total.common_documents:,}" for total in totals))


def _us(ns: int, calls: int) -> str:
    return f"{ns / calls / 1000:.3f}" if calls else ""
