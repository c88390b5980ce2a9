"""Named rules, which may contain themselves."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ffwd.grammar._errors import grammar_error, refuse_surrogates
from ffwd.grammar._grammar import Grammar, GrammarLike, as_grammar


@dataclass(frozen=True, eq=False, repr=False)
class RuleReference(Grammar):
    """A reference to a rule around it, made by `rule`.

    Attributes:
        name: The name of the rule.

    """

    name: str

    _function = "rule"

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a rule")
        super().__post_init__()

    def _unbound(self, names: frozenset[str]) -> frozenset[str]:
        return names | {self.name}


@dataclass(frozen=True, eq=False, repr=False)
class Rules(Grammar):
    """Rules that may refer to each other and to themselves, made by `rules` and `rule`.

    Attributes:
        definitions: Pairs of a name and its grammar; names hold within all of these grammars.
        start: The name of the start rule.

    """

    definitions: tuple[tuple[str, Grammar], ...]
    start: str

    _function = "rules"

    def __post_init__(self) -> None:
        names = [name for name, _ in self.definitions]
        for name, body in self.definitions:
            check_name(name, "the name of a rule")
            if not isinstance(body, Grammar):
                raise TypeError(f"rule {name!r} must be a grammar, not {type(body).__name__}")
        if len(set(names)) < len(names):
            raise grammar_error("a rule is defined twice")
        if self.start not in names:
            raise grammar_error(f"the start is {self.start!r}, and no rule has that name")
        super().__post_init__()

    def _parts(self) -> tuple[Grammar, ...]:
        return tuple(body for _, body in self.definitions)

    def _label(self) -> tuple[str, ...]:
        return (self.start, *(name for name, _ in self.definitions))

    def _unbound(self, names: frozenset[str]) -> frozenset[str]:
        return names - {name for name, _ in self.definitions}

    def _arguments(self) -> Iterable[tuple[str, object]]:
        yield "", dict(self.definitions)
        if self.start != self.definitions[0][0]:
            yield "start", self.start


def rule(name: str, body: GrammarLike | None = None) -> Grammar:
    """Return a named rule or a reference to one.

    `rule(name)` refers to that name in the innermost `rules` or `rule` around it. `rule(name,
    body)` is `body`, in which `rule(name)` is `body` again::

        nested = rule("nested", "(" + repeat(rule("nested")) + ")")

    Rules that refer to each other are defined together, by `rules`.

    Args:
        name: A non-empty text, which errors and reports show.
        body: The grammar of the rule.

    Raises:
        GrammarError: The name is empty or has a lone surrogate.
        TypeError: The name is not a str, or the body neither a grammar nor a str.

    """
    if body is None:
        return RuleReference(name)
    return Rules(((name, as_grammar(body, "body")),), name)


def rules(definitions: Mapping[str, GrammarLike], start: str | None = None) -> Rules:
    """Return a grammar of rules that may refer to each other and to themselves by `rule(name)`.

    For instance::

        rules({
            "sum": rule("sum") + "+" + rule("product") | rule("product"),
            "product": rule("product") + "*" + rule("atom") | rule("atom"),
            "atom": regex("[0-9]+") | "(" + rule("sum") + ")",
        })

    If a grammar with rules is part of another, a name refers to the innermost rule.

    Args:
        definitions: The grammar of each name, in any order.
        start: The name of the start rule; by default the first one.

    Raises:
        GrammarError: No rule is given, none is called `start`, or a name is empty.
        TypeError: A definition is neither a grammar nor a str.

    """
    if not isinstance(definitions, Mapping):
        raise TypeError(f"definitions must be a mapping, not {type(definitions).__name__}")
    if not definitions:
        raise grammar_error("rules need at least one definition")
    bodies = tuple((name, as_grammar(body, f"rule {name!r}")) for name, body in definitions.items())
    return Rules(bodies, bodies[0][0] if start is None else start)


def check_name(name: object, what: str) -> None:
    """Raise an error for an invalid name."""
    if not isinstance(name, str):
        raise TypeError(f"{what} must be a str, not {type(name).__name__}")
    if not name:
        raise grammar_error(f"{what} must not be empty")
    refuse_surrogates(name, what)
