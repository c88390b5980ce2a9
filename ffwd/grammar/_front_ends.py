"""Grammars written as text, which `ffwd.compile` parses: Lark, GBNF and EBNF."""

from dataclasses import dataclass

from ffwd.grammar._errors import refuse_surrogates
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._rules import check_name


@dataclass(frozen=True, eq=False, repr=False)
class Lark(Grammar):
    """A grammar in Lark's notation, in the variant of llguidance, made by `lark`.

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
    """A grammar whose rules are defined by `::=`.

    Attributes:
        text: The grammar.
        root: The start rule.

    """

    text: str
    root: str = "root"

    def __post_init__(self) -> None:
        _check_text(self.text)
        check_name(self.root, "root")
        super().__post_init__()


class Gbnf(_Bnf):
    """A grammar in the notation of llama.cpp, made by `gbnf`."""

    _function = "gbnf"


class Ebnf(_Bnf):
    """A grammar in XGrammar's dialect of EBNF, made by `ebnf`."""

    _function = "ebnf"


def lark(text: str) -> Lark:
    """Return a grammar in Lark's notation (llguidance's variant), with the start rule `start`.

    `ffwd.compile` parses it, and raises `GrammarError` with `line` and `column` for an error.

    Raises:
        GrammarError: A lone surrogate in the text, at `line` and `column`.
        TypeError: `text` is not a str.

    """
    return Lark(text)


def gbnf(text: str, root: str = "root") -> Gbnf:
    """Return a grammar in GBNF, the notation of llama.cpp.

    `ffwd.compile` parses it, and raises `GrammarError` with `line` and `column` for an error.

    Args:
        text: The grammar.
        root: The start rule.

    Raises:
        GrammarError: A lone surrogate in the text, at `line` and `column`.
        TypeError: `text` or `root` is not a str.

    """
    return Gbnf(text, root)


def ebnf(text: str, root: str = "root") -> Ebnf:
    """Return a grammar in XGrammar's dialect of EBNF.

    `ffwd.compile` parses it, and raises `GrammarError` with `line` and `column` for an error.

    Args:
        text: The grammar.
        root: The start rule.

    Raises:
        GrammarError: A lone surrogate in the text, at `line` and `column`.
        TypeError: `text` or `root` is not a str.

    """
    return Ebnf(text, root)


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    refuse_surrogates(text, "the grammar")
