"""All the ways to read a text with captures, slowly: what events are compared with.

It looks at grammars as Python has them, and knows of no automaton.
"""

import re
from typing import Any

from ffwd.grammar import Choice, Grammar, Regex, Repeat, RuleReference, Rules, Seq, Span, Text

Captured = tuple[tuple[str, int, int], ...]
Reading = tuple[int, Captured]


def _with(readings: set[Reading], more: Any) -> set[Reading]:
    return {(end, held + new) for at, held in readings for end, new in more(at)}


def readings(
    grammar: Grammar, text: str, start: int = 0, scope: dict[str, Any] | None = None
) -> set[Reading]:
    """Where texts of the grammar end that begin at a place, with their captures, but for empty
    ones. Rules must not begin with themselves."""
    scope = scope or {}
    match grammar:
        case Text():
            fits = text.startswith(grammar.text, start)
            return {(start + len(grammar.text), ())} if fits else set()
        case Regex():
            pattern = re.compile(grammar.pattern)
            ends = range(start, len(text) + 1)
            return {(end, ()) for end in ends if pattern.fullmatch(text, start, end)}
        case Seq():
            found: set[Reading] = {(start, ())}
            for part in grammar.parts:
                found = _with(found, lambda at, part=part: readings(part, text, at, scope))
            return found
        case Choice():
            found = set()
            for option in grammar.options:
                if isinstance(option, str):
                    fits = text.startswith(option, start)
                    found |= {(start + len(option), ())} if fits else set()
                else:
                    found |= readings(option, text, start, scope)
            return found
        case Repeat():
            here: set[Reading] = {(start, ())}
            found = set(here) if grammar.min == 0 else set()
            count = 0
            while here and (grammar.max is None or count < grammar.max):
                # Once the least number has come, an empty part adds nothing.
                least = 1 if count >= grammar.min else 0
                here = {
                    (end, held + new)
                    for at, held in here
                    for end, new in readings(grammar.item, text, at, scope)
                    if end - at >= least
                }
                count += 1
                if count >= grammar.min:
                    found |= here
            return found
        case RuleReference():
            body, outer = scope[grammar.name]
            return readings(body, text, start, outer)
        case Rules():
            inner = dict(scope)
            for name, body in grammar.definitions:
                inner[name] = (body, inner)
            return readings(inner[grammar.start][0], text, start, inner)
        case Span():
            return {
                (end, ((grammar.name, start, end), *held) if end > start else held)
                for end, held in readings(grammar.content, text, start, scope)
            }
    raise NotImplementedError(type(grammar).__name__)


def captures(grammar: Grammar, text: str) -> set[Captured]:
    """The captures of all readings of a whole text; none if it does not belong to the grammar."""
    return {held for end, held in readings(grammar, text) if end == len(text)}
