"""Rules that no text of a grammar needs."""

from dataclasses import dataclass

from ffwd.grammar._grammar import Grammar
from ffwd.grammar._lower import lower


@dataclass(frozen=True)
class UnusedRule:
    """A rule, or a terminal, that the start of its grammar does not reach.

    Attributes:
        name: Its name.
        notation: What it is written in: `"Lark"`, `"GBNF"`, `"EBNF"`, or `"Python"` for a rule of
            `rules`.
        line: The line in which it is defined, from 1; None for Python.
        column: Its column there, from 1, in characters; None for Python.

    """

    name: str
    notation: str
    line: int | None
    column: int | None


def unused_rules(grammar: Grammar) -> list[UnusedRule]:
    """The rules of a grammar that its texts do not need, often by a slip.

    They are no error: grammars in use have such rules, and other engines leave them out as well.
    What they say is checked for its syntax; names in an unused rule of a Lark grammar may be
    unknown. Terminals of Lark that are only imported are not listed.

    Args:
        grammar: Any grammar. It is read and not compiled.

    Returns:
        The rules in the order of their text; of grammars that are nested in each other, by grammar.

    Raises:
        GrammarError: The grammar cannot be read, with `line` and `column`.
        LimitExceededError: A budget ran out.
        TypeError: `grammar` is something else.

    """
    if not isinstance(grammar, Grammar):
        raise TypeError(f"grammar must be a grammar, not {type(grammar).__name__}")
    builder, start, _ = lower(grammar)
    return [
        UnusedRule(name, notation, *(place or (None, None)))
        for name, notation, place in builder.unused_rules(start)
    ]
