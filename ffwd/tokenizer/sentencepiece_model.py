"""The parts of a `Bpe` from a SentencePiece model.

The file is a protocol buffer. It is read here, without SentencePiece's own module, which tells
neither the algorithm nor which pieces are user-defined.
"""

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ffwd._native import BpeModel, VocabularyError
from ffwd.tokenizer.kinds import AddedToken, kind_of_added
from ffwd.tokenizer.parts import BpeParts, FoundToken, found_token
from ffwd.tokenizer.pieces import byte_of_piece
from ffwd.tokenizer.table import MAX_WIDTH, TokenKind

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

_ALGORITHMS = {1: "Unigram", 2: "BPE", 3: "Word", 4: "Char"}
_BPE = 2
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_SPACE = "▁"


def sentencepiece_parts(
    source: "str | os.PathLike[str] | bytes | SentencePieceProcessor",
) -> BpeParts:
    """The parts of a model, given as the path of its file, its bytes, or a processor.

    Raises `VocabularyError` for a model that is not BPE, that normalizes text, or that cannot be
    read.
    """
    data = _model_bytes(source)
    pieces: list[tuple[str, float, int]] = []
    trainer: dict[int, Any] = {}
    normalizer: dict[int, Any] = {}
    try:
        for number, value in _fields(data):
            if number == 1:
                fields = dict(_fields(value))
                (score,) = struct.unpack("<f", fields.get(2, b"\0\0\0\0"))
                pieces.append((bytes(fields[1]).decode(), score, fields.get(3, _NORMAL)))
            elif number == 2:
                trainer = dict(_fields(value))
            elif number == 3:
                normalizer = dict(_fields(value))
    except (IndexError, KeyError, ValueError, TypeError, struct.error) as error:
        raise VocabularyError(f"not a SentencePiece model that can be read: {error}") from error
    if not 0 < len(pieces) <= MAX_WIDTH:
        raise VocabularyError(
            f"not a SentencePiece model that can be read: it has {len(pieces)} pieces"
        )
    _check(pieces, trainer, normalizer)
    escapes = bool(normalizer.get(5, 1))
    return piece_parts(pieces, escapes=escapes, dummy_prefix=bool(normalizer.get(3, 1)))


def _check(
    pieces: list[tuple[str, float, int]], trainer: dict[int, Any], normalizer: dict[int, Any]
) -> None:
    """Refuses models that are not BPE or that change text."""
    algorithm = trainer.get(3, 1)
    if algorithm != _BPE:
        raise VocabularyError(
            f"the SentencePiece model is {_ALGORITHMS.get(algorithm, algorithm)}: supported is BPE"
        )
    name = bytes(normalizer.get(1, b"")).decode(errors="replace")
    if normalizer.get(2):
        raise VocabularyError(
            f"the SentencePiece model's normalizer changes text ({name}): supported is identity"
        )
    if normalizer.get(4, 1):
        raise VocabularyError(
            "the SentencePiece model's normalizer removes spaces (remove_extra_whitespaces)"
        )
    if trainer.get(24):
        raise VocabularyError(
            "the SentencePiece model writes spaces at the end of words (treat_whitespace_as_suffix)"
        )
    if any(kind == _UNUSED for *_, kind in pieces):
        raise VocabularyError("the SentencePiece model has unused pieces, which it cuts up again")


def _check_scores(pieces: Iterable[tuple[str, float, int]]) -> None:
    """Refuses pieces whose order the scores leave open."""
    tied: dict[float, str] = {}
    for piece, score, kind in pieces:
        if kind != _NORMAL:
            continue
        other = tied.setdefault(score, piece)
        if other is not piece and (len({*other, *piece}) > 1):
            raise VocabularyError(
                f"the SentencePiece model's pieces {other!r} and {piece!r} have the same score, so "
                "the order of their merges depends on the text"
            )


def piece_parts(
    pieces: list[tuple[str, float, int]], *, escapes: bool, dummy_prefix: bool
) -> BpeParts:
    """The parts of a BPE model with these pieces: text, score and type of each, by id.

    `escapes`: a space is written as `▁`; `dummy_prefix`: one is put before a text.

    Raises `VocabularyError` where different pieces have the same score.
    """
    _check_scores(pieces)
    byte_tokens: list[int | None] = [None] * 256
    # Of one score there are several runs of one character, mostly of spaces. Of these the leftmost
    # merge comes first, and with it all that extend its result: as if the longer ones had the
    # better score.
    normal: list[tuple[float, int, int, bytes]] = []
    found: list[FoundToken] = []
    for token_id, (piece, score, kind) in enumerate(pieces):
        text = piece.replace(_SPACE, " ") if escapes else piece
        never_written = escapes and " " in piece
        if kind == _NORMAL:
            if not never_written:
                normal.append((-score, -len(text), token_id, text.encode()))
        elif kind == _BYTE:
            byte = byte_of_piece(piece)
            if byte is None:
                raise VocabularyError(f"the SentencePiece model has a byte piece {piece!r}")
            byte_tokens[byte] = token_id
        elif text and not never_written:
            added = AddedToken(content=text, special=kind != _USER_DEFINED)
            kind_of_it = kind_of_added(added, text.encode(), in_model=False)
            found.append(found_token(token_id, added, text=kind_of_it is TokenKind.TEXT))
    return BpeParts(
        model=BpeModel.ranked(
            [(text, token_id) for *_, token_id, text in sorted(normal)],
            characters=True,
            byte_tokens=byte_tokens if any(i is not None for i in byte_tokens) else None,
            whole_pieces=False,
        ),
        added_tokens=found,
        dummy_space="text" if dummy_prefix else "never",
        replaced=[(_SPACE, " ")] if escapes else [],
        vocab_size=len(pieces),
    )


def _model_bytes(source: Any) -> bytes:
    if isinstance(source, bytes):
        return source
    if hasattr(source, "serialized_model_proto"):
        return bytes(source.serialized_model_proto())
    if not isinstance(source, (str, os.PathLike)):
        raise VocabularyError(
            f"{type(source).__name__} is not a SentencePiece model: pass the path of a file, its "
            "bytes or a processor"
        )
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise VocabularyError(f"{source} cannot be read: {error}") from error


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The (number, value) pairs of a protocol buffer message; ends early in no valid one."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    while at < len(message):
        key = varint()
        wire = key & 7
        if wire == 0:
            yield key >> 3, varint()
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"a field of type {wire}")
        length = varint() if wire == 2 else 8 if wire == 1 else 4
        if length > len(message) - at:
            raise ValueError("a field goes on past the end")
        yield key >> 3, message[at : at + length]
        at += length
