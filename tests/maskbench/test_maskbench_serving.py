"""`python -m maskbench serving`: that it runs, has its twelve groups, and sees a wrong answer."""

import os

import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.figures.records import record_of
from maskbench.serving import groups, peers

GROUPS = {
    "encode",
    "batch",
    "concurrent",
    "decode",
    "stream",
    "latency",
    "concurrent streams",
    "stop sequences",
    "multithreaded encode",
    "multithreaded decode",
    "scaling",
    "resident memory",
}


@pytest.fixture(autouse=True)
def keep_environment(monkeypatch):
    for name in ("RAYON_NUM_THREADS", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, os.environ.get(name, ""))


def test_all_groups_are_printed(tmp_path):
    out = tmp_path / "serving.json"
    arguments = ["serving", "--tokenizer", "builtin", "--rounds", "1", "--tokens", "2000"]
    arguments += ["--out", str(out)]
    result = CliRunner().invoke(main, [*arguments, "--threads", "2"], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    for group in GROUPS:
        assert group in result.output
    assert len(GROUPS) == 12
    record = record_of(out)
    assert set(record["figures"]) == GROUPS - {"resident memory"}
    assert record["memory"]["ffwd"]["loaded"] > 0


def test_a_wrong_answer_is_an_error():
    class Wrong:
        def encode(self, text):
            return [len(text)]

    class Right:
        def encode(self, text):
            return [1]

    both = {"ffwd": Right(), "other": Wrong()}
    with pytest.raises(groups.WrongAnswerError, match="other"):
        groups.timed(both, lambda peer: peer.encode("ab"), 1, what="two letters")


def test_a_stop_is_found_where_it_begins_first():
    assert peers._searched(iter(["ab", None, "cd", "ef"]), ["de", "bcx", "c"]) == "ab"
    assert peers._searched(iter(["ab", "c"]), ["xyz"]) == "abc"
