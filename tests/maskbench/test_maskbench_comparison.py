"""Engines beside each other: on the same schemas, the same masks, and against the goals."""

import json

import pytest
from click.testing import CliRunner
from maskbench_runs import logs, record, run_of

from maskbench import results
from maskbench.__main__ import main
from maskbench.comparison import comparisons
from maskbench.goals import GOALS, Limit, judge
from maskbench.report.command import render
from maskbench.runner import EngineLog
from maskbench.verdicts import Verdict

LOGS = logs()


def test_pairs_count_what_both_did():
    two, three, both = comparisons(LOGS, "one")
    assert (two.peers, two.schemas, two.masks) == (("two",), 2, 5)
    # The third mask of the refused document is one that `two` did not make.
    assert two.own("mask_us", "max") == 6
    assert two.own("mask_us", "avg") == pytest.approx((1 + 2 + 3 + 4 + 6) / 5)
    assert two.better_peer("mask_us", "max") == 60
    assert two.own("first_mask_us", "max") == 30
    assert two.left_out == {"one: wrong": ("id2",), "two: refused": ("id1",)}
    assert (three.schemas, three.masks) == (1, 3)
    assert three.left_out == {"not given to three": ("id1", "id3"), "one: wrong": ("id2",)}
    assert (both.peers, both.schemas, both.masks) == (("two", "three"), 1, 3)
    assert both.better_peer("mask_us", "max") == 29
    assert both.better_peer("first_mask_us", "p50") == 90


def test_goals_are_judged_by_time_or_by_the_better_peer():
    assert Limit(us=2.5, faster=4).is_met(2.5, 3.0)
    assert Limit(us=2.5, faster=4).is_met(5.0, 20.0)
    assert not Limit(us=2.5, faster=4).is_met(5.0, 19.0)
    assert not Limit(faster=4).is_met(1.0, None)
    assert str(Limit(us=2.5, faster=4)) == "≤ 2.5 µs or 1/4"
    assert str(Limit(us=10_000)) == "≤ 10 ms"
    judged = {j.goal.title: j for j in judge(comparisons(LOGS, "one")[0])}
    assert list(judged) == [goal.title for goal in GOALS]
    first = judged["compile + first mask p50"]
    assert (first.own, first.peers, first.ratio) == (10, (100.0,), 10)
    assert first.must
    assert first.aim
    mask = judged["mask avg"]
    assert mask.ratio == pytest.approx(10)
    assert not mask.must


def test_an_engine_is_no_rival_of_itself():
    logs = {"one": LOGS["one"], "one-any": LOGS["one"], "two": LOGS["two"]}
    variant, two, all_of_them = comparisons(logs, "one")
    assert (variant.peers, variant.rivals, judge(variant)) == (("one-any",), (), [])
    assert all_of_them.rivals == two.rivals == ("two",)
    assert all_of_them.better_peer("mask_us", "max") == two.better_peer("mask_us", "max")
    tables = render("markdown", [run_of(logs)])
    assert "one and one-any pass" not in tables
    assert "one and one-any and two pass" in tables


def test_nothing_in_common_has_no_figures():
    logs = {"one": EngineLog(records=[record(0, Verdict.CRASHED)]), "two": LOGS["two"]}
    (pair,) = comparisons(logs, "one")
    assert (pair.schemas, pair.masks, judge(pair)) == (0, 0, [])
    assert "0 schemas" in render("markdown", [run_of(logs)])


def written(tmp_path):
    out = tmp_path / "run.json"
    run_of(LOGS).write(out)
    return out


def test_written_results_are_compared_alike(tmp_path):
    out = written(tmp_path)
    document, logs = results.read(out)
    assert comparisons(logs, "one") == comparisons(LOGS, "one")
    assert document["comparisons"][0]["left_out"]["two: refused"] == ["id1"]
    assert [goal["goal"] for goal in document["comparisons"][0]["goals"]] == [
        goal.title for goal in GOALS
    ]
    shown = CliRunner().invoke(main, ["report", "--subject", "one", str(out)])
    assert shown.exit_code == 0, shown.output
    assert "one and two and three pass: 1 schemas, 3 masks" in shown.output
    assert "left out, not given to three: 2" in shown.output
    arguments = ["report", "--subject", "one", "--format", "markdown", str(out)]
    text = CliRunner().invoke(main, arguments).output
    assert "### bytes, store emptied before each schema, run.json" in text
    assert "| mask avg | 3.20 | 32.0 | 10.0x | ≤ 1/15: missed | ≤ 1/20: missed |" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("{", "not JSON"),
        ("[]", "TypeError"),
        ('{"format": "other"}', "the format is 'other'"),
        ('{"format": "maskbench-results-1"}', "KeyError"),
    ],
)
def test_what_holds_no_results_is_named(tmp_path, text, message):
    file = tmp_path / "run.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(main, ["report", str(file)])
    assert result.exit_code == 1
    assert message in result.output
    assert "run.json" in result.output


def test_a_subject_that_did_not_run_is_named(tmp_path):
    result = CliRunner().invoke(main, ["report", "--subject", "x", str(written(tmp_path))])
    assert result.exit_code == 1
    assert "it has one, two, three" in result.output


def test_samples_are_of_format_that_can_be_read_without_this_package(tmp_path):
    document = json.loads(written(tmp_path).read_text(encoding="utf-8"))
    assert [schema["index"] for schema in document["engines"]["three"]["schemas"]] == [0]
