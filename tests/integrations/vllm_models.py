"""A model's folder for vLLM: a configuration, a tokenizer, and no weights."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, PreTrainedTokenizerFast

# Wider than the tokenizer, as models' output layers are.
WIDTH = 768
PAD, START, END, SECOND_END = range(4)
NAMES = ("<pad>", "<s>", "</s>", "<|eot|>")
# Not special, as in Qwen's tokenizers.
MARKS = ("<tool_call>", "</tool_call>", "<think>", "</think>")

_TEXT = [
    json.dumps({"name": "get_weather", "arguments": {"city": "Oslo", "days": 3, "unit": "C"}}),
    json.dumps({"first_name": "Ada", "age": 36, "tags": ["red", "green"], "active": True}),
    "The weather in Oslo is cold, and the answer to the question is yes or no.",
    "<function=get_weather> maybe never always null true false 2026-11-22 12:30",
]


def write_model(folder: Path) -> Path:
    """Write the folder; it is returned."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=list(NAMES),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(_TEXT * 4, trainer)
    core.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in MARKS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )
    tokenizer.save_pretrained(folder)
    LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=WIDTH,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
    ).save_pretrained(folder)
    # Chat models often end their answers with another token than their tokenizer's.
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [END, SECOND_END]}))
    return folder
