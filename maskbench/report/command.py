"""`python -m maskbench report`: the tables of runs, and the page, from what `run --out` wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from maskbench import options
from maskbench.figures import records
from maskbench.figures.pages import stale_pages
from maskbench.report import renderers
from maskbench.report.changes import changes
from maskbench.report.contents import tables_of
from maskbench.report.run import Run
from maskbench.report.table import Table
from maskbench.results import ResultsError

Command = TypeVar("Command", bound=Callable[..., Any])

FORMATS = ("terminal", "csv", "json", "markdown", "html")
ENDINGS = {".csv": "csv", ".json": "json", ".md": "markdown", ".html": "html"}


def _parse_reports(
    context: click.Context, parameter: click.Parameter, values: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Refuse a name that does not say the format before anything is run."""
    for path in values:
        format_of(path)
    return values


def format_of(path: Path) -> str:
    """Return the format by the ending of the name. Raises `click.BadParameter`."""
    try:
        return ENDINGS[path.suffix]
    except KeyError:
        known = ", ".join(ENDINGS)
        raise click.BadParameter(f"{path}: the name ends in none of {known}") from None


def render(form: str, runs: Sequence[Run], against: Run | None = None) -> str:
    """Return the report as text, in any form but that of the terminal."""
    if form == "html":
        # The other forms do not need Jinja.
        try:
            from maskbench.report.html import page
        except ImportError as error:
            raise click.ClickException(
                f"an HTML report needs the extra bench: {error}; pip install jinja2"
            ) from error
        return page(runs, against)
    lists = form != "markdown"
    tables = [
        (run.title, _tables(run, against if number == 0 else None, lists=lists))
        for number, run in enumerate(runs)
    ]
    renderer = {"csv": renderers.as_csv, "json": renderers.as_json, "markdown": renderers.markdown}
    return renderer[form](tables)


def show(runs: Sequence[Run], form: str, against: Run | None = None) -> None:
    """Print a report."""
    if form != "terminal":
        click.echo(render(form, runs, against), nl=False)
        return
    out = options.console(140)
    for number, run in enumerate(runs):
        if len(runs) > 1:
            out.print(run.title, style="bold underline", markup=False)
        renderers.terminal(out, _tables(run, against if number == 0 else None, lists=False))


def save(path: Path, form: str, runs: Sequence[Run], against: Run | None = None) -> None:
    """Write a report. Raises `click.ClickException` if that fails."""
    text = render(form, runs, against)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # An id may hold half of a surrogate pair, which no file can.
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or error}") from error


def _tables(run: Run, against: Run | None, *, lists: bool) -> list[Table]:
    found = tables_of(run, lists=lists)
    return found if against is None else found + changes(run, against)


def outputs(command: Command) -> Command:
    """`--format FORMAT` as `form` and `--report FILE` as `reports`, for what makes results."""
    command = click.option(
        "--report",
        "reports",
        type=click.Path(path_type=Path, dir_okay=False),
        multiple=True,
        callback=_parse_reports,
        help="Write the report to this .html, .md, .csv or .json file too; may be repeated.",
    )(command)
    return click.option(
        "--format",
        "form",
        type=click.Choice([form for form in FORMATS if form != "html"]),
        default="terminal",
        show_default=True,
        help="Of the tables that are printed.",
    )(command)


@click.command("report")
@click.argument("files", metavar="RESULTS...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS),
              help="Default: by the ending of --out, or else for the terminal.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the report to this file instead of printing it.")  # fmt: skip
@click.option("--subject", help="The engine beside its peers. Default: ffwd, or the first one.")
@click.option("--against", type=click.Path(path_type=Path), metavar="RESULTS",
              help="An earlier run, whose changes the report has.")  # fmt: skip
@click.option("--record", metavar="NAME",
              help="No report: record the figures of one file for the pages.")  # fmt: skip
@click.option("--pages", is_flag=True,
              help="No report: write the recorded figures into README and docs/.")  # fmt: skip
@click.option("--check", is_flag=True,
              help="With --pages: write nothing, exit with 1 where a page differs.")  # fmt: skip
def report_command(
    files: tuple[Path, ...],
    form: str | None,
    out: Path | None,
    subject: str | None,
    against: Path | None,
    record: str | None,
    pages: bool,
    check: bool,
) -> None:
    """Make a report of results that `run --out` has written, each file a part of its own."""
    if record is not None or pages:
        if form is not None or out is not None or subject is not None or against is not None:
            raise click.UsageError("--record and --pages go with no other option of a report")
        figures(files, record, pages=pages, check=check)
        return
    if check:
        raise click.UsageError("--check goes with --pages")
    if not files:
        raise click.UsageError("Missing argument 'RESULTS...'")
    if form is None:
        form = "terminal" if out is None else format_of(out)
    if out is not None and form == "terminal":
        raise click.UsageError("--out is for the formats other than terminal")
    if against is not None and len(files) > 1:
        raise click.UsageError("--against goes with one file of results")
    try:
        runs = [Run.read(file, subject) for file in files]
        earlier = None if against is None else Run.read(against)
    except ResultsError as error:
        raise click.ClickException(str(error)) from error
    if out is None:
        show(runs, form, earlier)
        return
    save(out, form, runs, earlier)
    click.echo(f"Written: {out}")


def figures(files: tuple[Path, ...], record: str | None, *, pages: bool, check: bool) -> None:
    """Record the figures of a file, and write what is recorded into the pages."""
    if len(files) != (record is not None):
        raise click.UsageError("--record goes with one file of results, --pages alone with none")
    if check and not pages:
        raise click.UsageError("--check goes with --pages")
    try:
        if record is not None:
            click.echo(f"Written: {records.write_record(record, records.record_of(files[0]))}")
        stale = list(stale_pages()) if pages else []
    except records.FiguresError as error:
        raise click.ClickException(str(error)) from error
    for page, filled in stale:
        if not check:
            page.write_text(filled, encoding="utf-8")
        click.echo(f"{'Differs from the records' if check else 'Written'}: {page}")
    if check and stale:
        raise click.ClickException("python -m maskbench report --pages writes the figures again")
