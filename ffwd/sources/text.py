"""A grammar as a text in one of five notations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ffwd
from ffwd._native import FfwdError, GrammarError
from ffwd.grammar import Grammar, Writing
from ffwd.sources.places import locate, syntax_error

LANGUAGES = {
    # The option: its name, and the suffixes of its files.
    "json-schema": ("JSON Schema", (".json",)),
    "lark": ("Lark", (".lark",)),
    "gbnf": ("GBNF", (".gbnf",)),
    "ebnf": ("EBNF", (".ebnf",)),
    "regex": ("a regular expression", (".regex", ".re")),
}
"""The notations."""
SUFFIXES = {suffix: name for name, (_, suffixes) in LANGUAGES.items() for suffix in suffixes}
"""The notation of each suffix of a file."""


@dataclass(frozen=True, kw_only=True)
class SourceText:
    """A grammar and its text.

    Attributes:
        language: A key of `LANGUAGES`.
        text: The text.
        grammar: What `ffwd.compile` takes.

    """

    language: str
    text: str
    grammar: Grammar

    def place(self, error: FfwdError) -> tuple[int, int] | None:
        """Return the line and the column of an error, from 1; None if it has none in the text."""
        if isinstance(error, GrammarError):
            return error.line, error.column
        pointer = getattr(error, "pointer", None)
        if self.language != "json-schema" or pointer is None:
            line, column = getattr(error, "line", None), getattr(error, "column", None)
            return None if line is None or column is None else (line, column)
        if pointer == "":
            return syntax_error(self.text)
        return locate(self.text, pointer)


def read_source(
    language: str,
    text: str,
    *,
    writing: Writing,
    root: str = "root",
    dialect: Any = "rust",
    flags: str = "",
    registry: Sequence[tuple[str, str]] = (),
) -> SourceText:
    """Return the grammar of a text.

    Args:
        language: A key of `LANGUAGES`.
        text: The text; the final line end of a regular expression is not part of it.
        writing: The options of a JSON Schema.
        root: The start rule of GBNF and EBNF.
        dialect: The dialect of a regular expression.
        flags: The flags of a regular expression.
        registry: The documents that a JSON Schema refers to, as pairs of a URI and JSON text.

    Raises:
        GrammarError: A lone surrogate in the text, at `line` and `column`, or an unknown flag.
        InvalidSchemaError: A lone surrogate in the text of a schema.

    """
    made: Grammar
    if language == "json-schema":
        made = ffwd.grammar.JsonSchema(text, registry=tuple(registry), **writing.options())
    elif language == "lark":
        made = ffwd.lark(text)
    elif language == "gbnf":
        made = ffwd.gbnf(text, root)
    elif language == "ebnf":
        made = ffwd.ebnf(text, root)
    else:
        # The final line end of editors is not part of the grammar.
        pattern = text[:-1] if text.endswith("\n") else text
        made = ffwd.regex(pattern, dialect=dialect, flags=flags)
    return SourceText(language=language, text=text, grammar=made)
