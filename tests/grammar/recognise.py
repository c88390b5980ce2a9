"""Whether a text belongs to a grammar, slowly: what the native core is compared with.

It looks at grammars as Python has them, and knows nothing of tokens. Patterns are read by `re`, and
JSON by `json` and jsonschema, so patterns and schemas must mean the same there.
"""

import json
import re
from typing import Any

import jsonschema

from ffwd.grammar import (
    AnyText,
    Choice,
    Dispatch,
    Grammar,
    Intersection,
    JsonSchema,
    Limit,
    Regex,
    Repeat,
    RuleReference,
    Rules,
    Seq,
    Span,
    Text,
    TextUntil,
)
from ffwd.grammar._string import StringText

JSON_SPACE = " \t\n\r"


class Recogniser:
    """Sets of the places where texts of a grammar end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.known: dict[Any, set[int]] = {}
        self.fresh: set[Any] = set()
        self.grew = False

    def accepts(self, grammar: Grammar) -> bool:
        """Whether the whole text belongs to the grammar."""
        while True:
            # What contains itself is computed again until nothing new is found.
            self.fresh, self.grew = set(), False
            ends = self.ends(grammar, 0, {})
            if not self.grew:
                return len(self.text) in ends

    def ends(self, grammar: Grammar, start: int, scope: dict[str, Any]) -> set[int]:
        key = (id(grammar), start, tuple(sorted((n, id(scope[n][0])) for n in grammar._free)))
        known = self.known.setdefault(key, set())
        if key in self.fresh:
            return known
        self.fresh.add(key)
        found = self._ends(grammar, start, scope)
        if not found <= known:
            self.grew = True
            known |= found
        return known

    def _ends(self, grammar: Grammar, start: int, scope: dict[str, Any]) -> set[int]:
        text = self.text
        match grammar:
            case Text():
                fits = text.startswith(grammar.text, start)
                return {start + len(grammar.text)} if fits else set()
            case Seq():
                return self._all(grammar.parts, {start}, scope)
            case Intersection():
                ends = [self.ends(part, start, scope) for part in grammar.parts]
                return set.intersection(*ends)
            case Choice():
                found: set[int] = set()
                for option in grammar.options:
                    if isinstance(option, str):
                        found |= {start + len(option)} if text.startswith(option, start) else set()
                    else:
                        found |= self.ends(option, start, scope)
                return found
            case Repeat():
                return self._repeat(grammar, start, scope)
            case RuleReference():
                body, outer = scope[grammar.name]
                return self.ends(body, start, outer)
            case Rules():
                inner = dict(scope)
                for name, body in grammar.definitions:
                    inner[name] = (body, inner)
                return self.ends(inner[grammar.start][0], start, inner)
            case Span() | Limit():
                return self.ends(grammar.content, start, scope)
            case Regex():
                pattern = re.compile(grammar.pattern)
                return {e for e in self._later(start) if pattern.fullmatch(text, start, e)}
            case AnyText():
                return {e for e in self._later(start) if self._is_free(grammar, text[start:e])}
            case StringText():
                return {e for e in self._later(start) if is_string(grammar, text[start:e])}
            case TextUntil():
                return {e for e in self._later(start) if self._is_until(grammar, text[start:e])}
            case Dispatch():
                return self._dispatch(grammar, start, scope)
            case JsonSchema():
                return {e for e in self._later(start) if is_valid(grammar, text[start:e])}
        raise NotImplementedError(type(grammar).__name__)

    def _later(self, start: int) -> range:
        return range(start, len(self.text) + 1)

    def _all(self, parts: Any, starts: set[int], scope: dict[str, Any]) -> set[int]:
        for part in parts:
            starts = {end for start in starts for end in self.ends(part, start, scope)}
        return starts

    def _repeat(self, grammar: Repeat, start: int, scope: dict[str, Any]) -> set[int]:
        found = {start} if grammar.min == 0 else set()
        here, seen = {start}, set()
        count = 0
        while here and (grammar.max is None or count < grammar.max):
            if count and grammar.separator is not None:
                here = self._all([grammar.separator], here, scope)
            here = self._all([grammar.item], here, scope)
            count += 1
            if count >= grammar.min:
                if here <= seen:
                    break
                seen |= here
                found |= here
        return found

    def _is_free(self, grammar: AnyText, text: str) -> bool:
        short = grammar.max_chars is None or len(text) <= grammar.max_chars
        return short and not any(part in text for part in grammar.excluding)

    def _is_until(self, grammar: TextUntil, text: str) -> bool:
        first = [e for e in range(len(text) + 1) if text[:e].endswith(grammar.stops)][:1]
        lengths = [len(stop) for stop in grammar.stops if text.endswith(stop)]
        most = grammar.max_chars
        short = most is None or any(len(text) - length <= most for length in lengths)
        return first == [len(text)] and short and not any(t in text for t in grammar.excluding)

    def _dispatch(self, grammar: Dispatch, start: int, scope: dict[str, Any]) -> set[int]:
        triggers = [trigger for trigger, _ in grammar.cases]
        none = [*triggers, *grammar.excluding]
        found: set[int] = set()
        coming, seen = [start], set()
        while coming:
            at = coming.pop()
            if at in seen:
                continue
            seen.add(at)
            for end in self._later(at):
                text = self.text[at:end]
                if not any(part in text for part in none):
                    found.add(end)
                for trigger, content in grammar.cases:
                    if not text.endswith(trigger) or any(x in text for x in grammar.excluding):
                        continue
                    begin = len(text) - len(trigger)
                    if any(-1 < text.find(other) < begin for other in triggers):
                        continue
                    after = self.ends(content, end, scope)
                    if grammar.loop:
                        coming += after
                    else:
                        found |= after
        return found


def is_string(grammar: StringText, text: str) -> bool:
    return (
        not any(part in text for part in grammar.excluding)
        and text not in grammar.other_than
        and all(re.search(pattern, text) for pattern in grammar.patterns)
        and grammar.min_chars <= len(text)
        and (grammar.max_chars is None or len(text) <= grammar.max_chars)
        and not grammar.formats
    )


def is_valid(grammar: JsonSchema, text: str) -> bool:
    if text != text.strip(JSON_SPACE):
        return False
    try:
        value = json.loads(text)
    except ValueError:
        return False
    schema = json.loads(grammar.schema)
    documents = {uri: json.loads(document) for uri, document in grammar.registry}
    reference = schema.get("$ref", "") if isinstance(schema, dict) else ""
    uri, _, fragment = reference.partition("#")
    if uri in documents and uri:
        # What jsonschema would need a registry for.
        place: Any = documents[uri]
        for key in fragment.split("/")[1:]:
            place = place[key]
        schema = {"allOf": [place], "$defs": documents[uri].get("$defs", {})}
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def accepts(grammar: Grammar, text: str) -> bool:
    """Whether a text belongs to a grammar."""
    return Recogniser(text).accepts(grammar)
