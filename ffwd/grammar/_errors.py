"""Errors of grammars that Python finds before the native core does."""

from ffwd._native import GrammarError
from ffwd.grammar._text import lone_surrogate


def grammar_error(message: str, *, line: int = 1, column: int = 1) -> GrammarError:
    """Return an error at a line and column of a text; both count from 1."""
    error = GrammarError(message)
    error.line = line
    error.column = column
    return error


def refuse_surrogates(text: str, what: str) -> None:
    """Raise an error for a text that has no UTF-8 form."""
    index = lone_surrogate(text)
    if index is not None:
        before = text[:index]
        raise grammar_error(
            f"{what} has a lone surrogate at index {index}, which UTF-8 cannot represent",
            line=before.count("\n") + 1,
            column=index - before.rfind("\n"),
        )
