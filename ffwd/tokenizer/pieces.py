"""Conversion of a tokenizer's pieces (the strings in its vocabulary) to bytes.

A tokenizer's *decoder* determines which of two notations the pieces have:

- byte-level: each byte is written as one printable character (GPT-2's table), so that the piece
  `Ġthe` is the bytes of ` the`;
- replacement: a space is written as `▁`, a byte that has no piece of its own as `<0x0A>`.

The vocabulary alone does not determine it: `Ġ` and `<0x0A>` are also legitimate text.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ffwd._native import VocabularyError

if TYPE_CHECKING:
    from tokenizers.decoders import Decoder

_BYTE_PIECE = re.compile("<0x([0-9A-Fa-f]{2})>")


def byte_level_alphabet() -> dict[int, int]:
    """Return the byte for each of the 256 code points that represent one.

    Printable Latin-1 characters stand for themselves, the other bytes, in order, for U+0100 on.
    """
    themselves = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in themselves)
    return {byte: byte for byte in themselves} | {0x100 + n: byte for n, byte in enumerate(others)}


def byte_of_piece(piece: str) -> int | None:
    """Return the byte of a piece such as `<0x0A>` in that notation; None for another piece."""
    match = _BYTE_PIECE.fullmatch(piece)
    return None if match is None else int(match[1], 16)


@dataclass(frozen=True, kw_only=True)
class PieceWriting:
    """The notation of bytes in pieces.

    `replacements` are (written, meant) pairs, applied in order; `byte_fallback` says whether
    `<0x0A>` is a byte. Both have no effect if `byte_level` is true.
    """

    byte_level: bool
    replacements: tuple[tuple[str, str], ...] = ()
    byte_fallback: bool = False
    words: "Decoder | None" = None
    """The library's decoder, where it puts a space before pieces that begin a word."""

    def to_bytes(self, pieces: Iterable[str]) -> Iterator[bytes]:
        """Return the bytes of each piece, as the tokenizer's own decoder returns them."""
        if self.words is not None:
            return self._words(pieces, self.words)
        return self._byte_level(pieces) if self.byte_level else self._replaced(pieces)

    @staticmethod
    def _words(pieces: Iterable[str], decoder: "Decoder") -> Iterator[bytes]:
        # Each piece is decoded alone, and a first piece differs from the others.
        before = "a"
        start = len(before.encode())
        return (decoder.decode([before, piece]).encode()[start:] for piece in pieces)

    @staticmethod
    def _byte_level(pieces: Iterable[str]) -> Iterator[bytes]:
        alphabet = byte_level_alphabet()
        encode = codecs.charmap_encode
        for piece in pieces:
            try:
                yield encode(piece, "strict", alphabet)[0]
            except UnicodeEncodeError:  # noqa: PERF203 - it is rare, and asking first is slower
                # All or nothing, as in the decoder: a piece with one character outside the alphabet
                # is verbatim.
                yield piece.encode()

    def _replaced(self, pieces: Iterable[str]) -> Iterator[bytes]:
        for piece in pieces:
            for written, meant in self.replacements:
                piece = piece.replace(written, meant)
            byte = byte_of_piece(piece) if self.byte_fallback else None
            yield piece.encode() if byte is None else bytes((byte,))


def read_decoder(state: dict[str, Any] | None, decoder: Any = None) -> PieceWriting:
    """Return the notation that a decoder reads, given as its tokenizer.json part and as an object.

    Raises `VocabularyError` for decoders in which a token has no bytes of its own.
    """
    if state is None:
        raise VocabularyError(
            "the tokenizer has no decoder, so the bytes of its tokens are unknown: set "
            "tokenizer.decoder, for byte-level BPE to tokenizers.decoders.ByteLevel()"
        )
    steps = list(_flattened(state))
    if state.get("type") == "WordPiece":
        return PieceWriting(byte_level=False, words=decoder)
    names = [step.get("type") for step in steps]
    if "ByteLevel" in names:
        if set(names) - {"ByteLevel", "Fuse"}:
            raise VocabularyError(f"the decoder has other steps beside ByteLevel: {names}")
        return PieceWriting(byte_level=True)

    replacements: list[tuple[str, str]] = []
    byte_fallback = fused = False
    for step, name in zip(steps, names, strict=True):
        if name == "Replace" and not byte_fallback and not fused:
            pattern = step["pattern"].get("String")
            if not pattern:
                raise VocabularyError(f"the decoder replaces by pattern: {step['pattern']}")
            replacements.append((pattern, step["content"]))
        elif name == "Metaspace" and not byte_fallback and not fused:
            replacements.append((step["replacement"], " "))
        elif name == "ByteFallback" and not fused:
            byte_fallback = True
        elif name == "Fuse":
            fused = True
        elif name == "Strip" and fused and not step["stop"]:
            # Undoes the dummy prefix at the start of a text; no token's own bytes change.
            pass
        else:
            raise VocabularyError(
                f"the decoder's step {name!r} (of {names}) is not supported: supported are "
                "ByteLevel, and Replace or Metaspace, ByteFallback, Fuse, Strip in this order"
            )
    return PieceWriting(
        byte_level=False, replacements=tuple(replacements), byte_fallback=byte_fallback
    )


def _flattened(state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if state.get("type") == "Sequence":
        for step in state["decoders"]:
            yield from _flattened(step)
    else:
        yield state
