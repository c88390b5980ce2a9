"""Rules that the start of a grammar does not reach."""

from dataclasses import dataclass

from ffwd.grammar._grammar import Grammar
from ffwd.grammar._lower import lower


@dataclass(frozen=True)
class UnusedRule:
    """A rule, or a terminal, that the start of its grammar does not reach.

    Attributes:
        name: Its name.
        notation: Its notation: `"Lark"`, `"GBNF"`, `"EBNF"`, or `"Python"` for a rule of
            `rules`.
        line: The line of its definition, from 1; None for Python.
        column: Its column there, from 1, in characters; None for Python.

    """

    name: str
    notation: str
    line: int | None
    column: int | None


def unused_rules(grammar: Grammar) -> list[UnusedRule]:
    """Return the rules of a grammar that its start does not reach, often misspelt ones.

    They are no error: real grammars have such rules, and other engines ignore them as well. Their
    syntax is checked; names in an unused rule of a Lark grammar may be unknown. Terminals of Lark
    that are only imported are not listed.

    Args:
        grammar: Any grammar. It is parsed and not compiled.

    Returns:
        The rules in the order of their text, grouped by grammar if grammars are nested.

    Raises:
        GrammarError: The grammar cannot be parsed, with `line` and `column`.
        LimitExceededError: A limit was exceeded.
        TypeError: `grammar` is something else.

    """
    if not isinstance(grammar, Grammar):
        raise TypeError(f"grammar must be a grammar, not {type(grammar).__name__}")
    builder, start, _ = lower(grammar)
    return [
        UnusedRule(name, notation, *(place or (None, None)))
        for name, notation, place in builder.unused_rules(start)
    ]
