"""One of several grammars."""

from collections.abc import Sequence
from dataclasses import dataclass

from ffwd.grammar._errors import grammar_error, refuse_surrogates
from ffwd.grammar._grammar import Grammar, GrammarLike
from ffwd.grammar._text import lone_surrogate


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Grammar):
    """One of several grammars or texts, made by `choice`.

    Attributes:
        options: Grammars, and texts verbatim; at least one.

    """

    options: tuple[GrammarLike, ...]

    _function = "choice"

    def __post_init__(self) -> None:
        if not isinstance(self.options, tuple):
            raise TypeError(f"options must be a tuple, not {type(self.options).__name__}")
        if not self.options:
            raise grammar_error("a choice needs at least one option")
        # There may be a million of them, so all are checked together, and single ones only for the
        # error.
        texts = [option for option in self.options if isinstance(option, str)]
        if len(texts) + len(self._parts()) < len(self.options) or (
            lone_surrogate("".join(texts)) is not None
        ):
            self._refuse()
        super().__post_init__()

    def _refuse(self) -> None:
        """Raise the error of the first option that has one."""
        for index, option in enumerate(self.options):
            if isinstance(option, str):
                refuse_surrogates(option, f"option {index}")
            elif not isinstance(option, Grammar):
                raise TypeError(
                    f"option {index} must be a grammar or a str, not {type(option).__name__}"
                )

    def _parts(self) -> tuple[Grammar, ...]:
        return tuple([option for option in self.options if isinstance(option, Grammar)])

    def _label(self) -> tuple[object, ...]:
        if not self._parts():
            return self.options
        return tuple([option if isinstance(option, str) else None for option in self.options])

    def _arguments(self) -> list[tuple[str, object]]:
        return [("", list(self.options))]

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The options, if all are texts."""
        texts = tuple([option for option in self.options if isinstance(option, str)])
        return texts if len(texts) == len(self.options) else None


def choice(options: Sequence[GrammarLike]) -> Choice:
    """Return a grammar for one of several; `a | b` is `choice([a, b])`.

    Args:
        options: Grammars, and texts verbatim, for instance in a list; at least one. Repeated ones
            count once.

    Raises:
        GrammarError: No option, or a lone surrogate in one, at `line` and `column` of that option.
        TypeError: `options` is a str, or something in it is neither a grammar nor a str.

    """
    if isinstance(options, (str, bytes, Grammar)):
        # A str is a sequence of str, so this mistake would compile to a choice of characters.
        raise TypeError(
            f"options must be a sequence of grammars and str, not one {type(options).__name__}"
        )
    return Choice(tuple(options))


def either(left: GrammarLike, right: GrammarLike) -> Choice:
    """Return `left | right`, with nested choices flattened."""
    options: list[GrammarLike] = []
    for option in (left, right):
        options.extend(option.options if isinstance(option, Choice) else [option])
    return Choice(tuple(options))
