"""Fuzzing of keywords and random walks in short, and the cases that they found.

`python -m maskbench conformance fuzz` and `conformance walk` do the same at length.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import ffwd
from maskbench.conformance.gates import fuzz
from maskbench.conformance.gates.judges import Judges
from maskbench.conformance.gates.walks import (
    DISPUTED,
    Ending,
    VocabularyTokens,
    Walker,
    byte_tokens,
    judged,
    start_of,
)
from maskbench.data import builtin_cases

CASES = json.loads(Path(__file__).with_name("fuzz_cases.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokens() -> VocabularyTokens:
    return byte_tokens()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_cases_that_fuzzing_found(case: dict[str, Any], tokens: VocabularyTokens) -> None:
    compiled = fuzz.compile_schema(case["schema"], tokens)
    assert fuzz.accepts(compiled, case["instance"]) == case["valid"]


def test_verdicts_are_those_of_two_validators(tokens: VocabularyTokens) -> None:
    report = fuzz.run(4000, 2024, tokens)
    assert [fuzz.shrink(failure, tokens) for failure in report.failures[:5]] == []
    # The comparison is worth something only while little is left out, and both verdicts occur.
    assert report.refused.total() < report.schemas * 0.01, report.refused
    assert report.disagreements < report.pairs * 0.02
    assert 0.2 < report.valid / report.pairs < 0.8
    assert report.unsatisfiable < report.schemas * 0.3


def test_walks_on_the_corpus_end_in_valid_documents(tokens: VocabularyTokens) -> None:
    endings = {}
    for case in builtin_cases():
        try:
            compiled = fuzz.compile_schema(case.schema, tokens)
        except ffwd.UnsupportedSchemaError:
            assert case.id == "builtin_kw_pattern_back_reference"
            continue
        assert compiled is not None, case.id
        walker = Walker(case.schema, start_of(compiled, tokens), tokens)
        judges = Judges(case.schema)
        for seed in range(4):
            walk = walker.walk(random.Random(f"{case.id} {seed}"))
            endings[case.id, seed] = judged(walk, judges)
    wrong = {place: walk for place, walk in endings.items() if walk.ending is not Ending.VALID}
    # Python's and Rust's patterns do not mean the same by a word's boundary.
    undecided = DISPUTED | {Ending.UNJUDGED}
    assert {place: walk for place, walk in wrong.items() if walk.ending not in undecided} == {}
    assert len(wrong) < len(endings) * 0.05


def test_shrinking_keeps_what_fails(tokens: VocabularyTokens) -> None:
    """A verdict that is no failure stays as it is, and one that is becomes smaller."""
    schema = {"type": "object", "properties": {"a": {"minimum": 3, "type": "integer"}}}
    untrue = fuzz.Failure(schema, '{"a":1}', expected=False)
    assert fuzz.shrink(untrue, tokens) == untrue


def test_a_schema_is_drawn_the_same_again() -> None:
    drawn = [fuzz.draw_schema(random.Random(seed)) for seed in range(50)]
    assert drawn == [fuzz.draw_schema(random.Random(seed)) for seed in range(50)]
    assert len({json.dumps(schema) for schema in drawn}) == 50
