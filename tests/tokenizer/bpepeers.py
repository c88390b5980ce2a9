"""Every real tokenizer as a `Bpe`, beside what its own library makes of a text."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import realencodings
import realtokenizers
import sentencepiece
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from realtokenizers import package_file, sentencepiece_file, user_defined_pieces

from ffwd.tokenizer import Bpe


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A tokenizer twice.

    `encode`: its own ids of a whole text. `special`: how `Bpe.encode` treats special tokens where
    it does the same. `composes`: whether it composes the text first.
    """

    name: str
    bpe: Bpe
    encode: Callable[[str], list[int]]
    special: str | set[str] = "text"
    composes: bool = False

    def check(self, text: str) -> None:
        """The ids are its own."""
        assert self.bpe.encode(text, special=self.special) == self.encode(text), repr(text)


def peer(name: str) -> Peer:
    """One of `PEERS`. Takes up to a few seconds, once."""
    return _peer(name)


@cache
def _peer(name: str) -> Peer:
    library, _, tokenizer = name.partition(":")
    return _READERS[library](name, tokenizer)


def _huggingface(name: str, tokenizer: str) -> Peer:
    own = realtokenizers.load(tokenizer).tokenizer
    return Peer(
        name=name,
        bpe=Bpe.from_huggingface(own),
        encode=lambda text: own.encode(text, add_special_tokens=False).ids,
        special="allowed",
        composes=tokenizer == "qwen",
    )


def _tiktoken(name: str, encoding: str) -> Peer:
    own = realencodings.load(encoding)
    return Peer(
        name=name,
        bpe=Bpe.from_tiktoken(own),
        encode=lambda text: own.encode(text, disallowed_special=()),
    )


def _sentencepiece(name: str, file: str) -> Peer:
    path = sentencepiece_file(realtokenizers.SENTENCEPIECE_FILES[file])
    own = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return Peer(
        name=name,
        bpe=Bpe.from_sentencepiece(path),
        encode=own.encode,
        special=user_defined_pieces(path),
    )


def _tekken(name: str, file: str) -> Peer:
    path = package_file("mistral_common", "data", file)
    own = Tekkenizer.from_file(path)
    return Peer(
        name=name,
        bpe=Bpe.from_tekken(path),
        encode=lambda text: own.encode(text, bos=False, eos=False),
    )


_READERS: dict[str, Callable[[str, str], Peer]] = {
    "tokenizers": _huggingface,
    "tiktoken": _tiktoken,
    "sentencepiece": _sentencepiece,
    "mistral-common": _tekken,
}

PEERS = (
    *(f"tokenizers:{name}" for name in realtokenizers.NAMES),
    *(f"tiktoken:{name}" for name in realencodings.NAMES),
    *(f"sentencepiece:{name}" for name in realtokenizers.SENTENCEPIECE_FILES),
    "mistral-common:tekken_240718.json",
    "mistral-common:tekken_240911.json",
)
"""Library and tokenizer."""
