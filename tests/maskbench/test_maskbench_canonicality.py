"""Counting forced tokens: the definitions, the pool of processes, and the command."""

import csv
import io
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
import realtokenizers
import tokenizers
from click.testing import CliRunner

from maskbench import packaged
from maskbench.__main__ import main
from maskbench.canonicality.counts import Forced, ForcedWalk, Miss, RefusedTokenError, count_forced
from maskbench.figures.records import record_of
from maskbench.pool import MAX_STARTS, Lost, Pool, PoolStartError
from maskbench.tokenizer import OutputEncoder, resolve, train_builtin

ROOT = Path(__file__).resolve().parents[2]

# ------------------------------------------------------------------------------------- definitions


def walk_of(forced_at):
    """Forces what `forced_at` has for the number of tokens so far; refuses the token 99."""
    taken = []

    def accept(token):
        taken.append(token)
        return token != 99

    return ForcedWalk(accept, lambda: forced_at.get(len(taken), []))


def counts(forced):
    return forced.tokens, forced.forced, forced.sequences, forced.noncanonical, forced.empty


def test_forced_tokens_of_the_document_are_taken_together():
    forced, misses = count_forced(walk_of({0: [1, 2], 3: [4], 4: [5]}), [1, 2, 3, 4, 5, 6])
    assert counts(forced) == (6, 4, 3, 0, 2)
    assert misses == []
    assert forced.share == 4 / 6


def test_other_tokens_are_one_noncanonical_sequence_and_one_step():
    forced, misses = count_forced(walk_of({1: [7, 8], 2: [3, 9], 3: [4]}), [1, 2, 3, 4])
    assert counts(forced) == (4, 1, 3, 2, 1)
    assert misses == [
        Miss(before=(1,), forced=(7, 8), document=(2, 3, 4)),
        Miss(before=(1, 2), forced=(3, 9), document=(3, 4)),
    ]
    # A sequence that goes on past the end of the document is not the document's.
    assert counts(count_forced(walk_of({1: [2, 0]}), [1, 2])[0]) == (2, 0, 1, 1, 1)


def test_refused_token_is_an_error():
    with pytest.raises(RefusedTokenError, match="99"):
        count_forced(walk_of({}), [1, 99])


def test_sums():
    first, second = Forced(1, 2, 3, 4, 5, 6, 7), Forced(10, 20, 30, 40, 50, 60, 70)
    assert first + second == Forced(11, 22, 33, 44, 55, 66, 77)
    assert Forced().share is None


# -------------------------------------------------------------------------------------------- pool


class Server:
    """Serves what the task says, in another process."""

    def __init__(self, setup):
        if setup == "cannot start":
            raise ValueError("no such tokenizer")
        if setup == "dies at start":
            os._exit(3)
        self._setup = setup

    def __call__(self, task):
        if task == "raise":
            raise KeyError("nothing")
        if task == "exit":
            os._exit(7)
        if task == "hang":
            time.sleep(60)
        return f"{self._setup} {task}"


class LaterStarter:
    """Dies at some of its starts, counted by files in a folder."""

    def __init__(self, setup):
        folder, dies = setup
        number = len(list(folder.iterdir()))
        (folder / str(number)).touch()
        if number in dies:
            os._exit(3)

    def __call__(self, task):
        if task == "exit":
            os._exit(7)
        return f"done {task}"


@pytest.mark.parametrize("processes", [1, 3])
def test_lost_tasks_cost_only_themselves(tmp_path, processes):
    tasks = ["a", "raise", "b", "exit", "c", "hang", "d"]
    with Pool(Server, "x", processes=processes, time_limit_s=5, scratch=tmp_path) as pool:
        done = dict(pool.run(tasks))
    assert [done[task] for task in "abcd"] == ["x a", "x b", "x c", "x d"]
    assert done["raise"] == Lost("KeyError: 'nothing'")
    assert "status 7" in done["exit"].why
    assert done["hang"] == Lost("killed after 5 s")


@pytest.mark.parametrize(
    ("setup", "message"), [("cannot start", "no such tokenizer"), ("dies at start", "status 3")]
)
def test_process_that_does_not_start_ends_the_run(tmp_path, setup, message):
    with (
        Pool(Server, setup, processes=1, time_limit_s=60, scratch=tmp_path) as pool,
        pytest.raises(PoolStartError, match=message),
    ):
        list(pool.run(["a"]))


def started_later(tmp_path, dies):
    (folder := tmp_path / "starts").mkdir()
    setup = (folder, frozenset(dies))
    return Pool(LaterStarter, setup, processes=1, time_limit_s=60, scratch=tmp_path)


def test_process_that_replaces_a_lost_one_is_started_again(tmp_path):
    with started_later(tmp_path, {1, 2, 4}) as pool:
        done = dict(pool.run(["a", "exit", "b", "c"]))
    assert [done[task] for task in "abc"] == ["done a", "done b", "done c"]
    assert "status 7" in done["exit"].why


def test_process_that_never_starts_again_ends_the_run(tmp_path):
    with (
        started_later(tmp_path, range(1, 100)) as pool,
        pytest.raises(PoolStartError, match="status 3"),
    ):
        list(pool.run(["a", "exit", "b"]))
    assert len(list((tmp_path / "starts").iterdir())) == 1 + MAX_STARTS


def test_pool_without_tasks_ends(tmp_path):
    with Pool(Server, "x", processes=2, time_limit_s=60, scratch=tmp_path) as pool:
        assert list(pool.run([])) == []


HANGS = """
import sys, time
from pathlib import Path
from maskbench.pool import Pool

class Server:
    def __init__(self, pipe):
        self.end = open(pipe, "w")

    def __call__(self, task):
        self.end.write(task)
        self.end.flush()
        time.sleep(600)

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    pipe = folder / "pipe"
    # Open here, too, so that its reader sees the end if no process comes to serve.
    with (
        pipe.open("w"),
        Pool(Server, pipe, processes=1, time_limit_s=3600, scratch=folder) as pool,
    ):
        list(pool.run(["a"]))
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_killed_command_leaves_no_process(tmp_path):
    """The processes have the pipe open until they end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "hangs.py").write_text(HANGS)
    command = [sys.executable, "hangs.py", str(tmp_path)]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), str(tmp_path)]))
    with (
        subprocess.Popen(command, cwd=tmp_path, env=environment) as parent,
        (tmp_path / "pipe").open() as pipe,
    ):
        assert pipe.read(1) == "a"
        parent.kill()
        assert select.select([pipe], [], [], 60)[0], "it goes on"
        assert pipe.read() == ""


# -------------------------------------------------------------------------------------- tokenizers


@pytest.mark.parametrize("name", packaged.NAMES)
def test_packaged_tokenizer_is_the_one_that_the_tests_know(tmp_path, name):
    """Written by other code from the same file, and without the space before a text."""
    spec = resolve(name, tmp_path)
    encode = tokenizers.Tokenizer.from_file(str(spec.directory / "tokenizer.json")).encode
    encoder = OutputEncoder(spec)
    known = tokenizers.Tokenizer.from_str(realtokenizers.load(name).tokenizer.to_str())
    if name == "mistral-v3":
        known.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(
            "▁", prepend_scheme="never", split=False
        )
    texts = [
        (ROOT / "docs/architecture.md").read_text(encoding="utf-8"),
        json.dumps({"naïve": ["日本", "🙂", "\t\n\n  x", 12345, 1e-7]}, ensure_ascii=False),
        "'S don't  \r\n \u00a0 İſ 12 1234",
    ]
    for text in texts:
        ids = encode(text, add_special_tokens=False).ids
        assert ids == known.encode(text, add_special_tokens=False).ids
        assert encoder.encode(text) == ids


def test_output_encoder_adds_and_finds_and_composes_nothing(tmp_path):
    spec = resolve("builtin", tmp_path)
    file = spec.directory / "tokenizer.json"
    state = json.loads(file.read_text(encoding="utf-8"))
    state["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}]}
    state["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = True
    file.write_text(json.dumps(state), encoding="utf-8")
    whole = tokenizers.Tokenizer.from_file(str(file))
    encoder = OutputEncoder(spec)
    text = "<|end|>e\u0301"
    ids = encoder.encode(text)
    assert whole.decode(ids, skip_special_tokens=False) == text
    assert whole.encode(text).ids != ids
    assert 0 not in ids


# ----------------------------------------------------------------------------------------- command


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A run of some variants over some of the corpus, with a broken case."""
    pytest.importorskip("llguidance")
    directory = tmp_path_factory.mktemp("canonicality")
    lines = (ROOT / "maskbench/corpus/builtin.jsonl").read_text(encoding="utf-8").splitlines()
    data = directory / "some.jsonl"
    data.write_text("\n".join([*lines[:10], '{"schema": {}, "tests": 3}']), encoding="utf-8")
    out = directory / "counts.json"
    result = CliRunner().invoke(
        main,
        ["canonicality", "--data", str(data), "--processes", "2", "--out", str(out),
         "--variant", "k=0", "--variant", "k=4", "--variant", "llguidance"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return result.output, json.loads(out.read_text(encoding="utf-8")), out


def test_counts_are_consistent(counted):
    _, document, out = counted
    record = record_of(out)
    assert record["data"] == {"schemas": 11, "chosen": 11}
    of_mode = document["modes"]["A"]
    assert record["modes"]["A"]["documents"] == of_mode["common_documents"]
    assert record["modes"]["A"]["variants"]["k=4"]["share"] == pytest.approx(
        of_mode["variants"]["k=4"]["common"]["share"], abs=1e-5
    )
    assert document["complete"]
    assert document["cases"] == 10
    assert len(document["unusable"]) == 1
    assert set(document["modes"]) == {"A", "C", "D"}
    for mode in document["modes"].values():
        assert 20 < mode["common_documents"] <= mode["documents"] == 40
        assert mode["accepted"]["ffwd"] == 40
        variants = mode["variants"]
        assert set(variants) == {"k=0", "k=4", "llguidance"}
        assert len({variant["common"]["tokens"] for variant in variants.values()}) == 1
        for variant in variants.values():
            for scope in (variant["common"], variant["own"]):
                assert 0 < scope["forced"] < scope["tokens"]
                assert scope["noncanonical"] <= scope["sequences"]
                assert scope["share"] == scope["forced"] / scope["tokens"]
            assert not variant["failed"]
        # Forcing every byte that must come is what breaks tokens.
        assert variants["k=0"]["common"]["noncanonical"] > 50
        miss = variants["k=0"]["noncanonical"][0]
        forced, document_text = "".join(miss["forced"]), "".join(miss["document"])
        assert forced.startswith(document_text) or document_text.startswith(forced)
        assert miss["forced"] != miss["document"][: len(miss["forced"])]


def test_definitions_and_tables_are_in_the_reports(counted):
    output, _, out = counted
    for text in (output, out.with_suffix(".md").read_text(encoding="utf-8")):
        for part in ("forced share", "non-canonical sequence", "k=4", "llguidance", "D: ", "A",
                     "closed canonical", "grammar-canonical", "called smart", "12.7%"):  # fmt: skip
            assert part in text.replace("**", "")


def test_the_lines_of_csv_are_the_counts(counted):
    _, document, out = counted
    lines = list(csv.DictReader(io.StringIO(out.with_suffix(".csv").read_text("utf-8"))))
    assert len(lines) == 3 * 3 * 2
    for line in lines:
        mode = document["modes"][line["mode"]]
        counts = mode["variants"][line["variant"]][line["scope"]]
        assert line["tokenizer"] == "builtin"
        for name in ("tokens", "forced", "sequences", "noncanonical"):
            assert int(line[name]) == counts[name]
        assert float(line["share"]) == pytest.approx(counts["share"], abs=1e-6)
        engine = "llguidance" if line["variant"] == "llguidance" else "ffwd"
        own = line["scope"] == "own"
        assert int(line["documents"]) == (
            mode["accepted"][engine] if own else mode["common_documents"]
        )


def test_tokenizers_stand_beside_each_other(tmp_path):
    pytest.importorskip("llguidance")
    folder = tmp_path / "other"
    train_builtin(folder)
    out = tmp_path / "counts.json"
    result = CliRunner().invoke(
        main,
        ["canonicality", "--tokenizer", "builtin", "--tokenizer", str(folder), "--sample", "3",
         "--mode", "C", "--variant", "smart", "--variant", "exact", "--out", str(out)],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert not out.exists()
    each = [json.loads((tmp_path / f"counts-{name}.json").read_text("utf-8"))
            for name in ("builtin", "other")]  # fmt: skip
    assert set(each[0]["modes"]["C"]["variants"]) == {"k=4", "exact"}
    text = out.with_suffix(".md").read_text("utf-8")
    assert "| | builtin | other |" in text
    assert "closed canonical" in text
    for name in ("k=4", "exact"):
        share = each[0]["modes"]["C"]["variants"][name]["common"]["share"]
        # The same tokenizer under another name.
        assert f"| {name} | {share:.2%}, 0 | {share:.2%}, 0 |" in text
    assert result.output.count("A document is a valid instance") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "llguidance", "--variant", "k=0"], "no --variant is one of"),
        (["--data", "nonesuch.jsonl"], "no such file"),
        (["--tokenizer", "nonesuch"], "neither a folder nor one of"),
        (["--slice", "3/2"], "expected 1 <= i <= n"),
    ],
)
def test_bad_options_are_explained(arguments, message):
    result = CliRunner().invoke(main, ["canonicality", *arguments])
    assert result.exit_code != 0
    assert message in result.output
