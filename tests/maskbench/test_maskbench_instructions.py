"""Reading callgrind's output, and comparing counts."""

import json

import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.tools import instructions
from maskbench.tools.instructions import compare, read_counts

OUTPUT = """\
# callgrind format
version: 1
events: Ir

ob=(3)
fl=(5) ???
fn=(10) _ZN12instructions4main17h0123456789abcdefE
0 77
cfn=(11) _ZN12instructions15workload_encode17hfedcba9876543210E
calls=1 0
0 1500

fn=(11)
0 20
cob=(4)
cfi=(6)
cfn=(12) memcpy
calls=3 0
+1 480
* 1000

fn=(12)
0 480

fn=(13) _RNvCs5_12instructions21workload_string_mask
-2 9

totals: 1586
"""


def test_each_workload_is_counted_with_what_it_calls():
    assert read_counts(OUTPUT) == {"encode": 1500, "string_mask": 9}


def test_changes_are_judged():
    then = {"a": 1000, "b": 1000, "c": 1000, "gone": 5}
    changes = {c.name: c for c in compare(then, {"new": 1, "a": 1030, "b": 1031, "c": 900})}
    assert [name for name, c in changes.items() if c.is_regression] == ["b", "gone", "new"]
    assert [name for name, c in changes.items() if c.is_improvement] == ["c"]
    assert changes["a"].percent == pytest.approx(3.0)
    assert changes["new"].percent is None


@pytest.fixture
def counted(monkeypatch):
    """As if valgrind and the workloads were there."""
    toolchain = {"rustc": "1.0", "target": "here"}
    monkeypatch.setattr(instructions.shutil, "which", lambda name: name)
    monkeypatch.setattr(instructions, "_toolchain", lambda valgrind: dict(toolchain))
    monkeypatch.setattr(instructions, "_build", lambda: None)
    monkeypatch.setattr(instructions, "_count", lambda valgrind, built: {"encode": 1000})
    return toolchain


def run(*arguments):
    return CliRunner().invoke(main, ["tools", "instructions", *map(str, arguments)])


def test_a_rise_fails_and_an_update_records_it(counted, tmp_path):
    recorded = tmp_path / "instructions.json"
    assert run("--recorded", recorded).exit_code == 1
    assert run("--recorded", recorded, "--update").exit_code == 0
    document = json.loads(recorded.read_text(encoding="utf-8"))
    assert document == {"toolchain": counted, "instructions": {"encode": 1000}}
    assert run("--recorded", recorded).exit_code == 0
    recorded.write_text(json.dumps({**document, "instructions": {"encode": 900}}))
    result = run("--recorded", recorded)
    assert result.exit_code == 1
    assert "more instructions than recorded, by over 3%: encode" in result.output
    recorded.write_text(json.dumps({**document, "instructions": {"encode": 1100}}))
    result = run("--recorded", recorded)
    assert result.exit_code == 0
    assert "Fewer than recorded: encode" in result.output


def test_other_compilers_are_not_compared(counted, tmp_path):
    recorded = tmp_path / "instructions.json"
    counts = {"toolchain": {"rustc": "0.9", "target": "here"}, "instructions": {"encode": 1}}
    recorded.write_text(json.dumps(counts))
    result = run("--recorded", recorded)
    assert result.exit_code == 0
    assert "recorded with rustc 0.9, target here, and this is rustc 1.0" in result.output


def test_without_valgrind_it_says_so(monkeypatch):
    monkeypatch.setattr(instructions.shutil, "which", lambda name: None)
    result = run()
    assert result.exit_code == 0
    assert "valgrind is not installed" in result.output


def test_the_recorded_counts_are_of_ten_workloads():
    document = json.loads(instructions.RECORDED.read_text(encoding="utf-8"))
    source = (instructions.RECORDED.parent / "instructions/main.rs").read_text(encoding="utf-8")
    assert len(document["instructions"]) == 10
    for name, count in document["instructions"].items():
        assert f"fn workload_{name}(" in source
        assert count > 0
