"""Tiny models and tokenizers, made on the spot: nothing is downloaded."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import ffwd
from ffwd.grammar import json_schema
from ffwd.tokenizer import from_huggingface

# Models this small are faster on one thread, many times so on a busy machine.
torch.set_num_threads(1)

PAD, BOS, EOS = 0, 1, 2
# Wider than the tokenizer: models pad their output layer.
LOGITS_WIDTH = 768

ORDER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "full_name_of_the_customer": {"type": "string", "pattern": "^[A-Z][a-z]{2,7}$"},
        "current_status_of_the_order": {"enum": ["pending", "shipped", "delivered", "cancelled"]},
        # No number: JSON Schema's 7 may be spelt 7.000…, and a random model goes on for ever.
        "number_of_ordered_items": {"type": "string", "pattern": "^[1-9][0-9]?$"},
        "express_delivery_was_paid_for": {"type": "boolean"},
        "items_in_the_order": {
            "type": "array",
            "items": {"enum": ["apple", "apricot", "banana", "cherry"]},
            "minItems": 1,
            "maxItems": 3,
        },
    },
    "required": [
        "full_name_of_the_customer",
        "current_status_of_the_order",
        "number_of_ordered_items",
        "express_delivery_was_paid_for",
        "items_in_the_order",
    ],
    "additionalProperties": False,
}
COLOUR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "green", "blue"]}, "shade": {"type": "boolean"}},
    "required": ["colour", "shade"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Order:
    """A line of training text: what is asked, and the answer."""

    prompt: str
    answer: str


def orders(count: int, seed: int) -> list[Order]:
    """Random orders in words and in JSON."""
    rng = random.Random(seed)
    names = ["Ada", "Grace", "Alan", "Barbara", "Edsger", "Donald", "Frances", "Niklaus"]
    made = []
    for _ in range(count):
        name, status = rng.choice(names), rng.choice(["pending", "shipped", "delivered"])
        quantity, express = rng.randint(1, 99), rng.random() < 0.5
        items = rng.sample(["apple", "apricot", "banana", "cherry"], rng.randint(1, 3))
        answer = {
            "full_name_of_the_customer": name,
            "current_status_of_the_order": status,
            "number_of_ordered_items": str(quantity),
            "express_delivery_was_paid_for": express,
            "items_in_the_order": items,
        }
        speed = "express" if express else "standard"
        prompt = f"{name} bought {quantity} {' '.join(items)} {speed}, {status}."
        made.append(Order(prompt, json.dumps(answer, separators=(",", ":"))))
    return made


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


def random_llama(*, seed: int, layers: int = 2, hidden: int = 64) -> LlamaForCausalLM:
    """Return a Llama with random weights, float32, that says something else for every seed."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=LOGITS_WIDTH,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        # Larger than usual, so that the choices depend on the context.
        initializer_range=0.2,
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="session")
def model() -> LlamaForCausalLM:
    return random_llama(seed=3)


@pytest.fixture(scope="session")
def bfloat16_model() -> LlamaForCausalLM:
    return random_llama(seed=4).to(torch.bfloat16)


@pytest.fixture(scope="session")
def assistant() -> LlamaForCausalLM:
    return random_llama(seed=5, layers=1, hidden=32)


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
    return model.eval()


@pytest.fixture(scope="session")
def encode(tokenizer: PreTrainedTokenizerFast) -> Callable[..., Any]:
    """Prompts to left-padded model inputs."""

    def encode(*prompts: str) -> Any:
        return tokenizer([f"<s>{p}" for p in prompts], return_tensors="pt", padding=True)

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
