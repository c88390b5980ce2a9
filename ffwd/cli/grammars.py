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
from ffwd.cli.places import caret, locate, syntax_error
from ffwd.grammar import Whitespace, Writing

LANGUAGES = {
    # The option: its name, and the suffixes of its files.
    "json-schema": ("JSON Schema", (".json",)),
    "lark": ("Lark", (".lark",)),
    "gbnf": ("GBNF", (".gbnf",)),
    "ebnf": ("EBNF", (".ebnf",)),
    "regex": ("a regular expression", (".regex", ".re")),
}
_BY_SUFFIX = {suffix: name for name, (_, suffixes) in LANGUAGES.items() for suffix in suffixes}


@dataclass(frozen=True, kw_only=True)
class GrammarSource:
    """A grammar as it was given.

    Attributes:
        name: The file's.
        language: A key of `LANGUAGES`.
        text: What the file says.
        grammar: What `ffwd.compile` takes.

    """

    name: str
    language: str
    text: str
    grammar: ffwd.Grammar

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

    def place(self, error: FfwdError) -> tuple[int, int] | None:
        """Return the line and the column of an error."""
        if isinstance(error, GrammarError):
            return error.line, error.column
        pointer = getattr(error, "pointer", None)
        if self.language != "json-schema" or pointer is None:
            return None
        if pointer == "":
            return syntax_error(self.text)
        return locate(self.text, pointer)


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
    if suffix not in _BY_SUFFIX:
        options = ", ".join(f"--{name}" for name in LANGUAGES)
        raise click.UsageError(
            f"the name {path} does not say what the grammar is written in: give one of {options}"
        )
    return _BY_SUFFIX[suffix]


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
    made: ffwd.Grammar
    if kind == "json-schema":
        made = ffwd.grammar.JsonSchema(text, **writing.options())
    elif kind == "lark":
        made = ffwd.lark(text)
    elif kind == "gbnf":
        made = ffwd.gbnf(text, root)
    elif kind == "ebnf":
        made = ffwd.ebnf(text, root)
    else:
        # The final line end of editors is not part of the grammar.
        pattern = text[:-1] if text.endswith("\n") else text
        made = ffwd.regex(pattern, dialect=dialect)  # type: ignore[arg-type]
    return GrammarSource(name=_named(path), language=kind, text=text, grammar=made)


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

_OPTIONS: list[Callable[[Any], Any]] = [
    click.argument(
        "grammar", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=str)
    ),
    *(
        click.option(
            f"--{name}",
            "language",
            flag_value=name,
            default=None,
            help=f"GRAMMAR is {what}; as {' and '.join(suffixes)} say.",
        )
        for name, (what, suffixes) in LANGUAGES.items()
    ),
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

    @functools.wraps(function)
    def run(
        *args: Any,
        grammar: str,
        language: str | None,
        writing: Writing,
        root: str,
        dialect: str,
        **options: Any,
    ) -> Any:
        source = _read(grammar, language=language, writing=writing, root=root, dialect=dialect)
        return function(*args, source=source, **options)

    return _with(_OPTIONS, takes_writing(_with(_OF_NOTATIONS, run)))
