"""The tokenizer that a command is given, and the texts that it reads."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import click

from ffwd.cli.grammars import read_text
from ffwd.cli.output import as_text, shown
from ffwd.sources import NamedTokens

_WHERE = (
    "A directory, a tokenizer.json, .model, .tiktoken, tekken.json or .gguf file, or the name of a"
    " model."
)

tokenizer_option = click.option(
    "--tokenizer", "-t", "tokenizer_source", required=True, metavar="TOKENIZER", help=_WHERE
)
"""For commands that need one."""

vocabulary_option = click.option(
    "--tokenizer",
    "-t",
    "tokenizer_source",
    metavar="TOKENIZER",
    help=f"{_WHERE}  [default: each byte a token]",
)
"""For commands that do with bytes."""


class ShownTokens(NamedTokens):
    """A vocabulary and how its tokens are shown."""

    def piece(self, token_id: int) -> str:
        """Return a token for people."""
        return shown(self.vocabulary.token_bytes(token_id), self.name(token_id))

    def data(self, token_id: int) -> dict[str, Any]:
        """Return a token for JSON."""
        text = self.vocabulary.token_bytes(token_id)
        if text is None:
            return {"id": token_id, "control": self.name(token_id)}
        return {"id": token_id, "text": as_text(text)}


def takes_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add TEXT or a file to a command, which receives `text: str`, or standard input."""

    @functools.wraps(function)
    def run(*args: Any, text: str | None, text_file: str | None, **options: Any) -> Any:
        if text is not None and text_file is not None:
            raise click.UsageError("give TEXT or --file, not both")
        if text is None:
            if text_file is None and sys.stdin.isatty():
                raise click.UsageError("give TEXT, --file or a text on standard input")
            text = read_text(text_file or "-")
        return function(*args, text=text, **options)

    file = click.option(
        "--file",
        "text_file",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
        help="Read the text from a file; - is standard input, which is also the default.",
    )
    return click.argument("text", required=False)(file(run))
