"""`ffwd bench`: figures of every engine along the same texts."""

import json

import pytest
from climodels import as_json, ffwd


def test_engines_are_timed_along_the_same_texts(schema, model):
    pytest.importorskip("llguidance")
    pytest.importorskip("xgrammar")
    options = ["-t", model, "--texts", 3, "--rounds", 2, "--max-tokens", 60]
    data = as_json("bench", schema, *options, "--whitespace", "compact")
    assert set(data["engines"]) == {"ffwd", "llguidance", "xgrammar"}
    assert data["absent"] == {}
    own = data["engines"]["ffwd"]
    assert own["masks"] == 2 * data["tokens"]
    assert own["refused_texts"] == 0
    assert 0 < own["p50_us"] <= own["p99_us"] <= own["max_us"]
    assert 0 < data["forced_share"] < 1
    for found in data["engines"].values():
        assert found["refused"] is None, found
        assert found["masks"] == 2 * data["tokens"]
    again = as_json("bench", schema, *options, "--whitespace", "compact", "--no-peers")
    assert again["tokens"] == data["tokens"]
    assert again["forced_share"] == data["forced_share"]
    assert list(again["engines"]) == ["ffwd"]


def test_a_text_of_ones_own(schema, model, tmp_path):
    text = tmp_path / "answer.json"
    text.write_text(json.dumps({"name": "Ada", "status": "new"}) + "\n")
    options = ["--text-file", text, "--rounds", 1]
    data = as_json("bench", schema, *options)
    assert data["tokens"] == len(text.read_text()) - 1
    assert set(data["absent"]) == {"llguidance", "xgrammar"}
    shown = ffwd("bench", schema, *options)
    assert shown.exit_code == 0
    assert "forced by ffwd: " in shown.stdout
    assert "without xgrammar: it needs a tokenizer.json" in shown.stderr
    text.write_text('{"nome"')
    assert ffwd("bench", schema, *options).exit_code == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.lark", 'start: "a" | "bc"'), ("a.gbnf", 'root ::= "a" | "bc"'), ("a.re", "a|b{2}c")],
)
def test_what_a_peer_does_not_read_is_said(model, tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    data = as_json("bench", path, "-t", model, "--texts", 2, "--rounds", 1)
    assert data["engines"]["ffwd"]["masks"] == data["tokens"]
    for engine, found in data["engines"].items():
        if found["refused"] is not None:
            assert (engine, name) in {("xgrammar", "a.lark"), ("llguidance", "a.gbnf")}
            assert "reads no" in found["refused"]
