"""A tiny chat model with random weights, written to a folder as an engine loads it.

Nothing is downloaded. The tokenizer is a byte-level BPE with ChatML's control tokens, trained on a
few sentences and JSON, so that forced text has tokens of several characters; the weights are a
Llama's, random and large enough that what it says depends on what it has read.
"""

import json
import random
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END, PAD = "<|im_end|>", "<|endoftext|>"
# Flagged special or not, as in Qwen's tokenizers.
SPECIAL = (PAD, "<|im_start|>", END)
NOT_SPECIAL = ("<tool_call>", "</tool_call>", "<think>", "</think>")

# The layout of Qwen's and Hermes' templates: ChatML, tools in the system message.
CHAT_TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}

{% endif %}# Tools
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
Answer with <tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role != 'system' or not tools %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

_WORDS = [
    *("order", "customer", "status", "delivery", "address", "street", "city", "country", "price"),
    *("amount", "number", "item", "name", "weather", "temperature", "celsius", "tomorrow", "red"),
    *("please", "answer", "question", "first", "last", "family", "email", "green", "blue", "apple"),
    *("banana", "cherry", "true", "false", "null", "pending", "shipped", "delivered", "cancelled"),
    "express",
]


def training_text(*, seed: int, lines: int = 400) -> list[str]:
    """Sentences and JSON documents of the same few words."""
    rng = random.Random(seed)
    text = []
    for _ in range(lines):
        words = rng.sample(_WORDS, 6)
        document = {
            f"{words[0]}_{words[1]}": words[2],
            f"{words[3]}_of_the_{words[4]}": rng.choice([True, False, None, rng.randint(0, 99)]),
            words[5]: rng.sample(_WORDS, 2),
        }
        text.append(f"The {words[0]} of the {words[1]} is {words[2]}, {words[3]}.")
        text.append(json.dumps(document))
        text.append(json.dumps(document, separators=(",", ":")))
    return text


def train_tokenizer(*, seed: int, vocab_size: int = 1500) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer with a chat template, its pieces cut as Qwen's are."""
    core = Tokenizer(models.BPE())
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(training_text(seed=seed), trainer)
    core.add_tokens([AddedToken(token, special=False, normalized=False) for token in NOT_SPECIAL])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=END,
        pad_token=PAD,
        model_input_names=["input_ids", "attention_mask"],
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def write_model(folder: Path, *, seed: int, max_length: int = 1024) -> PreTrainedTokenizerFast:
    """Write tokenizer, configuration and weights (safetensors, float32) to a folder.

    The model's logits are wider than its tokenizer, as those of real models are.
    """
    tokenizer = train_tokenizer(seed=seed)
    torch.manual_seed(seed)
    options: dict[str, Any] = {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
    }
    config = LlamaConfig(
        vocab_size=-(-len(tokenizer) // 64) * 64,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=max_length,
        initializer_range=0.2,
        **options,
    )
    model = LlamaForCausalLM(config)
    model.generation_config.update(**options)
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    return tokenizer
