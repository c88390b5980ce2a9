"""Fuzzing of keywords: an engine's verdict on texts against that of two validators."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import ffwd
from maskbench.conformance.gates.drawn import DrawnReport, Failure
from maskbench.conformance.gates.instances import draw_instance, edited
from maskbench.conformance.gates.judges import Judges, parse
from maskbench.conformance.gates.schemas import draw_schema
from maskbench.conformance.gates.walks import (
    DEAD_ENDS,
    DISPUTED,
    INVALID,
    Ending,
    VocabularyTokens,
    Walker,
    judged,
    start_of,
)

INSTANCES_PER_SCHEMA = 16
WALKS_PER_SCHEMA = 4


@dataclass
class FuzzReport(DrawnReport):
    """The number of comparisons, and of skipped ones."""

    pairs: int = 0
    valid: int = 0
    walks: int = 0
    disputed: list[Failure] = field(default_factory=list)
    """Walks to documents that one validator accepts and one refuses."""

    disagreements: int = 0
    """Instances on which the two validators differ, or one gives up."""

    def as_json(self) -> Any:
        """Return the failures alone."""
        return [
            {"schema": f.schema, "instance": f.text, "valid": f.expected, "detail": f.detail}
            for f in self.failures
        ]


def compile_schema(schema: Any, tokens: VocabularyTokens) -> ffwd.CompiledGrammar | None:
    """Compile the schema with properties in any order; None if nothing is valid against it."""
    grammar = ffwd.json_schema(schema, property_order="any", numbers="any", whitespace="compact")
    try:
        return ffwd.compile(grammar, tokens.vocabulary)
    except ffwd.UnsatisfiableSchemaError:
        return None


def accepts(compiled: ffwd.CompiledGrammar | None, text: str) -> bool:
    """Return whether the whole text is accepted, token b being byte b."""
    if compiled is None:
        return False
    matcher = compiled.matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_accepting()


def write(instance: Any) -> str:
    """Return the text of an instance."""
    return json.dumps(instance, ensure_ascii=False, separators=(",", ":"))


def run(pairs: int, seed: int, tokens: VocabularyTokens) -> FuzzReport:
    """Generate schemas until this many pairs of a schema and an instance are compared."""
    report = FuzzReport()
    number = 0
    while report.pairs < pairs:
        source = random.Random(f"{seed} {number}")
        number += 1
        schema = draw_schema(source)
        try:
            judges = Judges(schema)
        except ValueError:
            continue
        try:
            compare(report, schema, judges, tokens, source)
        except ffwd.UnsupportedSchemaError as error:
            report.refused[error.keyword] += 1
        except ffwd.FfwdError as error:
            report.refuse(error)
    return report


def compare(
    report: FuzzReport,
    schema: Any,
    judges: Judges,
    tokens: VocabularyTokens,
    source: random.Random,
    others: Iterable[str] = (),
) -> None:
    """Compare verdicts on walks, generated instances, edits of both, and `others`.

    Raises what compiling the schema raises.
    """
    compiled = compile_schema(schema, tokens)
    report.schemas += 1
    report.unsatisfiable += compiled is None
    texts = [edit for text in others for edit in (text, *_edits(source, text))]
    if compiled is not None:
        walker = Walker(schema, start_of(compiled, tokens), tokens)
        for _ in range(WALKS_PER_SCHEMA):
            walk = judged(walker.walk(source), judges)
            report.walks += 1
            text = walk.text.decode(errors="replace")
            if walk.ending in DEAD_ENDS | INVALID:
                expected = None if walk.ending in DEAD_ENDS else False
                report.failures.append(
                    Failure(schema, text, expected, f"{walk.ending.value}: {walk.detail}")
                )
            elif walk.ending in DISPUTED:
                report.disputed.append(Failure(schema, text, None, walk.detail))
            elif walk.ending is Ending.VALID:
                texts += _edits(source, text)
    for _ in range(INSTANCES_PER_SCHEMA):
        instance = draw_instance(source, schema, schema)
        for _ in range(source.choice((0, 0, 1, 2))):
            instance = edited(source, instance)
        texts.append(write(instance))
    texts = [text for text in dict.fromkeys(texts) if _is_plain(text)]
    for text in texts:
        verdict = judges.verdict(parse(text))
        if verdict is None:
            report.disagreements += 1
            continue
        report.pairs += 1
        report.valid += verdict
        if accepts(compiled, text) != verdict:
            report.failures.append(Failure(schema, text, verdict))
    for text in texts:
        for twice in with_a_key_twice(text):
            report.pairs += 1
            if accepts(compiled, twice):
                report.failures.append(Failure(schema, twice, False, "a key twice"))


def _edits(source: random.Random, text: str) -> Iterator[str]:
    """Compare edits of a walk's document, as long as its numbers are plain."""
    if _is_plain(text):
        instance = json.loads(text)
        for _ in range(3):
            yield write(edited(source, instance))


def _is_plain(text: str) -> bool:
    """Return whether no number has an exponent or more digits than a float."""

    def plain(number: str) -> float:
        if repr(float(number)) != number:
            raise ValueError(number)
        return float(number)

    def short(number: str) -> int:
        if len(number) > 300:
            raise ValueError(number)
        return int(number)

    try:
        # No `int` is read from what is infinite, which edits may make.
        json.loads(text, parse_float=plain, parse_int=short, parse_constant=int)
    except ValueError:
        return False
    return "e+" not in text and "e-" not in text


def with_a_key_twice(text: str) -> Iterator[str]:
    """Return a text whose root repeats its first member at the end."""
    members = json.loads(text)
    if isinstance(members, dict) and members:
        key, value = next(iter(members.items()))
        yield text[:-1] + f",{write(key)}:{write(value)}}}"


def shrink(failure: Failure, tokens: VocabularyTokens) -> Failure:
    """Return the smallest schema and instance found on which the verdict still differs."""
    if failure.expected is None or failure.detail == "a key twice":
        return failure
    schema, instance = failure.schema, failure.text
    expected = failure.expected

    def fails(schema: Any, text: str) -> bool | None:
        """Return the validators' verdict if ffwd's is another."""
        try:
            verdict = Judges(schema).verdict(parse(text))
            if verdict is None or accepts(compile_schema(schema, tokens), text) == verdict:
                return None
        except (ValueError, RecursionError):
            return None
        return verdict

    improved = True
    while improved:
        improved = False
        for smaller in _smaller(schema):
            verdict = fails(smaller, instance)
            if verdict == expected:
                schema, improved = smaller, True
                break
        if improved:
            continue
        for value in _smaller(json.loads(instance)):
            text = write(value)
            if len(text) < len(instance) and fails(schema, text) == expected:
                instance, improved = text, True
                break
    return Failure(schema, instance, expected, failure.detail)


def _smaller(value: Any) -> Iterator[Any]:
    """Yield copies of a value with one part removed or simplified."""
    if isinstance(value, dict):
        for key in value:
            if key != "$schema":
                yield {other: member for other, member in value.items() if other != key}
        for key, member in value.items():
            if isinstance(member, dict) and key not in ("properties", "$defs", "definitions"):
                yield {**{k: v for k, v in value.items() if k != key}, **member}
            if isinstance(member, dict) and member not in ({}, {"type": "null"}):
                yield {**value, key: True}
        for key, member in value.items():
            for smaller in _smaller(member):
                yield {**copy.copy(value), key: smaller}
    elif isinstance(value, list):
        for at in range(len(value)):
            yield value[:at] + value[at + 1 :]
        for at, item in enumerate(value):
            for smaller in _smaller(item):
                yield [*value[:at], smaller, *value[at + 1 :]]
    elif isinstance(value, str) and value:
        yield value[1:]
