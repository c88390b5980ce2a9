"""`python -m maskbench speed operations` and `batches`: that they run, and write what they say."""

import json

from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.engines.base import Session
from maskbench.figures.records import record_of
from maskbench.speed.operations.measure import DRAFT, EVERY, OPERATIONS, walk


def test_operations_are_timed_beside_each_other(tmp_path):
    out = tmp_path / "operations.json"
    arguments = [
        "speed",
        "operations",
        "--engine",
        "ffwd,llguidance",
        "--sample",
        "6",
        "--out",
        str(out),
    ]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    written = json.loads(out.read_text(encoding="utf-8"))
    assert written["format"] == "maskbench-operations-1"
    assert written["documents"] > 3
    for engine in ("ffwd", "llguidance"):
        for walked in written["microseconds"][engine].values():
            for operation in ("accept", "rollback", "fork"):
                average, p50, p99 = walked[operation]
                assert 0 < p50 <= p99
                assert average > 0
    record = record_of(out)
    assert record["command"].startswith("python -m maskbench speed operations --engine")
    assert set(record["versions"]) == {"ffwd", "llguidance"}
    assert record["microseconds"] == written["microseconds"]


def test_a_walk_comes_to_its_end_with_all_operations():
    tokens, text = list(range(50)), []

    def accept(token):
        text.append(token)
        return True

    def rollback(count):
        del text[-count:]

    def validate(draft):
        assert draft == tokens[len(text) : len(text) + DRAFT]

    session = Session(
        fill=lambda: None,
        accept=accept,
        problem=lambda: None,
        forced=list,
        rollback=rollback,
        fork=text.copy,
        validate=validate,
    )
    times = walk(session, tokens, 0)
    assert text == tokens
    assert set(times) == set(OPERATIONS)
    assert len(times["accept"]) == len(tokens)
    assert len(times["rollback"]) == len(times["fork"]) == len(tokens) // EVERY
    left = [len(tokens) - read for read in range(EVERY, len(tokens) + 1, EVERY)]
    assert len(times["validate"]) == sum(count >= DRAFT for count in left)


def test_batches_are_timed_with_each_number_of_threads(tmp_path):
    out = tmp_path / "batches.json"
    arguments = [
        "speed",
        "batches",
        "--sample",
        "5",
        "--rows",
        "20",
        "--rounds",
        "2",
        "--seconds",
        "0.1",
    ]
    result = CliRunner().invoke(main, [*arguments, "--out", str(out)])
    assert result.exit_code == 0, result.output
    written = json.loads(out.read_text(encoding="utf-8"))
    kinds = {(call["masks"], call["grammars"]) for call in written["calls"]}
    assert kinds == {(m, g) for m in ("hits", "misses") for g in ("one", "one per row")}
    assert all(len(call["seconds"]) == len(written["threads"]) for call in written["calls"])
    assert written["readers"]["shared"] > 0
    assert written["readers"]["apart"] > 0
    record = record_of(out)
    assert record["calls"]["20"]["hits"]["one per row"][0] > 0
    assert {"ffwd", "xgrammar"} <= set(record["versions"])
