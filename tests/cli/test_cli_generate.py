"""`ffwd generate`: answers, streams, limits, pictures and what is wrong with a model."""

import json
import re
import shutil

import pytest
from climodels import SCHEMA, WIDTH, as_json, ffwd, write_model

ASKED = ["--prompt", "Ada ordered.", "--whitespace", "compact"]


def valid(text):
    value = json.loads(text)
    assert set(value) == {"name", "status"}
    assert re.fullmatch("[A-Z][a-z]{1,9}", value["name"])
    assert value["status"] in SCHEMA["properties"]["status"]["enum"]
    return value


def test_an_answer_is_written_and_statistics_go_elsewhere(model, schema):
    done = ffwd("generate", model, schema, *ASKED)
    assert done.exit_code == 0, done.output
    valid(done.stdout)
    assert done.stdout.endswith("}\n")
    assert re.search(r"\d+ tokens, \d+ of them forced, \d+ forward passes", done.stderr)
    assert ffwd("generate", model, schema, *ASKED, "-q").stderr == ""


def test_json_has_all_of_it(model, schema):
    data = as_json("generate", model, schema, *ASKED)
    valid(data["text"])
    assert data["complete"]
    assert data["tokens"] == len(data["token_ids"])
    assert data["forward_passes"] + data["forced_tokens"] == data["tokens"]
    masks = as_json("generate", model, schema, *ASKED, "--no-fast-forward")
    valid(masks["text"])
    assert masks["forced_tokens"] == 0
    assert masks["forward_passes"] == masks["tokens"] > data["forward_passes"]


def test_sampling_has_a_seed(model, schema):
    def answers(seed):
        options = ["--temperature", 2.0, "--seed", seed, "--max-tokens", 60]
        return as_json("generate", model, schema, *ASKED, *options)["text"]

    assert answers(1) == answers(1)
    assert len({answers(seed) for seed in range(4)}) > 1


def test_an_answer_that_was_begun_goes_on(model, schema, tmp_path):
    messages = tmp_path / "begun.json"
    begun = '{"name":"Gr'
    turns = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": begun}]
    messages.write_text(json.dumps(turns))
    view = tmp_path / "view.html"
    options = ["--messages", messages, "--whitespace", "compact", "--view", view]
    data = as_json("generate", model, schema, *options)
    assert valid(data["text"])["name"].startswith("Gr")
    streamed = ffwd("generate", model, schema, *options, "-q").stdout
    assert streamed == data["text"] + "\n"
    drawn = json.loads(
        re.search(
            r'<script type="application/json" id="recording">(.*?)</script>', view.read_text()
        )[1]
    )
    assert drawn["back"]
    assert drawn["steps"][0]["k"] == "healed"


@pytest.mark.parametrize("options", [[], ["--no-fast-forward"], ["--canonical"]])
def test_a_picture_is_drawn(model, schema, tmp_path, options):
    view = tmp_path / "view.html"
    data = as_json("generate", model, schema, *ASKED, "--view", view, *options)
    found = re.search(
        r'<script type="application/json" id="recording">(.*?)</script>', view.read_text()
    )
    drawn = json.loads(found[1])
    assert [step["t"] for step in drawn["steps"]] == data["token_ids"]
    assert drawn["replayed"] == (options == ["--no-fast-forward"])
    forced = sum(step["k"] == "forced" for step in drawn["steps"])
    assert forced == data["forced_tokens"]


def test_raw_text_and_other_grammars(model, tmp_path):
    grammar = tmp_path / "date.regex"
    grammar.write_text("[0-9]{4}-[0-9]{2}\n")
    done = ffwd("generate", model, grammar, "--raw", "--prompt", "Today is ", "-q")
    assert re.fullmatch(r"[0-9]{4}-[0-9]{2}\n", done.stdout)


# ------------------------------------------------------------------------------------- limits


def test_no_whole_answer_fits(model, schema):
    done = ffwd("generate", model, schema, *ASKED, "--max-tokens", 3)
    assert done.exit_code == 3
    assert "larger --max-tokens" in done.stderr
    assert "Traceback" not in done.output
    error = as_json("generate", model, schema, *ASKED, "--max-tokens", 3, code=3)["error"]
    assert error["type"] == "BudgetError"


def test_an_answer_that_is_cut_off_says_what_to_do(model, schema):
    options = [*ASKED, "--max-tokens", 3, "--may-be-cut"]
    done = ffwd("generate", model, schema, *options)
    assert done.exit_code == 3
    assert "cut off after 3 tokens: give a larger --max-tokens" in done.stderr
    data = as_json("generate", model, schema, *options, code=3)
    assert not data["complete"]
    assert data["tokens"] == 3


@pytest.mark.parametrize("raw", [[], ["--raw"]])
def test_an_answer_without_room_for_its_end_token_is_whole(model, schema, raw):
    whole = as_json("generate", model, schema, *ASKED, *raw)
    options = [*ASKED, *raw, "--may-be-cut", "--max-tokens"]
    for missing, is_whole in ((1, True), (2, False)):
        code = 0 if is_whole else 3
        data = as_json("generate", model, schema, *options, whole["tokens"] - missing, code=code)
        assert data["complete"] == is_whole
        assert data["token_ids"] == whole["token_ids"][:-missing]
        assert (data["text"] == whole["text"]) == is_whole


# ------------------------------------------------------------------------- what cannot be used


def test_no_model_directory(model, schema, tmp_path):
    for folder in (tmp_path / "nowhere", tmp_path):
        done = ffwd("generate", folder, schema, *ASKED)
        assert done.exit_code == 5
        assert str(folder) in done.stderr
        assert "It takes the directory of a model of transformers" in done.stderr
        assert "ffwd.model.path()" in done.stderr
    weightless = tmp_path / "weightless"
    shutil.copytree(model, weightless, ignore=shutil.ignore_patterns("*.safetensors"))
    done = ffwd("generate", weightless, schema, *ASKED)
    assert done.exit_code == 5
    assert "cannot be loaded" in done.stderr
    assert "a file may be missing or cut off, so fetch the directory again" in done.stderr
    cut = tmp_path / "cut"
    shutil.copytree(model, cut)
    weights = (cut / "model.safetensors").read_bytes()
    (cut / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    for command in (["generate", cut, schema, *ASKED], ["serve", cut]):
        done = ffwd(*command)
        assert done.exit_code == 5
        assert "cannot be loaded" in done.stderr
        assert "fetch the directory again" in done.stderr
    # Not `cuda`, which some machines have.
    done = ffwd("generate", model, schema, *ASKED, "--device", "mtia")
    assert done.exit_code == 5
    assert "does not go onto the device 'mtia'" in done.stderr
    assert 'such as "cpu"' in done.stderr


def test_a_tokenizer_of_another_model(schema, tmp_path):
    folder = write_model(tmp_path / "narrow", width=200)
    done = ffwd("generate", folder, schema, *ASKED)
    assert done.exit_code == 5
    assert "logits for 200 tokens: they belong to different models" in done.stderr
    assert "resize_token_embeddings" in done.stderr
    assert WIDTH > 200


def test_a_tokenizer_of_the_same_size_of_another_model(model, schema, tmp_path):
    """The model ends its texts with what is a letter in this tokenizer."""
    folder = tmp_path / "mixed"
    shutil.copytree(model, folder)
    for name in ("config.json", "generation_config.json"):
        stated = json.loads((folder / name).read_text(encoding="utf-8"))
        (folder / name).write_text(json.dumps(stated | {"eos_token_id": 40}), encoding="utf-8")
    for command in (["generate", folder, schema, *ASKED], ["serve", folder]):
        done = ffwd(*command)
        assert done.exit_code == 5
        assert "belong to different models" in done.stderr
        assert "Take the tokenizer's files from where the weights came from" in done.stderr


def test_a_misspelt_keyword(model, tmp_path):
    misspelt = tmp_path / "misspelt.json"
    misspelt.write_text('{"enum": ["a"], "maxLenght": 3}', encoding="utf-8")
    done = ffwd("generate", model, misspelt, *ASKED, "--quiet")
    assert done.exit_code == 0
    assert "'maxLenght' at '/maxLenght' (did you mean 'maxLength'?)" in done.stderr


def test_no_template(model, schema, tmp_path):
    folder = tmp_path / "bare"
    shutil.copytree(model, folder)
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        (folder / name).unlink(missing_ok=True)
    done = ffwd("generate", folder, schema, *ASKED)
    assert done.exit_code == 5
    assert "--raw" in done.stderr


def test_bad_grammars_and_usage(model, schema, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text('{"type": "objct"}')
    done = ffwd("generate", model, bad, *ASKED)
    assert done.exit_code == 1
    assert f"{bad}:1:10: " in done.stderr
    for options in ([], ["--prompt", "a", "--messages", str(schema)], ["--dtype", "x", *ASKED]):
        assert ffwd("generate", model, schema, *options).exit_code in (2, 5)
    assert ffwd("generate", model, schema, "--raw", "--prompt", "").exit_code == 2
