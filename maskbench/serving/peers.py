"""The tokenizers that are compared, each made of the same tokenizer.json.

What a library does not have, it is given in Python: tiktoken a stream of text, and both peers a
search for stop sequences. Each is what a server would write, and gives the same answers.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import ffwd.streaming
import ffwd.tokenizer
from maskbench.encoding.peers import MissingPeerError, tiktoken_encoding

Step = Callable[[int], "str | None"]
Flush = Callable[[], str]


class Peer(Protocol):
    """A tokenizer. Special tokens are neither added nor found."""

    def encode(self, text: str) -> Sequence[int]:
        """The ids of a text."""

    def encode_batch(self, texts: list[str]) -> list[Sequence[int]]:
        """The ids of several."""

    def decode(self, ids: list[int]) -> str:
        """The text of ids."""

    def decode_batch(self, batch: list[list[int]]) -> list[str]:
        """The texts of several lists of ids."""

    def stream(self) -> tuple[Step, Flush]:
        """A new stream: the text that an id adds, and what is left at the end."""

    def stopping(self, stops: list[str]) -> tuple[Step, Flush]:
        """The same up to the first stop sequence, after which no text comes."""


class Ffwd:
    """ffwd, as users have it."""

    def __init__(self, file: Path) -> None:
        self._tokenizer = ffwd.tokenizer.load(file)
        self.encode = self._tokenizer.encode
        self.encode_batch: Any = self._tokenizer.encode_batch
        self.decode: Any = self._tokenizer.decode
        self.decode_batch: Any = self._tokenizer.decode_batch

    def stream(self) -> tuple[Step, Flush]:
        """Native."""
        stream = ffwd.streaming.DecodeStream(self._tokenizer)
        return stream.step, stream.flush

    def stopping(self, stops: list[str]) -> tuple[Step, Flush]:
        """Native; what comes is taken out of its output."""
        decoder = ffwd.streaming.StopSequenceDecoder(self._tokenizer, stop_strings=stops)
        step = decoder.step
        return lambda token_id: step(token_id).text, lambda: decoder.flush().text


class Tokenizers:
    """Hugging Face's tokenizers."""

    def __init__(self, file: Path) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingPeerError("tokenizers is not installed") from error
        self._tokenizer = Tokenizer.from_file(str(file))
        self.decode: Any = self._tokenizer.decode
        self.decode_batch: Any = self._tokenizer.decode_batch

    def encode(self, text: str) -> list[int]:
        """With offsets, which cannot be left out here."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def encode_batch(self, texts: list[str]) -> list[Sequence[int]]:
        """Without offsets."""
        encode = self._tokenizer.encode_batch_fast
        return [encoding.ids for encoding in encode(texts, add_special_tokens=False)]

    def stream(self) -> tuple[Step, Flush]:
        """Its own, which has no end."""
        from tokenizers.decoders import DecodeStream

        return partial(DecodeStream(skip_special_tokens=True).step, self._tokenizer), str

    def stopping(self, stops: list[str]) -> tuple[Step, Flush]:
        """By a search in Python."""
        return searching(self.stream(), stops)


class Tiktoken:
    """OpenAI's tiktoken."""

    def __init__(self, file: Path) -> None:
        self._encoding, self._first = tiktoken_encoding(file)
        if self._first:
            raise MissingPeerError("its ids would be other ones")
        self.encode: Any = self._encoding.encode_ordinary
        self.encode_batch: Any = self._encoding.encode_ordinary_batch
        self.decode: Any = self._encoding.decode
        self.decode_batch: Any = self._encoding.decode_batch

    def stream(self) -> tuple[Step, Flush]:
        """The bytes of each token, and Python's incremental decoder."""
        bytes_of = self._encoding.decode_single_token_bytes
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        return lambda token_id: decode(bytes_of(token_id)), lambda: decode(b"", True)

    def stopping(self, stops: list[str]) -> tuple[Step, Flush]:
        """By a search in Python."""
        return searching(self.stream(), stops)


def searching(stream: tuple[Step, Flush], stops: list[str]) -> tuple[Step, Flush]:
    """A stream up to the stop sequence that ends first; holds back what may become one."""
    next_text, end = stream
    begins = {stop[:n] for stop in stops for n in range(1, len(stop))}
    longest = max(map(len, stops)) - 1
    held = ""
    stopped = False

    def take(new: str) -> str:
        nonlocal held, stopped
        if stopped:
            return ""
        text = held + new
        found = [(at + len(stop), at) for stop in stops if (at := text.find(stop)) >= 0]
        if found:
            stopped = True
            return text[: min(found)[1]]
        keep = 0
        for n in range(min(longest, len(text)), 0, -1):
            if text[-n:] in begins:
                keep = n
                break
        held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def step(token_id: int) -> str:
        new = next_text(token_id)
        return take(new) if new else ""

    def flush() -> str:
        return "" if stopped else take(end()) + ("" if stopped else held)

    return step, flush


PEERS: dict[str, Callable[[Path], Peer]] = {
    "ffwd": Ffwd,
    "tokenizers": Tokenizers,
    "tiktoken": Tiktoken,
}


def available(file: Path) -> tuple[dict[str, Peer], dict[str, str]]:
    """The peers that can be made of a tokenizer, and why the others cannot."""
    made = {name: _made(make, file) for name, make in PEERS.items()}
    there = {name: peer for name, peer in made.items() if not isinstance(peer, str)}
    return there, {name: reason for name, reason in made.items() if isinstance(reason, str)}


def _made(make: Callable[[Path], Peer], file: Path) -> Peer | str:
    """A peer, or why there is none."""
    try:
        return make(file)
    except MissingPeerError as error:
        return str(error)
