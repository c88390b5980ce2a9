"""The probes of keywords: what two validators say of their labels, and the gates' commands."""

import json
from types import SimpleNamespace

import jsonschema_rs
import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.conformance.gates.judges import Judges, RepeatedKeyError, UnjudgeableError, parse
from maskbench.conformance.gates.keywords import PROBES


def verdict(judges, text):
    try:
        return judges.verdict(parse(text))
    except RepeatedKeyError:
        return False


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.keyword)
def test_labels_of_a_probe_are_both_validators(probe):
    judges = Judges(probe.schema)
    assert {text: verdict(judges, text) for text in probe.valid + probe.invalid} == {
        **dict.fromkeys(probe.valid, True),
        **dict.fromkeys(probe.invalid, False),
    }


def test_probes_are_many_and_each_has_both_labels():
    assert len({probe.keyword for probe in PROBES}) == len(PROBES) >= 40
    assert all(probe.valid and probe.invalid for probe in PROBES)


def test_ffwd_is_exact_on_every_probe():
    result = CliRunner().invoke(main, ["conformance", "keywords", "--engine", "ffwd"])
    assert result.exit_code == 0, result.output
    rows = [line for line in result.stdout.splitlines() if line.startswith("| ")][2:]
    assert [row.split(" | ")[0][2:] for row in rows] == [probe.keyword for probe in PROBES]
    assert {row.split(" | ")[1] for row in rows} == {"exact |"}


@pytest.mark.parametrize("command", ["fuzz --pairs 300", "finite --schemas 60"])
def test_gates_without_a_file(command):
    result = CliRunner().invoke(main, ["conformance", *command.split(), "--seed", "3"])
    assert result.exit_code == 0, result.output
    assert "failures: 0" in result.stdout


def test_budgets_are_kept_and_written(tmp_path):
    out = tmp_path / "budgets.json"
    arguments = ["budgets", "--schemas", "8", "--out", str(out)]
    result = CliRunner().invoke(main, ["conformance", *arguments])
    assert result.exit_code == 0, result.output
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["schemas"] == 8
    assert document["failures"] == []


def test_a_validator_that_follows_too_many_references_gives_up(monkeypatch):
    """Each level of the instance has four times as many branches as the one above."""
    both = [{"$ref": "#/$defs/inner"}] * 2
    schema = {
        "$ref": "#/$defs/outer",
        "$defs": {
            "outer": {"allOf": both},
            "inner": {"properties": {"x": {"allOf": [{"$ref": "#/$defs/outer"}] * 2}}},
        },
    }
    shallow: dict = {}
    deep: dict = {}
    for _ in range(4):
        shallow = {"x": shallow}
    for _ in range(30):
        deep = {"x": deep}
    # It would take as long.
    quick = SimpleNamespace(is_valid=lambda _: True)
    monkeypatch.setattr(jsonschema_rs, "validator_for", lambda *_, **__: quick)
    judges = Judges(schema)
    assert judges.verdict(shallow) is True
    assert judges.verdict(deep) is None
    with pytest.raises(UnjudgeableError, match="more than 50,000 references"):
        judges.refusals(deep)
    assert judges.refusing_keywords(deep) == []
    # The count begins anew.
    assert judges.verdict(shallow) is True
