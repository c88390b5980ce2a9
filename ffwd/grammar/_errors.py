"""Errors about grammars that Python finds before the native core sees them."""

from ffwd._native import GrammarError
from ffwd.grammar._text import lone_surrogate


def grammar_error(message: str, *, line: int = 1, column: int = 1) -> GrammarError:
    """An error at a place of a text; both count from 1."""
    error = GrammarError(message)
    error.line = line
    error.column = column
    return error


def refuse_surrogates(text: str, what: str) -> None:
    """Refuse a text that has no UTF-8 form."""
    index = lone_surrogate(text)
    if index is not None:
        before = text[:index]
        raise grammar_error(
            f"{what} has a lone surrogate at index {index}, which UTF-8 cannot represent",
            line=before.count("\n") + 1,
            column=index - before.rfind("\n"),
        )
