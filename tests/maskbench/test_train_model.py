"""How the model in the box is trained."""

import hashlib
import json
import random
from dataclasses import replace

import pytest
import torch
from click.testing import CliRunner
from transformers import AutoTokenizer

import ffwd.model
from ffwd.model.texts import Words
from maskbench.__main__ import main
from maskbench.tools.train_model import ways
from maskbench.tools.train_model.training import (
    IGNORED,
    TrainingSettings,
    batches,
    encode,
    new_model,
    rate_at,
    train,
)

SETTINGS = TrainingSettings(steps=2, warm_up=1, decay=1, batch_tokens=400, processes=1)


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(ffwd.model.path())


def test_only_answers_are_learned(tokenizer):
    words = Words(random.Random(1))
    for _ in range(50):
        ids, wanted = encode(tokenizer, words, simple=False)
        assert len(ids) == len(wanted)
        assert all(label in (IGNORED, token) for token, label in zip(ids, wanted, strict=True))
        learned = tokenizer.decode([label for label in wanted if label != IGNORED])
        whole = tokenizer.decode(ids)
        # What stands after each `assistant`, up to and with its end.
        answers = whole.split("<|im_start|>assistant\n")[1:]
        end = "<|im_end|>"
        assert learned == "".join(text.split(end)[0] + end for text in answers)


def test_batches_follow_their_seed(tokenizer):
    def first(settings, process):
        return next(batches(tokenizer, settings, process)).ids.tolist()

    assert first(SETTINGS, 0) == first(SETTINGS, 0)
    assert first(SETTINGS, 0) != first(SETTINGS, 1)
    assert first(SETTINGS, 0) != first(replace(SETTINGS, seed=1), 0)


def test_the_first_weights_copy(tokenizer):
    """After `a b c … a b`, the most likely token is mostly `c`, before anything was learned."""
    model = new_model(tokenizer, TrainingSettings())
    ids = torch.randint(300, 2000, (8, 30), generator=torch.Generator().manual_seed(2))
    twice = torch.cat([ids, ids], dim=1)
    with torch.no_grad():
        best = model(input_ids=twice).logits[:, 30:-1].argmax(-1)
    assert (best == twice[:, 31:]).float().mean() > 0.3


def test_training_lowers_the_loss_and_can_be_repeated(tokenizer):
    def run():
        losses = []
        model = train(
            tokenizer,
            replace(SETTINGS, steps=50, batch_tokens=200, decay=10),
            lambda _, loss, __: losses.append(loss),
        )
        return losses[0], model.model.embed_tokens.weight

    first, second = run(), run()
    assert first[0] < 6.5
    assert first[0] == second[0]
    assert torch.equal(first[1], second[1])


def test_the_rate_rises_stays_and_falls():
    settings = TrainingSettings(steps=100, warm_up=10, decay=20)
    rates = [rate_at(step, settings) for step in range(101)]
    assert rates[:10] == sorted(rates[:10])
    assert set(rates[10:80]) == {1.0}
    assert rates[80:] == sorted(rates[80:], reverse=True)
    assert rates[100] == 0


def test_the_command_writes_a_whole_folder(tmp_path):
    done = CliRunner().invoke(
        main,
        ["tools", "train-model", str(tmp_path / "made"), "--steps", "2", "--decay", "1"],
        catch_exceptions=False,
    )
    assert done.exit_code == 0, done.output
    made = {path.name for path in (tmp_path / "made").iterdir()}
    box = {path.name for path in ffwd.model.path().iterdir() if path.is_file()}
    assert made == {name for name in box if not name.endswith(".py")} - {"README.md"}
    told = json.loads((tmp_path / "made/training.json").read_text(encoding="utf-8"))
    weights = (tmp_path / "made/model.safetensors").read_bytes()
    assert told["sha256"] == hashlib.sha256(weights).hexdigest()
    assert told["settings"]["steps"] == 2
    # The tokenizer in the box is the one that the script makes.
    for name in ("tokenizer.json", "chat_template.jinja"):
        same = (tmp_path / "made" / name).read_text() == (ffwd.model.path() / name).read_text()
        assert same, name


def test_ways_of_answering_are_compared(monkeypatch):
    """The same conversations in each way, and what each of them took."""
    monkeypatch.setattr(ways, "ASKED", ("question",))
    some = ("masks", "draft_tokens=64", 'sampled, sampling="smc"')
    monkeypatch.setattr(ways, "WAYS", {name: ways.WAYS[name] for name in some})
    result = CliRunner().invoke(main, ["tools", "evaluate-ways", "--conversations", "2"])
    assert result.exit_code == 0, result.output
    rows = [line.strip("| ").split(" | ") for line in result.stdout.splitlines()[2:]]
    assert [row[:3] for row in rows] == [["question", f"`{way}`", "2"] for way in some]
    passes = [float(row[4]) for row in rows]
    # A draft is another generation, and questions have short answers.
    assert passes[1] > passes[0]
    assert rows[0][3] == "100%"
