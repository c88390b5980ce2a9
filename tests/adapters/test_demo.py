"""The README's first command."""

import json
import subprocess
import sys

import jsonschema_rs
import pytest

from ffwd.adapters._demo_model import TICKET_SCHEMA, tickets
from ffwd.adapters.demo import _problems


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "ffwd.adapters.demo", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        encoding="utf-8",
    )


def answer_after(heading, output):
    lines = output.splitlines()
    return lines[lines.index(heading) + 1].strip()


def test_it_prints_valid_answers_and_saves_passes():
    # Untrained, the model writes whatever the grammar lets it write.
    done = run("--steps", "2")
    assert done.returncode == 0, done.stderr
    for heading in ("Answer under masks", "Answer with fast-forward"):
        jsonschema_rs.validate(TICKET_SCHEMA, json.loads(answer_after(heading, done.stdout)))
    assert "Grace" in answer_after("Prompt", done.stdout)
    masks, fast_forward = (
        [int(word) for word in line.split() if word.isdigit()]
        for line in done.stdout.splitlines()
        if line.startswith("masks ")
    )
    tokens, forced, passes = fast_forward[:3]
    assert passes + forced == tokens
    assert passes < masks[2]
    assert done.stdout.count("   forced") == forced
    assert done.stdout.count("chosen by the model") == passes


def test_another_schema(tmp_path):
    schema = {"enum": ["one fish", "two fish"]}
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema), encoding="utf-8")
    done = run("--steps", "1", "--schema", str(path), "--sample")
    assert done.returncode == 0, done.stderr
    for heading in ("Answer under masks", "Answer with fast-forward"):
        assert json.loads(answer_after(heading, done.stdout)) in schema["enum"]


def test_an_answer_that_is_cut_off_is_a_failure():
    done = run("--steps", "1", "--max-new-tokens", "5")
    assert done.returncode == 1
    assert "not (whole) JSON" in done.stderr


@pytest.mark.parametrize(
    ("text", "exit_status"), [("{", 2), ('{"type": "no such type"}', 2), (None, 2)]
)
def test_a_bad_schema_is_named(text, exit_status, tmp_path):
    path = tmp_path / "schema.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    done = run("--steps", "1", "--schema", str(path))
    assert done.returncode == exit_status
    assert "schema" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_check_of_the_answer_agrees_with_a_validator():
    for ticket in tickets(50, seed=9):
        jsonschema_rs.validate(TICKET_SCHEMA, json.loads(ticket.answer))
        assert _problems(ticket.answer, own_schema=True) == []
    good = json.loads(tickets(1, seed=9)[0].answer)
    changes = [
        {"customer_first_name": "ada"},
        {"customer_first_name": 3},
        {"product_concerned": "house"},
        {"days_since_the_purchase": 366},
        {"days_since_the_purchase": True},
        {"days_since_the_purchase": 1.5},
        {"customer_wants_a_refund": 1},
        {"suggested_next_steps": []},
        {"suggested_next_steps": ["dance"]},
        {"more": 1},
    ]
    assert _problems(json.dumps(good | {"days_since_the_purchase": 12.0}), own_schema=True) == []
    for change in changes:
        bad = good | change
        assert not jsonschema_rs.is_valid(TICKET_SCHEMA, bad)
        assert _problems(json.dumps(bad), own_schema=True)
    del good["product_concerned"]
    assert _problems(json.dumps(good), own_schema=True) == ["product_concerned is missing"]
    assert _problems("[]", own_schema=True) == ["not an object"]
