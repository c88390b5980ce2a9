"""`ffwd demo`, the README's first command."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest
import torch
from click.testing import CliRunner
from transformers import AutoTokenizer

import ffwd.model
from ffwd.cli.commands import group
from ffwd.cli.demo.ways import WAYS, Demo, tasks

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments, code=0):
    """The command in this process."""
    done = CliRunner().invoke(group, ["demo", *arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def process(*command):
    """A process of its own."""
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=600, encoding="utf-8"
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def figures():
    return json.loads(run("--json").stdout)


@pytest.fixture(scope="module")
def shown():
    return run().stdout


@pytest.fixture(scope="module")
def box():
    return Demo()


def value_of(text):
    """What a text says as JSON; None where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def test_its_answers_are_judged_as_another_validator_judges_them(figures):
    assert len(figures["prompts"]) == 6
    for prompt in figures["prompts"]:
        for outcome in prompt["outcomes"]:
            value = value_of(outcome["text"])
            valid = value is not None and jsonschema_rs.is_valid(prompt["schema"], value)
            assert outcome["valid"] == valid
            assert outcome["right"] == (value == json.loads(prompt["right"]))


def test_its_answers_are_right(figures, box):
    """Whatever the last digits of a processor are: no choice of the model is a close one."""
    for prompt, task in zip(figures["prompts"], tasks(6, seed=0), strict=True):
        by_way = {outcome["way"]: outcome for outcome in prompt["outcomes"]}
        assert by_way["naive forcing"]["valid"]
        for way in ("masks", "canonical forcing"):
            assert by_way[way]["right"], by_way[way]["text"]
        assert prompt["right"] == task.right
        assert margin(box, task) > 0.5


def margin(box, task):
    """By how much the closest choice under masks is made, in nats, on the way to the right answer.

    A choice is between the token and the next likely one that the mask lets through.
    """
    start = box.start(task)
    tokens = box.cut(task, task.right, naive=False)
    ids = [*start.prompt_ids, *tokens]
    with torch.no_grad():
        logits = box.model(input_ids=torch.tensor([ids])).logits[0, len(start.prompt_ids) - 1 : -1]
    matcher, closest = start.matcher(), math.inf
    for token, row in zip(tokens, logits, strict=True):
        others = [other for other in matcher.allowed_token_ids() if other != token]
        if others:
            closest = min(closest, float(row[token] - row[others].max()))
        assert matcher.accept_token(token)
    return closest


def test_masks_make_valid_what_the_model_alone_would_not(figures):
    """It cannot know the keys of a schema that its prompt does not name."""
    (prompt,) = (prompt for prompt in figures["prompts"] if not prompt["named"])
    free, *others = prompt["outcomes"]
    assert not free["valid"]
    assert all(outcome["valid"] for outcome in others)
    assert figures["ways"][0]["valid"] == 5
    assert figures["ways"][0]["right"] == 5


def test_the_four_ways_are_counted(figures):
    assert tuple(way["way"] for way in figures["ways"]) == WAYS
    for column, way in enumerate(figures["ways"]):
        outcomes = [prompt["outcomes"][column] for prompt in figures["prompts"]]
        for name in ("valid", "right", "tokens", "forced", "passes"):
            assert way[name] == sum(outcome[name] for outcome in outcomes)
        # What was not forced, the model was asked for.
        assert way["passes"] + way["forced"] == way["tokens"]
        likelihood = sum(outcome["likelihood"] for outcome in outcomes)
        assert way["likelihood"] == pytest.approx(likelihood / 6)
        size = sum(len(outcome["text"].encode()) + 1 for outcome in outcomes)
        assert way["perplexity"] == pytest.approx(math.exp(-likelihood / size))
    free, masks, naive, canonical = figures["ways"]
    assert free["forced"] == masks["forced"] == 0
    assert 0 < canonical["passes"] < masks["passes"]
    assert naive["forced"] > 0


def test_non_canonical_tokens_do_harm(figures):
    """The model has never seen them: it finds them unlikely, and goes on wrongly after them."""
    right = figures["likelihood_of_the_right_record"]
    for name, mean in right.items():
        sums = [
            sum(likelihood for _, likelihood in prompt["right_as_tokens"][name])
            for prompt in figures["prompts"]
            if prompt["named"]
        ]
        assert mean == pytest.approx(sum(sums) / 5)
    assert right["naive"] < right["canonical"] - 10
    assert right["canonical"] > -2
    _, masks, naive, canonical = figures["ways"]
    assert naive["right"] < canonical["right"]
    assert naive["likelihood"] < canonical["likelihood"] - 10
    # As the model would have written it by itself under masks.
    assert canonical["likelihood"] == pytest.approx(masks["likelihood"], abs=1e-3)


def test_what_is_shown_is_what_was_measured(figures, shown):
    assert "\x1b" not in shown, "colours only on a terminal"
    rows = {
        cells[0].strip(): [cell.strip() for cell in cells[1:]]
        for cells in (line.strip("│").split("│") for line in shown.splitlines() if "│" in line)
    }
    for name in ("tokens", "forced", "passes"):
        row = {"forced": "forced tokens", "passes": "forward passes"}.get(name, name)
        assert rows[row] == [str(way[name]) for way in figures["ways"]]
    assert rows["right"] == [f"{way['right']} of 6" for way in figures["ways"]]
    assert rows["likelihood"] == [f"{way['likelihood']:.2f} nats" for way in figures["ways"]]
    # Each way and each row is explained in words.
    for name in (*WAYS, "valid", "right", "time", "likelihood", "perplexity", *rows):
        assert name == "" or re.search(rf"^  {name} +[A-Z]", shown, re.MULTILINE), name
    for prompt in figures["prompts"]:
        assert prompt["messages"][-1]["content"].splitlines()[0] in shown
        assert all(outcome["text"] in shown for outcome in prompt["outcomes"])
    assert re.search(r"naive .*'order' 1 in [\d,^]+, 'Id' ", shown)
    assert re.search(r"canonical .*'orderId' \d+%", shown)


def test_the_documents_show_what_comes_out(shown):
    """`docs/cli.md` has the output of `ffwd demo`, but for what the processor decides."""
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```text\n(A model of .*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert stable(block) == stable(shown)


def stable(text):
    """Without times, the digits of likelihoods, and what the model makes of tokens that it has
    never seen: those are the business of a processor's rounding."""
    text = re.sub(r"^naive forcing: .*\n.*$", "naive forcing: ~", text, flags=re.MULTILINE)
    text = re.sub(r"1 in [\d,^]+|\d+%|-?\d+\.\d\d nats|\b\d\.\d{4}\b|[\d,]+ ms", "~", text)
    lines = [re.sub(" +", " ", line).rstrip() for line in text.splitlines()]
    # The column of naive forcing.
    return ["│".join(line.split("│")[:4] + line.split("│")[5:]) for line in lines]


def test_the_same_seed_shows_the_same():
    words = ["demo", "--json", "--prompts", "1", "--seed", "3"]
    first = json.loads(run(*words[1:]).stdout)
    second = json.loads(process("-m", "ffwd.cli", *words).stdout)
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
    message = run("--text", "x", "--schema", str(path), code=1).stderr
    assert message.startswith(f"error: {path}: ")


def test_a_schema_needs_a_text(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text("{}", encoding="utf-8")
    assert "--text" in run("--schema", str(path), code=2).stderr


def test_a_text_that_is_too_long_is_refused():
    message = run("--text", "Ada is 36. " * 400, code=1).stderr
    assert "1024 that the model was made for: give a shorter text" in message


def test_a_folder_without_a_model_is_named(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        message = run("--model", str(folder), code=5).stderr
        assert message.startswith(f"error: {folder} ")
        assert "the directory of a model of transformers" in message


@pytest.mark.parametrize("missing", ["torch", "transformers", "rich", "jsonschema", "jinja2"])
def test_what_is_missing_is_said(missing):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "sys.argv = ['ffwd', 'demo']\nfrom ffwd.cli import main\nmain()"
    )
    done = process("-c", code)
    assert done.returncode == 4
    if missing == "jinja2":
        said = "chat templates need Jinja2: pip install 'ffwd[chat]'"
    else:
        said = f"{missing} is not installed: pip install 'ffwd[demo]'"
    assert done.stderr == f"error: {said}\n"


def test_prompts_take_turns_and_follow_their_seed():
    assert tasks(6, seed=1) == tasks(9, seed=1)[:6]
    assert tasks(6, seed=1) != tasks(6, seed=2)


def test_the_two_ways_to_cut_differ_and_are_the_same_text(box):
    (task,) = tasks(1, seed=0)
    end = box.start(task).vocabulary.eos_token_ids[0]
    canonical, naive = (box.cut(task, task.right, naive=naive) for naive in (False, True))
    assert canonical == [*box.tokenizer.encode(task.right), end]
    assert naive != canonical
    assert box.tokenizer.decode(naive) == task.right
    with pytest.raises(ValueError, match="does not follow"):
        box.cut(task, '{"x":1}', naive=False)


def test_the_prompt_is_the_one_that_transformers_makes(box):
    transformers = AutoTokenizer.from_pretrained(ffwd.model.path())
    for task in tasks(10, seed=1):
        theirs = transformers.apply_chat_template(
            task.messages, add_generation_prompt=True, return_dict=True
        )["input_ids"]
        assert list(box.start(task).prompt_ids) == theirs


def test_likelihoods_are_those_of_a_step_by_step_reading(box):
    (task,) = tasks(1, seed=0)
    prompt = box.start(task).prompt_ids
    tokens = box.cut(task, task.right, naive=False)
    together = box.likelihoods(prompt, tokens)
    for place, token in enumerate(tokens):
        (alone,) = box.likelihoods([*prompt, *tokens[:place]], [token])
        assert together[place] == pytest.approx(alone, abs=1e-3)
