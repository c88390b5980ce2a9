"""The official JSON-Schema-Test-Suite, against a committed record of the cases that are missed.

The record works both ways: a case that begins to fail fails here, and so does one that has begun to
pass and is still in the record. `report.py --write` writes it anew.
"""

from functools import cache

import pytest
from outcomes import Judge, Outcome, Result, key, recorded, shares
from suite import DIALECTS, VARIABLE, Case, cases, place

pytestmark = pytest.mark.skipif(
    place() is None,
    reason=f"no JSON-Schema-Test-Suite: run `make suite`, or name its folder in {VARIABLE}",
)

# Later copies of the suite have many more cases of names in Punycode, which are left out.
LEAST_SHARES = {"required": 0.98, "format": 0.96, "optional": 0.96}
# In a part that a draft leaves to the implementation: `contentEncoding` and `contentMediaType`
# are annotations here.
ANNOTATIONS = ("optional/content",)


@cache
def results(draft: str) -> list[tuple[Case, Result]]:
    judge = Judge()
    return [(case, judge.result(case)) for case in cases(draft)]


@pytest.mark.parametrize("draft", DIALECTS)
def test_each_case_is_as_recorded(draft: str) -> None:
    known = recorded()
    found = {key(case): result.outcome for case, result in results(draft)}
    expected = dict.fromkeys(found, Outcome.PASSED) | {
        case: outcome for case, (outcome, _) in known.items() if case in found
    }
    changed = {
        case: f"recorded as {expected[case].value}, now {outcome.value}"
        for case, outcome in found.items()
        if outcome is not expected[case]
    }
    assert changed == {}


@pytest.mark.parametrize("draft", DIALECTS)
def test_shares_of_cases_passed(draft: str) -> None:
    for part, counts in shares(results(draft)).items():
        assert counts[Outcome.PASSED] / counts.total() >= LEAST_SHARES[part], (part, counts)


@pytest.mark.parametrize("draft", DIALECTS)
def test_no_wrong_accept(draft: str) -> None:
    wrong = [
        key(case)
        for case, result in results(draft)
        if result.outcome is Outcome.WRONG_ACCEPT and case.file not in ANNOTATIONS
    ]
    assert wrong == []


def test_each_miss_has_a_reason() -> None:
    assert [case for case, (_, reason) in recorded().items() if not reason] == []
