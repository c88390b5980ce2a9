"""Conversion of Python grammars to nodes of the native core."""

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ffwd._native import CompileMeter, GrammarBuilder
from ffwd.grammar._choice import Choice
from ffwd.grammar._controls import Controls, Piece
from ffwd.grammar._dispatch import Dispatch
from ffwd.grammar._errors import grammar_error
from ffwd.grammar._free_text import AnyText, TextUntil
from ffwd.grammar._front_ends import Ebnf, Gbnf, Lark
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._kinds import JsonSchema
from ffwd.grammar._languages import Complement, Intersection
from ffwd.grammar._regex import Regex
from ffwd.grammar._repeat import Repeat
from ffwd.grammar._rules import RuleReference, Rules
from ffwd.grammar._sequence import Seq, Text
from ffwd.grammar._shared_writing import SharedWriting
from ffwd.grammar._spans import Limit, Span
from ffwd.grammar._string import StringText
from ffwd.grammar._substring import Substring
from ffwd.grammar._tokens import Tokens
from ffwd.grammar._typed import TypedSchema

# Each of these is a separate free text, which must exclude all the others.
MAX_OVERLAPPING = 8

Scope: TypeAlias = Mapping[str, int]
"""The rules that names mean at one place."""

Key: TypeAlias = tuple[int, tuple[tuple[str, int], ...]]
"""A grammar, and the rules that the names mean that it does not define itself."""


@dataclass
class Lowering:
    """Adds grammars to a builder, shared parts once, without recursion.

    Attributes:
        builder: The builder that receives the nodes.
        controls: The names of the vocabulary's control tokens.
        writing: The JSON options of the schemas added so far.

    """

    builder: GrammarBuilder
    controls: Controls
    writing: SharedWriting = field(default_factory=SharedWriting)
    _nodes: dict[Key, int] = field(default_factory=dict)
    _scopes: dict[Key, Scope] = field(default_factory=dict)

    def add(self, root: Grammar) -> int:
        """Add a grammar, and return its node.

        Raises:
            GrammarError: An undefined rule, a pattern or grammar that cannot be parsed, or JSON
                Schemas with different writing options.
            LimitExceededError: A limit was exceeded.

        """
        if root._free:
            names = ", ".join(map(repr, sorted(root._free)))
            raise grammar_error(f"not defined by any rules(…) around its use: the rule {names}")
        # A grammar is met twice: before its parts and after them.
        coming: list[tuple[Grammar, Scope]] = [(root, {})]
        while coming:
            grammar, scope = coming[-1]
            key = _key(grammar, scope)
            if key in self._nodes:
                coming.pop()
                continue
            inner = self._inside(grammar, scope, key)
            parts = [(part, _key(part, inner)) for part in grammar._parts()]
            missing = [(part, inner) for part, key in parts if key not in self._nodes]
            if missing:
                coming.extend(reversed(missing))
                continue
            coming.pop()
            nodes = [self._nodes[key] for _, key in parts]
            self._nodes[key] = _BUILD[type(grammar)](self, grammar, nodes, inner)
        return self._nodes[_key(root, {})]

    def _inside(self, grammar: Grammar, scope: Scope, key: Key) -> Scope:
        """Return the scope of names for the parts of a grammar."""
        if not isinstance(grammar, Rules):
            return scope
        if key not in self._scopes:
            own = {name: self.builder.declare(name) for name, _ in grammar.definitions}
            self._scopes[key] = {**scope, **own}
        return self._scopes[key]

    def _text(self, grammar: Text, nodes: list[int], scope: Scope) -> int:
        if not grammar.controls:
            return self.builder.text(grammar.text)
        return self._pieces(self.controls.split(grammar.text))

    def _pieces(self, pieces: list[Piece]) -> int:
        """Add a sequence of texts and control tokens."""
        add = self.builder
        return add.seq(
            [add.tokens([text]) if is_token else add.text(text) for text, is_token in pieces]
        )

    def _choice(self, grammar: Choice, nodes: list[int], scope: Scope) -> int:
        texts = [option for option in grammar.options if isinstance(option, str)]
        return self.builder.choice(([self.builder.texts(texts)] if texts else []) + nodes)

    def _repeat(self, grammar: Repeat, nodes: list[int], scope: Scope) -> int:
        add, least, most = self.builder, grammar.min, grammar.max
        item = nodes[0]
        if grammar.separator is None:
            return add.repeat(item, least, most)
        if most == 0:
            return add.seq([])
        more = add.repeat(
            add.seq([nodes[1], item]), max(least, 1) - 1, None if most is None else most - 1
        )
        some = add.seq([item, more])
        return some if least else add.repeat(some, 0, 1)

    def _text_until(self, grammar: TextUntil, nodes: list[int], scope: Scope) -> int:
        stops, most = grammar.stops, grammar.max_chars
        plain = [stop for stop in stops if not self._has_tokens(stop, grammar.controls)]
        others = [stop for stop in stops if stop not in plain]
        excluding = [*grammar.excluding, *others]
        ends = [self._up_to_tokens(stop, [*plain, *excluding], most) for stop in others]
        if plain:
            ends.append(self.builder.text_until(plain, excluding, max_chars=most))
        return self.builder.choice(ends)

    def _dispatch(self, grammar: Dispatch, nodes: list[int], scope: Scope) -> int:
        triggers = list(dict.fromkeys(trigger for trigger, _ in grammar.cases))
        plain = [t for t in triggers if not self._has_tokens(t, grammar.controls)]
        excluding = [*grammar.excluding, *(t for t in triggers if t not in plain)]
        overlapping = set(overlaps(plain, excluding))
        if len(overlapping) > MAX_OVERLAPPING:
            raise grammar_error(
                f"{len(overlapping)} triggers run into other triggers, or into excluded texts, "
                f"such as {min(overlapping)!r}: at most {MAX_OVERLAPPING} may"
            )
        add = self.builder
        free = add.any_text([*plain, *excluding])
        ends = []
        for (trigger, _), node in zip(grammar.cases, nodes, strict=True):
            if trigger in overlapping:
                end = add.up_to_trigger(trigger, plain, excluding)
            elif trigger in plain:
                end = add.seq([free, add.text(trigger)])
            else:
                end = self._up_to_tokens(trigger, [*plain, *excluding], None)
            ends.append(add.seq([end, node]))
        if grammar.loop:
            return add.seq([add.repeat(add.choice(ends), 0), free])
        return add.choice([free, *ends])

    def _has_tokens(self, text: str, controls: bool) -> bool:
        return controls and self.controls.has(text)

    def _up_to_tokens(self, stop: str, excluding: list[str], max_chars: int | None) -> int:
        """Add free text up to a stop that contains a control token.

        The free text extends to the first token, and ends with the part of the stop before it.
        """
        pieces = self.controls.split(stop)
        ending = pieces[0][0] if pieces and not pieces[0][1] else ""
        free = self.builder.any_text(excluding, ending=ending, max_chars=max_chars)
        return self.builder.seq([free, self._pieces(pieces[1:] if ending else pieces)])

    def _json_schema(self, grammar: JsonSchema, nodes: list[int], scope: Scope) -> int:
        self.writing.take(grammar)
        return self.builder.json_schema(grammar.schema, writing=grammar)


def overlaps(triggers: list[str], excluding: list[str]) -> list[str]:
    """Return the triggers that need more than free text without the other texts before them.

    Another text may start before these and overlap them, or they contain an excluded text.
    """
    every = [*triggers, *excluding]
    # Everything that may stand at the end of a text that began earlier.
    tails = {text[start:] for text in every for start in range(1, len(text))}
    return [
        trigger
        for trigger in triggers
        if any(trigger[:end] in tails for end in range(1, len(trigger) + 1))
        or any(text in trigger for text in excluding)
    ]


def _key(grammar: Grammar, scope: Scope) -> Key:
    free = grammar._free
    return (id(grammar), tuple(sorted((name, scope[name]) for name in free)) if free else ())


# The functions that add a grammar after its parts.
_BUILD: dict[type[Grammar], Callable[[Lowering, Any, list[int], Scope], int]] = {
    Text: Lowering._text,
    Seq: lambda self, grammar, nodes, scope: self.builder.seq(nodes),
    Choice: Lowering._choice,
    Repeat: Lowering._repeat,
    Regex: lambda self, grammar, nodes, scope: self.builder.regex(
        grammar.pattern,
        dialect=grammar.dialect,
        flags=grammar.flags,
        search=grammar.search,
        characters=grammar.characters,
    ),
    Substring: lambda self, grammar, nodes, scope: self.builder.substring(grammar.chunks),
    Intersection: lambda self, grammar, nodes, scope: self.builder.intersection(nodes),
    Complement: lambda self, grammar, nodes, scope: self.builder.complement(nodes[0]),
    JsonSchema: Lowering._json_schema,
    TypedSchema: Lowering._json_schema,
    Tokens: lambda self, grammar, nodes, scope: self.builder.tokens(
        grammar.items, exclude=grammar.exclude
    ),
    AnyText: lambda self, grammar, nodes, scope: self.builder.any_text(
        grammar.excluding, max_chars=grammar.max_chars
    ),
    StringText: lambda self, grammar, nodes, scope: self.builder.string(
        excluding=grammar.excluding,
        other_than=grammar.other_than,
        patterns=grammar.patterns,
        formats=grammar.formats,
        min_chars=grammar.min_chars,
        max_chars=grammar.max_chars,
    ),
    TextUntil: Lowering._text_until,
    Dispatch: Lowering._dispatch,
    RuleReference: lambda self, grammar, nodes, scope: self.builder.rule(scope[grammar.name]),
    Span: lambda self, grammar, nodes, scope: self.builder.span(
        grammar.kind, grammar.name, nodes[0]
    ),
    Limit: lambda self, grammar, nodes, scope: self.builder.limit(nodes[0], grammar.max_tokens),
    Lark: lambda self, grammar, nodes, scope: self.builder.lark(grammar.text),
    Gbnf: lambda self, grammar, nodes, scope: self.builder.gbnf(grammar.text, grammar.root),
    Ebnf: lambda self, grammar, nodes, scope: self.builder.ebnf(grammar.text, grammar.root),
}


def _rules(lowering: Lowering, grammar: Rules, nodes: list[int], scope: Scope) -> int:
    for (name, _), body in zip(grammar.definitions, nodes, strict=True):
        lowering.builder.define(scope[name], body)
    return lowering.builder.rule(scope[grammar.start])


_BUILD[Rules] = _rules


def lower(
    grammar: Grammar,
    controls: Collection[str] = (),
    ends: Set[str] = frozenset(),
    meter: CompileMeter | None = None,
) -> tuple[GrammarBuilder, int, SharedWriting]:
    """Return a grammar for the native core: its builder, its node, and the JSON options.

    Args:
        grammar: The grammar.
        controls: The names of the vocabulary's control tokens.
        ends: Those of them that end the output.
        meter: The budget of the whole compilation; by default that of the default limits.

    """
    lowering = Lowering(GrammarBuilder(meter), Controls(controls, ends))
    start = lowering.add(grammar)
    return lowering.builder, start, lowering.writing
