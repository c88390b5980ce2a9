"""Tables for a terminal, as CSV, JSON and Markdown. The HTML page has a module of its own."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from maskbench.report.table import Table, show

FORMAT = "maskbench-tables-1"

Titled = Sequence[tuple[str, Sequence[Table]]]
"""The tables of runs, each run with its title."""


def terminal(console: Console, tables: Sequence[Table]) -> None:
    """Print the tables; one that is wider than the console is transposed."""
    for table in tables:
        # Titles are printed apart, because a table's own title is wrapped to the table's width.
        console.print(Text(table.title, style="bold"), soft_wrap=True)
        cells = [[show(v, c.unit) for v, c in zip(row, table.columns, strict=True)]
                 for row in table.rows]  # fmt: skip
        drawn = _drawn([c.name for c in table.columns], cells, [c.is_number for c in table.columns])
        is_swappable = all(column.is_number for column in table.columns[1:])
        width = Measurement.get(console, console.options.update(max_width=10_000), drawn).maximum
        if is_swappable and table.rows and width > console.width:
            head, *body = zip([c.name for c in table.columns], *cells, strict=True)
            drawn = _drawn(list(head), [list(row) for row in body],
                           [False] + [True] * len(cells))  # fmt: skip
        console.print(drawn)
        for note in table.notes:
            console.print(Text(f"  {note}"))
        console.print()


def _drawn(names: list[str], rows: list[list[str]], right: list[bool]) -> RichTable:
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, is_right in zip(names, right, strict=True):
        drawn.add_column(
            Text(name),
            justify="right" if is_right else "left",
            no_wrap=is_right,
            overflow="ellipsis" if is_right else "fold",
        )
    for row in rows:
        drawn.add_row(*map(Text, row))
    return drawn


def markdown(runs: Titled) -> str:
    """Return a heading for each run and pipe tables below it."""
    lines = []
    for title, tables in runs:
        lines += [f"### {_escaped(title)}", ""]
        for table in tables:
            head = [_escaped(column.name) for column in table.columns]
            rule = ["---:" if column.is_number else "---" for column in table.columns]
            lines += [f"{_escaped(table.title)}:", "", f"| {' | '.join(head)} |"]
            lines.append(f"| {' | '.join(rule)} |")
            lines += [f"| {' | '.join(_cell(table, row))} |" for row in table.rows]
            lines.append("")
            for note in table.notes:
                lines += [_escaped(note), ""]
    return "\n".join(lines)


def _cell(table: Table, row: Sequence[str | int | float | None]) -> list[str]:
    return [_escaped(show(v, c.unit)) for v, c in zip(row, table.columns, strict=True)]


def _escaped(text: str) -> str:
    """Return text without markup for Markdown; underscores within words need no escape."""
    text = re.sub(r"([\\`*\[\]|<>&~])", r"\\\1", text)
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)


def as_csv(runs: Titled) -> str:
    """Return one unrounded value per line, so that one file holds tables with any columns.

    `name` is the first cell of the value's row, and `row` its number from 1. Missing values are
    empty.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("results", "table", "row", "name", "column", "unit", "value"))
    for title, tables in runs:
        for table in tables:
            for number, row in enumerate(table.rows, 1):
                for column, value in zip(table.columns[1:], row[1:], strict=True):
                    writer.writerow(
                        (title, table.key, number, row[0], column.name, column.unit.value, value)
                    )
    return text.getvalue()


def as_json(runs: Titled) -> str:
    """Return columns with units, and rows of unrounded values; what is missing is null."""
    document = {
        "format": FORMAT,
        "runs": [
            {
                "title": title,
                "tables": {
                    table.key: {
                        "title": table.title,
                        "columns": [{"name": c.name, "unit": c.unit.value} for c in table.columns],
                        "rows": table.rows,
                        "notes": table.notes,
                    }
                    for table in tables
                },
            }
            for title, tables in runs
        ],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
