"""Parts of a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ffwd._native import text_chunks
from ffwd.grammar._errors import refuse_surrogates
from ffwd.grammar._grammar import Grammar

Unit: TypeAlias = Literal["chunks", "words", "chars"]
"""What the parts of a text consist of; see `substring_of`."""


@dataclass(frozen=True, eq=False, repr=False)
class Substring(Grammar):
    """Any run of adjacent chunks of a text, made by `substring_of`.

    Attributes:
        chunks: The chunks.

    """

    chunks: tuple[str, ...]

    _function = "substring_of"

    def __post_init__(self) -> None:
        if not isinstance(self.chunks, tuple):
            raise TypeError(f"chunks must be a tuple, not {type(self.chunks).__name__}")
        for index, chunk in enumerate(self.chunks):
            if not isinstance(chunk, str):
                raise TypeError(f"chunk {index} must be a str, not {type(chunk).__name__}")
            refuse_surrogates(chunk, f"chunk {index}")
        super().__post_init__()

    def _arguments(self) -> list[tuple[str, object]]:
        return [("", list(self.chunks))]


def substring_of(text: str | Sequence[str], *, by: Unit | None = None) -> Substring:
    """Return a grammar for any part of a text, for answers that quote.

    It accepts all runs of the text's chunks, and the empty text. Its cost is linear in the length
    of the text.

    Args:
        text: The text, or its chunks.
        by: The chunks: `"words"` (runs of letters, digits and `_`, runs of white space, and runs of
            anything else), `"chars"`, or `"chunks"`, which are given. The default is `"words"` for
            a str and `"chunks"` for anything else.

    Raises:
        GrammarError: A lone surrogate in the text, at `line` and `column`.
        TypeError: `text` is neither a str nor a sequence of them, or is a str with `by="chunks"`.
        ValueError: An unknown `by`.

    """
    if by is not None and by not in get_args(Unit):
        raise ValueError(f"by must be one of {', '.join(get_args(Unit))}, not {by!r}")
    if isinstance(text, str):
        if by == "chunks":
            raise TypeError("by='chunks' needs a sequence of str, not one str")
        refuse_surrogates(text, "the text")
        return Substring(tuple(text_chunks(text, by or "words")))
    if by not in (None, "chunks"):
        raise TypeError(f"by={by!r} needs a str, not {type(text).__name__}")
    return Substring(tuple(text))
