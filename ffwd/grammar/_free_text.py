"""Text that is free, but for what must not come in it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ffwd.grammar._errors import grammar_error, refuse_surrogates
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._repeat import check_count


@dataclass(frozen=True, eq=False, repr=False)
class AnyText(Grammar):
    """Any text without certain texts in it. Made by `any_text`.

    Attributes:
        excluding: What does not come in it.
        max_chars: How many characters (code points) it has at most; None for any number.

    """

    excluding: tuple[str, ...] = ()
    max_chars: int | None = None

    _function = "any_text"

    def __post_init__(self) -> None:
        check_texts(self.excluding, "excluding")
        if self.max_chars is not None:
            check_count(self.max_chars, "max_chars")
        super().__post_init__()

    def _arguments(self) -> Iterable[tuple[str, object]]:
        if self.excluding:
            yield "excluding", list(self.excluding)
        if self.max_chars is not None:
            yield "max_chars", self.max_chars


@dataclass(frozen=True, eq=False, repr=False)
class TextUntil(Grammar):
    """Any text up to the end of the first of certain texts. Made by `text_until`.

    Attributes:
        stops: What ends it.
        excluding: What does not come in it, beside the stops.
        max_chars: How many characters (code points) it has at most, without the stop.
        controls: Whether control tokens in stops are meant; see `text_until`.

    """

    stops: tuple[str, ...]
    excluding: tuple[str, ...] = ()
    max_chars: int | None = None
    controls: bool = False

    _function = "text_until"

    def __post_init__(self) -> None:
        check_texts(self.stops, "stop")
        if not self.stops:
            raise grammar_error("text needs at least one stop, or it would never end")
        check_texts(self.excluding, "excluding")
        if self.max_chars is not None:
            check_count(self.max_chars, "max_chars")
        super().__post_init__()

    def _arguments(self) -> Iterable[tuple[str, object]]:
        yield "", self.stops[0] if len(self.stops) == 1 else list(self.stops)
        if self.excluding:
            yield "excluding", list(self.excluding)
        if self.controls:
            yield "controls", True
        if self.max_chars is not None:
            yield "max_chars", self.max_chars


def any_text(*, excluding: str | Sequence[str] = (), max_chars: int | None = None) -> AnyText:
    """Any text, also the empty one, without certain texts in it.

    It consists of tokens that are text: control tokens never come in it.

    Args:
        excluding: What does not come in it: a text, or several.
        max_chars: How many characters (code points) it has at most.

    Raises:
        GrammarError: A text to be excluded is empty or has a lone surrogate.
        TypeError: One is not a str, or `max_chars` not an int.

    """
    return AnyText(texts_of(excluding, "excluding"), max_chars)


def text_until(
    stop: str | Sequence[str],
    *,
    include: bool = True,
    excluding: str | Sequence[str] = (),
    max_chars: int | None = None,
    controls: bool = False,
) -> Grammar:
    r"""Any text up to the first place where a stop ends.

    Args:
        stop: A text, or several.
        include: Whether the stop belongs to it. Without it, this is any text in which no stop
            comes, and what follows in the grammar says what ends it:
            `text_until("\n", include=False) + "\n"`.
        excluding: What does not come in it, beside the stops: a text, or several.
        max_chars: How many characters (code points) come before the stop at most.
        controls: Whether the name of a control token of the vocabulary in a stop, such as
            `</think>`, is that token. The name as text does not come in the text either.

    Raises:
        GrammarError: A stop is empty or has a lone surrogate, or there is none.
        TypeError: A stop is not a str, or an option has another type.

    """
    if not isinstance(include, bool):
        raise TypeError(f"include must be a bool, not {type(include).__name__}")
    stops, others = texts_of(stop, "stop"), texts_of(excluding, "excluding")
    until = TextUntil(stops, others, max_chars, controls)
    return until if include else AnyText(stops + others, max_chars)


def check_texts(texts: object, what: str) -> None:
    """Refuse what is not a tuple of texts, none of them empty."""
    if not isinstance(texts, tuple):
        raise TypeError(f"{what} must be a str or a sequence of str, not {type(texts).__name__}")
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{what} must be a str or a sequence of str, not {text!r} in one")
        if not text:
            raise grammar_error(f"{what} must not be empty, for every text has the empty one in it")
        refuse_surrogates(text, what)


def texts_of(texts: str | Sequence[str], what: str) -> tuple[str, ...]:
    """One text, or several, as several."""
    if isinstance(texts, str):
        return (texts,)
    if isinstance(texts, (bytes, Grammar)):
        raise TypeError(f"{what} must be a str or a sequence of str, not {type(texts).__name__}")
    return tuple(texts)
