"""The grammar of a command: its file, its notation, and its options."""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import click

import ffwd
from ffwd import CompiledGrammar, FfwdError, GrammarError, Vocabulary
from ffwd.cli.output import Failure, failure
from ffwd.grammar import Whitespace, Writing
from ffwd.sources import LANGUAGES, SUFFIXES, SourceText, caret, read_source


@dataclass(frozen=True, kw_only=True)
class GrammarSource(SourceText):
    """A grammar as it was given to a command.

    Attributes:
        name: The file's.

    """

    name: str

    def compile(self, vocabulary: Vocabulary) -> CompiledGrammar:
        """Compile it; an error has the place in the file."""
        try:
            return ffwd.compile(self.grammar, vocabulary)
        except FfwdError as error:
            raise self.failure(error) from error

    def failure(self, error: FfwdError) -> Failure:
        """Return an error about this grammar, with its position."""
        place = self.place(error)
        if place is None:
            return failure(error, where=self.name)
        line, column = place
        # Errors of grammars show it themselves.
        below = "" if isinstance(error, GrammarError) else caret(self.text, line, column)
        where = f"{self.name}:{line}:{column}"
        return failure(error, where=where, below=below, line=line, column=column)


def read_text(path: str) -> str:
    """Return the text of a file, or of standard input for `-`."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"{_named(path)} is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}"
        ) from error
    except OSError as error:
        raise click.UsageError(f"{_named(path)} cannot be read: {error.strerror}") from error


def _named(path: str) -> str:
    return "standard input" if path == "-" else path


def _language(path: str, given: str | None) -> str:
    if given is not None:
        return given
    if path == "-":
        return "json-schema"
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        options = ", ".join(f"--{name}" for name in LANGUAGES)
        raise click.UsageError(
            f"the name {path} does not say what the grammar is written in: give one of {options}"
        )
    return SUFFIXES[suffix]


def _read(
    path: str,
    *,
    language: str | None,
    writing: Writing,
    root: str,
    dialect: str,
) -> GrammarSource:
    kind = _language(path, language)
    text = read_text(path)
    found = read_source(kind, text, writing=writing, root=root, dialect=dialect)
    return GrammarSource(name=_named(path), language=kind, text=found.text, grammar=found.grammar)


_WRITING: list[Callable[[Any], Any]] = [
    click.option(
        "--whitespace",
        default="consistent",
        show_default=True,
        type=click.Choice(get_args(Whitespace)),
        help="Of JSON: as json.dumps writes it in any one layout, wherever it may stand, none, or "
        "one space after each separator.",
    ),
    click.option("--any-order", is_flag=True, help="Of properties, not only the declared one."),
    click.option(
        "--any-numbers", is_flag=True, help="1.0 and 1e3 for integers, and numbers like 1e999."
    ),
    click.option("--any-escapes", is_flag=True, help="Strings with any escape of JSON."),
    click.option("--lenient", is_flag=True, help="Leave out keywords that are not supported."),
]


def _argument(*, required: bool) -> Callable[[Any], Any]:
    path = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=str)
    return click.argument("grammar", type=path, required=required)


_LANGUAGES: list[Callable[[Any], Any]] = [
    click.option(
        f"--{name}",
        "language",
        flag_value=name,
        default=None,
        help=f"GRAMMAR is {what}; as {' and '.join(suffixes)} say.",
    )
    for name, (what, suffixes) in LANGUAGES.items()
]

_OF_NOTATIONS: list[Callable[[Any], Any]] = [
    click.option("--root", default="root", show_default=True, help="The rule of GBNF and EBNF."),
    click.option(
        "--dialect",
        default="rust",
        show_default=True,
        type=click.Choice(["rust", "ecma", "python"]),
        help="Of regular expressions.",
    ),
]


def takes_writing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the JSON options to a command, which receives them as `writing: Writing`."""

    @functools.wraps(function)
    def run(
        *args: Any,
        whitespace: Whitespace,
        any_order: bool,
        any_numbers: bool,
        any_escapes: bool,
        lenient: bool,
        **options: Any,
    ) -> Any:
        writing = Writing(
            whitespace=whitespace,
            property_order="any" if any_order else "declared",
            numbers="any" if any_numbers else "plain",
            escapes="any" if any_escapes else "canonical",
            policy="lenient" if lenient else "strict",
        )
        return function(*args, writing=writing, **options)

    return _with(_WRITING, run)


def _with(options: list[Callable[[Any], Any]], run: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        run = option(run)
    return run


def takes_grammar(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add GRAMMAR and its options to a command, which receives them as `source: GrammarSource`."""
    return _taking(function, required=True)


def takes_optional_grammar(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add them to a command that does without; then `source` is `None`."""
    return _taking(function, required=False)


def _taking(function: Callable[..., Any], *, required: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(
        *args: Any,
        grammar: str | None,
        language: str | None,
        writing: Writing,
        root: str,
        dialect: str,
        **options: Any,
    ) -> Any:
        source = None
        if grammar is not None:
            source = _read(grammar, language=language, writing=writing, root=root, dialect=dialect)
        return function(*args, source=source, **options)

    made = takes_writing(_with(_OF_NOTATIONS, run))
    return _with([_argument(required=required), *_LANGUAGES], made)
