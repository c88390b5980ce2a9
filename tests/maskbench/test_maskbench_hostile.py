"""What is made to be slow ends in time, with a typed error or without."""

import json

from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.conformance.hostile.cases import CASES
from maskbench.conformance.hostile.grammars import GRAMMARS
from maskbench.conformance.hostile.measure import Cost
from maskbench.conformance.hostile.patterns import PATTERNS
from maskbench.conformance.hostile.schemas import SCHEMAS


def test_cases_have_names_of_their_own():
    assert len(CASES) == len(SCHEMAS) + len(PATTERNS) + len(GRAMMARS) >= 80
    assert all(case.what for case in CASES.values())


def test_what_is_too_much():
    cost = Cost("x", "compiled", "", False, 0.5, 0.9, "mask", 10)
    assert (cost.slowest_s, cost.fault) == (0.9, None)
    for other in (
        Cost("x", "compiled", "", False, 1.5, 0.0, "", 10),
        Cost("x", "compiled", "", False, 0.0, 1.5, "mask", 10),
        Cost("x", "compiled", "", False, 0.0, 0.0, "", 2 * 10**9),
        Cost("x", "FfwdError", "m" * 3000, False, 0.0, 0.0, "", 0),
        Cost("x", "process ended with -11", "", False, 0.0, 0.0, "", 0),
    ):
        assert other.fault


def test_a_few_cases_are_measured_in_processes_of_their_own(tmp_path):
    out = tmp_path / "hostile.json"
    wanted = {
        "brackets": "LimitExceededError: nesting",
        "negation": "compiled",
        "suffix": "compiled",
    }
    options = [option for name in wanted for option in ("--case", name)]
    # Not --strict: the machine may be busy.
    result = CliRunner().invoke(
        main,
        [
            "conformance",
            "hostile",
            "--tokenizer",
            "bytes",
            *options,
            "--markdown",
            "--out",
            str(out),
        ],
    )
    assert result.exit_code == 0, result.output
    found = {cost["name"]: cost for cost in json.loads(out.read_text(encoding="utf-8"))["cases"]}
    assert {name: cost["outcome"] for name, cost in found.items()} == wanted
    assert "| brackets |" in result.output
    assert found["brackets"]["call"] == ""
    assert found["suffix"]["call"]
    assert all(cost["memory_bytes"] < 200_000_000 for cost in found.values())


def test_what_is_unknown_is_said():
    result = CliRunner().invoke(main, ["conformance", "hostile", "--tokenizer", "no such folder"])
    assert result.exit_code != 0
    assert "no such folder" in result.output
