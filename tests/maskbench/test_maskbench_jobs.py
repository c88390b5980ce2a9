"""Groups of engines side by side, and the progress bar."""

import io
import json
import os
import threading

import pytest
from maskbench_fake_data import case, maskbench_run, verdicts, write_cases
from rich.console import Console
from test_maskbench_limits import SETUP, job

from maskbench.progress import progress
from maskbench.runner import EngineStartError, collect
from maskbench.runs import cores
from maskbench.runs.local import LocalExecutor
from maskbench.runs.preparation import Chunk
from maskbench.runs.settings import ExecutorError, RunSettings
from maskbench.verdicts import Verdict

FAKE = "maskbench_fake_engine:FakeEngine"
SECOND = "maskbench_fake_engine:SecondFakeEngine"
ENGINES = [FAKE, SECOND]
CORES = cores.physical_cores()


def chunks(behaviours, size=2):
    jobs = [job(index, behave) for index, behave in enumerate(behaviours)]
    parts = [tuple(jobs[i : i + size]) for i in range(0, len(jobs), size)]
    return [Chunk(number, part, len(part)) for number, part in enumerate(parts)]


def collected(behaviours, tmp_path, engines=ENGINES, pins=(None, None), **settings):
    with LocalExecutor(
        engines, SETUP, RunSettings(**settings), tmp_path, lambda name: None, pins
    ) as executor:
        return collect(executor, engines, chunks(behaviours))


def test_groups_share_the_chunks_and_results_are_in_order(tmp_path):
    behaviours = [None, "slow", "abort", "slow", None, "grow without end", "slow", None, "refuse"]
    found = collected(behaviours, tmp_path, memory_limit=300 << 20)
    alone = collected(behaviours, tmp_path / "alone", pins=(None,), memory_limit=300 << 20)
    assert found.chunks == alone.chunks == 5
    for name in ENGINES:
        verdicts = [(r.index, r.verdict) for r in found.logs[name].records]
        assert verdicts == [(r.index, r.verdict) for r in alone.logs[name].records]
        assert [index for index, _ in verdicts] == list(range(9))
        assert verdicts[2][1] is Verdict.CRASHED
        assert verdicts[5][1] is Verdict.OUT_OF_MEMORY
        assert found.logs[name].offered == 9
        assert found.logs[name].peak_memory_bytes > 300 << 20


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cannot be pinned here")
@pytest.mark.skipif(len(CORES) < 2, reason="there is one core")
def test_each_group_has_its_own_processor(tmp_path):
    on = [f"be on {core}" for core in CORES[:2]]
    found = collected(on * 4, tmp_path, [FAKE], CORES[:2])
    # Chunks of two: each group finds one of the two where it says.
    passed = [record.verdict is Verdict.PASSED for record in found.logs[FAKE].records]
    assert passed.count(True) == passed.count(False) == 4


def test_an_engine_that_does_not_start_ends_the_run(tmp_path):
    with pytest.raises(EngineStartError, match="cannot run on processor 1000000"):
        collected([None] * 8, tmp_path, [FAKE], (None, 1_000_000))


def test_an_interrupt_ends_all_groups_and_keeps_whole_chunks(tmp_path):
    before = threading.active_count()

    def interrupted():
        yield from chunks([None] * 4)
        raise KeyboardInterrupt

    with LocalExecutor(
        ENGINES, SETUP, RunSettings(), tmp_path, lambda name: None, (None, None)
    ) as executor:
        found = collect(executor, ENGINES, interrupted())
    assert found.chunks <= 2
    for log in found.logs.values():
        assert [r.index for r in log.records][: 2 * found.chunks] == [r.index for r in log.records]
    assert threading.active_count() == before


def test_what_cannot_run_side_by_side_is_refused(monkeypatch):
    monkeypatch.setattr(cores, "physical_cores", lambda: [0, 2, 4])
    assert cores.pins_for(1, ()) == [None]
    assert cores.pins_for(1, (7,)) == [7]
    assert cores.pins_for(2, ()) == [2, 4]
    assert cores.pins_for(2, (0, 1)) == [0, 1]
    with pytest.raises(ExecutorError, match="there are 3 cores"):
        cores.pins_for(4, ())
    for pins in ((1,), (1, 1), (1, 2, 3)):
        with pytest.raises(ExecutorError, match="needs 2 processors"):
            cores.pins_for(2, pins)


@pytest.mark.skipif(len(CORES) < 2, reason="there is one core")
def test_the_command_line_runs_groups(tmp_path):
    data = write_cases(tmp_path / "some.jsonl", [case(f"case {i}") for i in range(9)])
    found = []
    for jobs in (1, 2):
        out = tmp_path / f"{jobs}.json"
        done = maskbench_run("--engine", ",".join(ENGINES), "--tokenizer", "bytes", "--data",
                             data, "--chunk", 2, "--jobs", jobs, "--out", out)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        document = json.loads(out.read_text("utf-8"))
        assert document["settings"]["jobs"] == jobs
        for engine in document["engines"].values():
            assert engine["peak_memory_bytes"] >= engine["start_memory_bytes"] > 0
            assert all(schema["peak_memory_bytes"] > 0 for schema in engine["schemas"])
        found.append(verdicts(out))
    assert found[0] == found[1]
    assert {verdict for _, _, verdict, *_ in found[0][FAKE]} == {"passed"}


def shown(terminal):
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100)
    with progress({"a": 10, "b": 4}, ["a", "b"], {"a": 6}, console) as advance:
        advance("a")
        advance("b")
    return text.getvalue()


def test_progress_is_shown_on_a_terminal_only_with_the_time_left():
    text = shown(terminal=True)
    assert "7/10" in text
    assert "1/4" in text
    assert "left" in text
    assert shown(terminal=False).strip() == ""
