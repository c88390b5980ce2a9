"""Regular expressions."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ffwd.grammar._errors import grammar_error, refuse_surrogates
from ffwd.grammar._grammar import Grammar

Dialect: TypeAlias = Literal["rust", "ecma", "python"]
"""How a regular expression is written; see `regex`."""

FLAGS = {"rust": "imsxUR", "ecma": "imsuv", "python": "aimsux"}
NAMED = re.compile(r"\\N\{([^{}]{1,256})\}")


@dataclass(frozen=True, eq=False, repr=False)
class Regex(Grammar):
    """Text that a regular expression matches. Made by `regex`.

    Attributes:
        pattern: The expression.
        dialect: How it is written; see `regex`.
        search: Whether the text need only have a part that the expression matches.
        flags: Flags by their letters; see `regex`.

    """

    pattern: str
    dialect: Dialect = "rust"
    search: bool = False
    flags: str = ""

    _function = "regex"

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str):
            raise TypeError(f"pattern must be a str, not {type(self.pattern).__name__}")
        refuse_surrogates(self.pattern, "the pattern")
        if self.dialect not in get_args(Dialect):
            raise ValueError(
                f"dialect must be one of {', '.join(get_args(Dialect))}, not {self.dialect!r}"
            )
        if not isinstance(self.search, bool):
            raise TypeError(f"search must be a bool, not {type(self.search).__name__}")
        if not isinstance(self.flags, str):
            raise TypeError(f"flags must be a str, not {type(self.flags).__name__}")
        known = FLAGS[self.dialect]
        unknown = [flag for flag in self.flags if flag not in known]
        if unknown:
            raise grammar_error(
                f"unknown flag {unknown[0]!r}: the dialect {self.dialect} has {', '.join(known)}"
            )
        super().__post_init__()

    @property
    def characters(self) -> list[tuple[str, str]]:
        """What the pattern's names of characters mean, if its dialect has such.

        A name that means nothing is left to the reader of the pattern.
        """
        if self.dialect != "python" or "\\N" not in self.pattern:
            return []
        named = {name: _named(name) for name in NAMED.findall(self.pattern)}
        return [(name, character) for name, character in named.items() if character]


def regex(
    pattern: str, *, dialect: Dialect = "rust", search: bool = False, flags: str = ""
) -> Regex:
    """Text that a regular expression matches from its first to its last character.

    Whether a quantifier is greedy makes no difference to what is matched. Lookarounds, anchors and
    word boundaries anywhere in a pattern see the text of this grammar and nothing around it.
    References to groups are refused by name, as no regular language has them.

    Args:
        pattern: The expression. `ffwd.compile` reads it, and raises `GrammarError` where it cannot.
        dialect: `"rust"` is that of Rust's regex crate, without lookarounds. `"ecma"` is
            JavaScript's, by code points: read as with the flag `u`, and where that fails as without
            it, with all that Annex B of the standard allows. `"python"` is that of `re` for text,
            as Python 3.11 to 3.13 have it, with inline and scoped flags; an atomic group or a
            possessive quantifier is refused where it cannot be said with a lookahead.
        search: Whether the text need only have a part that the expression matches, as with
            `re.search`; without it the whole text is matched, as with `re.fullmatch`.
        flags: Flags by their letters: of `"rust"` `imsxUR`, of `"ecma"` `imsuv`, of `"python"`
            `aimsux`.

    Raises:
        GrammarError: A lone surrogate in the pattern, at `line` and `column`, or a flag that the
            dialect does not have.
        TypeError: `pattern` or an option has another type.
        ValueError: An unknown dialect.

    """
    return Regex(pattern, dialect, search, flags)


def _named(name: str) -> str:
    """The character with this name; empty if there is none."""
    try:
        character = unicodedata.lookup(name)
    except KeyError:
        return ""
    # A sequence of several characters has a name too, which `re` refuses.
    return character if len(character) == 1 else ""
