"""`python -m maskbench compare`: it fails for what got worse, and for nothing else."""

import json

import pytest
from click.testing import CliRunner
from maskbench_runs import logs, record, run_of, wrong

from maskbench.__main__ import main
from maskbench.regression import Judged, verdicts_of
from maskbench.verdicts import Verdict
from maskbench.walk import Outcome


def write(path, found):
    run_of(found).write(path)
    return path


def compare(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


@pytest.fixture
def then(tmp_path):
    return write(tmp_path / "then.json", logs())


def changed(tmp_path, position, other, engine="one"):
    """The same run, but for one record."""
    found = logs()
    records = found[engine].records
    records[position : position + 1] = [] if other is None else [other]
    return write(tmp_path / "now.json", found)


def test_the_same_is_not_worse(then):
    result = compare(then, then)
    assert result.exit_code == 0, result.output
    assert "9 verdicts compared (one, two, three): 0 worse, 0 changed otherwise." in result.output


@pytest.mark.parametrize(
    ("position", "other", "words"),
    [
        (1, record(1, Verdict.REFUSED), ("id1", "passed", "refused", "no longer passes")),
        (1, wrong(1, Outcome.REJECTED), ("id1", "1 wrong reject", "no longer passes")),
        (1, record(1, Verdict.CRASHED), ("id1", "crashed", "no longer passes")),
        (2, wrong(2, Outcome.ACCEPTED), ("id2", "1 wrong accept", "more wrong accepts")),
        (2, record(2, Verdict.TIMED_OUT), ("id2", "timed out", "now timed out")),
        (2, record(2, Verdict.FAILED), ("id2", "failed", "now failed")),
        (3, None, ("id3", "no longer there")),
        (3, record(3, id="another", documents=[[1]]), ("another", "not in the first file")),
    ],
)
def test_what_got_worse_is_named(tmp_path, then, position, other, words):
    result = compare(then, changed(tmp_path, position, other))
    assert result.exit_code == 1
    for word in words:
        assert word in result.output


def test_more_wrong_rejects_of_a_wrong_schema_are_worse():
    assert Judged("wrong", 2, 0).worse_than(Judged("wrong", 1, 0)) == "more wrong rejects"
    assert Judged("wrong", 1, 1).worse_than(Judged("refused")) == "more wrong accepts"
    assert Judged("wrong", 0, 1).worse_than(Judged("wrong", 0, 1)) is None
    assert Judged("crashed").worse_than(Judged("crashed")) is None
    assert Judged("out of memory").worse_than(Judged("refused")) == "now out of memory"
    assert Judged("refused").worse_than(Judged("wrong", 3, 1)) is None


def test_what_got_better_or_is_new_beside_is_not_worse(tmp_path, then):
    found = logs()
    found["one"].records[2] = record(2, documents=[[1]])
    found["four"] = logs()["two"]
    result = compare(then, write(tmp_path / "now.json", found))
    assert result.exit_code == 0
    assert "0 worse, 1 changed otherwise" in result.output


def test_an_engine_that_is_gone_is_worse(tmp_path, then):
    found = logs()
    del found["three"]
    now = write(tmp_path / "now.json", found)
    result = compare(then, now)
    assert result.exit_code == 1
    assert "three" in result.output
    assert compare(then, now, "--common-only").exit_code == 0


def test_a_part_of_the_schemas_is_compared_on_demand(tmp_path, then):
    now = changed(tmp_path, 3, None)
    assert compare(then, now, "--common-only").exit_code == 0
    assert compare(now, then, "--common-only").exit_code == 0


def test_other_conditions_are_said(tmp_path, then):
    document = json.loads(then.read_text(encoding="utf-8"))
    document["settings"]["whitespace"] = "compact"
    now = tmp_path / "now.json"
    now.write_text(json.dumps(document), encoding="utf-8")
    assert "Not the same work: whitespace was flexible, is compact" in compare(then, now).output


def test_a_baseline_says_the_same_as_the_results(tmp_path, then):
    found = logs()
    found["one"].records.append(wrong(4, Outcome.ACCEPTED))
    found["one"].records.append(record(4, id="id4", documents=[[1]]))
    results = write(tmp_path / "now.json", found)
    baseline = tmp_path / "deep/baseline.json"
    written = CliRunner().invoke(main, ["baseline", str(results), str(baseline)])
    assert written.exit_code == 0, written.output
    small = json.loads(baseline.read_text(encoding="utf-8"))
    document = json.loads(results.read_text(encoding="utf-8"))
    assert verdicts_of(small, "") == verdicts_of(document, "")
    assert small["engines"]["one"]["id4"]["wrong_accepts"] == 1
    # The same id again is another schema.
    assert small["engines"]["one"]["id4 (2)"] == "passed"
    assert compare(baseline, results).exit_code == 0
    assert compare(baseline, then).exit_code == 1


def test_an_interrupted_run_is_no_baseline(tmp_path, then):
    document = json.loads(then.read_text(encoding="utf-8")) | {"complete": False}
    then.write_text(json.dumps(document), encoding="utf-8")
    result = CliRunner().invoke(main, ["baseline", str(then), str(tmp_path / "out.json")])
    assert result.exit_code == 2
    assert "interrupted" in result.output


def counts(path, toolchain="rustc 1", **workloads):
    document = {"toolchain": {"rustc": toolchain}, "instructions": workloads}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_instruction_counts_may_rise_by_the_tolerance(tmp_path):
    then = counts(tmp_path / "then.json", a=1000, b=1000)
    now = counts(tmp_path / "now.json", a=1030, b=900)
    assert compare(then, now).exit_code == 0
    result = compare(then, now, "--tolerance", "2.9")
    assert result.exit_code == 1
    assert "Over 2.9% more, or not counted: a" in result.output
    gone = counts(tmp_path / "now.json", a=1000)
    assert compare(then, gone).exit_code == 1
    assert compare(then, gone, "--common-only").exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("{", "Expecting"),
        ("[]", "not a JSON object"),
        ('{"format": "other", "engines": {}}', "neither results"),
        ('{"format": "maskbench-results-1"}', "KeyError"),
        ('{"format": "maskbench-results-1", "engines": {"one": 3}}', "TypeError"),
        ('{"format": "maskbench-verdicts-1", "engines": {"one": {"x": 3}}}', "TypeError"),
        ('{"format": "maskbench-verdicts-1", "engines": {}}', "no engine in common"),
        ('{"format": "maskbench-verdicts-1", "engines": {"one": {}}}', "no schema in common"),
        ('{"toolchain": {}, "instructions": {}}', "different kinds"),
    ],
)
def test_what_cannot_be_compared_has_a_status_of_its_own(tmp_path, then, text, message):
    file = tmp_path / "other.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    for pair in ((then, file), (file, then)):
        result = compare(*pair)
        assert result.exit_code == 2, result.output
        assert message in result.output


def test_counts_of_other_compilers_are_not_compared(tmp_path):
    then = counts(tmp_path / "then.json", a=1)
    result = compare(then, counts(tmp_path / "now.json", "rustc 2", a=1))
    assert result.exit_code == 2
    assert "different compilers" in result.output
