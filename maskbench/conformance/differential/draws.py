"""Grammars drawn at random, of regular expressions, terminals and rules."""

from __future__ import annotations

import random
from dataclasses import dataclass

LETTERS = ("a", "b", "c", "0", "1", "é", "🐢")
PUNCTUATION = (" ", '"', "\\", "-")
"""Only in literal texts."""
_FEW = ("a", "b", "c", "1")


@dataclass(frozen=True)
class VerbatimText:
    """A verbatim text; empty only as a separate alternative."""

    text: str


@dataclass(frozen=True)
class Chars:
    """One character of some, or, `negated`, any other; of none and negated, any but a line feed."""

    chars: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True)
class Sequence:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """One of several."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """At least `least` times, at most `most`."""

    inner: Node
    least: int
    most: int | None


@dataclass(frozen=True)
class Both:
    """The intersection of two regular languages."""

    left: Node
    right: Node


@dataclass(frozen=True)
class Not:
    """The complement of a regular language."""

    inner: Node


@dataclass(frozen=True)
class RuleNode:
    """The rule of a number."""

    number: int


@dataclass(frozen=True)
class Terminal:
    """The terminal of a number."""

    number: int


Node = Terminal | VerbatimText | Chars | Sequence | Choice | Repeat | Both | Not | RuleNode


def draw_regular(source: random.Random, depth: int = 4) -> Node:
    """Return a regular language without `Both` and `Not`."""
    return _Draw(source, rules=0).node(depth)


def draw_terminal(source: random.Random) -> Node:
    """Return a regular language with `Both` and `Not`, as a terminal of Lark may be."""
    match source.randrange(4):
        case 0:
            return Both(draw_regular(source, 3), draw_regular(source, 3))
        case 1:
            return Both(draw_regular(source, 3), Not(draw_regular(source, 2)))
        case 2:
            inner = Both(draw_regular(source, 2), Not(draw_regular(source, 2)))
            return Sequence((inner, draw_regular(source, 2)))
        case _:
            return Choice((Not(draw_regular(source, 3)), draw_regular(source, 2)))


def draw_rules(source: random.Random) -> tuple[Node, ...]:
    """Return rules that may contain each other, each with a text; the first is the start.

    They are written with lexemes of one character, so that it does not matter how a lexer finds
    them.
    """
    count = source.randint(1, 4)
    draw = _Draw(source, rules=count)
    found = []
    for _ in range(count):
        # Without rules, so that each rule comes to an end.
        ways = [_Draw(source, rules=0).node(1)]
        ways += [draw.node(2) for _ in range(source.randint(0, 2))]
        source.shuffle(ways)
        found.append(Choice(tuple(ways)) if len(ways) > 1 else ways[0])
    return tuple(found)


@dataclass(frozen=True)
class Lexed:
    """Rules over terminals, which a lexer finds by the longest match."""

    rules: tuple[Node, ...]
    terminals: tuple[Node, ...]
    ignored: bool
    """Whether spaces may stand between lexemes."""


def draw_lexed(source: random.Random) -> Lexed:
    """Return terminals with overlaps, nesting or empty texts, and rules over them."""
    terminals = source.randint(1, 3)
    count = source.randint(1, 3)
    draw = _Draw(source, rules=count, terminals=terminals)
    rules = []
    for _ in range(count):
        ways: list[Node] = [Terminal(source.randrange(terminals))]
        ways += [draw.node(2) for _ in range(source.randint(0, 2))]
        rules.append(Choice(tuple(ways)))
    few = _Draw(source, rules=0, letters=_FEW)
    return Lexed(tuple(rules), tuple(few.node(2) for _ in range(terminals)), source.random() < 0.3)


class _Draw:
    def __init__(
        self,
        source: random.Random,
        rules: int,
        terminals: int = 0,
        letters: tuple[str, ...] = LETTERS,
    ) -> None:
        self._source = source
        self._rules = rules
        self._terminals = terminals
        self._letters = letters

    def node(self, depth: int) -> Node:
        source = self._source
        if depth <= 0 or source.random() < 0.2:
            return self._leaf()
        match source.choice(("sequence", "sequence", "choice", "repeat")):
            case "sequence":
                return Sequence(tuple(self.node(depth - 1) for _ in range(source.randint(2, 3))))
            case "choice":
                options = [self.node(depth - 1) for _ in range(source.randint(2, 3))]
                if source.random() < 0.15:
                    options.append(VerbatimText(""))
                return Choice(tuple(options))
            case _:
                least, most = source.choice(
                    ((0, None), (1, None), (0, 1), (2, 2), (0, 2), (1, 3), (2, None), (3, 5))
                )
                return Repeat(self.node(depth - 1), least, most)

    def _leaf(self) -> Node:
        source = self._source
        if self._terminals:
            match source.choice(("rule", "terminal", "terminal", "text")):
                case "rule":
                    return RuleNode(source.randrange(self._rules))
                case "terminal":
                    return Terminal(source.randrange(self._terminals))
                case _:
                    return VerbatimText("".join(source.choices(_FEW, k=source.choice((1, 1, 2)))))
        if self._rules and source.random() < 0.45:
            return RuleNode(source.randrange(self._rules))
        chance = source.random()
        if chance < 0.5:
            letters = self._letters if source.random() < 0.8 else PUNCTUATION
            return VerbatimText("".join(source.choices(letters, k=source.choice((1, 1, 1, 2, 3)))))
        if chance < 0.9 or self._rules:
            return Chars(tuple(source.sample(self._letters, source.randint(1, 4))), chance > 0.8)
        return Chars((), negated=True)


def listed(node: Node) -> frozenset[str]:
    """Return the characters that a language names; it treats all others equally."""
    match node:
        case VerbatimText(text):
            return frozenset(text)
        case Chars(chars, negated):
            return frozenset(chars) | ({"\n"} if negated and not chars else set())
        case Sequence(parts) | Choice(parts):
            return frozenset().union(*map(listed, parts))
        case Repeat(inner) | Not(inner):
            return listed(inner)
        case Both(left, right):
            return listed(left) | listed(right)
        case _:
            return frozenset()
