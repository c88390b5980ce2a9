"""What ffwd makes of the suite's cases, and the record of those that it misses."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from suite import Case, remotes

import ffwd

RECORD = Path(__file__).with_name("missed.json")


class Outcome(str, Enum):
    PASSED = "passed"
    WRONG_ACCEPT = "wrong accept"
    WRONG_REJECT = "wrong reject"
    REFUSED = "refused"
    """The schema is refused with a typed error, so that nothing is accepted."""


@dataclass(frozen=True)
class Result:
    outcome: Outcome
    detail: str = ""


@cache
def vocabulary() -> ffwd.Vocabulary:
    """Single bytes and an end token."""
    tokens = [bytes([byte]) for byte in range(256)]
    return ffwd.Vocabulary([*tokens, None], eos_token_ids=[256])


class Judge:
    """Compiles each schema once; the cases of one schema stand together."""

    def __init__(self) -> None:
        self._schema: str | None = None
        self._compiled: ffwd.CompiledGrammar | ffwd.FfwdError | None = None

    def result(self, case: Case) -> Result:
        if case.schema != self._schema:
            self._schema = case.schema
            try:
                grammar = ffwd.json_schema(
                    case.schema, property_order="any", numbers="any", registry=remotes()
                )
                self._compiled = ffwd.compile(grammar, vocabulary())
            except ffwd.FfwdError as error:
                self._compiled = error
        compiled = self._compiled
        if isinstance(compiled, ffwd.UnsatisfiableSchemaError):
            accepted = False
        elif isinstance(compiled, ffwd.FfwdError):
            return Result(Outcome.REFUSED, f"{type(compiled).__name__}: {compiled}")
        else:
            assert compiled is not None
            matcher = compiled.matcher()
            try:
                whole = matcher.accept_tokens(list(case.instance.encode()))
                accepted = whole and matcher.is_accepting()
            except ffwd.LimitExceededError as error:
                return Result(Outcome.REFUSED, f"LimitExceededError: {error}")
        if accepted == case.valid:
            return Result(Outcome.PASSED)
        return Result(Outcome.WRONG_ACCEPT if accepted else Outcome.WRONG_REJECT)


def key(case: Case) -> str:
    return " / ".join((case.draft, case.file, case.group, case.test))


def recorded() -> dict[str, tuple[Outcome, str]]:
    """The cases that are missed, with the outcome and the reason."""
    if not RECORD.exists():
        return {}
    entries = json.loads(RECORD.read_text(encoding="utf-8"))
    return {
        case: (Outcome(entry["outcome"]), reason)
        for entry in entries
        for reason in [entry["reason"]]
        for case in entry["cases"]
    }


def record(missed: dict[str, tuple[Outcome, str]]) -> None:
    """Writes the record: one entry for each outcome and reason, with its cases in order."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for case, (outcome, reason) in missed.items():
        grouped.setdefault((outcome.value, reason), []).append(case)
    entries = [
        {"outcome": outcome, "reason": reason, "cases": sorted(listed)}
        for (outcome, reason), listed in sorted(grouped.items())
    ]
    RECORD.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def shares(results: Iterable[tuple[Case, Result]]) -> dict[str, Counter[Outcome]]:
    """Outcomes by part of the suite."""
    counted: dict[str, Counter[Outcome]] = {}
    for case, result in results:
        counted.setdefault(case.part, Counter())[result.outcome] += 1
    return counted
