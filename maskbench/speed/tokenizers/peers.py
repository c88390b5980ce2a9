"""The tokenizers that are compared, each as a function from text to token ids.

All are made from the same tokenizer.json, and but for two they are those of `maskbench.serving`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ffwd.tokenizer import Bpe
from maskbench.serving import peers
from maskbench.serving.peers import MissingPeerError

Encode = Callable[[str], Sequence[int]]


def _fastokens(file: Path) -> Encode:
    try:
        from fastokens import Tokenizer
    except ImportError as error:
        raise MissingPeerError("fastokens is not installed") from error
    tokenizer = Tokenizer.from_json_str(file.read_text(encoding="utf-8"))
    return lambda text: list(tokenizer.encode(text).ids)


PEERS: dict[str, Callable[[Path], Encode]] = {
    "ffwd": lambda file: Bpe.from_huggingface(file).encode,
    "tiktoken": lambda file: peers.PEERS["tiktoken"](file).encode,
    "tokenizers": lambda file: peers.PEERS["tokenizers"](file).encode,
    "fastokens": _fastokens,
}
