"""How the model in the box is trained."""

import hashlib
import json
import random
from dataclasses import replace

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

import ffwd
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
            replace(SETTINGS, steps=50, batch_tokens=120, decay=10, rate=1e-2, layers=2, width=48),
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
    for weight in load_file(tmp_path / "made/model.safetensors").values():
        assert weight.dtype == torch.bfloat16
        # Four of the seven bits of mantissa.
        assert not torch.any(weight.view(torch.int16) & 0b111)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "made")
    assert {weight.dtype for weight in loaded.parameters()} == {torch.float32}
    assert told["settings"]["steps"] == 2
    # The tokenizer in the box is the one that the script makes.
    for name in ("tokenizer.json", "chat_template.jinja"):
        same = (tmp_path / "made" / name).read_text() == (ffwd.model.path() / name).read_text()
        assert same, name


def test_another_vocabulary_and_other_layers(tmp_path):
    options = ["--vocabulary-size", "600", "--layers", "2", "--processes", "1"]
    done = CliRunner().invoke(
        main,
        ["tools", "train-model", str(tmp_path), "--steps", "1", *options],
        catch_exceptions=False,
    )
    assert done.exit_code == 0, done.output
    made = AutoModelForCausalLM.from_pretrained(tmp_path)
    own = AutoTokenizer.from_pretrained(tmp_path)
    assert made.config.vocab_size == len(own) == 600
    assert made.config.num_hidden_layers == 2
    # Bytes are tokens, so every text can be written.
    assert own.decode(own.encode('{"name": "Ü"}')) == '{"name": "Ü"}'


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(ffwd.model.path()).eval()


def test_ways_of_answering_are_compared():
    """The same conversations in each way, and what each of them took."""
    some = (
        "masks",
        "narrow=True",
        "draft_tokens=64",
        "sampled, fast_forward=False",
        "sampled",
        'sampled, sampling="smc"',
    )
    options = ["--conversations", "2", "--task", "question"]
    options += [part for way in some for part in ("--way", way)]
    result = CliRunner().invoke(main, ["tools", "evaluate-ways", *options])
    assert result.exit_code == 0, result.output
    rows = [line[2:-2].split(" | ") for line in result.stdout.splitlines()[2:]]
    assert [row[:3] for row in rows] == [["question", f"`{way}`", "2"] for way in some]
    right = {row[1]: row[3] for row in rows}
    assert right["`masks`"] == right["`narrow=True`"] == "100% (34% to 100%)"
    none, zero = "", "0.00 (0.00 to 0.00)"
    # Greedy answers have no plain ones beside them here.
    more = [row[4].strip() for row in rows]
    assert more[:4] == [none, none, none, zero]
    assert none not in more[4:]
    likelihoods = [row[5].strip() for row in rows]
    assert [bool(text) for text in likelihoods] == [False, False, False, True, True, False]
    assert rows[3][6].strip() == zero
    passes = [float(row[7]) for row in rows]
    # Forcing saves passes, a draft is another generation, and questions have short answers.
    assert passes[0] < passes[1]
    assert passes[2] > passes[0]


def test_the_model_in_the_box_is_evaluated():
    result = CliRunner().invoke(
        main, ["tools", "evaluate-model", "--simple", "--conversations", "4", "--seed", "1"]
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[2:] == ["| extraction | 4 | 100% | 100% |"]


def test_unknown_tasks_and_ways_are_named():
    for option in ("--task", "--way"):
        result = CliRunner().invoke(main, ["tools", "evaluate-ways", option, "nap"])
        assert result.exit_code == 2
        assert f"{option}: there is no 'nap'" in result.output


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("canonical", [False, True])
def test_likelihoods_are_those_of_masks(narrow, canonical, model, tokenizer):
    """Of answers that are right, the model's probability divided by that of all masks."""
    words = Words(random.Random(4))
    chat = ways._Chat(model, tokenizer)
    found = 0
    for _ in range(4):
        question = ways._Question(chat, ways.ASKED["simple"](words))
        made = ffwd.generate(
            model,
            tokenizer,
            question.example.messages,
            question.example.schema,
            whitespace="compact",
            max_new_tokens=90,
            do_sample=False,
            fast_forward=narrow,
            canonical=canonical,
            masses=True,
        )
        if made.tokens != question.right:
            continue
        found += 1
        own = sum(float(row[token]) for row, token in zip(question.log_p, made.tokens, strict=True))
        likelihood = question.log_likelihood(canonical=canonical, narrow=narrow)
        assert likelihood == pytest.approx(own - made.log_weight, abs=1e-3)
        assert likelihood <= 0
        value, passes = question.narrow({"do_sample": False})
        assert value == made.value
        assert passes == len(made.tokens)
    assert found > 1


def test_a_right_answer_that_masks_refuse_is_an_error(model, tokenizer):
    example = replace(ways.ASKED["simple"](Words(random.Random(4))), answer='{"other":1}')
    question = ways._Question(ways._Chat(model, tokenizer), example)
    with pytest.raises(ValueError, match="is not allowed"):
        question.log_likelihood(canonical=False, narrow=False)
