"""What is kept of a run that is killed, or whose disk is full, and how it goes on."""

import errno
import json
import resource
import signal
import subprocess
import sys
import time
from array import array
from collections import Counter

import pytest
from maskbench_fake_data import case, command, maskbench_run, verdicts, write_cases

from maskbench.canonicality.counts import ForcedCount
from maskbench.runs.journal import Journal, JournalError
from maskbench.runs.preparation import Chunk, LeftOut
from maskbench.runs.settings import TurnResult
from maskbench.verdicts import SchemaRecord, Verdict
from maskbench.walk import DocumentResult, Outcome

ENGINES = "maskbench_fake_engine:FakeEngine,maskbench_fake_engine:SecondFakeEngine"
CHUNK = 2


def cases(log=None, count=24):
    behaviours = {3: "refuse", 5: "abort", 8: "raise while compiling", 11: "no forced tokens"}
    found = [case(f"case {i}", behaviours.get(i, "slow"), log) for i in range(count)]
    found[6]["schema"]["language"] = ['"ab"']
    found[7]["tests"] = 3
    return found


def options(data, out):
    return ["--engine", ENGINES, "--tokenizer", "bytes", "--data", data, "--chunk", CHUNK,
            "--out", out]  # fmt: skip


def frames(journal):
    try:
        data = journal.read_bytes()
    except FileNotFoundError:
        return 0
    count = start = 0
    while start + 8 <= len(data):
        start += 8 + int.from_bytes(data[start : start + 4], "big")
        count += start <= len(data)
    return count


def test_a_run_that_is_killed_loses_at_most_the_chunk_in_flight(tmp_path):
    log = tmp_path / "compiled.log"
    data = write_cases(tmp_path / "some.jsonl", cases(log))
    whole, killed = tmp_path / "whole.json", tmp_path / "killed.json"
    finished = maskbench_run(*options(data, whole))
    assert finished.returncode == 0, finished.stderr
    once = Counter(log.read_text("utf-8").splitlines())
    assert set(once.values()) == {1}
    log.unlink()

    journal = tmp_path / "killed.parts" / "run.journal"
    line, environment = command(*options(data, killed), "--resume")
    for enough in (4, 13):
        process = subprocess.Popen(
            line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 600
        while frames(journal) < enough:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(600)
        assert not killed.exists()
        assert frames(journal) >= enough
    again = maskbench_run(*options(data, killed), "--resume")
    assert again.returncode == 0, again.stderr
    assert "chunks are finished, the run goes on" in again.stdout
    assert verdicts(killed) == verdicts(whole)
    for results in (killed, whole):
        document = json.loads(results.read_text("utf-8"))
        assert document["complete"]
        assert len(document["data"]["broken"]) == 1
    assert not journal.parent.exists()
    # Each kill costs one chunk of one engine at most.
    twice = Counter(log.read_text("utf-8").splitlines())
    assert twice.keys() == once.keys()
    assert sum(twice.values()) - len(twice) <= 2 * CHUNK


def test_an_unfinished_run_is_not_overwritten_nor_mixed_with_another(tmp_path):
    data = write_cases(tmp_path / "some.jsonl", cases(count=8))
    out = tmp_path / "run.json"
    arguments = options(data, out)
    nothing = maskbench_run(*arguments[2:], "--engine", "maskbench_fake_engine:NotInstalledEngine")
    assert nothing.returncode == 1
    assert not (tmp_path / "run.parts").exists()
    assert "--out" in maskbench_run("--resume").stderr

    about = {"settings": {"chunk": CHUNK, "time_limit_s": 30.0}, "engines": ["a"]}
    first = Journal(tmp_path / "run.parts", resume=False)
    first.begin(about)
    with pytest.raises(JournalError, match="is in use by another run"):
        Journal(tmp_path / "run.parts", resume=True)
    first.close()
    refused = maskbench_run(*arguments)
    assert refused.returncode == 1
    assert "run.parts holds an unfinished run: go on with --resume" in refused.stderr
    other = maskbench_run(*arguments, "--time-limit", "10", "--resume")
    assert other.returncode == 1
    assert "run.parts is of another run" in other.stderr
    assert "settings.time_limit_s was 30.0 and is 10.0" in other.stderr
    assert 'engines was ["a"] and is' in other.stderr
    assert "data was null and is" in other.stderr
    again = Journal(tmp_path / "run.parts", resume=True)
    again.begin(about)
    again.remove()
    assert maskbench_run(*arguments).returncode == 0


def turn(chunk, engine="a", masks=5):
    record = SchemaRecord(
        index=chunk,
        id="caf\u00e9 \ud800",
        verdict=Verdict.OUT_OF_MEMORY,
        labels=(True, False),
        documents=(
            DocumentResult(Outcome.ACCEPTED, 3),
            DocumentResult(Outcome.FAILED, 2, "too complex"),
        ),
        reason="why",
        detail="what",
        first_mask_us=1.1,
        mask_us=array("f", [0.1 * i for i in range(masks)]),
        forced=ForcedCount(3, 2, 1, 0),
        peak_memory_bytes=123,
    )
    return TurnResult(chunk, engine, (record, SchemaRecord(7, "b", Verdict.PASSED, ())), 456)


def filled(folder, chunks):
    journal = Journal(folder, resume=False)
    journal.begin({"engines": ["a"]})
    for number in range(chunks):
        journal.add_chunk(Chunk(number, (), 2, LeftOut(("x",), ("y",), number)))
        journal.add_turn(turn(number))
    journal.close()
    return folder / "run.journal"


def test_records_come_back_as_they_were(tmp_path):
    filled(tmp_path / "parts", 3)
    journal = Journal(tmp_path / "parts", resume=True)
    journal.begin({"engines": ["a"]})
    assert journal.turns == {(number, "a"): turn(number) for number in range(3)}
    assert journal.finished(2, ["a"]) == Chunk(2, (), 2, LeftOut(("x",), ("y",), 2))
    assert journal.finished(2, ["a", "b"]) is None
    assert journal.finished(3, ["a"]) is None
    journal.close()


def test_a_torn_record_is_dropped_wherever_it_is_torn(tmp_path):
    file = filled(tmp_path / "parts", 3)
    data = file.read_bytes()
    ends, start = [], 0
    while start < len(data):
        start += 8 + int.from_bytes(data[start : start + 4], "big")
        ends.append(start)
    for length in {*range(ends[-3], len(data), 7), *ends[-3:]}:
        file.write_bytes(data[:length])
        journal = Journal(tmp_path / "parts", resume=True)
        whole = sum(end <= length for end in ends)
        assert len(journal.turns) == (whole - 1) // 2
        journal.close()
        assert file.stat().st_size == ends[whole - 1]
    # A byte that is not what was written, and what a file system leaves of a lost page.
    for damaged in (data[:-5] + b"?" + data[-4:], data[: ends[-2]] + bytes(4096)):
        file.write_bytes(damaged)
        journal = Journal(tmp_path / "parts", resume=True)
        assert len(journal.turns) == 2
        journal.begin({"engines": ["a"]})
        journal.add_turn(turn(2))
        journal.close()
        journal = Journal(tmp_path / "parts", resume=True)
        assert journal.turns.keys() == {(0, "a"), (1, "a"), (2, "a")}
        journal.close()


def test_a_full_disk_stops_the_run_and_keeps_what_was_written(tmp_path):
    """The limit on the size of files is met by the same calls as the end of a disk."""
    folder = tmp_path / "parts"
    script = f"""
import resource, signal, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
import test_maskbench_resume as t
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
try:
    t.filled(Path({str(folder)!r}), 50)
except t.JournalError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert "the run stops. What was written before is whole" in done.stdout
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    journal = Journal(folder, resume=True)
    count = len(journal.turns)
    assert 1 <= count < 50
    journal.begin({"engines": ["a"]})
    journal.add_chunk(Chunk(count, (), 2))
    journal.add_turn(turn(count))
    journal.close()
    journal = Journal(folder, resume=True)
    assert len(journal.turns) == count + 1
    journal.close()


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "parts", resume=False)
    journal.begin({})

    def no_space(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("maskbench.runs.journal.os.fsync", no_space)
        with pytest.raises(JournalError, match="the disk is full: the run stops"):
            journal.add_turn(turn(0))
    journal.close()
    assert Journal(tmp_path / "parts", resume=True).turns == {}


def test_a_journal_of_something_else_is_refused(tmp_path):
    file = filled(tmp_path / "parts", 0)
    journal = Journal(tmp_path / "parts", resume=True)
    journal._append({"kind": "surprise"})
    journal.close()
    with pytest.raises(JournalError, match="not a journal of maskbench: unknown record"):
        Journal(tmp_path / "parts", resume=True)
    assert file.exists()
