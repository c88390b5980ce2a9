"""The tokenizers that are compared, each as a function from text to token ids.

All are made from the same tokenizer.json. `tiktoken` wants ranks, which the file has only if ids
are in the order in which tokens merge; so its ids are compared before it is measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ffwd.tokenizer import Bpe

if TYPE_CHECKING:
    import tiktoken

Encode = Callable[[str], Sequence[int]]


class MissingPeerError(ValueError):
    """A peer that is not installed, or does not know this kind of tokenizer."""


def _ffwd(file: Path) -> Encode:
    return Bpe.from_huggingface(file).encode


def _tokenizers(file: Path) -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)


def tiktoken_encoding(file: Path) -> tuple[int, tiktoken.Encoding]:
    """The first id, and the encoding, whose ids count from 0.

    Raises `MissingPeerError` for a tokenizer that it cannot be.
    """
    try:
        import tiktoken
    except ImportError as error:
        raise MissingPeerError("tiktoken is not installed") from error
    state = json.loads(file.read_text(encoding="utf-8"))
    pattern = _pattern(state["pre_tokenizer"])
    bpe = Bpe.from_huggingface(file)
    added = {token["id"] for token in state["added_tokens"]}
    ids = sorted(set(state["model"]["vocab"].values()) - added)
    if pattern is None or ids[-1] - ids[0] != len(ids) - 1:
        raise MissingPeerError("this tokenizer is not one of ranks and a single pattern")
    first = ids[0]
    encoding = tiktoken.Encoding(
        "peer",
        pat_str=pattern,
        mergeable_ranks={bpe.token_bytes(i): i - first for i in ids},
        special_tokens={},
    )
    return first, encoding


def _tiktoken(file: Path) -> Encode:
    first, encoding = tiktoken_encoding(file)
    if first == 0:
        return encoding.encode_ordinary
    return lambda text: [first + i for i in encoding.encode_ordinary(text)]


def _fastokens(file: Path) -> Encode:
    try:
        from fastokens import Tokenizer
    except ImportError as error:
        raise MissingPeerError("fastokens is not installed") from error
    tokenizer = Tokenizer.from_json_str(file.read_text(encoding="utf-8"))
    return lambda text: list(tokenizer.encode(text).ids)


PEERS: dict[str, Callable[[Path], Encode]] = {
    "ffwd": _ffwd,
    "tiktoken": _tiktoken,
    "tokenizers": _tokenizers,
    "fastokens": _fastokens,
}


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _pattern(state: dict[str, Any] | None) -> str | None:
    """The one pattern of a pre-tokenizer, or None."""
    if state is None:
        return None
    stages = state["pretokenizers"] if state["type"] == "Sequence" else [state]
    patterns = [
        stage["pattern"]["Regex"] if stage["type"] == "Split" else _GPT2
        for stage in stages
        if stage["type"] == "Split" or (stage["type"] == "ByteLevel" and stage["use_regex"])
    ]
    return patterns[0] if len(patterns) == 1 else None
