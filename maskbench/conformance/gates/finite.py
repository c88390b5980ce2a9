"""Schemas with few values: masks are compared byte by byte with all texts, found by trial.

They exercise keywords that depend on the number of values: `uniqueItems`, `contains` with its
counts, lengths, `not`, `enum` of containers, and recursion. A schema is generated together with a
list of candidates; `holds`, which is as slow and plain as the standard's text, selects the values.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
import numpy as np

import ffwd
from maskbench.conformance.gates.drawn import DrawnReport, Failure
from maskbench.conformance.gates.walks import VocabularyTokens
from maskbench.documents import Whitespace

MAX_CANDIDATES = 250
"""Candidates of one schema; one with more is left out."""

MAX_ROUNDS = 3
"""Rounds for the values of a definition that contains itself."""

MAX_STEPS = 60
"""Free steps of a walk where the texts are not all known."""

WALKS = 3
NAMES = ("x", "y")
SCALARS: tuple[Any, ...] = ("a", "b", "ab", "", True, False, None, 1, 2, 3)


class TooManyError(Exception):
    """The schema has more candidates than are tried."""


JOINED = (
    *("},{", "],[", '","', '"],["', '"},{"', '"]', '"}', "]]", "}]", "]}", "],", "},", '",', ',"'),
    *("true,", "false]", "true}", "null,null", ":true}", "[[", '[{"', '":', '{"x":', ',"y":'),
    *('"a","b"', '"ab","a', 'a","', '"a"]', "[]", "{}", "[],[]", "{},{", "[],", ',"a"]'),
)
"""Tokens in which values end and others begin."""

BLANK = (", ", '", "', "], [", "},\n{", '"],\t["', '[ "', '": ', ": true", "[ ]", ",  ", "\n\n")
"""The same with blanks between values. No string of a drawn schema has a blank."""


def joined_tokens() -> VocabularyTokens:
    """Return single bytes, token b being byte b, an end, and tokens of several bytes."""
    joined = map(str.encode, (*JOINED, *BLANK))
    texts = [*(bytes([byte]) for byte in range(256)), None, *joined]
    return VocabularyTokens(ffwd.Vocabulary(texts, eos_token_ids=[256]))


@dataclass
class FiniteReport(DrawnReport):
    """The number of comparisons and the failures."""

    exact: int = 0
    """Those of which all texts are known, so that masks are compared bit by bit."""

    values: int = 0
    steps: int = 0
    left_out: int = 0


def key(value: Any) -> str:
    """Return a key that equal values share, and no others."""
    return json.dumps(value, sort_keys=True)


def draw(source: random.Random) -> Any:
    """Return a schema, one of whose definitions may contain itself."""
    schema = _draw_document(source)
    # A number has many texts, so that only without numbers all are known.
    return schema if source.random() < 0.3 else _without_numbers(schema)


def _without_numbers(value: Any, *, constant: bool = False) -> Any:
    if isinstance(value, list):
        return [_without_numbers(item, constant=constant) for item in value]
    if isinstance(value, dict):
        if not constant and value.get("type") == "integer":
            return {"enum": [f"n{n}" for n in range(value["minimum"], value["maximum"] + 1)]}
        return {
            name: _without_numbers(member, constant=constant or name in ("enum", "const"))
            for name, member in value.items()
        }
    return f"n{value}" if constant and type(value) is int else value


def _draw_document(source: random.Random) -> Any:
    if source.random() < 0.25:
        inner = _draw_array(source, 2, recursive=True)
        base = [_draw(source, 0) for _ in range(source.randint(1, 2))]
        branches = [*base, inner] if source.random() < 0.9 else [inner]
        document: Any = {"$defs": {"r": {"anyOf": branches}}}
        if source.random() < 0.5:
            return document | {"$ref": "#/$defs/r"}
        return document | _draw_array(source, 1, recursive=True)
    if source.random() < 0.8:
        return _draw_array(source, 2)
    return _draw(source, 3)


def _draw(source: random.Random, depth: int, *, recursive: bool = False) -> Any:
    if recursive and source.random() < 0.4:
        return {"$ref": "#/$defs/r"}
    kind = source.random()
    if depth <= 0 or kind < 0.3:
        schema = _draw_scalars(source)
    elif kind < 0.55:
        schema = _draw_object(source, depth, recursive)
    elif kind < 0.85:
        schema = _draw_array(source, depth, recursive=recursive)
    else:
        schema = {"anyOf": [_draw(source, depth - 1, recursive=recursive) for _ in range(2)]}
    if source.random() < 0.15:
        other = _draw(source, min(depth, 1))
        if source.random() < 0.7:
            schema["not"] = other
        else:
            schema["allOf"] = [*schema.get("allOf", ()), other]
    return schema


def _draw_scalars(source: random.Random) -> Any:
    kind = source.random()
    if kind < 0.2:
        return {"type": "boolean"}
    if kind < 0.25:
        return {"type": "null"}
    if kind < 0.35:
        low = source.randint(0, 2)
        return {"type": "integer", "minimum": low, "maximum": low + source.randint(0, 3)}
    values: list[Any] = source.sample(SCALARS, source.randint(1, 4))
    if source.random() < 0.2:
        values.append(source.choice(([], ["a"], ["a", "b"], {}, {"x": "a"}, {"x": True, "y": 1})))
    if len(values) == 1:
        return {"const": values[0]}
    return {"enum": values}


def _draw_object(source: random.Random, depth: int, recursive: bool) -> Any:
    names = source.sample(NAMES, source.randint(1, 2))
    schema: Any = {
        "type": "object",
        "properties": {n: _draw(source, depth - 1, recursive=recursive) for n in names},
        "additionalProperties": False,
    }
    if source.random() < 0.6:
        schema["required"] = [name for name in names if source.random() < 0.7]
    if source.random() < 0.1:
        schema["minProperties"] = source.randint(1, 2)
    if source.random() < 0.1:
        schema["maxProperties"] = source.randint(0, 2)
    return schema


def _draw_array(source: random.Random, depth: int, *, recursive: bool = False) -> Any:
    schema: Any = {"type": "array"}
    if source.random() < 0.35:
        schema["prefixItems"] = [
            _draw(source, depth - 1, recursive=recursive) for _ in range(source.randint(1, 3))
        ]
        if source.random() < 0.5:
            schema["items"] = False
    if "items" not in schema:
        schema["items"] = _draw(source, depth - 1, recursive=recursive)
    unique = source.random() < 0.75
    if unique:
        schema["uniqueItems"] = True
    if source.random() < 0.6:
        schema["minItems"] = source.choice((0, 1, 2, 2, 3, 3, 4))
    if not unique or source.random() < 0.5:
        schema["maxItems"] = source.randint(
            schema.get("minItems", 1) if source.random() < 0.9 else 0, 4
        )
    if source.random() < 0.35:
        schema |= _draw_contains(source, depth)
        if source.random() < 0.4:
            schema["allOf"] = [_draw_contains(source, depth)]
    return schema


def _draw_contains(source: random.Random, depth: int) -> Any:
    schema: Any = {"contains": _draw(source, min(depth - 1, 1))}
    if source.random() < 0.7:
        schema["minContains"] = source.randint(0, 3)
    if source.random() < 0.3:
        schema["maxContains"] = source.randint(schema.get("minContains", 1), 3)
    return schema


class Values:
    """The values of a document, found by trying."""

    def __init__(self, document: Any) -> None:
        """List the candidates. Raises `TooManyError`."""
        self._document = document
        self.complete = True
        self._recursive: list[Any] = []
        definition = document.get("$defs", {}).get("r")
        if definition is not None:
            for _ in range(MAX_ROUNDS):
                found = self._values(definition)
                if len(found) == len(self._recursive):
                    break
                self._recursive = found
            else:
                self.complete = len(self._values(definition)) == len(self._recursive)
        self.all = self._values(document)

    def _values(self, schema: Any) -> list[Any]:
        seen = {key(value): value for value in self._candidates(schema)}
        if len(seen) > MAX_CANDIDATES:
            raise TooManyError
        return [value for value in seen.values() if self.holds(schema, value)]

    def _candidates(self, schema: Any) -> list[Any]:
        if schema is False:
            return []
        if "$ref" in schema:
            return self._recursive
        if "const" in schema:
            return [schema["const"]]
        if "enum" in schema:
            return list(schema["enum"])
        if "anyOf" in schema:
            return [value for branch in schema["anyOf"] for value in self._values(branch)]
        kind = schema["type"]
        if kind == "null":
            return [None]
        if kind == "boolean":
            return [False, True]
        if kind == "integer":
            return list(range(schema["minimum"], schema["maximum"] + 1))
        if kind == "object":
            return self._objects(schema)
        return self._arrays(schema)

    def _objects(self, schema: Any) -> list[Any]:
        choices = []
        total = 1
        for name, property in schema["properties"].items():
            values = [[(name, value)] for value in self._values(property)]
            choices.append(values if name in schema.get("required", ()) else [*values, []])
            total *= len(choices[-1])
        if total > MAX_CANDIDATES:
            raise TooManyError
        return [dict(itertools.chain(*members)) for members in itertools.product(*choices)]

    def _arrays(self, schema: Any) -> list[Any]:
        prefix = [self._values(item) for item in schema.get("prefixItems", ())]
        items = self._values(schema["items"])
        unique = schema.get("uniqueItems", False)
        longest = schema.get("maxItems", len(prefix) + len(items))
        arrays: list[list[Any]] = [[]]
        found: list[list[Any]] = [[]]
        for place in range(longest):
            values = prefix[place] if place < len(prefix) else items
            arrays = [
                [*array, value]
                for array in arrays
                for value in values
                if not (unique and key(value) in map(key, array))
            ]
            found += arrays
            if len(found) > MAX_CANDIDATES:
                raise TooManyError
        return found

    def holds(self, schema: Any, value: Any) -> bool:
        """Return whether a value satisfies a subschema."""
        if isinstance(schema, bool):
            return schema
        if "$ref" in schema and not self.holds(self._document["$defs"]["r"], value):
            return False
        if "const" in schema and key(schema["const"]) != key(value):
            return False
        if "enum" in schema and key(value) not in map(key, schema["enum"]):
            return False
        if "anyOf" in schema and not any(self.holds(s, value) for s in schema["anyOf"]):
            return False
        if not all(self.holds(s, value) for s in schema.get("allOf", ())):
            return False
        if "not" in schema and self.holds(schema["not"], value):
            return False
        if "type" in schema and not _is_of(schema["type"], value):
            return False
        if type(value) is int:
            low, high = schema.get("minimum", value), schema.get("maximum", value)
            return bool(low <= value <= high)
        if isinstance(value, dict):
            return self._object_holds(schema, value)
        return not isinstance(value, list) or self._array_holds(schema, value)

    def _object_holds(self, schema: Any, value: dict[str, Any]) -> bool:
        properties = schema.get("properties", {})
        closed = schema.get("additionalProperties", True) is False
        return (
            schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value))
            and all(name in value for name in schema.get("required", ()))
            and not (closed and set(value) - set(properties))
            and all(self.holds(properties.get(n, True), member) for n, member in value.items())
        )

    def _array_holds(self, schema: Any, value: list[Any]) -> bool:
        prefix = schema.get("prefixItems", [])
        items = schema.get("items", True)
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return False
        if schema.get("uniqueItems", False) and len(set(map(key, value))) < len(value):
            return False
        places = itertools.chain(prefix, itertools.repeat(items))
        if not all(self.holds(place, item) for place, item in zip(places, value, strict=False)):
            return False
        if "contains" not in schema:
            return True
        count = sum(self.holds(schema["contains"], item) for item in value)
        low, high = schema.get("minContains", 1), schema.get("maxContains", count)
        return bool(low <= count <= high)


def _is_of(kind: str, value: Any) -> bool:
    types = {"null": type(None), "boolean": bool, "integer": int, "object": dict, "array": list}
    return type(value) is types[kind]


def texts(value: Any) -> Iterator[str]:
    """Return all compact texts of a value, the properties in any order."""
    if isinstance(value, list):
        for items in itertools.product(*(list(texts(item)) for item in value)):
            yield "[" + ",".join(items) + "]"
    elif isinstance(value, dict):
        for order in itertools.permutations(value.items()):
            written = [[json.dumps(n) + ":" + text for text in texts(v)] for n, v in order]
            for members in itertools.product(*written):
                yield "{" + ",".join(members) + "}"
    else:
        yield json.dumps(value)


def laid_out(text: str, whitespace: Whitespace) -> list[str]:
    """Return a compact text in all layouts that a text may choose, but for flexible white space."""
    value = json.loads(text)
    if whitespace is Whitespace.SINGLE_SPACE:
        return [json.dumps(value)]
    if whitespace is not Whitespace.CONSISTENT:
        return [text]
    indents = [*range(1, 9), "\t"]
    indented = [json.dumps(value, indent=indent) for indent in indents]
    return list(dict.fromkeys([text, json.dumps(value), *indented]))


def _has_number(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_number, value.values()))
    if isinstance(value, list):
        return any(map(_has_number, value))
    return type(value) is int


def run(
    schemas: int,
    seed: int,
    tokens: VocabularyTokens,
    whitespace: Whitespace = Whitespace.COMPACT,
) -> FiniteReport:
    """Compare this many schemas.

    With flexible white space, blanks in tokens are left out before these are compared with the
    texts; tokens of blanks alone must be accepted where they are allowed. With other white space,
    the texts are those of all layouts.
    """
    report = FiniteReport()
    number = 0
    while report.schemas < schemas:
        source = random.Random(f"finite {seed} {number}")
        number += 1
        schema = draw(source)
        try:
            values = Values(schema)
            compare(report, schema, values, tokens, source, whitespace)
        except TooManyError:
            report.left_out += 1
    return report


def compare(
    report: FiniteReport,
    schema: Any,
    values: Values,
    tokens: VocabularyTokens,
    source: random.Random,
    whitespace: Whitespace = Whitespace.COMPACT,
) -> None:
    """Compare masks with the texts, along walks."""
    report.schemas += 1

    def fail(text: str | bytes, detail: str) -> None:
        shown = text.decode(errors="replace") if isinstance(text, bytes) else text
        report.failures.append(Failure(schema, shown, detail=detail))

    judge = jsonschema_rs.Draft202012Validator(schema)
    for value in values.all:
        if not judge.is_valid(value):
            fail(json.dumps(value), "jsonschema-rs refuses what was found by trying")
            return
    grammar = ffwd.json_schema(schema, property_order="any", whitespace=whitespace.value)
    try:
        compiled = ffwd.compile(grammar, tokens.vocabulary)
    except ffwd.UnsatisfiableSchemaError:
        report.unsatisfiable += 1
        if values.all:
            fail(json.dumps(values.all[0]), "valid, and the schema is called unsatisfiable")
        return
    except ffwd.FfwdError as error:
        report.refuse(error)
        return
    if values.complete and not values.all:
        fail("", "the schema compiles, and has no valid value")
        return
    compact = [text for value in values.all for text in texts(value)]
    if len(compact) > 4 * MAX_CANDIDATES:
        report.left_out += 1
        return
    written = [laid.encode() for text in compact for laid in laid_out(text, whitespace)]
    report.values += len(values.all)
    numbers = any(map(_has_number, values.all))
    exact = values.complete and not numbers
    report.exact += exact
    for text in source.sample(written, min(len(written), 20)):
        matcher = compiled.matcher()
        try:
            accepted = matcher.accept_tokens(list(text)) and matcher.is_accepting()
        except ffwd.FfwdError as error:
            report.refuse(error)
            return
        if not accepted:
            fail(text, "valid, and refused")
            return
    for _ in range(WALKS):
        try:
            detail = (
                _exact_walk(report, compiled, written, tokens, source, whitespace)
                if exact
                else _judged_walk(report, compiled, judge, tokens, source)
            )
        except ffwd.FfwdError as error:
            report.refuse(error)
            return
        if detail is not None:
            fail(*detail)
            return


def _allowed(matcher: ffwd.Matcher, tokens: VocabularyTokens) -> list[int]:
    matcher.fill_bitmask(tokens.rows)
    return [int(token) for token in np.flatnonzero(tokens.allowed())]


def _contradiction(
    matcher: ffwd.Matcher, tokens: VocabularyTokens, allowed: list[int]
) -> str | None:
    """Return the error if a token of the mask is refused."""
    for token in allowed:
        if matcher.validate_tokens([token]) != 1:
            return f"the mask has {tokens.texts[token]!r}, which is refused"
    return None


def _exact_walk(
    report: FiniteReport,
    compiled: ffwd.CompiledGrammar,
    written: list[bytes],
    tokens: VocabularyTokens,
    source: random.Random,
    whitespace: Whitespace,
) -> tuple[bytes, str] | None:
    """Walk along a random text: each mask has exactly the tokens of the texts.

    With flexible white space this holds but for blanks.
    """
    (end,) = tokens.ends
    matcher = compiled.matcher()
    before, compact = b"", b""
    left = sorted(written)
    is_flexible = whitespace is Whitespace.FLEXIBLE
    spelled = _without_blanks(tokens.texts) if is_flexible else tokens.texts
    lengths = range(1, 1 + max(len(text or b"") for text in spelled))
    while True:
        report.steps += 1
        at = len(compact)
        going_on = {text[at : at + length] for text in left for length in lengths} - {b""}
        expected = [token for token, text in enumerate(spelled) if text in going_on]
        if any(len(text) == at for text in left):
            expected = sorted([*expected, end])
        allowed = _allowed(matcher, tokens)
        blanks = [token for token in allowed if spelled[token] == b""]
        others = [token for token in allowed if spelled[token] != b""]
        if others != expected:
            shown = [tokens.texts[token] for token in set(others) ^ set(expected)]
            side = "allows" if set(others) - set(expected) else "lacks"
            return before, f"the mask {side} {shown}"
        if (problem := _contradiction(matcher, tokens, allowed)) is not None:
            return before, problem
        token = source.choice(blanks if blanks and source.random() < 0.2 else others)
        if token == end:
            return None
        if not matcher.accept_token(token):
            return before, f"the mask has {tokens.texts[token]!r}, which accept_token refuses"
        before += tokens.texts[token] or b""
        compact += spelled[token] or b""
        left = [text for text in left if text.startswith(compact)]


def _without_blanks(texts: Sequence[bytes | None]) -> list[bytes | None]:
    return [text if text is None else text.translate(None, b" \t\n\r") for text in texts]


def _judged_walk(
    report: FiniteReport,
    compiled: ffwd.CompiledGrammar,
    judge: jsonschema_rs.Draft202012Validator,
    tokens: VocabularyTokens,
    source: random.Random,
) -> tuple[bytes, str] | None:
    """Take any allowed tokens, then the shortest way to the end, which must be valid."""
    (end,) = tokens.ends
    matcher = compiled.matcher()
    before = b""
    for _ in range(source.randint(0, MAX_STEPS)):
        report.steps += 1
        allowed = _allowed(matcher, tokens)
        if not allowed:
            return before, "no token is allowed"
        if (problem := _contradiction(matcher, tokens, allowed)) is not None:
            return before, problem
        token = source.choice([t for t in allowed if t != end] or allowed)
        if token == end:
            break
        if not matcher.accept_token(token):
            return before, f"the mask has {token}, which accept_token refuses"
        before += tokens.texts[token] or b""
    rest = [token for token in matcher.shortest_completion() if token != end]
    for token in rest:
        if token not in _allowed(matcher, tokens) or not matcher.accept_token(token):
            return before, f"the completion's token {token} is refused"
        before += tokens.texts[token] or b""
    if not matcher.is_accepting():
        return before, "the completion does not end the text"
    if not judge.is_valid(json.loads(before)):
        return before, "the text is not valid"
    return None
