"""The command line, on the built-in corpus with a real engine."""

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.documents import Whitespace, write_instance
from maskbench.engines import EngineSetup, MissingEngineError, find
from maskbench.packaged import byte_characters
from maskbench.statistics import describe_times
from maskbench.tokenizer import (
    BUILTIN_VOCAB_SIZE,
    HuggingFaceEncoder,
    TokenizerError,
    resolve,
    train_builtin,
)

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *("README.md", "CHANGELOG.md", "SECURITY.md", "Makefile", "pyproject.toml"),
    *("docs/**/*.md", "ffwd/model/README.md", "maskbench/**/*.py", "tests/**/*.py"),
)


def test_commands_are_few_at_the_top_and_each_has_help():
    def commands(group, path=()):
        for name, command in group.load().items():
            yield (*path, name)
            if isinstance(command, click.Group):
                yield from commands(command, (*path, name))

    found = list(commands(main))
    assert len(main.load()) <= 12
    assert len(found) == len(set(found)) >= 30
    for path in found:
        result = CliRunner().invoke(main, [*path, "--help"])
        assert result.exit_code == 0, path
        assert result.output.startswith(f"Usage: main {' '.join(path)} ")


def test_every_command_that_a_page_names_exists():
    named = 0
    for pattern in PAGES:
        for page in ROOT.glob(pattern):
            text = page.read_text(encoding="utf-8")
            for words in re.findall(r"-m maskbench((?: [a-z][a-z-]*)+)", text):
                group = main
                for word in words.split()[:2]:
                    if not isinstance(group, click.Group):
                        break
                    assert word in group.load(), f"{page}: maskbench{words}"
                    group = group.load()[word]
                named += 1
    assert named > 60


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of llguidance over some of the corpus, with a broken and an unwritable case."""
    pytest.importorskip("llguidance")
    directory = tmp_path_factory.mktemp("run")
    lines = (ROOT / "maskbench/corpus/builtin.jsonl").read_text(encoding="utf-8").splitlines()
    extra = [
        '{"schema": {}, "tests": 3}',
        '{"schema": {"maximum": NaN}, "tests": []}',
        '{"id": "odd", "schema": true, "tests": [{"valid": true, "data": "\\ud800"}]}',
    ]
    data = directory / "some.jsonl"
    data.write_text("\n".join([*lines[:12], *extra]) + "\n", encoding="utf-8")
    out = directory / "results.json"
    process = subprocess.run(
        [sys.executable, "-m", "maskbench", "run", "--engine", "llguidance", "--data", str(data),
         "--chunk", "4", "--out", str(out), "--report", str(directory / "report.html"),
         "--report", str(directory / "report.csv")],
        capture_output=True, text=True, cwd=ROOT, timeout=600, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process, json.loads(out.read_text(encoding="utf-8")), out


def test_tables_are_printed_and_nothing_else(finished):
    process, _, _ = finished
    assert process.stderr == ""
    for text in ("wrong accept", "Mask + accept in µs", "Compile + first mask", "forced share"):
        assert text in process.stdout
    assert "some.jsonl:13: 'tests' is not an array" in process.stdout
    assert "some.jsonl:14" in process.stdout
    assert "1 instances without UTF-8 text" in process.stdout


def test_reports_are_written_beside_the_tables(finished):
    process, results, out = finished
    assert results["command"].startswith("python -m maskbench run --engine llguidance --data ")
    page = out.with_name("report.html").read_text(encoding="utf-8")
    assert "python -m maskbench run --engine llguidance" in page
    lines = out.with_name("report.csv").read_text(encoding="utf-8").splitlines()
    passed = results["engines"]["llguidance"]["counts"]["passed"]
    assert (
        f'"builtin, store kept, results.json",verdicts,1,llguidance,passing,count,{passed}' in lines
    )
    assert str(out.with_name("report.html")) in process.stdout


@pytest.mark.parametrize("whitespace", [w.value for w in Whitespace])
def test_reports_name_the_layout(whitespace):
    options = ["--engine", "maskbench_fake_engine:FakeEngine", "--whitespace", whitespace]
    result = CliRunner().invoke(main, ["run", *options, "--sample", "1", "--format", "markdown"])
    assert result.exit_code == 0, result.output
    assert f"Whitespace that schemas allow: {whitespace}." in result.stdout


def test_tables_for_a_program_are_all_that_is_printed(tmp_path):
    result = CliRunner().invoke(
        main,
        [
            "run",
            "--engine",
            "maskbench_fake_engine:FakeEngine",
            "--sample",
            "2",
            "--format",
            "json",
        ],
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["runs"][0]["tables"]["verdicts"]["rows"][0][1] == 2


def test_results_file_holds_everything(finished):
    _, results, out = finished
    assert results["complete"]
    assert results["data"]["chosen"] == 15
    assert len(results["data"]["broken"]) == len(results["data"]["unwritable_schemas"]) == 1
    assert results["data"]["skipped_instances"] == 1
    assert results["tokenizer"]["vocab_size"] == BUILTIN_VOCAB_SIZE
    engine = results["engines"]["llguidance"]
    assert engine["versions"]["llguidance"]
    assert len(engine["schemas"]) == engine["counts"]["schemas"] == 13
    passed = {i for i, s in enumerate(engine["schemas"]) if s["verdict"] == "passed"}
    assert len(passed) == engine["counts"]["passed"] >= 10
    with np.load(out.with_name(results["samples"])) as samples:
        times = samples["llguidance.mask_us"]
        schema = samples["llguidance.mask_schema"]
        first = samples["llguidance.first_mask_us"]
    assert len(times) == len(schema) == sum(s.get("masks", 0) for s in engine["schemas"])
    own = times[np.isin(schema, list(passed))]
    assert describe_times(own) == engine["own"]["mask_us"]
    assert engine["own"]["first_mask_us"]["max"] == first[sorted(passed)].max()
    forced = engine["own"]["forced"]
    assert 0 < forced["forced"] < forced["tokens"]
    worst = engine["slowest_masks"][0]
    assert worst["us"] == times.max()
    assert worst["id"] == engine["schemas"][schema[times.argmax()]]["id"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "nonesuch"], "known: ffwd, ffwd-any, ffwd-escapes, grid, llama-cpp, "),
        (["--engine", ","], "names no engine"),
        (["--engine", "llguidance", "--data", "nonesuch.jsonl"], "no such file"),
        (["--engine", "llguidance", "--tokenizer", "nonesuch"], "neither a folder nor one of"),
        (["--slice", "3/2"], "expected 1 <= i <= n"),
        (["--time-limit", "0"], "--time-limit"),
        (["--whitespace", "none"], "--whitespace"),
        (["--engine-sample", "ffwd"], "expected ENGINE=N"),
        (["--engine-sample", "ffwd=0"], "expected ENGINE=N"),
        (["--engine", "ffwd", "--engine-sample", "llguidance=3"], "not in --engine: llguidance"),
        (["--engine", "ffwd", "--pin", "-1"], "--pin"),
        (["--engine", "ffwd", "--format", "html"], "--format"),
        (["--engine", "ffwd", "--report", "report.txt"], "ends in none of .csv"),
    ],
)
def test_bad_options_are_explained(arguments, message):
    result = CliRunner().invoke(main, ["run", *arguments])
    assert result.exit_code != 0
    assert isinstance(result.exception, SystemExit)
    assert message in result.output


def test_builtin_tokenizer_is_always_the_same_and_loses_nothing(tmp_path):
    spec = resolve("builtin", tmp_path)
    train_builtin(tmp_path / "again")
    first, second = (d / "tokenizer.json" for d in (spec.directory, tmp_path / "again"))
    assert first.read_bytes() == second.read_bytes()
    assert spec.vocab_size == BUILTIN_VOCAB_SIZE
    assert spec.eos_token_ids == (0,)
    encoder = HuggingFaceEncoder(spec)
    text = write_instance({"naïve": ["日本", "🙂", "\t", 1e-7]}, Whitespace.COMPACT)
    ids = encoder.encode(text)
    assert 0 < len(ids) <= len(text.encode())
    assert 0 not in encoder.encode("<|end|>"[:-1])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no tokenizer.json"),
        ({"tokenizer.json": "{}"}, "tokenizer.json"),
        ({"tokenizer_config.json": "{"}, "tokenizer_config.json"),
        ({"tokenizer_config.json": "{}"}, "no end token"),
        ({"tokenizer_config.json": '{"eos_token": "<none>"}'}, "not in the vocabulary"),
    ],
)
def test_unusable_tokenizer_is_named(tmp_path, files, message):
    folder = tmp_path / "tokenizer"
    train_builtin(folder)
    if not files:
        (folder / "tokenizer.json").unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(TokenizerError, match=message):
        resolve(str(folder), tmp_path)


def test_end_tokens_come_from_all_files(tmp_path):
    folder = tmp_path / "tokenizer"
    train_builtin(folder)
    config = {"eos_token": {"content": "<|end|>"}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "generation_config.json").write_text('{"eos_token_id": [5, 5000]}', encoding="utf-8")
    spec = resolve(str(folder), tmp_path)
    assert spec.eos_token_ids == (0, 5, 5000)
    assert spec.vocab_size == 5001


def test_a_tokenizer_without_some_bytes_is_said(tmp_path, capsys):
    """Each is named, and ffwd says so too; bytes that text never has are not missed."""
    folder = tmp_path / "tokenizer"
    train_builtin(folder)
    resolve(str(folder), tmp_path)
    assert capsys.readouterr().err == ""
    file = folder / "tokenizer.json"
    state = json.loads(file.read_text(encoding="utf-8"))
    gone = {byte_characters()[byte] for byte in (0x7B, 0xC1, 0xE0, 0xE2)}
    kept = [text for text in state["model"]["vocab"] if text not in gone]
    state["model"] |= {"vocab": {text: number for number, text in enumerate(kept)}, "merges": []}
    file.write_text(json.dumps(state), encoding="utf-8")
    spec = resolve(str(folder), tmp_path)
    said = capsys.readouterr().err
    assert "warning: tokenizer 'tokenizer': no token encodes the bytes 0x7B, 0xE0, 0xE2:" in said
    with pytest.raises(MissingEngineError, match="0x7B, 0xE0, 0xE2"):
        find("ffwd")(EngineSetup(spec, Whitespace.FLEXIBLE))
