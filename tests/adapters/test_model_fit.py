"""A model and a tokenizer that do not belong together are told apart, and what do are let be."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

import ffwd
import ffwd.model
from ffwd.adapters.server import load_model
from ffwd.adapters.transformers import ChatModel, ModelError, load_local

FOLDER = ffwd.model.path()
TOKENIZER = ffwd.tokenizer.load(FOLDER)
END = TOKENIZER.token_to_id("<|im_end|>")
TEXT = TOKENIZER.encode("order")[0]
SIZE = TOKENIZER.vocab_size


def model(ends: Any, *, config: Any = None, width: int = SIZE) -> LlamaForCausalLM:
    """A random model that ends texts with `ends`, or, as its config has it, with `config`."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 12, "intermediate_size": 8, "num_hidden_layers": 1}
    made = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=width,
            num_attention_heads=2,
            bos_token_id=None,
            eos_token_id=ends if config is None else config,
            **sizes,
        )
    )
    made.generation_config.eos_token_id = ends
    return made


@pytest.mark.parametrize(
    ("ends", "config"),
    [
        (END, None),
        ([END, TEXT], None),
        # A default that nobody has corrected, beside the right one.
        (END, TEXT),
        (TEXT, END),
        # A control token, though not the one that the tokenizer states.
        (TOKENIZER.token_to_id("<|im_start|>"), None),
    ],
)
def test_what_fits_is_let_be(ends: Any, config: Any) -> None:
    made = ChatModel(model(ends, config=config), TOKENIZER)
    assert made.model.generation_config.eos_token_id == ends


def test_a_model_that_states_no_end_is_let_be() -> None:
    made = model(END)
    made.generation_config.eos_token_id = None
    made.config.eos_token_id = None
    ChatModel(made, TOKENIZER)


def test_more_rows_than_tokens_are_let_be() -> None:
    ChatModel(model(END, width=SIZE + 64), TOKENIZER)


@pytest.mark.parametrize("ends", [TEXT, [TEXT, TEXT + 1], SIZE + 3])
def test_an_end_that_is_no_control_token_belongs_to_another_model(ends: Any) -> None:
    """Of the same size, the tokenizer of another model passes every check of sizes."""
    with pytest.raises(ffwd.VocabularyError, match="belong to different models") as caught:
        ffwd.generate(
            model(ends, width=SIZE + 64),
            AutoTokenizer.from_pretrained(FOLDER),
            [{"role": "user", "content": "a"}],
            {"type": "string"},
        )
    said = str(caught.value)
    assert "does not have" in said if ends == SIZE + 3 else "the text 'order'" in said
    assert "Take the tokenizer's files from where the weights came from" in said


def test_too_many_tokens_belong_to_another_model() -> None:
    with pytest.raises(ffwd.VocabularyError, match=f"ids up to {SIZE - 1}.* for 100 tokens"):
        ffwd.generate(model(2, width=100), TOKENIZER, "a", {"type": "string"})


@pytest.mark.parametrize("load", [load_local, load_model])
def test_a_directory_with_anothers_tokenizer_is_refused(load: Any, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    model(TEXT).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(FOLDER / name, folder)
    with pytest.raises(ModelError, match="mixed: texts of the model end with token"):
        load(folder)
    model(2, width=100).save_pretrained(folder)
    with pytest.raises(ModelError, match="mixed: the tokenizer has ids up to"):
        load(folder)
