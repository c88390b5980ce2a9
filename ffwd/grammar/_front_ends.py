"""Grammars that are written as text: Lark, GBNF and EBNF. `ffwd.compile` reads them."""

from dataclasses import dataclass

from ffwd.grammar._errors import refuse_surrogates
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._rules import check_name


@dataclass(frozen=True, eq=False, repr=False)
class Lark(Grammar):
    """A grammar in Lark's notation, in the variant of llguidance. Made by `lark`.

    Attributes:
        text: The grammar.

    """

    text: str

    _function = "lark"

    def __post_init__(self) -> None:
        _check_text(self.text)
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class _Bnf(Grammar):
    """A grammar of rules that are defined by `::=`.

    Attributes:
        text: The grammar.
        root: The rule that says what a text is.

    """

    text: str
    root: str = "root"

    def __post_init__(self) -> None:
        _check_text(self.text)
        check_name(self.root, "root")
        super().__post_init__()


class Gbnf(_Bnf):
    """A grammar in the notation of llama.cpp. Made by `gbnf`."""

    _function = "gbnf"


class Ebnf(_Bnf):
    """A grammar in EBNF as XGrammar reads it. Made by `ebnf`."""

    _function = "ebnf"


def lark(text: str) -> Lark:
    """A grammar in Lark's notation, in the variant of llguidance; its start is `start`.

    `ffwd.compile` reads it, and raises `GrammarError` with `line` and `column` where it cannot.

    Raises:
        GrammarError: A lone surrogate in the text, at `line` and `column`.
        TypeError: `text` is not a str.

    """
    return Lark(text)


def gbnf(text: str, root: str = "root") -> Gbnf:
    """A grammar in GBNF, the notation of llama.cpp.

    `ffwd.compile` reads it, and raises `GrammarError` with `line` and `column` where it cannot.

    Args:
        text: The grammar.
        root: The rule that says what a text is.

    Raises:
        GrammarError: A lone surrogate in the text, at `line` and `column`.
        TypeError: `text` or `root` is not a str.

    """
    return Gbnf(text, root)


def ebnf(text: str, root: str = "root") -> Ebnf:
    """A grammar in EBNF as XGrammar reads it.

    `ffwd.compile` reads it, and raises `GrammarError` with `line` and `column` where it cannot.

    Args:
        text: The grammar.
        root: The rule that says what a text is.

    Raises:
        GrammarError: A lone surrogate in the text, at `line` and `column`.
        TypeError: `text` or `root` is not a str.

    """
    return Ebnf(text, root)


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    refuse_surrogates(text, "the grammar")
