"""`python -m maskbench report`: the tables of runs, and the page, from what `run --out` wrote."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from maskbench import options
from maskbench.report import renderers
from maskbench.report.changes import changes
from maskbench.report.contents import tables_of
from maskbench.report.run import Run
from maskbench.report.table import Table
from maskbench.results import ResultsError

Command = TypeVar("Command", bound=Callable[..., Any])

FORMATS = ("terminal", "csv", "json", "markdown", "html")
ENDINGS = {".csv": "csv", ".json": "json", ".md": "markdown", ".html": "html"}


_ARGUMENTS = "maskbench.arguments"


class RecordingGroup(click.Group):
    """Keeps the arguments that it was called with: results say by which command they were made."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments as click does."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)


def command_line() -> str:
    """Return the command line that repeats this command."""
    arguments = click.get_current_context().meta.get(_ARGUMENTS, ())
    return shlex.join(["python", "-m", "maskbench", *arguments])


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
@click.argument("files", metavar="RESULTS...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("--format", "form", type=click.Choice(FORMATS),
              help="Default: by the ending of --out, or else for the terminal.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the report to this file instead of printing it.")  # fmt: skip
@click.option("--subject", help="The engine beside its peers. Default: ffwd, or the first one.")
@click.option("--against", type=click.Path(path_type=Path), metavar="RESULTS",
              help="An earlier run, whose changes the report has.")  # fmt: skip
def report_command(
    files: tuple[Path, ...],
    form: str | None,
    out: Path | None,
    subject: str | None,
    against: Path | None,
) -> None:
    """Make a report of results that `run --out` has written, each file a part of its own."""
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
