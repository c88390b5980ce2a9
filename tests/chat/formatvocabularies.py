"""A real vocabulary for each of the named formats."""

from functools import cache

import realtokenizers
from mistralvocabularies import tokenizer as mistral_tokenizer

import ffwd.tokenizer
from ffwd.tokenizer import Tokenizer

# Which has the control tokens of the format.
VOCABULARY = {
    "llama2": "v1",
    "codellama": "v1",
    "llama3": "llama3",
    "mistral": "v1",
    "chatml": "chatml",
    "alpaca": "gpt2",
    "vicuna": "v1",
    "orca": "gpt2",
    "gpt4": "chatml",
    "claude": "gpt2",
    "custom": "gpt2",
}


@cache
def vocabulary(name: str) -> Tokenizer:
    """`chatml` is GPT-2's, with the control tokens of ChatML."""
    if name == "v1":
        return mistral_tokenizer("v1")
    if name == "chatml":
        made = realtokenizers.load("gpt2").tokenizer
        copy = type(made).from_str(made.to_str())
        copy.add_special_tokens(["<|im_start|>", "<|im_end|>"])
        return ffwd.tokenizer.load(copy)
    return ffwd.tokenizer.load(realtokenizers.load(name).tokenizer)
