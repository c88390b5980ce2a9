"""Tiny models and tokenizers, made on the spot."""

import json
import os
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
import torch
from tinymodels import (
    COLOUR_SCHEMA,
    EOS,
    LOGITS_WIDTH,
    ORDER_SCHEMA,
    PAD,
    orders,
    random_llama,
)
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

import ffwd
from ffwd.grammar import json_schema
from ffwd.tokenizer import from_huggingface

# Where the models of these tests are; "cuda" runs all of them on a GPU.
DEVICE = os.environ.get("FFWD_TEST_DEVICE", "cpu")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what needs a GPU where there is none."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no GPU here"))


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE, left-padding, with a beginning token before every text."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    text = [line for order in orders(400, seed=1) for line in (order.prompt, order.answer)]
    core.train_from_iterator(text, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
    )


@pytest.fixture(scope="session")
def vocabulary(tokenizer: PreTrainedTokenizerFast) -> ffwd.Vocabulary:
    return from_huggingface(tokenizer, vocab_size=LOGITS_WIDTH, eos_token_ids=[EOS])


@pytest.fixture(scope="session")
def compile_schema(vocabulary: ffwd.Vocabulary) -> Callable[..., ffwd.CompiledGrammar]:
    def compile_schema(schema: dict[str, Any], whitespace: Any = "compact") -> ffwd.CompiledGrammar:
        return ffwd.compile(json_schema(json.dumps(schema), whitespace=whitespace), vocabulary)

    return compile_schema


@pytest.fixture(scope="session")
def order_grammar(compile_schema: Callable[..., ffwd.CompiledGrammar]) -> ffwd.CompiledGrammar:
    return compile_schema(ORDER_SCHEMA)


@pytest.fixture(scope="session")
def colour_grammar(compile_schema: Callable[..., ffwd.CompiledGrammar]) -> ffwd.CompiledGrammar:
    return compile_schema(COLOUR_SCHEMA)


@pytest.fixture(scope="session")
def model() -> LlamaForCausalLM:
    return random_llama(seed=3).to(DEVICE)


@pytest.fixture(scope="session")
def bfloat16_model() -> LlamaForCausalLM:
    return random_llama(seed=4).to(DEVICE, torch.bfloat16)


@pytest.fixture(scope="session")
def assistant() -> LlamaForCausalLM:
    return random_llama(seed=5, layers=1, hidden=32).to(DEVICE)


@pytest.fixture(scope="session")
def trained_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Train a model just long enough that it cuts JSON as its tokenizer does.

    That is what every real model has learned, and what makes masks alone and fast-forward agree
    on the text.
    """
    model = random_llama(seed=6)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(0.1)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    steps, size = 120, 16
    data = orders(steps * size, seed=2)
    for step in range(steps):
        texts = []
        for order in data[step * size : (step + 1) * size]:
            prompt = tokenizer.encode(f"<s>{order.prompt}", add_special_tokens=False)
            answer = tokenizer.encode(order.answer, add_special_tokens=False)
            texts.append(prompt + answer + [EOS])
        width = max(map(len, texts))
        ids = torch.tensor([text + [PAD] * (width - len(text)) for text in texts])
        labels = ids.masked_fill(ids == PAD, -100)
        loss = model(input_ids=ids, attention_mask=(ids != PAD).long(), labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval().to(DEVICE)


@pytest.fixture(scope="session")
def encode(tokenizer: PreTrainedTokenizerFast) -> Callable[..., Any]:
    """Prompts to left-padded model inputs."""

    def encode(*prompts: str) -> Any:
        encoded = tokenizer([f"<s>{p}" for p in prompts], return_tensors="pt", padding=True)
        return encoded.to(DEVICE)

    return encode


@pytest.fixture(scope="session")
def answers(tokenizer: PreTrainedTokenizerFast) -> Callable[..., list[str]]:
    """What was generated after the prompts, as text."""

    def answers(output: torch.Tensor, inputs: Any) -> list[str]:
        length = inputs["input_ids"].shape[1]
        texts: list[str] = tokenizer.batch_decode(output[:, length:], skip_special_tokens=True)
        return texts

    return answers


@pytest.fixture(scope="session")
def assert_valid() -> Callable[..., None]:
    """Fail unless a text is JSON without whitespace, valid against a schema."""

    def assert_valid(text: str, schema: dict[str, Any] = ORDER_SCHEMA) -> None:
        jsonschema_rs.validate(schema, json.loads(text))
        # No string of these schemas has a space.
        assert not any(character.isspace() for character in text)

    return assert_valid
