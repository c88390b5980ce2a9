"""Schemas, texts and random models for the adapters' tests: nothing is downloaded."""

import json
import random
from dataclasses import dataclass
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

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
