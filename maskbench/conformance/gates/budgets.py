"""Walks with a token budget: with any choices they end in time with a whole document."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ffwd
from maskbench.conformance.gates.drawn import DrawnReport
from maskbench.conformance.gates.schemas import draw_schema
from maskbench.conformance.gates.walks import VocabularyTokens
from maskbench.data import builtin_cases

MORE = (0, 0, 1, 2, 5, 10, 30, 100)
"""By how many tokens budgets are larger than the shortest completion."""

_RECENT = 8
_ROLLBACK = 0.05


@dataclass(frozen=True)
class Late:
    """A walk that did not end as it should."""

    schema: Any
    seed: str
    max_tokens: int
    tokens: tuple[int, ...]
    detail: str

    @property
    def text(self) -> str:
        """Return the allowed sequence as text."""
        return f"{self.max_tokens} tokens"


@dataclass
class BudgetReport(DrawnReport):
    """The walks, and their failures."""

    walks: int = 0
    tokens: int = 0
    full: int = 0
    """Walks that used all of their budget."""


def random_schemas(seed: int) -> Iterator[Any]:
    """Return every schema of the corpus, then schemas of all keywords, without end."""
    for case in builtin_cases():
        yield case.schema
    number = 0
    while True:
        yield draw_schema(random.Random(f"budgets {seed} {number}"))
        number += 1


def run(
    schemas: int,
    seed: int,
    vocabulary: ffwd.Vocabulary,
    advance: Callable[[BudgetReport], None] = lambda report: None,
) -> BudgetReport:
    """Walk through this many satisfiable schemas, each with a few budgets."""
    report = BudgetReport()
    tokens = VocabularyTokens(vocabulary)
    drawn = random_schemas(seed)
    while report.schemas < schemas:
        schema = next(drawn)
        source = random.Random(f"{seed} {report.schemas}")
        grammar = ffwd.json_schema(
            schema,
            whitespace=source.choice(("compact", "flexible", "single-space")),
            property_order=source.choice(("declared", "any")),
        )
        try:
            compiled = ffwd.compile(grammar, vocabulary)
            walk_all(report, schema, compiled, tokens, f"{seed} {report.schemas}")
        except ffwd.UnsatisfiableSchemaError:
            report.unsatisfiable += 1
        except ffwd.FfwdError as error:
            report.refuse(error)
        else:
            report.schemas += 1
            advance(report)
    return report


def walk_all(
    report: BudgetReport,
    schema: Any,
    compiled: ffwd.CompiledGrammar,
    tokens: VocabularyTokens,
    seed: str,
    more: Sequence[int] = MORE,
) -> None:
    """Walk once for each budget. The smallest one must be that of the error.

    Raises:
        FfwdError: The schema uses what is not supported, or passes a limit.
    """
    needed = len(compiled.shortest_completion())
    try:
        compiled.matcher(max_tokens=needed - 1)
    except ffwd.BudgetError as error:
        if (error.needed, error.max_tokens) != (needed, needed - 1):
            report.failures.append(Late(schema, seed, needed - 1, (), str(error)))
    else:
        report.failures.append(Late(schema, seed, needed - 1, (), "no error"))
    for number in more:
        max_tokens = needed + number
        matcher = compiled.matcher(max_tokens=max_tokens)
        detail = walk(matcher, tokens, random.Random(f"{seed} {number}"))
        report.walks += 1
        report.tokens += matcher.num_tokens
        report.full += matcher.num_tokens == max_tokens
        if detail is None and matcher.num_tokens > max_tokens:
            detail = "too long"
        if detail is not None:
            spelled = tuple(matcher.tokens)
            report.failures.append(Late(schema, seed, max_tokens, spelled, detail))


def walk(matcher: ffwd.Matcher, tokens: VocabularyTokens, source: random.Random) -> str | None:
    """Choose at random, mostly not the end, and now and then goes back; what went wrong, if so."""
    steps = 0
    while not matcher.is_terminated():
        matcher.fill_bitmask(tokens.rows)
        allowed = np.flatnonzero(tokens.allowed())
        if not len(allowed):
            return "an empty mask"
        chosen = int(source.choice(allowed))
        if chosen in tokens.ends and source.random() < 0.7:
            chosen = int(source.choice(allowed))
        if not matcher.accept_token(chosen):
            return f"token {chosen} of the mask is refused"
        steps += 1
        if matcher.tokens_left is None or matcher.tokens_left < 0:
            return "more tokens than the budget"
        if source.random() < _ROLLBACK and steps < 2000:
            matcher.rollback(source.randrange(min(matcher.num_tokens, _RECENT) + 1))
    text = b"".join(tokens.texts[token] or b"" for token in matcher.tokens)
    try:
        json.loads(text)
    except ValueError as error:
        return f"not JSON: {error}"
    return None
