"""The hard cases are what they say, and are measured cold on every engine."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.figures.records import record_of
from maskbench.speed.hard import cases
from maskbench.speed.hard.measure import HardColumn, HardFigures, MeasuredCase

GENERATED = cases.generate()


@pytest.mark.parametrize("case", GENERATED, ids=lambda case: case.name)
def test_documents_are_valid_and_cases_always_the_same(case):
    validator = jsonschema_rs.validator_for(case.schema, validate_formats=True)
    assert case.documents
    assert all(validator.is_valid(document) for document in case.documents)


def test_cases_are_always_the_same():
    assert cases.generate() == GENERATED
    assert len({case.name for case in GENERATED}) == len(GENERATED)
    ids = cases.real()
    assert len(set(ids)) == len(ids) == 3 + sum(len(case.like) for case in GENERATED)


def test_cases_are_as_large_as_they_say():
    text = {case.name: json.dumps(case.schema) for case in GENERATED}
    assert text["allOf of references"].count('"allOf"') == 58
    assert 850_000 < len(text["definitions of a cluster's resources"]) < 1_000_000
    assert text["allOf by the hundred"].count('"allOf"') == 266
    assert 180_000 < len(text["recursive unions"]) < 250_000
    assert text["oneOf with null"].count('"oneOf"') == 41


def figures(first, slowest):
    return HardFigures("passed", None, first, 2, {"max": slowest})


def test_ratios_are_of_cases_that_both_pass():
    refused = HardFigures("refused", "why", None, 0, None)
    case = MeasuredCase("x", "", 1, {"a": figures(2.0, 4.0), "b": figures(10.0, 2.0), "c": refused})
    assert case.ratio("a", "b", HardColumn(None)) == 5.0
    assert case.ratio("a", "b", HardColumn("max")) == 0.5
    assert case.ratio("a", "c", HardColumn("max")) is None


def test_ffwd_passes_what_is_made_here(tmp_path):
    data = tmp_path / "some.jsonl"
    lines = [
        {"id": "one", "schema": {"type": "integer"}, "tests": [{"valid": True, "data": 1}]},
        {"id": "two", "schema": {"pattern": r"(a)\1"}, "tests": []},
    ]
    data.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    out = Path(tmp_path, "hard.json")
    result = CliRunner().invoke(
        main,
        ["speed", "hard", "--engine", "ffwd", "--rounds", "2", "--data", str(data),
         "--ids", "one,two,three", "--out", str(out)],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "not in some.jsonl: three" in result.output
    found = {case["name"]: case["engines"]["ffwd"] for case in json.loads(out.read_text())["cases"]}
    assert list(found) == [*(case.name for case in GENERATED), "one", "two"]
    assert found.pop("two")["verdict"] == "refused"
    assert {name: one["verdict"] for name, one in found.items() if one["verdict"] != "passed"} == {}
    assert all(one["first_mask"] > 0 and one["mask_us"]["max"] > 0 for one in found.values())
    record = record_of(out)
    assert record["count"] == len(found) + 1
    assert record["slowest_us"]["one"]["ffwd"] == round(found["one"]["mask_us"]["max"], 1)
    assert record["slowest_us"]["two"] == {}


def test_markdown_has_a_row_for_each_case():
    result = CliRunner().invoke(
        main,
        ["speed", "hard", "--engine", "ffwd", "--rounds", "1", "--case", "searched", "--markdown"],
    )
    assert result.exit_code == 0, result.output
    rows = [line for line in result.output.splitlines() if line.startswith("|")]
    assert rows[0].startswith("| case | compile + first mask: ffwd |")
    assert len(rows) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", ","], "names no engine"),
        (["--ids", "x"], "--ids are of schemas in --data"),
        (["--data", "nonesuch.jsonl"], "no such file"),
    ],
)
def test_bad_options_are_explained(arguments, message):
    result = CliRunner().invoke(main, ["speed", "hard", *arguments])
    assert result.exit_code != 0
    assert message in result.output
