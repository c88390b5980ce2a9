"""The common parts of commands: a folder to work in, error messages, documents, JSON figures."""

from __future__ import annotations

import importlib
import json
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from maskbench import results
from maskbench.data import choose, parse_case, read_sources
from maskbench.documents import Encoder, Job, UnwritableSchemaError, Whitespace, prepare
from maskbench.errors import InputError
from maskbench.tokenizer import TokenizerSpec

_ARGUMENTS = "maskbench.arguments"


class LazyGroup(click.Group):
    """Loads a command when it is asked for: some need packages that a machine may lack.

    Args:
        name: Of the group.
        places: Of each command `module:attribute`.
        help: One sentence.

    """

    def __init__(self, name: str, *, places: dict[str, str], help: str) -> None:
        super().__init__(name, help=help)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of their definition."""
        return list(dict.fromkeys([*self._places, *self.commands]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by name. Raises `click.ClickException` if it lacks a package."""
        if cmd_name in self._places:
            module, _, attribute = self._places[cmd_name].partition(":")
            try:
                self.commands.setdefault(
                    cmd_name, getattr(importlib.import_module(module), attribute)
                )
            except ModuleNotFoundError as error:
                raise click.ClickException(
                    f"{cmd_name} needs a package that is not installed: {error.name}; "
                    "pip install '.[bench]'"
                ) from error
        return self.commands.get(cmd_name)

    def _short_help(self, ctx: click.Context, name: str) -> str:
        try:
            command = self.get_command(ctx, name)
        except click.ClickException as error:
            return error.message
        return command.get_short_help_str(80) if command else ""

    def load(self) -> dict[str, click.Command]:
        """Return all commands by name."""
        context = click.Context(self)
        found = ((name, self.get_command(context, name)) for name in self.list_commands(context))
        return {name: command for name, command in found if command is not None}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, also those that lack a package."""
        rows = [(name, self._short_help(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class RecordingGroup(LazyGroup):
    """Keeps its arguments, because results name the command that made them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As in click."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)


def command_line() -> str:
    """Return the shell command that repeats this run."""
    arguments = click.get_current_context().meta.get(_ARGUMENTS, ())
    return shlex.join(["python", "-m", "maskbench", *arguments])


@contextmanager
def workplace() -> Iterator[Path]:
    """Provide a folder to a command. An `InputError` ends the command with its message."""
    with tempfile.TemporaryDirectory(prefix="maskbench-") as folder:
        try:
            yield Path(folder)
        except InputError as error:
            raise click.ClickException(str(error)) from error


def jobs(data: Path, sample: int | None, seed: int, encoder: Encoder) -> list[Job]:
    """Yield the chosen cases of some data, without those whose schema has no text.

    Raises `DataError`.
    """
    chosen = choose(read_sources(data), sample=sample, seed=seed, part=None)
    found = []
    for index, case in enumerate(map(parse_case, chosen)):
        with suppress(UnwritableSchemaError):
            found.append(prepare(case, index, encoder, Whitespace.FLEXIBLE).job)
    return found


def about(form: str, spec: TokenizerSpec, started: str) -> dict[str, Any]:
    """Return the first members of figures: their format, and their settings."""
    return {
        "format": form,
        "started": started,
        "machine": results.machine(),
        "tokenizer": {"name": spec.name, "sha256": spec.sha256},
    }


def save(document: dict[str, Any], out: Path | None, console: Console) -> None:
    """Write figures as JSON if `--out` asks for them, and print where they are.

    Add what they depend on beside the machine: the command, when it ended, and the packages.
    """
    if out is not None:
        document = {
            "command": command_line(),
            "started": results.utc_now(),
            "packages": results.packages(),
            **document,
        }
        out.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(document, indent=1, ensure_ascii=False)
        out.write_text(text + "\n", encoding="utf-8")
        console.print(f"Written: {out}", soft_wrap=True)
