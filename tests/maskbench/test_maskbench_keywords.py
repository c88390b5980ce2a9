"""The probes of keywords: what two validators say of their labels, and the gates' commands."""

import json

import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.conformance.gates.judges import Judges, RepeatedKeyError, parse
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
