"""The output of commands: data or text to standard output, errors and notes to standard error."""

import functools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from ffwd import BudgetError, FfwdError, VocabularyError
from ffwd.chat import MissingControlTokensError, MissingTemplateError
from ffwd.cli import exits
from ffwd.sources import missing_package

_PLACES = ("pointer", "keyword", "line", "column", "limit", "maximum", "token", "byte", "index")


class Failure(click.ClickException):
    """An error with its own exit status; with --json it is an object on standard output."""

    # In click it belongs to the class, here to each error.
    exit_code: int = exits.BAD  # type: ignore[misc]

    def __init__(
        self, message: str, *, exit_code: int, kind: str, data: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.kind = kind
        self.data = data or {}
        context = click.get_current_context(silent=True)
        self._as_json = bool(context is not None and context.params.get("as_json"))

    def show(self, file: Any = None) -> None:
        """Write it where it belongs."""
        if self._as_json:
            error = {"type": self.kind, "message": self.message, **self.data}
            write_json({"error": error, "exit_code": self.exit_code})
        else:
            label = click.style("error: ", fg="red", bold=True)
            click.echo(label + printable(self.message), err=True)


def failure(error: FfwdError, *, where: str = "", below: str = "", **data: Any) -> Failure:
    """Return an error of ffwd as one of the command line.

    `where` is named before the message, and `below` comes on a line after it; `data` is of JSON.
    """
    if isinstance(error, (VocabularyError, MissingTemplateError, MissingControlTokensError)):
        code = exits.UNUSABLE
    else:
        code = exits.CUT if isinstance(error, BudgetError) else exits.BAD
    kind = type(error).__name__
    message = f"{where}: {error}" if where else str(error)
    message += f"\n{below}" if below else ""
    return Failure(message, exit_code=code, kind=kind, data=error_data(error) | data)


def missing(error: ImportError) -> Exception:
    """Return a missing package's error with its installation command, and others unchanged."""
    message = missing_package(error)
    if message is None:
        return error
    return Failure(message, exit_code=exits.MISSING, kind="MissingPackage")


def error_data(error: FfwdError) -> dict[str, Any]:
    """Return the position of an error, as far as it is known."""
    found = {name: getattr(error, name, None) for name in _PLACES}
    return {name: value for name, value in found.items() if value is not None}


def command(**settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command with --json, whose errors have the exit statuses of `exits`."""

    def made(function: Callable[..., Any]) -> click.Command:
        @functools.wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            try:
                with _warnings_as_notes():
                    return function(*args, **options)
            except FfwdError as error:
                raise failure(error) from error
            except ImportError as error:
                raise missing(error) from error
            except OSError as error:
                if error.filename is None or isinstance(error, BrokenPipeError):
                    raise
                message = f"{error.filename}: {error.strerror}"
                raise Failure(message, exit_code=exits.USAGE, kind="FileError") from error

        as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON.")
        finished: click.Command = click.command(**{"no_args_is_help": True, **settings})(
            as_json(run)
        )
        return finished

    return made


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Write ffwd's Python warnings as lines; other warnings are unchanged."""
    with warnings.catch_warnings():
        before = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if category.__module__.partition(".")[0] == "ffwd":
                note(str(message), kind="warning")
            else:
                before(message, category, *place, **more)

        warnings.showwarning = show
        yield


def write_json(data: Any) -> None:
    """Write a JSON text to standard output, with bytes as text, or as `{"hex": …}`."""
    click.echo(json.dumps(data, ensure_ascii=False, indent=2, default=_bytes))


def _bytes(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return as_text(bytes(value))
    raise TypeError(f"{type(value).__name__} is no JSON")


def as_text(data: bytes) -> str | dict[str, str]:
    """Return bytes as JSON has them."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def shown(data: bytes | None, name: str | None = None) -> str:
    """Return a token's bytes in quotes, or a control token's name."""
    if data is None:
        return name or "no text"
    try:
        return json.dumps(printable(data.decode()), ensure_ascii=False)
    except UnicodeDecodeError:
        return repr(data)


def printable(text: str) -> str:
    """Return text without control sequences for a terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def note(text: str, *, kind: str = "note") -> None:
    """Write a note for people to standard error."""
    colour = {"warning": "yellow"}.get(kind)
    label = click.style(f"{kind}: ", fg=colour, bold=True)
    click.echo(label + printable(text), err=True)


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: `1 token`, `2 tokens`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def milliseconds(nanoseconds: float) -> str:
    """Return a time in a readable unit."""
    if nanoseconds < 1e6:
        return f"{nanoseconds / 1e3:.1f} µs"
    return f"{nanoseconds / 1e6:.2f} ms" if nanoseconds < 1e9 else f"{nanoseconds / 1e9:.2f} s"


def size(number: int) -> str:
    """Return a number of bytes in a readable unit."""
    for unit, factor in (("MB", 1e6), ("kB", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return counted(number, "byte")


def on_terminal() -> bool:
    """Return whether people read standard output."""
    return sys.stdout.isatty()


def wants_no_colour() -> bool:
    """Return whether NO_COLOR is set and not empty, as in no-color.org."""
    return bool(os.environ.get("NO_COLOR"))
