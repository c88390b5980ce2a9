"""The demonstration's model: a tokenizer and a tiny Llama, both made on the spot.

Nothing is downloaded. The model is trained for a few seconds on invented support tickets, just
long enough to have seen JSON the way its tokenizer cuts it. It is no good at answering.
"""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PAD, EOS = "<|pad|>", "<|end|>"
_ROLES = ("<|system|>", "<|user|>", "<|assistant|>")

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|{{ message['role'] }}|>{{ message['content'] }}<|end|>"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

SYSTEM = "Sort the message into a support ticket. Answer in JSON."

_PRODUCTS = ("toaster", "kettle", "blender", "coffee grinder", "rice cooker")
_PROBLEMS = {
    "arrived_damaged": ("arrived broken", "came with a crack in it", "was damaged in the box"),
    "stopped_working": ("stopped working", "does nothing any more", "died this morning"),
    "missing_part": ("has no cable", "came without its lid", "lacks the manual"),
    "too_loud": ("is far too loud", "makes a terrible noise", "hums all night"),
}
_NAMES = ("Ada", "Grace", "Alan", "Barbara", "Edsger", "Frances", "Donald", "Hedy")

TICKET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "customer_first_name": {"type": "string", "pattern": "^[A-Z][a-z]{2,11}$"},
        "product_concerned": {"enum": list(_PRODUCTS)},
        "category_of_the_problem": {"enum": list(_PROBLEMS)},
        "days_since_the_purchase": {"type": "integer", "minimum": 0, "maximum": 365},
        "customer_wants_a_refund": {"type": "boolean"},
        "suggested_next_steps": {
            "type": "array",
            "items": {"enum": ["send_replacement", "send_refund", "ask_for_details"]},
            "minItems": 1,
            "maxItems": 2,
        },
    },
    "required": [
        "customer_first_name",
        "product_concerned",
        "category_of_the_problem",
        "days_since_the_purchase",
        "customer_wants_a_refund",
        "suggested_next_steps",
    ],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Ticket:
    """A message and the answer to it."""

    message: str
    answer: str


def tickets(count: int, *, seed: int) -> list[Ticket]:
    """Invent messages with their answers, the answers in compact JSON."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        name, product = rng.choice(_NAMES), rng.choice(_PRODUCTS)
        problem, days = rng.choice(list(_PROBLEMS)), rng.randint(0, 365)
        refund = rng.random() < 0.5
        wish = "I want my money back." if refund else "Please help."
        steps = ["send_refund"] if refund else ["ask_for_details", "send_replacement"]
        message = (
            f"Hello, this is {name}. The {product} that I bought {days} days ago"
            f" {rng.choice(_PROBLEMS[problem])}. {wish}"
        )
        values = (name, product, problem, days, refund, steps)
        answer = dict(zip(TICKET_SCHEMA["required"], values, strict=True))
        made.append(Ticket(message, json.dumps(answer, separators=(",", ":"))))
    return made


def train_tokenizer(*, seed: int) -> Any:
    """Train a byte-level BPE tokenizer, with a chat template, on tickets and source text."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2048,
        special_tokens=[PAD, EOS, *_ROLES],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    text = [part for ticket in tickets(800, seed=seed) for part in (ticket.message, ticket.answer)]
    # What the tickets lack, this package's own source has: other schemas are not spelt in letters.
    text += [
        path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))
    ]
    core.train_from_iterator([*text, SYSTEM], trainer)
    # Any: the classes of transformers are typed in part only.
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(
        tokenizer_object=core,
        eos_token=EOS,
        pad_token=PAD,
        additional_special_tokens=list(_ROLES),
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def chat(message: str) -> list[dict[str, str]]:
    """Return the conversation that asks for a ticket."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": message}]


def train_model(tokenizer: Any, *, seed: int, steps: int) -> tuple[Any, float]:
    """Initialise a tiny Llama at random and train it on tickets.

    Returns:
        The model, float32 on the CPU, and the loss per token of its last batch, in nats.

    """
    torch.manual_seed(seed)
    pad, eos = tokenizer.pad_token_id, tokenizer.eos_token_id
    config = LlamaConfig(
        # Models pad their output layer; so does this one.
        vocab_size=-(-len(tokenizer) // 64) * 64,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        pad_token_id=pad,
        bos_token_id=None,
        eos_token_id=eos,
        tie_word_embeddings=True,
    )
    model: Any = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    size, loss = 8, float("nan")
    data = tickets(steps * size, seed=seed + 1)
    for step in range(steps):
        texts = []
        for ticket in data[step * size : (step + 1) * size]:
            prompt = tokenizer.apply_chat_template(
                chat(ticket.message), add_generation_prompt=True, return_dict=False
            )
            answer = tokenizer.encode(ticket.answer, add_special_tokens=False)
            texts.append([*prompt, *answer, eos])
        width = max(len(text) for text in texts)
        ids = torch.tensor([text + [pad] * (width - len(text)) for text in texts])
        output = model(
            input_ids=ids,
            attention_mask=(ids != pad).long(),
            labels=ids.masked_fill(ids == pad, -100),
        )
        output.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss = output.loss.item()
    return model.eval(), loss
