"""Whether a text belongs to a grammar: what the engine says and what the slow recogniser says."""

from functools import cache

import compiled
from recognise import accepts as recognised

import ffwd


@cache
def engine(grammar: ffwd.Grammar) -> ffwd.CompiledGrammar:
    return ffwd.compile(grammar, compiled.byte_vocabulary())


def accepts(grammar: ffwd.Grammar, text: str) -> bool:
    """Both, which must be the same."""
    found = bool(recognised(grammar, text))
    assert compiled.accepts(engine(grammar), text) == found, text
    return found
