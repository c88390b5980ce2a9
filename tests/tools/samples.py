"""Random texts of a composed grammar, drawn from its parts without compiling it as a whole.

Only what has been there before grammars composed is asked of the engine: JSON Schemas and regular
expressions, each on its own and byte by byte.
"""

import random
import re
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

import ffwd
from ffwd import grammar as g
from ffwd.grammar._string import StringText

ALPHABET = "abcXYZ 0159_-.,:;!?'\"\\/<>[]{}()=|\n\tä漢🙂"


@cache
def byte_vocabulary() -> ffwd.Vocabulary:
    return ffwd.Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])


@cache
def compiled(grammar: ffwd.Grammar) -> ffwd.CompiledGrammar:
    return ffwd.compile(grammar, byte_vocabulary())


def walk(grammar: ffwd.Grammar, rng: random.Random, *, stop: float = 0.4) -> str:
    """Bytes at random, each one that may come; it ends where it may with this probability."""
    matcher = compiled(grammar).matcher()
    bitmask = ffwd.allocate_bitmask(1, 257)
    written = bytearray()
    while True:
        matcher.fill_bitmask(bitmask, 0)
        allowed = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:257])
        if 256 in allowed and (len(allowed) == 1 or rng.random() < stop):
            return written.decode()
        choices = [int(token) for token in allowed if token != 256]
        plain = [token for token in choices if chr(token) in ALPHABET and token > 32]
        token = rng.choice(plain if plain and rng.random() < 0.8 else choices)
        matcher.accept_token(token)
        written.append(token)


@dataclass
class Sample:
    """A text, and the calls that are marked in it: names, and arguments as they are written."""

    text: str
    calls: list[tuple[str, str]]


def answer(grammar: ffwd.Grammar, rng: random.Random) -> Sample:
    """One text with its calls."""
    found = Sample("", [])
    found.text = sample(grammar, rng, calls=found.calls)
    return found


def sample(
    grammar: ffwd.Grammar,
    rng: random.Random,
    scope: dict[str, ffwd.Grammar] | None = None,
    *,
    calls: list[tuple[str, str]] | None = None,
) -> str:
    """One text. Names of control tokens are spelled; calls are added to `calls`."""
    scope = scope or {}
    draw = partial(sample, rng=rng, calls=calls)
    match grammar:
        case g.Text():
            return grammar.text
        case g.AnyText():
            return any_text(grammar, rng)
        case StringText():
            return string(grammar, rng)
        case g.JsonSchema() | g.Regex():
            return walk(grammar, rng)
        case g.Span() | g.Limit():
            text = draw(grammar.content, scope=scope)
            of_arguments = isinstance(grammar, g.Span) and grammar.kind == "tool_arguments"
            if of_arguments and calls is not None:
                calls.append((grammar.name, text))
            return text
        case g.Choice():
            option = rng.choice(grammar.options)
            return option if isinstance(option, str) else draw(option, scope=scope)
        case g.Repeat():
            most = grammar.min + 3 if grammar.max is None else min(grammar.max, grammar.min + 3)
            texts = [draw(grammar.item, scope=scope) for _ in range(rng.randint(grammar.min, most))]
            separators = [
                "" if grammar.separator is None else draw(grammar.separator, scope=scope)
                for _ in texts[1:]
            ]
            return "".join(a + b for a, b in zip(["", *separators], texts, strict=False))
        case g.Rules():
            inner = {**scope, **dict(grammar.definitions)}
            return draw(inner[grammar.start], scope=inner)
        case g.RuleReference():
            return draw(scope[grammar.name], scope=scope)
    if hasattr(grammar, "parts"):
        return "".join(draw(part, scope=scope) for part in grammar.parts)
    raise TypeError(type(grammar).__name__)


def string(grammar: StringText, rng: random.Random) -> str:
    """A string of which only the length is bounded."""
    assert not grammar.formats
    while True:
        text = any_text(g.AnyText(grammar.excluding, grammar.max_chars), rng)
        fits = all(re.search(pattern, text) for pattern in grammar.patterns)
        if fits and text not in grammar.other_than and len(text) >= grammar.min_chars:
            return text


def any_text(grammar: g.AnyText, rng: random.Random) -> str:
    most = 12 if grammar.max_chars is None else min(grammar.max_chars, 12)
    while True:
        text = "".join(rng.choice(ALPHABET) for _ in range(rng.randint(0, most)))
        if not any(excluded in text for excluded in grammar.excluding):
            return text
