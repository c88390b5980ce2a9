"""The server's parts by themselves: the cache's slots, sampling, arguments, deltas."""

import json
import random

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")
torch = pytest.importorskip("torch")

from serve_models import write_model
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

import ffwd
from ffwd.adapters.server import load_model
from ffwd.adapters.server.answers import merged
from ffwd.adapters.server.deltas import Delta
from ffwd.adapters.server.sampling import Sampling, choose
from ffwd.adapters.server.slots import (
    SlotModel,
    UnsupportedModelError,
    check_against_itself,
)
from ffwd.adapters.server.tool_arguments import json_arguments
from ffwd.adapters.transformers import ModelError
from ffwd.tools import FORMATS

SIZES = {
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 2,
}


def model_of(name):
    torch.manual_seed(5)
    if name == "llama":
        return LlamaForCausalLM(LlamaConfig(**SIZES)).eval()
    if name == "mistral, sliding":
        return MistralForCausalLM(MistralConfig(**SIZES, sliding_window=5)).eval()
    if name == "gemma, sliding and full":
        sizes = SIZES | {"num_hidden_layers": 6}
        return Gemma3ForCausalLM(Gemma3TextConfig(**sizes, head_dim=8, sliding_window=5)).eval()
    config = GPT2Config(
        vocab_size=100, n_embd=32, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=2
    )
    return GPT2LMHeadModel(config).eval()


@pytest.mark.parametrize("name", ["llama", "mistral, sliding", "gemma, sliding and full", "gpt2"])
def test_slots_are_as_good_as_texts_alone(name):
    """Texts join, grow by chunks of any length, leave and move, in random order."""
    seed = 11
    print("seed", seed)
    rng = random.Random(seed)
    model = model_of(name)
    slots = SlotModel(model)
    texts, held = [], []

    def expected(text):
        with torch.inference_mode():
            return model(input_ids=torch.tensor([text])).logits[0, -1]

    for _ in range(40):
        if len(texts) < 6 and rng.random() < 0.5:
            texts.append([])
            held.append(0)
        if texts and rng.random() < 0.2:
            gone = rng.randrange(len(texts))
            text, length = texts.pop(), held.pop()
            if gone < len(texts):
                slots.move(len(texts), gone, length)
                texts[gone], held[gone] = text, length
        if not texts:
            continue
        chosen = sorted(rng.sample(range(len(texts)), rng.randrange(len(texts)) + 1))
        chunks = [[rng.randrange(100) for _ in range(rng.choice([1, 1, 2, 7]))] for _ in chosen]
        logits = slots.logits(chosen, [held[slot] for slot in chosen], chunks)
        for row, (slot, chunk) in enumerate(zip(chosen, chunks, strict=True)):
            texts[slot] += chunk
            held[slot] += len(chunk)
            torch.testing.assert_close(logits[row], expected(texts[slot]), atol=1e-4, rtol=1e-4)


def test_models_that_cannot_be_batched_are_refused():
    with pytest.raises(UnsupportedModelError, match="linear_attention"):
        SlotModel(
            MambaForCausalLM(MambaConfig(vocab_size=100, hidden_size=32, num_hidden_layers=1))
        )


def test_a_model_that_ignores_masks_is_found_out():
    model = model_of("llama")
    slots = SlotModel(model)
    check_against_itself(model, slots, vocab_size=100)
    slots._masks = lambda positions, columns: torch.zeros((*positions.shape, columns)).unsqueeze(1)
    with pytest.raises(UnsupportedModelError, match="other logits"):
        check_against_itself(model, slots, vocab_size=100)


def mask_of(tokens, size):
    bits = ffwd.allocate_bitmask(1, size)[0]
    bits[:] = 0
    for token in tokens:
        bits.view(np.uint32)[token // 32] |= np.uint32(1 << token % 32)
    return bits


def test_tokens_are_drawn_as_often_as_they_are_likely():
    size, draws = 70, 1500
    logits = torch.full((1, size), -3.0)
    logits[0, :4] = torch.tensor([2.0, 1.0, 0.0, 9.0])
    mask = mask_of([0, 1, 2], size)
    weights = torch.softmax(torch.tensor([2.0, 1.0, 0.0]) / 0.5, 0)
    sampling = Sampling(temperature=0.5, chance=random.Random(3))
    counts = [0] * size
    for _ in range(draws):
        (token,) = choose(logits.clone(), [mask], [sampling], vocab_size=size)
        counts[token] += 1
    assert sum(counts[:3]) == draws
    for token in range(3):
        assert abs(counts[token] / draws - weights[token].item()) < 0.05


def test_cuts():
    """What is cut off never comes; what is left does."""
    size = 64
    logits = torch.zeros((1, size))
    logits[0, :4] = torch.tensor([3.0, 2.9, 2.0, 1.0])
    mask = mask_of(range(size), size)

    def seen(**cut):
        sampling = Sampling(chance=random.Random(1), **cut)
        return {choose(logits.clone(), [mask], [sampling], vocab_size=size)[0] for _ in range(60)}

    assert seen(top_k=2) == {0, 1}
    assert seen(top_p=0.01) == {0}
    assert seen(min_p=0.3) == {0, 1, 2}
    assert len(seen()) > 10
    assert seen(temperature=0) == {0}


def test_logits_that_are_no_numbers_are_told_apart():
    size = 40
    logits = torch.zeros((3, size))
    logits[1] = torch.nan
    logits[2, 5] = 4.0
    masks = [mask_of([7], size)] * 2 + [mask_of([5, 7], size)]
    greedy = Sampling(temperature=0)
    assert choose(logits, masks, [greedy] * 3, vocab_size=size) == [7, None, 5]


def test_logits_beyond_the_vocabulary_are_never_chosen():
    logits = torch.zeros((1, 64))
    logits[0, 50:] = 9.0
    assert choose(logits, [mask_of(range(50), 50)], [Sampling(temperature=0)], vocab_size=50) != [
        50
    ]


@pytest.mark.parametrize(
    ("style", "text", "values", "expected"),
    [
        (
            "llama3-pythonic",
            'city="Bern", days=3, dry=True',
            (),
            {"city": "Bern", "days": 3, "dry": True},
        ),
        ("llama3-pythonic", "", (), {}),
        (
            "qwen3-coder",
            "<parameter=city>\n12\n</parameter>\n<parameter=days>\n3\n</parameter>\n",
            (),
            {"city": "12", "days": 3},
        ),
        (
            "qwen3-coder",
            "<parameter=list>\n[1, 2]\n</parameter>\n",
            (17,),
            {"list": [1, 2]},
        ),
        ("hermes", '{"city": "Bern"}', (), {"city": "Bern"}),
    ],
)
def test_arguments_become_json(style, text, values, expected):
    parameters = {
        "properties": {
            "city": {"$ref": "#/$defs/name"},
            "days": {"type": "integer"},
            "list": {"type": "array"},
        },
        "$defs": {"name": {"type": "string"}},
    }
    assert (
        json.loads(json_arguments(text, FORMATS[style], parameters, frozenset(values))) == expected
    )


def test_neighbours_are_merged():
    deltas = [
        Delta("content", "a"),
        Delta("content", "b"),
        Delta("call", "f", 0, "1"),
        Delta("arguments", "{", 0),
        Delta("arguments", "}", 0),
        Delta("call", "f", 1, "2"),
        Delta("call", "f", 2, "3"),
    ]
    assert list(merged(deltas)) == [
        Delta("content", "ab"),
        Delta("call", "f", 0, "1"),
        Delta("arguments", "{}", 0),
        Delta("call", "f", 1, "2"),
        Delta("call", "f", 2, "3"),
    ]


def test_loading_says_what_is_wrong(tmp_path):
    with pytest.raises(ModelError, match=r"no config\.json"):
        load_model(tmp_path)
    folder = write_model(tmp_path / "tiny")
    with pytest.raises(ModelError, match="no dtype 'float7'"):
        load_model(folder, dtype="float7")
    with pytest.raises(UnsupportedModelError, match="made for 2048"):
        load_model(folder, max_model_len=4096)
    with pytest.raises(UnsupportedModelError, match="max_cached_tokens is 100"):
        load_model(folder, max_cached_tokens=100)
    with pytest.raises(ffwd.tools.ToolFormatError, match="no format 'mine'"):
        load_model(folder, tool_format="mine")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_model(folder)
    (folder / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ffwd.VocabularyError, match="not JSON that can be read"):
        load_model(folder)


def test_a_models_own_code_is_not_run(tmp_path, monkeypatch):
    """Nor is anybody at the terminal asked whether it may."""
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked"))
    folder = write_model(tmp_path / "tiny")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {
        "model_type": "own",
        "auto_map": {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.M"},
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    ran = folder / "ran"
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')", encoding="utf-8")
    with pytest.raises(ModelError, match="trust_remote_code"):
        load_model(folder)
    assert not ran.exists()


def test_what_a_directory_says(tmp_path):
    folder = write_model(tmp_path / "tiny")
    given = json.loads((folder / "generation_config.json").read_text())
    given |= {"temperature": 0.6, "top_p": 0.9, "top_k": 20, "do_sample": True}
    (folder / "generation_config.json").write_text(json.dumps(given))
    loaded = load_model(folder)
    assert (loaded.name, loaded.max_model_len) == ("tiny", 2048)
    assert (loaded.temperature, loaded.top_p, loaded.top_k) == (0.6, 0.9, 20)
    assert loaded.tool_format.name == "hermes"
    assert loaded.vocabulary.vocab_size == 640
    assert loaded.vocabulary.eos_token_ids == [2]
