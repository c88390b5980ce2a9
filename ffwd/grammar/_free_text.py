"""Free text, without certain texts in it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ffwd.grammar._errors import grammar_error, refuse_surrogates
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._repeat import check_count


@dataclass(frozen=True, eq=False, repr=False)
class AnyText(Grammar):
    """Any text without certain texts in it, made by `any_text`.

    Attributes:
        excluding: The texts that it does not contain.
        max_chars: The most characters (code points); None for any number.

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
    """Any text up to the end of the first of certain texts, made by `text_until`.

    Attributes:
        stops: The texts that end it.
        excluding: Other texts that it does not contain.
        max_chars: The most characters (code points) before the stop.
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
    """Return a grammar for any text, including the empty one, without certain texts in it.

    It consists of tokens with text: it never contains control tokens.

    Args:
        excluding: The texts that it does not contain: one or several.
        max_chars: The most characters (code points).

    Raises:
        GrammarError: An excluded text is empty or has a lone surrogate.
        TypeError: One is not a str, or `max_chars` is not an int.

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
    r"""Return a grammar for any text up to the first end of a stop.

    Args:
        stop: A text, or several.
        include: Whether the stop belongs to it. Without it, this is any text without a stop, and
            the grammar after it decides how it ends: `text_until("\n", include=False) + "\n"`.
        excluding: Other texts that it does not contain: one or several.
        max_chars: The most characters (code points) before the stop.
        controls: Whether the name of a control token of the vocabulary in a stop, such as
            `</think>`, means that token. The text then excludes the name as text too.

    Raises:
        GrammarError: A stop is empty or has a lone surrogate, or none is given.
        TypeError: A stop is not a str, or an option has another type.

    """
    if not isinstance(include, bool):
        raise TypeError(f"include must be a bool, not {type(include).__name__}")
    stops, others = texts_of(stop, "stop"), texts_of(excluding, "excluding")
    until = TextUntil(stops, others, max_chars, controls)
    return until if include else AnyText(stops + others, max_chars)


def check_texts(texts: object, what: str) -> None:
    """Raise an error unless the value is a tuple of non-empty texts."""
    if not isinstance(texts, tuple):
        raise TypeError(f"{what} must be a str or a sequence of str, not {type(texts).__name__}")
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{what} must be a str or a sequence of str, not {text!r} in one")
        if not text:
            raise grammar_error(f"{what} must not be empty, for every text has the empty one in it")
        refuse_surrogates(text, what)


def texts_of(texts: str | Sequence[str], what: str) -> tuple[str, ...]:
    """Return one text or several as a tuple."""
    if isinstance(texts, str):
        return (texts,)
    if isinstance(texts, (bytes, Grammar)):
        raise TypeError(f"{what} must be a str or a sequence of str, not {type(texts).__name__}")
    return tuple(texts)
