"""Recognizers of random grammars: interegular's automata, and Lark's Earley parser."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar
from unittest import mock

import interegular
import interegular.fsm
import lark
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF

from maskbench.conformance.differential.draws import (
    Both,
    Choice,
    Node,
    Not,
    Repeat,
    Sequence,
    listed,
)
from maskbench.conformance.differential.writers import ParserWriter, as_regex

# Transitions of one automaton; the largest takes a second.
_MAX_STEPS = 10_000


class Recogniser(abc.ABC):
    """Decides about texts, and about beginnings of texts, also ones that end within a character."""

    longest: ClassVar[float] = math.inf
    """The most bytes of a text that it can be asked about."""

    def __init__(self, named: frozenset[str]) -> None:
        """`named`: the characters that the grammar names. All others are alike."""
        self._named = named

    @abc.abstractmethod
    def accepts(self, text: str) -> bool:
        """Return whether it is a text of the grammar."""

    @abc.abstractmethod
    def leads_on(self, text: str) -> bool:
        """Return whether some text of the grammar begins with it."""

    def allows(self, text: bytes) -> bool:
        """Return whether some text of the grammar begins with these bytes."""
        whole, rest = _cut(text)
        if whole is None:
            return False
        if not rest:
            return self.leads_on(whole)
        return any(self.leads_on(whole + char) for char in self._completing(rest))

    def _completing(self, rest: bytes) -> Iterator[str]:
        """Return every named character that begins so, and one that is not named."""
        yield from (char for char in self._named if char.encode().startswith(rest))
        for point in _points(rest):
            if chr(point) not in self._named:
                yield chr(point)
                return


class TooManyStatesError(Exception):
    """The automaton of a drawn expression is too large to be made."""


class AutomatonRecogniser(Recogniser):
    """A recognizer of a regular language."""

    def __init__(self, node: Node) -> None:
        """Make the automaton. Raises `TooManyStatesError` if it is too large."""
        super().__init__(listed(node))
        with mock.patch.object(interegular.fsm, "crawl", _bounded_crawl):
            self._fsm = _fsm(node)

    @property
    def is_empty(self) -> bool:
        """Whether there is no text at all."""
        return bool(self._fsm.empty())

    def accepts(self, text: str) -> bool:
        """Return whether it is accepted, as in `Recogniser`."""
        return self._state(text) in self._fsm.finals

    def leads_on(self, text: str) -> bool:
        """Return whether an accepted text starts with it, as in `Recogniser`."""
        state = self._state(text)
        return state is not None and bool(self._fsm.islive(state))

    def _state(self, text: str) -> Any:
        state = self._fsm.initial
        for char in text:
            state = self._fsm.map.get(state, {}).get(self._fsm.alphabet[char])
            if state is None:
                return None
        return state


class EarleyRecogniser(Recogniser):
    """A recognizer of rules that all accept a text and whose lexemes are single characters."""

    # Its time grows with the third power of the length where rules are ambiguous.
    longest = 40

    def __init__(self, rules: tuple[Node, ...]) -> None:
        super().__init__(frozenset().union(*map(listed, rules)))
        # As a forest, because there may be infinitely many trees.
        self._parser = lark.Lark(
            ParserWriter().rules(rules),
            parser="earley",
            lexer="dynamic_complete",
            ambiguity="forest",
        )
        self._known: dict[str, bool | None] = {}

    def accepts(self, text: str) -> bool:
        """As in `Recogniser`."""
        return self._parse(text) is True

    def leads_on(self, text: str) -> bool:
        """As in `Recogniser`."""
        return self._parse(text) is not None

    def _parse(self, text: str) -> bool | None:
        """Return whether it is a text; None if none begins so."""
        if text not in self._known:
            try:
                self._parser.parse(text)
                self._known[text] = True
            except UnexpectedCharacters:
                self._known[text] = None
            except UnexpectedEOF:
                # Earley's parser only reads prefixes of texts.
                self._known[text] = False
        return self._known[text]


_crawl: Any = interegular.fsm.crawl


def _bounded_crawl(
    alphabet: Any, initial: Any, final: Any, follow: Callable[[Any, Any], Any]
) -> Any:
    """As in interegular, which makes all states of `((a.|b){3,5}.){2,}`, however many there are."""
    steps = 0

    def counted(state: Any, symbol: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps > _MAX_STEPS:
            raise TooManyStatesError
        return follow(state, symbol)

    return _crawl(alphabet, initial, final, counted)


def _fsm(node: Node) -> Any:
    match node:
        case Both(left, right):
            return _fsm(left) & _fsm(right)
        case Not(inner):
            return _fsm(inner).everythingbut()
        case Sequence(parts) if any(map(_has_operators, parts)):
            first, *others = map(_fsm, parts)
            return first.concatenate(*others)
        case Choice(options) if any(map(_has_operators, options)):
            first, *others = map(_fsm, options)
            return first.union(*others)
        case _:
            return interegular.parse_pattern(as_regex(node)).to_fsm()


def _has_operators(node: Node) -> bool:
    match node:
        case Both() | Not():
            return True
        case Sequence(parts) | Choice(parts):
            return any(map(_has_operators, parts))
        case Repeat(inner):
            return _has_operators(inner)
        case _:
            return False


def is_utf8(text: bytes) -> bool:
    """Return whether it is text, or text that ends within a character."""
    return _cut(text)[0] is not None


def _cut(text: bytes) -> tuple[str | None, bytes]:
    """Return the whole characters, and the prefix of one more; None for invalid UTF-8."""
    try:
        return text.decode(), b""
    except UnicodeDecodeError as error:
        rest = text[error.start :]
        # Decoding a beginning fails at its end, with everything in it.
        if error.end == len(text) and next(_points(rest), None) is not None:
            return text[: error.start].decode(), rest
        return None, b""


def _points(rest: bytes) -> Iterator[int]:
    """Return the code points whose UTF-8 has this prefix and is longer."""
    if not 0xC2 <= rest[0] <= 0xF4:
        return
    length = 2 if rest[0] < 0xE0 else 3 if rest[0] < 0xF0 else 4
    low, high = _padded(rest, length, 0x80), _padded(rest, length, 0xBF)
    least = {2: 0x80, 3: 0x800, 4: 0x10000}[length]
    for point in range(max(low, least), min(high, 0x10FFFF) + 1):
        if not 0xD800 <= point <= 0xDFFF:
            yield point


def _padded(rest: bytes, length: int, byte: int) -> int:
    first = rest[0] & (0x7F >> length)
    for following in (*rest[1:], *[byte] * (length - len(rest))):
        first = first << 6 | following & 0x3F
    return first
