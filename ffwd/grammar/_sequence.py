"""Texts and sequences of grammars."""

from collections.abc import Iterable
from dataclasses import dataclass

from ffwd.grammar._errors import refuse_surrogates
from ffwd.grammar._grammar import Grammar, GrammarLike, as_grammar


@dataclass(frozen=True, eq=False, repr=False)
class Text(Grammar):
    """A verbatim text, made by `lit`.

    Attributes:
        text: The text.
        controls: Whether control tokens in it are meant; see `lit`.

    """

    text: str
    controls: bool = False

    _function = "lit"

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"text must be a str, not {type(self.text).__name__}")
        refuse_surrogates(self.text, "the text")
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class Seq(Grammar):
    """A sequence of grammars, made by `seq`.

    Attributes:
        parts: The grammars; with none it is the empty text.

    """

    parts: tuple[Grammar, ...]

    _function = "seq"

    def __post_init__(self) -> None:
        check_grammars(self.parts, "parts")
        super().__post_init__()

    def _parts(self) -> tuple[Grammar, ...]:
        return self.parts

    def _label(self) -> tuple[()]:
        return ()

    def _arguments(self) -> Iterable[tuple[str, object]]:
        return [("", shown(part)) for part in self.parts]


def lit(text: str, *, controls: bool = False) -> Text:
    """Return the grammar of a verbatim text; within another grammar, a str is the same.

    Args:
        text: The text.
        controls: Whether the name of a control token of the vocabulary in it, such as
            `<tool_call>`, means that token. Without it, ordinary tokens encode the text.

    Raises:
        GrammarError: A lone surrogate in the text, at `line` and `column`.
        TypeError: `text` is not a str.

    """
    return Text(text, controls)


def seq(*parts: GrammarLike) -> Grammar:
    """Return a sequence of grammars with nothing between them; `a + b` is `seq(a, b)`.

    Args:
        parts: Grammars and texts; with none it is the empty text.

    Raises:
        GrammarError: A lone surrogate in a text.
        TypeError: A part is neither a grammar nor a str.

    """
    flat: list[Grammar] = []
    for index, part in enumerate(parts):
        grammar = as_grammar(part, f"part {index}")
        flat.extend(grammar.parts if isinstance(grammar, Seq) else [grammar])
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def check_grammars(values: object, what: str) -> None:
    """Raise an error unless the value is a tuple of grammars."""
    if not isinstance(values, tuple):
        raise TypeError(f"{what} must be a tuple, not {type(values).__name__}")
    for index, value in enumerate(values):
        if not isinstance(value, Grammar):
            raise TypeError(f"{what}[{index}] must be a grammar, not {type(value).__name__}")


def shown(grammar: object) -> object:
    """Return a part as a repr shows it: a text as a str."""
    if isinstance(grammar, Text) and not grammar.controls:
        return grammar.text
    return grammar
