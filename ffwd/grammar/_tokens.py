"""Tokens that the model must write as a whole."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ffwd.grammar._errors import grammar_error
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._repeat import MAX_COUNT
from ffwd.grammar._rules import check_name

TokenRange: TypeAlias = tuple[int, int]
"""Token ids from the first to the last, both included."""


@dataclass(frozen=True, eq=False, repr=False)
class Tokens(Grammar):
    """One token, made by `token` and `tokens`.

    Attributes:
        items: Ids, ranges of ids, and names.
        exclude: Whether it is any other token.

    """

    items: tuple[int | str | TokenRange, ...]
    exclude: bool = False

    _function = "tokens"

    def __post_init__(self) -> None:
        if not isinstance(self.items, tuple):
            raise TypeError(f"items must be a tuple, not {type(self.items).__name__}")
        for item in self.items:
            _check_item(item)
        if not isinstance(self.exclude, bool):
            raise TypeError(f"exclude must be a bool, not {type(self.exclude).__name__}")
        if not self.items and not self.exclude:
            raise grammar_error("tokens need at least one token, or exclude=True for any token")
        super().__post_init__()

    def _arguments(self) -> Iterable[tuple[str, object]]:
        yield "", list(self.items)
        if self.exclude:
            yield "exclude", True


def token(token: int | str) -> Tokens:
    """Return a grammar for one token, usually one without text, such as `<|im_end|>`.

    Args:
        token: Its id, or its name: the content of a special or added token of the tokenizer.
                    `ffwd.compile` raises `GrammarError` if the vocabulary lacks it.

    Raises:
        GrammarError: A negative id, or an empty name.
        TypeError: Neither an int nor a str.

    """
    return Tokens((token,))


def tokens(items: Iterable[int | str | TokenRange | range], *, exclude: bool = False) -> Tokens:
    """Return a grammar for one of several tokens, or for any other token.

    Args:
        items: Ids, names, and ranges: `(first, last)` with both included, or a `range` with step 1.
        exclude: Any token except these. It never includes tokens that end the output.

    Raises:
        GrammarError: No token, a negative id, an empty range or an empty name.
        TypeError: An item of another type.

    """
    if isinstance(items, (str, bytes)):
        raise TypeError(f"items must be several tokens, not one {type(items).__name__}")
    flat: list[int | str | TokenRange] = []
    for item in items:
        if isinstance(item, range):
            if item.step != 1 or not item:
                raise grammar_error(f"a range of tokens must have step 1 and a token, not {item}")
            flat.append((item.start, item.stop - 1))
        else:
            flat.append(item)
    return Tokens(tuple(flat), exclude)


def _check_item(item: object) -> None:
    if isinstance(item, str):
        check_name(item, "the name of a token")
        return
    ids = item if isinstance(item, tuple) else (item,)
    if len(ids) not in (1, 2) or not all(type(value) is int for value in ids):
        raise TypeError(f"a token must be an id, a pair of ids or a name, not {item!r}")
    if not 0 <= ids[0] <= ids[-1] <= MAX_COUNT:
        raise grammar_error(f"no token has the id {item!r}")
