"""Memory: the limit from outside, what is called out of memory, and peaks."""

import itertools
import json
import os
import signal
import sys
import time
from array import array
from pathlib import Path

import psutil
import pytest

from maskbench.documents import Document, Job, Whitespace
from maskbench.engines import EngineSetup
from maskbench.runner import RunSettings, run
from maskbench.runs import memory
from maskbench.statistics import count_verdicts
from maskbench.tokenizer import TokenizerSpec
from maskbench.verdicts import Verdict

FAKE = "maskbench_fake_engine:FakeEngine"
MIB = 1 << 20
SETUP = EngineSetup(
    TokenizerSpec("bytes", Path(), vocab_size=257, eos_token_ids=(256,), sha256=""),
    Whitespace.COMPACT,
)


def job(index, behave=None):
    schema = json.dumps({"language": ["a"], "behave": behave})
    return Job(index, f"case {index}", schema, (Document(True, array("i", list(b"a"))),))


def log_of(tmp_path, *behaviours, **settings):
    jobs = [job(index, behave) for index, behave in enumerate(behaviours)]
    return run([FAKE], [jobs], SETUP, RunSettings(**settings), tmp_path)[FAKE]


def test_a_process_that_grows_is_killed_and_the_run_goes_on(tmp_path):
    log = log_of(tmp_path, None, "grow without end", None, memory_limit=300 * MIB)
    assert [record.verdict for record in log.records] == [
        Verdict.PASSED, Verdict.OUT_OF_MEMORY, Verdict.PASSED,
    ]  # fmt: skip
    killed = log.records[1]
    assert killed.detail.startswith("killed at ")
    assert killed.detail.endswith("resident, the limit is 300 MiB")
    # Two looks are 50 ms apart, and it takes 8 MiB a millisecond at most.
    assert 300 * MIB < killed.peak_memory_bytes < 1500 * MIB
    assert log.peak_memory_bytes >= killed.peak_memory_bytes
    assert log.records[2].peak_memory_bytes < 300 * MIB
    assert count_verdicts(log.records).out_of_memory == 1


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="peaks are sampled here")
def test_a_schema_that_is_over_the_limit_for_a_moment_only_is_too(tmp_path):
    log = log_of(tmp_path, "use MiB 200", None, memory_limit=150 * MIB)
    assert [r.verdict for r in log.records] == [Verdict.OUT_OF_MEMORY, Verdict.PASSED]
    assert log.records[0].peak_memory_bytes > 150 * MIB


@pytest.mark.parametrize("behave", ["MemoryError", "bad_alloc", "abort without memory"])
def test_a_failed_allocation_is_out_of_memory(tmp_path, behave):
    log = log_of(tmp_path, behave, None)
    assert [r.verdict for r in log.records] == [Verdict.OUT_OF_MEMORY, Verdict.PASSED]
    if behave == "abort without memory":
        assert "SIGABRT" in log.records[0].detail
        assert "memory allocation of 34359738368 bytes failed" in log.records[0].detail
    else:
        assert "an allocation failed" in log.records[0].detail


def test_a_kill_by_the_system_is_told_from_other_kills(tmp_path, monkeypatch):
    by_hand = log_of(tmp_path, "be killed", None)
    assert [r.verdict for r in by_hand.records] == [Verdict.CRASHED, Verdict.PASSED]
    assert by_hand.records[0].detail == "killed by SIGKILL"
    counts = itertools.count()
    monkeypatch.setattr(memory, "kills_by_the_system", lambda: next(counts))
    by_system = log_of(tmp_path, "be killed", None)
    assert [r.verdict for r in by_system.records] == [Verdict.OUT_OF_MEMORY, Verdict.PASSED]
    assert "by the system" in by_system.records[0].detail


def test_what_others_left_behind_is_not_held_against_a_schema(tmp_path):
    # The third needs little, but finds a process that has kept more than half of the limit.
    behaviours = ("keep MiB 150", "keep MiB 150", "use MiB 120", "keep MiB 500")
    log = log_of(tmp_path, *behaviours, memory_limit=400 * MIB)
    assert [record.verdict for record in log.records] == [
        Verdict.PASSED, Verdict.PASSED, Verdict.PASSED, Verdict.OUT_OF_MEMORY,
    ]  # fmt: skip


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="peaks are sampled here")
def test_peaks_are_those_of_each_schema(tmp_path):
    log = log_of(tmp_path, None, "use MiB 200", None)
    plain, large, after = (record.peak_memory_bytes for record in log.records)
    assert large > plain + 190 * MIB
    assert after < plain + 100 * MIB
    assert log.start_memory_bytes <= plain
    assert log.peak_memory_bytes >= large


def test_sizes_are_written_for_people():
    assert memory.written(300 * MIB) == "300 MiB"
    assert memory.written(4 << 30) == "4.00 GiB"
    assert memory.largest(None, None) is None
    assert memory.largest(None, 3, 2) == 3
    assert memory.resident_bytes(os.getpid()) > MIB
    assert memory.resident_bytes(2**22 + 1) is None


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no such signal")
def test_a_worker_that_hangs_does_not_outlive_its_run(tmp_path):
    script = f"""
import sys, time
sys.path[:0] = {sys.path!r}
import test_maskbench_limits as t
t.log_of(__import__("pathlib").Path({str(tmp_path)!r}), "hang", time_limit_s=600)
"""
    process = psutil.Popen([sys.executable, "-c", script])
    try:
        deadline = time.monotonic() + 600
        while not (workers := [c for c in process.children() if _is_worker(c)]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait(600)
        assert psutil.wait_procs(workers, timeout=600)[1] == []
    finally:
        if process.is_running():
            process.kill()


def _is_worker(child):
    try:
        return "spawn_main" in " ".join(child.cmdline())
    except psutil.Error:
        return False
