"""The tokenizers of the comparison, with the operations of a server.

All are made from the same tokenizer.json. Missing operations of a library are composed from its
others, as its users do.
"""

from __future__ import annotations

import codecs
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ffwd.tokenizer import Bpe

if TYPE_CHECKING:
    import tiktoken

Step = Callable[[int], object]
Made = TypeVar("Made")


class MissingPeerError(ValueError):
    """A peer that is not installed, or does not know this kind of tokenizer."""


class Peer(ABC):
    """One library. Texts that it makes of ids leave out no token."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without added tokens."""

    @abstractmethod
    def encode_batch(self, texts: list[str], threads: int) -> list[list[int]]:
        """Return the ids of several texts, on this many threads."""

    @abstractmethod
    def decode(self, ids: list[int]) -> str:
        """Return the text of ids."""

    @abstractmethod
    def stream(self, ids: Sequence[int]) -> str:
        """Return the text of ids, token by token."""

    @abstractmethod
    def steps(self) -> Step:
        """Return a function that takes the tokens of one stream, one at a time."""

    @abstractmethod
    def stream_until(self, ids: Sequence[int], stops: list[str]) -> str:
        """Search, as servers do, the part of the text in which a stop may end."""


class _Ffwd(Peer):
    """`ffwd.tokenizer` and `ffwd.streaming`."""

    def __init__(self, file: Path) -> None:
        from ffwd.tokenizer import load

        self._tokenizer = load(file)

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text)

    def encode_batch(self, texts: list[str], threads: int) -> list[list[int]]:
        return self._tokenizer.encode_batch(texts, threads=threads)

    def decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def stream(self, ids: Sequence[int]) -> str:
        from ffwd.streaming import DecodeStream

        stream = DecodeStream(self._tokenizer, skip_special_tokens=False)
        step = stream.step
        parts = [step(token_id) for token_id in ids]
        parts.append(stream.flush())
        return "".join([part for part in parts if part])

    def steps(self) -> Step:
        from ffwd.streaming import DecodeStream

        return DecodeStream(self._tokenizer, skip_special_tokens=False).step

    def stream_until(self, ids: Sequence[int], stops: list[str]) -> str:
        from ffwd.streaming import StopSequenceDecoder

        decoder = StopSequenceDecoder(
            self._tokenizer, stop_strings=stops, skip_special_tokens=False
        )
        step = decoder.step
        parts: list[str] = []
        for token_id in ids:
            output = step(token_id)
            if output.text:
                parts.append(output.text)
            if output.stopped:
                return "".join(parts)
        rest = decoder.flush()
        if rest.text:
            parts.append(rest.text)
        return "".join(parts)


class _Tokenizers(Peer):
    """Hugging Face's `tokenizers`."""

    def __init__(self, file: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_batch(self, texts: list[str], threads: int) -> list[list[int]]:
        # Its threads are as many as the environment says when it is first used.
        batch = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [list(encoding.ids) for encoding in batch]

    def decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))

    def stream(self, ids: Sequence[int]) -> str:
        from tokenizers.decoders import DecodeStream

        stream = DecodeStream(skip_special_tokens=False)
        tokenizer = self._tokenizer
        parts = [stream.step(tokenizer, token_id) for token_id in ids]
        return "".join([part for part in parts if part])

    def steps(self) -> Step:
        from tokenizers.decoders import DecodeStream

        stream = DecodeStream(skip_special_tokens=False)
        tokenizer = self._tokenizer
        return lambda token_id: stream.step(tokenizer, token_id)

    def stream_until(self, ids: Sequence[int], stops: list[str]) -> str:
        """As servers do it: the text so far is searched where a stop may end in the new part."""
        from tokenizers.decoders import DecodeStream

        stream = DecodeStream(skip_special_tokens=False)
        return _searched((stream.step(self._tokenizer, token_id) for token_id in ids), stops)


def tiktoken_encoding(file: Path) -> tuple[int, tiktoken.Encoding]:
    """Return the first id, and the encoding, whose ids count from 0.

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


class _Tiktoken(Peer):
    """OpenAI's `tiktoken`, which has no stream: bytes of tokens and Python's decoder."""

    def __init__(self, file: Path) -> None:
        self._first, self._encoding = tiktoken_encoding(file)

    def encode(self, text: str) -> list[int]:
        ids = self._encoding.encode_ordinary(text)
        return ids if self._first == 0 else [self._first + i for i in ids]

    def encode_batch(self, texts: list[str], threads: int) -> list[list[int]]:
        batch = self._encoding.encode_ordinary_batch(texts, num_threads=threads)
        return batch if self._first == 0 else [[self._first + i for i in ids] for ids in batch]

    def decode(self, ids: list[int]) -> str:
        return self._encoding.decode(self._own(ids))

    def stream(self, ids: Sequence[int]) -> str:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        data = self._encoding.decode_single_token_bytes
        parts = [decoder.decode(data(token_id)) for token_id in self._own(ids)]
        parts.append(decoder.decode(b"", True))
        return "".join(parts)

    def steps(self) -> Step:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        data, first = self._encoding.decode_single_token_bytes, self._first
        return lambda token_id: decoder.decode(data(token_id - first))

    def stream_until(self, ids: Sequence[int], stops: list[str]) -> str:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        data = self._encoding.decode_single_token_bytes
        return _searched((decoder.decode(data(token_id)) for token_id in self._own(ids)), stops)

    def _own(self, ids: Sequence[int]) -> list[int]:
        return list(ids) if self._first == 0 else [i - self._first for i in ids]


def _searched(parts: Iterable[str | None], stops: list[str]) -> str:
    longest = max(map(len, stops))
    text = ""
    for part in parts:
        if not part:
            continue
        start = max(0, len(text) - longest + 1)
        text += part
        found = [at for stop in stops if (at := text.find(stop, start)) >= 0]
        if found:
            return text[: min(found)]
    return text


PEERS: dict[str, Callable[[Path], Peer]] = {
    "ffwd": _Ffwd,
    "tokenizers": _Tokenizers,
    "tiktoken": _Tiktoken,
}


def load(
    file: Path, makers: Mapping[str, Callable[[Path], Made]]
) -> tuple[dict[str, Made], dict[str, str]]:
    """Return the peers of a tokenizer.json, and why the others do not support it."""
    found: dict[str, Made] = {}
    missing: dict[str, str] = {}
    for name, make in makers.items():
        try:
            found[name] = make(file)
        except MissingPeerError as error:  # noqa: PERF203 - each is reported by its name
            missing[name] = str(error)
    return found, missing


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _pattern(state: dict[str, Any] | None) -> str | None:
    """Return the one pattern of a pre-tokenizer, or None."""
    if state is None:
        return None
    stages = state["pretokenizers"] if state["type"] == "Sequence" else [state]
    patterns = [
        stage["pattern"]["Regex"] if stage["type"] == "Split" else _GPT2
        for stage in stages
        if stage["type"] == "Split" or (stage["type"] == "ByteLevel" and stage["use_regex"])
    ]
    return patterns[0] if len(patterns) == 1 else None
