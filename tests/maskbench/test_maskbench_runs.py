"""Verdicts, limits and recovery, with a fake engine through the real processes."""

import json
import os
from array import array
from pathlib import Path

import pytest
from maskbench_runs import record

from maskbench.canonicality.counts import ForcedCount
from maskbench.documents import Document, Job, Whitespace
from maskbench.engines import EngineSetup, MissingEngineError, find
from maskbench.runner import EngineStartError, RunSettings, run
from maskbench.tokenizer import TokenizerSpec
from maskbench.verdicts import SchemaRecord, Verdict

FAKE = "maskbench_fake_engine:FakeEngine"
SECOND = "maskbench_fake_engine:SecondFakeEngine"
SETUP = EngineSetup(
    TokenizerSpec("bytes", Path(), vocab_size=257, eos_token_ids=(256,), sha256=""),
    Whitespace.COMPACT,
)


def job(index, language, *, valid=(), invalid=(), behave=None):
    schema = json.dumps({"language": language, "behave": behave})
    documents = [Document(True, array("i", list(text.encode()))) for text in valid]
    documents += [Document(False, array("i", list(text.encode()))) for text in invalid]
    return Job(index, f"case {index}", schema, tuple(documents))


def records_of(jobs, tmp_path, *, chunk=3, **settings):
    chunks = [jobs[i : i + chunk] for i in range(0, len(jobs), chunk)]
    logs = run([FAKE], chunks, SETUP, RunSettings(**settings), tmp_path)
    return logs[FAKE].records


def test_each_outcome_gets_its_verdict(tmp_path):
    good = {"language": ["ab", "abc"], "valid": ["ab", "abc"], "invalid": ["b", "a", "abcd"]}
    cases = [
        (job(0, **good), Verdict.PASSED),
        (job(1, ["ab"], valid=["ab", "ac"]), Verdict.WRONG),
        (job(2, ["ab", "x"], valid=["ab"], invalid=["x", "y"]), Verdict.WRONG),
        (job(3, ["abc"], valid=["ab"]), Verdict.WRONG),
        (job(4, **good, behave="refuse"), Verdict.REFUSED),
        (job(5, **good, behave="raise while compiling"), Verdict.FAILED),
        (job(6, **good, behave="fail at the second byte"), Verdict.FAILED),
        (job(7, **good, behave="accept nothing"), Verdict.FAILED),
        (job(8, ["ab"], valid=["ab"], behave="error state at the end"), Verdict.FAILED),
        (job(9, ["ab"]), Verdict.PASSED),
    ]
    records = records_of([case for case, _ in cases], tmp_path)
    assert [record.verdict for record in records] == [verdict for _, verdict in cases]
    assert [(r.wrong_rejects, r.wrong_accepts) for r in records[:4]] == [
        (0, 0), (1, 0), (0, 1), (1, 0),
    ]  # fmt: skip
    assert records[4].reason == "unsupported: fake"
    assert "no such thing" in records[5].detail
    assert "too complex" in records[6].detail
    assert "the mask allows token 97 at position 0" in records[7].detail
    assert records[8].detail == "lost count"
    # Every token allowed: a mask each and one for the end. Refused: up to the refusing mask.
    assert [d.masks for d in records[0].documents] == [3, 4, 1, 2, 4]
    assert len(records[0].mask_us) == 14
    assert all(us > 0 for us in records[0].mask_us)
    assert records[4].first_mask_us is None
    assert records[0].first_mask_us > 0


@pytest.mark.parametrize(
    ("behave", "detail"),
    [("abort", "SIGABRT"), ("exit", "exited with status 7"), ("panic", "index out of bounds")],
)
def test_crash_is_recorded_and_the_run_goes_on(tmp_path, behave, detail):
    jobs = [
        job(0, ["a"], valid=["a"]),
        job(1, ["a"], valid=["a"], behave=behave),
        job(2, ["a"], valid=["a"]),
        job(3, ["a"], valid=["a"]),
    ]
    records = records_of(jobs, tmp_path)
    assert [record.index for record in records] == [0, 1, 2, 3]
    assert [record.verdict for record in records] == [
        Verdict.PASSED, Verdict.CRASHED, Verdict.PASSED, Verdict.PASSED,
    ]  # fmt: skip
    assert detail in records[1].detail
    if behave == "abort":
        assert "about to abort" in records[1].detail


def test_hang_is_killed_and_the_run_goes_on(tmp_path):
    jobs = [
        job(0, ["a"], valid=["a"], behave="hang"),
        job(1, ["a"], valid=["a"]),
        job(2, ["a"], valid=["a"], behave="hang while forcing"),
    ]
    records = records_of(jobs, tmp_path, time_limit_s=5.0)
    assert [record.verdict for record in records] == [
        Verdict.TIMED_OUT, Verdict.PASSED, Verdict.TIMED_OUT,
    ]  # fmt: skip
    assert records[0].detail == "killed after 5 s"
    assert records[2].detail == "while counting forced tokens: killed after 5 s"
    without = records_of(jobs[2:], tmp_path, time_limit_s=5.0, forced=False)
    assert [record.verdict for record in without] == [Verdict.PASSED]


def test_forced_tokens_are_counted(tmp_path):
    jobs = [
        # Forced: "ab" at the start, then a choice, then "ef"; the other document likewise.
        job(0, ["abcef", "abdef"], valid=["abcef", "abdef"], invalid=["x"]),
        job(1, ["abc"], valid=["abc"], behave="wrong forced tokens"),
        job(2, ["abc"], valid=["abc"], behave="no forced tokens"),
        job(3, ["abc"], valid=["abc", "x"]),
    ]
    records = records_of(jobs, tmp_path)
    assert [record.forced for record in records] == [
        ForcedCount(tokens=10, forced=8, sequences=4, noncanonical=0),
        ForcedCount(tokens=3, forced=0, sequences=3, noncanonical=3),
        None,
        ForcedCount(tokens=3, forced=3, sequences=1, noncanonical=0),
    ]


def test_slow_mask_can_be_found(tmp_path):
    slow = job(0, ["abcd"], valid=["abcd"], invalid=["x"], behave="slow third mask")
    (record,) = records_of([slow], tmp_path)
    # It sleeps for so long; how long the others take depends on the machine.
    assert record.mask_us[2] >= 20_000
    assert record.place_of_mask(2) == (0, 2)
    assert record.place_of_mask(5) == (1, 0)
    with pytest.raises(IndexError):
        record.place_of_mask(6)


def test_engines_take_turns_by_chunks(tmp_path):
    turns = []
    chunks = [[job(i, ["a"], valid=["a"]) for i in pair] for pair in ((0, 1), (2, 3), (4, 5))]
    logs = run([FAKE, SECOND], chunks, SETUP, RunSettings(), tmp_path, turns.append)
    assert turns == [FAKE, FAKE, SECOND, SECOND, SECOND, SECOND, FAKE, FAKE, FAKE, FAKE,
                     SECOND, SECOND]  # fmt: skip
    for log in logs.values():
        assert [record.index for record in log.records] == list(range(6))
        assert log.versions == {"fake": "1"}


def test_an_engine_can_get_some_of_the_jobs(tmp_path):
    chunks = [[job(i, ["a"], valid=["a"]) for i in pair] for pair in ((0, 1), (2, 3), (4, 5))]
    only = {SECOND: {1, 4, 5, 77}}
    logs = run([FAKE, SECOND], chunks, SETUP, RunSettings(), tmp_path, only=only)
    assert [record.index for record in logs[FAKE].records] == list(range(6))
    assert [record.index for record in logs[SECOND].records] == [1, 4, 5]
    assert {log.offered for log in logs.values()} == {6}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cannot be pinned here")
def test_engines_can_be_kept_on_one_processor(tmp_path):
    processor = max(os.sched_getaffinity(0))
    jobs = [job(0, ["a"], valid=["a"], behave=f"be on {processor}")]
    (record,) = records_of(jobs, tmp_path, pin=processor)
    assert record.verdict is Verdict.PASSED
    with pytest.raises(EngineStartError, match="cannot run on processor 1000000"):
        records_of(jobs, tmp_path, pin=1_000_000)


def test_interrupt_keeps_whole_chunks(tmp_path):
    def chunks():
        yield [job(0, ["a"], valid=["a"])]
        raise KeyboardInterrupt

    logs = run([FAKE], chunks(), SETUP, RunSettings(), tmp_path)
    assert [record.index for record in logs[FAKE].records] == [0]


@pytest.mark.parametrize(
    ("engine", "message"),
    [("NotInstalledEngine", "pip install nothing"), ("DiesAtStartEngine", "status 3")],
)
def test_engine_that_does_not_start_ends_the_run(tmp_path, engine, message):
    with pytest.raises(EngineStartError, match=message):
        run([f"maskbench_fake_engine:{engine}"], [], SETUP, RunSettings(), tmp_path)


@pytest.mark.parametrize("name", ["nonesuch", "nonesuch:Engine", "json:Engine", "json:JSONDecoder"])
def test_unknown_engine_is_named(name):
    with pytest.raises(MissingEngineError, match=name.split(":")[0]):
        find(name)


def test_each_round_is_a_process_of_its_own_with_the_same_schemas(tmp_path):
    log = tmp_path / "log"
    schema = {"language": ["ab"], "log": str(log)}
    jobs = [
        Job(number, f"case {number}", json.dumps(schema | {"name": f"{number} in {{pid}}"}),
            (Document(True, array("i", list(b"ab"))),))
        for number in range(4)
    ]  # fmt: skip
    records = records_of(jobs, tmp_path, chunk=2, rounds=3)
    assert [record.verdict for record in records] == [Verdict.PASSED] * 4
    compiled = [line.split()[1:] for line in log.read_text(encoding="utf-8").splitlines()]
    numbers = [number for number, *_ in compiled]
    assert numbers == ["0", "1"] * 3 + ["2", "3"] * 3
    processes = [process for *_, process in compiled]
    assert len(set(processes)) == 3
    assert processes[::2] == processes[1::2]
    assert processes[:6] == processes[6:]
    for found in records:
        assert found.min_first_mask_us <= found.first_mask_us
        assert len(found.min_mask_us) == len(found.mask_us) == 3
        times = zip(found.min_mask_us, found.mask_us, strict=True)
        assert all(least <= us for least, us in times)


def test_minima_are_of_each_call():
    rounds = [
        record(0, documents=[[3, 4], [9]], first=30, peak_memory_bytes=5),
        record(0, documents=[[5, 2], [8]], first=20, peak_memory_bytes=7),
        record(0, documents=[[4, 6], [7]], first=40, peak_memory_bytes=6),
    ]
    found = SchemaRecord.of_rounds(rounds)
    assert found.mask_us == rounds[0].mask_us
    assert found.first_mask_us == 30
    assert found.peak_memory_bytes == 7
    assert found.minima.mask_us == array("f", [3, 2, 7])
    assert found.minima.first_mask_us == 20
    assert SchemaRecord.of_rounds(rounds[:1]).minima == rounds[0]


def test_a_round_that_differs_stands_for_all():
    passed = record(0, documents=[[3, 4]], first=30)
    for other in (record(0, Verdict.CRASHED), record(0, documents=[[3]], first=1)):
        assert SchemaRecord.of_rounds([passed, other]) == other
        assert SchemaRecord.of_rounds([passed, other]).minima == other
    crashed = record(0, Verdict.CRASHED)
    assert SchemaRecord.of_rounds([crashed, passed]) == crashed
