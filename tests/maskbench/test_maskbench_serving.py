"""`python -m maskbench serving`: that all groups run, and that the answers are compared."""

import json
import os

import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.serving.groups import GROUPS
from maskbench.serving.peers import searching
from maskbench.serving.turns import take_turns


@pytest.fixture
def keep_environment(monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", os.environ.get("TOKENIZERS_PARALLELISM", ""))


@pytest.mark.usefixtures("keep_environment")
def test_all_groups_are_measured(tmp_path):
    out = tmp_path / "rows.json"
    arguments = ["serving", "--quick", "--tokenizer", "gpt2", "--out", str(out)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text(encoding="utf-8"))
    assert {row["group"] for row in rows} == {*GROUPS, "memory"}
    assert len({row["group"] for row in rows}) == 12
    for row in rows:
        assert set(row["values"]) == {"ffwd", "tokenizers", "tiktoken"}
        assert min(row["values"].values()) > 0
        assert row["other_answers"] == []
    assert "other answer" not in result.output


def test_a_group_that_there_is_not_is_named():
    result = CliRunner().invoke(main, ["serving", "--group", "nothing"])
    assert result.exit_code == 2
    assert "stop sequences" in result.output


def test_other_answers_are_seen():
    class Peer:
        def __init__(self, ids):
            self.encode = lambda text: ids

    peers = {"ffwd": Peer([1]), "same": Peer((1,)), "other": Peer([2])}
    turns = take_turns(peers, 2, lambda peer, _: peer.encode("a"))
    assert turns.other_answers() == ("other",)


def test_the_search_that_peers_are_given():
    texts = ["say ", "hel", "lo wor", "", "ld"]
    step, flush = searching((texts.__getitem__, str), ["world", "lo x"])
    assert [step(i) for i in range(5)] == ["say ", "he", "llo ", "", ""]
    assert flush() == ""
    step, flush = searching((texts.__getitem__, lambda: "!"), ["world."])
    assert [step(i) for i in (0, 1, 2, 3)] == ["say ", "hel", "lo ", ""]
    assert flush() == "wor!"
