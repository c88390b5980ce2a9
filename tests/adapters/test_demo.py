"""`ffwd demo`, the README's first command."""

import json
import subprocess
import sys

import jsonschema_rs
import pytest

import ffwd.model
from ffwd.adapters.demo import WAYS, Demo, tasks


def run(*arguments, code=0, python=("-m", "ffwd.cli")):
    done = subprocess.run(
        [sys.executable, *python, "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        encoding="utf-8",
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def figures():
    return json.loads(run("--json", "--prompts", "5").stdout)


def test_its_answers_under_masks_are_valid(figures):
    assert len(figures["prompts"]) == 5
    for prompt in figures["prompts"]:
        for outcome in prompt["outcomes"][1:]:
            jsonschema_rs.validate(prompt["schema"], json.loads(outcome["text"]))
            assert outcome["valid"]
        for outcome in prompt["outcomes"]:
            valid = outcome["text"].startswith("{") and jsonschema_rs.is_valid(
                prompt["schema"], json.loads(outcome["text"])
            )
            assert outcome["valid"] == valid
            same = valid and json.loads(outcome["text"]) == json.loads(prompt["right"])
            assert outcome["right"] == same


def test_the_columns_add_up(figures):
    assert [way["way"] for way in figures["ways"]] == list(WAYS)
    for column, way in enumerate(figures["ways"]):
        outcomes = [prompt["outcomes"][column] for prompt in figures["prompts"]]
        for name in ("valid", "right", "tokens", "forced", "passes"):
            assert way[name] == sum(outcome[name] for outcome in outcomes)
        # What was not forced, the model was asked for.
        assert way["passes"] + way["forced"] == way["tokens"]
    free, masks, naive, canonical = figures["ways"]
    assert free["forced"] == masks["forced"] == 0
    assert 0 < canonical["passes"] < masks["passes"]
    assert naive["forced"] > 0


def test_non_canonical_tokens_are_less_likely(figures):
    right = figures["likelihood_of_the_right_record"]
    assert right["naive"] < right["canonical"] - 1
    assert right["canonical"] < 0


def test_the_table_has_all_rows():
    shown = run("--prompts", "1").stdout
    for row in (
        "valid",
        "right",
        "tokens",
        "forced tokens",
        "forward passes",
        "time",
        "likelihood",
        "perplexity per byte",
    ):
        assert f"│ {row} " in shown
    assert all(way in shown for way in WAYS)
    assert "\x1b" not in shown, "colours only on a terminal"


def test_the_same_seed_shows_the_same():
    first, second = (
        json.loads(run("--json", "--prompts", "1", "--seed", "3").stdout) for _ in range(2)
    )
    for figures in (first, second):
        for outcome in figures["prompts"][0]["outcomes"]:
            del outcome["seconds"]
    assert first["prompts"] == second["prompts"]


def test_a_text_and_a_schema_of_the_users_own(tmp_path):
    schema = {"enum": ["one fish", "two fish"]}
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema), encoding="utf-8")
    figures = json.loads(run("--json", "--text", "How many?", "--schema", str(path)).stdout)
    for outcome in figures["prompts"][0]["outcomes"][1:]:
        assert json.loads(outcome["text"]) in schema["enum"]
    assert figures["likelihood_of_the_right_record"] is None
    assert figures["ways"][0]["right"] is None


def test_tokens_are_listed():
    shown = run("--prompts", "1", "--tokens").stdout
    assert "chosen by the model" in shown
    assert "allowed by the mask" in shown


@pytest.mark.parametrize("text", ["{", '{"type": "no such type"}'])
def test_a_bad_schema_is_named(text, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(text, encoding="utf-8")
    assert run("--text", "x", "--schema", str(path), code=1).stderr.startswith("Error: ")


def test_a_schema_needs_a_text(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text("{}", encoding="utf-8")
    assert "--text" in run("--schema", str(path), code=2).stderr


def test_a_folder_without_a_model_is_named(tmp_path):
    assert str(tmp_path) in run("--model", str(tmp_path), code=1).stderr


@pytest.mark.parametrize("missing", ["torch", "transformers", "rich", "jsonschema"])
def test_what_is_missing_is_said(missing):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "sys.argv[0] = 'ffwd'\nfrom ffwd.cli import main\nmain()"
    )
    done = run(code=1, python=("-c", code))
    assert "pip install 'ffwd[demo]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_prompts_take_turns_and_follow_their_seed():
    assert tasks(6, seed=1) == tasks(7, seed=1)[:6]
    assert tasks(6, seed=1) != tasks(6, seed=2)


def test_the_two_ways_to_cut_differ_and_are_the_same_text():
    box = Demo()
    (task,) = tasks(1, seed=0)
    end = box.tokenizer.eos_token_id
    canonical, naive = (box.cut(task, task.right, naive=naive) for naive in (False, True))
    assert canonical == [*box.tokenizer.encode(task.right, add_special_tokens=False), end]
    assert naive != canonical
    assert box.tokenizer.decode(naive[:-1]) == task.right
    with pytest.raises(ValueError, match="does not follow"):
        box.cut(task, '{"x":1}', naive=False)


def test_likelihood_is_that_of_a_step_by_step_reading():
    box = Demo()
    (task,) = tasks(1, seed=0)
    prompt = box.prompt(task)["input_ids"][0].tolist()
    tokens = box.cut(task, task.right, naive=False)
    total = 0.0
    for place, token in enumerate(tokens):
        total += box.likelihood([*prompt, *tokens[:place]], [token])
    assert box.likelihood(prompt, tokens) == pytest.approx(total, abs=1e-3)
    assert ffwd.model.path().is_dir()
