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
    """Text that a regular expression matches, made by `regex`.

    Attributes:
        pattern: The expression.
        dialect: Its syntax; see `regex`.
        search: Whether a match within the text suffices.
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
        """Return the named characters of the pattern, if its dialect has names.

        The parser of the pattern reports unknown names.
        """
        if self.dialect != "python" or "\\N" not in self.pattern:
            return []
        named = {name: _named(name) for name in NAMED.findall(self.pattern)}
        return [(name, character) for name, character in named.items() if character]


def regex(
    pattern: str, *, dialect: Dialect = "rust", search: bool = False, flags: str = ""
) -> Regex:
    """Return a grammar for text that a regular expression matches as a whole.

    Greedy and lazy quantifiers match the same texts. Lookarounds, anchors and word boundaries see
    the text of this grammar and nothing around it. Backreferences are refused by name, because no
    regular language has them.

    Args:
        pattern: The expression. `ffwd.compile` parses it, and raises `GrammarError` for an error.
        dialect: `"rust"` is that of Rust's regex crate, without lookarounds. `"ecma"` is
            JavaScript's, by code points: parsed as with the flag `u`, and if that fails as without
            it, with Annex B of the standard. `"python"` is that of `re` for text, as in Python 3.11
            to 3.13, with inline and scoped flags; an atomic group or a possessive quantifier is
            refused unless a lookahead can express it.
        search: Whether a match within the text suffices, as with `re.search`; without it the whole
            text must match, as with `re.fullmatch`.
        flags: Flags by their letters: `imsxUR` for `"rust"`, `imsuv` for `"ecma"`, `aimsux` for
            `"python"`.

    Raises:
        GrammarError: A lone surrogate in the pattern, at `line` and `column`, or a flag that the
            dialect does not have.
        TypeError: `pattern` or an option has another type.
        ValueError: An unknown dialect.

    """
    return Regex(pattern, dialect, search, flags)


def _named(name: str) -> str:
    """Return the character with this name; empty if the name is unknown."""
    try:
        character = unicodedata.lookup(name)
    except KeyError:
        return ""
    # A sequence of several characters has a name too, which `re` refuses.
    return character if len(character) == 1 else ""
