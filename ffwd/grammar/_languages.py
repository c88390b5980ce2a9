"""Intersections and complements of regular languages."""

from dataclasses import dataclass

from ffwd.grammar._errors import grammar_error
from ffwd.grammar._grammar import Grammar, GrammarLike, as_grammar
from ffwd.grammar._sequence import check_grammars, shown


@dataclass(frozen=True, eq=False, repr=False)
class Intersection(Grammar):
    """Text that several regular grammars all accept, made by `intersection` or `a & b`.

    Attributes:
        parts: The grammars; at least one.

    """

    parts: tuple[Grammar, ...]

    _function = "intersection"

    def __post_init__(self) -> None:
        check_grammars(self.parts, "parts")
        if not self.parts:
            raise grammar_error("an intersection needs at least one grammar")
        super().__post_init__()

    def _parts(self) -> tuple[Grammar, ...]:
        return self.parts

    def _label(self) -> tuple[()]:
        return ()

    def _arguments(self) -> list[tuple[str, object]]:
        return [("", shown(part)) for part in self.parts]


@dataclass(frozen=True, eq=False, repr=False)
class Complement(Grammar):
    """Any text that a regular grammar does not accept, made by `complement` or `~a`.

    Attributes:
        inner: The grammar.

    """

    inner: Grammar

    _function = "complement"

    def __post_init__(self) -> None:
        check_grammars((self.inner,), "inner")
        super().__post_init__()

    def _parts(self) -> tuple[Grammar, ...]:
        return (self.inner,)

    def _label(self) -> tuple[()]:
        return ()

    def _arguments(self) -> list[tuple[str, object]]:
        return [("", shown(self.inner))]


def intersection(*parts: GrammarLike) -> Grammar:
    """Return a grammar for text that all parts accept; `a & b` is `intersection(a, b)`.

    The grammars must be regular: texts, `regex`, `substring_of`, and choices, sequences,
    repetitions, intersections and complements of such, including rules that do not refer to
    themselves. `ffwd.compile` rejects others by name.

    Args:
        parts: Grammars and texts; at least one.

    Raises:
        GrammarError: No grammar, or a lone surrogate in a text.
        TypeError: A part is neither a grammar nor a str.

    """
    flat: list[Grammar] = []
    for index, part in enumerate(parts):
        grammar = as_grammar(part, f"part {index}")
        flat.extend(grammar.parts if isinstance(grammar, Intersection) else [grammar])
    return flat[0] if len(flat) == 1 else Intersection(tuple(flat))


def complement(inner: GrammarLike) -> Grammar:
    """Return a grammar for any text that a regular one rejects; `~a` is `complement(a)`.

    Args:
        inner: A grammar as `intersection` takes them, or a text.

    Raises:
        GrammarError: A lone surrogate in the text.
        TypeError: `inner` is neither a grammar nor a str.

    """
    grammar = as_grammar(inner, "inner")
    return grammar.inner if isinstance(grammar, Complement) else Complement(grammar)
